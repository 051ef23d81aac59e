//! Writes text and keys to the program of a pane. The server checks the pane's identity in the same
//! step.

use std::path::Path;

use super::command::PlainWord;
use super::identity::PaneClaim;
use super::row::{InputRow, rows};
use super::verb;
use crate::BackendError;
use model::members::input::Input;
use sys::rand;

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    All,
    /// Nothing was written: there is no such pane, or it has another identity.
    NotTheClaimed,
}

/// Writes all of the input or nothing. A text goes through a paste buffer: its bytes do not appear
/// in a command, and tmux writes them to this pane alone, whatever mode it is in.
pub(super) fn write(
    program: &Path,
    claim: &PaneClaim<'_>,
    input: &Input,
) -> Result<Written, BackendError> {
    let server = claim.server(program);
    let answer = match input {
        Input::Keys(keys) => server.ask(
            &claim.guarded(&verb::if_accepts_input(claim.id, &verb::send_keys(claim.id, keys))),
        ),
        Input::Text(text) => {
            let buffer = PlainWord::from_text(&format!("phalanx-{}", rand::token()));
            let paste = verb::paste_buffer(claim.id, &buffer, text.is_block());
            let guarded = claim.guarded(&verb::if_accepts_input(claim.id, &paste));
            let unit = verb::load_buffer(&buffer).then(guarded).then(verb::delete_buffer(&buffer));
            server.ask_with(&unit, text.as_str().as_bytes().to_vec())
        }
    };
    let Some(row) = rows::<InputRow>(&answer.into_lines()?).into_iter().next() else {
        return Ok(Written::NotTheClaimed);
    };
    let problem = match row {
        InputRow { dead: true, .. } => "its program has ended",
        InputRow { off: true, .. } => {
            "its input is switched off (`tmux select-pane -e` switches it on)"
        }
        InputRow { synchronized: true, .. } => {
            "synchronize-panes is on, so the input would reach its neighbours (`tmux setw synchronize-panes off`)"
        }
        InputRow { dead: false, off: false, synchronized: false } => return Ok(Written::All),
    };
    Err(BackendError::NoInput { place: claim.place(), problem })
}
