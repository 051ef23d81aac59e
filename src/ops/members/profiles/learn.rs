//! Learns a profile: runs a program for a person, and writes the profile and the recordings from
//! which it was derived.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use super::recordings::{EXPECTED, RECORDING, TestedRecording, test_recordings};
use super::trial::on_own_terminal;
use crate::{Context, OpsError, own_files};
use model::causes::causes;
use model::name::check_name;
use profile::{
    self, Composer, LabelledScreen, LearnGap, LearnedProfile, Lesson, Profile, ScreenLabel,
};
use sys::child::{self, PtyMaster};
use sys::fs;
use sys::proc::{self, Process};

/// Name of the file of an incomplete profile, among its recordings.
const DRAFT: &str = "draft.toml";
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// Maximum number of keys, or lines, that end a program.
const MOST_QUIT_KEYS: usize = 3;

/// A labelled screen and its recording.
#[derive(Debug, Clone)]
pub struct RecordedScreen {
    pub screen: LabelledScreen,
    /// Output that draws it.
    pub recording: Vec<u8>,
    /// Rows and columns.
    pub size: (u16, u16),
}

/// The screens and keys of one run of a program.
#[derive(Debug, Clone, Default)]
pub struct RecordedSession {
    pub screens: Vec<RecordedScreen>,
    /// All that was typed.
    pub typed: String,
    /// Keys that have ended the program. Empty: they are not known.
    pub quit: Vec<String>,
}

/// The files that [`save`] has written.
#[derive(Debug)]
pub struct SavedProfile {
    /// The profile, or the draft of one that is not complete.
    pub file: PathBuf,
    /// The directory of its recordings.
    pub recordings: PathBuf,
    /// It recognises each recorded screen, and finds the composer on each idle one.
    pub is_complete: bool,
    pub gaps: Vec<LearnGap>,
    pub tested: Vec<TestedRecording>,
}

/// A program that runs on a terminal of ours. Ended on drop.
pub struct LearnedProgram {
    process: Process,
    master: Arc<PtyMaster>,
    reader: Box<dyn Read + Send>,
    typist: Sender<Vec<u8>>,
}

impl LearnedProgram {
    /// Starts the program in the working directory, on a terminal of this size (rows, columns).
    ///
    /// # Errors
    /// It cannot be found or started.
    pub fn start(
        ctx: &Context,
        command: &[String],
        size: (u16, u16),
    ) -> Result<LearnedProgram, OpsError> {
        let program = on_own_terminal(ctx, command, &ctx.caller.cwd)?;
        let failed = |problem: String| OpsError::Failed { problem };
        let (process, master) = child::spawn_on_pty(&program, size.0, size.1).map_err(|e| {
            failed(causes(&e).map(ToString::to_string).collect::<Vec<_>>().join(": "))
        })?;
        let master = Arc::new(master);
        let reader = master.reader().map_err(|e| {
            proc::end_tree(process, true, Duration::ZERO);
            child::wait(process);
            failed(format!("its terminal cannot be read: {e}"))
        })?;
        let (typist, keys) = channel::<Vec<u8>>();
        let terminal = Arc::clone(&master);
        // A thread of its own, because a program that does not read its input blocks the writer.
        thread::spawn(move || keys.iter().try_for_each(|keys| terminal.write_all(&keys)));
        Ok(LearnedProgram { process, master, reader, typist })
    }

    /// Reads the next output. Returns `None` after the end of the program.
    pub fn read(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 8192];
        let count = self.reader.read(&mut buffer).ok().filter(|count| *count > 0)?;
        Some(buffer[..count].to_vec())
    }

    /// Queues keys for typing.
    pub fn type_in(&self, keys: Vec<u8>) {
        // Fails only after the end of the program, which the reader reports.
        let _ = self.typist.send(keys);
    }

    /// Resizes the terminal.
    pub fn resize(&self, (rows, cols): (u16, u16)) {
        // Fails only after the end of the program.
        let _ = self.master.resize(rows, cols);
    }
}

impl AsFd for LearnedProgram {
    /// Readable while there is output, and after the end of the program.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}

impl Drop for LearnedProgram {
    fn drop(&mut self) {
        proc::end_tree(self.process, true, GRACE);
        child::wait(self.process);
    }
}

/// Checks that a new profile of this name replaces nothing; `force` permits that.
///
/// # Errors
/// [`OpsError::Usage`] for an invalid name, or for one that is taken.
pub fn check_unused(ctx: &Context, name: &str, force: bool) -> Result<(), OpsError> {
    let usage =
        |problem: String, hint: &str| OpsError::Usage { problem, hint: Some(hint.to_owned()) };
    check_name(name).map_err(|problem| {
        usage(format!("`{}` {problem}", name.escape_debug()), "name the profile after its program")
    })?;
    if force {
        return Ok(());
    }
    let hint = "take another name, or replace it with --force";
    let (file, recordings) = paths(ctx, name);
    if let Some(taken) = [file, recordings].iter().find(|path| fs::exists(path)) {
        return Err(usage(format!("{} already exists", taken.display()), hint));
    }
    if profile::builtin(name).is_some() {
        let problem = format!("profile `{name}` is built in, and yours would take its place");
        return Err(usage(problem, hint));
    }
    Ok(())
}

fn paths(ctx: &Context, name: &str) -> (PathBuf, PathBuf) {
    let dir = ctx.store.profiles();
    (own_files::path(&dir, name), dir.join(name))
}

/// Derives a profile from the screens, tests it on them, and writes both. An incomplete profile is
/// written among the recordings, where no member is started from it.
///
/// # Errors
/// A file that cannot be written.
pub fn save(
    ctx: &Context,
    name: &str,
    command: &[String],
    session: &RecordedSession,
) -> Result<SavedProfile, OpsError> {
    let screens = &session.screens;
    let (file, recordings) = paths(ctx, name);
    write_recordings(&recordings, screens)?;
    let labelled: Vec<LabelledScreen> = screens.iter().map(|one| one.screen.clone()).collect();
    let test = format!("phalanx profile test {name} --screen {}", recordings.display());
    let command = from_anywhere(ctx, command);
    let lesson = Lesson {
        name,
        command: &command,
        screens: &labelled,
        typed: &session.typed,
        quit: &session.quit,
        test: &test,
    };
    let LearnedProfile { text, gaps } = profile::learn(&lesson);
    let draft = recordings.join(DRAFT);
    let parsed = Profile::parse(name, &text);
    let profile = match parsed {
        Ok(profile) => profile,
        Err(source) => {
            fs::write_atomic(&draft, text.as_bytes())?;
            return Err(OpsError::Profile { file: draft, source });
        }
    };
    let tested = test_recordings(&profile, &recordings)?;
    let is_read = |one: &TestedRecording| {
        let is_idle = one.expected == ScreenLabel::Idle.state().to_string();
        one.passed && (!is_idle || one.tested.finding.composer != Composer::Unknown)
    };
    let is_complete = gaps.is_empty() && tested.iter().all(is_read);
    let file = if is_complete { file } else { draft };
    fs::write_atomic(&file, text.as_bytes())?;
    Ok(SavedProfile { file, recordings, is_complete, gaps, tested })
}

/// Writes the recordings and what they show, in place of earlier ones.
fn write_recordings(dir: &Path, screens: &[RecordedScreen]) -> Result<(), OpsError> {
    fs::private_dir(dir)?;
    for old in fs::list(dir)? {
        if old.ends_with(RECORDING) || old == EXPECTED || old == DRAFT {
            fs::remove_file(&dir.join(old))?;
        }
    }
    let (rows, cols) = screens.first().map_or((24, 80), |one| one.size);
    let mut expected = format!(
        "# The states that a person has seen on the recordings of this folder.\nrows = {rows}\ncols = {cols}\n"
    );
    for RecordedScreen { screen, recording, size } in screens {
        fs::write_atomic(&dir.join(format!("{}{RECORDING}", screen.name)), recording)?;
        expected.push_str(&format!("\n[{}]\nstate = \"{}\"\n", screen.name, screen.label.state()));
        if *size != (rows, cols) {
            expected.push_str(&format!("rows = {}\ncols = {}\n", size.0, size.1));
        }
    }
    fs::write_atomic(&dir.join(EXPECTED), expected.as_bytes())?;
    Ok(())
}

/// Makes the path of the program absolute if it is relative to the working directory: a member has
/// another one.
fn from_anywhere(ctx: &Context, command: &[String]) -> Vec<String> {
    let mut command = command.to_vec();
    if let Some(program) = command.first_mut().filter(|program| program.contains('/'))
        && let Some(absolute) = ctx.caller.cwd.join(&*program).to_str()
    {
        *program = absolute.to_owned();
    }
    command
}

/// Returns the keys that have ended a program, as a profile lists them, from what was typed last.
/// Empty if they are not clear.
pub fn quit_keys(typed: &[u8]) -> Vec<String> {
    let Ok(typed) = str::from_utf8(typed) else { return Vec::new() };
    let mut keys: Vec<String> = Vec::new();
    let mut line = String::new();
    for c in typed.chars() {
        match c {
            '\r' => keys.push(std::mem::take(&mut line) + "\r"),
            // Backspace: the line is not what it was.
            '\x7f' | '\x08' => drop(line.pop()),
            // The beginning of an escape sequence, or Escape itself.
            '\x1b' => return Vec::new(),
            c if c.is_control() => {
                keys.extend(Some(std::mem::take(&mut line)).filter(|line| !line.is_empty()));
                keys.push(c.to_string());
            }
            c => line.push(c),
        }
    }
    keys.extend(Some(line).filter(|line| !line.is_empty()));
    if keys.len() > MOST_QUIT_KEYS { Vec::new() } else { keys }
}

#[cfg(test)]
mod tests;
