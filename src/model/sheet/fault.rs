//! Faults in a sheet, with their positions.

use std::ops::Range;

/// A fault with its position. The caller prefixes the file's name, as in `team.toml:4:1: unknown
/// key …`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}{}", question(.nearest.as_deref()))]
pub(crate) struct SheetError {
    /// From 1.
    pub(crate) line: usize,
    /// From 1, in characters; a tab counts as one.
    pub(crate) column: usize,
    /// One line, lower case, without a full stop.
    pub(crate) message: String,
    /// The word that was probably meant.
    pub(crate) nearest: Option<String>,
}

fn question(nearest: Option<&str>) -> String {
    nearest.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default()
}

impl SheetError {
    /// Converts an error of the TOML parser.
    pub(crate) fn syntax(text: &str, error: &toml::de::Error) -> SheetError {
        let span = error.span().unwrap_or(0..0);
        let message = match error.message() {
            "duplicate key" => {
                format!("duplicate key `{}`", text.get(span.clone()).unwrap_or_default())
            }
            // The parser's message for any bare word in place of a value.
            said if said.starts_with("invalid boolean") => {
                "not a valid value; strings need quotes".to_owned()
            }
            said => said.lines().collect::<Vec<_>>().join(" "),
        };
        Fault { at: span.start, message, nearest: None }.locate(text)
    }
}

/// A fault at a byte offset of the text.
#[derive(Debug)]
struct Fault {
    at: usize,
    message: String,
    nearest: Option<String>,
}

impl Fault {
    fn locate(self, text: &str) -> SheetError {
        let before = text.as_bytes().get(..self.at).unwrap_or(text.as_bytes());
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        // Lossy, since a span of the parser could end inside a character; the column is close
        // enough.
        let head = String::from_utf8_lossy(&before[line_start..]);
        let head = head.trim_start_matches('\u{feff}').trim_end_matches('\r');
        SheetError {
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            column: 1 + head.chars().count(),
            message: self.message,
            nearest: self.nearest,
        }
    }
}

/// All faults found so far. They are collected rather than returned at once, because the parser
/// sorts tables by key: the first fault found need not be the first one in the file.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// Adds a fault at the start of this byte span.
    pub(crate) fn add(&mut self, span: &Range<usize>, message: impl Into<String>) {
        self.0.push(Fault { at: span.start, message: message.into(), nearest: None });
    }

    /// Adds a fault with a word that was probably meant.
    pub(crate) fn add_with(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        nearest: Option<&str>,
    ) {
        let nearest = nearest.map(str::to_owned);
        self.0.push(Fault { at: span.start, message: message.into(), nearest });
    }

    /// Returns `Ok` if there are no faults.
    ///
    /// # Errors
    /// The first fault in the file.
    pub(crate) fn into_result(self, text: &str) -> Result<(), SheetError> {
        // `min_by_key` returns the first of several minima, so of two faults at one position the
        // one found first.
        match self.0.into_iter().min_by_key(|fault| fault.at) {
            Some(fault) => Err(fault.locate(text)),
            None => Ok(()),
        }
    }
}

/// Returns the known word that was most likely meant. Two swapped letters count as one mistake. At
/// most a third of the letters may be wrong, so that `cwd` is never suggested for `run`.
pub(crate) fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let word = word.to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(&word, &known.to_lowercase()), known))
        // A word of one or two letters is within one mistake of too many others.
        .filter(|(distance, known)| {
            *distance <= allowed && *distance < known.chars().count().min(word.len())
        })
        // Prefer the same length: letters are swapped more often than lost.
        .min_by_key(|(distance, known)| (*distance, known.len().abs_diff(word.len())))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let place = |text: &str, at: usize| {
            let error = Fault { at, message: String::new(), nearest: None }.locate(text);
            (error.line, error.column)
        };
        assert_eq!(place("", 0), (1, 1));
        assert_eq!(place("\u{feff}a", 3), (1, 1));
        assert_eq!(place("äö = 1", "äö".len()), (1, 3));
        assert_eq!(place("a\r\nb", 3), (2, 1));
        assert_eq!(place("a\n", 99), (2, 1));
        assert_eq!(place("ä", 1), (1, 2));
    }

    #[test]
    fn nearest_word_is_within_a_few_mistakes() {
        let known = ["name", "prompt", "prompt_file", "run", "cwd", "mode", "model"];
        let near = |word: &str| nearest(word, known);
        assert_eq!(near("naem"), Some("name"));
        assert_eq!(near("Name"), Some("name"));
        assert_eq!(near("prompt-file"), Some("prompt_file"));
        assert_eq!(near("modle"), Some("model"));
        assert_eq!(near("moed"), Some("mode"));
        assert_eq!(near("colour"), None);
        assert_eq!(near("x"), None);
        assert_eq!(near(""), None);
    }
}
