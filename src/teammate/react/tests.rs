//! The worker's step, as tables of state, event and effects.

use super::*;
use crate::effect::WorkerEffect as Effect;
use crate::event::{Requests, WorkerEvent as Event};
use crate::state::Me;
use fixture::sample;
use model::decisions::request::{ShutdownOutcome, ShutdownRequest};
use model::id::{Incarnation, MemberName, RequestId, TeamName};
use model::mail::envelope::Envelope;
use model::mail::protocol::{
    self, ModeSetRequest, ShutdownApproved, ShutdownStatus, TaskAssignment,
};
use model::members::lifecycle::MemberState;
use sys::signal::Signal;

mod hooks;
mod plans;
mod stop;

const NOW: Timestamp = Timestamp(1_000_000);

fn run(n: u8) -> Incarnation {
    sample::run(n.into())
}

/// A worker in its second run that has reported itself up, read its mail and found no task.
fn idle() -> WorkerState {
    let me = Me {
        name: MemberName::new("ann").expect("name"),
        incarnation: run(2),
        team: TeamName::new("checks").expect("name"),
        pane: Some("%7".to_owned()),
        backend: "tmux",
    };
    let mut state = WorkerState::new(me, false);
    assert_eq!(
        react(&mut state, Event::Tick, NOW),
        [Effect::Member(MemberEffect::Do(OutboundOp::Hello))]
    );
    assert_eq!(react(&mut state, done(), NOW), [Effect::Member(MemberEffect::ReadMail)]);
    assert_eq!(react(&mut state, mail(&[]), NOW), []);
    assert_eq!(
        react(&mut state, Event::Member(MemberEvent::Accepted(MemberState::Idle)), NOW),
        [Effect::Claim]
    );
    assert_eq!(react(&mut state, Event::Claimed(Ok(None)), NOW), []);
    state
}

fn task(id: u64) -> Box<Task> {
    let mut task = Task::new(TaskId(id), "Run the tests", "d");
    task.extra.run = vec!["cargo".to_owned(), "test".to_owned()];
    Box::new(task)
}

/// A worker that runs the command of task 3.
fn busy() -> WorkerState {
    let mut state = idle();
    assert_eq!(react(&mut state, Event::Board, NOW), [Effect::Claim]);
    let effects = react(&mut state, Event::Claimed(Ok(Some(task(3)))), NOW);
    let work = OutboundOp::MoveOn(Cause::Work, Some("task #3 Run the tests".to_owned()));
    let header = Effect::Print("── task #3 · Run the tests: cargo test".to_owned());
    assert_eq!(effects, [header, Effect::Run(task(3)), Effect::Member(MemberEffect::Do(work))]);
    assert_eq!(react(&mut state, done(), NOW), []);
    state
}

fn done() -> Event {
    Event::Member(MemberEvent::Done(Ok(())))
}

fn ended(code: i32) -> Event {
    let outcome = CommandOutcome {
        exit_code: Some(code),
        signal: None,
        tail: "t".to_owned(),
        elapsed_ms: 3200,
    };
    Event::CommandEnded { task: TaskId(3), outcome }
}

fn failure(lasting: bool) -> OpFailure {
    OpFailure { text: "no luck".to_owned(), lasting }
}

fn request(deadline_s: u64) -> ShutdownRequest {
    let id = RequestId::parse("shutdown-5@ann").expect("id");
    sample::shutdown(id, "ann", run(2), NOW, NOW.plus_ms(deadline_s * 1000))
}

fn on_file(requests: &[ShutdownRequest]) -> Requests {
    requests.iter().map(|r| (r.id.to_string(), Ok(r.clone()))).collect()
}

fn mail(messages: &[(&str, &str, &str)]) -> Event {
    let of =
        |(id, from, text): &(&str, &str, &str)| Envelope::new(from, text, (*id).to_owned(), NOW);
    Event::Member(MemberEvent::Mail {
        mail: messages.iter().map(of).collect(),
        requests: Requests::new(),
    })
}

/// Mail with a message about `request`, which is on file.
fn asks(from: &str, request: &ShutdownRequest) -> Event {
    let message = Message::ShutdownRequest(protocol::ShutdownRequestBody {
        request_id: request.id.to_string(),
        from: Some("team-lead".to_owned()),
        reason: Some("done".to_owned()),
        timestamp: None,
        deadline_seconds: None,
    });
    let envelope = Envelope::new(from, &message.to_text(), format!("m-{}", request.id), NOW);
    Event::Member(MemberEvent::Mail {
        mail: vec![envelope],
        requests: on_file(std::slice::from_ref(request)),
    })
}

/// Returns the kinds of the queued messages, in order.
fn to_say(state: &WorkerState) -> Vec<&str> {
    let said = |op: &OutboundOp| match op {
        OutboundOp::Send(message) => Some((**message).clone()),
        OutboundOp::Hello | OutboundOp::MoveOn(..) | OutboundOp::Remark(_) => None,
        OutboundOp::Withdraw(..)
        | OutboundOp::Typed(..)
        | OutboundOp::Limit(_)
        | OutboundOp::Session(_)
        | OutboundOp::Usage(..) => None,
    };
    let kind = |message: Message| match message {
        Message::ShutdownApproved(_) => "approved",
        Message::ShutdownRejected(_) => "rejected",
        Message::TaskCompleted(_) => "completed",
        Message::IdleNotification(_) => "idle",
        other => panic!("nothing a worker says: {other:?}"),
    };
    state.outbound.iter().filter_map(said).map(kind).collect()
}

/// Completes all outbound operations and returns the other effects.
fn say_all(state: &mut WorkerState, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    while !state.outbound.is_empty() {
        effects.extend(react(state, done(), now));
    }
    effects.retain(|effect| !matches!(effect, Effect::Member(MemberEffect::Do(_))));
    effects
}

fn warns(effects: &[Effect]) -> Vec<&str> {
    let mut texts = Vec::new();
    for effect in effects {
        if let Effect::Member(MemberEffect::Warn(text)) = effect {
            texts.push(text.as_str());
        }
    }
    texts
}

#[test]
fn before_acceptance_no_task_starts_but_shutdown_requests_are_answered() {
    let mut state = WorkerState::new(idle().me, false);
    react(&mut state, Event::Tick, NOW);
    react(&mut state, done(), NOW);
    assert_eq!(react(&mut state, mail(&[]), NOW), []);
    assert_eq!(react(&mut state, Event::Board, NOW), []);
    react(&mut state, asks("team-lead", &request(30)), NOW);
    assert_eq!(to_say(&state), ["approved"]);
}

#[test]
fn an_idle_worker_agrees_to_a_shutdown_and_exits() {
    let mut state = idle();
    let effects = react(&mut state, asks("team-lead", &request(30)), NOW);
    let expected = ShutdownApproved {
        request_id: "shutdown-5@ann".to_owned(),
        from: Some("ann".to_owned()),
        timestamp: Some(NOW.iso()),
        pane_id: Some("%7".to_owned()),
        backend_type: Some("tmux".to_owned()),
        status: Some(ShutdownStatus::Clean),
        pending_work: Vec::new(),
        artifacts_committed: None,
    };
    let said = Effect::Member(MemberEffect::Do(OutboundOp::Send(Box::new(
        Message::ShutdownApproved(expected),
    ))));
    assert_eq!(
        effects,
        [
            Effect::Print("team-lead requests shutdown: done".to_owned()),
            Effect::Member(MemberEffect::Acknowledge(vec!["m-shutdown-5@ann".to_owned()])),
            said
        ]
    );
    assert_eq!(state.end, None);
    // After its agreement the worker claims nothing.
    assert_eq!(react(&mut state, Event::Board, NOW), []);
    assert_eq!(react(&mut state, done(), NOW), []);
    assert_eq!(state.end, Some(0));
}

#[test]
fn a_failed_agreement_is_retried_until_it_is_sent() {
    let mut state = idle();
    react(&mut state, asks("team-lead", &request(30)), NOW);
    let effects = react(&mut state, Event::Member(MemberEvent::Done(Err(failure(false)))), NOW);
    assert_eq!(effects, [Effect::Print("ann of checks: no luck".to_owned())]);
    assert_eq!((state.end, state.next_tick()), (None, Some(NOW.plus_ms(1000))));
    // The same failure is not printed again.
    assert_eq!(react(&mut state, Event::Tick, NOW.plus_ms(1000)).len(), 1);
    assert_eq!(
        react(&mut state, Event::Member(MemberEvent::Done(Err(failure(false)))), NOW.plus_ms(1000)),
        []
    );
    assert_eq!(react(&mut state, Event::Tick, NOW.plus_ms(2000)).len(), 1);
    react(&mut state, done(), NOW.plus_ms(2000));
    assert_eq!(state.end, Some(0));
}

#[test]
fn sd_10_sd_11_requests_for_other_runs_are_ignored() {
    let other = MemberName::new("bob").expect("name");
    let closed = ShutdownRequest { outcome: Some(ShutdownOutcome::Gone), ..request(30) };
    let mut unfiled = asks("team-lead", &request(30));
    if let Event::Member(MemberEvent::Mail { requests, .. }) = &mut unfiled {
        requests.insert(
            "shutdown-5@ann".to_owned(),
            Err("there is no request `shutdown-5@ann`".to_owned()),
        );
    }
    let table = [
        (
            asks("team-lead", &ShutdownRequest { incarnation: run(1), ..request(30) }),
            "it was sent to an earlier run",
        ),
        (
            asks("team-lead", &ShutdownRequest { member: other, ..request(30) }),
            "it was sent to `bob`",
        ),
        (asks("team-lead", &closed), "it has been answered"),
        (asks("bob", &request(30)), "it came from `bob`; only team-lead may request a shutdown"),
        (
            asks("Team-Lead", &request(30)),
            "it came from `Team-Lead`; only team-lead may request a shutdown",
        ),
        (unfiled, "there is no request `shutdown-5@ann`"),
    ];
    for (event, problem) in table {
        for mut state in [idle(), busy()] {
            let effects = react(&mut state, event.clone(), NOW);
            let text = format!("ignored shutdown request `shutdown-5@ann`: {problem}");
            let ids = vec!["m-shutdown-5@ann".to_owned()];
            let expected = [
                Effect::Print(text.clone()),
                Effect::Member(MemberEffect::Warn(text)),
                Effect::Member(MemberEffect::Acknowledge(ids)),
            ];
            assert_eq!(effects, expected);
            assert_eq!((state.end, to_say(&state)), (None, vec![]));
        }
    }
}

/// The command ends first, then the task goes back with the reason, and only then the worker agrees.
#[test]
fn sd_21_worker_that_is_asked_ends_its_command_and_gives_its_task_back() {
    let mut state = busy();
    let reason = Some("the team is stopped".to_owned());
    let asked = ShutdownRequest { grace_s: 7, reason, ..request(43) };
    let effects = react(&mut state, asks("team-lead", &asked), NOW);
    let said = Effect::Print("── asked to end: ending task #3".to_owned());
    assert_eq!(effects[2..], [said, Effect::Cancel { grace_ms: 7000 }]);
    assert_eq!((to_say(&state), state.next_tick()), (vec![], None));
    let later = NOW.plus_ms(6999);
    assert_eq!(react(&mut state, Event::Tick, later), []);
    // The outcome of an ended command is no outcome of the task.
    let effects = react(&mut state, ended(143), later);
    let why = "its command was ended: the team is stopped".to_owned();
    assert_eq!(effects[1..], [Effect::GiveBack(TaskId(3), Some(why))]);
    assert_eq!(to_say(&state), Vec::<&str>::new());
    react(&mut state, Event::LetGo(Ok(())), later);
    assert_eq!(to_say(&state), ["approved"]);
    assert_eq!(say_all(&mut state, later), []);
    assert_eq!(state.end, Some(0));
}

/// TK-19: a command that has reached its limit fails its task, whatever it exits with.
#[test]
fn tk_19_command_fails_its_task_at_its_time_limit() {
    for code in [0, 3] {
        let mut state = idle();
        react(&mut state, Event::Board, NOW);
        let mut limited = task(3);
        limited.extra.timeout_s = Some(20);
        react(&mut state, Event::Claimed(Ok(Some(limited))), NOW);
        react(&mut state, done(), NOW);
        let limit = NOW.plus_ms(20_000);
        assert_eq!(state.next_tick(), Some(limit));
        assert_eq!(react(&mut state, Event::Tick, limit.minus_ms(1)), []);
        let effects = react(&mut state, Event::Tick, limit);
        assert_eq!(effects[1..], [Effect::Cancel { grace_ms: 2000 }]);
        assert_eq!((react(&mut state, Event::Tick, limit), state.next_tick()), (vec![], None));
        let effects = react(&mut state, ended(code), limit);
        let Some(Effect::EndTask { ending, outcome, reason, .. }) = effects.last() else {
            panic!("{effects:?}")
        };
        assert_eq!(*ending, TaskAction::Fail);
        assert_eq!(reason.as_deref(), Some("not done within its limit of 20 s"));
        assert_eq!((outcome.exit_code == Some(code), outcome.tail.as_str()), (code != 0, "t"));
    }
}

/// Force ends the launcher, which passes the signal on.
#[test]
fn sd_21_signal_shortens_the_grace_of_a_command() {
    let mut state = busy();
    react(&mut state, asks("team-lead", &request(43)), NOW);
    let effects = react(&mut state, Event::Signal(Signal::Terminate), NOW);
    assert_eq!(effects, [Effect::Cancel { grace_ms: 2000 }]);
}

#[test]
fn a_request_is_accepted_once_and_dropped_when_it_ends() {
    let mut state = busy();
    react(&mut state, asks("team-lead", &request(30)), NOW);
    // A repeated message is acknowledged but not handled.
    let again = react(&mut state, asks("team-lead", &request(30)), NOW);
    assert_eq!(
        again,
        [Effect::Member(MemberEffect::Acknowledge(vec!["m-shutdown-5@ann".to_owned()]))]
    );
    // A different message about the same request.
    let Event::Member(MemberEvent::Mail { mut mail, requests }) = asks("team-lead", &request(30))
    else {
        return;
    };
    mail[0].msg_id = "another".to_owned();
    let effects = react(&mut state, Event::Member(MemberEvent::Mail { mail, requests }), NOW);
    assert_eq!(
        warns(&effects),
        ["ignored shutdown request `shutdown-5@ann`: it has been answered"]
    );

    assert_eq!(state.pending().count(), 1);
    react(&mut state, Event::Member(MemberEvent::Requests(on_file(&[request(30)]))), NOW);
    assert_eq!(state.pending().count(), 1);
    let closed = ShutdownRequest { outcome: Some(ShutdownOutcome::TimedOut), ..request(30) };
    react(&mut state, Event::Member(MemberEvent::Requests(on_file(&[closed]))), NOW);
    assert_eq!(state.pending().count(), 0);
}

#[test]
fn a_request_during_a_claim_waits_for_its_result() {
    for (claimed, answer) in [(None, vec!["approved"]), (Some(task(3)), vec![])] {
        let mut state = idle();
        assert_eq!(react(&mut state, Event::Board, NOW), [Effect::Claim]);
        react(&mut state, asks("team-lead", &request(30)), NOW);
        assert_eq!(to_say(&state), Vec::<&str>::new());
        react(&mut state, Event::Claimed(Ok(claimed)), NOW);
        assert_eq!(to_say(&state), answer);
    }
}

#[test]
fn mail_is_read_before_the_next_claim() {
    let mut state = busy();
    react(&mut state, ended(0), NOW);
    react(&mut state, Event::TaskEnded(Ok(())), NOW);
    assert_eq!(say_all(&mut state, NOW), [Effect::Member(MemberEffect::ReadMail)]);
    // A change of the board does not start a claim first.
    assert_eq!(react(&mut state, Event::Board, NOW), []);
    react(&mut state, asks("team-lead", &request(30)), NOW);
    assert_eq!(to_say(&state), ["approved"]);
}

#[test]
fn msg_12_the_lead_is_notified_once_per_transition_to_idle() {
    let mut state = busy();
    react(&mut state, ended(0), NOW);
    react(&mut state, Event::TaskEnded(Ok(())), NOW);
    say_all(&mut state, NOW);
    assert_eq!(react(&mut state, mail(&[]), NOW), [Effect::Claim]);
    // The next task follows at once: no transition to idle.
    react(&mut state, Event::Claimed(Ok(Some(task(4)))), NOW);
    assert_eq!(to_say(&state), Vec::<&str>::new());
    say_all(&mut state, NOW);
    let ended = Event::CommandEnded {
        task: TaskId(4),
        outcome: CommandOutcome {
            exit_code: Some(0),
            signal: None,
            tail: String::new(),
            elapsed_ms: 1,
        },
    };
    react(&mut state, ended, NOW);
    react(&mut state, Event::TaskEnded(Ok(())), NOW);
    say_all(&mut state, NOW);
    react(&mut state, mail(&[]), NOW);
    react(&mut state, Event::Claimed(Ok(None)), NOW);
    let notice = IdleNotification {
        from: Some("ann".to_owned()),
        timestamp: Some(NOW.iso()),
        idle_reason: Some("available".to_owned()),
        completed_task_id: Some("4".to_owned()),
        completed_status: Some("resolved".to_owned()),
        ..IdleNotification::default()
    };
    let said = [
        OutboundOp::MoveOn(Cause::Rest, None),
        OutboundOp::Send(Box::new(Message::IdleNotification(notice))),
    ];
    assert_eq!(state.outbound, said);
    say_all(&mut state, NOW);
    // Claims without a result are no transition either.
    for _ in 0..3 {
        assert_eq!(react(&mut state, Event::Board, NOW), [Effect::Claim]);
        assert_eq!(react(&mut state, Event::Claimed(Ok(None)), NOW), []);
    }
}

#[test]
fn a_failed_command_fails_its_task_with_the_reason() {
    let table = [
        (Some(1), None, "exit code 1 after 3.2s", "exit code 1"),
        (None, Some(9), "signal 9 after 3.2s", "signal 9"),
        (None, None, "cannot find the program x", "cannot find the program x"),
    ];
    for (exit_code, signal, shown, reason) in table {
        let mut state = busy();
        let tail = "cannot find the program x".to_owned();
        let outcome = CommandOutcome { exit_code, signal, tail, elapsed_ms: 3200 };
        let ended = Event::CommandEnded { task: TaskId(3), outcome: outcome.clone() };
        let end =
            Effect::EndTask { task: TaskId(3), ending: TaskAction::Fail, outcome, reason: None };
        let footer = Effect::Print(format!("── task #3 failed: {shown}"));
        assert_eq!(react(&mut state, ended, NOW), [footer, end]);
        // No completion message; the idle notification carries the failure.
        assert_eq!(
            react(&mut state, Event::TaskEnded(Ok(())), NOW),
            [Effect::Member(MemberEffect::ReadMail)]
        );
        react(&mut state, mail(&[]), NOW);
        react(&mut state, Event::Claimed(Ok(None)), NOW);
        let Some(OutboundOp::Send(said)) = state.outbound.back() else {
            panic!("nothing said: {state:?}")
        };
        let Message::IdleNotification(notice) = &**said else { panic!("no notice: {said:?}") };
        assert_eq!(notice.idle_reason.as_deref(), Some("failed"));
        assert_eq!(notice.completed_status.as_deref(), Some("failed"));
        assert_eq!(notice.failure_reason.as_deref(), Some(reason));
    }
}

#[test]
fn a_reassigned_task_does_not_stop_the_worker() {
    let mut state = busy();
    react(&mut state, ended(0), NOW);
    let effects = react(&mut state, Event::TaskEnded(Err(failure(true))), NOW);
    assert_eq!(warns(&effects), ["task #3 ended, but its result was not recorded: no luck"]);
    assert_eq!(effects.last(), Some(&Effect::Member(MemberEffect::ReadMail)));
    assert_eq!(to_say(&state), Vec::<&str>::new());
}

#[test]
fn a_failed_write_of_the_outcome_is_retried() {
    let mut state = busy();
    react(&mut state, ended(0), NOW);
    react(&mut state, Event::TaskEnded(Err(failure(false))), NOW);
    assert_eq!(react(&mut state, Event::Tick, NOW.plus_ms(999)), []);
    let effects = react(&mut state, Event::Tick, NOW.plus_ms(1000));
    assert!(matches!(effects[..], [Effect::EndTask { .. }]), "{effects:?}");
    // Until then the worker does not agree to end.
    let soon = react(&mut state, asks("team-lead", &request(3)), NOW.plus_ms(1000));
    assert_eq!((soon.len(), to_say(&state)), (2, vec![]));
}

#[test]
fn failed_claims_and_mail_are_retried_even_if_the_clock_goes_back() {
    let mut state = idle();
    react(&mut state, Event::Board, NOW);
    react(&mut state, Event::Claimed(Err(failure(false))), NOW);
    assert_eq!(react(&mut state, Event::Board, NOW), []);
    assert_eq!(react(&mut state, Event::Tick, NOW.plus_ms(1000)), [Effect::Claim]);
    react(&mut state, Event::Claimed(Err(failure(false))), NOW.plus_ms(1000));
    assert_eq!(react(&mut state, Event::Tick, Timestamp(5)), []);
    assert_eq!(state.next_tick(), Some(Timestamp(1005)));
    assert_eq!(react(&mut state, Event::Tick, Timestamp(1004)), []);
    assert_eq!(react(&mut state, Event::Tick, Timestamp(1005)), [Effect::Claim]);

    let mut state = idle();
    react(&mut state, Event::Member(MemberEvent::NoMail(failure(true))), NOW);
    // A worker that cannot receive shutdown requests claims nothing.
    assert_eq!(react(&mut state, Event::Board, NOW), []);
    assert_eq!(react(&mut state, mail(&[]), NOW), [Effect::Claim]);
}

#[test]
fn messages_are_printed_once_and_acknowledged_each_time() {
    let mode = Message::ModeSetRequest(ModeSetRequest {
        mode: "plan".to_owned(),
        from: Some("team-lead".to_owned()),
    });
    let given = Message::TaskAssignment(TaskAssignment {
        task_id: "3".to_owned(),
        subject: None,
        description: None,
        assigned_by: None,
        timestamp: None,
    });
    let odd = r#"{"type":"shutdown_request"}"#;
    let (mode, given) = (mode.to_text(), given.to_text());
    let event = mail(&[
        ("1", "bob\n", "hi\nthere"),
        ("2", "team-lead", &mode),
        ("3", "team-lead", odd),
        ("4", "team-lead", &given),
    ]);
    let mut state = busy();
    let print = |text: &str| Effect::Print(text.to_owned());
    let done =
        Effect::Member(MemberEffect::Acknowledge(["1", "2", "3", "4"].map(str::to_owned).to_vec()));
    let expected = [
        print("message from bob\u{240a}: hi\nthere"),
        print("ignored a mode_set_request from team-lead: workers do not handle it"),
        print(r#"message from team-lead: {"type":"shutdown_request"}"#),
        done.clone(),
    ];
    assert_eq!(react(&mut state, event.clone(), NOW), expected);
    assert_eq!(react(&mut state, event, NOW), [done]);
    let assigned = mail(&[("5", "bob", &given)]);
    assert_eq!(react(&mut idle(), assigned, NOW)[1..], [Effect::Claim]);
}

#[test]
fn a_signal_cancels_the_command_but_does_not_fail_the_task() {
    let table = [(Signal::Hangup, 129), (Signal::Interrupt, 130), (Signal::Terminate, 143)];
    for (signal, code) in table {
        let mut state = idle();
        assert_eq!(react(&mut state, Event::Signal(signal), NOW), []);
        assert_eq!(state.end, Some(code));

        let mut state = busy();
        assert_eq!(
            react(&mut state, Event::Signal(signal), NOW),
            [Effect::Cancel { grace_ms: 2000 }]
        );
        assert_eq!(react(&mut state, Event::Signal(Signal::Terminate), NOW), []);
        assert_eq!(state.end, None);
        let effects = react(&mut state, ended(1), NOW.plus_ms(2000));
        assert_eq!(effects, [Effect::Print("── task #3 interrupted after 2.0s".to_owned())]);
        assert_eq!(state.end, Some(code));
    }
    // A command that does not end must not keep the worker from exiting.
    let mut state = busy();
    react(&mut state, Event::Signal(Signal::Terminate), NOW);
    assert_eq!(state.next_tick(), Some(NOW.plus_ms(6000)));
    react(&mut state, Event::Tick, NOW.plus_ms(6000));
    assert_eq!(state.end, Some(143));
    // Nor does a clock that is set back meanwhile.
    let mut state = busy();
    react(&mut state, Event::Signal(Signal::Terminate), NOW);
    react(&mut state, Event::Tick, Timestamp(5));
    assert_eq!(state.next_tick(), Some(Timestamp(6005)));
    react(&mut state, Event::Tick, Timestamp(6005));
    assert_eq!(state.end, Some(143));
}

#[test]
fn the_worker_exits_when_its_team_is_gone() {
    let mut state = busy();
    let over = || Event::Member(MemberEvent::Over("the team is gone".to_owned()));
    let said = Effect::Print("ann of checks: the team is gone".to_owned());
    assert_eq!(react(&mut state, over(), NOW), [said, Effect::Cancel { grace_ms: 2000 }]);
    assert_eq!(react(&mut state, over(), NOW), []);
    react(&mut state, ended(1), NOW);
    assert_eq!(state.end, Some(0));
}
