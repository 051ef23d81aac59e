//! Search in the lines of a screen and its scrollback.

use unicode_width::UnicodeWidthChar;

/// A text that is searched for, without regard to case, and where it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ScreenSearch {
    pub(super) query: String,
    /// From the first line to the last.
    pub(super) matches: Vec<SearchMatch>,
    /// The index of the match on display.
    pub(super) at: usize,
}

/// A place where the text was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SearchMatch {
    pub(super) line: usize,
    /// The first cell of the line.
    pub(super) column: usize,
    /// Number of cells.
    pub(super) width: usize,
}

impl ScreenSearch {
    /// Finds a text, and goes to the match nearest to the end.
    pub(super) fn find(&mut self, lines: &[String]) {
        let query: Vec<char> = self.query.chars().map(fold).collect();
        let found = lines.iter().enumerate().flat_map(|(nth, line)| matches_in(line, nth, &query));
        self.matches = found.collect();
        self.at = self.matches.len().saturating_sub(1);
    }

    pub(super) fn current(&self) -> Option<SearchMatch> {
        self.matches.get(self.at).copied()
    }

    /// Goes to the match `step` places further, around the end.
    pub(super) fn go_by(&mut self, step: isize) {
        if let Ok(count @ 1..) = isize::try_from(self.matches.len()) {
            self.at = (self.at.cast_signed() + step).rem_euclid(count).cast_unsigned();
        }
    }

    /// Returns the search in words, such as `match 3/9 of error`.
    pub(super) fn words(&self) -> String {
        match (self.query.as_str(), self.matches.len()) {
            ("", _) => "search".to_owned(),
            (query, 0) => format!("no match for {query}"),
            (query, count) => format!("match {}/{count} of {query}", self.at + 1),
        }
    }
}

/// Returns the places of a query, whose case is folded, that do not overlap.
fn matches_in(line: &str, nth: usize, query: &[char]) -> Vec<SearchMatch> {
    let chars: Vec<char> = line.chars().collect();
    let width = |chars: &[char]| chars.iter().map(|c| c.width().unwrap_or(0)).sum();
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(part) = chars.get(start..start + query.len()).filter(|part| !part.is_empty()) {
        if part.iter().map(|c| fold(*c)).eq(query.iter().copied()) {
            let column = width(&chars[..start]);
            found.push(SearchMatch { line: nth, column, width: width(part) });
            start += query.len();
        } else {
            start += 1;
        }
    }
    found
}

/// Returns the lower case of a character that has one of one character.
fn fold(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(query: &str, text: &str) -> ScreenSearch {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut search = ScreenSearch { query: query.to_owned(), ..ScreenSearch::default() };
        search.find(&lines);
        search
    }

    #[test]
    fn matches_have_the_cells_that_they_take() {
        type Match = (usize, usize, usize);
        let table: &[(&str, &str, &[Match])] = &[
            ("b", "abc\nxBy", &[(0, 1, 1), (1, 1, 1)]),
            ("aa", "aaaa", &[(0, 0, 2), (0, 2, 2)]),
            ("Über", "日本 über", &[(0, 5, 4)]),
            ("本", "日本", &[(0, 2, 2)]),
            ("", "abc", &[]),
            ("long", "lon", &[]),
        ];
        for (query, text, expected) in table {
            let found = search(query, text).matches;
            let found: Vec<_> = found.iter().map(|m| (m.line, m.column, m.width)).collect();
            assert_eq!(found, *expected, "{query} in {text}");
        }
    }

    #[test]
    fn last_match_is_first_and_the_others_follow_around_the_end() {
        let mut search = search("a", "a\na\na");
        assert_eq!(search.words(), "match 3/3 of a");
        search.go_by(-1);
        assert_eq!(search.current().map(|found| found.line), Some(1));
        search.go_by(-2);
        assert_eq!(search.words(), "match 3/3 of a");
        search.go_by(1);
        assert_eq!(search.words(), "match 1/3 of a");
        let mut none = ScreenSearch { query: "x".to_owned(), ..ScreenSearch::default() };
        none.go_by(1);
        assert_eq!((none.current(), none.words().as_str()), (None, "no match for x"));
    }
}
