//! Notifies idle agents of tasks that no member has claimed, one after the other. `docs/board.md` has the rules.

use std::cmp::max;
use std::collections::BTreeMap;

use crate::lead::effect::Effect;
use crate::lead::state::{BoardView, Phase, State, TaskOffer, TrackedMember};
use crate::model::envelope::Envelope;
use crate::model::id::{MemberName, TaskId};
use crate::model::lifecycle::MemberState;
use crate::model::protocol::Message;
use crate::model::task::Task;
use crate::model::time::Timestamp;

/// Time for which the task is free and the member is idle before it is notified, in ms: most claim
/// without a message.
const SETTLE_MS: u64 = 2_000;
/// Time to claim the task before another member is notified, in ms.
const ANSWER_MS: u64 = 120_000;

/// Requests the offers that are due: the most urgent task first, and the member that has been idle
/// for the longest time. Each member is notified once of a task, until the task is free anew.
pub(super) fn offer(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    let Some(seen) = state.seen.as_ref().filter(|_| is_leading(state)) else { return };
    let before = std::mem::take(&mut state.offers);
    let renewed = seen.free.iter().map(|id| {
        let new = || TaskOffer { since: now, told: Default::default(), open: None };
        (*id, before.get(id).cloned().unwrap_or_else(new))
    });
    let mut offers: BTreeMap<TaskId, TaskOffer> = renewed.collect();
    for offer in offers.values_mut() {
        offer.open = offer.open.take().filter(|(name, at)| may_still_claim(state, name, *at, now));
    }
    for id in &seen.free {
        let Some(task) = seen.board.tasks.get(id) else { continue };
        let next = candidates(state, &offers, task)
            .filter(|(at, _, _)| *at <= now)
            .min_by_key(|(_, _, view)| view.state_since)
            .map(|(_, name, view)| (name.clone(), view.incarnation.clone()));
        if let (Some((name, incarnation)), Some(offer)) = (next, offers.get_mut(id)) {
            offer.told.insert(incarnation.clone());
            offer.open = Some((name.clone(), now));
            effects.push(Effect::Offer { task: *id, name, incarnation });
        }
    }
    state.offers = offers;
}

/// Treats a report of idleness that is newer than the offer as a refusal. The record of the member
/// shows only a turn that was seen to begin.
pub(super) fn handle_mail(state: &mut State, mail: &[Envelope]) {
    for envelope in mail {
        let is_idle = || matches!(Message::parse(&envelope.text), Message::IdleNotification(_));
        for offer in state.offers.values_mut() {
            let is_refused = offer.open.as_ref().is_some_and(|(name, at)| {
                let is_newer = Timestamp::parse(&envelope.timestamp).is_some_and(|sent| sent > *at);
                is_newer && name.clashes_with(&envelope.from) && is_idle()
            });
            offer.open = offer.open.take().filter(|_| !is_refused);
        }
    }
}

/// Returns the time of the next offer.
pub(super) fn next_offer(state: &State) -> Option<Timestamp> {
    let seen = state.seen.as_ref().filter(|_| is_leading(state))?;
    let tasks = seen.free.iter().filter_map(|id| seen.board.tasks.get(id));
    let next = tasks.flat_map(|task| candidates(state, &state.offers, task)).map(|(at, _, _)| at);
    let open = state.offers.values().filter_map(|offer| offer.open.as_ref());
    next.chain(open.map(|(_, at)| at.plus_ms(ANSWER_MS))).min()
}

fn is_leading(state: &State) -> bool {
    state.leads() && state.phase == Phase::Leading
}

/// Returns the members that can be notified of the task next, each with the time from which it can.
fn candidates<'a>(
    state: &'a State,
    offers: &'a BTreeMap<TaskId, TaskOffer>,
    task: &'a Task,
) -> impl Iterator<Item = (Timestamp, &'a MemberName, &'a TrackedMember)> {
    let offer = offers.get(&task.id).filter(|offer| offer.open.is_none());
    let is_asked = |name: &MemberName| {
        offers.values().any(|other| other.open.as_ref().is_some_and(|(asked, _)| asked == name))
    };
    let members = offer.into_iter().flat_map(move |offer| {
        let untold = |view: &&TrackedMember| !offer.told.contains(&view.incarnation);
        let fitting = state.members.iter().filter(move |(name, view)| {
            untold(view) && is_idle(state, name, view) && suits(state, name, view, task)
        });
        fitting
            .map(|(name, view)| (max(offer.since, view.state_since).plus_ms(SETTLE_MS), name, view))
    });
    members.filter(move |(_, name, _)| !is_asked(name))
}

/// Returns whether the member has nothing to do and could begin a task.
fn is_idle(state: &State, name: &MemberName, view: &TrackedMember) -> bool {
    let runs = view.watched && view.ending.is_none() && view.limit.is_none() && !view.is_blocked;
    let claims = view.reads_mail && !view.runs_commands && view.request.task.is_none();
    let has_work = view.given.is_some() || work_of(&state.seen, name).is_some();
    let ends = state.request_for(name, &view.incarnation).is_some();
    runs && claims && view.state == MemberState::Idle && !has_work && !ends
}

fn work_of(seen: &Option<BoardView>, name: &MemberName) -> Option<TaskId> {
    seen.as_ref()?.work_of(name)
}

/// Returns whether the member may be notified of the task and may claim it.
fn suits(state: &State, name: &MemberName, view: &TrackedMember, task: &Task) -> bool {
    state.settings.as_ref().is_some_and(|settings| settings.tells_of(task, name, &view.request))
}

/// Returns whether a member that was notified at `at` may still claim the task: it has not begun
/// another one, and has not had a turn without claiming.
fn may_still_claim(state: &State, name: &MemberName, at: Timestamp, now: Timestamp) -> bool {
    let Some(view) = state.members.get(name) else { return false };
    let has_refused = view.state == MemberState::Idle && view.state_since > at;
    let has_work = work_of(&state.seen, name).is_some();
    view.ending.is_none() && !has_refused && !has_work && now < at.plus_ms(ANSWER_MS)
}
