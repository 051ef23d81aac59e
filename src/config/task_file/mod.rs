//! Files of tasks for `task import`: plans, Markdown check lists, manifests and exports, and the
//! lists of other programs. Parsers take arbitrary texts and report every fault with its line.

mod backlog;
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

use strum::VariantNames;

use super::ConfigError;
use super::manifest::Manifest;
pub use fault_list::MAX_FAULTS;
use model::board::task_definition::TaskFile;
pub(crate) use words::slug;

/// The formats of files, as they are named on the command line.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, strum::EnumIter, strum::EnumString, strum::VariantNames,
)]
#[strum(serialize_all = "lowercase")]
pub enum TaskFormat {
    /// A header and a JSON object for each task.
    Plan,
    /// `.beads/issues.jsonl`
    Beads,
    /// Markdown with check boxes.
    Checklist,
    /// A task of Backlog.md.
    Backlog,
    Manifest,
    /// The JSON that `task export` writes.
    Export,
    /// The `tasks.json` of Task Master.
    Taskmaster,
}

impl TaskFormat {
    /// Returns the format of a file, by its extension in any case, and by its text where several
    /// have the same one.
    ///
    /// # Errors
    /// The extensions that are expected, to follow the name of the file.
    pub fn of(path: &Path, text: &str) -> Result<TaskFormat, String> {
        let text = without_mark(text);
        let extension = path.extension().and_then(|extension| extension.to_str());
        Ok(match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("jsonl") => {
                let first = text.lines().find(|line| !line.trim().is_empty());
                match first.is_some_and(beads::is_issue) {
                    true => TaskFormat::Beads,
                    false => TaskFormat::Plan,
                }
            }
            Some("md" | "markdown") if backlog::is_task(text) => TaskFormat::Backlog,
            Some("md" | "markdown") => TaskFormat::Checklist,
            Some("toml") => TaskFormat::Manifest,
            Some("json") if text.trim_start().starts_with('{') => TaskFormat::Taskmaster,
            Some("json") => TaskFormat::Export,
            _ => {
                return Err(format!(
                    "its extension does not tell its format; expected are .jsonl (plan, beads), \
                     .md (checklist, backlog), .toml (manifest), .json (export, taskmaster), or `--format` \
                     with one of {}",
                    TaskFormat::VARIANTS.join(", ")
                ));
            }
        })
    }

    /// Parses a file of this format. `stem` is its name without the extension, for the keys of
    /// tasks that have none.
    ///
    /// # Errors
    /// The faults in the order of the file: all of them, or the first one more than
    /// [`MAX_FAULTS`]. Of a manifest, the first one only.
    pub fn parse(self, stem: &str, text: &str) -> Result<TaskFile, Vec<ConfigError>> {
        let text = without_mark(text);
        match self {
            TaskFormat::Plan => plan::parse(text),
            TaskFormat::Beads => beads::parse(text),
            TaskFormat::Checklist => checklist::parse(stem, text),
            TaskFormat::Backlog => backlog::parse(text),
            TaskFormat::Manifest => match Manifest::parse_tasks(text) {
                Ok(tasks) => Ok(TaskFile { tasks, ..TaskFile::default() }),
                Err(fault) => Err(vec![fault]),
            },
            TaskFormat::Export => export::parse(stem, text),
            TaskFormat::Taskmaster => taskmaster::parse(stem, text),
        }
    }
}

/// Returns the text without a byte order mark.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
