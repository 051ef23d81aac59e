//! Services: members with a check whether they are ready, and what waits for them.

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

/// A server that becomes ready, in the way that its check expects, once `go` exists.
const SERVER: &str = "import os, socket, sys, time\n\
    while not os.path.exists('go'): time.sleep(0.02)\n\
    if sys.argv[1] == 'line': print('x' * 300 + ' listening on 80', flush=True)\n\
    if sys.argv[1] == 'run': open('up', 'w').close()\n\
    if sys.argv[1] == 'port':\n    s = socket.socket(); s.bind(('127.0.0.1', int(sys.argv[2]))); s.listen()\n\
    time.sleep(600)\n";

/// Returns a port that was free a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound").port()
}

fn member<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    status["members"].as_array()?.iter().find(|member| member["name"] == name)
}

/// Every kind of check on a backend: while it has not passed, the member is starting, and neither
/// the task nor the member that waits for it begins.
fn all_checks(stage: &Stage, backend: &str) {
    let port = free_port();
    stage.file("server.py", SERVER);
    let server = |name: &str, ready: &str, port: &str| {
        format!(
            "[[member]]\nname = \"{name}\"\nrun = [\"python3\", \"server.py\", \"{name}\", \"{port}\"]\nready = {ready}\n"
        )
    };
    // The number of the member makes the port whole.
    let (start, end) = (port / 10, port % 10);
    let first = if end == 0 { format!("\"{port}\"") } else { format!("\"{start}{{index}}\"") };
    let ports: String = (1..end)
        .map(|n| format!("[[member]]\nname = \"fill-{n}\"\nrun = [\"sleep\", \"600\"]\n"))
        .collect();
    let text = format!(
        "[team]\nname = \"serve\"\nmax_members = 20\n{ports}{}{}{}\
         [[member]]\nname = \"late\"\nafter = [\"member:line\", \"member:port\", \"member:run\"]\n\
         [[task]]\nkey = \"probe\"\nsubject = \"Probe\"\nowner = \"late\"\nafter = [\"member:port\"]\nrun = [\"true\"]\n",
        server("port", &format!("{{ port = {first} }}"), &port.to_string()),
        server("line", "{ line = \"listening on\" }", ""),
        server("run", "{ run = [\"test\", \"-e\", \"up\"] }", ""),
    );
    let manifest = stage.file("serve.toml", &text);
    stage.phalanx(&["up", &manifest, "--detach", "--keep", "--backend", backend]).expect(0);
    let starting = wait_for("three that start", || {
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        let starts = |name: &&str| member(&status, name).is_some_and(|m| m["state"] == "starting");
        ["line", "port", "run"].iter().all(starts).then_some(status)
    });
    assert_eq!(member(&starting, "late"), None, "it waits");
    let explained = stage.phalanx(&["explain", "port"]).expect(0).stdout;
    assert!(explained.contains(&format!("until port {port} accepts connections")), "{explained}");
    let probe = stage.phalanx(&["--json", "task", "get", "probe"]).expect(0).json();
    assert_eq!(probe["state"], json!("blocked"), "{probe}");
    let waits = starting["task_list"].as_array().into_iter().flatten().find(|t| t["id"] == "2");
    assert_eq!(
        waits.map(|task| &task["waits_for"]["kind"]),
        Some(&json!("readiness")),
        "{starting}"
    );
    std::fs::write(stage.at("work/go"), "").expect("go");
    stage.wait_event("serve", "task_completed", "1");
    let journal = stage.journal("serve");
    let at = |event: &str, name: &str| {
        journal
            .iter()
            .position(|e| e["event"] == event && e["member"] == name)
            .unwrap_or(usize::MAX)
    };
    for name in ["line", "port", "run"] {
        assert!(at("member_serves", name) < at("member_ready", "late"), "{name}: {journal:#?}");
    }
    wait_for("the end of the team", || {
        let ended = stage.journal("serve").iter().any(|e| e["event"] == "lead_ended");
        ended.then_some(())
    });
    stage.phalanx(&["down", "-t", "serve", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn sp_16_members_and_tasks_wait_until_services_on_ptys_are_ready() {
    all_checks(&Stage::new(), "pty");
}

#[test]
fn sp_16_members_and_tasks_wait_until_services_in_tmux_are_ready() {
    all_checks(&Stage::new(), "tmux");
}

#[test]
fn sp_16_service_that_ends_before_it_is_ready_fails_what_waits_for_it() {
    let stage = Stage::new();
    let text = "[team]\nname = \"gone\"\n[[member]]\nname = \"db\"\nrun = [\"sh\", \"-c\", \"exit 3\"]\n\
        ready = { line = \"ready\" }\nrestart = \"never\"\n\
        [[member]]\nname = \"web\"\nrun = [\"sleep\", \"600\"]\nafter = [\"member:db\"]\n\
        [[member]]\nname = \"ann\"\n\
        [[task]]\nkey = \"t\"\nsubject = \"Test\"\nafter = [\"member:db\"]\nrun = [\"true\"]\n";
    let text = text.replace("exit 3", "sleep 1; exit 3");
    let manifest = stage.file("gone.toml", &text);
    let run = stage.phalanx(&["up", &manifest, "--backend", "pty"]).expect(1);
    let said = run.stdout + &run.stderr;
    assert!(said.contains("db ended before it was ready: exit code 3"), "{said}");
    assert!(said.contains("blocked by #2"), "{said}");
    assert!(!said.contains("web"), "it is never started: {said}");
    stage.assert_clean();
}

/// SP-22: a service that a person restarts, or resumes after a failure, before it was ready.
#[test]
fn sp_22_service_that_is_started_again_is_awaited_by_its_dependants() {
    for (verb, fails) in [("restart", false), ("resume", true)] {
        let stage = Stage::new();
        let text = "[team]\nname = \"back\"\nfinish = \"manual\"\n[[member]]\nname = \"db\"\n\
            run = [\"sh\", \"-c\", \"until [ -e go ]; do [ ! -e fail ] || exit 3; sleep 0.05; done; \
            echo now ready; sleep 600\"]\nready = { line = \"ready\" }\nrestart = \"never\"\n\
            [[member]]\nname = \"web\"\nrun = [\"sleep\", \"600\"]\nafter = [\"member:db\"]\n";
        let manifest = stage.file("back.toml", text);
        stage.phalanx(&["up", &manifest, "--detach", "--backend", "pty"]).expect(0);
        if fails {
            std::fs::write(stage.at("work/fail"), "").expect("fail");
            stage.wait_event("back", "task_failed", "1");
            std::fs::remove_file(stage.at("work/fail")).expect("no fail");
        }
        stage.phalanx(&[verb, "db"]).expect(0);
        std::fs::write(stage.at("work/go"), "").expect("go");
        stage.wait_event("back", "task_completed", "1");
        wait_for("the member that waits", || {
            let journal = stage.journal("back");
            let web = journal.iter().any(|e| e["event"] == "member_ready" && e["member"] == "web");
            web.then_some(())
        });
        let failed = stage.journal("back").iter().any(|e| e["event"] == "task_failed");
        assert_eq!(failed, fails, "{verb}");
        stage.phalanx(&["down", "--force"]).expect(0);
        stage.assert_clean();
    }
}

#[test]
fn service_that_is_late_asks_for_attention_until_it_is_ready() {
    let stage = Stage::new();
    let text = "[team]\nname = \"slow\"\nfinish = \"manual\"\n[[member]]\nname = \"db\"\n\
        run = [\"sh\", \"-c\", \"until [ -e go ]; do sleep 0.05; done; echo now ready; sleep 600\"]\n\
        ready = { line = \"ready\", timeout = 1 }\n";
    let manifest = stage.file("slow.toml", text);
    stage.phalanx(&["up", &manifest, "--detach", "--backend", "pty"]).expect(0);
    let doing = |wanted: &str| {
        wait_for(wanted, || {
            let status = stage.phalanx(&["--json", "status"]).expect(0).json();
            member(&status, "db").filter(|db| db["state"] == wanted).cloned()
        })
    };
    let late = doing("unresponsive");
    let reason = "not ready after 1.0s, until it prints \"ready\": it has not been printed";
    assert_eq!(late["reason"], json!(reason));
    std::fs::write(stage.at("work/go"), "").expect("go");
    doing("running");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn service_that_always_restarts_comes_back_after_an_exit_with_0() {
    let stage = Stage::new();
    let text = "[team]\nname = \"again\"\nfinish = \"manual\"\n[[member]]\nname = \"log\"\nrestart = \"always\"\n\
        run = [\"sh\", \"-c\", \"until [ -e end ]; do sleep 0.05; done; exit 0\"]\n";
    let manifest = stage.file("again.toml", text);
    stage.phalanx(&["up", &manifest, "--detach", "--backend", "pty"]).expect(0);
    let count = |event: &str| stage.journal("again").iter().filter(|e| e["event"] == event).count();
    std::fs::write(stage.at("work/end"), "").expect("end");
    wait_for("its first end", || (count("member_left") == 1).then_some(()));
    wait_for("a planned restart", || {
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        (status["left"][0]["state"] == "restarting").then_some(())
    });
    std::fs::remove_file(stage.at("work/end")).expect("no end");
    wait_for("its second start", || (count("member_ready") == 2).then_some(()));
    // A requested end is not followed by a restart.
    stage.phalanx(&["shutdown", "log"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    assert_eq!(stage.journal("again").len(), 0, "deleted");
    stage.assert_clean();
}
