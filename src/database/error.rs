//! The errors of the shared store. A broker sends them to its clients.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The reason for which a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DatabaseError {
    #[error("the shared store has no team {team:?}")]
    NoSuchTeam { team: String },
    #[error(
        "the shared store refuses this run: it was declared lost in team {team:?}; start the \
         member again"
    )]
    Fenced { team: String },
    #[error(
        "another process has become the lead of team {team:?}; the shared store refuses the \
         changes of this one"
    )]
    LeaseLost { team: String },
    #[error("the address of the shared store is not valid: {reason}")]
    BadUrl { reason: String },
    #[error(
        "cannot reach the database {place} for {seconds} s: {last}; check that it runs, and the \
         network to it. The last change may have been made"
    )]
    Unreachable { place: String, seconds: u64, last: String },
    #[error(
        "the database {place} does not admit this user: {reason}; check user and password in the \
         address, PGPASSWORD and ~/.pgpass"
    )]
    Login { place: String, reason: String },
    #[error(
        "cannot set up TLS to the database {place}: {reason}; check sslmode and sslrootcert in the \
         address"
    )]
    Tls { place: String, reason: String },
    #[error("the database {place} is not set up for phalanx; run `phalanx store init`")]
    NotInitialized { place: String },
    #[error(
        "the schema of the database {place} has version {found}, and this release needs version \
         {known}; run `phalanx store init` to upgrade it"
    )]
    TooOld { place: String, found: i64, known: i64 },
    #[error(
        "the schema of the database {place} has version {found}, and this release knows versions \
         up to {known}; install a newer phalanx on this host"
    )]
    TooNew { place: String, found: i64, known: i64 },
    #[error("the database {place} refuses `{function}`: {reason} (SQLSTATE {code})")]
    Refused { place: String, function: String, reason: String, code: String },
    #[error("cannot read the reply to `{function}`: {reason}; do all hosts run the same release?")]
    BadReply { function: String, reason: String },
    #[error("cannot use the store's broker at {socket}: {reason}; see {log}")]
    Broker { socket: String, reason: String, log: String },
}

impl DatabaseError {
    /// The broker at `socket` cannot be used.
    pub(super) fn broker(socket: &Path, reason: &dyn fmt::Display) -> DatabaseError {
        DatabaseError::Broker {
            socket: socket.display().to_string(),
            reason: reason.to_string(),
            log: socket.with_extension("log").display().to_string(),
        }
    }

    pub(super) fn bad_reply(function: &str, reason: &dyn fmt::Display) -> DatabaseError {
        DatabaseError::BadReply { function: function.to_owned(), reason: reason.to_string() }
    }
}

/// Returns an error with its causes, separated by colons.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let shown = cause.to_string();
        if !text.contains(&shown) {
            text = format!("{text}: {shown}");
        }
        next = cause.source();
    }
    text
}
