//! Configuration files: manifests, settings of teams, hooks, hosts, agent files, files of tasks,
//! and the parts of Claude Code's settings that phalanx obeys. TOML texts are deserialized by
//! derived types that deny unknown keys; the first fault is reported with its line, its column and
//! the nearest known key.

pub mod agent_file;
mod checks;
pub mod claude_settings;
mod error;
pub mod hooks;
pub mod hosts;
pub mod manifest;
pub mod process_file;
pub mod settings;
pub mod task_file;
pub mod value;

pub(crate) use error::LineCounter;
pub use error::{ConfigError, Document, Faults, Place, parse};
