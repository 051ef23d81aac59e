//! Judges a screen by the rules of a profile. The result is a pure function of a
//! [`Screenshot`].

use serde::Serialize;
use unicode_width::UnicodeWidthChar;

use super::definition::Profile;
use super::rule::{Area, Pattern, ScreenRule, ScreenState};
use super::snapshot::Screenshot;
use super::typing::ComposerRule;
use model::members::record;

/// Maximum length of the evidence in characters.
const EVIDENCE: usize = 200;

/// State of a program as derived from its screen, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScreenFinding {
    pub state: ScreenState,
    /// Name of the rule that matched; empty if none did.
    pub rule: String,
    /// Text that the rule matched, or its groups `text` and `attempt`, on one line.
    pub evidence: String,
    pub composer: Composer,
    /// The end of a usage limit, or of the pause before the next try, as the screen shows it: the
    /// group `until`, on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The question, if the screen shows a dialog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<DialogQuestion>,
}

impl ScreenFinding {
    /// Returns the reason for which the program waits for a person; `None` if it does not.
    pub fn blocked_reason(&self) -> Option<String> {
        match &self.state {
            ScreenState::Blocked(_) | ScreenState::Dialog(_) | ScreenState::NeedsLogin => {
                let what = self.state.to_string();
                let what = what.strip_prefix("blocked:").unwrap_or(&what);
                Some(record::blocked_reason(
                    what,
                    &format!("rule {}: {}", self.rule, self.evidence),
                ))
            }
            ScreenState::Ready
            | ScreenState::Idle
            | ScreenState::Working
            | ScreenState::Retrying
            | ScreenState::Limited
            | ScreenState::Failed { .. }
            | ScreenState::Unknown => None,
        }
    }
}

/// The question of a dialog, as far as its rule captures it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DialogQuestion {
    /// Text of the group `tool`.
    pub tool: Option<String>,
    /// Text of the group `text`, on one line and without frames; without such a group, the
    /// evidence.
    pub text: String,
}

/// Content of the composer, the input area of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Composer {
    Empty,
    /// Contains typed text, which must not be merged with a message (MSG-11). Rows are separated by
    /// line breaks.
    Holds(String),
    /// Not on the screen, or not readable.
    Unknown,
}

/// Judges a screen. The first rule that matches decides; if none does, only the composer is read.
pub fn judge(profile: &Profile, look: &Screenshot) -> ScreenFinding {
    let end = composer_row(profile, look);
    let fitting = profile.rules.iter().find_map(|rule| Some((rule, rule.fits(look, end)?)));
    let Some((rule, (evidence, text))) = fitting else {
        let evidence = "no rule matches".to_owned();
        let read = |how| composer(how, look);
        return ScreenFinding {
            state: ScreenState::Unknown,
            rule: String::new(),
            evidence,
            composer: profile.composer.as_ref().map_or(Composer::Unknown, read),
            until: None,
            asked: None,
        };
    };
    let composer = match &profile.composer {
        Some(how) if rule.state.takes_input() => composer(how, look),
        Some(_) | None => Composer::Unknown,
    };
    let asked =
        matches!(rule.state, ScreenState::Dialog(_)).then(|| asked(rule, &text, &short(&evidence)));
    let until = rule.group("until", &text).map(unframed);
    let said: Vec<&str> =
        ["text", "attempt"].iter().filter_map(|name| rule.group(name, &text)).collect();
    // The question is more specific than all the text that the patterns match around it.
    let evidence = if said.is_empty() { evidence } else { unframed(&said.join(" · ")) };
    let evidence = short(asked.as_ref().map_or(&evidence, |asked| &asked.text));
    ScreenFinding {
        state: rule.state.clone(),
        rule: rule.name.clone(),
        evidence,
        composer,
        until,
        asked,
    }
}

fn asked(rule: &ScreenRule, text: &str, evidence: &str) -> DialogQuestion {
    let tool = rule.group("tool", text).map(unframed);
    // A path is wrapped without a space.
    let is_path = rule.state == ScreenState::Dialog("trust".to_owned());
    let join = |text: &str| match is_path {
        true => text.lines().map(unframed).collect(),
        false => unframed(text),
    };
    let text = rule.group("text", text).map_or_else(|| evidence.to_owned(), join);
    DialogQuestion { tool, text }
}

/// Joins the words into one line, without box-drawing and block characters.
fn unframed(text: &str) -> String {
    let is_frame = |c: char| ('\u{2500}'..='\u{259f}').contains(&c);
    text.split(|c: char| c.is_whitespace() || is_frame(c))
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Joins the words into one line of limited length. Runs of one sign, as in drawn lines, are cut to
/// three.
fn short(evidence: &str) -> String {
    let words = evidence.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut kept: Vec<char> = Vec::new();
    for c in words.chars() {
        if c.is_alphanumeric() || !kept.ends_with(&[c, c, c]) {
            kept.push(c);
        }
    }
    kept.into_iter().take(EVIDENCE).collect()
}

/// Returns the last rows above the composer that contain more than frames, at most `most`. Without
/// a composer, these are the last rows of the screen.
pub fn last_words(profile: &Profile, look: &Screenshot, most: usize) -> Vec<String> {
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

/// Returns the first row of the composer with which the screen ends; `None` if it ends with
/// something else, or if the profile does not say how to tell.
pub(super) fn composer_row(profile: &Profile, look: &Screenshot) -> Option<usize> {
    let text = Area::Whole.text(look, None)?;
    let above = text.strip_suffix(profile.composer.as_ref()?.end.as_ref()?.find(&text)?)?;
    Some(above.matches('\n').count())
}

/// Returns the first row of the composer.
fn first_row(how: &ComposerRule, look: &Screenshot) -> Option<usize> {
    let is_first = |at: usize| {
        let above = at.checked_sub(1).and_then(|at| look.rows.get(at)).map_or("", String::as_str);
        how.line.text(&look.rows[at]).is_some()
            // What is above the first row is out of view.
            && (at == 0 || how.above.as_ref().is_none_or(|p| p.find(above).is_some()))
    };
    let last = (0..look.rows.len()).rev().find(|at| is_first(*at))?;
    // The continuation of a wrapped line can match too, even as an empty composer (MSG-03). The row
    // at which the line starts takes precedence if it matches.
    let start = (0..=last).rev().find(|at| !look.goes_on(*at)).filter(|at| is_first(*at));
    Some(start.unwrap_or(last))
}

/// Reads the content of the composer.
fn composer(how: &ComposerRule, look: &Screenshot) -> Composer {
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
    look: &'l Screenshot,
    at: usize,
    is_rest: bool,
) -> (usize, usize, &'l str) {
    let row = &look.rows[at];
    let (start, text) = how.line.text(row).filter(|_| !is_rest).unwrap_or((0, row));
    let lead = text.len() - text.trim_start().len();
    // Columns are cells of the terminal, of which a wide character takes two.
    let column = row[..start + lead].chars().filter_map(UnicodeWidthChar::width).sum();
    (at, column, text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MSG-21: what stands in the composer can be named although no rule matches the screen.
    #[test]
    fn msg_21_composer_is_read_on_a_screen_that_no_rule_matches() {
        let text = "about = \"x\"\n[launch]\nargv = [[\"x\"]]\n\
                    [composer]\nline = '^> ?(?<text>.*)$'\n\
                    [[rule]]\nname = \"ask\"\nstate = \"dialog:trust\"\nmatch = ['trust\\?']\n";
        let profile = Profile::parse("own", text).expect("a profile");
        let composer = |screen: &str| judge(&profile, &Screenshot::of_text(screen)).composer;
        assert_eq!(composer("new\n> x"), Composer::Holds("x".to_owned()));
        assert_eq!(composer("new\n>"), Composer::Empty);
        assert_eq!(composer("new"), Composer::Unknown);
        assert_eq!(composer("trust?\n> x"), Composer::Unknown, "a dialog takes no text");
    }
}
