//! The workspace of a team: settings, limits, names of files, and the files themselves.

use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::board::Board;
use crate::board::task::Task;
use crate::id::TaskId;
use crate::mail::scope::ChatName;
use crate::time::Timestamp;
use crate::value::{As, AtLeast, Choice};

const MB: u64 = 1024 * 1024;
/// Longest path of a file in the workspace, in bytes.
const MAX_PATH: usize = 1024;
/// Longest name of a file or directory, in bytes.
const MAX_NAME: usize = 255;

/// The sharing of files between the conversations of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceMode {
    /// One directory for each conversation.
    #[default]
    Isolated,
    /// One directory for all.
    Shared,
}

/// `[team.workspace]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "workspace", deny_unknown_fields)]
pub struct WorkspaceRules {
    /// The sharing of files between the conversations of the team.
    #[serde(with = "As::<Choice<WorkspaceMode>>")]
    pub scope: WorkspaceMode,
    /// Largest file, in units of 1,048,576 bytes.
    #[serde(with = "As::<AtLeast<1>>")]
    pub max_file_mb: usize,
    /// Maximum number of files in a directory of a conversation, or in the shared one.
    #[serde(with = "As::<AtLeast<1>>")]
    pub max_files: usize,
    /// Maximum size of all files of the workspace together, in the same units; unlimited by
    /// default.
    #[serde(skip_serializing_if = "Option::is_none", with = "As::<Option<AtLeast<1>>>")]
    pub quota_mb: Option<usize>,
}

impl Default for WorkspaceRules {
    fn default() -> WorkspaceRules {
        WorkspaceRules {
            scope: WorkspaceMode::default(),
            max_file_mb: 10,
            max_files: 100,
            quota_mb: None,
        }
    }
}

/// Number and size of the files that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkspaceUse {
    /// Files of the conversation, or of the whole workspace if it is shared.
    pub files: usize,
    /// Bytes of all files in the workspace.
    pub bytes: u64,
}

impl WorkspaceRules {
    /// Returns the largest file, in bytes.
    pub fn max_file(&self) -> u64 {
        bytes(self.max_file_mb)
    }

    /// Returns the directory of a conversation below the workspace.
    pub fn dir_of<'c>(&self, chat: &'c ChatName) -> &'c Path {
        match self.scope {
            WorkspaceMode::Isolated => Path::new(chat.as_str()),
            WorkspaceMode::Shared => Path::new(""),
        }
    }

    /// Checks whether a file of `len` bytes may be written. `old` is the length of the file that it
    /// replaces.
    ///
    /// # Errors
    /// The first limit that the file exceeds.
    pub fn admit(
        &self,
        name: &WorkspacePath,
        used: WorkspaceUse,
        len: u64,
        old: Option<u64>,
    ) -> Result<(), FileFault> {
        if len > self.max_file() {
            return Err(FileFault::TooLarge { name: name.clone(), max_mb: self.max_file_mb });
        }
        if old.is_none() && used.files >= self.max_files {
            return Err(FileFault::TooMany { max: self.max_files });
        }
        let after = used.bytes.saturating_sub(old.unwrap_or_default()).saturating_add(len);
        match self.quota_mb {
            Some(quota_mb) if after > bytes(quota_mb) => {
                Err(FileFault::Full { name: name.clone(), bytes: after, quota_mb })
            }
            _ => Ok(()),
        }
    }

    /// Returns the limits that files exceed that programs wrote directly.
    pub fn exceeded(&self, used: WorkspaceUse, files: &[WorkspaceFile]) -> Vec<String> {
        let large = files.iter().filter(|file| file.bytes > self.max_file());
        let mut problems: Vec<String> = large
            .map(|file| format!("{} is larger than {} MB", file.name, self.max_file_mb))
            .collect();
        if used.files > self.max_files {
            problems.push(format!("{} files; the limit is {}", used.files, self.max_files));
        }
        if let Some(quota) = self.quota_mb.filter(|quota| used.bytes > bytes(*quota)) {
            problems
                .push(format!("{} bytes in the workspace; the limit is {quota} MB", used.bytes));
        }
        problems
    }
}

fn bytes(mb: usize) -> u64 {
    (mb as u64).saturating_mul(MB)
}

/// The path of a file, relative to the directory of its conversation: names without control
/// characters, none of them `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct WorkspacePath(String);

impl WorkspacePath {
    /// Parses a path with `/` between its names.
    ///
    /// # Errors
    /// A message for the user.
    pub fn parse(given: &str) -> Result<WorkspacePath, String> {
        let problem = |what: &str| Err(format!("it {what}"));
        if given.starts_with('/') {
            return problem("is absolute; name the file relative to the workspace");
        }
        if given.len() > MAX_PATH {
            return problem("is longer than 1024 bytes");
        }
        if given.chars().any(char::is_control) {
            return problem("contains a control character");
        }
        for name in given.split('/') {
            match name {
                "" => return problem("contains an empty name"),
                "." | ".." => return problem("contains `.` or `..`"),
                long if long.len() > MAX_NAME => {
                    return problem("contains a name of more than 255 bytes");
                }
                _ => {}
            }
        }
        Ok(WorkspacePath(given.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::text::line(&self.0))
    }
}

/// A file in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkspaceFile {
    /// Relative to the directory of its conversation.
    pub name: WorkspacePath,
    /// Relative to the workspace.
    pub path: String,
    pub bytes: u64,
    pub modified: Timestamp,
    /// The member that wrote it last; `None` if that is unknown.
    pub by: Option<String>,
    /// The tasks during which it was written.
    pub tasks: Vec<TaskId>,
}

/// Reason why a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    #[error("the workspace has no file `{name}`")]
    Missing { name: WorkspacePath },
    #[error("`{name}` in the workspace cannot be used: {reason}")]
    Unsafe { name: WorkspacePath, reason: String },
    #[error("`{name}` is larger than {max_mb} MB, the limit of a file")]
    TooLarge { name: WorkspacePath, max_mb: usize },
    #[error("the workspace has its maximum of {max} files")]
    TooMany { max: usize },
    #[error("with `{name}` the workspace would have {bytes} bytes; its limit is {quota_mb} MB")]
    Full { name: WorkspacePath, bytes: u64, quota_mb: usize },
    #[error("`{name}` was written by another member meanwhile")]
    Changed { name: WorkspacePath },
}

impl FileFault {
    /// Returns the next step for the user.
    pub fn hint(&self) -> String {
        let limit = |key: &str| {
            format!(
                "delete files with `phalanx workspace delete`, or raise the limit: `phalanx team set workspace.{key} N`"
            )
        };
        match self {
            FileFault::Missing { .. } => "list the files with `phalanx workspace list`".to_owned(),
            FileFault::Unsafe { .. } => {
                "the lead can remove it with `phalanx workspace delete`".to_owned()
            }
            FileFault::TooLarge { .. } => {
                "raise the limit: `phalanx team set workspace.max_file_mb N`".to_owned()
            }
            FileFault::TooMany { .. } => limit("max_files"),
            FileFault::Full { .. } => limit("quota_mb"),
            FileFault::Changed { .. } => "see it with `phalanx workspace list`".to_owned(),
        }
    }
}

/// Returns the task that was in progress at this time, if it was the only one, or the only one that
/// works in its directory (`works_there`): a file that was written then and that no verb wrote is
/// attributed to it.
pub fn only_task_at<'b>(
    board: &'b Board,
    at: Timestamp,
    works_there: impl Fn(&Task) -> bool,
) -> Option<&'b Task> {
    let was_open = |task: &&Task| {
        let extra = &task.extra;
        let until = extra.ended_at.map_or(task.state.is_running(), |end| at <= end);
        task.owner.is_some() && until && extra.claimed_at.is_some_and(|begin| begin <= at)
    };
    let only = |tasks: &[&'b Task]| (tasks.len() == 1).then(|| tasks[0]);
    let open: Vec<&Task> = board.work().filter(was_open).collect();
    let there: Vec<&Task> = open.iter().copied().filter(|task| works_there(task)).collect();
    only(&open).or_else(|| only(&there))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::task::TaskState;

    #[test]
    fn paths_that_could_lead_elsewhere_are_refused() {
        let name = "x".repeat(255);
        let deep = ["a"; 512].join("/");
        for good in ["a", "a/b.txt", ".env", "ä/ü", "a b", "-x", "..a", "a..", &name, &deep] {
            assert!(WorkspacePath::parse(good).is_ok(), "{good:?}");
        }
        let longer = format!("{name}x");
        let deeper = ["a"; 513].join("/");
        let hostile = [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../a",
            "a/../b",
            "a/..",
            ".",
            "./a",
            "a//b",
            "a/",
            "a\0b",
            "a\nb",
            "\u{1b}[2J",
            "a\u{7f}",
            "a\u{85}",
            &longer,
            &deeper,
        ];
        for bad in hostile {
            assert!(WorkspacePath::parse(bad).is_err(), "{bad:?}");
        }
        let shown = WorkspacePath::parse("a\u{202e}b").expect("a path").to_string();
        assert_eq!(shown, "a\u{fffd}b");
    }

    #[test]
    fn limits_of_a_write() {
        let rules = WorkspaceRules {
            max_file_mb: 2,
            max_files: 3,
            quota_mb: Some(4),
            ..WorkspaceRules::default()
        };
        let name = WorkspacePath::parse("a").expect("a path");
        let admit = |files, bytes, len, old| {
            rules.admit(&name, WorkspaceUse { files, bytes }, len, old).err()
        };
        assert_eq!(admit(0, 0, 2 * MB, None), None);
        assert!(matches!(admit(0, 0, 2 * MB + 1, None), Some(FileFault::TooLarge { .. })));
        assert_eq!(admit(2, 0, 1, None), None);
        assert!(matches!(admit(3, 0, 1, None), Some(FileFault::TooMany { max: 3 })));
        assert_eq!(admit(3, 1, 1, Some(1)), None, "a replaced file needs no room of its own");
        assert_eq!(admit(0, 3 * MB, MB, None), None);
        assert!(matches!(admit(0, 3 * MB, MB + 1, None), Some(FileFault::Full { .. })));
        assert_eq!(admit(1, 4 * MB, MB, Some(MB)), None);
        let open = WorkspaceRules::default();
        let huge = WorkspaceUse { files: 99, bytes: u64::MAX };
        assert_eq!(open.admit(&name, huge, 10 * MB, None), Ok(()), "no quota by default");
    }

    #[test]
    fn exceeded_limits_are_listed() {
        let rules = WorkspaceRules {
            max_file_mb: 1,
            max_files: 1,
            quota_mb: Some(1),
            ..WorkspaceRules::default()
        };
        let file = |name: &str, bytes| WorkspaceFile {
            name: WorkspacePath::parse(name).expect("a path"),
            path: name.to_owned(),
            bytes,
            modified: Timestamp(0),
            by: None,
            tasks: Vec::new(),
        };
        let files = [file("a", 1), file("b", MB + 1)];
        let used = WorkspaceUse { files: 2, bytes: MB + 2 };
        let expected = [
            "b is larger than 1 MB",
            "2 files; the limit is 1",
            "1048578 bytes in the workspace; the limit is 1 MB",
        ];
        assert_eq!(rules.exceeded(used, &files), expected);
        let few = WorkspaceUse { files: 1, bytes: 1 };
        assert_eq!(rules.exceeded(few, &files[..1]), Vec::<String>::new());
    }

    #[test]
    fn file_is_attributed_to_the_only_task_of_its_time() {
        let mut board = Board::default();
        let times = [(1, 10, Some(20)), (2, 15, Some(30)), (3, 40, None)];
        for (id, begin, end) in times {
            let mut task = Task::new(TaskId(id), "s", "");
            task.owner = Some("ann".to_owned());
            task.extra.claimed_at = Some(Timestamp(begin));
            task.extra.ended_at = end.map(Timestamp);
            task.state = if end.is_some() { TaskState::Completed } else { TaskState::InProgress };
            board.tasks.insert(TaskId(id), task);
        }
        let at = |ms| only_task_at(&board, Timestamp(ms), |_| false).map(|task| task.id.0);
        let table =
            [(9, None), (10, Some(1)), (17, None), (25, Some(2)), (35, None), (99, Some(3))];
        for (ms, expected) in table {
            assert_eq!(at(ms), expected, "{ms}");
        }
        // At 17 the tasks 1 and 2 are in progress.
        let in_dir = |own: &[u64]| {
            let task = only_task_at(&board, Timestamp(17), |task| own.contains(&task.id.0));
            task.map(|task| task.id.0)
        };
        assert_eq!((in_dir(&[2, 3]), in_dir(&[1, 2])), (Some(2), None));
        let mut pending = board.clone();
        pending.tasks.get_mut(&TaskId(3)).expect("a task").state = TaskState::Pending;
        assert_eq!(only_task_at(&pending, Timestamp(99), |_| true).map(|task| task.id), None);
    }
}
