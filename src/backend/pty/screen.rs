//! Computes what a terminal shows from its program's output: live, or from the end of a log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use model::members::input::Modes;
use sys::fs::{self, FsError};

/// Bytes at the end of the log that are drawn. Earlier output has been overwritten or has scrolled
/// off.
const TAIL: u64 = 256 * 1024;
/// Lines kept after they have scrolled off the top of the screen.
const SCROLLBACK: usize = 10_000;

/// [`SCROLLBACK`] for a live screen in memory: at 200 columns, this takes 3 MB.
pub const LIVE_SCROLLBACK: usize = 500;

/// Smallest and largest size. A larger terminal would cost memory without benefit.
const ROWS: (u16, u16) = (1, 500);
const COLS: (u16, u16) = (2, 1000);

/// Aborts an incomplete escape sequence and switches to the alternate screen, so that the content
/// of the person's primary screen is kept.
const AFRESH: &[u8] = b"\x18\x1b[?1049h";

/// Largest depth of [`KeyModes::flags`]; terminals forget the oldest entries, too.
const DEPTH: usize = 16;

/// The ways of encoding keys, such as Shift-Enter, that the program has asked its terminal for.
#[derive(Default)]
struct KeyModes {
    /// The flags of the kitty protocol. The program pushes and pops them; the last ones apply.
    flags: Vec<u16>,
    /// The level of xterm's modifyOtherKeys.
    other_keys: u16,
}

impl vt100::Callbacks for KeyModes {
    fn unhandled_csi(
        &mut self,
        _: &mut vt100::Screen,
        mark: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        action: char,
    ) {
        let number = |nth: usize| params.get(nth).map_or(0, |param| param[0]);
        let unpopped = self.flags.len().saturating_sub(number(0).max(1).into());
        match (mark, action) {
            (Some(b'>'), 'm' | 'n') if number(0) == 4 => self.other_keys = number(1),
            (Some(b'>'), 'u') => self.flags.push(number(0)),
            (Some(b'<'), 'u') => self.flags.truncate(unpopped),
            (Some(b'='), 'u') => {
                let (now, given) = (self.flags.pop().unwrap_or(0), number(0));
                let changed = [given, given, now | given, now & !given];
                self.flags.push(changed[usize::from(number(1) % 4)]);
            }
            _ => {}
        }
        self.flags.drain(..self.flags.len().saturating_sub(DEPTH));
    }
}

pub(crate) struct LiveScreen {
    terminal: vt100::Parser<KeyModes>,
}

impl LiveScreen {
    pub(crate) fn new((rows, cols): (u16, u16)) -> LiveScreen {
        let (rows, cols) = (rows.clamp(ROWS.0, ROWS.1), cols.clamp(COLS.0, COLS.1));
        let (keys, kept) = (KeyModes::default(), LIVE_SCROLLBACK);
        LiveScreen { terminal: vt100::Parser::new_with_callbacks(rows, cols, kept, keys) }
    }

    /// Rows and columns.
    pub(crate) fn size(&self) -> (u16, u16) {
        self.terminal.screen().size()
    }

    /// Draws the program's output. Returns true if the program switched between its primary and its
    /// alternate screen: a terminal that follows must then get [`LiveScreen::repaint`] instead of
    /// these bytes, because followers stay on their alternate screen.
    pub(crate) fn process(&mut self, bytes: &[u8]) -> bool {
        let before = self.terminal.screen().alternate_screen();
        self.guarded(|terminal| terminal.process(bytes));
        before != self.terminal.screen().alternate_screen()
    }

    /// Row and column of the cursor, counted from 0.
    pub(crate) fn cursor(&self) -> (u16, u16) {
        self.terminal.screen().cursor_position()
    }

    /// Takes another size, clamped to the limits; returns it if it differs from the current one.
    pub(crate) fn resize(&mut self, (rows, cols): (u16, u16)) -> Option<(u16, u16)> {
        let size = (rows.clamp(ROWS.0, ROWS.1), cols.clamp(COLS.0, COLS.1));
        if size == self.size() {
            return None;
        }
        self.guarded(|terminal| terminal.screen_mut().set_size(size.0, size.1));
        Some(size)
    }

    /// Returns bytes that make a terminal of this size show the same, with the same modes: cursor,
    /// keypad, encoding of keys, paste, mouse.
    pub(crate) fn repaint(&mut self) -> Vec<u8> {
        let mut bytes = AFRESH.to_vec();
        let KeyModes { flags, other_keys } = self.terminal.callbacks();
        let flags = flags.last().unwrap_or(&0);
        bytes.extend(format!("\x1b[={flags};1u\x1b[>4;{other_keys}m").into_bytes());
        bytes.extend(
            self.guarded(|terminal| terminal.screen().state_formatted()).unwrap_or_default(),
        );
        bytes
    }

    /// The modes that affect the encoding of input.
    pub(crate) fn modes(&self) -> Modes {
        let screen = self.terminal.screen();
        Modes {
            application_cursor: screen.application_cursor(),
            bracketed_paste: screen.bracketed_paste(),
        }
    }

    /// Returns the last `lines` lines up to the last non-blank one, without trailing blanks.
    pub(crate) fn lines(&mut self, lines: usize) -> String {
        self.guarded(|terminal| {
            let found = last(terminal.screen_mut(), lines);
            terminal.screen_mut().set_scrollback(0);
            found
        })
        .unwrap_or_default()
    }

    /// Returns the line in which the program may ask for input.
    pub(crate) fn prompt_line(&mut self) -> Option<String> {
        self.guarded(|terminal| prompt_line(terminal.screen())).flatten()
    }

    /// Runs `work` and catches its panics: if hostile output ended the thread that reads it, the
    /// program would block. After a panic, the screen restarts empty.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut vt100::Parser<KeyModes>) -> T) -> Option<T> {
        let size = self.size();
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut self.terminal))).ok();
        if done.is_none() {
            *self = LiveScreen::new(size);
        }
        done
    }
}

/// Draws the end of a log on a terminal of `size` (rows, columns) and returns its last lines up to
/// the last non-blank one, without trailing blanks.
pub(super) fn last_lines(log: &Path, size: (u16, u16), lines: usize) -> Result<String, FsError> {
    let mut bytes = fs::read_tail(log, TAIL)?;
    let missing = TAIL.saturating_sub(bytes.len() as u64);
    if missing > 0 {
        // The log may have been rotated a moment ago.
        let before = fs::read_tail(&fs::older(log), missing)?;
        bytes.splice(..0, before);
    }
    Ok(draw(&bytes, size, lines))
}

fn draw(bytes: &[u8], (rows, cols): (u16, u16), lines: usize) -> String {
    let drawn = catch_unwind(|| {
        let mut terminal = vt100::Parser::new(rows, cols, SCROLLBACK);
        terminal.process(bytes);
        last(terminal.screen_mut(), lines)
    });
    drawn.unwrap_or_default()
}

fn last(screen: &mut vt100::Screen, lines: usize) -> String {
    let (rows, cols) = screen.size();
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

/// Returns the line in which a program asks for input: the text before the cursor, or the last line
/// above it that is not blank. `None` on the alternate screen, which belongs to full-screen
/// programs.
fn prompt_line(screen: &vt100::Screen) -> Option<String> {
    if screen.alternate_screen() {
        return None;
    }
    let (row, column) = screen.cursor_position();
    let (_, columns) = screen.size();
    let before = screen.rows(0, column).nth(usize::from(row)).unwrap_or_default();
    let above = || {
        let rows: Vec<String> = screen.rows(0, columns).take(usize::from(row)).collect();
        rows.into_iter().rev().find(|line| !line.trim().is_empty())
    };
    if before.trim().is_empty() { above() } else { Some(before) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (u16, u16) = (5, 20);

    fn numbered(range: std::ops::Range<usize>) -> String {
        range.map(|n| format!("line {n}\r\n")).collect()
    }

    #[test]
    fn scrolled_off_lines_are_returned() {
        let text = numbered(0..100);
        let wanted =
            |range: std::ops::Range<usize>| numbered(range).replace('\r', "").trim_end().to_owned();
        for (lines, first) in
            [(1, 99), (4, 96), (5, 95), (6, 94), (7, 93), (20, 80), (100, 0), (500, 0)]
        {
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
    fn alternate_screen_content_is_shown() {
        let drawn = draw(b"before\r\n\x1b[?1049h\x1b[Hmenu\r\nold\x1b[2;1Hnew", SIZE, 20);
        assert_eq!(drawn, "menu\nnew");
    }

    #[test]
    fn truncated_sequences_and_invalid_utf8_are_tolerated() {
        assert_eq!(draw(b";31mx\xff\xfe\r\n\xe2\x82", SIZE, 20).lines().count(), 1);
    }

    #[test]
    fn rotated_log_continues_the_older_one() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let log = dir.path().join("a.log");
        assert_eq!(last_lines(&log, SIZE, 20).expect("a missing log is empty"), "");
        fs::create_new(&fs::older(&log), b"one\r\n").expect("writable");
        fs::create_new(&log, b"two\r\n").expect("writable");
        assert_eq!(last_lines(&log, SIZE, 20).expect("readable"), "one\ntwo");
    }

    /// Returns a second terminal that receives what a follower receives.
    fn follow(live: &mut LiveScreen, parts: &[&[u8]]) -> vt100::Parser {
        let (rows, cols) = live.size();
        let mut outer = vt100::Parser::new(rows, cols, 0);
        outer.process(b"the person's own\r\n");
        outer.process(&live.repaint());
        for part in parts {
            let bytes = if live.process(part) { live.repaint() } else { part.to_vec() };
            outer.process(&bytes);
        }
        outer
    }

    #[test]
    fn follower_sees_earlier_and_later_output() {
        let mut live = LiveScreen::new((5, 20));
        live.process(b"\x1b[31mred\x1b[0m\r\n\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[?1h> ");
        let mut outer = follow(&mut live, &[b"typed"]);
        assert_eq!(outer.screen().contents(), "red\n> typed");
        assert_eq!(outer.screen().state_formatted(), live.terminal.screen().state_formatted());
        outer.process(b"\x1b[?1049l");
        assert_eq!(outer.screen().contents(), "the person's own");
    }

    #[test]
    fn pt_13_repaint_brings_the_encoding_of_keys_back() {
        let table: [(&[u8], &str); 9] = [
            (b"", "=0;1u\x1b[>4;0m"),
            (b"\x1b[?2004h\x1b[>1u", "=1;1u\x1b[>4;0m"),
            (b"\x1b[>1u\x1b[>5u\x1b[<u", "=1;1u\x1b[>4;0m"),
            (b"\x1b[>1u\x1b[>5u\x1b[<9u", "=0;1u\x1b[>4;0m"),
            (b"\x1b[=5u\x1b[=2;2u\x1b[=1;3u", "=6;1u\x1b[>4;0m"),
            (b"\x1b[>4;2m", "=0;1u\x1b[>4;2m"),
            (b"\x1b[>4;2m\x1b[>4m", "=0;1u\x1b[>4;0m"),
            (b"\x1b[>4;1m\x1b[>4n", "=0;1u\x1b[>4;0m"),
            (b"\x1b[u\x1b[4;1m\x1b[?1u", "=0;1u\x1b[>4;0m"),
        ];
        for (output, keys) in table {
            let mut live = LiveScreen::new((5, 20));
            live.process(output);
            let bytes = String::from_utf8(live.repaint()).expect("text");
            let begin = format!("\x18\x1b[?1049h\x1b[{keys}");
            assert!(bytes.starts_with(&begin), "{output:?}: {bytes:?}");
        }
        let mut live = LiveScreen::new((5, 20));
        live.process(&b"\x1b[>1u".repeat(100));
        assert_eq!(live.terminal.callbacks().flags.len(), DEPTH);
    }

    #[test]
    fn screen_switches_keep_the_followers_primary_screen() {
        let mut live = LiveScreen::new((5, 20));
        live.process(b"main");
        let mut outer =
            follow(&mut live, &[b"\x1b[?1049h\x1b[Hmenu", b"\x1b[?10", b"49lafter\x1b]0;cut"]);
        assert_eq!(outer.screen().contents(), "mainafter");
        outer.process(b"\x1b\\\x1b[?1049l");
        assert_eq!(outer.screen().contents(), "the person's own");
    }

    #[test]
    fn extreme_sizes_and_hostile_output_are_harmless() {
        let mut live = LiveScreen::new((0, 0));
        let hostile: [&[u8]; 5] = [
            b"\x1b[999999999;999999999H\xe4\xb8\xad\xe4\xb8\xad\x1b[99999S\x1b[99999T\x1b[99999L\x1b[99999M",
            b"\x1b[1;1r\x1b[?6h\x1b[9;9H\x1b[99999@\x1b[99999P\x1b[99999X\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb",
            b"\x1b[?1049h\x1b[?47l\x1bM\x1bM\x1b8\x1b[0;0r\x1b[5;2r\xcc\x81\xcc\x81",
            b"\x1b]52;c;aGk=\x07\x1bPq#0\x1b\\\x1b_x\x1b\\\xff\xfe\x9b31m\x00\x08\x08\x08",
            b"\x1b[38;2;1m\x1b[38;5m\x1b[;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;m\t\t\t\x1bc",
        ];
        for size in [(1, 2), (u16::MAX, u16::MAX), (2, 3), (0, 80), (3, 2), (24, 80)] {
            live.resize(size);
            for bytes in hostile {
                live.process(bytes);
                live.repaint();
                assert!(!live.lines(600).contains('\x1b'));
            }
        }
        live.process(b"\x1bc\x1b[?1049l\x1b[2J\x1b[H\x1b[mstill there");
        assert_eq!(live.lines(1), "still there");
        assert_eq!(live.resize((24, 80)), None);
        assert_eq!(live.resize((u16::MAX, 0)), Some((500, 2)));
    }

    #[test]
    fn line_of_the_cursor_or_the_last_one_above_is_found() {
        let table = [
            ("one\r\nContinue? ", Some("Continue? ")),
            ("Continue?\r\n\r\n", Some("Continue?")),
            ("Ok? (y/N) yes\x1b[3D", Some("Ok? (y/N)")),
            ("", None),
            ("Sure?\x1b[?1049h~\r\nSure?", None),
        ];
        for (output, expected) in table {
            let mut terminal = vt100::Parser::new(5, 20, 0);
            terminal.process(output.as_bytes());
            let found = prompt_line(terminal.screen());
            let found = found.as_deref().map(str::trim_end);
            assert_eq!(found, expected.map(str::trim_end), "{output:?}");
        }
    }
}
