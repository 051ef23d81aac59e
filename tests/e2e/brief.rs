//! `brief`: the text depends on the current roster and on the caller.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{FAKE_TUI, Stage, wait_for};

/// CR-06: an agent that lost its context recovers its team context with one command.
#[test]
fn brief_follows_the_roster() {
    let stage = Stage::without_tmux();
    let outside = stage.phalanx(&["brief"]).expect(0).stdout;
    assert!(outside.contains("You are not in a team"), "{outside}");
    stage.phalanx(&["brief", "ada"]).expect(3);
    stage.phalanx(&["team", "create", "alpha", "--description", "try things"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--role", "tester"]).expect(0);
    let lead = stage.phalanx(&["brief"]).expect(0).stdout;
    assert!(
        lead.contains("the lead of the team `alpha`") && lead.contains("- ada: tester"),
        "{lead}"
    );
    let ada = stage.phalanx(&["--as", "ada", "brief"]).expect(0).stdout;
    assert!(ada.contains("You are `ada`") && !ada.contains("bob"), "{ada}");
    assert_eq!(stage.phalanx(&["--json", "brief", "ada"]).expect(0).json()["text"], ada.trim_end());
    stage.phalanx(&["spawn", "bob"]).expect(0);
    assert!(stage.phalanx(&["brief", "ada"]).expect(0).stdout.contains("- bob: general-purpose"));
    stage.phalanx(&["shutdown", "bob"]).expect(0);
    assert!(!stage.phalanx(&["brief", "ada"]).expect(0).stdout.contains("bob"));
    stage.phalanx(&["brief", "bob"]).expect(3);
    stage.phalanx(&["--as", "nobody", "brief"]).expect(3);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// EN-04, ID-02: a wrapped program gets its team and role once, in the same message as its first
/// prompt and before it. Members started by the same `up` are already listed.
#[test]
fn en_04_wrapped_program_is_briefed_in_its_first_message() {
    let stage = Stage::new();
    stage.fake_tui(|sheet| {
        let told = sheet
            .replace("brief = \"none\"", "brief = \"first-message\"")
            .replace("4096", "100000");
        told.replace("[\"{command}\"]", &format!("[\"{FAKE_TUI}\", \"log\"]"))
    });
    let manifest = stage.file(
        "team.toml",
        "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\n[role.scout]\nprompt = \"MARKER: look\"\n\
         [[member]]\nname = \"ada\"\nprofile = \"fake\"\nrole = \"scout\"\nprompt = \"begin here\"\n[[member]]\nname = \"bob\"\n",
    );
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    let turn = |nth: usize| {
        wait_for("a turn", || {
            let log = fs::read_to_string(stage.at("work/log")).ok()?;
            serde_json::from_str::<Value>(log.lines().nth(nth)?).ok()?.as_str().map(str::to_owned)
        })
    };
    let first = turn(0);
    for words in [
        "You are `ada`",
        "- ada: scout, you",
        "- bob: general-purpose",
        "Your role\nMARKER: look\n</system_context>",
    ] {
        assert!(first.contains(words), "{words} is not in {first}");
    }
    assert!(first.contains("</system_context>\n\nbegin here"), "{first}");
    // A roster change sends no message, and the brief is not repeated.
    stage.phalanx(&["spawn", "eve", "--backend", "pty"]).expect(0);
    stage.phalanx(&["send", "ada", "second words"]).expect(0);
    let second = turn(1);
    assert!(second.contains("second words") && !second.contains("system_context"), "{second}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// The brief is passed as the profile specifies: once on the command line; for Claude Code, which
/// briefs its teammates itself, only what it lacks; not at all for plain commands.
#[test]
fn brief_is_passed_as_the_profile_specifies() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let sheet = "about = \"x\"\nruns = \"native\"\n[launch]\nargv = [[\"agent\"], [\"--append-system-prompt\", \"{brief}\"]]\n\
                 prompt = \"mailbox\"\nbrief = \"argv\"\n[ready]\nwhen = \"settled\"\n";
    stage.profile("flag", sheet);
    let dry = |more: &[&str]| {
        stage
            .phalanx(&[&["--json", "spawn", "ada", "--dry-run", "--prompt", "go"], more].concat())
            .expect(0)
            .json()
    };
    let plan = dry(&["--profile", "flag"]);
    let argv = plan["argv"].as_array().expect("argv");
    assert_eq!(
        (argv.len(), &argv[1], &plan["brief"]),
        (3, &json!("--append-system-prompt"), &json!("argv"))
    );
    let text = argv[2].as_str().expect("a text");
    assert!(
        text.starts_with("<system_context>\nYou are `ada`") && text.ends_with("</system_context>"),
        "{text}"
    );
    let plan = dry(&["--profile", "claude"]);
    assert!(plan.to_string().contains("system_context>\\nphalanx runs this team."), "{plan}");
    assert_eq!(plan["brief"], json!("supplement"), "Claude Code has instructions of its own");
    for (more, how) in [(&[][..], "worker"), (&["--", "agent"], "shell")] {
        let plan = dry(more);
        assert!(!plan.to_string().contains("system_context"), "{how}: {plan}");
        assert_eq!(plan["brief"], json!(null), "{how}");
    }
    stage.profile("flag", &sheet.replace("brief = \"argv\"", "brief = \"first-message\""));
    let refused =
        stage.phalanx(&["spawn", "ada", "--profile", "flag", "--dry-run"]).expect(2).stderr;
    assert!(refused.contains("has `{brief}` exactly when `brief` is \"argv\""), "{refused}");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}
