//! A member's `env_file`: variables in lines `NAME=VALUE`.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;

use super::resolve::ResolvedLaunch;
use crate::OpsError;
use model::members::environ;
use model::members::record::MemberRecord;
use model::members::spec::{LauncherSpec, OsText};
use sys::fs;

/// Size limit of the file, in bytes.
const LARGEST: u64 = 256 * 1024;
/// Variables that decide which account a native program has. They are needed before the file is
/// read.
const ACCOUNT: [&str; 2] = ["CLAUDE_CONFIG_DIR", "HOME"];

/// Reads a text line by line, so that `passed` is the number of the last line of an entry.
struct CountedLines<'t> {
    rest: &'t [u8],
    passed: &'t Cell<usize>,
}

impl Read for CountedLines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let line = self.rest.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        let (now, rest) = self.rest.split_at(line.len().min(buffer.len()));
        buffer[..now.len()].copy_from_slice(now);
        self.passed
            .set(self.passed.get() + usize::from(now.len() == line.len() && !now.is_empty()));
        self.rest = rest;
        Ok(now.len())
    }
}

/// Adds the variables of the member's file to its environment. Those of its profile and of its own
/// `env` have precedence.
///
/// # Errors
/// [`OpsError::Usage`] if the file is missing or has a line of another form. It names the line and
/// never contains the text, which may be a secret.
pub(super) fn add(
    launch: &ResolvedLaunch,
    record: &MemberRecord,
    spec: &mut LauncherSpec,
) -> Result<(), OpsError> {
    let Some(file) = &record.request.env_file else { return Ok(()) };
    let path = Path::new(&record.request.cwd).join(file);
    let unusable = |problem: String, hint: &str| {
        OpsError::usage(format!("env_file {}: {problem}", path.display()), hint)
    };
    if !fs::exists(&path) {
        let hint = "a relative path is below the member's own directory; `copy` in [worktree] or \
                    .worktreeinclude brings a file into a worktree";
        return Err(unusable("it does not exist".to_owned(), hint));
    }
    // Users keep such files elsewhere and link to them.
    let bytes = fs::read(&fs::canonical(&path)?, LARGEST)?.unwrap_or_default();
    let form = "its lines are NAME=VALUE; a value with spaces needs quotes";
    let profile = &launch.profile.launch.env;
    let passed = Cell::new(0);
    for variable in dotenvy::Iter::new(CountedLines { rest: &bytes, passed: &passed }) {
        let last = passed.get();
        let (name, value) = variable.map_err(|e| match e {
            dotenvy::Error::LineParse(text, _) => {
                let first = (last + 1).saturating_sub(text.lines().count());
                unusable(format!("line {first} is not NAME=VALUE, or has an open quote"), form)
            }
            e => unusable(format!("line {last}: {e}"), form),
        })?;
        if !environ::may_be_set(&name) {
            return Err(unusable(format!("line {last} sets a name that is not allowed"), form));
        }
        if launch.profile.is_native_member() && ACCOUNT.contains(&name.as_str()) {
            let hint = format!("set {name} in `env`");
            return Err(unusable(format!("{name} is not read from a file"), &hint));
        }
        let is_own = record.request.env.iter().any(|(own, _)| *own == name);
        if is_own || profile.iter().any(|(own, _)| *own == name) {
            continue;
        }
        let (name, value) = (OsString::from(name), OsString::from(value));
        spec.env.retain(|(known, _)| known.clone().into_os() != name);
        spec.env.push((OsText::new(&name), OsText::new(&value)));
    }
    Ok(())
}
