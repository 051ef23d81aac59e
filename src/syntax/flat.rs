//! Reduces the nested parts of a text to words that do not overlap, line by line.

use std::cmp::Reverse;

use arborium::advanced::Span;
use model::code::{CodeTokens, LONGEST_CODE_LINE, TokenKind, TokenSpan};

use crate::capture::{CaptureEffect, effect};

/// Returns the words of each line. Of parts within each other the inner one counts. Of equal parts
/// one with a kind does, because grammars name plain parts before or after the special ones; then
/// the one with the later pattern.
pub(crate) fn lines(text: &str, spans: Vec<Span>) -> CodeTokens {
    let spans = spans.into_iter().map(|span| (effect(&span.capture), span));
    let mut spans: Vec<(CaptureEffect, Span)> =
        spans.filter(|(effect, _)| *effect != CaptureEffect::Ignored).collect();
    spans.sort_by_key(|(effect, span)| {
        let has_kind = *effect != CaptureEffect::Plain;
        (span.start, Reverse(span.end), has_kind, span.pattern_index)
    });
    let mut kinds: Vec<Option<TokenKind>> = vec![None; text.len()];
    for (effect, span) in spans {
        let kind = match effect {
            CaptureEffect::Token(kind) => Some(kind),
            CaptureEffect::Plain | CaptureEffect::Ignored => None,
        };
        let end = (span.end as usize).min(kinds.len());
        if let Some(bytes) = kinds.get_mut(span.start as usize..end) {
            bytes.fill(kind);
        }
    }
    let mut rest = kinds.as_slice();
    text.split('\n')
        .map(|line| {
            let (kinds, after) = rest.split_at(line.len());
            rest = after.get(1..).unwrap_or_default();
            if line.len() > LONGEST_CODE_LINE { Vec::new() } else { words(line, kinds) }
        })
        .collect()
}

/// Returns the words of one line, without the white space around them.
fn words(line: &str, kinds: &[Option<TokenKind>]) -> Vec<TokenSpan> {
    let mut found = Vec::new();
    let mut at = 0;
    for run in kinds.chunk_by(|one, next| one == next) {
        let (start, end) = (at, at + run.len());
        at = end;
        let bytes = &line.as_bytes()[start..end];
        let trimmed = bytes.trim_ascii_start();
        let start = end - trimmed.len();
        let end = start + trimmed.trim_ascii_end().len();
        if let Some(kind) = run[0].filter(|_| start < end) {
            let byte = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            found.push(TokenSpan { start: byte(start), end: byte(end), kind });
        }
    }
    found
}
