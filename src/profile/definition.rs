//! The definition of a profile.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::rule::{Pattern, ScreenRule};
use super::words::{Group, Placeholder, Values};
use crate::model::mode::Mode;
use crate::model::transcript::TranscriptForm;

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
    /// How a wrapped program gets its messages.
    pub(crate) mail: MailDelivery,
    pub(crate) hooks: Vec<Hook>,
    /// The form of the program's transcripts. `None`: its usage is not known.
    pub(crate) transcript: Option<TranscriptForm>,
    pub(crate) launch: Launch,
    pub(crate) ready: Ready,
    pub(crate) keys: Keys,
    pub(crate) paste: Paste,
    /// Finds the input area. `None`: its content cannot be determined.
    pub(crate) composer: Option<ComposerRule>,
    /// Keys that answer a dialog, by the name of the rule that matches it. They are typed only
    /// after a decision, and only while the screen still shows the question that was decided
    /// (PM-01).
    pub(crate) answers: BTreeMap<String, DialogKeys>,
    pub(crate) shutdown: ShutdownPolicy,
    /// Signs that the program has credentials. `None`: they are not known.
    pub(crate) login: Option<LoginSigns>,
    /// In file order; the first match decides.
    pub(crate) rules: Vec<ScreenRule>,
}

/// Places where the credentials of a program are. One of them is enough.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LoginSigns {
    /// Variables that hold a key or a token.
    pub(crate) env: Vec<String>,
    /// Files that the program writes when a person logs in. Each begins with `~/`, the home
    /// directory, or with `$NAME/`, the directory in a variable.
    pub(crate) files: Vec<String>,
}

/// The process that runs in the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Runs {
    /// The program itself, on the terminal of the pane.
    Native,
    /// The wrapper, which runs the program on a pty of its own, reads its screen and types into it.
    Wrapped,
}

impl Runs {
    /// Returns the spelling in a profile.
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }
}

/// An event that a program can report by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Hook {
    TurnEnd,
    /// The program asks for permission to use a tool.
    Permission,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Prompt {
    /// The program reads it from its mailbox.
    Mailbox,
    /// On the command line, as `{prompt}`.
    Argv,
    /// The wrapper reads it from the mailbox and types it.
    Typed,
}

impl Prompt {
    /// Returns the spelling in a profile.
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The way in which the program gets the description of its team (`ops::brief`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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
    /// Returns the spelling in a profile; `None` for [`Brief::None`].
    pub(crate) fn way(self) -> Option<&'static str> {
        (self != Brief::None).then(|| self.into())
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

/// The way in which a wrapped program gets its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MailDelivery {
    /// The wrapper types them.
    Typed,
    /// The program reads them with the tools of `phalanx mcp`; the wrapper types one line when
    /// some wait.
    Tools,
}

impl MailDelivery {
    /// Returns the value of `PHALANX_MAIL`, which tells the server of the tools.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            MailDelivery::Typed => "typed",
            MailDelivery::Tools => "tools",
        }
    }
}

/// The party that answers a shutdown request to a wrapped program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ShutdownPolicy {
    /// The wrapper, by the state of the screen: it approves if the program is idle, and rejects if
    /// it is working.
    Auto,
    /// The agent: it gets the request as a turn and answers with a command.
    Ask,
}

/// Keys that answer a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DialogKeys {
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

impl Profile {
    /// Returns true if the caller has to give the command line.
    pub(crate) fn needs_command(&self) -> bool {
        self.takes(Placeholder::Command)
    }

    /// Returns the program that the command line names; `None` if a placeholder names it.
    pub(crate) fn program(&self) -> Option<String> {
        self.launch.argv.first()?.fill(&Values::new())?.into_iter().next()
    }

    /// Returns true if the command line contains this placeholder.
    pub(crate) fn takes(&self, wanted: Placeholder) -> bool {
        self.launch.argv.iter().any(|group| group.names().any(|name| name == wanted))
    }

    /// Returns true if the program takes part in the team by itself: it is not wrapped, reads its
    /// mailbox, and its command line does not run phalanx.
    pub(crate) fn is_native_member(&self) -> bool {
        self.runs == Runs::Native && self.reads_mail && !self.takes(Placeholder::Phalanx)
    }

    /// Returns the model that `command` selects with the flag of this profile, as `--model M` or
    /// `--model=M`.
    pub(crate) fn model_in(&self, command: &[String]) -> Option<String> {
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
