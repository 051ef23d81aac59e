//! The access policy: allow and deny lists for the origins of requests, and the scopes of tasks.

use serde_json::{Value, json};

use crate::harness::{Run, Stage, binary, wait_for};

fn team(settings: &[&str]) -> Stage {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&[&["team", "set"], settings].concat()).expect(0);
    stage
}

const LISTS: [&str; 6] = [
    "access.allow_users",
    r#"["u1", "u2"]"#,
    "access.deny_users",
    r#"["u2"]"#,
    "access.deny_channels",
    r#"["irc"]"#,
];

#[test]
fn refused_origin_creates_no_task_and_is_journaled() {
    let stage = team(&LISTS);
    let create = |scope: &str| stage.phalanx(&["task", "create", "T", "--scope", scope]);
    create("user=u1,channel=web,chat=x").expect(0);
    let denied = create("user=u2,channel=web").expect(4);
    let line = "error: cannot create the task: user `u2` is denied by `access.deny_users`\n\
        hint: the lead can change the list: `phalanx team set access.deny_users '[…]'`\n";
    assert_eq!(denied.stderr, line);
    create("user=u3").expect(4);
    create("user=u1,channel=irc").expect(4);
    let unnamed = create("channel=web").expect(4);
    assert!(unnamed.stderr.contains("hint: name the origin of the request: `--scope user=NAME"));
    create("user=u2,channel=system").expect(0);
    create("user=u2,channel=teammate").expect(0);
    stage.phalanx(&["task", "create", "of the lead"]).expect(0);
    let by_env = |scope: &str, args: &[&str]| {
        let run = stage.command(binary()).args(args).env("PHALANX_SCOPE", scope).output();
        Run::from(run.expect("phalanx runs"))
    };
    by_env("user=u2", &["task", "create", "T"]).expect(4);
    let own = by_env("user=u1,chat=other", &["--json", "task", "list"]).expect(0).json();
    assert_eq!(own.as_array().map(Vec::len), Some(1), "{own}");
    assert!(
        by_env("user", &["task", "create", "T"])
            .expect(2)
            .stderr
            .contains("$PHALANX_SCOPE: write it as")
    );
    let tasks = stage.phalanx(&["--json", "task", "list"]).expect(0).json();
    assert_eq!(tasks.as_array().map(Vec::len), Some(4));
    let scope = json!({"user": "u1", "channel": "web", "chat": "x"});
    assert_eq!(tasks[0]["metadata"]["phalanx"]["scope"], scope);
    let warnings = stage.journal("demo").into_iter().filter(|e| e["event"] == "warning");
    assert_eq!(warnings.count(), 5);
}

#[test]
fn links_limit_assignment_messages_and_starts() {
    let stage = team(&["role.scout.access.deny_users", r#"["u2"]"#, "role.scout.prompt", "x"]);
    let spawn = |name: &str, scope: &str| {
        stage.phalanx(&["spawn", name, "--role", "scout", "--backend", "pty", "--scope", scope])
    };
    let refused = spawn("ann", "user=u2").expect(4);
    let line = "error: cannot start `ann`: user `u2` is denied by `role.scout.access.deny_users`\n";
    assert!(refused.stderr.starts_with(line), "{refused:?}");
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert!(!status["members"].to_string().contains("ann"), "{status}");
    spawn("ann", "user=u1").expect(0);
    let send = |scope: &str| stage.phalanx(&["send", "ann", "hello", "--scope", scope]);
    send("user=u1").expect(0);
    assert!(send("user=u2").expect(4).stderr.contains("cannot send to `ann`"));
    let note = ["handoff", "send", "ann", "--type", "note", "--body", "{}", "--scope", "user=u2"];
    assert!(stage.phalanx(&note).expect(4).stderr.contains("cannot send to `ann`"));
    let broadcast = ["--json", "broadcast", "hello", "--scope", "user=u2"];
    let sent = stage.phalanx(&broadcast).expect(0).json();
    assert_eq!((&sent["recipients"], &sent["skipped"]), (&json!([]), &json!(["ann"])), "{sent}");
    stage.phalanx(&["send", "ann", "hello"]).expect(0);
    let owned = ["task", "create", "T", "--owner", "ann", "--scope", "user=u2"];
    assert!(stage.phalanx(&owned).expect(4).stderr.contains("cannot assign the task to `ann`"));
    stage.phalanx(&["task", "create", "T", "--scope", "user=u2"]).expect(0);
    let update = ["task", "update", "1", "--owner", "ann"];
    assert!(stage.phalanx(&update).expect(4).stderr.contains("role.scout.access.deny_users"));
    let delegate = ["spawn", "ben", "--role", "scout", "--backend", "pty", "--task", "1"];
    assert!(stage.phalanx(&delegate).expect(4).stderr.contains("cannot assign the task to `ben`"));
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert!(!status["members"].to_string().contains("ben"), "{status}");
    stage.phalanx(&["team", "set", "--unset", "role.scout.access.deny_users"]).expect(0);
    stage.phalanx(&update).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn member_lists_of_a_manifest_apply_to_its_members() {
    let stage = Stage::without_tmux();
    let text = "[team]\nname = \"demo\"\nbackend = \"pty\"\nfinish = \"manual\"\n\
        [[member]]\nname = \"dev\"\nscale = { max = 2 }\naccess = { allow_users = [\"u1\"] }\n";
    stage.phalanx(&["up", &stage.file("team.toml", text), "--detach"]).expect(0);
    let create = |scope: &str| {
        let args = ["task", "create", "T", "--owner", "dev-1", "--scope", scope, "--", "true"];
        stage.phalanx(&args)
    };
    let refused = create("user=u2").expect(4);
    assert!(refused.stderr.contains("`member.dev.access.allow_users`"), "{refused:?}");
    create("user=u1").expect(0);
    stage.wait_event("demo", "task_completed", "1");
    // A worker runs the command of a task in the workspace of its conversation.
    let script = "echo $PHALANX_CHAT > \"$PHALANX_WORKSPACE/chat\"";
    let in_chat = ["task", "create", "T", "--scope", "user=u1,chat=x", "--", "bash", "-c", script];
    stage.phalanx(&in_chat).expect(0);
    stage.wait_event("demo", "task_completed", "2");
    let read = stage.phalanx(&["workspace", "read", "chat", "--chat", "x"]).expect(0);
    assert_eq!(read.stdout, "x\n");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn scopes_are_counted_and_filter_the_list() {
    let stage = team(&["max_members", "9"]);
    assert_eq!(stage.phalanx(&["--json", "task", "scopes"]).expect(0).json(), json!([]));
    for scope in ["user=u1,channel=web", "user=u1,channel=web", "user=u2,chat=x"] {
        stage.phalanx(&["task", "create", "T", "--scope", scope]).expect(0);
    }
    stage.phalanx(&["task", "create", "of the lead"]).expect(0);
    stage.phalanx(&["task", "complete", "1"]).expect(0);
    let scopes = stage.phalanx(&["--json", "task", "scopes"]).expect(0).json();
    let expected = json!([
        {"scope": {"user": "u1", "channel": "web"}, "tasks": 2, "open": 1},
        {"scope": {"user": "u2", "chat": "x"}, "tasks": 1, "open": 1},
    ]);
    assert_eq!(scopes, expected);
    let shown = stage.phalanx(&["task", "scopes"]).expect(0).stdout;
    assert_eq!(
        shown,
        "USER  CHANNEL  CHAT  TASKS  OPEN\nu1    web            2      1\nu2             x     1      1\n"
    );
    let ids = |scope: &str| -> Vec<Value> {
        let list = stage.phalanx(&["--json", "task", "list", "--all", "--scope", scope]).expect(0);
        list.json().as_array().expect("a list").iter().map(|task| task["id"].clone()).collect()
    };
    assert_eq!(ids("user=u1"), ["1", "2"]);
    assert_eq!(ids("chat=x"), ["3"]);
    assert_eq!(ids("user=u1,chat=x"), Vec::<Value>::new());
    for bad in ["", "user", "who=x", "chat=../x", "user=a,user=b"] {
        stage.phalanx(&["task", "create", "T", "--scope", bad]).expect(2);
    }
}

/// The lists of `spawn` hold for the member, whatever the settings say.
#[test]
fn lists_of_a_start_hold_for_its_member() {
    let stage = team(&["access.allow_users", r#"["u1", "u2"]"#]);
    let spawn = |name: &str, scope: &str| {
        let args = ["spawn", name, "--backend", "pty", "--allow-user", "u1", "--scope", scope];
        stage.phalanx(&[&args[..], &["--", "sleep", "300"]].concat())
    };
    let refused = spawn("ann", "user=u2").expect(4);
    let line = "error: cannot start `ann`: user `u2` is not in `spawn.allow_users`\n\
        hint: it was started with this list (`spawn --allow-user`, `--deny-user`)\n";
    assert_eq!(refused.stderr, line);
    spawn("ann", "user=u1").expect(0);
    let create =
        |scope: &str| stage.phalanx(&["task", "create", "T", "--owner", "ann", "--scope", scope]);
    create("user=u2").expect(4);
    create("user=u1").expect(0);
    stage.phalanx(&["kill", "ann"]).expect(0);
    stage.phalanx(&["resume", "ann"]).expect(0);
    create("user=u2").expect(4);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// What a member creates during a task comes from where the task came; events and the report say
/// so.
#[test]
fn origin_of_a_task_travels_with_what_follows_from_it() {
    let stage = team(&["max_members", "9"]);
    stage.add_native("demo", &["ann"]);
    let ann = |args: &[&str]| stage.phalanx(&[&["--as", "ann"], args].concat()).expect(0);
    let scope = "user=u1,channel=web,chat=x";
    stage.phalanx(&["task", "create", "Look", "--scope", scope]).expect(0);
    ann(&["task", "create", "of the member itself"]);
    ann(&["task", "claim", "1"]);
    ann(&["task", "create", "follows from it"]);
    ann(&["task", "create", "of another", "--scope", "user=u2"]);
    ann(&["task", "complete", "1", "--result", "found"]);
    let scope_of = |id: &str| {
        let task = stage.phalanx(&["--json", "task", "get", id]).expect(0).json();
        task["metadata"]["phalanx"]["scope"].clone()
    };
    let expected = json!({"user": "u1", "channel": "web", "chat": "x"});
    assert_eq!(scope_of("2"), Value::Null);
    assert_eq!((scope_of("3"), scope_of("4")), (expected, json!({"user": "u2"})));
    let of_first = stage.journal("demo").into_iter().filter(|event| event["task"] == "1");
    let events: Vec<Value> = of_first.collect();
    let is_of_scope = |event: &&Value| event["detail"]["scope"] == scope;
    for name in ["task_created", "task_claimed", "task_completed"] {
        assert!(
            events.iter().filter(is_of_scope).any(|event| event["event"] == name),
            "{events:?}"
        );
    }
    stage.phalanx(&["lead", "--detach"]).expect(0);
    wait_for("the report", || {
        let inbox = stage.phalanx(&["inbox", "--all", "--peek"]).expect(0).stdout;
        inbox.contains("#1 \"Look\" for user=u1,channel=web,chat=x: completed").then_some(())
    });
    stage.phalanx(&["down", "--force"]).expect(0);
}
