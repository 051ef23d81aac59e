//! Wrappers of the operating system: the only code that uses files, processes, clocks and the
//! environment directly. Imports nothing from the rest of the crate.

#![allow(clippy::disallowed_methods, reason = "sys is the seam that the ban elsewhere points to")]

pub(crate) mod child;
pub(crate) mod clock;
pub(crate) mod contain;
pub(crate) mod env;
pub(crate) mod exec;
pub(crate) mod failpoint;
pub(crate) mod fs;
#[cfg(target_os = "linux")]
mod linux;
pub(crate) mod lock;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(any(target_os = "macos", test))]
mod macos_formats;
pub(crate) mod output_watch;
pub(crate) mod parallel;
mod portable;
pub(crate) mod proc;
pub(crate) mod rand;
mod ready;
pub(crate) mod selftest;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod socket_probe;
mod stat;
mod transient;
pub(crate) mod tty;
pub(crate) mod watch;

#[cfg(target_os = "linux")]
use linux as native;
#[cfg(target_os = "macos")]
use macos as native;

#[cfg(test)]
mod testing;
