//! The pull request of a member's work: it is opened with `gh` or `glab`, and its comments come back
//! as drafts.

mod forge;
mod gh;
mod glab;
mod open;
mod program;
mod sync;
mod words;

pub use open::{PullRequestReport, open};
pub use sync::{SyncReport, sync};
