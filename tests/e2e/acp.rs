//! Members over the Agent Client Protocol: `fixtures/acp/faulty.py` plays the agent, with a fault of
//! its own in each mode.

use std::fs;

use serde_json::Value;

use crate::harness::{Stage, wait_for};

const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/acp/faulty.py");

/// A team with a lead in the background.
fn led() -> Stage {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    stage
}

fn spawn(stage: &Stage, backend: &str, words: &[&str]) {
    let words = [
        &["spawn", "ann", "--profile", "acp", "--backend", backend, "--", "python3", AGENT],
        words,
    ]
    .concat();
    stage.phalanx(&words).expect(0);
}

fn member(stage: &Stage) -> Option<Value> {
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let members = status["members"].as_array().expect("members").clone();
    members.into_iter().find(|member| member["name"] == "ann")
}

fn wait_for_state(stage: &Stage, state: &str) {
    wait_for(state, || member(stage).filter(|member| member["state"] == state).map(drop));
}

fn screen(stage: &Stage) -> String {
    stage.phalanx(&["peek", "ann", "-n", "2000"]).expect(0).stdout
}

fn wait_for_text(stage: &Stage, text: &str) {
    wait_for(text, || screen(stage).contains(text).then_some(()));
}

fn open_request(stage: &Stage) -> String {
    wait_for("a request", || {
        let requests = stage.phalanx(&["--json", "requests"]).expect(0).json();
        Some(requests.as_array()?.first()?["request_id"].as_str()?.to_owned())
    })
}

fn events(stage: &Stage, kind: &str) -> Vec<Value> {
    let journal = stage.journal("alpha").into_iter();
    journal.filter(|event| event["event"] == kind && event["member"] == "ann").collect()
}

fn end(stage: &Stage) {
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// AC-05: a plan may need several settings. The second one here is refused, after the first was set.
#[test]
fn ac_05_each_setting_of_a_plan_is_set_before_the_first_prompt() {
    let stage = led();
    let profile = "about = \"plans\"\nruns = \"acp\"\n[launch]\nargv = [[\"{command}\"]]\n";
    stage.profile("planner", &format!("{profile}plan = [\"plan\", \"x=1\"]\n"));
    let words = ["spawn", "ann", "--profile", "planner", "--plan", "--backend", "pty"];
    let run = stage.phalanx(&[&words[..], &["--", "python3", AGENT, "plain"]].concat()).expect(1);
    let refusal = "the agent refuses the x 1: Method not found: session/set_config_option";
    assert!(run.stderr.contains(refusal), "{run:?}");
    end(&stage);
}

/// AC-01, AC-04, AC-09: mail, the three ways to decide a permission, what the lead is told, and the
/// end by agreement.
#[test]
fn acp_member_lives_a_whole_life() {
    let stage = led();
    spawn(&stage, "pty", &["plain"]);
    stage.phalanx(&["send", "ann", "hello there"]).expect(0);
    wait_for_text(&stage, "hello there\n</teammate-message>");
    wait_for_state(&stage, "idle");

    stage.phalanx(&["send", "ann", "please touch it"]).expect(0);
    let id = open_request(&stage);
    let asked = stage.phalanx(&["--json", "requests"]).expect(0).stdout;
    assert!(asked.contains("Bash") && asked.contains("touch made.txt"), "{asked}");
    stage.phalanx(&["answer", "--approve", &id]).expect(0);
    let made = stage.at("work/made.txt");
    wait_for("the file", || made.exists().then_some(()));
    fs::remove_file(&made).expect("there");

    stage.phalanx(&["send", "ann", "touch it again"]).expect(0);
    let id = open_request(&stage);
    stage.phalanx(&["answer", "--reject", "--reason", "not this name", &id]).expect(0);
    wait_for_text(&stage, "denied by the lead: not this name");
    wait_for_state(&stage, "idle");
    assert!(!made.exists());

    stage.phalanx(&["send", "ann", "touch it once more"]).expect(0);
    open_request(&stage);
    // PM-15: not by accident.
    let refused = stage.phalanx(&["type", "ann", "y"]).expect(4).stderr;
    assert!(refused.contains("the input could answer it: `phalanx answer perm-"), "{refused}");
    stage.phalanx(&["type", "ann", "y", "--at-dialog"]).expect(0);
    wait_for("the file", || made.exists().then_some(()));
    // A decision is stored before it is journaled.
    let decided = wait_for("three decisions", || {
        let decided = events(&stage, "request_decided");
        (decided.len() == 3).then_some(decided)
    });
    assert_eq!(stage.phalanx(&["--json", "requests"]).expect(0).json(), serde_json::json!([]));
    let by: Vec<&Value> = decided.iter().map(|event| &event["detail"]["by"]).collect();
    assert_eq!(by, ["team-lead", "team-lead", "pane"]);
    assert_eq!(decided[2]["detail"]["outcome"], "allowed");

    wait_for("the report of the turn", || {
        let mail = stage.phalanx(&["--json", "inbox", "team-lead", "--all"]).expect(0).stdout;
        mail.contains("touch it once more").then_some(())
    });
    assert!(member(&stage).expect("ann")["usage"]["tokens"].as_u64() >= Some(45));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// The conversation is printed into the pane, so that tmux keeps it, and the pane is closed.
/// AC-17: the request of a member that is asked to end while it waits for an answer stays open, and
/// it agrees once it has the answer, with a lead and without one.
#[test]
fn ac_17_request_to_end_keeps_the_open_question() {
    for is_led in [true, false] {
        let stage = Stage::new();
        stage.phalanx(&["team", "create", "alpha"]).expect(0);
        if is_led {
            stage.phalanx(&["lead", "--detach"]).expect(0);
        }
        spawn(&stage, "pty", &["plain"]);
        stage.phalanx(&["send", "ann", "please touch it"]).expect(0);
        let id = open_request(&stage);
        wait_for_state(&stage, "waiting");
        let asked = stage.start(&["shutdown", "ann", "--deadline", "60"]);
        asked.wait_for_message("waiting for ann");
        assert_eq!(member(&stage).expect("on the team")["state"], "stopping");
        assert_eq!(open_request(&stage), id);
        stage.phalanx(&["answer", "--approve", &id]).expect(0);
        let ended = asked.end().expect(0);
        assert!(ended.stdout.contains("closed"), "{ended:?}");
        end(&stage);
    }
}

#[test]
fn acp_conversation_is_in_the_history_of_a_tmux_pane() {
    let stage = led();
    spawn(&stage, "tmux", &["plain"]);
    for nth in 0..12 {
        stage.phalanx(&["send", "ann", &format!("message {nth}\nline\nline\nline")]).expect(0);
    }
    wait_for("the last echo", || {
        let seen = screen(&stage);
        let count = |nth| seen.matches(&format!("message {nth}\n")).count();
        (0..12).all(|nth| count(nth) >= 2).then_some(())
    });
    let pane = stage.panes()[0].split(' ').next().expect("an id").to_owned();
    let history = stage.tmux(&["capture-pane", "-p", "-S", "-", "-t", &pane]).expect("a pane");
    for nth in 0..12 {
        // Once in the prompt, and once in the echo of the agent.
        assert_eq!(history.matches(&format!("message {nth}\n")).count(), 2, "{history}");
    }
    stage.phalanx(&["down"]).expect(0);
    assert!(stage.panes().is_empty());
    stage.assert_clean();
}

/// AC-16: agents start interactive shells, which read the terminal. In the background of a pane that
/// would stop them.
#[test]
fn tmux_ac_16_agent_cannot_be_stopped_by_the_terminal_of_its_pane() {
    for backend in ["pty", "tmux"] {
        let stage = led();
        let line = "read line </dev/tty; stty sane </dev/tty; exec python3 \"$0\" plain";
        let agent = ["--", "sh", "-c", line, AGENT];
        let words = ["spawn", "ann", "--profile", "acp", "--backend", backend];
        stage.phalanx(&[&words[..], &agent].concat()).expect(0);
        stage.phalanx(&["send", "ann", "hello there"]).expect(0);
        wait_for_text(&stage, "hello there\n</teammate-message>");
        wait_for_state(&stage, "idle");
        stage.phalanx(&["down"]).expect(0);
        stage.assert_clean();
    }
}

/// Keys that come faster than frames are shown without a further key.
#[test]
fn acp_keys_typed_at_once_are_all_shown() {
    let stage = led();
    spawn(&stage, "pty", &["plain"]);
    wait_for_state(&stage, "idle");
    for nth in 0..10 {
        stage.phalanx(&["type", "ann", &format!("words typed at once {nth}")]).expect(0);
        wait_for_text(&stage, &format!("> words typed at once {nth}"));
        stage.phalanx(&["keys", "ann", "Enter"]).expect(0);
        wait_for_state(&stage, "idle");
        wait_for_text(&stage, &format!("You said: words typed at once {nth}"));
    }
    end(&stage);
}

/// AC-03, AC-06, AC-09: what a member over ACP does for each fault of an agent.
#[test]
fn acp_faults_of_an_agent_end_no_member_and_lose_no_mail() {
    for mode in ["garbage", "long", "early", "disorder", "flood"] {
        let stage = led();
        spawn(&stage, "pty", &[mode]);
        stage.phalanx(&["send", "ann", "first"]).expect(0);
        wait_for(mode, || (events(&stage, "message_handled").len() == 2).then_some(()));
        wait_for_state(&stage, "idle");
        stage.phalanx(&["send", "ann", "second"]).expect(0);
        wait_for(mode, || (events(&stage, "message_handled").len() == 3).then_some(()));
        stage.phalanx(&["down"]).expect(0);
        stage.assert_clean();
    }
}

/// A turn that never ends is cancelled from the pane; an urgent message cancels it too.
#[test]
fn ac_07_turn_without_an_end_is_cancelled() {
    let stage = led();
    spawn(&stage, "pty", &["slow"]);
    stage.phalanx(&["send", "ann", "begin"]).expect(0);
    wait_for_text(&stage, "word3");
    stage.phalanx(&["keys", "ann", "Escape"]).expect(0);
    wait_for_text(&stage, "cancelled after");
    wait_for_state(&stage, "idle");
    stage.phalanx(&["send", "ann", "begin again"]).expect(0);
    wait_for("a turn", || (events(&stage, "message_handled").len() == 3).then_some(()));
    stage.phalanx(&["send", "--urgent", "ann", "leave that"]).expect(0);
    wait_for("the urgent message", || (events(&stage, "message_handled").len() == 4).then_some(()));
    assert_eq!(events(&stage, "turn_interrupted").len(), 1);
    end(&stage);
}

/// AC-07: an agent that gives no sign of life is interrupted too, and gets its prompt again.
#[test]
fn ac_07_turn_without_output_is_interrupted() {
    let stage = led();
    spawn(&stage, "pty", &["silent"]);
    wait_for("the prompt", || (events(&stage, "message_submitted").len() == 1).then_some(()));
    stage.phalanx(&["send", "--urgent", "ann", "leave that"]).expect(0);
    wait_for("the interrupt", || (events(&stage, "turn_interrupted").len() == 1).then_some(()));
    wait_for("the repetition", || {
        let submitted = events(&stage, "message_submitted");
        submitted.iter().any(|event| event["detail"]["reason"].is_string()).then_some(())
    });
    end(&stage);
}

/// AC-26: a question that ends with its turn is withdrawn, and cannot be answered.
#[test]
fn ac_26_question_of_a_cancelled_turn_is_withdrawn() {
    let stage = led();
    spawn(&stage, "pty", &["plain"]);
    stage.phalanx(&["send", "ann", "please touch it"]).expect(0);
    let id = open_request(&stage);
    stage.phalanx(&["send", "--urgent", "ann", "leave that"]).expect(0);
    let decided = wait_for("the end of the request", || events(&stage, "request_decided").pop());
    assert_eq!(decided["detail"]["outcome"], "withdrawn");
    let refused = stage.phalanx(&["answer", &id, "--approve"]).expect(4);
    assert!(refused.stderr.contains("withdrawn"), "{refused:?}");
    assert!(!stage.at("work/made.txt").exists());
    end(&stage);
}

/// An agent that answers nothing fails its start; one that dies in a turn fails with its reason,
/// and goes on with its conversation when it is resumed.
#[test]
fn ac_09_agent_that_dies_is_reported_and_resumed() {
    let stage = led();
    let words = ["spawn", "dee", "--profile", "acp", "--backend", "pty", "--deadline", "2", "--"];
    let refused = stage.phalanx(&[&words[..], &["python3", AGENT, "deaf"]].concat()).expect(5);
    assert!(refused.stderr.contains("dee"), "{refused:?}");
    // It dies in the turn of its first message.
    spawn(&stage, "pty", &["dies"]);
    wait_for("its end", || member(&stage).is_none().then_some(()));
    assert_eq!(events(&stage, "member_exited")[0]["detail"]["exit_code"], 3);
    let resumed = stage.phalanx(&["resume", "ann"]).expect(0);
    assert!(resumed.stderr.contains("continues session") || resumed.stdout.contains("continues"));
    wait_for_state(&stage, "idle");
    wait_for_text(&stage, "You are `ann`");
    end(&stage);
}

/// A session that the agent does not have any more is begun anew, with the first message.
#[test]
fn acp_resume_without_the_session_begins_anew() {
    let stage = led();
    let words = ["spawn", "ann", "--profile", "acp", "--backend", "pty", "--prompt", "learn this"];
    stage.phalanx(&[&words[..], &["--", "python3", AGENT, "plain"]].concat()).expect(0);
    wait_for("the receipt", || (!events(&stage, "message_handled").is_empty()).then_some(()));
    kill_agent(&stage);
    wait_for("its end", || member(&stage).is_none().then_some(()));
    fs::remove_dir_all(stage.at("work/.faulty-sessions")).expect("sessions");
    stage.phalanx(&["resume", "ann"]).expect(0);
    wait_for_text(&stage, "You have been restarted.");
    assert!(screen(&stage).contains("learn this"));
    end(&stage);
}

/// AC-02: an agent that is killed again and again gets each message, and each that may be a
/// repetition is counted.
#[test]
fn ac_02_messages_survive_kills_of_the_agent() {
    let stage = led();
    spawn(&stage, "pty", &["plain"]);
    let mut sent = 0;
    for _ in 0..4 {
        for _ in 0..5 {
            stage.phalanx(&["send", "ann", &format!("numbered {sent}.")]).expect(0);
            sent += 1;
        }
        kill_agent(&stage);
        wait_for("its end", || member(&stage).is_none().then_some(()));
        stage.phalanx(&["resume", "ann"]).expect(0);
    }
    let kept = || {
        let files = fs::read_dir(stage.at("work/.faulty-sessions")).expect("sessions");
        files
            .map(|file| fs::read_to_string(file.expect("a file").path()).expect("text"))
            .collect::<String>()
    };
    let prompts = |text: &str| {
        let lines = text.lines().filter(|line| line.contains(r#""who": "user""#));
        lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    wait_for("all messages", || {
        let prompts = prompts(&kept());
        (0..sent).all(|nth| prompts.contains(&format!("numbered {nth}."))).then_some(())
    });
    wait_for("the receipts", || {
        let unread = stage.phalanx(&["--json", "inbox", "ann", "--peek"]).expect(0).json();
        (unread == serde_json::json!([])).then_some(())
    });
    wait_for_state(&stage, "idle");
    let prompts = prompts(&kept());
    let counted: usize = events(&stage, "message_submitted")
        .iter()
        .filter(|event| event["detail"]["reason"].is_string())
        .map(|event| event["detail"]["msg_ids"].as_array().expect("ids").len())
        .sum();
    let times = (0..sent).map(|nth| prompts.matches(&format!("numbered {nth}.")).count());
    let repeated: usize = times.map(|times| times - 1).sum();
    assert!(repeated <= counted, "{repeated} repetitions, {counted} counted");
    end(&stage);
}

fn kill_agent(stage: &Stage) {
    let agent = wait_for("the agent", || {
        let processes = stage.processes();
        let line = processes.iter().find(|line| line.contains("faulty.py"))?.clone();
        line.split(' ').next().map(str::to_owned)
    });
    let killed = stage.command("kill").args(["-9", &agent]).status().expect("kill");
    assert!(killed.success());
}

/// A process that an agent leaves behind does not outlive its member.
#[test]
fn ac_09_child_of_an_agent_does_not_outlive_its_member() {
    let stage = led();
    spawn(&stage, "pty", &["child"]);
    wait_for("the child", || {
        stage.processes().iter().any(|line| line.trim_end().ends_with("sleep 600")).then_some(())
    });
    end(&stage);
}

/// SEC-06, AC-21: the server of the team's tools acts as the member, although the agent passes
/// nothing on, and no command line has the token.
#[test]
fn ac_21_tools_act_as_the_member_and_no_command_line_has_its_token() {
    let stage = led();
    spawn(&stage, "pty", &["tools"]);
    wait_for_state(&stage, "idle");
    let record = fs::read_to_string(stage.root().join("teams/alpha/phalanx/members/ann.json"));
    let record: Value = serde_json::from_str(&record.expect("a record")).expect("JSON");
    let token = record["token"].as_str().expect("a token").to_owned();
    let send =
        r#"use SendMessage {"type": "message", "recipient": "team-lead", "content": "by a tool"}"#;
    stage.phalanx(&["send", "ann", send]).expect(0);
    wait_for("the message", || {
        let processes = stage.processes().join("\n");
        assert!(!processes.contains(&token), "{processes}");
        let mail = stage.phalanx(&["--json", "inbox", "team-lead", "--all"]).expect(0).json();
        mail.as_array()?
            .iter()
            .find(|one| one["text"] == "by a tool" && one["from"] == "ann")
            .map(drop)
    });
    end(&stage);
}

/// A user's profile of any agent over ACP.
const OWN: &str = "about = \"own\"\nruns = \"acp\"\n[launch]\nargv = [[\"{command}\"]]\n";

fn manifest(stage: &Stage, profile: &str, run: &str) -> String {
    let text = format!(
        "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\n\
         [[member]]\nname = \"ann\"\nprofile = \"{profile}\"\n{run}\n"
    );
    stage.file("team.toml", &text)
}

/// AC-22: a manifest gives the command line of an agent over ACP, as `spawn` does after `--`.
#[test]
fn ac_22_agent_over_acp_is_run_by_a_manifest() {
    for profile in ["acp", "own"] {
        let stage = Stage::new();
        stage.profile("own", OWN);
        let run = |more: &str| format!("run = [\"python3\", \"{AGENT}\", \"plain\"{more}]");
        let up = |more: &[&str]| {
            let file = stage.at("work/team.toml").to_string_lossy().into_owned();
            stage.phalanx(&[&["--json", "up", &file], more].concat()).expect(0)
        };
        let steps = || up(&["--dry-run"]).json()["changes"]["members"].clone();
        let pid = || member(&stage).expect("ann")["pid"].clone();
        let answers = |text: &str| {
            stage.phalanx(&["send", "ann", text]).expect(0);
            wait_for_text(&stage, &format!("{text}\n</teammate-message>"));
            wait_for_state(&stage, "idle");
        };

        manifest(&stage, profile, &run(""));
        up(&["--detach"]);
        answers("hello there");
        let first = pid();
        assert_eq!(steps(), serde_json::json!([]));
        up(&["--detach"]);
        assert_eq!(pid(), first, "nothing has changed");

        manifest(&stage, profile, &run(", \"2\""));
        assert_eq!(
            (&steps()[0]["step"], &steps()[0]["keys"][0]),
            (&"restart".into(), &"run".into())
        );
        up(&["--detach", "--yes"]);
        assert_ne!(pid(), first);
        answers("hello again");

        stage.phalanx(&["shutdown", "ann"]).expect(0);
        stage.phalanx(&["resume", "ann"]).expect(0);
        answers("hello once more");
        stage.phalanx(&["down"]).expect(0);
        up(&["--detach"]);
        answers("hello anew");
        end(&stage);
    }
}

/// AC-22: a command line that is missing, or that the profile does not take, is refused before
/// anything starts.
#[test]
fn ac_22_refusals_of_a_manifest_name_run() {
    let stage = Stage::new();
    stage.profile("own", OWN);
    let table = [
        (
            "acp",
            "",
            "profile `acp` of `ann` needs a command line",
            "add `run = [\"CMD\", \"ARG\"]`",
        ),
        (
            "own",
            "",
            "profile `own` of `ann` needs a command line",
            "add `run = [\"CMD\", \"ARG\"]`",
        ),
        ("acp", "start = \"when-needed\"", "profile `acp` of `ann` needs a command line", "`run ="),
        (
            "claude-acp",
            "run = [\"x\"]",
            "profile `claude-acp` of `ann` takes no command line",
            "`run`",
        ),
    ];
    for (profile, more, problem, hint) in table {
        let refused = stage.phalanx(&["up", &manifest(&stage, profile, more)]).expect(2);
        assert!(refused.stderr.contains(problem) && refused.stderr.contains(hint), "{refused:?}");
    }
    stage.assert_clean();
}

/// AC-23: the failure of a missing agent says how to install it.
#[test]
fn ac_23_missing_agent_is_named_with_its_installation() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let words = ["spawn", "ann", "--profile", "codex-acp", "--backend", "pty"];
    let refused = stage.phalanx(&words).expect(1);
    let part = "cannot find the program codex-acp; install it: `npm install -g";
    assert!(refused.stderr.contains(part), "{refused:?}");
    end(&stage);
}
