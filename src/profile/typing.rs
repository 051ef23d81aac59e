//! The part of a profile that says how to type into its program.

use serde::{Deserialize, Serialize};

use super::rule::{LinePattern, OnePattern, Pattern};
use super::value::{AtMost, LARGEST_PASTE, LONGEST_MS, TypedKeys};
use model::value::{As, PlainText};

/// Keys that control the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// Submits the typed text.
    #[serde(with = "As::<TypedKeys>")]
    pub submit: String,
    /// Interrupts the current turn.
    #[serde(with = "As::<Option<TypedKeys>>")]
    pub interrupt: Option<String>,
    /// Ends the program; each entry is typed separately.
    #[serde(with = "As::<Vec<PlainText>>")]
    pub quit: Vec<String>,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys { submit: "\r".to_owned(), interrupt: None, quit: Vec::new() }
    }
}

/// Keys that answer a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DialogKeys {
    /// Allows this one request.
    #[serde(with = "As::<TypedKeys>")]
    pub allow: String,
    /// Denies the request.
    #[serde(with = "As::<TypedKeys>")]
    pub deny: String,
}

/// The way in which text is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Paste {
    /// Use bracketed paste while the program requests it.
    pub bracketed: bool,
    /// Delay in milliseconds between keys that are not pasted, so that the program does not
    /// interpret them as a paste.
    #[serde(with = "As::<AtMost<u64, LONGEST_MS>>")]
    pub gap_ms: u64,
    /// Delay in milliseconds before the submit key, so that the program has processed the text.
    #[serde(with = "As::<AtMost<u64, LONGEST_MS>>")]
    pub settle_ms: u64,
    /// Maximum length of a typed text in bytes. A longer text goes into a file, and a pointer to
    /// the file is typed.
    #[serde(with = "As::<AtMost<usize, LARGEST_PASTE>>")]
    pub most_bytes: usize,
}

impl Default for Paste {
    fn default() -> Paste {
        Paste { bracketed: true, gap_ms: 0, settle_ms: 150, most_bytes: 4096 }
    }
}

/// Patterns that find the composer, the input area of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComposerRule {
    /// Its first row; the group `text` is the typed text. The last matching row counts.
    #[serde(with = "As::<LinePattern>")]
    pub line: Pattern,
    /// Must match the row above.
    #[serde(default, with = "As::<Option<OnePattern>>")]
    pub above: Option<Pattern>,
    /// The composer and what may be below it, as the end of the screen. A screen that ends so
    /// shows no dialog.
    #[serde(default, with = "As::<Option<OnePattern>>")]
    pub(super) end: Option<Pattern>,
    /// The first row below that no longer belongs to it. `None`: the composer is one line.
    #[serde(default, with = "As::<Option<OnePattern>>")]
    pub until: Option<Pattern>,
    /// Text that the program draws in an empty composer. It is ignored only while the cursor is
    /// before it, because a person can type the same text (MSG-11).
    #[serde(default, with = "As::<Option<OnePattern>>")]
    pub placeholder: Option<Pattern>,
    /// Faint text after the cursor is a suggestion that the program draws, not typed text.
    #[serde(default)]
    pub(crate) ghost: bool,
    /// The composer is the last thing on the screen; a match with other rows below it is earlier
    /// input.
    #[serde(default)]
    pub last: bool,
}
