//! A task as a file defines it: the file's view of what to do and in which order, without any state
//! of the work.

use crate::board::task::TaskFields;

/// Maximum length of a part of a key, in characters.
const LONGEST_PART: usize = 100;

/// The tasks of a file.
#[derive(Debug, Default, PartialEq)]
pub struct TaskFile {
    /// The first line of a plan file.
    pub plan: Option<PlanHeader>,
    /// In the order of the file.
    pub tasks: Vec<TaskDefinition>,
    /// Items that are left out or changed, in the order of the file.
    pub notes: Vec<FileNote>,
}

/// An item of a file of tasks that is left out or changed.
#[derive(Debug, PartialEq, Eq)]
pub struct FileNote {
    /// From 1.
    pub line: usize,
    pub text: String,
}

/// The header of a plan.
#[derive(Debug, PartialEq, Eq)]
pub struct PlanHeader {
    /// From 1.
    pub line: usize,
    pub id: String,
    /// Ids of plans; each of their tasks blocks each task of this plan.
    pub depends_on: Vec<String>,
    /// Files that must say that they are complete, relative to the plan's directory.
    pub artifacts: Vec<String>,
}

/// A task of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskDefinition {
    /// Identifies the task when the file is imported again.
    pub key: String,
    /// From 1.
    pub line: usize,
    pub subject: String,
    pub description: String,
    pub owner: Option<String>,
    /// Blockers in the form of [`Extra::after`](crate::board::task::Extra::after).
    pub after: Vec<String>,
    pub fields: TaskFields,
    /// The task needs no work, so it is not created and blocks no other.
    pub is_done: bool,
}

/// Returns the entry of [`Extra::after`](crate::board::task::Extra::after) for all tasks of a plan.
pub fn all_of(plan: &str) -> String {
    format!("{plan}/*")
}

/// Returns the plan if an entry of [`Extra::after`](crate::board::task::Extra::after) names all of
/// its tasks.
pub fn whole_plan(entry: &str) -> Option<&str> {
    entry.strip_suffix("/*")
}

/// Returns true if an entry of [`Extra::after`](crate::board::task::Extra::after) names the task
/// with this key.
pub fn names_key(entry: &str, key: &str) -> bool {
    match whole_plan(entry) {
        Some(plan) => key.strip_prefix(plan).is_some_and(|rest| rest.starts_with('/')),
        None => entry == key,
    }
}

/// Checks a key: parts of letters, digits, `.`, `_` and `-`, separated by `/`.
///
/// # Errors
/// A message that continues a sentence starting with the key, if the key breaks the rule.
pub fn check_key(key: &str) -> Result<(), String> {
    key.split('/').try_for_each(check_key_part)
}

/// Checks an id that becomes a part of a key.
///
/// # Errors
/// As [`check_key`].
pub fn check_key_part(part: &str) -> Result<(), String> {
    let is_plain = part.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if is_plain && (1..=LONGEST_PART).contains(&part.chars().count()) {
        return Ok(());
    }
    Err(format!(
        "is not a valid id: use letters, digits, `.`, `_` and `-`, at most {LONGEST_PART} characters"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_names_one_key_or_all_of_a_plan() {
        assert!(names_key("03-01/T1", "03-01/T1") && !names_key("03-01/T1", "03-01/T10"));
        assert!(names_key(&all_of("03-01"), "03-01/T1"));
        assert!(!names_key("03-01/*", "03-011/T1") && !names_key("03-01/*", "03-01"));
    }

    #[test]
    fn keys_have_no_control_characters_and_no_empty_part() {
        for good in ["T1", "03-01/T1", "todo/übung", "a.b_c-d"] {
            assert_eq!(check_key(good), Ok(()), "{good}");
        }
        let long = "x".repeat(101);
        for bad in ["", "/", "a/", "a b", "a\u{1b}[2J", "a\0", "a\n", "03-01/*", "\u{202e}", &long]
        {
            assert!(check_key(bad).is_err(), "{bad:?}");
        }
    }
}
