//! Hooks: finds the commands that a user has configured and runs one with a deadline and bounded
//! output. The caller interprets the result.

mod files;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use files::{Known, Places, find, is_trusted, read as read_settings};
pub(crate) use run::{Call, End, Ran, end_all, run};
