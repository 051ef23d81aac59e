//! The record of each run of a member, stored in `phalanx/members/<name>.json`. The spawner, the
//! launcher and the lead each write the parts that they know.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::board::policy::Pull;
use crate::board::waiting::Ability;
use crate::id::{HostName, Incarnation, MemberName, TaskId, TeamName, agent_id};
use crate::mail::access::LinkAccess;
use crate::members::launch::{EntryDigests, ability};
use crate::members::lifecycle::MemberState;
use crate::members::mode::Mode;
use crate::members::need::Need;
use crate::members::placeholder::MemberValues;
use crate::members::placement::{BackendKind, Placement, ProcessId};
use crate::members::prompt::PromptSeen;
use crate::members::rate_limit::RateLimit;
use crate::members::readiness::{Readiness, ReadyCheck};
use crate::members::transcript::TranscriptForm;
use crate::members::usage::{MemberUsage, TurnError};
use crate::team::Member;
use crate::team::followup::Reminded;
use crate::team::role::Tools;
use crate::time::{self, Timestamp};

/// The request for a member, complete enough to start it again.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LaunchRequest {
    pub profile: String,
    /// The profile's setting at the start (MSG-16). Missing in older records; use
    /// [`MemberRecord::reads_mail`].
    pub reads_mail: Option<bool>,
    /// The program is a team member without phalanx: it reads its own mailbox and reports its own
    /// state. Missing in older records; use [`MemberRecord::is_native`].
    pub native: Option<bool>,
    /// The form of the transcripts that its program writes, if they can be read.
    pub transcript: Option<TranscriptForm>,
    pub role: Option<String>,
    pub model: Option<String>,
    pub mode: Option<Mode>,
    #[serde(default)]
    pub plan: bool,
    pub prompt: Option<String>,
    /// The only task of the run, if it was started for one.
    pub task: Option<TaskId>,
    /// The conversation that it works for, if that is not the default one.
    pub chat: Option<String>,
    /// Includes the tools of its role and its team.
    #[serde(default, skip_serializing_if = "Tools::is_empty")]
    pub tools: Tools,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The modes to set in the session of an agent over ACP, one a line: an id, or `option=value`.
    pub session_mode: Option<String>,
    /// The command line with placeholders that `argv` was made from, if it has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The command line to which `argv` is appended; empty if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrap: Vec<String>,
    pub cwd: String,
    pub color: String,
    /// The check whether it is ready, with its placeholders; `None` means that it is as soon as it
    /// runs.
    pub ready: Option<ReadyCheck>,
    /// Its prompts do not ask for a person's attention.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unattended: bool,
    /// Notification of free tasks; `None` means the setting of the team.
    pub pull: Option<Pull>,
    /// The users whose requests it takes, besides the lists of its entry in the settings.
    #[serde(default, skip_serializing_if = "LinkAccess::is_empty")]
    pub access: LinkAccess,
    /// A file with variables, relative to `cwd`.
    pub env_file: Option<String>,
    /// Variables set for this member only, with their placeholders. They may hold secrets, so the
    /// file is readable by its owner only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
    /// The entry of the manifest that it was started from.
    pub entry: Option<EntryDigests>,
}

impl LaunchRequest {
    /// Returns the whole command line.
    pub fn command_line(&self) -> Vec<String> {
        [self.wrap.as_slice(), self.argv.as_slice()].concat()
    }
}

/// Written by the launcher once the program runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartRecord {
    pub launcher: ProcessId,
    pub program: ProcessId,
    /// Name of the program's terminal, e.g. `/dev/pts/3`.
    pub tty: Option<String>,
    /// Socket of the launcher's terminal server, if the launcher holds the terminal itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// The launcher's `getcwd` (EN-06).
    pub cwd: String,
    pub at: Timestamp,
}

/// Written by the launcher when the program has exited or could not be started.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExitRecord {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// Reason why the program never ran: the file, the directory, or the kernel's error.
    pub problem: Option<String>,
    /// The cause was that no terminal could be created, so another backend might work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_terminal: bool,
    pub at: Timestamp,
    /// File that keeps the last output of a program whose pane has closed.
    pub log: Option<String>,
    /// The last line that the program printed, if it failed. Sanitized and short.
    pub last_line: Option<String>,
}

impl ExitRecord {
    /// Returns true if the program failed: it never ran, exited with another code than 0, or was
    /// ended by a signal.
    pub fn is_failure(&self) -> bool {
        self.problem.is_some() || self.code != Some(0)
    }

    /// Appends the last line that the program printed: `exit code 7: boom`.
    fn with_last_line(&self, ending: String) -> String {
        match &self.last_line {
            Some(line) => format!("{ending}: {line}"),
            None => ending,
        }
    }

    /// Describes the exit: `exit code 7`, `signal 9`, or why the program never ran.
    pub fn describe(&self) -> String {
        match (&self.problem, self.code, self.signal) {
            (Some(problem), _, _) => problem.clone(),
            (None, Some(code), _) => format!("exit code {code}"),
            (None, None, Some(signal)) => format!("signal {signal}"),
            (None, None, None) => "an unknown exit status".to_owned(),
        }
    }
}

/// A start in place of a run: by the lead after a failure, or by the command that ends the run for
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRestart {
    /// Failures in a row, with this one; 0 for the start by a command.
    pub failures: u32,
    /// The end of the pause before the start.
    pub at: Timestamp,
}

/// Beginning of the reason of a run whose program waits for a person, as its screen shows.
const BLOCKED: &str = "blocked: ";

/// Returns the reason of a run whose program waits for a person: `what` is `dialog:NAME`,
/// `needs_login`, `prompt` or a word for an error, `text` what the screen says.
pub fn blocked_reason(what: &str, text: &str) -> String {
    format!("{BLOCKED}{what} ({text})")
}

/// Returns what a program waits for, as its screen shows, and the text about it, from the reason of
/// its run; `None` if this is another reason.
pub fn need_in(reason: &str) -> Option<(Need, &str)> {
    let reason = reason.strip_prefix(BLOCKED)?;
    let (what, text) = match (reason.split_once(" ("), reason.split_once(": ")) {
        (Some((what, text)), _) if !what.contains(' ') => {
            (what, text.strip_suffix(')').unwrap_or(text))
        }
        (_, Some((what, text))) => (what, text),
        (_, None) => (reason, reason),
    };
    let of_rule = text.strip_prefix("rule ").and_then(|text| text.split_once(": "));
    Some((Need::of_screen(what), of_rule.map_or(text, |(_, shown)| shown)))
}

/// Beginning of the reason of a working run whose program repeats a failed request by itself.
const RETRYING: &str = "retrying: ";

/// Returns the reason of a working run whose program repeats a failed request by itself; `said` is
/// what the screen says.
pub fn retrying_reason(said: &str) -> String {
    format!("{RETRYING}{said}")
}

/// Reason of a run whose program shows a screen that no rule of its profile matches.
pub const UNRECOGNISED: &str = "its screen is not recognised";

/// Reason given for a run whose pane was closed.
const CLOSED: &str = "pane closed from outside";
const HANGUP: i32 = 1;

/// Describes the exit of a program: `exited with code 7 after 50 ms`.
pub fn ending(code: Option<i32>, signal: Option<i32>, ran_ms: u64) -> String {
    let how = match (code, signal) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    let span = if ran_ms < 1000 { format!("{ran_ms} ms") } else { time::human(ran_ms) };
    format!("{how} after {span}")
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// Format version of the file. Files of a newer version are read but not written.
    pub format: u32,
    pub name: MemberName,
    pub incarnation: Incarnation,
    /// The member's number in its team, from 1. Missing in older records.
    pub index: Option<u32>,
    /// Random secret that the member's processes carry as `PHALANX_TOKEN`. It authorizes a process
    /// to act as the member.
    pub token: String,
    /// Random mark on the member's pane or session (`@phalanx_token`). Other programs can read it
    /// there, so it differs from `token`. Empty in records of older versions, which used `token`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    pub state: MemberState,
    /// Reason for the state, for people.
    pub reason: Option<String>,
    pub state_since: Timestamp,
    pub backend: BackendKind,
    #[serde(rename = "wish")]
    pub request: LaunchRequest,
    /// The process that starts the member. Missing in older records.
    pub spawner: Option<ProcessId>,
    /// Time at which the start was requested.
    pub asked_at: Timestamp,
    pub placement: Option<Placement>,
    pub start: Option<StartRecord>,
    /// Time at which the member proved that it runs.
    pub ready_at: Option<Timestamp>,
    pub exit: Option<ExitRecord>,
    /// Description of an overdue response and of what the screen shows; `None` while the member
    /// responds.
    pub unresponsive: Option<String>,
    /// The prompt at which its program waits for a person. Written by the launcher.
    pub prompt: Option<PromptSeen>,
    /// The state of the check whether it is ready. Written by the launcher.
    #[serde(default, skip_serializing_if = "Readiness::is_open")]
    pub readiness: Readiness,
    /// The usage limit that its account has reached.
    pub rate_limit: Option<RateLimit>,
    /// The tokens that this and all earlier runs of the name have used.
    pub usage: Option<MemberUsage>,
    /// Reminders about its current task since its last activity.
    pub reminded: Option<Reminded>,
    /// The program's own session, if known: chosen at the start, resumed, or reported by its hook.
    pub session: Option<String>,
    /// The sessions of the same program before it, of this run and of earlier ones of the name,
    /// oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_sessions: Vec<String>,
    /// The config root in which its program looks for the team, if that is not the team's own: it
    /// has another account of Claude Code. The team is linked there.
    pub config_dir: Option<String>,
    /// End of the last turn that its program reported by its hook.
    pub turn_ended_at: Option<Timestamp>,
    /// The start that is planned in place of this run.
    pub restart: Option<PlannedRestart>,
    /// Failures in a row after which the lead starts no run in place of this one.
    pub gave_up_after: Option<u32>,
    /// The run before this one, until this one is up: its record is valid again if this start fails
    /// or is cut.
    pub before: Option<Box<MemberRecord>>,
    /// Boot id of the machine when the run was started. Missing in older records and on systems
    /// without one.
    pub boot_id: Option<String>,
    /// The host on which the run was started; `None` in a team of files, whose members all run on
    /// its machine.
    pub host: Option<HostName>,
    /// The id of that host's machine. Missing in older records.
    pub machine: Option<String>,
    /// True if that is another host than the reader's: its processes cannot be seen from here.
    #[serde(skip)]
    pub is_elsewhere: bool,
}

/// Number of sessions that are remembered besides the current one.
const MOST_SESSIONS: usize = 20;

/// Format version that this release writes.
pub const FORMAT: u32 = 1;

impl MemberRecord {
    /// Returns the usage limit that keeps the member from working.
    pub fn limit(&self) -> Option<&RateLimit> {
        self.rate_limit.as_ref().filter(|limit| !limit.is_over && !self.state.is_over())
    }

    /// Returns true if the lead plans a start in place of this run.
    pub fn is_restarted_by_lead(&self) -> bool {
        self.restart.is_some_and(|restart| restart.failures > 0)
    }

    /// Returns true if the member runs, or has run, and has passed its check.
    pub fn was_ready(&self) -> bool {
        match &self.request.ready {
            Some(_) => self.readiness.passed_at.is_some(),
            None => self.ready_at.is_some() || self.state.is_up(),
        }
    }

    /// Returns the check that this run has not passed yet.
    pub fn open_check(&self) -> Option<ReadyCheck> {
        let check = self.request.ready.as_ref().filter(|_| self.readiness.passed_at.is_none())?;
        let index = self.index.unwrap_or_default();
        Some(check.filled(MemberValues { name: self.name.as_str(), index }))
    }

    /// Returns the error with which the last turn of this run ended, if its program has got no
    /// message since then, as its transcript or its screen says.
    pub fn turn_error(&self) -> Option<TurnError> {
        let error = self.usage.as_ref().and_then(MemberUsage::turn_error);
        let is_current = |error: &&TurnError| error.at >= self.asked_at && !self.state.is_over();
        error.filter(is_current).cloned().or_else(|| self.screen_error())
    }

    fn screen_error(&self) -> Option<TurnError> {
        let reason = self.reason.as_deref().filter(|_| self.state == MemberState::Idle)?;
        TurnError::of_reason(reason, self.state_since)
    }

    /// Returns all known sessions of its program, oldest first.
    pub fn sessions(&self) -> impl Iterator<Item = &str> {
        self.earlier_sessions.iter().chain(&self.session).map(String::as_str)
    }

    /// Records that the program has moved to another session.
    pub fn begin_session(&mut self, session: &str) {
        let mut known: Vec<String> = self.sessions().map(str::to_owned).collect();
        known.retain(|earlier| earlier != session);
        known.drain(..known.len().saturating_sub(MOST_SESSIONS));
        self.earlier_sessions = known;
        self.session = Some(session.to_owned());
    }

    /// Takes over what a member keeps from the earlier runs of its name: its usage, and the
    /// sessions of the same program.
    pub fn follow(&mut self, before: &MemberRecord) {
        self.usage.clone_from(&before.usage);
        if self.request.profile == before.request.profile {
            let session = self.session.take();
            self.earlier_sessions = before.sessions().map(str::to_owned).collect();
            match session {
                Some(session) => self.begin_session(&session),
                None => self.session = None,
            }
        }
    }

    /// Returns the mark on the member's pane or session.
    pub fn mark(&self) -> &str {
        if self.nonce.is_empty() { &self.token } else { &self.nonce }
    }

    /// Returns true if the program waits for a person or for its next try, as its screen shows.
    pub fn is_blocked(&self) -> bool {
        self.need().is_some() || self.retrying().is_some()
    }

    /// Returns what the screen says about the request that the program repeats by itself.
    pub fn retrying(&self) -> Option<&str> {
        self.reason.as_deref()?.strip_prefix(RETRYING)
    }

    /// Returns what the program waits for, as its screen shows, and the text about it.
    pub fn need(&self) -> Option<(Need, &str)> {
        need_in(self.reason.as_deref()?)
    }

    /// Returns true for a worker of phalanx.
    pub fn runs_commands(&self) -> bool {
        ability(&self.request.profile) == Ability::Commands
    }

    /// Returns the host of a run that is on another host than the reader.
    pub fn other_host(&self) -> Option<&HostName> {
        self.host.as_ref().filter(|_| self.is_elsewhere)
    }

    /// Returns the launcher, the root of the member's process tree, if known and on this host.
    pub fn launcher(&self) -> Option<ProcessId> {
        if self.is_elsewhere {
            return None;
        }
        self.start.as_ref().map(|s| s.launcher).or_else(|| self.placement.as_ref()?.launcher())
    }

    /// Returns the socket of the launcher's terminal server, if there is one on this host.
    pub fn socket(&self) -> Option<&str> {
        self.start.as_ref().filter(|_| !self.is_elsewhere)?.socket.as_deref()
    }

    /// Returns the file that keeps the output of the run on its host, if there is one. That of a
    /// program in a pane is written when the program ends, and contains its last lines.
    pub fn log(&self) -> Option<&str> {
        match &self.placement {
            Some(Placement::Pty(hold)) => Some(&hold.log),
            Some(Placement::Tmux(_) | Placement::Iterm2(_)) | None => {
                self.exit.as_ref()?.log.as_deref()
            }
        }
    }

    /// Returns true if the run has ended on record: the team has noticed its end, or its launcher
    /// has reported the program's exit.
    pub fn has_ended(&self) -> bool {
        self.state.is_over() || self.exit.is_some()
    }

    /// Describes the program's exit; `None` while it runs.
    pub fn ending(&self) -> Option<String> {
        let exit = self.exit.as_ref()?;
        if self.was_hung_up() {
            return Some(CLOSED.to_owned());
        }
        let ran_ms = || exit.at.since(self.start.as_ref().map_or(exit.at, |start| start.at));
        let ending = || exit.with_last_line(ending(exit.code, exit.signal, ran_ms()));
        Some(exit.problem.clone().unwrap_or_else(ending))
    }

    /// Returns the reason, for the journal, of a run that ended without a request.
    pub fn end_reason(&self) -> String {
        match &self.exit {
            Some(_) if self.was_hung_up() => CLOSED.to_owned(),
            Some(exit) => exit.with_last_line(exit.describe()),
            None => "its process is gone".to_owned(),
        }
    }

    /// Returns true if the member's pane was closed. The terminal then hangs up on the program,
    /// which dies of `SIGHUP` or exits with the shell's code for that signal.
    fn was_hung_up(&self) -> bool {
        let in_pane = matches!(self.placement, Some(Placement::Tmux(_) | Placement::Iterm2(_)));
        let hung_up =
            |exit: &ExitRecord| exit.signal == Some(HANGUP) || exit.code == Some(128 + HANGUP);
        in_pane && self.exit.as_ref().is_some_and(hung_up)
    }

    /// Returns the record as it is to be read on `host`, the machine `machine`, during boot `boot`.
    /// A host of the same name is another one if its machine is. Start times count from the boot,
    /// so in another boot an unrelated process may match a recorded pid and start time.
    pub fn seen_in(
        self,
        boot: &str,
        host: Option<&HostName>,
        machine: Option<&str>,
    ) -> MemberRecord {
        let is_other = |(own, read): (&str, &str)| own != read;
        if self.host.as_ref() != host || self.machine.as_deref().zip(machine).is_some_and(is_other)
        {
            return MemberRecord { is_elsewhere: true, ..self };
        }
        if boot.is_empty() || self.boot_id.as_deref().is_none_or(|own| own == boot) {
            return self;
        }
        let start = self.start.map(|start| StartRecord {
            launcher: start.launcher.of_another_boot(),
            program: start.program.of_another_boot(),
            ..start
        });
        let spawner = self.spawner.map(ProcessId::of_another_boot);
        let placement = self.placement.map(Placement::of_another_boot);
        MemberRecord { start, spawner, placement, ..self }
    }

    /// Returns true if the member can receive messages and shutdown requests, through its program
    /// or its wrapper.
    pub fn reads_mail(&self) -> bool {
        // Records without the field predate configurable profiles: of the two then, only `shell`
        // did not read.
        self.request.reads_mail.unwrap_or(self.request.profile != "shell")
    }

    /// Returns true if the program maintains its own state in the team's files.
    pub fn is_native(&self) -> bool {
        self.request.native.unwrap_or(self.request.profile == "claude")
    }

    /// Returns the member's entry in the team file, without its pane and activity, which the record
    /// does not hold.
    pub fn to_member(&self, team: &TeamName) -> Member {
        let request = &self.request;
        let (allowed_tools, disallowed_tools) = request.tools.words();
        Member {
            name: self.name.clone(),
            agent_id: agent_id(&self.name, team),
            agent_type: request.role.clone(),
            model: request.model.clone(),
            prompt: request.prompt.clone(),
            color: Some(request.color.clone()),
            plan_mode_required: request.plan,
            mode: request.mode,
            allowed_tools,
            disallowed_tools,
            joined_at: self.asked_at,
            pane_id: String::new(),
            cwd: request.cwd.clone(),
            worktree_path: None,
            backend_type: Some(self.backend.wire().to_owned()),
            is_active: None,
        }
    }

    pub fn is(&self, incarnation: &Incarnation) -> bool {
        self.incarnation == *incarnation
    }
}

#[cfg(test)]
mod tests;
