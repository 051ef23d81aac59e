//! The two terminals and the threads between them: what the program prints goes to our terminal as it comes, what is typed
//! there goes to the program, unless the driver holds it back. Refuses to decide anything.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::model::topic::Topic;
use crate::profile::{Look, Screen};
use crate::sys::child::{self, Program, PtyMaster, own_size};
use crate::sys::clock::{self, Deadline};
use crate::sys::proc::{self, Process};
use crate::sys::signal::{HUP, QUIT, Signal, WINCH};
use crate::sys::tty::{Display, Input, RawTerminal};

/// Where our terminal does not tell its size.
const SIZE: (u16, u16) = (50, 200);
/// How much is taken from the program at once.
const CHUNK: usize = 64 * 1024;
/// So much of what it printed may wait to be drawn: the more at once, the cheaper.
const BACKLOG: usize = 256 * 1024;
/// The longest question to a terminal, bytes.
const QUESTION: usize = 16;
/// How long the program's last words are waited for: a child that it left behind may hold the terminal open.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// What the program left behind gets so long between TERM and KILL, and the program itself when it is ended.
const GRACE: Duration = Duration::from_secs(1);
/// Between two keys that end the program, and how long it gets after the last.
const QUIT_GAP: Duration = Duration::from_millis(300);
const QUIT_GRACE: Duration = Duration::from_secs(3);

/// What reaches the driver before it has been looked at.
#[derive(Debug)]
pub(super) enum Wake {
    /// The program has printed something.
    Drawn,
    /// A person has typed.
    Hand,
    /// All that was to be typed before this has been.
    Put,
    Changed(Topic),
    Signal(Signal),
    /// The program has ended, with this exit code.
    Ended(i32),
}

/// What the typist is given.
enum Job {
    Keys(Vec<u8>),
    /// One character after the other.
    Slowly(Vec<u8>, Duration),
    Tell(Wake),
}

/// What the program has drawn, and when.
struct Drawn {
    screen: Screen,
    /// Printed and not on the screen yet.
    backlog: Vec<u8>,
    /// The driver was told of that.
    told: bool,
    /// Where nobody else answers the program's questions to its terminal: who types the answers.
    answers: Option<Sender<Job>>,
    last: Deadline,
}

impl Drawn {
    /// Draws what waits, and answers what it asks.
    fn catch_up(&mut self) {
        let (screen, backlog) = (&mut self.screen, &self.backlog);
        if catch_unwind(AssertUnwindSafe(|| screen.feed(backlog))).is_err() {
            // What vt100 cannot take must not cost the program its terminal: it is not understood until it draws anew.
            let (rows, cols) = own_size().unwrap_or(SIZE);
            self.screen = Screen::new(rows, cols);
        }
        self.backlog.clear();
        let owed = self.screen.take_answers();
        if let Some(typist) = self.answers.as_ref().filter(|_| !owed.is_empty()) {
            let _ = typist.send(Job::Keys(owed));
        }
    }
}

/// The keyboard's state.
struct Keyboard {
    /// Keys that wait until the driver has done typing; none: they pass.
    held: Option<Vec<u8>>,
    /// Since a person has typed.
    last: Option<Deadline>,
}

/// A running program between its terminal and ours.
pub(super) struct Station {
    process: Process,
    drawn: Arc<Mutex<Drawn>>,
    keyboard: Arc<Mutex<Keyboard>>,
    typist: Sender<Job>,
    ending: Arc<AtomicBool>,
    /// Closing it ends the keyboard's thread, which puts our terminal back.
    stop: Option<PipeWriter>,
    hearing: Option<JoinHandle<()>>,
}

impl Station {
    /// Starts the program on a terminal of the size of ours and joins the two. To be called in the first thread before
    /// there are others. `answers`: nobody stands behind our terminal who would answer the program's questions to it.
    pub(super) fn open(
        program: &Program,
        answers: bool,
        wakes: &Sender<Wake>,
    ) -> Result<Station, String> {
        let raw = RawTerminal::enter().map_err(|e| format!("no terminal: {e}"))?;
        let display = Display::open().map_err(|e| format!("cannot write to the terminal: {e}"))?;
        let (rows, cols) = own_size().unwrap_or(SIZE);
        let started = child::spawn_on_pty(program, rows, cols);
        let (process, master) = started.map_err(|e| chain(&e))?;
        let joined =
            Station::join(process, Arc::new(master), (raw, display), (rows, cols), answers, wakes);
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
        answers: bool,
        wakes: &Sender<Wake>,
    ) -> io::Result<Station> {
        let (typist, jobs) = channel();
        let drawn = Arc::new(Mutex::new(Drawn {
            screen: Screen::new(rows, cols),
            backlog: Vec::new(),
            told: false,
            answers: answers.then(|| typist.clone()),
            last: Deadline::after(Duration::MAX),
        }));
        let keyboard = Arc::new(Mutex::new(Keyboard { held: None, last: None }));
        let ending = Arc::new(AtomicBool::new(false));
        let (stopped, stop) = io::pipe()?;
        let (over, printed) = channel();
        let reader = master.reader()?;

        let typing = (Arc::clone(&master), wakes.clone());
        start("typist", move || type_all(&jobs, &typing.0, &typing.1))?;
        let show = Show {
            display,
            drawn: Arc::clone(&drawn),
            ending: Arc::clone(&ending),
            wakes: wakes.clone(),
        };
        start("output", move || {
            show.all(reader);
            // Nobody may be waiting any more.
            let _ = over.send(());
        })?;
        let tell = wakes.clone();
        start("program", move || drop(tell.send(Wake::Ended(see_end(process, &printed)))))?;
        let ear = Ear {
            raw,
            stopped,
            master,
            drawn: Arc::clone(&drawn),
            keyboard: Arc::clone(&keyboard),
            typist: typist.clone(),
            wakes: wakes.clone(),
        };
        let hearing = Some(start("keyboard", move || ear.hear())?);
        Ok(Station { process, drawn, keyboard, typist, ending, stop: Some(stop), hearing })
    }

    /// What is to be seen now, and for how long nothing was drawn.
    pub(super) fn look(&self) -> Look {
        let mut drawn = lock(&self.drawn);
        drawn.catch_up();
        drawn.told = false;
        drawn.screen.look(ms(drawn.last.elapsed()))
    }

    /// How long nothing was drawn.
    pub(super) fn quiet(&self) -> Duration {
        lock(&self.drawn).last.elapsed()
    }

    /// From now on what a person types waits. False: one has typed within `limit`, and goes on.
    pub(super) fn hold_keyboard(&self, limit: Duration) -> bool {
        let mut keyboard = lock(&self.keyboard);
        if keyboard.last.is_some_and(|last| last.elapsed() < limit) {
            return false;
        }
        keyboard.held.get_or_insert_default();
        true
    }

    /// What a person has typed meanwhile goes to the program, and from now on it does so at once.
    pub(super) fn release_keyboard(&self) {
        let mut keyboard = lock(&self.keyboard);
        if let Some(held) = keyboard.held.take().filter(|held| !held.is_empty()) {
            self.type_in(held);
        }
    }

    /// Types these keys. Does not wait for the program to read them.
    pub(super) fn type_in(&self, keys: Vec<u8>) {
        // Fails only when the terminal has gone, which is told elsewhere.
        let _ = self.typist.send(Job::Keys(keys));
    }

    /// The same with a pause between characters, and [`Wake::Put`] at the end.
    pub(super) fn type_text(&self, text: Vec<u8>, gap: Duration) {
        let _ =
            self.typist.send(if gap.is_zero() { Job::Keys(text) } else { Job::Slowly(text, gap) });
        let _ = self.typist.send(Job::Tell(Wake::Put));
    }

    /// Ends the program, by these keys and then by signals; its end is told by [`Wake::Ended`].
    pub(super) fn end(&self, keys: Vec<String>) {
        self.ending.store(true, Ordering::SeqCst);
        let (process, typist) = (self.process, self.typist.clone());
        let end = move || {
            let asked = !keys.is_empty();
            for key in keys {
                let _ = typist.send(Job::Keys(key.into_bytes()));
                proc::wait_exit(process, QUIT_GAP);
            }
            if !asked || !proc::wait_exit(process, QUIT_GRACE) {
                proc::end_tree(process, true, GRACE);
            }
        };
        // Where there is no thread to be had, the terminal's hang-up at our end has to do.
        let _ = start("end", end);
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        self.stop = None;
        if let Some(hearing) = self.hearing.take() {
            // A thread that panicked has put the terminal back, too.
            let _ = hearing.join();
        }
    }
}

/// The thread that shows what the program prints.
struct Show {
    display: Display,
    drawn: Arc<Mutex<Drawn>>,
    ending: Arc<AtomicBool>,
    wakes: Sender<Wake>,
}

impl Show {
    /// Until the end of the program's terminal. Ours may go before it: then it is only watched.
    fn all(&self, mut reader: Box<dyn Read + Send>) {
        let mut buffer = vec![0; CHUNK];
        let mut shown = true;
        loop {
            let bytes = match reader.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => &buffer[..count],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                // EIO: nobody has the terminal open any more.
                Err(_) => return,
            };
            shown =
                shown && self.display.show(bytes, &|| self.ending.load(Ordering::SeqCst)).is_ok();
            self.draw(bytes);
        }
    }

    /// For our own screen; at once where the program waits for an answer.
    fn draw(&self, bytes: &[u8]) {
        let mut drawn = lock(&self.drawn);
        drawn.last = Deadline::after(Duration::MAX);
        drawn.backlog.extend_from_slice(bytes);
        // A question may have come in two pieces.
        let from = drawn.backlog.len().saturating_sub(bytes.len() + QUESTION);
        let asks = drawn.answers.is_some() && Screen::asks(&drawn.backlog[from..]);
        if asks || drawn.backlog.len() >= BACKLOG {
            drawn.catch_up();
        }
        if !std::mem::replace(&mut drawn.told, true) {
            let _ = self.wakes.send(Wake::Drawn);
        }
    }
}

/// The thread that listens to our terminal and to signals.
struct Ear {
    raw: RawTerminal,
    stopped: PipeReader,
    master: Arc<PtyMaster>,
    drawn: Arc<Mutex<Drawn>>,
    keyboard: Arc<Mutex<Keyboard>>,
    typist: Sender<Job>,
    wakes: Sender<Wake>,
}

impl Ear {
    fn hear(self) {
        loop {
            match self.raw.next(self.stopped.as_fd()) {
                Ok(Input::Keys(keys)) => self.keys(keys),
                Ok(Input::Signal(WINCH)) => self.resize(),
                Ok(Input::Signal(sig)) => {
                    let signal =
                        if sig == HUP || sig == QUIT { Signal::Hangup } else { Signal::Terminate };
                    let _ = self.wakes.send(Wake::Signal(signal));
                }
                Ok(Input::Other) => return,
                Ok(Input::Gone) | Err(_) => {
                    let _ = self.wakes.send(Wake::Signal(Signal::Hangup));
                    return;
                }
            }
        }
    }

    fn keys(&self, keys: Vec<u8>) {
        let by_hand = !is_report(&keys);
        let mut keyboard = lock(&self.keyboard);
        if by_hand {
            keyboard.last = Some(Deadline::after(Duration::MAX));
            let _ = self.wakes.send(Wake::Hand);
        }
        match &mut keyboard.held {
            // The program waits for what its terminal reports.
            Some(held) if by_hand => held.extend(keys),
            Some(_) | None => drop(self.typist.send(Job::Keys(keys))),
        }
    }

    fn resize(&self) {
        let Some((rows, cols)) = own_size() else { return };
        // A terminal that has gone has no size.
        let _ = self.master.resize(rows, cols);
        let mut drawn = lock(&self.drawn);
        drawn.catch_up();
        drawn.screen.resize(rows, cols);
        let _ = self.wakes.send(Wake::Drawn);
    }
}

/// Whether nobody typed this: answers of the terminal to the program's questions, and its focus.
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

fn type_all(jobs: &Receiver<Job>, master: &PtyMaster, wakes: &Sender<Wake>) {
    for job in jobs {
        // What cannot be typed has no reader any more, which is told elsewhere.
        match job {
            Job::Keys(keys) => drop(master.write_all(&keys)),
            Job::Slowly(text, gap) => {
                for key in String::from_utf8_lossy(&text).chars() {
                    let _ = master.write_all(key.encode_utf8(&mut [0; 4]).as_bytes());
                    clock::sleep(gap);
                }
            }
            Job::Tell(wake) => drop(wakes.send(wake)),
        }
    }
}

/// Stays with the program; ends what it left behind; gives the exit code for this process.
fn see_end(process: Process, printed: &Receiver<()>) -> i32 {
    while !proc::wait_exit(process, Duration::MAX) {}
    // First the tree, then the status: while the dead leader still has its number, its session can be found.
    proc::end_tree(process, true, GRACE);
    let exit = child::wait(process);
    let _ = printed.recv_timeout(LAST_WORDS);
    exit.code.or(exit.signal.map(|sig| 128 + sig)).unwrap_or(1)
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic under these locks leaves anything half done.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn msg_11_what_a_terminal_says_by_itself_is_no_hand() {
        for report in [
            &b"\x1b[12;40R"[..],
            b"\x1b[?62;22c",
            b"\x1b[I",
            b"\x1b]11;rgb:0/0/0\x1b\\",
            b"\x1b[0n\x1b[?6c",
        ] {
            assert!(is_report(report), "{report:?}");
        }
        for hand in [
            &b"a"[..],
            b"\x1b",
            b"\x1b[A",
            b"\r",
            b"\x1b[200~x\x1b[201~",
            b"\x1bOP",
            b"x\x1b[I",
            b"",
        ] {
            assert!(!is_report(hand), "{hand:?}");
        }
    }
}
