//! The members of another program's team that run as processes of their own, found in the process
//! table. Once phalanx leads the team, they are its members: their requests are filed, and they are
//! asked to end or ended like those that it has started.

use std::ffi::OsStr;

use crate::members::{backends, new_record};
use crate::team::foreign_lead::{is_of_root, runs_program};
use crate::{Context, OpsError};
use backend::tmux::OwnPane;
use model::id::MemberName;
use model::members::lifecycle::MemberState;
use model::members::placement::{BackendKind, Placement, ProcessId, TmuxPane};
use model::members::record::{LaunchRequest, MemberRecord, StartRecord};
use model::members::transcript::TranscriptForm;
use model::team::Member;
use model::team::event::{EventKind, Note};
use model::team::settings::Settings;
use store::TeamStore;
use sys::proc::{self, Process, RunningProcess};

/// The profile of the program whose teams are adopted.
const PROFILE: &str = "claude";
/// The option with the id of the member.
const AGENT_ID: &str = "--agent-id";
/// The option of a member that accepts only messages signed by the lead that started it.
const VERIFY_KEY: &str = "--lead-verify-key";
/// A variable that the lead sets for its members, and a person does not.
const STARTED: &str = "CLAUDECODE";

/// A member with its process.
#[derive(Debug)]
pub struct ForeignMember {
    member: Member,
    running: RunningProcess,
}

impl ForeignMember {
    /// Describes it as a sign of life: `process 77 is its member mate`.
    pub fn describe(&self) -> String {
        format!("process {} is its member {}", self.running.process.pid, self.member.name)
    }
}

/// Returns the members that phalanx has not started and whose processes run.
pub fn running(team: &TeamStore) -> Result<Vec<ForeignMember>, OpsError> {
    let mut strangers = Vec::new();
    for member in team.team()?.teammates() {
        if team.member_record(&member.name)?.is_none_or(|record| record.state.is_over()) {
            strangers.push(member.clone());
        }
    }
    if strangers.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<RunningProcess> = proc::of_this_user()
        .into_iter()
        .filter(|running| is_of_root(running, team))
        .filter(|running| running.var("PHALANX_INCARNATION").is_none())
        .collect();
    let found = strangers.into_iter().filter_map(|member| {
        let fits: Vec<&RunningProcess> = all.iter().filter(|one| is_member(one, &member)).collect();
        // Programs that it has started inherit its variables.
        let is_inner = |one: &RunningProcess| fits.iter().any(|p| p.process.pid == one.parent);
        let running = fits.iter().find(|one| !is_inner(one)).map(|one| (*one).clone())?;
        Some(ForeignMember { member, running })
    });
    Ok(found.collect())
}

/// Returns true if the command line of the process names the member. 2.1.34 overwrites its command
/// line; then it is the program that the lead has started in the member's pane.
fn is_member(running: &RunningProcess, member: &Member) -> bool {
    let named = running.argv.windows(2).find(|pair| pair[0] == AGENT_ID).map(|pair| &pair[1]);
    if let Some(named) = named {
        return named.as_os_str() == OsStr::new(&member.agent_id);
    }
    let [pane, started] = running.vars(["TMUX_PANE", STARTED]);
    let in_pane = pane.is_some_and(|pane| pane == OsStr::new(&member.pane_id));
    in_pane && member.pane_id.starts_with('%') && started.is_some() && runs_program(running)
}

/// Makes the team of another program one of phalanx: records its running members, and gives it the
/// settings of a team that was made by hand, so that requests are filed and later leads need not
/// rule out the other program again. A team that phalanx has made or adopted is left alone.
///
/// # Errors
/// Files that cannot be read or written. What was recorded until then stays, and a later call does
/// the rest.
pub fn take_over(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    if team.settings()?.is_some() {
        return Ok(());
    }
    for found in running(team)? {
        let record = found.record(ctx, team);
        team.begin_record(&record)?;
        let note = Note::of(EventKind::MemberReady).member(&record.name);
        team.record(note.with("pid", found.running.process.pid))?;
        if found.running.argv.iter().any(|word| word == VERIFY_KEY) {
            let text = format!(
                "{} accepts answers only from the lead that started it; `phalanx shutdown {} --force` ends it",
                record.name, record.name
            );
            team.record(Note::of(EventKind::Warning).member(&record.name).with("text", text))?;
        }
    }
    team.record(Note::of(EventKind::LeadAdopted).with("pid", Process::current().pid))?;
    team.begin_settings(&Settings::by_hand(usize::MAX))?;
    Ok(())
}

/// Returns true for a member that was adopted and accepts messages only with a signature, which
/// phalanx cannot make.
pub(crate) fn needs_signature(team: &TeamStore, name: &MemberName) -> Result<bool, OpsError> {
    let record = team.member_record(name)?;
    Ok(record.is_some_and(|record| record.request.argv.iter().any(|word| word == VERIFY_KEY)))
}

impl ForeignMember {
    /// Returns the record of its run, which is up. No launcher of phalanx runs it: its own end is
    /// that of the run.
    fn record(&self, ctx: &Context, team: &TeamStore) -> MemberRecord {
        let (member, running) = (&self.member, &self.running);
        let program = ProcessId { pid: running.process.pid, start: running.process.start };
        let is_idle = member.is_active == Some(false);
        let is_in_pane = member.pane_id.starts_with('%');
        let backend = if is_in_pane { BackendKind::Tmux } else { BackendKind::Pty };
        let request = LaunchRequest {
            profile: PROFILE.to_owned(),
            reads_mail: Some(true),
            native: Some(true),
            transcript: Some(TranscriptForm::Claude),
            role: member.agent_type.clone(),
            model: member.model.clone(),
            mode: member.mode,
            plan: member.plan_mode_required,
            prompt: member.prompt.clone(),
            argv: running.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            cwd: member.cwd.clone(),
            color: member.color.clone().unwrap_or_default(),
            ..LaunchRequest::default()
        };
        let new = new_record(team, member.name.clone(), backend, request);
        let at = new.asked_at;
        let start = StartRecord {
            launcher: program,
            program,
            tty: proc::tty_of(program.pid),
            socket: None,
            cwd: member.cwd.clone(),
            at,
        };
        MemberRecord {
            state: if is_idle { MemberState::Idle } else { MemberState::Working },
            start: Some(start),
            ready_at: Some(at),
            placement: self.claim_pane(ctx, new.mark()).map(Placement::Tmux),
            ..new
        }
    }

    /// Marks the pane that its lead has made for it. Without a pane that is proven to be its, the
    /// member is managed all the same.
    fn claim_pane(&self, ctx: &Context, token: &str) -> Option<TmuxPane> {
        let [server, pane] = self.running.vars(["TMUX", "TMUX_PANE"]);
        let (server, pane) = (server?, pane?);
        let is_in_roster = pane == OsStr::new(&self.member.pane_id);
        let own = OwnPane::parse(&server, &pane).filter(|_| is_in_roster)?;
        let terminal = proc::tty_of(self.running.process.pid)?;
        own.claim(&backends::tmux_program(ctx).ok()?, &terminal, token).ok().flatten()
    }
}
