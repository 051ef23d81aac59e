//! Requests of the dashboard to its driver, and reports of the driver.

use std::path::PathBuf;

use super::completion::CompletionRequest;
use crate::model::id::{MemberName, TeamName};
use crate::model::input::{Key, Text};

/// A command that a person has chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChosenCommand {
    /// A verb of phalanx with its arguments, for the team on display.
    Verb(Vec<String>),
    /// Another program and its working directory.
    Program { argv: Vec<String>, dir: String },
    /// The person's shell in this directory.
    Shell { dir: String },
}

impl ChosenCommand {
    pub(super) fn verb<S: Into<String>>(words: impl IntoIterator<Item = S>) -> ChosenCommand {
        ChosenCommand::Verb(words.into_iter().map(Into::into).collect())
    }

    /// Returns the command as a person would type it.
    pub(crate) fn text(&self) -> String {
        let words: Vec<&str> = match self {
            ChosenCommand::Verb(words) => {
                ["phalanx"].into_iter().chain(words.iter().map(String::as_str)).collect()
            }
            ChosenCommand::Program { argv, .. } => argv.iter().map(String::as_str).collect(),
            ChosenCommand::Shell { .. } => vec!["$SHELL"],
        };
        shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "))
    }
}

/// The continuation after a command has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AfterRun {
    /// A line of output is shown at the bottom, more as a page.
    Report,
    /// The output is shown as a page with this title.
    Page { title: String, is_diff: bool },
    /// If it succeeded, the output and this question are shown; on yes, the effect follows.
    Ask { question: String, effect: Box<Effect> },
    /// If it succeeded, this effect follows.
    Then(Box<Effect>),
}

/// A command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FinishedCommand {
    pub(crate) command: ChosenCommand,
    pub(crate) after: AfterRun,
    pub(crate) success: bool,
    /// Standard output and standard error.
    pub(crate) output: String,
}

/// A request to the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Quit,
    Suspend,
    /// Draw every cell again.
    Redraw,
    /// Run a command in the background and report its output.
    Run {
        command: ChosenCommand,
        after: AfterRun,
    },
    /// Leave the terminal to a command and come back when it ends.
    RunHere(ChosenCommand),
    /// Show the output of a command in the pager.
    Page(ChosenCommand),
    /// Follow the screen of this member, or none.
    Follow(Option<MemberName>),
    /// Read the earlier output of a member.
    ReadHistory(MemberName),
    Press {
        member: MemberName,
        keys: Vec<Key>,
    },
    Paste {
        member: MemberName,
        text: Text,
    },
    /// List the teams of the machine.
    ReadTeams,
    /// Find the candidates for a word of the palette.
    Complete(CompletionRequest),
    /// Read the profiles and roles for a new member.
    ReadSpawnChoices,
    OpenTeam {
        root: PathBuf,
        name: TeamName,
    },
}

/// The choices of the form for a new member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SpawnChoices {
    pub(crate) profiles: Vec<String>,
    pub(crate) roles: Vec<String>,
}
