//! Finds the kinds of words in source code with the grammars of tree-sitter. These are C code and
//! can loop or crash on hostile text, so only a process that can be killed may call this.

mod capture;
mod flat;
#[cfg(test)]
mod tests;

use arborium::Highlighter;
use model::code::{CodeLanguage, CodeTokens};

/// Returns the words of each line of a text; none if its grammar fails.
pub fn tokens(language: CodeLanguage, text: &str) -> CodeTokens {
    let spans = Highlighter::new().highlight_spans(language.into(), text).unwrap_or_default();
    flat::lines(text, spans)
}
