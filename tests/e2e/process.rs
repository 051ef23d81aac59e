//! Helper processes for tests: this test binary again, running one of its ignored tests.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Limit of every wait. The storms start up to 64 processes at once, which takes over a minute on a
/// machine that is busy otherwise.
const PATIENCE: Duration = Duration::from_secs(240);
/// Environment variable with the arguments of a helper, one per line.
const WORDS: &str = "PHALANX_TEST_HELPER";

/// Calls `look` until it returns a value; panics after the limit, naming what it waited for.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "timed out waiting for: {what}");
        thread::park_timeout(Duration::from_millis(2));
    }
}

pub(crate) fn below(limit: u64) -> u64 {
    RandomState::new().build_hasher().finish() % limit
}

/// Returns the arguments of this helper.
pub(crate) fn helper_args() -> Vec<String> {
    let words = std::env::var(WORDS).expect("this test is a helper process of another one");
    words.split('\n').map(str::to_owned).collect()
}

/// Prints a line to the parent and flushes it.
pub(crate) fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "> {line}").and_then(|()| out.flush()).expect("the parent listens");
}

/// Starts the ignored test `name`, such as `storm::write_mail`, of this binary as a process.
pub(crate) fn helper(name: &str, words: &[&str]) -> Peer {
    Peer::start(&mut helper_command(name, words))
}

/// Returns the command of such a helper, to be started with [`Peer::start`].
pub(crate) fn helper_command(name: &str, words: &[&str]) -> Command {
    let mut command =
        Command::new(std::env::current_exe().expect("a running test has an executable"));
    command.args([name, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(WORDS, words.join("\n"));
    command
}

/// A process whose output is collected; killed when dropped.
pub(crate) struct Peer {
    pub(crate) child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Peer {
    pub(crate) fn start(command: &mut Command) -> Peer {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program can be started");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let out = collect(child.stdout.take().expect("piped"), &lines);
        let err = collect(child.stderr.take().expect("piped"), &lines);
        Peer { child, lines, readers: vec![out, err] }
    }

    /// Returns the lines printed with [`print_line`] so far.
    pub(crate) fn printed_lines(&self) -> Vec<String> {
        let all = self.lines.lock().expect("no reader panics");
        // The test harness prints `test NAME ... ` before the first line of the test.
        all.iter()
            .filter_map(|line| line.split_once("> ").map(|(_, said)| said.to_owned()))
            .collect()
    }

    pub(crate) fn printed(&self) -> Vec<String> {
        self.lines.lock().expect("no reader panics").clone()
    }

    pub(crate) fn release(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits until the process exits; returns whether it succeeded.
    pub(crate) fn end(&mut self) -> bool {
        self.release();
        let status = wait_for("a process to end", || self.child.try_wait().expect("wait"));
        for reader in self.readers.drain(..) {
            reader.join().expect("no reader panics");
        }
        status.success()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("the process is ours and not reaped");
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both calls fail only if the process has exited and was reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(
    pipe: impl std::io::Read + Send + 'static,
    into: &Arc<Mutex<Vec<String>>>,
) -> JoinHandle<()> {
    let into = Arc::clone(into);
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            into.lock().expect("nobody panics").push(line);
        }
    })
}

/// Backdates a lock by a minute, as if its holder had stopped refreshing it. Returns false if it no
/// longer exists.
pub(crate) fn age(lock: &Path) -> bool {
    let long_ago = SystemTime::now() - Duration::from_secs(60);
    File::open(lock).and_then(|dir| dir.set_modified(long_ago)).is_ok()
}

pub(crate) fn lock_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
