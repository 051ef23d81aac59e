//! Notifies idle agents of tasks that no member has claimed, one after the other.
//! `docs/lifecycle.md` has the rules.

use std::cmp::max;
use std::collections::{BTreeMap, BTreeSet};

use crate::effect::Effect;
use crate::state::{BoardView, State, TaskOffer, TrackedMember};
use model::board::Board;
use model::board::task::Task;
use model::id::{Incarnation, MemberName, TaskId};
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::members::lifecycle::MemberState;
use model::team::settings::Settings;
use model::time::Timestamp;

/// Time for which the task is free and the member is idle before it is notified, in ms: most claim
/// without a message.
const SETTLE_MS: u64 = 2_000;
/// Time to claim the task before another member is notified, in ms.
const ANSWER_MS: u64 = 120_000;

/// Begins the offers of tasks that have become free, and drops those of the others. A member that
/// has given the task back is not notified of it again, unless the task has changed.
pub(super) fn handle_board(state: &mut State, board: &Board, free: &[TaskId], now: Timestamp) {
    note_returns(state, board);
    let mut before = std::mem::take(&mut state.offers);
    let renewed = free.iter().map(|id| {
        let new =
            || TaskOffer { since: now, told: state.returned.get(id).cloned().unwrap_or_default() };
        (*id, before.remove(id).unwrap_or_else(new))
    });
    state.offers = renewed.collect();
}

/// Notes the members that have given a task back since the last board.
fn note_returns(state: &mut State, board: &Board) {
    let Some(seen) = &state.seen else { return };
    for task in board.work() {
        let Some(before) = seen.board.tasks.get(&task.id) else { continue };
        let owner = before.owner_member().filter(|_| before.state.is_running());
        let had = owner.and_then(|owner| state.members.get(&owner));
        if let Some(had) = had.filter(|_| task.owner_name().is_none() && !task.state.is_over()) {
            state.returned.entry(task.id).or_default().insert(had.incarnation.clone());
        }
        if (&before.subject, &before.description) != (&task.subject, &task.description) {
            state.returned.remove(&task.id);
        }
    }
    state.returned.retain(|id, _| board.tasks.get(id).is_some_and(|task| !task.state.is_over()));
    let State { refused, returned, .. } = state;
    refused.retain(|id| returned.contains_key(id));
}

/// Returns the free tasks that every member that could claim them has given back, except those
/// already reported.
fn unreported_refusals(state: &State) -> impl Iterator<Item = (TaskId, &TaskOffer)> {
    let is_refused = |id: &TaskId| {
        let task = state.seen.as_ref().and_then(|seen| seen.board.tasks.get(id));
        let (Some(task), Some(team)) = (task, &state.settings) else { return false };
        let Some(by) = state.returned.get(id) else { return false };
        let could_claim = |(name, view): &(&MemberName, &TrackedMember)| {
            view.ending.is_none() && claims(view) && team.tells_of(task, name, &view.request)
        };
        let mut members = state.members.iter().filter(could_claim);
        !state.refused.contains(id) && members.all(|(_, view)| by.contains(&view.incarnation))
    };
    state.offers.iter().filter(move |(id, _)| is_refused(id)).map(|(id, offer)| (*id, offer))
}

/// Requests the offers that are due: the most urgent task first, and the member that has been idle
/// for the longest time. Each member is notified once of a task, until the task is free anew.
pub(super) fn offer(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if !state.is_leading() {
        return;
    }
    let mut asked = std::mem::take(&mut state.asked);
    asked.retain(|name, (task, at)| {
        state.offers.contains_key(task) && may_still_claim(state, name, *at, now)
    });
    let refused: Vec<TaskId> = unreported_refusals(state)
        .filter(|(_, offer)| offer.since.plus_ms(SETTLE_MS) <= now)
        .map(|(id, _)| id)
        .collect();
    effects.extend(refused.iter().copied().map(Effect::ReportRefused));
    state.refused.extend(refused);
    for (task, name, incarnation) in due(state, &asked, now) {
        if let Some(offer) = state.offers.get_mut(&task) {
            offer.told.insert(incarnation.clone());
        }
        asked.insert(name.clone(), (task, now));
        effects.push(Effect::Offer { task, name, incarnation });
    }
    state.asked = asked;
}

/// Returns the offers that are due, at most one for each idle member.
fn due(
    state: &State,
    asked: &BTreeMap<MemberName, (TaskId, Timestamp)>,
    now: Timestamp,
) -> Vec<(TaskId, MemberName, Incarnation)> {
    let (mut idle, mut due) = (idle_members(state, asked), Vec::new());
    for (task, offer) in open_tasks(state, asked) {
        let fits = |(name, view): &(&MemberName, &TrackedMember)| {
            offered_at(offer, view) <= now && suits(state, name, view, task, offer)
        };
        let next = idle.iter().enumerate().filter(|(_, member)| fits(member));
        let Some(nth) = next.min_by_key(|(_, (_, view))| view.state_since).map(|(nth, _)| nth)
        else {
            continue;
        };
        let (name, view) = idle.remove(nth);
        due.push((task.id, name.clone(), view.incarnation.clone()));
        if idle.is_empty() {
            break;
        }
    }
    due
}

/// Treats a report of idleness that is newer than the offer as a refusal. The record of the member
/// shows only a turn that was seen to begin.
pub(super) fn handle_mail(state: &mut State, mail: &[Envelope]) {
    for envelope in mail {
        state.asked.retain(|name, (_, at)| {
            let is_newer = || Timestamp::parse(&envelope.timestamp).is_some_and(|sent| sent > *at);
            let is_idle = || matches!(Message::parse(&envelope.text), Message::IdleNotification(_));
            !(name.clashes_with(&envelope.from) && is_newer() && is_idle())
        });
    }
}

/// Returns the time of the next offer.
pub(super) fn next_offer(state: &State) -> Option<Timestamp> {
    if !state.is_leading() {
        return None;
    }
    let idle = idle_members(state, &state.asked);
    let tasks = open_tasks(state, &state.asked).filter(|_| !idle.is_empty());
    let next = tasks.flat_map(|(task, offer)| {
        let fitting = idle.iter().filter(move |(name, view)| suits(state, name, view, task, offer));
        fitting.map(move |(_, view)| offered_at(offer, view))
    });
    let answers = state.asked.values().map(|(_, at)| at.plus_ms(ANSWER_MS));
    let refusals = unreported_refusals(state).map(|(_, offer)| offer.since.plus_ms(SETTLE_MS));
    next.chain(answers).chain(refusals).min()
}

/// Returns the free tasks that no member is considering, in claim order.
fn open_tasks<'s>(
    state: &'s State,
    asked: &BTreeMap<MemberName, (TaskId, Timestamp)>,
) -> impl Iterator<Item = (&'s Task, &'s TaskOffer)> {
    let considered: BTreeSet<TaskId> = asked.values().map(|(task, _)| *task).collect();
    let seen = state.seen.iter();
    let tasks = seen.flat_map(|seen| seen.free.iter().filter_map(|id| seen.board.tasks.get(id)));
    let open = tasks.filter(move |task| !considered.contains(&task.id));
    open.filter_map(|task| Some((task, state.offers.get(&task.id)?)))
}

/// Returns the members that have nothing to do and consider no task.
fn idle_members<'s>(
    state: &'s State,
    asked: &BTreeMap<MemberName, (TaskId, Timestamp)>,
) -> Vec<(&'s MemberName, &'s TrackedMember)> {
    let members = state.members.iter().filter(|(name, _)| !asked.contains_key(*name));
    members.filter(|(name, view)| is_idle(state, name, view)).collect()
}

/// Returns the time from which the member can be notified.
fn offered_at(offer: &TaskOffer, view: &TrackedMember) -> Timestamp {
    max(offer.since, view.state_since).plus_ms(SETTLE_MS)
}

/// Returns whether the member has nothing to do and could begin a task.
fn is_idle(state: &State, name: &MemberName, view: &TrackedMember) -> bool {
    let stops = view.limit.is_some() || view.is_blocked || view.has_failed;
    let runs = view.watched && view.ending.is_none() && !stops;
    let has_work = view.given.is_some() || work_of(&state.seen, name).is_some();
    let ends = state.request_for(name, &view.incarnation).is_some();
    runs && claims(view) && view.state == MemberState::Idle && !has_work && !ends
}

/// Returns whether the member is an agent that takes tasks from the board.
fn claims(view: &TrackedMember) -> bool {
    view.reads_mail && !view.runs_commands && view.request.task.is_none()
}

fn work_of(seen: &Option<BoardView>, name: &MemberName) -> Option<TaskId> {
    seen.as_ref()?.work_of(name)
}

/// Returns whether the member may claim the task and has not been notified of it.
fn suits(
    state: &State,
    name: &MemberName,
    view: &TrackedMember,
    task: &Task,
    offer: &TaskOffer,
) -> bool {
    let tells = |settings: &Settings| settings.tells_of(task, name, &view.request);
    !offer.told.contains(&view.incarnation) && state.settings.as_ref().is_some_and(tells)
}

/// Returns whether a member that was notified at `at` may still claim the task: it has not begun
/// another one, and has not had a turn without claiming.
fn may_still_claim(state: &State, name: &MemberName, at: Timestamp, now: Timestamp) -> bool {
    let Some(view) = state.members.get(name) else { return false };
    let has_refused = view.state == MemberState::Idle && view.state_since > at;
    let has_work = work_of(&state.seen, name).is_some();
    view.ending.is_none() && !has_refused && !has_work && now < at.plus_ms(ANSWER_MS)
}
