//! Relays a member's terminal: its output goes to this terminal, and typed keys go to the member,
//! until one side ends it. The terminal is always restored afterwards.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::fail::{Exit, Failure, VerbResult, plain_words};
use crate::out::Out;
use model::id::MemberName;
use ops::Kind;
use ops::views::attach::{LauncherMessage, Viewer};
use sys::child::{ChildExit, own_size};
use sys::clock::Deadline;
use sys::signal::WINCH;
use sys::tty::{Display, RawTerminal, TerminalInput};

/// Ctrl-] as terminals send it: plain, in the kitty protocol, and with xterm's modifyOtherKeys. The
/// member's program may have enabled the last two.
const DETACH: [&[u8]; 3] = [b"\x1d", b"\x1b[93;5u", b"\x1b[27;5;93~"];

/// Fallback for a terminal that does not report its size: rows, columns.
const SIZE: (u16, u16) = (24, 80);
/// Time limit for writing our own sequences to a terminal that accepts no output.
const WRITE_LIMIT: Duration = Duration::from_secs(1);

/// Saves the title and switches to the alternate screen, so that the main screen is kept.
const ENTER: &str = "\x1b[22;2t\x1b[?1049h";
/// Resets every mode that a program may have set: an unfinished sequence, keyboard protocols,
/// keypad, mouse, focus, paste, synchronised output, origin mode, margins, scroll region, wrapping,
/// insertion, character set, cursor; then leaves the alternate screen and restores the title.
const LEAVE: &str = "\x18\x1b[=0;1u\x1b[>4;0m\x1b[?1l\x1b>\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\
                     \x1b[?1015l\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[?6l\x1b[?69l\x1b[r\x1b[?7h\x1b[4l\x1b(B\x0f\x1b[0 q\
                     \x1b[?1049l\x1b[m\x1b[?25h\x1b[23;2t";

/// The reason why the relay ended.
#[derive(Debug, PartialEq, Eq)]
enum RelayEnd {
    Detached,
    Ended(ChildExit),
    Lost(String),
    Signal(i32),
}

/// Shows the terminal behind `socket` until it ends or a person detaches.
pub(crate) fn relay_terminal(out: &Out, member: &MemberName, socket: &Path) -> VerbResult {
    let lost = |e: &io::Error| {
        let hint = format!(
            "see whether it runs with `phalanx status`, and what it printed with `phalanx logs {member}`"
        );
        let problem = format!("cannot attach to `{member}`: {}", plain_words(&e.to_string()));
        Failure::new(Kind::Failed, problem, Some(hint))
    };
    let viewer = Viewer::attach(socket, own_size().unwrap_or(SIZE)).map_err(|e| lost(&e))?;
    out.print_message(&format!("attached to {member}; detach with Ctrl-]"));
    match relay(viewer, member).map_err(|e| lost(&e))? {
        RelayEnd::Detached => out.print_message(&format!("detached from {member}, which goes on")),
        RelayEnd::Ended(end) => {
            out.print_message(&format!("{member} has ended: {}", exit_text(end)))
        }
        RelayEnd::Lost(problem) => return Err(lost(&io::Error::other(problem))),
        RelayEnd::Signal(sig) => {
            let message = format!("detached from `{member}` by signal {sig}");
            return Err(Failure::interrupted(
                &message,
                Some(format!("come back with `phalanx attach {member}`")),
            ));
        }
    }
    Ok(Exit::DONE)
}

/// Resets what a program may have set on this terminal, and leaves the alternate screen.
pub(crate) fn reset_terminal() {
    // A terminal that is gone needs no reset.
    let _ = Display::open().and_then(|display| show_own(&display, LEAVE));
}

/// Writes our own sequences.
fn show_own(display: &Display, sequences: &str) -> io::Result<()> {
    let limit = Deadline::after(WRITE_LIMIT);
    display.show(sequences.as_bytes(), &|| limit.expired())
}

fn exit_text(end: ChildExit) -> String {
    match (end.code, end.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "nobody knows how".to_owned(),
    }
}

/// The terminal in raw mode, on the alternate screen; restored on drop, also after a panic.
pub(crate) struct RelayTerminal {
    pub(crate) raw: RawTerminal,
    pub(crate) display: Display,
}

impl RelayTerminal {
    /// Takes over the terminal, as [`RawTerminal::enter`], and sets its title.
    pub(crate) fn enter(title: &str) -> io::Result<RelayTerminal> {
        let terminal = RelayTerminal { raw: RawTerminal::enter()?, display: Display::open()? };
        show_own(&terminal.display, &format!("{ENTER}\x1b]2;{title}\x07"))?;
        Ok(terminal)
    }
}

impl Drop for RelayTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no reset.
        let _ = show_own(&self.display, LEAVE);
    }
}

fn relay(mut viewer: Viewer, member: &MemberName) -> io::Result<RelayEnd> {
    let terminal = RelayTerminal::enter(&format!("{member}: detach with Ctrl-]"))?;
    let (over, alive) = io::pipe()?;
    let left = Arc::new(AtomicBool::new(false));
    let (mut output, display, gone) =
        (viewer.try_clone()?, terminal.display.try_clone()?, left.clone());
    let showing = thread::Builder::new().name("show".to_owned()).spawn(move || {
        // Dropped at the end of this thread, which wakes the input loop.
        let _alive = alive;
        show_all(&mut output, &display, &|| gone.load(Ordering::Relaxed))
    })?;
    let end = forward_keys(&terminal.raw, &mut viewer, over.as_fd());
    left.store(true, Ordering::Relaxed);
    viewer.leave();
    // Joined so that no output follows the closing message.
    let shown = showing.join().ok();
    match end? {
        Some(end) => Ok(end),
        None => Ok(shown.unwrap_or_else(|| RelayEnd::Lost("it could not be shown".to_owned()))),
    }
}

fn show_all(viewer: &mut Viewer, display: &Display, give_up: &dyn Fn() -> bool) -> RelayEnd {
    loop {
        match viewer.receive() {
            Ok(Some(LauncherMessage::Output(bytes))) => match display.show(&bytes, give_up) {
                Ok(()) => (),
                Err(e) => return RelayEnd::Lost(format!("this terminal: {e}")),
            },
            Ok(Some(LauncherMessage::Ended(end))) => return RelayEnd::Ended(end),
            Ok(Some(
                LauncherMessage::Size { .. } | LauncherMessage::Lines(_) | LauncherMessage::Typed,
            )) => {
                return RelayEnd::Lost("its launcher gave no screen".to_owned());
            }
            Ok(None) => return RelayEnd::Lost("its launcher has gone".to_owned()),
            Err(e) => return RelayEnd::Lost(e.to_string()),
        }
    }
}

/// Forwards typed keys until one side ends the relay; returns `None` if the member's side did.
fn forward_keys(
    terminal: &RawTerminal,
    viewer: &mut Viewer,
    over: BorrowedFd,
) -> io::Result<Option<RelayEnd>> {
    loop {
        match terminal.next(over)? {
            TerminalInput::Other => return Ok(None),
            TerminalInput::Gone => return Ok(Some(RelayEnd::Detached)),
            TerminalInput::Signal(WINCH) => viewer.resize(own_size().unwrap_or(SIZE))?,
            TerminalInput::Signal(sig) => return Ok(Some(RelayEnd::Signal(sig))),
            TerminalInput::Keys(mut keys) => {
                let detach = detach_at(&keys);
                keys.truncate(detach.unwrap_or(keys.len()));
                if !keys.is_empty() && viewer.type_in(keys).is_err() {
                    // Either the member has ended, which the output thread reports, or its launcher
                    // does not read.
                    return Ok(None);
                }
                if detach.is_some() {
                    return Ok(Some(RelayEnd::Detached));
                }
            }
        }
    }
}

fn detach_at(keys: &[u8]) -> Option<usize> {
    DETACH.iter().filter_map(|key| keys.windows(key.len()).position(|part| part == *key)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detach_key_is_found_in_every_encoding() {
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
    fn modes_set_by_a_program_are_reset() {
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
