//! Reminders, on a simulated clock.

use super::*;
use crate::event::SignOfLife;
use model::decisions::question::{Question, QuestionKind};
use model::team::followup::{
    Escalation, LastNotification, NotificationStep, Reminded, ReminderPolicy, TaskReminder,
};

const INTERVAL_MS: u64 = 60_000;
const TWO: ReminderPolicy =
    ReminderPolicy { interval_ms: INTERVAL_MS, max_reminders: 2, escalation: Escalation::FailTask };

fn at(intervals: u64) -> Timestamp {
    NOW.plus_ms(intervals * INTERVAL_MS)
}

fn lead(followup: Option<ReminderPolicy>, member: MemberRecord) -> State {
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
    state.followup = followup;
    react(&mut state, Event::Requests(Vec::new()), NOW);
    react(&mut state, Event::Members(vec![member]), NOW);
    state
}

fn ann() -> MemberRecord {
    record("ann", 1, "codex")
}

type Change = fn(&mut Task);

fn board(change: Change) -> Event {
    let mut board = Board::default();
    let mut task = Task::new(TaskId(1), "s", "d");
    (task.owner, task.state) = (Some("ann".to_owned()), TaskState::InProgress);
    change(&mut task);
    board.tasks.insert(TaskId(1), task);
    Event::Board(board)
}

fn as_it_is(_: &mut Task) {}

/// A lead with the member `ann`, who works on task 1.
fn at_work(member: MemberRecord) -> State {
    let mut state = lead(Some(TWO), member);
    react(&mut state, board(as_it_is), NOW);
    state
}

fn question(id: &str, last_notification: Option<LastNotification>) -> Question {
    Question {
        format: FORMAT,
        id: RequestId::parse(id).expect("id"),
        kind: QuestionKind::Permission,
        from: who("ann"),
        incarnation: Some(run(1)),
        msg_id: id.to_owned(),
        asked_at: NOW,
        deadline_at: at(100),
        last_notification,
        message: String::new(),
        decision: None,
        event: "e".to_owned(),
    }
}

/// The steps as text: `A` announcement, `1` and `2` reminders, `E` escalation; for requests and
/// tasks alike.
fn steps(effects: &[Effect]) -> String {
    let steps = effects.iter().filter_map(|effect| match effect {
        Effect::Announce { step, .. } | Effect::Remind { step, .. } => Some(*step),
        _ => None,
    });
    steps
        .map(|step| match step {
            NotificationStep::First => "A".to_owned(),
            NotificationStep::Reminder { nth, .. } => nth.to_string(),
            NotificationStep::Escalation { .. } => "E".to_owned(),
        })
        .collect()
}

fn tick(state: &mut State, now: Timestamp) -> String {
    steps(&react(state, Event::Tick, now))
}

fn resets_reminders(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::ResetReminders { .. }))
}

/// PM-03: a request is announced at once, and once; its reminders are finite.
#[test]
fn pm_03_request_is_announced_once_then_reminded_and_escalated() {
    for (followup, expected) in
        [(None, ["A", "", "", "", ""]), (Some(TWO), ["A", "1", "2", "E", ""])]
    {
        let mut state = lead(followup, ann());
        let first = react(&mut state, Event::Filed(vec![question("p", None)]), NOW);
        assert_eq!(steps(&first), expected[0]);
        // The announcement is not persisted yet.
        assert_eq!(steps(&react(&mut state, Event::Filed(vec![question("p", None)]), NOW)), "");
        for (nth, expected) in expected.into_iter().enumerate().skip(1) {
            let now = at(nth as u64);
            if !expected.is_empty() {
                assert_eq!(state.next_tick(), Some(now), "the driver wakes for it");
                assert_eq!(tick(&mut state, Timestamp(now.0 - 1)), "", "not before its time");
            }
            assert_eq!(tick(&mut state, now), expected, "{nth}");
        }
        assert_eq!(state.next_tick(), None);
    }
}

#[test]
fn answered_questions_get_no_reminders() {
    let mut state = lead(Some(TWO), ann());
    react(&mut state, Event::Filed(vec![question("p", None), question("q", None)]), NOW);
    react(&mut state, Event::Filed(vec![question("q", None)]), NOW);
    assert_eq!(tick(&mut state, at(1)), "1");
}

/// A new lead continues where the last one stopped: it neither repeats nor skips a reminder.
#[test]
fn new_lead_continues_the_reminders_of_requests() {
    let table = [
        (None, "A", "1"),
        (Some(0), "", "1"),
        (Some(1), "", "2"),
        (Some(2), "", "E"),
        (Some(3), "", ""),
    ];
    for (times, first, next) in table {
        let mut state = lead(Some(TWO), ann());
        let last = times.map(|times| LastNotification { times, at: NOW });
        let filed = react(&mut state, Event::Filed(vec![question("p", last)]), NOW);
        assert_eq!(
            (steps(&filed).as_str(), tick(&mut state, at(1)).as_str()),
            (first, next),
            "{times:?}"
        );
    }
    // Long after the last reminder the next one is due once, not once for each interval that has
    // passed.
    let mut state = lead(Some(TWO), ann());
    let late = react(
        &mut state,
        Event::Filed(vec![question("p", Some(LastNotification { times: 0, at: NOW }))]),
        at(50),
    );
    assert_eq!((steps(&late).as_str(), tick(&mut state, at(50)).as_str()), ("1", ""));
}

#[test]
fn owner_of_a_silent_task_is_reminded_then_the_task_escalated() {
    let mut state = at_work(ann());
    for (nth, expected) in [(1, "1"), (2, "2"), (3, "E"), (4, ""), (100, "")] {
        let now = at(nth);
        if !expected.is_empty() {
            assert_eq!(state.next_tick(), Some(now), "the driver wakes for it");
            assert_eq!(tick(&mut state, Timestamp(now.0 - 1)), "", "not before its time");
        }
        assert_eq!(tick(&mut state, now), expected, "{nth}");
    }
    let mut state = at_work(ann());
    react(&mut state, Event::Tick, at(1));
    react(&mut state, Event::Tick, at(2));
    let step = NotificationStep::Escalation { after: 2, mode: Escalation::FailTask };
    let (name, incarnation, task) = (who("ann"), run(1), TaskId(1));
    let effects = react(&mut state, Event::Tick, at(3));
    assert_eq!(effects, [Effect::Remind { name, incarnation, task, step }]);
}

/// Each row is an event right before the second reminder is due, and whether it restarts the count.
#[test]
fn signs_of_life_restart_the_reminders() {
    let writes_to_peer = |from: &str| {
        Event::SignsOfLife(vec![SignOfLife { member: who(from), at: Timestamp(at(2).0 - 1) }])
    };
    let wrote = |from: &str, message: &Message| {
        let at = Timestamp(at(2).0 - 1);
        Event::Mail(vec![Envelope::new(from, &message.to_text(), "m".to_owned(), at)])
    };
    let mut working = ann();
    working.state = MemberState::Working;
    let table = [
        ("it writes to the lead", wrote("ann", &Message::Text("half done".to_owned())), true),
        ("it says that it rests", wrote("ann", &idle()), false),
        ("another member writes", wrote("bob", &Message::Text("hello".to_owned())), false),
        ("it writes to another", writes_to_peer("ann"), true),
        ("another member writes to a peer", writes_to_peer("bob"), false),
        ("its task is changed", board(|task| task.description = "half done".to_owned()), true),
        ("the board is looked at", board(as_it_is), false),
        (
            "a reminder about its task is sent",
            board(|task| task.extra.reminder = Some(reminder(1))),
            false,
        ),
        ("its state changes", Event::Members(vec![working]), false),
    ];
    for (what, event, is_sign) in table {
        let mut state = at_work(ann());
        assert_eq!(tick(&mut state, at(1)), "1");
        let effects = react(&mut state, event, Timestamp(at(2).0 - 1));
        assert_eq!((resets_reminders(&effects), steps(&effects).as_str()), (is_sign, ""), "{what}");
        assert_eq!(tick(&mut state, at(2)), if is_sign { "" } else { "2" }, "{what}");
        if is_sign {
            assert_eq!(tick(&mut state, Timestamp(at(3).0 - 1)), "1", "{what}: anew");
        }
    }
}

/// An old unread message does not count as a sign of life, however often it is read.
#[test]
fn old_unread_message_does_not_count_as_a_sign_of_life() {
    let mut state = at_work(ann());
    for nth in 1..=3 {
        let old = Envelope::new("ann", "begun", "m".to_owned(), NOW);
        react(&mut state, Event::Mail(vec![old]), Timestamp(at(nth).0 - 1));
        assert_eq!(
            tick(&mut state, at(nth)),
            ["1", "2", "E"][usize::try_from(nth).expect("small") - 1]
        );
    }
}

#[test]
fn members_that_owe_no_report_get_no_reminders() {
    let state_of = |state: MemberState| MemberRecord { state, ..ann() };
    let table: [(&str, MemberRecord, Change); 6] = [
        ("it waits for a plan", state_of(MemberState::AwaitingPlan), as_it_is),
        ("it waits for a permission", state_of(MemberState::AwaitingPermission), as_it_is),
        ("it is to end", state_of(MemberState::ShutdownRequested), as_it_is),
        ("it reads no mail", record("ann", 1, "shell"), as_it_is),
        ("a worker runs a command", ann(), |task| task.extra.run = vec!["make".to_owned()]),
        ("it is not begun", ann(), |task| task.state = TaskState::Pending),
    ];
    for (what, member, change) in table {
        let mut state = lead(Some(TWO), member);
        react(&mut state, board(change), NOW);
        assert_eq!(tick(&mut state, at(10)), "", "{what}");
        assert_eq!(tick(&mut state, at(20)), "", "{what}");
    }
    let mut state = lead(None, ann());
    react(&mut state, board(as_it_is), NOW);
    assert_eq!(
        (tick(&mut state, at(10)), state.next_tick()),
        (String::new(), None),
        "no reminders are wanted"
    );
}

/// A completed task, or a member that waits for an answer, resets the count.
#[test]
fn reminder_count_resets_when_no_report_is_owed() {
    let mut waits = ann();
    waits.state = MemberState::AwaitingPermission;
    for end in [board(|task| task.state = TaskState::Completed), Event::Members(vec![waits])] {
        let mut state = at_work(ann());
        react(&mut state, Event::Tick, at(1));
        assert!(resets_reminders(&react(&mut state, end, at(1))));
        react(&mut state, Event::Members(vec![ann()]), at(1));
        react(&mut state, board(as_it_is), at(1));
        assert_eq!(
            (tick(&mut state, Timestamp(at(2).0 - 1)), tick(&mut state, at(2))),
            (String::new(), "1".to_owned())
        );
    }
}

#[test]
fn new_lead_continues_the_reminders_of_tasks() {
    // The third was the escalation: the task has recovered since.
    for (task, times, next) in [(1, 1, "2"), (1, 2, "E"), (1, 3, "1"), (2, 2, "1")] {
        let member =
            MemberRecord { reminded: Some(Reminded { task: TaskId(task), times }), ..ann() };
        let mut state = lead(Some(TWO), member);
        assert_eq!(
            steps(&react(&mut state, board(as_it_is), at(50))),
            "",
            "its silence begins with the new lead"
        );
        assert_eq!(tick(&mut state, at(51)), next, "{task} {times}");
    }
}

fn resumed(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::Recover { .. })).count()
}

fn stale(task: &mut Task) {
    (task.state, task.extra.stalled_at) = (TaskState::Stale, Some(at(1)));
}

/// Without reminders the escalation follows after one interval.
#[test]
fn sign_of_life_resumes_a_stale_task_once() {
    let policy = ReminderPolicy { max_reminders: 0, escalation: Escalation::NotifyLead, ..TWO };
    for is_board_read in [false, true] {
        let mut state = lead(Some(policy), ann());
        react(&mut state, board(as_it_is), NOW);
        assert_eq!(tick(&mut state, Timestamp(at(1).0 - 1)), "");
        assert_eq!(tick(&mut state, at(1)), "E");
        assert_eq!(state.next_tick(), None);
        if is_board_read {
            react(&mut state, board(stale), at(1));
            assert_eq!(tick(&mut state, at(9)), "", "it is not reminded of a stale task");
        }
        let soon = Timestamp(at(1).0 + 3);
        let sign = |at: u64| {
            Event::SignsOfLife(vec![SignOfLife { member: who("ann"), at: Timestamp(at) }])
        };
        let before = react(&mut state, sign(at(1).0), soon);
        assert_eq!(resumed(&before), 0, "from before it was stale");
        assert_eq!(resumed(&react(&mut state, sign(at(1).0 + 1), soon)), 1);
        assert_eq!(resumed(&react(&mut state, sign(at(1).0 + 2), soon)), 0, "once");
        react(&mut state, board(as_it_is), soon);
        assert_eq!(tick(&mut state, at(3)), "E", "it is in progress again");
    }
}

/// The mail counts also if the team has no reminders any more.
#[test]
fn mail_of_the_owner_resumes_a_stale_task() {
    let mut state = lead(None, ann());
    react(&mut state, board(stale), at(1));
    let mail = |from: &str, message: &Message, ms: u64| {
        let at = Timestamp(at(1).0 + ms);
        Event::Mail(vec![Envelope::new(from, &message.to_text(), "m".to_owned(), at)])
    };
    let text = Message::Text("half done".to_owned());
    for (event, expected) in [
        (mail("ann", &text, 0), 0),
        (mail("ann", &idle(), 1), 0),
        (mail("bob", &text, 1), 0),
        (mail("ann", &text, 1), 1),
        (mail("ann", &text, 1), 0),
    ] {
        assert_eq!(resumed(&react(&mut state, event, at(2))), expected);
    }
}

/// A reminder every minute, the last step sent at this time.
fn reminder(sent: u32) -> TaskReminder {
    TaskReminder {
        text: "t".to_owned(),
        every_ms: INTERVAL_MS,
        max: 1,
        escalation: Escalation::NotifyLead,
        by: "ann".to_owned(),
        sent,
        last: at(u64::from(sent)),
    }
}

#[test]
fn reminder_of_a_task_is_due_after_each_interval_until_the_escalation() {
    let due = [Effect::SendReminder(TaskId(1))];
    let mut state = lead(None, ann());
    let boards: [Change; 3] = [
        |task| task.extra.reminder = Some(reminder(0)),
        |task| task.extra.reminder = Some(reminder(1)),
        |task| task.extra.reminder = Some(reminder(2)),
    ];
    for (nth, change) in (1..).zip(boards) {
        react(&mut state, board(change), at(nth - 1));
        let next = (nth < 3).then_some(at(nth));
        assert_eq!(state.next_tick(), next);
        assert_eq!(react(&mut state, Event::Tick, Timestamp(at(nth).0 - 1)), []);
        let effects = react(&mut state, Event::Tick, at(nth));
        assert_eq!(effects == due, next.is_some(), "{effects:?}");
        assert_eq!(react(&mut state, Event::Tick, at(nth)), [], "once");
        assert_eq!(state.next_tick(), None, "until the board is read");
    }
    let ended: Change = |task| {
        (task.state, task.extra.reminder) = (TaskState::Completed, Some(reminder(0)));
    };
    react(&mut state, board(ended), at(5));
    assert_eq!(state.next_tick(), None, "its task has ended");
    react(&mut state, board(boards[0]), at(5));
    react(&mut state, Event::Stop { force: false }, at(5));
    assert_eq!(state.next_tick(), Some(at(5).plus_ms(30_500)), "only the team ends");
}

/// A stopping team, or a lead that only carries a shutdown, sends no reminders of tasks. A request
/// is still announced.
#[test]
fn stopping_team_sends_no_reminders() {
    let mut state = at_work(ann());
    react(&mut state, Event::Stop { force: false }, NOW);
    assert_eq!(tick(&mut state, at(5)), "");
    assert_eq!(steps(&react(&mut state, Event::Filed(vec![question("p", None)]), at(5))), "A");
    assert_eq!(tick(&mut state, at(6)), "");
    let mut state =
        State::new(Goal::Carry([RequestId::shutdown(5, &who("ann"))].into()), Vec::new());
    react(&mut state, Event::Members(vec![ann()]), NOW);
    assert_eq!(steps(&react(&mut state, Event::Filed(vec![question("p", None)]), NOW)), "");
}
