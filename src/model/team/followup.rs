//! The schedule of reminders for overdue answers and silent tasks, and the escalation that follows.
//! The lead tracks who owes what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::time::Timestamp;

/// The action after the last reminder (`escalation_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Escalation {
    /// Notifies the lead. A silent task becomes stale.
    #[default]
    NotifyLead,
    /// Fails the task and notifies the lead.
    FailTask,
}

impl Escalation {
    /// The name in the manifest and in the journal.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Reminder settings of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReminderPolicy {
    /// Time from the request or the last activity to the first reminder, and between reminders.
    /// Milliseconds, not 0.
    pub interval_ms: u64,
    /// Number of reminders. The escalation follows one interval after the last.
    pub max_reminders: u32,
    pub escalation: Escalation,
}

/// Default number of reminders.
pub const MAX_REMINDERS: u32 = 3;
/// Highest number of reminders that can be set.
pub const MOST_REMINDERS: u32 = 1000;
/// Longest interval that can be set, in minutes: a year.
pub const LONGEST_MINUTES: f64 = 525_600.0;

/// Returns an interval in milliseconds; `None` unless it is at least 1 ms and at most
/// [`LONGEST_MINUTES`].
pub fn interval_ms(minutes: f64) -> Option<u64> {
    const MS_IN_A_MINUTE: f64 = 60_000.0;
    let ms = (minutes * MS_IN_A_MINUTE).round();
    // Within these bounds the conversion is exact to the millisecond; they also exclude NaN.
    let is_valid = (1.0..=LONGEST_MINUTES * MS_IN_A_MINUTE).contains(&ms);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is within its bounds"
    )]
    is_valid.then_some(ms as u64)
}

/// The next notification to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationStep {
    /// The initial notification.
    First,
    Reminder {
        nth: u32,
        of: u32,
    },
    /// All reminders went unanswered.
    Escalation {
        after: u32,
        mode: Escalation,
    },
}

impl NotificationStep {
    /// The number recorded for this step, so that it is not sent twice.
    pub fn times(self) -> u32 {
        match self {
            NotificationStep::First => 0,
            NotificationStep::Reminder { nth, .. } => nth,
            NotificationStep::Escalation { after, .. } => after.saturating_add(1),
        }
    }
}

impl ReminderPolicy {
    /// Returns the step after `times` was recorded at `last`, and when it is due; `None` after the
    /// escalation.
    pub fn next(&self, times: u32, last: Timestamp) -> Option<(Timestamp, NotificationStep)> {
        let of = self.max_reminders;
        let step = match times.cmp(&of) {
            std::cmp::Ordering::Less => NotificationStep::Reminder { nth: times + 1, of },
            std::cmp::Ordering::Equal => {
                NotificationStep::Escalation { after: of, mode: self.escalation }
            }
            std::cmp::Ordering::Greater => return None,
        };
        Some((last.plus_ms(self.interval_ms), step))
    }

    /// Returns the next step if it is due at `now`.
    pub fn due(&self, times: u32, last: Timestamp, now: Timestamp) -> Option<NotificationStep> {
        self.next(times, last).filter(|(at, _)| *at <= now).map(|(_, step)| step)
    }
}

/// The last notification sent about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastNotification {
    /// [`NotificationStep::times`] of the last step sent.
    pub times: u32,
    pub at: Timestamp,
}

/// The last reminder sent to a member about its current task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reminded {
    pub task: TaskId,
    /// [`NotificationStep::times`] of the last step sent; at least 1.
    pub times: u32,
}

/// A reminder that a member has set on a task, for the lead and the person who watches it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReminder {
    /// The question to be decided.
    pub text: String,
    /// Time between two reminders, in milliseconds.
    pub every_ms: u64,
    /// Number of reminders. The escalation follows one interval after the last.
    pub max: u32,
    pub escalation: Escalation,
    /// The member that has set it.
    pub by: String,
    /// [`NotificationStep::times`] of the last step sent.
    #[serde(default)]
    pub sent: u32,
    /// Time of the last step; before the first, the time at which the reminder was set.
    pub last: Timestamp,
}

impl TaskReminder {
    /// Returns the next step and when it is due; `None` after the escalation. The numbers are kept
    /// within the bounds of the command line, because another program may have written them.
    pub fn next(&self) -> Option<(Timestamp, NotificationStep)> {
        let policy = ReminderPolicy {
            interval_ms: self.every_ms.max(1),
            max_reminders: self.max.min(MOST_REMINDERS),
            escalation: self.escalation,
        };
        policy.next(self.sent, self.last)
    }

    /// Returns the next step if it is due at `now`.
    pub fn due(&self, now: Timestamp) -> Option<NotificationStep> {
        self.next().filter(|(at, _)| *at <= now).map(|(_, step)| step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A team with two reminders, and one that escalates at once.
    #[test]
    fn reminders_end_with_one_escalation() {
        let last = Timestamp(1_000);
        for (max_reminders, expected) in [(2, "12E-"), (0, "E---")] {
            let followup =
                ReminderPolicy { interval_ms: 60, max_reminders, escalation: Escalation::FailTask };
            let said = |times: u32| match followup.due(times, last, Timestamp(1_060)) {
                Some(NotificationStep::Reminder { nth, of }) => {
                    assert_eq!((nth, of), (times + 1, max_reminders));
                    nth.to_string()
                }
                Some(NotificationStep::Escalation { after, mode }) => {
                    assert_eq!((after, mode), (max_reminders, Escalation::FailTask));
                    "E".to_owned()
                }
                Some(NotificationStep::First) | None => "-".to_owned(),
            };
            assert_eq!((0..4).map(said).collect::<String>(), expected);
            assert_eq!(followup.due(0, last, Timestamp(1_059)), None, "not before its time");
        }
    }

    #[test]
    fn each_step_is_recorded_under_a_distinct_number() {
        let followup =
            ReminderPolicy { interval_ms: 1, max_reminders: 3, escalation: Escalation::NotifyLead };
        let mut times = NotificationStep::First.times();
        let mut seen = vec![times];
        while let Some((_, step)) = followup.next(times, Timestamp(0)) {
            times = step.times();
            seen.push(times);
        }
        assert_eq!(seen, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn numbers_of_a_reminder_are_kept_within_bounds() {
        let reminder = TaskReminder {
            text: String::new(),
            every_ms: 0,
            max: u32::MAX,
            escalation: Escalation::NotifyLead,
            by: String::new(),
            sent: MOST_REMINDERS,
            last: Timestamp(7),
        };
        let escalation =
            NotificationStep::Escalation { after: MOST_REMINDERS, mode: Escalation::NotifyLead };
        assert_eq!(reminder.next(), Some((Timestamp(8), escalation)));
        assert_eq!(reminder.due(Timestamp(7)), None);
        let escalated = TaskReminder { sent: escalation.times(), ..reminder };
        assert_eq!(escalated.next(), None);
    }
}
