//! Which part of what a program prints nobody can see any more once the rest is drawn. Knows the bytes only. What a
//! [`Look`](super::Look) does not show, as colours, counts for nothing here.

use std::ops::Range;

/// What a program prints until it does something else than drawing.
pub(super) struct Drawing {
    /// Bytes; the escape that begins the something else is the last.
    pub(super) length: usize,
    /// The part of them that is drawn and wiped off again.
    pub(super) wiped: Range<usize>,
}

impl Drawing {
    /// The first of these bytes. What the screen shows and where its cursor stands depends on nothing that was drawn
    /// before, once all is erased and the cursor is placed: before that, or right afterwards. All else that a program
    /// tells its terminal, and what it asks it, is no drawing and ends this. The part begins and ends where an escape
    /// stands: whatever was begun before, an escape ends it.
    pub(super) fn at(bytes: &[u8]) -> Drawing {
        let (mut first, mut until) = (None, None);
        // Where the cursor was placed last, and where all was erased with nothing written since.
        let (mut placed, mut erased) = (None, None);
        let mut at = 0;
        let length = loop {
            let Some(more) = bytes[at..].iter().position(|byte| *byte == 0x1b) else { break bytes.len() };
            at += more;
            let Some((draws, length)) = Draws::at(&bytes[at..]) else { break at + 1 };
            first.get_or_insert(at);
            erased = erased.filter(|_| more == 0);
            match draws {
                Draws::Erases => {
                    until = placed.or(until);
                    erased = Some(at);
                }
                Draws::Places => {
                    until = erased.take().or(until);
                    placed = Some(at);
                }
                Draws::Otherwise => {}
            }
            at += length;
        };
        let wiped = first.zip(until).map_or(0..0, |(first, until)| first..until);
        Drawing { length, wiped }
    }
}

/// What a sequence does to the picture.
enum Draws {
    /// Places the cursor, wherever it was.
    Places,
    /// Erases all, wherever the cursor is.
    Erases,
    /// Anything else with cells, colours or the cursor, or nothing that is looked at.
    Otherwise,
}

impl Draws {
    /// The complete sequence at the beginning, and its length; none where it does something else, too.
    fn at(bytes: &[u8]) -> Option<(Draws, usize)> {
        let sequence = bytes.strip_prefix(b"\x1b[")?;
        for hides in [&b"?25l"[..], b"?25h", b"?2026h", b"?2026l"] {
            if sequence.starts_with(hides) {
                return Some((Draws::Otherwise, 2 + hides.len()));
            }
        }
        let numbers = sequence.iter().position(|byte| !(byte.is_ascii_digit() || b";:".contains(byte)))?;
        let draws = match (&sequence[..numbers], sequence[numbers]) {
            (_, b'H') => Draws::Places,
            (b"2", b'J') => Draws::Erases,
            (_, b'@'..=b'G' | b'J'..=b'M' | b'P' | b'S' | b'T' | b'X' | b'd' | b'm') => Draws::Otherwise,
            (_, _) => return None,
        };
        Some((draws, numbers + 3))
    }
}

/// How many of these bytes, from the first, only write lines and colour them.
pub(super) fn lines(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'\t' | b'\n' | b'\r' | 0x20..=0xc1 | 0xc3..=0xff => 1,
            // The control characters above ASCII.
            0xc2 if bytes.get(at + 1).is_some_and(|next| *next >= 0xa0) => 2,
            0x1b => match colour(&bytes[at..]) {
                Some(length) => length,
                None => return at,
            },
            _ => return at,
        };
    }
    at
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
