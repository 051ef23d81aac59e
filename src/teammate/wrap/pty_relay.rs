//! Relays between the program's pty and our terminal on several threads: output is displayed as it
//! arrives, keyboard input goes to the program unless the driver holds it back.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use event_loop::Inputs;
use model::causes::error_chain;
use profile::{Screen, Screenshot};
use sys::child::{self, Program, PtyMaster, own_size};
use sys::clock::{self, Deadline};
use sys::proc::{self, Process};
use sys::signal::{HUP, INT, QUIT, Signal, TERM, WINCH};
use sys::tty::{Display, RawTerminal, TerminalInput};

/// Rows and columns if our terminal reports no size.
const SIZE: (u16, u16) = (50, 200);
/// Maximum number of bytes per read from the program.
const CHUNK: usize = 64 * 1024;
/// Number of bytes buffered before they are parsed: larger batches are cheaper.
const BACKLOG: usize = 256 * 1024;
/// Time to wait for remaining output after exit: a child that the program left behind may keep the
/// pty open.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// Time between SIGTERM and SIGKILL, for the program and for processes it left behind.
const GRACE: Duration = Duration::from_secs(1);
/// Pause between two quit keys.
const QUIT_GAP: Duration = Duration::from_millis(300);
/// Time that the program gets to exit after the last quit key.
const QUIT_GRACE: Duration = Duration::from_secs(3);

/// An input that the driver turns into an event.
#[derive(Debug)]
pub(super) enum WrapperInput {
    /// The program has produced output.
    Output,
    /// A person has typed.
    PersonTyped,
    /// All text queued before this has been typed.
    TextTyped,
    Signal(Signal),
    /// The program has exited with this code.
    Ended(i32),
}

/// A job of the typing thread.
enum TypingJob {
    Keys(Vec<u8>),
    /// Type one character at a time with this pause.
    Slowly(Vec<u8>, Duration),
    /// Report [`WrapperInput::TextTyped`] once the jobs before it are done.
    Report,
}

/// The program's screen and unparsed output.
struct Drawn {
    screen: Screen,
    /// Output that is not yet parsed into the screen.
    backlog: Vec<u8>,
    /// Set if the driver has been notified since its last snapshot.
    notified: bool,
    /// Measures the time since the last output.
    last: Deadline,
}

impl Drawn {
    /// Parses the backlog.
    fn catch_up(&mut self) {
        let (screen, backlog) = (&mut self.screen, &self.backlog);
        if catch_unwind(AssertUnwindSafe(|| screen.feed(backlog))).is_err() {
            // Input that makes vt100 panic must not end the program: start with an empty screen,
            // which is unrecognised until it is redrawn.
            let (rows, cols) = own_size().unwrap_or(SIZE);
            self.screen = Screen::new(rows, cols);
        }
        self.backlog.clear();
    }
}

/// The state of keyboard input.
struct Keyboard {
    /// Keys held back while the driver types; none if they pass through.
    held: Option<Vec<u8>>,
    /// Measures the time since a person last typed.
    last: Option<Deadline>,
}

/// What the driver shares with the threads that read the program and our terminal.
struct SharedRelay {
    drawn: Mutex<Drawn>,
    keyboard: Mutex<Keyboard>,
    typist: Sender<TypingJob>,
    /// Set when the program is to end; stops blocked output to our terminal.
    ending: AtomicBool,
    inputs: Inputs<WrapperInput>,
}

/// A running program, connected to our terminal.
pub(super) struct PtyRelay {
    process: Process,
    shared: Arc<SharedRelay>,
    /// Closing it stops the keyboard thread, which restores our terminal.
    stop: Option<PipeWriter>,
    input_thread: Option<JoinHandle<()>>,
}

impl PtyRelay {
    /// Starts the program on a pty of our terminal's size and connects the two. Must be called on
    /// the main thread before other threads exist.
    ///
    /// # Errors
    ///
    /// Our terminal cannot be opened, or the program cannot be started.
    pub(super) fn open(
        program: &Program,
        inputs: &Inputs<WrapperInput>,
    ) -> Result<PtyRelay, String> {
        let raw = RawTerminal::enter().map_err(|e| format!("no terminal: {e}"))?;
        let display = Display::open().map_err(|e| format!("cannot write to the terminal: {e}"))?;
        let (rows, cols) = own_size().unwrap_or(SIZE);
        let started = child::spawn_on_pty(program, rows, cols);
        let (process, master) = started.map_err(|e| error_chain(&e))?;
        let joined =
            PtyRelay::join(process, Arc::new(master), (raw, display), (rows, cols), inputs);
        joined.map_err(|e| {
            proc::end_tree(process, true, Duration::ZERO);
            child::wait(process);
            format!("its terminal cannot be read: {e}")
        })
    }

    fn join(
        process: Process,
        master: Arc<PtyMaster>,
        (raw, display): (RawTerminal, Display),
        (rows, cols): (u16, u16),
        inputs: &Inputs<WrapperInput>,
    ) -> io::Result<PtyRelay> {
        let (typist, jobs) = channel();
        let drawn = Drawn {
            screen: Screen::new(rows, cols),
            backlog: Vec::new(),
            notified: false,
            last: Deadline::after(Duration::MAX),
        };
        let shared = Arc::new(SharedRelay {
            drawn: Mutex::new(drawn),
            keyboard: Mutex::new(Keyboard { held: None, last: None }),
            typist,
            ending: AtomicBool::new(false),
            inputs: inputs.clone(),
        });
        let (stopped, stop) = io::pipe()?;
        let (over, printed) = channel();
        let reader = master.reader()?;

        let typing = (Arc::clone(&master), inputs.clone());
        start("typist", move || type_all(&jobs, &typing.0, &typing.1))?;
        let output = Arc::clone(&shared);
        start("output", move || {
            output.show_all(&display, reader);
            // Fails if `wait_for_end` no longer waits.
            let _ = over.send(());
        })?;
        let end = inputs.clone();
        start("program", move || end.send(WrapperInput::Ended(wait_for_end(process, &printed))))?;
        let input = Arc::clone(&shared);
        let input_thread = start("keyboard", move || input.read_input(&raw, &stopped, &master))?;
        Ok(PtyRelay { process, shared, stop: Some(stop), input_thread: Some(input_thread) })
    }

    /// Returns the current screen, and how long there has been no output.
    pub(super) fn snapshot(&self) -> Screenshot {
        let mut drawn = lock(&self.shared.drawn);
        drawn.catch_up();
        drawn.notified = false;
        drawn.screen.look(ms(drawn.last.elapsed()))
    }

    /// Returns the time since the last output.
    pub(super) fn quiet(&self) -> Duration {
        lock(&self.shared.drawn).last.elapsed()
    }

    /// Holds back keyboard input. Returns false if a person has typed within `limit`; then nothing
    /// is held.
    pub(super) fn hold_keyboard(&self, limit: Duration) -> bool {
        let mut keyboard = lock(&self.shared.keyboard);
        if keyboard.last.is_some_and(|last| last.elapsed() < limit) {
            return false;
        }
        keyboard.held.get_or_insert_default();
        true
    }

    /// Passes keyboard input through again, beginning with what was held back.
    pub(super) fn release_keyboard(&self) {
        let mut keyboard = lock(&self.shared.keyboard);
        if let Some(held) = keyboard.held.take().filter(|held| !held.is_empty()) {
            self.type_in(held);
        }
    }

    /// Queues keys for typing. Does not wait for the program to read them.
    pub(super) fn type_in(&self, keys: Vec<u8>) {
        // Fails only if the terminal is gone, which is reported elsewhere.
        let _ = self.shared.typist.send(TypingJob::Keys(keys));
    }

    /// Queues text with a pause between characters. Sends [`WrapperInput::TextTyped`] when it is
    /// typed.
    pub(super) fn type_text(&self, text: Vec<u8>, gap: Duration) {
        let _ = self.shared.typist.send(if gap.is_zero() {
            TypingJob::Keys(text)
        } else {
            TypingJob::Slowly(text, gap)
        });
        let _ = self.shared.typist.send(TypingJob::Report);
    }

    /// Ends the program with the given keys, then with signals. [`WrapperInput::Ended`] reports its
    /// exit.
    pub(super) fn end(&self, keys: Vec<String>) {
        self.shared.ending.store(true, Ordering::SeqCst);
        let (process, typist) = (self.process, self.shared.typist.clone());
        let end = move || {
            let asked = !keys.is_empty();
            for key in keys {
                let _ = typist.send(TypingJob::Keys(key.into_bytes()));
                proc::wait_exit(process, QUIT_GAP);
            }
            if !asked || !proc::wait_exit(process, QUIT_GRACE) {
                proc::end_tree(process, true, GRACE);
            }
        };
        // If no thread can be started, the hang-up of the pty at our exit ends the program.
        let _ = start("end", end);
    }
}

impl Drop for PtyRelay {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::SeqCst);
        self.stop = None;
        if let Some(input_thread) = self.input_thread.take() {
            // A keyboard thread that panicked has restored the terminal as well.
            let _ = input_thread.join();
        }
    }
}

impl SharedRelay {
    /// Relays output until the pty is closed. If our terminal closes first, the screen is still
    /// tracked.
    fn show_all(&self, display: &Display, mut reader: Box<dyn Read + Send>) {
        let mut buffer = vec![0; CHUNK];
        let mut shown = true;
        loop {
            let bytes = match reader.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => &buffer[..count],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                // EIO: no process has the pty open any longer.
                Err(_) => return,
            };
            shown = shown && display.show(bytes, &|| self.ending.load(Ordering::SeqCst)).is_ok();
            self.draw(bytes);
        }
    }

    /// Buffers output for the screen.
    fn draw(&self, bytes: &[u8]) {
        let mut drawn = lock(&self.drawn);
        drawn.last = Deadline::after(Duration::MAX);
        drawn.backlog.extend_from_slice(bytes);
        if drawn.backlog.len() >= BACKLOG {
            drawn.catch_up();
        }
        if !std::mem::replace(&mut drawn.notified, true) {
            self.inputs.send(WrapperInput::Output);
        }
    }

    /// Reads our terminal and signals, until `stopped` is closed.
    fn read_input(&self, raw: &RawTerminal, stopped: &PipeReader, master: &PtyMaster) {
        loop {
            match raw.next(stopped.as_fd()) {
                Ok(TerminalInput::Keys(keys)) => self.keys(keys),
                Ok(TerminalInput::Signal(WINCH)) => self.resize(master),
                Ok(TerminalInput::Signal(number)) => {
                    if let Some(signal) = signal_of(number) {
                        self.inputs.send(WrapperInput::Signal(signal));
                    }
                }
                Ok(TerminalInput::Other) => return,
                Ok(TerminalInput::Gone) | Err(_) => {
                    self.inputs.send(WrapperInput::Signal(Signal::Hangup));
                    return;
                }
            }
        }
    }

    fn keys(&self, keys: Vec<u8>) {
        let by_person = !is_report(&keys);
        let mut keyboard = lock(&self.keyboard);
        if by_person {
            keyboard.last = Some(Deadline::after(Duration::MAX));
            self.inputs.send(WrapperInput::PersonTyped);
        }
        match &mut keyboard.held {
            // Terminal reports are never held back, because the program waits for them.
            Some(held) if by_person => held.extend(keys),
            Some(_) | None => drop(self.typist.send(TypingJob::Keys(keys))),
        }
    }

    fn resize(&self, master: &PtyMaster) {
        let Some((rows, cols)) = own_size() else { return };
        // Fails only if the terminal is gone.
        let _ = master.resize(rows, cols);
        let mut drawn = lock(&self.drawn);
        drawn.catch_up();
        drawn.screen.resize(rows, cols);
        self.inputs.send(WrapperInput::Output);
    }
}

/// Returns the signal with this number if it asks the wrapper to end. A stop has no effect, because
/// a raw terminal gives no way to type `fg`.
fn signal_of(number: i32) -> Option<Signal> {
    match number {
        HUP => Some(Signal::Hangup),
        INT => Some(Signal::Interrupt),
        QUIT => Some(Signal::Quit),
        TERM => Some(Signal::Terminate),
        _ => None,
    }
}

/// Returns whether the input comes from the terminal itself: answers to queries, and focus events.
fn is_report(bytes: &[u8]) -> bool {
    let report = |piece: &[u8]| match piece {
        [b']' | b'P', ..] | [b'\\'] => true,
        [b'[', middle @ .., b'R' | b'c' | b'n' | b'I' | b'O' | b'y' | b't'] => {
            middle.iter().all(|byte| byte.is_ascii_digit() || b"?;>$".contains(byte))
        }
        _ => false,
    };
    let mut pieces = bytes.split(|byte| *byte == 0x1b);
    pieces.next().is_some_and(<[u8]>::is_empty) && bytes.len() > 1 && pieces.all(report)
}

fn type_all(jobs: &Receiver<TypingJob>, master: &PtyMaster, inputs: &Inputs<WrapperInput>) {
    for job in jobs {
        // A write fails only if the program is gone, which is reported elsewhere.
        match job {
            TypingJob::Keys(keys) => drop(master.write_all(&keys)),
            TypingJob::Slowly(text, gap) => {
                for key in String::from_utf8_lossy(&text).chars() {
                    let _ = master.write_all(key.encode_utf8(&mut [0; 4]).as_bytes());
                    clock::sleep(gap);
                }
            }
            TypingJob::Report => inputs.send(WrapperInput::TextTyped),
        }
    }
}

/// Waits for the program to exit and ends the processes it left behind. Returns the exit code for
/// this process.
fn wait_for_end(process: Process, printed: &Receiver<()>) -> i32 {
    while !proc::wait_exit(process, Duration::MAX) {}
    // End the tree before reaping: while the leader is a zombie, its pid is not reused and its
    // session can still be found.
    proc::end_tree(process, true, GRACE);
    let exit = child::wait(process);
    let _ = printed.recv_timeout(LAST_WORDS);
    exit.code.or(exit.signal.map(|sig| 128 + sig)).unwrap_or(1)
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic under these locks leaves no inconsistent state.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signal_gives_the_exit_code_that_shells_report() {
        let codes = [HUP, INT, QUIT, TERM].map(|number| signal_of(number).map(Signal::exit_code));
        assert_eq!(codes, [129, 130, 131, 143].map(Some));
    }

    #[test]
    fn msg_11_terminal_reports_do_not_count_as_typing() {
        for report in [
            &b"\x1b[12;40R"[..],
            b"\x1b[?62;22c",
            b"\x1b[I",
            b"\x1b]11;rgb:0/0/0\x1b\\",
            b"\x1b[0n\x1b[?6c",
        ] {
            assert!(is_report(report), "{report:?}");
        }
        for keys in [
            &b"a"[..],
            b"\x1b",
            b"\x1b[A",
            b"\r",
            b"\x1b[200~x\x1b[201~",
            b"\x1bOP",
            b"x\x1b[I",
            b"",
        ] {
            assert!(!is_report(keys), "{keys:?}");
        }
    }
}
