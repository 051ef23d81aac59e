//! The line of status above the composer.

use crate::line::{Look, StyledLine};
use crate::words;

/// The state of the agent, as the status line names it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AgentActivity {
    Starting,
    Idle,
    Working {
        millis: u64,
    },
    Silent {
        millis: u64,
    },
    Cancelling,
    Waiting,
    /// In the words to show.
    Failed(String),
}

/// The parts of the line after the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionFacts {
    pub(crate) mode: String,
    pub(crate) model: String,
    /// Used tokens and the size of the context window.
    pub(crate) context: Option<(u64, u64)>,
    /// In US dollars, since the conversation began.
    pub(crate) cost: f64,
    pub(crate) queued: usize,
}

/// Draws the line. Parts that do not fit are left out from the right, the state last.
pub(crate) fn draw(
    name: &str,
    state: &AgentActivity,
    facts: &SessionFacts,
    room: usize,
) -> StyledLine {
    let state = match state {
        AgentActivity::Starting => StyledLine::new(Look::DIM, "starting"),
        AgentActivity::Idle => StyledLine::new(Look::DIM, "idle"),
        AgentActivity::Working { millis } => {
            StyledLine::new(Look::PLAIN, &format!("working {}", words::seconds(*millis)))
        }
        AgentActivity::Silent { millis } => {
            let time = words::seconds(*millis);
            StyledLine::new(Look::YELLOW, &format!("retrying, silent for {time}"))
        }
        AgentActivity::Cancelling => StyledLine::new(Look::YELLOW, "cancelling"),
        AgentActivity::Waiting => StyledLine::new(Look::YELLOW, "waits for your answer"),
        AgentActivity::Failed(words) => StyledLine::new(Look::RED, words),
    };
    let mut parts = vec![facts.mode.clone(), facts.model.clone()];
    if let Some((used, size)) = facts.context.filter(|(_, size)| *size > 0) {
        let percent = u128::from(used) * 100 / u128::from(size);
        parts.push(format!("context {percent}%"));
    }
    if facts.cost > 0.0 {
        parts.push(words::dollars(facts.cost));
    }
    if facts.queued > 0 {
        let verb = if facts.queued == 1 { "waits" } else { "wait" };
        parts.push(format!("{} {verb}", words::count(facts.queued, "message")));
    }
    let separator = StyledLine::new(Look::DIM, " · ");
    let mut line = StyledLine::new(Look::DIM, name);
    if !line.is_empty() {
        line.append(separator.clone());
    }
    if line.width() + state.width() > room {
        return state.cut(room);
    }
    line.append(state);
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let part = StyledLine::new(Look::DIM, part);
        if line.width() + separator.width() + part.width() > room {
            break;
        }
        line.append(separator.clone());
        line.append(part);
    }
    line
}
