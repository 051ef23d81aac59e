//! `focus`, `hide` and `show`: brings a member's pane into view or takes it out of view. A pane is
//! moved only if it is proven ours, and the team file always lists the hidden panes.

use serde::Serialize;

use crate::authority::names::started_record;
use crate::members::backends;
use crate::{Context, OpsError};
use backend::{Backend, BackendError, Mark};
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
    backend.focus(Mark::new(&placement, record.mark())).map_err(|e| match e {
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
    let (record, placement, backend) = (&record, &placement, backend.as_ref());
    VisibilitySwitch { team, record, placement, backend, visibility }.carry_out()
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
    match backend.verify(Mark::new(placement, record.mark())) {
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

/// A change of the visibility of a member's pane.
struct VisibilitySwitch<'a> {
    team: &'a TeamStore,
    record: &'a MemberRecord,
    placement: &'a Placement,
    backend: &'a dyn Backend,
    visibility: Visibility,
}

impl VisibilitySwitch<'_> {
    /// Moves the pane under the roster lock, so that no other process moves it back in between. If
    /// a later step fails, the pane is moved back.
    fn carry_out(&self) -> Result<VisibilityChange, OpsError> {
        let &VisibilitySwitch { team, record, placement, backend, visibility } = self;
        let pane = roster_pane_id(placement, visibility)?;
        let hidden = visibility == Visibility::Hidden;
        prove(record, placement, backend)?;
        let mut now = None;
        let published = team.change_roster(|roster| {
            // Once: this closure is run again if another process wrote the file meanwhile. And even
            // if the file has that state already: a person may have moved the pane by hand.
            if now.is_none() {
                match self.move_pane(placement, visibility) {
                    Ok(placement) => now = Some(placement),
                    Err(e) => return Ok(Err(e)),
                }
            }
            let is_new = roster.is_hidden(pane) != hidden;
            roster.set_hidden(pane, hidden);
            Ok(Ok(is_new))
        });
        let moved = now.filter(|moved| moved != placement);
        let is_new = match published {
            Ok(Ok(is_new)) => is_new,
            Ok(Err(refused)) => return Err(to_ops_error(refused)),
            Err(e) => return Err(self.move_back(moved.as_ref(), e.into())),
        };
        let changed = is_new || moved.is_some();
        if changed && let Err(e) = self.record_move(moved.as_ref()) {
            let failure = self.move_back(moved.as_ref(), e);
            self.restore(is_new.then_some(!hidden))?;
            return Err(failure);
        }
        Ok(VisibilityChange { name: record.name.clone(), pane: pane.to_owned(), hidden, changed })
    }

    /// Restores the placement in the record and, if it was changed, the team file.
    fn restore(&self, hidden: Option<bool>) -> Result<(), OpsError> {
        self.record_placement(self.placement)?;
        if let Some(hidden) = hidden {
            self.team.change_roster(|roster| {
                roster.set_hidden(self.placement.pane_id(), hidden);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn record_placement(&self, placement: &Placement) -> Result<(), OpsError> {
        self.team.change_record(&self.record.name, &self.record.incarnation, |found| {
            found.placement = Some(placement.clone());
        })?;
        Ok(())
    }

    fn move_pane(&self, from: &Placement, to: Visibility) -> Result<Placement, BackendError> {
        let mark = Mark::new(from, self.record.mark());
        match to {
            Visibility::Hidden => self.backend.hide(mark),
            Visibility::Shown => self.backend.show(mark),
        }
    }

    /// Moves the pane back if it was moved. Returns `failure`, with the error of the move if that
    /// fails.
    fn move_back(&self, moved: Option<&Placement>, failure: OpsError) -> OpsError {
        let Some(now) = moved else { return failure };
        match self.move_pane(now, self.visibility.other()) {
            Ok(_) => failure,
            Err(e) => OpsError::Failed {
                problem: format!("{failure}; and {now} could not be put back: {e}"),
            },
        }
    }

    /// Writes the new placement to the record and journals the move.
    fn record_move(&self, now: Option<&Placement>) -> Result<(), OpsError> {
        now.map_or(Ok(()), |now| self.record_placement(now))?;
        let kind = match self.visibility {
            Visibility::Hidden => EventKind::MemberHidden,
            Visibility::Shown => EventKind::MemberShown,
        };
        let pane = self.record.placement.as_ref().map_or("", Placement::pane_id);
        self.team.record(Note::of(kind).member(&self.record.name).with("pane", pane))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
