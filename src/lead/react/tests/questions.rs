//! Members that wait for an answer.

use super::*;
use crate::event::AnswerSent;
use model::decisions::question::{Question, QuestionKind};

fn plan(id: &str) -> Message {
    Message::parse(&format!(
        r##"{{"type":"plan_approval_request","from":"ann","requestId":"{id}","planContent":"# x"}}"##
    ))
}

fn permission(id: &str) -> Message {
    Message::parse(&format!(
        r#"{{"type":"permission_request","request_id":"{id}","tool_name":"Bash"}}"#
    ))
}

fn host(id: &str) -> Message {
    Message::parse(&format!(
        r#"{{"type":"sandbox_permission_request","requestId":"{id}","host":"example.org"}}"#
    ))
}

fn unread(messages: &[(&str, &Message)]) -> Event {
    let envelope = |(id, message): &(&str, &Message)| {
        Envelope::new("ann", &message.to_text(), (*id).to_owned(), NOW)
    };
    Event::Mail(messages.iter().map(envelope).collect())
}

fn filed(id: &str, from: &str, n: u8) -> Question {
    Question {
        format: FORMAT,
        id: RequestId::parse(id).expect("id"),
        kind: QuestionKind::Plan,
        from: who(from),
        incarnation: Some(run(n)),
        msg_id: "m1".to_owned(),
        asked_at: NOW,
        deadline_at: NOW.plus_ms(60_000),
        last_notification: None,
        message: plan(id).to_text(),
        decision: None,
        event: "e".to_owned(),
    }
}

fn answer(from: &str, member: &str, id: &str) -> Event {
    Event::Answers(vec![AnswerSent {
        member: who(member),
        from: from.to_owned(),
        request_id: id.to_owned(),
    }])
}

fn moves(effects: &[Effect]) -> Vec<Cause> {
    let moves = effects.iter().filter_map(|e| match e {
        Effect::MoveOn { cause, .. } => Some(*cause),
        _ => None,
    });
    moves.collect()
}

fn acknowledges(effects: &[Effect]) -> bool {
    effects.iter().any(|e| matches!(e, Effect::Acknowledge { .. }))
}

#[test]
fn pm_07_member_waits_for_the_leads_answer_and_its_mail_stays_unread() {
    for (question, cause) in [
        (plan("q"), Cause::PlanSent),
        (permission("q"), Cause::PermissionAsked),
        (host("q"), Cause::PermissionAsked),
    ] {
        let mut state =
            leading(Finish::Manual, &[record("ann", 1, "worker"), record("bob", 2, "worker")]);
        let asks = react(&mut state, unread(&[("m1", &question)]), NOW);
        assert_eq!((moves(&asks), acknowledges(&asks)), (vec![cause], false), "{question:?}");
        let again = react(&mut state, unread(&[("m1", &question)]), NOW);
        assert_eq!(again, [], "once per message");
        for stranger in [
            answer("bob", "ann", "q"),
            answer("team-lead", "ann", "other"),
            answer("team-lead", "bob", "q"),
        ] {
            assert_eq!(moves(&react(&mut state, stranger.clone(), NOW)), [], "{stranger:?}");
        }
        assert_eq!(
            moves(&react(&mut state, answer("team-lead", "ann", "q"), NOW)),
            [Cause::Answered]
        );
        let late = react(&mut state, answer("team-lead", "ann", "q"), NOW);
        assert_eq!(moves(&late), [], "it was answered");
    }
}

#[test]
fn member_with_two_questions_waits_for_both_answers() {
    let mut state = leading(Finish::Manual, &[record("ann", 1, "worker")]);
    let (first, second) = (permission("p1"), permission("p2"));
    let asks = react(&mut state, unread(&[("m1", &first), ("m2", &second)]), NOW);
    assert_eq!(moves(&asks), [Cause::PermissionAsked]);
    assert_eq!(moves(&react(&mut state, answer("team-lead", "ann", "p2"), NOW)), []);
    assert_eq!(moves(&react(&mut state, answer("team-lead", "ann", "p1"), NOW)), [Cause::Answered]);
}

/// A native member reports idle between its question and the answer. Once the question was read,
/// the report is valid.
#[test]
fn idle_member_waits_while_its_question_is_unread() {
    let mut state = leading(Finish::Manual, &[record("ann", 1, "claude")]);
    let (question, rest) = (plan("q"), idle());
    let both = react(&mut state, unread(&[("m1", &question), ("m2", &rest)]), NOW);
    assert_eq!(moves(&both), [Cause::PlanSent]);
    let later = react(&mut state, unread(&[("m3", &rest)]), NOW);
    assert_eq!(moves(&later), [Cause::Rest], "another process has read the question");
}

#[test]
fn later_lead_ignores_an_old_question() {
    let mut ann = record("ann", 1, "worker");
    (ann.state, ann.state_since) = (MemberState::Working, NOW.plus_ms(1));
    let mut state = leading(Finish::Manual, &[ann]);
    assert_eq!(react(&mut state, unread(&[("m1", &plan("q"))]), NOW), []);
}

/// Some members ask before they are ready. The lead may read the record, the mail and the table in
/// any order, and another process may have filed the question.
#[test]
fn question_of_a_starting_member_is_kept_until_it_is_ready() {
    let mut starting = record("ann", 1, "worker");
    starting.state = MemberState::Starting;
    let mut up = record("ann", 1, "worker");
    (up.state, up.state_since) = (MemberState::Idle, NOW.plus_ms(5));
    let mut waiting = up.clone();
    waiting.state = MemberState::AwaitingPlan;
    let comes = || Event::Members(vec![up.clone()]);
    let mail = || unread(&[("m1", &plan("q"))]);
    let table = || Event::Filed(vec![filed("q", "ann", 1)]);
    for events in [
        [mail(), table(), comes()],
        [comes(), mail(), table()],
        [table(), comes(), Event::Mail(vec![])],
    ] {
        let mut state = leading(Finish::Manual, &[starting.clone()]);
        let seen: Vec<Effect> =
            events.iter().flat_map(|event| react(&mut state, event.clone(), NOW)).collect();
        assert_eq!(moves(&seen), [Cause::PlanSent], "{events:?}");
        for again in [table(), Event::Members(vec![waiting.clone()]), mail()] {
            assert_eq!(moves(&react(&mut state, again, NOW)), [], "{events:?}");
        }
        let answered = react(&mut state, answer("team-lead", "ann", "q"), NOW);
        assert_eq!(moves(&answered), [Cause::Answered], "{events:?}");
        assert_eq!(moves(&react(&mut state, table(), NOW)), [], "{events:?}");
    }
    let mut state = leading(Finish::Manual, &[up.clone()]);
    assert_eq!(
        moves(&react(&mut state, Event::Filed(vec![filed("q", "ann", 2)]), NOW)),
        [],
        "of another run"
    );
}

#[test]
fn question_of_an_unknown_sender_is_ignored() {
    let mut state = leading(Finish::Manual, &[]);
    assert_eq!(react(&mut state, unread(&[("m1", &plan("q"))]), NOW), []);
    assert!(state.questions.is_empty());
}

/// PM-07: a waiting member can be stopped; if it rejects the shutdown it waits on.
#[test]
fn pm_07_waiting_member_can_be_stopped_and_waits_on_after_a_rejection() {
    for question in [plan("q"), permission("q"), host("q")] {
        let mut state = leading(Finish::Manual, &[record("ann", 1, "worker")]);
        let asks = react(&mut state, unread(&[("m1", &question)]), NOW);
        let waits = moves(&asks);
        react(&mut state, Event::Stop { force: false }, NOW);
        let asked = react(&mut state, Event::Requests(vec![request("ann", 1, false)]), NOW);
        assert_eq!(moves(&asked), [Cause::Asked], "{question:?}");
        let refused = react(
            &mut state,
            unread(&[("m1", &question), ("m2", &rejection("shutdown-5@ann"))]),
            NOW,
        );
        assert_eq!(moves(&refused), [vec![Cause::Refused], waits].concat(), "{question:?}");
        let forced = react(&mut state, Event::Stop { force: true }, NOW);
        assert!(
            forced.iter().any(|e| matches!(e, Effect::AskShutdown { force: true, .. })),
            "{forced:?}"
        );
        react(&mut state, Event::Requests(vec![request("ann", 1, true)]), NOW);
        react(&mut state, stopped("ann", 1, Ok(())), NOW);
        assert_eq!(state.end(), Some(LeadEnd::Stopped), "{question:?}");
        assert!(state.questions.is_empty());
    }
}

#[test]
fn answers_are_parsed_from_the_journal() {
    let sent = |kind: &str, id: Option<&str>| {
        let note = model::team::event::Note::of(model::team::event::EventKind::MessageSent)
            .member(&who("ann"));
        let note = note.with("from", "team-lead").with("kind", kind);
        let note = id.iter().fold(note, |note, id| note.with("request_id", *id));
        model::team::event::Event {
            id: "e".to_owned(),
            cause: None,
            at: NOW,
            team: model::id::TeamName::new("t").expect("name"),
            event: note.event,
            member: note.member,
            task: None,
            detail: note.detail,
        }
    };
    for kind in ["plan_approval_response", "permission_response", "sandbox_permission_response"] {
        let answer = AnswerSent::from_journal(&sent(kind, Some("q"))).expect("an answer");
        assert_eq!(
            (answer.member, answer.from.as_str(), answer.request_id.as_str()),
            (who("ann"), "team-lead", "q")
        );
        assert_eq!(AnswerSent::from_journal(&sent(kind, None)), None);
    }
    for kind in ["message", "shutdown_request", "plan_approval_request"] {
        assert_eq!(AnswerSent::from_journal(&sent(kind, Some("q"))), None, "{kind}");
    }
}
