//! `logs`: what a member has printed, from its log or from its screen.

use std::path::Path;
use std::time::Duration;

use super::fail::{Exit, Failure};
use super::out::Out;
use super::setup::{Setup, member};
use super::{Done, args, interrupt};
use crate::model::id::MemberName;
use crate::model::text;
use crate::ops::output::{self, Source};
use crate::ops::{Context, Team, status};
use crate::sys::clock;
use crate::sys::proc::Liveness;

/// How much of a log is read in one go.
const CHUNK: u64 = 1024 * 1024;
/// How often a log that is followed is looked at: it lies where nobody tells of changes.
const PAUSE: Duration = Duration::from_millis(250);
/// The same for a screen, which costs more.
const SCREEN_PAUSE: Duration = Duration::from_secs(1);
/// How much of a screen and what has left it is shown.
const SCREEN_LINES: usize = 2000;

/// A member whose output is shown.
struct Reader {
    ctx: Context,
    team: Team,
    name: MemberName,
    out: Out,
    follow: bool,
}

pub(super) fn logs(setup: &Setup, args: args::Logs) -> Done {
    let name = member(&args.name)?;
    let reader = Reader {
        ctx: setup.ctx.clone(),
        team: setup.team()?,
        name,
        out: setup.out.clone(),
        follow: args.follow,
    };
    let show = move || match output::source(&reader.team, &reader.name)? {
        Source::File(log) => reader.file(&log),
        Source::Screen => reader.screen(),
    };
    if args.follow { interrupt::breakable(Failure::StreamEnded, show) } else { show() }
}

impl Reader {
    fn file(&self, log: &Path) -> Done {
        let (mut at, mut rest) = (0, Vec::new());
        loop {
            // Asked before reading: what it printed before its end is then in the log.
            let over = !self.follow || !self.is_there();
            let bytes = output::read(log, at, CHUNK)?;
            at += bytes.len() as u64;
            let more = bytes.len() as u64 == CHUNK;
            rest.extend(bytes);
            let whole = whole_lines(&mut rest, over && !more);
            self.out.data(&text::plain(&String::from_utf8_lossy(&whole)))?;
            match (more, over) {
                (true, _) => {}
                (false, true) => return Ok(Exit::DONE),
                (false, false) => clock::sleep(PAUSE),
            }
        }
    }

    fn screen(&self) -> Done {
        let mut before = String::new();
        loop {
            let over = !self.follow || !self.is_there();
            let screen = match output::peek(&self.ctx, &self.team, &self.name, SCREEN_LINES) {
                // Its pane went with it between two looks.
                Err(_) if self.follow && !before.is_empty() && !self.is_there() => return Ok(Exit::DONE),
                other => other?,
            };
            self.out.data(&text::block(&fresh(&before, &screen)))?;
            if over {
                return Ok(Exit::DONE);
            }
            before = screen;
            clock::sleep(SCREEN_PAUSE);
        }
    }

    fn is_there(&self) -> bool {
        let record = status::record(&self.team, &self.name).ok().flatten();
        record.is_some_and(|record| !record.state.is_over() && status::liveness(&record) != Liveness::Dead)
    }
}

/// Takes the complete lines away from `bytes`; at the end, all of it.
fn whole_lines(bytes: &mut Vec<u8>, all: bool) -> Vec<u8> {
    let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let rest = bytes.split_off(if all { bytes.len() } else { end });
    std::mem::replace(bytes, rest)
}

/// What a screen shows that it did not show before: the lines after the longest end of the earlier picture that the
/// new one begins with. The last line of the earlier one may have grown since.
fn fresh(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let overlap = (0..=old.len().min(new.len())).rev().find(|n| old[old.len() - n..] == new[..*n]);
    new[overlap.unwrap_or(0)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_when_they_are_complete() {
        let mut bytes = b"a\nb\nc".to_vec();
        assert_eq!(whole_lines(&mut bytes, false), b"a\nb\n");
        assert_eq!(bytes, b"c");
        assert_eq!(whole_lines(&mut bytes, false), b"");
        assert_eq!(whole_lines(&mut bytes, true), b"c");
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_screen_that_scrolled_shows_its_new_lines() {
        assert_eq!(fresh("", "a\nb"), "a\nb");
        assert_eq!(fresh("a\nb\nc", "b\nc\nd"), "d");
        assert_eq!(fresh("a\nb", "a\nb"), "");
        assert_eq!(fresh("a\nb", "x\ny"), "x\ny");
    }
}
