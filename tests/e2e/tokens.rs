//! Tokens that give no right: those of members and leads that have ended.

use serde_json::{Value, json};

use crate::authority::agent_lead;
use crate::harness::{Stage, binary, wait_for};
use crate::mcp::Client;
use crate::speaker::{Env, as_teammate, spawn};

/// Commands in a team, each with valid arguments. The first five worked for a member that had ended.
const VERBS: &[&str] = &[
    "task create Late",
    "task claim 1",
    "task complete 1",
    "workspace write late.md",
    "peek bob",
    "adopt",
    "answer p-1@bob --approve",
    "ask permission --tool Bash --input {}",
    "attach bob",
    "brief",
    "broadcast late",
    "down",
    "down --force",
    "events",
    "explain bob",
    "focus bob",
    "handoff get 1",
    "handoff list",
    "handoff put beta --type note --body {}",
    "handoff send bob --type note --body {}",
    "hide bob",
    "host lost build",
    "inbox",
    "inbox bob",
    "keys bob Enter",
    "kill bob",
    "lead --detach",
    "logs bob",
    "mode bob plan",
    "plan submit -",
    "popup",
    "requests",
    "restart bob",
    "resume",
    "retry 1",
    "rm alpha --force",
    "rules",
    "rules allow Bash(ls)",
    "send bob late",
    "show bob",
    "shutdown bob",
    "spawn eve",
    "status",
    "task approve 1",
    "task export",
    "task get 1",
    "task graph",
    "task import x.md",
    "task list",
    "task remind 1 late",
    "task scopes",
    "task search late",
    "task update 1 --subject Late",
    "team delete",
    "team set",
    "team set notify []",
    "team show",
    "team upgrade",
    "type bob late",
    "wait --until idle",
    "workspace delete x",
    "workspace list",
    "workspace path",
    "workspace read x",
    "worktree diff bob",
    "worktree list",
    "worktree remove bob",
];

/// Runs a command line with these variables.
fn run(stage: &Stage, env: &Env, line: &str) -> crate::harness::Run {
    as_teammate(stage, env, &line.split(' ').collect::<Vec<_>>())
}

/// Returns the texts of the warnings in a journal.
fn warnings(stage: &Stage, team: &str) -> Vec<String> {
    let of_warning = |event: &Value| event["event"] == "warning";
    let warnings = stage.journal(team).into_iter().filter(of_warning);
    warnings.filter_map(|event| event["detail"]["text"].as_str().map(str::to_owned)).collect()
}

/// Starts the tools of `phalanx mcp` with these variables.
fn tools(stage: &Stage, env: &Env) -> Client {
    let mut command = stage.command(binary());
    command.envs(env.iter().map(|(name, value)| (name, value))).arg("mcp");
    Client::start_command(command)
}

/// The parts of a team that refused commands could have changed.
fn content(stage: &Stage, team: &str) -> Value {
    let read = |args: &[&str]| stage.phalanx(&[&["-t", team, "--json"], args].concat()).expect(0);
    let members: Vec<Value> = read(&["status"]).json()["members"]
        .as_array()
        .expect("members")
        .iter()
        .map(|member| json!([member["name"], member["state"]]))
        .collect();
    json!([
        members,
        read(&["task", "list", "--all"]).json(),
        read(&["team", "set"]).json(),
        read(&["rules"]).json(),
        read(&["workspace", "list"]).json()["files"],
        read(&["inbox", "--peek", "--all"]).json().as_array().map(Vec::len),
        read(&["inbox", "bob", "--peek", "--all"]).json().as_array().map(Vec::len),
    ])
}

/// SEC-12: the token of a member's run is worth nothing once the run has ended, also while no later
/// run has replaced its record.
#[test]
fn sec_12_token_of_an_ended_member_is_refused_everywhere() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let (ann, _bob) = (spawn(&stage, "ann"), spawn(&stage, "bob"));
    stage.phalanx(&["task", "create", "First"]).expect(0);
    run(&stage, &ann, "status").expect(0);
    stage.phalanx(&["shutdown", "ann", "--force"]).expect(0);
    let before = content(&stage, "alpha");
    for line in VERBS {
        let refused = run(&stage, &ann, line).expect(4);
        assert!(refused.stderr.contains("a run that has ended"), "{line}: {refused:?}");
    }
    run(&stage, &ann, "--as team-lead down").expect(4);
    let mut client = tools(&stage, &ann);
    for tool in ["Status", "TaskList", "ReadInbox"] {
        assert_eq!(client.refused(tool, json!({}))["kind"], "refused", "{tool}");
    }
    for uri in ["team://status", "team://tasks", "team://inbox", "team://members/bob/screen"] {
        let answer = client.request("resources/read", json!({ "uri": uri }));
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("a run that has ended"), "{uri}: {answer}");
    }
    client.end();
    let warned = warnings(&stage, "alpha");
    assert_eq!(warned.len(), VERBS.len() + 1 + 3 + 4, "{warned:#?}");
    let text = "a run that has ended tried to act as `ann` and was refused";
    assert_eq!(warned.iter().filter(|warning| *warning == text).count(), warned.len() - 1);
    assert_eq!(content(&stage, "alpha"), before);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// SEC-12: a member that has ended by itself is refused before a lead has taken notice of it.
#[test]
fn sec_12_token_is_refused_as_soon_as_the_program_has_exited() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let ann = spawn(&stage, "ann");
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let program = status["members"][0]["pid"].as_i64().expect("a program").to_string();
    let ended = std::process::Command::new("kill").arg(&program).status();
    assert!(ended.expect("kill runs").success());
    stage.wait_event("alpha", "member_exited", "ann");
    let refused = run(&stage, &ann, "task create Late").expect(4);
    assert!(refused.stderr.contains("a run that has ended"), "{refused:?}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// SEC-12: a client that watches a resource with the token of a run that ends is refused once, and
/// its watch ends: the journaled refusal is itself a change of the team.
#[test]
fn sec_12_watch_of_a_resource_ends_with_the_members_run() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let ann = spawn(&stage, "ann");
    let mut client = tools(&stage, &ann);
    client.request("resources/subscribe", json!({ "uri": "team://tasks" }));
    stage.phalanx(&["task", "create", "First"]).expect(0);
    client.notification("notifications/resources/updated");
    stage.phalanx(&["shutdown", "ann", "--force"]).expect(0);
    wait_for("the refusal", || (!warnings(&stage, "alpha").is_empty()).then_some(()));
    // Changes of the team after the refusal, which another client sees.
    let mut other = tools(&stage, &Env::new());
    other.request("resources/subscribe", json!({ "uri": "team://tasks" }));
    for subject in ["Second", "Third", "Fourth"] {
        stage.phalanx(&["task", "create", subject]).expect(0);
        other.notification("notifications/resources/updated");
    }
    assert_eq!(warnings(&stage, "alpha").len(), 1);
    client.end();
    other.end();
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// SEC-12: the token of an agent lead ends with its lead, also if that was killed.
#[test]
fn tmux_sec_12_token_of_a_dead_agent_lead_is_refused() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    spawn(&stage, "bob");
    let lead = agent_lead(&stage);
    run(&stage, &lead, "team set max_members 9").expect(0);
    let pid = stage.phalanx(&["--json", "ls"]).expect(0).json()[0]["lead_pid"].to_string();
    let killed = std::process::Command::new("kill").args(["-9", &pid]).status();
    assert!(killed.expect("kill runs").success());
    wait_for("the end of the lead", || {
        let teams = stage.phalanx(&["--json", "ls"]).expect(0).json();
        teams[0]["lead_pid"].is_null().then_some(())
    });
    let before = content(&stage, "alpha");
    for line in VERBS {
        let refused = run(&stage, &lead, line).expect(4);
        assert!(refused.stderr.contains("a run that has ended"), "{line}: {refused:?}");
    }
    assert_eq!(warnings(&stage, "alpha").len(), VERBS.len());
    assert_eq!(content(&stage, "alpha"), before);
    stage.phalanx(&["-t", "alpha", "down", "--force"]).expect(0);
}
