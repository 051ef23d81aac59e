//! Failures in the words of tools: hints of the command line name commands and options, which a
//! model that has tools does not type.

use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Commands and the tools that do the same; the first match counts.
const COMMANDS: [(&str, &str); 30] = [
    ("task list", "TaskList"),
    ("task create", "TaskCreate"),
    ("task get", "TaskGet"),
    ("task update", "TaskUpdate"),
    ("task", "TeamTasks"),
    ("retry", "TeamTasks"),
    ("status", "Status"),
    ("explain", "Status"),
    ("ps", "Status"),
    ("ls", "Status"),
    ("team list", "Status"),
    ("requests", "Requests"),
    ("answer", "Answer"),
    ("spawn", "SpawnTeammate"),
    ("send", "SendMessage"),
    ("broadcast", "SendMessage"),
    ("inbox", "ReadInbox"),
    ("peek", "Peek"),
    ("logs", "Peek"),
    ("attach", "Peek"),
    ("type", "Type"),
    ("keys", "Type"),
    ("shutdown", "Shutdown"),
    ("kill", "Shutdown"),
    ("down", "Shutdown"),
    ("wait", "WaitFor"),
    ("team delete", "TeamDelete"),
    ("team create", "TeamCreate"),
    ("plan submit", "SubmitPlan"),
    ("ask permission", "AskPermission"),
];

static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("`([^`]+)`").ok());

/// Replaces commands by tools, options by arguments, and paths of the team's files by their last
/// parts.
pub(super) fn for_model(text: &str, root: &Path) -> String {
    let text = text.replace(&format!("{}/", root.display()), "");
    let Some(quoted) = QUOTED.as_ref() else { return text };
    quoted
        .replace_all(&text, |found: &Captures<'_>| {
            let words = &found[1];
            tool_for(words).or_else(|| argument_for(words)).unwrap_or_else(|| found[0].to_owned())
        })
        .into_owned()
}

fn tool_for(words: &str) -> Option<String> {
    let command = words.strip_prefix("phalanx ")?;
    let is = |verb: &str| {
        command.strip_prefix(verb).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let (verb, tool) = COMMANDS.iter().find(|(verb, _)| is(verb))?;
    Some(match (*verb, command.split(' ').nth(1)) {
        ("task", Some(action)) => format!("TeamTasks with action {action}"),
        ("retry", _) => "TeamTasks with action retry".to_owned(),
        _ => (*tool).to_owned(),
    })
}

fn argument_for(words: &str) -> Option<String> {
    let option = words.strip_prefix("--")?;
    let name = option.split([' ', '=']).next()?;
    Some(format!("`{}`", name.replace('-', "_")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_tools_and_arguments() {
        let root = Path::new("/home/ann/.claude");
        let table = [
            ("see who is on the team with `phalanx status`", "see who is on the team with Status"),
            ("say why: `--reason TEXT`", "say why: `reason`"),
            (
                "make it pending with `phalanx task retry 3`",
                "make it pending with TeamTasks with action retry",
            ),
            ("use `phalanx task list --all`", "use TaskList"),
            (
                "cannot read /home/ann/.claude/teams/x/config.json",
                "cannot read teams/x/config.json",
            ),
            ("run `phalanx doctor --fix`", "run `phalanx doctor --fix`"),
            ("`ann` is busy", "`ann` is busy"),
        ];
        for (given, expected) in table {
            assert_eq!(for_model(given, root), expected);
        }
    }
}
