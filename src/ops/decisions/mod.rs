//! Requests of members and the answers to them: permissions, plans, questions, rules.

pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod decide;
pub(crate) mod dialog;
pub(crate) mod ids;
pub(crate) mod mark_read;
pub(crate) mod modes;
pub(crate) mod requests;
pub(crate) mod rules;
