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
#[cfg(test)]
mod direct;
mod engine;
mod error;
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
pub use protocol::parse_messages;
pub use rows::{
    Actor, Appended, ClaimCall, ClaimReply, ClaimScope, DocumentKind, DocumentWrite, Interest,
    LogEntry, LogKind, LogScope, MailEntry, MailRow, MailScope, StoreChange, StoredClaim,
    StoredDocument, StoredTask, StoredTasks, TaskScope, TaskWrite,
};
pub use url::StoreUrl;

// The same databases as for the tests of other crates, set up by this compilation.
#[cfg(test)]
extern crate self as database;
#[cfg(test)]
#[path = "../fixture/postgres.rs"]
pub mod fixture;
