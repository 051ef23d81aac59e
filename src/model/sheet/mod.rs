//! A TOML text that a person wrote, read so that every fault has its place: the manifest and the profiles are such
//! sheets. Knows neither.

mod fault;
mod name;
mod section;

pub(crate) use fault::{Faults, SheetError, nearest};
pub(crate) use name::{check_member_name, check_name, check_pattern};
pub(crate) use section::{At, Section, unknown};
