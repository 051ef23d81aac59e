//! What follows when a member's run is over: off the roster, its tasks given back, everybody who counts told. Every
//! step may be done again without harm.

use super::error::OpsError;
use super::{presence, send, task};
use crate::model::event::{EventKind, Note};
use crate::model::id::{Incarnation, MemberName, TaskId};
use crate::model::lifecycle::Cause;
use crate::model::protocol::{Message, TeammateTerminated};
use crate::store::TeamStore;
use crate::sys::rand;

/// What a retirement gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retired {
    pub(crate) released: Vec<TaskId>,
}

/// Takes a member off the team after its placement is proven gone.
pub(crate) fn retire(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
    cause: Cause,
    reason: &str,
) -> Result<Retired, OpsError> {
    presence::move_on(team, name, incarnation, cause, Some(reason))?;
    let latest = team.member_record(name)?.is_none_or(|r| r.is(incarnation));
    if !latest {
        // A namesake runs already: roster entry and tasks are its own (SD-10).
        return Ok(Retired { released: Vec::new() });
    }
    let was_on = team.change_roster(|roster| Ok(roster.leave(name)))?;
    let released: Vec<TaskId> = task::release(team, name)?.iter().map(|t| t.id).collect();
    if was_on {
        let left = rand::uuid();
        tell(team, name, cause, reason, &released, &left)?;
        let given_back = released.iter().map(TaskId::to_string).collect::<Vec<_>>();
        let note = Note { id: Some(left), ..Note::of(EventKind::MemberLeft) };
        team.record(note.member(name).with("reason", reason).with("released", given_back))?;
    }
    Ok(Retired { released })
}

/// The notice to the lead's mailbox, in the observed form; `left` is the event that it tells of.
fn tell(
    team: &TeamStore,
    name: &MemberName,
    cause: Cause,
    reason: &str,
    released: &[TaskId],
    left: &str,
) -> Result<(), OpsError> {
    let mut text = match cause {
        Cause::Released | Cause::Forced => format!("{name} has shut down."),
        _ => format!("{name} has ended: {reason}."),
    };
    if !released.is_empty() {
        let ids: Vec<String> = released.iter().map(|id| format!("#{id}")).collect();
        text.push_str(&format!(" Its tasks are free again: {}.", ids.join(", ")));
    }
    let system = MemberName::existing("system")?;
    let notice = Message::TeammateTerminated(TeammateTerminated { message: text });
    send::say(team, &system, &MemberName::lead(), &notice, Some(left.to_owned()))?;
    Ok(())
}
