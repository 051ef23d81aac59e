//! Dialogs of wrapped programs as requests: `fixtures/fake-tui` opens them and logs which keys it
//! received.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Background, FAKE_TUI, Stage, wait_for};

/// A team with a foreground lead and one wrapped member, `ada`, that is asked to run `ls -l`.
struct Cast {
    stage: Stage,
    lead: Background,
}

impl Cast {
    /// `team` is appended to the manifest; `profile` edits the text of the profile.
    fn new(backend: &str, team: &str, switch: Option<&str>, profile: fn(String) -> String) -> Cast {
        let stage = Stage::new();
        let words: Vec<String> = [FAKE_TUI.to_owned(), stage.at("log").display().to_string()]
            .into_iter()
            .chain(switch.map(str::to_owned))
            .collect();
        stage
            .fake_tui(|sheet| profile(sheet).replace("[[\"{command}\"]]", &format!("[{words:?}]")));
        let manifest = format!(
            "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"{backend}\"\n{team}\n\
             [[member]]\nname = \"ada\"\nprofile = \"fake\"\n"
        );
        let lead = stage.start(&["up", &stage.file("team.toml", &manifest)]);
        stage.wait_event("alpha", "member_ready", "ada");
        stage.phalanx(&["send", "ada", "run ls -l;"]).expect(0);
        Cast { stage, lead }
    }

    /// The questions of the program and the keys that it received.
    fn keys(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.stage.at("log")).unwrap_or_default();
        let turns = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        turns.filter(Value::is_object).collect()
    }

    /// All requests but those for shutdown.
    fn requests(&self) -> Vec<Value> {
        let all = self.stage.phalanx(&["--json", "requests", "--all"]).expect(0).json();
        all.as_array()
            .expect("a list")
            .iter()
            .filter(|one| one["kind"] != "shutdown")
            .cloned()
            .collect()
    }

    /// Waits until the only request is in this state.
    fn request(&self, state: &str) -> Value {
        wait_for(&format!("a request that is {state}"), || {
            let requests = self.requests();
            assert!(requests.len() < 2, "asked once: {requests:?}");
            requests.into_iter().find(|request| request["state"] == state)
        })
    }

    fn answer(&self, verdict: &str, code: i32) -> (String, String) {
        let request = self.request("pending");
        let id = request["request_id"].as_str().expect("an id").to_owned();
        let run = self.stage.phalanx(&["answer", &id, verdict]).expect(code);
        (run.stdout, run.stderr)
    }

    fn state(&self) -> Value {
        self.stage.phalanx(&["--json", "status"]).expect(0).json()["members"][0].clone()
    }

    /// Types into the tmux pane of the member, as a user would.
    fn type_in_pane(&self, keys: &str) {
        let file = self.stage.root().join("teams/alpha/phalanx/members/ada.json");
        let record: Value =
            serde_json::from_slice(&fs::read(file).expect("a record")).expect("json");
        let tmux = &record["placement"]["tmux"];
        let (socket, pane) =
            (tmux["socket"].as_str().expect("socket"), tmux["pane_id"].as_str().expect("pane"));
        let sent = self.stage.tmux(&["-S", socket, "send-keys", "-t", pane, "-l", "--", keys]);
        sent.expect("tmux takes keys");
    }

    fn end(self) -> String {
        self.stage.phalanx(&["down", "--force"]).expect(0);
        let said = self.lead.end().stderr;
        self.stage.assert_clean();
        said
    }
}

fn as_it_is(profile: String) -> String {
    profile
}

fn without_answers(profile: String) -> String {
    profile.replace("[answers.command]\nallow = \"y\"\ndeny = \"n\"\n", "")
}

/// PM-03, PM-04: a dialog becomes one request, waits for a user whatever the rules allow, and gets
/// only the key of the decision.
#[test]
fn pm_04_dialog_is_answered_with_its_allow_or_deny_key() {
    for (verdict, key, state) in [("--approve", "y", "allowed"), ("--reject", "n", "denied")] {
        let cast =
            Cast::new("pty", "[rules]\nallow = [\"Shell\", \"Bash\", \"command\"]", None, as_it_is);
        let request = cast.request("pending");
        assert_eq!(
            (&request["kind"], &request["summary"], &request["answered_by"]),
            (&json!("permission"), &json!("Shell: ls -l"), &json!("keys"))
        );
        wait_for("it to wait", || (cast.state()["needs"] == "permission").then_some(()));
        assert_eq!(cast.keys(), Vec::<Value>::new(), "nothing is answered by default");
        let id = request["request_id"].as_str().expect("an id");
        for (more, why) in [
            (&["--input", "{}"][..], "only yes or no can be typed"),
            (&["--always"], "no rule judges"),
        ] {
            let words = [&["answer", id, "--approve"], more].concat();
            let refused = cast.stage.phalanx(&words).expect(4);
            assert!(refused.stderr.contains(why), "{refused:?}");
        }
        let shown = cast.stage.phalanx(&["requests", "show", id]).expect(0).stdout;
        assert!(shown.contains("  tool       Shell\n") && shown.contains("ls -l"), "{shown}");
        let (told, _) = cast.answer(verdict, 0);
        assert_eq!(told, format!("ada: {state}: typed; the dialog closed\n"));
        assert_eq!(cast.keys(), [json!({"asked": "ls -l", "key": key})]);
        assert_eq!(cast.request(state)["typed"], json!("taken"));
        wait_for("it to go on", || (cast.state()["state"] == "idle").then_some(()));
        let id = cast.requests()[0]["request_id"].as_str().expect("an id").to_owned();
        cast.stage.phalanx(&["answer", &id, "--approve"]).expect(4);
        let said = cast.end();
        assert!(
            said.contains("asks for a permission: Shell: ls -l; `phalanx answer perm-"),
            "{said}"
        );
        assert!(said.contains("typed; the dialog closed"), "{said}");
    }
}

/// PM-04: a user answered first, in the pane. The choice is unknown, and the request is closed.
#[test]
fn tmux_pm_04_answering_a_dialog_in_its_pane_closes_the_request() {
    let cast = Cast::new("tmux", "", None, as_it_is);
    let request = cast.request("pending");
    cast.type_in_pane("y");
    let gone = cast.request("withdrawn");
    assert_eq!((&gone["by"], &gone["typed"]), (&json!("pane"), &json!(null)));
    let id = request["request_id"].as_str().expect("an id");
    let refused = cast.stage.phalanx(&["answer", id, "--reject"]).expect(4);
    assert!(refused.stderr.contains("it was answered in the pane, or withdrawn"), "{refused:?}");
    wait_for("it to go on", || (cast.state()["state"] == "idle").then_some(()));
    assert_eq!(cast.keys(), [json!({"asked": "ls -l", "key": "y"})], "only the person's key");
    // Asking again creates a new request.
    cast.stage.phalanx(&["send", "ada", "run ls -l;"]).expect(0);
    wait_for("the second request", || (cast.requests().len() == 2).then_some(()));
    drop(cast.end());
}

/// PM-04: the program has exited, so the request is closed and nothing is typed into the next run.
#[test]
fn pm_04_request_closes_when_the_program_of_its_dialog_exits() {
    let cast = Cast::new("pty", "", None, as_it_is);
    let request = cast.request("pending");
    cast.stage.phalanx(&["shutdown", "ada", "--force"]).expect(0);
    let gone = cast.request("asker_gone");
    assert_eq!((&gone["by"], &gone["typed"]), (&json!("nobody"), &json!(null)));
    let id = request["request_id"].as_str().expect("an id");
    let refused = cast.stage.phalanx(&["answer", id, "--approve"]).expect(4);
    assert!(refused.stderr.contains("the run that sent it has ended"), "{refused:?}");
    assert_eq!(cast.keys(), Vec::<Value>::new());
    drop(cast.end());
}

/// PM-03: if the profile defines no keys, the request says that it can only be answered in the
/// pane.
#[test]
fn tmux_pm_03_dialog_without_keys_is_answerable_only_in_its_pane() {
    let cast = Cast::new("tmux", "", None, without_answers);
    let request = cast.request("pending");
    assert_eq!(request["summary"], json!("only in its pane: Shell: ls -l"));
    let (_, refused) = cast.answer("--approve", 4);
    assert!(refused.contains("can only be answered in the pane of `ada`"), "{refused}");
    assert_eq!((cast.keys(), cast.request("pending")["by"].clone()), (Vec::new(), json!(null)));
    cast.type_in_pane("n");
    cast.request("withdrawn");
    assert!(!cast.end().contains("phalanx answer"), "what cannot be answered is not offered");
}

/// PM-16: an answer that reaches no dialog has decided nothing, in each place that shows it.
#[test]
fn tmux_pm_16_answer_that_loses_to_the_pane_is_withdrawn() {
    let cast = Cast::new("tmux", "", None, as_it_is);
    let id = cast.request("pending")["request_id"].as_str().expect("an id").to_owned();
    // For two seconds after a key of a person, no answer is typed.
    cast.type_in_pane("x");
    let answer = cast.stage.start(&["answer", &id, "--approve"]);
    wait_for("the answer", || {
        cast.type_in_pane("x");
        (cast.requests()[0]["state"] == "answered").then_some(())
    });
    cast.type_in_pane("n");
    let told = answer.end().expect(4).stdout;
    assert_eq!(told, "ada: withdrawn: nothing was typed: the dialog had closed\n");
    let gone = cast.request("withdrawn");
    assert_eq!((&gone["by"], &gone["typed"]), (&json!("pane"), &json!("gone")));
    let refused = cast.stage.phalanx(&["answer", &id, "--approve"]).expect(4);
    assert!(refused.stderr.contains("it was answered in the pane, or withdrawn"), "{refused:?}");
    wait_for("both decisions in the journal", || {
        let journal = cast.stage.journal("alpha").into_iter();
        let decided = journal.filter(|event| event["event"] == "request_decided");
        let outcomes: Vec<Value> = decided.map(|one| one["detail"]["outcome"].clone()).collect();
        (outcomes == ["allowed", "withdrawn"]).then_some(())
    });
    assert!(cast.keys().iter().all(|pressed| pressed["key"] != "y"), "{:?}", cast.keys());
    drop(cast.end());
}

/// PM-15: the caller of `type` or `keys` may not see that a dialog is open.
#[test]
fn pm_15_input_at_a_dialog_is_refused_with_its_request_unless_meant() {
    let cast = Cast::new("pty", "", None, as_it_is);
    let id = cast.request("pending")["request_id"].as_str().expect("an id").to_owned();
    for words in [&["type", "ada", "yesterday", "--enter"][..], &["keys", "ada", "y", "Enter"]] {
        let refused = cast.stage.phalanx(words).expect(4).stderr;
        assert!(refused.contains(&format!("request `{id}`")), "{refused}");
        assert!(refused.contains(&format!("`phalanx answer {id}`")), "{refused}");
        assert!(refused.contains("`--at-dialog`"), "{refused}");
    }
    assert_eq!(cast.keys(), Vec::<Value>::new());
    cast.stage.phalanx(&["keys", "ada", "n", "--at-dialog"]).expect(0);
    cast.request("withdrawn");
    assert_eq!(cast.keys(), [json!({"asked": "ls -l", "key": "n"})]);
    drop(cast.end());
}

/// PM-15: the same for a dialog that becomes no request.
#[test]
fn pm_15_input_at_a_dialog_without_a_request_is_refused_unless_meant() {
    let stage = Stage::new();
    stage.fake_tui(as_it_is);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let log = stage.at("log");
    let path = log.display().to_string();
    let spawn = ["spawn", "ada", "--profile", "fake", "--backend", "pty", "--until", "running"];
    stage.phalanx(&[&spawn[..], &["--", FAKE_TUI, &path, "modal"]].concat()).expect(0);
    wait_for("the dialog", || {
        let shown = stage.phalanx(&["peek", "ada"]).expect(0).stdout;
        shown.contains("Trust this folder?").then_some(())
    });
    let refused = stage.phalanx(&["type", "ada", "yesterday", "--enter"]).expect(4).stderr;
    assert!(refused.contains("Trust this folder?") && refused.contains("--at-dialog"), "{refused}");
    assert!(!log.exists(), "nothing was typed");
    stage.phalanx(&["type", "ada", "y", "--at-dialog"]).expect(0);
    wait_for("the answer", || {
        let typed = fs::read_to_string(&log).unwrap_or_default();
        (typed == "{\"modal\": \"y\"}\n").then_some(())
    });
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// PM-04: keys that leave the dialog open are typed once, and the outcome is reported.
#[test]
fn pm_04_ineffective_keys_are_typed_once() {
    let cast = Cast::new("pty", "", Some("stubborn"), as_it_is);
    let (told, _) = cast.answer("--approve", 1);
    assert_eq!(told, "ada: answered: typed; the dialog is still open\n");
    assert_eq!(cast.keys(), [json!({"asked": "ls -l", "key": "y"})]);
    drop(cast.end());
}

/// PM-04: a timeout is not a denial; the dialog is left open.
#[test]
fn pm_04_unanswered_dialog_times_out_without_a_key() {
    let cast = Cast::new("pty", "answer_within = 1", None, as_it_is);
    let request = cast.request("timed_out");
    let id = request["request_id"].as_str().expect("an id");
    cast.stage.phalanx(&["answer", id, "--approve"]).expect(4);
    assert_eq!(cast.request("answered_too_late")["typed"], json!(null));
    assert_eq!(cast.keys(), Vec::<Value>::new());
    assert_eq!(cast.state()["needs"], "permission", "it waits on, for its pane");
    drop(cast.end());
}
