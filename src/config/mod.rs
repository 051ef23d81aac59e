//! Configuration files: manifests, settings of teams, hooks, hosts, agent files, files of tasks,
//! and the parts of Claude Code's settings that phalanx obeys. TOML texts are deserialized by
//! derived types that deny unknown keys; the first fault is reported with its line, its column and
//! the nearest known key.

pub(crate) mod agent_file;
pub(crate) mod claude_settings;
mod error;
pub(crate) mod hooks;
pub(crate) mod hosts;
pub(crate) mod manifest;
pub(crate) mod settings;
pub(crate) mod task_file;
pub(crate) mod value;

pub(crate) use error::{ConfigError, Document, Faults, LineCounter, Place, parse};
