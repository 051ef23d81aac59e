//! The `task` subcommands.

mod actions;
mod output;
mod views;

use std::path::Path;

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use actions::TaskActionVerb;
use output::{print_change, print_task, run_with_hooks, warn_if_unnoticed};
pub(crate) use views::ListTasksArgs;
use views::{document, get, graph, list, scopes, search};

use crate::args::word;
use crate::board::task_import::{self, ExportTasksArgs, ImportTasksArgs};
use crate::fail::{Exit, Failure, VerbResult};
use crate::json;
use crate::mail::scope::ScopeArgs;
use crate::setup::Setup;
use model::board::task::TaskFields;
use model::board::task_ref::TaskRef;
use model::id::MemberName;
use ops::authority::Action;
use ops::{self, NewTask, TargetStatus, TaskChanges, TaskOwner, TeamStore};
use ui::GraphFormat;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum TaskVerb {
    Create(Box<CreateTaskArgs>),
    List(ListTasksArgs),
    /// List the origins of tasks, with the number of tasks of each.
    Scopes,
    /// Draw the dependencies of the open tasks.
    #[command(after_help = "Examples:\n  phalanx task graph\n  \
        phalanx task graph --format dot | dot -Tsvg >tasks.svg\n  \
        phalanx task graph --all --format mermaid")]
    Graph {
        /// Form of the drawing.
        #[arg(long, value_name = "FORM", value_parser = word::<GraphFormat>())]
        #[arg(default_value = "text")]
        format: GraphFormat,
        /// Include completed and cancelled tasks.
        #[arg(long)]
        all: bool,
    },
    /// Search for tasks that contain all words, best hits first.
    #[command(after_help = "Example:\n  phalanx task search login token --limit 5\n\n\
        A word matches inside longer words. Without capitals it ignores case.")]
    Search {
        /// Words in the subject, the description or the comments.
        #[arg(required = true, value_name = "QUERY")]
        words: Vec<String>,
        /// Maximum number of tasks to print.
        #[arg(long, value_name = "N", default_value_t = 30)]
        limit: usize,
    },
    /// Show one task with its comments and files.
    Get {
        /// Id or key of the task.
        id: TaskRef,
        /// Show the whole result, also if it has more than 8000 characters.
        #[arg(long)]
        full: bool,
    },
    #[command(flatten)]
    Action(TaskActionVerb),
    Update(Box<UpdateTaskArgs>),
    /// Delete a task that has ended.
    Delete {
        /// Id or key of the task.
        id: TaskRef,
        /// Delete it even if it has not ended.
        #[arg(long)]
        force: bool,
    },
    Import(ImportTasksArgs),
    Export(ExportTasksArgs),
}

/// Create a task.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(after_help = "Examples:\n  phalanx task create \"Write the docs\" --owner ada\n  \
    phalanx task create \"Run the tests\" --blocked-by 1 -- cargo test")]
pub(crate) struct CreateTaskArgs {
    /// Short title.
    #[arg(
        required_unless_present = "subject_option",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) subject: String,
    /// Short title that may begin with a dash.
    #[arg(long = "subject", value_name = "TEXT", conflicts_with = "subject")]
    #[serde(skip)]
    pub(crate) subject_option: Option<String>,
    /// Full description.
    #[arg(long, value_name = "TEXT", default_value = "")]
    #[serde(default)]
    pub(crate) description: String,
    /// Member to assign it to.
    #[arg(help_heading = "Assignment", long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Tasks that must be completed first.
    #[arg(help_heading = "Assignment", long, value_name = "ID", num_args = 1.., value_delimiter = ',')]
    #[serde(default)]
    pub(crate) blocked_by: Vec<TaskRef>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) fields: TaskFields,
}

/// Edit a task of the caller; the lead may edit any.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(after_help = "Examples:\n  phalanx task update 3 --owner ada\n  \
    phalanx task update 3 --blocked-by 1 --unblock 2\n  \
    phalanx task update 3 --status in_progress\n  \
    phalanx task update 3 --priority 5 -- cargo test --all\n\n\
    An empty text removes --active-form, --role, --type and --cwd. --file, --label, --env and a command replace what was there.")]
pub(crate) struct UpdateTaskArgs {
    /// Id or key of the task.
    pub(crate) id: TaskRef,
    /// Short title.
    #[arg(long, value_name = "TEXT")]
    pub(crate) subject: Option<String>,
    /// Full description.
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Status; `completed` runs the hooks first.
    #[arg(long, value_name = "STATUS", value_parser = word::<TargetStatus>())]
    #[serde(default)]
    #[schemars(schema_with = "json::words::<TargetStatus>")]
    pub(crate) status: Option<TargetStatus>,
    /// Member to assign it to; work begun by another member returns to pending.
    #[arg(help_heading = "Assignment", long, value_name = "NAME", conflicts_with = "no_owner")]
    pub(crate) owner: Option<String>,
    /// Assign it to no member; any free one may claim it.
    #[arg(help_heading = "Assignment", long)]
    #[serde(default)]
    pub(crate) no_owner: bool,
    /// Tasks that must be completed first.
    #[arg(help_heading = "Assignment", long, value_name = "ID", num_args = 1.., value_delimiter = ',')]
    #[serde(default)]
    pub(crate) blocked_by: Vec<TaskRef>,
    /// Tasks that no longer have to be completed first.
    #[arg(help_heading = "Assignment", long, value_name = "ID", num_args = 1.., value_delimiter = ',')]
    #[serde(default)]
    pub(crate) unblock: Vec<TaskRef>,
    /// Tasks that have to wait for this one.
    #[arg(help_heading = "Assignment", long, value_name = "ID", num_args = 1.., value_delimiter = ',')]
    #[serde(default)]
    pub(crate) blocks: Vec<TaskRef>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) fields: TaskFields,
}

pub(crate) fn task(setup: &Setup, verb: TaskVerb) -> VerbResult {
    let named = match &verb {
        TaskVerb::Create(args) => args.owner.as_slice(),
        TaskVerb::Update(args) => args.owner.as_slice(),
        TaskVerb::List(args) => args.owner.as_slice(),
        TaskVerb::Action(verb) => verb.named(),
        _ => &[],
    };
    let action = match &verb {
        TaskVerb::List(_)
        | TaskVerb::Get { .. }
        | TaskVerb::Graph { .. }
        | TaskVerb::Search { .. }
        | TaskVerb::Scopes
        | TaskVerb::Export(_) => Action::Look,
        TaskVerb::Action(verb) if verb.decides() => Action::DecideTask,
        _ => Action::Task,
    };
    let (team, mut owner) = setup.members(named, action)?;
    match verb {
        TaskVerb::Create(args) => create(setup, &team, *args, owner.pop()),
        TaskVerb::List(args) => list(setup, &team, &args, owner.pop()),
        TaskVerb::Scopes => scopes(setup, &team),
        TaskVerb::Graph { format, all } => graph(setup, &team, format, all),
        TaskVerb::Search { words, limit } => search(setup, &team, &words.join(" "), limit),
        TaskVerb::Get { id, full } => get(setup, &team, ops::board::task::find(&team, &id)?, full),
        TaskVerb::Action(verb) => actions::perform(setup, &team, verb, owner.pop()),
        TaskVerb::Update(args) => update(setup, &team, *args, owner.pop()),
        TaskVerb::Delete { id, force } => {
            let id = ops::board::task::find(&team, &id)?;
            let task = ops::board::task::delete(&setup.ctx, &team, id, force)?;
            print_task(setup, &task, &format!("task {id} is deleted"))
        }
        TaskVerb::Import(args) => task_import::import(setup, &team, &args),
        TaskVerb::Export(args) => task_import::export(setup, &team, &args),
    }
}

fn update(
    setup: &Setup,
    team: &TeamStore,
    args: UpdateTaskArgs,
    owner: Option<MemberName>,
) -> VerbResult {
    let id = ops::board::task::find(team, &args.id)?;
    let changes = TaskChanges {
        subject: args.subject,
        description: args.description,
        fields: resolve(setup, args.fields)?,
        status: args.status,
        owner: owner.map(TaskOwner::Member).or(args.no_owner.then_some(TaskOwner::Nobody)),
        blocked_by: ops::board::task::find_all(team, &args.blocked_by)?,
        unblock: ops::board::task::find_all(team, &args.unblock)?,
        blocks: ops::board::task::find_all(team, &args.blocks)?,
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
        ops::board::task::update(ctx, team, hooks, id, &changes)
    })?;
    let word =
        args.status.map_or("changed".to_owned(), |_| done.task.state.as_str().replace('_', " "));
    print_change(setup, &done, &format!("task {id} is {word}"))
}

fn create(
    setup: &Setup,
    team: &TeamStore,
    args: CreateTaskArgs,
    owner: Option<MemberName>,
) -> VerbResult {
    let subject = args.subject_option.unwrap_or(args.subject);
    if subject.trim().is_empty() {
        return Err(Failure::usage("the subject is empty", "give a short title"));
    }
    let new = NewTask {
        subject,
        description: args.description,
        fields: resolve(setup, args.fields)?,
        scope: args.scope.resolve(setup)?,
        owner,
        blocked_by: ops::board::task::find_all(team, &args.blocked_by)?,
        ..NewTask::default()
    };
    let made = ops::board::task::create(&setup.ctx, team, &[new])?;
    if let Some(task) = made.first() {
        let words = || format!("created task {}", task.id);
        setup.out.confirm_new(&document(task, task.state), task.id, words)?;
        warn_if_unnoticed(setup, team, task)?;
    }
    Ok(Exit::DONE)
}

/// Resolves the working directory against that of the caller.
fn resolve(setup: &Setup, fields: TaskFields) -> Result<TaskFields, Failure> {
    let absolute =
        |dir: String| if dir.is_empty() { Ok(dir) } else { setup.absolute(Path::new(&dir)) };
    Ok(TaskFields { cwd: fields.cwd.map(absolute).transpose()?, ..fields })
}
