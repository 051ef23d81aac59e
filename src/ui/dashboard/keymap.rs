//! The keys in use: those of the table of keys, or those that a person has configured.

use crossterm::event::KeyEvent;

use super::keys::{self, BINDINGS, KeyCommand, label};

/// A command with its default keys, as the settings name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultKeys {
    /// The title of its section.
    pub group: &'static str,
    /// The command in kebab case.
    pub command: String,
    pub keys: &'static [&'static str],
    pub help: &'static str,
}

/// The keys of each command, in the order of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap(Vec<(KeyCommand, Vec<String>)>);

impl Default for Keymap {
    fn default() -> Keymap {
        let names = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        Keymap(BINDINGS.iter().map(|binding| (binding.command, names(binding.keys))).collect())
    }
}

impl Keymap {
    /// Returns all commands with their default keys.
    pub fn defaults() -> Vec<DefaultKeys> {
        let default = |binding: &keys::Binding| DefaultKeys {
            group: binding.group.into(),
            command: command_name(binding.command),
            keys: binding.keys,
            help: binding.help,
        };
        BINDINGS.iter().map(default).collect()
    }

    /// Replaces the keys of the command of this name. The names of the keys are those of tmux.
    pub fn bind(&mut self, command: &str, keys: Vec<String>) {
        let known = self.0.iter_mut().find(|(known, _)| command_name(*known) == command);
        if let Some((_, bound)) = known {
            *bound = keys;
        }
    }

    /// Returns the command of a key, if it is bound.
    pub(super) fn command(&self, key: KeyEvent) -> Option<KeyCommand> {
        let name = keys::name(key)?;
        let binding = self.0.iter().find(|(_, keys)| keys.contains(&name));
        binding.map(|(command, _)| *command)
    }

    /// Returns the keys of a command, as people read them.
    pub(super) fn labels(&self, command: KeyCommand) -> Vec<String> {
        let bound = self.0.iter().find(|(known, _)| *known == command);
        bound.map(|(_, keys)| keys.iter().map(|key| label(key)).collect()).unwrap_or_default()
    }

    /// Returns the first key of a command, as people read it; `None` if it has none.
    pub(super) fn key_of(&self, command: KeyCommand) -> Option<String> {
        self.labels(command).into_iter().next()
    }

    /// Returns `words: KEY does, KEY does`, without the commands that have no key.
    pub(super) fn hint(&self, words: &str, commands: &[(KeyCommand, &str)]) -> String {
        let key = |(command, does): &(KeyCommand, &str)| {
            Some(format!("{} {does}", self.key_of(*command)?).trim_end().to_owned())
        };
        let keys: Vec<String> = commands.iter().filter_map(key).collect();
        if keys.is_empty() { words.to_owned() } else { format!("{words}: {}", keys.join(", ")) }
    }
}

/// Returns the name of a command in the settings, such as `next-panel` or `show-board`.
fn command_name(command: KeyCommand) -> String {
    let name: &str = command.into();
    match command {
        KeyCommand::Show(panel) => format!("{name}-{}", panel.title().to_lowercase()),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crossterm::event::{KeyCode, KeyModifiers};

    use super::*;

    #[test]
    fn every_command_has_a_name_of_its_own() {
        let names: BTreeSet<String> =
            Keymap::defaults().into_iter().map(|default| default.command).collect();
        assert_eq!(names.len(), BINDINGS.len(), "{names:?}");
        for name in ["next-panel", "show-board", "edit", "always-allow", "quit"] {
            assert!(names.contains(name), "{name}: {names:?}");
        }
    }

    #[test]
    fn configured_keys_replace_the_default_ones() {
        let mut keymap = Keymap::default();
        keymap.bind("explain", vec!["x".to_owned(), "F2".to_owned()]);
        let command = |code| keymap.command(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(command(KeyCode::Char('x')), Some(KeyCommand::Explain));
        assert_eq!(command(KeyCode::F(2)), Some(KeyCommand::Explain));
        assert_eq!(command(KeyCode::Char('e')), None);
        assert_eq!(command(KeyCode::Char('q')), Some(KeyCommand::Quit));
        assert_eq!(keymap.labels(KeyCommand::PageUp), ["PgUp", "Ctrl-U"]);
        let commands = [(KeyCommand::Explain, "explains"), (KeyCommand::Quit, "quits")];
        assert_eq!(keymap.hint("stuck", &commands), "stuck: x explains, q quits");
        keymap.bind("explain", Vec::new());
        assert_eq!(keymap.hint("stuck", &commands), "stuck: q quits");
        assert_eq!(keymap.hint("stuck", &commands[..1]), "stuck");
    }
}
