//! Dialogs of programs and questions over ACP as requests: withdraws a request whose dialog closed,
//! and records whether an answer could be typed or sent, which the members' loops do.

use std::time::Duration;

use crate::decisions::decide::{self, close};
use crate::{Context, OpsError};
use model::decisions::question::{DecisionOutcome, Question, Typed};
use model::id::RequestId;
use model::team::event::{EventKind, Note};
use store::{StoreError, TeamStore};
use sys::clock::Deadline;

/// The poll interval, in case a change notification is lost.
const SWEEP: Duration = Duration::from_millis(500);

/// Closes a request that ended in its program: a person answered it in the pane, with the choice if
/// it is known, or the program withdrew it. An answer that came too late is replaced. No reply is
/// sent.
pub fn withdraw(
    ctx: &Context,
    team: &TeamStore,
    id: &RequestId,
    allowed: Option<bool>,
) -> Result<(), OpsError> {
    // Its message may still lie in the lead's mailbox.
    decide::process_requests(ctx, team)?;
    match close::decide_question(team, id, &close::in_pane(allowed)) {
        Ok(question) => close::go_on(team, question),
        Err(e) => ignore_missing(e),
    }
}

/// Records the result of giving an answer to the program. One that found no dialog decided nothing.
pub fn record_typed(team: &TeamStore, id: &RequestId, typed: Typed) -> Result<(), OpsError> {
    if typed == Typed::Gone {
        close::decide_question(team, id, &close::in_pane(None))
            .map(drop)
            .or_else(ignore_missing)?;
    }
    let question = team.change_question(id, |question| {
        if let Some(decision) = &mut question.decision {
            decision.typed = Some(typed);
            if typed == Typed::Rejected {
                decision.outcome = DecisionOutcome::Denied;
            }
        }
        Ok(question.clone())
    });
    let question = match question {
        Ok(question) => question,
        Err(e) => return ignore_missing(e.into()),
    };
    let Some(typed) = question.typed() else { return Ok(()) };
    let note = Note::of(EventKind::AnswerTyped).because(&question.event).member(&question.from);
    team.record(note.with("request_id", id.as_str()).with("typed", typed.as_str()))?;
    Ok(())
}

/// Ignores a missing request: in a team that another program leads, none are filed.
fn ignore_missing(e: OpsError) -> Result<(), OpsError> {
    match e {
        OpsError::Store(StoreError::NoSuchRequest { .. }) => Ok(()),
        e => Err(e),
    }
}

/// Waits until the result of giving the answer is recorded. Returns the request with it.
///
/// # Errors
/// [`OpsError::Deadline`] if that takes longer than `limit`; [`OpsError::Decided`] if a question
/// over ACP ended before.
pub fn outcome(team: &TeamStore, asked: &Question, limit: Duration) -> Result<Question, OpsError> {
    let deadline = Deadline::after(limit);
    let changes = team.changes()?;
    loop {
        let question = team.question(&asked.id)?;
        if let Some(typed) = question.decision.as_ref().and_then(|decision| decision.typed) {
            let is_lost = typed == Typed::Gone && question.answered_by().is_none();
            return if is_lost { Err(decide::decided(&question)) } else { Ok(question) };
        }
        let left = deadline.remaining().min(SWEEP);
        if left.is_zero() {
            let what = format!(
                "the answer was recorded, but the program of `{}` has not taken it",
                question.from
            );
            return Err(OpsError::Deadline { what, limit });
        }
        changes.wait(left);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;
    use crate::{Store, now};
    use fixture::sample;
    use model::decisions::question::{Decision, QuestionKind};
    use model::id::{MemberName, TeamName};
    use model::team::Team;
    use model::time::Timestamp;

    /// Returns a team, and a question over ACP that the lead has allowed.
    fn allowed() -> (TempDir, TeamStore, Question) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let name = TeamName::new("demo").expect("a name");
        let file = Team::found(&name, "d", "team-lead", "s", "/w", Timestamp(1));
        let settings =
            json!({"format": 1, "backend": "auto", "finish": "manual", "max_members": 8});
        let settings = serde_json::from_value(settings).expect("settings");
        let store = Store::at(&dir.path().join("root"));
        let team = store.create(&name, &file, &settings).expect("a team");
        let run = sample::run(2);
        let id = format!("perm-1-{}-1", &run.as_str()[..8]);
        let message = json!({
            "type": "permission_request", "request_id": id, "agent_id": "ann", "tool_name": "Bash",
            "tool_use_id": "c", "description": "", "input": {}, "permission_suggestions": [],
        });
        let by_lead = close::decision(DecisionOutcome::Allowed, "team-lead");
        let question = Question {
            format: 1,
            id: RequestId::parse(&id).expect("an id"),
            kind: QuestionKind::Permission,
            from: MemberName::new("ann").expect("a name"),
            incarnation: Some(run),
            msg_id: "m1".to_owned(),
            asked_at: now(),
            deadline_at: now().plus_ms(60_000),
            last_notification: None,
            message: message.to_string(),
            decision: Some(Decision { sent: true, ..by_lead }),
            event: "e1".to_owned(),
        };
        team.file_question(&question).expect("writable");
        (dir, team, question)
    }

    fn end_in_pane(
        team: &TeamStore,
        id: &RequestId,
        allowed: Option<bool>,
    ) -> Result<(), OpsError> {
        close::decide_question(team, id, &close::in_pane(allowed)).map(drop)
    }

    /// AC-26: what the agent was really sent decides, and the verb that has lost reports it.
    #[test]
    fn ac_26_answer_counts_only_if_the_agent_was_sent_it() {
        type Report = fn(&TeamStore, &RequestId) -> Result<(), OpsError>;
        let rejected = Ok(Some(Typed::Rejected));
        type Outcome = Result<Option<Typed>, &'static str>;
        let reports: [(Report, &str, Outcome); 4] = [
            (|team, id| record_typed(team, id, Typed::Taken), "allowed", Ok(None)),
            (|team, id| record_typed(team, id, Typed::Rejected), "denied", rejected),
            (|team, id| end_in_pane(team, id, Some(false)), "denied", Err("it was denied by pane")),
            (|team, id| end_in_pane(team, id, None), "withdrawn", Err("or withdrawn")),
        ];
        for (report, state, expected) in reports {
            let (_dir, team, asked) = allowed();
            assert_eq!(asked.state(), "answered");
            let early = outcome(&team, &asked, Duration::ZERO);
            assert!(matches!(early, Err(OpsError::Deadline { .. })), "{early:?}");
            report(&team, &asked.id).expect("writable");
            end_in_pane(&team, &asked.id, None).expect("writable");
            assert_eq!(team.question(&asked.id).expect("readable").state(), state);
            match (outcome(&team, &asked, Duration::ZERO), expected) {
                (Ok(question), Ok(typed)) => assert_eq!(question.typed(), typed, "{state}"),
                (Err(e), Err(words)) => assert!(e.to_string().contains(words), "{e}"),
                (found, _) => panic!("{state}: {found:?}"),
            }
        }
    }
}
