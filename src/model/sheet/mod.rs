//! Reads TOML texts written by people, such as manifests and profiles, and reports each fault with
//! its position.

mod fault;
mod name;
mod section;

pub(crate) use fault::{Faults, SheetError, nearest};
pub(crate) use name::{check_member_name, check_name, check_pattern};
pub(crate) use section::{At, Section, unknown};
