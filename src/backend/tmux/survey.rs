//! Finds room for a team's next panes, from one read-only tmux process that lists the server's
//! contents.

use super::arrange::{Size, capacity, column, stack};
use super::command::{PaneId, PlainWord, Server, SessionId, WindowId};
use super::row::{ClientRow, PaneRow, ServerRow, SessionRow, WindowRow, rows};
use super::verb::{self, WindowTarget};
use crate::{BackendError, TmuxHome};
use model::members::placement::ProcessId;
use sys::proc::Process;

/// The size of a session of our own without a client, large enough for programs that adapt to their
/// terminal (PM-02).
pub(super) const DETACHED: Size = Size { width: 200, height: 50 };

/// The session for the team's new panes.
#[derive(Debug, Clone)]
pub(super) enum TargetSession {
    Existing {
        id: SessionId,
        name: String,
    },
    /// The session does not exist yet; this name is free.
    New(PlainWord),
}

impl TargetSession {
    /// The target of new windows once the session exists.
    pub(super) fn window_target(&self) -> WindowTarget {
        match self {
            TargetSession::Existing { id, .. } => WindowTarget::Session(*id),
            TargetSession::New(name) => WindowTarget::JustMade(name.clone()),
        }
    }

    fn is(&self, session: SessionId) -> bool {
        match self {
            TargetSession::Existing { id, .. } => *id == session,
            TargetSession::New(_) => false,
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            TargetSession::Existing { name, .. } => name,
            TargetSession::New(name) => name.as_str(),
        }
    }
}

/// A window of the team that may have room for more panes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TeamWindow {
    pub(super) id: WindowId,
    pub(super) name: String,
    /// Number of panes that still fit.
    pub(super) free: usize,
}

/// Space for members in the lead's own window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeadColumn {
    pub(super) window: WindowId,
    pub(super) name: String,
    pub(super) panes: Column,
}

impl LeadColumn {
    /// The number of members, at most `count`, that fit.
    pub(super) fn free(&self, count: usize) -> usize {
        match &self.panes {
            Column::New { rows, .. } if count > 0 => 1 + stack(&[*rows], count - 1)[0],
            Column::New { .. } => 0,
            Column::Existing(panes) => {
                let heights: Vec<usize> = panes.iter().map(|(_, height)| *height).collect();
                stack(&heights, count).iter().sum()
            }
        }
    }
}

/// The team's panes to the right of the lead's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Column {
    /// There are none yet: a column would take `columns` of the pane `lead`, which has `rows` rows.
    New { lead: PaneId, columns: usize, rows: usize },
    /// The existing panes, with their heights in rows.
    Existing(Vec<(PaneId, usize)>),
}

/// The state of the server, as far as it matters for new panes.
#[derive(Debug, Clone)]
pub(super) struct ServerSurvey {
    pub(super) target: TargetSession,
    /// The session is the team's own.
    pub(super) is_own: bool,
    /// No client is attached to the team's own session, so that phalanx decides its size.
    pub(super) is_unwatched: bool,
    /// The expected size of a new window.
    pub(super) size: Size,
    /// The team's windows in the session.
    pub(super) team_windows: Vec<TeamWindow>,
    /// `None` if the caller is not in the session and no member is beside the lead there, if the
    /// lead's window is zoomed (a split would end the zoom, LY-05), or if there is too little
    /// space.
    pub(super) lead_column: Option<LeadColumn>,
    /// A client in control mode (`tmux -CC`), which arranges panes itself, is attached to the
    /// session (LY-11).
    pub(super) arranged: bool,
    pub(super) panes: Vec<PaneRow>,
    pub(super) clients: Vec<ClientRow>,
    pub(super) sessions: Vec<SessionRow>,
    pub(super) windows: Vec<WindowRow>,
}

/// Lists the server's contents. New panes go where the team's panes are, wherever the caller is
/// (LY-13). The first ones go beside the caller's own pane if it has one (SP-05), else into the
/// session of the team's last placement, else into a session of the team's own.
///
/// # Errors
/// [`BackendError::Exec`] if tmux cannot be run or times out. The error of tmux if the caller runs
/// in a server that does not answer.
pub(super) fn survey_server(
    home: &TmuxHome,
    server: &Server<'_>,
) -> Result<ServerSurvey, BackendError> {
    let inside = home.inside.as_ref().and_then(|inside| PaneId::parse(&inside.pane));
    let answer = server.ask(
        &verb::server()
            .then(verb::sessions())
            .then(verb::windows())
            .then(verb::panes())
            .then(verb::clients()),
    );
    let reached = rows::<ServerRow>(&answer.lines).into_iter().next();
    match answer.problem {
        Some(BackendError::Exec(error)) => return Err(error.into()),
        // A second server, started instead of the caller's own, would hide the team from it
        // (CR-11).
        Some(problem) if reached.is_none() && inside.is_some() => return Err(problem),
        // Without a server, the first session starts one. A partial answer costs at worst an
        // additional window.
        Some(_) | None => (),
    }
    let lines = &answer.lines;
    let (sessions, windows, panes) =
        (rows::<SessionRow>(lines), rows::<WindowRow>(lines), rows::<PaneRow>(lines));
    let clients: Vec<ClientRow> = rows(lines);
    let own = panes.iter().find(|row| Some(row.id) == inside);
    let tag = PlainWord::from_text(&home.tag);
    let target = occupied_session(own, &tag, &panes, &windows)
        .or_else(|| own.map(|own| own.session))
        .or_else(|| last_session(home, reached))
        .and_then(|id| sessions.iter().find(|row| row.id == id));
    let target = target.map_or_else(
        || team_session(home, &tag, &sessions),
        |row| TargetSession::Existing { id: row.id, name: row.name.clone() },
    );
    let is_own = match &target {
        TargetSession::New(_) => true,
        TargetSession::Existing { id, .. } => {
            sessions.iter().any(|row| row.id == *id && row.tag == tag.as_str())
        }
    };
    let is_unwatched = is_own && !clients.iter().any(|row| target.is(row.session));
    let own = own.filter(|own| target.is(own.session));
    let size = match own {
        _ if is_unwatched => DETACHED,
        Some(own) => own.window_size,
        None => session_size(&target, &windows),
    };
    let arranged = clients.iter().any(|row| row.control && target.is(row.session));
    let team_windows = if arranged {
        Vec::new()
    } else {
        team_windows(&target, &tag, &windows, is_unwatched.then_some(DETACHED))
    };
    let lead_column = lead_column(own, &target, &tag, (&panes, &windows));
    Ok(ServerSurvey {
        target,
        is_own,
        is_unwatched,
        size,
        team_windows,
        lead_column,
        arranged,
        panes,
        clients,
        sessions,
        windows,
    })
}

/// Returns the session that holds panes of the team; the caller's own one, if it is among several.
fn occupied_session(
    own: Option<&PaneRow>,
    tag: &PlainWord,
    panes: &[PaneRow],
    windows: &[WindowRow],
) -> Option<SessionId> {
    let tag = tag.as_str();
    let of_windows = windows.iter().filter(|row| row.tag == tag || row.hidden == tag);
    let beside = panes.iter().filter(|row| row.beside == tag && !row.dead);
    let found: Vec<SessionId> =
        of_windows.map(|row| row.session).chain(beside.map(|row| row.session)).collect();
    own.map(|own| own.session).filter(|id| found.contains(id)).or(found.first().copied())
}

/// Returns the session of the team's last placement, if that was on the server that answered.
fn last_session(home: &TmuxHome, reached: Option<ServerRow>) -> Option<SessionId> {
    let last = home.last.as_ref()?;
    let server = reached.and_then(|server| Process::of(server.pid))?;
    let is_same = ProcessId { pid: server.pid, start: server.start } == last.server;
    SessionId::parse(&last.session_id).filter(|_| is_same)
}

/// The expected size of a new window in a session that the caller is not in.
fn session_size(target: &TargetSession, windows: &[WindowRow]) -> Size {
    let window = windows.iter().find(|row| target.is(row.session));
    window.map_or(DETACHED, |row| Size { width: row.width, height: row.height })
}

/// Finds space in the lead's window: the caller's own one, or if the caller is elsewhere, the one
/// with the team's panes. Only the lead's pane and the team's are ever split (LY-04).
fn lead_column(
    own: Option<&PaneRow>,
    target: &TargetSession,
    tag: &PlainWord,
    (panes, windows): (&[PaneRow], &[WindowRow]),
) -> Option<LeadColumn> {
    let is_ours =
        |row: &&PaneRow| target.is(row.session) && row.beside == tag.as_str() && !row.dead;
    let anchor = own.or_else(|| panes.iter().find(is_ours)).filter(|row| !row.zoomed)?;
    let ours = panes.iter().filter(is_ours).filter(|row| row.window == anchor.window);
    let existing: Vec<(PaneId, usize)> = ours.map(|row| (row.id, row.size.height)).collect();
    let panes = if existing.is_empty() {
        Column::New { lead: anchor.id, columns: column(anchor.size)?, rows: anchor.size.height }
    } else {
        Column::Existing(existing)
    };
    let name = windows.iter().find(|row| row.id == anchor.window).map(|row| row.name.clone());
    Some(LeadColumn { window: anchor.window, name: name.unwrap_or_default(), panes })
}

/// Returns the team's own session, or a free name for it. A session with that name but without this
/// team's tag belongs to another team or to the user.
fn team_session(home: &TmuxHome, tag: &PlainWord, sessions: &[SessionRow]) -> TargetSession {
    if let Some(row) = sessions.iter().find(|row| row.tag == tag.as_str()) {
        return TargetSession::Existing { id: row.id, name: row.name.clone() };
    }
    let base = team_name(&home.team);
    let mut name = base.clone();
    let mut nth = 2;
    while sessions.iter().any(|row| row.name == name.as_str()) {
        name = PlainWord::from_text(&format!("{}-{nth}", base.as_str()));
        nth += 1;
    }
    TargetSession::New(name)
}

/// The name of a team's window and of its detached session.
pub(super) fn team_name(team: &str) -> PlainWord {
    PlainWord::from_text(&format!("phalanx-{team}"))
}

/// Lists the team's windows in its session, without hidden ones and those that a person has zoomed,
/// because a split would end the zoom (LY-05). They will have the size `restored`, if any.
fn team_windows(
    target: &TargetSession,
    tag: &PlainWord,
    windows: &[WindowRow],
    restored: Option<Size>,
) -> Vec<TeamWindow> {
    let TargetSession::Existing { id, .. } = target else { return Vec::new() };
    let is_usable = |row: &&WindowRow| {
        row.session == *id && row.tag == tag.as_str() && row.hidden.is_empty() && !row.zoomed
    };
    let team_window = |row: &WindowRow| {
        let size = restored.unwrap_or(Size { width: row.width, height: row.height });
        TeamWindow {
            id: row.id,
            name: row.name.clone(),
            free: capacity(size).saturating_sub(row.panes),
        }
    };
    windows.iter().filter(is_usable).map(team_window).collect()
}
