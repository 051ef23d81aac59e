//! Brings an existing pane to the front, hides it and shows it again. The server checks the pane's
//! identity in the same step.

use super::arrange::{part, stack};
use super::command::{PaneId, PlainWord, Server, Unit};
use super::identity::PaneClaim;
use super::row::{PaneRow, WindowRow};
use super::survey::{Column, LeadColumn, ServerSurvey, survey_server, team_name};
use super::verb::{self, Edge};
use crate::proof::{Observation, judge};
use crate::{BackendError, TmuxHome};
use model::members::placement::{Placement, TmuxPane};

/// Brings the pane to the front of the terminals that show its session. If the caller's own
/// terminal shows another session of the same server, switches it there.
pub(super) fn focus(home: &TmuxHome, claim: &PaneClaim<'_>) -> Result<(), BackendError> {
    let server = claim.server(&home.program);
    let survey = survey_server(home, &server)?;
    let session = pane_row(&survey, claim)?.session;
    let inside = home.inside.as_ref().and_then(|inside| PaneId::parse(&inside.pane));
    let here = survey.panes.iter().find(|row| Some(row.id) == inside);
    let ours =
        survey.clients.iter().filter(|row| here.is_some_and(|here| here.session == row.session));
    let unit = match ours.max_by_key(|row| row.activity) {
        Some(client) if client.session != session => {
            verb::select(claim.id).then(verb::switch(&client.name, claim.id))
        }
        Some(_) => verb::select(claim.id),
        None if survey.clients.iter().any(|row| row.session == session) => verb::select(claim.id),
        None => return Err(BackendError::NotShown { place: claim.place() }),
    };
    run_guarded(&server, claim, &unit)
}

/// Moves the pane into a window of its own, at the end of its session and in the background.
pub(super) fn hide(home: &TmuxHome, claim: &PaneClaim<'_>) -> Result<Placement, BackendError> {
    let server = claim.server(&home.program);
    let survey = survey_server(home, &server)?;
    let row = pane_row(&survey, claim)?;
    let tag = PlainWord::from_text(&home.tag);
    if !is_hidden(&survey, row, &tag) {
        let name = team_name(&format!("{}-hidden", home.team));
        run_guarded(&server, claim, &verb::hide(claim.id, row.session, &name, &tag))?;
    }
    current_placement(home, &server, claim)
}

/// Moves a hidden pane back: beside the lead if it came from there, else into a window of the team.
/// A pane that was alone in its window keeps it; if no window has room, the hidden window becomes
/// the team's.
pub(super) fn show(home: &TmuxHome, claim: &PaneClaim<'_>) -> Result<Placement, BackendError> {
    let server = claim.server(&home.program);
    let survey = survey_server(home, &server)?;
    let row = pane_row(&survey, claim)?;
    let tag = PlainWord::from_text(&home.tag);
    if is_hidden(&survey, row, &tag) {
        let column = survey.lead_column.as_ref().filter(|_| row.beside == tag.as_str());
        let alone = window_of(&survey, row).is_some_and(|window| window.tag == tag.as_str());
        let free = survey.team_windows.iter().find(|window| window.free > 0);
        let unhide = verb::unhide(row.window, &team_name(&home.team));
        let unit = match (column.and_then(|column| rejoin_column(claim, column)), free) {
            (Some(unit), _) => unit,
            (None, _) if alone => unhide,
            (None, Some(window)) => {
                let join = verb::join(claim.id, &window.id.to_string(), None);
                verb::tile(window.id).then(join).then(verb::tile(window.id))
            }
            (None, None) => unhide.then(verb::mark_window(row.window, &tag, true)),
        };
        run_guarded(&server, claim, &unit)?;
    }
    current_placement(home, &server, claim)
}

fn rejoin_column(claim: &PaneClaim<'_>, column: &LeadColumn) -> Option<Unit> {
    match &column.panes {
        Column::New { lead, columns, .. } => {
            Some(verb::join(claim.id, &lead.to_string(), Some(Edge::Right { columns: *columns })))
        }
        Column::Existing(panes) => {
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
fn run_guarded(
    server: &Server<'_>,
    claim: &PaneClaim<'_>,
    unit: &Unit,
) -> Result<(), BackendError> {
    server.ask(&claim.guarded(unit)).problem.map_or(Ok(()), Err)
}

fn pane_row<'s>(
    survey: &'s ServerSurvey,
    claim: &PaneClaim<'_>,
) -> Result<&'s PaneRow, BackendError> {
    let found = survey.panes.iter().find(|row| row.id == claim.id);
    found.ok_or_else(|| {
        let verdict = judge(Observation::Absent);
        BackendError::NotOurs { place: claim.place(), verdict }
    })
}

fn is_hidden(survey: &ServerSurvey, row: &PaneRow, tag: &PlainWord) -> bool {
    window_of(survey, row).is_some_and(|window| window.hidden == tag.as_str())
}

fn window_of<'s>(survey: &'s ServerSurvey, row: &PaneRow) -> Option<&'s WindowRow> {
    survey.windows.iter().find(|window| window.id == row.window)
}

/// Returns the current placement of the claimed pane.
fn current_placement(
    home: &TmuxHome,
    server: &Server<'_>,
    claim: &PaneClaim<'_>,
) -> Result<Placement, BackendError> {
    let survey = survey_server(home, server)?;
    let row = pane_row(&survey, claim)?;
    let session = survey.sessions.iter().find(|session| session.id == row.session);
    Ok(Placement::Tmux(TmuxPane {
        session_id: row.session.to_string(),
        session_name: session.map(|session| session.name.clone()).unwrap_or_default(),
        window_id: row.window.to_string(),
        window_name: window_of(&survey, row).map(|window| window.name.clone()).unwrap_or_default(),
        ..claim.recorded.clone()
    }))
}
