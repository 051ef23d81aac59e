//! Hang detection, on a simulated clock.

use super::*;
use crate::state::HangRule;
use model::members::record::retrying_reason;
use model::team::settings::{OnHang, Settings};
use ops::effects::health::Silence;

const AFTER_S: u64 = 40;
const CHECK_MS: u64 = 10_000;

/// A lead with the member `ann`, who has worked on task 1 since `NOW`.
fn at_work(on_hang: OnHang) -> State {
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
    state.hang = Some(HangRule::new(on_hang, AFTER_S));
    react(&mut state, Event::Requests(Vec::new()), NOW);
    react(&mut state, Event::Members(vec![working()]), NOW);
    react(&mut state, Event::Board(board(TaskState::InProgress)), NOW);
    state
}

fn working() -> MemberRecord {
    MemberRecord { state: MemberState::Working, ..record("ann", 1, "worker") }
}

fn board(task: TaskState) -> Board {
    let owner = Some("ann".to_owned());
    let task = Task { owner, state: task, ..Task::new(TaskId(1), "s", "d") };
    Board { tasks: [(TaskId(1), task)].into(), ..Board::default() }
}

fn activity(fingerprint: u64) -> Event {
    Event::Activity { name: who("ann"), incarnation: run(1), fingerprint }
}

fn check() -> Effect {
    Effect::CheckActivity { name: who("ann"), incarnation: run(1) }
}

fn health(silence: Option<Silence>) -> Effect {
    Effect::Health { name: who("ann"), incarnation: run(1), silence }
}

/// Runs checks with the same fingerprint until the hang is reported; returns the effects of the
/// last one.
fn hang(state: &mut State) -> Vec<Effect> {
    let mut effects = Vec::new();
    for n in 1..=5 {
        assert_eq!(effects, [], "before check {n}");
        let at = NOW.plus_ms(n * CHECK_MS);
        assert_eq!(react(state, Event::Tick, at), [check()]);
        effects = react(state, activity(7), at);
    }
    effects
}

#[test]
fn hang_is_reported_once_and_cleared_by_a_sign_of_life() {
    let mut state = at_work(OnHang::Report);
    assert_eq!(state.next_tick(), Some(NOW.plus_ms(CHECK_MS)));
    let on_hang = OnHang::Report;
    let silence = Silence::Hang { task: TaskId(1), for_ms: AFTER_S * 1000, on_hang };
    assert_eq!(hang(&mut state), [health(Some(silence))]);
    let later = NOW.plus_ms(60_000);
    react(&mut state, Event::Tick, later);
    assert_eq!(react(&mut state, activity(7), later), [], "once");
    assert_eq!(react(&mut state, activity(8), later), [health(None)]);
    assert_eq!(react(&mut state, activity(9), later), [], "the first change clears it");
}

#[test]
fn change_question_and_task_end_restart_the_hang_timer() {
    let mut state = at_work(OnHang::Report);
    for n in 1..20 {
        let at = NOW.plus_ms(n * CHECK_MS);
        react(&mut state, Event::Tick, at);
        assert_eq!(react(&mut state, activity(n), at), [], "its screen changes");
    }
    let asks = MemberRecord { state: MemberState::AwaitingPermission, ..working() };
    react(&mut state, Event::Members(vec![asks]), NOW);
    assert_eq!(state.next_tick(), None);
    assert_eq!(react(&mut state, activity(1), NOW.plus_ms(9_000_000)), []);
    react(&mut state, Event::Members(vec![working()]), NOW);
    react(&mut state, Event::Board(board(TaskState::Completed)), NOW);
    assert_eq!(react(&mut state, Event::Tick, NOW.plus_ms(9_000_000)), []);
}

/// ST-08: however long the provider refuses, and whatever the screen shows.
#[test]
fn st_08_member_that_tries_again_by_itself_does_not_hang() {
    let mut state = at_work(OnHang::Restart);
    let reason = Some(retrying_reason("529 refused · attempt 5/10"));
    react(&mut state, Event::Members(vec![MemberRecord { reason, ..working() }]), NOW);
    assert_eq!(react(&mut state, Event::Tick, NOW.plus_ms(CHECK_MS)), [], "it is not looked at");
    assert_eq!(react(&mut state, activity(1), NOW.plus_ms(9_000_000)), []);
}

#[test]
fn hanging_member_is_stopped_and_restarted() {
    let mut state = at_work(OnHang::Restart);
    let effects = hang(&mut state);
    let ended =
        Effect::StopRun { name: who("ann"), incarnation: run(1), mode: StopMode::Immediate };
    assert!(effects.contains(&ended) && effects.len() == 2, "{effects:?}");
    let over = StoppedRun { name: who("ann"), incarnation: run(1), result: Ok(()) };
    let effects = react(&mut state, Event::RunsStopped(vec![over]), NOW.plus_ms(60_000));
    let [Effect::Remove(removed), Effect::Resume(name)] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!((name, removed[0].cause), (&who("ann"), Cause::Ended { code: None }));
    assert_eq!(removed[0].reason, "it showed no activity for 40s with task #1");
}

#[test]
fn tasks_of_a_hanging_member_are_released() {
    let mut state = at_work(OnHang::Release);
    let effects = hang(&mut state);
    assert!(effects.contains(&Effect::Release(who("ann"))) && effects.len() == 2, "{effects:?}");
}

/// The task of a hanging member is often stale already.
#[test]
fn owner_of_a_stale_task_can_hang() {
    let mut state = at_work(OnHang::Release);
    react(&mut state, Event::Board(board(TaskState::Stale)), NOW);
    assert!(hang(&mut state).contains(&Effect::Release(who("ann"))));
}

/// The setting is changed while a member hangs.
#[test]
fn new_action_applies_to_a_member_that_hangs_already() {
    let mut state = at_work(OnHang::Report);
    hang(&mut state);
    let settings = |on_hang| Settings { on_hang, hang_after_s: AFTER_S, ..Settings::by_hand(8) };
    let before = Box::new(settings(OnHang::Report));
    let later = NOW.plus_ms(60_000);
    let now = Box::new(settings(OnHang::Release));
    react(&mut state, Event::Settings { before, now }, later);
    react(&mut state, Event::Tick, later);
    assert!(react(&mut state, activity(7), later).contains(&Effect::Release(who("ann"))));
}
