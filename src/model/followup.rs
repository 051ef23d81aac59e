//! When somebody who owes an answer or progress is reminded, and what follows when that was in vain (seed 001, section 10).
//! Pure; who owes what is for the lead to know.

use serde::{Deserialize, Serialize};

use super::id::TaskId;
use super::time::Timestamp;

/// What is done about a silent task in the end (`escalation_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Escalation {
    /// The lead is told, and nothing else is done.
    #[default]
    NotifyLead,
    /// The task fails, and the lead is told.
    FailTask,
}

impl Escalation {
    /// The word in the manifest and in the journal.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Escalation::NotifyLead => "notify_lead",
            Escalation::FailTask => "fail_task",
        }
    }
}

/// How a team is reminded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Followup {
    /// From the question, or the last sign of life, to the first reminder, and from one to the next; not 0.
    pub(crate) interval_ms: u64,
    /// So many; another interval after the last one it is escalated.
    pub(crate) max_reminders: u32,
    pub(crate) escalation: Escalation,
}

/// How many reminders there are where the manifest does not say.
pub(crate) const MAX_REMINDERS: u32 = 3;

/// What is to be said now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It was not said before.
    First,
    Reminder {
        nth: u32,
        of: u32,
    },
    /// All reminders were in vain.
    Escalation {
        after: u32,
        mode: Escalation,
    },
}

impl Step {
    /// The number under which it is written down, so that nobody says it a second time.
    pub(crate) fn times(self) -> u32 {
        match self {
            Step::First => 0,
            Step::Reminder { nth, .. } => nth,
            Step::Escalation { after, .. } => after.saturating_add(1),
        }
    }
}

impl Followup {
    /// What is said next after it was said so many times, and when; none: no more.
    pub(crate) fn next(&self, times: u32, last: Timestamp) -> Option<(Timestamp, Step)> {
        let of = self.max_reminders;
        let step = match times.cmp(&of) {
            std::cmp::Ordering::Less => Step::Reminder { nth: times + 1, of },
            std::cmp::Ordering::Equal => Step::Escalation { after: of, mode: self.escalation },
            std::cmp::Ordering::Greater => return None,
        };
        Some((last.plus_ms(self.interval_ms), step))
    }

    /// The same, if its time has come.
    pub(crate) fn due(&self, times: u32, last: Timestamp, now: Timestamp) -> Option<Step> {
        self.next(times, last).filter(|(at, _)| *at <= now).map(|(_, step)| step)
    }
}

/// How often a request was told of, and when last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    /// [`Step::times`] of what was said last.
    pub(crate) times: u32,
    pub(crate) at: Timestamp,
}

/// How often a member was reminded of the task that it works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reminded {
    pub(crate) task: TaskId,
    /// [`Step::times`] of what was said last; at least 1.
    pub(crate) times: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every step of a team with two reminders, and of one that escalates at once.
    #[test]
    fn reminders_then_the_escalation_then_nothing() {
        let last = Timestamp(1_000);
        for (max_reminders, expected) in [(2, "12E-"), (0, "E---")] {
            let followup =
                Followup { interval_ms: 60, max_reminders, escalation: Escalation::FailTask };
            let said = |times: u32| match followup.due(times, last, Timestamp(1_060)) {
                Some(Step::Reminder { nth, of }) => {
                    assert_eq!((nth, of), (times + 1, max_reminders));
                    nth.to_string()
                }
                Some(Step::Escalation { after, mode }) => {
                    assert_eq!((after, mode), (max_reminders, Escalation::FailTask));
                    "E".to_owned()
                }
                Some(Step::First) | None => "-".to_owned(),
            };
            assert_eq!((0..4).map(said).collect::<String>(), expected);
            assert_eq!(followup.due(0, last, Timestamp(1_059)), None, "not before its time");
        }
    }

    #[test]
    fn each_step_is_written_down_under_a_number_of_its_own() {
        let followup =
            Followup { interval_ms: 1, max_reminders: 3, escalation: Escalation::NotifyLead };
        let mut times = Step::First.times();
        let mut seen = vec![times];
        while let Some((_, step)) = followup.next(times, Timestamp(0)) {
            times = step.times();
            seen.push(times);
        }
        assert_eq!(seen, [0, 1, 2, 3, 4]);
    }
}
