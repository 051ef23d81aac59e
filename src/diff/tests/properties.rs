//! Properties of any sequence of keys over any patch.

use proptest::prelude::*;

use super::round_trip::{patches, text};
use super::*;

/// Checks that the row of the cursor is drawn, and that no cell acts on the terminal.
pub(super) fn check_cursor(stage: &Stage) {
    let (view, height) = (&stage.view, stage.view.body_height().max(1));
    assert!(view.cursor < view.index.total().max(1));
    assert!((view.top..view.top + height).contains(&view.cursor), "{} {}", view.top, view.cursor);
    assert!(view.cursor != view.top || !view.is_pinned() || view.index.total() == 0);
}

fn check_cells(buffer: &Buffer) {
    for cell in &buffer.content {
        let hidden = |c: char| {
            c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert!(!cell.symbol().contains(hidden) && !cell.symbol().is_empty(), "{cell:?}");
    }
}

fn code() -> impl Strategy<Value = KeyCode> {
    let others = [
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::PageDown,
        KeyCode::PageUp,
        KeyCode::Tab,
        KeyCode::Backspace,
        KeyCode::Right,
    ];
    prop_oneof![
        4 => prop::sample::select("jkgG][}{mPhl ftwW/nNVvcCAb?ae".chars().collect::<Vec<_>>())
            .prop_map(KeyCode::Char),
        1 => prop::sample::select(others.to_vec()),
        1 => any::<char>().prop_map(KeyCode::Char),
    ]
}

fn annotation(patch: &Patch, at: usize, line: u32, text: &[u8]) -> Annotation {
    let text = String::from_utf8_lossy(text).into_owned();
    let path = patch.files.get(at).map_or(text.as_bytes(), |file| file.path()).to_vec();
    let lines = patch.files.get(at).and_then(|file| file.hunks.first());
    let line = lines.map_or(line, |hunk| hunk.new_start + line);
    let place = match at % 3 {
        0 => AnnotationPlace::Line { path, side: DiffSide::New, line },
        1 => AnnotationPlace::File { path },
        _ => AnnotationPlace::Whole,
    };
    let state =
        if line.is_multiple_of(2) { AnnotationState::Draft } else { AnnotationState::Resolved };
    Annotation { id: u64::from(line), place, state, label: text.clone(), rows: vec![text] }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn rv_13_any_keys_keep_the_cursor_visible(
        patch in patches(),
        other in patches(),
        notes in prop::collection::vec((0..6usize, 0..9u32, text()), 0..6),
        codes in prop::collection::vec(code(), 0..40),
        sizes in prop::collection::vec((0..220u16, 0..60u16), 1..4),
    ) {
        let mut stage = Stage::new(patch.clone(), 80, 24);
        let notes = notes.iter().map(|(at, line, text)| annotation(&patch, *at, *line, text));
        stage.view.set_annotations(notes.collect());
        for (at, code) in codes.iter().enumerate() {
            let (cols, rows) = sizes[at * sizes.len() / codes.len()];
            stage.size = Size::new(cols, rows);
            stage.press(*code);
            check_cursor(&stage);
            check_cells(&stage.draw());
            check_cursor(&stage);
            if at == 30 {
                stage.view.set_patch("other", other.clone());
            }
        }
    }

    #[test]
    fn each_line_is_found_by_its_number(patch in patches()) {
        for hunk in patch.files.iter().flat_map(|file| &file.hunks) {
            let blocks = crate::index::blocks(hunk);
            for (side, start, len) in [
                (DiffSide::Old, hunk.old_start, hunk.old_len),
                (DiffSide::New, hunk.new_start, hunk.new_len),
            ] {
                for number in start.saturating_sub(1)..=start + len {
                    let of_side = |line: &crate::PatchLine| match side {
                        DiffSide::Old => line.old,
                        DiffSide::New => line.new,
                    };
                    let expected = hunk.lines.iter().position(|line| of_side(line) == Some(number));
                    prop_assert_eq!(crate::index::numbered(hunk, &blocks, side, number), expected);
                }
            }
        }
    }

    #[test]
    fn each_row_is_found_again_by_its_place(
        patch in patches(),
        notes in prop::collection::vec((0..6usize, 0..9u32, text()), 0..6),
        is_split in any::<bool>(),
    ) {
        let mut stage = Stage::new(patch.clone(), 200, 24);
        let notes = notes.iter().map(|(at, line, text)| annotation(&patch, *at, *line, text));
        stage.view.set_annotations(notes.collect());
        if is_split {
            stage.keys("t");
        }
        stage.draw();
        let view = &mut stage.view;
        for row in 0..view.index.total() {
            view.cursor = row;
            match view.row(row).expect("a row") {
                crate::index::DiffRow::Note { note, part } => {
                    prop_assert_eq!(view.index.row_of_note(note), Some(row - part));
                }
                _ => prop_assert_eq!(view.index.row_of(&view.blocks, view.place()), row),
            }
        }
        prop_assert_eq!(view.row(view.index.total()), None);
    }
}

#[test]
fn rv_12_hostile_names_lines_and_comments_become_visible_marks() {
    let hostile =
        "a\u{1b}[2J\u{1b}]0;t\u{7}\rb\u{8}\u{9b}5A\u{202e}c\u{61c}\u{2028}\u{200b}\u{0}\u{7f}";
    let mut patch = patch(SAMPLE);
    for file in &mut patch.files {
        file.new = Some(hostile.as_bytes().to_vec());
        for hunk in &mut file.hunks {
            hunk.section = hostile.as_bytes().to_vec();
            for line in &mut hunk.lines {
                line.text = hostile.as_bytes().to_vec();
            }
        }
    }
    for (cols, rows) in [(40, 10), (80, 24), (160, 40)] {
        let mut stage = Stage::new(patch.clone(), cols, rows);
        let note = Annotation { label: hostile.to_owned(), ..draft(1, 41, hostile) };
        stage.view.set_annotations(vec![note]);
        stage.view.set_patch(hostile, patch.clone());
        for key in ["j", "t", "f", "f", "l", "/", hostile, "?"] {
            stage.keys(key);
            check_cells(&stage.draw());
        }
        stage.press(KeyCode::Esc);
        stage.press(KeyCode::Enter);
        check_cells(&stage.draw());
    }
    let rows = Stage::new(patch, 160, 40).screen().join("\n");
    assert!(rows.contains("a␛[2J␛]0;t␇␍b␈"), "{rows}");
}
