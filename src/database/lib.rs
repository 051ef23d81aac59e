//! Client of the shared store: typed calls of the functions that `schema/0001.sql` defines in
//! PostgreSQL.
//!
//! Every call is one statement, so it takes one round trip and is one transaction. Calls that
//! change something can be repeated: after a lost connection the same call is sent again, and has
//! no further effect if its first attempt was committed.

mod broker;
mod cache;
mod calls;
mod client;
#[cfg(any(test, feature = "testing"))]
mod direct;
mod engine;
mod error;
#[cfg(any(test, feature = "testing"))]
pub mod fixture;
mod guards;
mod hub;
mod open;
mod protocol;
mod rows;
mod schema;
mod session;
#[cfg(test)]
mod tests;
mod tls;
mod url;

pub use broker::serve;
pub use calls::Database;
pub use client::BrokerCommand;
pub use error::DatabaseError;
pub use guards::{HeldLease, HeldLock, Subscription};
pub use open::SchemaReport;
#[cfg(feature = "testing")]
pub use protocol::parse_messages;
pub use rows::{
    Actor, Appended, ClaimCall, ClaimReply, ClaimScope, DocumentKind, DocumentWrite, Interest,
    LogEntry, LogKind, LogScope, MailEntry, MailRow, MailScope, StoreChange, StoredClaim,
    StoredDocument, StoredTask, StoredTasks, TaskScope, TaskWrite,
};
pub use url::StoreUrl;
