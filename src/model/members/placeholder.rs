//! `{name}` and `{index}` in what a member is started with.

use crate::name::check_variable;

/// The placeholders, as they are written between braces.
const NAME: &str = "name";
const INDEX: &str = "index";

/// A piece of a text with placeholders.
#[derive(Debug, PartialEq, Eq)]
enum PlaceholderPiece<'a> {
    Text(&'a str),
    /// `{word}`
    Word(&'a str),
    /// `{{word}`, for the text `{word}`
    Quoted(&'a str),
}

impl PlaceholderPiece<'_> {
    fn as_written(&self) -> String {
        match self {
            PlaceholderPiece::Text(text) => (*text).to_owned(),
            PlaceholderPiece::Word(word) => format!("{{{word}}}"),
            PlaceholderPiece::Quoted(word) => format!("{{{{{word}}}"),
        }
    }
}

/// Splits a text. Braces around anything but a word of letters, digits and `_` are text.
fn pieces(text: &str) -> Vec<PlaceholderPiece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        pieces.push(PlaceholderPiece::Text(before));
        let (piece, length) = match (word(from), from.strip_prefix('{').and_then(word)) {
            (Some(word), _) => (PlaceholderPiece::Word(word), word.len() + 2),
            (None, Some(word)) => (PlaceholderPiece::Quoted(word), word.len() + 3),
            (None, None) => (PlaceholderPiece::Text("{"), 1),
        };
        pieces.push(piece);
        rest = &from[length..];
    }
    pieces.push(PlaceholderPiece::Text(rest));
    pieces
}

/// Returns the word of a text that begins with `{word}`. A word has the form of a variable's name.
fn word(text: &str) -> Option<&str> {
    let (word, _) = text.strip_prefix('{')?.split_once('}')?;
    check_variable(word).is_ok().then_some(word)
}

/// Checks the value of a variable.
///
/// # Errors
/// What is wrong with its first unknown placeholder, to continue a sentence that starts with the
/// value.
pub fn check_value(text: &str) -> Result<(), String> {
    let unknown = |piece: &PlaceholderPiece<'_>| match piece {
        PlaceholderPiece::Word(word) if ![NAME, INDEX].contains(word) => Some((*word).to_owned()),
        PlaceholderPiece::Word(_) | PlaceholderPiece::Text(_) | PlaceholderPiece::Quoted(_) => None,
    };
    match pieces(text).iter().find_map(unknown) {
        Some(word) => Err(format!(
            "has the unknown placeholder `{{{word}}}`; the known ones are `{{name}}` and `{{index}}`, and `{{{{{word}}}` \
             stands for the text itself"
        )),
        None => Ok(()),
    }
}

/// Quotes the placeholders of a text that is not to be filled.
pub fn quoted(text: &str) -> String {
    quote(text, |word| [NAME, INDEX].contains(&word))
}

/// Quotes the words in braces of a variable's value that is not to be filled.
pub fn quoted_value(text: &str) -> String {
    quote(text, |_| true)
}

fn quote(text: &str, is_filled: impl Fn(&str) -> bool) -> String {
    let piece = |piece: &PlaceholderPiece<'_>| match piece {
        PlaceholderPiece::Word(word) | PlaceholderPiece::Quoted(word) if is_filled(word) => {
            format!("{{{}", piece.as_written())
        }
        piece => piece.as_written(),
    };
    pieces(text).iter().map(piece).collect()
}

/// The name and the number of the member that the placeholders stand for.
#[derive(Debug, Clone, Copy)]
pub struct MemberValues<'a> {
    pub name: &'a str,
    pub index: u32,
}

impl MemberValues<'_> {
    /// Fills a text. Other words in braces stay, as programs have their own use for them.
    pub fn fill(&self, text: &str) -> String {
        self.filled(text, |word| [NAME, INDEX].contains(&word))
    }

    /// Fills the value of a variable, which [`check_value`] has accepted.
    pub fn fill_value(&self, text: &str) -> String {
        self.filled(text, |_| true)
    }

    fn filled(&self, text: &str, is_unquoted: impl Fn(&str) -> bool) -> String {
        let filled = |piece: &PlaceholderPiece<'_>| match piece {
            PlaceholderPiece::Word(NAME) => self.name.to_owned(),
            PlaceholderPiece::Word(INDEX) => self.index.to_string(),
            PlaceholderPiece::Quoted(word) if is_unquoted(word) => format!("{{{word}}}"),
            piece => piece.as_written(),
        };
        pieces(text).iter().map(filled).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: MemberValues<'_> = MemberValues { name: "ann", index: 3 };

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        let table = [
            ("80{index}-{name}", "803-ann"),
            ("awk '{print} {print $1}' ${HOME}", "awk '{print} {print $1}' ${HOME}"),
            ("{{index} {{print}} {{.ID}}", "{index} {{print}} {{.ID}}"),
            ("{\"a\":{\"b\":\"{name}\"}}", "{\"a\":{\"b\":\"ann\"}}"),
            ("{ {} {", "{ {} {"),
            ("", ""),
        ];
        for (text, expected) in table {
            assert_eq!(ANN.fill(text), expected, "{text}");
        }
        assert_eq!(ANN.fill_value("{{x}, {{name} {name}"), "{x}, {name} ann");
    }

    #[test]
    fn quoted_text_comes_out_as_it_was() {
        for text in ["{name} {{name} {{{name} {print} {{print} {index}}", "", "{{{index}}}", "{"] {
            assert_eq!(ANN.fill(&quoted(text)), text);
            let value = quoted_value(text);
            assert_eq!(check_value(&value), Ok(()));
            assert_eq!(ANN.fill_value(&value), text);
        }
    }

    #[test]
    fn unknown_placeholders_of_a_value_are_named() {
        for known in ["", "{name}{index}", "{{port}", "{\"a\":1}", "{}", "{a b}"] {
            assert_eq!(check_value(known), Ok(()), "{known}");
        }
        let problem = check_value("30{port}").expect_err("unknown");
        assert!(problem.contains("`{port}`") && problem.contains("`{{port}`"), "{problem}");
    }
}
