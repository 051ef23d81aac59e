//! Success paths: the life cycle of a session, its location, and the arguments that reach it.

use std::ffi::OsString;

use serde_json::json;

use super::super::{count_sessions, probe};
use super::harness::{Mac, launch, place_one, until};
use crate::{Backend, CloseOutcome, Label, Mark, PlacementRequest};
use model::id::MemberName;
use model::members::placement::{BackendKind, Layout, Placement, Verdict};
use model::members::spec::Terminal;
use sys::{exec, fs};

fn a_label(name: &str, role: &str) -> Label {
    let (name, role) = (name.to_owned(), Some(role.to_owned()));
    Label { name, role, state: "idle".to_owned(), color: Some("blue".to_owned()) }
}

#[test]
fn session_is_opened_shown_named_and_closed() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    assert_eq!(iterm2.kind(), BackendKind::Iterm2);
    let ada = MemberName::new("ada").expect("a name");
    assert_eq!(iterm2.terminal(&ada), Terminal::Pane);
    let place = place_one(&iterm2, "ada").expect("placed");
    assert_eq!(mac.session(&place)["variables"]["user.phalanx_token"], json!("token-ada"));
    assert_eq!(iterm2.verify(Mark::new(&place, "token-ada")), Verdict::Owned);
    until("its screen", || {
        iterm2.screen(Mark::new(&place, "token-ada"), 5).expect("ours").contains("hello")
    });
    iterm2.focus(Mark::new(&place, "token-ada")).expect("ours");
    assert_eq!(mac.op("selected", &[]), json!(place.pane_id()));
    iterm2.label(&[(Mark { placement: &place, token: "token-ada" }, a_label("ada", "tester"))]);
    assert_eq!(mac.session(&place)["name"], json!("ada · tester · idle"));
    // iTerm2's dictionary has no colour of a title; those of the text stay as the user set them.
    assert_eq!(mac.session(&place)["properties"], json!({}));
    assert!(iterm2.how_to_watch(&place).contains("iTerm2"));
    assert!(matches!(iterm2.close(Mark::new(&place, "token-ada")), CloseOutcome::Closed));
    assert_eq!(iterm2.verify(Mark::new(&place, "token-ada")), Verdict::Gone);
    assert!(
        matches!(iterm2.close(Mark::new(&place, "token-ada")), CloseOutcome::Gone),
        "twice is harmless"
    );
    assert!(mac.others().is_empty());
}

/// LY-04: the leader's session is split once, then those of members; a session too low to split
/// gets a tab beside it.
#[test]
fn ly_04_leader_session_is_split_only_once() {
    let mac = Mac::new();
    let bystander = mac.open("sleep");
    let iterm2 = mac.backend(Layout::Panes);
    let launches: Vec<PlacementRequest> = (0..7).map(|n| launch(&format!("m{n}"), ":")).collect();
    let places: Vec<Placement> =
        iterm2.place(&launches).into_iter().map(|place| place.expect("placed")).collect();
    let anchors: Vec<(String, String)> =
        mac.calls("place").into_iter().map(|call| (call[0].clone(), call[1].clone())).collect();
    assert_eq!(anchors[0], (mac.leader.session_id.clone(), "right".to_owned()));
    for (anchor, way) in &anchors[1..] {
        assert!(places.iter().any(|place| place.pane_id() == anchor), "{anchors:?}");
        assert!(["below", "tab"].contains(&way.as_str()), "{anchors:?}");
    }
    assert!(
        anchors.iter().any(|(_, way)| way == "tab"),
        "50 rows are not enough for seven: {anchors:?}"
    );
    assert_eq!(mac.calls("survey").len(), 1, "all in one go");
    let marks: Vec<Mark<'_>> = places
        .iter()
        .zip(&launches)
        .map(|(placement, l)| Mark { placement, token: &l.token })
        .collect();
    assert_eq!(iterm2.verify_all(&marks), vec![Verdict::Owned; 7]);
    for closed in iterm2.close_all(&marks, &mut |_| true) {
        assert!(matches!(closed, CloseOutcome::Closed), "{closed:?}");
    }
    let left = mac.op("sessions", &[]);
    assert_eq!(left.as_array().map(Vec::len), Some(2), "the leader and the bystander: {left}");
    assert_eq!((&left[0]["rows"], &left[1]["id"]), (&json!(50), &json!(bystander.session_id)));
}

#[test]
fn windows_layout_opens_tabs() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Windows);
    let tabs: Vec<_> = ["ada", "ben"]
        .map(|name| mac.session(&place_one(&iterm2, name).expect("placed"))["tab"].clone())
        .into();
    assert_eq!(tabs, [json!(1), json!(2)]);
}

/// SEC-09, SEC-02: the launcher's arguments arrive byte for byte, and none of them is evaluated.
#[test]
fn sec_09_sec_02_arguments_and_names_are_not_evaluated() {
    let mac = Mac::new();
    let canary = mac.path("canary");
    let touch = format!("touch {}", canary.display());
    let hostile = [
        "it's a \"dir\" ü 한글 🙂".to_owned(),
        format!("$({touch}) `{touch}` #({touch}) #{{x}} ; {touch} ;"),
        format!("\" & do shell script \"{touch}\" & \""),
        "line\nbreak\ttab \u{1b}[201~ \u{2028} -".to_owned(),
        "$$HOME$$ $$$$ ~ $HOME".to_owned(),
        "-e".to_owned(),
        String::new(),
    ];
    let dir = mac.path(&hostile[0]);
    fs::private_dir(&dir).expect("a directory of that name");
    let show = dir.join("show");
    let output = mac.path("output");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\037' \"$@\" >{0}.new; mv {0}.new {0}; exec sleep 600\n",
        output.display()
    );
    let command = exec::ExecCommand {
        program: "/bin/sh".into(),
        args: ["-c", "cat >\"$0\" && chmod 755 \"$0\""]
            .map(OsString::from)
            .into_iter()
            .chain([show.clone().into()])
            .collect(),
        stdin: script.into_bytes(),
        ..exec::ExecCommand::default()
    };
    assert_eq!(exec::run(&command, std::time::Duration::from_secs(60)).expect("sh").code, Some(0));
    let argv = std::iter::once(show.into()).chain(hostile.iter().map(OsString::from)).collect();
    let member = MemberName::new("ada").expect("a name");
    let iterm2 = mac.backend(Layout::Split);
    let launch =
        PlacementRequest { member, token: "tok".to_owned(), argv, label: Label::default() };
    let place = iterm2.place(&[launch]).remove(0).expect("placed");
    until("the words", || fs::exists(&output));
    let words = String::from_utf8(fs::read(&output, 1 << 16).expect("readable").expect("there"))
        .expect("text");
    assert_eq!(words.split_terminator('\u{1f}').collect::<Vec<_>>(), hostile);
    for role in &hostile {
        iterm2.label(&[(Mark { placement: &place, token: "tok" }, a_label("\\(system)", role))]);
        let name = mac.session(&place)["name"].as_str().expect("a name").to_owned();
        assert!(
            !name.contains('\\') && !name.contains('\u{1b}') && !name.contains('\n'),
            "{name:?}"
        );
    }
    assert!(!fs::exists(&canary));
}

/// SEC-09: a word that iTerm2 would read differently is refused before it is sent.
#[test]
fn sec_09_unencodable_argument_is_refused() {
    let mac = Mac::new();
    let mut bad = launch("ada", ":");
    bad.argv[0] = "/a\\(b)".into();
    let problem = mac.backend(Layout::Split).place(&[bad]).remove(0).expect_err("refused");
    assert!(problem.to_string().contains("without backslashes"), "{problem}");
    assert!(mac.calls("place").is_empty());
}

/// PT-03: the caller is in iTerm2 only if its terminal belongs to a live session.
#[test]
fn pt_03_probe_identifies_a_session_by_its_terminal() {
    let mac = Mac::new();
    let ask = |tty: &str| probe(mac.path("osascript"), tty);
    assert_eq!(ask(&mac.leader.tty), Ok(()));
    assert!(ask("/dev/ttys999").expect_err("no session").contains("/dev/ttys999"));
    assert_eq!(count_sessions(mac.path("osascript")), Ok(Some(1)));
    mac.fail("survey", "-1743", 1);
    assert!(ask(&mac.leader.tty).expect_err("not allowed").contains("Automation"));
    mac.fail("survey", "-1743", 1);
    let refused = count_sessions(mac.path("osascript")).expect_err("not allowed");
    assert!(refused.contains("-1743") && refused.contains("Automation"), "{refused}");
    mac.fail("survey", "-2741", 1);
    assert_eq!(count_sessions(mac.path("osascript")), Ok(None), "not installed");
    mac.op("version", &["3.1.7"]);
    assert!(ask(&mac.leader.tty).expect_err("too old").contains("update iTerm2"));
    mac.op("stop", &[]);
    assert!(ask(&mac.leader.tty).expect_err("not there").contains("not running"));
    assert_eq!(count_sessions(mac.path("osascript")), Ok(None));
    assert!(
        probe(mac.path("no-such-program"), "/dev/x")
            .expect_err("nothing there")
            .contains("no-such-program")
    );
}
