//! Changes to rules and modes of a running team: which programs are notified, and that no member
//! exceeds the lead's mode.

use serde_json::{Value, json};

use crate::harness::Stage;

fn texts(stage: &Stage, name: &str) -> Vec<Value> {
    let inbox = stage.phalanx(&["--json", "inbox", name, "--all", "--peek"]).expect(0).json();
    let texts =
        inbox.as_array().expect("entries").iter().filter_map(|entry| entry["text"].as_str());
    texts.filter_map(|text| serde_json::from_str(text).ok()).collect()
}

/// PM-06: an added rule applies immediately to all, and programs that know rules are notified in
/// wire format. An allow rule is held back from them if a deny rule of the same tool exists.
#[test]
fn pm_06_added_rule_is_sent_to_programs_that_know_rules() {
    let mut stage = Stage::new();
    stage.shadow("claude", "#!/bin/sh\nexec sleep 300\n");
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    assert!(stage.phalanx(&["rules"]).expect(0).stdout.contains("there are no rules"));
    for (name, profile) in [("ada", "claude"), ("bob", "worker")] {
        stage.phalanx(&["spawn", name, "--profile", profile, "--backend", "pty"]).expect(0);
    }
    let add = |list: &str, pattern: &str| {
        stage.phalanx(&["--json", "rules", list, pattern]).expect(0).json()
    };
    let changed = add("allow", "Edit(src/**), Read");
    assert_eq!(
        changed,
        json!({"added": ["Edit(src/**)", "Read"], "told": ["ada"], "kept_back": []})
    );
    let update = json!({"type": "team_permission_update", "permissionUpdate": {"type": "addRules",
        "rules": [{"toolName": "Edit", "ruleContent": "src/**"}, {"toolName": "Read"}],
        "behavior": "allow", "destination": "session"}, "toolName": "Edit"});
    assert_eq!(texts(&stage, "ada"), [update]);
    assert_eq!(add("allow", "Read")["added"], json!([]), "nothing new");
    add("deny", "Bash(git push:*)");
    assert_eq!(texts(&stage, "ada")[1]["permissionUpdate"]["behavior"], json!("deny"));
    let kept = add("allow", "Bash(git:*)");
    assert_eq!((&kept["told"], &kept["kept_back"]), (&json!([]), &json!(["Bash(git:*)"])));
    assert_eq!((texts(&stage, "ada").len(), texts(&stage, "bob").len()), (2, 0));
    let shown = stage.phalanx(&["rules"]).expect(0).stdout;
    assert!(
        shown.contains("deny") && shown.contains("Bash(git push:*)") && shown.contains("the team"),
        "{shown}"
    );
    // The rule decides later requests.
    let asked = json!({"type": "permission_request", "request_id": "p-1", "agent_id": "bob", "tool_name": "Bash",
        "input": {"command": "git push"}, "permission_suggestions": []});
    stage.phalanx(&["--as", "bob", "send", "team-lead", &asked.to_string()]).expect(0);
    let all = stage.phalanx(&["--json", "requests", "--all"]).expect(0).json();
    assert_eq!(all[0]["state"], json!("denied"), "{all}");
    stage.phalanx(&["--as", "ada", "rules", "allow", "Bash"]).expect(4);
    stage.phalanx(&["rules", "allow"]).expect(2);
    stage.phalanx(&["rules", "allow", "Bash("]).expect(2);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// ID-02: a program that takes whole tools only is held to patterns when it asks.
#[test]
fn id_02_use_outside_of_the_tools_of_a_member_is_denied() {
    let mut stage = Stage::new();
    stage.shadow("claude", "#!/bin/sh\nexec sleep 300\n");
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let spawn = ["spawn", "ada", "--profile", "claude", "--backend", "pty"];
    let tools = ["--allowed-tools", "Read,Bash(git:*)"];
    let spawned = stage.phalanx(&[&spawn[..], &tools[..]].concat()).expect(0);
    let warning = "`claude` is held to Bash(git:*) only where it asks";
    assert!(spawned.stderr.contains(warning), "{spawned:?}");
    let ask = |id: &str, command: &str| {
        let asked = json!({"type": "permission_request", "request_id": id, "agent_id": "ada", "tool_name": "Bash",
            "input": {"command": command}, "permission_suggestions": []});
        stage.phalanx(&["--as", "ada", "send", "team-lead", &asked.to_string()]).expect(0);
        let all = stage.phalanx(&["--json", "requests", "--all"]).expect(0).json();
        all.as_array().expect("a list").iter().find(|r| r["request_id"] == id).expect("filed")["state"]
            .clone()
    };
    assert_eq!((ask("p-1", "git status"), ask("p-2", "make")), (json!("pending"), json!("denied")));
    let denied = texts(&stage, "ada").iter().any(|text| {
        text["request_id"] == "p-2" && text.to_string().contains("only Bash(git:*) of its tools")
    });
    assert!(denied, "{:?}", texts(&stage, "ada"));
    // A list of tools grants nothing: a rule does.
    stage.phalanx(&["rules", "allow", "Bash(git:*), Bash(make)"]).expect(0);
    assert_eq!((ask("p-3", "git status"), ask("p-4", "make")), (json!("allowed"), json!("denied")));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// A removed rule no longer decides requests; removing an unknown rule is an error without effect.
/// Members that were notified of the rule are named, because no message revokes it.
#[test]
fn removing_a_rule_names_the_members_that_keep_it() {
    let mut stage = Stage::new();
    stage.shadow("claude", "#!/bin/sh\nexec sleep 300\n");
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    for (name, profile) in [("ada", "claude"), ("bob", "worker")] {
        stage.phalanx(&["spawn", name, "--profile", profile, "--backend", "pty"]).expect(0);
    }
    stage.phalanx(&["rules", "deny", "Bash(git push:*), Edit"]).expect(0);
    let ask = |id: &str| {
        let asked = json!({"type": "permission_request", "request_id": id, "agent_id": "bob", "tool_name": "Bash",
            "input": {"command": "git push"}, "permission_suggestions": []});
        stage.phalanx(&["--as", "bob", "send", "team-lead", &asked.to_string()]).expect(0);
        let all = stage.phalanx(&["--json", "requests", "--all"]).expect(0).json();
        all.as_array().expect("a list").iter().find(|r| r["request_id"] == id).expect("filed")["state"]
            .clone()
    };
    assert_eq!(ask("p-1"), json!("denied"));
    let missing =
        stage.phalanx(&["rules", "deny", "--remove", "Edit, Bash(git:*)"]).expect(3).stderr;
    assert!(missing.contains("the team has no rule `Bash(git:*)` in `deny`"), "{missing}");
    stage.phalanx(&["rules", "allow", "--remove", "Edit"]).expect(3);
    stage.phalanx(&["--as", "bob", "rules", "deny", "--remove", "Edit"]).expect(4);
    stage.phalanx(&["rules", "--remove"]).expect(2);
    let rules = |set: Value| json!({"team": set});
    assert_eq!(
        stage.phalanx(&["--json", "rules"]).expect(0).json(),
        rules(json!({"deny": ["Bash(git push:*)", "Edit"]}))
    );
    let removed =
        stage.phalanx(&["--json", "rules", "deny", "--remove", "Bash(git push:*)"]).expect(0);
    assert_eq!(removed.json(), json!({"removed": ["Bash(git push:*)"], "kept_by": ["ada"]}));
    assert!(removed.stderr.contains("keep until they are started again: ada"), "{removed:?}");
    assert_eq!(
        stage.phalanx(&["--json", "rules"]).expect(0).json(),
        rules(json!({"deny": ["Edit"]}))
    );
    assert_eq!(texts(&stage, "ada").len(), 1, "nothing is sent that says the opposite");
    assert_eq!(ask("p-2"), json!("pending"));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// PM-06: no member gets a more permissive mode than the lead, neither at its start nor while it
/// runs, nor by its role.
#[test]
fn pm_06_member_mode_cannot_exceed_the_leads_mode() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    let file = stage.root().join("teams/alpha/config.json");
    let text = std::fs::read_to_string(&file).expect("team file");
    let mut team: Value = serde_json::from_str(&text).expect("json");
    team["members"][0]["mode"] = json!("acceptEdits");
    std::fs::write(&file, team.to_string()).expect("team file");
    let agents = stage.root().join("agents");
    std::fs::create_dir_all(&agents).expect("dir");
    let role = "---\nname: boss\ndescription: d\npermissionMode: bypassPermissions\n---\n";
    std::fs::write(agents.join("boss.md"), role).expect("agent file");
    let above: [&[&str]; 4] = [
        &["spawn", "bob", "--mode", "bypassPermissions"],
        &["spawn", "bob", "--mode", "bypassPermissions", "--dry-run"],
        &["spawn", "bob", "--role", "boss"],
        &["mode", "ada", "bypassPermissions"],
    ];
    for words in above {
        let refused = stage.phalanx(words).expect(4).stderr;
        assert!(
            refused.contains(
                "`bypassPermissions` is more permissive than the lead's own mode, `acceptEdits`"
            ),
            "{refused}"
        );
    }
    for words in [["spawn", "bob", "--mode", "acceptEdits"], ["spawn", "eve", "--mode", "plan"]] {
        stage.phalanx(&words).expect(0);
    }
    stage.phalanx(&["mode", "--all", "default"]).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
