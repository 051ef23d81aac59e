//! The effects that the lead's step requests. The driver carries them out in order.

use model::board::external_change::ExternalChange;
use model::decisions::request::{ShutdownOutcome, WorkLeft};
use model::id::{Incarnation, MemberName, RequestId, TaskId};
use model::members::budget::BudgetUse;
use model::members::launch::LaunchSpec;
use model::members::lifecycle::Cause;
use model::members::placement::ProcessId;
use model::members::record::MemberRecord;
use model::team::followup::NotificationStep;
use ops::effects::health::Silence;
use ops::ending::remove::MemberRemoval;
use ops::hosts::stop_mode::StopMode;
use ops::team::hooks::Occasion;

/// Shutdown deadline for members that the lead stops by itself, in seconds.
pub const STOP_DEADLINE_S: u64 = 30;

/// An action for the driver.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Watches this process. Reports `Exited` when it ends.
    WatchExit { name: MemberName, incarnation: Incarnation, process: ProcessId },
    /// Shows the states of these runs in the labels of their placements.
    Label { runs: Vec<MemberRecord> },
    /// Records that these messages were handled.
    Acknowledge { ids: Vec<String> },
    /// Asks these members to shut down.
    AskShutdown { names: Vec<MemberName>, reason: String, force: bool },
    /// Stops the run and closes its placement. Reports `RunsStopped`.
    StopRun { name: MemberName, incarnation: Incarnation, mode: StopMode },
    /// Starts these members of a kind. Reports `Started`.
    Start { kind: usize, specs: Vec<LaunchSpec> },
    /// Removes runs that are proven over from the roster, releases their tasks and sends the
    /// notices.
    Remove(Vec<MemberRemoval>),
    /// Records the member's consent to this request and its report on its work.
    Agree { request: RequestId, work_left: WorkLeft },
    /// Closes a request.
    Resolve { request: RequestId, outcome: ShutdownOutcome, answer: Option<String> },
    /// Applies a transition of the member's life cycle.
    MoveOn { name: MemberName, incarnation: Incarnation, cause: Cause, reason: Option<String> },
    /// Records in the team file that the member is not active.
    Deactivate(MemberName),
    /// Records that the member is silent (`None`: no longer), in its record, the journal and the
    /// lead's mailbox.
    Health { name: MemberName, incarnation: Incarnation, silence: Option<Silence> },
    /// Computes the fingerprint of the member's activity. Reports `Activity`.
    CheckActivity { name: MemberName, incarnation: Incarnation },
    /// Fails a task whose time limit has passed.
    FailLate(TaskId),
    /// Releases the tasks of the member, which keeps running.
    Release(MemberName),
    /// Releases the tasks of an owner that has no run, unless it is on the roster.
    ReleaseAbsent(MemberName),
    /// Journals the circuit breaker of a restarted member: its consecutive failures and the delay
    /// until the next start (`None`: not started again). Zero failures mean that it was reset.
    JournalRestart { member: MemberName, failures: u32, delay_ms: Option<u64> },
    /// Ends the task that stands for the readiness of a member, which is ready or will never be.
    SettleReadiness { task: TaskId, member: MemberName },
    /// Starts the member again with its last settings, after its last run has left the team.
    Resume(MemberName),
    /// Adds a member back to the team file after another program has removed it.
    PutBack { name: MemberName, incarnation: Incarnation },
    /// Checks on the screen whether the member is idle without having reported it.
    CheckIdle { name: MemberName, incarnation: Incarnation },
    /// Announces a pending request to the person or program that decides it.
    Announce { id: RequestId, step: NotificationStep },
    /// Announces that a plain program waits at a prompt.
    AnnouncePrompt { name: MemberName, incarnation: Incarnation },
    /// Reminds the owner of a silent task, or carries out the escalation that the team has
    /// configured.
    Remind { name: MemberName, incarnation: Incarnation, task: TaskId, step: NotificationStep },
    /// Resumes a stale task of this owner, which has given a sign of life.
    Recover { task: TaskId, owner: MemberName },
    /// Sends the reminder that a member has set on this task, to the lead.
    SendReminder(TaskId),
    /// Notifies an idle member of a task that it could claim.
    Offer { task: TaskId, name: MemberName, incarnation: Incarnation },
    /// Notifies the lead of a free task that each member that could claim it has given back.
    ReportRefused(TaskId),
    /// Resets the persisted reminder counter of the member.
    ResetReminders { name: MemberName, incarnation: Incarnation },
    /// Reports the results of these tasks to the lead's mailbox.
    Report(Vec<TaskId>),
    /// Journals a change that another program made to a task.
    JournalChange(ExternalChange),
    /// Notifies the owners of these tasks that another program has unblocked them.
    NotifyUnblocked(Vec<TaskId>),
    /// Notifies the lead that a share of a budget is used.
    ReportBudget(BudgetUse),
    /// Asks a member to continue after its usage limit.
    ResumeLimited { name: MemberName, incarnation: Incarnation },
    /// Notifies the lead that a member is at its usage limit and not asked to continue.
    ReportLimit { name: MemberName, incarnation: Incarnation },
    /// Runs the user's hooks for this occasion.
    Hook(Occasion),
    /// Journals a warning.
    Warn { member: Option<MemberName>, text: String },
}

impl Effect {
    /// Returns the effect that asks these members to shut down, if there are any.
    pub(super) fn ask(names: Vec<MemberName>, reason: &str, force: bool) -> Option<Effect> {
        let reason = reason.to_owned();
        (!names.is_empty()).then_some(Effect::AskShutdown { names, reason, force })
    }

    /// Returns what the effect does, to complete "could not".
    pub(super) fn describe(&self) -> String {
        let listed = |names: &mut dyn Iterator<Item = &MemberName>| {
            names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        match self {
            Effect::WatchExit { name, .. } => format!("watch the process of `{name}`"),
            Effect::Label { .. } => "update the labels".to_owned(),
            Effect::Acknowledge { .. } => "record that messages were handled".to_owned(),
            Effect::AskShutdown { names, .. } => {
                format!("ask {} to shut down", listed(&mut names.iter()))
            }
            Effect::StopRun { name, .. } => format!("stop `{name}`"),
            Effect::Start { .. } => "start members".to_owned(),
            Effect::Remove(removed) => {
                format!("remove {}", listed(&mut removed.iter().map(|run| &run.name)))
            }
            Effect::Agree { request, .. } => format!("record the consent to `{request}`"),
            Effect::Resolve { request, .. } => format!("close the request `{request}`"),
            Effect::MoveOn { name, .. } => format!("record the state of `{name}`"),
            Effect::Health { name, .. } => format!("record the health of `{name}`"),
            Effect::CheckActivity { name, .. } => format!("check the activity of `{name}`"),
            Effect::Release(name) | Effect::ReleaseAbsent(name) => {
                format!("release the tasks of `{name}`")
            }
            Effect::FailLate(task) => format!("fail task #{task} at its time limit"),
            Effect::Deactivate(name) => format!("record that `{name}` is not active"),
            Effect::JournalRestart { member, .. } => format!("journal the restarts of `{member}`"),
            Effect::SettleReadiness { task, .. } => format!("settle the readiness task #{task}"),
            Effect::Resume(name) => format!("start `{name}` again"),
            Effect::PutBack { name, .. } => format!("put `{name}` back into the team file"),
            Effect::CheckIdle { name, .. } => format!("check whether `{name}` is idle"),
            Effect::Announce { id, .. } => format!("announce the request `{id}`"),
            Effect::AnnouncePrompt { name, .. } => format!("announce the prompt of `{name}`"),
            Effect::Remind { name, task, .. } => format!("remind `{name}` of task #{task}"),
            Effect::Recover { task, owner } => format!("resume task #{task} of `{owner}`"),
            Effect::SendReminder(task) => format!("send the reminder of task #{task}"),
            Effect::Offer { task, name, .. } => format!("tell `{name}` of task #{task}"),
            Effect::ReportRefused(task) => format!("report that task #{task} was given back"),
            Effect::ResetReminders { name, .. } => format!("reset the reminders of `{name}`"),
            Effect::Report(_) => "report results to the lead".to_owned(),
            Effect::JournalChange(_) => "journal a change of a task by another program".to_owned(),
            Effect::NotifyUnblocked(_) => "notify the owners of unblocked tasks".to_owned(),
            Effect::ReportBudget(_) => "report the use of a budget".to_owned(),
            Effect::ResumeLimited { name, .. } => format!("ask `{name}` to continue"),
            Effect::ReportLimit { name, .. } => format!("report the usage limit of `{name}`"),
            Effect::Hook(occasion) => format!("run the hooks for {}", occasion.event.as_str()),
            Effect::Warn { .. } => "journal a warning".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effect_is_described_in_words_that_complete_a_sentence() {
        let name = |name| MemberName::new(name).expect("name");
        let both = vec![name("ann"), name("bob")];
        let ask = Effect::AskShutdown { names: both, reason: "done".to_owned(), force: false };
        assert_eq!(ask.describe(), "ask `ann`, `bob` to shut down");
        assert_eq!(Effect::Release(name("ann")).describe(), "release the tasks of `ann`");
        let resolve = Effect::Resolve {
            request: RequestId::shutdown(5, &name("ann")),
            outcome: ShutdownOutcome::Closed,
            answer: None,
        };
        assert_eq!(resolve.describe(), "close the request `shutdown-5@ann`");
    }
}
