//! The lead's loop: event → react → effects. It carries shutdowns through, detects members that
//! exit or vanish, releases their tasks, and stops a finished team.

mod background;
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
mod stopper;

pub use bench::StepBench;
pub use driver::{LeadOptions, lead};
pub use effect::STOP_DEADLINE_S;
pub use event::Stop;
pub use state::{Goal, LeadEnd};
