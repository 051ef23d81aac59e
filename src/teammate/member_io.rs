//! I/O shared by the loops of the worker and the wrapper: mail, shutdown requests and outbound
//! operations.

use super::effect::OutboundOp;
use super::event::{Failure, Requests};
use crate::model::envelope::Envelope;
use crate::model::id::{Incarnation, MemberName, RequestId};
use crate::model::protocol::Message;
use crate::ops::{self, Context, Kind, OpsError, TeamStore};

/// The member and run that this process serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) name: MemberName,
    pub(crate) incarnation: Incarnation,
}

/// Executes an outbound operation. Returns false if a later run now uses this name.
///
/// # Errors
///
/// The operation failed; [`failure`] tells whether a retry can help.
pub(super) fn run_errand(
    ctx: &Context,
    team: &TeamStore,
    me: &Identity,
    op: OutboundOp,
) -> Result<bool, OpsError> {
    let (name, incarnation) = (&me.name, &me.incarnation);
    match op {
        OutboundOp::Hello => return ops::presence::hello(team, name, incarnation),
        OutboundOp::Say(message) => ops::send::report(team, name, &message).map(drop)?,
        OutboundOp::MoveOn(cause, reason) => {
            ops::presence::move_on(team, name, incarnation, cause, reason.as_deref()).map(drop)?;
        }
        OutboundOp::Remark(reason) => {
            ops::presence::remark(team, name, incarnation, reason.as_deref())?
        }
        OutboundOp::Withdraw(id) => ops::dialog::withdraw(ctx, team, &id)?,
        OutboundOp::Typed(id, typed) => ops::dialog::typed(team, &id, typed)?,
    }
    Ok(true)
}

/// Returns the unread mail, oldest first, with the shutdown requests that it refers to.
///
/// # Errors
///
/// The mailbox cannot be read.
pub(super) fn mail(
    team: &TeamStore,
    name: &MemberName,
) -> Result<(Vec<Envelope>, Requests), OpsError> {
    let mail = ops::inbox::look(team, name, false)?;
    // Requests are read after the mail, because a request is filed before its message is sent.
    let requests = requests(team, mail.iter().filter_map(asked_in));
    Ok((mail, requests))
}

/// Reads the current state of the requests with these ids.
pub(super) fn requests(team: &TeamStore, ids: impl IntoIterator<Item = String>) -> Requests {
    let look = |id: &String| {
        let known = RequestId::parse(id).map_err(OpsError::from);
        known.and_then(|id| ops::shutdown::request(team, &id)).map_err(|e| e.to_string())
    };
    ids.into_iter().map(|id| (id.clone(), look(&id))).collect()
}

/// Classifies an error by whether a retry can help.
pub(super) fn failure(e: &OpsError) -> Failure {
    let lasting = match e.kind() {
        Kind::NotFound | Kind::Refused | Kind::Usage => true,
        Kind::Failed | Kind::Deadline | Kind::Backend => false,
    };
    Failure { text: e.to_string(), lasting }
}

/// Returns the id of the shutdown request in a message.
fn asked_in(envelope: &Envelope) -> Option<String> {
    let Message::ShutdownRequest(asked) = Message::parse(&envelope.text) else { return None };
    Some(asked.request_id)
}
