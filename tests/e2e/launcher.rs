//! The launcher, `phalanx exec SPEC`, on a real terminal with real programs. Checks records,
//! screens and the process table.

mod attaching;
mod bench;
mod cycles;
mod endings;
mod own_terminal;
mod user_terminal;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;

use bench::{
    Bench, CANARY, Launcher, MEMBER, OTHER_RUN, RUN, command_lines, groups, is_dead, nul_separated,
};
use nix::sys::signal::Signal;

#[test]
fn sp_01_start_record_names_processes_terminal_and_directory() {
    let bench = Bench::new("idle");
    let linked = bench.path("linked");
    std::os::unix::fs::symlink(bench.path("work"), &linked).expect("writable");
    let mut order = bench.sh("tty; pwd -P; echo ready; read line");
    order.cwd = linked;
    let mut launcher = bench.launch(&order);
    let start = bench.part("start");
    launcher.shows("ready");
    let program = bench.program();
    assert_eq!(start["launcher"]["pid"], launcher.pid());
    assert_eq!(start["launcher"]["start"], bench::start_of(launcher.pid()));
    assert_eq!(start["program"]["start"], bench::start_of(program));
    let (tty, cwd) =
        (start["tty"].as_str().expect("a name"), start["cwd"].as_str().expect("a path"));
    assert!(
        launcher.screen().starts_with(&format!("{tty}\r\n{cwd}\r\n")),
        "{tty} {cwd} {}",
        launcher.screen()
    );
    assert_eq!(cwd, fs::canonicalize(bench.path("work")).expect("it is there").to_string_lossy());
    assert!(start["at"].as_u64().expect("a time") > 1_700_000_000_000);
    let (group, foreground) = groups(program);
    assert_eq!(
        (group.as_str(), foreground.as_str()),
        (program.to_string().as_str(), group.as_str())
    );
    assert_eq!(bench.record()["from_the_future"], "kept");
    launcher.signal(Signal::SIGTERM);
    assert_eq!(launcher.code(), 128 + 15);
    let exit = bench.part("exit");
    assert_eq!((exit.get("code"), &exit["signal"]), (None, &serde_json::json!(15)), "{exit}");
    assert_eq!(exit.get("problem"), None);
}

#[test]
fn sec_06_spec_is_read_once_and_leaks_no_secret() {
    let bench = Bench::new("idle");
    let spec = bench.spec(&bench.sh("read line"));
    let mut launcher = Launcher::start(&spec);
    let program = bench.program();
    assert!(!spec.exists(), "unlinked before the program runs");
    assert!(nul_separated(program, "environ").contains(&format!("SECRET={CANARY}").into_bytes()));
    assert!(command_lines().iter().all(|line| !line.contains(CANARY)));
    let shown = nul_separated(launcher.pid(), "cmdline");
    assert_eq!(shown[1..], [b"exec".to_vec(), spec.clone().into_os_string().into_vec()]);
    let mut second = Launcher::start(&spec);
    assert_eq!(second.code(), 125);
    second.shows("there is no spec at");
    assert!(!is_dead(program));
    launcher.signal(Signal::SIGTERM);
    launcher.code();
}

#[test]
fn sp_12_standard_streams_are_a_terminal() {
    let bench = Bench::new("idle");
    let mut launcher =
        bench.launch(&bench.sh("test -t 0 && test -t 1 && test -t 2 && test -c /dev/tty; exit $?"));
    assert_eq!(launcher.code(), 0, "{}", launcher.screen());
}

#[test]
fn sp_03_en_01_en_03_program_gets_exactly_the_requested_environment() {
    let bench = Bench::new("idle");
    let mut order = bench.sh("read line");
    let long = "x".repeat(64 * 1024);
    for number in 0..200 {
        let value =
            if number % 20 == 0 { long.clone() } else { format!("a b\n#(x) $(y) ; '\" {number}") };
        order.env.push((format!("VAR_{number}").into(), value.into()));
    }
    order.env.push(("NO_TEXT".into(), OsString::from_vec(b"\xff\xfe".to_vec())));
    order.env.push(("EMPTY".into(), "".into()));
    let mut expected: Vec<Vec<u8>> = order
        .env
        .iter()
        .map(|(name, value)| {
            [name.clone().into_vec(), b"=".to_vec(), value.clone().into_vec()].concat()
        })
        .collect();
    expected.extend([
        b"TMUX=/tmp/sock,1,0".to_vec(),
        b"TMUX_PANE=%7".to_vec(),
        b"TERM=tmux-256color".to_vec(),
    ]);
    let mut launcher = bench.launch(&order);
    let mut found = nul_separated(bench.program(), "environ");
    found.sort();
    expected.sort();
    let missing: Vec<_> =
        expected.iter().filter(|word| !found.contains(word)).map(|w| w.len()).collect();
    let extra: Vec<_> = found.iter().filter(|word| !expected.contains(word)).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, extra {extra:?}");
    assert_eq!(found.len(), expected.len());
    launcher.signal(Signal::SIGTERM);
    launcher.code();
}

#[test]
fn sp_02_arguments_arrive_byte_for_byte() {
    let bench = Bench::new("idle");
    let hostile: [&[u8]; 14] = [
        b"sh",
        b"-c",
        b"read line",
        b";",
        b"#(touch pwned)",
        b"$(touch pwned)",
        b"`touch pwned`",
        b"'\"\\",
        b"two\nlines",
        b"\xff\xfe",
        b"",
        b"#{pane_id}",
        b"-",
        b"\x1b[31m",
    ];
    let mut order = bench.sh("");
    order.argv = hostile.iter().map(|word| OsString::from_vec(word.to_vec())).collect();
    let mut launcher = bench.launch(&order);
    assert_eq!(nul_separated(bench.program(), "cmdline"), hostile);
    launcher.signal(Signal::SIGTERM);
    launcher.code();
    assert_eq!(fs::read_dir(bench.path("work")).expect("it is there").count(), 0);
}

#[test]
fn sp_09_missing_program_is_recorded_and_shown() {
    let bench = Bench::new("starting");
    let mut launcher = bench.launch(&bench.order(&["no-such-program", "with", CANARY]));
    let exit = bench.part("exit");
    assert_eq!(exit["problem"], "program `no-such-program` is not in the PATH of the environment");
    assert_eq!(exit["code"], 127);
    assert_eq!(bench.record().get("start"), None);
    launcher.shows("phalanx: program `no-such-program` is not in the PATH");
    launcher.holds();
    launcher.signal(Signal::SIGTERM);
    assert_eq!(launcher.code(), 127);
    assert!(!launcher.screen().contains(CANARY));
}

#[test]
fn en_06_missing_directory_is_recorded_and_shown() {
    let bench = Bench::new("pending");
    let mut order = bench.sh("echo ran > /dev/tty");
    order.cwd = bench.path("nowhere");
    let mut launcher = bench.launch(&order);
    let problem = format!("directory {} does not exist", order.cwd.display());
    assert_eq!(bench.part("exit")["problem"], problem);
    launcher.shows("does not exist");
    launcher.holds();
    launcher.signal(Signal::SIGHUP);
    assert_eq!(launcher.code(), 126);
    assert!(!launcher.screen().contains("ran"));
}

#[test]
fn sp_09_terminal_of_an_early_exit_is_held_for_the_spawner() {
    for script in ["echo last words; exit 7", "echo last words; sleep 0.05; exit 7"] {
        let bench = Bench::new("starting");
        let mut launcher = bench.launch(&bench.sh(script));
        let exit = bench.part("exit");
        assert_eq!((&exit["code"], exit.get("signal")), (&serde_json::json!(7), None), "{exit}");
        assert!(bench.record().get("start").is_some());
        launcher.holds();
        launcher.shows("last words");
        launcher.signal(Signal::SIGTERM);
        assert_eq!(launcher.code(), 7);
    }
}

#[test]
fn sp_09_hold_ends_when_the_record_moves_on() {
    let moves: [fn(&Bench); 3] = [
        |bench| bench.put_record(RUN, "failed"),
        |bench| bench.put_record(OTHER_RUN, "starting"),
        |bench| fs::remove_file(bench.record_file()).expect("it is there"),
    ];
    for change in moves {
        let bench = Bench::new("starting");
        let mut launcher = bench.launch(&bench.sh("exit 3"));
        bench.part("exit");
        launcher.holds();
        change(&bench);
        assert_eq!(launcher.code(), 3);
    }
}

#[test]
fn sp_09_hold_times_out() {
    let bench = Bench::new("starting");
    let mut order = bench.sh("exit 3");
    order.linger_ms = 300;
    assert_eq!(bench.launch(&order).code(), 3);
}

#[test]
fn no_hold_after_the_member_is_ready() {
    for state in ["idle", "working", "shutdown_requested"] {
        let bench = Bench::new(state);
        assert_eq!(bench.launch(&bench.sh("exit 0")).code(), 0, "{state}");
        assert_eq!(bench.part("exit")["code"], 0);
    }
}

#[test]
fn launcher_of_a_stale_run_starts_nothing() {
    type Change = fn(&Bench);
    let stale: [(Change, &str); 4] = [
        (|bench| bench.put_record(OTHER_RUN, "starting"), "has a later run"),
        (|bench| bench.put_record(RUN, "killed"), "was over before it began: killed"),
        (|bench| fs::remove_file(bench.record_file()).expect("it is there"), "has no record"),
        (|bench| fs::remove_file(bench.team().join("config.json")).expect("it is there"), "crew"),
    ];
    for (change, said) in stale {
        let bench = Bench::new("starting");
        let spec = bench.spec(&bench.sh("echo ran > ran"));
        change(&bench);
        let mut launcher = Launcher::start(&spec);
        assert_eq!(launcher.code(), 125, "{said}");
        launcher.shows(said);
        assert!(!bench.path("work").join("ran").exists(), "{said}");
    }
}

#[test]
fn run_replaced_during_its_start_is_ended() {
    let bench = Bench::new("starting");
    // Blocks the launcher between the start of its program and its start record.
    let gate =
        fs::File::create(bench.ours("gates").join(format!("member-{MEMBER}"))).expect("writable");
    gate.lock().expect("nobody has it");
    let mut launcher =
        bench.launch(&bench.sh("trap '' HUP; echo $$ > pid; while :; do sleep 600; done"));
    let program = bench.number("pid");
    bench.put_record(OTHER_RUN, "starting");
    gate.unlock().expect("ours");
    assert_eq!(launcher.code(), 125);
    assert!(is_dead(program));
    let record = bench.record();
    assert_eq!(
        (record.get("start"), record.get("exit")),
        (None, None),
        "the later run's record is untouched"
    );
}

#[test]
fn launcher_does_not_recreate_a_deleted_team() {
    let bench = Bench::new("idle");
    let mut launcher = bench.launch(&bench.sh("read line"));
    bench.program();
    fs::remove_dir_all(bench.team()).expect("ours");
    launcher.signal(Signal::SIGTERM);
    assert_eq!(launcher.code(), 128 + 15);
    assert!(!bench.team().exists());
}

#[test]
fn launcher_leaves_sigint_to_the_program() {
    let bench = Bench::new("idle");
    let mut launcher = bench
        .launch(&bench.sh("trap 'echo interrupted' INT; echo ready; read line; read line; exit 4"));
    launcher.shows("ready");
    launcher.signal(Signal::SIGINT);
    launcher.shows("interrupted");
    assert!(launcher.is_running());
    launcher.signal(Signal::SIGTERM);
    assert_eq!(launcher.code(), 128 + 15);
}
