//! Tests of the colours of code in the changes.

use std::fmt::Write as _;
use std::sync::Arc;

use diff::CodeBlob;
use model::code::{CodeLanguage, CodeTokens, TokenKind, TokenSpan};

use super::*;

const COLOR: Theme = Theme { color: true, ..PLAIN };

fn stage(theme: Theme) -> Stage {
    let mut stage = Stage::new(80, 24);
    stage.screen.theme = theme;
    let effects = stage.press("Enter");
    stage.open(&effects, opened("ada", 0));
    stage
}

fn blob(id: &str) -> CodeBlob {
    CodeBlob { id: id.to_owned(), language: CodeLanguage::Rust }
}

/// The words of the sample, as the grammar finds them.
fn tokens(last: &str) -> Arc<CodeTokens> {
    let keyword = TokenKind::Keyword;
    let span = |start: u32, end: u32, kind| TokenSpan { start, end, kind };
    let mut lines = vec![Vec::new(); 39];
    let (kind, name) = (TokenKind::Type, TokenKind::Function);
    lines.push(vec![span(0, 2, keyword), span(3, 8, name), span(14, 20, kind), span(21, 27, kind)]);
    let call = u32::try_from(last.len()).expect("a small number") + 30;
    lines.push(vec![
        span(4, 7, keyword),
        span(17, 20, name),
        span(21, 28, TokenKind::String),
        span(30, call, name),
    ]);
    Arc::new(lines)
}

/// Draws a page with the names of its colours in a second picture.
fn colors(stage: &mut Stage) -> String {
    let buffer = stage.draw();
    let mut text = String::new();
    for row in buffer.content.chunks(usize::from(stage.size.width)) {
        let symbols: String = row.iter().map(|cell| cell.symbol()).collect();
        let _ = writeln!(text, "{}", symbols.trim_end());
        let colors: Vec<String> = row.iter().map(|cell| format!("{:?}", cell.fg)).collect();
        let mut at = 0;
        let mut found = Vec::new();
        for run in colors.chunk_by(|one, next| one == next) {
            if run[0] != "Reset" {
                let words: String = row[at..at + run.len()].iter().map(|c| c.symbol()).collect();
                found.push(format!("{} {words:?}", run[0]));
            }
            at += run.len();
        }
        if !found.is_empty() {
            let _ = writeln!(text, "      {}", found.join(", "));
        }
    }
    text
}

#[test]
fn drawn_code_is_requested_once_and_gets_its_colors() {
    let mut stage = stage(COLOR);
    let effects = stage.screen.drawn_effects();
    let code = vec![blob("1111111"), blob("2222222")];
    assert_eq!(effects, [ReviewEffect::ReadCode { member: name("ada"), code }]);
    assert_eq!(stage.screen.drawn_effects(), [], "asked for once");
    for (id, last) in [("1111111", "unwrap"), ("2222222", "")] {
        let news = ReviewNews::Code { code: blob(id), tokens: tokens(last) };
        assert_eq!(stage.screen.apply(news), []);
    }
    insta::assert_snapshot!("colors_dark", colors(&mut stage));
    stage.press("R");
    assert_eq!(stage.screen.drawn_effects(), [], "not while changes are read");
}

#[test]
fn light_theme_has_its_own_colours() {
    let mut stage = stage(Theme { light: true, ..COLOR });
    stage.screen.drawn_effects();
    let news = ReviewNews::Code { code: blob("2222222"), tokens: tokens("") };
    stage.screen.apply(news);
    let text = colors(&mut stage);
    assert!(text.contains("Cyan \"\\\"TOKEN\\\"\""), "{text}");
    assert!(!text.contains("Light"), "{text}");
}

#[test]
fn theme_without_colors_requests_no_code() {
    let mut stage = stage(PLAIN);
    assert_eq!(stage.screen.drawn_effects(), []);
}

/// RV-41: words of other changes do not appear in those that replace them.
#[test]
fn rv_41_words_of_another_content_are_dropped() {
    let mut stage = stage(COLOR);
    let plain = stage.draw();
    stage.screen.drawn_effects();
    let late = ReviewNews::Code { code: blob("9999999"), tokens: tokens("") };
    stage.screen.apply(late.clone());
    assert_eq!(stage.draw(), plain);
    stage.press("q");
    assert_eq!(stage.screen.apply(late), [], "the list is on the screen");
    let effects = stage.press("Enter");
    stage.open(&effects, opened("ada", 0));
    assert_eq!(stage.screen.drawn_effects().len(), 1, "asked for again");
}
