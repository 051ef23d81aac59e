//! Positions in lists that do not fit their panel, for titles.

use ratatui::layout::Rect;

use super::layout::Panel;
use super::state::Dashboard;
use super::{board, lists, members};

/// Returns `9/20` for an entry of a list, counted from 0; `None` if all `count` entries fit into
/// `rows`.
pub(super) fn position(at: usize, rows: usize, count: usize) -> Option<String> {
    (count > rows).then(|| format!("{}/{count}", (at + 1).min(count)))
}

impl Dashboard {
    /// Returns the position of the selection in a panel whose inner area is `inner`, if its list
    /// scrolls. Messages and events return theirs when they are drawn.
    pub(super) fn position(&self, panel: Panel, place: Rect, inner: Rect) -> Option<String> {
        match panel {
            Panel::Members => {
                let rows = usize::from(inner.height) / members::rows_per_member(place.width);
                let selected = self.member.as_ref();
                let at = self.members.iter().position(|member| Some(member) == selected)?;
                position(at, rows, self.members.len())
            }
            Panel::Requests => {
                let requests = self.requests();
                let selected = self.request.as_deref();
                let at =
                    requests.iter().position(|one| Some(one.request_id.as_str()) == selected)?;
                position(at, lists::request_rows(requests.len(), inner.height), requests.len())
            }
            Panel::Board => board::position_in_list(self, inner),
            Panel::Screen | Panel::Messages | Panel::Events => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_list_that_does_not_fit_has_a_position() {
        assert_eq!(position(0, 20, 20), None);
        assert_eq!(position(8, 19, 20).as_deref(), Some("9/20"));
        assert_eq!(position(99, 5, 20).as_deref(), Some("20/20"));
        assert_eq!(position(0, 0, 0), None);
    }
}
