//! Effects of the step of a member over ACP, which the driver executes in order.

use super::super::effect::MemberEffect;
use super::face::ConversationUpdate;
use model::team::event::EventKind;

/// An action of the driver.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    Member(MemberEffect),
    /// Journal the progress of these messages.
    Journal {
        kind: EventKind,
        ids: Vec<String>,
        reason: Option<String>,
    },
    /// Write to the agent's standard input.
    Write(Vec<u8>),
    /// Show something to the person.
    Show(ConversationUpdate),
    /// End the agent: close its standard input, then signals. Reports `Ended`.
    End,
}
