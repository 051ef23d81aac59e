//! The wrapper's loop: a program that knows nothing of us has a terminal that we hold; its screen is watched by the rules
//! of its profile, and its mail is typed into it. Decides in [`react`]; knows no file forms, no backends, no faces.

mod ask;
mod deliver;
mod driver;
mod effect;
mod event;
mod lead;
mod part;
mod react;
mod state;
mod station;
#[cfg(test)]
mod tests;
mod turn;
mod urgent;

pub(crate) use driver::wrap;
pub(crate) use lead::seat;
