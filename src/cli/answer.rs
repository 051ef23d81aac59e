//! `answer`: approves or rejects a request. The operations check who may answer which request.

use std::time::Duration;

use serde_json::json;

use super::Done;
use super::args_answer;
use super::fail::{Class, Exit, Failure};
use super::requests::request_id;
use super::setup::Setup;
use crate::model::id::RequestId;
use crate::model::question::Typed;
use crate::model::request::Parting;
use crate::model::text;
use crate::ops;
use crate::ops::answer::Answer;
use crate::ops::authority::Action;
use crate::ops::decide::Answered;

/// Time limit for typing an answer into a program and seeing its dialog close.
const TYPING: Duration = Duration::from_secs(20);

pub(super) fn answer(setup: &Setup, args: args_answer::Answer) -> Done {
    let id = request_id(&args.id)?;
    match id.is_shutdown() {
        true => part(setup, &id, args),
        false => decide(setup, &id, args),
    }
}

/// A member's reply to a request for its own shutdown.
fn part(setup: &Setup, id: &RequestId, args: args_answer::Answer) -> Done {
    if args.input.is_some() || args.always {
        let hint = "`--input` and `--always` answer a permission";
        return Err(Failure::usage(format!("`{id}` asks to shut down"), hint));
    }
    let (team, _) = setup.member(setup.ctx.speaker.as_str(), Action::Answer)?;
    let answered = ops::answer::answer(&setup.ctx, &team, id, verdict(args)?)?;
    setup.out.confirm(&answered, || answered.message.clone())?;
    Ok(Exit::DONE)
}

/// The lead's decision on a plan or permission.
fn decide(setup: &Setup, id: &RequestId, args: args_answer::Answer) -> Done {
    let team = setup.team(Action::Decide)?;
    let answer = ops::decide::Answer {
        approve: args.approve,
        reason: args.reason,
        mode: args.mode,
        input: args.input,
        always: args.always,
    };
    let Answered { question, added } = ops::decide::answer(&setup.ctx, &team, id, &answer)?;
    let typed = match question.answered_by() {
        Some(_) => Some(ops::dialog::outcome(&team, &question, TYPING)?),
        None => None,
    };
    let document = json!({
        "request_id": question.id, "kind": question.kind, "from": question.from, "state": question.state(),
        "typed": typed, "added": added,
    });
    setup.out.outcome(&document, matches!(typed, None | Some(Typed::Taken)), || {
        let typed = typed.map(|typed| format!(": {}", typed.describe())).unwrap_or_default();
        let mut lines = vec![format!("{}: {}{typed}", question.from, question.state())];
        lines.extend(
            added.iter().map(|rule| {
                format!("rule added to the team: allow {}", String::from(rule.clone()))
            }),
        );
        text::block(&lines.join("\n"))
    })?;
    Ok(match typed {
        None | Some(Typed::Taken) => Exit::DONE,
        Some(Typed::Gone) => Exit::of(Class::Refused),
        Some(Typed::Stays) => Exit::of(Class::Failed),
    })
}

fn verdict(args: args_answer::Answer) -> Result<Answer, Failure> {
    if args.approve {
        let artifacts_committed = (args.committed || args.uncommitted).then_some(args.committed);
        return Ok(Answer::Approve(Parting {
            status: args.status,
            pending_work: args.pending,
            artifacts_committed,
        }));
    }
    let reason = args.reason.unwrap_or_default();
    match reason.trim() {
        "" => Err(Failure::usage("a rejection needs a reason", "say why: `--reason TEXT`")),
        _ => Ok(Answer::Reject { reason }),
    }
}
