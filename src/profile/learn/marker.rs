//! Markers: phrases that are on the screens of one state and on no screen of another one.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::super::snapshot::Screenshot;
use super::lesson::{
    LabelledScreen, LearnGap, Lesson, ScreenLabel, height, is_frame, labelled, pattern_of,
};

/// Rows by which the place of a phrase may vary.
const SLACK: usize = 2;
/// Rows above the phrase of a question in which the question itself is searched.
const QUESTION: usize = 12;
/// Maximum length of a phrase in characters.
const LONGEST: usize = 80;
/// Only signs before or after a phrase: frames, bullets, spinners.
const SIGNS: &str = r"[^0-9A-Za-z\n]*";

/// Names of keys and of choices: programs show what a key does in this state.
static KEYS: LazyLock<Regex> = LazyLock::new(|| {
    let words = r"(?i)\b(esc|escape|ctrl|enter|interrupt|cancel|yes|allow|deny)\b|\by ?/ ?n\b|\?$";
    Regex::new(words).expect("a constant pattern")
});

/// A phrase by which a rule recognises its screens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) pattern: String,
    /// The phrase is in this number of rows at the end of the screen.
    pub(super) rows: usize,
}

impl Marker {
    /// Returns the pattern of a rule. That of a question captures all rows from the beginning of
    /// the area, so that people see what is asked.
    pub(super) fn pattern_of(&self, label: ScreenLabel) -> String {
        match label {
            ScreenLabel::Asks => format!(r"(?s)\A(?<text>.*{})", rest_of_row(&self.pattern)),
            ScreenLabel::Ended | ScreenLabel::Working | ScreenLabel::Idle => self.pattern.clone(),
        }
    }
}

/// Captures the phrase to the end of its row.
fn rest_of_row(pattern: &str) -> String {
    if pattern.ends_with('$') { pattern.to_owned() } else { format!(r"{pattern}[^\n]*") }
}

/// A phrase on a screen.
struct Phrase {
    text: String,
    /// It begins its row, apart from signs.
    first: bool,
    /// It ends its row, apart from signs.
    last: bool,
}

/// A possible marker, and the screens on which it is.
struct MarkerCandidate {
    pattern: Regex,
    text: String,
    /// Index of each screen without a marker so far, and the row counted from the end.
    on: Vec<(usize, usize)>,
}

/// Returns markers that together recognise all screens of a state, each of the following ones for
/// screens that the ones before miss, and a gap for each screen without a marker.
pub(super) fn find_markers(lesson: &Lesson, label: ScreenLabel) -> (Vec<Marker>, Vec<LearnGap>) {
    let screens = lesson.screens;
    let mut open = labelled(screens, label);
    // Rules of states that come first have decided before.
    let later: Vec<&LabelledScreen> = screens
        .iter()
        .filter(|screen| screen.label != label)
        .filter(|screen| label == ScreenLabel::Idle || screen.label.order() > label.order())
        .collect();
    let earlier: Vec<&LabelledScreen> =
        screens.iter().filter(|screen| screen.label.order() < label.order()).collect();
    let (mut markers, mut gaps) = (Vec::new(), Vec::new());
    while !open.is_empty() {
        match best(lesson, label, &open, &later, &earlier) {
            Some((marker, covered)) => {
                markers.push(marker);
                let mut at = 0..open.len();
                open.retain(|_| at.next().is_none_or(|at| !covered.contains(&at)));
            }
            None => gaps.extend(open.drain(..).filter_map(|screen| alike(screen, &later))),
        }
    }
    (markers, gaps)
}

/// Returns the marker that recognises most screens. Of several, one that names a key or a choice,
/// that is alone in its row, and that is near the end of the screen.
fn best(
    lesson: &Lesson,
    label: ScreenLabel,
    open: &[&LabelledScreen],
    later: &[&LabelledScreen],
    earlier: &[&LabelledScreen],
) -> Option<(Marker, Vec<usize>)> {
    let patterns: Vec<(String, String)> =
        open.iter().flat_map(|screen| patterns(screen, label)).collect();
    // Screens of a program have most phrases in common.
    let mut known = BTreeSet::new();
    let candidates = patterns
        .into_iter()
        .filter(|(pattern, text)| !lesson.typed.contains(text) && known.insert(pattern.clone()))
        .filter_map(|(pattern, text)| MarkerCandidate::new(&pattern, text, open));
    let fit = candidates.filter_map(|candidate| {
        let marker = marker(&candidate, open, label);
        let is_on =
            |screen: &&LabelledScreen| is_shown(&candidate.pattern, &screen.look, marker.rows);
        if later.iter().any(is_on) {
            return None;
        }
        let is_alone = !earlier.iter().any(is_on);
        let anchors = candidate.pattern.as_str().matches(SIGNS).count();
        let worth = (candidate.on.len(), is_alone, KEYS.is_match(&candidate.text), anchors);
        let distance = candidate.on.iter().map(|(_, distance)| *distance).max();
        Some(((worth, Reverse(distance)), marker, candidate))
    });
    // The first of equals: `max_by` returns the last.
    let best = fit.reduce(|best, other| if other.0 > best.0 { other } else { best });
    best.map(|(_, marker, candidate)| (marker, candidate.on.iter().map(|(at, _)| *at).collect()))
}

/// Returns the patterns of all phrases of a screen, with their texts, from its last row upwards.
fn patterns(screen: &LabelledScreen, label: ScreenLabel) -> Vec<(String, String)> {
    // The row of the cursor holds what a person types.
    let typed = matches!(label, ScreenLabel::Idle | ScreenLabel::Working)
        .then(|| usize::from(screen.look.cursor.0));
    let rows = screen.look.rows.iter().enumerate().rev().filter(|(at, _)| Some(*at) != typed);
    let phrases = rows.flat_map(|(_, row)| phrases(row));
    let patterns = phrases.flat_map(|phrase| {
        let pattern = pattern_of(&phrase.text);
        let first = if phrase.first { format!("^{SIGNS}") } else { String::new() };
        let last = if phrase.last { format!("{SIGNS}$") } else { String::new() };
        [format!("{first}{pattern}{last}"), format!("{first}{pattern}"), pattern]
            .map(|pattern| (pattern, phrase.text.clone()))
    });
    patterns.collect()
}

impl MarkerCandidate {
    /// Returns `None` if the phrase is on none of the screens, because of a sign before it that
    /// counts as a letter.
    fn new(pattern: &str, text: String, open: &[&LabelledScreen]) -> Option<MarkerCandidate> {
        let pattern = Regex::new(pattern).ok()?;
        let distance =
            |(at, screen): (usize, &&LabelledScreen)| Some((at, distance(&pattern, &screen.look)?));
        let on: Vec<(usize, usize)> = open.iter().enumerate().filter_map(distance).collect();
        (!on.is_empty()).then_some(MarkerCandidate { pattern, text, on })
    }
}

/// Returns the last row with the phrase, counted from the end of the screen.
fn distance(pattern: &Regex, look: &Screenshot) -> Option<usize> {
    let height = height(look);
    look.rows[..height].iter().rposition(|row| pattern.is_match(row)).map(|row| height - row)
}

fn is_shown(pattern: &Regex, look: &Screenshot, rows: usize) -> bool {
    distance(pattern, look).is_some_and(|distance| distance <= rows)
}

fn marker(candidate: &MarkerCandidate, open: &[&LabelledScreen], label: ScreenLabel) -> Marker {
    let reach = |(at, distance): &(usize, usize)| match label {
        ScreenLabel::Asks => question_distance(&open[*at].look, *distance),
        ScreenLabel::Ended | ScreenLabel::Working | ScreenLabel::Idle => *distance + SLACK,
    };
    let rows = candidate.on.iter().map(reach).max().unwrap_or(1);
    Marker { pattern: candidate.pattern.as_str().to_owned(), rows }
}

/// Returns the row with the question that belongs to a phrase, counted from the end of the screen.
fn question_distance(look: &Screenshot, distance: usize) -> usize {
    let height = height(look);
    let row = height - distance;
    let is_question = |at: &usize| look.rows[*at].contains('?');
    let question = (row.saturating_sub(QUESTION)..=row).rev().find(is_question);
    question.map_or(distance + SLACK, |question| height - question)
}

/// Returns the phrases of a row: its parts between frames, brackets, commas and wide gaps.
fn phrases(row: &str) -> Vec<Phrase> {
    let is_end = |c: char| is_frame(c) || "()[]·•|,;".contains(c);
    let texts = row.split(is_end).flat_map(|part| part.split("  "));
    let mut phrases: Vec<Phrase> = Vec::new();
    for text in texts {
        let kept = |c: char| c.is_alphanumeric() || "?!:%".contains(c);
        let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
        let text = text.trim_end_matches(|c: char| !kept(c));
        let letters = text.chars().filter(|c| c.is_alphabetic()).count();
        // Lone letters and numbers say little, but still stand before or after a phrase.
        if !text.is_empty() {
            let first = phrases.is_empty();
            let fits = letters >= 2 && text.chars().count() <= LONGEST;
            let text = if fits { text.to_owned() } else { String::new() };
            phrases.push(Phrase { text, first, last: false });
        }
    }
    if let Some(phrase) = phrases.last_mut() {
        phrase.last = true;
    }
    phrases.retain(|phrase| !phrase.text.is_empty());
    phrases
}

/// Returns the gap of a screen without a marker, with the screen that shares most of its phrases.
fn alike(screen: &LabelledScreen, others: &[&LabelledScreen]) -> Option<LearnGap> {
    let phrases: Vec<String> =
        screen.look.rows.iter().flat_map(|row| phrases(row)).map(|phrase| phrase.text).collect();
    let shared = |other: &LabelledScreen| {
        phrases.iter().filter(|text| other.look.rows.iter().any(|row| row.contains(*text))).count()
    };
    let other = others.iter().rev().max_by_key(|other| shared(other))?;
    Some(LearnGap::Alike { screen: screen.name.clone(), other: other.name.clone() })
}
