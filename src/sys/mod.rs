//! Wrappers of the operating system: the only code that uses files, processes, clocks and the
//! environment directly. Imports nothing from the rest of the crate.

#![allow(clippy::disallowed_methods, reason = "sys is the seam that the ban elsewhere points to")]

pub(crate) mod child;
pub(crate) mod clock;
pub(crate) mod env;
pub(crate) mod exec;
pub(crate) mod failpoint;
pub(crate) mod fs;
pub(crate) mod lock;
pub(crate) mod parallel;
pub(crate) mod proc;
pub(crate) mod rand;
mod ready;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod socket_probe;
pub(crate) mod tty;
pub(crate) mod watch;

#[cfg(test)]
mod testing;
