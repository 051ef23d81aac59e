//! Checks the environment of teams: the system, tmux and its servers, iTerm2, and the directories
//! that all teams share.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::finding::{Finding, Severity};
use super::teams::leftover;
use crate::error::quoted;
use crate::members::backends;
use crate::views::ps;
use crate::{Context, OpsError, authority};
use backend::tmux::{self, Census};
use store::Broken;
use sys::socket_probe::{SocketState, probe};
use sys::{env, fs};

/// Known defects of tmux versions, by version prefix (SP-14).
const QUIRKS: [(&str, &str); 2] = [
    (
        "3.3",
        "`select-layout` and `kill-session` have crashed servers of this version (tmux#3450, tmux#3658)",
    ),
    ("3.4", "sizes in percent fail on detached sessions; phalanx does not use them"),
];

/// Free bytes of the config root's file system below which it counts as full.
const MIN_FREE_BYTES: u64 = 8 * 1024 * 1024;
/// Free inodes of the same file system below which it counts as full.
const MIN_FREE_INODES: u64 = 100;

/// The tmux servers that answered, and findings about all that were probed.
pub(super) struct Servers {
    pub(super) census: Vec<Census>,
    pub(super) findings: Vec<Finding>,
}

/// Probes every server that hosts members of teams that the caller may look at, the caller's own
/// server and the default one.
pub(super) fn servers(ctx: &Context) -> Servers {
    let mut found = Servers { census: Vec::new(), findings: Vec::new() };
    let program =
        match backends::tmux_program(ctx).and_then(|p| tmux::probe(&p).map(|()| p)) {
            Ok(program) => program,
            Err(problem) => {
                let finding = Finding::new("tmux_missing", Severity::Warning, problem, "PATH");
                found.findings.push(finding.advise(
                    "install tmux 3.2 or later; without it members run on phalanx's own PTYs",
                ));
                return found;
            }
        };
    for (socket, in_use) in sockets(ctx) {
        found.query(&program, &socket, in_use);
    }
    found
}

/// Returns each socket once, with whether it hosts members of our teams.
fn sockets(ctx: &Context) -> Vec<(PathBuf, bool)> {
    let mut ours = BTreeSet::new();
    let names = authority::visible_teams(ctx).unwrap_or_default();
    for team in names.iter().filter_map(|name| ctx.store.team(name).ok()) {
        let records = team.member_records().unwrap_or_default();
        let running: Vec<_> =
            records.into_iter().filter(|record| !record.state.is_over()).collect();
        ours.extend(
            ps::sockets(&team, &running).unwrap_or_default().into_iter().map(PathBuf::from),
        );
    }
    let own = backends::caller_pane(ctx).map(|inside| inside.socket);
    let dir = ctx.caller.var("TMUX_TMPDIR").unwrap_or(OsStr::new("/tmp"));
    let default = Path::new(dir).join(format!("tmux-{}", env::effective_uid())).join("default");
    let others: BTreeSet<PathBuf> =
        own.into_iter().chain([default]).filter(|s| !ours.contains(s)).collect();
    ours.into_iter().map(|s| (s, true)).chain(others.into_iter().map(|s| (s, false))).collect()
}

impl Servers {
    fn query(&mut self, program: &Path, socket: &Path, in_use: bool) {
        let place = socket.to_string_lossy().into_owned();
        let mut tell = |id, severity, what: &str, fix: &str| {
            self.findings.push(Finding::new(id, severity, what, place.clone()).advise(fix));
        };
        match probe(socket) {
            SocketState::Missing if in_use => tell(
                "tmux_socket_missing",
                Severity::Warning,
                "the socket of a tmux server that members use is missing; a running server re-creates it on SIGUSR1",
                "kill -USR1 PID-OF-THE-TMUX-SERVER",
            ),
            SocketState::Missing => {}
            SocketState::Denied => tell(
                "tmux_socket_denied",
                Severity::Problem,
                "connecting to tmux is not permitted: the socket belongs to another user, or a sandbox blocks it",
                "run phalanx outside the sandbox, or use `--backend pty`",
            ),
            SocketState::Refused => tell(
                "tmux_socket_dead",
                if in_use { Severity::Warning } else { Severity::Note },
                "connection refused: the tmux server of this socket has exited",
                "no action needed: the next tmux server replaces it",
            ),
            SocketState::Unknown(words) => {
                let what = format!("cannot determine whether tmux is listening: {words}");
                tell(
                    "tmux_no_answer",
                    Severity::Problem,
                    &what,
                    "check whether that tmux server hangs",
                );
            }
            SocketState::Listening => self.count(program, socket),
        }
    }

    fn count(&mut self, program: &Path, socket: &Path) {
        let place = socket.to_string_lossy().into_owned();
        match tmux::census(program, socket) {
            Ok(Some(census)) if self.census.iter().all(|known| known.server != census.server) => {
                self.findings.extend(quirks(&census, &place));
                self.census.push(census);
            }
            Ok(_) => {}
            Err(e) => {
                let finding =
                    Finding::new("tmux_no_answer", Severity::Problem, e.to_string(), place);
                self.findings.push(finding.advise("check whether that tmux server hangs"));
            }
        }
    }
}

fn quirks(census: &Census, place: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let note = |id, what: String| Finding::new(id, Severity::Note, what, place);
    if let Some((_, words)) = QUIRKS.iter().find(|(version, _)| census.version.starts_with(version))
    {
        found.push(note("tmux_version", format!("tmux {}: {words}", census.version)));
    }
    if !census.exit_empty {
        let what = "`exit-empty` is off: the server keeps running after its last session ends";
        found.push(note("tmux_exit_empty", what.to_owned()));
    }
    if census.destroy_unattached {
        let what = "`destroy-unattached` is on: detached sessions are destroyed; phalanx turns it off for its own";
        found.push(note("tmux_destroy_unattached", what.to_owned()));
    }
    found
}

/// Checks the operating system and the terminal.
pub(super) fn machine(ctx: &Context) -> Vec<Finding> {
    let mut found = Vec::new();
    let os = env::os();
    if !matches!(os, "linux" | "macos") {
        let what =
            "phalanx runs on Linux and macOS; on this system it cannot identify processes reliably";
        found.push(Finding::new("unsupported_os", Severity::Problem, what, os));
    }
    found.extend(full_disk(ctx.store.root()));
    let hinted = ["ITERM_SESSION_ID", "LC_TERMINAL", "TERM_PROGRAM"];
    let is_iterm = |name: &&str| {
        ctx.caller.var(name).is_some_and(|v| {
            *name == "ITERM_SESSION_ID" || v.to_string_lossy().starts_with("iTerm")
        })
    };
    let path = ctx.caller.var("PATH");
    if hinted.iter().any(is_iterm)
        && env::find_program(OsStr::new("osascript"), path, Path::new("/")).is_some()
    {
        let what = "macOS asks once whether this terminal may control iTerm2; a denial appears as error -1743";
        let fix = "System Settings > Privacy & Security > Automation: allow iTerm2";
        found.push(Finding::new("iterm2_permission", Severity::Note, what, "iTerm2").advise(fix));
    }
    found
}

/// Reports that the file system of the config root has hardly any space or inodes left.
fn full_disk(root: &Path) -> Option<Finding> {
    let free = fs::free_space(root)?;
    let left = if free.bytes < MIN_FREE_BYTES {
        format!("{} KiB", free.bytes / 1024)
    } else {
        format!("{} inodes", free.inodes.filter(|left| *left < MIN_FREE_INODES)?)
    };
    let place = root.to_string_lossy().into_owned();
    let what = format!("the file system has only {left} left: messages and records cannot be kept");
    let fix = format!("free space on it: `df -h {0}`, `df -i {0}`", quoted(&place));
    Some(Finding::new("full_disk", Severity::Problem, what, place).advise(fix))
}

/// Checks the directories that all teams share.
pub(super) fn common(ctx: &Context, fix: bool) -> Result<Vec<Finding>, OpsError> {
    let clear = |left: &_| Ok(ctx.store.clear(left)?);
    let mut found: Vec<Finding> = ctx.store.broken().iter().map(unusable).collect();
    found.extend(ctx.store.leftovers()?.iter().map(|left| leftover(left, fix, true, clear)));
    Ok(found)
}

/// Describes an unusable shared directory. It is not repaired, because it may not belong to
/// phalanx.
fn unusable(broken: &Broken) -> Finding {
    let place = broken.path.to_string_lossy().into_owned();
    let dir = quoted(&place);
    let fix =
        if broken.is_denied { format!("chmod 700 {dir}") } else { format!("mv {dir} {dir}.aside") };
    Finding::new("unreadable", Severity::Problem, broken.problem.as_str(), place).advise(fix)
}
