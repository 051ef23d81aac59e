//! The definition of a profile.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::acp::AcpTraits;
use super::rule::{ScreenRule, ScreenState};
use super::typing::{ComposerRule, DialogKeys, Keys, Paste};
use super::value::{
    AtMost, CommandTemplate, CredentialFile, LONGEST_MS, ListedVariable, ModeName, OneWord,
};
use super::words::{Group, Placeholder, Values};
use config::value::TableList;
use config::{ConfigError, Document, Faults, Place, parse};
use model::members::launch::WORKER;
use model::members::mode::Mode;
use model::members::transcript::TranscriptForm;
use model::value::{As, Choice, KeyedTable, NonBlank, PlainText, VariablePattern, Variables};

/// A program that can run as a teammate. docs/profiles.md describes every key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name of its file.
    #[serde(skip_deserializing)]
    pub name: String,
    /// One line of description.
    #[serde(with = "As::<NonBlank>")]
    pub about: String,
    /// The newest version of the program that the profile was tried with. `None`: the rules are
    /// from its documentation.
    #[serde(default, with = "As::<Option<NonBlank>>")]
    pub seen: Option<String>,
    /// The command line that installs the program, for people.
    #[serde(default, with = "As::<Option<NonBlank>>")]
    pub install: Option<String>,
    #[serde(default, with = "As::<Choice<Runs>>")]
    pub runs: Runs,
    /// True if messages can be sent to the program: it reads its mailbox, or its wrapper does. Any
    /// other program is terminated without a shutdown request (MSG-16).
    #[serde(default = "yes")]
    pub reads_mail: bool,
    /// How a wrapped program gets its messages.
    #[serde(default, with = "As::<Choice<MailDelivery>>")]
    pub mail: MailDelivery,
    #[serde(default, with = "As::<Vec<Choice<Hook>>>")]
    pub hooks: Vec<Hook>,
    /// The form of the program's transcripts. `None`: its usage is not known.
    #[serde(default, rename(deserialize = "usage"), deserialize_with = "transcript")]
    pub transcript: Option<TranscriptForm>,
    #[serde(with = "As::<KeyedTable<Launch>>")]
    pub launch: Launch,
    #[serde(default, with = "As::<KeyedTable<Ready>>")]
    pub ready: Ready,
    #[serde(default, with = "As::<KeyedTable<Keys>>")]
    pub keys: Keys,
    #[serde(default, with = "As::<KeyedTable<Paste>>")]
    pub paste: Paste,
    /// Finds the input area. `None`: its content cannot be determined.
    #[serde(default, with = "As::<Option<KeyedTable<ComposerRule>>>")]
    pub composer: Option<ComposerRule>,
    /// Keys that answer a dialog, by the name of the rule that matches it. They are typed only
    /// after a decision, and only while the screen still shows the question that was decided
    /// (PM-01).
    #[serde(default, with = "As::<BTreeMap<String, KeyedTable<DialogKeys>>>")]
    pub answers: BTreeMap<String, DialogKeys>,
    #[serde(default, with = "As::<Choice<ShutdownPolicy>>")]
    pub shutdown: ShutdownPolicy,
    /// What differs between agents over ACP.
    #[serde(default, with = "As::<KeyedTable<AcpTraits>>")]
    pub acp: AcpTraits,
    /// Signs that the program has credentials. `None`: they are not known.
    #[serde(default, with = "As::<Option<KeyedTable<LoginSigns>>>")]
    pub login: Option<LoginSigns>,
    /// In file order; the first match decides.
    #[serde(default, rename(deserialize = "rule"), with = "As::<TableList<ScreenRule>>")]
    pub rules: Vec<ScreenRule>,
}

fn yes() -> bool {
    true
}

fn transcript<'de, D>(deserializer: D) -> Result<Option<TranscriptForm>, D::Error>
where
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct UsageTable {
        transcript: Choice<TranscriptForm>,
    }
    let usage = KeyedTable::<UsageTable>::deserialize(deserializer)?;
    Ok(Some(usage.0.transcript.0))
}

/// Places where the credentials of a program are. One of them is enough.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoginSigns {
    /// Variables that hold a key or a token.
    #[serde(with = "As::<Vec<ListedVariable>>")]
    pub env: Vec<String>,
    /// Files that the program writes when a person logs in. Each begins with `~/`, the home
    /// directory, or with `$NAME/`, the directory in a variable.
    #[serde(with = "As::<Vec<CredentialFile>>")]
    pub files: Vec<String>,
    /// The command line with which a person logs in.
    #[serde(with = "As::<Option<NonBlank>>")]
    pub run: Option<String>,
}

/// The process that runs in the pane.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Runs {
    /// The program itself, on the terminal of the pane.
    Native,
    /// The wrapper, which runs the program on a pty of its own, reads its screen and types into it.
    #[default]
    Wrapped,
    /// A client of the Agent Client Protocol, which runs the program on pipes and shows the
    /// conversation.
    Acp,
}

impl Runs {
    /// Returns the spelling in a profile.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// An event that a program can report by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    TurnEnd,
    /// The program asks for permission to use a tool.
    Permission,
}

/// Command lines and environment of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Template of the command line.
    #[serde(with = "As::<CommandTemplate>")]
    pub argv: Vec<Group>,
    #[serde(default, with = "As::<Choice<Prompt>>")]
    pub prompt: Prompt,
    /// `None` only in the file. [`Profile::parse`] sets the default, which depends on `runs`.
    #[serde(default, with = "As::<Option<Choice<Brief>>>")]
    brief: Option<Brief>,
    /// Words for `{mode}`, by permission mode. A mode that is not listed is refused (PM-06).
    #[serde(default, with = "As::<BTreeMap<ModeName, Vec<PlainText>>>")]
    pub modes: BTreeMap<Mode, Vec<String>>,
    /// Words for `{plan}`.
    #[serde(default, with = "As::<Vec<PlainText>>")]
    pub plan: Vec<String>,
    /// Complete command line that continues the session `{resume}`. Empty: the program cannot
    /// resume.
    #[serde(default, with = "As::<CommandTemplate>")]
    pub resume: Vec<Group>,
    /// Words that follow the given command line of an agent lead.
    #[serde(default, with = "As::<CommandTemplate>")]
    pub lead: Vec<Group>,
    /// Complete command line that answers one question without a terminal. Empty: the program has
    /// no such form.
    #[serde(default, with = "As::<CommandTemplate>")]
    pub once: Vec<Group>,
    /// Tools that stay available when the allowed tools are listed, because the program needs them
    /// to work in a team.
    #[serde(default, with = "As::<Vec<PlainText>>")]
    pub keep_tools: Vec<String>,
    /// Variables to set. A variable whose value is absent is removed, even if it would be
    /// inherited.
    #[serde(default, with = "As::<Variables<OneWord>>")]
    pub env: BTreeMap<String, Group>,
    /// Variables to set unless the caller, the spec or the member's `env_file` does.
    #[serde(default, with = "As::<Variables>")]
    pub default_env: BTreeMap<String, String>,
    /// Variables of the caller that are passed on: names, or prefixes followed by `*`. Empty: all.
    #[serde(default, with = "As::<Vec<VariablePattern>>")]
    pub allow: Vec<String>,
}

impl Launch {
    pub fn brief(&self) -> Brief {
        self.brief.unwrap_or(Brief::None)
    }
}

/// The way in which the program gets its first prompt.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Prompt {
    /// The program reads it from its mailbox.
    Mailbox,
    /// On the command line, as `{prompt}`.
    Argv,
    /// The wrapper reads it from the mailbox and types it.
    #[default]
    Typed,
}

impl Prompt {
    /// Returns the spelling in a profile.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The way in which the program gets the description of its team (`ops::brief`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Brief {
    /// On the command line, as `{brief}`.
    Argv,
    /// Before the first prompt in the same message, or as a message of its own if there is no
    /// prompt.
    FirstMessage,
    /// On the command line, as `{brief}`, only what phalanx adds to Claude Code's own instructions
    /// for a team.
    Supplement,
    /// Not at all: the program has its own team instructions, or is not an agent.
    None,
}

impl Brief {
    /// Returns the spelling in a profile; `None` for [`Brief::None`].
    pub fn way(self) -> Option<&'static str> {
        (self != Brief::None).then(|| self.into())
    }
}

/// The condition under which a started program counts as ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", from = "ReadyTable")]
pub enum Ready {
    /// The program has found its mailbox and set `ready_at` in its record (ID-03).
    Hello,
    /// The program still runs `ms` milliseconds after its start (SP-09).
    Settled { ms: u64 },
    /// The process runs, or has exited with status 0.
    Running,
    /// The process was started, even if it has failed since: the launcher reports how it ended.
    Begun,
    /// A rule has found the screen ready or idle; the wrapper then sets `ready_at` in the record
    /// (PM-02).
    #[default]
    Screen,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ReadyTable {
    #[serde(with = "As::<Choice<ReadyWhen>>")]
    when: ReadyWhen,
    #[serde(with = "As::<AtMost<u64, LONGEST_MS>>")]
    settle_ms: u64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ReadyWhen {
    Hello,
    Running,
    Settled,
    #[default]
    Screen,
}

impl Default for ReadyTable {
    fn default() -> ReadyTable {
        ReadyTable { when: ReadyWhen::default(), settle_ms: 700 }
    }
}

impl From<ReadyTable> for Ready {
    fn from(table: ReadyTable) -> Ready {
        match table.when {
            ReadyWhen::Hello => Ready::Hello,
            ReadyWhen::Running => Ready::Running,
            ReadyWhen::Settled => Ready::Settled { ms: table.settle_ms },
            ReadyWhen::Screen => Ready::Screen,
        }
    }
}

/// The way in which a wrapped program gets its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MailDelivery {
    /// The wrapper types them.
    #[default]
    Typed,
    /// The program reads them with the tools of `phalanx mcp`; the wrapper types one line when
    /// some wait.
    Tools,
}

impl MailDelivery {
    /// Returns the value of `PHALANX_MAIL`, which tells the server of the tools.
    pub fn as_str(self) -> &'static str {
        match self {
            MailDelivery::Typed => "typed",
            MailDelivery::Tools => "tools",
        }
    }
}

/// The party that answers a shutdown request to a wrapped program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShutdownPolicy {
    /// The wrapper, by the state of the screen: it approves if the program is idle, and rejects if
    /// it is working.
    #[default]
    Auto,
    /// The agent: it gets the request as a turn and answers with a command.
    Ask,
}

impl Profile {
    /// Parses a profile.
    ///
    /// # Errors
    /// A fault with its position: the first invalid key or value, or else the first contradiction
    /// between keys.
    pub fn parse(name: &str, text: &str) -> Result<Profile, ConfigError> {
        let mut profile: Profile = parse(Document { title: "the profile", denied: &[] }, text)?;
        name.clone_into(&mut profile.name);
        // By default a native program is not briefed: one that reads its mailbox already knows
        // about teams.
        let brief = if profile.runs == Runs::Native { Brief::None } else { Brief::FirstMessage };
        profile.launch.brief.get_or_insert(brief);
        // An agent over ACP has no screen: its session is what has to begin.
        if profile.runs == Runs::Acp && profile.ready == Ready::Screen {
            profile.ready = Ready::Hello;
        }
        let mut faults = Faults::new(text);
        profile.check(&mut faults);
        faults.into_result()?;
        Ok(profile)
    }

    /// Adds the contradictions between keys.
    fn check(&self, faults: &mut Faults) {
        let is_briefed = matches!(self.launch.brief(), Brief::Argv | Brief::Supplement);
        let places = [
            ("prompt", Placeholder::Prompt, self.launch.prompt == Prompt::Argv, "\"argv\""),
            ("brief", Placeholder::Brief, is_briefed, "\"argv\" or \"supplement\""),
        ];
        for (key, place, wanted, when) in places {
            if self.takes(place) != wanted {
                let message =
                    format!("`argv` in [launch] has `{{{key}}}` exactly when `{key}` is {when}");
                faults.add_at(&[Place::Key("launch"), Place::Key("argv")], message);
            }
        }
        if self.runs == Runs::Acp {
            self.check_acp(faults);
        }
        for (at, rule) in self.rules.iter().enumerate() {
            let table = [Place::Key("rule"), Place::Index(at)];
            if self.rules[..at].iter().any(|other| other.name == rule.name) {
                let name = [table[0], table[1], Place::Key("name")];
                faults.add_at(&name, format!("duplicate rule `{}`", rule.name));
            }
            if !rule.has_condition() {
                let message = "[[rule]] needs `match`, `title`, `progress` or `quiet_ms`";
                faults.add_at(&table, message);
            }
        }
        for name in self.answers.keys() {
            if let Some(problem) = self.answer_problem(name) {
                let place = [Place::Key("answers"), Place::Key(name)];
                let message = format!("`{}` in [answers] {problem}", name.escape_debug());
                faults.add_at(&place, message);
            }
        }
    }

    /// Adds what a program over ACP cannot have: it has no screen, and gets its mail as prompts.
    fn check_acp(&self, faults: &mut Faults) {
        if !self.rules.is_empty() {
            faults.add_at(&[Place::Key("rule")], "a program over ACP has no screen with rules");
        }
        if self.launch.prompt != Prompt::Typed {
            let place = [Place::Key("launch"), Place::Key("prompt")];
            faults.add_at(&place, "a program over ACP gets its first prompt from its mailbox");
        }
        if !self.launch.resume.is_empty() {
            let place = [Place::Key("launch"), Place::Key("resume")];
            faults.add_at(&place, "a program over ACP loads its session with the same `argv`");
        }
        for (mode, words) in &self.launch.modes {
            if words.len() != 1 {
                let place = [Place::Key("launch"), Place::Key("modes"), Place::Key(mode.as_str())];
                faults.add_at(&place, "a mode over ACP is one word: its id, or `option=value`");
            }
        }
    }

    /// Returns true if the program can be given a model.
    pub fn takes_model(&self) -> bool {
        self.runs == Runs::Acp || self.takes(Placeholder::Model)
    }

    /// Returns true if the program can continue an earlier session.
    pub fn can_resume(&self) -> bool {
        self.runs == Runs::Acp || !self.launch.resume.is_empty()
    }

    /// Returns the problem of the keys that answer a dialog. A rule with keys must capture the
    /// question, because before typing it is compared with the one that was decided.
    fn answer_problem(&self, name: &str) -> Option<&'static str> {
        match self.rules.iter().find(|rule| rule.name == name) {
            None => Some("names no rule"),
            Some(rule) if !matches!(rule.state, ScreenState::Dialog(_)) => {
                Some("refers to a rule that is not a dialog")
            }
            Some(rule) if !rule.has_text() => Some(
                "is for a rule without a group `(?<text>…)`: what it asks could not be compared",
            ),
            Some(_) => None,
        }
    }

    /// Returns true if the caller has to give the command line.
    pub fn needs_command(&self) -> bool {
        self.takes(Placeholder::Command)
    }

    /// Returns true for an agent: neither phalanx's worker nor a command line that the caller gives.
    pub fn is_agent(&self) -> bool {
        self.name != WORKER && !self.needs_command()
    }

    /// Returns the end of a message that its program is missing; empty if the profile does not say
    /// how to install it.
    pub fn install_hint(&self) -> String {
        let hint = self.install.as_ref().map(|line| format!("; install it: `{line}`"));
        hint.unwrap_or_default()
    }

    /// Returns the program that the command line names; `None` if a placeholder names it.
    pub fn program(&self) -> Option<String> {
        self.launch.argv.first()?.fill(&Values::new())?.into_iter().next()
    }

    /// Returns true if the command line contains this placeholder.
    pub fn takes(&self, wanted: Placeholder) -> bool {
        self.launch.argv.iter().any(|group| group.names().any(|name| name == wanted))
    }

    /// Returns true if the program takes part in the team by itself: it is not wrapped, reads its
    /// mailbox, and its command line does not run phalanx.
    pub fn is_native_member(&self) -> bool {
        self.runs == Runs::Native && self.reads_mail && !self.takes(Placeholder::Phalanx)
    }

    /// Returns the model that `command` selects with the flag of this profile, as `--model M` or
    /// `--model=M`.
    pub fn model_in(&self, command: &[String]) -> Option<String> {
        const VALUE: &str = "\0";
        let values = Values::from([(Placeholder::Model, vec![VALUE.to_owned()])]);
        let groups = self
            .launch
            .argv
            .iter()
            .filter(|group| group.names().any(|name| name == Placeholder::Model));
        let forms = groups.filter_map(|group| group.fill(&values));
        let flags: Vec<String> =
            forms.filter_map(|words| Some(words.first()?.replace(VALUE, ""))).collect();
        flags.iter().map(|flag| flag.trim_end_matches('=')).find_map(|flag| {
            command.iter().enumerate().find_map(|(at, word)| match word.strip_prefix(flag)? {
                "" => command.get(at + 1).cloned(),
                rest => rest.strip_prefix('=').map(str::to_owned),
            })
        })
    }

    /// Returns the profile for a one-shot run: the one-shot command line with the prompt, without
    /// wrapper and mail. A command line given by the caller is its own one-shot form. `None` if the
    /// program has no such form.
    pub fn once(self) -> Option<Profile> {
        let argv = if !self.launch.once.is_empty() {
            self.launch.once.clone()
        } else if self.needs_command() && self.runs != Runs::Acp {
            self.launch.argv.clone()
        } else {
            return None;
        };
        let launch = Launch { argv, prompt: Prompt::Argv, brief: Some(Brief::None), ..self.launch };
        Some(Profile { runs: Runs::Native, reads_mail: false, ready: Ready::Begun, launch, ..self })
    }

    /// Returns the times in milliseconds without output at which the result of the rules can
    /// change.
    pub fn quiet_times(&self) -> impl Iterator<Item = u64> {
        self.rules.iter().filter_map(|rule| rule.quiet_ms)
    }

    /// Returns the words for a mode, or `None` if the program has no such mode.
    pub fn mode_words(&self, mode: Mode) -> Option<&[String]> {
        self.launch.modes.get(&mode).map(Vec::as_slice)
    }
}
