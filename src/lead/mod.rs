//! The lead's loop: event → react → effects. It brings shutdowns to their end, notices members that vanish, gives
//! their work back, and takes a finished team down. Knows no file forms, no tmux, no faces.

mod aside;
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

pub(crate) use bench::Rehearsal;
pub(crate) use driver::{Lead, STOP_DEADLINE_S, Stop, lead};
pub(crate) use state::{End, Goal};
