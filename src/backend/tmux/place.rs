//! Places launchers in few tmux processes and accounts for every pane that it creates.
//!
//! One round takes at most three processes: a survey; the new windows and the new column beside the
//! lead, each with its first launcher; the other launchers as splits. A last process marks and
//! labels all panes and lists them as proof. A single launcher thus takes three processes in all.
//! Launchers that found no room go into the next round.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use super::arrange::{Size, capacity, part, share, stack};
use super::command::{PaneId, PlainWord, Server, Unit, WindowId, share_error};
use super::label;
use super::row::{MadeRow, PaneRow, rows};
use super::survey::{
    Column, DETACHED, LeadColumn, ServerSurvey, TargetSession, TeamWindow, survey_server, team_name,
};
use super::verb::{self, Edge, PaneGuard};
use crate::{BackendError, Label, PlacementRequest, TmuxHome};
use model::id::MemberName;
use model::members::placement::{Layout, Placement, ProcessId, TmuxPane};
use sys::proc::Process;

/// More panes than any window holds.
const MAX_PANES: usize = 1_000;
/// Number of consecutive rounds without a new pane after which placement stops.
const FRUITLESS_ROUNDS: usize = 2;

/// Places the launchers; returns one result per launch, in order.
pub(super) fn place(
    home: &TmuxHome,
    launches: &[PlacementRequest],
) -> Vec<Result<Placement, BackendError>> {
    let mut batch = PaneBatch::new(home, launches);
    batch.place_all();
    batch.finish()
}

/// A launcher to be placed.
struct PendingPane<'a> {
    member: &'a MemberName,
    argv: &'a [OsString],
    label: &'a Label,
    token: PlainWord,
    state: PaneState,
}

enum PaneState {
    Waiting,
    Placed(PlacedPane),
    /// Invalid; tmux was not run for it.
    Refused(BackendError),
}

/// A pane that was created.
struct PlacedPane {
    row: MadeRow,
    window_name: String,
    session_name: String,
    /// The pane is in the lead's own window.
    beside: bool,
}

/// One step of a call: the commands, and the launcher that gets the new pane.
struct PaneStep {
    pending: Option<usize>,
    /// The existing window that gets the pane; `None` if the step creates a window.
    split: Option<WindowId>,
    window_name: String,
    beside: bool,
    unit: Unit,
}

#[derive(Clone, Copy)]
struct Slot<'s> {
    window: WindowId,
    name: &'s str,
    /// The window is the lead's own.
    beside: bool,
}

struct PaneBatch<'a> {
    home: &'a TmuxHome,
    server: Server<'a>,
    panes: Vec<PendingPane<'a>>,
    /// Windows in which a split failed.
    full_windows: BTreeSet<WindowId>,
    /// Commands that create no pane and are sent together with the marks.
    changes: Vec<Unit>,
    /// The last error that kept a launcher from its pane.
    last_error: Option<BackendError>,
}

impl<'a> PaneBatch<'a> {
    fn new(home: &'a TmuxHome, launches: &'a [PlacementRequest]) -> PaneBatch<'a> {
        let server = Server { program: &home.program, socket: home.socket.as_deref() };
        let panes = launches.iter().map(pending_pane).collect();
        PaneBatch {
            home,
            server,
            panes,
            full_windows: BTreeSet::new(),
            changes: Vec::new(),
            last_error: None,
        }
    }

    fn waiting(&self) -> Vec<usize> {
        let all = 0..self.panes.len();
        all.filter(|nth| matches!(self.panes[*nth].state, PaneState::Waiting)).collect()
    }

    fn place_all(&mut self) {
        let mut fruitless = 0;
        let mut waiting = self.waiting();
        while !waiting.is_empty() && fruitless < FRUITLESS_ROUNDS {
            let round = survey_server(self.home, &self.server)
                .and_then(|survey| self.place_round(&survey, &waiting));
            let left = self.waiting();
            fruitless = if left.len() < waiting.len() { 0 } else { fruitless + 1 };
            waiting = left;
            if let Err(problem) = round {
                self.last_error = Some(problem);
                return;
            }
        }
    }

    /// Places as many of the waiting launchers as there is room for.
    fn place_round(
        &mut self,
        survey: &ServerSurvey,
        waiting: &[usize],
    ) -> Result<(), BackendError> {
        let column = survey.lead_column.as_ref().filter(|column| self.uses_column(column));
        let (beside, waiting) =
            waiting.split_at(column.map_or(0, |column| column.free(waiting.len())));
        let (free, capacity): (Vec<usize>, usize) = match self.home.layout {
            Layout::Panes | Layout::Split => {
                let free_in = |window: &TeamWindow| {
                    if self.full_windows.contains(&window.id) { 0 } else { window.free }
                };
                (survey.team_windows.iter().map(free_in).collect(), self.window_capacity(survey))
            }
            Layout::Windows => (Vec::new(), 1),
        };
        let shares = share(waiting.len(), &free, capacity);
        let mut queue = waiting.iter().copied();
        let mut tiled = Vec::new();
        for (window, count) in survey.team_windows.iter().zip(&shares.there) {
            let members: Vec<usize> = queue.by_ref().take(*count).collect();
            if !members.is_empty() {
                tiled.push(PaneStep::change(verb::tile(window.id)));
            }
            tiled.extend(members.into_iter().map(|nth| self.split(nth, window.id, &window.name)));
        }
        let groups: Vec<Vec<usize>> =
            shares.new.iter().map(|count| queue.by_ref().take(*count).collect()).collect();
        let mut firsts = self.windows(survey, &groups);
        firsts.extend(column.and_then(|column| self.open_column(column, beside)));
        self.send(survey, firsts)?;
        let mut splits: Vec<PaneStep> =
            groups.iter().filter_map(|group| self.mark_window(survey, group)).collect();
        let session = match &survey.target {
            TargetSession::Existing { id, .. } => Some(*id),
            TargetSession::New(_) => {
                groups.iter().find_map(|group| self.first_pane(group)).map(|made| made.row.session)
            }
        };
        if let Some(session) = session.filter(|_| survey.is_unwatched) {
            splits.push(PaneStep::change(verb::restore_size(session, survey.size)));
        }
        splits.extend(tiled);
        for group in &groups {
            splits.extend(self.fill_window(survey, group));
        }
        splits.extend(column.map(|column| self.extend_column(column, beside)).unwrap_or_default());
        if splits.iter().all(|step| step.pending.is_none()) {
            self.changes.extend(splits.into_iter().map(|step| step.unit));
            return Ok(());
        }
        self.send(survey, splits)
    }

    /// Returns true if members go beside the lead.
    fn uses_column(&self, column: &LeadColumn) -> bool {
        self.home.layout == Layout::Split && !self.full_windows.contains(&column.window)
    }

    /// The number of panes that a new window holds.
    fn window_capacity(&self, survey: &ServerSurvey) -> usize {
        if survey.arranged {
            1 + stack(&[survey.size.height], MAX_PANES)[0]
        } else {
            capacity(survey.size)
        }
    }

    /// Creates the first pane of the column beside the lead.
    fn open_column(&self, column: &LeadColumn, beside: &[usize]) -> Option<PaneStep> {
        let Column::New { lead, columns, .. } = &column.panes else { return None };
        Some(self.cut(*beside.first()?, *lead, Edge::Right { columns: *columns }, column.slot()))
    }

    /// Adds the remaining panes of the column beside the lead.
    fn extend_column(&self, column: &LeadColumn, beside: &[usize]) -> Vec<PaneStep> {
        match (&column.panes, beside.split_first()) {
            (Column::Existing(panes), _) => self.stack_panes(panes, beside, column.slot()),
            (Column::New { rows, .. }, Some((first, rest))) => match &self.panes[*first].state {
                PaneState::Placed(placed) => {
                    self.stack_panes(&[(placed.row.pane, *rows)], rest, column.slot())
                }
                PaneState::Waiting | PaneState::Refused(_) => Vec::new(),
            },
            (Column::New { .. }, None) => Vec::new(),
        }
    }

    /// Cuts panes of ours into equal parts, one below the other. Each cut goes below the pane that
    /// is cut, so that all targets are known in advance.
    fn stack_panes(
        &self,
        panes: &[(PaneId, usize)],
        members: &[usize],
        slot: Slot<'_>,
    ) -> Vec<PaneStep> {
        let heights: Vec<usize> = panes.iter().map(|(_, height)| *height).collect();
        let mut queue = members.iter();
        let mut steps = Vec::new();
        for ((pane, height), more) in panes.iter().zip(stack(&heights, members.len())) {
            let edge = Edge::Below { rows: part(*height, more + 1) };
            steps.extend(queue.by_ref().take(more).map(|nth| self.cut(*nth, *pane, edge, slot)));
        }
        steps
    }

    fn cut(&self, nth: usize, from: PaneId, edge: Edge, slot: Slot<'_>) -> PaneStep {
        self.step(nth, verb::cut(from, edge, self.panes[nth].argv), slot)
    }

    fn step(&self, nth: usize, unit: Unit, slot: Slot<'_>) -> PaneStep {
        let window_name = slot.name.to_owned();
        PaneStep {
            pending: Some(nth),
            split: Some(slot.window),
            window_name,
            beside: slot.beside,
            unit,
        }
    }

    /// Creates a window for each group, with the group's first launcher in it.
    fn windows(&self, survey: &ServerSurvey, groups: &[Vec<usize>]) -> Vec<PaneStep> {
        let firsts = groups.iter().filter_map(|group| group.first().copied());
        let step = |(window, nth): (usize, usize)| {
            let name = self.window_name(nth);
            let argv = self.panes[nth].argv;
            let unit = match (&survey.target, window) {
                (TargetSession::New(session), 0) => {
                    let tag = PlainWord::from_text(&self.home.tag);
                    verb::new_session(session, &name, &tag, survey.size, argv)
                }
                (TargetSession::New(_) | TargetSession::Existing { .. }, _) => {
                    verb::new_window(&survey.target.window_target(), &name, argv)
                }
            };
            PaneStep {
                pending: Some(nth),
                split: None,
                window_name: name.as_str().to_owned(),
                beside: false,
                unit,
            }
        };
        firsts.enumerate().map(step).collect()
    }

    fn window_name(&self, nth: usize) -> PlainWord {
        match self.home.layout {
            Layout::Panes | Layout::Split => team_name(&self.home.team),
            Layout::Windows => team_name(&format!("{}-{}", self.home.team, self.panes[nth].member)),
        }
    }

    /// The first pane of a group that has one.
    fn first_pane(&self, group: &[usize]) -> Option<&PlacedPane> {
        match &self.panes[*group.first()?].state {
            PaneState::Placed(placed) => Some(placed),
            PaneState::Waiting | PaneState::Refused(_) => None,
        }
    }

    /// Marks the new window of a group as the team's.
    fn mark_window(&self, survey: &ServerSurvey, group: &[usize]) -> Option<PaneStep> {
        let window = self.first_pane(group)?.row.window;
        let tag = PlainWord::from_text(&self.home.tag);
        let unit = verb::mark_window(window, &tag, self.home.layout != Layout::Windows);
        let hook = survey.is_own.then(|| verb::keep_size(window, DETACHED));
        Some(PaneStep::change(hook.into_iter().fold(unit, Unit::then)))
    }

    /// Adds the rest of a group to its new window, as many as fit into the size of the window.
    fn fill_window(&self, survey: &ServerSurvey, group: &[usize]) -> Vec<PaneStep> {
        let (Some(placed), Some((_, rest))) = (self.first_pane(group), group.split_first()) else {
            return Vec::new();
        };
        if survey.arranged {
            let panes = [(placed.row.pane, placed.row.height)];
            let slot = Slot { window: placed.row.window, name: &placed.window_name, beside: false };
            return self.stack_panes(&panes, rest, slot);
        }
        let made = Size { width: placed.row.width, height: placed.row.height };
        let more = capacity(if survey.is_unwatched { survey.size } else { made }) - 1;
        let split = |nth: &usize| self.split(*nth, placed.row.window, &placed.window_name);
        rest.iter().take(more).map(split).collect()
    }

    fn split(&self, nth: usize, window: WindowId, name: &str) -> PaneStep {
        self.step(
            nth,
            verb::split(window, self.panes[nth].argv),
            Slot { window, name, beside: false },
        )
    }

    /// Sends the steps and records the new panes. A call stops at the first command that fails, so
    /// its rows belong to its first steps.
    fn send(&mut self, survey: &ServerSurvey, steps: Vec<PaneStep>) -> Result<(), BackendError> {
        let units: Vec<Unit> = steps.iter().map(|step| step.unit.clone()).collect();
        let mut steps = steps.into_iter();
        for answer in self.server.run(&units) {
            let mut made = rows::<MadeRow>(&answer.lines).into_iter();
            let mut stopped = false;
            for step in steps.by_ref().take(answer.units) {
                let Some(nth) = step.pending else { continue };
                match made.next() {
                    Some(row) => {
                        self.panes[nth].state = PaneState::Placed(step.placed_pane(survey, row))
                    }
                    None if stopped => (),
                    None => {
                        self.full_windows.extend(step.split);
                        stopped = true;
                    }
                }
            }
            match answer.problem {
                // The panes created by this call cannot be determined, so placement stops.
                Some(BackendError::Exec(error)) => return Err(error.into()),
                Some(problem) => self.last_error = Some(problem),
                None => (),
            }
        }
        Ok(())
    }

    /// Marks all panes and lists them: only a pane that exists, runs its launcher and carries its
    /// token is a placement.
    fn finish(self) -> Vec<Result<Placement, BackendError>> {
        let (listed, mut list_error) = match self.mark_panes() {
            Ok(listed) => (listed, None),
            Err(list_error) => (Vec::new(), Some(list_error)),
        };
        let PaneBatch { home, server, panes, mut last_error, .. } = self;
        let mut discard = Vec::new();
        let mut finish_pane = |pane: PendingPane<'_>| match pane.state {
            PaneState::Refused(error) => Err(error),
            PaneState::Waiting => Err(share_error(&mut last_error).unwrap_or_else(no_pane)),
            PaneState::Placed(ref placed) => {
                let listed_row = listed.iter().find(|row| row.id == placed.row.pane);
                prove(home, &pane, placed, listed_row).map(Placement::Tmux).map_err(|error| {
                    discard.push(verb::close(
                        placed.row.pane,
                        placed.row.server,
                        &PaneGuard::Process(placed.row.pid),
                    ));
                    share_error(&mut list_error).unwrap_or(error)
                })
            }
        };
        let results = panes.into_iter().map(&mut finish_pane).collect();
        // A pane that no longer exists fails its proof without an error, so the call continues.
        server.run(&discard);
        results
    }

    /// Marks and labels the new panes and returns all panes of the server.
    ///
    /// # Errors
    /// [`BackendError::Exec`] if tmux cannot be run or times out.
    fn mark_panes(&self) -> Result<Vec<PaneRow>, BackendError> {
        let marks = self.panes.iter().filter_map(|pane| match &pane.state {
            PaneState::Placed(placed) => {
                let marks = verb::mark_pane(placed.row.pane, &pane.token);
                let marks = marks.then(label::unit(placed.row.pane, pane.label));
                let tag = PlainWord::from_text(&self.home.tag);
                Some(if placed.beside {
                    marks.then(verb::mark_pane_beside(placed.row.pane, &tag))
                } else {
                    marks
                })
            }
            PaneState::Waiting | PaneState::Refused(_) => None,
        });
        let marks: Vec<Unit> = marks.collect();
        if marks.is_empty() {
            return Ok(Vec::new());
        }
        let units: Vec<Unit> =
            self.changes.iter().cloned().chain(marks).chain([verb::panes()]).collect();
        let mut listed = Vec::new();
        for answer in self.server.run(&units) {
            if let Some(BackendError::Exec(error)) = answer.problem {
                return Err(error.into());
            }
            listed.extend(rows::<PaneRow>(&answer.lines));
        }
        Ok(listed)
    }
}

impl LeadColumn {
    fn slot(&self) -> Slot<'_> {
        Slot { window: self.window, name: &self.name, beside: true }
    }
}

impl PaneStep {
    /// A step that creates no pane.
    fn change(unit: Unit) -> PaneStep {
        PaneStep { pending: None, split: None, window_name: String::new(), beside: false, unit }
    }

    fn placed_pane(self, survey: &ServerSurvey, row: MadeRow) -> PlacedPane {
        let session_name = survey.target.name().to_owned();
        PlacedPane { row, window_name: self.window_name, session_name, beside: self.beside }
    }
}

fn pending_pane(launch: &PlacementRequest) -> PendingPane<'_> {
    let refused = |stderr: &str| {
        let command = format!("a pane for {}", launch.member);
        PaneState::Refused(BackendError::Refused { command, stderr: stderr.to_owned() })
    };
    let token = PlainWord::parse(&launch.token);
    let state = match (&token, launch.argv.len()) {
        (None, _) => refused("the token must be letters and digits"),
        // tmux would pass a single word to a shell (SP-06).
        (Some(_), 0 | 1) => refused("the launcher's command line is too short"),
        (Some(_), _) => PaneState::Waiting,
    };
    let token = token.unwrap_or_else(|| PlainWord::from_text(""));
    PendingPane { member: &launch.member, argv: &launch.argv, label: &launch.label, token, state }
}

/// Builds the complete identity of a pane; fails if any part of it is missing.
fn prove(
    home: &TmuxHome,
    pane: &PendingPane<'_>,
    placed: &PlacedPane,
    found: Option<&PaneRow>,
) -> Result<TmuxPane, BackendError> {
    let gone = || BackendError::LauncherGone { member: pane.member.clone() };
    let found =
        found.filter(|row| row.pid == Some(placed.row.pid) && !row.dead).ok_or_else(gone)?;
    if found.token != pane.token.as_str() {
        let command = format!("set-option -p -t {} @phalanx_token", placed.row.pane);
        return Err(BackendError::Unreadable { command, answer: found.token.clone() });
    }
    let pane = process(placed.row.pid).ok_or_else(gone)?;
    let server = process(placed.row.server).ok_or_else(gone)?;
    // The server reports its socket as it was given at the server's start. The path that this call
    // used is known to work.
    let requested = home.socket.as_deref().and_then(Path::to_str).map(str::to_owned);
    Ok(TmuxPane {
        socket: requested.unwrap_or_else(|| placed.row.socket.clone()),
        server,
        session_id: placed.row.session.to_string(),
        session_name: placed.session_name.clone(),
        window_id: placed.row.window.to_string(),
        window_name: placed.window_name.clone(),
        pane_id: placed.row.pane.to_string(),
        pane,
    })
}

fn process(pid: i32) -> Option<ProcessId> {
    Process::of(pid).map(|process| ProcessId { pid: process.pid, start: process.start })
}

fn no_pane() -> BackendError {
    BackendError::Unavailable { program: "tmux", problem: "it created no pane".to_owned() }
}
