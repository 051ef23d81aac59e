//! Moving the selection with keys and with the mouse.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::effect::Effect;
use super::keys::KeyCommand;
use super::layout::Panel;
use super::state::{Dashboard, DraggedEdge};
use model::time::Timestamp;

/// Lines that one step of the mouse wheel scrolls.
const WHEEL: isize = 3;
/// Smallest share of a part that the mouse can drag, in percent.
const LEAST: u16 = 15;

impl Dashboard {
    /// Moves the selection in the panel with the focus, or scrolls it.
    pub(super) fn move_selection(&mut self, command: KeyCommand) -> Vec<Effect> {
        let page = self.page(self.focus).cast_signed();
        let step = match command {
            KeyCommand::Up | KeyCommand::Down
                if self.focus == Panel::Screen && self.screen.query().is_some() =>
            {
                let step = if command == KeyCommand::Up { -1 } else { 1 };
                self.screen.go_to_match(step, self.page(Panel::Screen));
                return Vec::new();
            }
            KeyCommand::Up => -1,
            KeyCommand::Down => 1,
            KeyCommand::PageUp => -page,
            KeyCommand::PageDown => page,
            KeyCommand::First => isize::MIN / 2,
            KeyCommand::Last => isize::MAX / 2,
            KeyCommand::Left => return self.move_column(-1),
            KeyCommand::Right => return self.move_column(1),
            _ => return Vec::new(),
        };
        self.scroll(self.focus, step)
    }

    /// Moves the selection of a panel, or scrolls it, by lines; downwards if positive.
    fn scroll(&mut self, panel: Panel, step: isize) -> Vec<Effect> {
        match panel {
            Panel::Members => {
                let next = moved(self.member_index(), step, self.members.len());
                if let Some(member) = next.and_then(|next| self.members.get(next).cloned()) {
                    return self.select_member(member);
                }
            }
            Panel::Requests => {
                // The wheel also scrolls a panel without the focus, which shows another selection.
                self.show(Panel::Requests);
                let requests = self.requests();
                let at = requests
                    .iter()
                    .position(|one| Some(one.request_id.as_str()) == self.request.as_deref());
                let next = moved(at, step, requests.len());
                let chosen =
                    next.map(|at| (requests[at].request_id.to_string(), requests[at].from.clone()));
                let (request, from) = chosen.unzip();
                self.request = request;
                if let Some(from) = from.filter(|from| self.members.contains(from)) {
                    return self.select_member(from);
                }
            }
            Panel::Board if self.as_graph => {
                let above = self.scrolled.entry(panel).or_default();
                *above = above.saturating_add_signed(step);
            }
            Panel::Board => {
                let Some(snapshot) = &self.snapshot else { return Vec::new() };
                let (column, at) = self.task.and_then(|id| self.column_of(id)).unwrap_or((0, 0));
                if let Some(next) = moved(Some(at), step, self.columns[column].len()) {
                    self.task = Some(snapshot.tasks[self.columns[column][next]].id);
                }
            }
            Panel::Screen if self.screen.is_scrolled() => {
                self.screen.scroll(-step);
            }
            Panel::Screen => {
                if let Some(member) = self.member.clone().filter(|_| step < 0) {
                    return vec![Effect::ReadHistory(member)];
                }
            }
            Panel::Messages | Panel::Events => {
                let below = self.scrolled.entry(panel).or_default();
                *below = below.saturating_add_signed(-step);
            }
        }
        Vec::new()
    }

    /// Selects the task in the next column that has any.
    fn move_column(&mut self, step: isize) -> Vec<Effect> {
        let Some(snapshot) = &self.snapshot else { return Vec::new() };
        if self.focus != Panel::Board || self.as_graph {
            return Vec::new();
        }
        let (column, at) = self.task.and_then(|id| self.column_of(id)).unwrap_or((0, 0));
        let mut next = column.checked_add_signed(step);
        while let Some(column) = next.filter(|column| *column < self.columns.len()) {
            let tasks = &self.columns[column];
            if let Some(task) = tasks.get(at).or(tasks.last()) {
                self.task = Some(snapshot.tasks[*task].id);
                break;
            }
            next = column.checked_add_signed(step);
        }
        Vec::new()
    }

    /// Selects what is clicked, scrolls with the wheel, and drags edges.
    pub(super) fn mouse(&mut self, event: MouseEvent, now: Timestamp) -> Vec<Effect> {
        if self.dialog.is_some() {
            return Vec::new();
        }
        let (column, row) = (event.column, event.row);
        self.moved_at = None;
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                self.dragged = self.edge_at(column, row);
                if self.dragged.is_none() {
                    return self.click(column, row, now);
                }
            }
            MouseEventKind::Drag(MouseButton::Left) => self.drag(column, row),
            MouseEventKind::Up(_) => self.dragged = None,
            MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
                if let Some((panel, _)) = self.places.panel_at(column, row) {
                    let down = event.kind == MouseEventKind::ScrollDown;
                    return self.scroll(panel, if down { WHEEL } else { -WHEEL });
                }
            }
            MouseEventKind::Down(_)
            | MouseEventKind::Drag(_)
            | MouseEventKind::Moved
            | MouseEventKind::ScrollLeft
            | MouseEventKind::ScrollRight => {}
        }
        Vec::new()
    }

    fn edge_at(&self, column: u16, row: u16) -> Option<DraggedEdge> {
        let places = &self.places;
        let on_divider = |x: u16| column == x || column + 1 == x;
        if places.divider.is_some_and(on_divider) && places.panel_at(column, row).is_some() {
            return Some(DraggedEdge::Divider);
        }
        let screen = places.place_of(Panel::Screen)?;
        let is_beside = (screen.x..screen.right()).contains(&column);
        places
            .fold
            .filter(|fold| is_beside && (row == *fold || row + 1 == *fold))
            .map(|_| DraggedEdge::Fold)
    }

    fn drag(&mut self, column: u16, row: u16) {
        let places = &self.places;
        let width = places.footer.width.max(1);
        let top = places.header.height + places.tabs.height;
        let height = places.footer.y.saturating_sub(top).max(1);
        let percent = |part: u16, whole: u16| {
            let share = u32::from(part) * 100 / u32::from(whole);
            u16::try_from(share).unwrap_or(50).clamp(LEAST, 100 - LEAST)
        };
        match self.dragged {
            Some(DraggedEdge::Divider) => self.split.left = percent(column, width),
            Some(DraggedEdge::Fold) => self.split.upper = percent(row.saturating_sub(top), height),
            None => {}
        }
    }

    fn click(&mut self, column: u16, row: u16, now: Timestamp) -> Vec<Effect> {
        if row < self.places.header.height {
            return self.command(KeyCommand::NextAttention, now);
        }
        let Some((panel, place)) = self.places.panel_at(column, row) else {
            if let Some(panel) = self.tab_under(column, row) {
                self.show(panel);
            }
            return Vec::new();
        };
        self.show(panel);
        let Some(line) = row.checked_sub(place.y + 1).map(usize::from) else { return Vec::new() };
        match panel {
            Panel::Members => {
                let rows = super::members::rows_per_member(place.width);
                let at = super::members::first_shown(self, place) + line / rows;
                if let Some(member) = self.members.get(at).cloned() {
                    return self.select_member(member);
                }
            }
            Panel::Requests => {
                let clicked = super::lists::request_at(self, place, line);
                let clicked = clicked.map(|one| (one.request_id.to_string(), one.from.clone()));
                let Some((id, from)) = clicked else { return Vec::new() };
                self.request = Some(id);
                if self.members.contains(&from) {
                    return self.select_member(from);
                }
            }
            Panel::Board => {
                self.task = super::board::task_at(self, place, column, row).or(self.task);
            }
            Panel::Screen | Panel::Messages | Panel::Events => {}
        }
        Vec::new()
    }

    /// Returns the panel whose name is at this position of the list of panels.
    fn tab_under(&self, column: u16, row: u16) -> Option<Panel> {
        let tabs = self.places.tabs;
        let is_there = tabs.height > 0 && row == tabs.y;
        is_there.then(|| self.tab_at(column.saturating_sub(tabs.x)))?
    }
}

/// Returns the index `step` places further, within `count`; `None` for an empty list.
fn moved(at: Option<usize>, step: isize, count: usize) -> Option<usize> {
    let last = count.checked_sub(1)?;
    Some(at.map_or(0, |at| at.saturating_add_signed(step).min(last)))
}
