//! The run that a launcher serves: its spec, which is removed from disk when read, and its member
//! record.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::program::{LaunchProblem, ProgramCommand};
use model::id::{Incarnation, MemberName};
use model::members::lifecycle::MemberState;
use model::members::placement::ProcessId;
use model::members::readiness::ReadyCheck;
use model::members::record::{ExitRecord, MemberRecord, StartRecord};
use model::members::spec::{self, OsText, Terminal};
use model::members::transcript::TranscriptForm;
use model::team::event::{EventKind, Note};
use model::text;
use store::{Store, TeamStore, now, take_spec};
use sys::env;
use sys::fs::{FsError, LogFile, remove_log};
use sys::proc::Process;

/// Size in bytes above which a log is rotated.
const LOG_LIMIT: u64 = 8 * 1024 * 1024;

/// The log that keeps the program's output when it has no pane.
pub(super) type SharedLog = Arc<Mutex<LogFile>>;

/// One run of a member, as its launcher sees it.
pub struct LauncherRun {
    pub command: ProgramCommand,
    pub store: Store,
    pub team: TeamStore,
    pub member: MemberName,
    pub incarnation: Incarnation,
    /// Maximum time to keep the terminal open after a failed start.
    pub(super) linger: Duration,
    /// The program uses the team's files, which are copies of the team in the shared store.
    pub(super) uses_files: bool,
    /// The program takes part in the team by itself, without a wrapper.
    pub(super) is_native: bool,
    /// A prompt of the program asks for a person's attention.
    pub(super) asks_for_attention: bool,
    /// The check whether the member is ready, if it has one.
    pub(super) ready: Option<ReadyCheck>,
    /// The form of the program's transcripts.
    pub(super) transcript: Option<TranscriptForm>,
    /// None in a pane, and until [`LauncherRun::open_log`] succeeds.
    pub(super) log: Option<SharedLog>,
}

impl LauncherRun {
    /// Reads and unlinks the spec at `path` (SEC-06), then checks the run's record.
    ///
    /// # Errors
    ///
    /// The spec is missing, unreadable or of another format, or the record is missing, is over, or
    /// belongs to a later run.
    pub(super) fn take(path: &Path, store: &Store) -> Result<LauncherRun, String> {
        let spec = take_spec(path).map_err(|e| e.to_string())?;
        let spec = spec.ok_or_else(|| {
            format!("there is no spec at {}: its run has begun already", path.display())
        })?;
        if spec.format != spec::FORMAT {
            return Err(format!(
                "the spec has form {}, this phalanx knows form {}",
                spec.format,
                spec::FORMAT
            ));
        }
        let root = PathBuf::from(spec.config_root.into_os());
        let store = store.under(&root).acting_for(&spec.incarnation);
        let team = store.team(&spec.team).map_err(|e| e.to_string())?;
        let words = |(name, value): (OsText, OsText)| (name.into_os(), value.into_os());
        let command = ProgramCommand {
            argv: spec.argv.into_iter().map(OsText::into_os).collect(),
            cwd: PathBuf::from(spec.cwd.into_os()),
            env: spec.env.into_iter().map(words).collect(),
            terminal: spec.terminal,
        };
        let linger = Duration::from_millis(spec.linger_ms);
        let (member, incarnation) = (spec.member, spec.incarnation);
        let record = team.member_record(&member).map_err(|e| e.to_string())?;
        let is_native = record.as_ref().is_some_and(MemberRecord::is_native);
        let asks = |record: &MemberRecord| !record.reads_mail() && !record.request.is_unattended;
        let asks_for_attention = record.as_ref().is_some_and(asks);
        let uses_files = team.is_shared() && is_native;
        let transcript = record.as_ref().and_then(|record| record.request.transcript);
        let ready = record.as_ref().and_then(MemberRecord::open_check);
        let log = None;
        let run = LauncherRun {
            command,
            store,
            team,
            member,
            incarnation,
            linger,
            uses_files,
            is_native,
            asks_for_attention,
            ready,
            transcript,
            log,
        };
        run.check(record.as_ref())?;
        Ok(run)
    }

    /// Opens the log, if the terminal has one, and removes that of an earlier run. Call it only
    /// after [`LauncherRun::take`] has confirmed that this run is the latest, because all runs of a
    /// member share one log.
    ///
    /// # Errors
    ///
    /// The log cannot be created or removed.
    pub(super) fn open_log(&mut self) -> Result<(), LaunchProblem> {
        let log = match &self.command.terminal {
            Terminal::Own { log, .. } | Terminal::Once { log } => log,
            // The log of a pane is written at the end; until then there is none.
            Terminal::Pane => {
                return remove_log(&self.team.log(&self.member)).map_err(|e| not_kept(&e));
            }
        };
        let fresh = LogFile::fresh(Path::new(log), LOG_LIMIT);
        let fresh = fresh.map_err(|e| not_kept(&e))?;
        self.log = Some(Arc::new(Mutex::new(fresh)));
        Ok(())
    }

    /// Rejects a run that has been superseded or has ended: a late launcher must not start a
    /// program that no record tracks.
    fn check(&self, record: Option<&MemberRecord>) -> Result<(), String> {
        match record {
            Some(record) if !record.is(&self.incarnation) => {
                Err(format!("`{}` has a later run", self.member))
            }
            Some(record) if record.state.is_over() => Err(format!(
                "this run of `{}` was over before it began: {}",
                self.member,
                record.state.as_str()
            )),
            Some(_) => Ok(()),
            None => Err(format!("`{}` has no record: its start was taken back", self.member)),
        }
    }

    /// Records that the program runs.
    ///
    /// # Errors
    ///
    /// The record is gone, over or of a later run, or it cannot be written; or the team is being
    /// ended, which has looked for runs already (SD-14).
    pub(super) fn record_start(
        &self,
        program: Process,
        tty: Option<String>,
        socket: Option<&Path>,
    ) -> Result<(), String> {
        let settings = self.team.settings().map_err(|e| e.to_string())?;
        if settings.and_then(|settings| settings.ends_until).is_some_and(|until| now() < until) {
            return Err(format!("team `{}` is being ended", self.team.name()));
        }
        let cwd = env::current_dir().unwrap_or_else(|_| self.command.cwd.clone());
        let start = StartRecord {
            launcher: process_id(Process::current()),
            program: process_id(program),
            tty,
            socket: socket.map(|path| path.to_string_lossy().into_owned()),
            cwd: cwd.to_string_lossy().into_owned(),
            at: now(),
        };
        self.change(|record| self.check(Some(record)).map(|()| record.start = Some(start.clone())))?
    }

    /// Records the exit status or the reason why the program did not start. Returns true if the
    /// spawner has not yet confirmed the start.
    pub(super) fn record_exit(&self, exit: ExitRecord) -> bool {
        let written = self.change(|record| {
            record.exit = Some(exit.clone());
            record.prompt = None;
            record.clone()
        });
        match written {
            Ok(record) => {
                self.journal_exit(&record, &exit);
                is_awaited(record.state)
            }
            Err(problem) => {
                self.print(&format!("the end of the program is not on record: {problem}"));
                false
            }
        }
    }

    /// Journals an exit outside of a shutdown: without a lead no other process would. A one-shot
    /// run is expected to exit and is reported by `OneShotEnd`.
    fn journal_exit(&self, record: &MemberRecord, exit: &ExitRecord) {
        let shutting_down =
            record.state.is_over() || record.state == MemberState::ShutdownRequested;
        let Some(start) = record.start.as_ref().filter(|_| !shutting_down) else { return };
        if self.is_one_shot() {
            return;
        }
        let note = Note::of(EventKind::MemberExited)
            .member(&self.member)
            .with("incarnation", self.incarnation.as_str())
            .with("elapsed_ms", exit.at.since(start.at))
            .with_some("last_line", exit.last_line.as_deref())
            .with_some("exit_code", exit.code)
            .with_some("signal", exit.signal);
        // Best effort: the exit is already in the record.
        let _ = self.team.record(note);
    }

    /// Returns true for a run without a terminal, whose launcher reports its end.
    pub(super) fn is_one_shot(&self) -> bool {
        matches!(self.command.terminal, Terminal::Once { .. })
    }

    /// Returns true if the member was asked to end, and has not ended since.
    pub(super) fn is_asked_to_end(&self) -> bool {
        let requests = self.team.requests().unwrap_or_default();
        requests.iter().any(|request| request.is_open() && request.incarnation == self.incarnation)
    }

    fn change<T>(&self, edit: impl FnMut(&mut MemberRecord) -> T) -> Result<T, String> {
        // The store would recreate the directories of a deleted team.
        if !self.team.exists() {
            return Err(format!("team `{}` is no more", self.team.name()));
        }
        let changed = self
            .team
            .change_record(&self.member, &self.incarnation, edit)
            .map_err(|e| e.to_string())?;
        changed.ok_or_else(|| format!("`{}` has no record of this run any more", self.member))
    }

    /// Journals a warning about processes that could not be ended.
    pub(super) fn journal_leftovers(&self, left: &[Process]) {
        if left.is_empty() || !self.team.exists() {
            return;
        }
        let pids: Vec<i32> = left.iter().map(|process| process.pid).collect();
        let note = self
            .warning()
            .with("text", "processes of an ended program are still there")
            .with("pids", pids);
        // Best effort: a failed journal write has no other place to be reported.
        let _ = self.team.record(note);
    }

    /// Returns a warning about this run for the journal.
    pub(super) fn warning(&self) -> Note {
        Note::of(EventKind::Warning)
            .member(&self.member)
            .with("incarnation", self.incarnation.as_str())
    }

    /// Appends a line to the log, or writes it to standard error if there is none.
    pub fn print(&self, line: &str) {
        match &self.log {
            Some(log) => {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                // A failed write to the log has no other place to be reported.
                let _ = log.append(format_line(line).as_bytes());
            }
            None => print_error(line),
        }
    }
}

fn not_kept(error: &FsError) -> LaunchProblem {
    LaunchProblem::not_runnable(format!("what it prints cannot be kept: {error}"))
}

fn process_id(process: Process) -> ProcessId {
    ProcessId { pid: process.pid, start: process.start }
}

/// Returns whether a spawner may still wait for a member in this state to come up.
pub(super) fn is_awaited(state: MemberState) -> bool {
    !state.is_up() && !state.is_over()
}

/// Writes a line to standard error. `eprintln!` would panic if the terminal is gone.
pub(super) fn print_error(line: &str) {
    let _ = io::stderr().write_all(format_line(line).as_bytes());
}

/// Formats a line with a carriage return: the program may have left the terminal in raw mode, and a
/// log is replayed as a screen.
fn format_line(line: &str) -> String {
    format!("phalanx: {}\r\n", text::line(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sp_09_the_screen_is_held_only_before_the_member_is_up() {
        use MemberState::{
            Completed, Disappeared, Failed, Idle, Killed, Pending, ShutdownRequested, Starting,
            Working,
        };
        assert!([Pending, Starting].into_iter().all(is_awaited));
        let after = [Working, Idle, ShutdownRequested, Completed, Failed, Killed, Disappeared];
        assert!(!after.into_iter().any(is_awaited));
    }
}
