//! Scales members with the work and restarts failed ones: the number of members that each kind
//! needs, and the back-off between starts.

use std::collections::{BTreeMap, BTreeSet};

use crate::effect::Effect;
use crate::state::{BoardView, Pool, State, TrackedMember};
use model::board::Board;
use model::board::task::TaskState;
use model::id::{MemberName, TaskId};
use model::members::launch::{Demand, Template, WELL_AFTER_MS};
use model::members::lifecycle::{Cause, MemberState};
use model::members::record::MemberRecord;
use model::time::Timestamp;

/// Consecutive failures after which no member of the kind is started any more.
const MAX_FAILURES: u32 = 5;
/// Back-off after the first failure, in ms; doubles with each further failure.
const FIRST_PAUSE_MS: u64 = 1000;

/// Time in ms that a member outside a kind has to claim a task before one of the kind is started
/// for it.
const TAKE_MS: u64 = 2000;

impl Pool {
    pub(crate) fn new(template: Template) -> Pool {
        Pool {
            names: template.names(),
            asked_for: None,
            starting: BTreeSet::new(),
            dispatched: BTreeMap::new(),
            expected: BTreeSet::new(),
            failures: 0,
            not_before: None,
            defers_until: None,
            has_deferred: false,
            owed: !template.spec.after.is_empty() && template.is_single(),
            held: None,
            removed: false,
            template,
        }
    }

    /// Takes over a changed template. Earlier failures do not count against it.
    pub(super) fn adopt(&mut self, template: Template) {
        self.names = template.names();
        self.template = template;
        (self.failures, self.not_before) = (0, None);
    }

    /// Updates the number of members that the board requires.
    pub(super) fn handle_board(&mut self, board: &Board) {
        self.asked_for = match self.template.demand {
            Demand::Once | Demand::Standing | Demand::Always => None,
            Demand::WhenNeeded | Demand::Scaled(_) | Demand::PerTask(_) => {
                Some(self.template.wanted(board))
            }
        };
    }

    fn may_start(&self, seen: Option<&BoardView>, now: Timestamp) -> bool {
        !self.is_closed(seen)
            && self.not_before.is_none_or(|at| at <= now)
            && self.awaited(seen).all(|state| state.frees_dependants())
    }

    /// Returns whether time alone does not reopen the kind: it failed too often, a shutdown of one
    /// of its members was requested, what it waits for will not be ready, or the settings no longer
    /// contain it.
    fn is_closed(&self, seen: Option<&BoardView>) -> bool {
        self.removed
            || self.gave_up()
            || self.held.is_some_and(|held| newest(seen) <= held)
            || self.awaited(seen).any(|state| state.is_over() && !state.frees_dependants())
    }

    /// Returns the states of the tasks that its first start waits for; those of deleted tasks are
    /// left out. Before the first read of the board all are open.
    fn awaited<'s>(&'s self, seen: Option<&'s BoardView>) -> impl Iterator<Item = TaskState> + 's {
        let state = move |key: &String| match seen {
            Some(seen) => {
                let task = seen.board.find(key).ok().and_then(|id| seen.board.tasks.get(&id));
                task.map(|task| task.state)
            }
            None => Some(TaskState::Pending),
        };
        self.template.spec.after.iter().filter_map(state)
    }

    fn gave_up(&self) -> bool {
        self.failures >= MAX_FAILURES
    }

    /// Counts a failed run or start; `lived_ms` is the uptime of the run.
    fn note_failure(&mut self, lived_ms: u64, now: Timestamp) {
        self.failures = if lived_ms >= WELL_AFTER_MS { 1 } else { self.failures + 1 };
        self.not_before =
            Some(now.plus_ms(FIRST_PAUSE_MS << (self.failures - 1).min(MAX_FAILURES)));
    }

    /// Returns the journal effect with the state of the circuit breaker.
    fn breaker(&self, member: &MemberName, now: Timestamp) -> Effect {
        let delay = self.not_before.filter(|_| !self.gave_up()).map(|at| at.since(now));
        Effect::JournalRestart { member: member.clone(), failures: self.failures, delay_ms: delay }
    }

    /// Returns the required number of members, given the current one; `None` before the first read
    /// of the board.
    fn wanted(&self, there: usize) -> Option<usize> {
        match self.template.demand {
            Demand::Once | Demand::Standing | Demand::Always => {
                Some(usize::from(self.owed || there > 0))
            }
            Demand::WhenNeeded | Demand::Scaled(_) | Demand::PerTask(_) => self.asked_for,
        }
    }

    /// Returns whether members are missing that will be started sooner or later.
    fn lacks(&self, there: usize, seen: Option<&BoardView>) -> bool {
        !self.is_closed(seen) && self.wanted(there).is_some_and(|wanted| wanted > there)
    }
}

fn headcount(state: &State) -> Vec<usize> {
    let mut heads = vec![0; state.kinds.len()];
    for nth in state.members.values().filter_map(|view| view.kind) {
        heads[nth] += 1;
    }
    heads
}

fn starts_members(state: &State) -> bool {
    state.is_leading() && state.members_seen && !state.budget.stops_starts
}

/// Starts missing members and dismisses surplus ones.
pub(super) fn staff(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if !starts_members(state) {
        return;
    }
    for (nth, there) in headcount(state).into_iter().enumerate() {
        // An expired back-off would make every tick due at once.
        state.kinds[nth].not_before.take_if(|at| *at <= now);
        let kind = &state.kinds[nth];
        if kind.removed {
            continue;
        }
        if kind.template.is_per_task() {
            dispatch(state, nth, now, effects);
            continue;
        }
        let Some(wanted) = kind.wanted(there) else { continue };
        let coming = kind.starting.iter().filter(|name| !state.members.contains_key(name)).count();
        let all = there + coming;
        if all < wanted && kind.may_start(state.seen.as_ref(), now) {
            let deferred = deferred(state, nth, now);
            start(state, nth, (wanted - all).saturating_sub(deferred), effects);
            continue;
        }
        let kind = &mut state.kinds[nth];
        (kind.defers_until, kind.has_deferred) = (None, false);
        if all > wanted {
            dismiss(state, nth, all - wanted, effects);
        }
    }
}

/// Returns the number of starts to defer for a short time, because members outside the kind can
/// take its tasks.
fn deferred(state: &mut State, nth: usize, now: Timestamp) -> usize {
    if state.kinds[nth].has_deferred {
        return 0;
    }
    let takers = takers(state, nth);
    if takers == 0 {
        return 0;
    }
    let kind = &mut state.kinds[nth];
    let until = *kind.defers_until.get_or_insert(now.plus_ms(TAKE_MS));
    if until > now {
        return takers;
    }
    (kind.defers_until, kind.has_deferred) = (None, true);
    0
}

/// Returns the number of free tasks of the kind that idle workers outside the kind are about to
/// claim.
fn takers(state: &State, nth: usize) -> usize {
    let (Some(seen), kind) = (&state.seen, &state.kinds[nth]) else { return 0 };
    let is_free = |(name, view): &(&MemberName, &TrackedMember)| {
        let rests = view.state == MemberState::Idle
            && view.watched
            && view.ending.is_none()
            && !view.dismissed;
        rests && view.runs_commands && view.kind != Some(nth) && seen.work_of(name).is_none()
    };
    let mut roles: Vec<_> = state
        .members
        .iter()
        .filter(is_free)
        .map(|(_, view)| view.request.role.as_deref())
        .collect();
    if roles.is_empty() {
        return 0;
    }
    let before = roles.len();
    for task in seen.board.pending() {
        let is_open =
            task.owner.is_none() && !task.extra.run.is_empty() && seen.board.is_free(task);
        if is_open && kind.template.is_for_it(&kind.names, task) {
            let at = roles.iter().position(|role| task.fits(*role));
            at.map(|at| roles.swap_remove(at));
        }
    }
    before - roles.len()
}

/// Starts a run for each task that can be started, up to the limit of the kind. Each run ends with
/// its task, so none is dismissed.
fn dispatch(state: &mut State, nth: usize, now: Timestamp, effects: &mut Vec<Effect>) {
    let (Some(seen), kind) = (&state.seen, &state.kinds[nth]) else { return };
    if kind.asked_for.is_none_or(|asked| asked == 0) || !kind.may_start(Some(seen), now) {
        return;
    }
    let of_kind =
        state.members.iter().filter(|(_, view)| view.kind == Some(nth)).map(|(name, _)| name);
    let busy = of_kind.chain(&kind.starting).chain(&state.listed).cloned().collect();
    let taken = state.kinds.iter().flat_map(|kind| kind.dispatched.values().copied()).collect();
    let specs = kind.template.dispatch(&seen.board, &busy, &taken);
    if specs.is_empty() {
        return;
    }
    let kind = &mut state.kinds[nth];
    for spec in &specs {
        let name = MemberName::new(&spec.name).ok();
        kind.starting.extend(name.clone());
        kind.dispatched.extend(name.zip(spec.task));
    }
    effects.push(Effect::Start { kind: nth, specs });
}

/// Returns whether runs of the tasks on the board are about to begin: one is being started, or will
/// be once a run has ended.
pub(super) fn awaits_runs(state: &State, now: Timestamp) -> bool {
    let Some(seen) = state.seen.as_ref().filter(|_| starts_members(state)) else { return false };
    let is_leaving = |name: &MemberName| {
        let is_there = state.listed.contains(name) || state.members.contains_key(name);
        is_there && state.members.get(name).is_none_or(|view| !view.stuck)
    };
    let mut kinds = state.kinds.iter().filter(|kind| kind.template.is_per_task());
    kinds.any(|kind| {
        let makes_room = !kind.expected.is_empty() || kind.names.iter().any(is_leaving);
        let has_tasks =
            || !kind.template.dispatch(&seen.board, &BTreeSet::new(), &BTreeSet::new()).is_empty();
        !kind.starting.is_empty() || makes_room && kind.may_start(Some(seen), now) && has_tasks()
    })
}

/// Returns whether a run for a single task still exists, even one that is ending.
pub(super) fn has_runs(state: &State) -> bool {
    let mut kinds = state.members.values().filter_map(|view| state.kinds.get(view.kind?));
    kinds.any(|kind| kind.template.is_per_task())
}

/// Handles a run that ended by itself. A run for a single task ends when the task does, so its kind
/// is healthy.
pub(super) fn handle_left(state: &mut State, record: &MemberRecord) {
    let Some(nth) = state.maker(&record.name) else { return };
    let kind = &mut state.kinds[nth];
    if kind.template.is_per_task() && record.exit.is_some() {
        (kind.failures, kind.not_before) = (0, None);
    }
}

fn start(state: &mut State, nth: usize, lacking: usize, effects: &mut Vec<Effect>) {
    let (kind, members, listed) = (&mut state.kinds[nth], &state.members, &state.listed);
    let taken = |name: &&MemberName| {
        kind.starting.contains(name)
            || members.keys().chain(listed).any(|there| there.clashes_with(name.as_str()))
    };
    let free = kind.names.iter().filter(|name| !taken(name));
    let names: Vec<MemberName> = free.take(lacking).cloned().collect();
    if !names.is_empty() {
        let specs = names.iter().map(|name| kind.template.spec_named(name)).collect();
        effects.push(Effect::Start { kind: nth, specs });
        kind.starting.extend(names);
    }
}

/// Asks surplus idle members to shut down, each at most once per run.
fn dismiss(state: &mut State, nth: usize, surplus: usize, effects: &mut Vec<Effect>) {
    let seen = state.seen.as_ref();
    let rests = |name: &MemberName, view: &TrackedMember| {
        let works = || seen.is_none_or(|seen| seen.board.work_of(name).is_some());
        view.state == MemberState::Idle && view.ending.is_none() && !view.dismissed && !works()
    };
    let of_kind = state.members.iter().filter(|(_, view)| view.kind == Some(nth));
    let leaving =
        |(_, view): &(&MemberName, &TrackedMember)| view.dismissed || view.ending.is_some();
    let on_their_way = of_kind.clone().filter(leaving).count();
    let idle = of_kind.rev().filter(|(name, view)| rests(name, view));
    let names: Vec<MemberName> =
        idle.map(|(name, _)| name.clone()).take(surplus.saturating_sub(on_their_way)).collect();
    for name in &names {
        if let Some(view) = state.members.get_mut(name) {
            view.dismissed = true;
        }
    }
    effects.extend(Effect::ask(names, "no work for it", false));
}

/// Suspends starts of the kind after a shutdown request that is not the lead's own: the member must
/// not be replaced.
pub(super) fn hold(state: &mut State, name: &MemberName) {
    if state.members.get(name).is_some_and(|view| view.dismissed) {
        return;
    }
    let newest = newest(state.seen.as_ref());
    if let Some(nth) = state.maker(name) {
        state.kinds[nth].held = Some(newest);
    }
}

fn newest(seen: Option<&BoardView>) -> TaskId {
    seen.and_then(|seen| seen.board.tasks.keys().next_back().copied()).unwrap_or(TaskId(0))
}

/// Handles the results of `Start`.
pub(super) fn handle_started(
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
    let has_failed = |name: &MemberName| failures.iter().any(|(failed, _)| failed == name);
    let is_new = |name: &&MemberName| !has_failed(name) && !state.members.contains_key(*name);
    kind.expected.extend(names.iter().filter(is_new).cloned());
    for (name, problem) in failures {
        kind.note_failure(0, now);
        let state = kind.breaker(&name, now);
        let text = format!("could not be started: {problem}");
        effects.extend([Effect::Warn { member: Some(name), text }, state]);
    }
}

/// Handles the end of a run. The demand says whether it is owed a replacement.
pub(super) fn handle_end(
    state: &mut State,
    name: &MemberName,
    cause: Cause,
    since: Timestamp,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let Some(nth) = state.maker(name) else { return };
    let kind = &mut state.kinds[nth];
    kind.owed = kind.template.demand.restarts(cause);
    if kind.owed {
        kind.note_failure(now.since(since), now);
        effects.push(kind.breaker(name, now));
    }
}

/// Handles a run that failed before this lead began.
pub(super) fn handle_past_end(state: &mut State, record: &MemberRecord) {
    let failed = matches!(record.state, MemberState::Failed | MemberState::Disappeared);
    if let Some(nth) = state.maker(&record.name) {
        let kind = &mut state.kinds[nth];
        if kind.failures == 0 && kind.starting.is_empty() {
            let is_owed = failed || record.is_restarted_by_lead();
            kind.owed = is_owed && kind.template.demand != Demand::Once;
        }
    }
}

/// Resets the circuit breaker of a kind after a start by another process, such as `resume`.
pub(super) fn handle_new_run(state: &mut State, name: &MemberName, effects: &mut Vec<Effect>) {
    let Some(nth) = state.maker(name) else { return };
    let kind = &mut state.kinds[nth];
    let is_own = kind.expected.remove(name) || kind.starting.contains(name);
    if kind.failures > 0 && !is_own {
        (kind.failures, kind.not_before) = (0, None);
        effects.push(Effect::JournalRestart { member: name.clone(), failures: 0, delay_ms: None });
    }
}

/// Returns whether a member of this name is being started or will be.
pub(super) fn will_start(state: &State, name: &MemberName) -> bool {
    let Some(kind) = state.maker(name).and_then(|nth| state.kinds.get(nth)) else { return false };
    let may_start = !state.budget.stops_starts;
    let is_coming = !kind.starting.is_empty() || !kind.expected.is_empty();
    is_coming || may_start && kind.lacks(0, state.seen.as_ref())
}

/// Returns whether a member is being started or will be.
pub(super) fn grows(state: &State) -> bool {
    let heads = headcount(state);
    let mut kinds = state.kinds.iter().zip(heads);
    let may_start = !state.budget.stops_starts;
    kinds.any(|(kind, there)| {
        may_start && kind.lacks(there, state.seen.as_ref()) || !kind.starting.is_empty()
    })
}

/// Returns the time of the next start that waits for its back-off or deferral.
pub(super) fn next_start(state: &State) -> Option<Timestamp> {
    let kinds = state.kinds.iter().zip(headcount(state));
    let kinds = kinds.filter(|_| !state.budget.stops_starts);
    let waits = kinds.filter(|(kind, there)| kind.lacks(*there, state.seen.as_ref()));
    waits.filter_map(|(kind, _)| kind.not_before.into_iter().chain(kind.defers_until).min()).min()
}
