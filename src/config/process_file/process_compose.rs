//! `process-compose.yaml`

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::list::{
    ProcessEntry, ProcessHome, ProcessList, read, rest, scalar, shell_words, variables,
};
use model::members::readiness::ReadyCheck;

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
    depends_on: Option<Dependencies>,
    readiness_probe: Option<ReadinessProbe>,
    ready_log_line: Option<String>,
    disabled: bool,
    replicas: Option<usize>,
    description: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Processes with conditions, or only their names.
#[derive(Deserialize)]
#[serde(untagged)]
enum Dependencies {
    Conditions(BTreeMap<String, ProcessDependency>),
    Names(Vec<String>),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ProcessDependency {
    condition: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReadinessProbe {
    exec: Option<ProbeCommand>,
    http_get: Option<ProbeAddress>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct ProbeCommand {
    command: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct ProbeAddress {
    host: Option<String>,
    scheme: Option<String>,
    path: Option<String>,
    port: Value,
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
    for (source, value) in file.processes {
        let name = source.clone();
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
            None | Some("no") => None,
            Some("on_failure") => Some("on-failure"),
            Some("always") => Some("always"),
            Some(other) => {
                notes.push(format!("`restart: {other}` has no counterpart"));
                None
            }
        };
        let ready = ready(entry.readiness_probe, entry.ready_log_line, &mut notes);
        let after: Vec<String> = after(entry.depends_on, &mut notes).collect();
        let mut env = common.clone();
        env.extend(variables(entry.environment, &mut notes));
        let cwd = entry.working_dir.map(|dir| home.expand(&dir));
        let count = entry.replicas.unwrap_or(1);
        for number in 1..=count {
            let name = if count > 1 { format!("{name}-{number}") } else { name.clone() };
            list.processes.push(ProcessEntry {
                source: source.clone(),
                name,
                run: run.clone(),
                cwd: cwd.clone(),
                env: env.clone(),
                restart,
                ready: ready.clone(),
                after: after.clone(),
                is_off: entry.disabled,
                notes: notes.clone(),
            });
        }
    }
    Ok(list)
}

/// Returns the check of a process. A line counts before a probe, as only one check is possible.
fn ready(
    probe: Option<ReadinessProbe>,
    line: Option<String>,
    notes: &mut Vec<String>,
) -> Option<ReadyCheck> {
    let probed = probe.and_then(|probe| {
        notes.extend(rest(probe.rest));
        let run = match (probe.exec, probe.http_get) {
            (Some(exec), _) => {
                notes.extend(rest(exec.rest));
                shell_words(&exec.command)
            }
            (None, Some(address)) => {
                let url = format!(
                    "{}://{}:{}{}",
                    address.scheme.as_deref().unwrap_or("http"),
                    address.host.as_deref().unwrap_or("127.0.0.1"),
                    scalar(&address.port)?,
                    address.path.as_deref().unwrap_or("/"),
                );
                notes.extend(rest(address.rest));
                ["curl", "-fsS", "-o", "/dev/null", &url].map(str::to_owned).to_vec()
            }
            (None, None) => return None,
        };
        Some(ReadyCheck { run, ..ReadyCheck::default() })
    });
    match line {
        Some(line) => {
            if probed.is_some() {
                notes.push("`readiness_probe` is left out beside `ready_log_line`".to_owned());
            }
            Some(ReadyCheck { line: Some(line), ..ReadyCheck::default() })
        }
        None => probed,
    }
}

/// Returns the processes that must be ready first.
fn after(
    depends_on: Option<Dependencies>,
    notes: &mut Vec<String>,
) -> impl Iterator<Item = String> {
    let waits = |(name, dependency): (String, ProcessDependency)| {
        notes.extend(rest(dependency.rest));
        match dependency.condition.as_deref() {
            None | Some("process_started" | "process_healthy" | "process_log_ready") => Some(name),
            Some(other) => {
                notes.push(format!("`depends_on: {name}: {other}` has no counterpart"));
                None
            }
        }
    };
    let all = match depends_on {
        Some(Dependencies::Conditions(all)) => all,
        Some(Dependencies::Names(names)) => {
            names.into_iter().map(|name| (name, ProcessDependency::default())).collect()
        }
        None => BTreeMap::new(),
    };
    all.into_iter().filter_map(waits).collect::<Vec<_>>().into_iter()
}
