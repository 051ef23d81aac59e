//! Delivery of mail to the program: staged, submitted, then observed or given up (MSG-08, MSG-11).
//! Text is typed into an empty composer only, and a message counts as delivered only once its turn
//! is seen.

use super::super::state::LONG_PAUSE_MS;
use super::effect::Effect;
use super::event::StageRefusal;
use super::state::{
    APPEAR_MS, DeliveryStep, HELD_MS, OBSERVE_MS, PendingDelivery, RETRY_MS, ScreenSnapshot, State,
    TRIES, TYPING_MS,
};
use model::mail::envelope::Envelope;
use model::team::event::EventKind;
use model::time::Timestamp;
use profile::MailDelivery;

/// Estimated size in bytes of an envelope, or of a message that points to a file.
const AROUND: usize = 256;

/// Advances the current delivery, or begins one for waiting messages.
pub(super) fn deliver(state: &mut State) {
    let Some(screen) = state.screen.clone() else { return };
    let Some(turn) = &mut state.turn else { return begin(state, &screen) };
    turn.stood |= turn.step != DeliveryStep::Typing && screen.holds_text();
    match (turn.step, turn.at) {
        (DeliveryStep::Typing, _) => {}
        (DeliveryStep::Staged, at) => staged(state, &screen, at),
        (DeliveryStep::Left, at) => left(state, &screen, at),
        (DeliveryStep::Submitted(times), at) => submitted(state, &screen, (times, at)),
        (DeliveryStep::Stuck, at) => stuck(state, &screen, at),
    }
}

/// Handles the result of typing.
pub(super) fn handle_staged(state: &mut State, result: Result<(), StageRefusal>) {
    let Some(turn) = &mut state.turn else { return };
    match result {
        Ok(()) => {
            (turn.step, turn.at) = (DeliveryStep::Staged, state.now);
            journal(EventKind::MessageStaged, &turn.ids, None, &mut state.effects);
        }
        Err(StageRefusal::PersonTyping) => {
            state.turn = None;
            state.typed_at = Some(state.now);
        }
        Err(StageRefusal::Failed(failure)) => {
            let ids = turn.ids.clone();
            give_up(state, &ids, failure.text);
        }
    }
}

fn begin(state: &mut State, screen: &ScreenSnapshot) {
    let settle_ms = if screen.rests() { state.paste.settle_ms } else { HELD_MS };
    let still = state.now.since(screen.since) >= settle_ms;
    let alone = state.typed_at.is_none_or(|at| state.now.since(at) >= TYPING_MS);
    // A turn would fail before the end of a usage limit, and the message would be lost with it.
    let pauses = [state.rest_until, screen.limited_until(state.outbox.refusals)];
    let rested = pauses.into_iter().flatten().all(|until| until <= state.now);
    let stays = !state.agreed && state.leaving.is_none();
    if !(state.outbox.accepted && stays && screen.is_open() && still && alone && rested)
        || state.waiting.is_empty()
    {
        return;
    }
    state.rest_until = None;
    // A request to end is typed in any case: its answer is a command.
    let is_prompt =
        |envelope: &&Envelope| state.forwarded.iter().any(|f| f.msg_id == envelope.msg_id);
    let prompts: Vec<Envelope> = state.waiting.iter().filter(is_prompt).cloned().collect();
    let announces = state.mail == MailDelivery::Tools && prompts.is_empty();
    let mail = match state.mail {
        MailDelivery::Typed => one_turn(&state.waiting, state.paste.most_bytes).to_vec(),
        MailDelivery::Tools if announces => state.waiting.clone(),
        MailDelivery::Tools => prompts,
    };
    let ids = mail.iter().map(|envelope| envelope.msg_id.clone()).collect();
    let step = DeliveryStep::Typing;
    state.turn = Some(PendingDelivery { ids, announces, step, at: state.now, stood: false });
    state.effects.push(if announces { Effect::Announce(mail.len()) } else { Effect::Stage(mail) });
}

/// Returns the messages of one turn: as many as fit into `most` bytes, at least one. A longer text
/// counts only as its pointer to a file.
fn one_turn(waiting: &[Envelope], most: usize) -> &[Envelope] {
    let mut left = most;
    let fits = |envelope: &&Envelope| {
        let bytes = if envelope.text.len() > most { 0 } else { envelope.text.len() } + AROUND;
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    let count = waiting.iter().take_while(fits).count();
    &waiting[..count.clamp(1, waiting.len())]
}

/// Types the submit key separately, once the text is in the composer and the screen has settled.
fn staged(state: &mut State, screen: &ScreenSnapshot, at: Timestamp) {
    let digested = state.now.since(screen.since.max(at)) >= state.paste.settle_ms;
    if !screen.works() && screen.holds_text() && digested {
        return submit(state, 1);
    }
    if state.now.since(at) < APPEAR_MS {
        return;
    }
    if let Some(turn) = state.turn.as_mut().filter(|_| screen.works() && screen.holds_text()) {
        (turn.step, turn.at) = (DeliveryStep::Left, state.now);
        state.effects.push(Effect::Release);
    } else {
        stick(state, "the text was typed but did not appear in the composer");
    }
}

/// Waits until a program that began to work by itself is idle again. A program with a first prompt
/// starts on it after it has shown an empty composer.
fn left(state: &mut State, screen: &ScreenSnapshot, at: Timestamp) {
    let by_person = state.typed_at.is_some_and(|typed| typed >= at);
    if !screen.holds_text() {
        stuck(state, screen, at);
    } else if by_person {
        stick(state, "it was typed as the program started working, and then a person typed");
    } else if screen.rests() && state.now.since(screen.since) >= state.paste.settle_ms {
        submit(state, 1);
    }
}

fn submit(state: &mut State, times: u8) {
    let Some(turn) = &mut state.turn else { return };
    (turn.step, turn.at) = (DeliveryStep::Submitted(times), state.now);
    journal(EventKind::MessageSubmitted, &turn.ids, None, &mut state.effects);
    state.effects.push(Effect::Submit);
}

fn submitted(state: &mut State, screen: &ScreenSnapshot, (times, at): (u8, Timestamp)) {
    if !screen.holds_text() && (screen.works() || screen.is_open() && screen.shown) {
        return observed(state);
    }
    let waited = state.now.since(screen.since.max(at));
    if !screen.works() && screen.holds_text() && waited >= RETRY_MS {
        if times < TRIES {
            submit(state, times + 1);
        } else {
            stick(state, "the submit key had no effect");
        }
    } else if state.now.since(at) >= OBSERVE_MS {
        stick(state, "the submit key was pressed, but no turn started");
    }
}

/// Watches a text that is left to the user, who may have done anything with it. It counts as
/// delivered only if it was in the composer and then appears on the screen or starts a turn. It may
/// also have been taken unseen, so it is never typed again (MSG-03).
fn stuck(state: &mut State, screen: &ScreenSnapshot, at: Timestamp) {
    let stood = state.turn.as_ref().is_some_and(|turn| turn.stood);
    if screen.holds_text() || !(screen.works() || screen.is_free()) {
        return;
    }
    let by_person = state.typed_at.is_some_and(|typed| typed >= at);
    if stood && (screen.shown || screen.works() && !by_person) {
        return observed(state);
    }
    let more = state.waiting.iter().any(|envelope| !is_in_hand(state, &envelope.msg_id));
    // If the text is visible, the composer may still hold it despite being recognised as empty, and
    // the next text would be appended to it.
    if more
        && screen.is_free()
        && !screen.shown
        && state.now.since(screen.since.max(at)) >= OBSERVE_MS
    {
        // Ends the delivery without a result, so that other mail can be delivered.
        if let Some(turn) = state.turn.take() {
            state.waiting.retain(|envelope| !turn.ids.contains(&envelope.msg_id));
            state.unseen.extend(turn.ids);
        }
        begin(state, screen);
    }
}

fn is_in_hand(state: &State, id: &String) -> bool {
    state.turn.as_ref().is_some_and(|turn| turn.ids.contains(id))
}

/// Drops messages that are no longer unread: mail removed from the mailbox is not typed, and a user
/// who reads a message settles its uncertain delivery.
pub(super) fn keep_unread(state: &mut State, is_unread: impl Fn(&String) -> bool) {
    let under_way = state.turn.as_ref().filter(|turn| turn.step != DeliveryStep::Stuck);
    let ids = under_way.map_or(Vec::new(), |turn| turn.ids.clone());
    state.waiting.retain(|envelope| ids.contains(&envelope.msg_id) || is_unread(&envelope.msg_id));
    state.unseen.retain(&is_unread);
    state.announced.retain(&is_unread);
    let stuck = state.turn.as_ref().filter(|turn| turn.step == DeliveryStep::Stuck);
    if stuck.is_some_and(|turn| !turn.ids.iter().any(&is_unread)) {
        state.turn = None;
        state.undelivered = None;
    }
}

fn observed(state: &mut State) {
    let Some(turn) = state.turn.take() else { return };
    state.undelivered = None;
    state.waiting.retain(|envelope| !turn.ids.contains(&envelope.msg_id));
    state.effects.push(Effect::Release);
    if turn.announces {
        state.announced.extend(turn.ids);
        return;
    }
    state.handled.extend(turn.ids.iter().cloned());
    state.acknowledge(turn.ids);
}

/// Handles a failure to compose the text; nothing was typed.
fn give_up(state: &mut State, ids: &[String], why: String) {
    state.turn = None;
    state.rest_until = Some(state.now.plus_ms(LONG_PAUSE_MS));
    journal(EventKind::MessageUndelivered, ids, Some(&why), &mut state.effects);
    state.undelivered = Some(why);
    state.effects.push(Effect::Release);
}

/// Leaves the typed text to the user and keeps watching the screen.
pub(super) fn stick(state: &mut State, why: &str) {
    let Some(turn) = &mut state.turn else { return };
    (turn.step, turn.at) = (DeliveryStep::Stuck, state.now);
    journal(EventKind::MessageUndelivered, &turn.ids, Some(why), &mut state.effects);
    state.undelivered = Some(why.to_owned());
    state.effects.push(Effect::Release);
}

fn journal(kind: EventKind, ids: &[String], reason: Option<&str>, effects: &mut Vec<Effect>) {
    effects.push(Effect::Journal { kind, ids: ids.to_vec(), reason: reason.map(str::to_owned) });
}
