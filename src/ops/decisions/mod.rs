//! What members ask, and who decides it: requests, permissions, plans, rules.

pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod decide;
pub(crate) mod dialog;
pub(crate) mod ids;
pub(crate) mod requests;
pub(crate) mod rules;
