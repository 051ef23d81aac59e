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

pub(in crate::ops) use announce::{ended_by, journal_ends, say_unsaid};
pub(crate) use edit::{create, delegate, delete, lay_out, retry, update};
pub(in crate::ops) use edit::{created, notify_new_owners, prepare_assignment};
pub(crate) use external::{journal_change, notify_unblocked};
pub(in crate::ops) use guards::{may_create, must_have_verb};
pub(crate) use guards::{may_delegate, note_look};
pub(crate) use notes::{attach, comment, report_progress, resume};
pub(crate) use page::{TaskHistory, history};
pub(in crate::ops) use read::must_be_member;
pub(crate) use read::{ScopeCount, board, board_of, claimed, find, find_all, get, role_of, scopes};
pub(crate) use remind::{ReminderRequest, remind, unremind};
pub(crate) use steps::{
    Completed, act, claim, claim_next, end, release, release_absent, release_hanging,
};
pub(crate) use stop::confirm_stopped;
