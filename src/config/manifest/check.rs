//! Checks between the entries of a manifest: clashing names, unknown references and dependency
//! cycles.

use std::collections::BTreeMap;

use super::spec::{Manifest, MemberSpec, TeamMode};
use super::tables::Form;
use crate::Place::{Index, Key};
use crate::{Faults, Place};
use model::board::cycle::find_cycle;
use model::board::task_definition::TaskDefinition;
use model::members::readiness::awaited_member;
use model::name::nearest;
use model::team::host::{HostChoice, HostConfig};

/// Adds all faults between entries.
pub(super) fn check(manifest: &Manifest, form: Form, faults: &mut Faults) {
    check_count(manifest, faults);
    check_member_names(&manifest.members, faults);
    check_owners(manifest, faults);
    // The settings of a team name only members that the lead starts.
    check_awaited(manifest, form != Form::Settings, faults);
    check_tasks(&manifest.tasks, faults);
}

/// Adds the faults between tasks.
pub(super) fn check_tasks(tasks: &[TaskDefinition], faults: &mut Faults) {
    let keys = check_task_keys(tasks, faults);
    check_after(tasks, &keys, faults);
    check_cycles(tasks, &keys, faults);
}

fn check_count(manifest: &Manifest, faults: &mut Faults) {
    let at_once = |member: &MemberSpec| match member.scale {
        _ if manifest.mode == TeamMode::Task || member.is_task_only(&manifest.settings.roles) => 0,
        Some(scale) => scale.min,
        None => usize::from(!member.when_needed),
    };
    let count: usize = manifest.members.iter().map(at_once).sum();
    let max = manifest.settings.max_members;
    let mut so_far = 0;
    let surplus = manifest.members.iter().position(|member| {
        so_far += at_once(member);
        so_far > max
    });
    if let Some(surplus) = surplus {
        let members = if count == 1 { "member" } else { "members" };
        let message = format!("{count} {members}, but `max_members` is {max}");
        faults.add_at(&[Key("member"), Index(surplus)], message);
    }
}

/// Ignores case, because some file systems do and members have files under their names.
fn check_member_names(members: &[MemberSpec], faults: &mut Faults) {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (at, member) in members.iter().enumerate() {
        let name = member.launch.name.as_str();
        let place = [Key("member"), Index(at), Key("name")];
        match seen.get(&name.to_ascii_lowercase()) {
            Some(first) if *first == name => {
                faults.add_at(&place, format!("two members are named `{name}`"));
            }
            Some(first) => {
                let message = format!("members `{first}` and `{name}` differ only in case");
                faults.add_at(&place, message);
            }
            None => {
                seen.insert(name.to_ascii_lowercase(), name);
            }
        }
    }
}

/// Returns the index of each key's task.
fn check_task_keys<'d>(
    tasks: &'d [TaskDefinition],
    faults: &mut Faults,
) -> BTreeMap<&'d str, usize> {
    let mut keys = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        let key = task.key.as_str();
        if keys.contains_key(key) {
            let place = [Key("task"), Index(at), Key("key")];
            faults.add_at(&place, format!("two tasks have the key `{key}`"));
        } else {
            keys.insert(key, at);
        }
    }
    keys
}

fn check_owners(manifest: &Manifest, faults: &mut Faults) {
    let all: Vec<String> =
        manifest.members.iter().flat_map(|member| member.instance_names()).collect();
    let names = || all.iter().map(String::as_str);
    for (at, task) in manifest.tasks.iter().enumerate() {
        let Some(owner) = &task.owner else { continue };
        if !names().any(|name| name == owner) {
            let message =
                format!("owner `{}` of task `{}` is not a member", owner.escape_debug(), task.key);
            let place = [Key("task"), Index(at), Key("owner")];
            faults.add_near(&place, message, nearest(owner, names()));
        }
    }
}

/// Adds a fault for each member whose host is neither in the manifest nor in `known`.
pub(super) fn check_hosts(manifest: &Manifest, known: &[HostConfig], faults: &mut Faults) {
    let hosts = || manifest.settings.hosts.iter().chain(known);
    for (at, member) in manifest.members.iter().enumerate() {
        let Some(choice) = &member.launch.host else { continue };
        if hosts().any(|host| choice.accepts(host)) {
            continue;
        }
        let member = &member.launch.name;
        match choice {
            HostChoice::Name(name) => {
                let names = hosts().map(|host| host.name.as_str());
                let message = format!("host `{name}` of member `{member}` is not configured");
                let place = [Key("member"), Index(at), Key("host")];
                faults.add_near(&place, message, nearest(name.as_str(), names));
            }
            HostChoice::Labels(labels) => {
                let unknown =
                    labels.iter().find(|label| !hosts().any(|h| h.labels.contains(label)));
                let all = hosts().flat_map(|host| host.labels.iter().map(String::as_str));
                let message =
                    format!("no host has all labels of member `{member}`: {}", labels.join(", "));
                let meant = unknown.and_then(|label| nearest(label, all));
                faults.add_near(&[Key("member"), Index(at), Key("labels")], message, meant);
            }
        }
    }
}

/// Checks the members that tasks and other members wait for.
fn check_awaited(manifest: &Manifest, is_whole: bool, faults: &mut Faults) {
    let members = manifest.members.iter().enumerate();
    let of_members = members.map(|(at, member)| ("member", at, &member.launch.after));
    let of_tasks = manifest.tasks.iter().enumerate().map(|(at, task)| ("task", at, &task.after));
    for (section, at, after) in of_members.chain(of_tasks) {
        for (nth, entry) in after.iter().enumerate() {
            let place = [Key(section), Index(at), Key("after"), Index(nth)];
            match awaited_member(entry) {
                Some(name) if is_whole => check_one_awaited(manifest, name, &place, faults),
                None if section == "member" => {
                    let message = format!(
                        "a member can only wait for members: write `member:{}`",
                        entry.escape_debug()
                    );
                    faults.add_at(&place, message);
                }
                Some(_) | None => {}
            }
        }
    }
    check_waiting_members(&manifest.members, faults);
}

fn check_one_awaited(manifest: &Manifest, name: &str, place: &[Place], faults: &mut Faults) {
    let names = || manifest.members.iter().map(|member| member.launch.name.as_str());
    let Some(member) = manifest.members.iter().find(|member| member.launch.name == name) else {
        let message = format!("`{}` is not a member", name.escape_debug());
        faults.add_near(place, message, nearest(name, names()));
        return;
    };
    if !member.can_be_awaited(manifest.mode, &manifest.settings.roles) {
        let message = format!("`{name}` is not one standing member, so nothing can wait for it");
        faults.add_at(place, message);
    }
}

/// Reports one cycle of members that wait for each other.
fn check_waiting_members(members: &[MemberSpec], faults: &mut Faults) {
    let place_of = |name: &str| members.iter().position(|member| member.launch.name == name);
    let awaited = |member: &MemberSpec| {
        let names = member.launch.after.iter().filter_map(|entry| awaited_member(entry));
        names.filter_map(place_of).collect()
    };
    let edges: Vec<Vec<usize>> = members.iter().map(awaited).collect();
    let Some(cycle) = find_cycle(&edges) else { return };
    let Some(&first) = cycle.first() else { return };
    let around = cycle.iter().chain(cycle.first());
    let names: Vec<String> = around.map(|at| format!("`{}`", members[*at].launch.name)).collect();
    let message = format!("members wait for each other: {}", names.join(" after "));
    faults.add_at(&[Key("member"), Index(first), Key("after")], message);
}

fn check_after(tasks: &[TaskDefinition], keys: &BTreeMap<&str, usize>, faults: &mut Faults) {
    for (at, task) in tasks.iter().enumerate() {
        for (nth, before) in task.after.iter().enumerate() {
            if keys.contains_key(before.as_str()) || awaited_member(before).is_some() {
                continue;
            }
            let others = keys.keys().copied().filter(|key| *key != task.key);
            let message =
                format!("task `{}` depends on unknown task `{}`", task.key, before.escape_debug());
            let place = [Key("task"), Index(at), Key("after"), Index(nth)];
            faults.add_near(&place, message, nearest(before, others));
        }
    }
}

/// Reports one cycle; ignores references to unknown tasks.
fn check_cycles(tasks: &[TaskDefinition], keys: &BTreeMap<&str, usize>, faults: &mut Faults) {
    let edges: Vec<Vec<usize>> = tasks
        .iter()
        .map(|task| task.after.iter().filter_map(|key| keys.get(key.as_str()).copied()).collect())
        .collect();
    let Some(cycle) = find_cycle(&edges) else { return };
    // The fault is at the reference from the first task of the cycle to the next.
    let (Some(&first), Some(&next)) = (cycle.first(), cycle.get(1).or(cycle.first())) else {
        return;
    };
    let nth = tasks[first].after.iter().position(|key| *key == tasks[next].key).unwrap_or_default();
    let place = [Key("task"), Index(first), Key("after"), Index(nth)];
    if cycle.len() == 1 {
        faults.add_at(&place, format!("task `{}` depends on itself", tasks[first].key));
        return;
    }
    let around = cycle.iter().chain(cycle.first());
    let names: Vec<String> = around.map(|at| format!("`{}`", tasks[*at].key)).collect();
    faults.add_at(&place, format!("tasks form a dependency cycle: {}", names.join(" after ")));
}
