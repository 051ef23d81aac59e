//! Requests shown in full, and answers with an edited input or a permanent rule.

use serde_json::json;

use crate::harness::Stage;
use crate::requests::{permission, replies, request, send_as_ada, team};

fn end(stage: &Stage) {
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn requests_show_prints_the_whole_plan_and_the_diff_of_an_edit() {
    let stage = super::stage_without_tmux();
    team(&stage);
    let plan: String = (1..=60).map(|n| format!("{n}. step \u{1b}[31m\n")).collect();
    send_as_ada(
        &stage,
        &json!({"type": "plan_approval_request", "from": "ada", "planFilePath": "/w/plan.md", "planContent": plan,
            "requestId": "plan-1"}),
    );
    let shown = stage.phalanx(&["requests", "show", "plan-1"]).expect(0).stdout;
    for n in 1..=60 {
        assert!(shown.contains(&format!("{n}. step \u{241b}[31m\n")), "{n}: {shown}");
    }
    assert!(shown.contains("phalanx answer plan-1 --approve"), "{shown}");
    send_as_ada(
        &stage,
        &json!({"type": "permission_request", "request_id": "perm-1", "agent_id": "ada", "tool_name": "Edit",
            "tool_use_id": "t", "description": "", "permission_suggestions": [],
            "input": {"file_path": "/w/a.rs", "old_string": "one\ntwo", "new_string": "one\n2"}}),
    );
    let shown = stage.phalanx(&["requests", "show", "perm-1"]).expect(0).stdout;
    assert!(shown.contains("  file       /w/a.rs\n\n  one\n- two\n+ 2\n"), "{shown}");
    let document = stage.phalanx(&["--json", "requests", "show", "perm-1"]).expect(0).json();
    assert_eq!(document, {
        let mut listed = request(&stage, "perm-1");
        for moving in ["age_ms", "left_ms"] {
            listed[moving] = document[moving].clone();
        }
        listed
    });
    end(&stage);
}

#[test]
fn unknown_request_id_suggests_the_closest_id() {
    let stage = super::stage_without_tmux();
    team(&stage);
    send_as_ada(&stage, &permission("perm-1795214628804-k2j", "make"));
    for (verb, id) in [("show", "perm-1795214628804-j2j"), ("answer", "perm-1795214628804-k2k")] {
        let run = match verb {
            "show" => stage.phalanx(&["requests", "show", id]),
            _ => stage.phalanx(&["answer", id, "--approve"]),
        };
        let refused = run.expect(3);
        assert!(refused.stderr.contains("did you mean `perm-1795214628804-k2j`?"), "{refused:?}");
    }
    assert_eq!(request(&stage, "perm-1795214628804-k2j")["state"], json!("pending"));
    end(&stage);
}

#[test]
fn approval_returns_the_edited_input() {
    let stage = super::stage_without_tmux();
    team(&stage);
    send_as_ada(&stage, &permission("perm-1", "git push --force"));
    for bad in ["[1]", "\"x\"", "{", ""] {
        stage.phalanx(&["answer", "perm-1", "--approve", "--input", bad]).expect(2);
    }
    stage.phalanx(&["answer", "perm-1", "--reject", "--input", "{}"]).expect(2);
    let input = json!({"command": "git push", "timeout": 5});
    stage.phalanx(&["answer", "perm-1", "--approve", "--input", &input.to_string()]).expect(0);
    assert_eq!(
        replies(&stage)[0]["response"],
        json!({"updated_input": input, "permission_updates": []})
    );
    assert_eq!(request(&stage, "perm-1")["updated_input"], input);
    let shown = stage.phalanx(&["requests", "show", "perm-1"]).expect(0).stdout;
    assert!(
        shown.contains("git push --force\n") && shown.contains("answered with this input:"),
        "{shown}"
    );
    send_as_ada(
        &stage,
        &json!({"type": "sandbox_permission_request", "requestId": "host-1", "host": "docs.rs"}),
    );
    let refused = stage.phalanx(&["answer", "host-1", "--approve", "--input", "{}"]).expect(4);
    assert!(refused.stderr.contains("only the use of a tool has an input"), "{refused:?}");
    assert_eq!(request(&stage, "host-1")["state"], json!("pending"));
    end(&stage);
}

#[test]
fn always_adds_the_narrowest_rule_and_the_next_request_is_allowed() {
    let stage = super::stage_without_tmux();
    team(&stage);
    send_as_ada(&stage, &permission("perm-1", "make test"));
    let answered = stage.phalanx(&["answer", "perm-1", "--approve", "--always"]).expect(0);
    assert_eq!(answered.stdout, "ada: allowed\nrule added to the team: allow Bash(make test)\n");
    let updates = replies(&stage)[0]["response"]["permission_updates"].clone();
    assert_eq!(
        updates,
        json!([{"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "make test"}],
            "behavior": "allow", "destination": "session"}])
    );
    send_as_ada(&stage, &permission("perm-2", "make test"));
    send_as_ada(&stage, &permission("perm-3", "make test-all"));
    assert_eq!(request(&stage, "perm-2")["by"], json!("rule"));
    assert_eq!(request(&stage, "perm-3")["state"], json!("pending"));
    send_as_ada(
        &stage,
        &json!({"type": "sandbox_permission_request", "requestId": "host-1", "host": "docs.rs"}),
    );
    let added =
        stage.phalanx(&["--json", "answer", "host-1", "--approve", "--always"]).expect(0).json();
    assert_eq!(added["added"], json!(["WebFetch(domain:docs.rs)"]));
    end(&stage);
}

#[test]
fn always_is_refused_when_no_narrow_rule_would_apply() {
    let stage = super::stage_without_tmux();
    team(&stage);
    stage.phalanx(&["rules", "ask", "Bash(git push:*)"]).expect(0);
    send_as_ada(&stage, &permission("wide", "rm -rf *"));
    send_as_ada(&stage, &permission("asked", "git push origin"));
    send_as_ada(
        &stage,
        &json!({"type": "plan_approval_request", "from": "ada", "planContent": "# P", "requestId": "plan"}),
    );
    for (id, why) in [
        ("wide", "no rule allows this and nothing else"),
        ("asked", "another rule has this asked every time"),
        ("plan", "a plan is approved once"),
    ] {
        let refused = stage.phalanx(&["answer", id, "--approve", "--always"]).expect(4);
        assert!(refused.stderr.contains(why), "{refused:?}");
        assert_eq!(request(&stage, id)["state"], json!("pending"));
    }
    let rules = stage.phalanx(&["--json", "rules"]).expect(0).json();
    assert_eq!(rules["team"]["allow"], json!(null));
    stage.phalanx(&["answer", "wide", "--reject", "--always"]).expect(2);
    end(&stage);
}

#[test]
fn member_without_an_open_request_is_named_with_those_that_have_one() {
    let stage = super::stage_without_tmux();
    team(&stage);
    stage.phalanx(&["spawn", "bob", "--backend", "pty"]).expect(0);
    let refused = |name: &str| stage.phalanx(&["answer", name, "--approve"]).expect(3).stderr;
    let said = refused("bob");
    assert!(said.contains("`bob` has no open request\n"), "{said}");
    assert!(said.contains("no member has one; `phalanx requests --all`"), "{said}");
    send_as_ada(&stage, &permission("perm-1", "make"));
    let said = refused("bob");
    assert!(said.contains("ada has one: `phalanx answer ada --approve`"), "{said}");
    // The hint works, and then ada has none.
    stage.phalanx(&["answer", "ada", "--approve"]).expect(0);
    let said = refused("ada");
    assert!(said.contains("`ada` has no open request"), "{said}");
    // A name that is none is an unknown id, and one in another case names the member.
    assert!(refused("zoe").contains("there is no request `zoe`"));
    assert!(refused("Bob").contains("bob"), "{}", refused("Bob"));
    end(&stage);
}
