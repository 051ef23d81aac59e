//! The command line of an action of the dashboard. Each action runs as a process of its own, so
//! that it goes on if the dashboard ends and is checked like one that a person types. Tests of `cli`
//! parse every line with the definition of the verbs and compare the arguments.

use serde_json::Value;

use super::team_action::{NewMember, NewTeam, RequestAnswer, TeamAction};
use model::board::task_ref::TaskRef;
use model::id::{MemberName, TaskId};
use model::team::worktree::LandingKind;

/// The words of a verb: options as one word each, so that no value is taken for an option.
struct VerbWords(Vec<String>);

impl VerbWords {
    fn new(verb: &str) -> VerbWords {
        VerbWords(verb.split(' ').map(str::to_owned).collect())
    }

    fn flag(mut self, name: &str) -> VerbWords {
        self.0.push(format!("--{name}"));
        self
    }

    fn option(mut self, name: &str, value: &str) -> VerbWords {
        self.0.push(format!("--{name}={value}"));
        self
    }

    fn maybe(self, name: &str, value: Option<&str>) -> VerbWords {
        match value {
            Some(value) => self.option(name, value),
            None => self,
        }
    }

    /// Adds an argument that cannot begin with a dash.
    fn plain(mut self, argument: impl ToString) -> VerbWords {
        self.0.push(argument.to_string());
        self
    }

    /// Ends the line with arguments that may begin with a dash.
    fn texts<const N: usize>(mut self, texts: [&str; N]) -> Vec<String> {
        self.0.push("--".to_owned());
        self.0.extend(texts.map(str::to_owned));
        self.0
    }
}

/// Returns the verb of an action with its arguments.
pub fn command_line(action: &TeamAction) -> Vec<String> {
    let verb = VerbWords::new;
    let member = |name: &str, member: &MemberName| verb(name).texts([member.as_str()]);
    let task = |name: &str, id: &TaskId| verb(name).plain(id);
    match action {
        TeamAction::Send { to, text } => verb("send").texts([to.as_str(), text]),
        TeamAction::Broadcast { text } => verb("broadcast").texts([text.as_str()]),
        TeamAction::Spawn(new) => spawn(new),
        TeamAction::ShutDown(name) => member("shutdown", name),
        TeamAction::Restart(name) => member("restart", name),
        TeamAction::Resume(name) => member("resume", name),
        TeamAction::Focus(name) => member("focus", name),
        TeamAction::Hide(name) => member("hide", name),
        TeamAction::Show(name) => member("show", name),
        TeamAction::Attach(name) => member("attach", name),
        TeamAction::ShowLog(name) => member("logs", name),
        TeamAction::Explain(name) => member("explain", name),
        TeamAction::ShowDiff(name) => member("worktree diff", name),
        TeamAction::Review(None) => vec!["review".to_owned()],
        TeamAction::Review(Some(name)) => member("review", name),
        TeamAction::TryMerge(name) => verb("worktree merge").flag("dry-run").texts([name.as_str()]),
        TeamAction::Merge { member, head, kind } => {
            let line = verb("worktree merge").option("head", head);
            let line = match kind {
                LandingKind::Merge => line,
                LandingKind::Squash => line.flag("squash"),
                LandingKind::Rebase => line.flag("rebase"),
            };
            line.flag("leave-uncommitted").texts([member.as_str()])
        }
        TeamAction::Answer { request, answer, key } => {
            let line = verb("answer").option("via", key);
            let line = match answer {
                RequestAnswer::Approve => line.flag("approve"),
                RequestAnswer::ApproveAlways => line.flag("approve").flag("always"),
                RequestAnswer::ApproveWith(input) => {
                    line.flag("approve").option("input", &Value::from(input.clone()).to_string())
                }
                RequestAnswer::Answers(answers) => {
                    answers.iter().fold(line, |line, answer| line.option("answer", answer))
                }
                RequestAnswer::Reject { reason } => line.flag("reject").option("reason", reason),
            };
            line.texts([request.as_str()])
        }
        // What follows `--` is the command of the task.
        TeamAction::CreateTask { subject } => verb("task create").option("subject", subject).0,
        TeamAction::ShowTask(id) => task("task get", id).0,
        TeamAction::EditTask { task: id, subject, description } => {
            let line = task("task update", id).maybe("subject", subject.as_deref());
            line.maybe("description", description.as_deref()).0
        }
        TeamAction::AssignTask { task: id, to } => task("task assign", id).texts([to.as_str()]),
        TeamAction::RetryTask(id) => task("task retry", id).0,
        TeamAction::ApproveTask(id) => task("task approve", id).0,
        TeamAction::SendBackTask { task: id, reason } => {
            task("task reject", id).option("reason", reason).0
        }
        TeamAction::CancelTask { task: id, reason } => {
            task("task cancel", id).maybe("reason", reason.as_deref()).0
        }
        TeamAction::BlockTask { task: id, by } => task("task block", id).option("by", &names(by)).0,
        TeamAction::UnblockTask { task: id, by } => {
            task("task unblock", id).option("by", &names(by)).0
        }
        TeamAction::CommentTask { task: id, text } => {
            task("task comment", id).texts([text.as_str()])
        }
        TeamAction::EndTeam => verb("down").0,
        TeamAction::StartTeam(NewTeam { source, task, agent }) => {
            let line = verb("up").flag("detach").maybe("task", task.as_deref());
            line.maybe("agent", agent.as_deref()).texts([source.as_str()])
        }
    }
}

fn spawn(new: &NewMember) -> Vec<String> {
    let line = VerbWords::new("spawn").plain(&new.name);
    let line = line.maybe("profile", new.profile.as_deref()).maybe("role", new.role.as_deref());
    let line = line.maybe("model", new.model.as_deref()).maybe("prompt", new.prompt.as_deref());
    if new.worktree { line.flag("worktree").0 } else { line.0 }
}

fn names(tasks: &[TaskRef]) -> String {
    tasks.iter().map(TaskRef::to_string).collect::<Vec<_>>().join(",")
}
