//! Keeps the last output of a program in a pane, because the pane closes with its launcher.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::program::search_path;
use super::run::LauncherRun;
use backend::tmux::OwnPane;
use model::members::record::ExitRecord;
use model::text;
use sys::proc::Process;
use sys::{env, fs, tty};

/// Maximum number of lines that are kept.
const LINES: usize = 200;
/// Maximum number of bytes that are kept; a pane may be thousands of columns wide.
const BYTES: usize = 64 * 1024;
/// Time that the terminal gets to process the last output. A terminal that takes longer is not
/// read, so that the end of a program is not delayed further.
const PROCESSED_WITHIN: Duration = Duration::from_secs(1);
/// Timeout of the tmux process. Both fit into the time that a launcher has to end.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// Maximum length of the last line in the record, in characters.
const LAST_LINE: usize = 200;

/// The last output of a program, as far as it goes into the exit record.
#[derive(Debug, Default)]
pub(super) struct LastOutput {
    /// The file that keeps the output of a pane.
    log: Option<PathBuf>,
    last_line: Option<String>,
}

impl LastOutput {
    /// The end of an output that has a log of its own.
    pub(super) fn logged(output: &str) -> LastOutput {
        let last = output.lines().rfind(|line| !line.trim().is_empty());
        LastOutput { log: None, last_line: last.map(|line| text::short(line.trim(), LAST_LINE)) }
    }

    /// Writes the last lines of this process's pane to the member's log. Empty for a pane that
    /// cannot be read, for example because it was closed.
    pub(super) fn of_pane(run: &LauncherRun) -> LastOutput {
        let Some(screen) = read_pane(run) else { return LastOutput::default() };
        let log = run.team.log(&run.member);
        let kept = run.team.exists() && fs::write_atomic(&log, tail(&screen).as_bytes()).is_ok();
        LastOutput { log: kept.then_some(log), ..LastOutput::logged(&screen) }
    }

    /// Adds the output to the record. The last line of a success explains nothing.
    pub(super) fn into_record(self, exit: ExitRecord) -> ExitRecord {
        ExitRecord {
            log: self.log.map(|path| path.to_string_lossy().into_owned()),
            last_line: self.last_line.filter(|_| exit.is_failure()),
            ..exit
        }
    }
}

fn read_pane(run: &LauncherRun) -> Option<String> {
    let pane = LauncherPane::of(run)?;
    if !tty::wait_processed(PROCESSED_WITHIN) {
        return None;
    }
    pane.last_lines(LINES).filter(|screen| !screen.is_empty())
}

/// The tmux pane that this process runs in.
#[derive(Debug, Clone)]
pub(super) struct LauncherPane {
    pane: OwnPane,
    tmux: PathBuf,
}

impl LauncherPane {
    pub(super) fn of(run: &LauncherRun) -> Option<LauncherPane> {
        let pane = OwnPane::parse(&env::var("TMUX")?, &env::var("TMUX_PANE")?)?;
        let here = Path::new("/");
        let find = |path: Option<&OsStr>| env::find_program(OsStr::new("tmux"), path, here);
        // The path of the pane is that of the server, which need not contain tmux.
        let tmux = find(env::var("PATH").as_deref()).or_else(|| find(search_path(&run.command)))?;
        Some(LauncherPane { pane, tmux })
    }

    /// Returns the last lines of the pane; `None` if it cannot be read. Runs one tmux process.
    pub(super) fn last_lines(&self, lines: usize) -> Option<String> {
        self.pane.last_lines(&self.tmux, Process::current().pid, lines, READ_WITHIN).ok()
    }
}

/// Returns the last whole lines that fit into [`BYTES`].
fn tail(screen: &str) -> String {
    let mut room = BYTES;
    let fits = |line: &&str| {
        let size = line.len() + 1;
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    };
    let mut lines: Vec<&str> = screen.lines().rev().take_while(fits).collect();
    lines.reverse();
    lines.iter().map(|line| format!("{line}\n")).collect()
}
