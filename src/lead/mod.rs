//! The lead's loop: event → react → effects. It carries shutdowns through, detects members that
//! exit or vanish, releases their tasks, and stops a finished team.

mod aside;
#[cfg(feature = "testing")]
mod bench;
mod driver;
mod effect;
mod event;
mod hooks;
mod labels;
mod react;
mod sources;
mod starter;
mod state;
mod terminator;

#[cfg(feature = "testing")]
pub use bench::Rehearsal;
pub(crate) use driver::{Lead, STOP_DEADLINE_S, Stop, lead};
pub(crate) use state::{End, Goal};
