//! The loops of teammates: event → react → effects. The built-in worker claims tasks that carry a command, runs them in
//! its pane, reports, and answers when it is asked to end. The wrapper stands around a program that knows nothing of us.
//! Knows no file forms, no backends, no faces.

mod desk;
mod driver;
mod effect;
mod event;
mod react;
mod sources;
mod state;
mod wrap;

pub(crate) use desk::Identity;
pub(crate) use driver::worker;
pub(crate) use wrap::{seat, wrap};
