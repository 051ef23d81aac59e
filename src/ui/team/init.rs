//! The findings of `init` in a repository, and its first question.

use crate::paint::{Paint, Tint};
use crate::table::{Table, cell, tinted};
use model::team::project::Project;
use model::text;
use ops::starting::agents::{AgentProgram, LoginState};

/// The findings in a directory.
pub struct Surroundings<'a> {
    pub directory: String,
    pub project: &'a Project,
    /// Programs of the checks that are not on PATH.
    pub missing_programs: &'a [&'static str],
    /// Members can have git worktrees.
    pub worktrees: bool,
    pub agents: &'a [AgentProgram],
}

/// Formats what was found, one topic after the other.
pub fn surroundings(found: &Surroundings, paint: Paint) -> String {
    let commands = found.project.checks.iter().map(|check| {
        let command = check.run.join(" ");
        if !found.missing_programs.contains(&check.program()) {
            return command;
        }
        let note = format!("(`{}` is not on PATH)", check.program());
        format!("{command}  {}", paint.put(Tint::Warn, &note))
    });
    let languages = found.project.languages.join(", ");
    let git = if found.worktrees {
        "members can have worktrees of their own"
    } else {
        "no repository with commits, so no worktrees"
    };
    let topics = [
        ("languages", or_none(vec![languages].into_iter().filter(|all| !all.is_empty()))),
        ("checks", or_none(commands)),
        ("git", vec![git.to_owned()]),
        ("agents", agent_lines(found.agents, paint)),
    ];
    let mut lines = vec![format!("In {}:", text::line(&found.directory)), String::new()];
    for (topic, entries) in topics {
        for (at, entry) in entries.into_iter().enumerate() {
            let topic = if at == 0 { topic } else { "" };
            lines.push(format!("  {}  {entry}", paint.put(Tint::Dim, &format!("{topic:<9}"))));
        }
    }
    lines.join("\n")
}

fn or_none(entries: impl Iterator<Item = String>) -> Vec<String> {
    let entries: Vec<String> = entries.collect();
    if entries.is_empty() { vec!["none known".to_owned()] } else { entries }
}

/// Returns one line for each agent with its version and login.
pub(crate) fn agent_lines(agents: &[AgentProgram], paint: Paint) -> Vec<String> {
    if agents.is_empty() {
        return vec!["none on PATH".to_owned()];
    }
    let mut table = Table::new(&["", "", ""]);
    for agent in agents {
        let tint = match agent.login {
            LoginState::LoggedIn => Tint::Good,
            LoginState::Unknown => Tint::Dim,
            LoginState::NotFound => Tint::Warn,
        };
        let login = tinted(tint, agent.login.words());
        table.row(vec![cell(&agent.profile), cell(agent.version_words()), login]);
    }
    // The first line of a table has the headings, which are empty here.
    table.render(paint).lines().skip(1).map(str::to_owned).collect()
}

/// Formats the purposes of a team, each with its number, name and description.
pub fn purposes(purposes: &[(String, String)], paint: Paint) -> String {
    let width = purposes.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(at, (name, about)): (usize, &(String, String))| {
        let name = paint.put(Tint::Bold, &format!("{name:<width$}"));
        format!("  {}  {name}  {}", at + 1, text::line(about))
    };
    purposes.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}
