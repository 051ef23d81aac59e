//! Test bench for launchers: a team on disk, a launcher on a real terminal, and views of both from
//! outside. Every wait has a condition and a limit, and the bench ends every process that it
//! started.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};
use serde_json::{Value, json};

use crate::gear;

/// Limit of every wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) const TEAM: &str = "crew";
pub(crate) const MEMBER: &str = "alice";
pub(crate) const RUN: &str = "11111111-2222-4333-8444-555555555555";
pub(crate) const OTHER_RUN: &str = "99999999-2222-4333-8444-555555555555";
/// A secret in the environment of every spec, which must not appear on any command line (SEC-06).
pub(crate) const CANARY: &str = "canary-5f1b0c8e";

/// Polls `condition` until it holds; panics with `what` after [`PATIENCE`].
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// The parts of a spec that vary between tests.
#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) argv: Vec<OsString>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    /// `"pane"`, or the size and log of a PTY that the launcher opens.
    pub(crate) terminal: Value,
    /// How long the terminal is held after an early exit, in milliseconds.
    pub(crate) linger_ms: u64,
}

/// A team on disk, as the store creates it.
pub(crate) struct Bench {
    dir: tempfile::TempDir,
    root: PathBuf,
}

impl Bench {
    /// Creates a team whose member `alice` has a record in this state.
    pub(crate) fn new(state: &str) -> Bench {
        Bench::below("root", state)
    }

    /// Like [`Bench::new`], with a path that is too long for a socket (PT-05).
    pub(crate) fn deep(state: &str) -> Bench {
        Bench::below(&format!("{}/root", "deep".repeat(30)), state)
    }

    fn below(root: &str, state: &str) -> Bench {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let bench = Bench { root: dir.path().join(root), dir };
        let ours = ["members", "requests", "specs", "logs", "quarantine", "gates"];
        let dirs = ours.map(|name| bench.ours(name)).into_iter();
        let dirs =
            dirs.chain([bench.team().join("inboxes"), bench.root().join("tasks").join(TEAM)]);
        dirs.chain([bench.path("work")]).for_each(|dir| fs::create_dir_all(dir).expect("writable"));
        let team =
            json!({ "name": TEAM, "createdAt": 1, "leadAgentId": "team-lead@crew", "members": [] });
        write(&bench.team().join("config.json"), &team);
        bench.put_record(RUN, state);
        bench
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.root.clone()
    }

    pub(crate) fn team(&self) -> PathBuf {
        self.root().join("teams").join(TEAM)
    }

    pub(crate) fn ours(&self, name: &str) -> PathBuf {
        self.team().join("phalanx").join(name)
    }

    /// Returns the path of a file of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.ours("logs").join("alice.log")
    }

    pub(crate) fn record_file(&self) -> PathBuf {
        self.ours("members").join("alice.json")
    }

    pub(crate) fn put_record(&self, run: &str, state: &str) {
        let wish = json!({ "profile": "shell", "argv": ["x"], "cwd": "/", "color": "blue" });
        let record = json!({
            "format": 1, "name": MEMBER, "incarnation": run, "token": "t", "state": state, "state_since": 1,
            "backend": "tmux", "wish": wish, "asked_at": 1, "from_the_future": "kept",
        });
        write(&self.record_file(), &record);
    }

    pub(crate) fn record(&self) -> Value {
        let bytes = fs::read(self.record_file()).expect("the record is there");
        serde_json::from_slice(&bytes).expect("a record is replaced in one step")
    }

    /// Waits for the start or exit record and returns it.
    pub(crate) fn part(&self, name: &str) -> Value {
        until(&format!("the {name} record"), || self.record().get(name).is_some());
        self.record()[name].clone()
    }

    /// Waits until the program runs and returns its pid.
    pub(crate) fn program(&self) -> i32 {
        let pid = self.part("start")["program"]["pid"].as_i64().expect("a number");
        i32::try_from(pid).expect("a pid")
    }

    /// Waits until the program runs and returns the pid of its launcher.
    pub(crate) fn launcher(&self) -> i32 {
        let pid = self.part("start")["launcher"]["pid"].as_i64().expect("a number");
        i32::try_from(pid).expect("a pid")
    }

    /// Records the placement as the spawner does for a program on a PTY of its launcher.
    pub(crate) fn placed(&self) {
        let start = self.part("start");
        let mut record = self.record();
        record["backend"] = json!("pty");
        record["placement"] =
            json!({ "pty": { "launcher": start["launcher"], "log": self.log() } });
        write(&self.record_file(), &record);
    }

    /// Waits for an `attach` on this bench and returns its pid.
    pub(crate) fn viewer(&self) -> i32 {
        let root = [b"PHALANX_CONFIG_DIR=".as_slice(), self.root().as_os_str().as_bytes()].concat();
        // Processes may exit during the scan.
        let read =
            |pid: i32, file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let has =
            |bytes: Vec<u8>, word: &[u8]| bytes.split(|byte| *byte == 0).any(|found| found == word);
        let is_it =
            |pid: &i32| has(read(*pid, "cmdline"), b"attach") && has(read(*pid, "environ"), &root);
        let mut found = None;
        until("an attach", || {
            let pids = fs::read_dir("/proc").expect("linux").flatten();
            found = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is_it);
            found.is_some()
        });
        found.expect("the wait above ended with one")
    }

    /// Waits for the number that a program writes to a file, and returns it.
    pub(crate) fn number(&self, name: &str) -> i32 {
        let path = self.path("work").join(name);
        until(&format!("a number in {name}"), || text(&path).ends_with('\n'));
        text(&path).trim().parse().expect("a number")
    }

    /// Returns an order that runs `script` with `sh` in the directory `work`.
    pub(crate) fn sh(&self, script: &str) -> Order {
        self.order(&["sh", "-c", script])
    }

    pub(crate) fn order(&self, argv: &[&str]) -> Order {
        let env = [("PATH", "/usr/bin:/bin"), ("SECRET", CANARY)];
        Order {
            argv: argv.iter().map(OsString::from).collect(),
            cwd: self.path("work"),
            env: env.map(|(name, value)| (name.into(), value.into())).to_vec(),
            terminal: json!("pane"),
            linger_ms: 20_000,
        }
    }

    pub(crate) fn own_terminal(&self) -> Value {
        json!({ "own": { "rows": 50, "cols": 200, "log": self.log() } })
    }

    /// Writes the spec and returns its path.
    pub(crate) fn spec(&self, order: &Order) -> PathBuf {
        let spec = json!({
            "format": 1, "config_root": word(self.root().as_os_str()), "team": TEAM, "member": MEMBER,
            "incarnation": RUN, "token": "t", "linger_ms": order.linger_ms, "terminal": order.terminal,
            "argv": order.argv.iter().map(|w| word(w)).collect::<Vec<_>>(), "cwd": word(order.cwd.as_os_str()),
            "env": order.env.iter().map(|(k, v)| (word(k), word(v))).collect::<Vec<_>>(),
        });
        let path = self.ours("specs").join(format!("{RUN}.json"));
        write(&path, &spec);
        path
    }

    /// Starts a launcher for `order` on a terminal, as in a pane.
    pub(crate) fn launch(&self, order: &Order) -> Launcher {
        Launcher::start(&self.spec(order))
    }
}

fn word(word: &OsStr) -> Value {
    match word.to_str() {
        Some(text) => json!({ "text": text }),
        None => json!({ "bytes": word.as_bytes() }),
    }
}

fn write(path: &Path, value: &Value) {
    let new = path.with_extension("new");
    fs::write(&new, serde_json::to_vec(value).expect("json")).expect("writable");
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).expect("our file");
    fs::rename(new, path).expect("writable");
}

pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// `phalanx exec SPEC` as a session leader on its own terminal.
pub(crate) struct Launcher {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    master: Option<Box<dyn MasterPty + Send>>,
    screen: Arc<Mutex<Vec<u8>>>,
    ended: bool,
}

/// The environment of a launcher in a pane, including variables that must not reach its program.
pub(crate) const PANE: [(&str, &str); 5] = [
    ("TMUX", "/tmp/sock,1,0"),
    ("TMUX_PANE", "%7"),
    ("TERM", "tmux-256color"),
    ("CLAUDECODE", "1"),
    ("LAUNCHERS_OWN", "x"),
];

impl Launcher {
    pub(crate) fn start(spec: &Path) -> Launcher {
        let launcher = Launcher::unread(spec);
        let master = launcher.master.as_ref().expect("just opened");
        let mut reader = master.try_clone_reader().expect("descriptors are left");
        let shown = Arc::clone(&launcher.screen);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                shown.lock().expect("no panics in here").extend_from_slice(&buffer[..count]);
            }
        });
        launcher
    }

    /// Starts a launcher on a terminal that is never read, so that [`Launcher::hang_up`] can close
    /// it.
    pub(crate) fn unread(spec: &Path) -> Launcher {
        let size = PtySize { rows: 24, cols: 100, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_phalanx"));
        command.env_clear();
        gear::portable().iter().for_each(|(name, value)| command.env(name, value));
        command.args([OsStr::new("exec"), spec.as_os_str()]);
        command.cwd("/");
        PANE.iter().for_each(|(name, value)| command.env(name, value));
        let child = pair.slave.spawn_command(command).expect("phalanx was built");
        Launcher { child, master: Some(pair.master), screen: Arc::default(), ended: false }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.process_id().and_then(|pid| i32::try_from(pid).ok()).expect("it was started")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("it has not been waited for");
    }

    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().expect("no panics in the reader")).into_owned()
    }

    pub(crate) fn shows(&self, part: &str) {
        until(&format!("{part:?} on the screen"), || self.screen().contains(part));
    }

    /// Waits until the launcher exits and returns its exit code.
    pub(crate) fn code(&mut self) -> u32 {
        let mut code = None;
        until("the launcher's end", || {
            code = self.child.try_wait().expect("our child").map(|status| status.exit_code());
            code.is_some()
        });
        self.ended = true;
        code.expect("the wait above ended with a code")
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("our child").is_none()
    }

    /// Waits until the launcher holds the terminal for the spawner, which its `signals` thread
    /// shows.
    pub(crate) fn holds(&mut self) {
        let tasks = format!("/proc/{}/task", self.pid());
        until("the hold of the screen", || {
            assert!(self.is_running(), "it ended without a hold: {}", self.screen());
            let tasks = fs::read_dir(&tasks).into_iter().flatten().filter_map(|task| task.ok());
            tasks.into_iter().any(|task| text(&task.path().join("comm")) == "signals\n")
        });
    }

    /// Closes the terminal, as tmux does with a pane; the kernel then sends SIGHUP.
    pub(crate) fn hang_up(&mut self) {
        self.master = None;
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // Only after a failed test: SIGTERM makes the launcher end its whole process tree.
        if !self.ended && self.is_running() {
            self.signal(Signal::SIGTERM);
            let begun = Instant::now();
            while self.is_running() && begun.elapsed() < Duration::from_secs(6) {
                thread::sleep(Duration::from_millis(10));
            }
            let _ = self.child.kill();
        }
    }
}

/// A process that is unrelated to any launcher.
pub(crate) struct Bystander(Child);

impl Bystander {
    pub(crate) fn new() -> Bystander {
        let mut sleep = Command::new("sleep");
        Bystander(sleep.arg("600").stdin(Stdio::null()).spawn().expect("sleep is there"))
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("our child").is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The fields of `/proc/PID/stat` after the command name, starting with the state letter.
fn stat(pid: i32) -> Vec<String> {
    let text = text(Path::new(&format!("/proc/{pid}/stat")));
    let rest = text.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    rest.split_whitespace().map(str::to_owned).collect()
}

/// Returns true if the process is gone or a zombie.
pub(crate) fn is_dead(pid: i32) -> bool {
    stat(pid).first().is_none_or(|state| matches!(state.as_str(), "Z" | "X"))
}

/// Field 22: the start time in clock ticks since boot; 0 if there is no such process.
pub(crate) fn start_of(pid: i32) -> u64 {
    stat(pid).get(19).and_then(|field| field.parse().ok()).unwrap_or_default()
}

/// Fields 5 and 8: the process group, and the foreground group of the terminal.
pub(crate) fn groups(pid: i32) -> (String, String) {
    let stat = stat(pid);
    (stat[2].clone(), stat[5].clone())
}

/// The NUL-stopped words of a file such as `/proc/PID/environ`.
pub(crate) fn nul_separated(pid: i32, file: &str) -> Vec<Vec<u8>> {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).expect("it is our process");
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

pub(crate) fn command_lines() -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("linux").filter_map(|entry| entry.ok());
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).collect()
}
