//! Line numbers of positions in a text.

/// Returns the lines of ascending positions. It reads the text once.
pub(super) struct LineCounter<'t> {
    text: &'t [u8],
    offset: usize,
    line: usize,
}

impl<'t> LineCounter<'t> {
    pub(super) fn new(text: &'t str) -> LineCounter<'t> {
        LineCounter { text: text.as_bytes(), offset: 0, line: 1 }
    }

    /// Returns the line, from 1, of a byte offset that is not less than that of the last call.
    pub(super) fn line_at(&mut self, offset: usize) -> usize {
        let passed = self.text.get(self.offset..offset).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', passed).count();
        self.offset = self.offset.max(offset);
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one() {
        let mut lines = LineCounter::new("a\nb\r\nc");
        assert_eq!([0, 2, 3, 5, 99].map(|offset| lines.line_at(offset)), [1, 2, 2, 3, 3]);
    }
}
