//! Numbers in words: durations, tokens, costs, and the line that ends a turn.

use acp::{AgentFailure, FailureKind, Outcome, TokenUsage};

use crate::line::{Look, StyledLine};

/// A duration in whole seconds, for a counter.
pub(crate) fn seconds(millis: u64) -> String {
    let seconds = millis / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, _) => format!("{h} h {m:02} min"),
    }
}

/// A duration that has ended: short ones have tenths of a second, and the shortest are empty.
pub(crate) fn duration(millis: u64) -> String {
    if millis < 100 {
        String::new()
    } else if millis < 10_000 {
        format!("{}.{} s", millis / 1000, millis % 1000 / 100)
    } else {
        seconds(millis)
    }
}

pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

pub(crate) fn dollars(cost: f64) -> String {
    if cost > 0.0 && cost < 0.01 { "<$0.01".to_owned() } else { format!("${cost:.2}") }
}

/// `count` things in words.
pub(crate) fn count(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// The reason of a failure as the state of the agent.
pub(crate) fn failure(failure: &AgentFailure) -> String {
    match failure.kind {
        FailureKind::Limited => "limit reached".to_owned(),
        FailureKind::NeedsLogin => format!("needs login: {}", failure.said),
        FailureKind::TooLong => "conversation too long".to_owned(),
        FailureKind::Other => format!("failed: {}", failure.said),
    }
}

/// The line that ends a turn. `millis` is `None` in a replayed conversation.
pub(crate) fn turn_end(
    outcome: &Outcome,
    usage: Option<&TokenUsage>,
    millis: Option<u64>,
) -> StyledLine {
    let mut line = match outcome {
        Outcome::Done => StyledLine::new(Look::DIM, "done"),
        Outcome::Cancelled => StyledLine::new(Look::DIM, "cancelled"),
        Outcome::Stopped(reason) => {
            StyledLine::new(Look::YELLOW, &format!("stopped: {}", reason.replace('_', " ")))
        }
        Outcome::Failed(reason) => {
            let words = match reason.kind {
                FailureKind::Limited => format!("limit reached: {}", reason.said),
                FailureKind::TooLong => format!("conversation too long: {}", reason.said),
                FailureKind::NeedsLogin | FailureKind::Other => failure(reason),
            };
            StyledLine::new(Look::RED, &words)
        }
    };
    if let Some(millis) = millis.filter(|millis| *millis >= 100) {
        let join = if *outcome == Outcome::Done { " in" } else { " after" };
        line = line.with(Look::DIM, &format!("{join} {}", duration(millis)));
    }
    if let Some(usage) = usage {
        let input =
            usage.input.saturating_add(usage.cached_input).saturating_add(usage.cache_write);
        let used = format!(" · {} tokens in, {} out", tokens(input), tokens(usage.output));
        line = line.with(Look::DIM, &used);
        if let Some(cost) = usage.cost {
            line = line.with(Look::DIM, &format!(" · {}", dollars(cost)));
        }
    }
    line
}
