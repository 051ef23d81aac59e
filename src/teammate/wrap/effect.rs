//! What a wrapper can do. The driver carries effects out in order; it decides nothing.

use super::super::effect::Errand;
use super::ask::Dialog;
use crate::model::envelope::Envelope;
use crate::model::event::EventKind;

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Say in the journal that something is odd.
    Warn(String),
    /// Say in the journal how far these messages are; why not further.
    Note { kind: EventKind, ids: Vec<String>, reason: Option<String> },
    /// These messages were handled.
    Acknowledge(Vec<String>),
    /// Reports `Mail` or `NoMail`.
    LookAtMail,
    /// Hold the keyboard back and type these messages as one text, without the submit key. Reports `Staged`.
    Stage(Vec<Envelope>),
    /// Type the submit key.
    Submit,
    /// Type these keys, if this dialog is what the screen shows. Reports `Answered`.
    Answer { dialog: Dialog, keys: String },
    /// Type the key that breaks off a turn, if the program is at work. Reports `Interrupted`.
    Interrupt,
    /// Let the keyboard through again, with what was typed meanwhile.
    Release,
    /// End the program: by its own keys if it takes any now, then by signals. Reports `Ended`.
    End { keys: bool },
    /// Reports `Done`.
    Do(Errand),
}
