//! Tests with a real tmux.

mod batch;
mod configured;
mod harness;
mod identity;
mod monitor;
mod place;
mod size;
mod split;
mod view;
