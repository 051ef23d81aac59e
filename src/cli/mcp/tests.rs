//! Tests of the tools as they are described: who has them, and that their arguments are the command
//! line's.

use std::collections::BTreeSet;

use clap::{Args, Command, FromArgMatches, Subcommand};
use serde_json::{Value, json};

use super::arguments::{Renamed, ToolSchema, parse};
use super::tasks::{BOARD, CAMEL, CAMEL_EDIT};
use super::tools::{TOOLS, ToolDefinition, ToolEffect, ToolUser, offered};
use crate::cli::answer::AnswerArgs;
use crate::cli::ask::PermissionArgs;
use crate::cli::attach::PeekArgs;
use crate::cli::fail::Failure;
use crate::cli::input::TypeArgs;
use crate::cli::shutdown::ShutdownArgs;
use crate::cli::spawn::SpawnArgs;
use crate::cli::task::{CreateTaskArgs, ListTasksArgs, TaskActionVerb, UpdateTaskArgs};
use crate::cli::wait::WaitArgs;
use crate::model::mode::Mode;
use crate::model::wire::Object;

const LEAD: ToolUser = ToolUser { is_lead: true, mode: None, read_only: false };
/// About as many bytes as a token has.
const BYTES_PER_TOKEN: usize = 4;

fn tool(name: &str) -> &'static ToolDefinition {
    TOOLS.iter().find(|tool| tool.name == name).expect("a tool")
}

fn names(user: ToolUser) -> BTreeSet<&'static str> {
    offered(user).map(|tool| tool.name).collect()
}

fn object(document: Value) -> Object {
    document.as_object().expect("an object").clone()
}

#[test]
fn tool_list_is_short_enough_for_a_prompt() {
    let bytes: usize = TOOLS
        .iter()
        .map(|tool| {
            let schema = Value::Object((tool.schema)().to_object()).to_string();
            tool.name.len() + tool.description.len() + schema.len()
        })
        .sum();
    assert!(bytes < 6000 * BYTES_PER_TOKEN, "{bytes} bytes");
}

#[test]
fn teammates_observers_and_delegating_leads_have_fewer_tools() {
    let lead = names(LEAD);
    assert_eq!(lead.len(), TOOLS.len() - 2, "{lead:?}");
    let teammate = names(ToolUser { is_lead: false, ..LEAD });
    for name in
        ["TeamCreate", "TeamDelete", "SpawnTeammate", "Shutdown", "Answer", "Type", "Handoff"]
    {
        assert!(lead.contains(name) && !teammate.contains(name), "{name}");
    }
    assert!(teammate.contains("SubmitPlan") && !lead.contains("SubmitPlan"));
    let delegating = names(ToolUser { mode: Some(Mode::Delegate), ..LEAD });
    assert_eq!(lead.difference(&delegating).collect::<Vec<_>>(), [&"Type"]);
    for tool in offered(ToolUser { read_only: true, ..LEAD }) {
        assert_eq!(tool.effect, ToolEffect::Reads, "{}", tool.name);
    }
    assert!(!names(ToolUser { read_only: true, ..LEAD }).contains("TeamTasks"));
}

/// The help of a verb's arguments by id, as clap shows it.
fn helps(command: &Command) -> Vec<(String, String)> {
    let help = |arg: &clap::Arg| {
        let text = arg.get_help().map(ToString::to_string).unwrap_or_default();
        (arg.get_id().to_string(), plain(&text))
    };
    command.get_arguments().map(help).collect()
}

fn plain(text: &str) -> String {
    let text = text.split(" [default: ").next().unwrap_or_default();
    text.trim_end_matches('.').replace('\n', " ")
}

fn check(tool: &str, schema: &ToolSchema, command: &Command, renamed: &[Renamed]) {
    let helps = helps(command);
    for (name, property) in &schema.properties {
        let field = renamed.iter().find(|(_, shown)| shown == name).map_or(name.as_str(), |r| r.0);
        // These two do not exist on the command line.
        if matches!((tool, field), ("SpawnTeammate", "name") | ("TaskList", "filter")) {
            continue;
        }
        let help = helps.iter().find(|(id, _)| id == field);
        let (_, help) = help.unwrap_or_else(|| panic!("{tool}: {field} is not an argument"));
        let shown = plain(property["description"].as_str().unwrap_or_default());
        assert_eq!(&shown, help, "{tool}: {name}");
    }
}

fn command<T: Args>() -> Command {
    T::augment_args(Command::new("verb"))
}

#[test]
fn tools_have_the_arguments_of_the_command_line() {
    let request = &[("id", "request_id")];
    let table: [(&str, Command, &[Renamed]); 9] = [
        ("TaskCreate", command::<CreateTaskArgs>(), CAMEL),
        ("TaskUpdate", command::<UpdateTaskArgs>(), CAMEL_EDIT),
        ("TaskList", command::<ListTasksArgs>(), CAMEL),
        ("SpawnTeammate", command::<SpawnArgs>(), &[]),
        ("Answer", command::<AnswerArgs>(), request),
        ("AskPermission", command::<PermissionArgs>(), &[]),
        ("Shutdown", command::<ShutdownArgs>(), &[]),
        ("Peek", command::<PeekArgs>(), &[]),
        ("Type", command::<TypeArgs>(), &[]),
    ];
    for (name, command, renamed) in table {
        check(name, &(tool(name).schema)(), &command, renamed);
    }
    check("WaitFor", &(tool("WaitFor").schema)(), &command::<WaitArgs>(), &[]);
}

#[test]
fn board_tool_has_the_actions_of_the_task_verbs() {
    let verbs = TaskActionVerb::augment_subcommands(Command::new("task"));
    let board = (tool("TeamTasks").schema)();
    let actions = board.properties["action"]["enum"].as_array().expect("a list").clone();
    let named = |verb: &Command| actions.contains(&json!(verb.get_name()));
    for verb in verbs.get_subcommands() {
        assert!(named(verb), "{}", verb.get_name());
        for arg in verb.get_arguments() {
            let field = arg.get_id().as_str();
            let shown = BOARD.iter().find(|(id, _)| *id == field).map_or(field, |r| r.1);
            assert!(board.properties.contains_key(shown), "{}: {shown}", verb.get_name());
        }
    }
}

#[test]
fn shell_and_tool_make_the_same_task() {
    let words = [
        "create",
        "Fix it",
        "--description",
        "all",
        "--owner",
        "ann",
        "--blocked-by",
        "1,2",
        "--priority",
        "-3",
        "--type",
        "bug",
        "--label",
        "a",
        "--label",
        "b",
        "--metadata",
        "{\"k\": 1}",
        "--",
        "make",
        "test",
    ];
    let matches = command::<CreateTaskArgs>().get_matches_from(words);
    let shell = CreateTaskArgs::from_arg_matches(&matches).expect("valid");
    let given = json!({
        "subject": "Fix it", "description": "all", "owner": "ann", "blockedBy": [1, "#2"],
        "priority": -3, "type": "bug", "labels": ["a", "b"], "metadata": {"k": 1},
        "run": ["make", "test"], "role": null,
    });
    let schema = (tool("TaskCreate").schema)();
    let tool: CreateTaskArgs = parse(object(given), &schema, CAMEL).expect("valid");
    assert_eq!(format!("{tool:?}"), format!("{shell:?}"));
}

#[test]
fn wrong_arguments_are_named() {
    let schema = (tool("TaskUpdate").schema)();
    let problem = |given: Value| match parse::<UpdateTaskArgs>(object(given), &schema, CAMEL_EDIT) {
        Err(Failure::Message(error)) => {
            format!("{} ({})", error.message, error.hint.expect("a hint"))
        }
        other => panic!("{other:?}"),
    };
    assert!(problem(json!({})).starts_with("missing field `taskId` (the arguments are `taskId`, "));
    let unknown = problem(json!({"taskId": "1", "state": "done"}));
    assert!(unknown.starts_with("there is no argument \"state\" (the arguments are"), "{unknown}");
    let wrong = problem(json!({"taskId": "1", "status": "done"}));
    assert!(
        wrong.contains("argument `status`: unknown variant `done`, expected one of"),
        "{wrong}"
    );
    let reserved = problem(json!({"taskId": "1", "metadata": {"phalanx": {}}}));
    assert!(reserved.contains("the key `phalanx` is reserved"), "{reserved}");
}
