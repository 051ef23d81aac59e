//! Other processes for tests: this test binary again, running one of its ignored tests, and what may happen to it.

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

/// How long anything may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// What a helper is told, a word each.
const WORDS: &str = "PHALANX_TEST_HELPER";

/// Calls `look` until it gives something, or fails the test naming what was waited for.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain for: {what}");
        thread::park_timeout(Duration::from_millis(2));
    }
}

/// A number below `limit`, another one each time.
pub(crate) fn below(limit: u64) -> u64 {
    RandomState::new().build_hasher().finish() % limit
}

/// What a helper was told.
pub(crate) fn told() -> Vec<String> {
    let words = std::env::var(WORDS).expect("this test is a helper process of another one");
    words.split('\n').map(str::to_owned).collect()
}

/// Says a line to the parent; it is out when this returns.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "> {line}").and_then(|()| out.flush()).expect("the parent listens");
}

/// The ignored test `name` of this binary as a process of its own.
pub(crate) fn helper(name: &str, words: &[&str]) -> Peer {
    Peer::start(&mut helping(name, words))
}

/// The same, to be started with [`Peer::start`].
pub(crate) fn helping(name: &str, words: &[&str]) -> Command {
    let mut command =
        Command::new(std::env::current_exe().expect("a running test has an executable"));
    command.args([name, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(WORDS, words.join("\n"));
    command
}

/// A process whose lines are collected, and which does not outlive the test.
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

    /// What it has said so far with [`say`].
    pub(crate) fn said(&self) -> Vec<String> {
        let all = self.lines.lock().expect("no reader panics");
        // The harness prints `test NAME ... ` before what the test says, on the same line.
        all.iter()
            .filter_map(|line| line.split_once("> ").map(|(_, said)| said.to_owned()))
            .collect()
    }

    /// All that it has printed so far.
    pub(crate) fn printed(&self) -> Vec<String> {
        self.lines.lock().expect("no reader panics").clone()
    }

    /// Closes what it reads from.
    pub(crate) fn release(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for its end; whether it went well.
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
        // Both fail only when it has ended and was reaped.
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

/// Lets a lock look as if its holder had not refreshed it for a minute. False: there is none any more.
pub(crate) fn age(lock: &Path) -> bool {
    let long_ago = SystemTime::now() - Duration::from_secs(60);
    File::open(lock).and_then(|dir| dir.set_modified(long_ago)).is_ok()
}

/// The lock directory of a file.
pub(crate) fn lock_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
