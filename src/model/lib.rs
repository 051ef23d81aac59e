//! Domain types and the rules over them. Everything here is pure: it accesses no files, clocks,
//! processes or terminals.

pub mod board;
pub mod causes;
pub mod code;
pub mod decisions;
pub mod digest;
pub mod id;
pub mod mail;
pub mod members;
pub mod merge;
pub mod name;
pub mod review;
pub mod team;
pub mod text;
pub mod time;
pub mod topic;
pub mod value;
pub mod wire;

// The same values as for the tests of other crates, of the types of this compilation.
#[cfg(test)]
extern crate self as model;
#[cfg(test)]
#[path = "../fixture/sample.rs"]
pub mod sample;
