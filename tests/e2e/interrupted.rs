//! Signals of a shutdown, of `systemctl stop`, `docker stop` or a logout, which reach agents,
//! launchers and the lead in any order: the team stays and goes on later (CR-19).

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::agent_lead::UserTerminal;
use crate::harness::{Stage, binary, wait_for};

/// A program that ends with 0 when it is signalled, as Claude Code does. Its starts are counted.
const AGENT: &str = "#!/bin/sh
trap 'exit 0' TERM HUP
echo up >>\"$(dirname \"$0\")/up-$PHALANX_AGENT_NAME\"
while :; do sleep 0.05; done
";

/// The order in which the processes are signalled.
#[derive(Debug, Clone, Copy)]
enum Order {
    AgentsFirst,
    LeadFirst,
    Together,
}

/// The lead: `up` in a process of its own, a lead in the background, or an agent.
#[derive(Debug, Clone, Copy)]
enum Lead {
    Up,
    Background,
    Agent,
}

fn pid_of(value: &Value) -> String {
    value.as_i64().unwrap_or_else(|| panic!("no pid: {value}")).to_string()
}

fn is_gone(pid: &str) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

fn signal(name: &str, pids: &[String]) {
    // A process may have ended meanwhile.
    let mut kill = Command::new("kill");
    kill.arg(format!("-{name}")).args(pids).output().expect("kill");
}

fn record(stage: &Stage, team: &str, name: &str) -> Value {
    let path = stage.root().join(format!("teams/{team}/phalanx/members/{name}.json"));
    serde_json::from_slice(&fs::read(path).expect("a record")).expect("JSON")
}

fn interrupt(lead: Lead, sent: &str, order: Order, backend: &str) {
    let case = format!("{lead:?} {sent} {order:?} {backend}");
    let terminal = UserTerminal::new();
    let (stage, team) = (&terminal.stage, "alpha");
    let agent = stage.at("agent").display().to_string();
    stage.script(&stage.at("agent"), AGENT);
    let up = match lead {
        Lead::Up => {
            stage.phalanx(&["down"]).expect(0);
            let member = |name| format!("[[member]]\nname = \"{name}\"\nrun = [\"{agent}\"]\n");
            let head =
                format!("[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"{backend}\"\n");
            let manifest = stage.file("team.toml", &(head + &member("ann") + &member("ben")));
            Some(stage.start(&["up", &manifest]))
        }
        Lead::Background => {
            stage.phalanx(&["lead", "--detach"]).expect(0);
            None
        }
        Lead::Agent => {
            terminal.lead("", &agent);
            None
        }
    };
    if let Some(up) = &up {
        // It leads once all have started.
        up.wait_for_message("watch it: ");
    } else {
        wait_for("the lead", || {
            stage.phalanx(&["--json", "status"]).expect(0).json()["lead"].is_object().then_some(())
        });
        stage.phalanx(&["spawn", "ann", "ben", "--backend", backend, "--", &agent]).expect(0);
    }
    let starts = |name: &str| {
        fs::read_to_string(stage.at(&format!("up-{name}"))).unwrap_or_default().lines().count()
    };
    wait_for(&format!("{case}: the programs"), || {
        (starts("ann") == 1 && starts("ben") == 1).then_some(())
    });
    let status = wait_for("both members", || {
        let status = stage.phalanx(&["--json", "status"]);
        let status = (status.code == 0).then(|| status.json())?;
        let is_led = status["lead"]["pid"].is_i64();
        (is_led && status["members"].as_array()?.len() == 2).then_some(status)
    });
    let lead_pid = pid_of(&status["lead"]["pid"]);
    // A launcher records the start of its program after it.
    let records = wait_for("both starts", || {
        let records = ["ann", "ben"].map(|name| record(stage, team, name));
        records.iter().all(|one| one["start"]["program"]["pid"].is_i64()).then_some(records)
    });
    let agents: Vec<String> =
        records.iter().map(|one| pid_of(&one["start"]["program"]["pid"])).collect();
    let launchers: Vec<String> =
        records.iter().map(|one| pid_of(&one["start"]["launcher"]["pid"])).collect();
    let rest = [&launchers[..], std::slice::from_ref(&lead_pid)].concat();
    match order {
        Order::AgentsFirst => {
            signal(sent, &agents);
            for agent in &agents {
                wait_for("the end of a program", || is_gone(agent).then_some(()));
            }
            signal(sent, &rest);
        }
        Order::LeadFirst => {
            signal(sent, std::slice::from_ref(&lead_pid));
            signal(sent, &agents);
        }
        Order::Together => signal(sent, &[&agents[..], &rest].concat()),
    }
    if let Some(up) = up {
        let run = up.end().expect(130);
        assert!(run.stdout.contains("phalanx resume --all -t alpha"), "{case}: {run:?}");
    } else {
        wait_for(&format!("{case}: the end of the lead"), || is_gone(&lead_pid).then_some(()));
    }
    for name in ["ann", "ben"] {
        let record = record(stage, team, name);
        // The lead may have seen the end of a signalled launcher before its own signal.
        let has_failed = record["state"] == "failed" && record["exit"]["signal"].is_i64();
        assert!(has_failed || record["state"] == "disappeared", "{case}: {record}");
    }
    let page = stage.phalanx(&[]).expect(0).stdout;
    assert!(page.contains("alpha has ended without a request: ann, ben\n"), "{case}: {page}");
    stage.phalanx(&["resume", "--all"]).expect(0);
    wait_for(&format!("{case}: both again"), || {
        (starts("ann") == 2 && starts("ben") == 2).then_some(())
    });
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(status["lead"]["state"], "running", "{case}: {status}");
    terminal.end();
}

/// CR-19: what is left of a team whose lead was killed decides what plain `phalanx` offers with `y`:
/// to start the members again, to lead those that live, or to delete it.
#[test]
fn tmux_cr_19_plain_phalanx_offers_to_go_on_with_what_is_left() {
    for (left, offer) in [
        ("nobody runs", "start it again, with its conversations? [y/N]"),
        ("ann runs", "lead them in the background? [y/N]"),
        ("no member", "delete its files? [y/N]"),
    ] {
        let terminal = UserTerminal::new();
        let stage = &terminal.stage;
        stage.phalanx(&["lead", "--detach"]).expect(0);
        let lead = pid_of(&stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"]);
        let mut pids = vec![lead];
        if left != "no member" {
            stage.phalanx(&["spawn", "ann", "--backend", "pty", "--", "sleep", "300"]).expect(0);
        }
        if left == "nobody runs" {
            let start = record(stage, "alpha", "ann")["start"].clone();
            pids.extend(["launcher", "program"].map(|process| pid_of(&start[process]["pid"])));
        }
        signal("KILL", &pids);
        pids.iter().for_each(|pid| wait_for("its end", || is_gone(pid).then_some(())));
        let line =
            format!("{}; echo $? >{}; exec sleep 1000", binary(), stage.at("exit").display());
        let size = ["-x", "80", "-y", "24"];
        let session = [&["new-session", "-d", "-s", "person"][..], &size, &[&line]].concat();
        terminal.person(&session);
        wait_for(&format!("{left}: {offer}"), || terminal.screen().contains(offer).then_some(()));
        terminal.type_in("y\r");
        if left == "no member" {
            assert_eq!(terminal.exit(), "0\n", "{left}: {}", terminal.screen());
            assert!(!stage.root().join("teams/alpha").exists());
            terminal.close_terminal();
            stage.assert_clean();
            continue;
        }
        wait_for(&format!("{left}: the dashboard"), || {
            terminal.screen().contains("led for").then_some(())
        });
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        assert_eq!(status["lead"]["state"], "running", "{left}: {status}");
        assert_eq!(status["members"].as_array().map(Vec::len), Some(1), "{left}: {status}");
        terminal.end();
    }
}

fn interrupt_all(backend: &str) {
    for lead in [Lead::Up, Lead::Background, Lead::Agent] {
        for sent in ["TERM", "HUP"] {
            for order in [Order::AgentsFirst, Order::LeadFirst, Order::Together] {
                interrupt(lead, sent, order, backend);
            }
        }
    }
}

#[test]
fn tmux_cr_19_shutdown_in_any_order_keeps_teams_of_ptys() {
    interrupt_all("pty");
}

#[test]
fn tmux_cr_19_shutdown_in_any_order_keeps_teams_of_panes() {
    interrupt_all("tmux");
}
