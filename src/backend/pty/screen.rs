//! What a terminal showed last, from the bytes that its program printed. Knows no processes.

use std::path::Path;

use crate::sys::fs::{self, FsError};

/// So much of the log's end is drawn. What a program drew before that has been drawn over or has scrolled away.
const TAIL: u64 = 256 * 1024;
/// Lines that are kept after they have left the screen at its top.
const SCROLLBACK: usize = 10_000;

/// The last lines with anything on them, of a terminal of `size` (rows, columns), without trailing blanks.
pub(super) fn last_lines(log: &Path, size: (u16, u16), lines: usize) -> Result<String, FsError> {
    let mut bytes = fs::read_tail(log, TAIL)?;
    let missing = TAIL.saturating_sub(bytes.len() as u64);
    if missing > 0 {
        // The log may have been begun anew a moment ago.
        let before = fs::read_tail(&fs::older(log), missing)?;
        bytes.splice(..0, before);
    }
    Ok(draw(&bytes, size, lines))
}

fn draw(bytes: &[u8], (rows, cols): (u16, u16), lines: usize) -> String {
    let mut terminal = vt100::Parser::new(rows, cols, SCROLLBACK);
    terminal.process(bytes);
    let screen = terminal.screen_mut();
    let mut found: Vec<String> = screen.rows(0, cols).collect();
    let is_blank = |line: &String| line.trim_end().is_empty();
    found.truncate(found.iter().rposition(|line| !is_blank(line)).map_or(0, |last| last + 1));
    let mut above = 0;
    while found.len() < lines {
        screen.set_scrollback(above + usize::from(rows));
        let new = screen.scrollback() - above;
        if new == 0 {
            break;
        }
        above += new;
        let page: Vec<String> = screen.rows(0, cols).take(new).collect();
        found.splice(..0, page);
    }
    let first = found.len().saturating_sub(lines);
    let ended: Vec<&str> = found[first..].iter().map(|line| line.trim_end()).collect();
    ended.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (u16, u16) = (5, 20);

    fn numbered(range: std::ops::Range<usize>) -> String {
        range.map(|n| format!("line {n}\r\n")).collect()
    }

    #[test]
    fn lines_that_have_scrolled_away_are_found() {
        let text = numbered(0..100);
        let wanted = |range: std::ops::Range<usize>| numbered(range).replace('\r', "").trim_end().to_owned();
        for (lines, first) in [(1, 99), (4, 96), (5, 95), (6, 94), (7, 93), (20, 80), (100, 0), (500, 0)] {
            assert_eq!(draw(text.as_bytes(), SIZE, lines), wanted(first..100), "{lines}");
        }
        assert_eq!(draw(b"", SIZE, 20), "");
        assert_eq!(draw(text.as_bytes(), SIZE, 0), "");
    }

    #[test]
    fn colours_and_cursor_moves_become_plain_text() {
        let drawn = draw(b"\x1b[2J\x1b[H\x1b[31mred\x1b[0m\x1b[3;5Hhere\x1b]0;title\x07", SIZE, 20);
        assert_eq!(drawn, "red\n\n    here");
        assert!(!drawn.contains('\x1b'));
    }

    #[test]
    fn a_full_screen_program_is_shown_as_it_stands() {
        let drawn = draw(b"before\r\n\x1b[?1049h\x1b[Hmenu\r\nold\x1b[2;1Hnew", SIZE, 20);
        assert_eq!(drawn, "menu\nnew");
    }

    #[test]
    fn a_cut_sequence_and_bytes_that_are_no_text_do_no_harm() {
        assert_eq!(draw(b";31mx\xff\xfe\r\n\xe2\x82", SIZE, 20).lines().count(), 1);
    }

    #[test]
    fn a_log_begun_anew_continues_the_older_one() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let log = dir.path().join("a.log");
        assert_eq!(last_lines(&log, SIZE, 20).expect("a missing log is empty"), "");
        fs::create_new(&fs::older(&log), b"one\r\n").expect("writable");
        fs::create_new(&log, b"two\r\n").expect("writable");
        assert_eq!(last_lines(&log, SIZE, 20).expect("readable"), "one\ntwo");
    }
}
