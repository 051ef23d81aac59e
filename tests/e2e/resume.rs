//! `resume`: members whose runs failed or vanished are started again.

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

fn record(stage: &Stage, name: &str) -> Value {
    let path = stage.root().join(format!("teams/demo/phalanx/members/{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).expect("record")).expect("json")
}

fn is_gone(pid: &Value) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// Kills the processes of a member, as a crash of the machine would: nothing records the end.
fn fell(stage: &Stage, name: &str) {
    let start = record(stage, name)["start"].clone();
    for process in ["launcher", "program"] {
        let pid = &start[process]["pid"];
        let _ = std::process::Command::new("kill")
            .args(["-9", &pid.to_string()])
            .status()
            .expect("kill");
        wait_for("it is gone", || is_gone(pid).then_some(()));
    }
}

#[test]
fn cr_05_resume_restarts_failed_and_vanished_members() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    assert_eq!(stage.phalanx(&["--json", "resume"]).expect(0).json(), json!([]));
    let script = "echo $WORD >>words; until [ -e fail ]; do sleep 0.05; done; exit 3";
    stage.phalanx(&["spawn", "log", "--env", "WORD=kept", "--", "sh", "-c", script]).expect(0);
    stage
        .phalanx(&["spawn", "ada", "--prompt", "look after the tests", "--role", "tester"])
        .expect(0);
    stage.phalanx(&["spawn", "ben"]).expect(0);
    stage.phalanx(&["spawn", "cleo"]).expect(0);
    stage.phalanx(&["task", "create", "Waits", "--", "sleep", "300"]).expect(0);
    stage.phalanx(&["shutdown", "ben", "--force"]).expect(0);
    // If ben had claimed the task, another member claims it after his end.
    let worker = wait_for("a worker", || {
        let claimed = stage.journal("demo").into_iter().rfind(|e| e["event"] == "task_claimed")?;
        claimed["member"].as_str().filter(|name| *name != "ben").map(str::to_owned)
    });
    std::fs::write(stage.at("work/fail"), "").expect("fail");
    wait_for("log ends", || record(&stage, "log").get("exit").is_some().then_some(()));
    std::fs::remove_file(stage.at("work/fail")).expect("well again");
    fell(&stage, "ada");

    let again = stage.phalanx(&["--json", "resume"]).expect(0).json();
    let names: Vec<&str> =
        again.as_array().expect("rows").iter().filter_map(|r| r["name"].as_str()).collect();
    assert_eq!(names, ["ada", "log"], "neither who runs nor who was asked to end: {again}");
    wait_for("log has its variable again", || {
        (std::fs::read_to_string(stage.at("work/words")).expect("words") == "kept\nkept\n")
            .then_some(())
    });
    assert_eq!(record(&stage, "ada")["wish"]["role"], json!("tester"));
    let mail = stage.phalanx(&["--json", "inbox", "ada", "--all"]).expect(0).stdout;
    assert!(
        mail.contains("look after the tests\\n\\nYou have been restarted. Your previous run ended"),
        "{mail}"
    );
    assert!(mail.contains("Your previous run ended: its process is gone."), "{mail}");
    assert_eq!(mail.contains("began #1 Waits"), worker == "ada", "its own events: {mail}");

    // After a second restart, the prompt holds only the summary of the last run.
    fell(&stage, "ada");
    stage.phalanx(&["resume", "ada"]).expect(0);
    let wish = record(&stage, "ada")["wish"]["prompt"].as_str().expect("prompt").to_owned();
    assert_eq!(
        (wish.matches("look after").count(), wish.matches("You have been restarted").count()),
        (1, 1),
        "{wish}"
    );

    stage.phalanx(&["resume", "cleo"]).expect(4);
    stage.phalanx(&["resume", "nobody"]).expect(3);
    stage.phalanx(&["resume", "ada", "--session", "x"]).expect(4);
    stage.phalanx(&["resume", "ben"]).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn resume_continues_the_session_of_a_program_that_supports_it() {
    let stage = Stage::without_tmux();
    let profile = "about = \"keeps sessions\"\nruns = \"native\"\nreads_mail = false\n[launch]\n\
        argv = [[\"sh\", \"-c\", \"echo fresh; exec sleep 300\"]]\nprompt = \"mailbox\"\n\
        resume = [[\"sh\", \"-c\", \"echo session=$1.; exec sleep 300\", \"sh\", \"{resume}\"]]\n\
        [ready]\nwhen = \"settled\"\nsettle_ms = 100\n";
    stage.profile("keeps", profile);
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--profile", "keeps"]).expect(0);
    fell(&stage, "ada");
    stage.phalanx(&["resume", "ada", "--session", "s-17"]).expect(0);
    let printed = wait_for("it says so", || {
        let logs = stage.phalanx(&["logs", "ada"]).expect(0).stdout;
        logs.contains("session").then_some(logs)
    });
    assert!(printed.contains("session=s-17.") && !printed.contains("fresh"), "{printed}");
    // The session is remembered; only a new spawn without a session starts fresh.
    fell(&stage, "ada");
    let again = stage.phalanx(&["--json", "resume"]).expect(0).json();
    assert_eq!(again[0]["session"], "s-17");
    stage.phalanx(&["shutdown", "ada", "--force"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--profile", "keeps"]).expect(0);
    fell(&stage, "ada");
    stage.phalanx(&["resume"]).expect(0);
    wait_for("fresh", || {
        stage.phalanx(&["logs", "ada"]).expect(0).stdout.contains("fresh").then_some(())
    });
    let none = stage.phalanx(&["resume", "ada", "--session", "s-17"]).expect(4);
    assert!(none.stderr.contains("ada"), "{none:?}");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// A profile for a program that accepts a session id and can resume a session.
const CHOSEN: &str = r#"about = "is told its session"
runs = "native"
reads_mail = true
[launch]
argv = [["sh", "-c", "echo fresh $1. >>said; exec sleep 300", "sh"], ["{new_session}"], ["{model}"]]
prompt = "mailbox"
resume = [["sh", "-c", "echo again $1 $2. >>said; test ! -e lost || exit 1; exec sleep 300", "sh", "{resume}"], ["{model}"]]
[ready]
when = "settled"
settle_ms = 300
"#;

/// CR-05: phalanx chooses the session id at the spawn and resumes that session with the same model,
/// without repeating the first message. If resuming fails, the member starts a new session with a
/// summary.
#[test]
fn cr_05_resume_continues_the_chosen_session_or_starts_a_new_one() {
    let stage = Stage::without_tmux();
    stage.profile("chosen", CHOSEN);
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage
        .phalanx(&["spawn", "ada", "--profile", "chosen", "--model", "big", "--prompt", "FIRST"])
        .expect(0);
    let session = record(&stage, "ada")["session"].as_str().expect("a session").to_owned();
    let said = || std::fs::read_to_string(stage.at("work/said")).expect("said");
    let firsts = || {
        let mail = stage.phalanx(&["--json", "inbox", "ada", "--all", "--peek"]).expect(0).stdout;
        mail.matches("FIRST").count()
    };
    assert_eq!((said(), session.len(), firsts()), (format!("fresh {session}.\n"), 36, 1));
    fell(&stage, "ada");
    let again = stage.phalanx(&["--json", "resume"]).expect(0).json();
    assert_eq!((&again[0]["session"], &again[0]["problem"]), (&json!(session), &json!(null)));
    assert_eq!(said().lines().last(), Some(format!("again {session} big.").as_str()));
    assert_eq!((firsts(), &record(&stage, "ada")["session"]), (1, &json!(session)));
    fell(&stage, "ada");
    std::fs::write(stage.at("work/lost"), "").expect("lost");
    let anew = stage.phalanx(&["resume"]).expect(0).stdout;
    assert!(
        anew.contains("ada: its session cannot be resumed") && anew.contains("ada runs again"),
        "{anew}"
    );
    let fresh = record(&stage, "ada")["session"].as_str().expect("a session").to_owned();
    assert_ne!(fresh, session);
    assert_eq!(said().lines().last(), Some(format!("fresh {fresh}.").as_str()));
    let mail = stage.phalanx(&["--json", "inbox", "ada", "--all", "--peek"]).expect(0).stdout;
    assert!(mail.contains("FIRST\\n\\nYou have been restarted."), "{mail}");
    // A session that the user chose is never replaced.
    fell(&stage, "ada");
    stage.phalanx(&["resume", "ada", "--session", "mine"]).expect(1);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// CR-05: a program whose hook reports its session id is resumed with that session.
#[test]
fn cr_05_resume_continues_the_session_that_a_hook_reported() {
    let stage = Stage::without_tmux();
    let sheet = r#"about = "tells its session"
runs = "native"
reads_mail = true
hooks = ["turn-end"]
[launch]
argv = [["sh", "-c", 'phalanx=$0; for told; do "$phalanx" hook "$told"; done; echo all >said; exec sleep 300'], ["{phalanx}"],
  ['{{"type":"agent-turn-complete","thread-id":"title-1","last-assistant-message":"A title"}'],
  ['{{"type":"agent-turn-complete","thread-id":"t-9","input-messages":["<teammate-message x"]}'],
  ['{{"type":"agent-turn-complete","thread-id":"title-2","last-assistant-message":"Another"}']]
prompt = "mailbox"
resume = [["sh", "-c", 'exec sleep 300', "sh", "{resume}"]]
[ready]
when = "settled"
settle_ms = 300
"#;
    stage.profile("tells", sheet);
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--profile", "tells"]).expect(0);
    wait_for("all reports", || {
        std::fs::exists(stage.at("work/said")).expect("looked").then_some(())
    });
    assert_eq!(record(&stage, "ada")["session"], "t-9");
    // A turn outside the conversation does not count: the third report is ignored.
    assert_eq!(stage.journal("demo").iter().filter(|e| e["event"] == "turn_ended").count(), 2);
    fell(&stage, "ada");
    assert_eq!(stage.phalanx(&["--json", "resume"]).expect(0).json()[0]["session"], "t-9");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// CR-05: a program that exits with 0 because its terminal was closed is started again.
#[test]
fn tmux_cr_05_resume_restarts_a_program_that_exits_with_0_on_a_hangup() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let script = "trap 'exit 0' HUP; echo up >>up; while :; do sleep 0.05; done";
    stage.phalanx(&["spawn", "log", "--backend", "tmux", "--", "bash", "-c", script]).expect(0);
    let starts =
        || std::fs::read_to_string(stage.at("work/up")).unwrap_or_default().lines().count();
    wait_for("the program to be up", || (starts() == 1).then_some(()));
    stage.tmux(&["kill-server"]).expect("ended");
    wait_for("its end", || record(&stage, "log").get("exit").is_some().then_some(()));
    assert_eq!(record(&stage, "log")["exit"]["signal"], 1);
    let again = stage.phalanx(&["--json", "resume"]).expect(0).json();
    assert_eq!(again[0]["name"], "log", "{again}");
    wait_for("the program to be up again", || (starts() == 2).then_some(()));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// A program that writes transcripts as Claude Code does: `/clear` is a line on its input, it
/// refuses to resume if there is a file `refuse`, and writes nothing new if there is one `mute`.
const CLEARED: &str = r#"#!/bin/sh
dir=${CLAUDE_CONFIG_DIR:-$HOME/.claude}/projects/-work
mkdir -p "$dir"
put() { echo '{"type":"user","sessionId":"'$1'","teamName":"demo","agentName":"ann","message":{}}' >>"$dir/$1.jsonl"; }
resumed=
while [ $# -gt 0 ]; do
    case $1 in
        --session-id) [ -e mute ] || put "$2" ;;
        --resume) resumed=$2; [ ! -e refuse ] || exit 1; put "$2" ;;
    esac
    shift
done
echo "$resumed" >>resumed
until [ -e clear ]; do sleep 0.02; done
put aaaaaaaa-1111-4222-8333-444444444444
sleep 300
"#;

/// Starts `ann`, and returns the session that she begins with.
fn cleared() -> (Stage, String) {
    let mut stage = Stage::new();
    stage.shadow("claude", CLEARED);
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let start = ["spawn", "ann", "--profile", "claude", "--until", "running", "--backend", "pty"];
    stage.phalanx(&start).expect(0);
    let first = record(&stage, "ann")["session"].as_str().expect("a session").to_owned();
    (stage, first)
}

#[test]
fn cr_17_resume_continues_the_session_that_was_written_last() {
    let (stage, first) = cleared();
    let transcripts = stage.root().join("projects/-work");
    wait_for("a transcript", || transcripts.join(format!("{first}.jsonl")).exists().then_some(()));
    let second = "aaaaaaaa-1111-4222-8333-444444444444";
    std::fs::write(stage.at("work/clear"), "").expect("clear");
    wait_for("the second", || transcripts.join(format!("{second}.jsonl")).exists().then_some(()));
    // Its launcher gets no time to see it.
    fell(&stage, "ann");
    stage.phalanx(&["resume"]).expect(0);
    let resumed = || std::fs::read_to_string(stage.at("work/resumed")).unwrap_or_default();
    wait_for("the resumed one", || resumed().ends_with(&format!("{second}\n")).then_some(()));
    let explained = stage.phalanx(&["explain", "ann", "-v"]).expect(0).stdout;
    assert!(explained.contains(&format!("session     {second}")), "{explained}");
    assert!(explained.contains(&format!("phalanx resume ann --session {first}")), "{explained}");

    // A resume that fails forgets neither the member nor its sessions.
    fell(&stage, "ann");
    std::fs::write(stage.at("work/refuse"), "").expect("refuse");
    let chosen = ["resume", "ann", "--session", &first];
    assert_ne!(stage.phalanx(&chosen).code, 0);
    let after = record(&stage, "ann");
    assert_eq!((&after["session"], &after["earlier_sessions"]), (&json!(second), &json!([first])));
    std::fs::remove_file(stage.at("work/refuse")).expect("well again");
    stage.phalanx(&chosen).expect(0);
    wait_for("the chosen one", || resumed().ends_with(&format!("{first}\n")).then_some(()));
    let after = record(&stage, "ann");
    assert_eq!((&after["session"], &after["earlier_sessions"]), (&json!(first), &json!([second])));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// CR-17: a conversation that one resume could not reach is continued by the next one, and the new
/// conversation in between is named as such.
#[test]
fn cr_17_conversation_out_of_reach_is_continued_by_the_next_resume() {
    let (stage, first) = cleared();
    let (transcripts, away) = (stage.root().join("projects"), stage.at("away"));
    let transcript = transcripts.join(format!("-work/{first}.jsonl"));
    wait_for("a transcript", || transcript.exists().then_some(()));
    fell(&stage, "ann");
    std::fs::rename(&transcripts, &away).expect("moved");
    std::fs::write(stage.at("work/mute"), "").expect("mute");
    let anew = stage.phalanx(&["resume"]).expect(0).stdout;
    assert!(anew.contains("ann: a new conversation begins"), "{anew}");
    assert_ne!(record(&stage, "ann")["session"], json!(first));
    fell(&stage, "ann");
    std::fs::remove_dir_all(&transcripts).expect("made by the program");
    std::fs::rename(&away, &transcripts).expect("moved back");
    let again = stage.phalanx(&["--json", "resume"]).expect(0).json();
    assert_eq!(again[0]["session"], json!(first), "{again}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// CR-18: a team that a restart of the machine has stopped is named as such, with its lead, and
/// one command starts all of it again. Who was asked to end before stays away.
#[test]
fn cr_18_team_stopped_by_a_restart_is_named_and_resumed_as_a_whole() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    for name in ["ada", "ben", "cleo"] {
        stage.phalanx(&["spawn", name, "--", "sleep", "300"]).expect(0);
    }
    stage.phalanx(&["shutdown", "cleo", "--force"]).expect(0);
    let lead = stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].clone();
    let kill = |pid: &Value| {
        let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
        assert!(killed.expect("kill").success());
        wait_for("it is gone", || is_gone(pid).then_some(()));
    };
    kill(&lead);
    for name in ["ada", "ben"] {
        fell(&stage, name);
        // Nothing else in the file depends on the boot in which it is read.
        let path = stage.root().join(format!("teams/demo/phalanx/members/{name}.json"));
        let mut record = record(&stage, name);
        record["boot_id"] = json!("11111111-2222-3333-4444-555555555555");
        std::fs::write(path, record.to_string()).expect("record");
    }

    let page = stage.phalanx(&[]).expect(0).stdout;
    assert!(page.contains("demo has ended without a request: ada, ben\n"), "{page}");
    assert!(page.contains("phalanx resume --all -t demo "), "{page}");
    assert!(!page.contains("Needs you"), "the command sees to all of it: {page}");
    stage.phalanx(&["resume", "--all", "ada"]).expect(2);
    let run = stage.phalanx(&["resume", "--all"]).expect(0);
    assert!(run.stderr.contains("leads team demo in the background"), "{run:?}");
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(status["lead"]["state"], "running", "{status}");
    let members: Vec<_> =
        status["members"].as_array().expect("members").iter().map(|m| &m["name"]).collect();
    assert_eq!(members, ["ada", "ben"]);
    let page = stage.phalanx(&[]).expect(0).stdout;
    assert!(!page.contains("restarted") && !page.contains("resume"), "{page}");
    let again = stage.phalanx(&["--json", "resume", "--all"]).expect(0);
    assert_eq!(again.json(), json!([]));
    assert!(!again.stderr.contains("leads team"), "it has a lead: {again:?}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
