//! `logs`: the output of members line by line, from their logs or from their screens.

use std::path::{Path, PathBuf};

use super::context::Context;
use super::error::OpsError;
use super::names::started_record;
use super::{output, status};
use crate::model::id::MemberName;
use crate::model::placement::Placement;
use crate::model::record::MemberRecord;
use crate::model::text;
use crate::model::time::Timestamp;
use crate::store::TeamStore;
use crate::sys::fs::{self, older, times_of};
use crate::sys::proc::Liveness;

/// The number of bytes read from a log at once.
const CHUNK: u64 = 1024 * 1024;
/// The number of lines read from a screen and its history.
const SCREEN_LINES: usize = 2000;
/// A larger file of times is not read: a log has at most one entry for each of its bytes.
const TIMES_LIMIT: u64 = 256 * 1024 * 1024;

/// One line of output, fit to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogLine {
    /// Time when its first byte was printed, to the second; `None` if not recorded.
    pub(crate) time: Option<Timestamp>,
    pub(crate) text: String,
}

/// The output of one member, read from its start.
#[derive(Debug)]
pub(crate) struct LogReader {
    pub(crate) name: MemberName,
    /// The member's colour on the wire.
    pub(crate) color: String,
    source: OutputSource,
}

#[derive(Debug)]
enum OutputSource {
    Log(MemberLog),
    /// The screen at the last read.
    Screen(String),
}

#[derive(Debug)]
struct MemberLog {
    path: PathBuf,
    /// True once the older log was read; from then on `at` counts in the current one.
    begun: bool,
    at: u64,
    /// The beginning of a line that is not complete yet.
    rest: Vec<u8>,
}

impl LogReader {
    /// Begins to read the output of a member. Returns `None` if it is being started and has no
    /// terminal yet.
    ///
    /// # Errors
    /// A name that is not on the team, or a member that phalanx did not start.
    pub(crate) fn open(team: &TeamStore, name: &MemberName) -> Result<Option<LogReader>, OpsError> {
        let record = started_record(team, name)?;
        if record.placement.is_none() && is_live(&record) {
            return Ok(None);
        }
        let source = match record.placement {
            Some(Placement::Pty(hold)) => OutputSource::Log(MemberLog {
                path: PathBuf::from(hold.log),
                begun: false,
                at: 0,
                rest: Vec::new(),
            }),
            Some(Placement::Tmux(_) | Placement::Iterm2(_) | Placement::Exec(_)) | None => {
                OutputSource::Screen(String::new())
            }
        };
        Ok(Some(LogReader { name: record.name, color: record.request.color, source }))
    }

    /// Returns true if only the member's screen can be read, because no log of its output exists.
    pub(crate) fn is_screen(&self) -> bool {
        matches!(self.source, OutputSource::Screen(_))
    }

    /// Returns true if the times of its lines are recorded. They are not for a program without a
    /// terminal, which writes its log itself, nor for a screen.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub(crate) fn has_times(&self) -> Result<bool, OpsError> {
        let OutputSource::Log(MemberLog { path, .. }) = &self.source else { return Ok(false) };
        let is_empty = |path: &Path| fs::len(path).map(|len| len.unwrap_or(0) == 0);
        Ok(is_empty(path)? || !is_empty(&times_of(path))?)
    }

    /// Returns true while the member may still print.
    pub(crate) fn is_live(&self, team: &TeamStore) -> bool {
        status::record(team, &self.name).ok().flatten().is_some_and(|record| is_live(&record))
    }

    /// Returns the lines that are new since the last call; with `all` also an incomplete last line.
    ///
    /// # Errors
    /// A log or a screen that cannot be read.
    pub(crate) fn read(
        &mut self,
        ctx: &Context,
        team: &TeamStore,
        all: bool,
    ) -> Result<Vec<LogLine>, OpsError> {
        match &mut self.source {
            OutputSource::Log(log) => log.read(all),
            OutputSource::Screen(before) => {
                let screen = match output::peek(ctx, team, &self.name, SCREEN_LINES) {
                    // The member's pane closed between two reads.
                    Err(_) if all && !before.is_empty() => return Ok(Vec::new()),
                    other => other?,
                };
                let lines = fresh(before, &screen);
                *before = screen;
                Ok(lines.into_iter().map(|text| LogLine { time: None, text }).collect())
            }
        }
    }
}

fn is_live(record: &MemberRecord) -> bool {
    !record.state.is_over() && status::liveness(record) != Liveness::Dead
}

impl MemberLog {
    fn read(&mut self, all: bool) -> Result<Vec<LogLine>, OpsError> {
        let mut lines = Vec::new();
        let full = older(&self.path);
        if !self.begun {
            self.begun = true;
            self.drain(&full, &mut lines)?;
            self.at = 0;
        } else if fs::len(&self.path)?.unwrap_or(0) < self.at {
            // The log was rotated and is the older one now; or another run began, and there is
            // none.
            self.drain(&full, &mut lines)?;
            self.at = 0;
        }
        let path = self.path.clone();
        self.drain(&path, &mut lines)?;
        if all && !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            let times = Times::read(&path)?;
            lines.push(line(&rest, times.at(self.at.saturating_sub(rest.len() as u64))));
        }
        Ok(lines)
    }

    /// Reads one file from `at` to its end.
    fn drain(&mut self, file: &Path, lines: &mut Vec<LogLine>) -> Result<(), OpsError> {
        let mut times = None;
        loop {
            let bytes = fs::read_range(file, self.at, CHUNK)?;
            if bytes.is_empty() {
                return Ok(());
            }
            let times = match &mut times {
                Some(times) => times,
                none => none.insert(Times::read(file)?),
            };
            let mut at = self.at.saturating_sub(self.rest.len() as u64);
            self.at += bytes.len() as u64;
            let mut whole = std::mem::take(&mut self.rest);
            whole.extend(bytes);
            let end = whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            self.rest = whole.split_off(end);
            for bytes in whole.split_inclusive(|byte| *byte == b'\n') {
                lines.push(line(bytes, times.at(at)));
                at += bytes.len() as u64;
            }
        }
    }
}

fn line(bytes: &[u8], time: Option<Timestamp>) -> LogLine {
    let text = text::plain(&String::from_utf8_lossy(bytes));
    LogLine { time, text: text.trim_end_matches('\n').to_owned() }
}

/// The times at which a log was written, by byte offset; in the file, lines `MILLISECONDS OFFSET`
/// in order.
struct Times(Vec<(u64, Timestamp)>);

impl Times {
    fn read(log: &Path) -> Result<Times, OpsError> {
        let bytes = fs::read(&times_of(log), TIMES_LIMIT)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let entry = |line: &str| {
            let (ms, offset) = line.split_once(' ')?;
            Some((offset.parse().ok()?, Timestamp(ms.parse().ok()?)))
        };
        Ok(Times(text.lines().filter_map(entry).collect()))
    }

    fn at(&self, offset: u64) -> Option<Timestamp> {
        let after = self.0.partition_point(|(from, _)| *from <= offset);
        after.checked_sub(1).and_then(|at| self.0.get(at)).map(|(_, time)| *time)
    }
}

/// Returns the lines that a screen did not show before: those after the longest suffix of the
/// earlier screen that the new one begins with. All lines, if the last line of the earlier screen
/// has grown.
fn fresh(before: &str, after: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let overlap = (0..=old.len().min(new.len())).rev().find(|n| old[old.len() - n..] == new[..*n]);
    new[overlap.unwrap_or(0)..].iter().map(|line| text::line(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: Vec<LogLine>) -> Vec<(Option<u64>, String)> {
        lines.into_iter().map(|line| (line.time.map(|time| time.0), line.text)).collect()
    }

    fn log(path: &Path) -> MemberLog {
        MemberLog { path: path.to_owned(), begun: false, at: 0, rest: Vec::new() }
    }

    fn put(path: &Path, text: &str) {
        let _ = fs::remove_file(path);
        fs::create_new(path, text.as_bytes()).expect("writable");
    }

    #[test]
    fn lines_are_returned_once_complete_with_their_start_time() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("a.log");
        put(&path, "one\r\ntw");
        put(&times_of(&path), "1000 0\n2000 5\ngarbage\n3000 7\n");
        let mut log = log(&path);
        assert_eq!(texts(log.read(false).expect("readable")), [(Some(1000), "one".to_owned())]);
        put(&path, "one\r\ntwo\nthr\u{1b}[1mee");
        assert_eq!(texts(log.read(false).expect("readable")), [(Some(2000), "two".to_owned())]);
        assert_eq!(texts(log.read(true).expect("readable")), [(Some(3000), "three".to_owned())]);
        assert_eq!(log.read(true).expect("readable"), []);
    }

    #[test]
    fn rotated_log_is_read_to_its_end() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("a.log");
        put(&older(&path), "zero\n");
        put(&path, "one\ntwo\n");
        let mut log = log(&path);
        assert_eq!(texts(log.read(false).expect("readable")).len(), 3);
        put(&older(&path), "one\ntwo\nthree\nfo");
        put(&path, "ur\n");
        let lines: Vec<String> =
            texts(log.read(false).expect("readable")).into_iter().map(|(_, t)| t).collect();
        assert_eq!(lines, ["three", "four"]);
    }

    #[test]
    fn scrolled_screen_returns_only_its_new_lines() {
        assert_eq!(fresh("", "a\nb"), ["a", "b"]);
        assert_eq!(fresh("a\nb\nc", "b\nc\nd"), ["d"]);
        assert_eq!(fresh("a\nb", "a\nb"), Vec::<String>::new());
        assert_eq!(fresh("a\nb", "x\ny"), ["x", "y"]);
    }
}
