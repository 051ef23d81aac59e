//! Makes manifests for the caller's directory: from a template, or with the checks of a repository.

use std::path::Path;

use toml_edit::{Array, Value};

use crate::fail::Failure;
use crate::setup::Setup;
use config::manifest::{ManifestTemplate, TemplateValues};
use model::id::allowed_name;
use model::team::project::Project;
use ops::Kind;
use ops::starting::agents::{self, AgentProgram};
use ops::team::project;

/// The team name to use if the directory's name is not valid.
const FALLBACK: &str = "my-team";
/// Maximum length of a team name.
const LONGEST_NAME: usize = 64;

/// Returns the name of a team for a directory: the name of the directory, followed by that of the
/// template.
pub(crate) fn team_name(dir: &Path, template: Option<&str>) -> String {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut name = allowed_name(&name).map_or(FALLBACK.to_owned(), |name| name.to_lowercase());
    let ending = template.map(|template| format!("-{template}")).unwrap_or_default();
    name.truncate(LONGEST_NAME.saturating_sub(ending.len()));
    allowed_name(&(name + &ending)).unwrap_or_else(|| FALLBACK.to_owned())
}

/// Returns the profiles of the agents of a template: the given ones, else the most useful one of
/// `found`.
///
/// # Errors
/// A given profile is unknown or does not belong to an agent, the template has no agents, or none
/// was found for it.
pub(crate) fn choose_agents(
    setup: &Setup,
    template: &ManifestTemplate,
    given: &[String],
    found: &[AgentProgram],
) -> Result<Vec<String>, Failure> {
    if !template.has_agents() {
        let problem = "the template has no member whose agent can be chosen";
        let refused = || Failure::usage(problem, "omit `--agent`");
        return if given.is_empty() { Ok(Vec::new()) } else { Err(refused()) };
    }
    given.iter().try_for_each(|name| agents::must_be_agent(&setup.ctx, name))?;
    match (given, found) {
        ([], []) => Err(Failure::usage(
            "no agent program is on PATH",
            "install one, or name its profile with `--agent`; `phalanx profile list` shows them",
        )),
        ([], [first, ..]) => Ok(vec![first.profile.clone()]),
        (given, _) => Ok(given.to_vec()),
    }
}

/// Returns the manifest that a template becomes in the caller's directory.
pub(crate) fn fill_template(
    setup: &Setup,
    template: &ManifestTemplate,
    (team, task): (&str, &str),
    agents: &[String],
    project: &Project,
) -> Result<String, Failure> {
    if task.trim().is_empty() {
        return Err(Failure::new(Kind::Usage, "the task is empty", None));
    }
    Ok(template.render(&TemplateValues {
        team,
        task,
        agents,
        test: project.test().map(|test| test.run.as_slice()),
        worktrees: project::has_worktrees(&setup.ctx),
    }))
}

/// Returns a manifest whose workers run the checks of a repository, or three commands that work in
/// any directory; comments show what users change first.
pub(crate) fn checks_manifest(team: &str, next: &str, project: &Project) -> String {
    let tasks = if project.checks.is_empty() { example_tasks() } else { check_tasks(project) };
    let description = match project.languages.as_slice() {
        _ if project.checks.is_empty() => "three tasks for two workers".to_owned(),
        [] => "the checks of this repository".to_owned(),
        languages => format!("the checks of this repository: {}", languages.join(", ")),
    };
    let description = Value::from(description);
    format!(
        r#"# A team for phalanx. It runs as it is:
#
#     {next}
#
# Relative paths start in the directory in which `up` is run.
# `phalanx docs manifest` explains every key.

[team]
name = "{team}"
description = {description}
# The team ends when no task is left to do. With "manual" it stays until `phalanx down`.
finish = "tasks-done"

# Members. Without a `profile` a member is a worker: it runs the commands of tasks.
[[member]]
name = "ann"

[[member]]
name = "ben"

# A member can also be an agent. `phalanx profile list` shows the programs that are known, and
# `phalanx template list` teams of agents.
#
# [[member]]
# name = "cleo"
# profile = "claude"
# prompt = "Read the files of this directory and send a summary to team-lead."

# Tasks. Each has a key of its own, a subject, and for workers a command.
# `run` is a program and its arguments; no shell is between.
{tasks}"#
    )
}

fn check_tasks(project: &Project) -> String {
    let mut keys: Vec<String> = Vec::new();
    let mut tasks: Vec<String> = Vec::new();
    for check in &project.checks {
        // A repository of several languages has several checks of one kind.
        let same = project.checks.iter().filter(|other| other.kind == check.kind).count();
        let seen = keys.iter().filter(|key| key.starts_with(check.kind.key())).count();
        let number = if same > 1 { format!("-{}", seen + 1) } else { String::new() };
        let key = format!("{}{number}", check.kind.key());
        let run: Array = check.run.iter().copied().collect();
        tasks.push(format!(
            "[[task]]\nkey = \"{key}\"\nsubject = \"{}\"\nrun = {run}\n",
            check.kind.subject()
        ));
        keys.push(key);
    }
    let first = &keys[0];
    format!(
        "{}\n# A task with `after` runs when other tasks are completed: `after = [\"{first}\"]`.\n",
        tasks.join("\n")
    )
}

fn example_tasks() -> String {
    r#"[[task]]
key = "files"
subject = "List the files of this directory"
run = ["ls", "-la"]

[[task]]
key = "space"
subject = "Show the free disk space"
run = ["df", "-h", "."]

# Runs when the tasks named in `after` are completed.
[[task]]
key = "done"
subject = "Print the date"
run = ["date"]
after = ["files", "space"]
"#
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::manifest::Manifest;
    use model::team::project::{CheckKind, ProjectCheck};

    fn project(checks: &[(CheckKind, &[&'static str])]) -> Project {
        let check = |(kind, run): &(CheckKind, &[&'static str])| ProjectCheck {
            kind: *kind,
            run: run.to_vec(),
        };
        let checks: Vec<ProjectCheck> = checks.iter().map(check).collect();
        Project { languages: if checks.is_empty() { vec![] } else { vec!["Rust"] }, checks }
    }

    #[test]
    fn manifest_is_valid_with_and_without_its_agent() {
        let rust: &[&str] = &["cargo", "test"];
        let two = project(&[
            (CheckKind::Format, &["cargo", "fmt"]),
            (CheckKind::Test, rust),
            (CheckKind::Test, &["go", "test", "./..."]),
        ]);
        for (project, keys) in [(project(&[]), "files space done"), (two, "format test-1 test-2")] {
            let text = checks_manifest("demo", "phalanx up team.toml", &project);
            let plain = Manifest::parse_with_hosts(&text, &[]).expect("valid");
            let found: Vec<&str> = plain.tasks.iter().map(|task| task.key.as_str()).collect();
            assert_eq!((plain.name.as_str(), found.join(" ").as_str()), ("demo", keys));
            let lines = text.lines().map(|line| match line.strip_prefix("# ") {
                Some(key) if key.starts_with("[[") || key.contains(" = ") => key,
                _ => line,
            });
            let lines = lines.filter(|line| !line.starts_with("A task with"));
            let with_agent = Manifest::parse_with_hosts(&lines.collect::<Vec<_>>().join("\n"), &[])
                .expect("valid");
            assert_eq!(with_agent.members.len(), 3);
        }
    }

    #[test]
    fn team_is_named_after_the_directory_and_the_template() {
        let name = |dir: &str, template| team_name(Path::new(dir), template);
        assert_eq!(name("/x/My Site!", None), "my-site");
        assert_eq!(name("/x/My Site!", Some("review")), "my-site-review");
        assert_eq!(name("/", Some("docs")), "my-team-docs");
        let long = name(&format!("/{}", "x".repeat(90)), Some("review"));
        assert!(long.len() == 64 && long.ends_with("x-review"), "{long}");
    }
}
