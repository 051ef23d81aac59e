//! The rows of an agent's Markdown, streamed in pieces of any size.

use super::*;

/// Returns the rows of `source` when it arrives in pieces of `size` characters.
fn rows(source: &str, cols: u16, size: usize) -> Vec<String> {
    let mut stage = Stage::ready(cols, 24);
    let chars: Vec<char> = source.chars().collect();
    for piece in chars.chunks(size) {
        stage.text(&piece.iter().collect::<String>());
    }
    let bytes = stage.conversation.finish();
    stage.feed(&bytes);
    stage.history()
}

#[test]
fn markdown_is_drawn_the_same_for_pieces_of_any_size() {
    for (source, expected) in [
        ("# Title\ntext **bold** `code` *it*", vec!["Title", "text bold code it"]),
        ("a\n\n\n\nb", vec!["a", "", "b"]),
        (
            "- one two three four five\n- x\n  - y\n\n  z",
            vec!["- one two three four", "  five", "- x", "  - y", "", "  z"],
        ),
        ("9. a\n10. b\n    - c", vec!["9. a", "10. b", "    - c"]),
        ("```rust\nfn a() {}\n\n\tb\n```\nafter", vec!["│ fn a() {}", "│", "│     b", "after"]),
        ("1. a\n   ```\n   x\n     y\n   ```\n2. b", vec!["1. a", "   │ x", "   │   y", "2. b"]),
        ("> quoted text that is long\n\nc", vec!["> quoted text that is", "> long", "", "c"]),
        ("[a](http://b)\n<http://c>", vec!["a (http://b)", "http://c"]),
        ("- [x] done\n- [ ] open", vec!["- [x] done", "- [ ] open"]),
        ("two\nlines", vec!["two", "lines"]),
        ("a\n\n---\n\nb", vec!["a", "", "───", "", "b"]),
        ("[x]: http://hidden", vec!["[x]: http://hidden"]),
        ("the year\n1999. was", vec!["the year", "1999. was"]),
        ("| a | b |\n|---|---|\n| 1 | 22 |", vec!["a  b", "─  ──", "1  22"]),
        ("<b>html</b>", vec!["<b>html</b>"]),
        ("```\nunclosed", vec!["│ unclosed"]),
        ("a\r\n\r\nb", vec!["a", "", "b"]),
        ("漢字漢字漢字漢字漢字漢字漢字", vec!["漢字漢字漢字漢字漢字漢", "字漢字"]),
    ] {
        for size in [1, 3, 1000] {
            assert_eq!(rows(source, 22, size), expected, "{source:?} in pieces of {size}");
        }
    }
}

#[test]
fn wide_table_wraps_its_cells_and_a_narrow_terminal_lists_fields() {
    let source = "| name | about |\n|---|---|\n| port | reads the port of a text |\n| x | y |";
    let expected = [
        "name  about",
        "────  ──────────────",
        "port  reads the port",
        "      of a text",
        "x     y",
    ];
    assert_eq!(rows(source, 20, 7), expected);
    let expected =
        ["name: port", "about: reads", "  the port", "  of a text", "", "name: x", "about: y"];
    assert_eq!(rows(source, 12, 7), expected);
}

#[test]
fn unfinished_text_is_shown_and_its_beginning_cut() {
    let mut stage = Stage::ready(30, 13);
    for n in 0..100 {
        stage.text(&format!("word{n} "));
    }
    let rows = stage.screen();
    assert_eq!(rows.len(), 9, "{rows:?}");
    assert!(rows[0].starts_with("… ") && rows[0].ends_with(" more lines"), "{rows:?}");
    assert!(rows[5].ends_with("word99"), "{rows:?}");
}

#[test]
fn endless_paragraph_is_divided_and_nothing_is_lost() {
    let mut stage = Stage::ready(80, 24);
    let words: Vec<String> = (0..20_000).map(|n| format!("w{n}")).collect();
    stage.text(&words.join(" "));
    let bytes = stage.conversation.finish();
    stage.feed(&bytes);
    let text = stage.history().join(" ");
    assert!(text.split_whitespace().eq(words.iter().map(String::as_str)));
}

#[test]
fn messages_with_different_ids_are_separate_paragraphs() {
    let mut stage = Stage::ready(80, 24);
    for (id, text) in [("1", "a"), ("1", "b"), ("2", "c")] {
        stage.report(SessionReport::Text { message: Some(id.to_owned()), text: text.to_owned() });
    }
    assert_eq!(stage.screen()[..3], ["ab", "", "c"]);
}

#[test]
fn frame_of_a_piece_does_not_grow_with_the_message() {
    let mut stage = Stage::ready(80, 24);
    for n in 0..3000 {
        let end = if n % 50 == 49 { "\n\n" } else { " " };
        let report = SessionReport::Text { message: None, text: format!("word{n}{end}") };
        stage.conversation.report(&report, 0);
        let frame = stage.conversation.frame(0);
        assert!(frame.len() < 1500, "{} bytes", frame.len());
    }
}
