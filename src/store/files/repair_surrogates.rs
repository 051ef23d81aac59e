//! JSON parsing that accepts lone surrogates: `JSON.stringify` escapes half of a surrogate pair (an
//! emoji cut in two), which JSON's grammar allows but no encoding can represent. It is read as
//! U+FFFD, so that one cut emoji does not make a whole mailbox unreadable.

use serde::de::DeserializeOwned;

/// Parses JSON. If that fails, replaces lone surrogates and tries again.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    parse_by(bytes, |bytes| serde_json::from_slice(bytes))
}

/// Like [`parse`], with another parser of JSON.
pub(crate) fn parse_by<T>(
    bytes: &[u8],
    parser: impl Fn(&[u8]) -> serde_json::Result<T>,
) -> serde_json::Result<T> {
    parser(bytes).or_else(|e| match mended(bytes) {
        Some(mended) => parser(&mended),
        None => Err(e),
    })
}

/// Replaces each lone surrogate escape with `\ufffd`; `None` if there is none.
fn mended(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut mended, mut at) = (None, 0);
    while let Some(found) = bytes[at..].iter().position(|b| *b == b'\\') {
        at += found;
        let first = escape(&bytes[at..]);
        let second = first.and_then(|_| escape(&bytes[at + 6..]));
        at += match (first, second) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                mended.get_or_insert_with(|| bytes.to_vec())[at..at + 6]
                    .copy_from_slice(b"\\ufffd");
                6
            }
            (Some(_), _) => 6,
            // Skip the escaped character too, since it may be a backslash.
            (None, _) => 2.min(bytes.len() - at),
        };
    }
    mended
}

/// Returns the code unit of a `\uXXXX` escape at the start of the bytes.
fn escape(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn lone_surrogate_is_read_as_replacement_character() {
        let read = |text: &str| parse::<Value>(text.as_bytes()).ok();
        assert_eq!(read(r#"["a\ud83d"]"#), Some(json!(["a\u{fffd}"])));
        assert_eq!(
            read(r#"["\ude00b", "\ud83dx\ud83d\ude00"]"#),
            Some(json!(["\u{fffd}b", "\u{fffd}x\u{1f600}"]))
        );
        assert_eq!(read(r#"["\ud83d\ud83d\ude00"]"#), Some(json!(["\u{fffd}\u{1f600}"])));
        assert_eq!(read(r#"["\\ud83d"]"#), Some(json!(["\\ud83d"])));
    }

    #[test]
    fn other_invalid_json_is_rejected() {
        for broken in [
            r#"["\ud83"]"#,
            r#"["\ud83d]"#,
            r#"["\x"]"#,
            "[\"a\\",
            "\\",
            r#"["\ud83d",]"#,
            "\u{feff}[]",
        ] {
            assert!(parse::<Value>(broken.as_bytes()).is_err(), "{broken}");
        }
        assert_eq!(mended(b"[\"\\u00e9 \\ud83d\\ude00\"]"), None);
    }
}
