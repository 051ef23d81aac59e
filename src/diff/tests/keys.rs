//! The effects of keys.

use super::*;
use crate::{CommentTarget, DiffSide};

/// The keys of the view, and some that it does not have.
const CODES: [KeyCode; 18] = [
    KeyCode::Up,
    KeyCode::Down,
    KeyCode::Left,
    KeyCode::Right,
    KeyCode::PageUp,
    KeyCode::PageDown,
    KeyCode::Home,
    KeyCode::End,
    KeyCode::Enter,
    KeyCode::Esc,
    KeyCode::Tab,
    KeyCode::BackTab,
    KeyCode::Backspace,
    KeyCode::Delete,
    KeyCode::Insert,
    KeyCode::F(1),
    KeyCode::Null,
    KeyCode::Char('\u{1b}'),
];

#[test]
fn rv_13_each_key_keeps_the_cursor_visible_at_each_size() {
    let letters = "jkgG][}{mPhl ftwW/nNVvcCAbq?xyz0";
    for (cols, rows) in [(80, 24), (120, 40), (200, 50), (40, 10), (1, 1), (3, 2), (0, 0)] {
        for first in CODES.into_iter().chain(letters.chars().map(KeyCode::Char)) {
            for second in [KeyCode::Down, KeyCode::Enter, KeyCode::Char('G'), KeyCode::Char('t')] {
                let mut stage = Stage::sample(cols, rows);
                stage.view.set_annotations(vec![draft(1, 41, "Return the error.")]);
                stage.keys("jj");
                for code in [first, second, second] {
                    stage.press(code);
                    stage.draw();
                    super::properties::check_cursor(&stage);
                }
            }
        }
    }
}

#[test]
fn owner_gets_the_target_of_a_comment() {
    let mut stage = Stage::sample(80, 24);
    assert_eq!(stage.keys("A"), Some(DiffAction::Comment(CommentTarget::Whole)));
    assert_eq!(stage.keys("c"), None);
    let path = b"src/auth.rs".to_vec();
    let file = CommentTarget::File { path: path.clone() };
    assert_eq!(stage.keys("C"), Some(DiffAction::Comment(file)));
    let quote = vec![b"\tlet t = env::var(\"TOKEN\").unwrap();".to_vec()];
    let old = CommentTarget::Lines {
        path: path.clone(),
        side: DiffSide::Old,
        first: 41,
        last: 41,
        quote,
    };
    assert_eq!(stage.keys("jjjc"), Some(DiffAction::Comment(old)));
    let quote = [b"\tlet t = env::var(\"TOKEN\")?;".as_slice(), b"\tOk(t)"].map(<[u8]>::to_vec);
    let range = CommentTarget::Lines {
        path,
        side: DiffSide::New,
        first: 41,
        last: 42,
        quote: quote.to_vec(),
    };
    assert_eq!(stage.keys("vjjc"), Some(DiffAction::Comment(range)));
}

#[test]
fn side_of_a_comment_is_chosen_side_by_side() {
    let mut stage = Stage::sample(160, 24);
    stage.keys("tjjj");
    let side = |action| match action {
        Some(DiffAction::Comment(CommentTarget::Lines { side, .. })) => side,
        other => panic!("no comment: {other:?}"),
    };
    assert_eq!(side(stage.keys("c")), DiffSide::New);
    stage.press(KeyCode::Tab);
    assert_eq!(side(stage.keys("c")), DiffSide::Old);
}

#[test]
fn owner_gets_viewed_files_and_other_requests() {
    let mut stage = Stage::sample(80, 24);
    let viewed = |viewed| {
        let (path, blob) = (b"src/auth.rs".to_vec(), Some("2222222".to_owned()));
        Some(DiffAction::Viewed { path, blob, viewed })
    };
    assert_eq!(stage.keys("jjV"), viewed(true));
    assert_eq!(stage.keys("V"), viewed(false));
    assert_eq!(stage.keys("W"), Some(DiffAction::IgnoreWhitespace(true)));
    stage.view.set_ignores_whitespace(true);
    assert_eq!(stage.keys("W"), Some(DiffAction::IgnoreWhitespace(false)));
    assert_eq!(stage.keys("b"), Some(DiffAction::ChooseBase));
    assert_eq!(stage.keys("q"), Some(DiffAction::Close));
    assert_eq!(stage.press(KeyCode::Esc), Some(DiffAction::Close));
    stage.keys("?");
    assert_eq!(stage.press(KeyCode::Esc), None);
}

#[test]
fn comments_are_reached_in_order_and_opened_also_in_folded_files() {
    let mut stage = Stage::sample(80, 24);
    let whole = Annotation { place: AnnotationPlace::Whole, ..draft(9, 0, "All of it.") };
    stage.view.set_annotations(vec![draft(1, 89, "Two."), draft(2, 41, "One."), whole]);
    stage.keys("gG");
    stage.view.set_viewed(&[b"src/auth.rs".to_vec()]);
    let mut opened = Vec::new();
    for _ in 0..3 {
        stage.keys("P");
        opened.push(stage.press(KeyCode::Enter));
    }
    assert_eq!(opened, [1, 2, 9].map(|id| Some(DiffAction::OpenAnnotation(id))));
    stage.keys("m");
    assert_eq!(stage.press(KeyCode::Enter), Some(DiffAction::OpenAnnotation(2)));
}

#[test]
fn cursor_stays_at_a_comment_when_comments_or_the_size_change() {
    let mut stage = Stage::sample(80, 24);
    let notes = || vec![draft(1, 89, "Two."), draft(2, 41, "One.")];
    stage.view.set_annotations(notes());
    stage.keys("mm");
    stage.size = Size::new(100, 12);
    stage.draw();
    stage.view.set_annotations(notes().into_iter().rev().collect());
    assert_eq!(stage.press(KeyCode::Enter), Some(DiffAction::OpenAnnotation(1)));
    stage.view.set_annotations(vec![draft(2, 41, "One.")]);
    assert!(stage.keys("c").is_some(), "it is at the line");
}

#[test]
fn comment_that_appears_above_the_first_row_is_visible_at_the_beginning() {
    let mut stage = Stage::sample(80, 24);
    stage.keys("jjg");
    let whole = Annotation { place: AnnotationPlace::Whole, ..draft(2, 0, "All of it.") };
    stage.view.set_annotations(vec![whole.clone()]);
    assert!(stage.screen().iter().any(|row| row.contains("All of it.")), "{:?}", stage.screen());
    // Elsewhere the rows of the screen stay where they are.
    let mut stage = Stage::sample(80, 6);
    stage.keys("jjjjjjjj");
    let before = stage.screen();
    stage.view.set_annotations(vec![whole]);
    assert_eq!(stage.screen()[1..5], before[1..5]);
}

#[test]
fn new_patch_keeps_viewed_files_and_the_file_of_the_cursor() {
    let mut stage = Stage::sample(80, 24);
    stage.view.set_viewed(&[b"src/auth.rs".to_vec()]);
    stage.keys("}}}");
    stage.view.set_patch("again", patch(SAMPLE));
    assert_eq!(stage.view.place().file, Some(3));
    assert_eq!(stage.view.viewed, [true, false, false, false]);
}
