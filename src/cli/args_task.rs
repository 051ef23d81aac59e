//! The command line of the task verbs.

use clap::{Args, Subcommand};

use crate::model::id::TaskId;
use crate::model::wire::Object;

/// The verbs for tasks.
#[derive(Debug, Subcommand)]
pub(super) enum TaskVerb {
    Create(Box<Create>),
    /// List open tasks.
    List {
        /// Include completed and cancelled tasks.
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
    phalanx task update 3 --blocked-by 1 --unblock 2")]
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
    /// Text to show while the task runs.
    #[arg(long, value_name = "TEXT")]
    pub(super) active_form: Option<String>,
    /// Member to assign it to.
    #[arg(long, value_name = "NAME")]
    pub(super) owner: Option<String>,
    /// Tasks that must be completed first.
    #[arg(long, value_name = "ID", value_parser = task_id, num_args = 1.., value_delimiter = ',')]
    pub(super) blocked_by: Vec<TaskId>,
    /// Priority; higher numbers come first.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) priority: Option<i64>,
    /// Patterns of the files that it changes.
    #[arg(long = "file", value_name = "PATTERN", num_args = 1..)]
    pub(super) files: Vec<String>,
    /// Kind of task.
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) kind: Option<String>,
    /// Metadata, as a JSON object.
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    pub(super) metadata: Option<Object>,
    /// Command for a worker to run.
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<String>,
}

fn metadata(given: &str) -> Result<Object, String> {
    let object: Object = serde_json::from_str(given).map_err(|e| format!("not a JSON object: {e}"))?;
    match object.contains_key("phalanx") {
        true => Err("the key `phalanx` is reserved".to_owned()),
        false => Ok(object),
    }
}

/// A task's id, with or without the `#` that it is shown with.
pub(super) fn task_id(given: &str) -> Result<TaskId, String> {
    TaskId::parse(given.strip_prefix('#').unwrap_or(given)).map_err(|e| e.to_string())
}
