//! Effects of a wrapper's step, which the driver executes in order.

use super::super::effect::MemberEffect;
use super::dialog::Dialog;
use model::mail::envelope::Envelope;
use model::team::event::EventKind;

/// An action of the driver.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    Member(MemberEffect),
    /// Journal the progress of these messages, with a reason if they were not delivered.
    Journal {
        kind: EventKind,
        ids: Vec<String>,
        reason: Option<String>,
    },
    /// Hold back keyboard input and type these messages as one text, without the submit key.
    /// Reports `Staged`.
    Stage(Vec<Envelope>),
    /// Like `Stage`, with one line that says how many messages wait to be read with tools.
    Announce(usize),
    /// Type the submit key.
    Submit,
    /// Type the keys if the screen shows this dialog. Reports `Answered`.
    Answer {
        dialog: Dialog,
        keys: String,
    },
    /// Type the interrupt key if the program is working. Reports `Interrupted`.
    Interrupt,
    /// Pass keyboard input through again, beginning with what was held back.
    Release,
    /// End the program: with its quit keys if `keys` is set, then with signals. Reports `Ended`.
    End {
        keys: bool,
    },
}
