//! `focus`, `hide` and `show`: brings a member's pane into view or takes it out of view. A pane is
//! moved only if it is proven ours, and the team file always lists the hidden panes.

use serde::Serialize;

use crate::authority::names::started_record;
use crate::members::backends;
use crate::{Context, OpsError};
use backend::{Backend, BackendError};
use model::id::{HostName, MemberName};
use model::members::placement::{Placement, Verdict};
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use store::TeamStore;

/// The wanted visibility of a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    Hidden,
    Shown,
}

impl Visibility {
    fn verb(self) -> &'static str {
        match self {
            Visibility::Hidden => "hide",
            Visibility::Shown => "show",
        }
    }

    fn other(self) -> Visibility {
        match self {
            Visibility::Hidden => Visibility::Shown,
            Visibility::Shown => Visibility::Hidden,
        }
    }
}

/// The output of `hide` and `show`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VisibilityChange {
    pub name: MemberName,
    pub pane: String,
    pub hidden: bool,
    /// False if the pane was in that state already.
    pub changed: bool,
}

/// The output of `focus`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FocusedPane {
    pub name: MemberName,
    pub pane: String,
    /// The host of the pane, if that is another one: its tmux server shows it in front.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
}

/// Brings a member's pane to the front.
pub fn focus(ctx: &Context, team: &TeamStore, name: &MemberName) -> Result<FocusedPane, OpsError> {
    let (record, placement) = placed(team, name, "focus")?;
    let backend = backends::open_for(ctx, team, &record, &placement)?;
    prove(&record, &placement, backend.as_ref())?;
    backend.focus(&placement, record.mark()).map_err(|e| match e {
        // The hint of the host is about a terminal there.
        BackendError::OnHost { is_refusal: true, text, .. } => BackendError::OnHost {
            is_refusal: true,
            text,
            hint: Some(format!("bring it to this terminal with `phalanx attach {name}`")),
        }
        .into(),
        other => to_ops_error(other),
    })?;
    let pane = placement.pane_id().to_owned();
    Ok(FocusedPane { name: record.name.clone(), pane, host: record.other_host().cloned() })
}

/// Hides or shows a member's pane. Idempotent.
pub fn set_visibility(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    visibility: Visibility,
) -> Result<VisibilityChange, OpsError> {
    let (record, placement) = placed(team, name, visibility.verb())?;
    let backend = backends::open_for(ctx, team, &record, &placement)?;
    set_visibility_with(team, &record, &placement, backend.as_ref(), visibility)
}

/// Returns the record and the placement of a running member.
pub fn placed(
    team: &TeamStore,
    name: &MemberName,
    verb: &'static str,
) -> Result<(MemberRecord, Placement), OpsError> {
    let record = started_record(team, name)?;
    let no_place = |why: &str| {
        OpsError::refused(
            format!("`{name}` has no pane or terminal to {verb}: {why}"),
            "list running members with `phalanx status`",
        )
    };
    if record.state.is_over() {
        return Err(no_place(&format!("it has ended ({})", record.state.as_str())));
    }
    match record.placement.clone() {
        Some(placement) => Ok((record, placement)),
        None => Err(no_place("it is not started yet")),
    }
}

/// Checks that the placement is proven to be the member's.
pub fn prove(
    record: &MemberRecord,
    placement: &Placement,
    backend: &dyn Backend,
) -> Result<(), OpsError> {
    match backend.verify(placement, record.mark()) {
        Verdict::Owned => Ok(()),
        verdict => {
            let place = placement.to_string();
            Err(OpsError::NotProven { name: record.name.clone(), place, verdict })
        }
    }
}

/// Returns the id that the team file lists hidden panes by. Refuses a placement without one: a
/// hidden pane that is not listed could not be shown again.
fn roster_pane_id(placement: &Placement, visibility: Visibility) -> Result<&str, OpsError> {
    let refused = BackendError::CannotDo { backend: placement.backend(), verb: visibility.verb() };
    Some(placement.pane_id()).filter(|id| !id.is_empty()).ok_or(OpsError::CannotDo(refused))
}

/// Returns the error of a backend; one of its host keeps its kind.
pub(crate) fn to_ops_error(error: BackendError) -> OpsError {
    match error {
        BackendError::CannotDo { .. } | BackendError::NotShown { .. } => OpsError::CannotDo(error),
        other => other.into(),
    }
}

/// Moves the pane under the roster lock, so that no other process moves it back in between. If a
/// later step fails, the pane is moved back.
fn set_visibility_with(
    team: &TeamStore,
    record: &MemberRecord,
    placement: &Placement,
    backend: &dyn Backend,
    visibility: Visibility,
) -> Result<VisibilityChange, OpsError> {
    let (pane, hidden) = (roster_pane_id(placement, visibility)?, visibility == Visibility::Hidden);
    prove(record, placement, backend)?;
    let mut now = None;
    let published = team.change_roster(|roster| {
        // Once: this closure is run again if another process wrote the file meanwhile. And even if
        // the file has that state already: a person may have moved the pane by hand.
        if now.is_none() {
            match move_pane(backend, placement, record.mark(), visibility) {
                Ok(placement) => now = Some(placement),
                Err(e) => return Ok(Err(e)),
            }
        }
        let is_new = roster.is_hidden(pane) != hidden;
        roster.set_hidden(pane, hidden);
        Ok(Ok(is_new))
    });
    let moved = now.filter(|moved| moved != placement);
    let back = |failure| move_back(record, moved.as_ref(), backend, visibility, failure);
    let is_new = match published {
        Ok(Ok(is_new)) => is_new,
        Ok(Err(refused)) => return Err(to_ops_error(refused)),
        Err(e) => return Err(back(e.into())),
    };
    let changed = is_new || moved.is_some();
    if changed && let Err(e) = record_move(team, record, moved.as_ref(), visibility) {
        let failure = back(e);
        restore(team, record, placement, is_new.then_some(!hidden))?;
        return Err(failure);
    }
    Ok(VisibilityChange { name: record.name.clone(), pane: pane.to_owned(), hidden, changed })
}

/// Restores the placement in the record and, if it was changed, the team file.
fn restore(
    team: &TeamStore,
    record: &MemberRecord,
    placement: &Placement,
    hidden: Option<bool>,
) -> Result<(), OpsError> {
    team.change_record(&record.name, &record.incarnation, |found| {
        found.placement = Some(placement.clone());
    })?;
    if let Some(hidden) = hidden {
        team.change_roster(|roster| {
            roster.set_hidden(placement.pane_id(), hidden);
            Ok(())
        })?;
    }
    Ok(())
}

fn move_pane(
    backend: &dyn Backend,
    placement: &Placement,
    token: &str,
    visibility: Visibility,
) -> Result<Placement, BackendError> {
    match visibility {
        Visibility::Hidden => backend.hide(placement, token),
        Visibility::Shown => backend.show(placement, token),
    }
}

/// Moves the pane back if it was moved. Returns `failure`, with the error of the move if that
/// fails.
fn move_back(
    record: &MemberRecord,
    moved: Option<&Placement>,
    backend: &dyn Backend,
    visibility: Visibility,
    failure: OpsError,
) -> OpsError {
    let Some(now) = moved else { return failure };
    match move_pane(backend, now, record.mark(), visibility.other()) {
        Ok(_) => failure,
        Err(e) => {
            OpsError::Failed { problem: format!("{failure}; and {now} could not be put back: {e}") }
        }
    }
}

/// Writes the new placement to the record and journals the move.
fn record_move(
    team: &TeamStore,
    record: &MemberRecord,
    now: Option<&Placement>,
    visibility: Visibility,
) -> Result<(), OpsError> {
    if let Some(now) = now {
        team.change_record(&record.name, &record.incarnation, |found| {
            found.placement = Some(now.clone())
        })?;
    }
    let kind = if visibility == Visibility::Hidden {
        EventKind::MemberHidden
    } else {
        EventKind::MemberShown
    };
    let pane = record.placement.as_ref().map_or("", Placement::pane_id);
    team.record(Note::of(kind).member(&record.name).with("pane", pane))?;
    Ok(())
}

#[cfg(test)]
mod tests;
