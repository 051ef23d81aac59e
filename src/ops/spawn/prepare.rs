//! The first half of a spawn: validates orders and writes all files before a process starts.

use std::ffi::OsString;
use std::path::Path;

use super::super::context::{Context, now};
use super::super::error::OpsError;
use super::super::{claude_settings, decide, depth, label, owners, profiles, roles, task};
use super::command::{self, Command, LaunchContext};
use super::mailbox;
use super::role_merge::{self, Part};
use super::worktree_setup::{self, Site};
use super::{Plan, Prepared, SpawnOptions, StartedWhen, rollback};
use crate::backend::{Backend, PlacementRequest};
use crate::model::environ::{self, EnvRules};
use crate::model::event::{EventKind, Note};
use crate::model::id::{Incarnation, MemberName, agent_id};
use crate::model::lifecycle::MemberState;
use crate::model::mode::Mode;
use crate::model::order::Order;
use crate::model::placement::{BackendKind, ProcessId};
use crate::model::record::{FORMAT, LaunchRequest, MemberRecord};
use crate::model::role::Roles;
use crate::model::spec::{Spec, Word};
use crate::model::team::{Member, Team};
use crate::model::text;
use crate::model::worktree::Rules;
use crate::profile::{self, Brief, Names, Profile, Prompt, Ready};
use crate::store::{StoreError, TeamStore};
use crate::sys::proc::Process;
use crate::sys::{env, failpoint, rand};
use crate::worktree::MISLEADING;

/// Time in milliseconds a launcher keeps the screen of a program that failed to start.
const LINGER_MS: u64 = 3000;

/// If `true` in the caller's environment, every teammate must have a plan approved before it works.
const PLAN_REQUIRED: &str = "CLAUDE_CODE_PLAN_MODE_REQUIRED";

/// A validated order. Its name may still be taken.
pub(super) struct Draft {
    /// The order merged with its role.
    pub(super) part: Part,
    pub(super) name: MemberName,
    pub(super) profile: Profile,
    cwd: String,
    /// Set if the member must have a plan approved before it works.
    pub(super) plan: bool,
    /// The source of its worktree, if one is requested.
    pub(super) site: Option<Site>,
}

impl Draft {
    /// Returns whether the member gets a first message: a prompt or the team briefing. A resumed
    /// session got both when it began.
    fn is_told(&self) -> bool {
        let briefed = self.profile.launch.brief == Brief::FirstMessage;
        (self.part.order.prompt.is_some() || briefed) && self.part.order.session.is_none()
    }

    /// Returns whether the member works as soon as it is up. A worker only shows its first message
    /// and works on tasks.
    fn begins_at_once(&self) -> bool {
        (self.is_told() && self.profile.name != profile::WORKER) || self.part.order.task.is_some()
    }
}

/// Validates one order without looking at the team.
///
/// # Errors
///
/// The name, role, profile, command line, environment or worktree is invalid, or the role is
/// reserved for tasks.
pub(super) fn draft(ctx: &Context, roles: &Roles, order: &Order) -> Result<Draft, OpsError> {
    if order.task.is_some() {
        return draft_once(ctx, roles, order);
    }
    let mut draft = draft_as(ctx, roles, order, profile_of(ctx, order)?)?;
    if draft.plan {
        draft.part.warnings.extend(command::check_plan(&draft.part.order, &draft.profile)?);
    }
    match &draft.part.order.role {
        Some(role) if roles.named.get(role).is_some_and(|role| role.task_only) => {
            Err(OpsError::Usage {
                problem: format!("role `{}` is task-only: nobody stands in it", text::line(role)),
                hint: Some("make a task for it; the lead starts a run for each".to_owned()),
            })
        }
        Some(_) | None => Ok(draft),
    }
}

fn draft_as(
    ctx: &Context,
    roles: &Roles,
    order: &Order,
    profile: Profile,
) -> Result<Draft, OpsError> {
    let name = MemberName::new(&order.name)?;
    let cwd = ctx.caller.cwd.join(order.cwd.as_deref().unwrap_or("."));
    let cwd = cwd.components().collect::<std::path::PathBuf>();
    let role = order
        .role
        .as_deref()
        .map(|role| roles::resolve_role(ctx, roles, role, &cwd))
        .transpose()?;
    let part = role_merge::fill(order, role, &roles.tools, &profile);
    command::check(&part.order, &profile)?;
    if let Some((bad, _)) = order.env.iter().find(|(name, _)| !environ::may_be_set(name)) {
        let problem = format!("{bad:?} cannot be set as an environment variable");
        return Err(OpsError::Usage { problem, hint: None });
    }
    let cwd = cwd.to_string_lossy().into_owned();
    let required = ctx.caller.var(PLAN_REQUIRED).is_some_and(|word| word == "true");
    let plan = order.plan || (required && !profile.needs_command());
    let site = Site::find(ctx, order.worktree.as_ref(), &cwd)?;
    Ok(Draft { part, name, profile, cwd, plan, site })
}

/// Checks that no mode is disabled or more permissive than the lead's (PM-06). A lead without a
/// mode is a person, who may grant any.
///
/// # Errors
///
/// [`OpsError::NotAllowed`] for a mode above the lead's. Errors of the settings check pass through.
pub(super) fn check_modes(
    ctx: &Context,
    team: &TeamStore,
    drafts: &[Draft],
) -> Result<(), OpsError> {
    for mode in drafts.iter().filter_map(|draft| draft.part.order.mode) {
        claude_settings::must_be_enabled(ctx, team, mode)?;
    }
    let Some(own) = decide::lead_mode(team)? else { return Ok(()) };
    let modes = drafts.iter().filter_map(|draft| draft.part.order.mode);
    match modes.filter(|mode| mode.reach() > own.reach()).max_by_key(|mode| mode.reach()) {
        Some(mode) => Err(OpsError::NotAllowed { problem: decide::above(own, mode) }),
        None => Ok(()),
    }
}

/// Validates an order for a one-shot run: the one-shot form of its program, with its prompt.
///
/// # Errors
///
/// As for [`draft`]; also if there is no prompt and no task, if the profile has no one-shot form,
/// or if a plan is required.
pub(super) fn draft_once(ctx: &Context, roles: &Roles, order: &Order) -> Result<Draft, OpsError> {
    let missing = |problem| OpsError::Usage { problem, hint: None };
    if order.prompt.is_none() && order.task.is_none() {
        return Err(missing("there is no prompt that it could answer".to_owned()));
    }
    let whole = profile_of(ctx, order)?;
    let name = whole.name.clone();
    let once =
        whole.once().ok_or_else(|| missing(format!("profile `{name}` has no one-shot form")))?;
    let mut draft = draft_as(ctx, roles, order, once)?;
    // A plain command line makes no plans.
    let is_agent = !draft.profile.needs_command();
    if draft.plan && is_agent {
        return Err(missing(format!(
            "`{}` has to have a plan approved, and a run without mail cannot",
            draft.name
        )));
    }
    let untold = |_: &Mode| is_agent && !draft.profile.takes(Names::Mode);
    if let Some(mode) = draft.part.order.mode.filter(untold) {
        let said =
            format!("the one-shot form of `{name}` is not told its mode, `{}`", mode.as_str());
        draft.part.warnings.push(said);
    }
    Ok(draft)
}

fn profile_of(ctx: &Context, order: &Order) -> Result<Profile, OpsError> {
    let default = if order.command.is_empty() { profile::WORKER } else { profile::SHELL };
    profiles::find(ctx, order.profile.as_deref().unwrap_or(default))
}

/// Computes how a draft would be started with the team's current members.
///
/// # Errors
///
/// The name is taken, the command line is empty, or the store cannot be read.
pub(super) fn plan(
    ctx: &Context,
    team: &TeamStore,
    draft: &Draft,
    unique: bool,
) -> Result<Plan, OpsError> {
    let mut found = team.team()?;
    let name = if unique { free_name(&found, &draft.name)? } else { draft.name.clone() };
    if let Some(holder) = found.member(&name) {
        let (team, holder) = (team.name().clone(), holder.name.clone());
        return Err(StoreError::MemberTaken { team, holder }.into());
    }
    let settings = team.settings()?;
    let (rules, worktrees) = settings.map(|s| (s.env, s.worktree)).unwrap_or_default();
    let member = entry(team, &found, draft, name, BackendKind::Pty, &worktrees);
    found.members.push(member.clone());
    let roles = roles::team_roles(team)?;
    let told = command::told(ctx, &roles, draft, &found, &member);
    let session = found.lead_session_id.unwrap_or_default();
    let add_dirs = claude_settings::additional_directories(ctx, team)?;
    let common = Common { ctx, team, rules, roles, session, add_dirs };
    let launch = common.launch(draft);
    let command = command::command(ctx, team, draft, &member, &told, &launch)?;
    let env = environment(&common, draft, &command, &member, &identity(&common, &member, "", ""));
    Ok(Plan {
        name: member.name.to_string(),
        agent_id: member.agent_id,
        profile: draft.profile.name.clone(),
        runs: draft.profile.runs.as_str(),
        argv: command.argv,
        cwd: member.cwd,
        env: env.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect(),
        model: member.model,
        mode: member.mode,
        role: draft.part.order.role.clone(),
        prompt: member.prompt.map(|_| draft.profile.launch.prompt.as_str()),
        brief: draft.profile.launch.brief.way(),
        warnings: draft.part.warnings.clone(),
    })
}

/// State shared by a batch, read once.
struct Common<'a> {
    ctx: &'a Context,
    team: &'a TeamStore,
    rules: EnvRules,
    roles: Roles,
    /// The lead's session id.
    session: String,
    /// Directories besides their own that members may access.
    add_dirs: Vec<String>,
}

impl Common<'_> {
    fn launch(&self, draft: &Draft) -> LaunchContext<'_> {
        let new_session = command::new_session(draft);
        LaunchContext { lead_session: &self.session, new_session, add_dirs: &self.add_dirs }
    }
}

/// Writes records, roster entries, prompts and specs. Rolls back everything if one write fails.
///
/// # Errors
///
/// A name is taken, the team is full, the team cannot have worktrees, a task is already claimed, or
/// a file cannot be written.
pub(super) fn prepare(
    ctx: &Context,
    team: &TeamStore,
    drafts: &[Draft],
    backend: &dyn Backend,
    terms: &SpawnOptions,
) -> Result<Vec<Prepared>, OpsError> {
    let settings = team.settings()?;
    let roles = settings.as_ref().map(|settings| settings.roles.clone()).unwrap_or_default();
    let max = settings.as_ref().map_or(usize::MAX, |s| s.max_members);
    if settings.is_none() && drafts.iter().any(|draft| draft.site.is_some()) {
        return Err(OpsError::NoWorktreesHere { team: team.name().clone() });
    }
    let (rules, worktrees) = settings.map(|s| (s.env, s.worktree)).unwrap_or_default();
    let session = team.team()?.lead_session_id.unwrap_or_default();
    let add_dirs = claude_settings::additional_directories(ctx, team)?;
    let common = Common { ctx, team, rules, roles, session, add_dirs };
    let (mut batch, specs): (Vec<Prepared>, Vec<Spec>) =
        join(&common, drafts, backend, terms, (max, &worktrees))?.into_iter().unzip();
    failpoint::hit("spawn.joined");
    let housed = house(&common, drafts, &mut batch, &worktrees);
    if let Err(e) = housed.and_then(|()| write(&common, drafts, &mut batch, &specs)) {
        let all: Vec<rollback::Failed> = batch.iter().map(|one| (one, &e)).collect();
        rollback::undo(ctx, team, &all);
        return Err(e);
    }
    Ok(batch)
}

/// Creates the requested worktrees; if one fails, none of them remains.
fn house(
    common: &Common,
    drafts: &[Draft],
    batch: &mut [Prepared],
    worktrees: &Rules,
) -> Result<(), OpsError> {
    let members: Vec<Member> = batch.iter().map(|one| one.member.clone()).collect();
    let made = worktree_setup::furnish(common.ctx, common.team, drafts, &members, worktrees)?;
    batch.iter_mut().zip(made).for_each(|(one, made)| one.new_checkout = made);
    Ok(())
}

/// Adds the batch to the roster in one change. The records are written first, under the roster
/// lock, so that each entry has a record even if this process dies in between (SD-03).
fn join(
    common: &Common,
    drafts: &[Draft],
    backend: &dyn Backend,
    terms: &SpawnOptions,
    (max, worktrees): (usize, &Rules),
) -> Result<Vec<(Prepared, Spec)>, OpsError> {
    let team = common.team;
    let (mut fault, mut begun) = (None, Vec::new());
    let joined = team.change_roster(|roster| {
        // The closure runs again if Claude Code, which takes no lock, rewrote the file: remove the
        // records of the previous pass.
        forget(team, &mut begun);
        let mut known = roster.team();
        let mut members = Vec::new();
        for draft in drafts {
            if known.teammates().count() >= max {
                return Err(StoreError::TeamFull { team: team.name().clone(), max });
            }
            let name =
                if terms.unique { free_name(&known, &draft.name)? } else { draft.name.clone() };
            let member = entry(team, &known, draft, name, backend.kind(), worktrees);
            roster.join(&member)?;
            known.members.push(member.clone());
            members.push(member);
        }
        let mut joined = Vec::new();
        for (draft, member) in drafts.iter().zip(members) {
            joined.push(fill(common, draft, member, &known, backend, terms.until).map_err(
                |e| {
                    let nothing =
                        StoreError::NoSuchTeam { name: team.name().to_string(), known: Vec::new() };
                    fault = Some(e);
                    nothing
                },
            )?);
        }
        for (one, _) in &joined {
            begun.push((one.record.name.clone(), one.record.incarnation.clone()));
            team.begin_record(&one.record)?;
        }
        failpoint::hit("spawn.intended");
        Ok(joined)
    });
    joined.map_err(|e| {
        forget(team, &mut begun);
        fault.unwrap_or(e.into())
    })
}

/// Removes records that were begun. Records that cannot be removed now are found by the next lead.
fn forget(team: &TeamStore, begun: &mut Vec<(MemberName, Incarnation)>) {
    begun.drain(..).for_each(|(name, run)| drop(team.forget_record(&name, &run)));
}

fn free_name(team: &Team, wanted: &MemberName) -> Result<MemberName, StoreError> {
    let mut name = wanted.clone();
    let mut ending = 2;
    while team.member(&name).is_some() {
        name = MemberName::new(&format!("{wanted}-{ending}"))?;
        ending += 1;
    }
    Ok(name)
}

fn entry(
    team: &TeamStore,
    known: &Team,
    draft: &Draft,
    name: MemberName,
    backend: BackendKind,
    worktrees: &Rules,
) -> Member {
    let (allowed_tools, disallowed_tools) = draft.part.tools.words();
    let mut member = Member {
        agent_id: agent_id(&name, team.name()),
        agent_type: Some(
            draft.part.order.role.clone().unwrap_or_else(|| "general-purpose".to_owned()),
        ),
        model: draft.part.order.model.clone(),
        prompt: draft.part.order.prompt.clone(),
        color: Some(draft.part.color.clone().unwrap_or_else(|| known.next_color().to_owned())),
        plan_mode_required: draft.plan,
        mode: draft.part.order.mode,
        allowed_tools,
        disallowed_tools,
        joined_at: now(),
        pane_id: String::new(),
        cwd: draft.cwd.clone(),
        worktree_path: None,
        backend_type: Some(backend.wire().to_owned()),
        // Idle until it has its first work.
        is_active: Some(draft.begins_at_once()),
        name,
    };
    if let Some(site) = &draft.site {
        site.house(team, worktrees, &mut member);
    }
    member
}

/// Composes the member, its record and its launch spec in memory.
fn fill(
    common: &Common,
    draft: &Draft,
    member: Member,
    known: &Team,
    backend: &dyn Backend,
    until: StartedWhen,
) -> Result<(Prepared, Spec), OpsError> {
    let told = command::told(common.ctx, &common.roles, draft, known, &member);
    let launch = common.launch(draft);
    let command = command::command(common.ctx, common.team, draft, &member, &told, &launch)?;
    let session = launch.new_session.or_else(|| draft.part.order.session.clone());
    let record = MemberRecord { session, ..record(draft, &member, &command, backend.kind()) };
    let spec = spec(common, draft, &command, &record, &member, backend);
    let path = common.team.spec_path(&record.incarnation);
    let argv = vec![common.ctx.caller.exe.clone().into(), "exec".into(), path.into()];
    let (token, label) = (record.mark().to_owned(), label::of(&record));
    let launch = PlacementRequest { member: member.name.clone(), token, argv, label };
    let ready = match (until, draft.profile.ready) {
        (StartedWhen::Running, Ready::Hello | Ready::Screen | Ready::Settled { .. }) => {
            Ready::Running
        }
        (_, ready) => ready,
    };
    let asked = rand::uuid();
    let first = told.first;
    Ok((
        Prepared {
            member,
            record,
            ready,
            launch,
            asked,
            first,
            new_mailbox: false,
            new_checkout: None,
        },
        spec,
    ))
}

/// Writes mailboxes, specs and task claims, which the launcher and the program read.
fn write(
    common: &Common,
    drafts: &[Draft],
    batch: &mut [Prepared],
    specs: &[Spec],
) -> Result<(), OpsError> {
    let asked = |one: &Prepared| {
        let note = Note::of(EventKind::MemberAsked).member(&one.member.name);
        let note = note.with("incarnation", one.record.incarnation.as_str());
        Note {
            id: Some(one.asked.clone()),
            ..note.with("profile", one.record.wish.profile.as_str())
        }
    };
    common.team.record_all(batch.iter().map(asked).collect())?;
    for ((draft, one), spec) in drafts.iter().zip(&mut *batch).zip(specs) {
        let by_mail = draft.profile.launch.prompt != Prompt::Argv;
        let first = one.first.as_deref().filter(|_| by_mail);
        one.new_mailbox = mailbox::ready(common.team, &one.member, first)?;
        failpoint::hit("spawn.mailed");
        common.team.keep_spec(spec)?;
    }
    let members: Vec<&MemberName> = batch.iter().map(|one| &one.member.name).collect();
    owners::catch_up(common.team, &members)?;
    for (draft, one) in drafts.iter().zip(&*batch) {
        if let Some(id) = draft.part.order.task {
            task::claim_for(common.team, id, &one.member.name)?;
            failpoint::hit("spawn.claimed");
        }
    }
    failpoint::hit("spawn.kept");
    Ok(())
}

fn record(draft: &Draft, member: &Member, command: &Command, backend: BackendKind) -> MemberRecord {
    let asked_at = now();
    MemberRecord {
        format: FORMAT,
        name: member.name.clone(),
        incarnation: Incarnation::parse(&rand::uuid()).expect("a fresh uuid has the form of one"),
        token: rand::token(),
        nonce: rand::token(),
        state: MemberState::Pending,
        reason: None,
        state_since: asked_at,
        backend,
        wish: LaunchRequest {
            profile: draft.profile.name.clone(),
            reads_mail: Some(draft.profile.reads_mail),
            native: Some(draft.profile.is_native_member()),
            role: draft.part.order.role.clone(),
            model: draft.part.order.model.clone(),
            mode: draft.part.order.mode,
            plan: draft.plan,
            prompt: draft.part.order.prompt.clone(),
            task: draft.part.order.task,
            tools: draft.part.tools.clone(),
            argv: command.argv.clone(),
            cwd: member.cwd.clone(),
            color: member.color.clone().unwrap_or_default(),
            env: draft.part.order.env.clone(),
        },
        spawner: Some(spawner()),
        asked_at,
        placement: None,
        start: None,
        ready_at: None,
        exit: None,
        unresponsive: None,
        reminded: None,
        session: None,
        boot_id: Some(env::boot_id()).filter(|boot| !boot.is_empty()),
    }
}

fn spawner() -> ProcessId {
    let me = Process::current();
    ProcessId { pid: me.pid, start: me.start }
}

fn spec(
    common: &Common,
    draft: &Draft,
    command: &Command,
    record: &MemberRecord,
    member: &Member,
    backend: &dyn Backend,
) -> Spec {
    let identity = identity(common, member, record.incarnation.as_str(), &record.token);
    let env = environment(common, draft, command, member, &identity);
    Spec {
        format: 1,
        config_root: Word::of(common.team.root().as_os_str()),
        team: common.team.name().clone(),
        member: member.name.clone(),
        incarnation: record.incarnation.clone(),
        token: record.token.clone(),
        argv: command::started(common.ctx, draft, command),
        cwd: Word::of(Path::new(&member.cwd).as_os_str()),
        env: env.iter().map(|(k, v)| (Word::of(k), Word::of(v))).collect(),
        terminal: backend.terminal(&member.name),
        linger_ms: LINGER_MS,
    }
}

/// Composes the environment: the caller's, filtered by team and profile, then the profile's own
/// variables, the order's and the identity.
fn environment(
    common: &Common,
    draft: &Draft,
    command: &Command,
    member: &Member,
    identity: &[(String, String)],
) -> Vec<(OsString, OsString)> {
    let mut own =
        EnvRules { allow: draft.profile.launch.allow.clone(), deny: command.without.clone() };
    if member.worktree_path.is_some() {
        // These variables would make its git work on the caller's checkout (EN-07).
        own.deny.extend(MISLEADING.map(str::to_owned));
    }
    let asking = environ::compose(&common.ctx.caller.env, &own, &[], &[]);
    let extra: Vec<(String, String)> =
        command.env.iter().chain(&draft.part.order.env).cloned().collect();
    let mut env = environ::compose(&asking, &common.rules, &extra, identity);
    env.push(("PWD".into(), member.cwd.clone().into()));
    env
}

/// Returns the variables that identify a teammate to its own program.
fn identity(
    common: &Common,
    member: &Member,
    incarnation: &str,
    token: &str,
) -> Vec<(String, String)> {
    let team = common.team;
    let pairs = [
        ("PHALANX_TEAM", team.name().to_string()),
        ("PHALANX_AGENT_ID", member.agent_id.clone()),
        ("PHALANX_AGENT_NAME", member.name.to_string()),
        ("PHALANX_AGENT_COLOR", member.color.clone().unwrap_or_default()),
        ("PHALANX_CONFIG_DIR", team.root().to_string_lossy().into_owned()),
        ("PHALANX_PARENT_SESSION_ID", common.session.clone()),
        ("PHALANX_INCARNATION", incarnation.to_owned()),
        ("PHALANX_TOKEN", token.to_owned()),
        ("PHALANX_DEPTH", depth::below(common.ctx).to_string()),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
