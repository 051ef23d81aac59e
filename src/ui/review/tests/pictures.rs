//! Pictures of each page and dialog in several sizes.

use super::*;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 50)];

#[test]
fn list_of_works_in_each_size() {
    for (cols, rows) in SIZES.into_iter().chain([(50, 16)]) {
        insta::assert_snapshot!(format!("list_{cols}x{rows}"), Stage::new(cols, rows).picture());
    }
}

#[test]
fn changes_in_each_size() {
    for (cols, rows) in SIZES.into_iter().chain([(50, 16)]) {
        let mut stage = Stage::with_changes(cols, rows);
        stage.press("jjj");
        insta::assert_snapshot!(format!("changes_{cols}x{rows}"), stage.picture());
    }
}

#[test]
fn editor_is_below_the_changes_in_each_size() {
    for (cols, rows) in SIZES {
        let mut stage = Stage::with_changes(cols, rows);
        stage.press("jjjjj c Tab This A-Enter loses_it");
        insta::assert_snapshot!(format!("editor_{cols}x{rows}"), stage.picture());
        assert!(stage.cursor.is_some());
    }
}

#[test]
fn dialogs_are_drawn_over_the_pages() {
    for (dialog, keys) in [
        ("help", "?"),
        ("overlaps", "x"),
        ("approve", "y"),
        ("merge", "M"),
        ("undo", "u"),
        ("message_unread", "r"),
        ("loading", "Enter"),
    ] {
        let mut stage = Stage::new(80, 24);
        stage.press(keys);
        insta::assert_snapshot!(format!("dialog_{dialog}"), stage.picture());
    }
    for (dialog, keys) in [
        ("changes_help", "?"),
        ("base", "b"),
        ("draft", "mm Enter o"),
        ("answered", "mmm Enter o"),
        ("gone", "m Enter"),
        ("reopen", "mmm Enter -"),
        ("leave", "A text Esc"),
        ("approve_changes", "y"),
    ] {
        let mut stage = Stage::with_changes(80, 24);
        stage.press(keys);
        insta::assert_snapshot!(format!("dialog_{dialog}"), stage.picture());
    }
}

#[test]
fn message_can_be_read_before_it_is_sent() {
    let mut stage = Stage::with_changes(80, 24);
    let effects = stage.press("r");
    let [ReviewEffect::ReadMessage { number, .. }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    let lines: Vec<String> = (0..40).map(|at| format!("    line {at} of the message")).collect();
    let text = Ok(format!("Review of the work of ada\n\n{}", lines.join("\n")));
    stage.screen.apply(ReviewNews::Message { number: *number, text });
    stage.press("jj");
    insta::assert_snapshot!("dialog_message", stage.picture());
}

#[test]
fn ascii_theme_draws_only_ascii() {
    for keys in ["?", "x", "M", "Enter"] {
        let mut stage = Stage::new(120, 40);
        stage.screen.theme.ascii = true;
        stage.press(keys);
        assert!(stage.picture().is_ascii(), "{}", stage.picture());
    }
    let mut stage = Stage::with_changes(120, 40);
    stage.screen.theme.ascii = true;
    stage.press("jjjc");
    assert!(stage.picture().is_ascii(), "{}", stage.picture());
}
