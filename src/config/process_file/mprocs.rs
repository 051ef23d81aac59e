//! `mprocs.yaml`

use serde::Deserialize;
use serde_json::{Map, Value};

use super::list::{
    ProcessEntry, ProcessHome, ProcessList, read, rest, shell_words, variables, without_counterpart,
};

/// Stands for the directory of the file.
const CONFIG_DIR: &str = "<CONFIG_DIR>";

#[derive(Deserialize)]
struct MprocsFile {
    /// In the order of the file.
    procs: Map<String, Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A process: a command for the shell, a command line, or a table.
#[derive(Deserialize)]
#[serde(untagged)]
enum MprocsEntry {
    Shell(String),
    Cmd(Vec<String>),
    Table(Box<MprocsTable>),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MprocsTable {
    shell: Option<String>,
    cmd: Option<Vec<String>>,
    cwd: Option<String>,
    env: Value,
    autostart: Option<bool>,
    autorestart: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

pub(super) fn parse(
    whole: Map<String, Value>,
    home: ProcessHome<'_>,
) -> Result<ProcessList, String> {
    let file: MprocsFile = read("the file", Value::Object(whole))?;
    let mut list = ProcessList { notes: rest(file.rest).collect(), ..ProcessList::default() };
    for (name, value) in file.procs {
        // Removes a process of another file.
        if value.is_null() {
            list.notes.push(without_counterpart(&name, &value));
            continue;
        }
        let table = match read(&format!("`{name}`"), value)? {
            MprocsEntry::Shell(shell) => {
                MprocsTable { shell: Some(shell), ..MprocsTable::default() }
            }
            MprocsEntry::Cmd(cmd) => MprocsTable { cmd: Some(cmd), ..MprocsTable::default() },
            MprocsEntry::Table(table) => *table,
        };
        let run = match (table.cmd, table.shell) {
            (Some(cmd), _) if !cmd.is_empty() => cmd,
            (_, Some(shell)) => shell_words(&shell),
            (_, None) => return Err(format!("`{name}` has neither `cmd` nor `shell`")),
        };
        let mut notes: Vec<String> = rest(table.rest).collect();
        let cwd = table.cwd.map(|cwd| {
            let cwd = cwd.strip_prefix(CONFIG_DIR).map_or(cwd.clone(), |rest| format!(".{rest}"));
            home.expand(&cwd)
        });
        let env = variables(table.env, &mut notes);
        list.processes.push(ProcessEntry {
            name,
            run,
            cwd,
            env,
            restart: table.autorestart.filter(|again| *again).map(|_| "always"),
            is_off: table.autostart == Some(false),
            notes,
            ..ProcessEntry::default()
        });
    }
    Ok(list)
}
