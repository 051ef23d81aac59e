//! Failures in the words of tools: hints of the command line name commands and options, which a
//! model that has tools does not type.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Arg, Command};
use regex::{Captures, Regex};
use serde_json::Value;

use super::absent::{self, NOT_OVER_MCP};
use super::aliases;
use super::schema::shown;
use super::table::TOOLS;
use super::tools::{ToolAction, ToolDefinition, ToolEffect};
use model::wire::Object;

static QUOTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"`([^`]+)`|--[a-z][a-z-]*").ok());

/// Replaces the words of the command line in the texts of one call, or by default of no call.
#[derive(Default)]
pub(super) struct Wording {
    /// The tool and the action that were called.
    called: Option<(&'static ToolDefinition, &'static ToolAction)>,
    /// The directory of the teams, if a text can name it.
    root: Option<PathBuf>,
    /// Returns the definition of the command line; without it options of commands are left out.
    definition: Option<fn() -> Command>,
}

impl Wording {
    /// Returns the wording for the texts of no call.
    pub(super) fn new(definition: fn() -> Command) -> Wording {
        Wording { called: None, root: None, definition: Some(definition) }
    }

    /// Returns the wording for texts that can name files below `root`.
    pub(super) fn below(self, root: Option<PathBuf>) -> Wording {
        Wording { root, ..self }
    }

    /// Returns the wording for a call of a tool with these arguments.
    pub(super) fn of_call(self, tool: &'static ToolDefinition, given: &Object) -> Wording {
        let word = given.get("action").and_then(Value::as_str).map(aliases::action);
        let word = word.unwrap_or_default();
        let named = tool.actions.iter().find(|action| action.names.name == word);
        let called = named.or(tool.actions.first()).map(|action| (tool, action));
        Wording { called, ..self }
    }

    /// Replaces commands by tools, options by arguments, and paths of the team's files by their
    /// last parts.
    pub(super) fn for_model(&self, text: &str) -> String {
        let root = self.root.as_ref().map(|root| format!("{}/", root.display()));
        let text = root.map_or_else(|| text.to_owned(), |root| text.replace(&root, ""));
        let Some(quoted) = QUOTED.as_ref() else { return text };
        quoted
            .replace_all(&text, |found: &Captures<'_>| {
                let words = found.get(1).unwrap_or_else(|| found.get(0).expect("a match"));
                let words = words.as_str();
                let replaced = self.tool_for(words).or_else(|| self.argument_for(words));
                replaced.unwrap_or_else(|| found[0].to_owned())
            })
            .into_owned()
    }

    /// Returns the argument that an option stands for: that of the called tool, or else one of the
    /// same name.
    fn argument_for(&self, words: &str) -> Option<String> {
        let (option, value) = words.split_once([' ', '=']).unwrap_or((words, ""));
        let name = match option {
            "-t" | "--team" => "`team_name`".to_owned(),
            option => self.argument_of_option(option.strip_prefix("--")?)?,
        };
        // Capitals stand for a value.
        let is_value = value.contains(|c: char| c.is_lowercase() || c.is_numeric());
        Some(if is_value { format!("{name} {value}") } else { name })
    }

    fn argument_of_option(&self, name: &str) -> Option<String> {
        let of_call = self.called.and_then(|(tool, action)| self.argument(tool, action, name));
        // An option of the server itself.
        let is_global = matches!(name, "config-dir" | "as" | "json");
        let has_name = !is_global && !name.is_empty();
        of_call.or_else(|| has_name.then(|| format!("`{}`", name.replace('-', "_"))))
    }

    /// Returns the argument of a tool for the option `name` of a verb that it performs.
    fn argument(&self, tool: &ToolDefinition, action: &ToolAction, name: &str) -> Option<String> {
        let root = self.definition?();
        let commands = || action.verbs.iter().filter_map(|verb| command_of(&root, verb));
        let field = |command: &Command| {
            let is_named = |arg: &&Arg| match name {
                "" => arg.is_last_set(),
                name => arg.get_long() == Some(name),
            };
            let arg = command.get_arguments().find(is_named)?;
            Some(arg.get_id().to_string())
        };
        let field = commands().find_map(field)?;
        if let Some(found) = argument_of_field(tool, action, &field) {
            return Some(format!("`{found}`"));
        }
        action.verbs.iter().find_map(|verb| absent::instead(verb, &field)).map(str::to_owned)
    }

    /// Returns the tool for a command, with the arguments for its options. A command with further
    /// words changes something, if one of its actions does.
    fn tool_for(&self, words: &str) -> Option<String> {
        let command = words.strip_prefix("phalanx ")?;
        let begins = |verb: &str| {
            command.strip_prefix(verb).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let actions =
            TOOLS.iter().flat_map(|tool| tool.actions.iter().map(move |action| (tool, action)));
        let mut found: Option<(&str, &ToolDefinition, &ToolAction)> = None;
        for (tool, action) in actions {
            for verb in action.verbs.iter().filter(|verb| begins(verb)) {
                let changes = |(.., other): (_, _, &ToolAction)| {
                    let has_words = command.len() > verb.len();
                    has_words && other.effect == ToolEffect::Reads && action.effect != other.effect
                };
                let is_better = found.is_none_or(|found| {
                    verb.len() > found.0.len() || verb.len() == found.0.len() && changes(found)
                });
                if is_better {
                    found = Some((verb, tool, action));
                }
            }
        }
        let Some((verb, tool, action)) = found else {
            let omitted =
                NOT_OVER_MCP.iter().find(|(verb, option, ..)| option.is_empty() && begins(verb));
            return omitted.and_then(|(verb, ..)| absent::instead(verb, "")).map(str::to_owned);
        };
        let mut words = match action.names.name {
            "" => tool.name.to_owned(),
            name => format!("{} with action {name}", tool.name),
        };
        let options = command[verb.len()..].split(' ').filter_map(|word| word.strip_prefix("--"));
        // An empty name is that of the command line after `--`.
        let names = options.map(|option| option.split('=').next().unwrap_or(option));
        let arguments: Vec<String> =
            names.filter_map(|name| self.argument(tool, action, name)).collect();
        if !arguments.is_empty() {
            let joint = if action.names.name.is_empty() { " with " } else { " and " };
            words = format!("{words}{joint}{}", arguments.join(" and "));
        }
        Some(words)
    }
}

/// Returns the argument with which the action takes a field of its verb.
pub(super) fn argument_of_field(
    tool: &ToolDefinition,
    action: &ToolAction,
    field: &str,
) -> Option<String> {
    let schema = action.schema();
    let name = shown(field, action.names.renamed);
    let name = aliases::meant(tool.name, &name)
        .filter(|meant| {
            !schema.properties.contains_key(&name) && schema.properties.contains_key(*meant)
        })
        .map_or(name.clone(), str::to_owned);
    schema.properties.contains_key(&name).then_some(name)
}

/// Returns a verb of the command line.
pub(super) fn command_of<'c>(root: &'c Command, verb: &str) -> Option<&'c Command> {
    verb.split(' ').try_fold(root, |command, word| command.find_subcommand(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::definition;

    fn in_call(tool: &str, action: &str, text: &str) -> String {
        let tool = TOOLS.iter().find(|found| found.name == tool).expect("a tool");
        let given = Object::from_iter([("action".to_owned(), Value::from(action))]);
        let wording = Wording::new(definition).below(Some("/home/ann/.claude".into()));
        wording.of_call(tool, &given).for_model(text)
    }

    #[test]
    fn tl_07_hints_name_tools_and_arguments() {
        let table = [
            ("see who is on the team with `phalanx status`", "see who is on the team with Status"),
            ("say why: `--reason TEXT`", "say why: `reason`"),
            (
                "make it pending with `phalanx task retry 3`",
                "make it pending with TeamTasks with action retry",
            ),
            ("use `phalanx task list --all`", "use TaskList with `filter`"),
            (
                "end them: `phalanx shutdown --all -t demo`, with `--force` without asking",
                "end them: Shutdown with `all`, with `force` without asking",
            ),
            ("`phalanx answer 3 --approve`, or `--reject`", "Answer with `approve`, or `reject`"),
            ("list the teams with `phalanx team list`", "list the teams with Status"),
            ("look at it with `phalanx attach ann`", "look at it with Peek"),
            (
                "cannot read /home/ann/.claude/teams/x/config.json",
                "cannot read teams/x/config.json",
            ),
            ("run `phalanx doctor --fix`", "run `phalanx doctor --fix`"),
            ("list keys with `phalanx team set`", "list keys with TeamSettings with action show"),
            ("or `phalanx team set notify '[]'`", "or TeamSettings with action set"),
            ("see `phalanx rules`", "see Rules with action show"),
            ("or `phalanx rules allow PATTERN`", "or Rules with action add"),
            ("act in your own team: `-t demo`", "act in your own team: `team_name` demo"),
            ("choose one with `-t`: a, b", "choose one with `team_name`: a, b"),
            ("`ann` is busy", "`ann` is busy"),
        ];
        for (given, expected) in table {
            assert_eq!(in_call("Shutdown", "", given), expected);
        }
    }

    #[test]
    fn tl_07_hints_name_the_arguments_of_the_called_tool() {
        let table = [
            ("TaskCreate", "", "wait with `--blocked-by ID`", "wait with `blockedBy`"),
            ("TaskUpdate", "", "wait with `--blocked-by ID`", "wait with `addBlockedBy`"),
            (
                "TeamTasks",
                "create",
                "give it one with `--owner NAME`",
                "give it one with `assignee`",
            ),
            (
                "TeamTasks",
                "delete",
                "delete it anyway with `--force`",
                "delete it anyway with `force`",
            ),
            (
                "TaskList",
                "",
                "omit --page, or give a lower number",
                "omit `page`, or give a lower number",
            ),
            ("Answer", "", "or `--reject`", "or `approve` false"),
            ("SpawnTeammate", "", "or use `--backend pty`", "or use `backend` pty"),
            (
                "SpawnTeammate",
                "",
                "give one: `phalanx spawn NAME -- CMD`",
                "give one: SpawnTeammate with `command`",
            ),
            ("SendMessage", "", "send it without `--urgent`", "send it without `urgent`"),
        ];
        for (tool, action, given, expected) in table {
            assert_eq!(in_call(tool, action, given), expected, "{tool}");
        }
    }
}
