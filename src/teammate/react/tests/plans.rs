//! Tasks whose plan the lead must approve.

use super::*;
use model::mail::protocol::PlanApprovalResponse;

/// A worker that awaits approval to run task 3, and the id of its plan.
fn proposed() -> (WorkerState, String) {
    let mut state = idle();
    state.needs_approval = true;
    assert_eq!(react(&mut state, Event::Board, NOW), [Effect::Claim]);
    let effects = react(&mut state, Event::Claimed(Ok(Some(task(3)))), NOW);
    let Some(Effect::Member(MemberEffect::Do(OutboundOp::Send(said)))) = effects.last() else {
        panic!("{effects:?}")
    };
    let Message::PlanApprovalRequest(plan) = &**said else { panic!("{said:?}") };
    let content = plan.plan_content.as_deref().unwrap_or_default();
    assert!(
        content.contains("task #3: Run the tests") && content.contains("cargo test"),
        "{content}"
    );
    let id = plan.request_id.clone();
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Run(_))), "{effects:?}");
    assert_eq!(react(&mut state, done(), NOW), []);
    (state, id)
}

fn plan_answer(from: &str, id: &str, approved: bool) -> Event {
    let answer = Message::PlanApprovalResponse(PlanApprovalResponse {
        request_id: id.to_owned(),
        approved,
        feedback: (!approved).then(|| "not today".to_owned()),
        timestamp: None,
        permission_mode: None,
    });
    mail(&[(&format!("{from}-{id}-{approved}"), from, &answer.to_text())])
}

#[test]
fn an_approved_task_is_read_again_and_started() {
    let (mut state, id) = proposed();
    for (from, id) in [("bob", id.as_str()), ("team-lead", "plan_approval-1@ann@checks")] {
        let effects = react(&mut state, plan_answer(from, id, true), NOW);
        assert!(
            !effects.iter().any(|effect| matches!(effect, Effect::Recheck(_))),
            "{from} {id}: {effects:?}"
        );
    }
    let effects = react(&mut state, plan_answer("team-lead", &id, true), NOW);
    assert!(effects.contains(&Effect::Recheck(TaskId(3))), "{effects:?}");
    let retried = Event::Rechecked(Err(OpFailure { text: "busy".to_owned(), lasting: false }));
    react(&mut state, retried, NOW);
    assert_eq!(react(&mut state, Event::Tick, NOW.plus_ms(1000)), [Effect::Recheck(TaskId(3))]);
    let effects = react(&mut state, Event::Rechecked(Ok(Some(task(3)))), NOW.plus_ms(1000));
    assert!(effects.contains(&Effect::Run(task(3))), "{effects:?}");
}

#[test]
fn an_approved_task_of_another_member_is_not_started() {
    let (mut state, id) = proposed();
    react(&mut state, plan_answer("team-lead", &id, true), NOW);
    let effects = react(&mut state, Event::Rechecked(Ok(None)), NOW);
    assert!(effects.contains(&Effect::Claim), "it looks for other work: {effects:?}");
    assert_eq!(state.work, Work::Idle);
}

#[test]
fn a_rejected_plan_fails_its_task_with_the_reason() {
    let (mut state, id) = proposed();
    let effects = react(&mut state, plan_answer("team-lead", &id, false), NOW);
    let tail = "the lead rejected the plan: not today".to_owned();
    let outcome = CommandOutcome { exit_code: None, signal: None, tail, elapsed_ms: 0 };
    let end = Effect::EndTask { task: TaskId(3), ending: TaskAction::Fail, outcome, reason: None };
    assert!(effects.contains(&end), "{effects:?}");
}
