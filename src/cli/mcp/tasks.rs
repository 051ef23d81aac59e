//! Tools for the task board.

use serde_json::{Value, json};

use super::arguments::{
    Renamed, TaskFilter, TaskFilterInput, TaskGetInput, TaskSearchInput, ToolSchema, parse,
    schema_of,
};
use super::call::{Reply, ToolCall};
use crate::cli::fail::{ErrorMessage, Failure};
use crate::cli::out::Out;
use crate::cli::setup::Setup;
use crate::cli::task::{
    self, CreateTaskArgs, ListTasksArgs, TaskActionVerb, TaskVerb, UpdateTaskArgs,
};
use crate::model::assessment::Doing;
use crate::model::id::TaskId;
use crate::model::wire::Object;
use crate::ops::{self, Kind, TargetStatus};

/// Claude Code's names of the arguments of its task tools.
pub(super) const CAMEL: &[Renamed] = &[
    ("id", "taskId"),
    ("active_form", "activeForm"),
    ("command", "run"),
    ("kind", "type"),
    ("blocked_by", "blockedBy"),
];
/// As [`CAMEL`], for an edit, which adds to what a task waits for.
pub(super) const CAMEL_EDIT: &[Renamed] = &[
    ("id", "taskId"),
    ("active_form", "activeForm"),
    ("command", "run"),
    ("kind", "type"),
    ("blocks", "addBlocks"),
    ("blocked_by", "addBlockedBy"),
    ("unblock", "removeBlockedBy"),
    ("no_owner", "noOwner"),
];
/// The names of the tool with an `action`.
pub(super) const BOARD: &[Renamed] = &[
    ("id", "task_id"),
    ("kind", "task_type"),
    ("owner", "assignee"),
    ("name", "assignee"),
    ("command", "run"),
];

/// Characters of a description that a result contains.
const DESCRIPTION: usize = 8000;
/// The fields of a task in a list.
const LISTED: [&str; 9] =
    ["id", "subject", "status", "state", "owner", "blockedBy", "priority", "labels", "progress"];

pub(super) fn create(call: &ToolCall, args: CreateTaskArgs) -> Result<Reply, Failure> {
    act(call, TaskVerb::Create(Box::new(args)))
}

/// Edits a task. A member that sets a task without an owner in progress claims it.
pub(super) fn update(call: &ToolCall, mut args: UpdateTaskArgs) -> Result<Reply, Failure> {
    if args.status == Some(TargetStatus::InProgress) && args.owner.is_none() {
        let speaker = call.with(|setup| Ok(setup.ctx.speaker.clone()))?;
        args.owner = (!speaker.is_lead()).then(|| speaker.to_string());
    }
    act(call, TaskVerb::Update(Box::new(args)))
}

pub(super) fn get(call: &ToolCall, input: &TaskGetInput) -> Result<Reply, Failure> {
    show(call, input.id, input.full)
}

fn show(call: &ToolCall, id: TaskId, full: bool) -> Result<Reply, Failure> {
    let mut printed = call.run(|setup| task::task(setup, TaskVerb::Get { id, full }))?;
    let task = printed.document.take();
    let task = if full { task } else { shortened(task) };
    Ok(printed.reply_with(json!({ "task": task })))
}

/// Cuts a long description, as the command cuts a long result.
fn shortened(mut task: Value) -> Value {
    let text = task["description"].as_str().unwrap_or_default();
    if text.chars().nth(DESCRIPTION).is_some() {
        let cut: String = text.chars().take(DESCRIPTION).collect();
        task["description"] = cut.into();
        task["descriptionIsCut"] = true.into();
    }
    task
}

/// The arguments of the lists of tasks.
pub(super) fn list_schema(renamed: &[Renamed]) -> ToolSchema {
    let mut schema = schema_of::<TaskFilterInput>(renamed);
    schema.merge(schema_of::<ListTasksArgs>(renamed));
    schema
}

pub(super) fn list(
    call: &ToolCall,
    mut given: Object,
    renamed: &[Renamed],
) -> Result<Reply, Failure> {
    let schema = list_schema(renamed);
    let filter =
        given.remove("filter").map(|filter| Object::from_iter([("filter".to_owned(), filter)]));
    let TaskFilterInput { filter } = parse(filter.unwrap_or_default(), &schema, renamed)?;
    let mut args: ListTasksArgs = parse(given, &schema, renamed)?;
    match filter {
        None => {}
        Some(TaskFilter::Active) => args.active = true,
        Some(TaskFilter::InReview) => args.in_review = true,
        Some(TaskFilter::Completed) => args.completed = true,
        Some(TaskFilter::All) => args.all = true,
    }
    args.page = args.page.or(Some(1));
    let printed = call.run(|setup| task::task(setup, TaskVerb::List(args)))?;
    let tasks: Vec<Value> = printed.document.as_array().into_iter().flatten().map(listed).collect();
    Ok(printed.reply_with(json!({ "tasks": tasks })))
}

fn listed(task: &Value) -> Value {
    let extra = task.pointer("/metadata/phalanx");
    let field = |name: &&str| {
        let value = task.get(*name).or_else(|| extra?.get(*name)).filter(|value| !value.is_null());
        value.map(|value| ((*name).to_owned(), value.clone()))
    };
    Value::Object(LISTED.iter().filter_map(field).collect())
}

/// The arguments of all actions on the board.
pub(super) fn board_schema() -> ToolSchema {
    let mut schema = schema_of::<TaskActionVerb>(BOARD);
    if let Some(Value::Array(actions)) =
        schema.properties.get_mut("action").and_then(|action| action.get_mut("enum"))
    {
        let others = ["create", "update", "list", "get", "search", "delete"];
        actions.splice(0..0, others.map(Value::from));
    }
    for more in [
        schema_of::<CreateTaskArgs>(BOARD),
        schema_of::<UpdateTaskArgs>(BOARD),
        list_schema(BOARD),
        schema_of::<TaskSearchInput>(BOARD),
        schema_of::<TaskGetInput>(BOARD),
    ] {
        schema.merge(more);
    }
    schema
}

pub(super) fn board(call: &ToolCall, mut given: Object) -> Result<Reply, Failure> {
    let schema = board_schema();
    let action = given.get("action").and_then(Value::as_str).unwrap_or_default().to_owned();
    match action.as_str() {
        "create" => create(call, parse(given, &schema, BOARD)?),
        "update" => update(call, parse(given, &schema, BOARD)?),
        "list" => {
            given.remove("action");
            list(call, given, BOARD)
        }
        "get" => get(call, &parse(given, &schema, BOARD)?),
        "search" => {
            let TaskSearchInput { query, limit } = parse(given, &schema, BOARD)?;
            let verb = TaskVerb::Search { words: vec![query], limit: limit.unwrap_or(30) };
            Ok(call.run(|setup| task::task(setup, verb))?.into_reply())
        }
        "delete" => {
            let TaskGetInput { id, .. } = parse(given, &schema, BOARD)?;
            act(call, TaskVerb::Delete { id, force: false })
        }
        "assign" => {
            // The member has the field `name` here, and `owner` in other actions.
            let renamed = [("id", "task_id"), ("name", "assignee")];
            act(call, TaskVerb::Action(parse(given, &schema, &renamed)?))
        }
        _ => act(call, TaskVerb::Action(parse(given, &schema, BOARD)?)),
    }
}

/// Changes a task. A refusal names members that are free.
fn act(call: &ToolCall, verb: TaskVerb) -> Result<Reply, Failure> {
    let _turn = call.server.board.blocking_lock();
    let mut printed =
        call.run(|setup| task::task(setup, verb)).map_err(|failure| match failure {
            Failure::Message(error) if error.kind == Kind::Refused => {
                let free = call.server.setup(Out::captured().0).ok();
                let free = free.and_then(|setup| free_members(&setup));
                let hints: Vec<String> = error.hint.into_iter().chain(free).collect();
                let hint = (!hints.is_empty()).then(|| hints.join("; "));
                Failure::Message(ErrorMessage { hint, ..error })
            }
            other => other,
        })?;
    let document = json!({ "task": shortened(printed.document.take()) });
    Ok(printed.reply_with(document))
}

/// Names the members that have no task, for a refusal that another member can help with.
fn free_members(setup: &Setup) -> Option<String> {
    let team = setup.visible_team()?;
    let status = ops::status::status(&team).ok()?;
    let is_free = |member: &&ops::status::MemberStatus| {
        member.task.is_none() && member.state.doing == Doing::Idle
    };
    let free: Vec<&str> =
        status.members.iter().filter(is_free).map(|member| member.name.as_str()).collect();
    (!free.is_empty()).then(|| format!("free members: {}", free.join(", ")))
}
