//! Rejects tasks that no member can do, for which the team would wait forever.

use super::spec::{Manifest, MemberSpec, TeamMode};
use crate::Faults;
use crate::Place::{Index, Key};
use model::board::task_definition::TaskDefinition;
use model::board::waiting::Ability;
use model::name::nearest;

pub(super) fn check(manifest: &Manifest, faults: &mut Faults) {
    for (at, task) in manifest.tasks.iter().enumerate() {
        match &task.owner {
            Some(owner) => check_owned(manifest, at, task, owner, faults),
            None => check_free(manifest, at, task, faults),
        }
    }
}

fn check_owned(
    manifest: &Manifest,
    at: usize,
    task: &TaskDefinition,
    owner: &str,
    faults: &mut Faults,
) {
    let Some(member) = manifest.members.iter().find(|member| names(member, owner)) else { return };
    let key = &task.key;
    let place = [Key("task"), Index(at), Key("owner")];
    let has_command = !task.fields.command.is_empty();
    match member.ability() {
        Ability::Commands if !has_command => faults.add_at(
            &place,
            format!(
                "task `{key}` has no `run`, and its owner `{owner}` is a worker, which only runs commands"
            ),
        ),
        Ability::Nothing => {
            faults.add_at(
                &place,
                format!("`{owner}` is a plain command, which does no tasks; `{key}` needs another owner"),
            );
        }
        Ability::Prompts if has_command && is_per_task(manifest, member) => faults.add_at(
            &place,
            format!("task `{key}` has a command, and its owner `{owner}` is no worker that could run it"),
        ),
        Ability::Commands | Ability::Prompts => {}
    }
}

fn check_free(manifest: &Manifest, at: usize, task: &TaskDefinition, faults: &mut Faults) {
    let key = &task.key;
    let place = [Key("task"), Index(at), Key("key")];
    if manifest.members.is_empty() {
        let message = format!("no member can do task `{key}`: the manifest has no [[member]]");
        faults.add_at(&place, message);
        return;
    }
    let suiting: Vec<&MemberSpec> = manifest.members.iter().filter(|one| fits(one, task)).collect();
    if let Some(role) = task.fields.role.as_ref().filter(|_| suiting.is_empty()) {
        let message =
            format!("task `{key}` is for the role `{}`, which no member has", role.escape_debug());
        let roles = manifest.members.iter().filter_map(|one| one.launch.role.as_deref());
        let place = [Key("task"), Index(at), Key("role")];
        faults.add_near(&place, message, nearest(role, roles));
        return;
    }
    let of_role =
        task.fields.role.as_deref().map(|role| format!(" of role `{}`", role.escape_debug()));
    let of_role = of_role.unwrap_or_default();
    let wanted = if !task.fields.command.is_empty() { Ability::Commands } else { Ability::Prompts };
    let able: Vec<&&MemberSpec> = suiting.iter().filter(|one| one.ability() == wanted).collect();
    if able.is_empty() {
        let message = match wanted {
            Ability::Commands => format!(
                "task `{key}` has a command, but no member{of_role} is a worker that could run it: \
                 add a [[member]] with `profile = \"worker\"`"
            ),
            Ability::Prompts | Ability::Nothing => format!(
                "no member{of_role} can do task `{key}`: it has no `run`, and workers only run commands; \
                 add `run`, or a [[member]] with an agent's profile"
            ),
        };
        faults.add_at(&place, message);
    } else if !able.iter().any(|one| comes(manifest, one)) {
        let message = format!(
            "no member is started for task `{key}`: those that can do it wait for tasks of their role; \
             give it that `role`"
        );
        faults.add_at(&place, message);
    }
}

/// Returns true if `member`, or one of those that it stands for, has this name.
fn names(member: &MemberSpec, owner: &str) -> bool {
    member.instance_names().iter().any(|name| owner.eq_ignore_ascii_case(name))
}

fn fits(member: &MemberSpec, task: &TaskDefinition) -> bool {
    let role = member.launch.role.as_deref();
    let wanted = task.fields.role.as_deref();
    wanted.is_none_or(|wanted| role.is_some_and(|role| role.eq_ignore_ascii_case(wanted)))
}

fn is_per_task(manifest: &Manifest, member: &MemberSpec) -> bool {
    manifest.mode == TeamMode::Task || member.is_task_only(&manifest.settings.roles)
}

/// Returns true if the lead ever starts the member. One with `start = "when-needed"` and a role is
/// started only for a task of that role or a task that it owns.
fn comes(manifest: &Manifest, member: &MemberSpec) -> bool {
    if !member.when_needed || member.launch.role.is_none() || is_per_task(manifest, member) {
        return true;
    }
    manifest.tasks.iter().any(|task| match &task.owner {
        Some(owner) => names(member, owner),
        None => task.fields.role.is_some() && fits(member, task),
    })
}

#[cfg(test)]
mod tests {
    use crate::manifest::Manifest;

    /// Returns the fault of a manifest whose `[team]` is on lines 1 and 2; empty if it is valid.
    fn fault(rest: &str) -> String {
        let text = format!("[team]\nname = \"t\"\n{rest}");
        Manifest::parse(&text).err().map(|error| error.to_string()).unwrap_or_default()
    }

    fn member(name: &str, more: &str) -> String {
        format!("[[member]]\nname = \"{name}\"\n{more}")
    }

    fn task(more: &str) -> String {
        format!("[[task]]\nkey = \"t\"\nsubject = \"s\"\n{more}")
    }

    const RUN: &str = "run = [\"true\"]\n";

    #[test]
    fn a_task_without_members_is_refused() {
        assert_eq!(
            fault(&task(RUN)),
            "4:7: no member can do task `t`: the manifest has no [[member]]"
        );
    }

    #[test]
    fn a_task_without_a_command_needs_an_agent() {
        let worker = member("ada", "");
        assert_eq!(
            fault(&(worker.clone() + &task(""))),
            "6:7: no member can do task `t`: it has no `run`, and workers only run commands; add `run`, or a \
             [[member]] with an agent's profile"
        );
        assert_eq!(
            fault(&(worker.clone() + &task("owner = \"ada\"\n"))),
            "8:9: task `t` has no `run`, and its owner `ada` is a worker, which only runs commands"
        );
        assert_eq!(fault(&(worker.clone() + &task(RUN))), "");
        assert_eq!(fault(&(worker + &member("eve", "profile = \"claude\"\n") + &task(""))), "");
        let plain = member("log", RUN);
        assert!(fault(&(plain.clone() + &task(""))).starts_with("7:7: no member can do task `t`"));
        assert_eq!(
            fault(&(plain + &task("owner = \"log\"\n"))),
            "9:9: `log` is a plain command, which does no tasks; `t` needs another owner"
        );
    }

    #[test]
    fn a_command_needs_a_worker() {
        let agent = |more: &str| member("eve", &format!("profile = \"claude\"\n{more}"));
        assert_eq!(
            fault(&(agent("") + &task(RUN))),
            "7:7: task `t` has a command, but no member is a worker that could run it: add a [[member]] with \
             `profile = \"worker\"`"
        );
        let owned = task("run = [\"true\"]\nowner = \"eve\"\n");
        assert_eq!(fault(&(agent("") + &owned)), "", "an agent is told of the task");
        assert_eq!(
            fault(&(agent("task_only = true\n") + &owned)),
            "11:9: task `t` has a command, and its owner `eve` is no worker that could run it"
        );
    }

    #[test]
    fn a_role_needs_a_member() {
        let tester = member("ada", "role = \"tester\"\n");
        let for_role = |role: &str| task(&format!("{RUN}role = \"{role}\"\n"));
        assert_eq!(fault(&(tester.clone() + &for_role("Tester"))), "");
        assert_eq!(
            fault(&(tester.clone() + &for_role("testre"))),
            "10:8: task `t` is for the role `testre`, which no member has; did you mean `tester`?"
        );
        assert_eq!(
            fault(&(tester + &task("role = \"tester\"\n"))),
            "7:7: no member of role `tester` can do task `t`: it has no `run`, and workers only run commands; add \
             `run`, or a [[member]] with an agent's profile"
        );
    }

    #[test]
    fn on_demand_member_counts_only_if_it_would_be_started() {
        assert_eq!(fault(&(member("dev", "scale = { max = 2 }\n") + &task(RUN))), "");
        assert_eq!(
            fault(
                &(member("dev", "scale = { max = 2 }\n")
                    + &task("run = [\"true\"]\nowner = \"dev-2\"\n"))
            ),
            ""
        );
        assert_eq!(fault(&(member("qa", "start = \"when-needed\"\n") + &task(RUN))), "");
        let qa = member("qa", "start = \"when-needed\"\nrole = \"tester\"\n");
        assert_eq!(fault(&(qa.clone() + &task("run = [\"true\"]\nrole = \"tester\"\n"))), "");
        assert_eq!(fault(&(qa.clone() + &task("run = [\"true\"]\nowner = \"qa\"\n"))), "");
        assert!(fault(&(qa + &task(RUN))).starts_with("8:7: no member is started for task `t`"));
    }
}
