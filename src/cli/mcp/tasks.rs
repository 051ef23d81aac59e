//! Tools for the task board.

use serde_json::{Value, json};
use strum::VariantNames;

use super::arguments::ToolArguments;
use super::call::{Reply, ToolCall};
use super::inputs::{TaskDeleteInput, TaskFilter, TaskFilterInput, TaskGetInput, TaskSearchInput};
use super::schema::{ActionNames, Renamed, ToolSchema, schema_of};
use crate::board::task::{self, ListTasksArgs, TaskVerb, UpdateTaskArgs};
use crate::board::task_import::{ExportTasksArgs, ImportTasksArgs};
use crate::fail::{ErrorMessage, Failure};
use crate::out::Out;
use crate::setup::Setup;
use model::members::assessment::Doing;
use ops::{self, Kind, TargetStatus};

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
pub(super) const BOARD: &[Renamed] =
    &[("id", "task_id"), ("kind", "task_type"), ("owner", "assignee"), ("command", "run")];
/// As [`BOARD`], for an assignment, whose member has the field `name`.
pub(super) const ASSIGN: &[Renamed] = &[("id", "task_id"), ("name", "assignee")];
/// As [`BOARD`], for an import: `files` are patterns in the other actions.
pub(super) const IMPORT: &[Renamed] = &[("files", "paths")];

/// The status with which Claude Code deletes a task.
const DELETED: &str = "deleted";

/// Characters of a description that a result contains.
const DESCRIPTION: usize = 8000;
/// The fields of a task in a list.
const LISTED: [&str; 11] = [
    "id",
    "key",
    "subject",
    "status",
    "state",
    "owner",
    "blockedBy",
    "priority",
    "labels",
    "progress",
    "snapshot",
];

pub(super) fn create(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    act(call, TaskVerb::Create(Box::new(given.parse()?)))
}

/// The arguments of an edit, which can also delete the task.
pub(super) fn update_schema(action: &ActionNames) -> ToolSchema {
    let mut schema = schema_of::<UpdateTaskArgs>(action);
    if let Some(status) = schema.properties.get_mut("status") {
        let words = TargetStatus::VARIANTS.iter().copied().chain([DELETED]);
        status["enum"] = words.collect();
    }
    schema
}

/// Edits a task. A member that sets a task without an owner in progress claims it. As in Claude
/// Code, the status `deleted` deletes a task in every state.
pub(super) fn update(call: &ToolCall, mut given: ToolArguments) -> Result<Reply, Failure> {
    if given.is("status", DELETED) {
        let id = given.split(&["id"]).with("force", true.into());
        return delete(call, id);
    }
    let mut args: UpdateTaskArgs = given.parse()?;
    if args.status == Some(TargetStatus::InProgress) && args.owner.is_none() {
        let speaker = call.with(|setup| Ok(setup.ctx.speaker.clone()))?;
        args.owner = (!speaker.is_lead()).then(|| speaker.to_string());
    }
    act(call, TaskVerb::Update(Box::new(args)))
}

pub(super) fn get(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let TaskGetInput { id, full } = given.parse()?;
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
pub(super) fn list_schema(action: &ActionNames) -> ToolSchema {
    let mut schema = schema_of::<TaskFilterInput>(action);
    schema.merge(schema_of::<ListTasksArgs>(action));
    schema
}

pub(super) fn list(call: &ToolCall, mut given: ToolArguments) -> Result<Reply, Failure> {
    let TaskFilterInput { filter } = given.split(&["filter"]).parse()?;
    let mut args: ListTasksArgs = given.parse()?;
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

pub(super) fn search(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let TaskSearchInput { query, limit } = given.parse()?;
    let verb = TaskVerb::Search { words: vec![query], limit: limit.unwrap_or(30) };
    Ok(call.run(|setup| task::task(setup, verb))?.into_reply())
}

pub(super) fn delete(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let TaskDeleteInput { id, force } = given.parse()?;
    act(call, TaskVerb::Delete { id, force })
}

pub(super) fn import(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let args: ImportTasksArgs = given.parse()?;
    let _turn = call.server.board.blocking_lock();
    Ok(call.run(|setup| task::task(setup, TaskVerb::Import(args)))?.into_reply())
}

pub(super) fn export(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let args: ExportTasksArgs = given.parse()?;
    Ok(call.run(|setup| task::task(setup, TaskVerb::Export(args)))?.into_list("tasks"))
}

pub(super) fn scopes(call: &ToolCall) -> Result<Reply, Failure> {
    Ok(call.run(|setup| task::task(setup, TaskVerb::Scopes))?.into_list("scopes"))
}

/// Performs an action of the board with the arguments of its verb.
pub(super) fn step(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    act(call, TaskVerb::Action(given.variant()?))
}

/// Changes a task. A refusal names members that are free.
fn act(call: &ToolCall, verb: TaskVerb) -> Result<Reply, Failure> {
    let _turn = call.server.board.blocking_lock();
    let mut printed =
        call.run(|setup| task::task(setup, verb)).map_err(|failure| match failure {
            Failure::Message(error) if error.kind == Kind::Refused => {
                let free = call.setup(Out::captured().0).ok();
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
    let status = ops::members::status::status(&team).ok()?;
    let is_free = |member: &&ops::members::status::MemberStatus| {
        member.task.is_none() && member.state.doing == Doing::Idle
    };
    let free: Vec<&str> =
        status.members.iter().filter(is_free).map(|member| member.name.as_str()).collect();
    (!free.is_empty()).then(|| format!("free members: {}", free.join(", ")))
}
