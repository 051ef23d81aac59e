//! The tests that need a real tmux: what is placed where, what is ours, and under which circumstances.

mod batch;
mod configured;
mod harness;
mod identity;
mod place;
mod split;
mod view;
