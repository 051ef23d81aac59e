//! Faults of hosts and leads: power-off, ssh killed within a spawn, two leads. The members of a
//! host that was declared lost change nothing when it comes back.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fault_stage::FaultStage;
use crate::harness::{Background, Run, binary, wait_for};

/// Time within which the database notices that a lead is gone, with ample reserve.
const TAKEOVER: Duration = Duration::from_secs(60);

/// Kills the ssh clients of the stage, with their masters. Returns how many.
fn kill_ssh(mark: &Path) -> usize {
    let mark = mark.to_string_lossy();
    let mut killed = 0;
    for entry in fs::read_dir("/proc").expect("proc").flatten() {
        let dir = entry.path();
        let is_ssh = fs::read_link(dir.join("exe")).is_ok_and(|exe| exe.ends_with("ssh"));
        let args = fs::read(dir.join("cmdline")).unwrap_or_default();
        if is_ssh && String::from_utf8_lossy(&args).contains(&*mark) {
            let pid = entry.file_name();
            let sent = Command::new("kill").arg("-9").arg(pid).output().expect("kill");
            killed += usize::from(sent.status.success());
        }
    }
    killed
}

/// Kills each ssh client of the stage until the spawn has ended. Returns how many.
fn end_without_ssh(spawn: Background, mark: &Path) -> (Run, usize) {
    thread::scope(|scope| {
        let end = scope.spawn(|| spawn.end());
        let mut killed = 0;
        while !end.is_finished() {
            killed += kill_ssh(mark);
        }
        (end.join().expect("it ends"), killed)
    })
}

/// Returns the pids of the processes on `h1` whose command line contains `text`.
fn processes_on_h1(stage: &FaultStage, text: &str) -> Vec<String> {
    let found = stage.on("h1", &format!("pgrep -f -- '[{}]{}'", &text[..1], &text[1..]));
    found.stdout.lines().map(str::to_owned).collect()
}

/// Starts a team under load whose member `ann` on `h1` works on a task that ends on `h2` only.
fn with_held_task() -> Option<FaultStage> {
    let mut stage = FaultStage::start()?;
    let port = stage.cluster(0).port();
    stage.create_team(&[port], "");
    stage.start_load();
    let held = stage.file("held");
    let line = format!("hostname >>{}; [ $(hostname) = h2 ] || sleep 100000", held.display());
    let args = ["task", "create", "held", "--owner", "ann", "--", "sh", "-c", &line];
    stage.phalanx(&args).expect(0);
    wait_for("the task to run", || (stage.lines("held") == ["h1"]).then_some(()));
    Some(stage)
}

/// Gives up the members on `h1`, whose task then runs on `h2`.
fn give_up_h1(stage: &FaultStage) {
    let lost = stage.phalanx(&["host", "lost", "h1", "--json"]).expect(0).json();
    let members: BTreeSet<&str> =
        lost["members"].as_array().expect("members").iter().filter_map(Value::as_str).collect();
    assert_eq!(members, BTreeSet::from(["ann", "sam"]));
    wait_for("the task to run on h2", || (stage.lines("held") == ["h1", "h2"]).then_some(()));
}

#[test]
fn host_that_comes_back_after_it_was_declared_lost_changes_nothing() {
    let Some(mut stage) = with_held_task() else { return };
    let name = "host cut off, declared lost, and back";
    stage.survives_without(name, &["sam", "h1"], |stage| {
        stage.hosts.perform("drop h1");
        give_up_h1(stage);
        let of_sam = |texts: Vec<String>| -> BTreeSet<String> {
            texts.into_iter().filter(|text| text.starts_with("sam-")).collect()
        };
        // A message that was stored before the cut is acknowledged after it.
        stage.wait_for_reader();
        let stored = of_sam(stage.received());
        let refused = of_sam(stage.results("no")).len();
        stage.hosts.perform("accept h1");
        wait_for("messages of the lost run to be refused", || {
            (of_sam(stage.results("no")).len() > refused + 3).then_some(())
        });
        stage.wait_for_reader();
        assert_eq!(of_sam(stage.received()), stored, "a lost run sends nothing");
        let sent = of_sam(stage.results("ok"));
        assert!(sent.is_subset(&stored), "a lost run sends nothing: {sent:?} {stored:?}");
        assert!(stage.lines("sam.log").iter().any(|line| line.contains("declared lost")));
    });
    assert_eq!(stage.lines("held"), ["h1", "h2"], "only its lost runner had begun it before");
    stage.phalanx(&["spawn", "ann", "--host", "h1"]).expect(0);
}

#[test]
fn powered_off_host_is_given_up_and_used_again() {
    let Some(mut stage) = with_held_task() else { return };
    let name = "host powered off, declared lost, and on again";
    stage.survives_without(name, &["sam", "h1"], |stage| {
        stage.hosts.perform("stop h1");
        for name in ["ann", "sam"] {
            let state = stage.member(name)["state"].clone();
            assert!(["working", "idle", "running"].contains(&state.as_str().expect("a state")));
        }
        give_up_h1(stage);
        stage.hosts.perform("start h1");
        // They get the ids that panes of the lost members had.
        stage.open_foreign_panes("h1");
    });
    stage.phalanx(&["spawn", "ann", "--host", "h1"]).expect(0);
    let text = format!("hostname >>{}", stage.file("again").display());
    stage
        .phalanx(&["task", "create", "again", "--owner", "ann", "--", "sh", "-c", &text])
        .expect(0);
    wait_for("a task to run on the host", || (stage.lines("again") == ["h1"]).then_some(()));
    assert_eq!((stage.lines("held").len(), stage.touched_hosts()), (2, 0));
}

#[test]
fn ssh_killed_at_each_step_of_a_spawn_leaves_one_run_or_none() {
    let Some(mut stage) = FaultStage::start() else { return };
    let port = stage.cluster(0).port();
    stage.create_team(&[port], "");
    stage.open_foreign_panes("h1");
    // The steps of a spawn are met on a fast machine and on a slow one.
    let began = Instant::now();
    stage.phalanx(&["spawn", "cy", "--host", "h1", "--", "sleep", "100000"]).expect(0);
    let step = began.elapsed() / 10;
    stage.phalanx(&["kill", "cy"]).expect(0);
    // The first spawn gets no connection at all.
    let mut delay = None;
    let (mut kills, mut kept, mut undone, mut twice) = (0, 0, 0, 0);
    let mut slowest = Duration::ZERO;
    let mark = stage.hosts.stage.at("");
    loop {
        // Each spawn begins with a connection of its own.
        kill_ssh(&mark);
        let marker = format!("marker-{}", kept + undone);
        let line = format!("exec -a {marker} sleep 100000");
        let args = ["-t", "demo", "spawn", "cy", "--host", "h1", "--", "bash", "-c", &line];
        let mut command = stage.command(binary());
        command.args(args);
        let spawn = Background::start(command);
        let (run, killed) = match delay {
            Some(delay) => {
                thread::sleep(delay);
                let killed = kill_ssh(&mark);
                (spawn.end(), killed)
            }
            None => end_without_ssh(spawn, &mark),
        };
        kills += killed;
        let ended = Instant::now();
        // What was begun on the host goes on without the connection.
        wait_for("the server of the host to end", || {
            processes_on_h1(&stage, "host serve").is_empty().then_some(())
        });
        let is_member = stage.member("cy") != Value::Null;
        let runs = processes_on_h1(&stage, &marker);
        slowest = slowest.max(ended.elapsed());
        twice += usize::from(runs.len() > 1);
        assert_eq!(is_member, runs.len() == 1, "after {delay:?}: {run:?} {runs:?}");
        assert!(is_member || run.code != 0, "after {delay:?}: {run:?}");
        let panes = stage.on("h1", "tmux list-panes -a | wc -l").stdout;
        assert_eq!(panes.trim(), if is_member { "2" } else { "1" }, "after {delay:?}: {run:?}");
        if is_member {
            kept += 1;
        } else {
            undone += 1;
            stage.phalanx(&args[2..]).expect(0);
            assert_eq!(processes_on_h1(&stage, &marker).len(), 1, "the same spawn works again");
        }
        stage.phalanx(&["kill", "cy"]).expect(0);
        if run.code == 0 && killed > 0 {
            break;
        }
        delay = Some(delay.unwrap_or_default() + step);
    }
    let touched = stage.touched_hosts();
    println!(
        "fault ssh killed at each step of a spawn | {kills} processes killed in {} spawns: \
         {kept} ran, {undone} undone, {twice} twice | foreign panes touched {touched} | \
         recovery {:.1} s",
        kept + undone,
        slowest.as_secs_f64()
    );
    assert!(undone > 0 && twice == 0 && touched == 0);
}

#[test]
fn second_lead_takes_over_from_one_that_lost_the_database() {
    let Some(mut stage) = FaultStage::start() else { return };
    let port = stage.cluster(0).port();
    stage.create_team(&[port], "");
    stage.phalanx(&["spawn", "ann", "--host", "h1"]).expect(0);
    let mut first = stage.command(binary());
    first.args(["-t", "demo", "lead"]);
    let first = Background::start(first);
    wait_for("the first lead", || {
        let status = stage.phalanx(&["status", "--json"]).expect(0).json();
        (status["lead"]["state"] == "running").then_some(())
    });
    let line = format!("{} -t demo lead --detach --json", binary());
    let refused = stage.on("h1", &line);
    assert_eq!(refused.code, 4, "{refused:?}");
    stage.hosts.perform("drop here");
    let cut = Instant::now();
    let taken = loop {
        let tried = stage.on("h1", &line);
        if tried.code == 0 {
            break tried;
        }
        let sessions = "select pid, state, client_addr, query from pg_stat_activity";
        let sessions = || stage.cluster(0).sql(sessions);
        assert!(cut.elapsed() < TAKEOVER, "{tried:?} {}", sessions());
    };
    let takeover = cut.elapsed();
    // The second lead removes the member; the first one finds that it has ended, too.
    stage.on("h1", &format!("{} -t demo kill ann", binary())).expect(0);
    stage.hosts.perform("accept here");
    let ended = first.end();
    let refusal = "another process has become the lead";
    assert!(ended.code == 4 && ended.stderr.contains(refusal), "{ended:?}");
    let status = stage.phalanx(&["status", "--json"]).expect(0).json();
    assert_eq!(status["lead"]["host"], "h1", "{status} {taken:?}");
    let events = stage.phalanx(&["events", "--json"]).expect(0).stdout;
    let count = |kind: &str| {
        let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|event| event["event"] == kind).count()
    };
    let counts = (count("lead_started"), count("member_left"), count("lead_ended"));
    assert_eq!(counts, (2, 1, 0), "{events}");
    println!(
        "fault two leads on two hosts, the first cut off | {} leads | 1 member removed by 1 lead | \
         takeover {:.1} s",
        counts.0,
        takeover.as_secs_f64()
    );
}
