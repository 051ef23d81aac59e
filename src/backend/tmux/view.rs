//! Brings an existing pane to the front, hides it and shows it again. The server checks the pane's
//! identity in the same step.

use super::arrange::{part, stack};
use super::command::{PaneId, PlainWord, Server, Unit};
use super::identity::PaneClaim;
use super::row::{PaneRow, WindowRow};
use super::survey::{Column, LeadColumn, Survey, survey, team_name};
use super::verb::{self, Edge};
use crate::backend::proof::{Observation, judge};
use crate::backend::{BackendError, TmuxHome};
use crate::model::placement::{BackendKind, Placement, TmuxPane};

/// Brings the pane to the front of the terminals that show its session. If the caller's own
/// terminal shows another session of the same server, switches it there.
pub(super) fn focus(home: &TmuxHome, claim: &PaneClaim<'_>) -> Result<(), BackendError> {
    let server = claim.server(&home.program);
    let around = survey(home, &server)?;
    let session = find(&around, claim)?.session;
    let inside = home.inside.as_deref().and_then(PaneId::parse);
    let here = around.panes.iter().find(|row| Some(row.id) == inside);
    let ours =
        around.clients.iter().filter(|row| here.is_some_and(|here| here.session == row.session));
    let unit = match ours.max_by_key(|row| row.activity) {
        Some(client) if client.session != session => {
            verb::select(claim.id).then(verb::switch(&client.name, claim.id))
        }
        Some(_) => verb::select(claim.id),
        None if around.clients.iter().any(|row| row.session == session) => verb::select(claim.id),
        None => return Err(BackendError::CannotDo { backend: BackendKind::Tmux, verb: "focus" }),
    };
    act(&server, claim, &unit)
}

/// Moves the pane into a window of its own, at the end of its session and in the background.
pub(super) fn hide(home: &TmuxHome, claim: &PaneClaim<'_>) -> Result<Placement, BackendError> {
    let server = claim.server(&home.program);
    let around = survey(home, &server)?;
    let row = find(&around, claim)?;
    let tag = PlainWord::from_text(&home.tag);
    if !is_hidden(&around, row, &tag) {
        let name = team_name(&format!("{}-hidden", home.team));
        act(&server, claim, &verb::hide(claim.id, row.session, &name, &tag))?;
    }
    whereabouts(home, &server, claim)
}

/// Moves a hidden pane back: beside the lead if it came from there, else into a window of the team.
/// A pane that was alone in its window keeps it; if no window has room, the hidden window becomes
/// the team's.
pub(super) fn show(home: &TmuxHome, claim: &PaneClaim<'_>) -> Result<Placement, BackendError> {
    let server = claim.server(&home.program);
    let around = survey(home, &server)?;
    let row = find(&around, claim)?;
    let tag = PlainWord::from_text(&home.tag);
    if is_hidden(&around, row, &tag) {
        let side = around.side.as_ref().filter(|_| row.beside == tag.as_str());
        let alone = window(&around, row).is_some_and(|window| window.tag == tag.as_str());
        let room = around.rooms.iter().find(|room| room.free > 0);
        let seen = verb::unhide(row.window, &team_name(&home.team));
        let unit = match (side.and_then(|side| back_beside(claim, side)), room) {
            (Some(unit), _) => unit,
            (None, _) if alone => seen,
            (None, Some(room)) => {
                let join = verb::join(claim.id, &room.id.to_string(), None);
                verb::tile(room.id).then(join).then(verb::tile(room.id))
            }
            (None, None) => seen.then(verb::own_window(row.window, &tag, true)),
        };
        act(&server, claim, &unit)?;
    }
    whereabouts(home, &server, claim)
}

fn back_beside(claim: &PaneClaim<'_>, side: &LeadColumn) -> Option<Unit> {
    match &side.column {
        Column::New { lead, columns, .. } => {
            Some(verb::join(claim.id, &lead.to_string(), Some(Edge::Right { columns: *columns })))
        }
        Column::There(panes) => {
            let heights: Vec<usize> = panes.iter().map(|(_, height)| *height).collect();
            let nth = stack(&heights, 1).iter().position(|more| *more > 0)?;
            let (pane, height) = panes[nth];
            Some(verb::join(
                claim.id,
                &pane.to_string(),
                Some(Edge::Below { rows: part(height, 2) }),
            ))
        }
    }
}

/// Runs `unit` if the claim still holds; the server checks that in the same step.
fn act(server: &Server<'_>, claim: &PaneClaim<'_>, unit: &Unit) -> Result<(), BackendError> {
    server.ask(&claim.guarded(unit)).problem.map_or(Ok(()), Err)
}

fn find<'s>(around: &'s Survey, claim: &PaneClaim<'_>) -> Result<&'s PaneRow, BackendError> {
    let found = around.panes.iter().find(|row| row.id == claim.id);
    found.ok_or_else(|| {
        let verdict = judge(Observation::Absent);
        BackendError::NotOurs { place: claim.place(), verdict }
    })
}

fn is_hidden(around: &Survey, row: &PaneRow, tag: &PlainWord) -> bool {
    window(around, row).is_some_and(|window| window.hidden == tag.as_str())
}

fn window<'s>(around: &'s Survey, row: &PaneRow) -> Option<&'s WindowRow> {
    around.windows.iter().find(|window| window.id == row.window)
}

/// Returns the current placement of the claimed pane.
fn whereabouts(
    home: &TmuxHome,
    server: &Server<'_>,
    claim: &PaneClaim<'_>,
) -> Result<Placement, BackendError> {
    let around = survey(home, server)?;
    let row = find(&around, claim)?;
    let session = around.sessions.iter().find(|session| session.id == row.session);
    Ok(Placement::Tmux(TmuxPane {
        session_id: row.session.to_string(),
        session_name: session.map(|session| session.name.clone()).unwrap_or_default(),
        window_id: row.window.to_string(),
        window_name: window(&around, row).map(|window| window.name.clone()).unwrap_or_default(),
        ..claim.recorded.clone()
    }))
}
