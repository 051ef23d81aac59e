//! Completion of the line in the command palette. The driver finds the candidates, with the engine
//! that completes command lines in a shell.

use crossterm::event::{KeyCode, KeyEvent};

use super::dialog::{OpenDialog, PromptKind, TextPrompt};
use super::editor::LineEditor;
use super::effect::Effect;
use super::state::Dashboard;

/// The word at the cursor, as far as it is typed, and the words before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CompletionRequest {
    pub(crate) words: Vec<String>,
    pub(crate) current: String,
}

/// A word that the palette offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PaletteCandidate {
    pub(crate) value: String,
    /// Its description, which may be empty.
    pub(crate) about: String,
}

/// The direction in which the candidates are cycled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CycleStep {
    Next,
    Previous,
}

/// The candidates for the word at the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Completion {
    request: CompletionRequest,
    /// The line before the word and after the cursor.
    around: (String, String),
    /// Until the answer to `request` arrives, those of the request before it.
    pub(super) candidates: Vec<PaletteCandidate>,
    is_answered: bool,
    /// The step of a key that was pressed before the answer.
    pending: Option<CycleStep>,
    /// The candidate that is in the line.
    pub(super) chosen: Option<usize>,
}

impl Completion {
    /// Returns the line with `word` in place of the word at the cursor.
    fn line(&self, word: &str, end: &str) -> LineEditor {
        let (before, after) = &self.around;
        LineEditor::with_cursor(&format!("{before}{}{end}", quoted(word)), after)
    }

    /// Returns the longest start that all candidates share, if it is longer than what is typed.
    fn shared(&self) -> Option<String> {
        let (first, others) = self.candidates.split_first()?;
        let count = others.iter().fold(first.value.chars().count(), |count, other| {
            let pairs = first.value.chars().zip(other.value.chars());
            pairs.take_while(|(a, b)| a == b).count().min(count)
        });
        let shared: String = first.value.chars().take(count).collect();
        let extends = shared.starts_with(&self.request.current) && shared != self.request.current;
        extends.then_some(shared)
    }

    /// Returns the index after or before the chosen one, around the end.
    fn next(&self, step: CycleStep) -> usize {
        let count = self.candidates.len();
        match (self.chosen, step) {
            (None, CycleStep::Next) => 0,
            (None, CycleStep::Previous) => count - 1,
            (Some(at), CycleStep::Next) => (at + 1) % count,
            (Some(at), CycleStep::Previous) => (at + count - 1) % count,
        }
    }
}

impl Dashboard {
    /// Opens the palette.
    pub(super) fn open_palette(&mut self) -> Vec<Effect> {
        self.completion = Completion::default();
        self.ask(PromptKind::Palette, "");
        self.request_candidates()
    }

    /// Handles a key of the palette; `None` if it is not open, or for a key that closes it.
    pub(super) fn palette_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let editor = self.palette_line()?;
        match key.code {
            KeyCode::Tab | KeyCode::Down => Some(self.cycle(CycleStep::Next)),
            KeyCode::BackTab | KeyCode::Up => Some(self.cycle(CycleStep::Previous)),
            _ if editor.handle(key) => Some(self.request_candidates()),
            _ => None,
        }
    }

    fn palette_line(&mut self) -> Option<&mut LineEditor> {
        match &mut self.dialog {
            Some(OpenDialog::TextPrompt(TextPrompt { kind: PromptKind::Palette, editor })) => {
                Some(editor)
            }
            _ => None,
        }
    }

    /// Requests the candidates for the word at the cursor of the palette.
    pub(super) fn request_candidates(&mut self) -> Vec<Effect> {
        let Some(editor) = self.palette_line() else { return Vec::new() };
        let (before, after) = editor.split();
        let (start, request) = word_at_end(&before);
        let candidates = std::mem::take(&mut self.completion.candidates);
        let around = (before[..start].to_owned(), after);
        self.completion =
            Completion { request: request.clone(), around, candidates, ..Completion::default() };
        vec![Effect::Complete(request)]
    }

    /// Takes the answer to a request; one about an earlier line is dropped.
    pub(crate) fn set_candidates(
        &mut self,
        request: &CompletionRequest,
        candidates: Vec<PaletteCandidate>,
    ) -> Vec<Effect> {
        let completion = &mut self.completion;
        if completion.is_answered || completion.request != *request {
            return Vec::new();
        }
        completion.candidates = candidates;
        completion.is_answered = true;
        match completion.pending.take() {
            Some(step) => self.cycle(step),
            None => Vec::new(),
        }
    }

    /// Completes the word as far as it is unique; after that, puts one candidate after the other
    /// into the line.
    fn cycle(&mut self, step: CycleStep) -> Vec<Effect> {
        let completion = &mut self.completion;
        if !completion.is_answered {
            completion.pending = Some(step);
            return Vec::new();
        }
        let line = match completion.candidates.as_slice() {
            [] => return Vec::new(),
            [only] => {
                let is_whole = !only.value.ends_with(['=', '/']);
                let line = completion.line(&only.value, if is_whole { " " } else { "" });
                if let Some(editor) = self.palette_line() {
                    *editor = line;
                }
                return self.request_candidates();
            }
            several => match completion.shared().filter(|_| completion.chosen.is_none()) {
                Some(shared) => {
                    let line = completion.line(&shared, "");
                    completion.request.current = shared;
                    line
                }
                None => {
                    let at = completion.next(step);
                    let line = completion.line(&several[at].value, "");
                    completion.chosen = Some(at);
                    line
                }
            },
        };
        if let Some(editor) = self.palette_line() {
            *editor = line;
        }
        Vec::new()
    }
}

/// Splits a line as a shell does. Returns the byte at which its last word begins, and the words.
fn word_at_end(line: &str) -> (usize, CompletionRequest) {
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
