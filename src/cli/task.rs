//! The `task` subcommands.

use std::cmp::Reverse;
use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use strum::VariantNames;

use super::args::{object, task_id, variable};
use super::fail::{Exit, Failure, VerbResult};
use super::interrupt;
use super::setup::Setup;
use super::task_import::{self, ExportTasksArgs, ImportTasksArgs};
use crate::model::id::{MemberName, TaskId};
use crate::model::task::{Extra, Task};
use crate::model::wire::{self, Object};
use crate::ops::authority::Action;
use crate::ops::hooks::TeamHooks;
use crate::ops::task::Completed;
use crate::ops::{
    self, Context, Kind, NewTask, OpsError, TargetStatus, TaskChanges, TaskOwner, TeamStore,
};
use crate::ui;

#[derive(Debug, Subcommand)]
pub(super) enum TaskVerb {
    Create(Box<CreateTaskArgs>),
    /// List open tasks, in the order in which members claim them.
    List {
        /// Include completed and cancelled tasks, and internal ones.
        #[arg(long)]
        all: bool,
    },
    /// Show one task.
    Get {
        /// Id of the task.
        #[arg(value_parser = task_id)]
        id: TaskId,
    },
    /// Claim a task for the caller.
    Claim {
        /// Id of the task.
        #[arg(value_parser = task_id)]
        id: TaskId,
    },
    /// Complete a task of the caller; the lead may complete any.
    Complete {
        /// Id of the task.
        #[arg(value_parser = task_id)]
        id: TaskId,
    },
    /// Make a failed task pending again.
    #[command(after_help = "Example:\n  phalanx task retry 3\n\n\
        A member that the task was assigned to keeps it, if it is still on the team; else any member may claim it.")]
    Retry {
        #[arg(value_parser = task_id)]
        id: TaskId,
    },
    Update(Box<UpdateTaskArgs>),
    /// Delete a task that has ended.
    Delete {
        /// Id of the task.
        #[arg(value_parser = task_id)]
        id: TaskId,
        /// Delete it even if it has not ended.
        #[arg(long)]
        force: bool,
    },
    Import(ImportTasksArgs),
    Export(ExportTasksArgs),
}

/// Create a task.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx task create \"Write the docs\" --owner ada\n  \
    phalanx task create \"Run the tests\" --blocked-by 1 -- cargo test")]
pub(super) struct CreateTaskArgs {
    /// Short title.
    pub(super) subject: String,
    /// Full description.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) description: String,
    /// Member to assign it to.
    #[arg(long, value_name = "NAME")]
    pub(super) owner: Option<String>,
    /// Tasks that must be completed first.
    #[arg(long, value_name = "ID", value_parser = task_id, num_args = 1.., value_delimiter = ',')]
    pub(super) blocked_by: Vec<TaskId>,
    #[command(flatten)]
    pub(super) fields: TaskFields,
}

/// Edit a task of the caller; the lead may edit any.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx task update 3 --owner ada\n  \
    phalanx task update 3 --blocked-by 1 --unblock 2\n  \
    phalanx task update 3 --status in_progress\n  \
    phalanx task update 3 --priority 5 -- cargo test --all\n\n\
    An empty text removes --active-form, --role and --cwd. --file, --env and a command replace what was there.")]
pub(super) struct UpdateTaskArgs {
    /// Id of the task.
    #[arg(value_parser = task_id)]
    pub(super) id: TaskId,
    /// Short title.
    #[arg(long, value_name = "TEXT")]
    pub(super) subject: Option<String>,
    /// Full description.
    #[arg(long, value_name = "TEXT")]
    pub(super) description: Option<String>,
    /// Status; `completed` runs the hooks first.
    #[arg(long, value_name = "STATUS", value_parser = status())]
    pub(super) status: Option<TargetStatus>,
    /// Member to assign it to; work begun by another member returns to pending.
    #[arg(long, value_name = "NAME", conflicts_with = "no_owner")]
    pub(super) owner: Option<String>,
    /// Assign it to no member; any free one may claim it.
    #[arg(long)]
    pub(super) no_owner: bool,
    /// Tasks that must be completed first.
    #[arg(long, value_name = "ID", value_parser = task_id, num_args = 1.., value_delimiter = ',')]
    pub(super) blocked_by: Vec<TaskId>,
    /// Tasks that no longer have to be completed first.
    #[arg(long, value_name = "ID", value_parser = task_id, num_args = 1.., value_delimiter = ',')]
    pub(super) unblock: Vec<TaskId>,
    /// Tasks that have to wait for this one.
    #[arg(long, value_name = "ID", value_parser = task_id, num_args = 1.., value_delimiter = ',')]
    pub(super) blocks: Vec<TaskId>,
    #[command(flatten)]
    pub(super) fields: TaskFields,
}

/// Fields that `task create` and `task update` share.
#[derive(Debug, Args)]
pub(super) struct TaskFields {
    /// Text to show while the task runs.
    #[arg(long, value_name = "TEXT")]
    pub(super) active_form: Option<String>,
    /// Priority; higher numbers are claimed first [default: 0].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) priority: Option<i64>,
    /// Role that a member must have to claim it.
    #[arg(long, value_name = "ROLE")]
    pub(super) role: Option<String>,
    /// Patterns of the files that it changes.
    #[arg(long = "file", value_name = "PATTERN", num_args = 1..)]
    pub(super) files: Option<Vec<String>>,
    /// Kind of task.
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) kind: Option<String>,
    /// Metadata, as a JSON object; in an update, null removes a key.
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    pub(super) metadata: Option<Object>,
    /// Working directory of its command [default: that of the worker].
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<String>,
    /// Environment variable of its command; repeatable.
    #[arg(long, value_parser = variable, value_name = "NAME=VALUE")]
    pub(super) env: Option<Vec<(String, String)>>,
    /// Command for a worker to run.
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<String>,
}

fn status() -> impl TypedValueParser<Value = TargetStatus> {
    PossibleValuesParser::new(TargetStatus::VARIANTS).try_map(|word| word.parse::<TargetStatus>())
}

fn metadata(given: &str) -> Result<Object, String> {
    let object = object(given)?;
    if object.contains_key("phalanx") {
        return Err("the key `phalanx` is reserved".to_owned());
    }
    Ok(object)
}

pub(super) fn task(setup: &Setup, verb: TaskVerb) -> VerbResult {
    let named = match &verb {
        TaskVerb::Create(args) => args.owner.as_slice(),
        TaskVerb::Update(args) => args.owner.as_slice(),
        _ => &[],
    };
    let action = match &verb {
        TaskVerb::List { .. } | TaskVerb::Get { .. } | TaskVerb::Export(_) => Action::Look,
        _ => Action::Task,
    };
    let (team, mut owner) = setup.members(named, action)?;
    match verb {
        TaskVerb::Create(args) => create(setup, &team, *args, owner.pop()),
        TaskVerb::List { all } => list(setup, &team, all),
        TaskVerb::Get { id } => {
            let task = ops::task::get(&team, id)?;
            setup.out.print(&task.to_object(), || ui::task_page(&task, setup.out.paint))?;
            Ok(Exit::DONE)
        }
        TaskVerb::Claim { id } => {
            let task = ops::task::claim(&setup.ctx, &team, id)?;
            print_task(
                setup,
                &task,
                &format!("task {id} is in progress, owned by {}", setup.ctx.speaker),
            )
        }
        TaskVerb::Complete { id } => {
            let done = run_with_hooks(setup, &team, move |ctx, team, hooks| {
                ops::task::complete(ctx, team, hooks, id, &ctx.speaker, None)
            })?;
            print_change(setup, &done, &format!("task {id} is completed"))
        }
        TaskVerb::Retry { id } => {
            let task = ops::task::retry(&setup.ctx, &team, id)?;
            let assignee =
                task.owner.as_deref().map(|name| format!(", for {name}")).unwrap_or_default();
            print_task(setup, &task, &format!("task {id} is pending again{assignee}"))
        }
        TaskVerb::Update(args) => update(setup, &team, *args, owner.pop()),
        TaskVerb::Delete { id, force } => {
            let task = ops::task::delete(&setup.ctx, &team, id, force)?;
            print_task(setup, &task, &format!("task {id} is deleted"))
        }
        TaskVerb::Import(args) => task_import::import(setup, &team, &args),
        TaskVerb::Export(args) => task_import::export(setup, &team, &args),
    }
}

/// Runs a verb that calls hooks. They can take long, so a signal kills them and leaves the task
/// unchanged.
fn run_with_hooks(
    setup: &Setup,
    team: &TeamStore,
    verb: impl FnOnce(&Context, &TeamStore, &TeamHooks) -> Result<Completed, OpsError> + Send + 'static,
) -> Result<Completed, Failure> {
    let hooks = ops::hooks::load_hooks(&setup.ctx, team);
    if !hooks.guard_tasks() {
        return Ok(verb(&setup.ctx, team, &hooks)?);
    }
    let (ctx, team, running_hooks) = (setup.ctx.clone(), team.clone(), hooks.clone());
    let stopped = Failure::interrupted("interrupted while hooks were asked", None);
    let done =
        interrupt::run_interruptible(stopped, move || Ok(verb(&ctx, &team, &running_hooks)?));
    if done.as_ref().is_err_and(|failure| failure.exit() == Exit::of(Kind::Interrupted)) {
        hooks.end_all();
    }
    done
}

/// Prints the change of a task, the tasks that it unblocked and the messages of hooks.
fn print_change(setup: &Setup, done: &Completed, words: &str) -> VerbResult {
    done.complaints.iter().for_each(|complaint| setup.out.print_message(complaint));
    let free = done.freed.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ");
    let free = if free.is_empty() { free } else { format!("; free now: {free}") };
    print_task(setup, &done.task, &format!("{words}{free}"))
}

fn print_task(setup: &Setup, task: &Task, words: &str) -> VerbResult {
    setup.out.confirm(&task.to_object(), || words.to_owned())?;
    Ok(Exit::DONE)
}

fn update(
    setup: &Setup,
    team: &TeamStore,
    args: UpdateTaskArgs,
    owner: Option<MemberName>,
) -> VerbResult {
    let (id, fields) = (args.id, args.fields);
    let cwd = fields
        .cwd
        .map(|dir| if dir.is_empty() { Ok(dir) } else { setup.absolute(Path::new(&dir)) });
    let changes = TaskChanges {
        subject: args.subject,
        description: args.description,
        active_form: fields.active_form,
        status: args.status,
        priority: fields.priority,
        role: fields.role,
        cwd: cwd.transpose()?,
        files: fields
            .files
            .map(|files| files.into_iter().filter(|file| !file.trim().is_empty()).collect()),
        run: Some(fields.command).filter(|run| !run.is_empty()),
        env: fields.env.map(|env| env.into_iter().collect()),
        metadata: with_type(fields.metadata, fields.kind),
        owner: owner.map(TaskOwner::Member).or(args.no_owner.then_some(TaskOwner::Nobody)),
        blocked_by: args.blocked_by,
        unblock: args.unblock,
        blocks: args.blocks,
        ..TaskChanges::default()
    };
    if changes == TaskChanges::default() {
        return Err(Failure::usage(
            "no field to change was given",
            "see `phalanx task update --help`",
        ));
    }
    if changes.subject.as_ref().is_some_and(|subject| subject.trim().is_empty()) {
        return Err(Failure::usage("the subject is empty", "give a short title"));
    }
    let done = run_with_hooks(setup, team, move |ctx, team, hooks| {
        ops::task::update(ctx, team, hooks, id, &changes)
    })?;
    let word =
        args.status.map_or("changed".to_owned(), |_| done.task.state.as_str().replace('_', " "));
    print_change(setup, &done, &format!("task {id} is {word}"))
}

/// Returns the metadata with the task's type under the key `type`.
fn with_type(given: Option<Object>, kind: Option<String>) -> Object {
    let mut metadata = given.unwrap_or_default();
    if let Some(kind) = kind {
        wire::put(&mut metadata, "type", kind);
    }
    metadata
}

fn create(
    setup: &Setup,
    team: &TeamStore,
    args: CreateTaskArgs,
    owner: Option<MemberName>,
) -> VerbResult {
    if args.subject.trim().is_empty() {
        return Err(Failure::usage("the subject is empty", "give a short title"));
    }
    let fields = args.fields;
    let new = NewTask {
        subject: args.subject,
        description: args.description,
        active_form: fields.active_form,
        owner,
        blocked_by: args.blocked_by,
        extra: Extra {
            run: fields.command,
            cwd: fields.cwd.map(|dir| setup.absolute(Path::new(&dir))).transpose()?,
            env: fields.env.unwrap_or_default().into_iter().collect(),
            role: fields.role,
            files: fields.files.unwrap_or_default(),
            priority: fields.priority,
            ..Extra::default()
        },
        metadata: with_type(fields.metadata, fields.kind),
        ..NewTask::default()
    };
    let made = ops::task::create(&setup.ctx, team, &[new])?;
    match made.first() {
        Some(task) => print_task(setup, task, &format!("created task {}", task.id)),
        None => Ok(Exit::DONE),
    }
}

fn list(setup: &Setup, team: &TeamStore, all: bool) -> VerbResult {
    let board = ops::task::board(team)?;
    let open = |task: &&Task| all || !task.is_internal() && !task.state.frees_dependants();
    let mut shown: Vec<&Task> = board.tasks.values().filter(open).collect();
    shown.sort_by_key(|task| Reverse(task.extra.priority.unwrap_or(0)));
    for id in &board.unreadable {
        setup.out.print_message(&format!("task {id} cannot be read"));
    }
    if setup.out.json {
        setup.out.print_document(&shown.iter().map(|task| task.to_object()).collect::<Vec<_>>())?;
    } else if shown.is_empty() {
        setup.out.print_message(if all { "no tasks" } else { "no open tasks" });
    } else {
        let ids: Vec<_> = shown.iter().map(|task| task.id).collect();
        setup.out.print_text(&ui::task_table(&board, &ids, setup.out.paint))?;
    }
    Ok(Exit::DONE)
}
