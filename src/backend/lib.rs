//! Creates, verifies and closes placements: tmux panes, iTerm2 sessions and our own PTYs behind one
//! trait. Backends do not access the store, messages or tasks.

pub mod choose;
mod error;
pub mod follow;
pub mod iterm2;
mod proof;
pub mod pty;
pub mod tmux;

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use model::id::MemberName;
use model::members::input::Input;
use model::members::placement::{BackendKind, Placement, TmuxPane, Verdict};
use model::members::spec::Terminal;
use proof::{NO_ANSWER, Observation, judge};
use sys::output_watch::OutputWatch;

pub use error::BackendError;
pub use follow::ScreenImage;
pub use proof::{BeforeClose, CloseOutcome, Mark};

/// One launcher to be placed.
#[derive(Debug, Clone)]
pub struct PlacementRequest {
    pub member: MemberName,
    /// Random; the placement carries it, in tmux as `@phalanx_token`.
    pub token: String,
    /// The launcher's command line: at least two words, none of them supplied by a user (SP-01).
    pub argv: Vec<OsString>,
    /// The label that the placement shows from the start.
    pub label: Label,
}

/// The text that a person sees beside a placement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    pub name: String,
    pub role: Option<String>,
    /// The word for the member's state; empty if no lead updates it.
    pub state: String,
    /// The name of one of the team file's colours.
    pub color: Option<String>,
}

/// The operations of a backend. Each verifies that a placement is ours before it changes anything.
pub trait Backend: Send + Sync {
    fn kind(&self) -> BackendKind;

    /// The terminal that the launcher of `member` uses.
    fn terminal(&self, member: &MemberName) -> Terminal;

    /// Starts the launchers as one batch and shows their labels. Returns one result per launch, in
    /// order; a failed launch leaves nothing behind.
    fn place(&self, launches: &[PlacementRequest]) -> Vec<Result<Placement, BackendError>>;

    /// Checks that each placement exists and is ours. Returns one verdict per mark, in order.
    fn verify_all(&self, marks: &[Mark<'_>]) -> Vec<Verdict>;

    /// Verifies each placement, passes the verdicts to `before`, closes the placements that are
    /// proven ours, and waits until they are gone. `before` may end the processes in them; if it
    /// returns false, nothing is closed. Returns one outcome per mark, in order.
    fn close_all(&self, marks: &[Mark<'_>], before: &mut BeforeClose<'_>) -> Vec<CloseOutcome>;

    /// [`Backend::verify_all`] for one placement.
    fn verify(&self, mark: Mark<'_>) -> Verdict {
        let verdict = self.verify_all(&[mark]).pop();
        verdict.unwrap_or_else(|| judge(Observation::Unclear(NO_ANSWER.to_owned())))
    }

    /// [`Backend::close_all`] for one placement.
    fn close(&self, mark: Mark<'_>) -> CloseOutcome {
        let outcome = self.close_all(&[mark], &mut |_| true).pop();
        outcome.unwrap_or(CloseOutcome::Unknown { reason: NO_ANSWER.to_owned() })
    }

    /// Returns the last `lines` lines of its screen as plain text.
    fn screen(&self, mark: Mark<'_>, lines: usize) -> Result<String, BackendError>;

    /// Passes its screen to `on_screen` now and after each change, until `watch` is stopped. Has no
    /// effect on the placement. Polls plain text if the backend does not report changes.
    ///
    /// # Errors
    /// [`BackendError::NotOurs`] once the placement is not proven ours; another error if its screen
    /// could not be read several times in a row.
    fn follow(
        &self,
        mark: Mark<'_>,
        watch: &mut OutputWatch,
        on_screen: &mut dyn FnMut(ScreenImage),
    ) -> Result<(), BackendError> {
        let read = || {
            self.screen(mark, follow::LINES).map_err(|error| match self.verify(mark) {
                Verdict::Owned | Verdict::Unknown { .. } => error,
                verdict => mark.not_ours(verdict),
            })
        };
        follow::poll(watch, read, on_screen)
    }

    /// Returns where to watch the placement, as text for the user: a command line or a short
    /// description.
    fn how_to_watch(&self, placement: &Placement) -> String;

    /// Brings the placement to the front of a terminal that already shows it.
    ///
    /// # Errors
    /// [`BackendError::CannotDo`] if the backend cannot bring a placement to the front,
    /// [`BackendError::NotShown`] if no terminal shows its session.
    fn focus(&self, _mark: Mark<'_>) -> Result<(), BackendError> {
        Err(BackendError::CannotDo { backend: self.kind(), verb: "focus" })
    }

    /// Moves the placement out of sight; its program keeps running. Returns the new placement.
    ///
    /// # Errors
    /// [`BackendError::CannotDo`] if the backend cannot hide placements.
    fn hide(&self, _mark: Mark<'_>) -> Result<Placement, BackendError> {
        Err(BackendError::CannotDo { backend: self.kind(), verb: "hide" })
    }

    /// Moves a hidden placement back beside the others. Returns the new placement.
    ///
    /// # Errors
    /// [`BackendError::CannotDo`] if the backend cannot hide placements.
    fn show(&self, _mark: Mark<'_>) -> Result<Placement, BackendError> {
        Err(BackendError::CannotDo { backend: self.kind(), verb: "show" })
    }

    /// Writes input to the program in the placement, as if a person had typed it.
    ///
    /// # Errors
    /// [`BackendError::NotOurs`] if the placement is not proven ours and [`BackendError::NoInput`]
    /// if it does not accept input; nothing was written then. [`BackendError::CannotDo`] if the
    /// backend does not support input.
    fn write_input(&self, _mark: Mark<'_>, _input: &Input) -> Result<(), BackendError> {
        Err(BackendError::CannotDo { backend: self.kind(), verb: "type into" })
    }

    /// Shows name, role and state beside each placement that is ours. Failures are ignored, because
    /// nothing depends on a label.
    fn label(&self, _labels: &[(Mark<'_>, Label)]) {}
}

/// The pane that a caller runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsidePane {
    /// `$TMUX_PANE`
    pub pane: String,
    /// The id of the session in which the pane was opened, from `$TMUX`.
    pub session: String,
}

/// The location of a team's panes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmuxHome {
    /// The path of `tmux`, from the caller's `PATH`.
    pub program: PathBuf,
    /// The server's socket, from the caller's `$TMUX` or the team's settings; `None` is the default
    /// server.
    pub socket: Option<PathBuf>,
    /// The caller's own pane, if the caller runs inside that server.
    pub inside: Option<InsidePane>,
    /// The last placement of a member. The team's next panes go to its session, if no pane of the
    /// team is open and the caller runs outside that server.
    pub last: Option<TmuxPane>,
    /// The team's name, from which the names of the window and of the detached session are made.
    pub team: String,
    /// Marks windows as this team's (`@phalanx_team`): the name and a random part, so that an older
    /// team of the same name is not mistaken for it.
    pub tag: String,
    pub layout: model::members::placement::Layout,
}
