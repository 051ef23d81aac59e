//! `explain`, `focus`, `hide`, `show` and `man`.

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

fn fact<'a>(found: &'a Value, what: &str) -> &'a Value {
    let facts = found["facts"].as_array().expect("facts");
    facts.iter().find(|fact| fact["what"] == what).unwrap_or_else(|| panic!("no {what}: {found}"))
}

#[test]
fn tmux_explain_lists_facts_with_their_sources() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let made = stage.phalanx(&["--json", "spawn", "ada"]).expect(0).json();
    stage.phalanx(&["task", "create", "Wait", "--", "sleep", "600"]).expect(0);
    stage.wait_event("alpha", "task_claimed", "1");
    stage.phalanx(&["wait", "ada", "--until", "ready"]).expect(0);
    let found = stage.phalanx(&["--json", "explain", "ada"]).expect(0).json();
    assert_eq!(fact(&found, "verdict")["value"], json!("owned"), "{found}");
    assert!(
        fact(&found, "verdict")["source"]
            .as_str()
            .is_some_and(|s| s.starts_with("tmux server at /"))
    );
    assert_eq!(fact(&found, "program")["value"], json!(format!("process {}: alive", made["pid"])));
    let source = fact(&found, "state")["source"].as_str().expect("source");
    let (file, key) = source.rsplit_once(": ").expect("file and field");
    let record: Value =
        serde_json::from_str(&std::fs::read_to_string(file).expect("a file")).expect("json");
    assert!(record[key].is_string(), "{source}");
    assert_eq!(found["task"], json!("#1 Wait"));
    assert!(found["last_event"]["event"].is_string(), "{found}");
    let text = stage.phalanx(&["-v", "explain", "ada"]).expect(0).stdout;
    for word in ["ada: working", "owned", "phalanx/members/ada.json: state", "#1 Wait"] {
        assert!(text.contains(word), "{word} in {text}");
    }

    stage
        .tmux(&["kill-pane", "-t", made["tmux_pane_id"].as_str().expect("pane")])
        .expect("killed by hand");
    stage.phalanx(&["wait", "ada", "--until", "gone"]).expect(1);
    // The launcher records the end of its program before its own.
    let found = wait_for("the launcher's end", || {
        let found = stage.phalanx(&["--json", "explain", "ada"]).expect(0).json();
        fact(&found, "launcher")["value"].as_str()?.ends_with(": dead").then_some(found)
    });
    assert_eq!(fact(&found, "verdict")["value"], json!("gone"), "{found}");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn explain_shows_the_last_delivery_and_works_after_the_end() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    stage.phalanx(&["send", "ada", "hello"]).expect(0);
    let delivery =
        || stage.phalanx(&["--json", "explain", "ada"]).expect(0).json()["last_delivery"].clone();
    wait_for("the message to be handed over", || (delivery()["handed_over"] == true).then_some(()));
    assert_eq!((&delivery()["from"], &delivery()["to"]), (&json!("team-lead"), &json!("ada")));
    stage.phalanx(&["shutdown", "ada"]).expect(0);
    // Members that have left are explained too; that is when users ask.
    let found = stage.phalanx(&["--json", "explain", "ada"]).expect(0).json();
    assert_eq!(found["state"], json!("completed"), "{found}");
    assert_eq!(fact(&found, "roster")["value"], json!("no longer on the roster"));
    assert!(found["verdicts"].as_array().is_some_and(|v| !v.is_empty()), "{found}");
    let run = stage.phalanx(&["--json", "explain", "nobody"]).expect(3);
    assert_eq!(run.json()["error"]["kind"], json!("not_found"));
    stage.phalanx(&["down"]).expect(0);
}

/// SEC-10: foreign text in our files reaches the terminal without control characters.
#[test]
fn sec_10_explain_and_doctor_print_no_control_characters() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    let journal = stage.root().join("teams/alpha/phalanx/journal.jsonl");
    let mut text = std::fs::read_to_string(&journal).expect("journal");
    let hostile = "\u{1b}]52;c;eA==\u{7}\u{9b}2J\r\n\u{202e}";
    let event = json!({"id": "x", "at": 1, "team": "alpha", "event": "warning", "member": "ada", "detail": {hostile: hostile}});
    text.push_str(&format!("{event}\n"));
    std::fs::write(&journal, text).expect("journal");
    let copy = stage
        .root()
        .join(format!("teams/alpha/phalanx/quarantine/a{}b", hostile.replace('\n', "")));
    std::fs::write(copy, "x").expect("copy");
    for verb in [&["-v", "explain", "ada"][..], &["doctor"]] {
        let run = stage.phalanx(&[verb, &["--color", "never"]].concat());
        let bad = run.stdout.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(bad, None, "{verb:?}: {run:?}");
        assert!(run.stdout.contains("52;c;"), "{verb:?}: {run:?}");
    }
    stage.phalanx(&["down"]).expect(0);
}

#[test]
fn focus_hide_and_show_are_refused_without_a_pane() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    let config = stage.root().join("teams/alpha/config.json");
    let read = || std::fs::read_to_string(&config).expect("config");
    let before = read();
    for verb in ["focus", "hide", "show"] {
        let run = stage.phalanx(&["--json", verb, "ada"]).expect(4);
        assert!(run.stderr.contains(verb) && run.stderr.contains("phalanx attach"), "{run:?}");
        assert_eq!(
            stage.phalanx(&["--json", verb, "nobody"]).expect(3).json()["error"]["kind"],
            json!("not_found")
        );
        assert_eq!(
            stage.phalanx(&["--json", verb, "team-lead"]).expect(4).json()["error"]["kind"],
            json!("refused")
        );
    }
    assert_eq!(read(), before);
    stage.phalanx(&["shutdown", "ada"]).expect(0);
    assert!(stage.phalanx(&["hide", "ada"]).expect(4).stderr.contains("has ended"));
    stage.phalanx(&["down"]).expect(0);
}

/// SD-06: a pane whose token no longer matches the member is neither focused nor moved.
#[test]
fn tmux_sd_06_unproven_pane_is_not_focused_or_moved() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let made = stage.phalanx(&["--json", "spawn", "ada"]).expect(0).json();
    let pane = made["tmux_pane_id"].as_str().expect("pane");
    let token =
        stage.tmux(&["display-message", "-p", "-t", pane, "#{@phalanx_token}"]).expect("token");
    stage.tmux(&["set-option", "-p", "-t", pane, "@phalanx_token", "another"]).expect("option");
    for verb in ["focus", "hide", "show"] {
        let run = stage.phalanx(&[verb, "ada"]).expect(4);
        assert!(
            run.stderr.contains("foreign (token)") && run.stderr.contains("phalanx explain ada"),
            "{run:?}"
        );
    }
    stage.tmux(&["set-option", "-p", "-t", pane, "@phalanx_token", token.trim()]).expect("option");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn manual_pages_are_generated_from_the_cli_definition() {
    let stage = Stage::without_tmux();
    let page = stage.phalanx(&["man"]).expect(0).stdout;
    assert!(page.contains(".TH phalanx 1"), "{page}");
    assert!(
        page.contains("doctor") && page.contains("Exit codes") && !page.contains("phalanx\\-exec"),
        "{page}"
    );
    let page = stage.phalanx(&["man", "team", "create"]).expect(0).stdout;
    assert!(page.contains(".TH phalanx-team-create 1") && page.contains("unique"), "{page}");
    assert!(stage.phalanx(&["man", "nothing"]).expect(2).stderr.contains("nothing"));
}

/// Hides a pane and shows it again beside the others. The team file records which panes are hidden,
/// and repeating a verb changes nothing.
#[test]
fn tmux_hide_and_show_move_the_pane_and_update_the_team_file() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let pane = |name: &str| -> String {
        let made = stage.phalanx(&["--json", "spawn", name]).expect(0).json();
        made["tmux_pane_id"].as_str().expect("pane").to_owned()
    };
    let (ada, ben) = (pane("ada"), pane("ben"));
    let ask = |pane: &str, what: &str| {
        stage.tmux(&["display-message", "-p", "-t", pane, what]).expect("tmux").trim().to_owned()
    };
    let hidden = || {
        let file =
            std::fs::read_to_string(stage.root().join("teams/alpha/config.json")).expect("config");
        let file: serde_json::Value = serde_json::from_str(&file).expect("json");
        file["hiddenPaneIds"].clone()
    };
    let together = || ask(&ada, "#{window_id}") == ask(&ben, "#{window_id}");
    let pid = ask(&ada, "#{pane_pid}");
    assert!(together());
    for (verb, is_hidden) in [("hide", true), ("show", false)] {
        for changed in [true, false] {
            let said = stage.phalanx(&["--json", verb, "ada"]).expect(0).json();
            assert_eq!(
                (&said["pane"], &said["hidden"], &said["changed"]),
                (&json!(ada), &json!(is_hidden), &json!(changed))
            );
        }
        assert_eq!(together(), !is_hidden);
        assert_eq!(hidden(), if is_hidden { json!([ada]) } else { json!([]) });
        assert_eq!(ask(&ada, "#{pane_pid}"), pid, "it runs on");
    }
    // No client is attached to this server, so no pane can be focused.
    assert!(stage.phalanx(&["focus", "ben"]).expect(4).stderr.contains("phalanx attach"));
    // A hidden member ends like any other.
    stage.phalanx(&["hide", "ada"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn explain_of_an_ended_member_shows_its_last_lines() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let count = "i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo $i; done";
    let script = format!("{count}; read line; echo; printf 'b\\033]0;x\\007oom\\n' >&2; exit 7");
    let run = ["spawn", "ann", "--backend", "pty", "--", "sh", "-c", &script];
    stage.phalanx(&run).expect(0);
    let shown = stage.phalanx(&["explain", "ann"]).expect(0).stdout;
    assert_eq!(shown.lines().count(), 3, "a running member has its screen: {shown}");
    stage.phalanx(&["keys", "ann", "Enter"]).expect(0);
    stage.phalanx(&["wait", "ann", "--until", "gone"]).expect(1);
    let shown = stage.phalanx(&["explain", "ann"]).expect(0).stdout;
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    assert!(lines[0].starts_with("ann: failed: exit"), "{shown}");
    assert!(lines[3].starts_with("printed     2"), "{shown}");
    assert_eq!(lines[lines.len() - 2..], ["            30", "            boom"], "{shown}");
    assert!(lines.len() <= 3 + 10, "{shown}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
