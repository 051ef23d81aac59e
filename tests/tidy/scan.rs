//! Tokens of Rust source and the paths that they spell, also inside macros, which a syntax tree
//! does not show.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A token and the line that it starts on. Comments and lifetimes yield no token.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Kind {
    /// An identifier, a keyword, or a literal that is no string.
    Word(String),
    /// The content of a string literal of any kind, escapes left as written.
    Text(String),
    /// `::`
    Step,
    /// Any other character but white space.
    Mark(char),
}

impl Token {
    pub(crate) fn is(&self, word: &str) -> bool {
        matches!(&self.kind, Kind::Word(w) if w == word)
    }

    pub(crate) fn mark(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }
}

/// A path spelled in full: `use a::{b, c::d}` yields `a::b` and `a::c::d`.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
}

/// Splits source text into tokens.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut found = Vec::new();
    flatten(source.parse().unwrap_or_else(|e| panic!("{e}: {source}")), &mut found);
    found
}

fn flatten(stream: TokenStream, found: &mut Vec<Token>) {
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let line = tree.span().start().line;
        let kind = match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ('{', '}'),
                    Delimiter::Bracket => ('[', ']'),
                    Delimiter::Parenthesis | Delimiter::None => ('(', ')'),
                };
                found.push(Token { line, kind: Kind::Mark(open) });
                flatten(group.stream(), found);
                let line = group.span_close().start().line;
                found.push(Token { line, kind: Kind::Mark(close) });
                continue;
            }
            TokenTree::Ident(ident) => {
                Kind::Word(ident.to_string().trim_start_matches("r#").to_owned())
            }
            // The name of a lifetime is a token of its own.
            TokenTree::Punct(punct) if punct.as_char() == '\'' => {
                trees.next();
                continue;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => {
                let second = trees.next_if(|next| {
                    punct.spacing() == Spacing::Joint
                        && matches!(next, TokenTree::Punct(next) if next.as_char() == ':')
                });
                second.map_or(Kind::Mark(':'), |_| Kind::Step)
            }
            TokenTree::Punct(punct) => Kind::Mark(punct.as_char()),
            // A doc comment is an attribute here: `#[doc = "…"]`.
            TokenTree::Literal(_) if matches!(found.as_slice(), [.., doc, eq] if doc.is("doc") && eq.mark('=')) =>
            {
                continue;
            }
            TokenTree::Literal(literal) => word_or_text(literal.to_string()),
        };
        found.push(Token { line, kind });
    }
}

/// Takes the quotes from a string literal: `"…"`, `r#"…"#`, `b"…"`, `c"…"`.
fn word_or_text(literal: String) -> Kind {
    match literal.split_once('"') {
        Some((prefix, rest)) if prefix.chars().all(|c| "rbc#".contains(c)) => {
            Kind::Text(rest.rsplit_once('"').map_or(rest, |(text, _)| text).to_owned())
        }
        _ => Kind::Word(literal),
    }
}

/// Returns every path in the tokens, with `use` groups expanded.
pub(crate) fn paths(tokens: &[Token]) -> Vec<Path> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if let Some(start) = path_start(tokens, at) {
            let mut spelled = Vec::new();
            at = tree(tokens, start, &[], &mut spelled);
            found.extend(spelled.into_iter().map(|(line, segments)| Path { line, segments }));
        } else {
            at += 1;
        }
    }
    found
}

/// Returns the index of a path that starts at `at`: after `use` or `extern crate`, or a word
/// followed by `::`.
fn path_start(tokens: &[Token], at: usize) -> Option<usize> {
    let before = |back: usize| at.checked_sub(back).map(|i| &tokens[i]);
    let Kind::Word(word) = &tokens[at].kind else { return None };
    if word == "use" || (word == "crate" && before(1).is_some_and(|t| t.is("extern"))) {
        return Some(at + 1);
    }
    let goes_on = tokens.get(at + 1).is_some_and(|t| t.kind == Kind::Step);
    // In `<T as X>::y::z` and `a::<T>::b::c` the tail is not a path of its own.
    let is_tail = before(1).is_some_and(|t| t.kind == Kind::Step)
        && before(2).is_some_and(|t| t.mark('>') || matches!(t.kind, Kind::Word(_)));
    // `pub(in super::super)` names an ancestor and imports nothing.
    let is_visibility = before(1).is_some_and(|t| t.is("in"))
        && before(2).is_some_and(|t| t.mark('('))
        && word == "super";
    (goes_on && !is_tail && !is_visibility).then_some(at)
}

/// Reads one branch of a use tree, or a plain path, at `at`. Returns the index after it.
fn tree(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let mut segments = prefix.to_vec();
    let mut line = tokens.get(at).map_or(0, |t| t.line);
    while let Some(token) = tokens.get(at) {
        match &token.kind {
            Kind::Step => at += 1,
            Kind::Word(word) => {
                (line, at) = (token.line, at + 1);
                segments.push(word.clone());
                if tokens.get(at).is_none_or(|t| t.kind != Kind::Step) {
                    break;
                }
            }
            Kind::Mark('*') => {
                (line, at) = (token.line, at + 1);
                segments.push("*".into());
                break;
            }
            Kind::Mark('{') => return group(tokens, at + 1, &segments, found),
            _ => break,
        }
    }
    if segments.len() > prefix.len() {
        found.push((line, segments));
    }
    at
}

/// Reads the branches between the braces of a use tree; `at` is the index after the opening brace.
fn group(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    while at < tokens.len() && !tokens[at].mark('}') {
        at = tree(tokens, at, prefix, found);
        // Skips ` as name`, and ends on text that is not a use tree.
        while at < tokens.len() && !tokens[at].mark(',') && !tokens[at].mark('}') {
            at += 1;
        }
        at += usize::from(tokens.get(at).is_some_and(|t| t.mark(',')));
    }
    at + 1
}

/// The index of the bracket that closes the one at `open`, or the number of tokens.
pub(crate) fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Mark('(' | '[' | '{') => depth += 1,
            Kind::Mark(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

/// The content of every attribute, `#[…]` and `#![…]`, as a range of token indices.
pub(crate) fn attributes(tokens: &[Token]) -> Vec<std::ops::Range<usize>> {
    let opens = |at: usize| match (tokens[at].mark('#'), tokens.get(at + 1), tokens.get(at + 2)) {
        (true, Some(a), _) if a.mark('[') => Some(at + 1),
        (true, Some(a), Some(b)) if a.mark('!') && b.mark('[') => Some(at + 2),
        _ => None,
    };
    (0..tokens.len()).filter_map(opens).map(|open| open + 1..closing(tokens, open)).collect()
}

/// The lines of items under `#[cfg(test)]`, from the attribute to the end of the item.
pub(crate) fn test_lines(tokens: &[Token]) -> Vec<std::ops::RangeInclusive<usize>> {
    let is_test = |inside: &std::ops::Range<usize>| {
        let words: Vec<_> =
            tokens[inside.clone()].iter().filter(|t| matches!(t.kind, Kind::Word(_))).collect();
        let named = |at: usize, name: &str| words.get(at).is_some_and(|t| t.is(name));
        named(0, "cfg") && (named(1, "test") || (named(1, "all") && named(2, "test")))
    };
    let item = |inside: std::ops::Range<usize>| {
        let body =
            (inside.end..tokens.len()).find(|at| tokens[*at].mark('{') || tokens[*at].mark(';'))?;
        let end = if tokens[body].mark('{') { closing(tokens, body) } else { body };
        Some(tokens[inside.start].line..=tokens.get(end).map_or(usize::MAX, |t| t.line))
    };
    attributes(tokens).into_iter().filter(is_test).filter_map(item).collect()
}
