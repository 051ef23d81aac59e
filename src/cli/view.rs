//! A member's terminal on ours: what it shows comes here as it is, what is typed here goes there, until one side ends it.
//! Whatever happens, the person gets his terminal back as it was.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::Done;
use super::fail::{Class, Exit, Failure, plain_words};
use super::out::Out;
use crate::model::id::MemberName;
use crate::ops::attach::{End, Tell, Viewer};
use crate::sys::child::own_size;
use crate::sys::clock::Deadline;
use crate::sys::signal::WINCH;
use crate::sys::tty::{Display, Input, RawTerminal};

/// Ctrl-] as terminals send it: plainly, in the kitty protocol, and with xterm's modifyOtherKeys; a program may have
/// turned these on.
const DETACH: [&[u8]; 3] = [b"\x1d", b"\x1b[93;5u", b"\x1b[27;5;93~"];

/// Where a terminal does not tell its size.
const SIZE: (u16, u16) = (24, 80);
/// How long our own words wait for a terminal that takes nothing.
const PARTING: Duration = Duration::from_secs(1);

/// Keeps the title and goes to the second screen, so that what stands on the first is there afterwards.
const ENTER: &str = "\x1b[22;2t\x1b[?1049h";
/// Takes back every mode that a program may have set: a sequence cut short, keyboard protocols, keypad, mouse, focus,
/// paste, synchronised output, scroll region, margins, wrapping, insertion, character set, cursor; then the second screen.
const LEAVE: &str = "\x18\x1b[=0;1u\x1b[>4;0m\x1b[?1l\x1b>\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\
                     \x1b[?1015l\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[?6l\x1b[?69l\x1b[r\x1b[?7h\x1b[4l\x1b(B\x0f\x1b[0 q\
                     \x1b[?1049l\x1b[m\x1b[?25h\x1b[23;2t";

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
enum Parting {
    Detached,
    Ended(End),
    Lost(String),
    Told(i32),
}

/// Shows the terminal behind `socket` until somebody ends it.
pub(super) fn view(out: &Out, member: &MemberName, socket: &Path) -> Done {
    let lost = |e: &io::Error| {
        let hint = format!(
            "see whether it runs with `phalanx status`, and what it printed with `phalanx logs {member}`"
        );
        let problem = format!("cannot attach to `{member}`: {}", plain_words(&e.to_string()));
        Failure::new(Class::Failed, problem, Some(hint))
    };
    let viewer = Viewer::attach(socket, own_size().unwrap_or(SIZE)).map_err(|e| lost(&e))?;
    out.say(&format!("attached to {member}; detach with Ctrl-]"));
    match relay(viewer, member).map_err(|e| lost(&e))? {
        Parting::Detached => out.say(&format!("detached from {member}, which goes on")),
        Parting::Ended(end) => out.say(&format!("{member} has ended: {}", described(end))),
        Parting::Lost(problem) => return Err(lost(&io::Error::other(problem))),
        Parting::Told(sig) => {
            let told = format!("detached from `{member}` by signal {sig}");
            return Err(Failure::interrupted(
                &told,
                Some(format!("come back with `phalanx attach {member}`")),
            ));
        }
    }
    Ok(Exit::DONE)
}

fn described(end: End) -> String {
    match (end.code, end.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "nobody knows how".to_owned(),
    }
}

/// The terminal while it is lent: dropped in every case, a panic included.
struct Lent {
    raw: RawTerminal,
    display: Display,
}

impl Lent {
    fn new(member: &MemberName) -> io::Result<Lent> {
        let lent = Lent { raw: RawTerminal::enter()?, display: Display::open()? };
        lent.say(&format!("{ENTER}\x1b]2;{member}: detach with Ctrl-]\x07"))?;
        Ok(lent)
    }

    fn say(&self, words: &str) -> io::Result<()> {
        let limit = Deadline::after(PARTING);
        self.display.show(words.as_bytes(), &|| limit.expired())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing.
        let _ = self.say(LEAVE);
    }
}

fn relay(mut viewer: Viewer, member: &MemberName) -> io::Result<Parting> {
    let terminal = Lent::new(member)?;
    let (over, alive) = io::pipe()?;
    let left = Arc::new(AtomicBool::new(false));
    let (mut shown, display, gone) =
        (viewer.try_clone()?, terminal.display.try_clone()?, left.clone());
    let showing = thread::Builder::new().name("show".to_owned()).spawn(move || {
        // Closed by the end of this thread, for which the other one waits.
        let _alive = alive;
        show_all(&mut shown, &display, &|| gone.load(Ordering::Relaxed))
    })?;
    let parting = listen(&terminal.raw, &mut viewer, over.as_fd());
    left.store(true, Ordering::Relaxed);
    viewer.leave();
    // Nothing may be drawn after the last words of ours.
    let said = showing.join().ok();
    match parting? {
        Some(parting) => Ok(parting),
        None => Ok(said.unwrap_or_else(|| Parting::Lost("it could not be shown".to_owned()))),
    }
}

/// Shows what comes until it ends.
fn show_all(viewer: &mut Viewer, display: &Display, give_up: &dyn Fn() -> bool) -> Parting {
    loop {
        match viewer.next() {
            Ok(Some(Tell::Output(bytes))) => match display.show(&bytes, give_up) {
                Ok(()) => (),
                Err(e) => return Parting::Lost(format!("this terminal: {e}")),
            },
            Ok(Some(Tell::Ended(end))) => return Parting::Ended(end),
            Ok(Some(Tell::Lines(_) | Tell::Typed)) => {
                return Parting::Lost("its launcher gave no screen".to_owned());
            }
            Ok(None) => return Parting::Lost("its launcher has gone".to_owned()),
            Err(e) => return Parting::Lost(e.to_string()),
        }
    }
}

/// Types what is typed until this side or the other ends it; none: the other did.
fn listen(
    terminal: &RawTerminal,
    viewer: &mut Viewer,
    over: BorrowedFd,
) -> io::Result<Option<Parting>> {
    loop {
        match terminal.next(over)? {
            Input::Other => return Ok(None),
            Input::Gone => return Ok(Some(Parting::Detached)),
            Input::Signal(WINCH) => viewer.resize(own_size().unwrap_or(SIZE))?,
            Input::Signal(sig) => return Ok(Some(Parting::Told(sig))),
            Input::Keys(mut keys) => {
                let detach = detach_at(&keys);
                keys.truncate(detach.unwrap_or(keys.len()));
                if !keys.is_empty() && viewer.type_in(keys).is_err() {
                    // It has ended, which the other thread says better, or it does not read.
                    return Ok(None);
                }
                if detach.is_some() {
                    return Ok(Some(Parting::Detached));
                }
            }
        }
    }
}

/// Where the first detach key stands in what was typed.
fn detach_at(keys: &[u8]) -> Option<usize> {
    let at = |key: &&[u8]| keys.windows(key.len()).position(|part| part == *key);
    DETACH.iter().filter_map(at).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detach_key_is_found_in_every_form() {
        let table: [(&[u8], Option<usize>); 6] = [
            (b"", None),
            (b"abc\x1b[93;6u", None),
            (b"\x1d", Some(0)),
            (b"ab\x1dcd\x1d", Some(2)),
            (b"x\x1b[93;5u", Some(1)),
            (b"\x1b[27;5;93~\x1d", Some(0)),
        ];
        for (keys, expected) in table {
            assert_eq!(detach_at(keys), expected, "{keys:?}");
        }
    }

    #[test]
    fn what_a_program_left_set_is_taken_back() {
        let mut person = vt100::Parser::new(5, 20, 0);
        person.process(b"mine\r\n");
        let before = person.screen().state_formatted();
        person.process(ENTER.as_bytes());
        person.process(b"\x1b[?1049h\x1b[2Jtheirs\x1b[?1h\x1b=\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[?25l\x1b[2;3r\x1b[31m");
        person.process(LEAVE.as_bytes());
        assert_eq!(person.screen().contents(), "mine");
        assert_eq!(person.screen().state_formatted(), before);
    }
}
