//! Delivery of mail to the program: staged, submitted, then observed or given up (MSG-08, MSG-11).
//! Nothing is typed into a screen that no rule recognises, and a message counts as delivered only
//! once its turn is seen.

use super::super::effect::MemberEffect;
use super::effect::Effect;
use super::event::Refusal;
use super::state::{
    APPEAR_MS, HAND_MS, LONG_PAUSE_MS, OBSERVE_MS, RETRY_MS, ScreenSnapshot, State, Step, TRIES,
    Turn,
};
use crate::model::envelope::Envelope;
use crate::model::event::EventKind;
use crate::model::time::Timestamp;

/// Estimated size in bytes of an envelope, or of a message that points to a file.
const AROUND: usize = 256;

/// Advances the current delivery, or begins one for waiting messages.
pub(super) fn deliver(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    let Some(sight) = state.sight.clone() else { return };
    let Some(turn) = &mut state.turn else { return begin(state, &sight, now, effects) };
    turn.stood |= turn.step != Step::Typing && sight.holds_text();
    match (turn.step, turn.at) {
        (Step::Typing, _) => {}
        (Step::Staged, at) => staged(state, &sight, at, now, effects),
        (Step::Left, at) => left(state, &sight, at, now, effects),
        (Step::Submitted(times), at) => submitted(state, &sight, (times, at), now, effects),
        (Step::Stuck, at) => stuck(state, &sight, at, now, effects),
    }
}

/// Handles the result of typing.
pub(super) fn see_staged(
    state: &mut State,
    result: Result<(), Refusal>,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let Some(turn) = &mut state.turn else { return };
    match result {
        Ok(()) => {
            (turn.step, turn.at) = (Step::Staged, now);
            note(EventKind::MessageStaged, &turn.ids, None, effects);
        }
        Err(Refusal::Hand) => {
            state.turn = None;
            state.hand_at = Some(now);
        }
        Err(Refusal::Failed(failure)) => {
            let ids = turn.ids.clone();
            give_up(state, &ids, failure.text, now, effects);
        }
    }
}

fn begin(state: &mut State, sight: &ScreenSnapshot, now: Timestamp, effects: &mut Vec<Effect>) {
    let still = now.since(sight.since) >= state.paste.settle_ms;
    let alone = state.hand_at.is_none_or(|at| now.since(at) >= HAND_MS);
    let rested = state.rest_until.is_none_or(|until| until <= now);
    let stays = !state.agreed && state.leaving.is_none();
    if !(state.accepted && stays && sight.is_free() && still && alone && rested)
        || state.waiting.is_empty()
    {
        return;
    }
    state.rest_until = None;
    let mail = one_turn(&state.waiting, state.paste.most_bytes).to_vec();
    let ids = mail.iter().map(|envelope| envelope.msg_id.clone()).collect();
    state.turn = Some(Turn { ids, step: Step::Typing, at: now, stood: false });
    effects.push(Effect::Stage(mail));
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
fn staged(
    state: &mut State,
    sight: &ScreenSnapshot,
    at: Timestamp,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let digested = now.since(sight.since.max(at)) >= state.paste.settle_ms;
    if sight.rests() && sight.holds_text() && digested {
        return submit(state, 1, now, effects);
    }
    if now.since(at) < APPEAR_MS {
        return;
    }
    if let Some(turn) = state.turn.as_mut().filter(|_| sight.works() && sight.holds_text()) {
        (turn.step, turn.at) = (Step::Left, now);
        effects.push(Effect::Release);
    } else {
        stick(state, "the text was typed but did not appear in the composer", now, effects);
    }
}

/// Waits until a program that began to work by itself is idle again. A program with a first prompt
/// starts on it after it has shown an empty composer.
fn left(
    state: &mut State,
    sight: &ScreenSnapshot,
    at: Timestamp,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let by_hand = state.hand_at.is_some_and(|hand| hand >= at);
    if !sight.holds_text() {
        stuck(state, sight, at, now, effects);
    } else if by_hand {
        stick(
            state,
            "it was typed as the program started working, and then a person typed",
            now,
            effects,
        );
    } else if sight.rests() && now.since(sight.since) >= state.paste.settle_ms {
        submit(state, 1, now, effects);
    }
}

fn submit(state: &mut State, times: u8, now: Timestamp, effects: &mut Vec<Effect>) {
    let Some(turn) = &mut state.turn else { return };
    (turn.step, turn.at) = (Step::Submitted(times), now);
    note(EventKind::MessageSubmitted, &turn.ids, None, effects);
    effects.push(Effect::Submit);
}

fn submitted(
    state: &mut State,
    sight: &ScreenSnapshot,
    (times, at): (u8, Timestamp),
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    if !sight.holds_text() && (sight.works() || sight.is_free() && sight.shown) {
        return observed(state, effects);
    }
    let waited = now.since(sight.since.max(at));
    if sight.rests() && sight.holds_text() && waited >= RETRY_MS {
        match times < TRIES {
            true => submit(state, times + 1, now, effects),
            false => stick(state, "the submit key had no effect", now, effects),
        }
    } else if now.since(at) >= OBSERVE_MS {
        stick(state, "the submit key was pressed, but no turn started", now, effects);
    }
}

/// Watches a text that is left to the user, who may have done anything with it. It counts as
/// delivered only if it was in the composer and then appears on the screen or starts a turn. It may
/// also have been taken unseen, so it is never typed again (MSG-03).
fn stuck(
    state: &mut State,
    sight: &ScreenSnapshot,
    at: Timestamp,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let stood = state.turn.as_ref().is_some_and(|turn| turn.stood);
    if sight.holds_text() || !(sight.works() || sight.is_free()) {
        return;
    }
    let by_hand = state.hand_at.is_some_and(|hand| hand >= at);
    if stood && (sight.shown || sight.works() && !by_hand) {
        return observed(state, effects);
    }
    let more = state.waiting.iter().any(|envelope| !is_in_hand(state, &envelope.msg_id));
    // If the text is visible, the composer may still hold it despite being recognised as empty, and
    // the next text would be appended to it.
    if more && sight.is_free() && !sight.shown && now.since(sight.since.max(at)) >= OBSERVE_MS {
        put_by(state);
        begin(state, sight, now, effects);
    }
}

fn is_in_hand(state: &State, id: &String) -> bool {
    state.turn.as_ref().is_some_and(|turn| turn.ids.contains(id))
}

/// Ends the delivery without a result, so that other mail can be delivered.
fn put_by(state: &mut State) {
    let Some(turn) = state.turn.take() else { return };
    state.waiting.retain(|envelope| !turn.ids.contains(&envelope.msg_id));
    state.unseen.extend(turn.ids);
}

/// Drops messages that are no longer unread: mail removed from the mailbox is not typed, and a user
/// who reads a message settles its uncertain delivery.
pub(super) fn keep_unread(state: &mut State, is_unread: impl Fn(&String) -> bool) {
    let under_way = state.turn.as_ref().filter(|turn| turn.step != Step::Stuck);
    let ids = under_way.map_or(Vec::new(), |turn| turn.ids.clone());
    state.waiting.retain(|envelope| ids.contains(&envelope.msg_id) || is_unread(&envelope.msg_id));
    state.unseen.retain(&is_unread);
    let stuck = state.turn.as_ref().filter(|turn| turn.step == Step::Stuck);
    if stuck.is_some_and(|turn| !turn.ids.iter().any(&is_unread)) {
        state.turn = None;
        state.undelivered = None;
    }
}

fn observed(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(turn) = state.turn.take() else { return };
    state.undelivered = None;
    state.handled.extend(turn.ids.iter().cloned());
    state.waiting.retain(|envelope| !turn.ids.contains(&envelope.msg_id));
    effects.extend([Effect::Release, Effect::Member(MemberEffect::Acknowledge(turn.ids))]);
}

/// Handles a failure to compose the text; nothing was typed.
fn give_up(
    state: &mut State,
    ids: &[String],
    why: String,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    state.turn = None;
    state.rest_until = Some(now.plus_ms(LONG_PAUSE_MS));
    note(EventKind::MessageUndelivered, ids, Some(&why), effects);
    state.undelivered = Some(why);
    effects.push(Effect::Release);
}

/// Leaves the typed text to the user and keeps watching the screen.
pub(super) fn stick(state: &mut State, why: &str, now: Timestamp, effects: &mut Vec<Effect>) {
    let Some(turn) = &mut state.turn else { return };
    (turn.step, turn.at) = (Step::Stuck, now);
    note(EventKind::MessageUndelivered, &turn.ids, Some(why), effects);
    state.undelivered = Some(why.to_owned());
    effects.push(Effect::Release);
}

fn note(kind: EventKind, ids: &[String], reason: Option<&str>, effects: &mut Vec<Effect>) {
    effects.push(Effect::Note { kind, ids: ids.to_vec(), reason: reason.map(str::to_owned) });
}
