//! Parser of profiles: keys, types and defaults.

use std::collections::BTreeMap;
use std::ops::Range;

use strum::{IntoEnumIterator, VariantNames};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::definition::{
    Answer, Brief, ComposerRule, Hook, Keys, Launch, Paste, Profile, Prompt, Ready, Runs,
    ShutdownPolicy,
};
use super::rule::{Area, Pattern, Rule, ScreenState};
use super::snapshot::Progress;
use super::words::{Group, Names};
use crate::model::mode::Mode;
use crate::model::sheet::{At, Faults, Section, SheetError, check_name, check_pattern};

const ROOT: [&str; 13] = [
    "about",
    "seen",
    "runs",
    "reads_mail",
    "hooks",
    "shutdown",
    "launch",
    "ready",
    "keys",
    "paste",
    "composer",
    "answers",
    "rule",
];
const LAUNCH: [&str; 10] =
    ["argv", "prompt", "brief", "modes", "plan", "resume", "once", "env", "allow", "keep_tools"];
const READY: [&str; 2] = ["when", "settle_ms"];
const KEYS: [&str; 3] = ["submit", "interrupt", "quit"];
const PASTE: [&str; 4] = ["bracketed", "gap_ms", "settle_ms", "most_bytes"];
const COMPOSER: [&str; 6] = ["line", "above", "until", "placeholder", "ghost", "last"];
const ANSWER: [&str; 2] = ["allow", "deny"];
const RULE: [&str; 10] = [
    "name",
    "state",
    "area",
    "match",
    "not",
    "title",
    "progress",
    "quiet_ms",
    "alternate",
    "bracketed_paste",
];

const SETTLE_MS: u64 = 700;
const PASTE_SETTLE_MS: u64 = 150;
const PASTE_MOST: u64 = 4096;
/// Maximum of every time in a profile, in milliseconds.
const LONGEST_MS: u64 = 60_000;

impl Profile {
    /// Parses a profile.
    ///
    /// # Errors
    /// The first error in the text, with line and column, if the TOML is invalid, or a key is
    /// unknown, missing or has an invalid value.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Profile, SheetError> {
        let table = DeTable::parse(text).map_err(|error| SheetError::syntax(text, &error))?;
        let mut faults = Faults::default();
        let profile = profile(name, table.get_ref(), &mut faults);
        faults.into_result(text)?;
        Ok(profile)
    }
}

fn profile(name: &str, table: &DeTable, faults: &mut Faults) -> Profile {
    let root = Section::root("the profile", table, &ROOT, faults);
    root.demand("launch", "[launch]", faults);
    let runs = root.choice("runs", &Runs::ALL, faults).map_or(Runs::Wrapped, At::into_inner);
    let rules = rules(&root.tables("rule", "[[rule]]", &RULE, faults), faults);
    let answers = answers(&root, &rules, faults);
    Profile {
        name: name.to_owned(),
        about: inner(root.required("about", faults)).unwrap_or_default(),
        seen: inner(root.word("seen", faults)),
        runs,
        reads_mail: root.flag("reads_mail", faults).unwrap_or(true),
        hooks: hooks(&root, faults),
        launch: launch(&root.table("launch", "[launch]", &LAUNCH, faults), runs, faults),
        ready: ready(&root.table("ready", "[ready]", &READY, faults), faults),
        keys: keys(&root.table("keys", "[keys]", &KEYS, faults), faults),
        paste: paste(&root.table("paste", "[paste]", &PASTE, faults), faults),
        composer: root
            .value("composer")
            .and_then(|value| Section::open("[composer]", value, &COMPOSER, faults))
            .and_then(|section| composer(&section, faults)),
        answers,
        shutdown: root
            .choice("shutdown", &ShutdownPolicy::ALL, faults)
            .map_or(ShutdownPolicy::Auto, At::into_inner),
        rules,
    }
}

/// Reads the keys that answer dialogs. A rule with keys must capture the question, because before
/// typing it is compared with the one that was decided.
fn answers(root: &Section, rules: &[Rule], faults: &mut Faults) -> BTreeMap<String, Answer> {
    let mut answers = BTreeMap::new();
    let Some(value) = root.value("answers") else { return answers };
    let DeValue::Table(table) = value.get_ref() else {
        faults.add(&value.span(), "`answers` must contain tables: [answers.RULE]");
        return answers;
    };
    for (name, value) in table {
        let said = match rules.iter().find(|rule| rule.name == **name.get_ref()) {
            None => Some("names no rule"),
            Some(rule) if !matches!(rule.state, ScreenState::Dialog(_)) => {
                Some("refers to a rule that is not a dialog")
            }
            Some(rule) if !rule.has_text() => Some(
                "is for a rule without a group `(?<text>…)`: what it asks could not be compared",
            ),
            Some(_) => None,
        };
        if let Some(said) = said {
            faults.add(
                &name.span(),
                format!("`{}` in [answers] {said}", name.get_ref().escape_debug()),
            );
        }
        let Some(section) = Section::open("[answers.RULE]", value, &ANSWER, faults) else {
            continue;
        };
        section.demand("allow", "`allow`", faults);
        section.demand("deny", "`deny`", faults);
        let (allow, deny) = (typed(&section, "allow", faults), typed(&section, "deny", faults));
        answers.extend(
            allow
                .zip(deny)
                .map(|(allow, deny)| (name.get_ref().to_string(), Answer { allow, deny })),
        );
    }
    answers
}

fn hooks(root: &Section, faults: &mut Faults) -> Vec<Hook> {
    let known = Hook::ALL.map(|(word, _)| word);
    let mut hooks = Vec::new();
    for word in root.list("hooks", faults) {
        match Hook::ALL.iter().find(|(name, _)| *name == word.get_ref().as_str()) {
            Some((_, hook)) => hooks.push(*hook),
            None => crate::model::sheet::unknown("hook", &word, &known, faults),
        }
    }
    hooks
}

fn launch(section: &Section, runs: Runs, faults: &mut Faults) -> Launch {
    section.demand("argv", "`argv`", faults);
    let argv = groups(section, "argv", faults);
    let prompt =
        section.choice("prompt", &Prompt::ALL, faults).map_or(Prompt::Typed, At::into_inner);
    // By default only wrapped programs are briefed: a native program that reads its mailbox already
    // knows about teams.
    let otherwise = if runs == Runs::Wrapped { Brief::FirstMessage } else { Brief::None };
    let brief = section.choice("brief", &Brief::ALL, faults).map_or(otherwise, At::into_inner);
    let on_it = [
        ("prompt", Names::Prompt, prompt == Prompt::Argv),
        ("brief", Names::Brief, brief == Brief::Argv),
    ];
    for (key, place, wanted) in on_it {
        let takes = argv.iter().any(|group| group.names().any(|name| name == place));
        if let Some(value) = section.value("argv")
            && takes != wanted
        {
            let said =
                format!("`argv` in [launch] has `{{{key}}}` exactly when `{key}` is \"argv\"");
            faults.add(&value.span(), said);
        }
    }
    let modes = section.table("modes", "[launch.modes]", Mode::VARIANTS, faults);
    let words = |mode: Mode, faults: &mut Faults| {
        modes.value(mode.as_str()).map(|_| (mode.as_str(), strings(&modes, mode.as_str(), faults)))
    };
    Launch {
        argv,
        prompt,
        brief,
        modes: Mode::iter().filter_map(|mode| words(mode, faults)).collect(),
        plan: strings(section, "plan", faults),
        resume: groups(section, "resume", faults),
        once: groups(section, "once", faults),
        keep_tools: strings(section, "keep_tools", faults),
        env: variables(section, faults),
        allow: section
            .names("allow", check_pattern, faults)
            .into_iter()
            .map(At::into_inner)
            .collect(),
    }
}

/// Reads a command line: a list of groups, each a list of words.
fn groups(section: &Section, key: &str, faults: &mut Faults) -> Vec<Group> {
    const WANTED: &str = "a list of lists of strings";
    let Some(value) = section.value(key) else { return Vec::new() };
    let DeValue::Array(array) = value.get_ref() else {
        section.refuse::<()>(key, value, WANTED, value.get_ref(), faults);
        return Vec::new();
    };
    if array.is_empty() {
        faults.add(&value.span(), format!("`{key}` in {} does not name a program", section.title));
    }
    let mut groups = Vec::new();
    for item in array {
        let DeValue::Array(words) = item.get_ref() else {
            section.refuse::<()>(key, item, WANTED, item.get_ref(), faults);
            continue;
        };
        let texts: Option<Vec<&str>> = words.iter().map(|word| word.get_ref().as_str()).collect();
        match texts {
            Some(texts) => groups.extend(group(&texts, &|at| words[at].span(), faults)),
            None => {
                section.refuse::<()>(key, item, WANTED, item.get_ref(), faults);
            }
        }
    }
    groups
}

fn group(
    words: &[&str],
    place: &dyn Fn(usize) -> Range<usize>,
    faults: &mut Faults,
) -> Option<Group> {
    if let Some(at) = words.iter().position(|word| word.contains('\0')) {
        faults.add(&place(at), "a word must not contain a NUL character");
    }
    match Group::parse(words.iter().copied()) {
        Ok(group) => Some(group),
        Err((at, said)) => {
            faults.add(&place(at), said);
            None
        }
    }
}

fn variables(section: &Section, faults: &mut Faults) -> BTreeMap<String, Group> {
    let place = section.value("env").map_or(0..0, Spanned::span);
    let found = section.variables("[launch.env]", faults);
    found
        .into_iter()
        .filter_map(|(name, value)| {
            Some((name, group(&[value.as_str()], &|_| place.clone(), faults)?))
        })
        .collect()
}

fn ready(section: &Section, faults: &mut Faults) -> Ready {
    let ms = number(section, "settle_ms", SETTLE_MS, LONGEST_MS, faults);
    let kinds = [
        ("hello", Ready::Hello),
        ("running", Ready::Running),
        ("settled", Ready::Settled { ms }),
        ("screen", Ready::Screen),
    ];
    section.choice("when", &kinds, faults).map_or(Ready::Screen, At::into_inner)
}

fn keys(section: &Section, faults: &mut Faults) -> Keys {
    Keys {
        submit: typed(section, "submit", faults).unwrap_or("\r".to_owned()),
        interrupt: typed(section, "interrupt", faults),
        quit: strings(section, "quit", faults),
    }
}

/// Reads keys to type: any non-empty text.
fn typed(section: &Section, key: &str, faults: &mut Faults) -> Option<String> {
    let keys = section.text(key, faults)?;
    if keys.get_ref().is_empty() {
        faults.add(&keys.span(), format!("`{key}` in {} is empty", section.title));
    }
    Some(keys.into_inner())
}

fn paste(section: &Section, faults: &mut Faults) -> Paste {
    let most = number(section, "most_bytes", PASTE_MOST, 1 << 20, faults);
    Paste {
        bracketed: section.flag("bracketed", faults).unwrap_or(true),
        gap_ms: number(section, "gap_ms", 0, LONGEST_MS, faults),
        settle_ms: number(section, "settle_ms", PASTE_SETTLE_MS, LONGEST_MS, faults),
        most_bytes: usize::try_from(most).unwrap_or(usize::MAX),
    }
}

fn composer(section: &Section, faults: &mut Faults) -> Option<ComposerRule> {
    section.demand("line", "`line`", faults);
    let line = pattern(section, "line", faults);
    if let (Some(found), Some(value)) = (&line, section.value("line"))
        && !found.has_text()
    {
        faults.add(&value.span(), "`line` in [composer] needs a group `(?<text>…)`");
    }
    Some(ComposerRule {
        above: pattern(section, "above", faults),
        until: pattern(section, "until", faults),
        placeholder: pattern(section, "placeholder", faults),
        ghost: section.flag("ghost", faults).unwrap_or(false),
        last: section.flag("last", faults).unwrap_or(false),
        line: line?,
    })
}

fn rules(sections: &[Section], faults: &mut Faults) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for section in sections {
        let Some(rule) = rule(section, faults) else { continue };
        if rules.iter().any(|other| other.name == rule.name) {
            let place = section.value("name").map_or(section.span.clone(), Spanned::span);
            faults.add(&place, format!("duplicate rule `{}`", rule.name));
        }
        rules.push(rule);
    }
    rules
}

fn rule(section: &Section, faults: &mut Faults) -> Option<Rule> {
    let name = section.required_name("name", check_name, faults);
    let state = section.required("state", faults).and_then(|word| {
        let found = ScreenState::parse(word.get_ref());
        if found.is_none() {
            let known = "ready, idle, working, needs_login, blocked:REASON, dialog:NAME";
            faults.add(
                &word.span(),
                format!("no state `{}`; known: {known}", word.get_ref().escape_debug()),
            );
        }
        found
    });
    let rule = Rule {
        name: inner(name).unwrap_or_default(),
        state: state.unwrap_or(ScreenState::Unknown),
        area: area(section, faults),
        patterns: patterns(section, "match", faults),
        absent: patterns(section, "not", faults),
        title: pattern(section, "title", faults),
        progress: inner(section.choice("progress", &Progress::ALL, faults)),
        quiet_ms: section
            .value("quiet_ms")
            .map(|_| number(section, "quiet_ms", 0, LONGEST_MS, faults)),
        alternate: section.flag("alternate", faults),
        bracketed_paste: section.flag("bracketed_paste", faults),
    };
    // A rule without conditions would match every screen, even an empty one. The keys are checked,
    // not the compiled patterns, so that an invalid pattern is reported only once.
    let asks = ["title", "progress", "quiet_ms"].iter().any(|key| section.value(key).is_some());
    if !asks && section.list("match", faults).is_empty() {
        faults.add(&section.span, "[[rule]] needs `match`, `title`, `progress` or `quiet_ms`");
    }
    Some(rule)
}

fn area(section: &Section, faults: &mut Faults) -> Area {
    let Some(word) = section.word("area", faults) else { return Area::Whole };
    Area::parse(word.get_ref()).unwrap_or_else(|| {
        let said = format!(
            "no area `{}`; known: whole, last N, cursor row, title",
            word.get_ref().escape_debug()
        );
        faults.add(&word.span(), said);
        Area::Whole
    })
}

fn pattern(section: &Section, key: &str, faults: &mut Faults) -> Option<Pattern> {
    let word = section.word(key, faults)?;
    compiled(section, key, &word, faults)
}

fn patterns(section: &Section, key: &str, faults: &mut Faults) -> Vec<Pattern> {
    section
        .list(key, faults)
        .iter()
        .filter_map(|word| compiled(section, key, word, faults))
        .collect()
}

fn compiled(
    section: &Section,
    key: &str,
    word: &At<String>,
    faults: &mut Faults,
) -> Option<Pattern> {
    Pattern::new(word.get_ref())
        .map_err(|said| faults.add(&word.span(), format!("`{key}` in {} {said}", section.title)))
        .ok()
}

/// Reads an integer from 0 to `most`.
fn number(section: &Section, key: &str, default: u64, most: u64, faults: &mut Faults) -> u64 {
    let Some(number) = section.integer(key, faults) else { return default };
    u64::try_from(*number.get_ref()).ok().filter(|n| *n <= most).unwrap_or_else(|| {
        faults
            .add(&number.span(), format!("`{key}` in {} must be from 0 to {most}", section.title));
        default
    })
}

fn strings(section: &Section, key: &str, faults: &mut Faults) -> Vec<String> {
    section.list(key, faults).into_iter().map(At::into_inner).collect()
}

fn inner<T>(value: Option<At<T>>) -> Option<T> {
    value.map(At::into_inner)
}
