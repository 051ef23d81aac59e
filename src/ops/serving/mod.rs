//! `host serve`: this host, as a lead on another host uses it.

mod hosted;
mod serve;

pub use serve::serve;
