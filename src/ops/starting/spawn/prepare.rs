//! The files of members that start: record, roster entry, worktree, mailbox, spec and task claim.
//! All are written before a process starts.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::batch::{BatchContext, StartedWhen};
use super::command::{command_line, environment};
use super::env_file;
use super::mailbox;
use super::resolve::ResolvedLaunch;
use crate::OpsError;
use crate::board::{owners, task};
use crate::members::{account, new_record};
use crate::team::worktree::{self, WantedWorktree};
use ::worktree::WORKTREES;
use backend::{Backend, BackendError};
use model::id::MemberName;
use model::members::placeholder::MemberValues;
use model::members::placement::{BackendKind, ProcessId};
use model::members::record::{LaunchRequest, MemberRecord};
use model::members::spec::{self, LauncherSpec, OsText, Terminal};
use model::team::event::{EventKind, Note};
use model::team::worktree::{Checkout, WorktreeRequest};
use model::team::{Member, Team};
use profile::{Prompt, Ready, Runs};
use store::StoreError;
use sys::clock::{self, Deadline};
use sys::proc::Process;
use sys::{failpoint, rand};

/// Time in milliseconds a launcher keeps the screen of a program that failed to start.
const LINGER_MS: u64 = 3000;

/// Time for the entry of another process that starts a member of the same name, in a shared store.
const JOINING: Duration = Duration::from_secs(2);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// A member that is being started.
pub(super) struct MemberStart {
    pub(super) member: Member,
    /// The record of the run. It has the placement once the launcher is placed.
    pub(super) record: MemberRecord,
    pub(super) ready: Ready,
    /// Id of the journal event that later events refer to as their cause.
    pub(super) asked: String,
    /// The first message, if it goes into the mailbox.
    pub(super) first: Option<String>,
    /// Set if the mailbox was created by this start and is to be removed on failure.
    pub(super) new_mailbox: bool,
    /// The worktree, if it was created by this start and is to be removed on failure.
    pub(super) new_checkout: Option<Checkout>,
    /// Warnings for the user about a member that runs.
    pub(super) warnings: Vec<String>,
    /// The error of a backend that did not place the launcher.
    pub(super) not_placed: Option<BackendError>,
}

impl MemberStart {
    pub(super) fn new(
        member: Member,
        record: MemberRecord,
        ready: Ready,
        asked: String,
    ) -> MemberStart {
        MemberStart {
            member,
            record,
            ready,
            asked,
            first: None,
            new_mailbox: false,
            new_checkout: None,
            warnings: Vec::new(),
            not_placed: None,
        }
    }
}

/// Returns the start that a launch would have with the team's current members.
///
/// # Errors
///
/// The name is taken, or the command line is empty.
pub(super) fn preview(
    batch: &BatchContext,
    launch: &ResolvedLaunch,
) -> Result<(MemberStart, LauncherSpec), OpsError> {
    let mut known = batch.roster.clone();
    let name = batch.choose_name(&known, &launch.name)?;
    if let Some(holder) = known.member(&name) {
        let (team, holder) = (batch.team.name().clone(), holder.name.clone());
        return Err(StoreError::MemberTaken { team, holder }.into());
    }
    let index = MemberIndexes::of(batch, &known)?.take(&name);
    let mut start = new_start(batch, launch, name, &known, (BackendKind::Pty, index));
    known.members.push(start.member.clone());
    let spec = complete(batch, launch, &mut start, &known, Terminal::Pane)?;
    Ok((start, spec))
}

/// Adds the batch to the roster in one change. The records are written first, under the roster
/// lock, so that each entry has a record even if this process dies in between (SD-03).
///
/// # Errors
///
/// A name is taken, the team is full or cannot have worktrees, or a file cannot be written. Nothing
/// is left then.
pub(super) fn join_team(
    batch: &BatchContext,
    launches: &[&ResolvedLaunch],
    backend: &dyn Backend,
) -> Result<Vec<(MemberStart, LauncherSpec)>, OpsError> {
    let team = batch.team;
    if !batch.made_by_phalanx && launches.iter().any(|launch| launch.repository.is_some()) {
        return Err(worktree::not_managed(team));
    }
    let deadline = Deadline::after(JOINING);
    loop {
        match try_to_join(batch, launches, backend) {
            // Another process has begun a record of this name, and its entry will follow.
            Err(OpsError::Store(StoreError::MemberTaken { holder, .. }))
                if team.is_shared()
                    && !deadline.expired()
                    && team.team()?.member(&holder).is_none() =>
            {
                clock::sleep(BETWEEN_TRIES);
            }
            joined => return joined,
        }
    }
}

fn try_to_join(
    batch: &BatchContext,
    launches: &[&ResolvedLaunch],
    backend: &dyn Backend,
) -> Result<Vec<(MemberStart, LauncherSpec)>, OpsError> {
    let (team, max) = (batch.team, batch.settings.max_members);
    let mut begun = Vec::new();
    let joined = team.change_roster(|roster| {
        // The closure runs again if Claude Code, which takes no lock, rewrote the file: remove the
        // records of the previous pass.
        forget(batch, &mut begun);
        let mut known = roster.team();
        let mut indexes = MemberIndexes::of(batch, &known)?;
        let mut starts = Vec::new();
        for launch in launches {
            if known.teammates().count() >= max {
                return Err(StoreError::TeamFull { team: team.name().clone(), max });
            }
            let name = batch.choose_name(&known, &launch.name)?;
            let index = indexes.take(&name);
            let start = new_start(batch, launch, name, &known, (backend.kind(), index));
            roster.join(&start.member)?;
            known.members.push(start.member.clone());
            starts.push(start);
        }
        let mut joined = Vec::new();
        for (launch, mut start) in launches.iter().zip(starts) {
            let terminal = backend.terminal(&start.member.name);
            match complete(batch, launch, &mut start, &known, terminal) {
                Ok(spec) => joined.push((start, spec)),
                Err(e) => {
                    roster.give_up();
                    return Ok(Err(e));
                }
            }
        }
        for (start, _) in &joined {
            // First, because a write that fails may have happened.
            begun.push(start.record.clone());
            team.begin_record(&start.record)?;
        }
        failpoint::hit("spawn.intended");
        Ok(Ok(joined))
    });
    let joined = joined.map_err(OpsError::from).flatten();
    if joined.is_err() {
        forget(batch, &mut begun);
    }
    joined
}

/// Withdraws records that were begun. Records that cannot be removed now are found by the next
/// lead.
fn forget(batch: &BatchContext, begun: &mut Vec<MemberRecord>) {
    for MemberRecord { name, incarnation, .. } in begun.drain(..) {
        let _ = batch.team.forget_record(&name, &incarnation);
    }
}

/// The numbers of members.
struct MemberIndexes {
    /// Those of the members on the team.
    taken: BTreeSet<u32>,
    records: Vec<MemberRecord>,
}

impl MemberIndexes {
    fn of(batch: &BatchContext, known: &Team) -> Result<MemberIndexes, StoreError> {
        let records = batch.team.member_records()?;
        let on_team = records.iter().filter(|record| known.member(&record.name).is_some());
        Ok(MemberIndexes { taken: on_team.filter_map(|record| record.index).collect(), records })
    }

    /// Takes the number that the last run of the name had, or else the lowest free one: members use
    /// it to share ports.
    fn take(&mut self, name: &MemberName) -> u32 {
        let last = self.records.iter().find(|record| record.name.clashes_with(name.as_str()));
        let is_free = |index: &u32| !self.taken.contains(index);
        let last = last.and_then(|record| record.index).filter(is_free);
        let index = last.or_else(|| (1..).find(is_free)).unwrap_or(u32::MAX);
        self.taken.insert(index);
        index
    }
}

/// Creates the start of a member that is to join the members `known`, on a backend and with a
/// number. Its command line follows with [`complete`], because a briefing names the whole batch.
fn new_start(
    batch: &BatchContext,
    launch: &ResolvedLaunch,
    name: MemberName,
    known: &Team,
    (backend, index): (BackendKind, u32),
) -> MemberStart {
    let (spec, profile) = (&launch.spec, &launch.profile);
    let values = MemberValues { name: name.as_str(), index };
    let fill = |words: &[String]| words.iter().map(|word| values.fill(word)).collect::<Vec<_>>();
    let command = Some(&spec.command).filter(|command| fill(command) != **command);
    let worktree = launch.repository.as_ref().map(|repository| {
        let dir = match &spec.origin {
            Some(_) => Some(WORKTREES),
            None => batch.settings.worktree.dir.as_deref(),
        };
        let new = || repository.place(dir, &worktree::title(batch.team, &name));
        // A member that was renamed keeps the place of its worktree, and so does a moved worktree.
        let had = batch.settings.checkouts.get(&name).filter(|had| {
            let is_its = |wanted: &WorktreeRequest| wanted.branch(&had.branch) == had.branch;
            let top = had.copy.as_ref().map_or(&had.repository, |copy| &copy.path);
            spec.worktree.as_ref().is_some_and(is_its) && Path::new(top) == repository.top()
        });
        had.map_or_else(|| new().to_string_lossy().into_owned(), |had| had.path.clone())
    });
    let request = LaunchRequest {
        profile: profile.name.clone(),
        reads_mail: Some(profile.reads_mail),
        native: Some(profile.is_native_member()),
        transcript: profile.transcript,
        role: spec.role.clone(),
        model: spec.model.clone(),
        mode: spec.mode,
        plan: spec.plan,
        prompt: spec.prompt.clone(),
        task: spec.task,
        chat: spec.chat.clone(),
        tools: spec.tools.clone(),
        argv: Vec::new(),
        session_mode: None,
        command: command.cloned().unwrap_or_default(),
        wrap: fill(spec.wrap.as_deref().unwrap_or_default()),
        cwd: worktree.clone().unwrap_or_else(|| values.fill(&launch.cwd)),
        color: launch.color().unwrap_or_else(|| known.next_color()).to_owned(),
        ready: spec.ready.clone(),
        is_unattended: spec.is_unattended,
        pull: spec.pull,
        access: spec.access.clone(),
        env_file: spec.env_file.clone(),
        env: spec.env.clone(),
        entry: spec.entry.clone(),
    };
    let spawner = Process::current();
    let record = MemberRecord {
        index: Some(index),
        spawner: Some(ProcessId { pid: spawner.pid, start: spawner.start }),
        ..new_record(batch.team, name, backend, request)
    };
    let agent_type = spec.role.clone().unwrap_or_else(|| "general-purpose".to_owned());
    let member = Member {
        agent_type: Some(agent_type),
        worktree_path: worktree,
        // Idle until it has its first work.
        is_active: Some(launch.works_at_once()),
        ..record.to_member(batch.team.name())
    };
    let ready = match (batch.options.until, profile.ready) {
        (StartedWhen::Running, Ready::Hello | Ready::Screen | Ready::Settled { .. }) => {
            Ready::Running
        }
        (_, ready) => ready,
    };
    MemberStart::new(member, record, ready, rand::uuid())
}

/// Adds the command line to a start, and returns the spec for its launcher.
fn complete(
    batch: &BatchContext,
    launch: &ResolvedLaunch,
    start: &mut MemberStart,
    known: &Team,
    terminal: Terminal,
) -> Result<LauncherSpec, OpsError> {
    let (name, index) = (start.record.name.clone(), start.record.index.unwrap_or(1));
    let values = MemberValues { name: name.as_str(), index };
    let command = command_line(batch, launch, &start.member, values, known)?;
    let by_mail = launch.profile.launch.prompt != Prompt::Argv;
    start.first = command.first.clone().filter(|_| by_mail);
    start.record.session.clone_from(&command.session);
    start.record.request.argv.clone_from(&command.argv);
    start.record.request.session_mode.clone_from(&command.session_mode);
    let (team, record) = (batch.team, &start.record);
    let argv = match launch.profile.runs {
        Runs::Native => {
            record.request.command_line().iter().map(|word| OsText::new(word.as_ref())).collect()
        }
        // The wrapper reads the program's command line from the record.
        Runs::Wrapped | Runs::Acp => {
            vec![OsText::new(batch.exe.as_os_str()), OsText::new("wrap".as_ref())]
        }
    };
    let env = environment(batch, launch, &command, &start.member, record, values);
    // A team in the shared store has no files for a program to read.
    if launch.profile.is_native_member() && !team.is_shared() {
        let other = account::other_root(team, &env)?;
        start.record.config_dir = other.map(|dir| dir.to_string_lossy().into_owned());
    }
    let record = &start.record;
    Ok(LauncherSpec {
        format: spec::FORMAT,
        config_root: OsText::new(team.root().as_os_str()),
        team: team.name().clone(),
        member: record.name.clone(),
        incarnation: record.incarnation.clone(),
        token: record.token.clone(),
        argv,
        cwd: OsText::new(Path::new(&record.request.cwd).as_os_str()),
        env: env.iter().map(|(name, value)| (OsText::new(name), OsText::new(value))).collect(),
        terminal,
        linger_ms: LINGER_MS,
    })
}

/// Writes what the launcher and the program read: worktrees, mailboxes, specs and task claims.
///
/// # Errors
///
/// A worktree cannot be made, a task is already claimed, or a file cannot be written.
pub(super) fn write_files(
    batch: &BatchContext,
    launches: &[&ResolvedLaunch],
    starts: &mut [MemberStart],
    specs: &mut [LauncherSpec],
) -> Result<(), OpsError> {
    let team = batch.team;
    for ((launch, start), spec) in launches.iter().zip(&mut *starts).zip(&mut *specs) {
        if let (Some(repository), Some(request)) = (&launch.repository, &launch.spec.worktree) {
            let wanted = WantedWorktree {
                name: &start.member.name,
                request,
                origin: launch.spec.origin.as_ref(),
                rules: &batch.settings.worktree,
                base: launch.spec.base.as_deref(),
                path: Path::new(&start.member.cwd),
            };
            let obtained = worktree::obtain(batch.ctx, team, repository, &wanted)?;
            let checkout = obtained.checkout;
            start.new_checkout = obtained.is_new.then(|| checkout.clone());
            start.warnings.extend(obtained.warning);
            // Only phalanx uses a host's copy of a repository.
            if checkout.copy.is_none() {
                let user = format!("`{}` of team `{}` works in it", wanted.name, team.name());
                repository.lock(&checkout, &user)?;
            }
        }
        team.make_workspace(&batch.settings.workspace, &launch.chat())?;
        account::link(team, &start.record)?;
        // Not before, since the file may be in its worktree.
        env_file::add(launch, &start.record, spec)?;
    }
    let asked = |start: &MemberStart| {
        let note = Note::of(EventKind::MemberAsked).member(&start.member.name);
        let note = note.with("incarnation", start.record.incarnation.as_str());
        let note = note.with("profile", start.record.request.profile.as_str());
        Note { id: Some(start.asked.clone()), ..note }
    };
    team.record_all(starts.iter().map(asked).collect())?;
    for (start, spec) in starts.iter_mut().zip(&*specs) {
        start.new_mailbox =
            mailbox::prepare_mailbox(team, &start.member.name, start.first.as_deref())?;
        failpoint::hit("spawn.mailed");
        team.keep_spec(spec)?;
    }
    let names: Vec<&MemberName> = starts.iter().map(|start| &start.member.name).collect();
    owners::catch_up(team, &names)?;
    for start in starts.iter() {
        if let Some(id) = start.record.request.task {
            task::claim(team, id, &start.member.name, false)?;
            failpoint::hit("spawn.claimed");
        }
    }
    failpoint::hit("spawn.kept");
    Ok(())
}
