//! Common texts and colours for time spans and states.

use super::paint::Tint;
use super::table::{Cell, tinted};
use crate::model::lifecycle::MemberState;
use crate::model::task::TaskState;
use crate::model::time;

/// Formats a time span, below a minute with tenths of a second: `2.1s`, `12.3s`, `3m04s`.
pub(crate) fn span(ms: u64) -> String {
    match ms {
        0..60_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        _ => time::human(ms),
    }
}

/// Returns the colour of a state as `ops` names it.
pub(super) fn state_tint(word: &str) -> Tint {
    match word {
        "working" => Tint::Good,
        "shutdown_requested" | "unresponsive" | "limited" => Tint::Warn,
        "failed" | "killed" | "disappeared" => Tint::Bad,
        _ => Tint::Plain,
    }
}

/// Returns the field of a state in a table.
pub(super) fn state_cell(state: &str) -> Cell {
    tinted(state_tint(state), state.replace('_', " "))
}

/// Formats the counts that are not 0: `2 completed, 1 failed`.
pub(super) fn count_list(counted: &[(usize, &str)]) -> String {
    let some = counted.iter().filter(|(n, _)| *n > 0);
    some.map(|(n, word)| format!("{n} {word}")).collect::<Vec<_>>().join(", ")
}

pub(super) fn member_tint(state: MemberState) -> Tint {
    match state {
        MemberState::Pending
        | MemberState::Starting
        | MemberState::Idle
        | MemberState::Completed => Tint::Plain,
        MemberState::Working => Tint::Good,
        MemberState::AwaitingPlan
        | MemberState::AwaitingPermission
        | MemberState::ShutdownRequested => Tint::Warn,
        MemberState::Failed | MemberState::Killed | MemberState::Disappeared => Tint::Bad,
    }
}

pub(super) fn member_word(state: MemberState) -> &'static str {
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

pub(super) fn task_word(state: TaskState) -> &'static str {
    match state {
        TaskState::InProgress => "in progress",
        TaskState::InReview => "in review",
        TaskState::Pending
        | TaskState::Blocked
        | TaskState::Completed
        | TaskState::Failed
        | TaskState::Cancelled
        | TaskState::Stale => state.as_str(),
    }
}

/// Returns the symbol and colour of a task's state in a list.
pub(super) fn task_mark(state: TaskState) -> (&'static str, Tint) {
    match state {
        TaskState::Pending | TaskState::Blocked => ("·", Tint::Dim),
        TaskState::InProgress => ("▸", Tint::Bold),
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
