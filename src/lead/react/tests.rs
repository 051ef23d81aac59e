//! Tests of the step: given a state, an event has these effects.

use super::*;
use crate::event::StoppedRun;
use fixture::sample;
use model::board::external_change::ExternalChange;
use model::board::task::{Task, TaskState};
use model::decisions::request::{ShutdownOutcome, ShutdownRequest, WorkLeft};
use model::id::{Incarnation, MemberName, RequestId, TaskId};
use model::mail::envelope::Envelope;
use model::mail::protocol::{self, Message};
use model::members::lifecycle::{Cause, MemberState};
use model::members::placement::{Placement, ProcessId, PtyHold};
use model::members::record::{ExitRecord, FORMAT, MemberRecord, StartRecord};
use model::team::settings::Settings;
use ops::hosts::stop_mode::StopMode;

mod beside;
mod budget;
mod followup;
mod hang;
mod health;
mod hooks;
mod idle_check;
mod limit;
mod native_state;
mod offer;
mod questions;
mod readiness;
mod recorded;
mod replay;
mod shutdown;
mod staff;
mod time_limit;

const NOW: Timestamp = Timestamp(100_000);

fn who(name: &str) -> MemberName {
    MemberName::new(name).expect("name")
}

fn run(n: u8) -> Incarnation {
    sample::run(n.into())
}

/// The record of a member in its `n`th run that has proven that it runs.
fn record(name: &str, n: u8, profile: &str) -> MemberRecord {
    let process = ProcessId { pid: 1000 + i32::from(n), start: 7 };
    let start = StartRecord {
        socket: None,
        launcher: process,
        program: process,
        tty: None,
        cwd: "/".to_owned(),
        at: NOW,
    };
    MemberRecord {
        state: MemberState::Idle,
        start: Some(start),
        ready_at: Some(NOW),
        ..sample::record(name, run(n), profile, NOW)
    }
}

fn request(name: &str, n: u8, force: bool) -> ShutdownRequest {
    let id = RequestId::shutdown(5, &who(name));
    ShutdownRequest { force, ..sample::shutdown(id, name, run(n), NOW, NOW.plus_ms(30_000)) }
}

fn mail(from: &str, id: &str, message: &Message) -> Event {
    Event::Mail(vec![Envelope::new(from, &message.to_text(), id.to_owned(), NOW)])
}

/// A read of the empty mailbox.
fn no_mail() -> Event {
    Event::Mail(Vec::new())
}

fn approval(request: &str) -> Message {
    Message::ShutdownApproved(protocol::ShutdownApproved {
        request_id: request.to_owned(),
        from: None,
        timestamp: None,
        pane_id: None,
        backend_type: None,
        status: None,
        pending_work: Vec::new(),
        artifacts_committed: None,
    })
}

fn rejection(request: &str) -> Message {
    Message::ShutdownRejected(protocol::ShutdownRejected {
        request_id: request.to_owned(),
        from: None,
        reason: Some("busy".to_owned()),
        timestamp: None,
    })
}

fn idle() -> Message {
    Message::parse(r#"{"type":"idle_notification","from":"ann","idleReason":"available"}"#)
}

/// A lead with these members; the effects of their first records are dropped.
fn leading(finish: Finish, members: &[MemberRecord]) -> State {
    let mut state = State::new(Goal::Lead(finish), Vec::new());
    react(&mut state, Event::Members(members.to_vec()), NOW);
    state
}

fn stops(effects: &[Effect]) -> Vec<(String, bool)> {
    let ends = effects.iter().filter_map(|e| match e {
        Effect::StopRun { name, mode, .. } => Some((name.to_string(), *mode == StopMode::Agreed)),
        _ => None,
    });
    ends.collect()
}

fn resolves(effects: &[Effect]) -> Vec<ShutdownOutcome> {
    let outcomes = effects.iter().filter_map(|e| match e {
        Effect::Resolve { outcome, .. } => Some(*outcome),
        _ => None,
    });
    outcomes.collect()
}

fn warns(effects: &[Effect]) -> usize {
    effects.iter().filter(|e| matches!(e, Effect::Warn { .. })).count()
}

fn stopped(name: &str, n: u8, result: Result<(), String>) -> Event {
    Event::RunsStopped(vec![StoppedRun { name: who(name), incarnation: run(n), result }])
}

#[test]
fn member_is_watched_once_it_has_proven_itself() {
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
    let mut starting = record("ann", 1, "worker");
    starting.state = MemberState::Starting;
    assert_eq!(react(&mut state, Event::Members(vec![starting]), NOW), []);
    assert!(state.members.contains_key(&who("ann")), "it can be asked to end all the same");
    let up = record("ann", 1, "worker");
    let watch = Effect::WatchExit {
        name: who("ann"),
        incarnation: run(1),
        process: ProcessId { pid: 1001, start: 7 },
    };
    assert_eq!(react(&mut state, Event::Members(vec![up.clone()]), NOW), [watch]);
    assert_eq!(react(&mut state, Event::Members(vec![up]), NOW), []);
}

#[test]
fn sd_03_starting_member_is_not_gone_and_ends_at_the_deadline() {
    let mut starting = record("ann", 1, "worker");
    starting.state = MemberState::Starting;
    let mut state = leading(Finish::Manual, &[starting]);
    assert_eq!(react(&mut state, Event::Requests(vec![request("ann", 1, false)]), NOW), []);
    let due = react(&mut state, no_mail(), NOW.plus_ms(30_000));
    assert_eq!(stops(&due), [("ann".to_owned(), false)]);
}

#[test]
fn sd_02_approved_request_is_resolved_after_its_placement_closed() {
    let mut state = leading(Finish::Manual, &[record("ann", 1, "worker")]);
    let asked = react(&mut state, Event::Requests(vec![request("ann", 1, false)]), NOW);
    assert!(matches!(asked[..], [Effect::MoveOn { cause: Cause::Asked, .. }]), "{asked:?}");
    let agreed = react(&mut state, mail("ann", "m1", &approval("shutdown-5@ann")), NOW);
    assert_eq!(stops(&agreed), [("ann".to_owned(), true)]);
    assert_eq!(resolves(&agreed), []);
    let closed = react(&mut state, stopped("ann", 1, Ok(())), NOW);
    assert!(matches!(&closed[0], Effect::Remove(of) if of[0].cause == Cause::Released));
    assert_eq!(resolves(&closed), [ShutdownOutcome::Closed]);
}

#[test]
fn sd_10_sd_11_invalid_approvals_are_ignored_with_a_warning() {
    let known = [record("ann", 2, "worker"), record("bob", 1, "worker")];
    let table: [(&str, &str, ShutdownRequest); 4] = [
        ("an unknown request", "shutdown-99@ann", request("ann", 2, false)),
        ("from another member", "shutdown-5@ann", request("ann", 2, false)),
        ("from the lead itself", "shutdown-5@ann", request("ann", 2, false)),
        ("of an earlier run", "shutdown-5@ann", request("ann", 1, false)),
    ];
    for (what, id, request) in table {
        let from = match what {
            "from another member" => "bob",
            "from the lead itself" => "team-lead",
            _ => "ann",
        };
        let mut state = leading(Finish::Manual, &known);
        react(&mut state, Event::Requests(vec![request]), NOW);
        let effects = react(&mut state, mail(from, "m1", &approval(id)), NOW);
        assert_eq!(stops(&effects), [], "{what}");
        assert_eq!(warns(&effects), 1, "{what}");
        assert!(effects.contains(&Effect::Acknowledge { ids: vec!["m1".to_owned()] }), "{what}");
    }
}

#[test]
fn msg_03_repeated_message_is_handled_once() {
    let mut state = leading(Finish::Manual, &[record("ann", 1, "worker")]);
    react(&mut state, Event::Requests(vec![request("ann", 1, false)]), NOW);
    react(&mut state, mail("ann", "m1", &approval("shutdown-5@ann")), NOW);
    let again = react(&mut state, mail("ann", "m1", &approval("shutdown-5@ann")), NOW);
    assert_eq!(again, [Effect::Acknowledge { ids: vec!["m1".to_owned()] }]);
    let second = react(&mut state, mail("ann", "m2", &approval("shutdown-5@ann")), NOW);
    assert_eq!((stops(&second).len(), warns(&second)), (0, 1));
    assert_eq!(
        state.handled,
        ["m2".to_owned()].into(),
        "what is marked is not remembered for ever"
    );
}

#[test]
fn text_for_the_lead_stays_unread() {
    let mut state = leading(Finish::Manual, &[record("ann", 1, "worker")]);
    for text in ["hello", r#"see {"type":"shutdown_approved","requestId":"shutdown-5@ann"}"#] {
        assert_eq!(react(&mut state, mail("ann", "m1", &Message::Text(text.to_owned())), NOW), []);
    }
}

#[test]
fn sd_01_silent_member_is_stopped_at_the_deadline() {
    let mut state = leading(Finish::Manual, &[record("ann", 1, "worker")]);
    react(&mut state, Event::Requests(vec![request("ann", 1, false)]), NOW);
    assert_eq!(state.next_tick(), Some(NOW.plus_ms(30_000)));
    assert_eq!(react(&mut state, no_mail(), NOW.plus_ms(29_999)), []);
    let due = react(&mut state, no_mail(), NOW.plus_ms(30_000));
    assert_eq!(stops(&due), [("ann".to_owned(), false)]);
    assert_eq!(react(&mut state, no_mail(), NOW.plus_ms(31_000)), []);
    let late =
        react(&mut state, mail("ann", "m1", &approval("shutdown-5@ann")), NOW.plus_ms(31_000));
    assert_eq!((stops(&late).len(), warns(&late)), (0, 1));
    let closed = react(&mut state, stopped("ann", 1, Ok(())), NOW.plus_ms(32_000));
    assert_eq!(resolves(&closed), [ShutdownOutcome::TimedOut]);
}

#[test]
fn forced_requests_and_members_without_mail_are_stopped_unasked() {
    for (profile, force, outcome) in
        [("worker", true, ShutdownOutcome::Forced), ("shell", false, ShutdownOutcome::Closed)]
    {
        let mut state = leading(Finish::Manual, &[record("ann", 1, profile)]);
        let effects = react(&mut state, Event::Requests(vec![request("ann", 1, force)]), NOW);
        assert_eq!(stops(&effects), [("ann".to_owned(), false)], "{profile}");
        assert_eq!(resolves(&react(&mut state, stopped("ann", 1, Ok(())), NOW)), [outcome]);
    }
}

#[test]
fn rejection_closes_the_request_and_keeps_the_member() {
    let mut state = leading(Finish::Manual, &[record("ann", 1, "worker")]);
    react(&mut state, Event::Requests(vec![request("ann", 1, false)]), NOW);
    let effects = react(&mut state, mail("ann", "m1", &rejection("shutdown-5@ann")), NOW);
    assert_eq!(resolves(&effects), [ShutdownOutcome::Rejected]);
    assert_eq!(stops(&effects), []);
    assert_eq!(state.next_tick(), None);
}

#[test]
fn cr_01_vanished_member_is_retired_and_its_request_resolved() {
    for (exit, cause) in [
        (None, Cause::Vanished),
        (
            Some(ExitRecord { code: Some(3), at: NOW, ..ExitRecord::default() }),
            Cause::Ended { code: Some(3) },
        ),
    ] {
        let mut gone = record("ann", 1, "worker");
        let mut state = leading(Finish::Manual, &[gone.clone()]);
        react(&mut state, Event::Requests(vec![request("ann", 1, false)]), NOW);
        gone.exit = exit;
        let effects = react(&mut state, Event::Exited(Box::new(gone.clone())), NOW);
        assert_eq!(stops(&effects), [("ann".to_owned(), false)]);
        assert_eq!(react(&mut state, Event::Exited(Box::new(gone)), NOW), []);
        let effects = react(&mut state, stopped("ann", 1, Ok(())), NOW);
        assert!(matches!(&effects[0], Effect::Remove(of) if of[0].cause == cause), "{effects:?}");
        assert_eq!(resolves(&effects), [ShutdownOutcome::Gone]);
    }
}

#[test]
fn end_of_an_earlier_run_does_not_affect_the_next() {
    let mut state = leading(Finish::Manual, &[record("ann", 2, "worker")]);
    assert_eq!(react(&mut state, Event::Exited(Box::new(record("ann", 1, "worker"))), NOW), []);
    assert_eq!(react(&mut state, stopped("ann", 1, Ok(())), NOW), []);
}

#[test]
fn request_for_a_finished_run_resolves_as_gone() {
    let mut state = leading(Finish::Manual, &[]);
    let effects = react(&mut state, Event::Requests(vec![request("ann", 1, false)]), NOW);
    assert_eq!(resolves(&effects), [ShutdownOutcome::Gone]);
}

fn board(states: &[TaskState]) -> Event {
    let mut board = Board::default();
    for (n, state) in (1..).zip(states) {
        let mut task = Task::new(TaskId(n), "s", "d");
        task.state = *state;
        board.tasks.insert(task.id, task);
    }
    Event::Board(board)
}

#[test]
fn team_stops_when_all_tasks_are_over() {
    use TaskState::{Completed, Failed, InProgress, Pending};
    for (states, over) in [
        (vec![Completed, Failed], true),
        (vec![Completed, InProgress], false),
        (vec![Pending], false),
        (vec![], true),
    ] {
        let mut state = leading(Finish::TasksDone, &[record("ann", 1, "worker")]);
        let effects = react(&mut state, board(&states), NOW);
        let asked = matches!(effects[..], [Effect::AskShutdown { force: false, .. }]);
        assert_eq!(asked, over, "{states:?}: {effects:?}");
    }
    let mut manual = leading(Finish::Manual, &[record("ann", 1, "worker")]);
    assert_eq!(react(&mut manual, board(&[Completed]), NOW), []);
}

#[test]
fn team_set_to_end_with_its_tasks_waits_for_the_first_one() {
    let mut state = leading(Finish::Manual, &[record("ann", 1, "worker")]);
    react(&mut state, board(&[]), NOW);
    let before = Settings::by_hand(8);
    let now = Settings { finish: Finish::TasksDone, ..before.clone() };
    let changed = Event::Settings { before: Box::new(before), now: Box::new(now) };
    assert_eq!(react(&mut state, changed, NOW), []);
    assert_eq!(react(&mut state, board(&[]), NOW), []);
    assert_eq!(react(&mut state, board(&[TaskState::Pending]), NOW), []);
    let effects = react(&mut state, board(&[TaskState::Completed]), NOW);
    let is_end = |effect: &Effect| matches!(effect, Effect::AskShutdown { .. });
    assert!(effects.iter().any(is_end), "{effects:?}");
}

#[test]
fn team_ends_when_its_last_member_is_gone() {
    let mut state = leading(Finish::TasksDone, &[record("ann", 1, "worker")]);
    react(&mut state, board(&[TaskState::Pending]), NOW);
    react(&mut state, Event::Exited(Box::new(record("ann", 1, "worker"))), NOW);
    react(&mut state, stopped("ann", 1, Ok(())), NOW);
    assert_eq!(state.end(), Some(LeadEnd::TasksOver));
}

#[test]
fn stop_asks_all_members_and_a_second_stop_forces() {
    let mut state =
        leading(Finish::Manual, &[record("ann", 1, "worker"), record("bob", 2, "worker")]);
    let names = vec![who("ann"), who("bob")];
    let first = react(&mut state, Event::Stop { force: false }, NOW);
    assert!(
        matches!(&first[..], [Effect::AskShutdown { names: n, force: false, .. }] if *n == names),
        "{first:?}"
    );
    react(
        &mut state,
        Event::Requests(vec![request("ann", 1, false), request("bob", 2, false)]),
        NOW,
    );
    let second = react(&mut state, Event::Stop { force: true }, NOW);
    assert!(
        matches!(&second[..], [Effect::AskShutdown { names: n, force: true, .. }] if *n == names),
        "{second:?}"
    );
    react(&mut state, Event::Requests(vec![request("ann", 1, true), request("bob", 2, true)]), NOW);
    react(&mut state, stopped("ann", 1, Ok(())), NOW);
    assert_eq!(state.end(), None);
    react(&mut state, stopped("bob", 2, Ok(())), NOW);
    assert_eq!(state.end(), Some(LeadEnd::Stopped));
}

#[test]
fn member_that_rejected_a_stop_is_asked_again_when_idle() {
    let mut state = leading(Finish::Manual, &[record("ann", 1, "worker")]);
    react(&mut state, Event::Stop { force: false }, NOW);
    react(&mut state, Event::Requests(vec![request("ann", 1, false)]), NOW);
    let refused = react(&mut state, mail("ann", "m1", &rejection("shutdown-5@ann")), NOW);
    assert!(!refused.iter().any(|e| matches!(e, Effect::AskShutdown { .. })), "{refused:?}");
    assert_eq!(state.end(), None);
    let rests = react(&mut state, mail("ann", "m2", &idle()), NOW);
    assert!(
        rests.iter().any(|e| matches!(e, Effect::AskShutdown { force: false, .. })),
        "{rests:?}"
    );
}

#[test]
fn earlier_rejection_does_not_exempt_a_member_from_a_stop() {
    let mut state = leading(Finish::Manual, &[record("ann", 1, "worker")]);
    react(&mut state, Event::Requests(vec![request("ann", 1, false)]), NOW);
    react(&mut state, mail("ann", "m1", &rejection("shutdown-5@ann")), NOW);
    let stop = react(&mut state, Event::Stop { force: false }, NOW);
    assert!(stop.iter().any(|e| matches!(e, Effect::AskShutdown { .. })), "{stop:?}");
}

#[test]
fn member_that_cannot_be_stopped_does_not_block_the_stop() {
    let mut state = leading(Finish::Manual, &[record("ann", 1, "worker")]);
    react(&mut state, Event::Stop { force: true }, NOW);
    react(&mut state, Event::Requests(vec![request("ann", 1, true)]), NOW);
    let effects = react(&mut state, stopped("ann", 1, Err("foreign".to_owned())), NOW);
    assert_eq!(warns(&effects), 1);
    assert_eq!(resolves(&effects), [ShutdownOutcome::TimedOut]);
    assert_eq!(state.end(), Some(LeadEnd::Stopped));
}

#[test]
fn carrier_ends_when_its_requests_are_resolved() {
    let wanted = request("ann", 1, false);
    let mut state = State::new(Goal::Carry([wanted.id.clone()].into()), Vec::new());
    react(
        &mut state,
        Event::Members(vec![record("ann", 1, "worker"), record("bob", 2, "worker")]),
        NOW,
    );
    assert_eq!(state.end(), None);
    react(&mut state, Event::Requests(vec![wanted]), NOW);
    react(&mut state, mail("ann", "m1", &approval("shutdown-5@ann")), NOW);
    assert_eq!(state.end(), None);
    react(&mut state, stopped("ann", 1, Ok(())), NOW);
    assert_eq!(state.end(), Some(LeadEnd::Carried));
}

#[test]
fn deleted_team_ends_its_lead() {
    let mut state = leading(Finish::Manual, &[record("ann", 1, "worker")]);
    react(&mut state, Event::End(LeadEnd::TeamGone), NOW);
    assert_eq!(state.end(), Some(LeadEnd::TeamGone));
}

#[test]
fn tk_07_task_deleted_by_another_program_is_journaled_once() {
    let mut state = leading(Finish::Manual, &[]);
    let with =
        Board { tasks: [(TaskId(1), Task::new(TaskId(1), "s", "d"))].into(), ..Board::default() };
    assert_eq!(react(&mut state, Event::Board(with), NOW), []);
    let gone =
        Effect::JournalChange(ExternalChange::Vanished { id: TaskId(1), subject: "s".to_owned() });
    assert_eq!(react(&mut state, Event::Board(Board::default()), NOW), [gone]);
    assert_eq!(react(&mut state, Event::Board(Board::default()), NOW), []);
}

/// TK-20: phalanx refuses that on its own faces, a native program writes it into the file.
#[test]
fn tk_20_task_completed_over_its_blocker_is_named_once() {
    let mut state = leading(Finish::Manual, &[]);
    let board = |done: TaskState| {
        let (first, mut second) = (Task::new(TaskId(1), "A", ""), Task::new(TaskId(2), "B", ""));
        (second.blocked_by, second.state) = (vec![TaskId(1)], done);
        Board { tasks: [(TaskId(1), first), (TaskId(2), second)].into(), ..Board::default() }
    };
    let warnings = |effects: &[Effect]| {
        let of = |effect: &Effect| match effect {
            Effect::Warn { text, .. } => Some(text.clone()),
            _ => None,
        };
        effects.iter().filter_map(of).collect::<Vec<_>>()
    };
    react(&mut state, Event::Board(board(TaskState::Blocked)), NOW);
    let done = react(&mut state, Event::Board(board(TaskState::Completed)), NOW);
    assert_eq!(warnings(&done), ["task 2 was completed while it still waits for 1"]);
    let again = react(&mut state, Event::Board(board(TaskState::Completed)), NOW);
    assert_eq!(warnings(&again), Vec::<String>::new());
}

#[test]
fn label_is_updated_only_on_state_changes() {
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
    let placed = |state| {
        let mut record = record("alice", 1, "worker");
        record.state = state;
        let process = ProcessId { pid: 9, start: 9 };
        record.placement = Some(Placement::Pty(PtyHold { launcher: process, log: String::new() }));
        record
    };
    let mut labelled = |record: &MemberRecord| {
        let effects = react(&mut state, Event::Members(vec![record.clone()]), NOW);
        effects
            .into_iter()
            .filter(|effect| matches!(effect, Effect::Label { .. }))
            .collect::<Vec<_>>()
    };
    for now in [MemberState::Starting, MemberState::Idle, MemberState::Working] {
        let record = placed(now);
        assert_eq!(labelled(&record), [Effect::Label { runs: vec![record.clone()] }]);
        assert_eq!(labelled(&record), [], "nothing has changed");
    }
    assert_eq!(labelled(&placed(MemberState::Completed)), [], "its placement goes");
}

#[test]
fn results_are_reported_once_and_in_one_message() {
    let mut state = leading(Finish::Manual, &[record("ann", 1, "worker")]);
    let read_board = |state: &mut State, states: &[TaskState], at: Timestamp| {
        let Event::Board(mut board) = board(states) else { panic!("a board") };
        let over = board.tasks.values_mut().filter(|task| task.state.is_over());
        over.for_each(|task| task.extra.ended_at = Some(NOW));
        let effects = react(state, Event::Board(board), at);
        effects.into_iter().filter(|e| matches!(e, Effect::Report(_))).collect::<Vec<_>>()
    };
    use TaskState::{Completed, Failed, InProgress};
    let later = NOW.plus_ms(1000);
    assert_eq!(read_board(&mut state, &[Completed, InProgress], later), []);
    assert_eq!(
        read_board(&mut state, &[Completed, Failed], NOW),
        [],
        "another one may end together with these"
    );
    assert_eq!(state.next_tick(), Some(later));
    assert_eq!(react(&mut state, Event::Tick, later), [Effect::Report(vec![TaskId(1), TaskId(2)])]);
    assert_eq!(read_board(&mut state, &[Completed, Failed], later), []);
    assert_eq!(
        read_board(&mut state, &[Completed, Failed, Completed], later),
        [Effect::Report(vec![TaskId(3)])]
    );
    // CR-05: a task that was retried and has ended again between two looks at the board.
    let Event::Board(mut again) = board(&[Completed, Completed, Completed]) else {
        panic!("a board")
    };
    again.tasks.values_mut().for_each(|task| task.extra.ended_at = Some(NOW));
    again.tasks.get_mut(&TaskId(2)).expect("a task").extra.ended_at = Some(later);
    let effects = react(&mut state, Event::Board(again), later.plus_ms(1000));
    assert!(effects.contains(&Effect::Report(vec![TaskId(2)])), "{effects:?}");
    let mut ending = leading(Finish::TasksDone, &[record("ann", 1, "worker")]);
    assert_eq!(read_board(&mut ending, &[Completed], later), [], "the team's report says it");
}
