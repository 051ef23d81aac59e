//! Opens sessions, each as a split or tab of an existing session, with the launcher as its command.
//! Nothing is typed, and a failed launch leaves no session behind.

use super::super::{Backend, BackendError, Mark, PlacementRequest};
use super::script::{NOT_FOUND, NOT_RUNNING, PLACE};
use super::session::{Iterm2, POLL_INTERVAL, SESSION_TIMEOUT};
use super::survey::{ItermRow, Way, add_opened, anchors, caller_session, is_id, is_tty};
use super::{osa, quote};
use model::members::placement::{ItermSession, Placement};
use sys::clock::{self, Deadline};

enum OpenResult {
    Placed(ItermSession),
    AnchorGone,
}

/// Starts the launchers one after another. Sessions are listed once per batch, and again after an
/// anchor has gone (LY-08) or a launch has failed.
pub(super) fn place(
    iterm2: &Iterm2,
    launches: &[PlacementRequest],
) -> Vec<Result<Placement, BackendError>> {
    let mut rows: Option<Vec<ItermRow>> = None;
    let one = |launch: &PlacementRequest| {
        let placed = place_one(iterm2, &mut rows, launch);
        if placed.is_err() {
            rows = None;
        }
        placed.map(Placement::Iterm2)
    };
    launches.iter().map(one).collect()
}

fn place_one(
    iterm2: &Iterm2,
    rows: &mut Option<Vec<ItermRow>>,
    launch: &PlacementRequest,
) -> Result<ItermSession, BackendError> {
    let command = quote::command(&launch.argv)
        .map_err(|problem| BackendError::Unavailable { program: "iTerm2", problem })?;
    // The list of a previous launch may be stale, so a second attempt uses a new one.
    if let Some(known) = rows.as_mut()
        && let Some(session) = open_from_any(iterm2, known, launch, &command)?
    {
        return Ok(session);
    }
    let known = rows.insert(iterm2.survey()?.ok_or_else(|| osa::not_running(&PLACE))?);
    open_from_any(iterm2, known, launch, &command)?.ok_or_else(|| {
        let message = "neither this terminal nor any member of the team is an iTerm2 session";
        let advice = "run the command again in an iTerm2 session, outside tmux and SSH";
        osa::refused(&PLACE, None, message.to_owned(), Some(advice))
    })
}

/// Tries one anchor after another; `None` if none of them exists any longer.
fn open_from_any(
    iterm2: &Iterm2,
    rows: &mut Vec<ItermRow>,
    launch: &PlacementRequest,
    command: &str,
) -> Result<Option<ItermSession>, BackendError> {
    let home = &iterm2.home;
    let caller = caller_session(rows, home.tty.as_deref(), home.hint.as_deref());
    for (anchor, way) in anchors(rows, caller, &home.tag, home.layout) {
        match open_from(iterm2, &anchor, way, launch, command) {
            Ok(OpenResult::Placed(session)) => {
                add_opened(rows, &anchor, way, row(&session, launch, &home.tag));
                return Ok(Some(session));
            }
            Ok(OpenResult::AnchorGone) => (),
            Err(problem) => {
                close_leftovers(iterm2, launch);
                return Err(problem);
            }
        }
    }
    Ok(None)
}

fn row(session: &ItermSession, launch: &PlacementRequest, tag: &str) -> ItermRow {
    let ItermSession { session_id: id, tty } = session.clone();
    ItermRow {
        id,
        tty,
        rows: 0,
        window: String::new(),
        token: launch.token.clone(),
        team: tag.to_owned(),
    }
}

fn open_from(
    iterm2: &Iterm2,
    anchor: &str,
    way: Way,
    launch: &PlacementRequest,
    command: &str,
) -> Result<OpenResult, BackendError> {
    let args =
        [anchor, way.word(), command, &launch.token, &iterm2.home.tag, launch.member.as_str()];
    let answer = match iterm2.osa.run(&PLACE, &args) {
        Err(problem) if osa::is_gone(&problem) => return find_opened(iterm2, launch),
        other => other?,
    };
    let fields: Vec<&str> = answer.split('\t').collect();
    match fields[..] {
        [NOT_FOUND] => Ok(OpenResult::AnchorGone),
        [NOT_RUNNING] => Err(osa::not_running(&PLACE)),
        ["placed", id, tty] if is_id(id) && is_tty(tty) => {
            Ok(OpenResult::Placed(ItermSession { session_id: id.to_owned(), tty: tty.to_owned() }))
        }
        ["placed", id, _] if is_id(id) => wait_tty(iterm2, id).map(OpenResult::Placed),
        _ => Err(osa::unreadable(&PLACE, &answer)),
    }
}

/// Handles "no such object", which may refer to the anchor or to an object used after the split.
/// The token shows whether the session exists, so that no second one is opened for the same
/// launcher (SP-11).
fn find_opened(iterm2: &Iterm2, launch: &PlacementRequest) -> Result<OpenResult, BackendError> {
    let rows = iterm2.survey()?.unwrap_or_default();
    match rows.into_iter().find(|row| row.token == launch.token) {
        Some(row) => wait_tty(iterm2, &row.id).map(OpenResult::Placed),
        None => Ok(OpenResult::AnchorGone),
    }
}

/// Waits for a session's terminal device, which may appear after the session.
fn wait_tty(iterm2: &Iterm2, id: &str) -> Result<ItermSession, BackendError> {
    let deadline = Deadline::after(SESSION_TIMEOUT);
    loop {
        let rows = iterm2.survey()?.unwrap_or_default();
        match rows.into_iter().find(|row| row.id == id) {
            Some(row) if !row.tty.is_empty() => {
                return Ok(ItermSession { session_id: row.id, tty: row.tty });
            }
            Some(_) if !deadline.expired() => clock::sleep(POLL_INTERVAL.min(deadline.remaining())),
            Some(_) | None => {
                let message = format!("session {id} has no terminal");
                return Err(osa::refused(&PLACE, None, message, None));
            }
        }
    }
}

/// Closes a session that a failed launch opened, as happens if only the answer was lost. Finds it
/// by its token.
fn close_leftovers(iterm2: &Iterm2, launch: &PlacementRequest) {
    let rows = iterm2.survey().ok().flatten().unwrap_or_default();
    for row in rows.into_iter().filter(|row| row.token == launch.token) {
        let session = ItermSession { session_id: row.id, tty: row.tty };
        // If this fails too, the launcher finds its spec missing and exits, which ends the session.
        let _ = iterm2.close(Mark::new(&Placement::Iterm2(session), &launch.token));
    }
}
