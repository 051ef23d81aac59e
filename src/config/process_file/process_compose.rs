//! `process-compose.yaml`

use serde::Deserialize;
use serde_json::{Map, Value};

use super::list::{ProcessEntry, ProcessHome, ProcessList, read, rest, shell_words, variables};

#[derive(Deserialize)]
struct ComposeFile {
    name: Option<String>,
    #[serde(default)]
    environment: Value,
    /// In the order of the file.
    processes: Map<String, Value>,
    /// The version of the format says nothing about the processes.
    #[serde(default, rename = "version")]
    _version: Value,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ComposeEntry {
    command: Option<String>,
    entrypoint: Option<Vec<String>>,
    working_dir: Option<String>,
    environment: Value,
    availability: Availability,
    disabled: bool,
    replicas: Option<usize>,
    description: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Availability {
    restart: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

pub(super) fn parse(
    whole: Map<String, Value>,
    home: ProcessHome<'_>,
) -> Result<ProcessList, String> {
    let file: ComposeFile = read("the file", Value::Object(whole))?;
    let mut list =
        ProcessList { name: file.name, notes: rest(file.rest).collect(), processes: Vec::new() };
    let common = variables(file.environment, &mut list.notes);
    for (name, value) in file.processes {
        let entry: ComposeEntry = read(&format!("`{name}`"), value)?;
        let run = match (entry.entrypoint, entry.command) {
            (Some(mut words), command) => {
                words.extend(command);
                words
            }
            (None, Some(command)) => shell_words(&command),
            (None, None) => return Err(format!("`{name}` has no `command`")),
        };
        let mut notes: Vec<String> = entry.description.into_iter().collect();
        notes.extend(rest(entry.rest));
        notes.extend(rest(entry.availability.rest));
        let restart = match entry.availability.restart.as_deref() {
            None | Some("no") => false,
            Some("on_failure") => true,
            Some("always") => {
                notes.push(
                    "`restart: always` also follows an exit with 0, here it does not".to_owned(),
                );
                true
            }
            Some(other) => {
                notes.push(format!("`restart: {other}` has no counterpart"));
                false
            }
        };
        let mut env = common.clone();
        env.extend(variables(entry.environment, &mut notes));
        let cwd = entry.working_dir.map(|dir| home.expand(&dir));
        let count = entry.replicas.unwrap_or(1);
        for number in 1..=count {
            let name = if count > 1 { format!("{name}-{number}") } else { name.clone() };
            list.processes.push(ProcessEntry {
                name,
                run: run.clone(),
                cwd: cwd.clone(),
                env: env.clone(),
                restart,
                is_off: entry.disabled,
                notes: notes.clone(),
            });
        }
    }
    Ok(list)
}
