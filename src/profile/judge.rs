//! Judges a screen by the rules of a profile. The result is a pure function of a [`Look`], a
//! snapshot of the screen.

use serde::Serialize;

use super::rule::{Area, Pattern, Progress, Rule, ScreenState};
use super::{ComposerRule, Profile};

/// Maximum length of the evidence in characters.
const EVIDENCE: usize = 200;

/// Snapshot of a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    /// Plain text of each row, without trailing blanks.
    pub(crate) rows: Vec<String>,
    /// For each row, true if the terminal wrapped the row above into it, so that both are one line
    /// of the program. A missing entry counts as false.
    pub(crate) goes_on: Vec<bool>,
    /// Row and column, counted from 0.
    pub(crate) cursor: (u16, u16),
    /// True if the terminal shows its cursor, or the program draws one of its own. Some programs
    /// draw no cursor without the focus.
    pub(crate) cursor_shown: bool,
    /// For each row, the column from which all drawn text is faint, apart from a cursor. A missing
    /// entry counts as `None`: the row does not end in faint text.
    pub(crate) faint_from: Vec<Option<u16>>,
    /// Title of the window.
    pub(crate) title: String,
    pub(crate) progress: Progress,
    /// True if the program uses the alternate screen.
    pub(crate) alternate: bool,
    /// True if the program requests bracketed paste.
    pub(crate) bracketed_paste: bool,
    /// Time since the last output, in milliseconds.
    pub(crate) quiet_ms: u64,
}

/// State of a program as derived from its screen, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) state: ScreenState,
    /// Name of the rule that matched; empty if none did.
    pub(crate) rule: String,
    /// Text that the rule matched, or the question of a dialog, on one line.
    pub(crate) evidence: String,
    pub(crate) composer: Composer,
    /// The question, if the screen shows a dialog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<Asked>,
}

/// The question of a dialog, as far as its rule captures it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Asked {
    /// Text of the group `tool`.
    pub(crate) tool: Option<String>,
    /// Text of the group `text`, on one line and without frames; without such a group, the
    /// evidence.
    pub(crate) text: String,
}

/// Content of the composer, the input area of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Composer {
    Empty,
    /// Contains typed text, which must not be merged with a message (MSG-11). Rows are separated by
    /// line breaks.
    Holds(String),
    /// Not on the screen, or not readable.
    Unknown,
}

/// Judges a screen. The first rule that matches decides.
pub(crate) fn judge(profile: &Profile, look: &Look) -> Finding {
    let fitting = profile.rules.iter().find_map(|rule| Some((rule, rule.fits(look)?)));
    let Some((rule, evidence)) = fitting else {
        let evidence = "no rule matches".to_owned();
        return Finding {
            state: ScreenState::Unknown,
            rule: String::new(),
            evidence,
            composer: Composer::Unknown,
            asked: None,
        };
    };
    let composer = match &profile.composer {
        Some(how) if rule.state.takes_input() => composer(how, look),
        Some(_) | None => Composer::Unknown,
    };
    let asked =
        matches!(rule.state, ScreenState::Dialog(_)).then(|| asked(rule, look, &short(&evidence)));
    // The question is more specific than all the text that the patterns match around it.
    let evidence = short(asked.as_ref().map_or(&evidence, |asked| &asked.text));
    Finding { state: rule.state.clone(), rule: rule.name.clone(), evidence, composer, asked }
}

fn asked(rule: &Rule, look: &Look, evidence: &str) -> Asked {
    let tool = rule.group("tool", look).map(|tool| unframed(&tool));
    let text = rule.group("text", look).map_or_else(|| evidence.to_owned(), |text| unframed(&text));
    Asked { tool, text }
}

/// Joins the words into one line, without box-drawing and block characters.
fn unframed(text: &str) -> String {
    let is_frame = |c: char| ('\u{2500}'..='\u{259f}').contains(&c);
    text.split(|c: char| c.is_whitespace() || is_frame(c))
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Joins the words into one line of limited length. Runs of one character, as in drawn lines, are
/// cut to three.
fn short(evidence: &str) -> String {
    let words = evidence.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut kept: Vec<char> = Vec::new();
    for c in words.chars() {
        if !kept.ends_with(&[c, c, c]) {
            kept.push(c);
        }
    }
    kept.into_iter().take(EVIDENCE).collect()
}

impl Look {
    /// Creates a snapshot from text only; everything else has its default.
    pub(crate) fn of_text(text: &str) -> Look {
        let rows: Vec<String> = text.lines().map(|row| row.trim_end().to_owned()).collect();
        Look {
            goes_on: Vec::new(),
            cursor: (0, 0),
            cursor_shown: true,
            faint_from: Vec::new(),
            title: String::new(),
            progress: Progress::None,
            alternate: false,
            bracketed_paste: false,
            quiet_ms: 0,
            rows,
        }
    }

    /// Returns the text of an area. Empty rows at the end of the screen do not count.
    pub(super) fn area(&self, area: Area) -> String {
        let end =
            self.rows.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |last| last + 1);
        match area {
            Area::Whole => self.rows[..end].join("\n"),
            Area::Last(rows) => self.rows[end.saturating_sub(rows)..end].join("\n"),
            Area::CursorRow => {
                self.rows.get(usize::from(self.cursor.0)).cloned().unwrap_or_default()
            }
            Area::Title => self.title.clone(),
        }
    }

    /// Returns true if all text drawn in the row from this column on is faint.
    fn is_faint(&self, row: usize, column: usize) -> bool {
        let from = self.faint_from.get(row).copied().flatten();
        from.is_some_and(|from| usize::from(from) <= column)
    }

    fn goes_on(&self, row: usize) -> bool {
        self.goes_on.get(row).is_some_and(|goes_on| *goes_on)
    }
}

/// Returns the last rows above the composer that contain more than frames, at most `most`. Without
/// a composer, these are the last rows of the screen.
pub(crate) fn last_words(profile: &Profile, look: &Look, most: usize) -> Vec<String> {
    let composer = profile.composer.as_ref().and_then(|how| first_row(how, look));
    let above = &look.rows[..composer.unwrap_or(look.rows.len())];
    let mut rows: Vec<String> = above
        .iter()
        .rev()
        .map(|row| unframed(row))
        .filter(|row| !row.is_empty())
        .take(most)
        .collect();
    rows.reverse();
    rows
}

/// Returns the first row of the composer.
fn first_row(how: &ComposerRule, look: &Look) -> Option<usize> {
    let is_first = |at: usize| {
        let above = at.checked_sub(1).and_then(|at| look.rows.get(at)).map_or("", String::as_str);
        how.line.text(&look.rows[at]).is_some()
            && how.above.as_ref().is_none_or(|p| p.find(above).is_some())
    };
    let last = (0..look.rows.len()).rev().find(|at| is_first(*at))?;
    // The continuation of a wrapped line can match too, even as an empty composer (MSG-03). The row
    // at which the line starts takes precedence if it matches.
    let start = (0..=last).rev().find(|at| !look.goes_on(*at)).filter(|at| is_first(*at));
    Some(start.unwrap_or(last))
}

/// Reads the content of the composer.
fn composer(how: &ComposerRule, look: &Look) -> Composer {
    let Some(first) = first_row(how, look) else { return Composer::Unknown };
    let broken = (first + 1..look.rows.len()).take_while(|at| look.goes_on(*at)).count();
    if how.last && look.rows[first + broken + 1..].iter().any(|row| !row.is_empty()) {
        return Composer::Unknown;
    }
    let listed = |until: &Pattern| {
        look.rows[first + 1..].iter().take_while(|row| until.find(row).is_none()).count()
    };
    let more = how.until.as_ref().map_or(0, listed).max(broken);
    let is_rest = |at: usize| at > first && look.goes_on(at);
    let lines: Vec<(usize, usize, &str)> =
        (first..=first + more).map(|at| written(how, look, at, is_rest(at))).collect();
    let text =
        lines.iter().map(|(_, _, text)| *text).collect::<Vec<_>>().join("\n").trim().to_owned();
    let mut filled = lines.iter().filter(|(_, _, text)| !text.is_empty()).peekable();
    let Some((row, column, _)) = filled.peek() else { return Composer::Empty };
    // Typing leaves the cursor after the text. If it is before the text, the program may have drawn
    // the text itself.
    let before = usize::from(look.cursor.0) == *row && usize::from(look.cursor.1) <= *column;
    let placeholder =
        before && how.placeholder.as_ref().is_some_and(|pattern| pattern.find(&text).is_some());
    let ghost = how.ghost && (before || !look.cursor_shown);
    if placeholder || (ghost && filled.all(|(row, column, _)| look.is_faint(*row, *column))) {
        Composer::Empty
    } else {
        Composer::Holds(text)
    }
}

/// Returns the row, the column at which its text begins, and the text. In the continuation of a
/// wrapped line, the whole row is text.
fn written<'l>(
    how: &ComposerRule,
    look: &'l Look,
    at: usize,
    is_rest: bool,
) -> (usize, usize, &'l str) {
    let row = &look.rows[at];
    let (start, text) = how.line.text(row).filter(|_| !is_rest).unwrap_or((0, row));
    let lead = text.len() - text.trim_start().len();
    (at, row[..start + lead].chars().count(), text.trim())
}
