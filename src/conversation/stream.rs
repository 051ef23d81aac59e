//! The text of an agent while it arrives. Complete blocks of its Markdown become rows at once; only
//! the unfinished end is kept, and its size is bounded.

use crate::line::{Look, StyledLine};
use crate::markdown;

/// Bytes of an unfinished block. A longer one is divided, so drawing a frame has a bounded cost.
const LONGEST: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct TextStream {
    /// The source of the unfinished block.
    tail: String,
    /// Bytes of `tail` whose lines were examined.
    examined: usize,
    fence: Option<Fence>,
    /// The last block was a list item or belonged to one.
    is_in_list: bool,
    has_rows: bool,
    /// An empty row is due before the next block.
    needs_gap: bool,
}

/// A block of code that has begun.
#[derive(Debug)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
}

impl TextStream {
    /// Adds a piece of text and returns the rows of the blocks that are complete now.
    pub(crate) fn push(&mut self, text: &str, room: usize) -> Vec<StyledLine> {
        let mut out = Vec::new();
        self.tail.extend(text.chars().filter(|c| *c != '\r'));
        let source = std::mem::take(&mut self.tail);
        let mut start = 0;
        let mut at = std::mem::take(&mut self.examined);
        while let Some(length) = source[at..].find('\n') {
            let end = at + length;
            start = self.line(&source, start, at, end, room, &mut out);
            at = end + 1;
        }
        while source.len() - start > longest(&source[start..]) {
            let end = split_at(&source, start, start + LONGEST);
            self.block(&source[start..end], room, &mut out);
            start = end;
        }
        source[start..].clone_into(&mut self.tail);
        self.examined = at.saturating_sub(start);
        out
    }

    /// Examines the line from `at` to `end`; the unfinished block begins at `start`. Returns the
    /// beginning of the block that is unfinished afterwards.
    fn line(
        &mut self,
        source: &str,
        start: usize,
        at: usize,
        end: usize,
        room: usize,
        out: &mut Vec<StyledLine>,
    ) -> usize {
        let line = &source[at..end];
        let before = &source[start..at];
        if let Some(fence) = &self.fence {
            if fence.is_closed_by(line) {
                self.fence = None;
            } else {
                self.block(line, room, out);
            }
            return end + 1;
        }
        if line.trim().is_empty() {
            self.block(before, room, out);
            self.needs_gap = self.has_rows;
            return end + 1;
        }
        if let Some(fence) = Fence::opened_by(line, self.is_in_list || is_item(before)) {
            self.block(before, room, out);
            self.fence = Some(fence);
            return end + 1;
        }
        let is_heading = is_heading(line);
        if is_heading || self.begins_block(line, before) {
            self.block(before, room, out);
            if !is_heading {
                return at;
            }
            self.block(line, room, out);
            return end + 1;
        }
        if end - start > longest(before) {
            self.block(&source[start..end], room, out);
            return end + 1;
        }
        start
    }

    fn begins_block(&self, line: &str, before: &str) -> bool {
        if before.trim().is_empty() {
            return false;
        }
        let is_in_list = self.is_in_list || is_item(before);
        let interrupts = is_item(line) && (is_in_list || !is_numbered(line) || starts_at_1(line));
        let is_quote = |text: &str| text.trim_start().starts_with('>');
        interrupts || is_quote(line) && !is_quote(before)
    }

    /// Draws a complete block and forgets it.
    fn block(&mut self, source: &str, room: usize, out: &mut Vec<StyledLine>) {
        if self.fence.is_none() && source.trim().is_empty() {
            return;
        }
        out.extend(self.gap());
        out.extend(self.draw(source, room));
        self.needs_gap = false;
        self.has_rows = true;
        if self.fence.is_none() {
            self.is_in_list = is_item(source) || self.is_in_list && indent(source) >= 2;
        }
    }

    fn gap(&self) -> Option<StyledLine> {
        (self.needs_gap && self.has_rows).then(StyledLine::default)
    }

    fn draw(&self, source: &str, room: usize) -> Vec<StyledLine> {
        if let Some(fence) = &self.fence {
            let shift = indent(source).min(fence.indent);
            let room = room.saturating_sub(fence.indent).max(4);
            return shifted(markdown::code_line(source[shift..].trim_end(), room), fence.indent);
        }
        // Blocks are drawn one by one: what belongs to a list item keeps its indentation.
        let shift = indent(source);
        if !self.is_in_list || shift < 2 {
            return markdown::draw(source, room);
        }
        let lines = source.lines().map(|line| &line[indent(line).min(shift)..]);
        let shift = shift.min(room / 3);
        shifted(markdown::draw(&lines.collect::<Vec<_>>().join("\n"), room - shift), shift)
    }

    /// Draws the unfinished block.
    pub(crate) fn tail(&self, room: usize) -> Vec<StyledLine> {
        let mut source = self.tail.as_str();
        if self.fence.is_none() {
            // A line that is only the beginning of a mark would change the block for a moment.
            let last = source.rfind('\n').map_or(0, |at| at + 1);
            if source[last..].chars().all(|c| "-=*+#`~|>:_ ".contains(c)) {
                source = &source[..last];
            }
        }
        if source.trim().is_empty() {
            return Vec::new();
        }
        self.gap().into_iter().chain(self.draw(source, room)).collect()
    }

    /// Ends the message and returns the rows of its last block.
    pub(crate) fn finish(&mut self, room: usize) -> Vec<StyledLine> {
        let mut out = Vec::new();
        if !self.tail.is_empty() {
            out = self.push("\n", room);
        }
        let tail = std::mem::take(&mut self.tail);
        if !tail.is_empty() {
            self.block(&tail, room, &mut out);
        }
        *self = TextStream::default();
        out
    }

    /// No block is unfinished.
    pub(crate) fn is_at_boundary(&self) -> bool {
        self.fence.is_none() && self.tail.trim().is_empty()
    }

    pub(crate) fn is_in_code(&self) -> bool {
        self.fence.is_some()
    }
}

impl Fence {
    fn opened_by(line: &str, is_in_list: bool) -> Option<Fence> {
        let indent = indent(line);
        let rest = &line[indent..];
        let mark = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = rest.chars().take_while(|c| *c == mark).count();
        let is_inline = mark == '`' && rest[length..].contains('`');
        let is_fence = length >= 3 && !is_inline && (indent < 4 || is_in_list);
        is_fence.then_some(Fence { mark, length, indent: if is_in_list { indent } else { 0 } })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }
}

/// The widths of a table's columns depend on all rows, so a table is divided later than a text.
fn longest(block: &str) -> usize {
    if block.starts_with('|') { 4 * LONGEST } else { LONGEST }
}

/// Returns the end of the piece of `source` from `start`: after a space or a whole character at or
/// before `most`.
fn split_at(source: &str, start: usize, most: usize) -> usize {
    let most = source.floor_char_boundary(most);
    match source[start..most].rfind(' ') {
        Some(space) if space > LONGEST / 2 => start + space + 1,
        _ => most,
    }
}

/// The number of spaces at the beginning.
fn indent(source: &str) -> usize {
    source.len() - source.trim_start_matches(' ').len()
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - rest.len())) && rest.starts_with(' ')
}

/// Returns whether a block is a list item.
fn is_item(block: &str) -> bool {
    let line = block.trim_start();
    let rest = line.strip_prefix(['-', '*', '+']).or_else(|| after_number(line));
    rest.is_some_and(|rest| rest.starts_with(' ') && !rest.trim().is_empty())
}

fn is_numbered(line: &str) -> bool {
    after_number(line.trim_start()).is_some()
}

/// A numbered list can follow a paragraph without an empty line only if it begins with 1.
fn starts_at_1(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("1.") || line.starts_with("1)")
}

fn after_number(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.len() - rest.len();
    rest.strip_prefix(['.', ')']).filter(|_| (1..=9).contains(&digits))
}

fn shifted(rows: Vec<StyledLine>, columns: usize) -> Vec<StyledLine> {
    let shift = " ".repeat(columns);
    rows.into_iter()
        .map(|row| {
            let mut line = StyledLine::default();
            if !row.is_empty() {
                line = line.with(Look::PLAIN, &shift);
                line.append(row);
            }
            line
        })
        .collect()
}
