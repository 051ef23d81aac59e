//! Overdue answers, on a simulated clock.

use super::*;
use ops::effects::health::Silence;

const PATIENCE_MS: u64 = 60_000;

/// A lead with the member `ann`, who is assigned task 1.
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
    let silences = effects.iter().filter_map(|effect| match effect {
        Effect::Health { name, silence, .. } if *name == who("ann") => Some(*silence),
        _ => None,
    });
    silences.collect()
}

/// CR-02, MSG-13: a member that owes an answer is checked when it is due and again after as long.
/// Nothing else happens.
#[test]
fn cr_02_msg_13_silent_member_is_checked_and_not_stopped() {
    let mut state = assigned();
    assert_eq!(state.next_tick(), Some(NOW.plus_ms(PATIENCE_MS)), "the driver wakes for it");
    assert_eq!(react(&mut state, Event::Tick, NOW.plus_ms(PATIENCE_MS - 1)), []);
    let effects = react(&mut state, Event::Tick, NOW.plus_ms(PATIENCE_MS));
    assert_eq!(
        health(&effects),
        [Some(Silence::NotTaken { task: TaskId(1), for_ms: PATIENCE_MS })]
    );
    assert_eq!(effects.len(), 1, "no end, no request: {effects:?}");
    let again = NOW.plus_ms(2 * PATIENCE_MS);
    assert_eq!(state.next_tick(), Some(again));
    assert_eq!(react(&mut state, Event::Tick, again.minus_ms(1)), []);
    let effects = react(&mut state, Event::Tick, again);
    assert_eq!((effects.len(), health(&effects).len()), (1, 1), "{effects:?}");
}

/// MSG-13: a member that works takes its mail after its turn, however long that is.
#[test]
fn msg_13_working_member_is_not_checked() {
    let mut state = assigned();
    let mut works = record("ann", 1, "worker");
    works.state = MemberState::Working;
    react(&mut state, Event::Members(vec![works]), NOW);
    assert_eq!(health(&react(&mut state, Event::Tick, NOW.plus_ms(100 * PATIENCE_MS))), []);
}

/// ID-07: a running member stays on the roster, whatever another program writes to the team file.
#[test]
fn id_07_only_running_members_are_put_back_on_the_roster() {
    let mut starts = record("bob", 2, "worker");
    starts.state = MemberState::Starting;
    let mut state = assigned();
    react(&mut state, Event::Members(vec![record("ann", 1, "worker"), starts]), NOW);
    let all = || [MemberName::lead(), who("ann"), who("bob")].map(|name| (name, None)).into();
    assert_eq!(react(&mut state, Event::Roster(all()), NOW), []);
    let alone = || [(MemberName::lead(), None)].into();
    let back = Effect::PutBack { name: who("ann"), incarnation: run(1) };
    assert_eq!(react(&mut state, Event::Roster(alone()), NOW), [back]);
    let gone = MemberRecord { exit: None, ..record("ann", 1, "worker") };
    react(&mut state, Event::Exited(Box::new(gone)), NOW);
    assert_eq!(react(&mut state, Event::Roster(alone()), NOW), []);
}

#[test]
fn member_that_started_its_task_owes_no_answer() {
    let mut state = assigned();
    let at = NOW.plus_ms(PATIENCE_MS - 1);
    react(&mut state, Event::Board(board(TaskState::InProgress)), at);
    assert_eq!(health(&react(&mut state, Event::Tick, at.plus_ms(100 * PATIENCE_MS))), []);
    // The released task is assigned to `ann` again: the time restarts.
    react(&mut state, Event::Board(board(TaskState::Pending)), at);
    assert_eq!(health(&react(&mut state, Event::Tick, at.plus_ms(PATIENCE_MS - 1))), []);
    assert_eq!(health(&react(&mut state, Event::Tick, at.plus_ms(PATIENCE_MS))).len(), 1);
}

/// MSG-12: an answer ends the silence; the next silence is reported again.
#[test]
fn msg_12_next_silence_after_an_answer_is_reported_again() {
    let mut state = assigned();
    let late = NOW.plus_ms(PATIENCE_MS);
    react(&mut state, Event::Tick, late);
    let started = react(&mut state, Event::Board(board(TaskState::InProgress)), late);
    assert_eq!(health(&started), [None]);
    assert_eq!(health(&react(&mut state, Event::Tick, late)), []);
    react(&mut state, Event::Board(board(TaskState::Pending)), late);
    assert_eq!(health(&react(&mut state, Event::Tick, late.plus_ms(PATIENCE_MS))).len(), 1);
}

/// Members that read no mail, wait for an answer, or whose task is blocked owe nothing.
#[test]
fn members_that_cannot_answer_owe_nothing() {
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

/// A later lead takes from the record what its predecessor reported.
#[test]
fn later_lead_does_not_repeat_the_report_but_reports_the_answer() {
    let mut silent = record("ann", 1, "worker");
    silent.unresponsive = Some("task #1 was given to it".to_owned());
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
    react(&mut state, Event::Members(vec![silent]), NOW);
    react(&mut state, Event::Board(board(TaskState::Pending)), NOW);
    assert_eq!(health(&react(&mut state, Event::Tick, NOW.plus_ms(PATIENCE_MS))), []);
    assert_eq!(health(&react(&mut state, Event::Board(board(TaskState::InProgress)), NOW)), [None]);
}
