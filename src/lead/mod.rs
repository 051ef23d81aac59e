//! The lead's loop: event → react → effects. It brings shutdowns to their end, notices members that vanish, gives
//! their work back, and takes a finished team down. Knows no file forms, no tmux, no faces.

mod driver;
mod effect;
mod event;
mod hooks;
mod labels;
mod react;
mod sources;
mod state;
mod terminator;

pub(crate) use driver::{Lead, Stop, lead};
pub(crate) use state::{End, Goal};

/// Steps over nothing `count` times; the number of effects. For the benches.
pub(crate) fn idle_steps(count: usize) -> usize {
    let mut state = state::State::new(Goal::Lead(crate::model::settings::Finish::Manual), Vec::new());
    let now = crate::model::time::Timestamp(0);
    (0..count).map(|_| react::react(&mut state, event::Event::Tick, now).len()).sum()
}
