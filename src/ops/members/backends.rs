//! Chooses the backend of a team and opens the one that a placement belongs to.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::hosts::backend::RemoteBackend;
use crate::{Caller, Context, OpsError};
use backend::choose::{Chosen, Facts, Signs, choose, may_be_iterm2};
use backend::iterm2::{self, Iterm2, ItermHome};
use backend::pty::Pty;
use backend::tmux::{self, Tmux};
use backend::{Backend, InsidePane, TmuxHome};
use model::id::{MemberName, TaskId};
use model::members::placement::{BackendKind, Layout, Placement, TmuxPane};
use model::members::record::MemberRecord;
use model::team::settings::{BackendChoice, Settings};
use store::TeamStore;
use sys::child::open_pty;
use sys::env::{find_program, tty_name};

/// The caller's own tmux pane, from `$TMUX` (`socket,pid,session`) and `$TMUX_PANE`.
pub(crate) struct CallerPane {
    pub socket: PathBuf,
    pub inside: InsidePane,
}

pub(crate) fn caller_pane(ctx: &Context) -> Option<CallerPane> {
    let tmux = ctx.caller.var("TMUX")?.to_str()?;
    let pane = ctx.caller.var("TMUX_PANE")?.to_str()?;
    // Split from the right, since the socket's path may contain commas.
    let mut parts = tmux.rsplitn(3, ',');
    let (session, socket) = (parts.next()?, parts.nth(1)?);
    let inside = InsidePane { pane: pane.to_owned(), session: format!("${session}") };
    Some(CallerPane { socket: PathBuf::from(socket), inside })
}

pub(crate) fn tmux_program(ctx: &Context) -> Result<PathBuf, String> {
    program(&ctx.caller, "tmux")
}

/// Finds a program in the caller's `PATH`.
pub(crate) fn program(caller: &Caller, name: &str) -> Result<PathBuf, String> {
    let found = find_program(OsStr::new(name), caller.var("PATH"), Path::new("/"));
    found.ok_or_else(|| format!("`{name}` is not on PATH"))
}

/// Returns true if a tmux pane with this id is open on the team's server, the caller's or the
/// default one. A server that does not respond counts as having it; without tmux there are no
/// panes.
pub(crate) fn tmux_pane_lives(ctx: &Context, team: &TeamStore, id: &str) -> Result<bool, OpsError> {
    let Ok(program) = tmux_program(ctx) else { return Ok(false) };
    let own = team.settings()?.and_then(|settings| settings.home.tmux_socket).map(PathBuf::from);
    let sockets = [own, caller_pane(ctx).map(|here| here.socket), None];
    Ok(sockets.iter().any(|socket| tmux::has_pane(&program, socket.as_deref(), id).unwrap_or(true)))
}

/// Chooses the team's backend: `asked` if given, else the backend that an earlier spawn chose, else
/// by the settings.
pub(crate) fn choose_backend(
    ctx: &Context,
    settings: &Settings,
    asked: Option<BackendChoice>,
) -> Result<Chosen, OpsError> {
    match (asked, settings.home.chosen) {
        (None, Some(backend)) => {
            let auto = settings.backend == BackendChoice::Auto;
            let why = "as the team's other members".to_owned();
            return Ok(Chosen { backend, why, auto });
        }
        // It is not asked for its version again: members of the team are there.
        (Some(BackendChoice::Tmux), Some(BackendKind::Tmux)) => {
            let why = "as requested".to_owned();
            return Ok(Chosen { backend: BackendKind::Tmux, why, auto: false });
        }
        (Some(_) | None, _) => {}
    }
    let asked = asked.unwrap_or(settings.backend);
    let facts = facts(ctx, asked);
    choose(asked, &facts)
        .map_err(|problem| OpsError::BackendUnavailable { backend: asked, problem })
}

/// Checks that members can be placed by this backend, and returns the backend that results.
///
/// # Errors
/// The reason why no members can be placed, for people.
pub(crate) fn check(ctx: &Context, asked: BackendChoice) -> Result<Chosen, String> {
    let chosen = choose(asked, &facts(ctx, asked))?;
    match chosen.backend {
        BackendKind::Pty => open_pty(1, 1).map(|_| chosen).map_err(|e| e.to_string()),
        BackendKind::Tmux | BackendKind::Iterm2 => Ok(chosen),
    }
}

/// Collects the facts that the choice depends on, and skips checks that cannot affect it.
fn facts(ctx: &Context, asked: BackendChoice) -> Facts {
    let not_checked = || Err("not checked".to_owned());
    let inside_tmux = caller_pane(ctx).is_some();
    let tmux = match asked {
        BackendChoice::Auto | BackendChoice::Tmux => {
            tmux_program(ctx).and_then(|program| tmux::probe(&program))
        }
        BackendChoice::Pty | BackendChoice::Iterm2 => not_checked(),
    };
    let iterm2 = match asked {
        BackendChoice::Auto | BackendChoice::Iterm2 => check_iterm2(ctx),
        BackendChoice::Pty | BackendChoice::Tmux => not_checked(),
    };
    Facts { inside_tmux, tmux, iterm2 }
}

/// Checks that the caller's terminal is a live session of iTerm2. Queries iTerm2 only if the
/// environment points to it.
pub(crate) fn check_iterm2(ctx: &Context) -> Result<(), String> {
    let text = |name: &str| ctx.caller.var(name).and_then(OsStr::to_str);
    may_be_iterm2(&Signs {
        ssh: ctx.caller.var("SSH_CONNECTION").or(ctx.caller.var("SSH_TTY")).is_some(),
        tmux: ctx.caller.var("TMUX").is_some(),
        term_program: text("TERM_PROGRAM"),
        iterm_session_id: text("ITERM_SESSION_ID"),
        lc_terminal: text("LC_TERMINAL"),
    })?;
    let tty = tty_name().ok_or("this process has no terminal")?;
    iterm2::probe(program(&ctx.caller, "osascript")?, &tty)
}

/// A backend and the server that it works with.
enum Home {
    /// The server at this socket; without one the caller's, else the default.
    Tmux {
        socket: Option<PathBuf>,
        last: Option<TmuxPane>,
    },
    Iterm2,
    Pty,
}

/// Opens a backend to place members of `team`.
pub(crate) fn open(
    ctx: &Context,
    team: &TeamStore,
    settings: &Settings,
    kind: BackendKind,
    layout: Option<Layout>,
) -> Result<Box<dyn Backend>, OpsError> {
    let layout = layout.unwrap_or(settings.layout);
    let home = match kind {
        BackendKind::Tmux => Home::Tmux {
            socket: settings.home.tmux_socket.as_ref().map(PathBuf::from),
            last: last_pane(team)?,
        },
        BackendKind::Iterm2 => Home::Iterm2,
        BackendKind::Pty => Home::Pty,
    };
    open_at(ctx, team, home, layout)
}

/// Opens the backend that starts launchers without a terminal, for a program that answers its
/// prompt once or that runs for one task.
pub(crate) fn open_one_shot(
    ctx: &Context,
    team: &TeamStore,
    task: Option<TaskId>,
) -> Box<dyn Backend> {
    let team = team.clone();
    let log = move |name: &MemberName| task.map_or_else(|| team.log(name), |id| team.task_log(id));
    Box::new(Pty::without_terminal(ctx.caller.env.clone(), log))
}

/// Opens the backend that made the placement of this run, on the host and the server that it was
/// made on.
pub(crate) fn open_for(
    ctx: &Context,
    team: &TeamStore,
    record: &MemberRecord,
    placement: &Placement,
) -> Result<Box<dyn Backend>, OpsError> {
    if let Some(host) = record.other_host() {
        return Ok(Box::new(RemoteBackend::open(ctx, team, host, placement.backend())?));
    }
    open_here(ctx, team, placement)
}

/// Opens the backend that made `placement` on this host, on the server that it was made on.
pub(crate) fn open_here(
    ctx: &Context,
    team: &TeamStore,
    placement: &Placement,
) -> Result<Box<dyn Backend>, OpsError> {
    let home = match placement {
        Placement::Tmux(pane) => {
            Home::Tmux { socket: Some(PathBuf::from(&pane.socket)), last: None }
        }
        Placement::Iterm2(_) => Home::Iterm2,
        Placement::Pty(_) => Home::Pty,
    };
    open_at(ctx, team, home, Layout::default())
}

fn open_at(
    ctx: &Context,
    team: &TeamStore,
    home: Home,
    layout: Layout,
) -> Result<Box<dyn Backend>, OpsError> {
    match home {
        Home::Iterm2 => {
            let program = program(&ctx.caller, "osascript").map_err(|problem| {
                OpsError::BackendUnavailable { backend: BackendChoice::Iterm2, problem }
            })?;
            let hint =
                ctx.caller.var("ITERM_SESSION_ID").and_then(OsStr::to_str).map(str::to_owned);
            Ok(Box::new(Iterm2::new(ItermHome {
                program,
                tty: tty_name(),
                hint,
                tag: tag(team)?,
                layout,
            })))
        }
        Home::Pty => {
            let team = team.clone();
            Ok(Box::new(Pty::new(ctx.caller.env.clone(), move |name| team.log(name))))
        }
        Home::Tmux { socket, last } => {
            let program = tmux_program(ctx).map_err(|problem| OpsError::BackendUnavailable {
                backend: BackendChoice::Tmux,
                problem,
            })?;
            let here = caller_pane(ctx);
            let socket = socket.or_else(|| here.as_ref().map(|h| h.socket.clone()));
            let inside = here.filter(|h| socket.as_ref() == Some(&h.socket)).map(|h| h.inside);
            let tag = tag(team)?;
            Ok(Box::new(Tmux::new(TmuxHome {
                program,
                socket,
                inside,
                last,
                team: team.name().to_string(),
                tag,
                layout,
            })))
        }
    }
}

/// Returns the last tmux placement of a member on this host.
fn last_pane(team: &TeamStore) -> Result<Option<TmuxPane>, OpsError> {
    let records = team.member_records()?.into_iter().filter(|record| !record.is_elsewhere);
    let placed = records.filter_map(|record| match record.placement {
        Some(Placement::Tmux(pane)) => Some((record.asked_at, pane)),
        Some(Placement::Iterm2(_) | Placement::Pty(_)) | None => None,
    });
    Ok(placed.max_by_key(|(asked_at, _)| *asked_at).map(|(_, pane)| pane))
}

/// Returns the tag that distinguishes this team's placements from those of an older team of its
/// name.
fn tag(team: &TeamStore) -> Result<String, OpsError> {
    let found = team.team()?;
    let session = found.lead_session_id.unwrap_or_default();
    Ok(format!("{}/{}/{session}", team.name(), found.created_at.0))
}
