//! Verbs for requests, answers and rules.

pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod requests;
