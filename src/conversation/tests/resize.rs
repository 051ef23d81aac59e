//! Frames on terminals of changing sizes.

use super::*;

/// Asserts that the live region is on the screen exactly once.
fn assert_one_region(stage: &mut Stage) {
    let rows = stage.history();
    let statuses = rows.iter().filter(|row| row.starts_with("ada · ")).count();
    let composers = rows.iter().filter(|row| row.as_str() == ">").count();
    assert_eq!((statuses, composers), (1, 1), "{}", rows.join("\n"));
}

#[test]
fn each_finished_line_is_printed_exactly_once() {
    for (cols, rows) in [(120, 40), (80, 24), (40, 20), (20, 6)] {
        let mut stage = Stage::ready(cols, rows);
        stage.prompt("go");
        for n in 0..200 {
            for piece in [format!("para{n} with"), " some\nwords".to_owned(), "\n\n".to_owned()] {
                stage.text(&piece);
                stage.wait(300);
            }
            let id = format!("t{n}");
            for status in [ToolStatus::Pending, ToolStatus::Completed] {
                stage.report(SessionReport::Tool(tool(
                    &id,
                    ToolKind::Read,
                    &format!("#{n}#"),
                    status,
                )));
                stage.wait(700);
            }
        }
        stage.report(ended(Outcome::Done));
        let text = stage.history().join("\n");
        for n in 0..200 {
            assert_eq!(text.matches(&format!("para{n} with some")).count(), 1, "{cols}: {n}");
            assert_eq!(text.matches(&format!("✓ read #{n}#")).count(), 1, "{cols}: {n}");
        }
        assert_one_region(&mut stage);
    }
}

#[test]
fn resize_in_a_turn_leaves_one_live_region() {
    let mut stage = Stage::ready(80, 24);
    stage.prompt("go");
    stage.text("A paragraph that has not ended yet and is longer than the narrowest terminal here");
    stage.report(SessionReport::Tool(tool(
        "1",
        ToolKind::Execute,
        &"make ".repeat(20),
        ToolStatus::InProgress,
    )));
    stage.text("Another one that goes on while the size changes, with some more words in it");
    for (cols, rows) in [(40, 24), (80, 24), (60, 20), (20, 20), (100, 30), (37, 24), (80, 24)] {
        stage.resize(cols, rows);
        stage.draw();
        assert_one_region(&mut stage);
        stage.wait(1000);
        stage.text(" word");
        assert_one_region(&mut stage);
    }
    stage.report(ended(Outcome::Done));
    assert_one_region(&mut stage);
    let text = stage.history().join(" ");
    assert_eq!(text.matches("Another one").count(), 1, "{text}");
    assert_eq!(text.matches(" word word").count(), 3, "{text}");
}

#[test]
fn several_resizes_before_a_frame_leave_one_live_region() {
    let mut stage = Stage::ready(80, 24);
    play_to_question(&mut stage);
    for (cols, rows) in [(50, 24), (30, 30), (70, 30)] {
        stage.resize(cols, rows);
    }
    stage.draw();
    assert_one_region(&mut stage);
}

/// Plays changes of the size as tmux does: it wraps the rows at once, and reports the first change at
/// once but later ones 250 ms after the one before. Meanwhile the agent goes on.
fn play_resizes_of_tmux(stage: &mut Stage, sizes: &[(u16, u16)]) {
    let mut told: Option<u64> = None;
    for (cols, rows) in sizes {
        stage.resize_terminal(*cols, *rows);
        if told.is_none_or(|told| stage.now >= told + 250) {
            stage.conversation.resize(stage.size, stage.now);
            told = Some(stage.now);
        }
        for _ in 0..5 {
            stage.wait(20);
            stage.text("word ");
        }
    }
    stage.now = stage.now.max(told.unwrap_or(0) + 250);
    stage.conversation.resize(stage.size, stage.now);
    stage.wait(300);
}

#[test]
fn ac_14_frames_wait_while_tmux_has_not_told_all_sizes() {
    let sizes = [(60, 40), (45, 40), (100, 40), (37, 40), (50, 40)];
    for count in 1..=sizes.len() {
        let mut stage = Stage::ready(100, 40);
        stage.prompt("go");
        let call = tool("1", ToolKind::Execute, &"make ".repeat(20), ToolStatus::InProgress);
        stage.report(SessionReport::Tool(call));
        stage.text(&"some words of a paragraph ".repeat(8));
        play_resizes_of_tmux(&mut stage, &sizes[..count]);
        assert_one_region(&mut stage);
        let text = stage.history().join("\n");
        assert_eq!(text.matches("• run make").count(), 1, "{text}");
        assert_eq!(text.matches("some").count(), 8, "{text}");
    }
}

#[test]
fn frame_follows_once_the_size_has_settled() {
    let mut stage = Stage::ready(80, 24);
    let now = stage.now;
    stage.conversation.resize(TerminalSize { rows: 24, cols: 60 }, now);
    assert_eq!(stage.conversation.frame(now + 299), b"");
    assert_eq!(stage.conversation.next_frame(now + 299), Some(now + 300));
    assert_ne!(stage.conversation.frame(now + 300), b"");
    assert_eq!(stage.conversation.next_frame(now + 300), None);
    // A clock that was set back does not stop the frames.
    stage.conversation.resize(TerminalSize { rows: 24, cols: 70 }, now + 1_000_000);
    assert_ne!(stage.conversation.frame(now), b"");
}

#[test]
fn wide_characters_are_counted_after_a_resize() {
    let mut stage = Stage::ready(41, 20);
    stage.prompt("go");
    stage.text(&"漢字".repeat(30));
    for cols in [21, 33, 40, 23, 60] {
        stage.resize(cols, 20);
        stage.draw();
        assert_one_region(&mut stage);
    }
}

#[test]
fn cursor_is_in_the_composer_after_each_frame() {
    let mut stage = Stage::ready(20, 6);
    play_to_question(&mut stage);
    stage.type_text("漢e\u{301}x");
    let rows = stage.screen();
    assert_eq!(rows.last().map(String::as_str), Some("> 漢e\u{301}x"));
    assert_eq!(stage.cursor(), (rows.len() as u16 - 1, 6));
    stage.key(KeyCode::Left);
    stage.key(KeyCode::Left);
    assert_eq!(stage.cursor().1, 4);
}

#[test]
fn smallest_terminal_shows_status_options_and_composer() {
    let mut stage = Stage::ready(20, 6);
    stage.prompt("go");
    stage.report(SessionReport::Asked(touch(1)));
    let expected =
        ["… 4 more lines", "  3 Reject", "  y allow  n reject…", "waits for your answ…", ">"];
    assert_eq!(stage.bottom(5).lines().collect::<Vec<_>>(), expected);
}
