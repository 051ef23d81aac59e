//! The task verbs: create, list, get, update, the actions of the board, comments and files.

mod announce;
mod edit;
mod external;
mod notes;
mod page;
mod read;
mod remind;
mod steps;

pub(super) use announce::{ended_by, journal_ends};
pub(crate) use edit::{create, delete, lay_out, retry, update};
pub(crate) use external::{journal_change, notify_unblocked};
pub(crate) use notes::{attach, comment, report_progress, resume};
pub(crate) use page::{TaskHistory, history};
pub(crate) use read::{board, claimed, get, role_of};
pub(crate) use remind::{ReminderRequest, remind, unremind};
pub(crate) use steps::{Completed, act, claim, claim_next, end, release, release_absent};
