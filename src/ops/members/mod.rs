//! The roster, records, the state and the place of each member, and who leads.

pub(crate) mod assess;
pub(crate) mod backends;
pub(in crate::ops) mod budget;
pub(in crate::ops) mod depth;
pub(crate) mod label;
pub(in crate::ops) mod launchers;
pub(crate) mod lead;
mod new_record;
pub(crate) mod output;
pub(crate) mod presence;
pub(crate) mod profiles;
pub(crate) mod status;
pub(crate) mod turn;

pub(in crate::ops) use new_record::new_record;
