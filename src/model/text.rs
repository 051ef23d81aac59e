//! Foreign text made fit to print: every name, message, screen line and path that somebody else wrote passes here
//! before it reaches a terminal (SEC-10). Knows no terminal.

/// One line: control characters (escapes, line breaks, C1, bidirectional overrides) become visible marks, nothing is dropped silently.
pub(crate) fn line(foreign: &str) -> String {
    foreign.chars().map(visible).collect()
}

/// Several lines: as [`line`], but line breaks stay.
pub(crate) fn block(foreign: &str) -> String {
    foreign.split('\n').map(|l| line(l.strip_suffix('\r').unwrap_or(l))).collect::<Vec<_>>().join("\n")
}

/// One line of at most `max` characters, cut with `…`.
pub(crate) fn short(foreign: &str, max: usize) -> String {
    let mut shown: String = line(foreign).chars().take(max + 1).collect();
    if shown.chars().count() > max {
        shown = shown.chars().take(max.saturating_sub(1)).collect();
        shown.push('…');
    }
    shown
}

/// The last `max` lines, without the empty ones at the end.
pub(crate) fn last_lines(text: &str, max: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(max)..].join("\n")
}

fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            '\u{fffd}'
        }
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_10_nothing_printed_holds_an_escape() {
        let hostile = "a\u{1b}]0;title\u{7}b\r\nc\u{9b}2Jd\u{202e}e\u{7f}";
        for shown in [line(hostile), block(hostile), short(hostile, 8)] {
            assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        }
        assert_eq!(line("a\nb"), "a\u{240a}b");
    }

    #[test]
    fn cuts_and_tails() {
        assert_eq!(short("abcdef", 4), "abc…");
        assert_eq!(short("abcd", 4), "abcd");
        assert_eq!(last_lines("1\n2\n3\n\n\n", 2), "2\n3");
        assert_eq!(last_lines("", 5), "");
    }
}
