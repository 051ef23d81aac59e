//! The command line of the `task` subcommands.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::args::variable;
use crate::model::id::TaskId;
use crate::model::wire::Object;
use crate::ops::TargetStatus;

#[derive(Debug, Subcommand)]
pub(super) enum TaskVerb {
    Create(Box<Create>),
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
    Update(Box<Update>),
    /// Delete a task that has ended.
    Delete {
        /// Id of the task.
        #[arg(value_parser = task_id)]
        id: TaskId,
        /// Delete it even if it has not ended.
        #[arg(long)]
        force: bool,
    },
}

/// Edit a task of the caller; the lead may edit any.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx task update 3 --owner ada\n  \
    phalanx task update 3 --blocked-by 1 --unblock 2\n  \
    phalanx task update 3 --status in_progress\n  \
    phalanx task update 3 --priority 5 -- cargo test --all\n\n\
    An empty text removes --active-form, --role and --cwd. --file, --env and a command replace what was there.")]
pub(super) struct Update {
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
    pub(super) fields: Fields,
}

/// Create a task.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx task create \"Write the docs\" --owner ada\n  \
    phalanx task create \"Run the tests\" --blocked-by 1 -- cargo test")]
pub(super) struct Create {
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
    pub(super) fields: Fields,
}

/// Fields that `task create` and `task update` share.
#[derive(Debug, Args)]
pub(super) struct Fields {
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
    PossibleValuesParser::new(["pending", "in_progress", "completed"]).map(|word| {
        match word.as_str() {
            "in_progress" => TargetStatus::InProgress,
            "completed" => TargetStatus::Completed,
            _ => TargetStatus::Pending,
        }
    })
}

fn metadata(given: &str) -> Result<Object, String> {
    let object: Object =
        serde_json::from_str(given).map_err(|e| format!("not a JSON object: {e}"))?;
    match object.contains_key("phalanx") {
        true => Err("the key `phalanx` is reserved".to_owned()),
        false => Ok(object),
    }
}

/// Parses a task id, with or without the `#` that output puts before it.
pub(super) fn task_id(given: &str) -> Result<TaskId, String> {
    TaskId::parse(given.strip_prefix('#').unwrap_or(given)).map_err(|e| e.to_string())
}
