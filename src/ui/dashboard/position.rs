//! Positions in lists that do not fit their panel, for titles.

use ratatui::layout::Rect;

use super::layout::Panel;
use super::state::Dashboard;
use super::words::position;
use super::{board, lists, members};

impl Dashboard {
    /// Returns the position of the selection in a panel whose inner area is `inner`, if its list
    /// scrolls. Messages and events return theirs when they are drawn.
    pub(super) fn position(&self, panel: Panel, place: Rect, inner: Rect) -> Option<String> {
        match panel {
            Panel::Members => {
                let rows = usize::from(inner.height) / members::rows_per_member(place.width);
                position(self.member_index()?, rows, self.members.len())
            }
            Panel::Requests => {
                let count = self.requests().len();
                let at = self.shown_request_index()?;
                position(at, lists::request_rows(count, inner.height), count)
            }
            Panel::Board => board::position_in_list(self, inner),
            Panel::Screen | Panel::Messages | Panel::Events => None,
        }
    }
}
