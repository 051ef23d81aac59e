//! `Procfile`: a line `NAME: COMMAND` for each process.

use super::list::{ProcessEntry, ProcessList, shell_words};

/// The port of the first process, and the distance to that of the next one, as foreman has them.
const PORTS: (usize, usize) = (5000, 100);

pub(super) fn parse(text: &str) -> Result<ProcessList, String> {
    let mut list = ProcessList::default();
    for (number, line) in (1..).zip(text.lines()).map(|(number, line)| (number, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let is_name = |name: &&str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        };
        let Some((name, command)) = line.split_once(':').filter(|(name, _)| is_name(name)) else {
            return Err(format!("line {number}: expected is NAME: COMMAND"));
        };
        let command = command.trim();
        if command.is_empty() {
            return Err(format!("line {number}: `{name}` has no command"));
        }
        let mut entry = ProcessEntry {
            name: name.to_owned(),
            run: shell_words(command),
            ..ProcessEntry::default()
        };
        if command.contains("$PORT") || command.contains("${PORT") {
            let port = PORTS.0 + PORTS.1 * list.processes.len();
            entry.env.push(("PORT".to_owned(), port.to_string()));
            entry.notes.push("PORT is the one that foreman would choose".to_owned());
        }
        list.processes.push(entry);
    }
    list.notes.push(
        "foreman reads the variables of .env; `env_file = \".env\"` in [defaults] does so here"
            .to_owned(),
    );
    Ok(list)
}
