//! The `task` subcommands that change the state of a task or say something about it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use super::output::{print_change, print_task, run_with_hooks};
use crate::args::word;
use crate::fail::{Failure, VerbResult};
use crate::json;
use crate::setup::Setup;
use model::board::task::{Progress, TaskAction};
use model::board::task_ref::TaskRef;
use model::id::MemberName;
use model::team::followup::{Escalation, LONGEST_MINUTES, MOST_REMINDERS, interval_ms};
use ops::board::task::ReminderRequest;
use ops::{self, ClaimKind, Kind, OpsError, TaskChanges, TaskOwner, TaskStep, TeamStore};

#[derive(Debug, Subcommand, Deserialize, JsonSchema)]
#[command(defer = true)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(crate) enum TaskActionVerb {
    Claim(ClaimArgs),
    Complete(CompleteArgs),
    Review(ReviewArgs),
    /// Approve finished work: the task is completed.
    Approve {
        /// Id or key of the task.
        id: TaskRef,
    },
    /// Send finished work back to its owner.
    #[command(after_help = "Example:\n  phalanx task reject 3 --reason \"the tests fail\"\n\n\
        The task is in progress again, and what waits for it goes on waiting. A worker runs its command again.")]
    Reject {
        /// Id or key of the task.
        id: TaskRef,
        /// The work that is left; the owner is notified.
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Cancel the task instead; those that wait for it can start.
        #[arg(long)]
        #[serde(default)]
        cancel: bool,
    },
    /// Cancel a task; those that wait for it can start.
    Cancel {
        /// Id or key of the task.
        id: TaskRef,
        /// Why.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Mark a task as failed; those that wait for it stay blocked.
    Fail {
        /// Id or key of the task.
        id: TaskRef,
        /// Why.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Make a task that has ended, or is stale, pending again.
    #[command(after_help = "Example:\n  phalanx task retry 3\n\n\
        A member that the task was assigned to keeps it, if it is still on the team; else any member may claim it.")]
    Retry {
        /// Id or key of the task.
        id: TaskRef,
    },
    /// Give a task back: it is pending and has no owner.
    Release {
        /// Id or key of the task.
        id: TaskRef,
        /// Why.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Assign a task to a member, which is notified.
    Assign {
        /// Id or key of the task.
        id: TaskRef,
        /// Name of the member.
        name: String,
    },
    /// Let a task wait for others.
    Block {
        /// Id or key of the task.
        id: TaskRef,
        /// Tasks that must be completed first.
        #[arg(long, value_name = "ID", num_args = 1.., value_delimiter = ',', required = true)]
        by: Vec<TaskRef>,
    },
    /// Let a task no longer wait for others.
    Unblock {
        /// Id or key of the task.
        id: TaskRef,
        /// Tasks that need not be completed first [default: all].
        #[arg(long, value_name = "ID", num_args = 1.., value_delimiter = ',')]
        #[serde(default)]
        by: Vec<TaskRef>,
    },
    /// Comment on a task; its owner is notified.
    Comment {
        /// Id or key of the task.
        id: TaskRef,
        /// The comment.
        text: String,
    },
    /// Report how far a task is.
    Progress {
        /// Id or key of the task.
        id: TaskRef,
        /// Percent of the work that is done.
        #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
        percent: u8,
        /// The current step of the work.
        #[arg(default_value = "")]
        #[serde(default)]
        step: String,
    },
    #[serde(alias = "ask_user")]
    Remind(RemindArgs),
    /// End the reminders about a task.
    #[serde(alias = "clear_ask_user")]
    Unremind {
        /// Id or key of the task.
        id: TaskRef,
    },
    /// Attach a file to a task; it stays where it is.
    Attach {
        /// Id or key of the task.
        id: TaskRef,
        /// The file.
        file: PathBuf,
    },
}

/// Claim a task for the caller.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx task claim 3\n  phalanx task claim --next --busy-check\n\n\
    --next takes a task of the caller's first, then one without an owner that its role may take: the highest\n\
    priority, then the oldest. Tasks with a command are for workers."
)]
pub(crate) struct ClaimArgs {
    /// Id or key of the task.
    #[arg(required_unless_present = "next", conflicts_with = "next")]
    #[serde(default)]
    id: Option<TaskRef>,
    /// Claim the next task in the order of priority, then age.
    #[arg(long)]
    #[serde(default)]
    next: bool,
    /// With --next: role to claim for [default: the caller's].
    #[arg(long, value_name = "ROLE", requires = "next")]
    role: Option<String>,
    /// Refuse if the caller has another task in progress.
    #[arg(long)]
    #[serde(default)]
    busy_check: bool,
}

/// Complete a task of the caller; the lead may complete any.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Example:\n  phalanx task complete 3 --result \"all tests pass\" --commit 1a2b3c4\n\n\
    A pending task is claimed first."
)]
pub(crate) struct CompleteArgs {
    /// Id or key of the task.
    id: TaskRef,
    /// Result of the work.
    #[arg(long, value_name = "TEXT")]
    result: Option<String>,
    /// One sentence about the work, for the display of the board.
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// The commit that holds the work.
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,
}

/// Submit finished work for the lead's approval.
#[derive(Debug, Args, Deserialize, JsonSchema)]
pub(crate) struct ReviewArgs {
    /// Id or key of the task.
    id: TaskRef,
    /// Result of the work.
    #[arg(long, value_name = "TEXT")]
    result: Option<String>,
    /// The commit that holds the work.
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,
}

/// Remind the lead of a decision about a task.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(after_help = "Example:\n  phalanx task remind 3 --every 30 \"Which licence?\"\n\n\
    The first reminder is sent after the first interval. The reminders end with the task, or with `task unremind`.")]
pub(crate) struct RemindArgs {
    /// Id or key of the task.
    id: TaskRef,
    /// The question to be decided.
    text: String,
    /// Minutes between two reminders [default: followup_interval_minutes of the team].
    #[arg(long, value_name = "MINUTES", value_parser = minutes)]
    #[serde(default, deserialize_with = "minutes_from_json")]
    #[schemars(with = "Option<f64>")]
    every: Option<u64>,
    /// Number of reminders [default: followup_max_reminders of the team, else 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_REMINDERS)))]
    max: Option<u32>,
    /// Action after the last reminder [default: escalation_mode of the team].
    #[arg(long, value_name = "MODE", value_parser = word::<Escalation>())]
    #[serde(default)]
    #[schemars(schema_with = "json::words::<Escalation>")]
    escalation: Option<Escalation>,
}

/// Parses a number of minutes, with optional decimals, into milliseconds.
fn minutes(given: &str) -> Result<u64, String> {
    interval(given.parse().map_err(|_| "not a number of minutes".to_owned())?)
}

fn minutes_from_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let minutes = Option::<f64>::deserialize(deserializer)?;
    minutes.map(interval).transpose().map_err(de::Error::custom)
}

fn interval(minutes: f64) -> Result<u64, String> {
    interval_ms(minutes).ok_or_else(|| format!("more than 0, and at most {LONGEST_MINUTES}"))
}

impl TaskActionVerb {
    /// Returns the member that the arguments name.
    pub(super) fn named(&self) -> &[String] {
        match self {
            TaskActionVerb::Assign { name, .. } => std::slice::from_ref(name),
            _ => &[],
        }
    }

    /// Returns true for decisions about the work of others.
    pub(super) fn decides(&self) -> bool {
        matches!(self, TaskActionVerb::Approve { .. } | TaskActionVerb::Reject { .. })
    }
}

pub(super) fn perform(
    setup: &Setup,
    team: &TeamStore,
    verb: TaskActionVerb,
    named: Option<MemberName>,
) -> VerbResult {
    let step = TaskStep::of;
    let find = |named: &TaskRef| ops::board::task::find(team, named);
    match verb {
        TaskActionVerb::Claim(args) => claim(setup, team, args),
        TaskActionVerb::Complete(CompleteArgs { id, result, summary, commit }) => {
            let step = TaskStep { result, summary, commit, ..step(TaskAction::Complete) };
            act(setup, team, &id, step, "completed")
        }
        TaskActionVerb::Review(ReviewArgs { id, result, commit }) => {
            let step = TaskStep { result, commit, ..step(TaskAction::Review) };
            act(setup, team, &id, step, "submitted for approval")
        }
        TaskActionVerb::Approve { id } => {
            act(setup, team, &id, step(TaskAction::Approve), "completed")
        }
        TaskActionVerb::Reject { id, reason, cancel } => {
            let (action, words) = if cancel {
                (TaskAction::Cancel, "rejected and cancelled")
            } else {
                (TaskAction::Reject, "sent back")
            };
            act(setup, team, &id, TaskStep { reason: Some(reason), ..step(action) }, words)
        }
        TaskActionVerb::Cancel { id, reason } => {
            act(setup, team, &id, TaskStep { reason, ..step(TaskAction::Cancel) }, "cancelled")
        }
        TaskActionVerb::Fail { id, reason } => {
            act(setup, team, &id, TaskStep { reason, ..step(TaskAction::Fail) }, "failed")
        }
        TaskActionVerb::Release { id, reason } => {
            let step = TaskStep { reason, ..step(TaskAction::Release) };
            act(setup, team, &id, step, "pending and has no owner")
        }
        TaskActionVerb::Retry { id } => {
            let task = ops::board::task::retry(&setup.ctx, team, find(&id)?)?;
            let assignee =
                task.owner.as_deref().map(|name| format!(", for {name}")).unwrap_or_default();
            print_task(setup, &task, &format!("task {id} is pending again{assignee}"))
        }
        TaskActionVerb::Assign { id, name } => {
            let changes =
                TaskChanges { owner: named.map(TaskOwner::Member), ..TaskChanges::default() };
            change(setup, team, &id, changes, &format!("task {id} is assigned to {name}"))
        }
        TaskActionVerb::Block { id, by } => {
            let blocked_by = ops::board::task::find_all(team, &by)?;
            let changes = TaskChanges { blocked_by, ..TaskChanges::default() };
            change(setup, team, &id, changes, &format!("task {id} waits"))
        }
        TaskActionVerb::Unblock { id, by } => {
            let all = || Ok::<_, OpsError>(ops::board::task::get(team, find(&id)?)?.blocked_by);
            let unblock =
                if by.is_empty() { all()? } else { ops::board::task::find_all(team, &by)? };
            let changes = TaskChanges { unblock, ..TaskChanges::default() };
            change(setup, team, &id, changes, &format!("task {id} no longer waits for them"))
        }
        TaskActionVerb::Comment { id, text } => {
            let task = ops::board::task::comment(&setup.ctx, team, find(&id)?, &text)?;
            print_task(setup, &task, &format!("commented on task {id}"))
        }
        TaskActionVerb::Progress { id, percent, step } => {
            let progress = Progress { percent, step };
            let task = ops::board::task::report_progress(&setup.ctx, team, find(&id)?, &progress)?;
            print_task(setup, &task, &format!("task {id} is at {percent} %"))
        }
        TaskActionVerb::Remind(RemindArgs { id, text, every, max, escalation }) => {
            let wanted = ReminderRequest { text, every_ms: every, max, escalation };
            let task = ops::board::task::remind(&setup.ctx, team, find(&id)?, wanted)?;
            print_task(setup, &task, &format!("reminders are set on task {id}"))
        }
        TaskActionVerb::Unremind { id } => {
            let task = ops::board::task::unremind(&setup.ctx, team, find(&id)?)?;
            print_task(setup, &task, &format!("task {id} has no reminders"))
        }
        TaskActionVerb::Attach { id, file } => {
            let path = setup.absolute(&file)?;
            let task = ops::board::task::attach(&setup.ctx, team, find(&id)?, path.as_ref())?;
            print_task(setup, &task, &format!("attached {path} to task {id}"))
        }
    }
}

fn claim(setup: &Setup, team: &TeamStore, args: ClaimArgs) -> VerbResult {
    let (who, busy_check) = (&setup.ctx.speaker, args.busy_check);
    let id = args.id.map(|id| ops::board::task::find(team, &id)).transpose()?;
    let role = match (id, args.role) {
        (None, None) => ops::board::task::role_of(team, who)?,
        (_, given) => given,
    };
    let claimed = || match id {
        Some(id) => ops::board::task::claim(team, id, who, busy_check).map(Some),
        None => {
            let kind = ClaimKind::Prompt { busy_check };
            ops::board::task::claim_next(team, who, role.as_deref(), kind)
        }
    };
    let claimed = match claimed() {
        // Its owner may be dead, and no lead there to notice it.
        Ok(Some(task)) => Some(task),
        Err(e) if !e.is_refused_claim() => return Err(e.into()),
        refused => {
            if ops::starting::catch_up::free_tasks_of_dead(&setup.ctx, team)? {
                claimed()?
            } else {
                refused?
            }
        }
    };
    let Some(task) = claimed else {
        let hint = Some("see what the tasks wait for: `phalanx task list`".to_owned());
        let problem = format!("no task is free for {who}");
        return Err(Failure::new(Kind::NotFound, problem, hint));
    };
    let words = format!("task {} is in progress, owned by {who}", task.id);
    print_task(setup, &task, &words)
}

fn act(setup: &Setup, team: &TeamStore, named: &TaskRef, step: TaskStep, word: &str) -> VerbResult {
    let id = ops::board::task::find(team, named)?;
    let done = run_with_hooks(setup, team, move |ctx, team, hooks| {
        ops::board::task::act(ctx, team, hooks, id, &ctx.speaker, &step)
    })?;
    print_change(setup, &done, &format!("task {named} is {word}"))
}

fn change(
    setup: &Setup,
    team: &TeamStore,
    named: &TaskRef,
    changes: TaskChanges,
    words: &str,
) -> VerbResult {
    let id = ops::board::task::find(team, named)?;
    let done = run_with_hooks(setup, team, move |ctx, team, hooks| {
        ops::board::task::update(ctx, team, hooks, id, &changes)
    })?;
    print_change(setup, &done, words)
}
