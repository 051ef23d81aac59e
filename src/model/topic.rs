//! What a change on disk was about, for loops that look again at just that.

/// A part of a team that changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Roster,
    /// A mailbox, by its owner's name as it stands in file names.
    Mail(String),
    /// One member's record, by its name as it stands in file names.
    Member(String),
    Members,
    Requests,
    Tasks,
    Settings,
    Journal,
    /// Anything: look at everything again.
    Everything,
}
