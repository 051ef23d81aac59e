//! Wrappers of the operating system: the only code that uses files, processes, clocks and the
//! environment directly. Imports nothing from the rest of the crate.

#![allow(clippy::disallowed_methods, reason = "sys is the seam that the ban elsewhere points to")]

pub mod child;
pub mod clock;
pub mod contain;
pub mod env;
pub mod exec;
pub mod failpoint;
pub mod fs;
pub mod limits;
#[cfg(target_os = "linux")]
mod linux;
pub mod lock;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(any(target_os = "macos", test))]
mod macos_formats;
pub mod output_watch;
pub mod parallel;
mod portable;
pub mod proc;
pub mod rand;
mod ready;
pub mod selftest;
pub mod signal;
pub mod socket;
pub mod socket_probe;
mod stat;
mod transient;
pub mod tty;
pub mod watch;
mod whole;

#[cfg(target_os = "linux")]
use linux as native;
#[cfg(target_os = "macos")]
use macos as native;

#[cfg(test)]
mod testing;
