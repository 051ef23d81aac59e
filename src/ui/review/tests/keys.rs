//! Each key in each view.

use super::super::keys::{CHANGES_HELP, LIST_KEYS};
use super::*;

/// The keys that open each view from the list.
const LIST_VIEWS: [&str; 8] = ["", "?", "x", "y", "M", "u", "r", "Enter"];
/// The same from the changes: the help, the list of files, a search, a range, the bases, the
/// editor, a draft, a comment with an answer, and questions.
const CHANGES_VIEWS: [&str; 11] =
    ["", "?", "f", "/", "jjjv", "b", "jjjjc", "mm Enter", "mmm Enter", "y", "M"];

const CODES: [KeyCode; 17] = [
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
    KeyCode::F(1),
    KeyCode::Null,
    KeyCode::Char('\u{1b}'),
];

fn codes() -> impl Iterator<Item = KeyCode> {
    (' '..='~').map(KeyCode::Char).chain(CODES)
}

/// Opens a view, which is one of the list or one of the changes.
fn view(cols: u16, rows: u16, is_list: bool, keys: &str) -> Stage {
    let mut stage = if is_list { Stage::new(cols, rows) } else { Stage::with_changes(cols, rows) };
    if !keys.is_empty() {
        stage.press(keys);
    }
    stage
}

#[test]
fn rv_14_each_key_works_in_each_view_at_each_size() {
    for (cols, rows) in [(60, 14), (3, 2), (0, 0)] {
        let views = LIST_VIEWS.map(|keys| (true, keys)).into_iter();
        for (is_list, keys) in views.chain(CHANGES_VIEWS.map(|keys| (false, keys))) {
            let mut current = view(cols, rows, is_list, keys);
            let mut before = current.picture();
            for code in codes() {
                for modifiers in [KeyModifiers::NONE, KeyModifiers::CONTROL] {
                    let effects = current.event(code, modifiers);
                    let shown = current.picture();
                    if !effects.is_empty() || shown != before {
                        current.press("j Enter");
                        current = view(cols, rows, is_list, keys);
                        before = current.picture();
                    }
                }
            }
        }
    }
}

#[test]
fn rv_14_help_names_every_key_that_does_something() {
    // Words of the help that stand for keys.
    let names = |words: &str| -> Vec<KeyCode> {
        let named = words.split(' ').filter_map(|word| match word {
            "↓" => Some(KeyCode::Down),
            "↑" => Some(KeyCode::Up),
            "←" => Some(KeyCode::Left),
            "→" => Some(KeyCode::Right),
            "Home" => Some(KeyCode::Home),
            "End" => Some(KeyCode::End),
            "Enter" => Some(KeyCode::Enter),
            "Esc" => Some(KeyCode::Esc),
            "Tab" => Some(KeyCode::Tab),
            "space" => Some(KeyCode::Char(' ')),
            "PgDn" => Some(KeyCode::PageDown),
            "PgUp" => Some(KeyCode::PageUp),
            one if one.chars().count() == 1 => one.chars().next().map(KeyCode::Char),
            _ => None,
        });
        named.collect()
    };
    let list_keys: Vec<KeyCode> = LIST_KEYS.iter().flat_map(|key| names(key.shown.0)).collect();
    let changes_keys: Vec<KeyCode> =
        CHANGES_HELP.iter().chain(&diff::KEYS).flat_map(|key| names(key.0)).collect();
    for (view, named) in [("list", list_keys), ("changes", changes_keys)] {
        for code in codes() {
            let mut stage = if view == "list" {
                Stage::new(160, 24)
            } else {
                let mut stage = Stage::with_changes(160, 24);
                stage.press("jjjj");
                stage
            };
            let before = stage.picture();
            let effects = stage.event(code, KeyModifiers::NONE);
            let is_unbound = effects.is_empty() && stage.picture() == before;
            assert!(is_unbound || named.contains(&code), "{view}: {code:?} is not in the help");
        }
    }
}

#[test]
fn each_key_of_the_list_does_what_its_help_says() {
    let is_page = |stage: &mut Stage, words: &str| {
        assert!(stage.picture().contains(words), "{words}: {}", stage.picture());
    };
    let mut stage = Stage::new(80, 24);
    stage.press("j");
    assert_eq!(stage.screen.selected, Some(name("bob")));
    stage.press("G");
    assert_eq!(stage.screen.selected, Some(name("dan")));
    stage.press("k");
    assert_eq!(stage.screen.selected, Some(name("cyd")));
    stage.press("s");
    is_page(&mut stage, "you have not looked at the work of cyd before");
    stage.press("g");
    assert_eq!(stage.screen.selected, Some(name("ada")));
    stage.press("x");
    is_page(&mut stage, "ada and bob change the same files:");
    stage.press("Esc ?");
    is_page(&mut stage, "approve the task in review; asks");
    stage.press("Esc !");
    is_page(&mut stage, "you have not looked at the work of cyd before");
    assert_eq!(stage.press("Esc R"), [ReviewEffect::ReadList]);
    let effects = stage.press("s");
    assert!(
        matches!(effects.as_slice(), [ReviewEffect::Open(request)]
            if request.range == super::super::DiffRange::SinceLook && request.member == name("ada")),
        "{effects:?}"
    );
    assert_eq!(stage.press("Esc"), [ReviewEffect::Cancel]);
    assert_eq!(stage.press("q"), [ReviewEffect::Quit]);
}

#[test]
fn message_that_is_too_long_for_the_row_is_shown_by_a_key() {
    let mut stage = Stage::new(80, 24);
    let problem = format!("first {}\nsecond", "x".repeat(100));
    stage.done(ReviewAction::Undo { into: "main".to_owned(), main: commit("1") }, Err(&problem));
    assert!(stage.last_row().ends_with("… (! all)"), "{}", stage.last_row());
    stage.press("!");
    assert!(stage.picture().contains("second"), "{}", stage.picture());
}
