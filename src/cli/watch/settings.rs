//! `watch.toml`: the keys and colours of the dashboard that a person has changed, and their
//! defaults in the same format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::str::FromStr;

use ratatui::style::Color;
use serde::Deserialize;
use strum::VariantArray;
use toml::{Spanned, Value};

use crate::fail::Failure;
use config::hooks::read_trusted_file;
use config::{ConfigError, Document, Faults, parse};
use model::members::input::Key;
use model::name::nearest;
use model::value::{FIELD, text_types};
use ui::dashboard::{ColorRole, Keymap, Shade, ThemeColors};

text_types! {
    /// A colour of the terminal.
    pub(crate) TerminalColor(Color) = |text| {
        Color::from_str(text).map_err(|_| format!(
            "{FIELD} is {text:?}, but must be a number from 0 to 255, `#rrggbb`, or the name of a \
             colour such as `light-red`"
        ))
    };
}

/// The keys of commands and the colours, by name.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WatchFile {
    keys: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    colors: BTreeMap<Spanned<String>, ShadeTable>,
}

/// A colour for a dark and a light background.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShadeTable {
    dark: TerminalColor,
    light: TerminalColor,
}

/// The settings of the dashboard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WatchSettings {
    pub(super) keymap: Keymap,
    pub(crate) colors: ThemeColors,
}

/// Reads the settings of a file; one that does not exist changes nothing.
///
/// # Errors
/// A usage error with file, line and key, for a file that cannot be parsed or that other users can
/// write.
pub(crate) fn read(path: &Path) -> Result<WatchSettings, Failure> {
    let shown = path.display();
    let hint = "`phalanx watch --print-keys` prints all keys and colours in the format of the file";
    let text = read_trusted_file(path)
        .map_err(|problem| Failure::usage(format!("{shown} cannot be used: {problem}"), hint))?;
    parse_settings(&text.unwrap_or_default())
        .map_err(|error| Failure::usage(format!("{shown}:{error}"), hint))
}

fn parse_settings(text: &str) -> Result<WatchSettings, ConfigError> {
    let file: WatchFile = parse(Document { title: "watch.toml", denied: &[] }, text)?;
    let mut faults = Faults::new(text);
    let keymap = keymap(file.keys, &mut faults);
    let mut colors = ThemeColors::default();
    for (name, shade) in file.colors {
        match ColorRole::from_str(name.get_ref()) {
            Ok(role) => colors.set(role, Shade { dark: shade.dark.0, light: shade.light.0 }),
            Err(_) => unknown(&name, "colour", "colors", color_names(), &mut faults),
        }
    }
    faults.into_result()?;
    Ok(WatchSettings { keymap, colors })
}

fn keymap(table: BTreeMap<Spanned<String>, Vec<Spanned<String>>>, faults: &mut Faults) -> Keymap {
    let mut keymap = Keymap::default();
    let defaults = Keymap::defaults();
    // By key: the command that has it. Default keys count for commands that the table omits.
    let mut bound: BTreeMap<String, (&str, bool)> = BTreeMap::new();
    for default in defaults.iter().filter(|one| !table.contains_key(one.command.as_str())) {
        let owned = default.keys.iter().map(|key| ((*key).to_owned(), (&*default.command, true)));
        bound.extend(owned);
    }
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    for (name, keys) in entries {
        let Some(command) =
            defaults.iter().map(|one| one.command.as_str()).find(|one| one == name.get_ref())
        else {
            let names = defaults.iter().map(|one| one.command.as_str());
            unknown(name, "command", "keys", names, faults);
            continue;
        };
        if keys.is_empty() && command == "quit" {
            faults.add(&name.span(), "`quit` in [keys] needs a key");
        }
        let mut parsed = Vec::new();
        for key in keys {
            let key_name = match key_name(key.get_ref()) {
                Ok(name) => name,
                Err(problem) => {
                    faults.add(&key.span(), format!("`{command}` in [keys]: {problem}"));
                    continue;
                }
            };
            match bound.insert(key_name.clone(), (command, false)) {
                Some((other, is_default)) => {
                    let problem = already_bound(&key_name, command, other, is_default);
                    faults.add(&key.span(), problem);
                }
                None => parsed.push(key_name),
            }
        }
        keymap.bind(command, parsed);
    }
    keymap
}

fn already_bound(key: &str, command: &str, other: &str, is_default: bool) -> String {
    match is_default {
        true => format!(
            "`{command}` in [keys]: `{key}` is the default key of `{other}`; give that another key, \
             or none with `{other} = []`"
        ),
        false => format!("`{command}` in [keys]: `{key}` is bound to `{other}` above; remove one"),
    }
}

fn unknown<'w>(
    name: &Spanned<String>,
    what: &str,
    section: &str,
    known: impl Iterator<Item = &'w str>,
    faults: &mut Faults,
) {
    let given = name.get_ref();
    let problem = format!("unknown {what} `{}` in [{section}]", given.escape_debug());
    faults.add_with(&name.span(), problem, nearest(given, known));
}

/// Returns the name that an event of this key has.
fn key_name(word: &str) -> Result<String, String> {
    let name = Key::from_str(word)?.to_string();
    // Terminals do not distinguish Ctrl-X and Ctrl-x.
    match name.strip_prefix("C-") {
        Some(letter) if letter.len() == 1 => Ok(name.to_lowercase().replacen('c', "C", 1)),
        _ => Ok(name),
    }
}

fn color_names() -> impl Iterator<Item = &'static str> {
    ColorRole::VARIANTS.iter().map(|role| role.into())
}

/// Returns the default settings as a file.
pub(super) fn defaults(path: &Path) -> String {
    let mut text = format!(
        "# Keys and colours of `phalanx watch`. They are read from\n# {}.\n\
         # Keys have the names of tmux: C-x is Ctrl-x, M-x is Alt-x. [] is no key. What is left out\n\
         # keeps its default.\n\n[keys]\n",
        path.display()
    );
    let mut group = "";
    for default in Keymap::defaults() {
        if default.group != group {
            group = default.group;
            let _ = writeln!(text, "# {group}");
        }
        let keys = Value::from(default.keys.to_vec());
        let _ = writeln!(text, "{} = {keys} # {}", default.command, default.help);
    }
    text.push_str(
        "\n# A number from 0 to 255, \"#rrggbb\", or a name such as \"light-red\".\n[colors]\n",
    );
    let colors = ThemeColors::default();
    for role in ColorRole::VARIANTS {
        let (name, shade): (&str, Shade) = (role.into(), colors.shade(*role));
        let _ =
            writeln!(text, "{name} = {{ dark = \"{}\", light = \"{}\" }}", shade.dark, shade.light);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_defaults_are_read_as_the_defaults() {
        let text = defaults(Path::new("/home/ann/.claude/phalanx/watch.toml"));
        assert_eq!(parse_settings(&text), Ok(WatchSettings::default()), "{text}");
        assert_eq!(parse_settings(""), Ok(WatchSettings::default()));
        let commands = Keymap::defaults().len();
        assert_eq!(text.matches(" = [").count(), commands, "{text}");
    }

    #[test]
    fn changed_keys_and_colours_are_read() {
        let text = "[keys]\nquit = [\"F5\", \"C-Q\"]\nzoom = []\n\
                    [colors]\nbad = { dark = \"#ff0000\", light = \"light-red\" }\n";
        let settings = parse_settings(text).expect("valid");
        let mut keymap = Keymap::default();
        keymap.bind("quit", vec!["F5".to_owned(), "C-q".to_owned()]);
        keymap.bind("zoom", Vec::new());
        assert_eq!(settings.keymap, keymap);
        let bad = Shade { dark: Color::Rgb(255, 0, 0), light: Color::LightRed };
        assert_eq!(settings.colors.shade(ColorRole::Bad), bad);
        // A key can be exchanged if its other command is in the file too.
        assert!(parse_settings("[keys]\nhelp = [\"q\"]\nquit = [\"?\"]").is_ok());
    }

    #[test]
    fn fault_names_line_key_and_what_to_write() {
        let table = [
            (
                "[keys]\nqiut = [\"x\"]",
                "2:1: unknown command `qiut` in [keys]; did you mean `quit`?",
            ),
            ("[kyes]", "1:2: unknown key `kyes` in watch.toml; did you mean `keys`?"),
            ("[keys]\nquit = []", "2:1: `quit` in [keys] needs a key"),
            (
                "[keys]\nquit = [\"ctrl-x\"]",
                "2:9: `quit` in [keys]: \"ctrl-x\" is not a key; did you mean `C-x`?",
            ),
            (
                "[keys]\nhelp = [\"n\"]",
                "2:9: `help` in [keys]: `n` is the default key of `next-attention`; give that \
                 another key, or none with `next-attention = []`",
            ),
            (
                "[keys]\nquit = [\"F5\"]\nhelp = [\"F5\"]",
                "3:9: `help` in [keys]: `F5` is bound to `quit` above; remove one",
            ),
            (
                "[keys]\nquit = [\"X\", \"X\"]",
                "2:14: `quit` in [keys]: `X` is bound to `quit` above; remove one",
            ),
            (
                "[keys]\nquit = \"x\"",
                "2:8: `quit` in [keys] must be a list of strings, not a string",
            ),
            (
                "[colors]\ngod = { dark = \"1\", light = \"2\" }",
                "2:1: unknown colour `god` in [colors]; did you mean `good`?",
            ),
            (
                "[colors]\ngood = { dark = \"256\", light = \"2\" }",
                "2:17: `dark` in [colors.good] is \"256\", but must be a number from 0 to 255, \
                 `#rrggbb`, or the name of a colour such as `light-red`",
            ),
            ("[colors]\ngood = { dark = \"1\" }", "2:8: [colors.good] has no `light`"),
            (
                "[colors]\ngood = { dark = 1, light = \"2\" }",
                "2:17: `dark` in [colors.good] must be a string, not an integer",
            ),
            ("keys", "1:5: key with no value, expected `=`"),
        ];
        for (text, expected) in table {
            let error = parse_settings(text).expect_err(text);
            assert_eq!(error.to_string(), expected, "{text}");
        }
    }
}
