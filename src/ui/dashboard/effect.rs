//! Requests of the dashboard to its driver, and reports of the driver.

use std::path::PathBuf;

use super::team_action::TeamAction;
use model::id::{MemberName, TaskId, TeamName};
use model::members::input::{Key, Text};

/// A command that a person has chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenCommand {
    Action(TeamAction),
    /// A verb of phalanx with its arguments, as typed into the palette, for the team on display.
    Typed(Vec<String>),
    /// Another program and its working directory.
    Program {
        argv: Vec<String>,
        dir: String,
    },
    /// The person's shell in this directory.
    Shell {
        dir: String,
    },
}

impl ChosenCommand {
    /// Describes the command for the line at the bottom; a typed one as it was typed.
    pub(super) fn text(&self) -> String {
        let words = match self {
            ChosenCommand::Action(action) => return action.describe(),
            ChosenCommand::Typed(words) => words,
            ChosenCommand::Program { argv, .. } => argv,
            ChosenCommand::Shell { .. } => return "$SHELL".to_owned(),
        };
        let words = words.iter().map(String::as_str);
        shlex::try_join(words.clone()).unwrap_or_else(|_| words.collect::<Vec<_>>().join(" "))
    }
}

/// The continuation after a command has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterRun {
    /// A line of output is shown at the bottom, more as a page.
    Report,
    /// The output is shown as a page with this title.
    Page { title: String },
    /// If it succeeded, these words about the answered request stay on the screen for a while.
    Answered { words: String },
    /// It was the dry run of a merge. If it succeeded, its output is shown, and the person chooses
    /// how to merge.
    AskToMerge(MemberName),
    /// If it succeeded, this effect follows.
    Then(Box<Effect>),
}

/// A command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedCommand {
    pub command: ChosenCommand,
    pub after: AfterRun,
    pub success: bool,
    /// Standard output and standard error.
    pub output: String,
}

/// The word at the cursor, as far as it is typed, and the words before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompletionRequest {
    pub words: Vec<String>,
    pub current: String,
}

/// A word that the palette offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaletteCandidate {
    pub value: String,
    /// Its description, which may be empty.
    pub about: String,
}

/// A request to the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
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
    /// Read the choices of the form for a new member or team.
    ReadFormChoices,
    /// Read the texts of a task, to edit them.
    ReadTask(TaskId),
    OpenTeam {
        root: PathBuf,
        name: TeamName,
    },
}

impl Effect {
    /// Runs an action in the background.
    pub(super) fn of_action(action: TeamAction, after: AfterRun) -> Effect {
        Effect::Run { command: ChosenCommand::Action(action), after }
    }
}

/// The choices of the forms for a new member and a new team.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormChoices {
    pub profiles: Vec<String>,
    pub roles: Vec<String>,
    /// Names of templates, then manifests in the working directory.
    pub sources: Vec<String>,
    /// Profiles of agents whose program is installed.
    pub agents: Vec<String>,
}
