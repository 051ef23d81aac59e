//! Requests of members and the answers to them: permissions, plans, questions, rules.

pub mod answer;
pub mod ask;
pub mod decide;
pub mod dialog;
pub mod ids;
pub mod mark_read;
pub mod modes;
pub mod requests;
pub mod rules;
