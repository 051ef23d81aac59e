//! Hooks: runs a command that a user has configured, with a deadline and bounded output. The caller
//! interprets the result.

mod run;
#[cfg(test)]
mod tests;

pub use run::{Call, End, Ran, end_all, run};
