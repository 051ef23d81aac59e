//! The tables of a profile as they are written, with their defaults, and their conversion.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::definition::{
    Brief, ComposerRule, DialogKeys, Hook, Keys, Launch, LoginSigns, MailDelivery, Paste, Profile,
    Prompt, Ready, Runs, ShutdownPolicy,
};
use super::rule::{Area, Pattern, ScreenRule, ScreenState};
use super::snapshot::ReportedProgress;
use super::words::{Group, Placeholder};
use crate::config::value::{
    Choice, FIELD, KeyedTable, Name, NonBlank, PlainText, TableList, VariablePattern, Variables,
    checked, parse_non_blank, parse_text, strings, text_types,
};
use crate::config::{ConfigError, Document, Faults, parse};
use crate::model::mode::Mode;
use crate::model::name::check_variable;
use crate::model::transcript::TranscriptForm;

const SETTLE_MS: u64 = 700;
const PASTE_SETTLE_MS: u64 = 150;
const PASTE_MOST: u64 = 4096;
/// Maximum of every time in a profile, in milliseconds.
const LONGEST_MS: u64 = 60_000;
/// Maximum of `most_bytes`.
const LARGEST_PASTE: u64 = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileTable {
    about: NonBlank,
    seen: Option<NonBlank>,
    runs: Option<Choice<Runs>>,
    reads_mail: Option<bool>,
    mail: Option<Choice<MailDelivery>>,
    #[serde(default)]
    hooks: Vec<Choice<Hook>>,
    shutdown: Option<Choice<ShutdownPolicy>>,
    launch: KeyedTable<LaunchTable>,
    #[serde(default)]
    ready: KeyedTable<ReadyTable>,
    #[serde(default)]
    keys: KeyedTable<KeysTable>,
    #[serde(default)]
    paste: KeyedTable<PasteTable>,
    usage: Option<KeyedTable<UsageTable>>,
    composer: Option<KeyedTable<ComposerTable>>,
    #[serde(default)]
    answers: BTreeMap<Spanned<String>, KeyedTable<AnswerTable>>,
    login: Option<KeyedTable<LoginTable>>,
    #[serde(default)]
    rule: TableList<RuleTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LaunchTable {
    argv: Spanned<Templates>,
    prompt: Option<Choice<Prompt>>,
    brief: Option<Choice<Brief>>,
    #[serde(default)]
    modes: KeyedTable<ModesTable>,
    #[serde(default)]
    plan: Vec<PlainText>,
    resume: Option<Templates>,
    once: Option<Templates>,
    env: Option<Spanned<Variables>>,
    #[serde(default)]
    allow: Vec<VariablePattern>,
    #[serde(default)]
    keep_tools: Vec<PlainText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct ModesTable {
    default: Option<Vec<PlainText>>,
    accept_edits: Option<Vec<PlainText>>,
    auto: Option<Vec<PlainText>>,
    bypass_permissions: Option<Vec<PlainText>>,
    plan: Option<Vec<PlainText>>,
    dont_ask: Option<Vec<PlainText>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ReadyTable {
    when: Option<Choice<ReadyWhen>>,
    settle_ms: Option<AtMost<LONGEST_MS>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ReadyWhen {
    Hello,
    Running,
    Settled,
    Screen,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct KeysTable {
    submit: Option<TypedKeys>,
    interrupt: Option<TypedKeys>,
    quit: Vec<PlainText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PasteTable {
    bracketed: Option<bool>,
    gap_ms: Option<AtMost<LONGEST_MS>>,
    settle_ms: Option<AtMost<LONGEST_MS>>,
    most_bytes: Option<AtMost<LARGEST_PASTE>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageTable {
    transcript: Choice<TranscriptForm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ComposerTable {
    line: Spanned<OnePattern>,
    above: Option<OnePattern>,
    until: Option<OnePattern>,
    placeholder: Option<OnePattern>,
    #[serde(default)]
    ghost: bool,
    #[serde(default)]
    last: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerTable {
    allow: TypedKeys,
    deny: TypedKeys,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LoginTable {
    env: Vec<ListedVariable>,
    files: Vec<CredentialFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    name: Spanned<Name>,
    state: StateText,
    area: Option<AreaText>,
    #[serde(default, rename = "match")]
    patterns: Vec<ListedPattern>,
    #[serde(default, rename = "not")]
    absent: Vec<ListedPattern>,
    title: Option<OnePattern>,
    progress: Option<Choice<ReportedProgress>>,
    quiet_ms: Option<AtMost<LONGEST_MS>>,
    alternate: Option<bool>,
    bracketed_paste: Option<bool>,
}

/// An integer from 0 to `MOST`.
#[derive(Debug)]
struct AtMost<const MOST: u64>(u64);

impl<'de, const MOST: u64> Deserialize<'de> for AtMost<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AtMost<MOST>, D::Error> {
        let number = u64::try_from(i64::deserialize(deserializer)?).ok();
        number
            .filter(|number| *number <= MOST)
            .map(AtMost)
            .ok_or_else(|| D::Error::custom(format!("{FIELD} must be from 0 to {MOST}")))
    }
}

text_types! {
    /// Keys to type: any non-empty text.
    TypedKeys(String) = |keys| {
        if keys.is_empty() { Err(format!("{FIELD} is empty")) } else { Ok(keys.to_owned()) }
    };
    /// A pattern that is not blank.
    OnePattern(Pattern) = |text| compile(&parse_non_blank(text)?);
    ListedPattern(Pattern) = |text| compile(&parse_text(text)?);
    ListedVariable(String) = |text| checked(parse_text(text), check_variable);
    CredentialFile(String) = |text| checked(parse_text(text), check_credential_file);
    StateText(ScreenState) = |text| {
        let known = "ready, idle, working, limited, failed, failed:login, needs_login, \
                     blocked:REASON, dialog:NAME";
        ScreenState::parse(&parse_non_blank(text)?)
            .ok_or_else(|| format!("no state `{}`; known: {known}", text.escape_debug()))
    };
    AreaText(Area) = |text| {
        let known = "whole, last N, cursor row, title";
        Area::parse(&parse_non_blank(text)?)
            .ok_or_else(|| format!("no area `{}`; known: {known}", text.escape_debug()))
    };
}

/// Checks the path of a file below the home directory or below the directory in a variable.
fn check_credential_file(path: &str) -> Result<(), String> {
    let rule = "does not begin with `~/` or `$NAME/`";
    let (first, rest) = path.split_once('/').ok_or(rule)?;
    let below = first == "~" || first.strip_prefix('$').is_some_and(|v| check_variable(v).is_ok());
    if below && !rest.is_empty() { Ok(()) } else { Err(rule.to_owned()) }
}

fn compile(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|problem| format!("{FIELD} {problem}"))
}

/// The groups of a command line, each a list of words.
#[derive(Debug)]
struct Templates(Vec<Vec<Spanned<String>>>);

impl<'de> Deserialize<'de> for Templates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Templates, D::Error> {
        deserializer.deserialize_seq(TemplatesVisitor)
    }
}

struct TemplatesVisitor;

impl<'de> Visitor<'de> for TemplatesVisitor {
    type Value = Templates;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of lists of strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Templates, A::Error> {
        let groups = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        if groups.is_empty() {
            return Err(A::Error::custom(format!("{FIELD} does not name a program")));
        }
        Ok(Templates(groups))
    }
}

impl Profile {
    /// Parses a profile.
    ///
    /// # Errors
    /// A fault with its position: the first invalid key or value, or else the first contradiction
    /// between keys.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Profile, ConfigError> {
        let table: ProfileTable = parse(Document { title: "the profile", denied: &[] }, text)?;
        let mut faults = Faults::default();
        let profile = table.convert(name, &mut faults);
        faults.into_result(text)?;
        Ok(profile)
    }
}

impl ProfileTable {
    fn convert(self, name: &str, faults: &mut Faults) -> Profile {
        let runs = self.runs.map_or(Runs::Wrapped, |runs| runs.0);
        let rules = convert_rules(self.rule, faults);
        let answers = convert_answers(self.answers, &rules, faults);
        Profile {
            name: name.to_owned(),
            about: self.about.0,
            seen: self.seen.map(|seen| seen.0),
            runs,
            reads_mail: self.reads_mail.unwrap_or(true),
            mail: self.mail.map_or(MailDelivery::Typed, |mail| mail.0),
            hooks: self.hooks.into_iter().map(|hook| hook.0).collect(),
            transcript: self.usage.map(|usage| usage.0.transcript.0),
            launch: self.launch.0.convert(runs, faults),
            ready: self.ready.0.convert(),
            keys: Keys {
                submit: self.keys.0.submit.map_or("\r".to_owned(), |keys| keys.0),
                interrupt: self.keys.0.interrupt.map(|keys| keys.0),
                quit: strings(self.keys.0.quit),
            },
            paste: self.paste.0.convert(),
            composer: self.composer.map(|composer| composer.0.convert(faults)),
            answers,
            shutdown: self.shutdown.map_or(ShutdownPolicy::Auto, |shutdown| shutdown.0),
            login: self.login.map(|login| LoginSigns {
                env: login.0.env.into_iter().map(|name| name.0).collect(),
                files: login.0.files.into_iter().map(|file| file.0).collect(),
            }),
            rules,
        }
    }
}

/// Converts the keys that answer dialogs. A rule with keys must capture the question, because
/// before typing it is compared with the one that was decided.
fn convert_answers(
    tables: BTreeMap<Spanned<String>, KeyedTable<AnswerTable>>,
    rules: &[ScreenRule],
    faults: &mut Faults,
) -> BTreeMap<String, DialogKeys> {
    let mut answers = BTreeMap::new();
    for (name, KeyedTable(AnswerTable { allow, deny })) in tables {
        let problem = match rules.iter().find(|rule| rule.name == *name.get_ref()) {
            None => Some("names no rule"),
            Some(rule) if !matches!(rule.state, ScreenState::Dialog(_)) => {
                Some("refers to a rule that is not a dialog")
            }
            Some(rule) if !rule.has_text() => Some(
                "is for a rule without a group `(?<text>…)`: what it asks could not be compared",
            ),
            Some(_) => None,
        };
        if let Some(problem) = problem {
            faults.add(
                &name.span(),
                format!("`{}` in [answers] {problem}", name.get_ref().escape_debug()),
            );
        }
        answers.insert(name.into_inner(), DialogKeys { allow: allow.0, deny: deny.0 });
    }
    answers
}

impl LaunchTable {
    fn convert(self, runs: Runs, faults: &mut Faults) -> Launch {
        let prompt = self.prompt.map_or(Prompt::Typed, |prompt| prompt.0);
        // By default only wrapped programs are briefed: a native program that reads its mailbox
        // already knows about teams.
        let default_brief = if runs == Runs::Wrapped { Brief::FirstMessage } else { Brief::None };
        let brief = self.brief.map_or(default_brief, |brief| brief.0);
        let argv_span = self.argv.span();
        let argv = convert_groups(self.argv.into_inner(), faults);
        let conditional = [
            ("prompt", Placeholder::Prompt, prompt == Prompt::Argv),
            ("brief", Placeholder::Brief, brief == Brief::Argv),
        ];
        for (key, place, wanted) in conditional {
            if argv.iter().any(|group| group.names().any(|name| name == place)) != wanted {
                let message =
                    format!("`argv` in [launch] has `{{{key}}}` exactly when `{key}` is \"argv\"");
                faults.add(&argv_span, message);
            }
        }
        Launch {
            argv,
            prompt,
            brief,
            modes: self.modes.0.convert(),
            plan: strings(self.plan),
            resume: self.resume.map(|groups| convert_groups(groups, faults)).unwrap_or_default(),
            once: self.once.map(|groups| convert_groups(groups, faults)).unwrap_or_default(),
            keep_tools: strings(self.keep_tools),
            env: self.env.map(|env| convert_variables(env, faults)).unwrap_or_default(),
            allow: self.allow.into_iter().map(|pattern| pattern.0).collect(),
        }
    }
}

impl ModesTable {
    fn convert(self) -> BTreeMap<&'static str, Vec<String>> {
        [
            (Mode::Default, self.default),
            (Mode::AcceptEdits, self.accept_edits),
            (Mode::Auto, self.auto),
            (Mode::BypassPermissions, self.bypass_permissions),
            (Mode::Plan, self.plan),
            (Mode::DontAsk, self.dont_ask),
        ]
        .into_iter()
        .filter_map(|(mode, words)| Some((mode.as_str(), strings(words?))))
        .collect()
    }
}

fn convert_groups(Templates(groups): Templates, faults: &mut Faults) -> Vec<Group> {
    groups
        .iter()
        .filter_map(|words| {
            let texts: Vec<&str> = words.iter().map(|word| word.get_ref().as_str()).collect();
            convert_group(&texts, &|at| words[at].span(), faults)
        })
        .collect()
}

fn convert_group(
    words: &[&str],
    span_of: &dyn Fn(usize) -> Range<usize>,
    faults: &mut Faults,
) -> Option<Group> {
    if let Some(at) = words.iter().position(|word| word.contains('\0')) {
        faults.add(&span_of(at), "a word must not contain a NUL character");
    }
    Group::parse(words.iter().copied())
        .map_err(|(at, problem)| faults.add(&span_of(at), problem))
        .ok()
}

fn convert_variables(env: Spanned<Variables>, faults: &mut Faults) -> BTreeMap<String, Group> {
    let span = env.span();
    let variables = env.into_inner().0.into_iter();
    variables
        .filter_map(|(name, value)| {
            Some((name, convert_group(&[value.as_str()], &|_| span.clone(), faults)?))
        })
        .collect()
}

impl ReadyTable {
    fn convert(self) -> Ready {
        match self.when.map_or(ReadyWhen::Screen, |when| when.0) {
            ReadyWhen::Hello => Ready::Hello,
            ReadyWhen::Running => Ready::Running,
            ReadyWhen::Settled => {
                Ready::Settled { ms: self.settle_ms.map_or(SETTLE_MS, |ms| ms.0) }
            }
            ReadyWhen::Screen => Ready::Screen,
        }
    }
}

impl PasteTable {
    fn convert(self) -> Paste {
        let most = self.most_bytes.map_or(PASTE_MOST, |most| most.0);
        Paste {
            bracketed: self.bracketed.unwrap_or(true),
            gap_ms: self.gap_ms.map_or(0, |ms| ms.0),
            settle_ms: self.settle_ms.map_or(PASTE_SETTLE_MS, |ms| ms.0),
            most_bytes: usize::try_from(most).unwrap_or(usize::MAX),
        }
    }
}

impl ComposerTable {
    fn convert(self, faults: &mut Faults) -> ComposerRule {
        if !self.line.get_ref().0.has_text() {
            faults.add(&self.line.span(), "`line` in [composer] needs a group `(?<text>…)`");
        }
        ComposerRule {
            line: self.line.into_inner().0,
            above: self.above.map(|pattern| pattern.0),
            until: self.until.map(|pattern| pattern.0),
            placeholder: self.placeholder.map(|pattern| pattern.0),
            ghost: self.ghost,
            last: self.last,
        }
    }
}

fn convert_rules(TableList(tables): TableList<RuleTable>, faults: &mut Faults) -> Vec<ScreenRule> {
    let mut rules: Vec<ScreenRule> = Vec::new();
    for table in tables {
        let header = table.span();
        let table = table.into_inner();
        let name = &table.name.get_ref().0;
        if rules.iter().any(|other| other.name == *name) {
            faults.add(&table.name.span(), format!("duplicate rule `{name}`"));
        }
        // A rule without conditions would match every screen, even an empty one.
        let has_condition = !table.patterns.is_empty()
            || table.title.is_some()
            || table.progress.is_some()
            || table.quiet_ms.is_some();
        if !has_condition {
            faults.add(&header, "[[rule]] needs `match`, `title`, `progress` or `quiet_ms`");
        }
        rules.push(ScreenRule {
            name: table.name.into_inner().0,
            state: table.state.0,
            area: table.area.map_or(Area::Whole, |area| area.0),
            patterns: table.patterns.into_iter().map(|pattern| pattern.0).collect(),
            absent: table.absent.into_iter().map(|pattern| pattern.0).collect(),
            title: table.title.map(|pattern| pattern.0),
            progress: table.progress.map(|progress| progress.0),
            quiet_ms: table.quiet_ms.map(|ms| ms.0),
            alternate: table.alternate,
            bracketed_paste: table.bracketed_paste,
        });
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_names_variables_and_files_of_the_user() {
        let with = |login: &str| {
            let text = format!("about = \"x\"\n[launch]\nargv = [[\"x\"]]\n[login]\n{login}\n");
            Profile::parse("own", &text).map_err(|e| e.to_string())
        };
        let own = with("env = [\"KEY\"]\nfiles = [\"~/.x/a\", \"$X_HOME/a\"]").expect("valid");
        let signs = own.login.expect("a login");
        assert_eq!(
            (signs.env, signs.files.join(" ")),
            (vec!["KEY".to_owned()], "~/.x/a $X_HOME/a".to_owned())
        );
        for file in ["/etc/x", "x", "~", "~/", "$/x", "$X-Y/a", "~root/x"] {
            let fault = with(&format!("files = [\"{file}\"]")).expect_err("a fault");
            assert!(fault.contains("does not begin with `~/` or `$NAME/`"), "{file}: {fault}");
        }
        let fault = with("env = [\"A B\"]").expect_err("a fault");
        assert!(fault.contains("is not a variable name"), "{fault}");
    }
}
