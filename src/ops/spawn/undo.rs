//! Taking back a spawn that failed, in reverse: placement, spec, mailbox, roster entry, record. Every step is tried,
//! whatever the others came to.

use super::super::context::Context;
use super::super::error::OpsError;
use super::super::presence;
use super::super::terminate::{self, Manner};
use super::Prepared;
use crate::model::event::{EventKind, Note};
use crate::store::TeamStore;

/// Takes back what `one` left, and says in the journal why and what could not be taken back.
pub(super) fn undo(ctx: &Context, team: &TeamStore, one: &Prepared, failure: &OpsError) {
    let (name, run) = (&one.record.name, &one.record.incarnation);
    let mut left = Vec::new();
    let mut step = |what: &str, result: Result<(), OpsError>| {
        if let Err(e) = result {
            left.push(format!("{what}: {e}"));
        }
    };
    // The launcher may have written since which processes it has; from here on it starts nothing any more, so that one
    // without a placement, too, is either known by its start record or ends itself.
    let latest = presence::withdraw(team, name, run).ok().flatten();
    let record = latest.as_ref().unwrap_or(&one.record);
    step("placement", terminate::terminate(ctx, team, record, Manner::Told).map(drop));
    step("spec", team.drop_spec(run).map_err(OpsError::from));
    if one.new_mailbox {
        step("mailbox", team.mailbox(name).abandon().map_err(OpsError::from));
    }
    step("roster", team.change_roster(|roster| Ok(roster.leave(name))).map(|_| ()).map_err(OpsError::from));
    step("record", team.forget_record(name, run).map_err(OpsError::from));
    let note = Note::of(EventKind::MemberStartFailed)
        .because(&one.asked)
        .member(name)
        .with("incarnation", run.as_str())
        .with("reason", failure.to_string())
        .with("left", left);
    // The journal is for looking back; the failure itself goes to the caller.
    let _ = team.record(note);
}
