//! Plain programs that wait at a prompt of their own, on Linux, which shows the wait.
#![cfg(target_os = "linux")]

use std::fs;

use serde_json::Value;

use crate::harness::{Stage, wait_for};

/// Programs that wait at a prompt, by member, with the prompt.
const WAITING: [(&str, &str, &str); 7] = [
    ("asks", "printf 'Continue? [y/N] '; read answer", "Continue? [y/N]"),
    ("name", "printf 'Name: '; read answer", "Name:"),
    ("line", "echo 'Which one?'; read answer", "Which one?"),
    ("secret", "stty -echo; printf 'Password: '; read answer", "Password:"),
    ("key", "stty -icanon; printf 'Sure? (y/n) '; dd bs=1 count=1", "Sure? (y/n)"),
    // As ssh and sudo ask.
    ("tty", "exec >/dev/tty </dev/tty; printf 'Go on (yes/no)? '; read a", "Go on (yes/no)?"),
    ("child", "sh -c 'printf \"Remove it? \"; read answer; :'; :", "Remove it?"),
];
/// Programs that wait, and not for an answer of a person.
const OTHERS: [(&str, &str); 5] = [
    ("shell", "PS1='$ ' exec sh -i"),
    ("reader", "exec cat"),
    ("sleeper", "printf 'Loading: '; exec sleep 1000"),
    ("screen", "printf '\\033[?1049hSure?'; read answer"),
    ("keys", "stty raw; printf 'file: '; exec cat"),
];

/// Returns the prompt at which a member waits, as `status` shows it; empty if there is none.
fn prompt_of(stage: &Stage, name: &str) -> String {
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let members = status["members"].as_array().expect("a list").clone();
    let member = members.into_iter().find(|member| member["name"] == name).unwrap_or_default();
    let prompt = member["reason"].as_str().filter(|_| member["needs"] == "prompt");
    prompt.unwrap_or_default().to_owned()
}

fn waits_at(stage: &Stage, name: &str, prompt: &str) {
    wait_for(&format!("{name} at {prompt:?}"), || (prompt_of(stage, name) == prompt).then_some(()));
}

/// Returns the texts of the events about prompts of a member; an empty one means that it no longer
/// waits.
fn told(stage: &Stage, name: &str) -> Vec<String> {
    let events = stage.journal("alpha");
    let about = |event: &&Value| event["event"] == "member_prompt" && event["member"] == name;
    let text = |event: &Value| event["detail"]["text"].as_str().unwrap_or_default().to_owned();
    events.iter().filter(about).map(text).collect()
}

fn prompts_are_told_from_other_waits(backend: &str) {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    // First, so that they have been looked at when the others are reported.
    for (name, script) in OTHERS {
        stage.phalanx(&["spawn", name, "--backend", backend, "--", "sh", "-c", script]).expect(0);
    }
    let ignored = ["spawn", "ignored", "--no-attention", "--backend", backend, "--", "sh", "-c"];
    stage.phalanx(&[&ignored[..], &[WAITING[0].1]].concat()).expect(0);
    for (name, script, _) in WAITING {
        let script = format!("{script}; exec sleep 1000");
        stage.phalanx(&["spawn", name, "--backend", backend, "--", "sh", "-c", &script]).expect(0);
    }
    for (name, _, prompt) in WAITING {
        waits_at(&stage, name, prompt);
    }
    for name in OTHERS.map(|(name, _)| name).into_iter().chain(["ignored"]) {
        assert_eq!((prompt_of(&stage, name).as_str(), told(&stage, name).len()), ("", 0), "{name}");
    }
    for (name, _, prompt) in WAITING {
        stage.phalanx(&["type", name, "y", "--enter"]).expect(0);
        wait_for(&format!("{name} to go on"), || prompt_of(&stage, name).is_empty().then_some(()));
        // The state is stored before it is journaled.
        wait_for(name, || (told(&stage, name) == [prompt, ""]).then_some(()));
    }
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn pm_08_pty_program_at_its_prompt_waits_for_a_person() {
    prompts_are_told_from_other_waits("pty");
}

#[test]
fn tmux_pm_08_program_at_its_prompt_waits_for_a_person() {
    prompts_are_told_from_other_waits("tmux");
}

/// The lead announces each prompt once, also a lead that takes over, and shows it.
#[test]
fn pm_08_each_prompt_is_announced_once() {
    let stage = Stage::without_tmux();
    let announced = stage.at("announced");
    let manifest = format!(
        "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\n\
         notify = [\"sh\", \"-c\", \"cat >>{0}; echo >>{0}\"]\n\
         [[member]]\nname = \"asks\"\nrun = [\"sh\", \"-c\", \"printf 'First? '; read a; printf 'Second? '; read a; read a\"]\n\
         [[member]]\nname = \"ignored\"\nattention = false\nrun = [\"sh\", \"-c\", \"printf 'Third? '; read a\"]\n",
        announced.display()
    );
    let lines = || -> Vec<Value> {
        let text = fs::read_to_string(&announced).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let file = stage.file("team.toml", &manifest);
    let lead = stage.start(&["up", &file]);
    stage.wait_event("alpha", "member_ready", "asks");
    waits_at(&stage, "asks", "First?");
    wait_for("the first announcement", || (lines().len() == 1).then_some(()));
    lead.wait_for_message("waits at its prompt: First?");
    lead.signal("KILL");
    lead.end();
    let next = stage.start(&["lead"]);
    let leads = || stage.journal("alpha").iter().filter(|e| e["event"] == "lead_started").count();
    wait_for("the next lead", || (leads() == 2).then_some(()));
    stage.phalanx(&["type", "asks", "y", "--enter"]).expect(0);
    waits_at(&stage, "asks", "Second?");
    wait_for("the second announcement", || (lines().len() > 1).then_some(()));
    let told: Vec<Value> = lines().iter().map(|line| line["summary"].clone()).collect();
    assert_eq!(told, ["First?", "Second?"]);
    let first = &lines()[0];
    assert_eq!(
        (&first["team"], &first["kind"], &first["from"]),
        (&"alpha".into(), &"prompt".into(), &"asks".into())
    );
    stage.phalanx(&["type", "asks", "y", "--enter"]).expect(0);
    wait_for("no prompt", || prompt_of(&stage, "asks").is_empty().then_some(()));
    assert_eq!(lines().len(), 2);
    stage.phalanx(&["down", "--force"]).expect(0);
    next.end();
}
