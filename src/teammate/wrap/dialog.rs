//! A dialog on the screen of a wrapped program, and the request that was filed for it.

use model::id::RequestId;
use model::time::Timestamp;
use profile::{DialogQuestion, ScreenFinding};

/// A dialog. Two are equal if the same rule found the same text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dialog {
    pub(super) rule: String,
    pub(super) asked: DialogQuestion,
}

impl Dialog {
    /// Returns the dialog that a screen shows.
    pub(super) fn on(finding: &ScreenFinding) -> Option<Dialog> {
        finding.asked.clone().map(|asked| Dialog { rule: finding.rule.clone(), asked })
    }
}

/// The stage of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerStage {
    /// No decision yet.
    Open,
    /// Allowed (true) or denied, not yet typed.
    Decided(bool),
    /// The driver judges the screen again and types.
    Typing(bool),
    /// Typed at this time.
    Typed(Timestamp),
    /// Typed without effect: a person has to answer, and the keys are not typed again.
    Stuck,
}

/// A dialog filed as a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FiledDialog {
    pub(super) id: RequestId,
    pub(super) dialog: Dialog,
    pub(super) stage: AnswerStage,
}

/// The state of the program's dialogs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Dialogs {
    /// The dialog on the screen.
    pub(super) shown: Option<Dialog>,
    /// Time since when `shown` is unchanged.
    pub(super) since: Timestamp,
    /// The open request; at most one at a time.
    pub(super) request: Option<FiledDialog>,
    /// All requests of this run, whose answers are never typed as mail.
    pub(super) filed: Vec<RequestId>,
}
