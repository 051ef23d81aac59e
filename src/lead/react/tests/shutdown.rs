//! The cases of a shutdown as a table: the replies, their effects and the outcome.

use std::time::Duration;

use super::*;

/// The steps after the request to `ann`'s second run was read, and their expected results.
struct Case {
    name: &'static str,
    steps: Vec<Event>,
    /// The stopped members, each with its consent.
    ends: &'static [(&'static str, bool)],
    outcomes: &'static [ShutdownOutcome],
    warnings: usize,
}

const ASKED: &str = "shutdown-5@ann";

fn mail_from(from: &str, text: &str) -> Event {
    mail(from, &format!("m-{from}-{}", text.len()), &Message::parse(text))
}

fn no(reason: &str) -> Event {
    mail_from("ann", &format!(r#"{{"type":"shutdown_rejected","requestId":"{ASKED}"{reason}}}"#))
}

fn yes_from(from: &str, id: &str) -> Event {
    mail(from, &format!("yes-{from}-{id}"), &approval(id))
}

fn gone() -> Event {
    stopped("ann", 2, Ok(()))
}

fn case(
    name: &'static str,
    steps: Vec<Event>,
    ends: &'static [(&'static str, bool)],
    outcomes: &'static [ShutdownOutcome],
    warnings: usize,
) -> Case {
    Case { name, steps, ends, outcomes, warnings }
}

fn table() -> Vec<Case> {
    use ShutdownOutcome::{Closed, Gone, Rejected, TimedOut};
    let (agreed, without_consent): (&[_], &[_]) = (&[("ann", true)], &[("ann", false)]);
    let mut exited = record("ann", 2, "worker");
    exited.exit = Some(ExitRecord { code: Some(1), at: NOW, ..ExitRecord::default() });
    vec![
        case("approved", vec![yes_from("ann", ASKED), gone()], agreed, &[Closed], 0),
        case("rejected with a reason", vec![no(r#","reason":"busy""#)], &[], &[Rejected], 0),
        case("rejected without a reason", vec![no("")], &[], &[Rejected], 1),
        case("rejected with an empty reason", vec![no(r#","reason":"  ""#)], &[], &[Rejected], 1),
        case("no answer", vec![gone()], without_consent, &[TimedOut], 0),
        case(
            "prose",
            vec![mail_from("ann", "Acknowledged, shutting down."), gone()],
            without_consent,
            &[TimedOut],
            0,
        ),
        case(
            "an approval without an id",
            vec![mail_from("ann", r#"{"type":"shutdown_approved"}"#), gone()],
            without_consent,
            &[TimedOut],
            1,
        ),
        case(
            "half a JSON",
            vec![mail_from("ann", r#"{"type":"shutdown_appr"#), gone()],
            without_consent,
            &[TimedOut],
            0,
        ),
        case(
            "a tool's word",
            vec![mail_from("ann", r#"{"type":"shutdown_response","approve":true}"#), gone()],
            without_consent,
            &[TimedOut],
            0,
        ),
        case(
            "an approval of an unknown request",
            vec![yes_from("ann", "shutdown-9@ann"), gone()],
            without_consent,
            &[TimedOut],
            1,
        ),
        case(
            "an approval by another member",
            vec![yes_from("bob", ASKED), gone()],
            without_consent,
            &[TimedOut],
            1,
        ),
        case(
            "an approval in the lead's own name",
            vec![yes_from("team-lead", ASKED), gone()],
            without_consent,
            &[TimedOut],
            1,
        ),
        case(
            "a second approval",
            vec![yes_from("ann", ASKED), mail_from("ann", &approval(ASKED).to_text()), gone()],
            agreed,
            &[Closed],
            1,
        ),
        case(
            "an approval after its end",
            vec![yes_from("ann", ASKED), gone(), mail_from("ann", &approval(ASKED).to_text())],
            agreed,
            &[Closed],
            1,
        ),
        case(
            "an approval after a rejection",
            vec![no(r#","reason":"busy""#), yes_from("ann", ASKED)],
            &[],
            &[Rejected],
            1,
        ),
        case(
            "a rejection after an approval",
            vec![yes_from("ann", ASKED), no(r#","reason":"busy""#), gone()],
            agreed,
            &[Closed],
            1,
        ),
        case(
            "it dies instead of answering",
            vec![Event::Exited(Box::new(exited)), gone()],
            without_consent,
            &[Gone],
            0,
        ),
        case(
            "it approves and cannot be ended",
            vec![yes_from("ann", ASKED), stopped("ann", 2, Err("x".to_owned()))],
            agreed,
            &[TimedOut],
            1,
        ),
    ]
}

/// A lead that knows these members and has read the request; the effects so far are dropped.
fn asked(members: &[MemberRecord], request: ShutdownRequest) -> State {
    let mut state = leading(Finish::Manual, members);
    react(&mut state, Event::Requests(vec![request]), NOW);
    state
}

/// SD-01, SD-02, SD-10, SD-11: a run that the steps have not stopped is stopped at the
/// deadline.
#[test]
fn sd_01_sd_02_sd_10_sd_11_replies_to_a_request_have_their_outcomes() {
    let team = [record("ann", 2, "worker"), record("bob", 1, "worker")];
    for Case { name, steps, ends, outcomes, warnings } in table() {
        let mut state = asked(&team, request("ann", 2, false));
        let mut effects = Vec::new();
        let late = NOW.plus_ms(30_000);
        for step in steps {
            // A run that no step has stopped is stopped by the deadline before its end can be
            // reported.
            if matches!(step, Event::RunsStopped(_)) {
                effects.extend(react(&mut state, no_mail(), late));
            }
            effects.extend(react(&mut state, step, NOW));
        }
        let ends: Vec<(String, bool)> =
            ends.iter().map(|(who, agreed)| ((*who).to_owned(), *agreed)).collect();
        assert_eq!(stops(&effects), ends, "{name}");
        assert_eq!(resolves(&effects), outcomes, "{name}");
        assert_eq!(warns(&effects), warnings, "{name}: {effects:?}");
        assert_eq!(react(&mut state, no_mail(), late), [], "{name}: nothing is left to be done");
        assert!(state.open.is_empty(), "{name}");
    }
}

#[test]
fn sd_10_approval_by_an_earlier_run_is_ignored() {
    let team = [record("ann", 2, "worker")];
    let mut state = asked(&team, request("ann", 1, false));
    let effects = react(&mut state, yes_from("ann", ASKED), NOW);
    assert_eq!((stops(&effects), warns(&effects)), (vec![], 1));
    assert!(state.members.contains_key(&who("ann")));
}

#[test]
fn reply_to_a_resolved_request_is_ignored() {
    let old =
        ShutdownRequest { outcome: Some(ShutdownOutcome::Rejected), ..request("ann", 2, false) };
    let mut state = asked(&[record("ann", 2, "worker")], old);
    let effects = react(&mut state, yes_from("ann", ASKED), NOW);
    assert_eq!((stops(&effects), resolves(&effects), warns(&effects)), (vec![], vec![], 1));
}

#[test]
fn rejection_without_a_reason_is_recorded_as_such() {
    let mut state = asked(&[record("ann", 2, "worker")], request("ann", 2, false));
    let effects = react(&mut state, no(""), NOW);
    let answers = effects.iter().filter_map(|e| match e {
        Effect::Resolve { answer, .. } => answer.as_deref(),
        _ => None,
    });
    assert_eq!(answers.collect::<Vec<_>>(), ["no reason given"]);
}

#[test]
fn sd_15_answer_in_the_mailbox_counts_however_late_the_lead_reads_it() {
    let team = [record("ann", 2, "worker")];
    let late = NOW.plus_ms(90_000);
    for (answer, ended) in
        [(yes_from("ann", ASKED), vec![("ann".to_owned(), true)]), (no(""), Vec::new())]
    {
        let open = request("ann", 2, false);
        let mut state = asked(&team, open.clone());
        // All that a lead that was stopped beyond the deadline handles before its mail.
        let before = [
            Event::Tick,
            Event::Members(team.to_vec()),
            Event::Requests(vec![open]),
            Event::SignsOfLife(Vec::new()),
        ];
        for event in before {
            assert_eq!(stops(&react(&mut state, event, late)), []);
        }
        assert!(state.next_tick().is_some_and(|due| due <= late), "it reads its mail at once");
        let effects = react(&mut state, answer, late);
        assert_eq!(stops(&effects), ended, "{effects:?}");
        assert!(!resolves(&effects).contains(&ShutdownOutcome::TimedOut), "{effects:?}");
    }
}

/// SD-01, SD-03, PM-07: in any state a member can be asked, consent, and miss the deadline.
#[test]
fn pm_07_sd_03_shutdown_works_in_every_state_of_a_run() {
    use MemberState as S;
    let states = [
        S::Pending,
        S::Starting,
        S::Working,
        S::Idle,
        S::AwaitingPlan,
        S::AwaitingPermission,
        S::ShutdownRequested,
    ];
    for now in states {
        let mut ann = record("ann", 2, "worker");
        ann.state = now;
        for force in [false, true] {
            for answers in [false, true] {
                let mut state = leading(Finish::Manual, &[ann.clone()]);
                let effects =
                    react(&mut state, Event::Requests(vec![request("ann", 2, force)]), NOW);
                let what = format!("{now:?}, force {force}, answers {answers}: {effects:?}");
                let moved =
                    effects.iter().any(|e| matches!(e, Effect::MoveOn { cause: Cause::Asked, .. }));
                assert_eq!(moved, !force && now.is_up() && now != S::ShutdownRequested, "{what}");
                let then = match answers {
                    true => react(&mut state, yes_from("ann", ASKED), NOW),
                    false => react(&mut state, no_mail(), NOW.plus_ms(30_000)),
                };
                let ends = [stops(&effects), stops(&then)].concat();
                assert_eq!(ends, [("ann".to_owned(), answers && !force)], "{what}");
                let outcome = match (force, answers) {
                    (true, _) => ShutdownOutcome::Forced,
                    (false, true) => ShutdownOutcome::Closed,
                    (false, false) => ShutdownOutcome::TimedOut,
                };
                assert_eq!(resolves(&react(&mut state, gone(), NOW)), [outcome], "{what}");
            }
        }
    }
}

#[test]
fn sd_03_member_that_becomes_ready_is_shown_as_asked() {
    let mut ann = record("ann", 2, "worker");
    ann.state = MemberState::Starting;
    let mut state = asked(&[ann.clone()], request("ann", 2, false));
    ann.state = MemberState::Idle;
    let up = react(&mut state, Event::Members(vec![ann]), NOW);
    assert!(up.iter().any(|e| matches!(e, Effect::MoveOn { cause: Cause::Asked, .. })), "{up:?}");
}

#[test]
fn request_to_a_dead_member_resolves_as_gone() {
    let mut ann = record("ann", 2, "worker");
    ann.state = MemberState::Disappeared;
    let mut state = leading(Finish::Manual, &[ann]);
    let effects = react(&mut state, Event::Requests(vec![request("ann", 2, false)]), NOW);
    assert_eq!((stops(&effects), resolves(&effects)), (vec![], vec![ShutdownOutcome::Gone]));
}

#[test]
fn report_in_an_approval_is_recorded() {
    let text = format!(
        r#"{{"type":"shutdown_approved","requestId":"{ASKED}","status":"in_progress","pending_work":["the tests"],"artifacts_committed":true}}"#
    );
    let mut state = asked(&[record("ann", 2, "worker")], request("ann", 2, false));
    let effects = react(&mut state, mail_from("ann", &text), NOW);
    let work_left = WorkLeft {
        status: Some(protocol::ShutdownStatus::InProgress),
        pending_work: vec!["the tests".to_owned()],
        artifacts_committed: Some(true),
    };
    let request = RequestId::parse(ASKED).expect("id");
    assert!(effects.contains(&Effect::Agree { request, work_left }), "{effects:?}");
}

/// CR-05: the lead that recorded the consent died before stopping the run; the message is read
/// and does not come again.
#[test]
fn next_lead_stops_a_member_that_consented() {
    let agreed = ShutdownRequest { agreed_at: Some(NOW), ..request("ann", 2, false) };
    let mut state = leading(Finish::Manual, &[record("ann", 2, "worker")]);
    let effects = react(&mut state, Event::Requests(vec![agreed]), NOW);
    assert_eq!(stops(&effects), [("ann".to_owned(), true)]);
    assert_eq!(resolves(&react(&mut state, gone(), NOW)), [ShutdownOutcome::Closed]);
}

/// SD-21: a signal ends everything by its deadline, also an agent that refuses.
#[test]
fn sd_21_agent_that_refuses_the_end_of_its_team_is_ended_at_the_deadline() {
    for end_begun in [false, true] {
        let mut state = leading(Finish::Manual, &[record("ann", 2, "worker")]);
        if end_begun {
            state.phase = Phase::Stopping { end: LeadEnd::TasksOver, force: false, due: None };
        } else {
            react(&mut state, Event::Stop { force: false }, NOW);
        }
        react(&mut state, Event::Requests(vec![request("ann", 2, false)]), NOW);
        react(&mut state, no(r#","reason":"busy""#), NOW);
        let signalled = NOW.plus_ms(10_000 * u64::from(end_begun));
        react(&mut state, Event::Stop { force: false }, signalled);
        let due = signalled.plus_ms(30_500);
        assert_eq!(state.next_tick(), Some(due), "the end had begun: {end_begun}");
        let asks = |effects: &[Effect]| {
            effects.iter().any(|effect| matches!(effect, Effect::AskShutdown { force: true, .. }))
        };
        assert!(!asks(&react(&mut state, no_mail(), due.minus_ms(1))));
        assert!(asks(&react(&mut state, no_mail(), due)), "the end had begun: {end_begun}");
        assert_eq!(state.next_tick(), None);
    }
}

/// SD-21: a program that reads no mail gets SIGTERM and its grace, which force cuts short.
#[test]
fn sd_21_plain_program_has_its_grace_until_the_deadline_or_force() {
    let modes = |effects: &[Effect]| {
        let mode = |effect: &Effect| match effect {
            Effect::StopRun { mode, .. } => Some(*mode),
            _ => None,
        };
        effects.iter().filter_map(mode).collect::<Vec<_>>()
    };
    for (grace_s, left_s) in [(7, 7), (90, 30)] {
        let asked = ShutdownRequest { grace_s, ..request("ann", 2, false) };
        let mut state = leading(Finish::Manual, &[record("ann", 2, "shell")]);
        let effects = react(&mut state, Event::Requests(vec![asked.clone()]), NOW);
        assert_eq!(modes(&effects), [StopMode::Graceful(Duration::from_secs(left_s))]);
        assert_eq!(modes(&react(&mut state, no_mail(), NOW.plus_ms(30_000))), []);
        let forced = Event::Requests(vec![ShutdownRequest { force: true, ..asked }]);
        assert_eq!(modes(&react(&mut state, forced.clone(), NOW)), [StopMode::Immediate]);
        assert_eq!(modes(&react(&mut state, forced, NOW)), []);
        assert_eq!(resolves(&react(&mut state, gone(), NOW)), [ShutdownOutcome::Forced]);
        assert_eq!(react(&mut state, gone(), NOW), [], "the first stop reports, too");
    }
}
