//! Requests of members from the mailbox to the answer: the five outcomes for each kind (PM-03,
//! PM-04), rules, plans.

use serde_json::{Value, json};

use crate::harness::{Background, NATIVE, Stage, wait_for};
use crate::mcp::Client;

const KINDS: [&str; 3] = ["plan", "permission", "sandbox"];

/// Returns a request of this kind in wire format (docs/dev/protocol.md).
fn wire(kind: &str, id: &str) -> Value {
    match kind {
        "plan" => {
            json!({"type": "plan_approval_request", "from": "ada", "timestamp": "2026-11-20T22:43:51.440Z",
            "planFilePath": "/w/plan.md", "planContent": "# Move the parser\n1. …", "requestId": id})
        }
        "permission" => permission(id, "curl x"),
        _ => json!({"type": "sandbox_permission_request", "requestId": id, "host": "docs.rs"}),
    }
}

pub fn permission(id: &str, command: &str) -> Value {
    json!({"type": "permission_request", "request_id": id, "agent_id": "ada", "tool_name": "Bash",
        "tool_use_id": "toolu_1", "description": "runs it", "input": {"command": command},
        "permission_suggestions": []})
}

/// The type of the answer message.
fn reply_kind(kind: &str) -> &'static str {
    match kind {
        "plan" => "plan_approval_response",
        "permission" => "permission_response",
        _ => "sandbox_permission_response",
    }
}

pub fn send_as_ada(stage: &Stage, message: &Value) {
    stage.phalanx(&["--as", "ada", "send", "team-lead", &message.to_string()]).expect(0);
}

/// All answers in ada's mailbox, in wire format.
pub fn replies(stage: &Stage) -> Vec<Value> {
    let inbox = stage.phalanx(&["--json", "inbox", "ada", "--all"]).expect(0).json();
    let texts = inbox.as_array().expect("entries").iter().filter(|e| e["from"] == "team-lead");
    let read = texts.filter_map(|e| serde_json::from_str::<Value>(e["text"].as_str()?).ok());
    read.filter(|m| m["type"].as_str().is_some_and(|t| t.ends_with("_response"))).collect()
}

pub fn request(stage: &Stage, id: &str) -> Value {
    let all = stage.phalanx(&["--json", "requests", "--all"]).expect(0).json();
    let found = all.as_array().expect("a list").iter().find(|r| r["request_id"] == id).cloned();
    found.unwrap_or_else(|| panic!("no request {id}: {all}"))
}

fn member(stage: &Stage) -> Value {
    stage.phalanx(&["--json", "status"]).expect(0).json()["members"][0].clone()
}

pub fn team(stage: &Stage) {
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
}

/// Starts a team with a foreground lead; `team` and `more` are added to the manifest.
fn led(stage: &Stage, team: &str, more: &str) -> Background {
    let text = format!(
        "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\n{team}\n{more}\n[[member]]\nname = \"ada\"\nrole = \"tester\"\n"
    );
    let lead = stage.start(&["up", &stage.file("team.toml", &text)]);
    stage.wait_event("alpha", "member_ready", "ada");
    lead
}

fn down(stage: &Stage, lead: Background) {
    stage.phalanx(&["down", "--force"]).expect(0);
    drop(lead.end());
    stage.assert_clean();
}

#[test]
fn pm_04_approval_of_each_kind_is_sent_once_in_wire_format() {
    let stage = super::stage_without_tmux();
    team(&stage);
    for kind in KINDS {
        send_as_ada(&stage, &wire(kind, &format!("id-{kind}")));
        let waiting = stage.phalanx(&["--json", "requests"]).expect(0).json();
        let one = &waiting[0];
        assert_eq!(
            (&one["kind"], &one["from"], &one["state"]),
            (&json!(kind), &json!("ada"), &json!("pending"))
        );
        assert_eq!(one["body"], wire(kind, &format!("id-{kind}")));
        assert!(
            one["age_ms"].is_u64() && !one["summary"].as_str().expect("words").is_empty(),
            "{one}"
        );
        assert!(
            replies(&stage).iter().all(|r| r["type"] != reply_kind(kind)),
            "nothing is answered by default"
        );
        stage.phalanx(&["answer", &format!("id-{kind}"), "--approve"]).expect(0);
        for again in ["--approve", "--reject"] {
            let refused = stage.phalanx(&["answer", &format!("id-{kind}"), again]).expect(4);
            assert!(refused.stderr.contains("allowed by team-lead"), "{refused:?}");
        }
        let done = request(&stage, &format!("id-{kind}"));
        assert_eq!((&done["state"], &done["by"]), (&json!("allowed"), &json!("team-lead")));
    }
    let mut told = replies(&stage);
    assert!(told[0].as_object_mut().expect("object").remove("timestamp").is_some());
    assert_eq!(
        told,
        [
            json!({"type": "plan_approval_response", "requestId": "id-plan", "approved": true, "permissionMode": "default"}),
            json!({"type": "permission_response", "request_id": "id-permission", "subtype": "success",
                "response": {"updated_input": {"command": "curl x"}, "permission_updates": []}}),
            json!({"type": "sandbox_permission_response", "requestId": "id-sandbox", "host": "docs.rs", "allow": true}),
        ]
    );
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn pm_04_denial_of_each_kind_carries_the_reason() {
    let stage = super::stage_without_tmux();
    team(&stage);
    for kind in KINDS {
        send_as_ada(&stage, &wire(kind, kind));
        stage.phalanx(&["answer", kind, "--reject", "--reason", "not today"]).expect(0);
        assert_eq!(request(&stage, kind)["state"], json!("denied"));
    }
    let told = replies(&stage);
    assert_eq!((&told[0]["approved"], &told[0]["feedback"]), (&json!(false), &json!("not today")));
    assert_eq!((&told[1]["subtype"], &told[1]["error"]), (&json!("error"), &json!("not today")));
    assert_eq!(told[2]["allow"], json!(false));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn pm_04_timeout_and_late_answer_are_not_rejections() {
    let stage = super::stage_without_tmux();
    let lead = led(&stage, "answer_within = 1", "");
    for kind in KINDS {
        send_as_ada(&stage, &wire(kind, kind));
    }
    let states =
        || KINDS.map(|kind| request(&stage, kind)["state"].as_str().expect("word").to_owned());
    wait_for("all three to run out", || (states() == ["timed_out"; 3]).then_some(()));
    let told = replies(&stage);
    assert_eq!(told.len(), 3);
    assert!(
        told.iter()
            .all(|r| r["approved"] != true && r["allow"] != true && r["subtype"] != "success"),
        "{told:?}"
    );
    let permission = told.iter().find(|reply| reply["type"] == reply_kind("permission"));
    let error = permission.and_then(|reply| reply["error"].as_str());
    assert!(error.is_some_and(|error| error.contains("not a rejection")), "{told:?}");
    for kind in KINDS {
        let late = stage.phalanx(&["answer", kind, "--approve"]).expect(4);
        assert!(late.stderr.contains("it timed out at"), "{late:?}");
        assert_eq!(request(&stage, kind)["state"], json!("answered_too_late"));
    }
    assert_eq!(replies(&stage), told, "nothing more is said");
    down(&stage, lead);
}

#[test]
fn pm_04_requests_of_each_kind_close_when_the_asker_is_gone() {
    let stage = super::stage_without_tmux();
    team(&stage);
    for kind in KINDS {
        send_as_ada(&stage, &wire(kind, kind));
    }
    assert_eq!(
        stage.phalanx(&["--json", "requests"]).expect(0).json().as_array().map(Vec::len),
        Some(3)
    );
    // Sent by the first run, filed only when the second run exists.
    send_as_ada(&stage, &permission("late", "ls"));
    stage.phalanx(&["shutdown", "ada", "--force"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    for id in [KINDS[0], KINDS[1], KINDS[2], "late"] {
        let refused = stage.phalanx(&["answer", id, "--approve"]).expect(4);
        assert!(refused.stderr.contains("the run that sent it has ended"), "{refused:?}");
        assert_eq!(request(&stage, id)["state"], json!("asker_gone"));
    }
    assert_eq!(replies(&stage), Vec::<Value>::new());
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn pm_07_plan_is_rejected_revised_and_approved() {
    let stage = super::stage_without_tmux();
    let lead = led(&stage, "", "");
    send_as_ada(&stage, &wire("plan", "plan-1"));
    wait_for("it to wait", || (member(&stage)["needs"] == "plan").then_some(()));
    stage
        .phalanx(&["answer", "plan-1", "--reject", "--reason", "leave the schema alone"])
        .expect(0);
    wait_for("it to go on", || (member(&stage)["needs"] != "plan").then_some(()));
    send_as_ada(&stage, &wire("plan", "plan-2"));
    wait_for("the second plan", || {
        stage.journal("alpha").into_iter().find(|e| e["detail"]["request_id"] == "plan-2")
    });
    for mode in ["plan", "delegate"] {
        stage.phalanx(&["answer", "plan-2", "--approve", "--mode", mode]).expect(4);
    }
    stage.phalanx(&["answer", "plan-2", "--approve", "--mode", "acceptEdits"]).expect(0);
    let told = replies(&stage);
    assert_eq!(told.len(), 2);
    assert_eq!(
        (&told[0]["approved"], &told[0]["feedback"]),
        (&json!(false), &json!("leave the schema alone"))
    );
    assert_eq!(
        (&told[1]["approved"], &told[1]["permissionMode"]),
        (&json!(true), &json!("acceptEdits"))
    );
    let sent =
        |e: &Value| e["event"] == "message_sent" && e["detail"]["kind"] == "plan_approval_response";
    assert_eq!(stage.journal("alpha").into_iter().filter(sent).count(), 2);
    down(&stage, lead);
}

#[test]
fn pm_07_member_that_awaits_a_plan_can_be_shut_down() {
    let stage = super::stage_without_tmux();
    let lead = led(&stage, "", "");
    send_as_ada(&stage, &wire("plan", "plan-1"));
    wait_for("it to wait", || (member(&stage)["needs"] == "plan").then_some(()));
    stage.phalanx(&["shutdown", "ada", "--deadline", "10"]).expect(0);
    wait_for("its end to be told", || {
        (request(&stage, "plan-1")["state"] == "asker_gone").then_some(())
    });
    down(&stage, lead);
}

#[test]
fn rules_decide_requests_and_the_rest_waits_for_the_user() {
    let stage = super::stage_without_tmux();
    let rules = "[rules]\ndeny = [\"WebFetch(domain:docs.rs)\"]\nallow = [\"Bash(git:*), Bash(ls)\"]\n\
        [rules.role.tester]\ndeny = [\"Bash(git push:*)\"]\n";
    let lead = led(&stage, "", rules);
    send_as_ada(&stage, &permission("a", "git status && ls"));
    send_as_ada(&stage, &permission("b", "ls; git push"));
    send_as_ada(&stage, &permission("c", "git status; curl x"));
    send_as_ada(&stage, &wire("sandbox", "d"));
    wait_for("three answers", || (replies(&stage).len() == 3).then_some(()));
    let of = |id: &str| (request(&stage, id)["state"].clone(), request(&stage, id)["rule"].clone());
    assert_eq!(
        of("a"),
        (json!("allowed"), json!("allow Bash(git:*) of the team, Bash(ls) of the team"))
    );
    assert_eq!(of("b"), (json!("denied"), json!("deny Bash(git push:*) of role tester")));
    assert_eq!(of("c"), (json!("pending"), json!(null)));
    assert_eq!(of("d"), (json!("denied"), json!("deny WebFetch(domain:docs.rs) of the team")));
    let told =
        stage.journal("alpha").into_iter().find(|e| e["event"] == "request_decided").expect("told");
    assert_eq!(
        (&told["detail"]["by"], &told["detail"]["outcome"]),
        (&json!("rule"), &json!("allowed"))
    );
    down(&stage, lead);
}

#[test]
fn pm_03_notify_command_receives_a_new_request() {
    let stage = super::stage_without_tmux();
    let notify = format!("notify = [\"sh\", \"-c\", \"cat >{}\"]", stage.at("told").display());
    let lead = led(&stage, &notify, "");
    send_as_ada(&stage, &permission("perm-1", "make\u{1b}[2J"));
    let told = wait_for("the notification", || {
        serde_json::from_str::<Value>(&std::fs::read_to_string(stage.at("told")).ok()?).ok()
    });
    assert_eq!(
        (&told["request_id"], &told["from"], &told["kind"]),
        (&json!("perm-1"), &json!("ada"), &json!("permission"))
    );
    stage.phalanx(&["down", "--force"]).expect(0);
    let said = lead.end().stderr;
    assert!(said.contains("asks for a permission: Bash: make"), "{said}");
    assert!(said.contains("phalanx answer perm-1 --approve") && !said.contains('\u{1b}'), "{said}");
}

fn question(id: &str) -> Value {
    json!({"type": "permission_request", "request_id": id, "agent_id": "ada",
        "tool_name": "AskUserQuestion", "tool_use_id": "toolu_1", "description": "", "permission_suggestions": [],
        "input": {"questions": [{"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]}]}})
}

/// PM-05, PM-12: a question of the program to its user is announced with its text, waits for the
/// user whatever the rules allow, and is answered, not allowed.
#[test]
fn pm_05_pm_12_question_to_the_user_is_answered_and_never_decided_by_rules() {
    let stage = super::stage_without_tmux();
    let lead = led(&stage, "", "[rules]\nallow = [\"Bash\", \"AskUserQuestion\"]");
    send_as_ada(&stage, &question("ask-1"));
    let filed = stage.wait_event("alpha", "request_filed", "ada");
    assert_eq!(
        (&filed["detail"]["summary"], &filed["detail"]["state"]),
        (&json!("AskUserQuestion: Which colour?"), &json!("pending"))
    );
    wait_for("ada waits", || (member(&stage)["needs"] == "question").then_some(()));
    let page = stage.phalanx(&["requests", "show", "ask-1"]).expect(0).stdout;
    for part in ["Which colour?\n  1  red\n  2  blue", "phalanx answer ask-1 --answer TEXT"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for (args, problem) in [
        (&["--approve"][..], "request `ask-1`: question 1 has no answer: \"Which colour?\""),
        (&["--approve", "--input", "{}"], "the input has no `answers` to its questions"),
        (&["--answer", "1=red", "--answer", "1=blue"], "question 1 has two answers"),
    ] {
        let refused = stage.phalanx(&[&["answer", "ask-1"], args].concat()).expect(4);
        assert!(refused.stderr.contains(problem), "{args:?}: {refused:?}");
        assert!(refused.stderr.contains("`--answer QUESTION=TEXT`"), "{args:?}: {refused:?}");
    }
    assert_eq!(replies(&stage), [] as [Value; 0]);
    stage.phalanx(&["answer", "ask-1", "--answer", "2"]).expect(0);
    send_as_ada(&stage, &question("ask-2"));
    let mut client = Client::start(&stage, &["mcp"]);
    let listed = client.call("Requests", json!({})).to_string();
    assert!(listed.contains("ask-2"), "{listed}");
    let refused = client.refused("Answer", json!({"request_id": "ask-2", "approve": true}));
    assert!(refused.to_string().contains("question 1 has no answer"), "{refused}");
    let answer =
        json!({"request_id": "ask-2", "approve": true, "answer": ["Which colour?=as the sky"]});
    client.call("Answer", answer);
    assert_eq!(client.end(), Some(0));
    send_as_ada(&stage, &question("ask-3"));
    stage.phalanx(&["answer", "ask-3", "--reject", "--reason", "blue"]).expect(0);
    let told = replies(&stage);
    let answer = |at: usize| &told[at]["response"]["updated_input"]["answers"]["Which colour?"];
    assert_eq!((answer(0), answer(1)), (&json!("blue"), &json!("as the sky")), "{told:?}");
    assert!(told.len() == 3 && told[2].to_string().contains("blue"), "{told:?}");
    stage.phalanx(&["down", "--force"]).expect(0);
    let said = lead.end().stderr;
    assert!(said.contains("asks for a permission: AskUserQuestion: Which colour?"), "{said}");
    assert!(said.contains("`phalanx answer ask-1 --answer TEXT`"), "{said}");
}

#[test]
fn answer_works_after_the_lead_was_killed() {
    let stage = super::stage_without_tmux();
    let lead = led(&stage, "", "");
    send_as_ada(&stage, &permission("perm-1", "make"));
    stage.wait_event("alpha", "request_filed", "ada");
    lead.signal("KILL");
    drop(lead.end());
    send_as_ada(&stage, &permission("perm-2", "make"));
    for id in ["perm-1", "perm-2"] {
        stage.phalanx(&["answer", id, "--approve"]).expect(0);
    }
    let next = stage.start(&["lead"]);
    wait_for("the next lead", || {
        stage.journal("alpha").iter().filter(|e| e["event"] == "lead_started").nth(1).map(drop)
    });
    assert_eq!(replies(&stage).len(), 2);
    down(&stage, next);
}

#[test]
fn request_filed_twice_is_one_request() {
    let stage = super::stage_without_tmux();
    team(&stage);
    send_as_ada(&stage, &permission("perm-1", "make"));
    let inbox = stage.root().join("teams/alpha/inboxes/team-lead.json");
    let before = std::fs::read(&inbox).expect("mailbox");
    stage.phalanx(&["requests"]).expect(0);
    // The state after a crash right after the request was filed.
    std::fs::write(&inbox, before).expect("mailbox");
    let _ = std::fs::remove_file(stage.root().join("teams/alpha/phalanx/handed/team-lead.jsonl"));
    stage.phalanx(&["answer", "perm-1", "--approve"]).expect(0);
    send_as_ada(&stage, &permission("perm-1", "rm -rf x"));
    let all = stage.phalanx(&["--json", "requests", "--all"]).expect(0).json();
    assert_eq!(all.as_array().map(Vec::len), Some(1), "{all}");
    assert_eq!(all[0]["body"]["input"]["command"], json!("make"), "an id is honoured once");
    assert_eq!(replies(&stage).len(), 1);
    assert!(
        stage.journal("alpha").iter().any(|e| e["event"] == "warning"),
        "the second one is told of"
    );
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// The request table is bounded: requests decided long ago remain only in the journal, recent ones
/// can still be looked up.
#[test]
fn old_decided_requests_are_pruned() {
    const MANY: u64 = 513;
    let stage = super::stage_without_tmux();
    team(&stage);
    stage.phalanx(&["rules", "deny", "Bash"]).expect(0);
    send_as_ada(&stage, &wire("plan", "open"));
    send_as_ada(&stage, &permission("perm-0", "make"));
    stage.phalanx(&["requests"]).expect(0);
    // Writes the files of many more requests, decided one after the other.
    let file =
        |nth: u64| stage.root().join(format!("teams/alpha/phalanx/requests/asked.perm-{nth}.json"));
    let first: Value =
        serde_json::from_slice(&std::fs::read(file(0)).expect("filed")).expect("json");
    for nth in 1..MANY {
        let mut next = first.clone();
        next["id"] = json!(format!("perm-{nth}"));
        next["decision"]["at"] = json!(first["decision"]["at"].as_u64().expect("a time") + nth);
        std::fs::write(file(nth), next.to_string()).expect("written");
    }
    stage.phalanx(&["requests"]).expect(0);
    let all = stage.phalanx(&["--json", "requests", "--all"]).expect(0).json();
    let ids: Vec<&str> =
        all.as_array().expect("a list").iter().filter_map(|r| r["request_id"].as_str()).collect();
    assert_eq!((ids.len(), ids.contains(&"open"), ids.contains(&"perm-512")), (257, true, true));
    let second = stage.phalanx(&["answer", "perm-512", "--approve"]).expect(4);
    assert!(second.stderr.contains("denied by rule"), "{second:?}");
    stage.phalanx(&["answer", "perm-0", "--approve"]).expect(3);
    let decided =
        |e: &Value| e["event"] == "request_decided" && e["detail"]["request_id"] == "perm-0";
    assert_eq!(
        stage.journal("alpha").into_iter().filter(decided).count(),
        1,
        "there it stands for good"
    );
    let gates = std::fs::read_dir(stage.root().join("teams/alpha/phalanx/gates")).expect("gates");
    assert!(gates.count() < 40, "gates stay, and so there are few");
    stage.phalanx(&["answer", "open", "--approve"]).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn sec_04_only_the_lead_may_decide_requests() {
    let stage = super::stage_without_tmux();
    team(&stage);
    send_as_ada(&stage, &permission("perm-1", "make"));
    stage.phalanx(&["--as", "ada", "answer", "perm-1", "--approve"]).expect(4);
    stage.phalanx(&["--as", "ada", "mode", "ada", "bypassPermissions"]).expect(4);
    stage.phalanx(&["answer", "perm-2", "--approve"]).expect(3);
    stage.phalanx(&["answer", "../x", "--approve"]).expect(2);
    stage.phalanx(&["answer", "perm-1"]).expect(2);
    stage.phalanx(&["answer", "perm-1", "--approve", "--mode", "plan"]).expect(2);
    assert_eq!(request(&stage, "perm-1")["state"], json!("pending"));
    // In the lead's own name, or quoted in a text, the message is not a request (SEC-05).
    stage.phalanx(&["send", "team-lead", &permission("own", "make").to_string()]).expect(0);
    send_as_ada(&stage, &json!(format!("please: {}", permission("quoted", "make"))));
    let all = stage.phalanx(&["--json", "requests", "--all"]).expect(0).json();
    assert_eq!(all.as_array().map(Vec::len), Some(1), "{all}");
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn pm_06_mode_changes_running_members_that_support_it() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let mut spawn = stage.command(crate::harness::binary());
    let spawned = spawn
        .args(["--json", "spawn", "ada"])
        .env("CLAUDE_CODE_PLAN_MODE_REQUIRED", "true")
        .output();
    let spawned: Value =
        serde_json::from_slice(&spawned.expect("phalanx runs").stdout).expect("json");
    assert_eq!(spawned["plan_mode_required"], json!(true));
    stage.phalanx(&["shutdown", "ada", "--force"]).expect(0);
    stage.profile("native", NATIVE);
    stage.phalanx(&["spawn", "ada", "--profile", "native", "--", "sleep", "300"]).expect(0);
    stage.phalanx(&["spawn", "eve"]).expect(0);
    stage.phalanx(&["spawn", "log", "--", "sleep", "300"]).expect(0);
    for fixed in ["eve", "log"] {
        let run = stage.phalanx(&["mode", fixed, "acceptEdits"]).expect(4);
        assert!(run.stderr.contains("cannot change its mode while it runs"), "{run:?}");
    }
    let asked = stage.phalanx(&["mode", "ada", "acceptEdits"]).expect(0);
    assert!(asked.stderr.contains("does not confirm its mode"), "{asked:?}");
    stage.phalanx(&["mode", "--all", "dontAsk"]).expect(0);
    for (wrong, code) in [
        (&["ada", "delegate"][..], 4),
        (&["bob", "plan"], 3),
        (&["--all", "fast"], 2),
        (&["ada"], 2),
    ] {
        let args: Vec<&str> = std::iter::once("mode").chain(wrong.iter().copied()).collect();
        stage.phalanx(&args).expect(code);
    }
    let inbox = stage.phalanx(&["--json", "inbox", "ada", "--all"]).expect(0).json();
    let texts: Vec<&str> =
        inbox.as_array().expect("entries").iter().filter_map(|e| e["text"].as_str()).collect();
    let wire = |mode: &str| {
        format!("{{\"type\":\"mode_set_request\",\"mode\":\"{mode}\",\"from\":\"team-lead\"}}")
    };
    assert_eq!(texts, [wire("acceptEdits"), wire("dontAsk")]);
    let shown =
        std::fs::read_to_string(stage.root().join("teams/alpha/config.json")).expect("team file");
    assert_eq!(shown.matches("\"mode\": \"dontAsk\"").count(), 0, "unconfirmed: {shown}");
    let lead = stage.phalanx(&["--json", "mode", "team-lead", "delegate"]).expect(0).json();
    assert_eq!(lead, json!([{"name": "team-lead", "mode": "delegate", "msg_id": null}]));
    let shown =
        std::fs::read_to_string(stage.root().join("teams/alpha/config.json")).expect("team file");
    assert_eq!(shown.matches("\"mode\": \"delegate\"").count(), 1, "{shown}");
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// Backdates all mailbox locks, as if their holder had been killed over a minute ago.
fn age_locks(stage: &Stage) {
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    let old = std::fs::FileTimes::new().set_modified(old);
    for dir in ["teams/alpha", "teams/alpha/inboxes"].map(|dir| stage.root().join(dir)) {
        for path in std::fs::read_dir(dir).expect("readable").flatten().map(|entry| entry.path()) {
            if path.is_dir() && path.extension().is_some_and(|e| e == "lock") {
                match std::fs::File::open(&path).and_then(|file| file.set_times(old)) {
                    // The lead may release a lock of its own meanwhile.
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                    aged => aged.expect("ours"),
                }
            }
        }
    }
}

/// PM-07: if the answering process is killed at any step, the next one finishes: one request, one
/// answer.
#[cfg(debug_assertions)]
#[test]
fn pm_07_answer_is_given_once_after_a_kill_at_any_step() {
    let stage = super::stage_without_tmux();
    team(&stage);
    let mut killed = 0;
    for point in
        ["rename.before", "rename.after", "unlock.before", "handed.recorded", "journal.appended"]
    {
        for nth in 1.. {
            assert!(nth < 64, "{point} is passed without end");
            let id = format!("{point}-{nth}");
            send_as_ada(&stage, &permission(&id, "make"));
            let mut command = stage.command(crate::harness::binary());
            command
                .args(["answer", &id, "--approve"])
                .env("PHALANX_FAILPOINT", format!("{point}:{nth}"));
            let ended = command.output().expect("phalanx runs").status.code();
            age_locks(&stage);
            let again = stage.phalanx(&["answer", &id, "--approve"]);
            assert!(
                again.code == 0 || again.stderr.contains("allowed by team-lead"),
                "{id}: {again:?}"
            );
            assert_eq!(request(&stage, &id)["state"], json!("allowed"), "{id}");
            let told = replies(&stage).into_iter().filter(|r| r["request_id"] == json!(id)).count();
            assert_eq!(told, 1, "{id}: once");
            if ended == Some(0) {
                break;
            }
            assert_eq!(ended, None, "{id}: it was killed");
            killed += 1;
        }
    }
    assert!(killed > 10, "{killed} kills");
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// Observed: an agent that submitted its plan for approval hundreds of times in a loop.
#[test]
fn excess_open_requests_of_a_member_are_denied() {
    let stage = super::stage_without_tmux();
    team(&stage);
    for n in 0..40 {
        send_as_ada(&stage, &wire("plan", &format!("plan-{n}")));
    }
    let open = stage.phalanx(&["--json", "requests"]).expect(0).json();
    assert_eq!(open.as_array().map(Vec::len), Some(32));
    let last = request(&stage, "plan-39");
    assert_eq!((&last["state"], &last["by"]), (&json!("denied"), &json!("rule")));
    assert!(
        last["reason"].as_str().is_some_and(|why| why.contains("wait for their answers")),
        "{last}"
    );
    assert_eq!(replies(&stage).len(), 8);
    stage.phalanx(&["answer", "plan-0", "--reject", "--reason", "no"]).expect(0);
    send_as_ada(&stage, &wire("plan", "plan-40"));
    assert_eq!(
        stage.phalanx(&["--json", "requests"]).expect(0).json().as_array().map(Vec::len),
        Some(32)
    );
    assert_eq!(request(&stage, "plan-40")["state"], json!("pending"));
    stage.phalanx(&["down", "--force"]).expect(0);
}
