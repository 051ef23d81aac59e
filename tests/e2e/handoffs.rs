//! Handoffs: typed bodies between members, routing rules, and handoffs between two teams.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{NATIVE, Run, Stage, binary};

const PROGRESS: &str =
    r#"{"task":"01-01/T3","plan_id":"01-01","commit":"abc1234","status":"complete","mood":"fine"}"#;
const BLOCKER: &str = r#"{"task":"01-02/T1","plan_id":"01-02","blocker":"no schema","needs":"the schema","attempted":[]}"#;
const CONTRACT: &str =
    r#"{"status":"proposed","endpoints":[{"method":"POST","path":"/login"}],"phase":"01"}"#;

/// Creates team `alpha` with the lead, the developer ann and the senior sam.
fn team() -> Stage {
    let stage = super::stage_without_tmux();
    stage.profile("agent", NATIVE);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    for (name, role) in [("ann", "dev"), ("sam", "senior")] {
        let prompt = format!("role.{role}.prompt");
        stage.phalanx(&["team", "set", &prompt, "Work."]).expect(0);
        let member = ["spawn", name, "--role", role, "--profile", "agent", "--backend", "pty"];
        stage.phalanx(&[&member[..], &["--", "sleep", "300"]].concat()).expect(0);
    }
    stage
}

fn as_ann(stage: &Stage, args: &[&str]) -> Run {
    stage.phalanx(&[&["--as", "ann"], args].concat())
}

/// The texts in a mailbox, besides first prompts.
fn texts(stage: &Stage, team: &str, owner: &str) -> Vec<String> {
    let inbox =
        stage.phalanx(&["--json", "inbox", owner, "--all", "--peek", "-t", team]).expect(0).json();
    let texts = inbox.as_array().expect("entries").iter().map(|entry| &entry["text"]);
    texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

fn down(stage: &Stage, teams: &[&str]) {
    for team in teams {
        stage.phalanx(&["down", "--force", "-t", team]).expect(0);
    }
    stage.assert_clean();
}

#[test]
fn typed_body_is_checked_sent_as_json_and_shown_as_a_sentence() {
    let stage = team();
    let send = ["handoff", "send", "team-lead", "--type", "dev_progress"];
    as_ann(&stage, &[&send[..], &["--body", PROGRESS]].concat()).expect(0);
    let text = texts(&stage, "alpha", "team-lead").pop().expect("a message");
    let mut expected: Value = serde_json::from_str(PROGRESS).expect("json");
    expected["type"] = json!("dev_progress");
    assert!(text.starts_with(r#"{"type":"dev_progress","task":"#), "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).expect("json"), expected);
    let shown = stage.phalanx(&["inbox", "--peek"]).expect(0).stdout;
    assert!(shown.contains("reports 01-01/T3 complete (abc1234)"), "{shown}");
    let events = stage.phalanx(&["events"]).expect(0).stdout;
    assert!(events.contains("got a handoff: ann reports 01-01/T3 complete (abc1234)"), "{events}");
    // Nothing happens to the board.
    assert_eq!(stage.phalanx(&["--json", "task", "list"]).expect(0).json(), json!([]));
    let before = texts(&stage, "alpha", "team-lead");
    let refused = |body: &str, said: &str| {
        let run = as_ann(&stage, &[&send[..], &["--body", body]].concat()).expect(2);
        assert!(run.stderr.contains(said), "{body}: {run:?}");
        assert_eq!(texts(&stage, "alpha", "team-lead"), before);
        run.stderr
    };
    let said = refused("{}", "`task` in `dev_progress` is missing; expected the task as PLAN/TASK");
    assert!(said.contains(r#"hint: a valid body: {"type":"dev_progress""#), "{said}");
    refused(
        &PROGRESS.replace("complete", "done"),
        "`status` in `dev_progress` is \"done\"; expected `complete`, `partial` or `failed`",
    );
    refused(r#"{"type":"task_claim"}"#, "the `type` in the body is \"task_claim\"");
    refused("[]", "not a JSON object");
    let file = stage.file("body.json", "{\n  \"task\": }\n");
    let run = as_ann(&stage, &[&send[..], &["--file", &file]].concat()).expect(2);
    assert!(run.stderr.contains("body.json:2:11: not a JSON object"), "{run:?}");
    let protocol = ["handoff", "send", "sam", "--type", "shutdown_request", "--body", "{}"];
    stage.phalanx(&protocol).expect(2);
    // Only known types are checked, and only by this verb.
    let other = ["handoff", "send", "sam", "--type", "dev_progres", "--body", "{}"];
    let run = as_ann(&stage, &other).expect(0);
    assert!(run.stderr.contains("did you mean `dev_progress`?"), "{run:?}");
    as_ann(&stage, &["send", "team-lead", r#"{"type":"dev_progress"}"#]).expect(0);
    let shown = stage.phalanx(&["inbox", "--peek"]).expect(0).stdout;
    assert!(shown.contains("sent a faulty `dev_progress` (`task` in"), "{shown}");
    down(&stage, &["alpha"]);
}

#[test]
fn body_is_read_from_stdin_and_types_are_explained() {
    let stage = team();
    let mut command = stage.command(binary());
    command.args(["--as", "ann", "handoff", "send", "sam", "--type", "task_claim"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("phalanx starts");
    let body = br#"{"task_id":"T1","plan_id":"03-01"}"#;
    child.stdin.take().expect("piped").write_all(body).expect("written");
    let run = Run::from(child.wait_with_output().expect("phalanx ends")).expect(0);
    assert!(run.stdout.contains("stored in the mailbox of sam"), "{run:?}");
    let types = stage.phalanx(&["handoff", "types"]).expect(0).stdout;
    assert!(types.contains("dev_blocker") && types.contains("agent_health_event"), "{types}");
    let one = stage.phalanx(&["--json", "handoff", "types", "api_contract"]).expect(0).json();
    assert_eq!(one["fields"][0]["name"], "status");
    let run = stage.phalanx(&["handoff", "types", "api_contrakt"]).expect(2);
    assert!(run.stderr.contains("did you mean `api_contract`?"), "{run:?}");
    down(&stage, &["alpha"]);
}

#[test]
fn routing_rules_refuse_messages_and_name_the_rule() {
    let stage = team();
    let rules = r#"["dev -> senior", "senior -> lead", "* -> dev"]"#;
    stage.phalanx(&["team", "set", "routing.allow", rules]).expect(0);
    let run = as_ann(&stage, &["send", "team-lead", "hello"]).expect(4);
    assert!(
        run.stderr.contains("`ann` may not message `team-lead`: no rule in `allow` permits it")
            && run.stderr.contains("hint: `ann` may message: sam"),
        "{run:?}"
    );
    let progress = ["handoff", "send", "team-lead", "--type", "dev_progress", "--body", PROGRESS];
    as_ann(&stage, &progress).expect(4);
    as_ann(&stage, &["send", "sam", "hello"]).expect(0);
    stage.phalanx(&["send", "ann", "hello"]).expect(0);
    let run = stage.phalanx(&["send", "sam", "hello"]).expect(4);
    assert!(run.stderr.contains("phalanx team set routing.allow"), "{run:?}");
    let cast = as_ann(&stage, &["--json", "broadcast", "all"]).expect(0).json();
    assert_eq!((&cast["recipients"], &cast["skipped"]), (&json!(["sam"]), &json!(["team-lead"])));
    let cast = as_ann(&stage, &["broadcast", "all"]).expect(0).stdout;
    assert!(
        cast.contains("stored in 1 mailbox: sam; skipped, because") && cast.contains("team-lead")
    );
    stage
        .phalanx(&["team", "set", "--unset", "routing.allow", "routing.deny", r#"["dev -> *"]"#])
        .expect(0);
    let run = as_ann(&stage, &["send", "sam", "hello"]).expect(4);
    assert!(
        run.stderr.contains("the rule `dev -> *` in `deny` forbids it")
            && run.stderr.contains("`ann` may message: no member"),
        "{run:?}"
    );
    // Protocol messages pass.
    as_ann(&stage, &["ask", "permission", "make"]).expect(0);
    as_ann(&stage, &["send", "team-lead", r#"{"type":"idle_notification"}"#]).expect(0);
    stage.phalanx(&["task", "create", "Build", "--owner", "ann"]).expect(0);
    assert!(texts(&stage, "alpha", "ann").iter().any(|text| text.contains("task_assignment")));
    let run = stage.phalanx(&["team", "set", "routing.deny", r#"["dev lead"]"#]).expect(2);
    assert!(run.stderr.contains("`dev lead` is not a rule"), "{run:?}");
    down(&stage, &["alpha"]);
}

#[test]
fn blocker_without_a_recipient_is_escalated() {
    let stage = team();
    let blocker = ["handoff", "send", "--type", "dev_blocker", "--body", BLOCKER];
    let to = |run: Run| run.expect(0).json()["routing"]["target"].clone();
    assert_eq!(to(as_ann(&stage, &[&["--json"], &blocker[..]].concat())), "team-lead");
    let escalate = r#"{ dev = "senior", senior = "lead" }"#;
    let deny = r#"["* -> *"]"#;
    stage.phalanx(&["team", "set", "routing.escalate", escalate, "routing.deny", deny]).expect(0);
    assert_eq!(to(as_ann(&stage, &[&["--json"], &blocker[..]].concat())), "sam");
    let as_sam = [&["--as", "sam", "--json"], &blocker[..]].concat();
    assert_eq!(to(stage.phalanx(&as_sam)), "team-lead");
    stage.phalanx(&["shutdown", "sam", "--force"]).expect(0);
    assert_eq!(to(as_ann(&stage, &[&["--json"], &blocker[..]].concat())), "team-lead");
    let run = stage.phalanx(&blocker).expect(2);
    assert!(run.stderr.contains("the lead has no superior"), "{run:?}");
    let run = as_ann(&stage, &["handoff", "send", "--type", "dev_progress", "--body", PROGRESS]);
    assert!(run.expect(2).stderr.contains("needs a recipient"));
    down(&stage, &["alpha"]);
}

/// Creates teams `backend` and `frontend`.
fn two_teams() -> Stage {
    let stage = super::stage_without_tmux();
    for team in ["backend", "frontend"] {
        stage.phalanx(&["team", "create", team]).expect(0);
    }
    stage
}

const PUT: [&str; 9] =
    ["-t", "backend", "handoff", "put", "frontend", "--type", "api_contract", "--body", CONTRACT];

fn events(stage: &Stage, team: &str, kind: &str) -> Vec<Value> {
    stage.journal(team).into_iter().filter(|event| event["event"] == kind).collect()
}

#[test]
fn handoff_reaches_the_lead_of_another_team_once() {
    let stage = two_teams();
    let put = stage.phalanx(&[&["--json"], &PUT[..]].concat()).expect(0).json();
    let id = put["handoff_id"].as_str().expect("an id");
    let file = stage.root().join("teams/frontend/phalanx/handoffs/backend.api_contract.jsonl");
    let line: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("a file")).expect("one line");
    assert_eq!((&line["id"], &line["from_team"]), (&json!(id), &json!("backend")));
    let mail = texts(&stage, "frontend", "team-lead");
    assert_eq!(mail.len(), 1, "{mail:?}");
    let command = format!("phalanx handoff get {id} -t frontend");
    assert!(mail[0].contains(&command) && mail[0].contains("proposes an API contract"), "{mail:?}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let page = stage.phalanx(&words).expect(0).stdout;
    assert!(page.contains("api_contract from team backend") && page.contains("\"phase\": \"01\""));
    let sent = &events(&stage, "backend", "handoff_sent")[0]["detail"];
    assert_eq!((&sent["to_team"], &sent["handoff_id"]), (&json!("frontend"), &json!(id)));
    let received = &events(&stage, "frontend", "handoff_received")[0]["detail"];
    assert_eq!(
        (&received["from_team"], &received["type"]),
        (&json!("backend"), &json!("api_contract"))
    );
    // A message that was read or removed is not sent again.
    stage.phalanx(&["-t", "frontend", "inbox", "--clear"]).expect(0);
    stage.phalanx(&["-t", "frontend", "handoff", "list"]).expect(0);
    assert_eq!(texts(&stage, "frontend", "team-lead"), Vec::<String>::new());
    let listed = ["--json", "-t", "frontend", "handoff", "list", "--from", "backend"];
    assert_eq!(stage.phalanx(&listed).expect(0).json().as_array().map(Vec::len), Some(1));
    let none = stage.phalanx(&["-t", "frontend", "handoff", "list", "--from", "ux"]).expect(0);
    assert!(none.stderr.contains("no handoffs"), "{none:?}");
    let run = stage.phalanx(&["-t", "frontend", "handoff", "get", "no-such"]).expect(3);
    assert!(run.stderr.contains("phalanx handoff list"), "{run:?}");
    down(&stage, &["backend", "frontend"]);
}

#[test]
fn invalid_handoff_to_a_team_writes_nothing() {
    let stage = two_teams();
    let put = |to: &str, kind: &str, body: &str, code: i32| {
        let args = ["-t", "backend", "handoff", "put", to, "--type", kind, "--body", body];
        stage.phalanx(&args).expect(code).stderr
    };
    assert!(put("frontend", "api_contract", "{}", 2).contains("`status` in `api_contract`"));
    assert!(put("backend", "api_contract", CONTRACT, 2).contains("own team"));
    assert!(put("frontent", "api_contract", CONTRACT, 3).contains("did you mean `frontend`?"));
    assert!(put("../frontend", "api_contract", CONTRACT, 3).contains("does not exist"));
    assert!(put("frontend", "../../x", "{}", 2).contains("is not a name"));
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(1024 * 1024));
    let file = stage.file("long.json", &long);
    let args = ["-t", "backend", "handoff", "put", "frontend", "--type", "note", "--file", &file];
    assert!(stage.phalanx(&args).expect(2).stderr.contains("too long"));
    assert!(!stage.root().join("teams/frontend/phalanx/handoffs").exists());
    assert_eq!(texts(&stage, "frontend", "team-lead"), Vec::<String>::new());
    // Lines of other programs are skipped.
    put("frontend", "note", r#"{"text":"hi"}"#, 0);
    let file = stage.root().join("teams/frontend/phalanx/handoffs/backend.note.jsonl");
    let mut text = std::fs::read_to_string(&file).expect("a file");
    text.push_str(
        "{\"torn\n{\"id\":\"$(id)\",\"from_team\":\"x\",\"type\":\"t\",\"at\":1,\"body\":{}}\n",
    );
    std::fs::write(&file, text).expect("written");
    let run = stage.phalanx(&["-t", "frontend", "handoff", "list"]).expect(0);
    assert!(run.stderr.contains("backend.note.jsonl:2: ") && run.stderr.contains(".jsonl:3: "));
    assert!(run.stdout.contains("note") && !run.stdout.contains("$(id)"), "{run:?}");
    down(&stage, &["backend", "frontend"]);
}

/// The sender dies after it has stored the handoff, and after it has sent the message: the lead
/// gets one message for it.
#[cfg(debug_assertions)]
#[test]
fn handoff_of_a_process_that_died_is_notified_once() {
    for (point, repairs) in [
        ("handoff.stored", &["-t", "frontend", "handoff", "list"][..]),
        ("handoff.stored", &PUT[..]),
        ("unlock.before", &["-t", "frontend", "handoff", "list"][..]),
        ("unlock.before", &PUT[..]),
        ("handed.recorded", &["-t", "frontend", "handoff", "list"][..]),
    ] {
        let stage = two_teams();
        let mut command = stage.command(binary());
        command.env("PHALANX_FAILPOINT", point).args(PUT);
        let run = Run::from(command.output().expect("phalanx runs"));
        assert_eq!(run.code, -1, "{point} is not passed: {run:?}");
        let sent = usize::from(point != "handoff.stored");
        assert_eq!(texts(&stage, "frontend", "team-lead").len(), sent, "{point}");
        stage.phalanx(repairs).expect(0);
        stage.phalanx(&["-t", "frontend", "handoff", "list"]).expect(0);
        let listed =
            stage.phalanx(&["--json", "-t", "frontend", "handoff", "list"]).expect(0).json();
        let ids: Vec<&str> = listed
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|one| one["id"].as_str())
            .collect();
        let mail = texts(&stage, "frontend", "team-lead");
        assert_eq!(mail.len(), ids.len(), "{point}: {mail:?}");
        for id in ids {
            let about = mail.iter().filter(|text| text.contains(id)).count();
            assert_eq!(about, 1, "{point}: {mail:?}");
        }
        down(&stage, &["backend", "frontend"]);
    }
}
