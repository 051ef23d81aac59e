//! Tests of the colours of code in a diff.

use std::sync::Arc;

use model::code::{CodeLanguage, TokenKind, TokenSpan};
use proptest::prelude::*;
use ratatui::style::{Color, Modifier, Style};

use super::round_trip::{patches, text};
use super::*;
use crate::CodeBlob;

const OLD: &str = "1111111";
const NEW: &str = "2222222";

fn style(kind: TokenKind) -> Style {
    match kind {
        TokenKind::Keyword => Style::default().fg(Color::Magenta),
        TokenKind::String => Style::default().fg(Color::Yellow),
        _ => Style::default(),
    }
}

fn colored(patch: Patch, cols: u16, rows: u16) -> Stage {
    let mut stage = Stage::new(patch, cols, rows);
    let view = std::mem::replace(&mut stage.view, DiffView::new("", Patch::default(), false));
    stage.view = DiffView { has_color: true, ..view }.with_token_styles(style);
    stage
}

fn blob(id: &str, language: CodeLanguage) -> CodeBlob {
    CodeBlob { id: id.to_owned(), language }
}

fn span(start: u32, end: u32, kind: TokenKind) -> TokenSpan {
    TokenSpan { start, end, kind }
}

/// Returns the style of the first cell with this text to its right.
fn style_of(buffer: &Buffer, text: &str) -> (Color, Modifier) {
    let width = usize::from(buffer.area.width);
    for row in buffer.content.chunks(width) {
        let line: String = row.iter().map(|cell| cell.symbol()).collect();
        if let Some(at) = line.find(text) {
            let cell = &row[line[..at].chars().count()];
            return (cell.fg, cell.modifier);
        }
    }
    panic!("{text} is not on the screen")
}

fn symbols(buffer: &Buffer) -> Vec<&str> {
    buffer.content.iter().map(|cell| cell.symbol()).collect()
}

#[test]
fn words_are_colored_on_both_sides_and_keep_changed_words() {
    for cols in [80, 160] {
        let mut stage = colored(patch(SAMPLE), cols, 24);
        let before = stage.draw();
        let code = |spans: &[TokenSpan]| {
            let head = vec![span(0, 2, TokenKind::Keyword), span(10, 12, TokenKind::Comment)];
            Arc::new([vec![Vec::new(); 39], vec![head, spans.to_vec()]].concat())
        };
        let (name, text) = (span(1, 4, TokenKind::Keyword), span(18, 25, TokenKind::String));
        let old = code(&[name, text]);
        stage.view.set_colors(&blob(OLD, CodeLanguage::Python), &old);
        assert_eq!(stage.draw(), before, "the file has another language");
        stage.view.set_colors(&blob(OLD, CodeLanguage::Rust), &old);
        let new = code(&[name, span(26, 27, TokenKind::Keyword)]);
        stage.view.set_colors(&blob(NEW, CodeLanguage::Rust), &new);
        let after = stage.draw();
        assert_eq!(symbols(&after), symbols(&before));
        assert_eq!(style_of(&after, "fn token").0, Color::Magenta);
        assert!(style_of(&after, "() ->").1.is_empty());
        assert_eq!(style_of(&after, "let t = env::var(\"TOKEN\").u").0, Color::Magenta);
        assert_eq!(style_of(&after, "\"TOKEN\").u").0, Color::Yellow);
        assert_eq!(style_of(&after, "t = env::var(\"TOKEN\").u").0, Color::Red);
        assert_eq!(style_of(&after, "let t = env::var(\"TOKEN\")?").0, Color::Magenta);
        assert_eq!(style_of(&after, "?;"), (Color::Green, Modifier::REVERSED));
    }
}

#[test]
fn code_of_visible_files_and_of_the_next_one_is_wanted() {
    let stage = |rows| {
        let mut stage = colored(patch(SAMPLE), 80, rows);
        stage.draw();
        stage
    };
    let rust = [blob(OLD, CodeLanguage::Rust), blob(NEW, CodeLanguage::Rust)];
    assert_eq!(stage(5).view.visible_code(), rust);
    assert_eq!(stage(40).view.visible_code(), rust, "other files are plain");
    let mut folded = stage(40);
    folded.keys("k");
    folded.press(KeyCode::Enter);
    folded.draw();
    assert_eq!(folded.view.visible_code(), []);
    let two = SAMPLE.replace("notes.txt", "notes.md").replace("logo.png", "logo.rs");
    let mut stage = colored(patch(&two), 80, 30);
    stage.draw();
    let wanted = stage.view.visible_code();
    assert_eq!(wanted[..2], rust);
    assert_eq!(wanted[2..], [blob(NEW, CodeLanguage::Markdown)], "no binary file, no old side");
    let whole = Annotation { place: AnnotationPlace::Whole, ..draft(1, 1, "fine") };
    stage.view.set_annotations(vec![whole]);
    stage.keys("g");
    stage.draw();
    assert_eq!(stage.view.visible_code(), wanted, "below a comment on the whole");
    assert_eq!(DiffView::new("", Patch::default(), true).visible_code(), []);
}

#[test]
fn new_patch_is_plain_until_its_words_arrive() {
    let mut stage = colored(patch(SAMPLE), 80, 24);
    let plain = stage.draw();
    let tokens = Arc::new(vec![vec![span(0, 99, TokenKind::Keyword)]; 99]);
    stage.view.set_colors(&blob(NEW, CodeLanguage::Rust), &tokens);
    assert_ne!(stage.draw(), plain);
    stage.view.set_patch("ada · demo-ada · 1a2b3c4 → 9f8e7d6", patch(SAMPLE));
    assert_eq!(stage.draw(), plain);
    let mut mono = Stage::sample(80, 24);
    let plain = mono.draw();
    mono.view.set_colors(&blob(NEW, CodeLanguage::Rust), &tokens);
    assert_eq!(mono.draw(), plain, "without colours");
}

fn kind() -> impl Strategy<Value = TokenKind> {
    prop::sample::select(vec![TokenKind::Keyword, TokenKind::String, TokenKind::Comment])
}

fn spans() -> impl Strategy<Value = Vec<TokenSpan>> {
    let end = || prop_oneof![0..40u32, any::<u32>()];
    prop::collection::vec((end(), end(), kind()).prop_map(TokenSpan::from), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    /// RV-41: no words of a program that has gone wrong change what is shown.
    #[test]
    fn rv_41_any_words_keep_the_text(
        patch in patches(),
        line in text(),
        tokens in prop::collection::vec(spans(), 0..8),
        keys in prop::collection::vec(prop::sample::select("jjjltw".chars().collect::<Vec<_>>()), 0..6),
        size in (0..220u16, 0..40u16),
    ) {
        let mut patch = patch;
        for file in &mut patch.files {
            (file.new_blob, file.old_blob) = (Some(NEW.to_owned()), Some(OLD.to_owned()));
            for name in [&mut file.new, &mut file.old].into_iter().flatten() {
                *name = b"a.rs".to_vec();
            }
            for (at, shown) in file.hunks.iter_mut().flat_map(|hunk| &mut hunk.lines).enumerate() {
                if at % 3 == 0 {
                    shown.text = line.iter().copied().filter(|byte| *byte != b'\n').collect();
                }
            }
        }
        let mut stage = colored(patch, size.0, size.1);
        keys.iter().for_each(|key| drop(stage.press(KeyCode::Char(*key))));
        let plain = stage.draw();
        let tokens = Arc::new(tokens);
        for id in [OLD, NEW] {
            stage.view.set_colors(&blob(id, CodeLanguage::Rust), &tokens);
        }
        let colored = stage.draw();
        prop_assert_eq!(symbols(&plain), symbols(&colored));
        let backgrounds = |buffer: &Buffer| buffer.content.iter().map(|cell| cell.bg).collect::<Vec<_>>();
        prop_assert_eq!(backgrounds(&plain), backgrounds(&colored));
    }
}
