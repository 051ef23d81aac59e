//! The task verbs: create, list, get, update, the actions of the board, comments and files.

mod announce;
mod edit;
mod external;
mod guards;
mod notes;
mod page;
mod read;
mod remind;
mod steps;
mod stop;

pub use announce::ended_by;
pub(crate) use announce::{journal_ends, say_unsaid};
pub use edit::{create, created, delegate, delete, lay_out, retry, update};
pub(crate) use edit::{notify_new_owners, prepare_assignment};
pub use external::{journal_change, notify_unblocked};
pub(crate) use guards::{may_create, must_have_verb};
pub use guards::{may_delegate, note_look};
pub use notes::{attach, comment, report_progress, resume};
pub use page::{TaskHistory, history};
pub(crate) use read::must_be_member;
pub use read::{ScopeCount, board_of, claimed, find, find_all, get, role_of, scopes};
pub use remind::{ReminderRequest, remind, unremind};
pub use steps::{Completed, act, claim, claim_next, end, release, release_absent, release_hanging};
pub(crate) use steps::{end_without_notice, must_be_allowed, release_all};
pub use stop::confirm_stopped;
