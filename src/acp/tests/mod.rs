//! Tests of whole sessions against a scripted agent.

mod agent_side;
mod agents;
mod fake;
mod input;
mod properties;
mod questions;
mod recordings;
mod start;
mod turns;
