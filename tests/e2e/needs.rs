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

/// A native program that asks on its terminal, and writes down the answer.
const ASKS: &str = r#"
about = "asks whether it may trust its directory"
runs = "native"
[launch]
argv = [["sh", "-c", "printf 'Trust this folder? %s\n> ' \"$PWD\"; read -r a; printf %s \"$a\" >\"answer-$PHALANX_AGENT_NAME\"; clear; exec sleep 300"]]
prompt = "mailbox"
[ready]
when = "settled"
settle_ms = 100
[answers.trust]
allow = "y\r"
deny = "n\r"
[[rule]]
name = "trust"
state = "dialog:trust"
match = ['Trust this folder\? (?<text>\S+)\n>\s*\z']
"#;

/// ST-07: what a native program asks on its screen is a request: `spawn` and `wait` name it, it is
/// listed and answered, and its keys are typed. One that a person answers on the screen is closed.
fn native_dialogs_are_requests(stage: &Stage) {
    stage.profile("asks", ASKS);
    let run = stage.phalanx(&["spawn", "ann", "ben", "cid", "--profile", "asks"]).expect(0);
    let place = stage.at("work").canonicalize().expect("path").display().to_string();
    for name in ["ann", "ben", "cid"] {
        let told = format!(
            "{name} asks whether it may trust the directory: {place}; `phalanx answer {name} --approve`"
        );
        assert!(run.stderr.contains(&told), "{run:?}");
    }
    let waited = stage.phalanx(&["wait", "ann", "--until", "ready"]).expect(0).stdout;
    assert!(waited.starts_with("ann waiting: it asks whether it may trust"), "{waited}");
    let open = || stage.phalanx(&["--json", "requests"]).expect(0).json();
    let listed = open();
    assert_eq!(listed.as_array().map(Vec::len), Some(3), "{listed}");
    assert!(listed.as_array().expect("a list").iter().all(|one| one["kind"] == "dialog"));
    let shown = stage.phalanx(&["--json", "status"]).expect(0).json()["members"].clone();
    assert!(
        shown.as_array().expect("members").iter().all(|one| one["needs"] == "trust"),
        "{shown}"
    );

    let yes = stage.phalanx(&["answer", "ann", "--approve"]).expect(0).stdout;
    assert_eq!(yes, "ann: allowed: typed; the dialog closed\n");
    stage.phalanx(&["answer", "ben", "--reject"]).expect(0);
    // PM-15: not by accident.
    let refused = stage.phalanx(&["type", "cid", "mine", "--enter"]).expect(4).stderr;
    assert!(refused.contains("the input could answer it: `phalanx answer dialog-"), "{refused}");
    stage.phalanx(&["type", "cid", "mine", "--enter", "--at-dialog"]).expect(0);
    let answer =
        |name: &str| std::fs::read_to_string(stage.at(&format!("work/answer-{name}"))).ok();
    for (name, typed) in [("ann", "y"), ("ben", "n"), ("cid", "mine")] {
        wait_for("the answer", || answer(name).filter(|text| text == typed));
    }
    wait_for("no request", || (open() == serde_json::json!([])).then_some(()));
    stage.phalanx(&["answer", "cid", "--approve"]).expect(3);
    wait_for("no need", || {
        let shown = stage.phalanx(&["--json", "status"]).expect(0).json()["members"].clone();
        shown.as_array().expect("members").iter().all(|one| one["needs"].is_null()).then_some(())
    });
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn st_07_dialogs_of_native_programs_are_requests() {
    native_dialogs_are_requests(&Stage::without_tmux());
}

#[test]
fn tmux_st_07_dialogs_of_native_programs_are_requests() {
    native_dialogs_are_requests(&Stage::new());
}
