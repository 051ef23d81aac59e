//! `spawn`: starts teammates and waits until they are proven to run. Writes in the order record,
//! roster, prompt, spec, placement; a failure is rolled back in reverse and leaves nothing behind
//! (SP-09, SD-03).

mod command;
mod fallback;
mod finish;
mod mailbox;
mod once;
mod prepare;
mod prove;
mod role_merge;
mod rollback;
mod worktree_setup;

use std::time::Duration;

use serde::Serialize;

use super::backends;
use super::context::Context;
use super::error::OpsError;
use super::{depth, presence, roles};
use crate::backend::choose::{Chosen, Tier};
use crate::backend::{Backend, BackendError, PlacementRequest};
use crate::model::event::{EventKind, Note};
use crate::model::id::MemberName;
use crate::model::mode::Mode;
use crate::model::order::Order;
use crate::model::placement::{BackendKind, Layout, Placement};
use crate::model::role::Roles;
use crate::model::settings::{BackendChoice, Settings};
use crate::model::team::Member;
use crate::model::worktree::Checkout;
use crate::profile::Ready;
use crate::store::TeamStore;
use crate::sys::failpoint;

pub(super) use finish::{Finished, finish};
pub(super) use prove::left_until_ready;

/// The point at which a start counts as successful.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartedWhen {
    /// The launcher has recorded the program's process.
    Running,
    /// The member is ready as its profile defines it.
    Ready,
}

impl StartedWhen {
    /// The values of `--until`.
    pub(crate) const ALL: [(&'static str, StartedWhen); 2] =
        [("running", StartedWhen::Running), ("ready", StartedWhen::Ready)];
}

/// Options of a batch.
#[derive(Debug, Clone)]
pub(crate) struct SpawnOptions {
    /// None: the team's own choice, or automatic.
    pub(crate) backend: Option<BackendChoice>,
    pub(crate) until: StartedWhen,
    /// Time limit until all members have reached that point.
    pub(crate) deadline: Duration,
    /// A taken name gets a numeric suffix instead of being rejected.
    pub(crate) unique: bool,
    /// None: as in the team's settings.
    pub(crate) layout: Option<Layout>,
}

/// A running teammate, as `spawn --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Spawned {
    pub(crate) teammate_id: String,
    pub(crate) agent_id: String,
    pub(crate) name: String,
    pub(crate) agent_type: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) color: Option<String>,
    pub(crate) team_name: String,
    pub(crate) plan_mode_required: bool,
    pub(crate) tmux_session_name: Option<String>,
    pub(crate) tmux_window_name: Option<String>,
    pub(crate) tmux_pane_id: Option<String>,
    pub(crate) backend: BackendKind,
    pub(crate) incarnation: String,
    /// Pid of the program, not of its launcher.
    pub(crate) pid: i32,
    pub(crate) cwd: String,
    /// A command or description of how to view the member.
    #[serde(skip)]
    pub(crate) watch: String,
}

/// The result of `--dry-run`: how a teammate would be started.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) agent_id: String,
    pub(crate) profile: String,
    /// `native` or `wrapped`.
    pub(crate) runs: &'static str,
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: String,
    /// Names only, because values may be secrets.
    pub(crate) env: Vec<String>,
    pub(crate) model: Option<String>,
    pub(crate) mode: Option<Mode>,
    pub(crate) role: Option<String>,
    /// Delivery of the first prompt: `mailbox`, `argv` or `typed`. None without a prompt.
    pub(crate) prompt: Option<&'static str>,
    /// Delivery of the team briefing: `argv` or `first-message`. None if there is no briefing.
    pub(crate) brief: Option<&'static str>,
    /// Parts of the role that this program cannot enforce.
    pub(crate) warnings: Vec<String>,
}

pub(crate) use fallback::Fallback;

/// The result of a batch.
pub(crate) struct Batch {
    /// The backend chosen first.
    pub(crate) chosen: Chosen,
    /// Members that another tier had to start.
    pub(crate) fallbacks: Vec<Fallback>,
    /// One result per order, in the order of the batch.
    pub(crate) results: Vec<Result<Spawned, OpsError>>,
    /// Messages for the user about members that run nevertheless.
    pub(crate) warnings: Vec<String>,
}

/// A teammate whose files are all written and whose launcher is not yet started.
struct Prepared {
    member: Member,
    record: crate::model::record::MemberRecord,
    ready: Ready,
    launch: PlacementRequest,
    /// Id of the journal event that later events refer to as their cause.
    asked: String,
    /// The first message, with the briefing if that goes in the same way.
    first: Option<String>,
    /// Set if the mailbox was created by this start and is to be removed on failure.
    new_mailbox: bool,
    /// The worktree, if it was created by this start and is to be removed on failure.
    new_checkout: Option<Checkout>,
}

/// Validates orders without side effects: names, roles, profiles and command lines.
///
/// # Errors
///
/// The first invalid order.
pub(crate) fn check(ctx: &Context, roles: &Roles, orders: &[Order]) -> Result<(), OpsError> {
    orders.iter().try_for_each(|order| prepare::draft(ctx, roles, order).map(drop))
}

/// Returns the start that `spawn` would perform, without writing or starting anything.
///
/// # Errors
///
/// The order is invalid, the name is taken, the mode is not allowed, or the store cannot be read.
pub(crate) fn dry_run(
    ctx: &Context,
    team: &TeamStore,
    order: &Order,
    unique: bool,
) -> Result<Plan, OpsError> {
    let draft = prepare::draft(ctx, &roles::team_roles(team)?, order)?;
    prepare::check_modes(ctx, team, std::slice::from_ref(&draft))?;
    prepare::plan(ctx, team, &draft, unique)
}

/// Starts all of `orders` as one batch.
///
/// # Errors
///
/// Failures of the whole batch, for example no usable backend or a taken name, are returned before
/// anything is started. Failures of one teammate are in its own result.
pub(crate) fn spawn(
    ctx: &Context,
    team: &TeamStore,
    orders: &[Order],
    terms: &SpawnOptions,
) -> Result<Batch, OpsError> {
    depth::must_allow(ctx)?;
    let roles = roles::team_roles(team)?;
    let drafts =
        orders.iter().map(|o| prepare::draft(ctx, &roles, o)).collect::<Result<Vec<_>, _>>()?;
    prepare::check_modes(ctx, team, &drafts)?;
    let chosen = backends::choose_backend(ctx, team, terms.backend.clone())?;
    fallback::descend(ctx, team, &roles, drafts, chosen, terms)
}

/// Starts members on behalf of a lead: standing members, or runs for one task each.
///
/// # Errors
///
/// Failures that concern all orders; others are in the results.
pub(crate) fn for_lead(
    ctx: &Context,
    team: &TeamStore,
    orders: &[Order],
    deadline: Duration,
) -> Result<Vec<Result<Spawned, OpsError>>, OpsError> {
    let terms = SpawnOptions {
        backend: None,
        until: StartedWhen::Ready,
        deadline,
        unique: false,
        layout: None,
    };
    match orders.iter().all(|order| order.task.is_some()) {
        true => once::dispatch(ctx, team, orders, &terms),
        false => Ok(spawn(ctx, team, orders, &terms)?.results),
    }
}

/// One attempt to start a teammate.
struct Attempt {
    name: MemberName,
    /// Id of the journal event of the request.
    asked: String,
    result: Result<Spawned, OpsError>,
}

/// Starts all of `drafts` on one backend, and rolls back those that fail.
fn attempt(
    ctx: &Context,
    team: &TeamStore,
    drafts: &[prepare::Draft],
    backend: &dyn Backend,
    terms: &SpawnOptions,
    chosen: Option<&Chosen>,
) -> Result<Vec<Attempt>, OpsError> {
    let news = prove::RecordWatcher::of(team)?;
    let prepared = prepare::prepare(ctx, team, drafts, backend, terms)?;
    let launches: Vec<PlacementRequest> = prepared.iter().map(|p| p.launch.clone()).collect();
    let placed = backend.place(&launches);
    failpoint::hit("spawn.placed");
    let underway = note_places(team, prepared, placed);
    if let Err(e) =
        note_panes(team, &underway, chosen).and_then(|()| persist_boxes(team, &underway))
    {
        let all: Vec<rollback::Failed> = underway.iter().map(|one| (&one.prepared, &e)).collect();
        rollback::undo(ctx, team, &all);
        return Err(e);
    }
    failpoint::hit("spawn.noted");
    let proofs = prove::prove(team, &underway, &news, terms.deadline);
    failpoint::hit("spawn.proven");
    Ok(conclude(ctx, team, backend, underway, proofs))
}

/// Opens the backend of a tier.
fn open(
    ctx: &Context,
    team: &TeamStore,
    tier: Tier,
    terms: &SpawnOptions,
) -> Result<Box<dyn Backend>, OpsError> {
    match tier {
        Tier::Place(kind) => backends::open(ctx, team, kind, terms.backend.as_ref(), terms.layout),
        Tier::Once => Ok(backends::open_one_shot(ctx, team, None)),
    }
}

/// A teammate after the backend was asked to place it.
struct Placed {
    prepared: Prepared,
    place: Result<Placement, BackendError>,
}

fn note_places(
    team: &TeamStore,
    prepared: Vec<Prepared>,
    placed: Vec<Result<Placement, BackendError>>,
) -> Vec<Placed> {
    let (mut underway, mut notes) = (Vec::new(), Vec::new());
    for (mut one, place) in prepared.into_iter().zip(placed) {
        if let Ok(placement) = &place {
            one.record.placement = Some(placement.clone());
            let (name, run) = (&one.record.name, &one.record.incarnation);
            // Without the placement in the record the proof fails, and the start is rolled back.
            let _ = presence::placed(team, name, run, placement);
            let note = Note::of(EventKind::MemberPlaced).because(&one.asked).member(name);
            let note = note
                .with("incarnation", run.as_str())
                .with("backend", placement.backend().as_str());
            notes.push(note.with("pane", placement.pane_id()));
        }
        underway.push(Placed { prepared: one, place });
    }
    // Best effort: the journal is a history only.
    let _ = team.record_all(notes);
    underway
}

/// Fsyncs the new mailboxes while their owners start.
fn persist_boxes(team: &TeamStore, underway: &[Placed]) -> Result<(), OpsError> {
    let new = underway.iter().filter(|one| one.place.is_ok() && one.prepared.new_mailbox);
    let owners: Vec<_> = new.map(|one| &one.prepared.record.name).collect();
    Ok(team.sync_mailboxes(&owners)?)
}

/// Writes the pane ids into the team file and the chosen backend into the settings. `chosen` is
/// none on fallback tiers, so that later members try the original choice first.
fn note_panes(
    team: &TeamStore,
    underway: &[Placed],
    chosen: Option<&Chosen>,
) -> Result<(), OpsError> {
    let placed: Vec<(&Member, &Placement)> = underway
        .iter()
        .filter_map(|u| Some((&u.prepared.member, u.place.as_ref().ok()?)))
        .collect();
    if placed.is_empty() {
        return Ok(());
    }
    team.change_roster(|roster| {
        for (member, placement) in &placed {
            roster.set(&member.name, "tmuxPaneId", placement.roster_pane());
        }
        Ok(())
    })?;
    chosen.map_or(Ok(()), |chosen| keep_choice(team, &placed, chosen))
}

/// Stores the backend of the first members for later ones. A later explicit choice is not stored.
fn keep_choice(
    team: &TeamStore,
    placed: &[(&Member, &Placement)],
    chosen: &Chosen,
) -> Result<(), OpsError> {
    let socket = placed.iter().find_map(|(_, p)| match p {
        Placement::Tmux(pane) => Some(pane.socket.clone()),
        Placement::Iterm2(_) | Placement::Pty(_) | Placement::Exec(_) => None,
    });
    let program = placed.iter().find_map(|(_, p)| match p {
        Placement::Exec(place) => Some(BackendChoice::Exec(place.program.clone())),
        Placement::Tmux(_) | Placement::Iterm2(_) | Placement::Pty(_) => None,
    });
    let settled =
        |s: &Settings| s.chosen.is_some() && (s.tmux_socket.is_some() || socket.is_none());
    if team.settings()?.as_ref().is_some_and(settled) {
        return Ok(());
    }
    team.change_settings(|settings| {
        settings.tmux_socket = settings.tmux_socket.take().or(socket.clone());
        if settings.chosen.is_none() {
            settings.chosen = Some(chosen.backend);
            settings.backend = program.clone().unwrap_or(settings.backend.clone());
        }
    })?;
    Ok(())
}

/// Accepts the members that run and rolls back the others.
fn conclude(
    ctx: &Context,
    team: &TeamStore,
    backend: &dyn Backend,
    underway: Vec<Placed>,
    proofs: Vec<prove::Proof>,
) -> Vec<Attempt> {
    let (mut batch, mut results) = (Vec::new(), Vec::new());
    for (Placed { prepared, place }, proof) in underway.into_iter().zip(proofs) {
        results.push(judge(team, backend, &prepared, place, proof));
        batch.push(prepared);
    }
    let ready = |(one, result): (&Prepared, &Result<Spawned, OpsError>)| {
        let note = Note::of(EventKind::MemberReady).because(&one.asked).member(&one.record.name);
        Some(note.with("pid", result.as_ref().ok()?.pid))
    };
    // Best effort: the records already show that they run.
    let _ = team.record_all(batch.iter().zip(&results).filter_map(ready).collect());
    let failed =
        batch.iter().zip(&results).filter_map(|(one, result)| Some((one, result.as_ref().err()?)));
    rollback::undo(ctx, team, &failed.collect::<Vec<rollback::Failed>>());
    let attempt =
        |(one, result): (Prepared, _)| Attempt { name: one.record.name, asked: one.asked, result };
    batch.into_iter().zip(results).map(attempt).collect()
}

fn judge(
    team: &TeamStore,
    backend: &dyn Backend,
    one: &Prepared,
    place: Result<Placement, BackendError>,
    proof: prove::Proof,
) -> Result<Spawned, OpsError> {
    let placement = place?;
    match proof {
        prove::Proof::Runs { pid, cwd } => {
            presence::accept(team, &one.record.name, &one.record.incarnation)?;
            failpoint::hit("spawn.accepted");
            Ok(spawned(team, backend, one, &placement, pid, cwd))
        }
        prove::Proof::Fails { reason, why } => {
            let screen = backend.screen(&placement, one.record.mark(), 20).unwrap_or_default();
            Err(prove::failure(&one.record, &reason, why, &screen))
        }
    }
}

fn spawned(
    team: &TeamStore,
    backend: &dyn Backend,
    one: &Prepared,
    placement: &Placement,
    pid: i32,
    cwd: String,
) -> Spawned {
    let tmux = match placement {
        Placement::Tmux(pane) => Some(pane),
        Placement::Iterm2(_) | Placement::Pty(_) | Placement::Exec(_) => None,
    };
    let member = &one.member;
    Spawned {
        teammate_id: member.agent_id.clone(),
        agent_id: member.agent_id.clone(),
        name: member.name.to_string(),
        agent_type: member.agent_type.clone(),
        model: member.model.clone(),
        color: member.color.clone(),
        team_name: team.name().to_string(),
        plan_mode_required: member.plan_mode_required,
        tmux_session_name: tmux.map(|p| p.session_name.clone()),
        tmux_window_name: tmux.map(|p| p.window_name.clone()),
        tmux_pane_id: tmux.map(|p| p.pane_id.clone()),
        backend: placement.backend(),
        incarnation: one.record.incarnation.to_string(),
        pid,
        cwd,
        watch: backend.how_to_watch(placement),
    }
}
