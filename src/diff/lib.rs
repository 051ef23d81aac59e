//! Parses the patches that git prints, and shows them on a terminal for review. Without I/O: bytes
//! and keys come in, actions for the owner and the cells of a screen go out.

mod action;
mod annotation;
pub mod cells;
mod code;
mod colors;
mod draw;
pub mod glyph;
mod help;
mod index;
mod keys;
mod line;
mod name;
mod parse;
mod patch;
#[cfg(test)]
mod tests;
mod view;
mod words;

pub use action::{CommentTarget, DiffAction};
pub use annotation::{Annotation, AnnotationPlace, AnnotationState, DiffSide};
pub use colors::CodeBlob;
pub use help::{KEYS, ViewKey};
pub use parse::PatchError;
pub use patch::{ChangeKind, FilePatch, Hunk, LineKind, Patch, PatchLine};
pub use view::DiffView;
