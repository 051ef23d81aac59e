//! Finds the changes of members, tasks and settings.

use std::collections::BTreeSet;

use serde::Serialize;

use super::difference::{
    Difference, MemberChange, MemberStep, SettingChange, TaskChange, TaskChangeStep, change,
    new_task,
};
use super::seen::TeamSeen;
use super::wanted::WantedTeam;
use crate::board::task_import;
use crate::starting::resume;
use crate::{Context, OpsError};
use model::board::task::{Task, TaskState};
use model::members::launch::{Demand, Template};
use model::team::settings::Settings;
use store::TeamStore;

/// Adds the members that start, change or end.
///
/// # Errors
/// A refusal for a member whose name has a running one that was added by hand.
pub(super) fn compare_members(
    found: &TeamSeen,
    wanted: &WantedTeam,
    difference: &mut Difference,
) -> Result<(), OpsError> {
    let Difference { members, ended, .. } = difference;
    // The lead keeps the number of a pool by itself.
    for spec in wanted.specs.iter().filter(|spec| !wanted.is_pooled(&spec.name)) {
        match found.record(&spec.name) {
            Some(record) if record.request.entry.is_some() => {}
            Some(record) if found.is_live(&record.name) => {
                let name = &record.name;
                return Err(OpsError::refused(
                    format!("a member `{name}` was started by hand"),
                    format!(
                        "end it with `phalanx shutdown {name}`, or rename the one in the manifest"
                    ),
                ));
            }
            Some(_) | None => members.push(change(&spec.name, MemberStep::Start, Vec::new())),
        }
    }
    let mut touched: BTreeSet<&str> = BTreeSet::new();
    for (record, entry) in found.of_manifest() {
        let name = record.name.as_str();
        let is_live = found.is_live(&record.name);
        let task = found.working.get(&record.name.folded()).copied().filter(|_| is_live);
        let Some(spec) = wanted.spec_of(&record.name) else {
            if is_live {
                members.push(MemberChange { task, ..change(name, MemberStep::End, Vec::new()) });
            }
            continue;
        };
        let template = wanted.template_of(&record.name);
        let keys = spec.entry.as_ref().map(|new| entry.differing(new)).unwrap_or_default();
        let is_direct = template.is_none_or(|template| template.demand == Demand::Once);
        if let Some(template) = template.filter(|_| !keys.is_empty()) {
            touched.insert(&template.spec.name);
        }
        match (keys.is_empty(), is_live) {
            (false, true) => {
                members.push(MemberChange { task, ..change(name, MemberStep::Restart, keys) });
            }
            (false, false) if is_direct => members.push(change(name, MemberStep::Start, keys)),
            (true, false) if is_direct && resume::has_failed(record) => {
                let how = record.reason.clone().or_else(|| record.ending());
                let how = how.unwrap_or_else(|| "its process is gone".to_owned());
                members.push(change(name, MemberStep::Resume, vec![how]));
            }
            (true, false) if is_direct => ended.push(record.name.clone()),
            (_, _) => {}
        }
    }
    compare_templates(found, wanted, &touched, members);
    Ok(())
}

/// Adds what changes for the members that the lead starts. `touched` are the names of the templates
/// whose members start again.
fn compare_templates(
    found: &TeamSeen,
    wanted: &WantedTeam,
    touched: &BTreeSet<&str>,
    changes: &mut Vec<MemberChange>,
) {
    let digests = config::settings::template_digests;
    let entry = |name: &str| found.record(name).and_then(|record| record.request.entry.clone());
    for new in &wanted.settings.templates {
        let name = new.spec.name.as_str();
        let old = found.settings.templates.iter().find(|old| old.spec.name == name);
        let keys = match old.map(digests).or_else(|| entry(name)) {
            Some(old) => old.differing(&digests(new)),
            None if has_change(changes, new) => continue,
            None => {
                changes.push(change(name, MemberStep::Offer, Vec::new()));
                continue;
            }
        };
        if !keys.is_empty() && !touched.contains(name) {
            changes.push(change(name, MemberStep::Change, keys));
        }
    }
    let is_kept = |name: &str| wanted.settings.templates.iter().any(|new| new.spec.name == name);
    for old in found.settings.templates.iter().filter(|old| old.spec.entry.is_some()) {
        let name = old.spec.name.as_str();
        if is_kept(name) || has_change(changes, old) {
            continue;
        }
        let keys =
            wanted.spec(name).and_then(|new| Some(digests(old).differing(new.entry.as_ref()?)));
        let step = if keys.is_some() { MemberStep::Change } else { MemberStep::End };
        changes.push(change(name, step, keys.unwrap_or_default()));
    }
}

/// Returns true if the changes name a member of this template.
fn has_change(changes: &[MemberChange], template: &Template) -> bool {
    let names = template.names();
    changes.iter().any(|of| names.iter().any(|name| name.clashes_with(&of.name)))
}

/// Returns the tasks that are created, edited (with `revises`) or cancelled.
///
/// # Errors
/// As [`task_import::import_manifest`].
pub(super) fn compare_tasks(
    ctx: &Context,
    team: &TeamStore,
    found: &TeamSeen,
    wanted: &WantedTeam,
    revises: bool,
) -> Result<Vec<TaskChange>, OpsError> {
    let given = (wanted.source.as_str(), wanted.tasks.as_slice());
    let imported = task_import::import_manifest(ctx, team, given, revises, true)?;
    let created = imported.created.into_iter().map(|task| new_task(task.key, task.subject));
    let edited = imported.updated.into_iter().filter_map(|edit| {
        let task = found.tasks.iter().find(|task| Some(task.id) == edit.id)?;
        let fields = edit.fields.into_iter().map(str::to_owned).collect();
        Some(task_row(task, TaskChangeStep::Edit, fields))
    });
    let mut rows: Vec<TaskChange> = created.chain(edited).collect();
    if revises {
        for (task, _) in new_owners(found, wanted) {
            match rows.iter_mut().find(|row| row.id == Some(task.id)) {
                Some(row) => row.fields.push("owner".to_owned()),
                None => rows.push(task_row(task, TaskChangeStep::Edit, vec!["owner".to_owned()])),
            }
        }
    }
    rows.extend(
        gone_tasks(found, wanted).map(|task| task_row(task, TaskChangeStep::Cancel, Vec::new())),
    );
    Ok(rows)
}

fn task_row(task: &Task, step: TaskChangeStep, fields: Vec<String>) -> TaskChange {
    let new = new_task(task.extra.key.clone().unwrap_or_default(), task.subject.clone());
    TaskChange { id: Some(task.id), step, fields, is_running: task.state.is_running(), ..new }
}

/// Returns the tasks that wait for an owner other than the manifest says, with that owner.
pub(super) fn new_owners<'f>(
    found: &'f TeamSeen,
    wanted: &'f WantedTeam,
) -> impl Iterator<Item = (&'f Task, &'f str)> {
    let waits = |task: &&Task| matches!(task.state, TaskState::Pending | TaskState::Blocked);
    found.tasks.iter().filter(waits).filter_map(|task| {
        let key = task.extra.key.as_deref()?;
        let owner = wanted.tasks.iter().find(|of| of.key == key)?.owner.as_deref()?;
        let is_its = task.owner_name().is_some_and(|now| now.eq_ignore_ascii_case(owner));
        (!is_its).then_some((task, owner))
    })
}

/// Returns the open tasks that an earlier manifest had, and this one has not.
pub(super) fn gone_tasks<'f>(
    found: &'f TeamSeen,
    wanted: &'f WantedTeam,
) -> impl Iterator<Item = &'f Task> {
    let had = found.settings.manifest.as_ref().map(|last| &last.tasks);
    let is_gone = move |task: &&Task| {
        task.extra.key.as_ref().is_some_and(|key| {
            had.is_some_and(|had| had.contains(key))
                && !wanted.tasks.iter().any(|of| of.key == *key)
        })
    };
    found.tasks.iter().filter(|task| !task.state.is_over()).filter(is_gone)
}

/// Returns the settings that differ.
pub(super) fn compare_settings(now: &Settings, then: &Settings) -> Vec<SettingChange> {
    let flat = |settings: &Settings| {
        let document = config::settings::document(settings);
        let mut flat = config::settings::flatten(&document);
        flat.retain(|key, _| !key.starts_with("member."));
        // Those of a single member are not in the document.
        let mut own = |key: &str, name: &String, value: String| {
            flat.insert(format!("member.{name}.{key}"), value);
        };
        settings.rules.members.iter().for_each(|(name, of)| own("rules", name, json(of)));
        settings.access.members.iter().for_each(|(name, of)| own("access", name, json(of)));
        settings.budgets.members.iter().for_each(|(name, of)| own("budget", name, json(of)));
        flat.insert("keep".to_owned(), settings.keep.to_string());
        flat
    };
    let (now, then) = (flat(now), flat(then));
    let keys: BTreeSet<&String> = now.keys().chain(then.keys()).collect();
    let row = |key: &String| SettingChange {
        key: key.clone(),
        now: now.get(key).cloned(),
        then: then.get(key).cloned(),
    };
    keys.into_iter().map(row).filter(|row| row.now != row.then).collect()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
