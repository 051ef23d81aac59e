//! Who owes an answer, on a clock of the test's own.

use super::*;
use crate::ops::health::Silence;

const PATIENCE_MS: u64 = 60_000;

/// A lead of ann, who is given task 1.
fn assigned() -> State {
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
    react(&mut state, Event::Requests(Vec::new()), NOW);
    react(&mut state, Event::Members(vec![record("ann", 1, "worker")]), NOW);
    react(&mut state, Event::Board(board(TaskState::Pending)), NOW);
    state
}

fn board(task: TaskState) -> Board {
    let mut board = Board::default();
    let owner = Some("ann".to_owned());
    board.tasks.insert(TaskId(1), Task { owner, state: task, ..Task::new(TaskId(1), "s", "d") });
    board
}

fn health(effects: &[Effect]) -> Vec<Option<Silence>> {
    let said = effects.iter().filter_map(|effect| match effect {
        Effect::Health { name, silence, .. } if *name == who("ann") => Some(*silence),
        _ => None,
    });
    said.collect()
}

/// CR-02, MSG-13: silence is told of, once, at its time; nothing is done to who is silent.
#[test]
fn cr_02_msg_13_a_silent_member_is_told_of_once_and_never_ended() {
    let mut state = assigned();
    assert_eq!(state.next_tick(), Some(NOW.plus_ms(PATIENCE_MS)), "the driver wakes for it");
    assert_eq!(react(&mut state, Event::Tick, NOW.plus_ms(PATIENCE_MS - 1)), []);
    let effects = react(&mut state, Event::Tick, NOW.plus_ms(PATIENCE_MS));
    assert_eq!(
        health(&effects),
        [Some(Silence::NotStarted { task: TaskId(1), for_ms: PATIENCE_MS })]
    );
    assert_eq!(effects.len(), 1, "no end, no request: {effects:?}");
    assert_eq!(state.next_tick(), None);
    for later in [1, PATIENCE_MS, 100 * PATIENCE_MS] {
        assert_eq!(react(&mut state, Event::Tick, NOW.plus_ms(PATIENCE_MS + later)), []);
    }
}

/// ID-07: whoever runs is on the team, whatever another program has made of its file.
#[test]
fn id_07_only_who_runs_and_is_not_being_ended_is_put_back() {
    let mut starts = record("bob", 2, "worker");
    starts.state = MemberState::Starting;
    let mut state = assigned();
    react(&mut state, Event::Members(vec![record("ann", 1, "worker"), starts]), NOW);
    let all = || [MemberName::lead(), who("ann"), who("bob")].into();
    assert_eq!(react(&mut state, Event::Roster(all()), NOW), []);
    let alone = || [MemberName::lead()].into();
    let back = Effect::PutBack { name: who("ann"), incarnation: run(1) };
    assert_eq!(react(&mut state, Event::Roster(alone()), NOW), [back]);
    let gone = MemberRecord { exit: None, ..record("ann", 1, "worker") };
    react(&mut state, Event::Exited(Box::new(gone)), NOW);
    assert_eq!(react(&mut state, Event::Roster(alone()), NOW), []);
}

#[test]
fn who_begins_its_task_owes_nothing_and_may_take_its_time() {
    let mut state = assigned();
    let at = NOW.plus_ms(PATIENCE_MS - 1);
    react(&mut state, Event::Board(board(TaskState::InProgress)), at);
    assert_eq!(health(&react(&mut state, Event::Tick, at.plus_ms(100 * PATIENCE_MS))), []);
    // Given back to it, its time begins anew.
    react(&mut state, Event::Board(board(TaskState::Pending)), at);
    assert_eq!(health(&react(&mut state, Event::Tick, at.plus_ms(PATIENCE_MS - 1))), []);
    assert_eq!(health(&react(&mut state, Event::Tick, at.plus_ms(PATIENCE_MS))).len(), 1);
}

/// MSG-12: an answer is an edge back; the next silence is another one.
#[test]
fn msg_12_an_answer_ends_it_and_the_next_silence_is_told_again() {
    let mut state = assigned();
    let late = NOW.plus_ms(PATIENCE_MS);
    react(&mut state, Event::Tick, late);
    let begun = react(&mut state, Event::Board(board(TaskState::InProgress)), late);
    assert_eq!(health(&begun), [None]);
    assert_eq!(health(&react(&mut state, Event::Tick, late)), []);
    react(&mut state, Event::Board(board(TaskState::Pending)), late);
    assert_eq!(health(&react(&mut state, Event::Tick, late.plus_ms(PATIENCE_MS))).len(), 1);
}

/// Who reads no mail, waits for somebody's word, or cannot begin yet owes nothing.
#[test]
fn who_cannot_answer_owes_nothing() {
    let mut waits = record("ann", 1, "worker");
    waits.state = MemberState::AwaitingPlan;
    for ann in [waits, record("ann", 1, "shell")] {
        let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
        react(&mut state, Event::Members(vec![ann]), NOW);
        react(&mut state, Event::Board(board(TaskState::Pending)), NOW);
        assert_eq!(health(&react(&mut state, Event::Tick, NOW.plus_ms(PATIENCE_MS))), []);
    }
    let mut blocked = board(TaskState::Pending);
    blocked.tasks.insert(TaskId(2), Task::new(TaskId(2), "s", "d"));
    blocked.tasks.get_mut(&TaskId(1)).expect("task").blocked_by.push(TaskId(2));
    let mut state = assigned();
    react(&mut state, Event::Board(blocked), NOW);
    assert_eq!(health(&react(&mut state, Event::Tick, NOW.plus_ms(PATIENCE_MS))), []);
}

/// A lead that comes later knows from the record what its predecessor has said.
#[test]
fn a_later_lead_says_it_no_second_time_and_tells_of_the_answer() {
    let mut silent = record("ann", 1, "worker");
    silent.unresponsive = Some("task #1 was given to it".to_owned());
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
    react(&mut state, Event::Members(vec![silent]), NOW);
    react(&mut state, Event::Board(board(TaskState::Pending)), NOW);
    assert_eq!(health(&react(&mut state, Event::Tick, NOW.plus_ms(PATIENCE_MS))), []);
    assert_eq!(health(&react(&mut state, Event::Board(board(TaskState::InProgress)), NOW)), [None]);
}
