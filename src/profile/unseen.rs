//! Which part of what a program prints nobody can see any more once the rest is drawn. Knows the bytes only. What a
//! [`Look`](super::Look) does not show, as synchronized output, counts for nothing here; of what is left out, what it says of
//! the text to come stays: how that is drawn, and whether there is a cursor.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

const ESCAPE: u8 = 0x1b;
/// Lines are looked for in so many bytes at once.
const BLOCK: usize = 512;

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
        let mut at = text(bytes);
        let mut sketch = Sketch::from(at);
        let length = loop {
            if at == bytes.len() {
                break at;
            }
            let Some((act, length)) = Act::at(&bytes[at..]) else { break at + 1 };
            sketch.draw(act, at..at + length, (rows, cols));
            at += length;
            let more = text(&bytes[at..]);
            sketch.stroke.write(&bytes[at..at + more], cols);
            at += more;
        };
        Drawing { length, seen: sketch.seen(usize::from(rows), length) }
    }
}

/// The strokes of a drawing. There may be thousands: what is kept of each is little, and that together.
struct Sketch {
    over: Vec<Part>,
    /// The last one.
    stroke: Stroke,
    /// What strokes say of how text is drawn, from where each begins anew, in order.
    style: Vec<Range<usize>>,
    /// The last that each says of the cursor, in order.
    shows: Vec<Range<usize>>,
}

/// What is drawn from one placing of the cursor to the next, or from where all was erased.
struct Part {
    from: usize,
    /// The row that it does not leave, so that all others stay as they are; none: it may do anything to any of them.
    row: Option<u16>,
    wipes: Wipes,
}

/// What there was before and is to be seen no more after a part.
#[derive(Clone, Copy, PartialEq)]
enum Wipes {
    Nothing,
    Row,
    All,
}

impl Sketch {
    /// Begins at this byte, wherever the cursor is.
    fn from(first: usize) -> Sketch {
        let stroke = Stroke { row: None, ..Stroke::placed(first, 0, 0) };
        Sketch { over: Vec::new(), stroke, style: Vec::new(), shows: Vec::new() }
    }

    fn draw(&mut self, act: Act, part: Range<usize>, (rows, cols): (u16, u16)) {
        match act {
            Act::Place(row, col) => {
                let (row, col) = (row.clamp(1, rows) - 1, col.clamp(1, cols) - 1);
                let next = Stroke {
                    style: self.style.len(),
                    shows: self.shows.len(),
                    ..Stroke::placed(part.start, row, col)
                };
                let Stroke { from, row, wipes, erased, .. } =
                    std::mem::replace(&mut self.stroke, next);
                self.over.push(Part { from, row, wipes });
                // Where the cursor was is no matter when it is placed right after all was erased: then the erasing is a
                // part of its own, and the only one that counts.
                self.over.extend(erased.map(|from| Part { from, row: None, wipes: Wipes::All }));
            }
            Act::Style { anew } => {
                if anew {
                    self.style.truncate(self.stroke.style);
                }
                self.style.push(part);
            }
            Act::Show => {
                self.shows.truncate(self.stroke.shows);
                self.shows.push(part);
            }
            Act::Erase(area) => self.stroke.erase(area, part.start, cols),
            Act::Nothing => {}
            Act::Other => self.stroke.row = None,
        }
    }

    /// What is left to be seen, up to this byte, and of what stands before the first stroke.
    fn seen(mut self, rows: usize, length: usize) -> Vec<Range<usize>> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut add = |part: Range<usize>| match parts.last_mut() {
            Some(after) if after.start == part.end => after.start = part.start,
            _ => parts.push(part),
        };
        let Stroke { from, row, wipes, .. } = self.stroke;
        self.over.push(Part { from, row, wipes });
        let mut wiped = vec![false; rows];
        let (mut until, mut all_wiped) = (length, false);
        while let Some(Part { from, row, wipes }) = self.over.pop() {
            let part = from..std::mem::replace(&mut until, from);
            let unseen = all_wiped || row.is_some_and(|row| wiped[usize::from(row)]);
            while let Some(lasting) = self.last_said(from) {
                if unseen {
                    add(lasting);
                }
            }
            if unseen {
                continue;
            }
            match row {
                Some(row) => wiped[usize::from(row)] = wipes == Wipes::Row,
                None => wiped.fill(false),
            }
            add(part);
            all_wiped = wipes == Wipes::All;
        }
        add(0..until);
        parts.reverse();
        parts
    }

    /// Takes the last that is said for the text to come, not before this byte.
    fn last_said(&mut self, from: usize) -> Option<Range<usize>> {
        let start = |said: &[Range<usize>]| said.last().map(|part| part.start);
        let later =
            if start(&self.shows) > start(&self.style) { &mut self.shows } else { &mut self.style };
        later.pop_if(|part| part.start >= from)
    }
}

/// The part that is drawn now.
struct Stroke {
    from: usize,
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
    /// So much was said of how text is drawn, and of the cursor, before it.
    style: usize,
    shows: usize,
}

impl Stroke {
    fn placed(from: usize, row: u16, col: u16) -> Stroke {
        let (row, outermost) = (Some(row), col == 0);
        let (wipes, col) = (Wipes::Nothing, usize::from(col));
        Stroke {
            from,
            row,
            wipes,
            col,
            outermost,
            from_left: outermost,
            erased: None,
            style: 0,
            shows: 0,
        }
    }

    fn write(&mut self, text: &[u8], cols: u16) {
        let Some(first) = text.first() else { return };
        self.erased = None;
        if self.row.is_none() {
            return;
        }
        let odd = !is_printable(text);
        let returns = odd && any(text, |byte| byte == 0x08 || byte == b'\r');
        self.outermost =
            returns || self.outermost && !(0x20..0x7f).contains(first) && !is_symbol(text);
        self.col += if odd { columns(text) } else { text.len() };
        let leaves =
            odd && any(text, |byte| (b'\t'..=0x0c).contains(&byte)) || self.col > usize::from(cols);
        if leaves || odd && self.outermost && !text.is_ascii() {
            self.row = None;
        }
    }

    fn erase(&mut self, area: Erased, at: usize, cols: u16) {
        // Behind the last column nothing is erased, not even that the row goes on in the next.
        let is_all_left = self.from_left && self.col < usize::from(cols);
        match area {
            Erased::All => (self.row, self.wipes, self.erased) = (None, Wipes::All, Some(at)),
            Erased::Row if self.row.is_some() => self.wipes = Wipes::Row,
            Erased::Rest if self.row.is_some() && is_all_left => self.wipes = Wipes::Row,
            Erased::Row | Erased::Rest => {}
        }
    }
}

/// What a sequence does to the picture.
enum Act {
    /// Places the cursor, wherever it was, in this row and column, from 1.
    Place(u16, u16),
    Erase(Erased),
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

/// What is erased.
enum Erased {
    All,
    Row,
    /// From the cursor to the end of the row.
    Rest,
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
        let length =
            sequence.iter().position(|byte| !(byte.is_ascii_digit() || b";:".contains(byte)))?;
        let act = match (&sequence[..length], sequence[length]) {
            (numbers, b'H') => place(numbers),
            (b"2", b'J') => Act::Erase(Erased::All),
            (b"2", b'K') => Act::Erase(Erased::Row),
            (b"" | b"0", b'K') => Act::Erase(Erased::Rest),
            (numbers, b'm') => Act::Style { anew: is_anew(numbers) },
            (_, b'@'..=b'G' | b'J'..=b'M' | b'P' | b'S' | b'T' | b'X' | b'd') => Act::Other,
            (_, _) => return None,
        };
        Some((act, length + 3))
    }
}

/// Two numbers or fewer; what is written otherwise places the cursor as well, somewhere.
fn place(numbers: &[u8]) -> Act {
    let number = |number: u16, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u16::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    };
    let mut parts = numbers.split(|byte| *byte == b';').map(|part| match part {
        b"" => Some(1),
        digits => digits.iter().try_fold(0, number),
    });
    match (parts.next().flatten(), parts.next().unwrap_or(Some(1)), parts.next()) {
        (Some(row), Some(col), None) => Act::Place(row, col),
        (_, _, _) => Act::Other,
    }
}

/// How many bytes, from the first, no escape is among.
fn text(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(&ESCAPE) => 0,
        _ => memchr(ESCAPE, bytes).unwrap_or(bytes.len()),
    }
}

/// Looks at all of them, which takes less time than to look for the first.
fn any(bytes: &[u8], is: impl Fn(u8) -> bool) -> bool {
    bytes.iter().fold(false, |any, byte| any | is(*byte))
}

/// Whether there is only ASCII and no control character but 0x7f; eight bytes at once, as most texts are short.
fn is_printable(text: &[u8]) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The subtraction sets the highest bit of a byte below 0x20.
    let is_odd = |eight: u64| (eight.wrapping_sub(0x2020_2020_2020_2020) | eight) & HIGH != 0;
    let (eights, rest) = text.as_chunks::<8>();
    let odd = eights.iter().fold(false, |odd, eight| odd | is_odd(u64::from_ne_bytes(*eight)));
    !odd && rest.iter().all(|byte| (0x20..0x80).contains(byte))
}

/// Whether the first character is of those that frames and marks are drawn with, all of which have a width.
fn is_symbol(text: &[u8]) -> bool {
    matches!(text, [0xe2, 0x84..=0xaf, 0x80..=0xbf, ..])
}

/// How many columns a text has at most: no letter before Hangul has two, and no line of a frame.
fn columns(text: &[u8]) -> usize {
    let of = |c: char| if matches!(c, ..'\u{1100}' | '\u{2500}'..='\u{259f}') { 1 } else { 2 };
    // What is no UTF-8 has at most one for each byte.
    str::from_utf8(text).map_or(text.len(), |text| text.chars().map(of).sum())
}

/// How many of these bytes, from the first, only write lines and colour them.
pub(super) fn lines(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        let block = at..bytes.len().min(at + BLOCK);
        let end = control(bytes, block.clone()).unwrap_or(block.end);
        let mut escapes = memchr_iter(ESCAPE, &bytes[at..end]).map(|escape| at + escape);
        let other = escapes.find(|escape| colour(&bytes[*escape..]).is_none());
        if other.is_some() || end < block.end {
            return other.unwrap_or(end);
        }
        at = end;
    }
    at
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

/// Where in a block the first character stands that is neither written nor begins a line nor an escape.
fn control(bytes: &[u8], block: Range<usize>) -> Option<usize> {
    // The second begins the control characters above ASCII, and others.
    let may_be =
        |byte: u8| byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | ESCAPE) || byte == 0xc2;
    let is = |at: &usize| {
        may_be(bytes[*at])
            && (bytes[*at] != 0xc2 || bytes.get(at + 1).is_none_or(|next| *next < 0xa0))
    };
    any(&bytes[block.clone()], may_be).then(|| block.into_iter().find(is)).flatten()
}

/// The length of a complete `ESC [ … m` at the beginning.
fn colour(bytes: &[u8]) -> Option<usize> {
    let numbers = bytes.strip_prefix(b"\x1b[")?;
    let length =
        numbers.iter().position(|byte| !(byte.is_ascii_digit() || b";:".contains(byte)))?;
    (numbers[length] == b'm').then_some(length + 3)
}

/// The part of a run of lines that has scrolled away at its end, if the row where it begins was made by scrolling, which
/// shows in that it is empty. It begins where the cursor has come down as far as it can, behind a line with something
/// written, and ends before the last twice `rows` lines, which push out whatever was there. What came before the run may be
/// half a sequence, which a letter ends, or half a string, which only a colour ends: from there on lines are lines.
pub(super) fn scrolled_away(run: &[u8], rows: usize) -> Option<Range<usize>> {
    let from = |at: usize, is: fn(&u8) -> bool| run[at..].iter().position(is).map(|more| at + more);
    let colour = memchr(ESCAPE, run).unwrap_or(0);
    let letter = from(colour, |byte| matches!(byte, 0x40..=0x7e) && *byte != b'[')?;
    let breaks =
        run.iter().enumerate().skip(letter).filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    let written = breaks.skip(rows).find(|at| writes(&run[at + 1..]))?;
    let start = from(written + 1, |byte| *byte == b'\n')? + 1;
    let mut ends =
        run.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What the terminal model takes for a character's width is never more, and a symbol's never nothing.
    #[test]
    fn every_character_has_at_most_the_columns_that_are_counted() {
        let mut symbols = 0;
        for c in ('\u{a0}'..=char::MAX).filter(|c| !c.is_control()) {
            let text = c.to_string();
            let mut parser = vt100::Parser::new(2, 8, 0);
            parser.process(text.as_bytes());
            let (row, width) = parser.screen().cursor_position();
            assert!(row == 0 && usize::from(width) <= columns(text.as_bytes()), "{c:?}: {width}");
            assert!(!is_symbol(text.as_bytes()) || width > 0, "{c:?}");
            symbols += usize::from(is_symbol(text.as_bytes()));
        }
        assert_eq!(symbols, 0x2c00 - 0x2100);
        assert!(columns(b"\xff\xff\xe2") >= 3, "each of these is shown as a mark");
    }
}
