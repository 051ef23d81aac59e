//! Ids and names as people write them: the beginning of an id, a member in place of its request,
//! and verbs without the argument that they need.

use serde_json::json;

use crate::harness::{NATIVE, Stage};

/// Creates team `alpha` with the members ann and bob.
fn team() -> Stage {
    let stage = Stage::without_tmux();
    stage.profile("agent", NATIVE);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let members = ["spawn", "ann", "bob", "--profile", "agent", "--backend", "pty"];
    stage.phalanx(&[&members[..], &["--", "sleep", "300"]].concat()).expect(0);
    stage
}

fn ask(stage: &Stage, from: &str, id: &str) {
    let request = json!({"type": "permission_request", "request_id": id, "agent_id": from,
        "tool_name": "Bash", "input": {"command": "make"}, "permission_suggestions": []});
    stage.phalanx(&["--as", from, "send", "team-lead", &request.to_string()]).expect(0);
}

fn down(stage: &Stage) {
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// Each verb with the id of a request or a handoff takes the whole id or the beginning of one.
#[test]
fn beginning_of_an_id_is_enough_if_only_one_begins_so() {
    let stage = team();
    ["req-1", "req-12", "other-3"].iter().for_each(|id| ask(&stage, "ann", id));
    stage.phalanx(&["team", "create", "beta"]).expect(0);
    let body =
        r#"{"status":"proposed","endpoints":[{"method":"POST","path":"/login"}],"phase":"01"}"#;
    let put = ["handoff", "put", "alpha", "-t", "beta", "--type", "api_contract", "--body", body];
    stage.phalanx(&put).expect(0);
    let listed = stage.phalanx(&["--json", "handoff", "list", "-t", "alpha"]).expect(0).json();
    let handoff = listed[0]["id"].as_str().expect("an id").to_owned();

    let run = |args: &[&str]| stage.phalanx(&[&["-t", "alpha", "--json"], args].concat());
    let shown = |id: &str| run(&["requests", "show", id]).expect(0).json()["request_id"].clone();
    assert_eq!(["req-1", "req-12", "oth"].map(shown), ["req-1", "req-12", "other-3"]);
    let got = run(&["handoff", "get", &handoff[..handoff.len() - 1]]).expect(0).json();
    assert_eq!(got["id"], handoff.as_str());
    for (args, code, message) in [
        (&["requests", "show", "req"][..], 2, "2 requests begin with `req`"),
        (&["answer", "req", "--approve"], 2, "2 requests begin with `req`"),
        (&["requests", "show", "x"], 3, "there is no request `x`"),
        (&["answer", "x", "--approve"], 3, "there is no request `x`"),
        (&["handoff", "get", "x"], 3, "there is no handoff `x`"),
        (&["handoff", "get", ""], 3, "there is no handoff ``"),
    ] {
        let error = run(args).expect(code).json()["error"].clone();
        assert_eq!(error["message"], message, "{args:?}");
        if code == 2 {
            assert_eq!(error["hint"], "write one of: req-1, req-12", "{args:?}");
        }
    }
    assert_eq!(run(&["answer", "req-1", "--approve"]).expect(0).json()["request_id"], "req-1");
    // Of the two that begin so, one is still open.
    assert_eq!(run(&["answer", "req", "--reject"]).expect(0).json()["request_id"], "req-12");
    stage.phalanx(&["team", "delete", "-t", "beta"]).expect(0);
    down(&stage);
}

#[test]
fn member_stands_for_its_only_open_request() {
    let stage = team();
    let answer = |name: &str| stage.phalanx(&["--json", "answer", name, "--approve"]);
    answer("ann").expect(3);
    ask(&stage, "ann", "req-1");
    ask(&stage, "bob", "ann-request");
    assert_eq!(answer("ann").expect(0).json()["request_id"], "req-1", "not the beginning of an id");
    ask(&stage, "ann", "req-2");
    ask(&stage, "ann", "req-3");
    let error = answer("ann").expect(2).json()["error"].clone();
    assert_eq!(
        (&error["message"], &error["hint"]),
        (&json!("`ann` has 2 open requests"), &json!("write one of: req-2, req-3"))
    );
    // The id of a request that is the name of a member.
    ask(&stage, "bob", "ann");
    assert_eq!(answer("ann").expect(0).json()["from"], "bob");
    // A member answers the request for its own shutdown.
    stage.phalanx(&["shutdown", "bob", "--no-wait"]).expect(0);
    let agreed = stage.phalanx(&["--json", "--as", "bob", "answer", "bob", "--approve"]).expect(0);
    assert!(agreed.json()["request_id"].as_str().is_some_and(|id| id.starts_with("shutdown-")));
    down(&stage);
}

/// Ids of tasks are numbers: `1` is never the beginning of `10`.
#[test]
fn task_id_is_never_a_beginning() {
    let stage = team();
    for nth in 1..=10 {
        stage.phalanx(&["task", "create", &format!("T{nth}")]).expect(0);
    }
    stage.phalanx(&["task", "delete", "1", "--force"]).expect(0);
    for verb in [
        &["task", "get", "1"][..],
        &["task", "claim", "1"],
        &["task", "complete", "1"],
        &["task", "cancel", "1"],
        &["task", "release", "1"],
        &["task", "assign", "1", "ann"],
        &["task", "update", "1", "--subject", "x"],
        &["task", "comment", "1", "x"],
        &["task", "delete", "1"],
        &["retry", "1"],
    ] {
        let run = stage.phalanx(verb).expect(3);
        assert!(run.stderr.contains("1"), "{run:?}");
    }
    let left = stage.phalanx(&["--json", "task", "get", "10"]).expect(0).json();
    assert_eq!((&left["subject"], &left["status"]), (&json!("T10"), &json!("pending")));
    down(&stage);
}

#[test]
fn name_of_a_member_is_never_a_beginning() {
    let stage = team();
    for verb in [
        &["kill", "an"][..],
        &["shutdown", "an"],
        &["shutdown", "an", "--force"],
        &["restart", "an"],
        &["type", "an", "x"],
        &["keys", "an", "Enter"],
        &["hide", "an"],
        &["show", "an"],
        &["focus", "an"],
        &["peek", "an"],
        &["logs", "an"],
        &["explain", "an"],
        &["send", "an", "x"],
    ] {
        stage.phalanx(verb).expect(3);
    }
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let states: Vec<_> = ["ann", "bob"]
        .iter()
        .zip(status["members"].as_array().expect("a list"))
        .map(|(name, member)| (member["name"] == *name, member["pid"].is_number()))
        .collect();
    assert_eq!(states, [(true, true); 2]);
    down(&stage);
}

/// Each verb that needs a known name asks for one, and lists the possible ones.
#[test]
fn verb_without_its_name_lists_the_possible_ones() {
    let stage = team();
    stage.phalanx(&["task", "create", "T"]).expect(0);
    ask(&stage, "ann", "req-1");
    stage.phalanx(&["requests"]).expect(0);
    for (words, message, hint) in [
        (&["type"][..], "`type` needs a member and a text; members: ann, bob", "type ann TEXT"),
        (&["peek"], "`peek` needs a member; members: ann, bob", "peek ann"),
        (&["kill"], "`kill` needs a member; members: ann, bob", "kill ann"),
        (&["send"], "`send` needs a member; members: ann, bob", "send ann [TEXT]"),
        (
            &["task", "assign", "1"],
            "`task assign` needs a member; members: ann, bob",
            "task assign 1 ann",
        ),
        (
            &["task", "assign"],
            "`task assign` needs a task and a member; tasks: 1; members: ann, bob",
            "task assign 1 ann",
        ),
        (&["retry"], "`retry` needs a task; tasks: 1", "retry 1"),
        (
            &["requests", "show"],
            "`requests show` needs a request; requests: req-1",
            "requests show req-1",
        ),
        (
            &["answer"],
            "`answer` needs `--approve`, `--reject` or `--answer TEXT`",
            "answer --approve",
        ),
        (&["rm"], "`rm` needs a team; teams: alpha", "rm alpha"),
        (&["-t", "alpha", "hide"], "`hide` needs a member; members: ann, bob", "-t alpha hide ann"),
        (
            &["template", "show"],
            "`template show` needs a template; templates: review, feature, bugs, docs, research",
            "template show review",
        ),
        (
            &["handoff", "get"],
            "`handoff get` needs a handoff; there are no handoffs",
            "handoff get ID",
        ),
    ] {
        let error = stage.phalanx(words).expect(2);
        assert_eq!(error.stderr, format!("error: {message}\nhint: phalanx {hint}\n"), "{words:?}");
        assert_eq!(error.stdout, "", "{words:?}");
    }
    let profiles = stage.phalanx(&["--json", "profile", "show"]).expect(2);
    let error = profiles.json()["error"].clone();
    assert_eq!(
        (&error["kind"], &error["hint"]),
        (&"usage".into(), &"phalanx --json profile show acp".into())
    );
    let said = error["message"].as_str().expect("a message");
    assert!(
        said.starts_with("`profile show` needs a profile; profiles: acp, agent, aider"),
        "{said}"
    );
    let unknown = stage.phalanx(&["-t", "nothing", "explain"]).expect(2).stderr;
    assert_eq!(
        unknown,
        "error: `explain` needs a member; team `nothing` does not exist\nhint: teams: alpha\n"
    );
    down(&stage);
}

#[test]
fn verb_without_its_name_and_without_a_team_says_how_to_make_one() {
    let stage = Stage::without_tmux();
    for verb in ["send", "explain"] {
        let said = stage.phalanx(&[verb]).expect(2).stderr;
        assert!(said.starts_with(&format!("error: `{verb}` needs a ")), "{said}");
        assert!(
            said.contains("; there is no team\nhint: create one: `phalanx spawn NAME`, "),
            "{said}"
        );
    }
}
