//! Actions on the team on display, as values. `cli::watch` makes the command line of one.

use serde_json::{Map, Value};

use model::board::task_ref::TaskRef;
use model::id::{MemberName, RequestId, TaskId};
use model::team::worktree::LandingKind;

/// An action on a team, with the object that it acts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TeamAction {
    Send {
        to: MemberName,
        text: String,
    },
    Broadcast {
        text: String,
    },
    Spawn(NewMember),
    /// Asks a member to end. An ended one leaves the list.
    ShutDown(MemberName),
    Restart(MemberName),
    Resume(MemberName),
    Focus(MemberName),
    Hide(MemberName),
    Show(MemberName),
    Attach(MemberName),
    ShowLog(MemberName),
    Explain(MemberName),
    ShowDiff(MemberName),
    /// Opens the review of a member's work, or the list of all work.
    Review(Option<MemberName>),
    TryMerge(MemberName),
    /// Lands the commits of a member up to this one.
    Merge {
        member: MemberName,
        head: String,
        kind: LandingKind,
    },
    Answer {
        request: RequestId,
        answer: RequestAnswer,
        /// The key that the person pressed, for the journal.
        key: String,
    },
    CreateTask {
        subject: String,
    },
    ShowTask(TaskId),
    EditTask {
        task: TaskId,
        /// `None` if it does not change.
        subject: Option<String>,
        description: Option<String>,
    },
    AssignTask {
        task: TaskId,
        to: MemberName,
    },
    RetryTask(TaskId),
    ApproveTask(TaskId),
    SendBackTask {
        task: TaskId,
        reason: String,
    },
    CancelTask {
        task: TaskId,
        reason: Option<String>,
    },
    BlockTask {
        task: TaskId,
        by: Vec<TaskRef>,
    },
    UnblockTask {
        task: TaskId,
        /// Empty for all.
        by: Vec<TaskRef>,
    },
    CommentTask {
        task: TaskId,
        text: String,
    },
    /// Ends the members of the team on display, and deletes it.
    EndTeam,
    StartTeam(NewTeam),
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestAnswer {
    Approve,
    /// Approves, and adds a rule that allows the same from now on.
    ApproveAlways,
    /// Approves the use of a tool with another input.
    ApproveWith(Map<String, Value>),
    /// Answers the questions of the program to its user, each in the form of `answer --answer`.
    Answers(Vec<String>),
    Reject {
        reason: String,
    },
}

/// A member that is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMember {
    pub name: MemberName,
    pub profile: Option<String>,
    pub role: Option<String>,
    pub model: Option<String>,
    pub prompt: Option<String>,
    pub worktree: bool,
}

/// A team that is to be started in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTeam {
    /// The name of a template, or the path of a manifest.
    pub source: String,
    /// The task for the team of a template.
    pub task: Option<String>,
    /// The profile of the agents of a template.
    pub agent: Option<String>,
}

impl TeamAction {
    /// Describes the action for the line at the bottom.
    pub(super) fn describe(&self) -> String {
        match self {
            TeamAction::Send { to, .. } => format!("message to {to}"),
            TeamAction::Broadcast { .. } => "message to all members".to_owned(),
            TeamAction::Spawn(member) => format!("spawn {}", member.name),
            TeamAction::ShutDown(name) => format!("shut down {name}"),
            TeamAction::Restart(name) => format!("restart {name}"),
            TeamAction::Resume(name) => format!("resume {name}"),
            TeamAction::Focus(name) => format!("focus {name}"),
            TeamAction::Hide(name) => format!("hide {name}"),
            TeamAction::Show(name) => format!("show {name}"),
            TeamAction::Attach(name) => format!("attach to {name}"),
            TeamAction::ShowLog(name) => format!("output of {name}"),
            TeamAction::Explain(name) => name.to_string(),
            TeamAction::ShowDiff(name) => format!("diff of {name}"),
            TeamAction::Review(None) => "reviews".to_owned(),
            TeamAction::Review(Some(name)) => format!("review of {name}"),
            TeamAction::TryMerge(name) => format!("dry run of the merge of {name}"),
            TeamAction::Merge { member, .. } => format!("merge the commits of {member}"),
            TeamAction::Answer { request, .. } => format!("answer {request}"),
            TeamAction::CreateTask { .. } => "new task".to_owned(),
            TeamAction::ShowTask(task) => format!("#{task}"),
            TeamAction::EditTask { task, .. } => format!("edit #{task}"),
            TeamAction::AssignTask { task, to } => format!("assign #{task} to {to}"),
            TeamAction::RetryTask(task) => format!("retry #{task}"),
            TeamAction::ApproveTask(task) => format!("approve #{task}"),
            TeamAction::SendBackTask { task, .. } => format!("send back #{task}"),
            TeamAction::CancelTask { task, .. } => format!("cancel #{task}"),
            TeamAction::BlockTask { task, .. } => format!("block #{task}"),
            TeamAction::UnblockTask { task, .. } => format!("unblock #{task}"),
            TeamAction::CommentTask { task, .. } => format!("comment on #{task}"),
            TeamAction::EndTeam => "end the team".to_owned(),
            TeamAction::StartTeam(team) => format!("start a team from {}", team.source),
        }
    }
}
