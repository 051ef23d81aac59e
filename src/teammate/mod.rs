//! The built-in teammate's loop: event → react → effects. It claims tasks that carry a command, runs them in its
//! pane, reports, and answers when it is asked to end. Knows no file forms, no backends, no faces.

mod driver;
mod effect;
mod event;
mod react;
mod sources;
mod state;

pub(crate) use driver::{Identity, worker};
