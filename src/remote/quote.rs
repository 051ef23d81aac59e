//! Quotes words for the login shell of a host.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Appends a word so that a shell reads it as this one word. Backslashes and single quotes are
/// never inside quotes: fish, unlike other shells, treats a backslash there as an escape.
pub(super) fn push_word(line: &mut Vec<u8>, word: &OsStr) {
    let word = word.as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./-".contains(byte);
    if !word.is_empty() && word.iter().all(is_plain) {
        line.extend_from_slice(word);
        return;
    }
    if word.is_empty() {
        line.extend_from_slice(b"''");
        return;
    }
    let mut is_quoted = false;
    for byte in word {
        let is_special = matches!(byte, b'\'' | b'\\');
        if is_quoted == is_special {
            line.push(b'\'');
            is_quoted = !is_special;
        }
        if is_special {
            line.push(b'\\');
        }
        line.push(*byte);
    }
    if is_quoted {
        line.push(b'\'');
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use proptest::prelude::*;

    use super::*;
    use sys::exec::{self, ExecCommand};

    /// Words that a shell, ssh or tmux could change.
    const HOSTILE: [&str; 18] = [
        "", "it's", "''", "\\", "a\\", "\\'", "$HOME", "`id`", "a;b", "a b", "a\nb", "#{x}", "~",
        "-n", "*", "!!", "a\\\\b", "=ls",
    ];

    fn line(words: &[OsString]) -> Vec<u8> {
        let mut line = Vec::new();
        for word in words {
            if !line.is_empty() {
                line.push(b' ');
            }
            push_word(&mut line, word);
        }
        line
    }

    /// Returns the words as `shell` reads them, each followed by a NUL; `None` without the shell.
    fn read_by(shell: &str, words: &[OsString]) -> Option<Vec<u8>> {
        let text = [b"printf '%s\\0' ".as_slice(), &line(words)].concat();
        let args = vec!["-c".into(), OsString::from(OsStr::from_bytes(&text))];
        let command = ExecCommand { program: shell.into(), args, ..ExecCommand::default() };
        let output = exec::run(&command, std::time::Duration::from_secs(60)).ok()?;
        Some(output.stdout)
    }

    fn expected(words: &[OsString]) -> Vec<u8> {
        words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect()
    }

    #[test]
    fn every_shell_reads_hostile_words_unchanged() {
        let words: Vec<OsString> = HOSTILE.iter().map(Into::into).collect();
        for shell in ["sh", "bash", "zsh", "fish"] {
            if let Some(read) = read_by(shell, &words) {
                assert_eq!(
                    String::from_utf8_lossy(&read),
                    String::from_utf8_lossy(&expected(&words)),
                    "{shell}"
                );
            }
        }
    }

    #[test]
    fn only_words_that_need_it_are_quoted() {
        let words = ["/a/b-c_d.e", "a b", "it's", "a\\", ""].map(OsString::from);
        assert_eq!(
            String::from_utf8_lossy(&line(&words)),
            "/a/b-c_d.e 'a b' 'it'\\''s' 'a'\\\\ ''"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_shell_reads_any_bytes_unchanged(
            words in prop::collection::vec(prop::collection::vec(1u8..=255, 0..12), 1..20)
        ) {
            let words: Vec<OsString> =
                words.iter().map(|word| OsStr::from_bytes(word).to_owned()).collect();
            prop_assert_eq!(read_by("sh", &words), Some(expected(&words)));
        }
    }
}
