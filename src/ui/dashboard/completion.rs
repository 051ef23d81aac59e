//! The candidates for a word of the command palette, and the line with one of them.

use super::editor::LineEditor;
use super::effect::{CompletionRequest, PaletteCandidate};

/// The direction in which the candidates are cycled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CycleStep {
    Next,
    Previous,
}

/// The candidates for the word at the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Completion {
    pub(super) request: CompletionRequest,
    /// The line before the word and after the cursor.
    pub(super) around: (String, String),
    /// Until the answer to `request` arrives, those of the request before it.
    pub(super) candidates: Vec<PaletteCandidate>,
    pub(super) is_answered: bool,
    /// The step of a key that was pressed before the answer.
    pub(super) pending: Option<CycleStep>,
    /// The candidate that is in the line.
    pub(super) chosen: Option<usize>,
}

impl Completion {
    /// Returns the line with `word` in place of the word at the cursor.
    pub(super) fn line(&self, word: &str, end: &str) -> LineEditor {
        let (before, after) = &self.around;
        LineEditor::with_cursor(&format!("{before}{}{end}", quoted(word)), after)
    }

    /// Returns the longest start that all candidates share, if it is longer than what is typed.
    pub(super) fn shared(&self) -> Option<String> {
        let (first, others) = self.candidates.split_first()?;
        let count = others.iter().fold(first.value.chars().count(), |count, other| {
            let pairs = first.value.chars().zip(other.value.chars());
            pairs.take_while(|(a, b)| a == b).count().min(count)
        });
        let shared: String = first.value.chars().take(count).collect();
        let extends = shared.starts_with(&self.request.current) && shared != self.request.current;
        extends.then_some(shared)
    }
}

/// Returns the index after or before the current one of `count`, around the end.
pub(super) fn cycled(at: Option<usize>, step: CycleStep, count: usize) -> usize {
    match (at, step) {
        (None, CycleStep::Next) => 0,
        (None, CycleStep::Previous) => count - 1,
        (Some(at), CycleStep::Next) => (at + 1) % count,
        (Some(at), CycleStep::Previous) => (at + count - 1) % count,
    }
}

/// Splits a line as a shell does. Returns the byte at which its last word begins, and the words.
pub(super) fn word_at_end(line: &str) -> (usize, CompletionRequest) {
    let (mut start, mut quote, mut is_escaped) = (0, None, false);
    for (at, c) in line.char_indices() {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, ' ') => start = at + 1,
            (None | Some(_), _) => {}
        }
    }
    let (before, word) = line.split_at(start);
    // A word that is not finished may lack its closing quotation mark.
    let closed = [word.to_owned(), format!("{word}'"), format!("{word}\"")];
    let current = closed.iter().find_map(|word| shlex::split(word)).unwrap_or_default();
    let request = CompletionRequest {
        words: shlex::split(before).unwrap_or_default(),
        current: current.into_iter().next().unwrap_or_default(),
    };
    (start, request)
}

/// Quotes a word that would not be read as one.
fn quoted(word: &str) -> String {
    let is_plain = !word.contains(|c: char| c.is_whitespace() || "'\"\\#".contains(c));
    let quoted = (!is_plain).then(|| shlex::try_quote(word).ok()).flatten();
    quoted.map_or_else(|| word.to_owned(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_split_at_the_word_to_complete() {
        let table: &[(&str, usize, &[&str], &str)] = &[
            ("", 0, &[], ""),
            ("sen", 0, &[], "sen"),
            ("send ", 5, &["send"], ""),
            ("task as", 5, &["task"], "as"),
            ("up 'my te", 3, &["up"], "my te"),
            ("up \"my te", 3, &["up"], "my te"),
            ("up my\\ te", 3, &["up"], "my te"),
            ("send 'a b' --fr", 11, &["send", "a b"], "--fr"),
            ("up día/é", 3, &["up"], "día/é"),
        ];
        for (line, start, words, current) in table {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            let request = CompletionRequest { words, current: (*current).to_owned() };
            assert_eq!(word_at_end(line), (*start, request), "{line}");
        }
    }

    #[test]
    fn inserted_words_are_read_back_as_one() {
        for word in ["ann", "--theme=dark", "task=3", "my file", "it's", "a#b", "a\\b"] {
            assert_eq!(shlex::split(&quoted(word)).as_deref(), Some(&[word.to_owned()][..]));
        }
        assert_eq!(quoted("--theme=dark"), "--theme=dark");
    }
}
