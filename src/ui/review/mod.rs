//! The screen of `phalanx review`: a list of works, and the changes of one member with comments. It
//! does no I/O; the driver in `cli::review` reads and acts for it.

mod changes;
mod data;
mod dialog;
mod draw;
mod effect;
mod keys;
mod news;
mod object;
mod overview;
mod paint;
mod state;
#[cfg(test)]
mod tests;
mod text_area;

pub use data::{ChangesRequest, DiffRange, ListedWork, OpenedWork, SeenWork, WorkList, WorkObject};
pub use effect::{ReviewAction, ReviewEffect, ReviewNews};
pub use state::ReviewScreen;
