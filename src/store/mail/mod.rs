//! Mailboxes, their archives, and handoffs from other teams.

pub(crate) mod ack_log;
pub(crate) mod append;
pub(crate) mod archive;
pub(crate) mod handoffs;
pub(crate) mod mailbox;
pub(crate) mod shared_mail;
