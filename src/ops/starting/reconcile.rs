//! `up` on a team that exists: compares it with a manifest, and brings it to what that says. A
//! member or a task that was added by hand is left alone.
//!
//! A call that was killed can be repeated: each step is decided again by what it changes itself. A
//! run keeps the entry that it was started from, a task its key, and the settings name the manifest
//! only once all of it is applied.

mod compare;
mod difference;
mod seen;
mod wanted;

use crate::board::{task, task_import};
use crate::ending::remove;
use crate::members::lead::is_led;
use crate::members::status;
use crate::starting::{manifest, recover, resume};
use crate::team::{hooks, lease};
use crate::{Context, OpsError, authority};
use compare::{compare_members, compare_settings, compare_tasks, gone_tasks, new_owners};
pub use difference::{
    Difference, MemberChange, MemberStep, SettingChange, TaskChange, TaskChangeStep,
};
use model::board::task::TaskAction;
use model::id::{MemberName, TeamName};
use model::members::launch::LaunchSpec;
use model::team::event::{EventKind, Note};
use seen::TeamSeen;
use store::{StoreError, TaskChanges, TaskOwner, TaskStep, TeamStore};
use sys::failpoint;
pub use wanted::WantedTeam;

/// Returns the team of this name, if it exists, for a caller that may bring it to a manifest.
///
/// # Errors
/// As [`authority::enter`].
pub fn existing(ctx: &Context, name: &str) -> Result<Option<TeamStore>, OpsError> {
    match ctx.store.team(&TeamName::new(name)?) {
        Ok(team) => {
            authority::enter(ctx, &team, authority::Action::Lead, &[])?;
            Ok(Some(team))
        }
        Err(StoreError::NoSuchTeam { .. }) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Completes or rolls back what a process that was killed has left unfinished, unless the team has
/// a lead, which does it.
///
/// # Errors
/// As [`recover`](recover::recover).
pub fn recover_unled(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    match lease::hold(team) {
        Ok(lease) => {
            recover::recover(ctx, team)?;
            drop(lease);
            Ok(())
        }
        Err(_) if is_led(team)? => Ok(()),
        Err(e) => Err(e),
    }
}

/// Puts the tasks of a manifest on the board of a new team.
pub fn lay_out(ctx: &Context, team: &TeamStore, wanted: &WantedTeam) -> Result<(), OpsError> {
    if !wanted.tasks.is_empty() {
        task::lay_out(ctx, team, &manifest::new_tasks(&wanted.tasks)?)?;
    }
    Ok(())
}

/// Compares a manifest with a team.
///
/// # Errors
/// A refusal for a team that phalanx did not make, and for a member of the manifest whose name
/// has one that was added by hand; as [`task_import::import`] for the tasks.
pub fn compare(
    ctx: &Context,
    team: &TeamStore,
    wanted: &WantedTeam,
) -> Result<Difference, OpsError> {
    let found = TeamSeen::read(team)?;
    let applied = found.settings.manifest.as_ref();
    let is_continued = applied.is_some_and(|last| last.digest == wanted.applied().digest);
    let mut difference = Difference { is_continued, ..Difference::default() };
    compare_members(&found, wanted, &mut difference)?;
    difference.tasks = compare_tasks(ctx, team, &found, wanted, !is_continued)?;
    if !is_continued {
        let new = wanted.settings_over(&found.settings, &found.gone(wanted));
        difference.settings = compare_settings(&found.settings, &new);
    }
    Ok(difference)
}

/// Applies the settings and the tasks of a manifest, except for its members. A running lead follows
/// them.
///
/// # Errors
/// As [`compare()`], for a team that has changed since.
pub fn settle(
    ctx: &Context,
    team: &TeamStore,
    wanted: &WantedTeam,
    difference: &Difference,
) -> Result<(), OpsError> {
    let found = TeamSeen::read(team)?;
    for task in gone_tasks(&found, wanted) {
        let reason = Some(format!("{} no longer has it", wanted.source));
        let step = TaskStep { reason, ..TaskStep::of(TaskAction::Cancel) };
        task::end(team, task.id, &ctx.speaker, &step)?;
    }
    failpoint::hit("up.cancelled");
    let gone = found.gone(wanted);
    if !difference.is_continued {
        team.change_settings(|now| *now = wanted.settings_over(now, &gone))?;
    }
    if !difference.settings.is_empty() {
        let keys: Vec<&str> = difference.settings.iter().map(|row| row.key.as_str()).collect();
        let note = Note::of(EventKind::SettingsChanged).with("by", ctx.speaker.as_str());
        team.record(note.with("keys", keys))?;
    }
    failpoint::hit("up.set");
    let given = (wanted.source.as_str(), wanted.tasks.as_slice());
    task_import::import_manifest(ctx, team, given, !difference.is_continued, false)?;
    Ok(())
}

/// Assigns the tasks to their new owners, which have joined, and records that the manifest is
/// applied.
///
/// # Errors
/// As [`task::update`].
pub fn conclude(
    ctx: &Context,
    team: &TeamStore,
    wanted: &WantedTeam,
    difference: &Difference,
) -> Result<(), OpsError> {
    if difference.is_continued {
        return Ok(());
    }
    let found = TeamSeen::read(team)?;
    let hooks = hooks::load_hooks(ctx, team);
    for (task, owner) in new_owners(&found, wanted) {
        let owner = TaskOwner::Member(MemberName::new(owner)?);
        let changes = TaskChanges { owner: Some(owner), ..TaskChanges::default() };
        task::update(ctx, team, &hooks, task.id, &changes)?;
    }
    Ok(team.change_settings(|now| now.manifest = Some(wanted.applied()))?)
}

/// Returns true if a member runs, or is about to, from its entry in the manifest: the lead may have
/// started it meanwhile.
///
/// # Errors
/// A record that cannot be read.
pub fn runs_as_wanted(team: &TeamStore, wanted: &WantedTeam, name: &str) -> Result<bool, OpsError> {
    let name = MemberName::existing(name)?;
    let Some(record) = team.member_record(&name)? else { return Ok(false) };
    let is_wanted = wanted.spec_of(&name).is_some_and(|spec| spec.entry == record.request.entry);
    let is_open = !record.state.is_over() && record.exit.is_none();
    let starts = is_open && record.start.is_none();
    Ok(is_wanted && (starts || !status::live_of(&[record]).is_empty()))
}

/// Returns the specs of the members to start, now that those to end have left. Removes what is left
/// of their runs.
///
/// # Errors
/// As [`resume::specs`].
pub fn starts(
    ctx: &Context,
    team: &TeamStore,
    wanted: &WantedTeam,
    difference: &Difference,
) -> Result<Vec<LaunchSpec>, OpsError> {
    let roster = team.team()?;
    let mut specs = Vec::new();
    for MemberChange { name, step, .. } in &difference.members {
        let name = MemberName::existing(name)?;
        match step {
            MemberStep::Start | MemberStep::Restart | MemberStep::Resume => {}
            MemberStep::Offer | MemberStep::Change | MemberStep::End => continue,
        }
        if runs_as_wanted(team, wanted, name.as_str())? {
            continue;
        }
        let record = team.member_record(&name)?;
        let has_run = record.as_ref().is_some_and(|record| record.start.is_some());
        if *step == MemberStep::Resume && has_run {
            let again = resume::specs(ctx, team, std::slice::from_ref(&name), None)?;
            specs.extend(again.into_iter().map(|again| again.spec));
            continue;
        }
        if let Some(record) = record.filter(|_| roster.member(&name).is_some()) {
            remove::stop_and_remove(ctx, team, &record)?;
        }
        specs.extend(wanted.spec_of(&name));
    }
    Ok(specs)
}
