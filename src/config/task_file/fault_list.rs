//! The faults of a file of tasks.

use serde::de::DeserializeOwned;

use crate::ConfigError;
use model::board::task_definition::TaskFile;
use model::text;

/// Number of faults that are reported at most.
pub const MAX_FAULTS: usize = 20;
/// Maximum length of a fault's message, in characters; it may quote the file.
const LONGEST_MESSAGE: usize = 300;

/// The faults of a file. Beyond [`MAX_FAULTS`], only one more is kept.
#[derive(Debug, Default)]
pub(super) struct FaultList(Vec<ConfigError>);

impl FaultList {
    pub(super) fn add(&mut self, line: usize, column: usize, message: impl AsRef<str>) {
        if self.0.len() <= MAX_FAULTS {
            let message = text::short(message.as_ref(), LONGEST_MESSAGE);
            self.0.push(ConfigError { line, column, message, nearest: None });
        }
    }

    /// Parses a JSON object that begins at a line; adds a fault if that fails.
    pub(super) fn parse_object<T: DeserializeOwned>(
        &mut self,
        line: usize,
        json: &str,
    ) -> Option<T> {
        // serde also accepts an array for a struct, field by field.
        if !json.trim_start().starts_with('{') {
            self.add(line, 1, "a JSON object is expected here");
            return None;
        }
        let mut parser = serde_json::Deserializer::from_str(json);
        let parsed = serde_path_to_error::deserialize(&mut parser);
        let (path, error) = match parsed {
            Ok(found) => match parser.end() {
                Ok(()) => return Some(found),
                Err(error) => (String::new(), error),
            },
            Err(error) => (error.path().to_string(), error.into_inner()),
        };
        let whole = error.to_string();
        let problem = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(words, _)| words);
        let message = match path.as_str() {
            "" | "." => problem.to_owned(),
            path => format!("`{path}`: {problem}"),
        };
        self.add(line + error.line().saturating_sub(1), error.column().max(1), message);
        None
    }

    /// Returns the file if there are no faults.
    pub(super) fn into_result(self, file: TaskFile) -> Result<TaskFile, Vec<ConfigError>> {
        if self.0.is_empty() { Ok(file) } else { Err(self.0) }
    }
}
