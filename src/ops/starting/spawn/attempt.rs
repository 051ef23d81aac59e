//! One attempt to start a batch on one backend: writes the files, places the launchers, waits for
//! proof, and rolls back the members that failed.

use super::batch::{BatchContext, Spawned, SpawnedBranch};
use super::prepare::{self, MemberStart};
use super::prove::{self, FailureCause, RecordWatcher, StartProof};
use super::resolve::ResolvedLaunch;
use super::rollback::{self, FailedStart};
use crate::OpsError;
use crate::error::screen_block;
use crate::members::{label, presence};
use backend::choose::Chosen;
use backend::{Backend, Mark, PlacementRequest};
use model::id::MemberName;
use model::members::placement::Placement;
use model::members::record::UNRECOGNISED;
use model::members::spec::LauncherSpec;
use model::team::event::{EventKind, Note};
use model::team::settings::Settings;
use profile::Ready;
use store::TeamStore;
use sys::failpoint;

/// A member of an attempt, and the result of its start.
type Attempted = (MemberStart, Result<Spawned, OpsError>);

/// Starts the whole batch on one backend, and rolls back the members that fail. `chosen` is none on
/// fallback tiers, so that later members try the original choice first.
///
/// # Errors
///
/// Failures of the whole batch. Nothing is left of it then.
pub(super) fn attempt(
    batch: &BatchContext,
    launches: &[&ResolvedLaunch],
    backend: &dyn Backend,
    chosen: Option<&Chosen>,
) -> Result<Vec<Attempted>, OpsError> {
    let team = batch.team;
    let watcher = RecordWatcher::subscribe(team)?;
    let (mut starts, mut specs): (Vec<MemberStart>, Vec<LauncherSpec>) =
        prepare::join_team(batch, launches, backend)?.into_iter().unzip();
    failpoint::hit("spawn.joined");
    let placed = prepare::write_files(batch, launches, &mut starts, &mut specs)
        .and_then(|()| place(batch, &mut starts, backend, chosen));
    if let Err(e) = placed {
        let all: Vec<FailedStart> = starts.iter().map(|start| (start, &e)).collect();
        rollback::roll_back(batch.ctx, team, &all);
        return Err(e);
    }
    failpoint::hit("spawn.noted");
    let proofs = prove::prove(team, &starts, &watcher, batch.options.deadline);
    failpoint::hit("spawn.proven");
    Ok(conclude(batch, backend, starts, proofs))
}

/// Starts the launchers, and writes their placements into the records and the team file.
fn place(
    batch: &BatchContext,
    starts: &mut [MemberStart],
    backend: &dyn Backend,
    chosen: Option<&Chosen>,
) -> Result<(), OpsError> {
    let team = batch.team;
    let launches: Vec<PlacementRequest> = starts
        .iter()
        .map(|start| PlacementRequest {
            member: start.member.name.clone(),
            token: start.record.mark().to_owned(),
            argv: vec![
                batch.exe.clone().into(),
                "exec".into(),
                team.spec_path(&start.record.incarnation).into(),
            ],
            label: label::describe(&start.record),
        })
        .collect();
    let placed = {
        // Without it, two commands at once at worst open a window each.
        let _alone = team.lock_placements();
        backend.place(&launches)
    };
    failpoint::hit("spawn.placed");
    let mut notes = Vec::new();
    for (start, placed) in starts.iter_mut().zip(placed) {
        let placement = match placed {
            Ok(placement) => start.record.placement.insert(placement),
            Err(e) => {
                start.not_placed = Some(e);
                continue;
            }
        };
        let (name, run) = (&start.record.name, &start.record.incarnation);
        // Without the placement in the record the proof fails, and the start is rolled back.
        let _ = presence::placed(team, name, run, placement);
        let note = Note::of(EventKind::MemberPlaced).because(&start.asked).member(name);
        let note = note.with("incarnation", run.as_str());
        let note = note.with("backend", placement.backend().as_str());
        notes.push(note.with("pane", placement.pane_id()));
    }
    // Best effort: the journal is a history only.
    let _ = team.record_all(notes);
    write_pane_ids(team, starts)?;
    if let Some(chosen) = chosen {
        let placements: Vec<&Placement> =
            starts.iter().filter_map(|start| start.record.placement.as_ref()).collect();
        store_choice(team, &batch.settings, &placements, chosen)?;
    }
    // The owners of the new mailboxes start in the meantime.
    let new = starts.iter().filter(|start| start.record.placement.is_some() && start.new_mailbox);
    let owners: Vec<_> = new.map(|start| &start.record.name).collect();
    Ok(team.sync_mailboxes(&owners)?)
}

/// Writes the pane ids of placed members into the team file.
pub(super) fn write_pane_ids(team: &TeamStore, starts: &[MemberStart]) -> Result<(), OpsError> {
    let pane = |start: &MemberStart| {
        let placement = start.record.placement.as_ref()?;
        Some((start.member.name.clone(), placement.roster_pane().to_owned()))
    };
    let panes: Vec<(MemberName, String)> = starts.iter().filter_map(pane).collect();
    if panes.is_empty() {
        return Ok(());
    }
    Ok(team.change_roster(|roster| {
        for (name, pane) in &panes {
            roster.set(name, "tmuxPaneId", pane.as_str());
        }
        Ok(())
    })?)
}

/// Stores the backend of the first members for later ones. A later explicit choice is not stored.
pub(super) fn store_choice(
    team: &TeamStore,
    settings: &Settings,
    placements: &[&Placement],
    chosen: &Chosen,
) -> Result<(), OpsError> {
    if placements.is_empty() {
        return Ok(());
    }
    let socket = placements.iter().find_map(|placement| match placement {
        Placement::Tmux(pane) => Some(pane.socket.clone()),
        Placement::Iterm2(_) | Placement::Pty(_) => None,
    });
    let home = &settings.home;
    if home.chosen.is_some() && (home.tmux_socket.is_some() || socket.is_none()) {
        return Ok(());
    }
    team.change_settings(|settings| {
        let home = &mut settings.home;
        home.tmux_socket = home.tmux_socket.take().or(socket.clone());
        home.chosen.get_or_insert(chosen.backend);
    })?;
    Ok(())
}

/// Accepts the members that run and rolls back the others.
fn conclude(
    batch: &BatchContext,
    backend: &dyn Backend,
    mut starts: Vec<MemberStart>,
    proofs: Vec<StartProof>,
) -> Vec<Attempted> {
    let results: Vec<_> = starts
        .iter_mut()
        .zip(proofs)
        .map(|(start, proof)| accept(batch.team, backend, start, proof))
        .collect();
    let ready = |(start, result): (&MemberStart, &Result<Spawned, OpsError>)| {
        let note = Note::of(EventKind::MemberReady).because(&start.asked);
        Some(note.member(&start.record.name).with("pid", result.as_ref().ok()?.pid))
    };
    // Best effort: the records already show that they run.
    let _ = batch.team.record_all(starts.iter().zip(&results).filter_map(ready).collect());
    let failed = starts.iter().zip(&results);
    let failed = failed.filter_map(|(start, result)| Some((start, result.as_ref().err()?)));
    rollback::roll_back(batch.ctx, batch.team, &failed.collect::<Vec<FailedStart>>());
    starts.into_iter().zip(results).collect()
}

/// Accepts a member that is proven to run.
fn accept(
    team: &TeamStore,
    backend: &dyn Backend,
    start: &mut MemberStart,
    proof: StartProof,
) -> Result<Spawned, OpsError> {
    if let Some(e) = start.not_placed.take() {
        return Err(e.into());
    }
    let record = &start.record;
    let Some(placement) = &record.placement else {
        return Err(prove::failure(record, "it was not placed", FailureCause::Program, ""));
    };
    let mark = Mark::new(placement, record.mark());
    let (pid, cwd) = match proof {
        StartProof::Runs { pid, cwd } => (pid, cwd),
        StartProof::Fails { reason, cause } => {
            let screen = backend.screen(mark, 20).unwrap_or_default();
            return Err(prove::failure(record, &reason, cause, &screen));
        }
    };
    let is_ready = presence::accept(team, &record.name, &record.incarnation)?;
    failpoint::hit("spawn.accepted");
    if start.ready == Ready::Screen && !is_ready {
        let screen = backend.screen(mark, 20).unwrap_or_default();
        let name = &record.name;
        start.warnings.push(format!(
            "running, {UNRECOGNISED}; see `phalanx peek {name}` and `phalanx explain {name}`, and \
             type with `phalanx type {name} TEXT --enter`{}",
            screen_block(screen.trim_end())
        ));
    }
    let tmux = match placement {
        Placement::Tmux(pane) => Some(pane),
        Placement::Iterm2(_) | Placement::Pty(_) => None,
    };
    let member = &start.member;
    Ok(Spawned {
        teammate_id: member.agent_id.clone(),
        agent_id: member.agent_id.clone(),
        name: member.name.to_string(),
        agent_type: member.agent_type.clone(),
        model: member.model.clone(),
        color: member.color.clone(),
        team_name: team.name().to_string(),
        plan_mode_required: member.plan_mode_required,
        tmux_session_name: tmux.map(|pane| pane.session_name.clone()),
        tmux_window_name: tmux.map(|pane| pane.window_name.clone()),
        tmux_pane_id: tmux.map(|pane| pane.pane_id.clone()),
        backend: placement.backend(),
        incarnation: record.incarnation.to_string(),
        pid,
        cwd,
        host: None,
        branch: start.new_checkout.as_ref().map(SpawnedBranch::of_checkout),
        watch: backend.how_to_watch(placement),
    })
}
