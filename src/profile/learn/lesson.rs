//! The input of a derivation: screens with answers, and the text on screens.

use std::fmt;

use super::super::rule::ScreenState;
use super::super::snapshot::Screenshot;

/// The answer of a person to the question what the program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ScreenLabel {
    /// It shows that it has ended, or that it cannot go on.
    Ended,
    /// It asks its user a question.
    Asks,
    Working,
    Idle,
}

impl ScreenLabel {
    /// Returns the word for people, which also begins the names of rules and recordings.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the state that a rule for such a screen has.
    pub fn state(self) -> ScreenState {
        match self {
            ScreenLabel::Ended => ScreenState::Blocked("ended".to_owned()),
            ScreenLabel::Asks => ScreenState::Dialog("question".to_owned()),
            ScreenLabel::Working => ScreenState::Working,
            ScreenLabel::Idle => ScreenState::Idle,
        }
    }

    /// Returns the position of its rules in a profile. The first rule that matches decides, and a
    /// text must never be typed into a question, so the idle rule is the last one.
    pub(super) fn order(self) -> usize {
        self as usize
    }
}

/// A screen with the answer of a person.
#[derive(Debug, Clone)]
pub struct LabelledScreen {
    /// A name for people and for its recording: `idle-2`.
    pub name: String,
    pub label: ScreenLabel,
    pub look: Screenshot,
}

/// A program as its user has shown it.
#[derive(Debug)]
pub struct Lesson<'l> {
    /// The name of the profile.
    pub name: &'l str,
    pub command: &'l [String],
    pub screens: &'l [LabelledScreen],
    /// The keys that its user has typed: programs show text that was typed.
    pub typed: &'l str,
    /// Keys that have ended the program. Empty: they are not known.
    pub quit: &'l [String],
    /// Command that tests the profile on the recordings, for a comment.
    pub test: &'l str,
}

/// A derived profile.
#[derive(Debug)]
pub struct LearnedProfile {
    /// Its TOML.
    pub text: String,
    /// Problems that remain; the profile is incomplete unless there are none.
    pub gaps: Vec<LearnGap>,
}

/// A part of a profile that the screens do not determine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LearnGap {
    /// Two screens of different states, without a phrase that tells them apart.
    Alike { screen: String, other: String },
    /// The input area cannot be found.
    NoComposer { problem: String },
}

impl fmt::Display for LearnGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LearnGap::Alike { screen, other } => {
                write!(f, "{screen} and {other} look alike: no line tells them apart")
            }
            LearnGap::NoComposer { problem } => write!(f, "no input area: {problem}"),
        }
    }
}

/// A rule as it will be written.
#[derive(Debug)]
pub(super) struct LearnedRule {
    pub(super) name: String,
    pub(super) label: ScreenLabel,
    /// Number of rows of its area. `None`: the row of the cursor.
    pub(super) rows: Option<usize>,
    pub(super) patterns: Vec<String>,
    pub(super) absent: Vec<String>,
}

/// Returns the screens with this answer.
pub(super) fn labelled(screens: &[LabelledScreen], label: ScreenLabel) -> Vec<&LabelledScreen> {
    screens.iter().filter(|screen| screen.label == label).collect()
}

/// Returns the number of rows up to the last one that is not empty.
pub(super) fn height(look: &Screenshot) -> usize {
    look.rows.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |last| last + 1)
}

/// Returns true for the characters of which programs draw lines and blocks.
pub(super) fn is_frame(c: char) -> bool {
    ('\u{2500}'..='\u{259f}').contains(&c)
}

/// Returns a pattern for this text in which each number stands for any number.
pub(super) fn pattern_of(text: &str) -> String {
    let mut pattern = String::new();
    let mut in_number = false;
    for c in text.chars() {
        if c.is_ascii_digit() {
            if !in_number {
                pattern.push_str(r"\d+");
            }
        } else {
            if r"\.+*?()|[]{}^$".contains(c) {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        in_number = c.is_ascii_digit();
    }
    pattern
}

/// Returns what a screen shows apart from numbers and signs. It stays the same while a spinner
/// turns and a clock runs.
pub fn steady_text(look: &Screenshot) -> String {
    let mut steady = String::new();
    for c in look
        .rows
        .iter()
        .map(String::as_str)
        .chain([look.title.as_str()])
        .flat_map(|row| row.chars().chain(['\n']))
    {
        match c {
            '\n' => steady.push('\n'),
            c if c.is_alphabetic() => steady.push(c),
            _ if steady.ends_with(' ') => (),
            _ => steady.push(' '),
        }
    }
    steady
}
