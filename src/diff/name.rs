//! File names as git prints them: plain, or quoted like a string of C.

/// Reads a quoted name at the start of `text`. Returns the name and the rest after the closing
/// quotation mark, or `None` if the quoting is wrong.
pub(crate) fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut name = Vec::new();
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((name, rest)),
            b'\\' => {
                let (&escaped, after) = rest.split_first()?;
                rest = after;
                name.push(match escaped {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'r' => b'\r',
                    b'"' | b'\\' => escaped,
                    b'0'..=b'3' => {
                        let (digits, after) = rest.split_at_checked(2)?;
                        rest = after;
                        octal(escaped, digits)?
                    }
                    _ => return None,
                });
            }
            byte => name.push(byte),
        }
    }
}

/// Returns the byte of three octal digits, the first of which is at most 3.
fn octal(first: u8, rest: &[u8]) -> Option<u8> {
    rest.iter().try_fold(first - b'0', |value, digit| {
        matches!(digit, b'0'..=b'7').then(|| value * 8 + (digit - b'0'))
    })
}

/// Returns the name on a line that has nothing else. Git puts a tab behind a name that contains a
/// space, in some places.
pub(crate) fn whole_line(text: &[u8]) -> Option<Vec<u8>> {
    let name = text.strip_suffix(b"\t").unwrap_or(text);
    if name.starts_with(b"\"") {
        return unquote(name).filter(|(_, rest)| rest.is_empty()).map(|(name, _)| name);
    }
    (!name.is_empty()).then(|| name.to_vec())
}

/// Returns the name that both halves of `a/NAME b/NAME` agree on. The halves of a plain pair are
/// found by their length, because a name may contain ` b/`.
pub(crate) fn same_pair(text: &[u8]) -> Option<Vec<u8>> {
    if text.starts_with(b"\"") {
        let (old, rest) = unquote(text)?;
        let (new, rest) = unquote(rest.strip_prefix(b" ")?)?;
        let name = old.strip_prefix(b"a/")?;
        return (rest.is_empty() && Some(name) == new.strip_prefix(b"b/")).then(|| name.to_vec());
    }
    let half = text.len().checked_sub(1).filter(|length| length % 2 == 0)? / 2;
    let (old, rest) = text.split_at_checked(half)?;
    let name = old.strip_prefix(b"a/")?;
    (!name.is_empty() && Some(name) == rest.strip_prefix(b" b/")).then(|| name.to_vec())
}
