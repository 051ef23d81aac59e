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
use super::command::{PaneId, PlainWord, Server, Unit, WindowId, spread};
use super::label;
use super::row::{MadeRow, PaneRow, rows};
use super::survey::{Column, LeadColumn, Survey, TargetSession, TeamWindow, survey, team_name};
use super::verb::{self, Edge, PaneGuard};
use crate::backend::{BackendError, Label, PlacementRequest, TmuxHome};
use crate::model::id::MemberName;
use crate::model::placement::{Layout, Placement, ProcessId, TmuxPane};
use crate::sys::proc::Process;

/// More panes than any window holds.
const MANY: usize = 1_000;
/// Number of consecutive rounds without a new pane after which placement stops.
const BARREN_ROUNDS: usize = 2;

/// Places the launchers; returns one result per launch, in order.
pub(super) fn place(
    home: &TmuxHome,
    launches: &[PlacementRequest],
) -> Vec<Result<Placement, BackendError>> {
    let mut batch = PaneBatch::new(home, launches);
    batch.seat_all();
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
    Seated(PlacedPane),
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
    guest: Option<usize>,
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
    guests: Vec<PendingPane<'a>>,
    /// Windows in which a split failed.
    crowded: BTreeSet<WindowId>,
    /// Commands that create no pane and are sent together with the marks.
    changes: Vec<Unit>,
    /// The last error that kept a launcher from its pane.
    trouble: Option<BackendError>,
}

impl<'a> PaneBatch<'a> {
    fn new(home: &'a TmuxHome, launches: &'a [PlacementRequest]) -> PaneBatch<'a> {
        let server = Server { program: &home.program, socket: home.socket.as_deref() };
        let guests = launches.iter().map(guest).collect();
        PaneBatch {
            home,
            server,
            guests,
            crowded: BTreeSet::new(),
            changes: Vec::new(),
            trouble: None,
        }
    }

    fn waiting(&self) -> Vec<usize> {
        let waits = |guest: &PendingPane<'_>| matches!(guest.state, PaneState::Waiting);
        (0..self.guests.len()).filter(|nth| waits(&self.guests[*nth])).collect()
    }

    fn seat_all(&mut self) {
        let mut barren = 0;
        let mut waiting = self.waiting();
        while !waiting.is_empty() && barren < BARREN_ROUNDS {
            let round =
                survey(self.home, &self.server).and_then(|survey| self.round(&survey, &waiting));
            let left = self.waiting();
            barren = if left.len() < waiting.len() { 0 } else { barren + 1 };
            waiting = left;
            if let Err(problem) = round {
                self.trouble = Some(problem);
                return;
            }
        }
    }

    /// Places as many of the waiting launchers as there is room for.
    fn round(&mut self, survey: &Survey, waiting: &[usize]) -> Result<(), BackendError> {
        let side = survey.side.as_ref().filter(|side| self.takes(side));
        let (beside, waiting) = waiting.split_at(side.map_or(0, |side| side.free(waiting.len())));
        let (room, most): (Vec<usize>, usize) = match self.home.layout {
            Layout::Panes | Layout::Split => {
                let free =
                    |room: &TeamWindow| if self.crowded.contains(&room.id) { 0 } else { room.free };
                (survey.rooms.iter().map(free).collect(), self.most(survey))
            }
            Layout::Windows => (Vec::new(), 1),
        };
        let shares = share(waiting.len(), &room, most);
        let mut queue = waiting.iter().copied();
        let mut splits = Vec::new();
        for (room, count) in survey.rooms.iter().zip(&shares.there) {
            let guests: Vec<usize> = queue.by_ref().take(*count).collect();
            if !guests.is_empty() {
                splits.push(PaneStep::change(verb::tile(room.id)));
            }
            splits.extend(guests.into_iter().map(|guest| self.split(guest, room.id, &room.name)));
        }
        let groups: Vec<Vec<usize>> =
            shares.new.iter().map(|count| queue.by_ref().take(*count).collect()).collect();
        let mut firsts = self.windows(survey, &groups);
        firsts.extend(side.and_then(|side| self.column(side, beside)));
        self.send(survey, firsts)?;
        for group in &groups {
            splits.extend(self.furnish(survey, group));
        }
        splits.extend(side.map(|side| self.lengthen(side, beside)).unwrap_or_default());
        if splits.iter().all(|step| step.guest.is_none()) {
            self.changes.extend(splits.into_iter().map(|step| step.unit));
            return Ok(());
        }
        self.send(survey, splits)
    }

    /// Returns true if members go beside the lead.
    fn takes(&self, side: &LeadColumn) -> bool {
        self.home.layout == Layout::Split && !self.crowded.contains(&side.window)
    }

    /// The number of panes that a new window holds.
    fn most(&self, survey: &Survey) -> usize {
        if survey.arranged {
            1 + stack(&[survey.size.height], MANY)[0]
        } else {
            capacity(survey.size)
        }
    }

    /// Creates the first pane of the column beside the lead.
    fn column(&self, side: &LeadColumn, beside: &[usize]) -> Option<PaneStep> {
        let Column::New { lead, columns, .. } = &side.column else { return None };
        Some(self.cut(*beside.first()?, *lead, Edge::Right { columns: *columns }, side.spot()))
    }

    /// Adds the remaining panes of the column beside the lead.
    fn lengthen(&self, side: &LeadColumn, beside: &[usize]) -> Vec<PaneStep> {
        match (&side.column, beside.split_first()) {
            (Column::There(panes), _) => self.pile(panes, beside, side.spot()),
            (Column::New { rows, .. }, Some((first, rest))) => match &self.guests[*first].state {
                PaneState::Seated(seat) => self.pile(&[(seat.row.pane, *rows)], rest, side.spot()),
                PaneState::Waiting | PaneState::Refused(_) => Vec::new(),
            },
            (Column::New { .. }, None) => Vec::new(),
        }
    }

    /// Cuts panes of ours into equal parts, one below the other. Each cut goes below the pane that
    /// is cut, so that all targets are known in advance.
    fn pile(&self, panes: &[(PaneId, usize)], guests: &[usize], spot: Slot<'_>) -> Vec<PaneStep> {
        let heights: Vec<usize> = panes.iter().map(|(_, height)| *height).collect();
        let mut queue = guests.iter();
        let mut steps = Vec::new();
        for ((pane, height), more) in panes.iter().zip(stack(&heights, guests.len())) {
            let edge = Edge::Below { rows: part(*height, more + 1) };
            steps
                .extend(queue.by_ref().take(more).map(|guest| self.cut(*guest, *pane, edge, spot)));
        }
        steps
    }

    fn cut(&self, guest: usize, from: PaneId, edge: Edge, spot: Slot<'_>) -> PaneStep {
        self.step(guest, verb::cut(from, edge, self.guests[guest].argv), spot)
    }

    fn step(&self, guest: usize, unit: Unit, spot: Slot<'_>) -> PaneStep {
        let window_name = spot.name.to_owned();
        PaneStep {
            guest: Some(guest),
            split: Some(spot.window),
            window_name,
            beside: spot.beside,
            unit,
        }
    }

    /// Creates a window for each group, with the group's first launcher in it.
    fn windows(&self, survey: &Survey, groups: &[Vec<usize>]) -> Vec<PaneStep> {
        let firsts = groups.iter().filter_map(|group| group.first().copied());
        let step = |(nth, guest): (usize, usize)| {
            let name = self.window_name(guest);
            let argv = self.guests[guest].argv;
            let unit = match (&survey.ground, nth) {
                (TargetSession::Free(session), 0) => {
                    let tag = PlainWord::from_text(&self.home.tag);
                    verb::new_session(session, &name, &tag, survey.size, argv)
                }
                (TargetSession::Free(_) | TargetSession::There { .. }, _) => {
                    verb::new_window(&survey.ground.inside(), &name, argv)
                }
            };
            PaneStep {
                guest: Some(guest),
                split: None,
                window_name: name.as_str().to_owned(),
                beside: false,
                unit,
            }
        };
        firsts.enumerate().map(step).collect()
    }

    fn window_name(&self, guest: usize) -> PlainWord {
        match self.home.layout {
            Layout::Panes | Layout::Split => team_name(&self.home.team),
            Layout::Windows => {
                team_name(&format!("{}-{}", self.home.team, self.guests[guest].member))
            }
        }
    }

    /// Marks a new window as the team's and adds the rest of its group, as many as fit into its
    /// actual size.
    fn furnish(&self, survey: &Survey, group: &[usize]) -> Vec<PaneStep> {
        let Some((first, rest)) = group.split_first() else { return Vec::new() };
        let PaneState::Seated(seat) = &self.guests[*first].state else { return Vec::new() };
        let tag = PlainWord::from_text(&self.home.tag);
        let unit = verb::own_window(seat.row.window, &tag, self.home.layout != Layout::Windows);
        let mut steps = vec![PaneStep::change(unit)];
        if survey.arranged {
            let panes = [(seat.row.pane, seat.row.height)];
            let spot = Slot { window: seat.row.window, name: &seat.window_name, beside: false };
            steps.extend(self.pile(&panes, rest, spot));
            return steps;
        }
        let more = capacity(Size { width: seat.row.width, height: seat.row.height }) - 1;
        let split = |guest: &usize| self.split(*guest, seat.row.window, &seat.window_name);
        steps.extend(rest.iter().take(more).map(split));
        steps
    }

    fn split(&self, guest: usize, window: WindowId, name: &str) -> PaneStep {
        self.step(
            guest,
            verb::split(window, self.guests[guest].argv),
            Slot { window, name, beside: false },
        )
    }

    /// Sends the steps and records the new panes. A call stops at the first command that fails, so
    /// its rows belong to its first steps.
    fn send(&mut self, survey: &Survey, steps: Vec<PaneStep>) -> Result<(), BackendError> {
        let units: Vec<Unit> = steps.iter().map(|step| step.unit.clone()).collect();
        let mut steps = steps.into_iter();
        for answer in self.server.run(&units) {
            let mut made = rows::<MadeRow>(&answer.lines).into_iter();
            let mut stopped = false;
            for step in steps.by_ref().take(answer.units) {
                let Some(guest) = step.guest else { continue };
                match made.next() {
                    Some(row) => {
                        self.guests[guest].state = PaneState::Seated(step.seat(survey, row))
                    }
                    None if stopped => (),
                    None => {
                        self.crowded.extend(step.split);
                        stopped = true;
                    }
                }
            }
            match answer.problem {
                // The panes created by this call cannot be determined, so placement stops.
                Some(BackendError::Exec(error)) => return Err(error.into()),
                Some(problem) => self.trouble = Some(problem),
                None => (),
            }
        }
        Ok(())
    }

    /// Marks all panes and lists them: only a pane that exists, runs its launcher and carries its
    /// token is a placement.
    fn finish(self) -> Vec<Result<Placement, BackendError>> {
        let (there, mut silence) = match self.mark() {
            Ok(there) => (there, None),
            Err(silence) => (Vec::new(), Some(silence)),
        };
        let PaneBatch { home, server, guests, mut trouble, .. } = self;
        let mut discard = Vec::new();
        let mut settle = |guest: PendingPane<'_>| match guest.state {
            PaneState::Refused(error) => Err(error),
            PaneState::Waiting => Err(spread(&mut trouble).unwrap_or_else(no_pane)),
            PaneState::Seated(ref seat) => {
                let found = there.iter().find(|row| row.id == seat.row.pane);
                prove(home, &guest, seat, found).map(Placement::Tmux).map_err(|error| {
                    discard.push(verb::close(
                        seat.row.pane,
                        seat.row.server,
                        &PaneGuard::Process(seat.row.pid),
                    ));
                    spread(&mut silence).unwrap_or(error)
                })
            }
        };
        let results = guests.into_iter().map(&mut settle).collect();
        // A pane that no longer exists fails its proof without an error, so the call continues.
        server.run(&discard);
        results
    }

    /// Marks and labels the new panes and returns all panes of the server.
    ///
    /// # Errors
    /// [`BackendError::Exec`] if tmux cannot be run or times out.
    fn mark(&self) -> Result<Vec<PaneRow>, BackendError> {
        let seats = self.guests.iter().filter_map(|guest| match &guest.state {
            PaneState::Seated(seat) => {
                let marks = verb::own_pane(seat.row.pane, &guest.token);
                let marks = marks.then(label::unit(seat.row.pane, guest.label));
                let tag = PlainWord::from_text(&self.home.tag);
                Some(if seat.beside {
                    marks.then(verb::own_beside(seat.row.pane, &tag))
                } else {
                    marks
                })
            }
            PaneState::Waiting | PaneState::Refused(_) => None,
        });
        let seats: Vec<Unit> = seats.collect();
        if seats.is_empty() {
            return Ok(Vec::new());
        }
        let units: Vec<Unit> =
            self.changes.iter().cloned().chain(seats).chain([verb::panes()]).collect();
        let mut there = Vec::new();
        for answer in self.server.run(&units) {
            if let Some(BackendError::Exec(error)) = answer.problem {
                return Err(error.into());
            }
            there.extend(rows::<PaneRow>(&answer.lines));
        }
        Ok(there)
    }
}

impl LeadColumn {
    fn spot(&self) -> Slot<'_> {
        Slot { window: self.window, name: &self.name, beside: true }
    }
}

impl PaneStep {
    /// A step that creates no pane.
    fn change(unit: Unit) -> PaneStep {
        PaneStep { guest: None, split: None, window_name: String::new(), beside: false, unit }
    }

    fn seat(self, survey: &Survey, row: MadeRow) -> PlacedPane {
        let session_name = survey.ground.name().to_owned();
        PlacedPane { row, window_name: self.window_name, session_name, beside: self.beside }
    }
}

fn guest(launch: &PlacementRequest) -> PendingPane<'_> {
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
    guest: &PendingPane<'_>,
    seat: &PlacedPane,
    found: Option<&PaneRow>,
) -> Result<TmuxPane, BackendError> {
    let gone = || BackendError::LauncherGone { member: guest.member.clone() };
    let found = found.filter(|row| row.pid == seat.row.pid && !row.dead).ok_or_else(gone)?;
    if found.token != guest.token.as_str() {
        let command = format!("set-option -p -t {} @phalanx_token", seat.row.pane);
        return Err(BackendError::Unreadable { command, answer: found.token.clone() });
    }
    let pane = process(seat.row.pid).ok_or_else(gone)?;
    let server = process(seat.row.server).ok_or_else(gone)?;
    // The server reports its socket as it was given at the server's start. The path that this call
    // used is known to work.
    let asked = home.socket.as_deref().and_then(Path::to_str).map(str::to_owned);
    Ok(TmuxPane {
        socket: asked.unwrap_or_else(|| seat.row.socket.clone()),
        server,
        session_id: seat.row.session.to_string(),
        session_name: seat.session_name.clone(),
        window_id: seat.row.window.to_string(),
        window_name: seat.window_name.clone(),
        pane_id: seat.row.pane.to_string(),
        pane,
    })
}

fn process(pid: i32) -> Option<ProcessId> {
    Process::of(pid).map(|process| ProcessId { pid: process.pid, start: process.start })
}

fn no_pane() -> BackendError {
    BackendError::Unavailable { program: "tmux", problem: "it created no pane".to_owned() }
}
