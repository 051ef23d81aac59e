//! Events of a wrapper. Each carries all data needed to react to it.

use super::super::event::{MemberEvent, OpFailure};
use profile::ScreenFinding;
use sys::signal::Signal;

/// The reason why a text was not typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StageRefusal {
    /// A person is typing (MSG-11).
    PersonTyping,
    /// The text could not be composed.
    Failed(OpFailure),
}

/// The result of typing keys that fit only a certain screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyed {
    Typed,
    /// The screen has changed in the meantime.
    Gone,
    /// A person is typing.
    PersonTyping,
}

/// An input of the wrapper's step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event {
    Member(MemberEvent),
    /// The screen was judged. `shown`: the last typed text is visible, in the composer or
    /// elsewhere.
    Judged {
        finding: ScreenFinding,
        shown: bool,
    },
    /// A person has typed.
    PersonTyped,
    /// The result of `Stage`: the text was typed or refused.
    Staged(Result<(), StageRefusal>),
    /// The result of `Answer`.
    Answered(Keyed),
    /// The result of `Interrupt`.
    Interrupted(Keyed),
    /// The program has exited with this code.
    Ended(i32),
    /// A signal asks this process to exit.
    Signal(Signal),
    /// A deadline has passed.
    Tick,
}
