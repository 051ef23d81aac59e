//! What is wrong with a sheet, and where. Knows no section and no key.

use std::ops::Range;

/// A fault with its place. The caller knows the file's name and puts it in front: `team.toml:4:1: unknown key
/// …`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}{}", question(.nearest.as_deref()))]
pub(crate) struct SheetError {
    /// From 1.
    pub(crate) line: usize,
    /// From 1, in characters; a tab is one.
    pub(crate) column: usize,
    /// One line, lower case, without a full stop.
    pub(crate) message: String,
    /// What may have been meant.
    pub(crate) nearest: Option<String>,
}

fn question(nearest: Option<&str>) -> String {
    nearest.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default()
}

impl SheetError {
    /// A text that is not TOML.
    pub(crate) fn syntax(text: &str, error: &toml::de::Error) -> SheetError {
        let span = error.span().unwrap_or(0..0);
        let message = match error.message() {
            "duplicate key" => {
                format!("duplicate key `{}`", text.get(span.clone()).unwrap_or_default())
            }
            // What the parser says to every bare word in the place of a value.
            said if said.starts_with("invalid boolean") => {
                "not a valid value; strings need quotes".to_owned()
            }
            said => said.lines().collect::<Vec<_>>().join(" "),
        };
        Fault { at: span.start, message, nearest: None }.locate(text)
    }
}

/// A fault at a byte of the text.
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
        // Lossy, since a span of the parser could end inside a character; the number of characters stays near
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

/// All faults found so far. They are collected, not thrown, because the tables of the parser are sorted by
/// key: the first one found is not the first one in the file.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// A fault at the start of this span, bytes.
    pub(crate) fn add(&mut self, span: &Range<usize>, message: impl Into<String>) {
        self.0.push(Fault { at: span.start, message: message.into(), nearest: None });
    }

    /// A fault with a word that may have been meant instead.
    pub(crate) fn add_with(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        nearest: Option<&str>,
    ) {
        let nearest = nearest.map(str::to_owned);
        self.0.push(Fault { at: span.start, message: message.into(), nearest });
    }

    /// The first fault in the file, if there is any.
    pub(crate) fn into_result(self, text: &str) -> Result<(), SheetError> {
        // `min_by_key` keeps the earlier of two at the same place, and so the order in which they were found.
        match self.0.into_iter().min_by_key(|fault| fault.at) {
            Some(fault) => Err(fault.locate(text)),
            None => Ok(()),
        }
    }
}

/// The known word that was most likely meant. Two swapped letters count as one mistake; a third of the
/// letters may be wrong, so that `cwd` is never suggested for `run`.
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
        // Of two equally near ones the one of the same length: letters are swapped more often than lost.
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
    fn the_nearest_word_is_near() {
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
