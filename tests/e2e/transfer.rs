//! `store export` and `store import`: a team of files that moves to PostgreSQL and back.

use std::path::Path;

use testing::TestDatabase;

use crate::harness::{Run, Stage, wait_for};

/// What is compared: tasks, roster and settings, journal, mail. Reading mail is an event, so it is
/// last.
const VERBS: [&[&str]; 4] =
    [&["task", "list", "--all"], &["team", "show"], &["events"], &["inbox", "--all"]];

/// Returns the output without the path of the team file, and without what a reader adds.
fn compared(run: Run) -> String {
    let text = run.expect(0).stdout;
    let lines = text.lines().filter(|line| !line.contains("team_file_path"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn team_moves_to_the_shared_store_and_back() {
    let Some(database) = TestDatabase::create() else { return };
    let url = database.url();
    let stage = Stage::without_tmux();
    let files = stage.at("files");
    let at = |dir: &Path, args: &[&str]| {
        let dir = dir.to_string_lossy().into_owned();
        stage.phalanx(&[&["--config-dir", &dir, "--json", "-t", "demo"], args].concat())
    };
    at(&files, &["team", "create", "demo"]).expect(0);
    at(&files, &["spawn", "ada"]).expect(0);
    at(&files, &["task", "create", "first", "--owner", "ada", "--", "true"]).expect(0);
    at(&files, &["task", "create", "second"]).expect(0);
    wait_for("the task to be completed", || {
        let task = at(&files, &["task", "get", "1"]).expect(0).json();
        (task["state"] == "completed").then_some(())
    });
    // A team whose members run is not copied: the copy would be out of date.
    let import = |dir: &str| stage.phalanx(&["store", "import", "demo", dir, &url]);
    let refused = import("../files").expect(2);
    assert!(refused.stderr.contains("ada") && refused.stderr.contains("shutdown --all"));
    at(&files, &["shutdown", "--all"]).expect(0);
    // Each copy would report the task at another time.
    wait_for("the report", || {
        let mail = at(&files, &["inbox", "--all", "--peek"]).expect(0).stdout;
        mail.contains("1 task completed").then_some(())
    });

    let said = import("../files").expect(0).stdout;
    assert!(said.contains("demo") && said.contains("tasks (2)"), "{said}");
    assert!(import("../files").expect(4).stderr.contains("already exists"));
    let shown = |args: &[&str]| stage.phalanx(&[&["--json", "-t", "demo"], args].concat());
    for verb in VERBS {
        let (before, after) = (compared(at(&files, verb)), compared(shown(verb)));
        assert_eq!(after, before, "{verb:?}");
    }

    stage.phalanx(&["store", "export", "demo", "../back"]).expect(0);
    let back = stage.at("back");
    for verb in VERBS {
        let (before, after) = (compared(shown(verb)), compared(at(&back, verb)));
        assert_eq!(after, before, "{verb:?}");
    }
    // The copy is a team that can be led: its next task has the next id.
    let made = at(&back, &["task", "create", "third"]).expect(0).json();
    assert_eq!(made["id"], "3", "{made}");
    assert!(
        stage.phalanx(&["store", "export", "demo", "../back"]).expect(4).stderr.contains("demo")
    );
    let own = stage.root().to_string_lossy().into_owned();
    assert!(import(&own).expect(2).stderr.contains("that of this host"));
    stage.phalanx(&["team", "delete", "-t", "demo"]).expect(0);
}

/// A broker below the root of the caller would outlive the command there, for a team of another
/// root.
#[test]
fn lookup_of_a_shared_team_under_another_root_uses_the_broker_there() {
    let Some(database) = TestDatabase::create() else { return };
    let mut shared = Stage::without_tmux();
    shared.set_env("PHALANX_STORE", &database.url());
    shared.phalanx(&["store", "init", &database.url()]).expect(0);
    shared.phalanx(&["team", "create", "demo"]).expect(0);
    shared.phalanx(&["spawn", "ada"]).expect(0);
    let stage = Stage::without_tmux();
    let found = stage.phalanx(&["ps"]).expect(0).stdout;
    assert!(found.contains("demo") && found.contains("ada"), "{found}");
    assert!(!stage.root().join("phalanx").exists());
    shared.phalanx(&["down"]).expect(0);
}
