//! Converts a manifest to settings, launch specs and tasks for the verbs. The caller reads the
//! prompt files.

use std::path::Path;

use crate::members::backends;
use crate::{Context, OpsError, resolve_dir};
use config::manifest::{Manifest, MemberSpec, TeamMode};
use model::board::task::TaskFields;
use model::board::task_definition::TaskDefinition;
use model::id::MemberName;
use model::members::launch::{Demand, LaunchSpec, Scale, Template};
use model::members::readiness::readiness_key;
use model::team::role::reads_only;
use model::team::settings::{BackendChoice, Settings};
use store::NewTask;
use worktree::checkout_of;

/// Returns the settings of the team. `backend`, from the command line, overrides the manifest.
pub fn team_settings(manifest: &Manifest, backend: Option<BackendChoice>, keep: bool) -> Settings {
    let settings = manifest.settings.clone();
    Settings { backend: backend.unwrap_or(settings.backend), keep, ..settings }
}

/// The members to start.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberLaunches {
    /// Started at once.
    pub specs: Vec<LaunchSpec>,
    /// Started by the lead, when there is work or after a failure.
    pub templates: Vec<Template>,
}

/// Returns the members to start; with `tasks_only`, for task mode, each task is a run of its own.
/// `read` returns the text of a prompt file. Directories are relative to `here`.
pub fn member_launches<E>(
    manifest: &Manifest,
    tasks_only: bool,
    here: &Path,
    mut read: impl FnMut(&str) -> Result<String, E>,
) -> Result<MemberLaunches, E> {
    let mut found = MemberLaunches { specs: Vec::new(), templates: Vec::new() };
    for member in &manifest.members {
        let spec = launch_spec(member, here, &mut read)?;
        let demand = match (member.scale, member.when_needed, member.restart) {
            (scale, _, _) if tasks_only || member.is_task_only(&manifest.settings.roles) => {
                Demand::PerTask(scale.map(|scale| scale.max))
            }
            (Some(scale), _, _) => Demand::Scaled(scale),
            (None, true, _) => Demand::WhenNeeded,
            (None, false, Some(restart)) => restart,
            (None, false, None) if !spec.after.is_empty() => Demand::Once,
            (None, false, None) => {
                found.specs.push(spec);
                continue;
            }
        };
        let template = Template { spec, demand };
        let at_once = match demand {
            Demand::Scaled(Scale { min, .. }) => min,
            Demand::Once | Demand::WhenNeeded | Demand::PerTask(_) => 0,
            Demand::Standing | Demand::Always => 1,
        };
        // The lead starts it when all that it waits for is ready.
        let at_once = if template.spec.after.is_empty() { at_once } else { 0 };
        let names = template.names();
        found.specs.extend(names.iter().take(at_once).map(|name| template.spec_named(name)));
        found.templates.push(template);
    }
    Ok(found)
}

fn launch_spec<E>(
    member: &MemberSpec,
    here: &Path,
    read: &mut impl FnMut(&str) -> Result<String, E>,
) -> Result<LaunchSpec, E> {
    let from_file = member.prompt_file.as_deref().map(read).transpose()?;
    let spec = member.launch.clone();
    // A directory on another host is relative to the host's work directory. A worktree there is
    // made from a repository here.
    let cwd = match spec.host {
        Some(_) if spec.worktree.is_none() => spec.cwd,
        Some(_) | None => Some(resolve_dir(here, spec.cwd.as_deref().unwrap_or("."))),
    };
    Ok(LaunchSpec { prompt: spec.prompt.or(from_file), cwd, ..spec })
}

impl MemberLaunches {
    /// Marks all members as entries of a manifest, so that a later `up` finds them.
    pub fn of_manifest(mut self) -> MemberLaunches {
        let of_templates = self.templates.iter_mut().map(|template| &mut template.spec);
        self.specs.iter_mut().chain(of_templates).for_each(mark);
        self
    }
}

/// Marks a member as an entry of a manifest.
pub(crate) fn mark(spec: &mut LaunchSpec) {
    spec.entry = Some(config::settings::entry_digests(spec));
}

/// Returns the tasks, and after them one for each member that a task or a member waits for;
/// directories are relative to `here`.
pub fn task_definitions(manifest: &Manifest, here: &Path) -> Vec<TaskDefinition> {
    let waits = |member: &MemberSpec| {
        let key = readiness_key(&member.launch.name);
        let of_members = manifest.members.iter().map(|member| &member.launch.after);
        let mut all = of_members.chain(manifest.tasks.iter().map(|task| &task.after)).flatten();
        all.any(|entry| *entry == key)
    };
    let resolved = |task: &TaskDefinition| {
        let cwd = task.fields.cwd.as_ref().map(|cwd| resolve_dir(here, cwd));
        TaskDefinition { fields: TaskFields { cwd, ..task.fields.clone() }, ..task.clone() }
    };
    let awaited = manifest.members.iter().filter(|member| waits(member));
    manifest.tasks.iter().map(resolved).chain(awaited.map(readiness_task)).collect()
}

/// Returns the task that the lead completes when a member is ready.
fn readiness_task(member: &MemberSpec) -> TaskDefinition {
    let name = &member.launch.name;
    TaskDefinition {
        key: readiness_key(name),
        subject: format!("{name} is ready"),
        description: format!("The lead completes this task when {name} is ready."),
        owner: Some(name.clone()),
        ..TaskDefinition::default()
    }
}

/// Returns the tasks as one batch.
pub(crate) fn new_tasks(tasks: &[TaskDefinition]) -> Result<Vec<NewTask>, OpsError> {
    tasks.iter().map(|task| new_task(tasks, task)).collect()
}

fn new_task(all: &[TaskDefinition], task: &TaskDefinition) -> Result<NewTask, OpsError> {
    let place = |key: &String| all.iter().position(|known| known.key == *key);
    Ok(NewTask {
        key: Some(task.key.clone()),
        subject: task.subject.clone(),
        description: task.description.clone(),
        fields: task.fields.clone(),
        owner: task.owner.as_deref().map(MemberName::new).transpose()?,
        // Keys without a task were rejected when the manifest was parsed.
        after: task.after.iter().filter_map(place).collect(),
        named_blockers: task.after.clone(),
        ..NewTask::default()
    })
}

/// Returns true for task mode, and a line that names the mode and the reason; no line for the
/// default mode.
pub fn choose_mode(
    ctx: &Context,
    manifest: &Manifest,
    backend: BackendChoice,
) -> (bool, Option<String>) {
    let line = |mode: &str, why: String| Some(format!("mode {mode}: {why}"));
    match manifest.mode {
        TeamMode::Teammate => (false, None),
        TeamMode::Task => (true, line("task", "as requested".to_owned())),
        TeamMode::Auto => match backends::check(ctx, backend) {
            Ok(chosen) => {
                (false, line("teammate", format!("{}, {}", chosen.backend.as_str(), chosen.why)))
            }
            Err(problem) => {
                (true, line("task", format!("no backend for standing members: {problem}")))
            }
        },
    }
}

/// Returns a warning for each member whose concurrent runs would share one checkout (TK-09).
pub fn shared_checkout_warnings(templates: &[Template]) -> Vec<String> {
    let warning = |template: &Template| {
        let several = matches!(template.demand, Demand::PerTask(Some(most)) if most > 1);
        let reads = reads_only(template.spec.role.as_deref());
        if !several || reads || template.takes_commands() || template.spec.worktree.is_some() {
            return None;
        }
        let checkout = checkout_of(Path::new(template.spec.cwd.as_deref()?))?;
        Some(format!(
            "runs of `{}` work in one checkout, {}: what one does to its files the other gets; give each its own \
             with `worktree = true`, or name their `files` in the tasks",
            template.spec.name,
            checkout.display()
        ))
    };
    templates.iter().filter_map(warning).collect()
}

/// Rejects members that cannot be one run per task.
pub fn check_task_mode(manifest: &Manifest) -> Result<(), OpsError> {
    let cannot = |member: &&MemberSpec| !member.launch.command.is_empty() || member.launch.plan;
    let Some(member) = manifest.members.iter().find(cannot) else { return Ok(()) };
    let why = match member.launch.plan {
        true => "must have a plan approved",
        false => "has a command line of its own",
    };
    Err(OpsError::usage(
        format!("member `{}` {why}, and in task mode nobody stands", member.launch.name),
        "leave it away, or write `mode = \"teammate\"` in [team]",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::team::settings::Finish;

    const TEXT: &str = r#"
[team]
name = "checks"
layout = "windows"
max_members = 3
[env]
deny = ["SECRET_*"]
[[member]]
name = "ada"
prompt_file = "p.txt"
env = { A = "1" }
[[member]]
name = "log"
run = ["tail", "-f", "x"]
[[task]]
key = "fmt"
subject = "Format"
run = ["true"]
cwd = "./sub"
[[task]]
key = "test"
subject = "Test"
run = ["true"]
after = ["fmt"]
owner = "ada"
priority = 2
"#;

    fn manifest() -> Manifest {
        Manifest::parse_with_hosts(TEXT, &[]).expect("manifest")
    }

    #[test]
    fn settings_take_the_backend_of_the_command_line_first() {
        let got = team_settings(&manifest(), Some(BackendChoice::Pty), true);
        assert_eq!(
            (got.backend, got.layout, got.finish),
            (BackendChoice::Pty, model::members::placement::Layout::Windows, Finish::TasksDone)
        );
        assert_eq!(
            (got.keep, got.max_members, got.env.deny.as_slice()),
            (true, 3, &["SECRET_*".to_owned()][..])
        );
        assert_eq!(team_settings(&manifest(), None, false).backend, BackendChoice::Auto);
    }

    #[test]
    fn directory_of_a_member_on_another_host_is_left_to_that_host() {
        let text = r#"
            team.name = "t"
            host = [{ name = "h", ssh = "h", dir = "/work" }]
            member = [
                { name = "a", host = "h" },
                { name = "b", host = "h", cwd = "sub" },
                { name = "c", host = "h", cwd = "sub", worktree = true },
            ]
        "#;
        let manifest = Manifest::parse_with_hosts(text, &[]).expect("manifest");
        let read = |_: &str| Ok::<_, ()>(String::new());
        let got = member_launches(&manifest, false, Path::new("/w"), read).expect("specs").specs;
        let cwd = |nth: usize| got[nth].cwd.as_deref();
        let repository = "/w/sub";
        assert_eq!([cwd(0), cwd(1), cwd(2)], [None, Some("sub"), Some(repository)]);
    }

    #[test]
    fn specs_take_prompts_from_files_and_command_lines_from_run() {
        let read = |path: &str| Ok::<_, ()>(format!("text of {path}"));
        let got = member_launches(&manifest(), false, Path::new("/w"), read).expect("specs").specs;
        assert_eq!(got[0].prompt.as_deref(), Some("text of p.txt"));
        assert_eq!(got[0].profile.as_deref(), Some("worker"));
        assert_eq!(got[0].env, [("A".to_owned(), "1".to_owned())]);
        assert_eq!((got[1].profile.as_deref(), got[1].command.len()), (Some("shell"), 3));
        assert_eq!(got[0].cwd.as_deref(), Some("/w"));
        let unreadable =
            member_launches(&manifest(), false, Path::new("/w"), |_| Err::<String, _>("no"));
        assert_eq!(unreadable.err(), Some("no"));
    }

    #[test]
    fn members_that_the_lead_starts_are_templates() {
        let text = "[team]\nname = \"x\"\nmax_members = 3\n[[member]]\nname = \"dev\"\nscale = { min = 2 }\n\
            [[member]]\nname = \"qa\"\nstart = \"when-needed\"\n[[member]]\nname = \"old\"\nrestart = \"on-failure\"\n";
        let manifest = Manifest::parse_with_hosts(text, &[]).expect("manifest");
        let got = member_launches(&manifest, false, Path::new("/w"), |_| Err(()))
            .expect("no prompt file");
        let names: Vec<&str> = got.specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["dev-1", "dev-2", "old"]);
        let demands: Vec<Demand> = got.templates.iter().map(|template| template.demand).collect();
        let scale = Scale { min: 2, max: 5 };
        assert_eq!(demands, [Demand::Scaled(scale), Demand::WhenNeeded, Demand::Standing]);
    }

    #[test]
    fn sp_16_what_is_waited_for_is_a_task_and_what_waits_is_started_later() {
        let text = "[team]\nname = \"x\"\n[[member]]\nname = \"db\"\nrun = [\"db\"]\nready = { port = 80 }\n\
            [[member]]\nname = \"ann\"\n[[member]]\nname = \"web\"\nrun = [\"web\"]\nafter = [\"member:db\"]\n\
            [[member]]\nname = \"dev\"\nscale = { min = 2 }\nafter = [\"member:db\"]\n\
            [[task]]\nkey = \"a\"\nsubject = \"A\"\nrun = [\"a\"]\n\
            [[task]]\nkey = \"b\"\nsubject = \"B\"\nrun = [\"b\"]\nafter = [\"a\", \"member:web\", \"member:db\"]\n";
        let manifest = Manifest::parse_with_hosts(text, &[]).expect("manifest");
        let tasks = new_tasks(&task_definitions(&manifest, Path::new("/w"))).expect("tasks");
        let keys: Vec<&str> = tasks.iter().filter_map(|task| task.key.as_deref()).collect();
        assert_eq!(keys, ["a", "b", "member:db", "member:web"]);
        assert_eq!(tasks[1].after, [0, 3, 2]);
        assert_eq!(tasks[2].owner.as_ref().map(MemberName::as_str), Some("db"));
        let got = member_launches(&manifest, false, Path::new("/w"), |_| Err(())).expect("members");
        let names: Vec<&str> = got.specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["db", "ann"]);
        let demands: Vec<Demand> = got.templates.iter().map(|template| template.demand).collect();
        assert_eq!(demands, [Demand::Once, Demand::Scaled(Scale { min: 2, max: 5 })]);
    }

    #[test]
    fn tasks_keep_key_directory_dependencies_and_owner() {
        let got = new_tasks(&task_definitions(&manifest(), Path::new("/w"))).expect("tasks");
        assert_eq!(got[0].key.as_deref(), Some("fmt"));
        assert_eq!(got[0].fields.cwd.as_deref(), Some("/w/sub"));
        assert_eq!(got[1].after, [0]);
        assert_eq!(got[1].owner.as_ref().map(MemberName::as_str), Some("ada"));
        assert_eq!(got[1].fields.priority, Some(2));
    }
}
