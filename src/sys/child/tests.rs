//! Tests of the launcher's parts. The launcher runs in helper processes, because it takes over the
//! signals, children and terminal of its process.

use super::*;
use crate::exec::{self, ExecCommand};
use crate::proc::{self, end_tree, signal};
use crate::testing::{Guarded, PATIENCE, helper, is_dead, number_in, until};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::sys::wait::{WaitStatus, waitpid};

fn sh(script: &str, dir: &Path) -> Program {
    Program {
        path: "/bin/sh".into(),
        argv: ["sh", "-c", script, "sh"]
            .into_iter()
            .map(OsString::from)
            .chain([dir.into()])
            .collect(),
        cwd: dir.to_owned(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into()), ("ODD".into(), "a b'\n#(x)".into())],
    }
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A launcher in a session of its own without a terminal. It runs `script` with its directory as
/// `$1`.
struct Launcher {
    dir: tempfile::TempDir,
    _process: Guarded,
}

impl Launcher {
    fn start(script: &str, forward: &str) -> Launcher {
        let dir = dir();
        let test = helper("child::tests::helper_launches");
        let mut command = Command::new("setsid");
        command.arg("--wait").arg(test.get_program()).args(test.get_args());
        command
            .env("SYS_TEST_DIR", dir.path())
            .env("SYS_TEST_SCRIPT", script)
            .env("SYS_TEST_FORWARD", forward);
        let process = Guarded::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()));
        Launcher { dir, _process: process }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn pid(&self) -> i32 {
        number_in(&self.file("launcher"))
    }

    fn signal(&self, sig: i32) {
        let process = Process::of(self.pid()).expect("the launcher lives as long as its child");
        assert!(signal(process, sig));
    }

    /// Waits for the launcher's report of its child's end: exit code, signal, number of survivors,
    /// unreaped children.
    fn exit(&self) -> String {
        until("the launcher reports an exit", || text(&self.file("exit")).ends_with('\n'));
        text(&self.file("exit")).trim().to_owned()
    }
}

/// Forks, because libtest's main thread would receive the signals that are meant for the launcher.
#[test]
#[ignore = "helper process of the tests with a Launcher"]
#[expect(unsafe_code, reason = "a launcher needs a process with one thread")]
fn helper_launches() {
    // SAFETY: the harness's only other thread waits for this test and holds no lock.
    match unsafe { libc::fork() } {
        -1 => panic!("no fork: {}", io::Error::last_os_error()),
        0 => {
            launch();
            // SAFETY: ends the copy without running the harness's handlers twice.
            unsafe { libc::_exit(0) }
        }
        pid => {
            let status = waitpid(Pid::from_raw(pid), None).expect("our child");
            assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}");
        }
    }
}

fn launch() {
    let variable = |name: &str| std::env::var(name).expect("helpers are run by a test");
    let (dir, forward) = (PathBuf::from(variable("SYS_TEST_DIR")), variable("SYS_TEST_FORWARD"));
    proc::become_subreaper();
    let supervisor = Supervisor::new().expect("a queue");
    let child = spawn_foreground(&sh(&variable("SYS_TEST_SCRIPT"), &dir)).expect("sh is there");
    fs::write(dir.join("launcher"), format!("{}\n", std::process::id())).expect("writable");
    let mut seen = Vec::new();
    let mut on_signal = |sig| {
        seen.push(sig);
        fs::write(dir.join("seen"), format!("{seen:?}\n")).expect("writable");
        match forward.as_str() {
            "swallow" => Forward::Swallow,
            _ => Forward::Pass,
        }
    };
    let (handle, jobs) = LoopHandle::new();
    let no_op = ExecCommand { program: "true".into(), ..ExecCommand::default() };
    let long = handle.clone();
    let job = thread::spawn(move || handle.run(move || exec::run(&no_op, PATIENCE)));
    // Outlives the child, and must not hold up the end of the launcher.
    let sleep = sh("sleep 600", &dir);
    let long = thread::spawn(move || long.run_program(sleep, PATIENCE));
    let exit = supervisor.supervise(child, &mut on_signal, &jobs, Duration::from_millis(300));
    drop(jobs);
    let ended = long.join().expect("no panic");
    assert!(matches!(ended, LoopExit::LoopEnded), "{ended:?}");
    let ran = job.join().expect("no panic").map(|output| output.expect("it ran").code);
    // The child may end before the job is taken.
    assert!(matches!(ran, None | Some(Some(0))), "{ran:?}");
    let survivors = end_tree(Process::current(), false, Duration::from_millis(300));
    let left = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    let facts = format!("{:?} {:?} {} {left:?}\n", exit.code, exit.signal, survivors.len());
    fs::write(dir.join("exit.new"), facts).expect("writable");
    fs::rename(dir.join("exit.new"), dir.join("exit")).expect("writable");
}

#[test]
fn exit_code_or_signal_of_the_child_is_returned() {
    assert_eq!(Launcher::start("exit 7", "pass").exit(), "Some(7) None 0 \"\"");
    assert_eq!(Launcher::start("kill -9 $$", "pass").exit(), "None Some(9) 0 \"\"");
    // A real-time signal, which nix has no name for.
    assert_eq!(Launcher::start("kill -40 $$", "pass").exit(), "None Some(40) 0 \"\"");
}

#[test]
fn signals_are_passed_to_the_childs_group() {
    let script = "trap 'echo usr1 >> $1/got' USR1; trap 'echo int >> $1/got' INT; trap 'exit 5' TERM; \
                  echo 1 > $1/ready; while :; do sleep 0.01; done";
    let launcher = Launcher::start(script, "pass");
    number_in(&launcher.file("ready"));
    launcher.signal(libc::SIGUSR1);
    until("USR1 arrived", || text(&launcher.file("got")).contains("usr1"));
    launcher.signal(libc::SIGINT);
    until("INT arrived", || text(&launcher.file("got")).contains("int"));
    launcher.signal(libc::SIGTERM);
    assert_eq!(launcher.exit(), "Some(5) None 0 \"\"");
    assert_eq!(text(&launcher.file("seen")).trim(), "[10, 2, 15]");
}

#[test]
fn child_that_ignores_term_is_killed_after_the_timeout() {
    let script = "trap '' TERM HUP; (trap '' TERM HUP; while :; do sleep 60; done) & \
                  echo $! > $1/helper; while :; do sleep 60; done";
    let launcher = Launcher::start(script, "pass");
    let helper = number_in(&launcher.file("helper"));
    launcher.signal(libc::SIGTERM);
    assert_eq!(launcher.exit(), "None Some(9) 0 \"\"");
    assert!(is_dead(helper));
}

#[test]
fn swallowed_signal_does_not_reach_the_child() {
    let launcher = Launcher::start(
        "echo 1 > $1/ready; while [ ! -e $1/go ]; do sleep 0.01; done; exit 4",
        "swallow",
    );
    number_in(&launcher.file("ready"));
    launcher.signal(libc::SIGTERM);
    until("it was seen", || text(&launcher.file("seen")).contains("15"));
    fs::write(launcher.file("go"), "").expect("writable");
    assert_eq!(launcher.exit(), "Some(4) None 0 \"\"");
}

#[test]
fn orphans_end_with_the_launcher_and_are_reaped() {
    let script = "(setsid sh -c 'trap \"\" HUP TERM; echo $$ > $1/orphan; while :; do sleep 60; done' sh $1 &); \
                  (true &); while [ ! -s $1/orphan ]; do sleep 0.01; done; exit 3";
    let launcher = Launcher::start(script, "pass");
    assert_eq!(
        launcher.exit(),
        "Some(3) None 0 \"\"",
        "the last field lists children that were not reaped"
    );
    assert!(is_dead(number_in(&launcher.file("orphan"))));
}

#[test]
fn a_stopped_child_is_continued() {
    let launcher = Launcher::start("kill -STOP $$; exit 6", "pass");
    assert_eq!(launcher.exit(), "Some(6) None 0 \"\"");
}

#[test]
fn child_starts_with_clean_signals_and_exact_environment() {
    let script = "env > $1/env; pwd > $1/pwd; grep -E 'Sig(Blk|Ign)' /proc/self/status > $1/signals; \
                  ps -o pid=,pgid= -p $$ > $1/ids";
    let launcher = Launcher::start(script, "pass");
    assert_eq!(launcher.exit(), "Some(0) None 0 \"\"");
    let env = text(&launcher.file("env"));
    assert!(
        env.contains("ODD=a b'\n#(x)\n") && !env.contains("SYS_TEST") && !env.contains("HOME="),
        "{env}"
    );
    assert_eq!(text(&launcher.file("pwd")).trim(), launcher.dir.path().display().to_string());
    let signals = text(&launcher.file("signals"));
    let masks: Vec<&str> = signals.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    // The C library reserves signals 32 and 33 and does not let a program change them.
    let unusual =
        |mask: &&str| u64::from_str_radix(mask, 16).expect("hexadecimal") & !(0b11 << 31) != 0;
    assert!(masks.len() == 2 && !masks.iter().any(unusual), "{signals}");
    let ids = text(&launcher.file("ids"));
    let ids: Vec<&str> = ids.split_whitespace().collect();
    assert_eq!(ids[0], ids[1], "it leads a group of its own");
}

/// Output of a program, read by a thread until the terminal closes.
struct Screen {
    drawn: Arc<Mutex<Vec<u8>>>,
    reading: thread::JoinHandle<()>,
}

impl Screen {
    fn of(master: &PtyMaster) -> Screen {
        let mut reader = master.reader().expect("descriptors are left");
        let drawn = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&drawn);
        let reading = thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut piece) {
                sink.lock().expect("no panics here").extend_from_slice(&piece[..count]);
            }
        });
        Screen { drawn, reading }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.drawn.lock().expect("no panics in the reader")).into_owned()
    }

    fn shows(&self, what: &str) {
        until(&format!("{what:?} on the screen, which shows {:?}", self.text()), || {
            self.text().contains(what)
        });
    }
}

fn reap(process: Process) -> WaitStatus {
    waitpid(Pid::from_raw(process.pid), None).expect("our child")
}

#[test]
fn a_program_on_a_pty_sees_a_terminal_of_the_right_size() {
    let dir = dir();
    let script = "trap 'stty size' WINCH; test -t 0 && test -t 1 && test -t 2 && echo tty; stty size; \
                  ps -o sid=,pgid=,tpgid= -p $$ | tr -s ' '; echo env; env; echo vne; \
                  while [ ! -e $1/stop ]; do sleep 0.01; done; read line; echo got $line; exit 9";
    let (process, master) = spawn_on_pty(&sh(script, dir.path()), 31, 97).expect("sh is there");
    let screen = Screen::of(&master);
    screen.shows("vne");
    let (pid, shown) = (process.pid, screen.text().replace('\r', ""));
    assert!(shown.starts_with("tty\n31 97\n"), "{shown}");
    assert!(
        shown.contains(&format!("{pid} {pid} {pid}\n")),
        "leads session, group and foreground: {shown}"
    );
    assert!(!shown.contains("SHELL=") && !shown.contains("HOME="), "{shown}");
    fs::write(dir.path().join("stop"), "").expect("writable");
    master.write_all(b"hello\n").expect("open");
    screen.shows("got hello");
    assert_eq!(reap(process), WaitStatus::Exited(Pid::from_raw(pid), 9));
    screen.reading.join().expect("the end of the program is the end of its output");
}

#[test]
fn dropping_the_master_hangs_up_and_types_nothing() {
    let dir = dir();
    // The shell may see the end of its input before the signal.
    let script = "trap 'exit 8' HUP; echo ready; if read line; then echo \"read:$line\" > $1/typed; fi; exit 9";
    let (process, master) = spawn_on_pty(&sh(script, dir.path()), 24, 80).expect("sh is there");
    let mut reader = master.reader().expect("descriptors are left");
    let mut first = [0; 5];
    reader.read_exact(&mut first).expect("it says ready");
    master.write_all(b"half a li").expect("open");
    drop((reader, master));
    let status = reap(process);
    assert!(matches!(status, WaitStatus::Exited(_, 8 | 9)), "{status:?}");
    assert_eq!(text(&dir.path().join("typed")), "");
}

fn start_errors(start: impl Fn(&Program) -> Result<(), ExecError>) {
    let dir = dir();
    let good = sh("true", dir.path());
    let missing = start(&Program { path: "/no/such/program".into(), ..good.clone() });
    assert!(
        matches!(&missing, Err(ExecError::NotFound { program }) if program == "/no/such/program"),
        "{missing:?}"
    );
    let nowhere = start(&Program { cwd: "/no/such/dir".into(), ..good.clone() });
    assert!(matches!(&nowhere, Err(ExecError::Directory { .. })), "{nowhere:?}");
    let broken = dir.path().join("broken");
    fs::write(&broken, "#!/no/such/interpreter\n").expect("writable");
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).expect("own file");
    let broken = start(&Program { path: broken, ..good.clone() });
    assert!(matches!(&broken, Err(ExecError::NoInterpreter { .. })), "{broken:?}");
    let folder = start(&Program { path: "/usr".into(), ..good });
    assert!(matches!(&folder, Err(ExecError::Io { .. })), "{folder:?}");
}

#[test]
fn a_failed_start_is_an_error_and_not_a_dead_child() {
    start_errors(|program| spawn_foreground(program).map(drop));
    start_errors(|program| spawn_on_pty(program, 24, 80).map(drop));
}

/// Starts a launcher as the child of a session leader on a terminal of its own, as in a pane.
fn launcher_on_pty(script: &str, dir: &Path) -> (Process, PtyMaster, Screen) {
    let test = helper("child::tests::helper_launches");
    let mut program = sh("", dir);
    program.path = test.get_program().into();
    program.argv =
        std::iter::once(test.get_program()).chain(test.get_args()).map(OsString::from).collect();
    let extra = [("SYS_TEST_DIR", dir.as_os_str()), ("SYS_TEST_SCRIPT", script.as_ref())];
    program.env.extend(extra.map(|(name, value)| (name.into(), value.into())));
    program.env.push(("SYS_TEST_FORWARD".into(), "pass".into()));
    let (process, master) = spawn_on_pty(&program, 24, 80).expect("the test binary is there");
    let screen = Screen::of(&master);
    (process, master, screen)
}

#[test]
fn foreground_child_gets_keyboard_input_and_signals() {
    let dir = dir();
    let script = "trap 'echo interrupted' INT; ps -o pgid=,tpgid= -p $$ > $1/ids; echo ready; \
                  read line; echo \"line:$line\"; while [ ! -e $1/stop ]; do sleep 0.01; done; exit 2";
    let (process, master, screen) = launcher_on_pty(script, dir.path());
    screen.shows("ready");
    let ids = text(&dir.path().join("ids"));
    let ids: Vec<&str> = ids.split_whitespace().collect();
    assert_eq!(ids[0], ids[1], "its group is the foreground");
    // Ctrl-Z, without a shell that could continue the child.
    master.write_all(b"\x1a").expect("open");
    master.write_all(b"hello\n").expect("open");
    screen.shows("line:hello");
    // Ctrl-C reaches the child but not the launcher.
    master.write_all(b"\x03").expect("open");
    screen.shows("interrupted");
    fs::write(dir.path().join("stop"), "").expect("writable");
    until("the launcher reports", || text(&dir.path().join("exit")).starts_with("Some(2)"));
    assert_eq!(text(&dir.path().join("seen")), "", "the terminal's signals are the child's");
    assert_eq!(reap(process), WaitStatus::Exited(Pid::from_raw(process.pid), 0));
}

#[test]
fn a_terminal_left_behind_comes_back_to_the_child() {
    let dir = dir();
    // An inner job takes the foreground and exits with it. The child then reads and is stopped by
    // SIGTTIN.
    let grabs = helper("child::tests::helper_grabs_the_terminal");
    let words = std::iter::once(grabs.get_program()).chain(grabs.get_args());
    let words: Vec<_> = words.map(|word| format!("'{}'", word.display())).collect();
    let script = &format!("{}; echo ready; read line; echo \"line:$line\"", words.join(" "));
    let (process, master, screen) = launcher_on_pty(script, dir.path());
    screen.shows("ready");
    master.write_all(b"again\n").expect("open");
    screen.shows("line:again");
    assert_eq!(reap(process), WaitStatus::Exited(Pid::from_raw(process.pid), 0));
}

#[test]
#[ignore = "helper process of a_terminal_left_behind_comes_back_to_the_child"]
fn helper_grabs_the_terminal() {
    unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0)).expect("no session leader");
    let terminal = ControllingTerminal::open().expect("a session with a terminal");
    terminal.give_to(unistd::getpid()).expect("a group of this session");
}

#[test]
fn hangup_of_the_terminal_ends_the_launcher_and_its_tree() {
    let dir = dir();
    let script = "(trap '' HUP; echo $$ > $1/pid; while :; do sleep 60; done)";
    let (process, master, screen) = launcher_on_pty(script, dir.path());
    let pid = number_in(&dir.path().join("pid"));
    let launcher = number_in(&dir.path().join("launcher"));
    // The reader keeps the terminal open, so that the kernel sends no HUP; the test sends it.
    assert!(signal(Process::of(launcher).expect("alive"), libc::SIGHUP));
    until("the child is dead", || is_dead(pid));
    assert_eq!(reap(process), WaitStatus::Exited(Pid::from_raw(process.pid), 0));
    drop(master);
    screen.reading.join().expect("the terminal is closed");
}
