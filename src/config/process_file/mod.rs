//! Lists of processes of other programs, as manifests: Procfile, mprocs, process-compose,
//! tmuxinator and tmuxp.

mod list;
mod mprocs;
mod process_compose;
mod procfile;
mod render;
#[cfg(test)]
mod tests;
mod tmux_session;

use std::path::Path;

use serde_json::{Map, Value};

pub use list::{ProcessHome, ProcessList};
pub use render::manifest;

/// Parses the keys of a file.
type ParseFile = fn(Map<String, Value>, ProcessHome<'_>) -> Result<ProcessList, String>;

/// Parses a file. Its name and its keys tell the format.
///
/// # Errors
/// The problem of the file, and the expected forms.
pub fn parse(file: &Path, text: &str, home: ProcessHome<'_>) -> Result<ProcessList, String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let list = if name.starts_with("Procfile") || name.ends_with(".procfile") {
        procfile::parse(text)?
    } else {
        let whole = match serde_saphyr::from_str::<Value>(text) {
            Ok(Value::Object(whole)) => whole,
            Ok(_) => return Err(expected("it is not a mapping")),
            Err(e) => {
                let message = e.without_snippet().to_string();
                return Err(expected(message.lines().next().unwrap_or_default()));
            }
        };
        let parse = [
            ("procs", mprocs::parse as ParseFile),
            ("processes", process_compose::parse),
            ("windows", tmux_session::parse),
            ("tabs", tmux_session::parse),
        ];
        match parse.into_iter().find(|(key, _)| whole.contains_key(*key)) {
            Some((_, parse)) => parse(whole, home)?,
            None => return Err(expected("it has none of `procs`, `processes` and `windows`")),
        }
    };
    match list.processes.is_empty() {
        true => Err("it has no processes".to_owned()),
        false => Ok(list),
    }
}

fn expected(problem: &str) -> String {
    format!(
        "{problem}; expected is a Procfile, or a file of mprocs, process-compose, tmuxinator or tmuxp"
    )
}
