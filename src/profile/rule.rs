//! Rules that map the content of a screen to the state of the program.

use std::fmt;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize, Serializer};

use super::snapshot::{ReportedProgress, Screenshot};
use super::value::{AtMost, LONGEST_MS};
use model::value::{As, Choice, FIELD, Name, parse_non_blank, parse_text, text_types};

/// Maximum length of a pattern in bytes.
const LONGEST: usize = 1000;
/// Maximum memory of a compiled pattern in bytes.
const LARGEST: usize = 1 << 20;

/// A regular expression. Matching takes time linear in the text; the pattern's length and memory
/// are bounded, because users write profiles.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern; `^` and `$` match the ends of a row.
    ///
    /// # Errors
    /// A one-line description, as the end of a sentence, if the pattern is too long, is invalid, or
    /// needs too much memory.
    pub fn new(text: &str) -> Result<Pattern, String> {
        if text.len() > LONGEST {
            return Err(format!("is longer than {LONGEST} bytes"));
        }
        let built = RegexBuilder::new(text).multi_line(true).size_limit(LARGEST).build();
        built.map(Pattern).map_err(|e| {
            let message = e.to_string();
            let last =
                message.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
            format!("is not a valid pattern: {last}")
        })
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the text of the first match.
    pub(super) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.find(text).map(|found| found.as_str())
    }

    /// Returns the match of the group `text` in a row, with its byte offset.
    pub(super) fn text<'t>(&self, row: &'t str) -> Option<(usize, &'t str)> {
        let found = self.0.captures(row)?.name("text")?;
        Some((found.start(), found.as_str()))
    }

    /// Returns true if the pattern has the group `text`.
    pub(super) fn has_text(&self) -> bool {
        self.0.capture_names().any(|name| name == Some("text"))
    }

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

/// State of a program, as shown on its screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScreenState {
    /// Accepts input, and has had none yet.
    Ready,
    /// Accepts input; its last turn has ended.
    Idle,
    /// Runs a turn.
    Working,
    /// Runs a turn, in which it repeats a failed request by itself.
    Retrying,
    /// Accepts input, but the usage limit of its account is reached.
    Limited,
    /// Accepts input; its last turn has ended with an error.
    Failed {
        /// Its provider refuses the login.
        needs_login: bool,
    },
    /// Waits for something that no key can provide; carries the reason.
    Blocked(String),
    /// Asks its user a question; carries the name of the dialog.
    Dialog(String),
    /// Is not logged in (EN-05).
    NeedsLogin,
    /// No rule matches. Nothing may be typed.
    Unknown,
}

impl ScreenState {
    /// Parses `ready`, `idle`, `working`, `retrying`, `limited`, `failed`, `failed:login`,
    /// `needs_login`, `blocked:REASON` or `dialog:NAME`.
    pub fn parse(word: &str) -> Option<ScreenState> {
        Some(match (word, word.split_once(':')) {
            ("ready", _) => ScreenState::Ready,
            ("idle", _) => ScreenState::Idle,
            ("working", _) => ScreenState::Working,
            ("retrying", _) => ScreenState::Retrying,
            ("limited", _) => ScreenState::Limited,
            ("failed", _) => ScreenState::Failed { needs_login: false },
            ("failed:login", _) => ScreenState::Failed { needs_login: true },
            ("needs_login", _) => ScreenState::NeedsLogin,
            (_, Some(("blocked", reason))) if is_word(reason) => {
                ScreenState::Blocked(reason.to_owned())
            }
            (_, Some(("dialog", name))) if is_word(name) => ScreenState::Dialog(name.to_owned()),
            (_, _) => return None,
        })
    }

    /// Returns true if text may be typed, which requires a composer.
    pub fn takes_input(&self) -> bool {
        match self {
            ScreenState::Ready
            | ScreenState::Idle
            | ScreenState::Working
            | ScreenState::Retrying
            | ScreenState::Limited
            | ScreenState::Failed { .. } => true,
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
            ScreenState::Retrying => f.write_str("retrying"),
            ScreenState::Limited => f.write_str("limited"),
            ScreenState::Failed { needs_login: false } => f.write_str("failed"),
            ScreenState::Failed { needs_login: true } => f.write_str("failed:login"),
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

/// Returns true for lower-case words joined by hyphens, at most 40 bytes.
fn is_word(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= 40
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// The part of the screen to which a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Area {
    /// All rows.
    #[default]
    Whole,
    /// This number of rows, up to the last non-empty one.
    Last(usize),
    /// The row of the cursor.
    CursorRow,
    /// The title of the window.
    Title,
    /// The rows above the composer with which the screen ends.
    AboveComposer,
    /// The rows of that composer, and those below it.
    Composer,
}

impl Area {
    /// Parses `whole`, `last N` (1 to 500), `cursor row`, `title`, `above composer` or `composer`.
    pub(super) fn parse(word: &str) -> Option<Area> {
        Some(match (word, word.strip_prefix("last ")) {
            ("whole", _) => Area::Whole,
            ("cursor row", _) => Area::CursorRow,
            ("title", _) => Area::Title,
            ("above composer", _) => Area::AboveComposer,
            ("composer", _) => Area::Composer,
            (_, Some(number)) => Area::Last(number.parse().ok().filter(|n| (1..=500).contains(n))?),
            (_, None) => return None,
        })
    }

    /// Names the area at the beginning of a sentence: `in the last 8 rows`.
    pub(super) fn describe(self) -> String {
        match self {
            Area::Whole => "on the screen".to_owned(),
            Area::Last(rows) => format!("in the last {rows} rows"),
            Area::CursorRow => "in the row of the cursor".to_owned(),
            Area::Title => "in the title".to_owned(),
            Area::AboveComposer => "above the composer".to_owned(),
            Area::Composer => "in the composer and below it".to_owned(),
        }
    }

    /// Returns the text of the area, given the first row of the composer with which the screen
    /// ends; `None` if the area needs one and there is none. Empty rows at the end of the screen do
    /// not count.
    pub(super) fn text(self, look: &Screenshot, composer: Option<usize>) -> Option<String> {
        let last = look.rows.iter().rposition(|row| !row.trim().is_empty());
        let (end, cursor) = (last.map_or(0, |last| last + 1), usize::from(look.cursor.0));
        let rows = match self {
            Area::Whole => 0..end,
            Area::Last(rows) => end.saturating_sub(rows)..end,
            Area::CursorRow => return Some(look.rows.get(cursor).cloned().unwrap_or_default()),
            Area::Title => return Some(look.title.clone()),
            Area::AboveComposer => 0..composer?,
            Area::Composer => composer?..end,
        };
        Some(look.rows[rows].join("\n"))
    }
}

text_types! {
    /// A pattern that is not blank.
    pub(crate) OnePattern(Pattern) = |text| compile(&parse_non_blank(text)?);
    pub(crate) ListedPattern(Pattern) = |text| compile(&parse_text(text)?);
    /// The pattern of the composer's first row.
    pub(crate) LinePattern(Pattern) = |text| {
        let pattern = compile(&parse_non_blank(text)?)?;
        let named = pattern.has_text().then_some(pattern);
        named.ok_or_else(|| format!("{FIELD} needs a group `(?<text>…)`"))
    };
    pub(crate) StateText(ScreenState) = |text| {
        let known = "ready, idle, working, retrying, limited, failed, failed:login, \
                     needs_login, blocked:REASON, dialog:NAME";
        ScreenState::parse(&parse_non_blank(text)?)
            .ok_or_else(|| format!("no state `{}`; known: {known}", text.escape_debug()))
    };
    pub(crate) AreaText(Area) = |text| {
        let known = "whole, last N, cursor row, title, above composer, composer";
        Area::parse(&parse_non_blank(text)?)
            .ok_or_else(|| format!("no area `{}`; known: {known}", text.escape_debug()))
    };
}

fn compile(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|problem| format!("{FIELD} {problem}"))
}

/// Conditions, all of which must hold, and the state of the program if they do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScreenRule {
    #[serde(with = "As::<Name>")]
    pub name: String,
    #[serde(with = "As::<StateText>")]
    pub state: ScreenState,
    #[serde(default, with = "As::<AreaText>")]
    pub(super) area: Area,
    /// Patterns that must all match in the area.
    #[serde(default, rename(deserialize = "match"), with = "As::<Vec<ListedPattern>>")]
    pub(super) patterns: Vec<Pattern>,
    /// Patterns that must not match in the area.
    #[serde(default, rename(deserialize = "not"), with = "As::<Vec<ListedPattern>>")]
    pub(super) absent: Vec<Pattern>,
    /// Pattern that must match the title of the window.
    #[serde(default, with = "As::<Option<OnePattern>>")]
    pub(super) title: Option<Pattern>,
    #[serde(default, with = "As::<Option<Choice<ReportedProgress>>>")]
    pub(super) progress: Option<ReportedProgress>,
    /// Minimum time since the last output, in milliseconds.
    #[serde(default, with = "As::<Option<AtMost<u64, LONGEST_MS>>>")]
    pub(super) quiet_ms: Option<u64>,
    /// Required state of the alternate screen.
    pub(super) alternate: Option<bool>,
    /// Required state of bracketed paste.
    pub(super) bracketed_paste: Option<bool>,
}

impl ScreenRule {
    /// Returns true if the rule has a condition. Without one it would match every screen, even an
    /// empty one.
    pub(super) fn has_condition(&self) -> bool {
        !self.patterns.is_empty()
            || self.title.is_some()
            || self.progress.is_some()
            || self.quiet_ms.is_some()
    }

    /// Returns true if one of the patterns has the group `text`.
    pub(super) fn has_text(&self) -> bool {
        self.patterns.iter().any(Pattern::has_text)
    }

    /// Returns the match of a group in the first pattern that has one.
    pub(super) fn group<'t>(&self, name: &str, text: &'t str) -> Option<&'t str> {
        self.patterns.iter().find_map(|pattern| pattern.group(name, text))
    }

    /// Returns the matched text as evidence, and the text of the area; `None` if the rule does not
    /// match. `end` is the first row of the composer with which the screen ends. Such a screen
    /// shows no dialog: the words of one are in an answer of the agent or in a draft, unless they
    /// are in the title or where the program is known to ask above its composer.
    pub(super) fn fits(&self, look: &Screenshot, end: Option<usize>) -> Option<(String, String)> {
        let asks = matches!(self.state, ScreenState::Dialog(_) | ScreenState::NeedsLogin);
        if asks && end.is_some() && !matches!(self.area, Area::Title | Area::AboveComposer) {
            return None;
        }
        let agrees = |wanted: Option<bool>, is: bool| wanted.is_none_or(|wanted| wanted == is);
        let still = self.quiet_ms.is_none_or(|ms| look.quiet_ms >= ms);
        let progress = self.progress.is_none_or(|wanted| wanted == look.progress);
        let modes = agrees(self.alternate, look.alternate)
            && agrees(self.bracketed_paste, look.bracketed_paste);
        if !still || !progress || !modes {
            return None;
        }
        let title = match &self.title {
            Some(pattern) => Some(pattern.find(&look.title)?),
            None => None,
        };
        let text = self.area.text(look, end)?;
        if self.absent.iter().any(|pattern| pattern.find(&text).is_some()) {
            return None;
        }
        let found: Option<Vec<&str>> =
            self.patterns.iter().map(|pattern| pattern.find(&text)).collect();
        let words: Vec<&str> = found?.into_iter().chain(title).map(str::trim).collect();
        let evidence = if words.is_empty() {
            format!("no output for {} ms", look.quiet_ms)
        } else {
            words.join(" … ")
        };
        Some((evidence, text))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Profile, Screenshot, judge};

    const RULES: &str = "about = \"x\"\n[launch]\nargv = [[\"x\"]]\n\
        [composer]\nline = '^> ?(?<text>.*)$'\nend = '^=+\\n>[^\\n]*\\n=+[^=]*\\z'\n\
        [[rule]]\nname = \"asks\"\nstate = \"dialog:ask\"\nmatch = ['sure\\?']\n\
        [[rule]]\nname = \"login\"\nstate = \"needs_login\"\narea = \"above composer\"\nmatch = ['^log in\\z']\n\
        [[rule]]\nname = \"works\"\nstate = \"working\"\narea = \"composer\"\nmatch = ['^stop: esc']\n\
        [[rule]]\nname = \"rests\"\nstate = \"idle\"\narea = \"composer\"\nmatch = ['^>']\n";

    #[test]
    fn pm_17_screen_that_ends_with_a_composer_shows_no_dialog() {
        let profile = Profile::parse("own", RULES).expect("a profile");
        let rule = |screen: &str| judge(&profile, &Screenshot::of_text(screen)).rule;
        assert_eq!(rule("sure?"), "asks");
        assert_eq!(rule("sure?\n==\n>\n==\nhints\nand more"), "rests");
        assert_eq!(rule("==\n> sure?\n=="), "rests");
        assert_eq!(rule("==\n>\n==\n=\nsure?"), "asks", "the composer is not at the end");
        assert_eq!(rule("log in\n==\n>\n=="), "login", "the rule asks above a composer");
        assert_eq!(rule("log in"), "", "there is no composer");
        assert_eq!(rule("stop: esc\n==\n> stop: esc\n=="), "rests");
        assert_eq!(rule("==\n>\n==\nstop: esc"), "works");
    }
}
