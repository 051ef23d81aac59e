//! Parses the patches that git prints. Without I/O: bytes come in.

mod name;
mod parse;
mod patch;
#[cfg(test)]
mod tests;

pub use parse::PatchError;
pub use patch::{ChangeKind, FilePatch, Hunk, LineKind, Patch, PatchLine};
