//! The roster, records, the state and the place of each member, and who leads.

pub(crate) mod account;
pub mod assess;
pub(crate) mod backends;
pub mod budget;
pub mod depth;
pub mod label;
pub mod launchers;
pub mod lead;
mod new_record;
pub mod output;
pub mod presence;
pub mod profiles;
pub mod status;
pub mod turn;

pub(crate) use new_record::new_record;
