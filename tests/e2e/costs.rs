//! Costs that must not grow: the system calls of each verb in teams and on boards of several sizes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::gear;
use crate::harness::{Run, Stage, binary, wait_for, which};

/// The calls that are counted: those on files and those that start something.
const COUNTED: &str =
    "trace=%file,execve,read,write,pread64,getdents64,flock,fsync,fdatasync,syncfs";
const MEMBERS: [usize; 3] = [4, 16, 64];
const TASKS: [usize; 2] = [100, 10_000];
/// Calls that say nothing about the growth: a buffer that is full, a retry.
const SLACK: usize = 40;

/// The cost of a verb: at most so many system calls more for each member and for 1,000 tasks.
/// `docs/dev/measurements.md` has the same numbers.
struct Shape {
    verb: &'static [&'static str],
    member: usize,
    thousand_tasks: usize,
}

const fn shape(verb: &'static [&'static str], member: usize, thousand_tasks: usize) -> Shape {
    Shape { verb, member, thousand_tasks }
}

/// `ps` is left out: it looks at the teams of all processes on the machine.
///
/// A task is a `stat` where the whole board is read, and a name in a list of some hundred where only
/// its number matters.
const SHAPES: &[Shape] = &[
    shape(&["--version"], 0, 0),
    shape(&["send", "w0", "hello"], 0, 0),
    shape(&["inbox"], 0, 0),
    shape(&["events", "-n", "10"], 0, 0),
    shape(&["task", "get", "1"], 0, 0),
    shape(&["task", "create", "another"], 0, 8),
    shape(&["task", "update", "1", "--priority", "1"], 0, 1_100),
    shape(&["task", "list"], 0, 1_100),
    shape(&["--json", "task", "list"], 0, 1_100),
    shape(&["status"], 5, 1_100),
];

/// System calls more for each member that ends by `down --force`, of the command and of the lead. 92
/// and 147 were measured on an idle machine, and up to 130 and 200 on a busy one, where the ends
/// arrive in more and smaller parts. When each end read all records, they were 220 to 460.
const ENDED: [(&str, usize); 2] = [("the command", 250), ("the lead", 260)];

/// Counts the lines of a trace. Not counted is what depends on the machine and the moment: processes
/// of others, terminals, and notifications.
fn count(trace: &Path) -> usize {
    let trace = fs::read(trace).expect("a trace");
    let text = String::from_utf8_lossy(&trace);
    let is_call = |line: &&str| !line.contains("resumed>") && line.contains('(');
    let others = ["/proc/", "anon_inode:", "<pipe:", "<socket:", "/dev/"];
    text.lines()
        .filter(is_call)
        .filter(|line| !others.iter().any(|part| line.contains(part)))
        .count()
}

fn traced(stage: &Stage, verb: &[&str]) -> (Run, usize) {
    let trace = stage.at("trace");
    let mut command = stage.command("strace");
    command.args(["-f", "-qq", "-y", "-e", COUNTED, "-o"]).arg(&trace).arg(binary()).args(verb);
    (Run::from(command.output().expect("strace")), count(&trace))
}

fn cost(stage: &Stage, verb: &[&str]) -> usize {
    let (run, calls) = traced(stage, verb);
    run.expect(0);
    calls
}

fn start(stage: &Stage, members: usize) -> i64 {
    let entry = |nth| format!("[[member]]\nname = \"w{nth}\"\nrun = [\"sleep\", \"900\"]\n");
    let mut text = format!(
        "[team]\nname = \"cost\"\nfinish = \"manual\"\nbackend = \"pty\"\nmax_members = {members}\n"
    );
    // A worker that can be sent a message.
    text.push_str("[[member]]\nname = \"w0\"\n");
    text.extend((1..members).map(entry));
    let file = stage.file("team.toml", &text);
    let up = stage.phalanx(&["--json", "up", &file, "--detach"]).expect(0).json();
    up["lead_pid"].as_i64().expect("a lead")
}

/// Fills the board up to `count` tasks, as another program writes them, and has it indexed. The time
/// in which a file counts as just changed is over then: until it is, a part of the files is missing
/// from the index, which is not written again for less than 1/32 of them.
fn fill_board(stage: &Stage, count: usize) {
    let folder = stage.root().join("tasks/cost");
    let index = stage.root().join("teams/cost/phalanx/board/index");
    for id in 1..=count {
        let path = folder.join(format!("{id}.json"));
        if !path.exists() {
            let task = json!({ "id": id.to_string(), "subject": "t", "description": "",
                "status": "pending", "blocks": [], "blockedBy": [] });
            fs::write(path, task.to_string()).expect("writable");
        }
    }
    let written = Instant::now();
    wait_for("files that have not just changed", || {
        (written.elapsed() > Duration::from_secs(4)).then_some(())
    });
    if count >= 512 {
        // What was indexed before then.
        let _ = fs::remove_file(&index);
        stage.phalanx(&["task", "list"]).expect(0);
        assert!(cost(stage, &["task", "list"]) < count + 500, "the index has all tasks");
    }
}

fn check(what: &str, more: usize, (of, allowed): (usize, usize), costs: &[usize]) {
    assert!(
        more <= of * allowed + SLACK,
        "{what}: {more} system calls more for {of} more, at most {allowed} for each: {costs:?}"
    );
}

/// Returns true, and reports the test, where strace is missing.
fn is_skipped(stage: &Stage) -> bool {
    let is_missing = which("strace", stage.path()).is_none();
    if is_missing {
        gear::skip("strace is missing");
    }
    is_missing
}

/// PF-14: the system calls of a verb grow with the tasks of the board as documented, not faster.
#[test]
fn pf_14_cost_of_verbs_grows_with_tasks_as_documented() {
    let stage = Stage::new();
    if is_skipped(&stage) {
        return;
    }
    start(&stage, MEMBERS[0]);
    let mut by_tasks: Vec<Vec<usize>> = SHAPES.iter().map(|_| Vec::new()).collect();
    for tasks in TASKS {
        fill_board(&stage, tasks);
        for (shape, costs) in SHAPES.iter().zip(&mut by_tasks) {
            costs.push(cost(&stage, shape.verb));
        }
    }
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
    for (shape, costs) in SHAPES.iter().zip(&by_tasks) {
        let verb = shape.verb.join(" ");
        println!("{verb}: {costs:?} with {TASKS:?} tasks");
        let more = costs[1].saturating_sub(costs[0]);
        check(&verb, more, (TASKS[1] / 1000, shape.thousand_tasks), costs);
    }
}

/// PF-14: the same with the members of the team.
#[test]
fn pf_14_cost_of_verbs_grows_with_members_as_documented() {
    let mut by_members: Vec<Vec<usize>> = SHAPES.iter().map(|_| Vec::new()).collect();
    let mut ended: Vec<Vec<usize>> = ENDED.iter().map(|_| Vec::new()).collect();
    for members in MEMBERS {
        let stage = Stage::new();
        if is_skipped(&stage) {
            return;
        }
        let lead = start(&stage, members);
        stage.phalanx(&["task", "create", "first"]).expect(0);
        for (shape, costs) in SHAPES.iter().zip(&mut by_members) {
            costs.push(cost(&stage, shape.verb));
        }
        let trace = stage.at("lead.trace");
        let mut tracer = attach(&stage, lead, &trace);
        ended[0].push(cost(&stage, &["down", "--force"]));
        assert!(tracer.wait().expect("strace").success());
        ended[1].push(count(&trace));
        stage.assert_clean();
    }
    let of_verbs = SHAPES.iter().map(|shape| (shape.verb.join(" "), shape.member));
    let of_down = ENDED.iter().map(|(who, member)| (format!("down --force, {who}"), *member));
    for ((what, member), costs) in of_verbs.chain(of_down).zip(by_members.iter().chain(&ended)) {
        println!("{what}: {costs:?} with {MEMBERS:?} members");
        for step in [0, 1] {
            let more = costs[step + 1].saturating_sub(costs[step]);
            check(&what, more, (MEMBERS[step + 1] - MEMBERS[step], member), costs);
        }
    }
}

/// Attaches a tracer to the lead, and returns once it traces.
fn attach(stage: &Stage, lead: i64, trace: &Path) -> Child {
    let mut command: Command = stage.command("strace");
    command
        .args(["-f", "-qq", "-y", "-e", COUNTED, "-o"])
        .arg(trace)
        .args(["-p", &lead.to_string()]);
    let tracer = command.stderr(Stdio::null()).spawn().expect("strace");
    wait_for("the tracer", || {
        let status = fs::read_to_string(format!("/proc/{lead}/status")).expect("the lead runs");
        let is_traced = |line: &&str| line.starts_with("TracerPid:") && !line.ends_with("\t0");
        status.lines().find(is_traced).map(drop)
    });
    tracer
}
