//! Who waits for a person: `up` and plain `phalanx` name it, with the command that sees to it,
//! whatever the member is.

use serde_json::Value;

use crate::harness::{FAKE_TUI, NATIVE, Stage, wait_for};
use crate::requests;

const RULES: &str = "[[rule]]\nname = \"trust\"\nstate = \"dialog:trust\"\nmatch = ['trust this']\n\
                     [[rule]]\nname = \"login\"\nstate = \"needs_login\"\nmatch = ['Sign in']\n";

/// The members, what each shows, and what is to be typed.
const MEMBERS: [(&str, &str, &str); 5] = [
    (
        "tui",
        "asks whether it may trust the directory: Trust this folder?",
        "`phalanx attach tui`, and answer on its screen",
    ),
    (
        "nat",
        "asks whether it may trust the directory: trust this",
        "`phalanx attach nat`, and answer on its screen",
    ),
    ("log", "needs a login: Sign in", "`phalanx attach log`, and log in on its screen"),
    ("cmd", "waits at its prompt: Overwrite it?", "`phalanx type cmd TEXT --enter` answers it"),
    ("ada", "Bash: curl x", "`phalanx answer id-1 --approve`"),
];

/// Members that run until they are asked to end.
const MANIFEST: &str = "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"tmux\"\n\
    [[member]]\nname = \"tui\"\nprofile = \"fake\"\n[[member]]\nname = \"nat\"\nprofile = \"trusts\"\n\
    [[member]]\nname = \"log\"\nprofile = \"logs\"\n[[member]]\nname = \"ada\"\n\
    [[member]]\nname = \"cmd\"\nrun = [\"sh\", \"-c\", \"printf 'Overwrite it? '; read a\"]\n";

/// Writes the profile of a native program that shows this and waits.
fn native(stage: &Stage, name: &str, words: &str) {
    let argv = format!("\"sh\", \"-c\", \"echo '{words}'; exec sleep 300\"");
    stage.profile(name, &(NATIVE.replace("\"{command}\"", &argv) + RULES));
}

/// ST-04: a person who only looks at `up`, or types `phalanx`, learns who waits and what to type.
#[test]
fn tmux_st_04_up_and_phalanx_name_who_waits_and_what_to_type() {
    let stage = Stage::new();
    let log = stage.at("modal").display().to_string();
    let modal = format!("\"{FAKE_TUI}\", \"{log}\", \"modal\"");
    stage.fake_tui(|sheet| sheet.replace("\"{command}\"", &modal));
    native(&stage, "trusts", "1. Yes, I trust this folder");
    native(&stage, "logs", "1. Sign in");
    let file = stage.file("team.toml", MANIFEST);
    let up = stage.start(&["up", &file]);
    stage.wait_event("alpha", "member_ready", "ada");
    requests::send_as_ada(&stage, &requests::permission("id-1", "curl x"));
    let line_of = |name: &str, what: &str, next: &str| {
        let messages = up.messages();
        let line = messages.lines().find(|line| line.contains(what) && line.contains(next))?;
        assert!(line.contains(name), "{line}");
        Some(())
    };
    for (name, what, next) in MEMBERS {
        wait_for(&format!("what {name} waits for"), || line_of(name, what, next));
    }
    for (name, what, next) in MEMBERS {
        wait_for(&format!("{name} on the page"), || {
            let page = stage.phalanx(&[]).expect(0).stdout;
            let shown: Vec<&str> = page.lines().collect();
            let is_it = |pair: &[&str]| {
                pair[0].starts_with(&format!("  {name}: "))
                    && pair[0].contains(what)
                    && pair[1].contains(next)
            };
            shown.windows(2).any(is_it).then_some(())
        });
    }
    let document = stage.phalanx(&["--json"]).expect(0).json();
    let needs = document["teams"][0]["needs"].as_array().cloned().unwrap_or_default();
    let mut names: Vec<&Value> = needs.iter().map(|need| &need["member"]).collect();
    names.sort_by_key(|name| name.to_string());
    assert_eq!(names, ["ada", "cmd", "log", "nat", "tui"]);
    let seen = up.messages();
    for (name, what, next) in MEMBERS {
        let told = seen.lines().filter(|line| line.contains(what) && line.contains(next)).count();
        assert_eq!(told, 1, "{name} is named once: {seen}");
    }
    stage.phalanx(&["down", "--force"]).expect(0);
    up.end();
    stage.assert_clean();
}
