//! The roster, records, and the state of one member.

pub(crate) mod assess;
pub(in crate::ops) mod budget;
pub(in crate::ops) mod depth;
pub(crate) mod label;
pub(in crate::ops) mod launchers;
pub(crate) mod modes;
pub(in crate::ops) mod owners;
pub(crate) mod presence;
pub(crate) mod profiles;
pub(crate) mod status;
pub(crate) mod turn;
