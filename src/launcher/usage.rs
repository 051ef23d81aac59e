//! Reads the transcripts of the program while it runs, and records what it has used and, for a
//! native program, whether it has reached its usage limit. The limit of a wrapped program is read
//! from its screen by its wrapper.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::run::LauncherRun;
use super::sessions;
use model::id::{Incarnation, MemberName};
use model::members::rate_limit::LimitHit;
use model::members::record::MemberRecord;
use model::members::transcript::TranscriptForm;
use model::members::usage::{MemberUsage, TranscriptState};
use model::team::event::{EventKind, Note};
use store::{StoreError, TeamStore, TeamWatch, now};
use sys::clock::{self, Deadline};
use sys::fs;
use sys::proc::{self, Process};
use sys::signal::TERM;
use sys::watch::Watch;

/// Time from a change to the read: a program writes the lines of a response one after the other.
const SETTLE: Duration = Duration::from_secs(1);
/// Minimum time between two reads.
const INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of transcripts of a session: its own and those of subagents.
const MOST_FILES: usize = 200;
/// Bytes to read at a time, and the maximum length of a line.
const CHUNK: u64 = 4 << 20;
/// Maximum number of these per transcript and read. The rest follows with the next read.
const MOST_CHUNKS: usize = 64;

/// The thread that reads.
pub(super) struct UsageThread {
    events: Sender<UsageEvent>,
    thread: JoinHandle<()>,
}

enum UsageEvent {
    Changed,
    /// The program has ended.
    Stop,
}

impl UsageThread {
    /// Starts the thread; `None` if the program writes no transcripts that can be read.
    pub(super) fn start(run: &LauncherRun) -> Option<UsageThread> {
        let form = run.transcript?;
        let root = root_of(form, &run.command.env)?;
        let (events, received) = channel();
        let reader = UsageReader {
            team: run.team.clone(),
            member: run.member.clone(),
            incarnation: run.incarnation.clone(),
            is_native: run.is_native,
            form,
            root,
            session: None,
            refused: 0,
            watch: None,
            events: events.clone(),
        };
        let thread = thread::spawn(move || reader.read_until_stopped(&received));
        Some(UsageThread { events, thread })
    }

    /// Reads what the program has written last, and ends the thread.
    pub(super) fn finish(self) {
        // Fails only if the thread has ended.
        let _ = self.events.send(UsageEvent::Stop);
        let _ = self.thread.join();
    }
}

/// Returns the directory below which the program writes its transcripts.
fn root_of(form: TranscriptForm, env: &[(OsString, OsString)]) -> Option<PathBuf> {
    let var = |name: &str| {
        let found = env.iter().rev().find(|(key, _)| key == OsStr::new(name));
        found.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let home = |dir: &str| var("HOME").map(|home| home.join(dir));
    Some(match form {
        TranscriptForm::Claude => {
            var("CLAUDE_CONFIG_DIR").or_else(|| home(".claude"))?.join("projects")
        }
        TranscriptForm::Codex => var("CODEX_HOME").or_else(|| home(".codex"))?.join("sessions"),
    })
}

struct UsageReader {
    team: TeamStore,
    member: MemberName,
    incarnation: Incarnation,
    is_native: bool,
    form: TranscriptForm,
    root: PathBuf,
    /// The session whose transcript is watched.
    session: Option<String>,
    /// The number of refusals that were recorded.
    refused: u64,
    watch: Option<Watch>,
    events: Sender<UsageEvent>,
}

impl UsageReader {
    fn read_until_stopped(mut self, events: &Receiver<UsageEvent>) {
        let sender = self.events.clone();
        // Its mail and its record change when a turn begins or ends. Without a watch, only the end
        // of the program causes a read.
        let _watch: Result<TeamWatch, StoreError> = self.team.watch_as(&self.member, move |_| {
            // Fails only while the thread ends.
            let _ = sender.send(UsageEvent::Changed);
        });
        let mut last: Option<Deadline> = None;
        while let Ok(UsageEvent::Changed) = events.recv() {
            let rest = last.map_or(Duration::ZERO, |last| last.remaining());
            if !wait(events, rest.max(SETTLE)) {
                break;
            }
            last = Some(Deadline::after(INTERVAL));
            if self.is_native && !self.team.exists() {
                // The lead has deleted the team, as Claude Code does when it exits. Without a team
                // nothing could end the member or write to it (SD-22).
                proc::signal(Process::current(), TERM);
            }
            self.read();
        }
        self.read();
    }

    /// Reads the new part of the transcripts. Nothing depends on it, so a failure only delays what
    /// is shown.
    fn read(&mut self) {
        if self.team.exists() {
            let _ = self.try_read();
        }
    }

    fn try_read(&mut self) -> Result<(), StoreError> {
        let record = self.team.member_record(&self.member)?;
        let Some(record) = record.filter(|record| record.is(&self.incarnation)) else {
            return Ok(());
        };
        let Some(session) = record.session.clone() else { return Ok(()) };
        let before = record.usage.clone().unwrap_or_default();
        let mut usage = before.clone();
        if self.session.as_ref() != Some(&session) {
            let Some(path) = sessions::find(self.form, &self.root, &session) else { return Ok(()) };
            self.turn_to(&path, session, &mut usage);
        }
        if let Some(path) = self.later_transcript(&record, &usage)
            && let Some(session) = sessions::session_of(&path)
        {
            self.team.change_record(&self.member, &self.incarnation, |record| {
                record.begin_session(session);
            })?;
            self.turn_to(&path, session.to_owned(), &mut usage);
        }
        add_subagents(self.form, &mut usage);
        read_all(self.form, &mut usage);
        if usage != before {
            self.team.record_usage(&self.member, &self.incarnation, &usage)?;
        }
        let before = before.turn_error();
        if let Some(error) = usage.turn_error().filter(|error| Some(*error) != before) {
            let note = Note::of(EventKind::MemberHealth).member(&self.member);
            self.team.record(note.with("state", "error").with("reason", error.said.as_str()))?;
        }
        if let Some(main) = usage.transcripts.first().filter(|_| self.is_native) {
            let is_new = main.refused != self.refused;
            if let Some(said) = main.limit.as_ref().filter(|_| is_new) {
                let hit = LimitHit::of_text(said, now(), &clock::local_zone());
                self.team.record_limit(&self.member, &self.incarnation, Some(&hit))?;
            } else if main.limit.is_none() && record.rate_limit.is_some() {
                self.team.record_limit(&self.member, &self.incarnation, None)?;
            }
            self.refused = main.refused;
        }
        Ok(())
    }

    /// Returns the transcript of the session that the program has moved to, if it has.
    fn later_transcript(&self, record: &MemberRecord, usage: &MemberUsage) -> Option<PathBuf> {
        let main = usage.transcripts.first().filter(|_| self.form == TranscriptForm::Claude)?;
        sessions::later_transcript(&self.team, record, Path::new(&main.path))
    }

    /// Makes `path` the first transcript. Keeps how far the others were read, in case that the
    /// program returns to their sessions.
    fn turn_to(&mut self, path: &Path, session: String, usage: &mut MemberUsage) {
        let text = path.to_string_lossy().into_owned();
        let known = usage.transcripts.iter().position(|known| known.path == text);
        let state = match known {
            Some(nth) => usage.transcripts.remove(nth),
            None => TranscriptState::new(text),
        };
        usage.transcripts.insert(0, state);
        usage.transcripts.truncate(MOST_FILES);
        self.refused = usage.transcripts[0].refused;
        self.watch_file(path);
        self.session = Some(session);
    }

    fn watch_file(&mut self, path: &Path) {
        let dir = path.parent().map(Path::to_owned);
        let (sender, watched) = (self.events.clone(), dir.clone());
        // Also of other transcripts in the directory: the program may begin another session.
        let report = move |changed: &Path| {
            let is_ours = Some(changed) == watched.as_deref()
                || changed.parent() == watched.as_deref()
                    && sessions::session_of(changed).is_some();
            // Fails only while the thread ends.
            is_ours && sender.send(UsageEvent::Changed).is_ok()
        };
        self.watch = dir.and_then(|dir| Watch::new(&[dir], report).ok());
    }
}

/// Waits, and drops the changes of that time. Returns false once the thread is to stop.
fn wait(events: &Receiver<UsageEvent>, length: Duration) -> bool {
    let deadline = Deadline::after(length);
    loop {
        match events.recv_timeout(deadline.remaining()) {
            Ok(UsageEvent::Changed) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Ok(UsageEvent::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
        }
        if deadline.expired() {
            return true;
        }
    }
}

/// Adds the transcripts of subagents, which Claude Code writes to files of their own.
fn add_subagents(form: TranscriptForm, usage: &mut MemberUsage) {
    let Some(main) = usage.transcripts.first().filter(|_| form == TranscriptForm::Claude) else {
        return;
    };
    let dir = Path::new(&main.path).with_extension("").join("subagents");
    let Ok(names) = fs::list(&dir) else { return };
    for name in names.iter().filter(|name| name.ends_with(".jsonl")) {
        let path = dir.join(name).to_string_lossy().into_owned();
        let is_known = usage.transcripts.iter().any(|known| known.path == path);
        if !is_known && usage.transcripts.len() < MOST_FILES {
            usage.transcripts.push(TranscriptState::new(path));
        }
    }
}

fn read_all(form: TranscriptForm, usage: &mut MemberUsage) {
    let mut transcripts = std::mem::take(&mut usage.transcripts);
    for state in &mut transcripts {
        let path = PathBuf::from(&state.path);
        for _ in 0..MOST_CHUNKS {
            let Ok(chunk) = fs::read_range(&path, state.offset, CHUNK) else { break };
            let is_full = chunk.len() as u64 == CHUNK;
            let end = match chunk.iter().rposition(|byte| *byte == b'\n') {
                Some(last) => last + 1,
                // The parts of a line that is too long are not JSON.
                None if is_full => chunk.len(),
                None => 0,
            };
            for line in chunk[..end].split(|byte| *byte == b'\n') {
                state.read_line(form, line, usage);
            }
            state.offset += end as u64;
            if !is_full {
                break;
            }
        }
    }
    usage.transcripts = transcripts;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const CLAUDE: &str = include_str!("../../fixtures/transcripts/claude.jsonl");
    const CODEX: &str = include_str!("../../fixtures/transcripts/codex.jsonl");

    fn written(path: &str, text: &str) -> TempDir {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join(path);
        fs::private_dir(path.parent().expect("a parent")).expect("writable");
        fs::write_atomic(&path, text.as_bytes()).expect("writable");
        dir
    }

    #[test]
    fn root_follows_the_environment_of_the_program() {
        let env = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
        };
        let table = [
            (TranscriptForm::Claude, env(&[("HOME", "/h")]), Some("/h/.claude/projects")),
            (
                TranscriptForm::Claude,
                env(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c")]),
                Some("/c/projects"),
            ),
            (TranscriptForm::Codex, env(&[("HOME", "/h")]), Some("/h/.codex/sessions")),
            (TranscriptForm::Codex, env(&[("CODEX_HOME", "/x")]), Some("/x/sessions")),
            (TranscriptForm::Codex, env(&[("HOME", "relative")]), None),
        ];
        for (form, env, expected) in table {
            assert_eq!(root_of(form, &env), expected.map(PathBuf::from), "{env:?}");
        }
    }

    #[test]
    fn files_are_read_on_from_where_the_last_read_ended() {
        let dir = written("t.jsonl", "");
        let path = dir.path().join("t.jsonl");
        let mut usage = MemberUsage::default();
        usage.transcripts.push(TranscriptState::new(path.to_string_lossy().into_owned()));
        for end in [0, 100, CODEX.len() / 2, CODEX.len()] {
            fs::write_atomic(&path, &CODEX.as_bytes()[..end]).expect("writable");
            read_all(TranscriptForm::Codex, &mut usage);
        }
        assert_eq!(usage.models["canned"].tokens(), 45);
        assert_eq!(usage.transcripts[0].offset, CODEX.len() as u64);
    }

    #[test]
    fn line_that_is_too_long_is_skipped() {
        let long = "x".repeat(usize::try_from(CHUNK).expect("64 bits") + 10);
        let dir = written("t.jsonl", &format!("{long}\n{CODEX}"));
        let mut usage = MemberUsage::default();
        let path = dir.path().join("t.jsonl").to_string_lossy().into_owned();
        usage.transcripts.push(TranscriptState::new(path));
        read_all(TranscriptForm::Codex, &mut usage);
        assert_eq!(usage.models["canned"].tokens(), 45);
    }

    #[test]
    fn subagents_of_claude_count() {
        let dir = written("s/subagents/agent-1.jsonl", CLAUDE);
        let main = dir.path().join("s.jsonl");
        fs::write_atomic(&main, CLAUDE.as_bytes()).expect("writable");
        let mut usage = MemberUsage::default();
        usage.transcripts.push(TranscriptState::new(main.to_string_lossy().into_owned()));
        for _ in 0..2 {
            add_subagents(TranscriptForm::Claude, &mut usage);
            read_all(TranscriptForm::Claude, &mut usage);
        }
        assert_eq!(usage.models["claude-opus-5-5"].tokens(), 30);
    }
}
