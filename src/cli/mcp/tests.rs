//! Tests of the tools as they are described: who has them, and that their arguments are the command
//! line's.

use std::collections::BTreeSet;

use clap::{Arg, Args, Command, FromArgMatches};
use serde_json::{Value, json};

use super::absent::NOT_OVER_MCP;
use super::aliases::ALIASES;
use super::arguments::ToolArguments;
use super::offered::{OfferedTool, ToolUser, offered};
use super::schema::ToolSchema;
use super::table::TOOLS;
use super::tools::{ToolAction, ToolDefinition, ToolEffect, schema_of_tool};
use super::wording::{argument_of_field, command_of};
use crate::board::task::{CreateTaskArgs, TaskVerb, UpdateTaskArgs};
use crate::fail::Failure;
use crate::members::spawn::SpawnArgs;
use crate::verbs::{definition, shown};
use model::board::task_ref::TaskRef;
use model::id::TaskId;
use model::members::mode::Mode;
use model::team::worktree::WorktreeRequest;
use model::wire::Object;

const LEAD: ToolUser = ToolUser { is_lead: true, mode: None, read_only: false };
/// About as many bytes as a token has.
const BYTES_PER_TOKEN: usize = 4;

fn tool(name: &str) -> &'static ToolDefinition {
    TOOLS.iter().find(|tool| tool.name == name).expect("a tool")
}

fn action(tool: &str, name: &str) -> &'static ToolAction {
    let mut actions = self::tool(tool).actions.iter();
    actions.find(|action| action.names.name == name).expect("an action")
}

fn names(user: ToolUser) -> BTreeSet<&'static str> {
    offered(user).map(|tool| tool.definition.name).collect()
}

/// The actions of one of the tools that a caller has.
fn actions(user: ToolUser, name: &str) -> Vec<&'static str> {
    let found = offered(user).find(|tool| tool.definition.name == name);
    let actions = found.map(|tool: OfferedTool| tool.actions).unwrap_or_default();
    actions.iter().map(|action| action.names.name).collect()
}

fn schema(tool: &ToolDefinition) -> ToolSchema {
    schema_of_tool(tool.actions.iter())
}

fn object(document: Value) -> Object {
    document.as_object().expect("an object").clone()
}

#[test]
fn tool_list_is_short_enough_for_a_prompt() {
    let bytes: usize = TOOLS
        .iter()
        .map(|tool| {
            let schema = Value::Object(schema(tool).to_object()).to_string();
            tool.name.len() + tool.description.len() + schema.len()
        })
        .sum();
    assert!(bytes < 7000 * BYTES_PER_TOKEN, "{bytes} bytes");
}

/// Routes to Gemini refuse all tools if one has a union or a reference, and OpenAI if one has an
/// object without `properties`.
#[test]
fn tl_08_schemas_are_plain_and_their_objects_have_properties() {
    let mut faults = Vec::new();
    for tool in TOOLS {
        find_faults(&Value::Object(schema(tool).to_object()), tool.name.to_owned(), &mut faults);
    }
    assert_eq!(faults, Vec::<String>::new());
    let spawn = schema(tool("SpawnTeammate"));
    assert_eq!(spawn.properties["worktree"]["type"], "string");
    assert_eq!(spawn.properties["env"]["properties"], json!({}));
}

fn find_faults(schema: &Value, path: String, faults: &mut Vec<String>) {
    let unions = ["anyOf", "oneOf", "allOf", "not", "$ref"];
    let is_plain = schema.is_object() && unions.iter().all(|key| schema.get(*key).is_none());
    if !is_plain || schema["type"].is_array() {
        faults.push(format!("{path}: {schema}"));
    }
    if schema["type"] == "object" && !schema["properties"].is_object() {
        faults.push(format!("{path} has no properties"));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        find_faults(property, format!("{path}.{name}"), faults);
    }
    if let Some(items) = schema.get("items") {
        find_faults(items, format!("{path}[]"), faults);
    }
}

#[test]
fn worktree_of_a_member_is_on_a_branch_or_a_new_one() {
    let spawn = |given: Value| -> Result<SpawnArgs, Failure> {
        let mut read = read("SpawnTeammate", "", given)?;
        let name = read.take("name");
        read.with("names", json!([name])).parse()
    };
    for (given, expected) in [
        (json!(true), Some(WorktreeRequest::Own)),
        (json!("true"), Some(WorktreeRequest::Own)),
        (json!("fix"), Some(WorktreeRequest::Branch("fix".to_owned()))),
        (json!(false), None),
    ] {
        let args = spawn(json!({ "name": "ann", "worktree": given })).expect("valid");
        assert_eq!(args.worktree, expected);
    }
    assert!(problem(spawn(json!({ "name": "ann", "role": true }))).contains("argument `role`"));
}

#[test]
fn teammates_and_observers_have_fewer_tools() {
    let lead = names(LEAD);
    assert_eq!(lead.len(), TOOLS.len() - 2, "{lead:?}");
    let teammate = names(ToolUser { is_lead: false, ..LEAD });
    for name in [
        "TeamCreate",
        "TeamDelete",
        "SpawnTeammate",
        "Shutdown",
        "Answer",
        "Type",
        "Handoff",
        "Restart",
        "SetMode",
    ] {
        assert!(lead.contains(name) && !teammate.contains(name), "{name}");
    }
    assert!(teammate.contains("SubmitPlan") && !lead.contains("SubmitPlan"));
    let observer = ToolUser { read_only: true, ..LEAD };
    for tool in offered(observer) {
        assert!(tool.has_only(ToolEffect::Reads), "{}", tool.definition.name);
    }
    let reads = ["list", "get", "search", "export", "scopes"];
    assert_eq!(actions(observer, "TeamTasks"), reads);
    assert_eq!(actions(observer, "TeamWorkspace"), ["list", "read", "path"]);
    assert!(!names(observer).contains("SendMessage"));
}

#[test]
fn delegating_lead_coordinates_and_does_no_work() {
    let delegating = ToolUser { mode: Some(Mode::Delegate), ..LEAD };
    let hidden: Vec<_> = names(LEAD).difference(&names(delegating)).copied().collect();
    assert_eq!(hidden, ["Type"]);
    let hidden = |tool: &str| -> Vec<&str> {
        let kept = actions(delegating, tool);
        actions(LEAD, tool).into_iter().filter(|name| !kept.contains(name)).collect()
    };
    assert_eq!(hidden("TeamTasks"), ["claim", "complete", "review", "progress", "attach"]);
    assert_eq!(hidden("TeamWorkspace"), ["write", "delete"]);
    assert_eq!(hidden("Worktrees"), ["remove"]);
    let board = offered(delegating).find(|tool| tool.definition.name == "TeamTasks");
    let board = board.expect("the board").schema();
    assert!(!board.properties.contains_key("percent") && board.properties.contains_key("by"));
}

/// Every command that runs by itself, with its words.
fn commands(command: &Command, words: &str, found: &mut Vec<(String, Command)>) {
    if !words.is_empty() && !command.is_subcommand_required_set() {
        found.push((words.to_owned(), command.clone()));
    }
    for inner in shown(command) {
        commands(inner, format!("{words} {}", inner.get_name()).trim(), found);
    }
}

/// The options and arguments of a command that people use.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_own = |arg: &&Arg| !arg.is_global_set() && !matches!(arg.get_id().as_str(), "help");
    command.get_arguments().filter(is_own)
}

/// The actions that perform a verb, with their tools.
fn actions_for(verb: &str) -> Vec<(&'static ToolDefinition, &'static ToolAction)> {
    let all = TOOLS.iter().flat_map(|tool| tool.actions.iter().map(move |action| (tool, action)));
    all.filter(|(_, action)| action.verbs.contains(&verb)).collect()
}

fn is_omitted(verb: &str, option: &str) -> bool {
    NOT_OVER_MCP.iter().any(|(of, name, ..)| *of == verb && *name == option)
}

#[test]
fn tl_01_each_command_and_option_is_a_tool_or_has_a_reason() {
    let (root, mut found, mut gaps) = (definition(), Vec::new(), Vec::new());
    commands(&root, "", &mut found);
    assert!(found.len() > 90, "{} commands", found.len());
    for (verb, command) in &found {
        let performers = actions_for(verb);
        if performers.is_empty() != is_omitted(verb, "") {
            gaps.push(format!("{verb}: a tool, or one reason in `absent`"));
        }
        for option in options(command).filter(|_| !performers.is_empty()) {
            let field = option.get_id().as_str();
            let has = |(tool, action): &(&ToolDefinition, &ToolAction)| {
                argument_of_field(tool, action, field).is_some()
            };
            if performers.iter().any(has) == is_omitted(verb, field) {
                gaps.push(format!("{verb} {field}: an argument, or one reason in `absent`"));
            }
        }
    }
    assert_eq!(gaps, Vec::<String>::new());
    for (verb, option, ..) in NOT_OVER_MCP {
        let command = command_of(&root, verb).unwrap_or_else(|| panic!("no command {verb}"));
        let is_there = option.is_empty() || options(command).any(|arg| arg.get_id() == *option);
        assert!(is_there, "{verb} has no {option}");
    }
    for action in TOOLS.iter().flat_map(|tool| tool.actions) {
        for verb in action.verbs {
            assert!(command_of(&root, verb).is_some(), "no command {verb}");
        }
    }
}

fn plain(text: &str) -> String {
    let text = text.split(" [default: ").next().unwrap_or_default();
    text.trim_end_matches('.').replace('\n', " ")
}

#[test]
fn arguments_of_tools_have_the_meanings_of_the_command_line() {
    let (root, mut differences) = (definition(), Vec::new());
    let actions = TOOLS.iter().flat_map(|tool| tool.actions.iter().map(move |one| (tool, one)));
    for (tool, action) in actions.filter(|(_, action)| !action.verbs.is_empty()) {
        let verbs = action.verbs.iter().filter_map(|verb| command_of(&root, verb));
        let helps: Vec<(String, String)> = verbs
            .flat_map(|command| command.get_arguments())
            .filter_map(|arg| {
                let shown = argument_of_field(tool, action, arg.get_id().as_str())?;
                Some((shown, plain(&arg.get_help()?.to_string())))
            })
            .collect();
        for (name, property) in &action.schema().properties {
            let meaning = property["description"].as_str().map(plain);
            let is_same = |(shown, help): &(String, String)| {
                shown == name && meaning.as_ref().is_none_or(|meaning| meaning == help)
            };
            if !has_own_meaning(tool.name, name) && !helps.iter().any(is_same) {
                differences.push(format!("{} {name}: {meaning:?}, {helps:?}", tool.name));
            }
        }
    }
    assert_eq!(differences, Vec::<String>::new());
}

/// Returns true for arguments that no command has, or that mean less or more over MCP.
fn has_own_meaning(tool: &str, name: &str) -> bool {
    matches!(
        (tool, name),
        (
            "TeamCreate"
                | "SendMessage"
                | "TeamMessage"
                | "ReadInbox"
                | "TeamSettings"
                | "Requests",
            _
        ) | ("SpawnTeammate" | "Status" | "ListProfiles", "name")
            | ("TaskList" | "TeamTasks", "filter")
            | ("TeamTasks", "query")
            | ("SubmitPlan", "plan")
            | ("TeamWorkspace", "content")
    )
}

#[test]
fn aliases_name_tools_and_their_arguments() {
    for (tool, alias, name) in ALIASES {
        let schema = schema(self::tool(tool));
        assert!(schema.properties.contains_key(*name), "{tool}: {name}");
        assert!(!schema.properties.contains_key(*alias), "{tool} has an argument {alias}");
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
        "--env",
        "A=b",
        "--scope",
        "user=u",
        "--",
        "make",
        "test",
    ];
    let command = CreateTaskArgs::augment_args(Command::new("create"));
    let matches = command.get_matches_from(words);
    let shell = CreateTaskArgs::from_arg_matches(&matches).expect("valid");
    let given = json!({
        "subject": "Fix it", "description": "all", "owner": "ann", "blockedBy": [1, "#2"],
        "priority": -3, "type": "bug", "labels": ["a", "b"], "metadata": {"k": 1},
        "run": ["make", "test"], "env": {"A": "b"}, "scope": "user=u",
    });
    let tool: CreateTaskArgs =
        read("TaskCreate", "", given).and_then(ToolArguments::parse).expect("valid");
    assert_eq!(format!("{tool:?}"), format!("{shell:?}"));
}

/// The arguments of a call.
fn read(tool: &str, name: &str, given: Value) -> Result<ToolArguments, Failure> {
    let action = action(tool, name);
    ToolArguments::read(action.names, action.schema(), object(given))
}

fn problem<T>(done: Result<T, Failure>) -> String {
    match done {
        Err(Failure::Message(error)) => {
            format!("{} ({})", error.message, error.hint.expect("a hint"))
        }
        _ => panic!("it is refused"),
    }
}

#[test]
fn tl_02_wrong_arguments_are_named_without_a_list_of_all_others() {
    let update = |given| {
        problem(read("TaskUpdate", "", given).and_then(ToolArguments::parse::<UpdateTaskArgs>))
    };
    assert_eq!(update(json!({})), "`taskId` is missing (`taskId`: Id or key of the task.)");
    let wrong = update(json!({"taskId": "1", "status": "done"}));
    assert!(
        wrong.contains("argument `status`: unknown variant `done`, expected one of"),
        "{wrong}"
    );
    assert!(wrong.ends_with("(`status`: Status; `completed` runs the hooks first.)"), "{wrong}");
    let reserved = update(json!({"taskId": "1", "metadata": {"phalanx": {}}}));
    assert!(reserved.contains("the key `phalanx` is reserved"), "{reserved}");
    let unknown = problem(read("TeamTasks", "complete", json!({"task_id": "1", "resul": "done"})));
    assert_eq!(
        unknown,
        "there is no argument \"resul\" (did you mean `result`? the arguments are `task_id`, \
         `result`, `summary`, `commit`)"
    );
    let missing = problem(read("TeamTasks", "assign", json!({})));
    assert!(missing.starts_with("`task_id` and `assignee` are missing"), "{missing}");
}

#[test]
fn tl_03_names_are_taken_in_each_spelling() {
    for given in [json!({"taskId": 3}), json!({"task_id": "3"}), json!({"id": "#3"})] {
        let args: UpdateTaskArgs =
            read("TaskUpdate", "", given).and_then(ToolArguments::parse).expect("valid");
        assert_eq!(args.id, TaskRef::Id(TaskId(3)));
    }
    let given = json!({"task_id": 3, "blocked_by": 1, "add_blocks": [2]});
    let args: UpdateTaskArgs =
        read("TaskUpdate", "", given).and_then(ToolArguments::parse).expect("valid");
    assert_eq!((args.blocked_by.len(), args.blocks.len()), (1, 1));
}

#[test]
fn actions_of_the_board_are_those_of_the_command_line() {
    for (name, given) in [
        ("assign", json!({"task_id": 3, "assignee": "ann"})),
        ("progress", json!({"task_id": 3, "percent": 50})),
        ("block", json!({"task_id": 3, "by": [1]})),
    ] {
        let done = read("TeamTasks", name, given).and_then(ToolArguments::variant);
        let verb = TaskVerb::Action(done.unwrap_or_else(|_| panic!("{name} is valid")));
        assert!(format!("{verb:?}").to_lowercase().contains(name), "{verb:?}");
    }
}
