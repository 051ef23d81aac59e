//! The panels of the dashboard and where they are, by the size of the terminal.

use ratatui::layout::Constraint::{Length, Min, Percentage};
use ratatui::layout::{Layout, Position, Rect};
use strum::{IntoStaticStr, VariantArray};

/// A panel.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, VariantArray, IntoStaticStr,
)]
pub(crate) enum Panel {
    #[default]
    Members,
    Screen,
    Board,
    Requests,
    Messages,
    Events,
}

impl Panel {
    pub(super) fn title(self) -> &'static str {
        self.into()
    }

    /// Returns the panel `step` places further, around the end.
    pub(super) fn next(self, step: isize) -> Panel {
        let all = Panel::VARIANTS;
        let at = all.iter().position(|panel| *panel == self).unwrap_or(0);
        let count = all.len().cast_signed();
        let next = (at.cast_signed() + step).rem_euclid(count);
        all[next.cast_unsigned()]
    }
}

/// The sizes that a person can drag, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Split {
    /// Width of the left column.
    pub(super) left: u16,
    /// Height of the upper panel beside it.
    pub(super) upper: u16,
}

impl Default for Split {
    fn default() -> Split {
        Split { left: 34, upper: 58 }
    }
}

/// The state that decides the layout besides the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LayoutView {
    pub(super) focus: Panel,
    /// The panel in the place that several share.
    pub(super) lower: Panel,
    /// Only the panel with the focus is shown.
    pub(super) zoomed: bool,
    pub(super) split: Split,
}

/// The places of everything that is drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) header: Rect,
    /// The list of panels, in layouts that do not show all of them.
    pub(super) tabs: Rect,
    pub(super) panels: Vec<(Panel, Rect)>,
    pub(super) footer: Rect,
    /// The column between the left and the right side, for dragging.
    pub(super) divider: Option<u16>,
    /// The row between the upper and the lower panel.
    pub(super) fold: Option<u16>,
}

impl Places {
    /// Returns the panel at a position.
    pub(super) fn panel_at(&self, column: u16, row: u16) -> Option<(Panel, Rect)> {
        let here = Position::new(column, row);
        self.panels.iter().copied().find(|(_, place)| place.contains(here))
    }

    pub(super) fn place_of(&self, panel: Panel) -> Option<Rect> {
        self.panels.iter().find(|(shown, _)| *shown == panel).map(|(_, place)| *place)
    }
}

/// Widths and heights from which on a larger layout is used.
const SMALL: (u16, u16) = (60, 12);
const MEDIUM: (u16, u16) = (100, 32);
const LARGE: (u16, u16) = (170, 40);

/// Computes the places in a terminal of this size.
pub(super) fn places(area: Rect, view: LayoutView) -> Places {
    let is_at_least = |(width, height): (u16, u16)| area.width >= width && area.height >= height;
    let is_whole = is_at_least(LARGE) && !view.zoomed;
    let header_rows = if area.height >= 8 { 2 } else { area.height.min(1) };
    let tab_rows = u16::from(!is_whole && area.height >= 8);
    let footer_rows = u16::from(area.height >= 4);
    let rows = [Length(header_rows), Length(tab_rows), Min(0), Length(footer_rows)];
    let [header, tabs, body, footer] = Layout::vertical(rows).areas(area);
    let mut places = Places { header, tabs, footer, ..Places::default() };
    if view.zoomed || !is_at_least(SMALL) {
        places.panels.push((view.focus, body));
    } else if is_whole {
        large(&mut places, body, view);
    } else {
        let [left, right] = columns(body, view.split.left);
        places.divider = Some(right.x);
        if is_at_least(MEDIUM) {
            medium(&mut places, left, right, view)
        } else {
            let beside = if view.focus == Panel::Members { Panel::Screen } else { view.focus };
            places.panels = vec![(Panel::Members, left), (beside, right)];
        }
    }
    places
}

fn columns(body: Rect, left: u16) -> [Rect; 2] {
    Layout::horizontal([Percentage(left), Min(0)]).areas(body)
}

fn medium(places: &mut Places, left: Rect, right: Rect, view: LayoutView) {
    let [members, requests] = Layout::vertical([Min(0), Percentage(35)]).areas(left);
    let [screen, lower] = Layout::vertical([Percentage(view.split.upper), Min(0)]).areas(right);
    places.fold = Some(lower.y);
    places.panels = vec![
        (Panel::Members, members),
        (Panel::Requests, requests),
        (Panel::Screen, screen),
        (view.lower, lower),
    ];
}

fn large(places: &mut Places, body: Rect, view: LayoutView) {
    let widths = [Percentage(view.split.left * 3 / 4), Min(0), Percentage(33)];
    let [left, middle, right] = Layout::horizontal(widths).areas(body);
    let [members, requests] = Layout::vertical([Min(0), Percentage(40)]).areas(left);
    let [screen, messages] = Layout::vertical([Percentage(view.split.upper), Min(0)]).areas(middle);
    let [board, events] = Layout::vertical([Min(0), Percentage(30)]).areas(right);
    places.divider = Some(middle.x);
    places.fold = Some(messages.y);
    places.panels = vec![
        (Panel::Members, members),
        (Panel::Requests, requests),
        (Panel::Screen, screen),
        (Panel::Messages, messages),
        (Panel::Board, board),
        (Panel::Events, events),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: u16, height: u16, focus: Panel) -> Vec<Panel> {
        let lower = Panel::Board;
        let view = LayoutView { focus, lower, zoomed: false, split: Split::default() };
        let places = places(Rect::new(0, 0, width, height), view);
        let area: u32 = places.panels.iter().map(|(_, place)| place.area()).sum();
        let around = places.header.area() + places.tabs.area() + places.footer.area();
        assert_eq!(area + around, u32::from(width) * u32::from(height), "{width}x{height}");
        places.panels.iter().map(|(panel, _)| *panel).collect()
    }

    #[test]
    fn panels_by_size_fill_the_terminal() {
        use Panel::{Board, Events, Members, Messages, Requests, Screen};
        assert_eq!(shown(1, 1, Board), [Board]);
        assert_eq!(shown(59, 24, Board), [Board]);
        assert_eq!(shown(80, 24, Members), [Members, Screen]);
        assert_eq!(shown(80, 24, Board), [Members, Board]);
        assert_eq!(shown(120, 40, Members), [Members, Requests, Screen, Board]);
        assert_eq!(shown(200, 50, Members), [Members, Requests, Screen, Messages, Board, Events]);
    }

    #[test]
    fn zoomed_panel_has_all_room() {
        let view = LayoutView {
            focus: Panel::Screen,
            lower: Panel::Board,
            zoomed: true,
            split: Split::default(),
        };
        let places = places(Rect::new(0, 0, 200, 50), view);
        assert_eq!(places.panels, [(Panel::Screen, Rect::new(0, 3, 200, 46))]);
        assert_eq!(places.panel_at(5, 5).map(|(panel, _)| panel), Some(Panel::Screen));
        assert_eq!(places.panel_at(5, 0), None);
    }

    #[test]
    fn panels_follow_each_other_in_a_circle() {
        assert_eq!(Panel::Events.next(1), Panel::Members);
        assert_eq!(Panel::Members.next(-1), Panel::Events);
    }
}
