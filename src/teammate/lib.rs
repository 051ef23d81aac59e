//! The loops of teammates, each a pure step function with a driver. The built-in worker claims
//! tasks that carry a command and runs them in its pane; the wrapper runs a program that does not
//! speak the team protocol.

mod acp;
mod driver;
mod effect;
mod event;
mod member_io;
mod outbox;
mod react;
mod run;
mod sources;
mod state;
mod words;
mod wrap;

pub use acp::{AcpDriver, ConversationUpdate, Face};
pub use driver::worker;
pub use member_io::MemberRun;
pub use run::{RunningAgentLead, serve_member, start_acp_lead, start_agent_lead};
