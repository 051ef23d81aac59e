//! `logs`: the output of members line by line, from their logs or from their screens.

use std::path::PathBuf;

use crate::authority::names::started_record;
use crate::hosts::log_part::{CHUNK, LogPart, LogRange, Times};
use crate::members::{output, presence};
use crate::{Context, OpsError, hosts};
use model::id::{HostName, Incarnation, MemberName};
use model::members::placement::Placement;
use model::members::record::MemberRecord;
use model::text;
use model::time::Timestamp;
use store::TeamStore;
use sys::proc::Liveness;

/// The number of lines read from a screen and its history.
const SCREEN_LINES: usize = 2000;

/// One line of output, fit to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Time when its first byte was printed, to the second; `None` if not recorded.
    pub time: Option<Timestamp>,
    pub text: String,
}

/// The output of one member, read from its start.
#[derive(Debug, Clone)]
pub struct LogReader {
    pub name: MemberName,
    /// The member's colour on the wire.
    pub color: String,
    is_elsewhere: bool,
    source: OutputSource,
}

#[derive(Debug, Clone)]
enum OutputSource {
    Log(MemberLog),
    /// The screen at the last read.
    Screen(String),
}

/// The files of a log.
#[derive(Debug, Clone)]
enum LogOrigin {
    /// The path of the current one.
    Here(PathBuf),
    /// On another host, whose server reads it.
    On { host: HostName, incarnation: Incarnation },
}

#[derive(Debug, Clone)]
struct MemberLog {
    name: MemberName,
    place: LogOrigin,
    /// The number of last lines that the first read must return; `None` for all.
    last: Option<usize>,
    /// True once the older log was read; from then on `at` counts in the current one.
    begun: bool,
    at: u64,
    /// The beginning of a line that is not complete yet.
    rest: Vec<u8>,
}

impl LogReader {
    /// Begins to read the output of a member. With `last`, the first read returns at least that
    /// many of the last lines, and may omit earlier ones. Returns `None` if the member is being
    /// started and has no terminal yet.
    ///
    /// # Errors
    /// A name that is not on the team, or a member that phalanx did not start.
    pub fn open(
        team: &TeamStore,
        name: &MemberName,
        last: Option<usize>,
    ) -> Result<Option<LogReader>, OpsError> {
        let record = started_record(team, name)?;
        if record.placement.is_none() && is_live(&record) {
            return Ok(None);
        }
        let source = OutputSource::of(&record, last);
        let is_elsewhere = record.is_elsewhere;
        Ok(Some(LogReader { name: record.name, color: record.request.color, is_elsewhere, source }))
    }

    /// Returns true if a read is costly: that of a screen, or on another host.
    pub fn is_costly(&self) -> bool {
        match &self.source {
            OutputSource::Log(log) => matches!(log.place, LogOrigin::On { .. }),
            OutputSource::Screen(_) => true,
        }
    }

    /// Returns true if the times of its lines are recorded. They are not for a program without a
    /// terminal, which writes its log itself, nor for a screen.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub fn has_times(&self, ctx: &Context, team: &TeamStore) -> Result<bool, OpsError> {
        let OutputSource::Log(log) = &self.source else { return Ok(false) };
        let nothing = LogRange { is_older: false, at: 0, most: 0, times_from: 0 };
        let part = log.place.read(ctx, team, &log.name, &nothing)?;
        Ok(part.len == 0 || part.has_times)
    }

    /// Returns true for a member on another host.
    pub fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// Returns true while the member may still print. Later reads are about the run that is on
    /// record now.
    pub fn is_live(&mut self, team: &TeamStore) -> bool {
        let Ok(Some(record)) = team.member_record(&self.name) else { return false };
        if record.placement.is_some() {
            match (&mut self.source, OutputSource::of(&record, None)) {
                (OutputSource::Log(log), OutputSource::Log(now)) => log.place = now.place,
                (OutputSource::Screen(_), OutputSource::Screen(_)) => {}
                (source, now) => *source = now,
            }
        }
        is_live(&record)
    }

    /// Returns the lines that are new since the last call; with `all` also an incomplete last line.
    ///
    /// # Errors
    /// A log or a screen that cannot be read.
    pub fn read(
        &mut self,
        ctx: &Context,
        team: &TeamStore,
        all: bool,
    ) -> Result<Vec<LogLine>, OpsError> {
        match &mut self.source {
            OutputSource::Log(log) => {
                let MemberLog { name, place, .. } = log;
                let (name, place) = (name.clone(), place.clone());
                log.read(all, |range| place.read(ctx, team, &name, range))
            }
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

impl OutputSource {
    /// Returns the output of a run, of which nothing was read.
    fn of(record: &MemberRecord, last: Option<usize>) -> OutputSource {
        match &record.placement {
            Some(Placement::Pty(hold)) => OutputSource::Log(MemberLog {
                name: record.name.clone(),
                place: match record.other_host() {
                    Some(host) => {
                        let incarnation = record.incarnation.clone();
                        LogOrigin::On { host: host.clone(), incarnation }
                    }
                    None => LogOrigin::Here(PathBuf::from(&hold.log)),
                },
                last,
                begun: false,
                at: 0,
                rest: Vec::new(),
            }),
            Some(Placement::Tmux(_) | Placement::Iterm2(_)) | None => {
                OutputSource::Screen(String::new())
            }
        }
    }
}

/// A run on another host counts as live until its exit is on record.
fn is_live(record: &MemberRecord) -> bool {
    let has_exited = record.is_elsewhere && record.exit.is_some();
    !record.state.is_over() && !has_exited && presence::liveness(record) != Liveness::Dead
}

impl LogOrigin {
    fn read(
        &self,
        ctx: &Context,
        team: &TeamStore,
        name: &MemberName,
        range: &LogRange,
    ) -> Result<LogPart, OpsError> {
        match self {
            LogOrigin::Here(path) => LogPart::read(path, range),
            LogOrigin::On { host, incarnation } => {
                hosts::read_log(ctx, team, host, (name, incarnation), range)
            }
        }
    }
}

impl MemberLog {
    /// Moves to the start of the last `count` complete lines. Reads backwards from the end, because
    /// the log of a program that writes it itself can have any length.
    fn skip_to_last(
        &mut self,
        count: usize,
        part: impl Fn(&LogRange) -> Result<LogPart, OpsError>,
    ) -> Result<(), OpsError> {
        let mut newlines = 0;
        for is_older in [false, true] {
            let range = LogRange { is_older, at: 0, most: 0, times_from: 0 };
            let mut end = part(&range)?.len;
            while end > 0 {
                let at = end.saturating_sub(CHUNK);
                let range = LogRange { is_older, at, most: end - at, times_from: end };
                for newline in memchr::memrchr_iter(b'\n', &part(&range)?.bytes) {
                    if newlines == count {
                        self.at = at + newline as u64 + 1;
                        self.begun = !is_older;
                        return Ok(());
                    }
                    newlines += 1;
                }
                end = at;
            }
        }
        Ok(())
    }

    /// Returns the lines that are new since the last call; with `all` also an incomplete last line.
    fn read(
        &mut self,
        all: bool,
        part: impl Fn(&LogRange) -> Result<LogPart, OpsError>,
    ) -> Result<Vec<LogLine>, OpsError> {
        let mut lines = Vec::new();
        if let Some(count) = self.last {
            self.skip_to_last(count, &part)?;
            self.last = None;
        }
        if !self.begun {
            self.begun = true;
            self.drain(true, &part, &mut lines)?;
            self.at = 0;
        }
        if self.drain(false, &part, &mut lines)? < self.at {
            // The log was rotated and is the older one now; or another run began, and there is
            // none.
            self.drain(true, &part, &mut lines)?;
            self.at = 0;
            self.drain(false, &part, &mut lines)?;
        }
        if all && !self.rest.is_empty() {
            let times_from = self.at.saturating_sub(self.rest.len() as u64);
            let range = LogRange { is_older: false, at: self.at, most: 0, times_from };
            let times = Times(part(&range)?.times);
            lines.push(line(&std::mem::take(&mut self.rest), times.time_at(times_from)));
        }
        Ok(lines)
    }

    /// Reads one file from `at` to its end. Returns its length.
    fn drain(
        &mut self,
        is_older: bool,
        part: impl Fn(&LogRange) -> Result<LogPart, OpsError>,
        lines: &mut Vec<LogLine>,
    ) -> Result<u64, OpsError> {
        loop {
            let mut at = self.at.saturating_sub(self.rest.len() as u64);
            let part = part(&LogRange { is_older, at: self.at, most: CHUNK, times_from: at })?;
            if part.bytes.is_empty() {
                return Ok(part.len);
            }
            let times = Times(part.times);
            self.at += part.bytes.len() as u64;
            let mut whole = std::mem::take(&mut self.rest);
            whole.extend(part.bytes);
            let end = whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            self.rest = whole.split_off(end);
            for bytes in whole.split_inclusive(|byte| *byte == b'\n') {
                lines.push(line(bytes, times.time_at(at)));
                at += bytes.len() as u64;
            }
        }
    }
}

fn line(bytes: &[u8], time: Option<Timestamp>) -> LogLine {
    let text = text::plain(&String::from_utf8_lossy(bytes));
    LogLine { time, text: text.trim_end_matches('\n').to_owned() }
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
    use std::cell::Cell;
    use std::path::Path;

    use super::*;
    use sys::fs::{self, older, times_of};

    fn texts(lines: Vec<LogLine>) -> Vec<(Option<u64>, String)> {
        lines.into_iter().map(|line| (line.time.map(|time| time.0), line.text)).collect()
    }

    fn log(path: &Path) -> MemberLog {
        let name = MemberName::new("ann").expect("a name");
        let place = LogOrigin::Here(path.to_owned());
        MemberLog { name, place, last: None, begun: false, at: 0, rest: Vec::new() }
    }

    fn read(log: &mut MemberLog, all: bool) -> Vec<LogLine> {
        let LogOrigin::Here(path) = log.place.clone() else { panic!("a log on this host") };
        log.read(all, |range| LogPart::read(&path, range)).expect("readable")
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
        assert_eq!(texts(read(&mut log, false)), [(Some(1000), "one".to_owned())]);
        put(&path, "one\r\ntwo\nthr\u{1b}[1mee");
        assert_eq!(texts(read(&mut log, false)), [(Some(2000), "two".to_owned())]);
        assert_eq!(texts(read(&mut log, true)), [(Some(3000), "three".to_owned())]);
        assert_eq!(read(&mut log, true), []);
    }

    #[test]
    fn rotated_log_is_read_to_its_end() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("a.log");
        put(&older(&path), "zero\n");
        put(&path, "one\ntwo\n");
        let mut log = log(&path);
        assert_eq!(texts(read(&mut log, false)).len(), 3);
        put(&older(&path), "one\ntwo\nthree\nfo");
        put(&path, "ur\n");
        let lines: Vec<String> = texts(read(&mut log, false)).into_iter().map(|(_, t)| t).collect();
        assert_eq!(lines, ["three", "four"]);
    }

    #[test]
    fn pf_10_last_lines_are_found_from_the_end_over_blocks_and_rotations() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("a.log");
        let long = "x".repeat(usize::try_from(2 * CHUNK).expect("fits"));
        put(&older(&path), &format!("zero\n{long}\none\ntw"));
        put(&path, &format!("o\n{long}\nthree\nfo"));
        let last = |count: usize, all: bool| {
            let read_bytes = Cell::new(0);
            let mut log = log(&path);
            let part = |range: &LogRange| {
                let part = LogPart::read(&path, range)?;
                read_bytes.set(read_bytes.get() + part.bytes.len() as u64);
                Ok(part)
            };
            log.last = Some(count);
            let lines = log.read(all, part).expect("readable");
            let lines = lines.into_iter().map(|line| line.text.chars().take(5).collect::<String>());
            (lines.collect::<Vec<_>>().join(" "), read_bytes.get())
        };
        assert_eq!(last(0, false).0, "");
        assert_eq!(last(0, true).0, "fo");
        assert_eq!(last(1, true).0, "three fo");
        assert!(last(1, true).1 < 2 * CHUNK, "only the end was read: {}", last(1, true).1);
        assert_eq!(last(2, false).0, "xxxxx three");
        assert_eq!(last(3, false).0, "two xxxxx three");
        assert_eq!(last(4, false).0, "one two xxxxx three");
        assert_eq!(last(6, false).0, "zero xxxxx one two xxxxx three");
        assert_eq!(last(7, true).0, "zero xxxxx one two xxxxx three fo");
    }

    #[test]
    fn scrolled_screen_returns_only_its_new_lines() {
        assert_eq!(fresh("", "a\nb"), ["a", "b"]);
        assert_eq!(fresh("a\nb\nc", "b\nc\nd"), ["d"]);
        assert_eq!(fresh("a\nb", "a\nb"), Vec::<String>::new());
        assert_eq!(fresh("a\nb", "x\ny"), ["x", "y"]);
    }
}
