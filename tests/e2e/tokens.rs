//! Tokens of members and agent leads where they give no right: in other teams, and after the end of
//! their run.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use testing::TestDatabase;

use crate::authority::agent_lead;
use crate::harness::{Run, Stage, binary, wait_for};
use crate::mcp::Client;
use crate::speaker::{Env, as_teammate, spawn, spawn_by};

/// Commands in a team, each with valid arguments. The first five worked for a member that had
/// ended.
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
    "review",
    "review answer R1 done",
    "review approve bob",
    "review check bob",
    "review comment bob late",
    "review conflicts bob",
    "review discard R1",
    "review drop bob",
    "review list",
    "review overview",
    "review pass bob",
    "review reopen R1 late",
    "review resolve R1",
    "review send bob",
    "review show bob",
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
    "worktree merge bob",
    "worktree remove bob",
    "worktree undo",
];

/// Runs a command line with these variables.
fn run(stage: &Stage, env: &Env, line: &str) -> Run {
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
    // It ends by itself: an end by phalanx takes its tools with it.
    let pid =
        stage.phalanx(&["--json", "status"]).expect(0).json()["members"][0]["pid"].to_string();
    let killed = std::process::Command::new("kill").arg(&pid).status();
    assert!(killed.expect("kill runs").success());
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

/// Creates `alpha` with ann and bob, which may create teams, and `beta` with bob. Returns ann's
/// variables.
fn two_teams(stage: &Stage) -> Env {
    let nested = "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\nmax_depth = 2\n\
                  [[member]]\nname = \"bob\"\n";
    stage.phalanx(&["up", &stage.file("alpha.toml", nested), "--detach"]).expect(0);
    let ann = spawn_by(stage, &Env::new(), &["-t", "alpha"], "ann");
    stage.phalanx(&["team", "create", "beta"]).expect(0);
    stage.phalanx(&["-t", "beta", "spawn", "bob", "--backend", "pty"]).expect(0);
    stage.phalanx(&["-t", "beta", "task", "create", "First"]).expect(0);
    ann
}

fn end(stage: &Stage, teams: &[&str]) {
    for team in teams {
        stage.phalanx(&["-t", team, "down", "--force"]).expect(0);
    }
    stage.assert_clean();
}

/// SEC-12: a member has no rights in a team that it did not create. Each attempt is in the journal
/// of that team.
#[test]
fn sec_12_member_is_refused_in_another_team() {
    let stage = Stage::new();
    let ann = two_teams(&stage);
    let before = content(&stage, "beta");
    let refusal = "`ann` of team `alpha` may not act in team `beta`";
    for line in VERBS {
        let line = match *line {
            "rm alpha --force" => "rm beta --force".to_owned(),
            line => format!("-t beta {line}"),
        };
        let refused = run(&stage, &ann, &line).expect(4);
        assert!(refused.stderr.contains(refusal), "{line}: {refused:?}");
    }
    let addressed = ["send bob@beta x", "kill bob@beta", "inbox bob@beta", "--as bob@beta status"];
    let as_lead = ["--as team-lead -t beta down", "--as bob -t beta inbox"];
    for line in addressed.iter().chain(&as_lead) {
        assert!(run(&stage, &ann, line).expect(4).stderr.contains(refusal), "{line}");
    }
    let mut command = stage.command(binary());
    command.envs(ann.iter().map(|(name, value)| (name, value))).args(["-t", "beta", "mcp"]);
    let mut client = Client::start_command(command);
    for (tool, arguments) in
        [("Status", json!({})), ("ReadInbox", json!({})), ("Shutdown", json!({"names": ["bob"]}))]
    {
        let message = client.refused(tool, arguments)["message"].to_string();
        assert!(message.contains(refusal), "{tool}: {message}");
    }
    for uri in ["team://tasks", "team://inbox", "team://members/bob/screen"] {
        let answer = client.request("resources/read", json!({ "uri": uri }));
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(refusal), "{uri}: {answer}");
    }
    client.end();
    let warned = warnings(&stage, "beta");
    assert_eq!(warned.len(), VERBS.len() + addressed.len() + as_lead.len() + 6, "{warned:#?}");
    for tried in [
        "end the team",
        "end `bob`",
        "read the mail of `bob`",
        "send messages to `bob`",
        "change the settings of the team",
    ] {
        let text = format!("`ann` of team `alpha` tried to {tried} and was refused");
        assert!(warned.contains(&text), "{text}: {warned:#?}");
    }
    assert_eq!(content(&stage, "beta"), before);
    assert_eq!(warnings(&stage, "alpha"), Vec::<String>::new());
    end(&stage, &["alpha", "beta"]);
}

/// SEC-12: what lists all teams shows a member its own.
#[test]
fn sec_12_lists_of_teams_leave_out_other_teams() {
    let stage = Stage::new();
    let ann = two_teams(&stage);
    let names = |document: Value, key: &str| -> Vec<String> {
        let teams = document.as_array().cloned().expect("a list");
        teams.iter().filter_map(|team| team[key].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(names(run(&stage, &ann, "--json ls").expect(0).json(), "name"), ["alpha"]);
    assert_eq!(names(run(&stage, &ann, "--json ps").expect(0).json(), "team"), ["alpha"]);
    let page = run(&stage, &ann, "--json").expect(0).json();
    assert_eq!(names(page["teams"].clone(), "name"), ["alpha"]);
    let checked = |env: &Env| run(&stage, env, "--json doctor").json()["teams"].clone();
    assert_eq!((checked(&ann), checked(&Env::new())), (json!(1), json!(2)));
    run(&stage, &ann, "doctor --fix").expect(4);
    stage.phalanx(&["-t", "alpha", "shutdown", "ann", "--force"]).expect(0);
    for line in
        ["ls", "team list", "ps", "doctor", "team create x", "-q", "host list", "store check"]
    {
        let refused = run(&stage, &ann, line).expect(4);
        assert!(refused.stderr.contains("a run that has ended"), "{line}: {refused:?}");
    }
    assert!(!stage.root().join("teams/x").exists());
    assert_eq!(warnings(&stage, "beta"), Vec::<String>::new());
    end(&stage, &["alpha", "beta"]);
}

/// SEC-12: a member leads the team that it created, and only that member does; the members of that
/// team have tokens of their own.
#[test]
fn sec_12_member_leads_a_team_that_it_created() {
    let stage = Stage::new();
    let ann = two_teams(&stage);
    run(&stage, &ann, "team create nested").expect(0);
    let creator =
        || run(&stage, &ann, "-t nested --json team show").expect(0).json()["creator"].take();
    let recorded = creator();
    assert_eq!((&recorded["team"], &recorded["member"]), (&json!("alpha"), &json!("ann")));
    for line in [
        "spawn cid --backend pty",
        "lead --detach",
        "team set max_members 9",
        "task create Nested",
        "send cid hello",
        "inbox cid --peek",
        "peek cid",
        "kill cid",
    ] {
        run(&stage, &ann, &format!("-t nested {line}")).expect(0);
    }
    assert_eq!(creator(), recorded, "a change of the settings keeps it");
    let cid = spawn_by(&stage, &ann, &["-t", "nested"], "cid");
    run(&stage, &cid, "task create Mine").expect(0);
    let refused = run(&stage, &cid, "-t alpha status").expect(4);
    assert!(refused.stderr.contains("`cid` of team `nested` may not act in team `alpha`"));
    let eve = spawn_by(&stage, &Env::new(), &["-t", "alpha"], "eve");
    run(&stage, &eve, "-t nested kill cid").expect(4);
    run(&stage, &ann, "-t nested down --force").expect(0);
    assert!(!stage.root().join("teams/nested").exists());
    end(&stage, &["alpha", "beta"]);
}

/// SEC-12: an agent lead may hand over to the lead of another team; all else there is refused.
#[test]
fn tmux_sec_12_agent_lead_only_hands_over_to_another_team() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["team", "create", "beta"]).expect(0);
    stage.phalanx(&["-t", "beta", "spawn", "bob", "--backend", "pty"]).expect(0);
    let lead = agent_lead(&stage);
    for line in ["team set max_members 9", "kill bob", "inbox bob", "down --force", "status"] {
        let refused = run(&stage, &lead, &format!("-t beta {line}")).expect(4);
        let said = "`team-lead` of team `alpha` may not act in team `beta`";
        assert!(refused.stderr.contains(said), "{line}: {refused:?}");
        assert!(refused.stderr.contains("phalanx handoff put beta"), "{line}: {refused:?}");
    }
    run(&stage, &lead, "handoff put beta --type note --body {}").expect(0);
    let received = stage.phalanx(&["-t", "beta", "--json", "handoff", "list"]).expect(0).json();
    assert_eq!(received[0]["from_team"], "alpha");
    assert_eq!(warnings(&stage, "beta").len(), 5);
    for team in ["alpha", "beta"] {
        stage.phalanx(&["-t", team, "down", "--force"]).expect(0);
    }
}

/// Runs `host serve` with these variables, and sends it a greeting for team `alpha` and a request
/// to end the run of bob.
fn serve(stage: &Stage, env: &Env, store: &str, bob: &Env) -> Run {
    let (_, incarnation) =
        bob.iter().find(|(name, _)| name == "PHALANX_INCARNATION").expect("a run");
    let hello = json!({
        "release": env!("CARGO_PKG_VERSION"), "team": "alpha", "store": store, "host": "here",
        "dir": stage.at("work"),
    });
    let ending = json!({ "name": "bob", "incarnation": incarnation, "mode": "Immediate" });
    let call = json!({ "id": 1, "request": { "stop_runs": [ending] } });
    let mut command = stage.command(binary());
    command.envs(env.iter().map(|(name, value)| (name, value))).args(["host", "serve"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("phalanx runs");
    // A server that refuses the greeting reads no further.
    let _ = writeln!(child.stdin.take().expect("piped"), "{hello}\n{call}");
    Run::from(child.wait_with_output().expect("it ends"))
}

/// SEC-12: the server of a host acts as the lead, which a member's token does not permit, in its
/// own team or in another one.
#[test]
fn sec_12_host_serve_decides_by_the_token() {
    let Some(database) = TestDatabase::create() else { return };
    let mut stage = Stage::new();
    stage.set_env("PHALANX_STORE", &database.url());
    stage.set_env("PHALANX_HOST", "here");
    for team in ["alpha", "beta"] {
        stage.phalanx(&["team", "create", team]).expect(0);
    }
    let spawned = |team, name| spawn_by(&stage, &Env::new(), &["-t", team], name);
    let (ann, bob, eve) =
        (spawned("alpha", "ann"), spawned("alpha", "bob"), spawned("beta", "eve"));
    let status = stage.phalanx(&["--json", "status", "-t", "alpha"]).expect(0).json();
    let members = status["members"].as_array().expect("members");
    let program =
        members.iter().find(|member| member["name"] == "bob").expect("bob")["pid"].to_string();
    let is_up = || {
        let asked = std::process::Command::new("kill").args(["-0", &program]).output();
        asked.expect("kill runs").status.success()
    };
    let of_another = "`eve` of team `beta` may not act in team `alpha`";
    for (env, said) in [(&ann, "its token belongs to `ann`"), (&eve, of_another)] {
        let refused = serve(&stage, env, &database.url(), &bob).expect(4);
        assert!(refused.stderr.contains(said), "{refused:?}");
        let reply: Value = serde_json::from_str(refused.stdout.trim()).expect("one reply");
        assert!(reply["result"]["Err"]["text"].to_string().contains(said), "{reply}");
        assert!(is_up());
    }
    let events = stage.phalanx(&["-t", "alpha", "--json", "events"]).expect(0).stdout;
    for text in [
        "`ann` tried to act as `team-lead` and was refused",
        "`eve` of team `beta` tried to use the hosts and the shared store and was refused",
    ] {
        assert!(events.contains(text), "{text}: {events}");
    }
    // Started through ssh, it has no token.
    let served = serve(&stage, &Env::new(), &database.url(), &bob).expect(0);
    assert!(!is_up(), "{served:?}");
    for team in ["alpha", "beta"] {
        stage.phalanx(&["-t", team, "down", "--force"]).expect(0);
    }
}
