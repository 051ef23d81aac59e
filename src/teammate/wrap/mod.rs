//! The wrapper: runs a program that does not speak the team protocol on a pty, watches its screen
//! with the rules of its profile, and types its mail. All decisions are in [`react`].

mod ask;
mod deliver;
mod dialog;
mod driver;
mod effect;
mod event;
mod lead;
mod pty_relay;
mod react;
mod render;
mod shutdown_prompt;
mod state;
#[cfg(test)]
mod tests;
mod urgent;

pub(super) use driver::{WrapperDriver, open};
