//! Completes the commands of the agent while the composer has the beginning of one.

use acp::AgentCommand;

use crate::line::{Look, StyledLine};

/// Commands in the list.
const SHOWN: usize = 5;
/// Characters of a name or description; agents send whole manuals.
const ABOUT: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct CommandList {
    commands: Vec<AgentCommand>,
    /// The chosen one of the matching commands.
    chosen: usize,
    /// The user has closed the list for this word.
    is_closed: bool,
}

impl CommandList {
    pub(crate) fn set_commands(&mut self, commands: &[AgentCommand]) {
        self.commands = commands
            .iter()
            .map(|command| AgentCommand {
                name: command.name.chars().take(ABOUT).collect(),
                about: command.about.chars().take(ABOUT).collect(),
            })
            .collect();
        self.chosen = 0;
    }

    /// Adapts to the text of the composer, which has changed.
    pub(crate) fn text_changed(&mut self, text: &str) {
        self.chosen = 0;
        if !text.starts_with('/') {
            self.is_closed = false;
        }
    }

    /// Returns the commands that match the text: first those that begin with it.
    fn matching(&self, text: &str) -> Vec<&AgentCommand> {
        let Some(word) = text.strip_prefix('/') else { return Vec::new() };
        if self.is_closed || word.contains(char::is_whitespace) {
            return Vec::new();
        }
        let begins = self.commands.iter().filter(|command| command.name.starts_with(word));
        let contains = self.commands.iter().filter(|command| {
            !command.name.starts_with(word) && !word.is_empty() && command.name.contains(word)
        });
        begins.chain(contains).collect()
    }

    pub(crate) fn is_open(&self, text: &str) -> bool {
        !self.matching(text).is_empty()
    }

    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    /// Moves the choice down or up, around the ends.
    pub(crate) fn step(&mut self, text: &str, is_down: bool) {
        let count = self.matching(text).len().max(1);
        let step = if is_down { 1 } else { count - 1 };
        self.chosen = (self.chosen + step) % count;
    }

    /// Returns the text that completes `text`, unless it is a whole command already.
    pub(crate) fn completed(&self, text: &str) -> Option<String> {
        let command = self.matching(text).get(self.chosen).copied()?;
        let is_whole = text.strip_prefix('/') == Some(command.name.as_str());
        (!is_whole).then(|| format!("/{} ", command.name))
    }

    pub(crate) fn rows(&self, text: &str, room: usize) -> Vec<StyledLine> {
        let matching = self.matching(text);
        let start = (self.chosen + 1).saturating_sub(SHOWN);
        let shown = matching.iter().enumerate().skip(start).take(SHOWN);
        let widest = shown.clone().map(|(_, command)| command.name.chars().count()).max();
        let column = (widest.unwrap_or(0) + 5).min(room / 2);
        shown
            .map(|(at, command)| {
                let look = if at == self.chosen { Look::BOLD } else { Look::PLAIN };
                let mark = if at == self.chosen { "› /" } else { "  /" };
                let name = StyledLine::new(look, mark).with(look, &command.name);
                name.cut(column).padded(column).with(Look::DIM, &command.about).cut(room)
            })
            .collect()
    }
}
