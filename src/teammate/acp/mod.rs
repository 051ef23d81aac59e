//! A member over the Agent Client Protocol: runs the agent on pipes, sends its mail as prompts, brings
//! its questions to the team, and shows the conversation in the pane. All decisions are in
//! [`react`].

mod agent;
mod ask;
mod deliver;
mod driver;
mod effect;
mod event;
mod face;
mod pane;
mod react;
mod state;
mod terminal;

pub use driver::AcpDriver;
pub(super) use driver::{SessionOptions, open};
pub use face::{ConversationUpdate, Face};

#[cfg(test)]
mod tests;
