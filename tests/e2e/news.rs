//! News reaches the person or program that leads, in each of the five ways to lead a team, once
//! (MSG-17).

use std::fs;
use std::ops::Range;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::agent_lead::UserTerminal;
use crate::harness::{NATIVE, Stage, wait_for};
use crate::mcp::Client;
use crate::requests::permission;

/// Each kind of news, and a text that only the message about it contains.
const NEWS: [(&str, &str); 8] = [
    ("death of a member", "ada has exited"),
    ("refusal of a shutdown", "half of it is written"),
    ("failure with its reason", "no network"),
    ("result", "Found 3 bugs"),
    ("question in words", "which colour?"),
    ("request for a permission", "Bash"),
    ("work in review", "is finished and waits for approval"),
    ("end of all tasks", "All tasks have ended"),
];

/// A team of a lead alone.
fn team(stage: &Stage) {
    stage.profile("native", NATIVE);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
}

/// Makes each kind of news but the last two.
/// Returns the times at which they were made.
fn make_news(stage: &Stage) -> Vec<Instant> {
    let spawn = |name: &str, more: &[&str]| {
        let args = [&["--json", "spawn", name, "--backend", "pty"], more].concat();
        stage.phalanx(&args).expect(0).json()
    };
    let ben = |args: &[&str]| stage.phalanx(&[&["--as", "ben"], args].concat()).expect(0);
    let ada = spawn("ada", &[]);
    spawn("ben", &["--profile", "native", "--", "sleep", "300"]);
    ben(&["send", "team-lead", "which colour?"]);
    let question = Instant::now();
    ben(&["send", "team-lead", &permission("q-1", "curl x").to_string()]);
    let request = Instant::now();
    for subject in ["Fetch", "Look", "Write"] {
        stage.phalanx(&["task", "create", subject]).expect(0);
    }
    ben(&["task", "claim", "1"]);
    ben(&["task", "fail", "1", "--reason", "no network"]);
    let failure = Instant::now();
    ben(&["task", "claim", "2"]);
    ben(&["task", "complete", "2", "--result", "Found 3 bugs"]);
    let result = Instant::now();
    let pid = ada["pid"].to_string();
    Command::new("kill").args(["-KILL", &pid]).status().expect("kill");
    let death = Instant::now();
    // Without a lead this command carries the shutdown out, so it runs beside the answer.
    let asking = stage.start(&["shutdown", "ben"]);
    let asked = stage.wait_event("alpha", "shutdown_requested", "ben");
    let id = asked["detail"]["request_id"].as_str().expect("an id");
    ben(&["answer", id, "--reject", "--reason", "half of it is written"]);
    let refusal = Instant::now();
    asking.end().expect(4);
    vec![death, refusal, failure, result, question, request]
}

/// Makes all news, and reads with `read` until it has shown all. Asserts that each was shown once,
/// and prints how long each took.
fn assert_shown_once(stage: &Stage, way: &str, mut read: impl FnMut() -> String) {
    let mut made = make_news(stage);
    let mut shown = String::new();
    let mut seen = [None; NEWS.len()];
    let mut wait_for_news = |nths: Range<usize>, made: &[Instant]| {
        wait_for(&format!("{:?}", &NEWS[nths.clone()]), || {
            shown.push_str(&read());
            for nth in nths.clone().filter(|nth| shown.contains(NEWS[*nth].1)) {
                seen[nth].get_or_insert_with(|| made[nth].elapsed());
            }
            nths.clone().all(|nth| seen[nth].is_some()).then_some(())
        });
    };
    wait_for_news(0..6, &made);
    for action in ["claim", "review"] {
        stage.phalanx(&["--as", "ben", "task", action, "3"]).expect(0);
    }
    made.push(Instant::now());
    wait_for_news(6..7, &made);
    stage.phalanx(&["task", "approve", "3"]).expect(0);
    made.push(Instant::now());
    wait_for_news(7..8, &made);
    let times = seen.iter().flatten().map(|time| format!("{:.1}", time.as_secs_f64()));
    println!("{way}: {} s", times.collect::<Vec<_>>().join(" "));
    shown.push_str(&read());
    for (what, text) in NEWS {
        assert_eq!(shown.matches(text).count(), 1, "{what}: {shown}");
    }
}

/// Reads the mailbox as a person does.
fn inbox(stage: &Stage) -> String {
    stage.phalanx(&["inbox"]).expect(0).stdout
}

/// Reads the mailbox through the tool.
fn read_inbox(client: &mut Client) -> String {
    let read = client.call("ReadInbox", json!({"wait": 1}));
    let messages = read["messages"].as_array().expect("messages").iter();
    messages.filter_map(|message| message["text"].as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn msg_17_person_beside_a_detached_lead_reads_all_news_once() {
    let stage = Stage::without_tmux();
    team(&stage);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    assert_shown_once(&stage, "inbox beside lead --detach", || inbox(&stage));
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn msg_17_mcp_lead_beside_a_detached_lead_reads_all_news_once() {
    let stage = Stage::without_tmux();
    team(&stage);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    let mut client = Client::start(&stage, &["mcp"]);
    assert_shown_once(&stage, "MCP beside lead --detach", || read_inbox(&mut client));
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn msg_17_mcp_lead_without_a_loop_reads_all_news_once() {
    let stage = Stage::without_tmux();
    team(&stage);
    let mut client = Client::start(&stage, &["mcp"]);
    assert_shown_once(&stage, "MCP alone", || read_inbox(&mut client));
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn tmux_msg_17_agent_lead_with_a_profile_is_typed_all_news_once() {
    let terminal = UserTerminal::new();
    terminal.stage.profile("native", NATIVE);
    terminal.lead_fake("", "busy");
    let mut seen = 0;
    assert_shown_once(&terminal.stage, "lead --profile", || {
        let turns = terminal.turns();
        let new = turns[seen..].to_owned();
        seen = turns.len();
        new
    });
    terminal.end();
}

#[test]
fn tmux_msg_17_agent_lead_without_a_profile_reads_all_news_once() {
    let terminal = UserTerminal::new();
    terminal.stage.profile("native", NATIVE);
    let log = terminal.stage.at("read");
    let program = format!("{} inbox --follow >{}", crate::harness::binary(), log.display());
    terminal.lead("", &format!("sh -c '{program}'"));
    wait_for("the lead", || {
        terminal.stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].as_i64()
    });
    let mut seen = 0;
    assert_shown_once(&terminal.stage, "lead -- CMD", || {
        let read = fs::read_to_string(&log).unwrap_or_default();
        let new = read[seen..].to_owned();
        seen = read.len();
        new
    });
    terminal.end();
}

/// MSG-17: a lead that takes over handles no refusal a second time, though it is unread.
#[test]
fn msg_17_refusal_is_handled_once_across_leads() {
    let stage = Stage::without_tmux();
    team(&stage);
    let lead = stage.start(&["lead", "--on-exit", "detach"]);
    make_news(&stage);
    lead.signal("TERM");
    lead.end().expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    stage.phalanx(&["--as", "ben", "task", "claim", "3"]).expect(0);
    stage.phalanx(&["--as", "ben", "task", "complete", "3"]).expect(0);
    wait_for("the report", || {
        let unread = stage.phalanx(&["inbox", "--peek"]).expect(0).stdout;
        (unread.contains("half of it is written") && unread.contains("\"Write\": completed"))
            .then_some(())
    });
    let is_warning = |event: &&Value| event["event"] == "warning";
    let warnings: Vec<Value> = stage.journal("alpha").iter().filter(is_warning).cloned().collect();
    assert!(warnings.is_empty(), "{warnings:?}");
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// MSG-17: a person who leads sees that a native member has written, once, also if the message is
/// older than the lead.
#[test]
fn msg_17_lead_prints_the_messages_of_native_members() {
    let stage = Stage::without_tmux();
    team(&stage);
    stage.phalanx(&["spawn", "ben", "--profile", "native", "--", "sleep", "300"]).expect(0);
    let ben = |text: &str| stage.phalanx(&["--as", "ben", "send", "team-lead", text]).expect(0);
    ben("sent through phalanx");
    let file = stage.root().join("teams/alpha/inboxes/team-lead.json");
    let write = |id: &str, text: &str| {
        let mut mail: Value =
            serde_json::from_slice(&fs::read(&file).expect("a mailbox")).expect("json");
        let mut entry = mail[0].clone();
        (entry["text"], entry["msg_id"]) = (json!(text), json!(id));
        mail.as_array_mut().expect("a list").push(entry);
        fs::write(&file, mail.to_string()).expect("written");
    };
    write("n-1", "written before");
    let lead = stage.start(&["lead", "--on-exit", "detach"]);
    lead.wait_for_message("got a message from ben: written before");
    write("n-2", "written now");
    ben("sent once more");
    lead.wait_for_message("got a message from ben: written now");
    lead.signal("TERM");
    lead.end().expect(0);
    let again = stage.start(&["lead", "--on-exit", "detach"]);
    write("n-3", "written last");
    again.wait_for_message("got a message from ben: written last");
    again.signal("TERM");
    again.end().expect(0);
    let sent = |event: &Value| {
        (event["event"] == "message_sent" && event["member"] == "team-lead")
            .then(|| event["detail"]["preview"].as_str().expect("a beginning").to_owned())
    };
    let mut previews: Vec<String> = stage.journal("alpha").iter().filter_map(sent).collect();
    previews.sort();
    let sent = ["sent once more", "sent through phalanx"];
    assert_eq!(previews, [&sent[..], &["written before", "written last", "written now"]].concat());
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// CR-16: the lead is killed between the record of an end and the roster. Without another lead the
/// next reader completes it.
#[test]
fn cr_16_reader_completes_an_end_that_a_killed_lead_began() {
    let stage = Stage::without_tmux();
    team(&stage);
    let mut command = stage.command(crate::harness::binary());
    command.env("PHALANX_FAILPOINT", "remove.ended").arg("lead");
    let lead = crate::harness::Background::start(command);
    let leads = || stage.phalanx(&["--json", "status"]).expect(0).json()["lead"].is_object();
    wait_for("the lead", || leads().then_some(()));
    let ada = stage.phalanx(&["--json", "spawn", "ada", "--backend", "pty"]).expect(0).json();
    Command::new("kill").args(["-KILL", &ada["pid"].to_string()]).status().expect("kill");
    assert_eq!(lead.end().code, -1, "the lead is killed");
    let (first, second) = (inbox(&stage), inbox(&stage));
    assert_eq!((first + &second).matches("ada has exited").count(), 1);
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(status["members"], json!([]), "{status}");
    stage.phalanx(&["down", "--force"]).expect(0);
}
