//! Values for the tests of several modules.

use model::members::assessment::{Assessment, Doing};
use ops::members::status::ShownState;

/// Returns the state of a member.
pub(crate) fn shown_state(doing: Doing, reason: Option<&str>) -> ShownState {
    let because = "a test says so".to_owned();
    let reason = reason.map(str::to_owned);
    Assessment { doing, since: None, reason, because, lapses_at: None }.into()
}
