//! The command line of the task verbs.

use clap::{Args, Subcommand};

use crate::model::id::TaskId;
use crate::model::wire::Object;

/// What can be done with tasks.
#[derive(Debug, Subcommand)]
pub(super) enum TaskVerb {
    Create(Box<Create>),
    /// List open tasks.
    List {
        /// Completed and cancelled ones, too.
        #[arg(long)]
        all: bool,
    },
    /// Show one task.
    Get {
        #[arg(value_parser = task_id)]
        id: TaskId,
    },
    /// Take a task for the speaker.
    Claim {
        #[arg(value_parser = task_id)]
        id: TaskId,
    },
    /// Say that a task of the speaker is done; the lead may say it of any.
    Complete {
        #[arg(value_parser = task_id)]
        id: TaskId,
    },
    Update(Box<Update>),
    /// Take a task that is over off the board.
    Delete {
        #[arg(value_parser = task_id)]
        id: TaskId,
        /// Even if it is not over.
        #[arg(long)]
        force: bool,
    },
}

/// Edit a task of the speaker; the lead may edit any.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx task update 3 --owner ada\n  \
    phalanx task update 3 --blocked-by 1 --unblock 2")]
pub(super) struct Update {
    #[arg(value_parser = task_id)]
    pub(super) id: TaskId,
    /// What is to be done, in a few words.
    #[arg(long, value_name = "TEXT")]
    pub(super) subject: Option<String>,
    /// What is to be done, at length.
    #[arg(long, value_name = "TEXT")]
    pub(super) description: Option<String>,
    /// The member who is to do it; work that another one had begun goes back to pending.
    #[arg(long, value_name = "NAME", conflicts_with = "no_owner")]
    pub(super) owner: Option<String>,
    /// Whoever is free may do it.
    #[arg(long)]
    pub(super) no_owner: bool,
    /// Tasks that must be completed before.
    #[arg(long, value_name = "ID", value_parser = task_id, num_args = 1.., value_delimiter = ',')]
    pub(super) blocked_by: Vec<TaskId>,
    /// Tasks that need not be completed before any more.
    #[arg(long, value_name = "ID", value_parser = task_id, num_args = 1.., value_delimiter = ',')]
    pub(super) unblock: Vec<TaskId>,
}

/// Put a task on the board.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx task create \"Write the docs\" --owner ada\n  \
    phalanx task create \"Run the tests\" --blocked-by 1 -- cargo test")]
pub(super) struct Create {
    /// What is to be done, in a few words.
    pub(super) subject: String,
    /// What is to be done, at length.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) description: String,
    /// What is shown while it is being done.
    #[arg(long, value_name = "TEXT")]
    pub(super) active_form: Option<String>,
    /// The member who is to do it.
    #[arg(long, value_name = "NAME")]
    pub(super) owner: Option<String>,
    /// Tasks that must be completed before.
    #[arg(long, value_name = "ID", value_parser = task_id, num_args = 1.., value_delimiter = ',')]
    pub(super) blocked_by: Vec<TaskId>,
    /// How urgent it is; a higher number is more so.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) priority: Option<i64>,
    /// Patterns of the files it will touch.
    #[arg(long = "file", value_name = "PATTERN", num_args = 1..)]
    pub(super) files: Vec<String>,
    /// What kind of task it is.
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) kind: Option<String>,
    /// More facts, as a JSON object.
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    pub(super) metadata: Option<Object>,
    /// What a worker runs.
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
