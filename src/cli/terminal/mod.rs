//! The terminal of full screens, and what arrives from it.

mod full_screen;
mod input;
pub(crate) mod theme;

pub(crate) use full_screen::{FullScreen, MouseUse};
pub(crate) use input::{ScreenInput, TerminalWake};
