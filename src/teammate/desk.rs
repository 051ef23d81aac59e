//! What a teammate's loop reads and writes about itself: its mail, the requests it speaks of, its words to others. Knows
//! nothing of what either loop makes of that.

use super::effect::Errand;
use super::event::{Failure, Requests};
use crate::model::envelope::Envelope;
use crate::model::id::{Incarnation, MemberName, RequestId};
use crate::model::protocol::Message;
use crate::ops::{self, Context, Kind, OpsError, Team};

/// Which run of which member this process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) name: MemberName,
    pub(crate) incarnation: Incarnation,
}

/// Does an errand. False: another run now uses this name.
pub(super) fn run_errand(
    ctx: &Context,
    team: &Team,
    me: &Identity,
    errand: Errand,
) -> Result<bool, OpsError> {
    let (name, incarnation) = (&me.name, &me.incarnation);
    match errand {
        Errand::Hello => return ops::presence::hello(team, name, incarnation),
        Errand::Say(message) => ops::send::report(team, name, &message).map(drop)?,
        Errand::MoveOn(cause, reason) => {
            ops::presence::move_on(team, name, incarnation, cause, reason.as_deref()).map(drop)?;
        }
        Errand::Remark(reason) => {
            ops::presence::remark(team, name, incarnation, reason.as_deref())?
        }
        Errand::Withdraw(id) => ops::dialog::withdraw(ctx, team, &id)?,
        Errand::Typed(id, typed) => ops::dialog::typed(team, &id, typed)?,
    }
    Ok(true)
}

/// The unread mail, oldest first, with the requests that it speaks of.
pub(super) fn mail(team: &Team, name: &MemberName) -> Result<(Vec<Envelope>, Requests), OpsError> {
    let mail = ops::inbox::look(team, name, false)?;
    // After the mail: a request is on file before it is sent.
    let requests = requests(team, mail.iter().filter_map(asked_in));
    Ok((mail, requests))
}

/// The requests of these ids, as they are now.
pub(super) fn requests(team: &Team, ids: impl IntoIterator<Item = String>) -> Requests {
    let look = |id: &String| {
        let known = RequestId::parse(id).map_err(OpsError::from);
        known.and_then(|id| ops::shutdown::request(team, &id)).map_err(|e| e.to_string())
    };
    ids.into_iter().map(|id| (id.clone(), look(&id))).collect()
}

/// Whether trying again can help.
pub(super) fn failure(e: &OpsError) -> Failure {
    let lasting = match e.kind() {
        Kind::NotFound | Kind::Refused | Kind::Usage => true,
        Kind::Failed | Kind::Deadline | Kind::Backend => false,
    };
    Failure { text: e.to_string(), lasting }
}

/// The request that a message speaks of.
fn asked_in(envelope: &Envelope) -> Option<String> {
    let Message::ShutdownRequest(asked) = Message::parse(&envelope.text) else { return None };
    Some(asked.request_id)
}
