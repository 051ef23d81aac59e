//! The person's pager.

use std::ffi::OsString;
use std::path::Path;

use sys::env::find_program;

/// Returns the words of the pager: `$PAGER`, else `less` with these options if there is one. `var`
/// returns a variable of the person's environment that is not empty.
pub(super) fn words(var: impl Fn(&str) -> Option<OsString>, less: &str) -> Option<Vec<OsString>> {
    let chosen = var("PAGER").and_then(|pager| shlex::split(&pager.to_string_lossy()));
    if let Some(words) = chosen.filter(|words| !words.is_empty()) {
        return Some(words.into_iter().map(OsString::from).collect());
    }
    let found = find_program("less".as_ref(), var("PATH").as_deref(), Path::new("/"))?;
    Some(vec![found.into(), less.into()])
}
