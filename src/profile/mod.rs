//! How a given program is started, fed and read: data, not behaviour. Knows nothing of backends or of how a process
//! is started.

mod judge;
mod read;
mod rule;
mod screen;
#[cfg(test)]
mod tests;
mod unseen;
mod words;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::mode::Mode;
use crate::model::sheet::SheetError;

pub(crate) use judge::{Asked, Composer, Finding, Look, judge, last_words};
pub(crate) use rule::{Pattern, Rule, ScreenState};
pub(crate) use screen::Screen;
pub(crate) use words::{Group, Names, Values, fill};

/// A program that phalanx can have as a teammate. Read from a sheet (docs/profiles.md has every key).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Profile {
    pub(crate) name: String,
    /// One line for people.
    pub(crate) about: String,
    /// The version of the program whose screens the rules were taken from; none: from its documentation.
    pub(crate) seen: Option<String>,
    pub(crate) runs: Runs,
    /// Whether it can be written to: it reads its mailbox, or its wrapper does. One that cannot is ended without
    /// being asked (MSG-16).
    pub(crate) reads_mail: bool,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) launch: Launch,
    pub(crate) ready: Ready,
    pub(crate) keys: Keys,
    pub(crate) paste: Paste,
    /// How the line is found in which one types; none: it cannot be told what stands there.
    pub(crate) composer: Option<ComposerRule>,
    /// The keys that answer a dialog, by the rule that finds it. They are typed only after somebody has decided, and only
    /// while what was decided upon is still on the screen (PM-01).
    pub(crate) answers: BTreeMap<String, Answer>,
    /// Who answers when it is asked to end.
    pub(crate) shutdown: ShutdownPolicy,
    /// In the order of the file; the first that fits decides.
    pub(crate) rules: Vec<Rule>,
}

/// What stands between the pane and the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Runs {
    /// Nothing: it has the pane's terminal.
    Native,
    /// Our wrapper: the program has a terminal of its own, and is watched and fed.
    Wrapped,
}

impl Runs {
    /// As it is written in a profile.
    pub(crate) const ALL: [(&'static str, Runs); 2] =
        [("native", Runs::Native), ("wrapped", Runs::Wrapped)];

    /// As it is written in a profile.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Runs::Native => "native",
            Runs::Wrapped => "wrapped",
        }
    }
}

/// What a program can be made to report by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Hook {
    TurnEnd,
    Permission,
}

impl Hook {
    /// As they are written in a profile.
    pub(crate) const ALL: [(&'static str, Hook); 2] =
        [("turn-end", Hook::TurnEnd), ("permission", Hook::Permission)];
}

/// How it is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Launch {
    pub(crate) argv: Vec<Group>,
    pub(crate) prompt: Prompt,
    pub(crate) brief: Brief,
    /// The words for `{mode}`; a mode that is not here cannot be asked for (PM-06).
    pub(crate) modes: BTreeMap<&'static str, Vec<String>>,
    /// The words for `{plan}`.
    pub(crate) plan: Vec<String>,
    /// The whole command line that goes on with the session `{resume}`; empty: it cannot.
    pub(crate) resume: Vec<Group>,
    /// The whole command line for one question without a terminal; empty: it cannot.
    pub(crate) once: Vec<Group>,
    /// Tools that it keeps whatever a list of allowed ones says: it could not work in a team without them.
    pub(crate) keep_tools: Vec<String>,
    /// Variables it gets. One whose value is absent is not there at all, not even inherited.
    pub(crate) env: BTreeMap<String, Group>,
    /// Which of the caller's variables go on: names, or beginnings followed by `*`; empty: all.
    pub(crate) allow: Vec<String>,
}

/// How the first prompt goes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Prompt {
    /// It reads it from its mailbox.
    Mailbox,
    /// On its command line, as `{prompt}`.
    Argv,
    /// The wrapper types it from the mailbox.
    Typed,
}

impl Prompt {
    /// As they are written in a profile.
    pub(crate) const ALL: [(&'static str, Prompt); 3] =
        [("mailbox", Prompt::Mailbox), ("argv", Prompt::Argv), ("typed", Prompt::Typed)];

    /// As it is written in a profile.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Prompt::Mailbox => "mailbox",
            Prompt::Argv => "argv",
            Prompt::Typed => "typed",
        }
    }
}

/// How it is told of its team (`ops::brief`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Brief {
    /// On its command line, as `{brief}`.
    Argv,
    /// Before its first prompt, in the same message; a message by itself where there is no prompt.
    FirstMessage,
    /// It knows by itself, or is no agent.
    None,
}

impl Brief {
    /// As it is written in a profile.
    pub(crate) const ALL: [(&'static str, Brief); 3] =
        [("argv", Brief::Argv), ("first-message", Brief::FirstMessage), ("none", Brief::None)];

    /// As it is written in a profile; none for [`Brief::None`].
    pub(crate) fn way(self) -> Option<&'static str> {
        match self {
            Brief::Argv => Some("argv"),
            Brief::FirstMessage => Some("first-message"),
            Brief::None => None,
        }
    }
}

/// How a spawner knows that the program is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ready {
    /// It says so itself, in its record (ID-03).
    Hello,
    /// It is still there so many milliseconds after its start (SP-09).
    Settled { ms: u64 },
    /// Its process runs: it has no readiness of its own. A process that exited with 0 counts as well.
    Running,
    /// It was started, however it ends: its launcher reports that.
    Begun,
    /// Its wrapper says so in its record, once a rule finds the screen ready or idle (PM-02).
    Screen,
}

/// What is typed for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Keys {
    /// Sends what was typed.
    pub(crate) submit: String,
    /// Breaks off the turn that is under way.
    pub(crate) interrupt: Option<String>,
    /// Ends the program; each is typed by itself.
    pub(crate) quit: Vec<String>,
}

/// Who answers for a wrapped program that is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ShutdownPolicy {
    /// Its wrapper, by what the screen shows: yes at rest, no at work.
    Auto,
    /// The agent: it is asked in a turn, and answers by a command.
    Ask,
}

impl ShutdownPolicy {
    /// As they are written in a profile.
    pub(crate) const ALL: [(&'static str, ShutdownPolicy); 2] =
        [("auto", ShutdownPolicy::Auto), ("ask", ShutdownPolicy::Ask)];
}

/// What is typed into a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Answer {
    /// Yes, this once.
    pub(crate) allow: String,
    /// No.
    pub(crate) deny: String,
}

/// How text is put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Paste {
    /// As a bracketed paste, while the program asks for such.
    pub(crate) bracketed: bool,
    /// Pause between keys that are not pasted, so that the program does not take them for a paste; milliseconds.
    pub(crate) gap_ms: u64,
    /// Pause before the submit key, so that the program has digested the text; milliseconds.
    pub(crate) settle_ms: u64,
    /// A longer text goes into a file, and the program gets a pointer; bytes.
    pub(crate) most_bytes: usize,
}

/// How the line is found in which one types.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ComposerRule {
    /// Its first row; the group `text` is what was typed. The last row that fits is taken.
    pub(crate) line: Pattern,
    /// What the row above it must be.
    pub(crate) above: Option<Pattern>,
    /// The first row below that is no longer part of it; else the text is that one row.
    pub(crate) until: Option<Pattern>,
    /// A text that the program itself draws there; counts while the cursor stands before it.
    pub(crate) placeholder: Option<Pattern>,
    /// What stands faint behind the cursor there is the program's own, a suggestion of what could be typed.
    pub(crate) ghost: bool,
    /// It is the last thing on the screen: what has anything below it is what was typed before.
    pub(crate) last: bool,
}

pub(crate) use crate::model::order::{SHELL, WORKER};

/// The built-in profiles: name and sheet.
const BUILTIN: [(&str, &str); 7] = [
    ("claude", include_str!("builtin/claude.toml")),
    ("codex", include_str!("builtin/codex.toml")),
    ("gemini", include_str!("builtin/gemini.toml")),
    ("opencode", include_str!("builtin/opencode.toml")),
    ("aider", include_str!("builtin/aider.toml")),
    (SHELL, include_str!("builtin/shell.toml")),
    (WORKER, include_str!("builtin/worker.toml")),
];

/// The names of the built-in profiles.
pub(crate) fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// The sheet of the built-in profile of this name.
pub(crate) fn builtin_sheet(name: &str) -> Option<&'static str> {
    BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, sheet)| *sheet)
}

/// The built-in profile of this name.
pub(crate) fn builtin(name: &str) -> Option<Profile> {
    let sheet = builtin_sheet(name)?;
    Some(Profile::parse(name, sheet).expect("every built-in sheet is read by a test"))
}

impl Profile {
    /// Reads a profile. Of several faults the first in the text is reported.
    ///
    /// # Errors
    /// What is wrong, with line and column.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Profile, SheetError> {
        read::read(name, text)
    }

    /// Whether a command line has to be given for it.
    pub(crate) fn needs_command(&self) -> bool {
        self.takes(Names::Command)
    }

    /// Whether its command line has a place for this.
    pub(crate) fn takes(&self, wanted: Names) -> bool {
        self.launch.argv.iter().any(|group| group.names().any(|name| name == wanted))
    }

    /// Whether its program is a member by itself, with nothing of ours beside it.
    pub(crate) fn is_native_member(&self) -> bool {
        self.runs == Runs::Native && self.reads_mail && !self.takes(Names::Phalanx)
    }

    /// Returns the model that a command line names in the way of this profile: `--model M`, `--model=M`.
    pub(crate) fn model_in(&self, command: &[String]) -> Option<String> {
        const VALUE: &str = "\0";
        let values = Values::from([(Names::Model, vec![VALUE.to_owned()])]);
        let groups =
            self.launch.argv.iter().filter(|group| group.names().any(|name| name == Names::Model));
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

    /// The same program for one question: its one-shot command line with the prompt on it, no wrapper, no mail; a command
    /// line of one's own as it is. None if it has no such form.
    pub(crate) fn once(self) -> Option<Profile> {
        let argv = match self.launch.once.is_empty() {
            true if self.needs_command() => self.launch.argv.clone(),
            true => return None,
            false => self.launch.once.clone(),
        };
        let launch = Launch { argv, prompt: Prompt::Argv, brief: Brief::None, ..self.launch };
        Some(Profile { runs: Runs::Native, reads_mail: false, ready: Ready::Begun, launch, ..self })
    }

    /// After these times without anything drawn its rules can say something else, milliseconds.
    pub(crate) fn quiet_times(&self) -> impl Iterator<Item = u64> {
        self.rules.iter().filter_map(|rule| rule.quiet_ms)
    }

    /// The words for a mode; none when this program has no such mode.
    pub(crate) fn mode_words(&self, mode: Mode) -> Option<&[String]> {
        self.launch.modes.get(mode.as_str()).map(Vec::as_slice)
    }
}
