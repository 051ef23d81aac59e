//! The launcher's spec file. Its path is the only argument on a pane's command line, so no secret
//! and no user text is ever put there (SP-01, SP-03, SEC-06).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};

use crate::id::{Incarnation, MemberName, TeamName};

/// Format version that this release writes.
pub const FORMAT: u32 = 1;

/// An OS string: text if it is valid UTF-8, otherwise bytes, so that it round-trips exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OsText {
    Text(String),
    Bytes(Vec<u8>),
}

impl OsText {
    pub fn new(text: &OsStr) -> OsText {
        match text.to_str() {
            Some(text) => OsText::Text(text.to_owned()),
            None => OsText::Bytes(text.as_bytes().to_vec()),
        }
    }

    pub fn into_os(self) -> OsString {
        match self {
            OsText::Text(text) => OsString::from(text),
            OsText::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

/// The terminal that the program runs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Terminal {
    /// The launcher's own terminal: a pane.
    Pane,
    /// A PTY created by the launcher. Output goes to `log`.
    Own { rows: u16, cols: u16, log: String },
    /// No terminal: a single run without stdin. Output goes to `log` and is sent to the lead as the
    /// answer; then the member leaves.
    Once { log: String },
}

/// Everything the launcher needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LauncherSpec {
    /// Format version of the file.
    pub format: u32,
    /// The config root, used to locate the store.
    pub config_root: OsText,
    pub team: TeamName,
    pub member: MemberName,
    pub incarnation: Incarnation,
    /// The member's secret (`PHALANX_TOKEN`).
    pub token: String,
    /// The program and its arguments. The program is looked up in the `PATH` of `env`.
    pub argv: Vec<OsText>,
    pub cwd: OsText,
    /// The whole environment, except for the variables that the pane sets.
    pub env: Vec<(OsText, OsText)>,
    pub terminal: Terminal,
    /// If the program exits within this time, it failed to start: the launcher then keeps the
    /// screen open until the spawner has read it, for at most this long. Milliseconds.
    pub linger_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_utf8_words_round_trip() {
        for bytes in [&b"plain"[..], b"\xff\xfe", "ü #(x) $(y);".as_bytes()] {
            let word = OsText::new(OsStr::from_bytes(bytes));
            let text = serde_json::to_string(&word).expect("json");
            let back: OsText = serde_json::from_str(&text).expect("json");
            assert_eq!(back.into_os().as_bytes(), bytes);
        }
    }
}
