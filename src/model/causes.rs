//! Text of an error with the errors that caused it.

use std::error::Error;
use std::iter::successors;

/// Returns an error and its causes, outermost first, separated by colons.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Returns the innermost cause of an error, or the error itself.
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    causes(error).last().unwrap_or(error).to_string()
}

/// Returns an error and its causes, outermost first.
pub fn causes<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    successors(Some(error), |error| (**error).source())
}
