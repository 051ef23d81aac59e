//! Which part of what a program prints nobody can see any more once the rest is drawn. Knows the bytes only. What a
//! [`Look`](super::Look) does not show, as synchronized output, counts for nothing here; of what is left out, what it says of
//! the text to come stays: how that is drawn, and whether there is a cursor.

use std::ops::Range;

use memchr::{memchr, memrchr};

const ESCAPE: u8 = 0x1b;

/// What a program prints until it does something else than drawing: it tells its terminal something, or asks it.
pub(super) struct Drawing {
    /// Bytes; the escape that begins the something else is the last.
    pub(super) length: usize,
    /// The parts of them that make the picture at their end, in order; the others are drawn over or wiped off. Those end
    /// and begin with an escape: whatever was begun before, an escape ends it.
    pub(super) seen: Vec<Range<usize>>,
}

impl Drawing {
    /// The first of these bytes, on a screen of so many rows and columns.
    pub(super) fn at(bytes: &[u8], (rows, cols): (u16, u16)) -> Drawing {
        let mut strokes = Vec::new();
        let mut stroke = None;
        let mut at = 0;
        let length = loop {
            let more = text(&bytes[at..]);
            let text = &bytes[at..at + more];
            at += more;
            stroke.iter_mut().for_each(|stroke: &mut Stroke| stroke.write(text, cols));
            if at == bytes.len() {
                break at;
            }
            let Some((act, length)) = Act::at(&bytes[at..]) else { break at + 1 };
            let current = stroke.get_or_insert(Stroke::anywhere(at));
            if let Act::Place(row, col) = act {
                let next = Stroke::placed(at, row.clamp(1, rows) - 1, col.clamp(1, cols) - 1);
                strokes.extend(std::mem::replace(current, next).parts());
            } else {
                current.draw(act, at..at + length, cols);
            }
            at += length;
        };
        let first = strokes.first().or(stroke.as_ref()).map_or(length, |stroke| stroke.from);
        strokes.extend(stroke);
        Drawing { length, seen: seen(&strokes, usize::from(rows), first, length) }
    }
}

/// What is left to be seen of these strokes, and of what stands before the first.
fn seen(strokes: &[Stroke], rows: usize, first: usize, length: usize) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut add = |part: Range<usize>| match parts.last_mut() {
        Some(after) if after.start == part.end => after.start = part.start,
        _ => parts.push(part),
    };
    let mut wiped = vec![false; rows];
    let (mut until, mut all_wiped) = (length, false);
    for stroke in strokes.iter().rev() {
        let part = stroke.from..std::mem::replace(&mut until, stroke.from);
        if all_wiped || stroke.row.is_some_and(|row| wiped[usize::from(row)]) {
            stroke.lasting(part.end).for_each(&mut add);
            continue;
        }
        match stroke.row {
            Some(row) => wiped[usize::from(row)] = stroke.wipes == Wipes::Row,
            None => wiped.fill(false),
        }
        add(part);
        all_wiped = stroke.wipes == Wipes::All;
    }
    add(0..first);
    parts.reverse();
    parts
}

/// What is drawn from one placing of the cursor to the next.
struct Stroke {
    from: usize,
    /// The row that it does not leave, so that all others stay as they are; none: it may do anything to any of them.
    row: Option<u16>,
    wipes: Wipes,
    /// The cursor stands in this column, or left of it.
    col: usize,
    /// It may stand in the first, where a character without width belongs to the row above.
    outermost: bool,
    /// All that is left of it was written by this stroke.
    from_left: bool,
    /// Where all was erased, if nothing was written since.
    erased: Option<usize>,
    /// What it says of the cursor.
    shows: Option<Range<usize>>,
    /// What it says of how text is drawn, from where it begins anew.
    style: Vec<Range<usize>>,
}

/// What there was before and is to be seen no more after a stroke.
#[derive(PartialEq)]
enum Wipes {
    Nothing,
    Row,
    All,
}

impl Stroke {
    /// From wherever the cursor is.
    fn anywhere(from: usize) -> Stroke {
        Stroke { row: None, ..Stroke::placed(from, 0, 0) }
    }

    fn placed(from: usize, row: u16, col: u16) -> Stroke {
        let (row, outermost) = (Some(row), col == 0);
        let (wipes, col) = (Wipes::Nothing, usize::from(col));
        let (shows, style) = (None, Vec::new());
        Stroke { from, row, wipes, col, outermost, from_left: outermost, erased: None, shows, style }
    }

    /// What stays of it before `end` if it is not drawn, the last first.
    fn lasting(&self, end: usize) -> impl Iterator<Item = Range<usize>> {
        let mut lasting: Vec<Range<usize>> = self.shows.iter().chain(&self.style).cloned().collect();
        lasting.retain(|part| (self.from..end).contains(&part.start));
        lasting.sort_unstable_by_key(|part| std::cmp::Reverse(part.start));
        lasting.into_iter()
    }

    fn write(&mut self, text: &[u8], cols: u16) {
        let Some(first) = text.first() else { return };
        self.erased = None;
        if self.row.is_none() {
            return;
        }
        let returns = any(text, |byte| byte == 0x08 || byte == b'\r');
        self.outermost = returns || self.outermost && !(0x20..0x7f).contains(first);
        // A character has at most as many columns as bytes.
        self.col += text.len();
        let leaves = any(text, |byte| (b'\t'..=0x0c).contains(&byte)) || self.col > usize::from(cols);
        if leaves || self.outermost && !text.is_ascii() {
            self.row = None;
        }
    }

    fn draw(&mut self, act: Act, part: Range<usize>, cols: u16) {
        match act {
            Act::Place(_, _) | Act::Nothing => {}
            Act::Show => self.shows = Some(part),
            Act::Style { anew } => {
                if anew {
                    self.style.clear();
                }
                self.style.push(part);
            }
            Act::EraseAll => (self.row, self.wipes, self.erased) = (None, Wipes::All, Some(part.start)),
            Act::EraseRow if self.row.is_some() => self.wipes = Wipes::Row,
            // Behind the last column nothing is erased, not even that the row goes on in the next.
            Act::EraseRest if self.row.is_some() && self.from_left && self.col < usize::from(cols) => {
                self.wipes = Wipes::Row;
            }
            Act::EraseRow | Act::EraseRest => {}
            Act::Other => self.row = None,
        }
    }

    /// Where the cursor was is no matter when it is placed right after all was erased: then the erasing is a stroke of
    /// its own, and the only one that counts.
    fn parts(self) -> impl Iterator<Item = Stroke> {
        let erasing = self.erased.map(|at| {
            let (shows, style) = (self.shows.clone(), self.style.clone());
            Stroke { wipes: Wipes::All, shows, style, ..Stroke::anywhere(at) }
        });
        [Some(self), erasing].into_iter().flatten()
    }
}

/// What a sequence does to the picture.
enum Act {
    /// Places the cursor, wherever it was, in this row and column, from 1.
    Place(u16, u16),
    EraseAll,
    EraseRow,
    /// From the cursor to the end of the row.
    EraseRest,
    /// Shows the cursor or hides it.
    Show,
    /// Says how text is drawn that comes; whatever was said before counts no more.
    Style {
        anew: bool,
    },
    /// Nothing that is looked at.
    Nothing,
    Other,
}

impl Act {
    /// The complete sequence at the beginning, and its length; none where it does something else than drawing, too.
    fn at(bytes: &[u8]) -> Option<(Act, usize)> {
        let sequence = bytes.strip_prefix(b"\x1b[")?;
        if sequence.starts_with(b"?25l") || sequence.starts_with(b"?25h") {
            return Some((Act::Show, 6));
        }
        if sequence.starts_with(b"?2026h") || sequence.starts_with(b"?2026l") {
            return Some((Act::Nothing, 8));
        }
        let length = sequence.iter().position(|byte| !(byte.is_ascii_digit() || b";:".contains(byte)))?;
        let act = match (&sequence[..length], sequence[length]) {
            (numbers, b'H') => place(numbers),
            (b"2", b'J') => Act::EraseAll,
            (b"2", b'K') => Act::EraseRow,
            (b"" | b"0", b'K') => Act::EraseRest,
            (numbers, b'm') => Act::Style { anew: is_anew(numbers) },
            (_, b'@'..=b'G' | b'J'..=b'M' | b'P' | b'S' | b'T' | b'X' | b'd') => Act::Other,
            (_, _) => return None,
        };
        Some((act, length + 3))
    }
}

/// Two numbers or fewer; what is written otherwise places the cursor as well, somewhere.
fn place(numbers: &[u8]) -> Act {
    let mut parts = numbers.split(|byte| *byte == b';').map(|part| match part {
        b"" => Some(1),
        digits => std::str::from_utf8(digits).ok()?.parse().ok(),
    });
    match (parts.next().flatten(), parts.next().unwrap_or(Some(1)), parts.next()) {
        (Some(row), Some(col), None) => Act::Place(row, col),
        (_, _, _) => Act::Other,
    }
}

/// How many bytes, from the first, no escape is among.
fn text(bytes: &[u8]) -> usize {
    memchr(ESCAPE, bytes).unwrap_or(bytes.len())
}

/// Looks at all of them, which takes less time than to look for the first.
fn any(bytes: &[u8], is: impl Fn(u8) -> bool) -> bool {
    bytes.iter().fold(false, |any, byte| any | is(*byte))
}

/// How many of these bytes, from the first, only write lines and colour them.
pub(super) fn lines(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let text = &bytes[at..at + text(&bytes[at..])];
        if let Some(control) = control(text) {
            return at + control;
        }
        at += text.len();
        match colour(&bytes[at..]) {
            Some(length) => at += length,
            None => return at,
        }
    }
}

/// Whether the numbers of a `ESC [ … m` take back all that was said before.
fn is_anew(numbers: &[u8]) -> bool {
    numbers.is_empty() || numbers == b"0" || numbers.starts_with(b"0;")
}

/// What lines that are not drawn say of how text is drawn that comes, in order.
pub(super) fn style(lines: &[u8]) -> Vec<Range<usize>> {
    let (mut parts, mut end) = (Vec::new(), lines.len());
    while let Some(at) = memrchr(ESCAPE, &lines[..end]) {
        // Half a sequence has its end behind.
        if let Some(length) = colour(&lines[at..]) {
            parts.push(at..at + length);
            if is_anew(&lines[at + 2..at + length - 1]) {
                break;
            }
        }
        end = at;
    }
    parts.reverse();
    parts
}

/// Where in a text the first character stands that is neither written nor begins a line.
fn control(text: &[u8]) -> Option<usize> {
    // The second begins the control characters above ASCII, and others.
    let may_be = |byte: u8| byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r') || byte == 0xc2;
    let is = |at: usize| {
        may_be(text[at]) && (text[at] != 0xc2 || text.get(at + 1).is_none_or(|next| *next < 0xa0))
    };
    any(text, may_be).then(|| (0..text.len()).find(|at| is(*at))).flatten()
}

/// The length of a complete `ESC [ … m` at the beginning.
fn colour(bytes: &[u8]) -> Option<usize> {
    let numbers = bytes.strip_prefix(b"\x1b[")?;
    let length = numbers.iter().position(|byte| !(byte.is_ascii_digit() || b";:".contains(byte)))?;
    (numbers[length] == b'm').then_some(length + 3)
}

/// The part of a run of lines that has scrolled away at its end, if the row where it begins was made by scrolling, which
/// shows in that it is empty. It begins where the cursor has come down as far as it can, behind a line with something
/// written, and ends before the last twice `rows` lines, which push out whatever was there. What came before the run may be
/// half a sequence, which a letter ends, or half a string, which only a colour ends: from there on lines are lines.
pub(super) fn scrolled_away(run: &[u8], rows: usize) -> Option<Range<usize>> {
    let from = |at: usize, is: fn(&u8) -> bool| run[at..].iter().position(is).map(|more| at + more);
    let colour = from(0, |byte| *byte == 0x1b).unwrap_or(0);
    let letter = from(colour, |byte| matches!(byte, 0x40..=0x7e) && *byte != b'[')?;
    let breaks = run.iter().enumerate().skip(letter).filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    let written = breaks.skip(rows).find(|at| writes(&run[at + 1..]))?;
    let start = from(written + 1, |byte| *byte == b'\n')? + 1;
    let mut ends = run.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    // The line break before the last ones is drawn, too: they begin at the left.
    let end = ends.nth(2 * rows)?.checked_sub(1).filter(|at| *at >= start && run[*at] == b'\r')?;
    Some(start..end)
}

/// Whether a line that begins so writes something.
fn writes(line: &[u8]) -> bool {
    match colour(line) {
        Some(length) => writes(&line[length..]),
        None => line.first().is_some_and(u8::is_ascii_graphic),
    }
}
