//! The dashboard of `phalanx watch`: draws the state of a team, and turns keys into effects. It
//! does no I/O; the driver in `cli::watch` reads, runs and writes for it.

mod actions;
mod board;
mod command_line;
mod completion;
mod dialog;
mod editor;
mod effect;
mod form;
mod frame;
mod keymap;
mod keys;
mod layout;
mod lists;
mod members;
mod moves;
mod overlay;
mod palette;
mod position;
mod react;
mod screen;
mod scroll;
mod search;
mod state;
mod submit;
mod targets;
mod team_action;
#[cfg(test)]
mod tests;
mod theme;
mod words;

use layout::Panel;

pub use command_line::command_line;
pub use effect::{
    AfterRun, ChosenCommand, CompletionRequest, Effect, FinishedCommand, FormChoices,
    PaletteCandidate,
};
pub use keymap::Keymap;
pub use state::Dashboard;
pub use team_action::{NewMember, NewTeam, RequestAnswer, TeamAction};
pub(crate) use theme::Tone;
pub use theme::{ColorRole, Shade, Theme, ThemeColors};
