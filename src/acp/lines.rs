//! Splits the bytes of an agent into lines. Each byte is scanned once, and memory is bounded by the
//! longest line that is accepted.

use std::borrow::Cow;

use memchr::memchr;

/// The longest line that is accepted, in bytes. The longest seen, a list of commands, has 560 kB.
pub(crate) const LONGEST_LINE: usize = 32 << 20;

/// A buffer above this capacity is released after its line.
const KEPT_CAPACITY: usize = 1 << 20;

/// The part of a line that has arrived.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    limit: usize,
    part: Vec<u8>,
    /// The current line is too long; the rest of it is dropped.
    is_skipping: bool,
}

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputLine<'a> {
    Whole(&'a [u8]),
    TooLong,
}

impl LineSplitter {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Calls `handle` for each line that `bytes` complete. A line that is too long is reported as
    /// soon as it exceeds the limit.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut handle: impl FnMut(InputLine<'_>)) {
        let mut rest = bytes;
        while let Some(end) = memchr(b'\n', rest) {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if self.is_skipping {
                self.is_skipping = false;
            } else if self.part.len() + line.len() > self.limit {
                self.clear();
                handle(InputLine::TooLong);
            } else if self.part.is_empty() {
                handle(InputLine::Whole(without_return(line)));
            } else {
                self.part.extend_from_slice(line);
                handle(InputLine::Whole(without_return(&self.part)));
                self.clear();
            }
        }
        if self.is_skipping {
            return;
        }
        if self.part.len() + rest.len() > self.limit {
            self.clear();
            self.is_skipping = true;
            handle(InputLine::TooLong);
        } else {
            self.part.extend_from_slice(rest);
        }
    }

    /// Calls `handle` for a last line without an end.
    pub(crate) fn finish(&mut self, handle: impl FnOnce(InputLine<'_>)) {
        if !self.part.is_empty() {
            handle(InputLine::Whole(without_return(&self.part)));
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.part.clear();
        if self.part.capacity() > KEPT_CAPACITY {
            self.part = Vec::new();
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns a line as text that serde_json can read; `None` for a blank one.
pub(crate) fn readable(line: &[u8]) -> Option<Cow<'_, str>> {
    let mut text = String::from_utf8_lossy(line);
    if text.trim().is_empty() {
        return None;
    }
    if memchr(b'\\', text.as_bytes()).is_some() {
        replace_lone_surrogates(text.to_mut());
    }
    Some(text)
}

/// Replaces each `\uXXXX` that is half of a surrogate pair, which JavaScript writes when it cuts a
/// text inside a character. serde_json rejects such a string.
pub(crate) fn replace_lone_surrogates(json: &mut String) {
    let is_affected = |json: &str| {
        let mut starts = memchr::memmem::find_iter(json.as_bytes(), br"\u");
        starts.any(|at| matches!(json.as_bytes().get(at + 2), Some(b'd' | b'D')))
    };
    if !is_affected(json) {
        return;
    }
    let mut repaired = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        repaired.push_str(before);
        let length = match (code_unit(escape), escape.get(6..).and_then(code_unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                repaired.push_str("\\ufffd");
                rest = &escape[6..];
                continue;
            }
            (Some(_), _) => 6,
            // The escaped character may be a backslash, which begins no escape of its own.
            (None, _) => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        let (kept, after) = escape.split_at(length);
        repaired.push_str(kept);
        rest = after;
    }
    repaired.push_str(rest);
    *json = repaired;
}

/// Returns the code unit of an escape `\uXXXX` that `json` begins with.
fn code_unit(json: &str) -> Option<u16> {
    let digits = json.strip_prefix("\\u")?.get(..4)?;
    if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        u16::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(limit: usize, pieces: &[&[u8]]) -> Vec<Option<String>> {
        let mut splitter = LineSplitter::new(limit);
        let mut lines = Vec::new();
        for piece in pieces {
            splitter.feed(piece, |line| {
                lines.push(match line {
                    InputLine::Whole(line) => Some(String::from_utf8_lossy(line).into_owned()),
                    InputLine::TooLong => None,
                });
            });
        }
        lines
    }

    fn whole(line: &str) -> Option<String> {
        Some(line.to_owned())
    }

    #[test]
    fn lines_are_joined_from_pieces() {
        let lines = split(100, &[b"a", b"b\r", b"\nc\n\nd", b"e"]);
        assert_eq!(lines, [whole("ab"), whole("c"), whole("")]);
    }

    #[test]
    fn line_above_the_limit_is_skipped_once() {
        let expected = [None, whole("ok")];
        assert_eq!(split(3, &[b"abcd\nok\n"]), expected);
        assert_eq!(split(3, &[b"ab", b"cd", b"efgh", b"i\no", b"k\n"]), expected);
        assert_eq!(split(3, &[b"abc\n"]), [whole("abc")]);
    }

    #[test]
    fn last_line_needs_no_end() {
        let mut splitter = LineSplitter::new(10);
        splitter.feed(b"x\ny", |_| {});
        let mut last = Vec::new();
        splitter.finish(|line| {
            if let InputLine::Whole(line) = line {
                last.extend_from_slice(line);
            }
        });
        assert_eq!(last, b"y");
    }

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        let cases = [
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\uDE00b""#, r#""\ufffdb""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\ud8"#, r#""\ud8"#),
            (r#""\u00e9é\ud83d"#, r#""\u00e9é\ufffd"#),
        ];
        for (before, after) in cases {
            let mut text = before.to_owned();
            replace_lone_surrogates(&mut text);
            assert_eq!(text, after, "{before}");
        }
    }
}
