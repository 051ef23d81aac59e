//! Patches for tests: written as git prints them, generated, and printed by git itself.

mod git;
mod parse;
mod round_trip;

use crate::Patch;

/// Parses a patch that is valid.
pub(super) fn patch(text: &str) -> Patch {
    Patch::parse(text.as_bytes()).expect("a valid patch")
}
