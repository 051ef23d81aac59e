//! Common texts and colours for time spans and states.

use crate::paint::Tint;
use crate::table::{Cell, maybe, tinted};
use model::board::task::TaskState;
use model::members::assessment::Doing;
use model::members::lifecycle::MemberState;
use model::time;
use ops::members::status::ShownState;

/// Formats a time span, below a minute with tenths of a second: `2.1s`, `12.3s`, `3m04s`.
pub(crate) fn span(ms: u64) -> String {
    match ms {
        0..60_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        _ => time::human(ms),
    }
}

/// Returns the colour of what a member is doing.
pub(crate) fn state_tint(doing: &Doing) -> Tint {
    match doing {
        Doing::Working | Doing::Running => Tint::Good,
        Doing::Waiting(_) | Doing::Unresponsive | Doing::Stopping => Tint::Warn,
        Doing::Retrying | Doing::Restarting(_) => Tint::Warn,
        Doing::Starting | Doing::Idle | Doing::Ended(MemberState::Completed) => Tint::Plain,
        Doing::Ended(_) => Tint::Bad,
    }
}

/// Returns the field of a member's state in a table.
pub(crate) fn state_cell(doing: &Doing) -> Cell {
    tinted(state_tint(doing), doing.words())
}

/// Returns the field of the reason in a table: what a member waits for, why it ended, its work.
pub(crate) fn reason_cell(state: &ShownState) -> Cell {
    maybe(state.about())
}

/// Formats the counts that are not 0: `2 completed, 1 failed`.
pub(crate) fn count_list(counted: &[(usize, &str)]) -> String {
    let some = counted.iter().filter(|(n, _)| *n > 0);
    some.map(|(n, word)| format!("{n} {word}")).collect::<Vec<_>>().join(", ")
}

pub(crate) fn member_word(state: MemberState) -> &'static str {
    match state {
        MemberState::ShutdownRequested => "asked to end",
        MemberState::AwaitingPlan => "waits for approval",
        MemberState::AwaitingPermission => "waits for permission",
        MemberState::Pending
        | MemberState::Starting
        | MemberState::Working
        | MemberState::Idle
        | MemberState::Completed
        | MemberState::Failed
        | MemberState::Killed
        | MemberState::Disappeared => state.as_str(),
    }
}

pub(crate) fn task_word(state: TaskState) -> &'static str {
    match state {
        TaskState::InProgress => "in progress",
        TaskState::InReview => "in review",
        TaskState::Pending
        | TaskState::Blocked
        | TaskState::Stopping
        | TaskState::Completed
        | TaskState::Failed
        | TaskState::Cancelled
        | TaskState::Stale => state.as_str(),
    }
}

/// Returns the symbol and colour of a task's state in a list.
pub(crate) fn task_mark(state: TaskState) -> (&'static str, Tint) {
    match state {
        TaskState::Pending | TaskState::Blocked => ("·", Tint::Dim),
        TaskState::InProgress => ("▸", Tint::Bold),
        TaskState::Stopping => ("■", Tint::Warn),
        TaskState::InReview => ("?", Tint::Warn),
        TaskState::Stale => ("!", Tint::Warn),
        TaskState::Completed => ("✓", Tint::Good),
        TaskState::Failed => ("✗", Tint::Bad),
        TaskState::Cancelled => ("-", Tint::Dim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_below_a_minute_have_tenths() {
        assert_eq!(span(2_140), "2.1s");
        assert_eq!(span(12_399), "12.3s");
        assert_eq!(span(184_000), "3m04s");
    }
}
