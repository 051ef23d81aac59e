//! What a wrapper can be told. Each event carries all that is needed to react to it.

use super::super::event::{Failure, Requests};
use crate::model::envelope::Envelope;
use crate::model::lifecycle::MemberState;
use crate::profile::Finding;
use crate::sys::signal::Signal;

/// Why nothing was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A person is at the keyboard (MSG-11).
    Hand,
    /// The text could not be made.
    Failed(Failure),
}

/// What came of keys that are for one moment of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyed {
    Typed,
    /// The screen shows something else by now.
    Gone,
    /// A person is at the keyboard.
    Hand,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// The screen was looked at. `shown`: what was typed last stands on it, in the composer or elsewhere.
    Seen { finding: Finding, shown: bool },
    /// A person has typed.
    Hand,
    /// The unread mail, oldest first, with the requests it speaks of. The same message may come again until it is
    /// acknowledged.
    Mail { mail: Vec<Envelope>, requests: Requests },
    /// The mail could not be read.
    NoMail(Failure),
    /// Messages could not be marked; they will be seen again.
    NotMarked(Failure),
    /// The requests that wait for an answer, as they are now.
    Requests(Requests),
    /// Whoever started this run has seen that it is up; what its record says of it.
    Accepted(MemberState),
    /// What came of `Stage`: the program has been given the text.
    Staged(Result<(), Refusal>),
    /// What came of `Answer`.
    Answered(Keyed),
    /// What came of `Interrupt`.
    Interrupted(Keyed),
    /// What came of `Do`.
    Done(Result<(), Failure>),
    /// The program has ended with this exit code.
    Ended(i32),
    /// There is nothing to work for any more.
    Over,
    /// Somebody wants this process to end.
    Signal(Signal),
    /// Time has passed.
    Tick,
}
