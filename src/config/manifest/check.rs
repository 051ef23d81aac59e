//! Checks between the entries of a manifest: clashing names, unknown references and dependency
//! cycles.

use std::collections::BTreeMap;
use std::ops::Range;

use super::member::LocatedMember;
use super::spec::TeamMode;
use super::tables::LocatedManifest;
use super::task::LocatedTask;
use crate::config::Faults;
use crate::model::cycle::find_cycle;
use crate::model::host::{HostChoice, HostConfig};
use crate::model::name::nearest;

/// Adds all faults between entries.
pub(super) fn check(manifest: &LocatedManifest, faults: &mut Faults) {
    check_count(manifest, faults);
    check_member_names(&manifest.members, faults);
    check_owners(manifest, faults);
    check_tasks(&manifest.tasks, faults);
}

/// Adds the faults between tasks.
pub(super) fn check_tasks(tasks: &[LocatedTask], faults: &mut Faults) {
    let keys = check_task_keys(tasks, faults);
    check_after(tasks, &keys, faults);
    check_cycles(tasks, &keys, faults);
}

fn check_count(manifest: &LocatedManifest, faults: &mut Faults) {
    let at_once = |member: &LocatedMember| match member.spec.scale {
        _ if manifest.mode == TeamMode::Task
            || member.spec.is_task_only(&manifest.settings.roles) =>
        {
            0
        }
        Some(scale) => scale.min,
        None => usize::from(!member.spec.when_needed),
    };
    let (count, max) =
        (manifest.members.iter().map(at_once).sum::<usize>(), manifest.settings.max_members);
    let mut room = max;
    let surplus = manifest.members.iter().find(|member| match room.checked_sub(at_once(member)) {
        Some(left) => {
            room = left;
            false
        }
        None => true,
    });
    if let Some(surplus) = surplus {
        let members = if count == 1 { "member" } else { "members" };
        faults.add(&surplus.header, format!("{count} {members}, but `max_members` is {max}"));
    }
}

/// Ignores case, because some file systems do and members have files under their names.
fn check_member_names(members: &[LocatedMember], faults: &mut Faults) {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for member in members {
        let name = member.spec.launch.name.as_str();
        match seen.get(&name.to_ascii_lowercase()) {
            Some(first) if *first == name => {
                faults.add(&member.name, format!("two members are named `{name}`"));
            }
            Some(first) => {
                let message = format!("members `{first}` and `{name}` differ only in case");
                faults.add(&member.name, message);
            }
            None => {
                seen.insert(name.to_ascii_lowercase(), name);
            }
        }
    }
}

/// Returns the index of each key's task.
fn check_task_keys<'d>(tasks: &'d [LocatedTask], faults: &mut Faults) -> BTreeMap<&'d str, usize> {
    let mut keys = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        let key = task.task.key.as_str();
        if keys.contains_key(key) {
            faults.add(&task.key, format!("two tasks have the key `{key}`"));
        } else {
            keys.insert(key, at);
        }
    }
    keys
}

fn check_owners(manifest: &LocatedManifest, faults: &mut Faults) {
    let all: Vec<String> =
        manifest.members.iter().flat_map(|member| member.spec.instance_names()).collect();
    let names = || all.iter().map(String::as_str);
    for (task, owner) in manifest.tasks.iter().filter_map(|task| Some((task, task.owner.as_ref()?)))
    {
        if !names().any(|name| name == owner.get_ref().as_str()) {
            let message = format!(
                "owner `{}` of task `{}` is not a member",
                owner.get_ref().escape_debug(),
                task.task.key
            );
            faults.add_with(&owner.span(), message, nearest(owner.get_ref(), names()));
        }
    }
}

/// Adds a fault for each member whose host is neither in the manifest nor in `known`.
pub(super) fn check_hosts(manifest: &LocatedManifest, known: &[HostConfig], faults: &mut Faults) {
    let hosts = || manifest.settings.hosts.iter().chain(known);
    for member in &manifest.members {
        let Some((span, choice)) = &member.host else { continue };
        if hosts().any(|host| choice.accepts(host)) {
            continue;
        }
        let member = &member.spec.launch.name;
        match choice {
            HostChoice::Name(name) => {
                let names = hosts().map(|host| host.name.as_str());
                let message = format!("host `{name}` of member `{member}` is not configured");
                faults.add_with(span, message, nearest(name.as_str(), names));
            }
            HostChoice::Labels(labels) => {
                let unknown =
                    labels.iter().find(|label| !hosts().any(|h| h.labels.contains(label)));
                let all = hosts().flat_map(|host| host.labels.iter().map(String::as_str));
                let message =
                    format!("no host has all labels of member `{member}`: {}", labels.join(", "));
                let meant = unknown.and_then(|label| nearest(label, all));
                faults.add_with(span, message, meant);
            }
        }
    }
}

fn check_after(tasks: &[LocatedTask], keys: &BTreeMap<&str, usize>, faults: &mut Faults) {
    for task in tasks {
        for before in &task.after {
            if keys.contains_key(before.get_ref().as_str()) {
                continue;
            }
            let others = keys.keys().copied().filter(|key| *key != task.task.key);
            let message = format!(
                "task `{}` depends on unknown task `{}`",
                task.task.key,
                before.get_ref().escape_debug()
            );
            faults.add_with(&before.span(), message, nearest(before.get_ref(), others));
        }
    }
}

/// Reports one cycle; ignores references to unknown tasks.
fn check_cycles(tasks: &[LocatedTask], keys: &BTreeMap<&str, usize>, faults: &mut Faults) {
    let waits: Vec<Vec<(usize, Range<usize>)>> = tasks
        .iter()
        .map(|task| {
            let known = |key: &str| keys.get(key).copied();
            task.after.iter().filter_map(|key| Some((known(key.get_ref())?, key.span()))).collect()
        })
        .collect();
    let edges: Vec<Vec<usize>> =
        waits.iter().map(|befores| befores.iter().map(|(at, _)| *at).collect()).collect();
    let Some(cycle) = find_cycle(&edges) else { return };
    // The fault is at the reference from the first task of the cycle to the next.
    let (Some(first), next) = (cycle.first().copied(), cycle.get(1).or(cycle.first())) else {
        return;
    };
    let place = waits[first].iter().find(|(at, _)| Some(at) == next).map(|(_, span)| span.clone());
    let place = place.unwrap_or_else(|| tasks[first].key.clone());
    if cycle.len() == 1 {
        faults.add(&place, format!("task `{}` depends on itself", tasks[first].task.key));
        return;
    }
    let around = cycle.iter().chain(cycle.first());
    let names: Vec<String> = around.map(|at| format!("`{}`", tasks[*at].task.key)).collect();
    faults.add(&place, format!("tasks form a dependency cycle: {}", names.join(" after ")));
}
