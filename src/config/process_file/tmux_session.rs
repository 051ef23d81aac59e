//! The sessions of tmuxinator and tmuxp: windows with panes, and commands that are typed into them.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::list::{
    ProcessEntry, ProcessHome, ProcessList, in_shell, read, rest, scalar, shell_words, variables,
    without_counterpart,
};

/// The keys of both programs.
#[derive(Deserialize)]
struct SessionFile {
    /// tmuxp
    session_name: Option<String>,
    /// tmuxinator; before its version 0.6 the keys had other names.
    #[serde(alias = "project_name")]
    name: Option<String>,
    #[serde(default, alias = "root", alias = "project_root")]
    start_directory: Option<String>,
    #[serde(default)]
    environment: Value,
    /// Commands that are typed into each pane first.
    #[serde(default, alias = "pre_window")]
    shell_command_before: Value,
    #[serde(alias = "tabs")]
    windows: Vec<Map<String, Value>>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SessionWindow {
    window_name: Option<String>,
    #[serde(alias = "root")]
    start_directory: Option<String>,
    environment: Value,
    #[serde(alias = "pre")]
    shell_command_before: Value,
    panes: Vec<Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SessionPane {
    shell_command: Value,
    start_directory: Option<String>,
    environment: Value,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Keys about the look of a session. A team has panes of its own.
const LOOKS: [&str; 8] = [
    "layout",
    "focus",
    "attach",
    "startup_window",
    "startup_pane",
    "options",
    "synchronize",
    "window_index",
];

fn notes_of(keys: Map<String, Value>) -> Vec<String> {
    rest(keys.into_iter().filter(|(key, _)| !LOOKS.contains(&key.as_str())).collect()).collect()
}

pub(super) fn parse(
    whole: Map<String, Value>,
    home: ProcessHome<'_>,
) -> Result<ProcessList, String> {
    let is_tmuxp = whole.contains_key("session_name");
    let file: SessionFile = read("the file", Value::Object(whole))?;
    let mut list = ProcessList {
        name: file.session_name.or(file.name),
        notes: notes_of(file.rest),
        processes: Vec::new(),
    };
    list.notes.push(
        "the commands of a pane run in one shell, which ends with the last of them".to_owned(),
    );
    let common = variables(file.environment, &mut list.notes);
    for (nth, window) in (1..).zip(file.windows) {
        let place = format!("window {nth}");
        let window: SessionWindow = match is_tmuxp {
            true => read(&place, Value::Object(window))?,
            false => tmuxinator_window(&place, window)?,
        };
        let name = window.window_name.unwrap_or_else(|| format!("window-{nth}"));
        let mut notes = notes_of(window.rest);
        let mut env = common.clone();
        env.extend(variables(window.environment, &mut notes));
        let before = [&file.shell_command_before, &window.shell_command_before];
        let dir = window.start_directory.or_else(|| file.start_directory.clone());
        let count = window.panes.len();
        for (number, pane) in (1..).zip(window.panes) {
            let name = if count > 1 { format!("{name}-{number}") } else { name.clone() };
            let mut notes = notes.clone();
            let pane = session_pane(&name, pane, is_tmuxp, &mut notes)?;
            let typed = commands(&pane.shell_command, &mut notes);
            if typed.is_empty() {
                list.notes.push(format!("the pane `{name}` has no command; left out"));
                continue;
            }
            let mut all: Vec<String> =
                before.iter().flat_map(|before| commands(before, &mut notes)).collect();
            all.extend(typed);
            notes.extend(notes_of(pane.rest));
            let mut env = env.clone();
            env.extend(variables(pane.environment, &mut notes));
            let run = match all.as_slice() {
                [one] => shell_words(one),
                all => in_shell(&all.join("\n")),
            };
            let cwd = pane.start_directory.as_ref().or(dir.as_ref()).map(|dir| home.expand(dir));
            list.processes.push(ProcessEntry {
                name,
                run,
                cwd,
                env,
                notes,
                ..ProcessEntry::default()
            });
        }
    }
    Ok(list)
}

/// Reads a window of tmuxinator: its name, with a table, a command or a list of commands.
fn tmuxinator_window(place: &str, window: Map<String, Value>) -> Result<SessionWindow, String> {
    let mut entries = window.into_iter();
    let Some((name, value)) = entries.next() else {
        return Err(format!("{place}: it has no name"));
    };
    let window = match value {
        Value::Object(_) => read(place, value)?,
        value => SessionWindow { panes: vec![value], ..SessionWindow::default() },
    };
    Ok(SessionWindow { window_name: Some(name), ..window })
}

/// Reads a pane: its commands, with its name in tmuxinator, or a table in tmuxp.
fn session_pane(
    name: &str,
    pane: Value,
    is_tmuxp: bool,
    notes: &mut Vec<String>,
) -> Result<SessionPane, String> {
    let shell_command = match pane {
        Value::Object(_) if is_tmuxp => return read(&format!("`{name}`"), pane),
        Value::Object(named) => {
            let mut named = named.into_iter();
            let (title, commands) = named.next().unwrap_or_default();
            notes.push(format!("the title of the pane is {title}"));
            commands
        }
        // tmuxp has words for a pane without a command.
        Value::String(word) if is_tmuxp && ["blank", "pane", ""].contains(&word.as_str()) => {
            Value::Null
        }
        commands => commands,
    };
    Ok(SessionPane { shell_command, ..SessionPane::default() })
}

/// Returns the commands of a value: one, or a list of texts or of tables with `cmd`.
fn commands(value: &Value, notes: &mut Vec<String>) -> Vec<String> {
    let list = match value {
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    let command = |one: &Value| match one {
        Value::Object(table) => {
            let extra = table.iter().filter(|(key, _)| *key != "cmd");
            notes.extend(extra.map(|(key, value)| without_counterpart(key, value)));
            table.get("cmd").and_then(scalar)
        }
        one => scalar(one),
    };
    list.iter().filter_map(command).filter(|command| !command.trim().is_empty()).collect()
}
