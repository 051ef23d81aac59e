//! The data and the operations of a review, as the driver needs them.

use std::any::Any;

use model::id::MemberName;
use model::review::{PlacedComment, ReviewLook};
use sys::exec::CancelToken;
use ui::review::{ReviewAction, WorkList, WorkObject};

/// The work of a member, of which a snapshot was taken.
pub(crate) struct ReviewedWork {
    pub(crate) object: WorkObject,
    /// Repositories in the worktree, which the snapshot leaves out.
    pub(crate) nested: Vec<String>,
}

/// Commits to compare.
pub(crate) struct PatchRange<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) ignores_whitespace: bool,
}

/// The team as a review uses it. All calls may block, so they run on threads. Those with a token end
/// soon once that is cancelled, with any result. Errors are texts for people.
pub(crate) trait ReviewSource: Send + Sync + 'static {
    /// Reads the works of all members.
    fn works(&self) -> Result<WorkList, String>;

    /// Takes a snapshot of the work of a member.
    fn reviewed(&self, member: &MemberName, cancel: &CancelToken) -> Result<ReviewedWork, String>;

    /// Returns the patch between two commits as git prints it.
    fn patch(
        &self,
        member: &MemberName,
        range: &PatchRange<'_>,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>, String>;

    /// Returns a content of a patch by its id; an error if it has more than `largest` bytes.
    fn content(
        &self,
        member: &MemberName,
        blob: &str,
        largest: usize,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>, String>;

    /// Returns the comments on the work of a member that the reviewer may see, with the places of
    /// their lines in `snapshot`.
    fn comments(&self, member: &MemberName, snapshot: &str) -> Result<Vec<PlacedComment>, String>;

    /// Returns what the reviewer saw last of the work of a member.
    fn look(&self, member: &MemberName) -> Result<Option<ReviewLook>, String>;

    /// Returns the conflicts of the work of a member with the branch, as a text.
    fn conflicts(&self, member: &MemberName) -> Result<String, String>;

    /// Returns the message that would be sent.
    fn message(&self, member: &MemberName) -> Result<String, String>;

    /// Carries out an action and returns its result in words, which are not shown for records. It
    /// refuses an action whose commit, message or branch is not the current one: the person has
    /// decided about what was on the screen.
    fn perform(&self, action: &ReviewAction, cancel: &CancelToken) -> Result<String, String>;

    /// Calls `on_change` when the team changes, until the returned value is dropped.
    fn watch(&self, on_change: Box<dyn Fn() + Send>) -> Result<Box<dyn Any>, String>;
}
