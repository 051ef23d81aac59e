//! Tab in the command palette.

use super::super::dialog::OpenDialog;
use super::{THEME, dashboard, picture, press};
use crate::dashboard::{CompletionRequest, Dashboard, Effect, PaletteCandidate};

/// Stands for the engine: words that begin with what is typed.
fn answer(dashboard: &mut Dashboard, effects: Vec<Effect>) -> Vec<CompletionRequest> {
    let mut asked = Vec::new();
    let mut effects = effects;
    while let Some(effect) = effects.pop() {
        let Effect::Complete(request) = effect else { continue };
        let words: &[(&str, &str)] = match request.words.as_slice() {
            [] => &[("send", "Send a message"), ("spawn", "Start members"), ("status", "Show")],
            [verb] if verb == "send" => &[("ada", ""), ("ben", "")],
            [verb] if verb == "spawn" => &[("--theme=dark", ""), ("--theme=light", "")],
            _ => &[],
        };
        let fits = words.iter().filter(|(value, _)| value.starts_with(&request.current));
        let candidates = fits.map(|(value, about)| PaletteCandidate {
            value: (*value).to_owned(),
            about: (*about).to_owned(),
        });
        effects.extend(dashboard.set_candidates(&request, candidates.collect()));
        asked.push(request);
    }
    asked
}

fn line(dashboard: &Dashboard) -> String {
    match &dashboard.dialog {
        Some(OpenDialog::TextPrompt(prompt)) => prompt.editor.text(),
        other => panic!("the palette is open, not {other:?}"),
    }
}

/// Opens the palette and presses keys, each after the answer to the one before it.
fn palette(keys: &str) -> Dashboard {
    let mut dashboard = dashboard(THEME);
    for key in format!(": {keys}").split_whitespace() {
        let effects = press(&mut dashboard, key);
        answer(&mut dashboard, effects);
    }
    dashboard
}

#[test]
fn tab_completes_what_is_unique_and_then_cycles() {
    let table = [
        ("sp Tab", "spawn "),
        ("s Tab", "send"),
        ("s Tab Tab", "spawn"),
        ("s Tab Tab Tab Tab", "send"),
        ("s BTab", "status"),
        ("s BTab BTab", "spawn"),
        ("s Down Down Up", "send"),
        ("x Tab", "x"),
        ("sen Tab Tab", "send ada"),
        ("sen Tab b Tab", "send ben "),
        ("sp Tab -- Tab", "spawn --theme="),
        ("sp Tab -- Tab Tab", "spawn --theme=dark"),
        // A word in the middle of the line.
        ("s x Left Tab", "sendx"),
    ];
    for (keys, expected) in table {
        assert_eq!(line(&palette(keys)), expected, "{keys}");
    }
}

#[test]
fn tab_before_the_answer_applies_to_the_answer() {
    let mut dashboard = dashboard(THEME);
    let effects = press(&mut dashboard, ": sp Tab");
    assert_eq!(line(&dashboard), "sp", "nothing is known yet");
    let asked = answer(&mut dashboard, effects);
    assert_eq!(line(&dashboard), "spawn ");
    let words = CompletionRequest { words: vec!["spawn".to_owned()], current: String::new() };
    assert!(asked.contains(&words), "the next word is requested: {asked:?}");
}

#[test]
fn answer_about_an_earlier_line_is_dropped() {
    let mut dashboard = dashboard(THEME);
    let first = press(&mut dashboard, ": s");
    press(&mut dashboard, "x Tab");
    answer(&mut dashboard, first);
    assert_eq!(line(&dashboard), "sx");
    press(&mut dashboard, "Escape");
    let late = CompletionRequest { words: Vec::new(), current: "sx".to_owned() };
    let words = vec![PaletteCandidate { value: "sxy".to_owned(), about: String::new() }];
    assert_eq!(dashboard.set_candidates(&late, words), [], "the palette is closed");
}

#[test]
fn candidates_are_shown_with_their_descriptions_and_position() {
    let mut dashboard = palette("s");
    insta::assert_snapshot!("palette", picture(&mut dashboard, 80, 24));
    let request = CompletionRequest { words: Vec::new(), current: "s".to_owned() };
    press(&mut dashboard, "x BSpace");
    let many = (1..=20)
        .map(|n| PaletteCandidate { value: format!("s{n}"), about: "\u{1b}[2Jhostile".to_owned() });
    dashboard.set_candidates(&request, many.collect());
    let shown = picture(&mut dashboard, 80, 24);
    assert!(shown.contains("Tab: 8 of 20") && !shown.contains('\u{1b}'), "{shown}");
    for _ in 0..9 {
        press(&mut dashboard, "Tab");
    }
    let shown = picture(&mut dashboard, 80, 24);
    assert!(shown.contains("9/20") && shown.contains("s9 "), "{shown}");
    for (width, height) in [(1, 1), (3, 2), (20, 4), (40, 10)] {
        picture(&mut dashboard, width, height);
    }
}
