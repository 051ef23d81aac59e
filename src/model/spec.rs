//! What a launcher is told: the contents of the spec file that is a pane's only argument (SP-01, SP-03, SEC-06). It
//! is data from one run of phalanx to the next; nobody else reads it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};

use super::id::{Incarnation, MemberName, TeamName};

/// A word of the operating system: text where it is UTF-8, bytes where it is not, so that nothing is bent on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Word {
    Text(String),
    Bytes(Vec<u8>),
}

impl Word {
    /// Takes any word.
    pub(crate) fn of(word: &OsStr) -> Word {
        match word.to_str() {
            Some(text) => Word::Text(text.to_owned()),
            None => Word::Bytes(word.as_bytes().to_vec()),
        }
    }

    /// Gives it back as it was.
    pub(crate) fn into_os(self) -> OsString {
        match self {
            Word::Text(text) => OsString::from(text),
            Word::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

/// Which terminal the program gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Terminal {
    /// The one the launcher stands in: a pane.
    Pane,
    /// One that the launcher makes; what the program prints goes to `log`.
    Own { rows: u16, cols: u16, log: String },
    /// None: the program reads nothing, what it prints goes to `log` and is its answer to the lead; then it leaves.
    Once { log: String },
}

/// Everything the launcher needs; nothing of it ever stands on a command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) format: u32,
    /// The config root, to find the store by.
    pub(crate) config_root: Word,
    pub(crate) team: TeamName,
    pub(crate) member: MemberName,
    pub(crate) incarnation: Incarnation,
    pub(crate) token: String,
    /// The program and its arguments; the program is looked up in the `PATH` of `env`.
    pub(crate) argv: Vec<Word>,
    pub(crate) cwd: Word,
    /// The whole environment, but for what the pane itself gives.
    pub(crate) env: Vec<(Word, Word)>,
    pub(crate) terminal: Terminal,
    /// A program that dies sooner than this after its start was never up: the launcher then holds the screen until
    /// the spawner has looked, at most `linger_ms`.
    pub(crate) linger_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_not_utf8_survive() {
        for bytes in [&b"plain"[..], b"\xff\xfe", "ü #(x) $(y);".as_bytes()] {
            let word = Word::of(OsStr::from_bytes(bytes));
            let text = serde_json::to_string(&word).expect("json");
            let back: Word = serde_json::from_str(&text).expect("json");
            assert_eq!(back.into_os().as_bytes(), bytes);
        }
    }
}
