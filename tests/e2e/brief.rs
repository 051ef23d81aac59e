//! `brief`: the text follows the roster, and who asks.

use crate::harness::Stage;

#[test]
fn the_brief_follows_the_roster() {
    let stage = Stage::without_tmux();
    let outside = stage.phalanx(&["brief"]).expect(0).stdout;
    assert!(outside.contains("You are in no team"), "{outside}");
    stage.phalanx(&["brief", "ada"]).expect(2);
    stage.phalanx(&["team", "create", "alpha", "--description", "try things"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--role", "tester"]).expect(0);
    let lead = stage.phalanx(&["brief"]).expect(0).stdout;
    assert!(lead.contains("the lead of the team `alpha`") && lead.contains("- ada: tester"), "{lead}");
    let ada = stage.phalanx(&["--as", "ada", "brief"]).expect(0).stdout;
    assert!(ada.contains("You are `ada`") && !ada.contains("bob"), "{ada}");
    assert_eq!(stage.phalanx(&["--json", "brief", "ada"]).expect(0).json()["text"], ada.trim_end());
    stage.phalanx(&["spawn", "bob"]).expect(0);
    assert!(stage.phalanx(&["brief", "ada"]).expect(0).stdout.contains("- bob: general-purpose"));
    stage.phalanx(&["shutdown", "bob"]).expect(0);
    assert!(!stage.phalanx(&["brief", "ada"]).expect(0).stdout.contains("bob"));
    stage.phalanx(&["brief", "bob"]).expect(3);
    let stranger = stage.phalanx(&["--as", "nobody", "brief"]).expect(0).stdout;
    assert_eq!(stranger, outside);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}
