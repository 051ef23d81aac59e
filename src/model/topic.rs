//! Topics of change notifications, which let an event loop reload only the part of a team that
//! changed.

/// The part of a team that changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    Roster,
    /// A mailbox, by its owner's name in the form used in file names.
    Mail(String),
    /// One member's record, by its name in the form used in file names.
    Member(String),
    Members,
    /// One request or question, by its id in the form used in file names.
    Request(String),
    Requests,
    Tasks,
    Settings,
    Journal,
    /// Any part may have changed; reload everything.
    Everything,
}
