//! The rules by which a screen is read: where to look, for what, and what it means. Knows no program.

use std::fmt;

use regex::{Regex, RegexBuilder};
use serde::{Serialize, Serializer};

use super::judge::Look;

/// The longest pattern, bytes.
const LONGEST: usize = 1000;
/// The most memory a compiled pattern may take, bytes.
const LARGEST: usize = 1 << 20;

/// A regular expression that remembers how it was written. Matching takes time linear in the text; size and text are
/// bounded.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern: `^` and `$` are the ends of a row.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub(crate) fn new(text: &str) -> Result<Pattern, String> {
        if text.len() > LONGEST {
            return Err(format!("is longer than {LONGEST} bytes"));
        }
        let built = RegexBuilder::new(text).multi_line(true).size_limit(LARGEST).build();
        built.map(Pattern).map_err(|e| {
            let said = e.to_string();
            let last = said.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
            format!("is not a valid pattern: {last}")
        })
    }

    /// Where and what it finds first.
    pub(super) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.find(text).map(|found| found.as_str())
    }

    /// What the group `text` finds in a row, with the byte at which it begins.
    pub(super) fn text<'t>(&self, row: &'t str) -> Option<(usize, &'t str)> {
        let found = self.0.captures(row)?.name("text")?;
        Some((found.start(), found.as_str()))
    }

    /// Whether it has the group `text`.
    pub(super) fn has_text(&self) -> bool {
        self.0.capture_names().any(|name| name == Some("text"))
    }

    /// What a group finds.
    fn group<'t>(&self, name: &str, text: &'t str) -> Option<&'t str> {
        self.0.captures(text)?.name(name).map(|found| found.as_str())
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a program is doing, as far as its screen tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScreenState {
    /// It takes input and has not been given any.
    Ready,
    /// It takes input; its last turn is over.
    Idle,
    /// A turn is under way.
    Working,
    /// It waits for something that no key of ours brings.
    Blocked(String),
    /// It asks its user something.
    Dialog(String),
    /// It has no account to work with (EN-05).
    NeedsLogin,
    /// No rule fits. Nothing may be typed.
    Unknown,
}

impl ScreenState {
    /// Reads `idle`, `blocked:REASON`, `dialog:NAME` …; none for anything else.
    pub(crate) fn parse(word: &str) -> Option<ScreenState> {
        Some(match (word, word.split_once(':')) {
            ("ready", _) => ScreenState::Ready,
            ("idle", _) => ScreenState::Idle,
            ("working", _) => ScreenState::Working,
            ("needs_login", _) => ScreenState::NeedsLogin,
            (_, Some(("blocked", reason))) if is_word(reason) => {
                ScreenState::Blocked(reason.to_owned())
            }
            (_, Some(("dialog", name))) if is_word(name) => ScreenState::Dialog(name.to_owned()),
            (_, _) => return None,
        })
    }

    /// Whether text may be typed: only where there is a composer.
    pub(crate) fn takes_input(&self) -> bool {
        match self {
            ScreenState::Ready | ScreenState::Idle | ScreenState::Working => true,
            ScreenState::Blocked(_)
            | ScreenState::Dialog(_)
            | ScreenState::NeedsLogin
            | ScreenState::Unknown => false,
        }
    }
}

impl fmt::Display for ScreenState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScreenState::Ready => f.write_str("ready"),
            ScreenState::Idle => f.write_str("idle"),
            ScreenState::Working => f.write_str("working"),
            ScreenState::Blocked(reason) => write!(f, "blocked:{reason}"),
            ScreenState::Dialog(name) => write!(f, "dialog:{name}"),
            ScreenState::NeedsLogin => f.write_str("needs_login"),
            ScreenState::Unknown => f.write_str("unknown"),
        }
    }
}

impl Serialize for ScreenState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Lower-case words joined by hyphens.
fn is_word(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= 40
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// What a program says of its progress (OSC 9;4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Progress {
    None,
    Busy,
    Error,
    Paused,
}

impl Progress {
    /// As they are written in a profile.
    pub(crate) const ALL: [(&'static str, Progress); 4] = [
        ("none", Progress::None),
        ("busy", Progress::Busy),
        ("error", Progress::Error),
        ("paused", Progress::Paused),
    ];
}

/// Where a rule looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Area {
    /// All rows.
    Whole,
    /// So many rows, up to the last one with anything on it.
    Last(usize),
    /// The row that the cursor is in.
    CursorRow,
    /// The window's title.
    Title,
}

impl Area {
    /// Reads `whole`, `last N`, `cursor row` or `title`.
    pub(super) fn parse(word: &str) -> Option<Area> {
        Some(match (word, word.strip_prefix("last ")) {
            ("whole", _) => Area::Whole,
            ("cursor row", _) => Area::CursorRow,
            ("title", _) => Area::Title,
            (_, Some(number)) => Area::Last(number.parse().ok().filter(|n| (1..=500).contains(n))?),
            (_, None) => return None,
        })
    }
}

/// If all that it asks for is there, the screen is in its state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) state: ScreenState,
    pub(super) area: Area,
    /// All of them are found in the area.
    pub(super) patterns: Vec<Pattern>,
    /// None of them is.
    pub(super) absent: Vec<Pattern>,
    pub(super) title: Option<Pattern>,
    pub(super) progress: Option<Progress>,
    /// Nothing was drawn for so long, milliseconds.
    pub(super) quiet_ms: Option<u64>,
    pub(super) alternate: Option<bool>,
    pub(super) bracketed_paste: Option<bool>,
}

impl Rule {
    /// Whether one of its patterns has the group `text`.
    pub(super) fn has_text(&self) -> bool {
        self.patterns.iter().any(Pattern::has_text)
    }

    /// What a group of its patterns finds.
    pub(super) fn group(&self, name: &str, look: &Look) -> Option<String> {
        let text = look.area(self.area);
        self.patterns.iter().find_map(|pattern| pattern.group(name, &text)).map(str::to_owned)
    }

    /// The text that makes it fit; none when it does not fit.
    pub(super) fn fits(&self, look: &Look) -> Option<String> {
        let agrees = |wanted: Option<bool>, is: bool| wanted.is_none_or(|wanted| wanted == is);
        let still = self.quiet_ms.is_none_or(|ms| look.quiet_ms >= ms);
        let progress = self.progress.is_none_or(|wanted| wanted == look.progress);
        if !still || !progress || !agrees(self.alternate, look.alternate) {
            return None;
        }
        if !agrees(self.bracketed_paste, look.bracketed_paste) {
            return None;
        }
        let title = self
            .title
            .as_ref()
            .map(|pattern| pattern.find(&look.title))
            .map_or(Some(None), |t| t.map(Some))?;
        let text = look.area(self.area);
        if self.absent.iter().any(|pattern| pattern.find(&text).is_some()) {
            return None;
        }
        let found: Option<Vec<&str>> =
            self.patterns.iter().map(|pattern| pattern.find(&text)).collect();
        let words: Vec<&str> = found?.into_iter().chain(title).map(str::trim).collect();
        if words.is_empty() {
            return Some(format!("no output for {} ms", look.quiet_ms));
        }
        Some(words.join(" … "))
    }
}
