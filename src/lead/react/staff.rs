//! Members that come and go with the work, and those that are started again when they fail: how many there should be,
//! and when the next may be started (seed 002: dynamic scaling, circuit breaker).

use std::collections::BTreeSet;

use crate::lead::effect::Effect;
use crate::lead::state::{Goal, Kind, Phase, State, View};
use crate::model::board::Board;
use crate::model::id::{MemberName, TaskId};
use crate::model::lifecycle::{Cause, MemberState};
use crate::model::order::Demand;
use crate::model::record::MemberRecord;
use crate::model::time::Timestamp;

/// After so many failures in a row nobody of the kind is started any more.
const PATIENCE: u32 = 5;
/// The pause after the first failure; doubled each time.
const FIRST_PAUSE_MS: u64 = 1000;
/// Who has lived so long was well: what happens to it then is no failure in a row.
const WELL_AFTER_MS: u64 = 60_000;

impl Kind {
    fn may_start(&self, board: Option<&Board>, now: Timestamp) -> bool {
        !self.is_closed(board) && self.not_before.is_none_or(|at| at <= now)
    }

    /// Whether time alone opens nothing: it failed too often, or a person wants it so.
    fn is_closed(&self, board: Option<&Board>) -> bool {
        self.gave_up() || self.held.is_some_and(|held| newest(board) <= held)
    }

    fn gave_up(&self) -> bool {
        self.failures >= PATIENCE
    }

    /// A member of the kind failed, or could not be started; it had lived for so long.
    fn note_failure(&mut self, lived_ms: u64, now: Timestamp) {
        self.failures = if lived_ms >= WELL_AFTER_MS { 1 } else { self.failures + 1 };
        self.not_before = Some(now.plus_ms(FIRST_PAUSE_MS << (self.failures - 1).min(PATIENCE)));
    }

    fn of<'a>(&self, state: &'a State) -> BTreeSet<&'a MemberName> {
        state.members.keys().filter(|name| self.made(name)).collect()
    }

    /// Whether a member of this name is of the kind.
    fn made(&self, name: &MemberName) -> bool {
        self.names.iter().any(|ours| ours.clashes_with(name.as_str()))
    }

    /// How many there should be now; none known while the board was not seen.
    fn wanted(&self, state: &State) -> Option<usize> {
        match self.template.demand {
            Demand::Standing => Some(usize::from(self.owed || !self.of(state).is_empty())),
            Demand::WhenNeeded | Demand::Scaled(_) | Demand::PerTask(_) => {
                Some(self.template.wanted(state.board.as_ref()?))
            }
        }
    }
}

/// Starts who is missing and dismisses who is not needed.
pub(super) fn staff(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if !matches!(state.goal, Goal::Lead(_)) || state.phase != Phase::Leading || !state.members_seen {
        return;
    }
    for nth in 0..state.kinds.len() {
        // A pause that is over would be due for ever.
        state.kinds[nth].not_before.take_if(|at| *at <= now);
        if state.kinds[nth].template.is_per_task() {
            dispatch(state, nth, now, effects);
            continue;
        }
        let Some(wanted) = state.kinds[nth].wanted(state) else { continue };
        let there = state.kinds[nth].of(state);
        let all: BTreeSet<MemberName> =
            there.into_iter().chain(&state.kinds[nth].starting).cloned().collect();
        if all.len() < wanted && state.kinds[nth].may_start(state.board.as_ref(), now) {
            start(&mut state.kinds[nth], nth, &all, wanted, effects);
        } else if all.len() > wanted {
            dismiss(state, nth, all.len() - wanted, effects);
        }
    }
}

/// Starts a run for each task that can be begun, as far as there is room; nobody is dismissed, for each ends with its task.
fn dispatch(state: &mut State, nth: usize, now: Timestamp, effects: &mut Vec<Effect>) {
    let Some(board) = &state.board else { return };
    let kind = &state.kinds[nth];
    if !kind.may_start(Some(board), now) {
        return;
    }
    let busy = kind.of(state).into_iter().chain(&kind.starting).cloned().collect();
    let taken = state.kinds.iter().flat_map(|kind| kind.dispatched.values().copied()).collect();
    let orders = kind.template.dispatch(board, &busy, &taken);
    if orders.is_empty() {
        return;
    }
    let kind = &mut state.kinds[nth];
    for order in &orders {
        let name = MemberName::new(&order.name).ok();
        kind.starting.extend(name.clone());
        kind.dispatched.extend(name.zip(order.task));
    }
    effects.push(Effect::Start { kind: nth, orders });
}

/// Whether a run that was for one task is still there, if only to leave.
pub(super) fn has_runs(state: &State) -> bool {
    let mut kinds = state.kinds.iter().filter(|kind| kind.template.is_per_task());
    kinds.any(|kind| !kind.of(state).is_empty())
}

/// A run has left by itself: one that was for a task has brought it to its end, so its kind is well.
pub(super) fn see_left(state: &mut State, record: &MemberRecord) {
    let of_kind = |kind: &&mut Kind| kind.template.is_per_task() && kind.made(&record.name);
    for kind in state.kinds.iter_mut().filter(of_kind).filter(|_| record.exit.is_some()) {
        (kind.failures, kind.not_before) = (0, None);
    }
}

fn start(
    kind: &mut Kind,
    nth: usize,
    there: &BTreeSet<MemberName>,
    wanted: usize,
    effects: &mut Vec<Effect>,
) {
    let free = kind.names.iter().filter(|name| !there.iter().any(|taken| taken.clashes_with(name.as_str())));
    let names: Vec<MemberName> = free.take(wanted - there.len()).cloned().collect();
    if !names.is_empty() {
        let orders = names.iter().map(|name| kind.template.order(name)).collect();
        effects.push(Effect::Start { kind: nth, orders });
        kind.starting.extend(names);
    }
}

/// Asks as many as are too many to end, of those that have nothing to do; each once in its run.
fn dismiss(state: &mut State, nth: usize, surplus: usize, effects: &mut Vec<Effect>) {
    let board = state.board.as_ref();
    let rests = |name: &MemberName, view: &View| {
        let works = board.is_none_or(|board| board.work_of(name).is_some());
        view.state == MemberState::Idle && view.ending.is_none() && !view.dismissed && !works
    };
    let kind = &state.kinds[nth];
    let leaving =
        |(name, view): &(&MemberName, &View)| kind.made(name) && (view.dismissed || view.ending.is_some());
    let on_their_way = state.members.iter().filter(leaving).count();
    let idle = state.members.iter().rev().filter(|(name, view)| kind.made(name) && rests(name, view));
    let names: Vec<MemberName> =
        idle.map(|(name, _)| name.clone()).take(surplus.saturating_sub(on_their_way)).collect();
    for name in &names {
        if let Some(view) = state.members.get_mut(name) {
            view.dismissed = true;
        }
    }
    if !names.is_empty() {
        effects.push(Effect::AskShutdown {
            names,
            reason: "there is no work for it".to_owned(),
            force: false,
        });
    }
}

/// A request that is not the lead's own wants a member to end: others do not come in its place.
pub(super) fn hold(state: &mut State, name: &MemberName) {
    if state.members.get(name).is_some_and(|view| view.dismissed) {
        return;
    }
    let newest = newest(state.board.as_ref());
    for kind in state.kinds.iter_mut().filter(|kind| kind.made(name)) {
        kind.held = Some(newest);
    }
}

fn newest(board: Option<&Board>) -> TaskId {
    board.and_then(|board| board.tasks.keys().next_back().copied()).unwrap_or(TaskId(0))
}

/// What came of `Start`.
pub(super) fn see_started(
    state: &mut State,
    nth: usize,
    names: &[MemberName],
    failures: Vec<(MemberName, String)>,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let Some(kind) = state.kinds.get_mut(nth) else { return };
    kind.starting.retain(|name| !names.contains(name));
    kind.dispatched.retain(|name, _| !names.contains(name));
    if failures.len() < names.len() {
        kind.owed = false;
    }
    for (name, problem) in failures {
        kind.note_failure(0, now);
        let text = format!("could not be started: {problem}{}", breaker(kind));
        effects.push(Effect::Warn { member: Some(name), text });
    }
}

/// A run is over. One that failed may be followed by another.
pub(super) fn see_end(
    state: &mut State,
    name: &MemberName,
    cause: Cause,
    since: Timestamp,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let failed = cause == Cause::Vanished || matches!(cause, Cause::Ended { code } if code != Some(0));
    for kind in state.kinds.iter_mut().filter(|kind| kind.made(name)) {
        kind.owed = failed;
        if failed {
            kind.note_failure(now.since(since), now);
            if kind.gave_up() {
                let text = format!("has failed{}", breaker(kind));
                effects.push(Effect::Warn { member: Some(name.clone()), text });
            }
        }
    }
}

/// A run that had failed before this lead began.
pub(super) fn see_past_end(state: &mut State, record: &MemberRecord) {
    let failed = matches!(record.state, MemberState::Failed | MemberState::Disappeared);
    for kind in state.kinds.iter_mut().filter(|kind| kind.made(&record.name)) {
        kind.owed |= failed && kind.failures == 0;
    }
}

fn breaker(kind: &Kind) -> String {
    match kind.gave_up() {
        true => format!("; after {PATIENCE} failures in a row it is not started again"),
        false => String::new(),
    }
}

/// Whether somebody is on the way, or will be.
pub(super) fn grows(state: &State) -> bool {
    state.kinds.iter().any(|kind| {
        let wants = !kind.is_closed(state.board.as_ref())
            && kind.wanted(state).is_some_and(|wanted| wanted > kind.of(state).len());
        wants || !kind.starting.is_empty()
    })
}

/// When the next start is due that waits for its pause.
pub(in crate::lead) fn next_start(state: &State) -> Option<Timestamp> {
    let waits = |kind: &&Kind| {
        !kind.is_closed(state.board.as_ref())
            && kind.wanted(state).is_some_and(|wanted| wanted > kind.of(state).len())
    };
    state.kinds.iter().filter(waits).filter_map(|kind| kind.not_before).min()
}
