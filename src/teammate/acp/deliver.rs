//! Delivery of mail as prompts. A message counts as received once its turn has an update and has
//! lasted for a second, or has ended (AC-01). Before it is sent that is journaled, so that a later
//! run knows which messages are in doubt, and looks for them in the loaded conversation.

use super::super::words::AgentRole;
use super::effect::Effect;
use super::face::ConversationUpdate;
use super::state::{RunningPrompt, State, SteeredMail};
use conversation::Sender;
use model::mail::envelope::Envelope;
use model::mail::protocol::{MAIL_HEADING, render_for_agent};
use model::team::event::EventKind;
use model::text::line_breaks;

/// Bytes of the messages of one prompt. All agents that were tried accept 100 kB.
const MOST_BYTES: usize = 64 * 1024;
/// Milliseconds after the end of a turn in which the reply to a message for it may follow.
const REPLY_MS: u64 = 2000;
/// Time in milliseconds after which all agents that were tried had stored a prompt.
pub(super) const STORED_MS: u64 = 1000;
/// Milliseconds without output after which an agent without a running tool waits for its API.
const QUIET_MS: u64 = 1000;
/// Tag of a prompt that a person has typed.
const TYPED: &str = "typed";
/// Told to the agent before a message that it may have received already.
const REPEATED: &str = "(This message may repeat one that you have received already.)\n\n";
/// The reason in the journal.
const IN_DOUBT: &str = "possibly a repetition: it was sent before without a receipt";

/// Decides about the messages that an earlier run has sent without a receipt: those in the loaded
/// conversation were received.
pub(super) fn settle_doubts(state: &mut State, found: &[String]) {
    let received: Vec<String> =
        found.iter().filter(|id| state.in_doubt.remove(*id)).cloned().collect();
    if received.is_empty() {
        return;
    }
    state.waiting.retain(|envelope| !received.contains(&envelope.msg_id));
    state.handled.extend(received.iter().cloned());
    state.acknowledge(received);
}

/// Looks for messages in doubt in a replayed prompt that came after the session was ready.
pub(super) fn replayed(state: &mut State, text: &str) {
    let found: Vec<String> =
        state.in_doubt.iter().filter(|id| text.contains(*id)).cloned().collect();
    if state.session.is_ready() && state.turn.is_none() {
        settle_doubts(state, &found);
    }
}

/// Sends the next prompt if the agent is free: what a person has typed, or else the waiting mail.
pub(super) fn begin(state: &mut State) {
    if !state.is_free() || state.agreed {
        return;
    }
    if let Some(text) = state.typed.pop_front() {
        send(state, TYPED, Vec::new(), &text);
        state.show(ConversationUpdate::Prompt { from: Sender::Typed, text });
        return;
    }
    let pauses = [state.limited_until(), state.settled_at()];
    let is_paused = pauses.into_iter().flatten().any(|until| state.now < until);
    if !state.outbox.accepted || state.teamless || is_paused || state.waiting.is_empty() {
        return;
    }
    let count = one_prompt(&state.waiting);
    let mail: Vec<Envelope> = state.waiting.drain(..count).collect();
    let ids: Vec<String> = mail.iter().map(|envelope| envelope.msg_id.clone()).collect();
    let text = mail.iter().map(|envelope| render(state, envelope)).collect::<Vec<_>>();
    journal_submitted(state, &ids);
    let tag = ids[0].clone();
    send(state, &tag, ids, &joined(state, &text));
    state.effects.extend(mail.into_iter().map(|envelope| {
        let from = Sender::Mail(envelope.from);
        Effect::Show(ConversationUpdate::Prompt { from, text: envelope.text })
    }));
}

/// Journals messages that are sent now. Those in doubt are so no longer.
fn journal_submitted(state: &mut State, ids: &[String]) {
    let (again, first): (Vec<String>, Vec<String>) =
        ids.iter().cloned().partition(|id| state.in_doubt.remove(id));
    for (ids, reason) in [(first, None), (again, Some(IN_DOUBT.to_owned()))] {
        if !ids.is_empty() {
            state.effects.push(Effect::Journal { kind: EventKind::MessageSubmitted, ids, reason });
        }
    }
}

fn send(state: &mut State, tag: &str, ids: Vec<String>, text: &str) {
    state.session.prompt(tag, text);
    (state.failure, state.limit) = (None, None);
    state.last_words.clear();
    state.turn = Some(RunningPrompt {
        ids,
        is_received: false,
        stored_at: state.now.plus_ms(STORED_MS),
        heard_at: state.now,
        has_remark: false,
    });
    state.turns += 1;
    state.changed.clear();
}

/// Returns how many messages make one prompt: as many as fit, at least one.
fn one_prompt(waiting: &[Envelope]) -> usize {
    let mut left = MOST_BYTES;
    let fits = |envelope: &&Envelope| {
        let fits = envelope.text.len() <= left;
        left = left.saturating_sub(envelope.text.len());
        fits
    };
    waiting.iter().take_while(fits).count().max(1)
}

fn render(state: &State, envelope: &Envelope) -> String {
    let Envelope { from, color, summary, text, msg_id, .. } = envelope;
    let body = line_breaks(text);
    let repeated = if state.in_doubt.contains(msg_id) { REPEATED } else { "" };
    let body = format!("{repeated}{body}");
    render_for_agent(Some(msg_id), from, color.as_deref(), summary.as_deref(), &body)
}

/// Joins rendered messages to a prompt.
fn joined(state: &State, messages: &[String]) -> String {
    let heading = state.facts.needs_heading.then(|| MAIL_HEADING.to_owned());
    heading.into_iter().chain(messages.iter().cloned()).collect::<Vec<_>>().join("\n\n")
}

/// Ids of the messages that are with the agent and are not acknowledged.
pub(super) fn under_way(state: &State) -> impl Iterator<Item = &String> {
    let turn = state.turn.iter().flat_map(|turn| &turn.ids);
    turn.chain(state.steered.values().flat_map(|steered| &steered.ids))
}

/// The agent has received its prompt.
pub(super) fn received(state: &mut State) {
    if let Some(turn) = &mut state.turn {
        turn.is_received = true;
    }
}

/// Acknowledges what the agent has received and stored: one that is killed before that knows
/// nothing of it (AC-02).
pub(super) fn acknowledge_stored(state: &mut State) {
    let is_stored = |turn: &&mut RunningPrompt| turn.is_received && turn.stored_at <= state.now;
    let Some(turn) = state.turn.as_mut().filter(is_stored) else { return };
    let ids = std::mem::take(&mut turn.ids);
    acknowledge(state, ids);
}

fn acknowledge(state: &mut State, ids: Vec<String>) {
    if ids.is_empty() {
        return;
    }
    state.handled.extend(ids.iter().cloned());
    state.acknowledge(ids);
}

/// A turn has ended. One that has failed before it began leaves its messages with the agent, whose
/// conversation may have them: they are not sent again, since the failure is reported.
pub(super) fn turn_ended(state: &mut State) {
    let Some(turn) = state.turn.take() else { return };
    acknowledge(state, turn.ids);
    for steered in state.steered.values_mut() {
        steered.reply_by.get_or_insert(state.now.plus_ms(REPLY_MS));
    }
}

/// Reads urgent messages again whose turn has ended without a reply to them. The agent may have
/// taken them (AC-07).
pub(super) fn give_up_replies(state: &mut State) {
    let is_late = |steered: &SteeredMail| steered.reply_by.is_some_and(|by| by <= state.now);
    let late: Vec<SteeredMail> =
        state.steered.extract_if(.., |_, steered| is_late(steered)).map(|(_, mail)| mail).collect();
    state.outbox.mail_due |= !late.is_empty();
    state.in_doubt.extend(late.into_iter().flat_map(|steered| steered.ids));
}

/// Takes urgent messages into the running turn, or cancels it, once per message. A turn that waits
/// for the API or for an answer is cancelled: its agent would read a text only afterwards.
pub(super) fn advance_urgent(state: &mut State) {
    let Some(turn) = &state.turn else { return };
    // An agent that has not begun the turn may ignore its cancellation.
    let is_begun = turn.is_received || turn.stored_at <= state.now;
    // What an agent says at once, such as a warning, is not an answer of its provider.
    let is_answered = turn.heard_at >= turn.stored_at;
    let is_heard = is_answered && state.now.since(turn.heard_at) < QUIET_MS;
    let is_busy = is_heard || state.session.runs_tool();
    let takes_text = turn.is_received && is_busy && !state.is_asked();
    let is_new =
        |envelope: &&Envelope| envelope.urgent && !state.interrupted.contains(&envelope.msg_id);
    let urgent: Vec<Envelope> = state.waiting.iter().filter(is_new).cloned().collect();
    let is_due = is_begun && state.outbox.accepted;
    if urgent.is_empty() || !is_due || state.role == AgentRole::Lead {
        return;
    }
    let ids: Vec<String> = urgent.iter().map(|envelope| envelope.msg_id.clone()).collect();
    state.interrupted.extend(ids.iter().cloned());
    let text: Vec<String> = urgent.iter().map(|envelope| render(state, envelope)).collect();
    if takes_text && state.session.steer(&ids[0], &joined(state, &text)) {
        state.waiting.retain(|envelope| !ids.contains(&envelope.msg_id));
        let steered = SteeredMail { turn: state.turns, ids: ids.clone(), reply_by: None };
        state.steered.insert(ids[0].clone(), steered);
        journal_submitted(state, &ids);
        state.effects.extend(urgent.into_iter().map(|envelope| {
            let from = Sender::Mail(envelope.from);
            Effect::Show(ConversationUpdate::Prompt { from, text: envelope.text })
        }));
    } else if state.session.cancel() {
        let (kind, reason) = (EventKind::TurnInterrupted, None);
        state.effects.push(Effect::Journal { kind, ids, reason });
        doubt_unreceived(state);
    }
}

/// Reads the messages of a prompt without a receipt again, in their order: an agent may forget a
/// prompt that was cancelled before its first output.
fn doubt_unreceived(state: &mut State) {
    let Some(turn) = state.turn.as_mut().filter(|turn| !turn.is_received) else { return };
    state.in_doubt.extend(turn.ids.drain(..));
    state.waiting.clear();
    state.outbox.mail_due = true;
}

/// Handles the result of a message for the running turn. A refused one is read again, and becomes
/// a prompt.
pub(super) fn steered(state: &mut State, tag: &str, result: Result<(), String>) {
    let Some(SteeredMail { turn, ids, .. }) = state.steered.remove(tag) else { return };
    match result {
        Ok(()) => acknowledge(state, ids),
        Err(why) => {
            let text = format!("its turn takes no message: {why}");
            state.warn(text);
            state.outbox.mail_due = true;
            // The next turn is not meant.
            if turn == state.turns && state.session.cancel() {
                let (kind, reason) = (EventKind::TurnInterrupted, None);
                state.effects.push(Effect::Journal { kind, ids, reason });
            }
        }
    }
}
