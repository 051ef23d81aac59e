//! Completions refused by a hook.

use super::*;

/// The worker cannot improve the command's result: the task fails with the hook's reason, and no
/// completion is reported.
#[test]
fn a_refused_completion_fails_the_task() {
    let mut state = busy();
    let outcome = |exit_code, tail: &str| CommandOutcome {
        exit_code,
        signal: None,
        tail: tail.to_owned(),
        elapsed_ms: 3200,
    };
    let done = WorkerEffect::EndTask {
        task: TaskId(3),
        ending: TaskAction::Complete,
        outcome: outcome(Some(0), "t"),
        reason: None,
    };
    assert_eq!(react(&mut state, ended(0), NOW)[1..], [done]);
    // While the hooks run, mail is handled, but nothing is done twice and no task is claimed.
    assert_eq!(react(&mut state, WorkerEvent::Held, NOW), []);
    assert_eq!(react(&mut state, mail(&[("1", "bob", "hi")]), NOW).len(), 2);
    assert_eq!(react(&mut state, WorkerEvent::Board, NOW), []);
    let said = "task 3 is not completed, a hook refuses it: no tests";
    let effects = react(&mut state, WorkerEvent::Refused(said.to_owned()), NOW);
    let failed = WorkerEffect::EndTask {
        task: TaskId(3),
        ending: TaskAction::Fail,
        outcome: outcome(None, said),
        reason: None,
    };
    assert_eq!(effects, [WorkerEffect::Print(said.to_owned()), failed]);
    let effects = react(&mut state, WorkerEvent::TaskEnded(Ok(())), NOW);
    assert!(
        !effects
            .iter()
            .any(|e| matches!(e, WorkerEffect::Member(MemberEffect::Do(OutboundOp::Send(_))))),
        "{effects:?}"
    );
    assert_eq!(state.last.as_ref().and_then(|last| last.failure.as_deref()), Some(said));
}
