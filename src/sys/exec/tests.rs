//! Tests with real programs: streams, deadlines, leaks, start failures, detached processes.

use super::command::shown;
use super::*;
use crate::proc::Process;
use crate::testing::{Guarded, helper, is_dead, number_in, run_helper, state, until};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;

const LONG: Duration = Duration::from_secs(60);

fn sh(script: &str) -> ExecCommand {
    ExecCommand {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        ..ExecCommand::default()
    }
}

fn ended(script: &str) -> ExecOutput {
    run(&sh(script), LONG).expect("it ends by itself")
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").expect("Linux").count()
}

#[test]
fn both_streams_and_the_status_are_returned() {
    let output = ended("echo out; echo err >&2; exit 3");
    assert_eq!((output.code, output.signal), (Some(3), None));
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_slice()),
        (b"out\n".as_slice(), b"err\n".as_slice())
    );
    let output = ended("kill -9 $$");
    assert_eq!((output.code, output.signal), (None, Some(9)));
}

#[test]
fn stdin_is_fed_while_output_is_read() {
    let text: Vec<u8> = (0..3_000_000u32).map(|n| n.to_le_bytes()[0]).collect();
    let cat = ExecCommand { program: "cat".into(), stdin: text.clone(), ..ExecCommand::default() };
    assert_eq!(run(&cat, LONG).expect("it ends").stdout, text);
    let unread = ExecCommand { stdin: text, ..sh("echo enough") };
    assert_eq!(run(&unread, LONG).expect("it ends").stdout, b"enough\n");
    assert_eq!(ended("cat").stdout, b"", "no input is end of file, not a hang");
}

#[test]
fn streams_are_bounded_and_the_child_still_ends() {
    let output = ended("head -c 20000000 /dev/zero; echo done >&2");
    assert_eq!(output.stdout.len(), 16 << 20);
    assert_eq!(output.stderr, b"done\n");
}

#[test]
fn output_beyond_the_limit_kills_the_program() {
    let limits = |output| ExecLimits { deadline: LONG, output: Some(output), cancel: None };
    let writer = sh("head -c 20000000 /dev/zero");
    let output = run_within(&writer, &limits(20_000_000)).expect("it ends");
    assert_eq!(output.stdout.len(), 20_000_000);
    let error = run_within(&writer, &limits(19_999_999)).expect_err("one byte too many");
    assert!(matches!(error, ExecError::TooMuchOutput { limit: 19_999_999, .. }), "{error}");
    let error = run_within(&sh("exec yes"), &limits(1 << 20)).expect_err("it never ends");
    assert!(error.to_string().contains("more than 1 MiB"), "{error}");
}

#[test]
fn cancelled_program_is_killed_with_its_group() {
    let cancel = CancelToken::default();
    let limits = ExecLimits { deadline: LONG, output: None, cancel: Some(cancel.clone()) };
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("pid");
    let script = format!("sleep 300 & echo $! >'{}'; wait", file.display());
    let runner = thread::spawn(move || run_within(&sh(&script), &limits));
    let inner = number_in(&file);
    cancel.cancel();
    let error = runner.join().expect("no panic").expect_err("cancelled");
    assert!(matches!(error, ExecError::Cancelled { .. }), "{error}");
    until("the end of the group", || is_dead(inner));
    let limits = ExecLimits { deadline: LONG, output: None, cancel: Some(cancel) };
    let error = run_within(&sh("echo started >&2"), &limits).expect_err("cancelled before");
    assert!(matches!(error, ExecError::Cancelled { .. }), "{error}");
}

#[test]
fn env_and_cwd_are_as_given() {
    let env = vec![("ONLY".into(), "a b\n'".into()), ("PATH".into(), "/usr/bin:/bin".into())];
    let command =
        ExecCommand { env: Some(env), cwd: Some("/usr/bin".into()), ..sh("pwd; /usr/bin/env") };
    let text = String::from_utf8(run(&command, LONG).expect("it ends").stdout).expect("text");
    assert!(text.starts_with("/usr/bin\n") && text.contains("ONLY=a b\n'"), "{text}");
    assert!(!text.contains("HOME="), "{text}");
}

#[test]
fn missing_interpreter_is_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let reported = |name: &str, text: &[u8]| {
        let file = dir.path().join(name);
        fs::write(&file, text).expect("writable");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("own file");
        let program = OsString::from(format!("./{name}"));
        let cwd = Some(dir.path().to_owned());
        let command = ExecCommand { program, cwd, ..ExecCommand::default() };
        run(&command, LONG).map(|_| ()).map_err(|error| error.to_string())
    };
    let table: [(&str, &[u8], &str); 2] = [
        ("windows", b"#!/bin/sh\r\necho hi\r\n", "its interpreter `/bin/sh\\r`"),
        ("python", b"#! /no/such/python -u\nprint()\n", "its interpreter `/no/such/python`"),
    ];
    for (name, text, needs) in table {
        let expected = format!("cannot start ./{name}: {needs} does not exist");
        assert_eq!(reported(name, text), Err(expected));
    }
    assert_eq!(reported("good", b"#!/bin/sh\nexit 0\n"), Ok(()));
    // The shell, with another name for its loader, as a program for another C library has.
    let mut foreign = fs::read("/bin/sh").expect("readable");
    let loader = foreign.windows(5).position(|part| part == b"/ld-l").expect("a dynamic program");
    foreign[loader + 1] = b'x';
    let expected = "cannot start ./foreign: its dynamic loader does not exist";
    assert_eq!(reported("foreign", &foreign), Err(expected.to_owned()));
}

#[test]
fn start_failure_reports_its_cause() {
    let missing = ExecCommand { program: "no-such-program".into(), ..ExecCommand::default() };
    assert!(
        matches!(run(&missing, LONG), Err(ExecError::NotFound { program }) if program == "no-such-program")
    );
    let nowhere = ExecCommand { cwd: Some("/no/such/dir".into()), ..sh("true") };
    assert!(
        matches!(run(&nowhere, LONG), Err(ExecError::Directory { cwd, .. }) if cwd == Path::new("/no/such/dir"))
    );
    let nul = ExecCommand { args: vec!["a\0b".into()], ..sh("") };
    assert!(matches!(run(&nul, LONG), Err(ExecError::Io { .. })));
    let folder = ExecCommand { program: "/usr".into(), ..ExecCommand::default() };
    assert!(matches!(run(&folder, LONG), Err(ExecError::Io { .. })));
}

#[test]
fn the_deadline_kills_the_group_and_leaves_no_zombie() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let script = format!(
        "trap '' TERM HUP; echo $$ > {0}/leader; sleep 61 & echo $! > {0}/child; wait; sleep 62",
        dir.path().display()
    );
    let running = thread::spawn(move || run(&sh(&script), Duration::from_secs(5)));
    let (leader, child) =
        (number_in(&dir.path().join("leader")), number_in(&dir.path().join("child")));
    let error = running.join().expect("no panic").expect_err("it sleeps");
    assert!(matches!(error, ExecError::Deadline { after_ms: 5000, .. }), "{error}");
    assert!(error.to_string().contains("within 5000 ms"), "{error}");
    assert_eq!(state(leader), None, "reaped");
    until("the child is dead", || is_dead(child));
}

#[test]
fn daemon_that_holds_the_pipes_does_not_delay_the_result() {
    let output = ended("setsid sleep 63 & echo $!");
    let daemon: i32 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a pid");
    let daemon = Process::of(daemon).expect("still running");
    assert!(proc::signal(daemon, libc::SIGKILL));
}

#[test]
fn no_threads_and_no_descriptors_are_left() {
    // Runs in a process of its own, because other tests open and close descriptors in this one.
    run_helper(helper("exec::tests::helper_counts_what_is_left"));
}

#[test]
#[ignore = "helper process of no_threads_and_no_descriptors_are_left"]
fn helper_counts_what_is_left() {
    let open = || fs::read_dir("/proc/self/fd").expect("Linux").count();
    ended("true");
    let before = (threads(), open());
    for _ in 0..5 {
        ended("echo x; cat");
        assert!(run(&sh("sleep 64"), Duration::from_millis(10)).is_err());
    }
    assert_eq!((threads(), open()), before);
    assert!(proc::descendants(Process::current().pid).is_empty());
}

#[test]
fn a_blocked_signal_is_not_inherited() {
    let mut set = nix::sys::signal::SigSet::empty();
    set.add(Signal::SIGTERM);
    set.thread_block().expect("a valid set");
    let output = ended("kill -TERM $$; sleep 5");
    set.thread_unblock().expect("a valid set");
    assert_eq!(output.signal, Some(libc::SIGTERM));
}

#[test]
fn long_command_lines_are_truncated_in_messages() {
    let argv = vec![OsString::from("x".repeat(500))];
    assert_eq!(shown(&argv).chars().count(), 201);
    assert_eq!(shown(&["a".into(), "b c".into()]), "a b c");
}

/// Script that prints the shell's pid, session and parent, one per line.
const SELF_PORTRAIT: &str = "echo pid $$; echo sid $(ps -o sid= -p $$); echo ppid $(ps -o ppid= -p $$); \
                             echo over >&2; exec sleep 65";

#[test]
fn detached_process_leads_a_session_and_writes_its_log() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let log = dir.path().join("log");
    // A descriptor without close-on-exec, such as a careless parent leaves open.
    let leak = fs::File::open("/dev/zero").expect("readable");
    nix::fcntl::fcntl(&leak, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()))
        .expect("open");
    let args: [OsString; 2] = ["-c".into(), SELF_PORTRAIT.into()];
    let pid =
        spawn_detached(OsStr::new("sh"), &args, None, dir.path(), Some(&log)).expect("sh is there");
    let said = || fs::read_to_string(&log).unwrap_or_default();
    until("it has said all", || said().ends_with("over\n"));
    assert!(said().starts_with(&format!("pid {pid}\nsid {pid}\n")), "{}", said());
    assert!(
        !said().contains(&format!("ppid {}\n", std::process::id())),
        "it is not ours to reap: {}",
        said()
    );
    let open = || crate::fs::list(Path::new(&format!("/proc/{pid}/fd"))).expect("it sleeps");
    until("it has only the standard descriptors", || open() == ["0", "1", "2"]);
    let stdin = fs::read_link(format!("/proc/{pid}/fd/0")).expect("it sleeps");
    assert_eq!(stdin, Path::new("/dev/null"));
    assert_eq!(fs::metadata(&log).expect("exists").mode() & 0o777, 0o600);
    assert!(proc::signal(Process::of(pid).expect("it sleeps"), libc::SIGKILL));
    until("it has ended, whichever process reaps it", || is_dead(pid));
}

#[test]
fn detached_start_failure_reports_its_cause() {
    let missing = spawn_detached(OsStr::new("/no/such/program"), &[], None, Path::new("/"), None);
    assert!(matches!(missing, Err(ExecError::NotFound { .. })), "{missing:?}");
    let nowhere =
        spawn_detached(OsStr::new("true"), &[], Some(&[]), Path::new("/no/such/dir"), None);
    assert!(matches!(nowhere, Err(ExecError::Directory { .. })), "{nowhere:?}");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let script = dir.path().join("script");
    fs::write(&script, "#!/no/such/interpreter\n").expect("writable");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("own file");
    let broken = spawn_detached(script.as_os_str(), &[], None, Path::new("/"), None);
    assert!(matches!(broken, Err(ExecError::NoInterpreter { .. })), "{broken:?}");
}

#[test]
fn a_detached_process_survives_its_parent() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut command = helper("exec::tests::helper_detaches");
    let mut parent = Guarded::spawn(command.env("SYS_TEST_DIR", dir.path()));
    let pid = number_in(&dir.path().join("pid"));
    parent.0.kill().expect("ours");
    parent.0.wait().expect("ours");
    let process = Process::of(pid).expect("it goes on");
    assert!(proc::signal(process, libc::SIGKILL));
}

#[test]
#[ignore = "helper process of a_detached_process_survives_its_parent"]
fn helper_detaches() {
    let dir = PathBuf::from(std::env::var_os("SYS_TEST_DIR").expect("helpers are run by a test"));
    let pid = spawn_detached(OsStr::new("sleep"), &["66".into()], None, &dir, None)
        .expect("sleep is there");
    fs::write(dir.join("pid"), format!("{pid}\n")).expect("writable");
    super::super::clock::sleep(LONG);
}
