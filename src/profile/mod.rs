//! Program profiles: how phalanx starts a program, types into it and reads its screen. A profile is
//! data read from TOML; it is independent of the backend that runs the program.

mod judge;
mod read;
mod rule;
mod screen;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::mode::Mode;
use crate::model::sheet::SheetError;

pub(crate) use judge::{Asked, Composer, Finding, Look, judge, last_words};
pub(crate) use rule::{Pattern, Rule, ScreenState};
pub(crate) use screen::Screen;
pub(crate) use words::{Group, Names, Values, fill};

/// A program that can run as a teammate. docs/profiles.md describes every key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Profile {
    pub(crate) name: String,
    /// One line of description.
    pub(crate) about: String,
    /// Version of the program from whose screens the rules were recorded. `None`: the rules are
    /// from its documentation.
    pub(crate) seen: Option<String>,
    pub(crate) runs: Runs,
    /// True if messages can be sent to the program: it reads its mailbox, or its wrapper does. Any
    /// other program is terminated without a shutdown request (MSG-16).
    pub(crate) reads_mail: bool,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) launch: Launch,
    pub(crate) ready: Ready,
    pub(crate) keys: Keys,
    pub(crate) paste: Paste,
    /// Finds the input area. `None`: its content cannot be determined.
    pub(crate) composer: Option<ComposerRule>,
    /// Keys that answer a dialog, by the name of the rule that matches it. They are typed only
    /// after a decision, and only while the screen still shows the question that was decided
    /// (PM-01).
    pub(crate) answers: BTreeMap<String, Answer>,
    pub(crate) shutdown: ShutdownPolicy,
    /// In file order; the first match decides.
    pub(crate) rules: Vec<Rule>,
}

/// The process that runs in the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Runs {
    /// The program itself, on the terminal of the pane.
    Native,
    /// The wrapper, which runs the program on a pty of its own, reads its screen and types into it.
    Wrapped,
}

impl Runs {
    /// All variants with their spelling in a profile.
    pub(crate) const ALL: [(&'static str, Runs); 2] =
        [("native", Runs::Native), ("wrapped", Runs::Wrapped)];

    /// Returns the spelling in a profile.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Runs::Native => "native",
            Runs::Wrapped => "wrapped",
        }
    }
}

/// An event that a program can report by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Hook {
    TurnEnd,
    /// The program asks for permission to use a tool.
    Permission,
}

impl Hook {
    /// All variants with their spelling in a profile.
    pub(crate) const ALL: [(&'static str, Hook); 2] =
        [("turn-end", Hook::TurnEnd), ("permission", Hook::Permission)];
}

/// Command lines and environment of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Launch {
    /// Template of the command line.
    pub(crate) argv: Vec<Group>,
    pub(crate) prompt: Prompt,
    pub(crate) brief: Brief,
    /// Words for `{mode}`, by permission mode. A mode that is not listed is refused (PM-06).
    pub(crate) modes: BTreeMap<&'static str, Vec<String>>,
    /// Words for `{plan}`.
    pub(crate) plan: Vec<String>,
    /// Complete command line that continues the session `{resume}`. Empty: the program cannot
    /// resume.
    pub(crate) resume: Vec<Group>,
    /// Complete command line that answers one question without a terminal. Empty: the program has
    /// no such form.
    pub(crate) once: Vec<Group>,
    /// Tools that stay available when the allowed tools are listed, because the program needs them
    /// to work in a team.
    pub(crate) keep_tools: Vec<String>,
    /// Variables to set. A variable whose value is absent is removed, even if it would be
    /// inherited.
    pub(crate) env: BTreeMap<String, Group>,
    /// Variables of the caller that are passed on: names, or prefixes followed by `*`. Empty: all.
    pub(crate) allow: Vec<String>,
}

/// The way in which the program gets its first prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Prompt {
    /// The program reads it from its mailbox.
    Mailbox,
    /// On the command line, as `{prompt}`.
    Argv,
    /// The wrapper reads it from the mailbox and types it.
    Typed,
}

impl Prompt {
    /// All variants with their spelling in a profile.
    pub(crate) const ALL: [(&'static str, Prompt); 3] =
        [("mailbox", Prompt::Mailbox), ("argv", Prompt::Argv), ("typed", Prompt::Typed)];

    /// Returns the spelling in a profile.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Prompt::Mailbox => "mailbox",
            Prompt::Argv => "argv",
            Prompt::Typed => "typed",
        }
    }
}

/// The way in which the program gets the description of its team (`ops::brief`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Brief {
    /// On the command line, as `{brief}`.
    Argv,
    /// Before the first prompt in the same message, or as a message of its own if there is no
    /// prompt.
    FirstMessage,
    /// Not at all: the program has its own team instructions, or is not an agent.
    None,
}

impl Brief {
    /// All variants with their spelling in a profile.
    pub(crate) const ALL: [(&'static str, Brief); 3] =
        [("argv", Brief::Argv), ("first-message", Brief::FirstMessage), ("none", Brief::None)];

    /// Returns the spelling in a profile; `None` for [`Brief::None`].
    pub(crate) fn way(self) -> Option<&'static str> {
        match self {
            Brief::Argv => Some("argv"),
            Brief::FirstMessage => Some("first-message"),
            Brief::None => None,
        }
    }
}

/// The condition under which a started program counts as ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ready {
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
    Screen,
}

/// Keys that control the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Keys {
    /// Submits the typed text.
    pub(crate) submit: String,
    /// Interrupts the current turn.
    pub(crate) interrupt: Option<String>,
    /// Ends the program; each entry is typed separately.
    pub(crate) quit: Vec<String>,
}

/// The party that answers a shutdown request to a wrapped program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ShutdownPolicy {
    /// The wrapper, by the state of the screen: it approves if the program is idle, and rejects if
    /// it is working.
    Auto,
    /// The agent: it gets the request as a turn and answers with a command.
    Ask,
}

impl ShutdownPolicy {
    /// All variants with their spelling in a profile.
    pub(crate) const ALL: [(&'static str, ShutdownPolicy); 2] =
        [("auto", ShutdownPolicy::Auto), ("ask", ShutdownPolicy::Ask)];
}

/// Keys that answer a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Answer {
    /// Allows this one request.
    pub(crate) allow: String,
    /// Denies the request.
    pub(crate) deny: String,
}

/// The way in which text is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Paste {
    /// Use bracketed paste while the program requests it.
    pub(crate) bracketed: bool,
    /// Delay in milliseconds between keys that are not pasted, so that the program does not
    /// interpret them as a paste.
    pub(crate) gap_ms: u64,
    /// Delay in milliseconds before the submit key, so that the program has processed the text.
    pub(crate) settle_ms: u64,
    /// Maximum length of a typed text in bytes. A longer text goes into a file, and a pointer to
    /// the file is typed.
    pub(crate) most_bytes: usize,
}

/// Patterns that find the composer, the input area of the program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ComposerRule {
    /// Its first row; the group `text` is the typed text. The last matching row counts.
    pub(crate) line: Pattern,
    /// Must match the row above.
    pub(crate) above: Option<Pattern>,
    /// The first row below that no longer belongs to it. `None`: the composer is one line.
    pub(crate) until: Option<Pattern>,
    /// Text that the program draws in an empty composer. It is ignored only while the cursor is
    /// before it, because a person can type the same text (MSG-11).
    pub(crate) placeholder: Option<Pattern>,
    /// Faint text after the cursor is a suggestion that the program draws, not typed text.
    pub(crate) ghost: bool,
    /// The composer is the last thing on the screen; a match with other rows below it is earlier
    /// input.
    pub(crate) last: bool,
}

pub(crate) use crate::model::launch::{SHELL, WORKER};

/// Names and TOML texts of the built-in profiles.
const BUILTIN: [(&str, &str); 7] = [
    ("claude", include_str!("builtin/claude.toml")),
    ("codex", include_str!("builtin/codex.toml")),
    ("gemini", include_str!("builtin/gemini.toml")),
    ("opencode", include_str!("builtin/opencode.toml")),
    ("aider", include_str!("builtin/aider.toml")),
    (SHELL, include_str!("builtin/shell.toml")),
    (WORKER, include_str!("builtin/worker.toml")),
];

pub(crate) fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// Returns the TOML text of a built-in profile.
pub(crate) fn builtin_sheet(name: &str) -> Option<&'static str> {
    BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, sheet)| *sheet)
}

pub(crate) fn builtin(name: &str) -> Option<Profile> {
    let sheet = builtin_sheet(name)?;
    Some(Profile::parse(name, sheet).expect("every built-in sheet is read by a test"))
}

impl Profile {
    /// Parses a profile.
    ///
    /// # Errors
    /// The first error in the text, with line and column, if the TOML is invalid, or a key is
    /// unknown, missing or has an invalid value.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Profile, SheetError> {
        read::read(name, text)
    }

    /// Returns true if the caller has to give the command line.
    pub(crate) fn needs_command(&self) -> bool {
        self.takes(Names::Command)
    }

    /// Returns true if the command line contains this placeholder.
    pub(crate) fn takes(&self, wanted: Names) -> bool {
        self.launch.argv.iter().any(|group| group.names().any(|name| name == wanted))
    }

    /// Returns true if the program takes part in the team by itself: it is not wrapped, reads its
    /// mailbox, and its command line does not run phalanx.
    pub(crate) fn is_native_member(&self) -> bool {
        self.runs == Runs::Native && self.reads_mail && !self.takes(Names::Phalanx)
    }

    /// Returns the model that `command` selects with the flag of this profile, as `--model M` or
    /// `--model=M`.
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

    /// Returns the profile for a one-shot run: the one-shot command line with the prompt, without
    /// wrapper and mail. A command line given by the caller is its own one-shot form. `None` if the
    /// program has no such form.
    pub(crate) fn once(self) -> Option<Profile> {
        let argv = match self.launch.once.is_empty() {
            true if self.needs_command() => self.launch.argv.clone(),
            true => return None,
            false => self.launch.once.clone(),
        };
        let launch = Launch { argv, prompt: Prompt::Argv, brief: Brief::None, ..self.launch };
        Some(Profile { runs: Runs::Native, reads_mail: false, ready: Ready::Begun, launch, ..self })
    }

    /// Returns the times in milliseconds without output at which the result of the rules can
    /// change.
    pub(crate) fn quiet_times(&self) -> impl Iterator<Item = u64> {
        self.rules.iter().filter_map(|rule| rule.quiet_ms)
    }

    /// Returns the words for a mode, or `None` if the program has no such mode.
    pub(crate) fn mode_words(&self, mode: Mode) -> Option<&[String]> {
        self.launch.modes.get(mode.as_str()).map(Vec::as_slice)
    }
}
