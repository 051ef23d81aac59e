//! Shutdown requests that the agent answers itself (`shutdown = "ask"`): prompts it with the
//! commands for the answer.

use super::super::event::Requests;
use super::super::words;
use super::state::{ForwardedRequest, ScreenSnapshot, State};
use model::mail::envelope::Envelope;
use model::mail::protocol::{Message, ShutdownRequestBody};
use model::text;

/// Maximum length of a reason, in characters.
const REASON: usize = 500;

/// Rewrites shutdown requests and other messages of the protocol as plain text.
pub(super) fn in_words(envelope: Envelope) -> Envelope {
    let text = match Message::parse(&envelope.text) {
        Message::ShutdownRequest(asked) => shutdown_words(asked),
        _ => return words::for_teammate(envelope),
    };
    Envelope { text, ..envelope }
}

fn shutdown_words(asked: ShutdownRequestBody) -> String {
    let id = asked.request_id;
    let why = text::after_colon(asked.reason.map(|reason| text::short(&reason, REASON)));
    let limit = asked.deadline_seconds.map(|s| format!(" within {s} s")).unwrap_or_default();
    // On one line: some programs accept no line breaks.
    format!(
        "You are asked to shut down and leave the team{why}. Answer{limit} with one of these commands: \
         `phalanx answer {id} --approve` when your work can be left as it is, or \
         `phalanx answer {id} --reject --reason \"what is left to do\"`. Without an answer you will be stopped."
    )
}

/// Updates the requests: notes the agent's agreement and drops requests that have ended.
pub(super) fn update(state: &mut State, requests: &Requests) {
    let found =
        |forwarded: &ForwardedRequest| requests.get(forwarded.request.id.as_str())?.as_ref().ok();
    // A working program is ended by the lead; an idle one can quit by its own keys.
    let at_rest = state.screen.as_ref().is_some_and(ScreenSnapshot::is_free);
    state.agreed |= at_rest
        && state.forwarded.iter().filter_map(found).any(|r| r.is_open() && r.agreed_at.is_some());
    state.forwarded.retain(|forwarded| found(forwarded).is_none_or(|request| request.is_open()));
}

#[cfg(test)]
mod tests;
