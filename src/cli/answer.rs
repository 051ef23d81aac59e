//! `answer`.

use super::Done;
use super::args_answer;
use super::fail::{Exit, Failure};
use super::setup::Setup;
use crate::model::id::RequestId;
use crate::model::request::Parting;
use crate::ops::answer::Answer;
use crate::ops::{self, OpsError};

pub(super) fn answer(setup: &Setup, args: args_answer::Answer) -> Done {
    let team = setup.team()?;
    let id = RequestId::parse(&args.id).map_err(OpsError::from)?;
    let answer = verdict(args)?;
    let answered = ops::answer::answer(&setup.ctx, &team, &id, answer)?;
    setup.out.give(&answered, || answered.message.clone())?;
    Ok(Exit::DONE)
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
