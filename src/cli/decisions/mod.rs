//! Verbs for what somebody must decide: requests, answers and rules.

pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod requests;
