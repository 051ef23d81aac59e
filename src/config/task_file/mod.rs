//! Files of tasks for `task import`: plans, Markdown check lists, manifests and exports, and the
//! lists of other programs. Parsers take arbitrary texts and report every fault with its line.

mod beads;
mod checklist;
mod export;
mod fault_list;
mod plan;
mod taskmaster;
#[cfg(test)]
mod tests;
mod words;

use std::path::Path;

use super::ConfigError;
use super::manifest::Manifest;
pub use fault_list::MAX_FAULTS;
use model::board::task_definition::TaskFile;

/// The kinds of files, each with its extension. The issues of beads have that of a plan, and the
/// tasks of Task Master that of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::VariantNames)]
pub enum TaskFileKind {
    #[strum(serialize = "jsonl")]
    Plan,
    #[strum(serialize = "md")]
    Checklist,
    #[strum(serialize = "toml")]
    Manifest,
    #[strum(serialize = "json")]
    Export,
}

impl TaskFileKind {
    /// Returns the kind of a file by its extension, in any case.
    pub fn of(path: &Path) -> Option<TaskFileKind> {
        path.extension()?.to_str()?.to_ascii_lowercase().parse().ok()
    }

    /// Parses a file of this kind. `stem` is its name without the extension, for the keys of tasks
    /// that have none.
    ///
    /// # Errors
    /// The faults in the order of the file: all of them, or the first one more than
    /// [`MAX_FAULTS`]. Of a manifest, the first one only.
    pub fn parse(self, stem: &str, text: &str) -> Result<TaskFile, Vec<ConfigError>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self {
            TaskFileKind::Plan => {
                let first = text.lines().find(|line| !line.trim().is_empty());
                match first.is_some_and(beads::is_issue) {
                    true => beads::parse(text),
                    false => plan::parse(text),
                }
            }
            TaskFileKind::Checklist => checklist::parse(stem, text),
            TaskFileKind::Manifest => match Manifest::parse_tasks(text) {
                Ok(tasks) => Ok(TaskFile { tasks, ..TaskFile::default() }),
                Err(fault) => Err(vec![fault]),
            },
            TaskFileKind::Export if text.trim_start().starts_with('{') => {
                taskmaster::parse(stem, text)
            }
            TaskFileKind::Export => export::parse(stem, text),
        }
    }
}
