//! What makes and closes placements: tmux panes, iTerm2 sessions, own PTYs and programs of somebody else's behind one
//! trait. Knows nothing of the store, of messages, tasks or of what agents' programs are.

pub(crate) mod choose;
pub(crate) mod external;
pub(crate) mod iterm2;
pub(crate) mod pty;
pub(crate) mod tmux;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::model::id::MemberName;
use crate::model::input::Input;
use crate::model::placement::{BackendKind, Placement, Verdict};
use crate::model::spec::Terminal;

/// One launcher to be given a place.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) member: MemberName,
    /// Random; what is placed carries it (`@phalanx_token`).
    pub(crate) token: String,
    /// The launcher's command line: always at least two words, none of them from a user (SP-01).
    pub(crate) argv: Vec<OsString>,
    /// Shown beside the placement from the beginning.
    pub(crate) label: Label,
}

/// A placement and the token that proves it ours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark<'a> {
    pub(crate) placement: &'a Placement,
    pub(crate) token: &'a str,
}

/// What a person is shown beside a placement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) name: String,
    pub(crate) role: Option<String>,
    /// The word of its state; empty where no lead keeps it up to date.
    pub(crate) state: String,
    /// One of the team file's colours.
    pub(crate) color: Option<String>,
}

/// Why a backend could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackendError {
    /// The program behind the backend is not there or does not work.
    #[error("{program} does not work here: {problem}")]
    Unavailable { program: &'static str, problem: String },
    /// A tmux command was refused; its own words are kept.
    #[error("tmux refused `{command}`: {stderr}")]
    Refused { command: String, stderr: String },
    /// tmux answered something that cannot be read.
    #[error("tmux answered `{command}` with {answer:?}")]
    Unreadable { command: String, answer: String },
    /// A script was refused, or not answered in time; iTerm2's or the system's own words are kept.
    #[error("iTerm2 cannot {doing}: {said}")]
    Iterm2 {
        doing: &'static str,
        /// Apple's number of the error, e.g. -1743.
        code: Option<i32>,
        said: String,
        /// What a person can do about it.
        advice: Option<&'static str>,
    },
    /// The command could not be run, or ran out of time.
    #[error(transparent)]
    Exec(#[from] crate::sys::exec::ExecError),
    /// The launcher had ended before it could be found.
    #[error("the launcher of {member} exited at once")]
    LauncherGone { member: MemberName },
    /// Closing was asked for something that is not proven ours.
    #[error("{place} was not touched: {verdict}")]
    NotOurs { place: String, verdict: Verdict },
    /// It was told to end and is still there.
    #[error("{place} is still there after {waited_ms} ms")]
    StillThere { place: String, waited_ms: u64 },
    /// The terminal is ours and takes no input as it stands.
    #[error("{place} takes no input: {problem}")]
    NoInput { place: String, problem: &'static str },
    /// The backend has no such thing.
    #[error("the {} backend cannot {verb} a member", backend.as_str())]
    CannotDo { backend: BackendKind, verb: &'static str },
    /// A program of somebody else's did not do what was asked; its own words are kept, fit to print.
    #[error("`{call}` {problem}")]
    External { call: String, problem: String },
    /// A file of the placement could not be read.
    #[error(transparent)]
    File(#[from] crate::sys::fs::FsError),
}

impl BackendError {
    /// What to do about it, where there is something to say.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            BackendError::Iterm2 { advice, .. } => advice.map(str::to_owned),
            BackendError::Unavailable { .. }
            | BackendError::External { .. }
            | BackendError::Refused { .. }
            | BackendError::Unreadable { .. }
            | BackendError::Exec(_)
            | BackendError::LauncherGone { .. }
            | BackendError::NotOurs { .. }
            | BackendError::StillThere { .. }
            | BackendError::NoInput { .. }
            | BackendError::CannotDo { .. }
            | BackendError::File(_) => None,
        }
    }
}

/// The primitive verbs of a backend. Each works on one placement and proves whose it is before it does harm.
pub(crate) trait Backend: Send + Sync {
    /// Which one this is.
    fn kind(&self) -> BackendKind;

    /// Which terminal the launcher of `member` shall use.
    fn terminal(&self, member: &MemberName) -> Terminal;

    /// Starts the launchers as one batch and shows their labels; one answer each, in order. A failed
    /// one leaves nothing behind.
    fn place(&self, launches: &[Launch]) -> Vec<Result<Placement, BackendError>>;

    /// Whether each placement is still there and still ours; one answer each, in order.
    fn verify_all(&self, marks: &[Mark<'_>]) -> Vec<Verdict>;

    /// Closes each placement that is proven ours and waits until it is gone; one answer each, in order: the verdict that
    /// was acted upon, `Owned` (closed now) or `Gone` (was closed already).
    ///
    /// # Errors
    /// [`BackendError::NotOurs`] if it is foreign or cannot be asked; then nothing was touched.
    fn close_all(&self, marks: &[Mark<'_>]) -> Vec<Result<Verdict, BackendError>>;

    /// [`Backend::verify_all`] for one.
    fn verify(&self, placement: &Placement, token: &str) -> Verdict {
        let answer = self.verify_all(&[Mark { placement, token }]).pop();
        answer.unwrap_or(Verdict::Unknown { reason: "the backend did not answer".to_owned() })
    }

    /// [`Backend::close_all`] for one.
    fn close(&self, placement: &Placement, token: &str) -> Result<Verdict, BackendError> {
        let answer = self.close_all(&[Mark { placement, token }]).pop();
        answer.unwrap_or_else(|| {
            let verdict = Verdict::Unknown { reason: "the backend did not answer".to_owned() };
            Err(BackendError::NotOurs { place: placement.pane_id().to_owned(), verdict })
        })
    }

    /// The last `lines` lines of its screen, as plain text.
    fn screen(
        &self,
        placement: &Placement,
        token: &str,
        lines: usize,
    ) -> Result<String, BackendError>;

    /// How a person gets to see it: a command line or a few words.
    fn how_to_watch(&self, placement: &Placement) -> String;

    /// Brings the placement before the person's eyes, where a terminal shows it already.
    ///
    /// # Errors
    /// [`BackendError::CannotDo`] where there is nothing to bring forward.
    fn focus(&self, _placement: &Placement, _token: &str) -> Result<(), BackendError> {
        Err(BackendError::CannotDo { backend: self.kind(), verb: "focus" })
    }

    /// Takes the placement out of sight, still running. Gives where it is now.
    ///
    /// # Errors
    /// [`BackendError::CannotDo`] where nothing can be out of sight.
    fn hide(&self, _placement: &Placement, _token: &str) -> Result<Placement, BackendError> {
        Err(BackendError::CannotDo { backend: self.kind(), verb: "hide" })
    }

    /// Puts a hidden placement back beside the others. Gives where it is now.
    ///
    /// # Errors
    /// [`BackendError::CannotDo`] where nothing can be out of sight.
    fn show(&self, _placement: &Placement, _token: &str) -> Result<Placement, BackendError> {
        Err(BackendError::CannotDo { backend: self.kind(), verb: "show" })
    }

    /// Writes input to the program in the placement, as if a person had typed it there.
    ///
    /// # Errors
    /// [`BackendError::NotOurs`] if it is not proven ours and [`BackendError::NoInput`] if it takes
    /// no input; nothing was written then. [`BackendError::CannotDo`] where nothing can be typed.
    fn write_input(
        &self,
        _placement: &Placement,
        _token: &str,
        _input: &Input,
    ) -> Result<(), BackendError> {
        Err(BackendError::CannotDo { backend: self.kind(), verb: "type into" })
    }

    /// Shows name, role and state beside each placement that is ours. What cannot be labelled is left as it is: a label
    /// is for the eye only.
    fn label(&self, _labels: &[(Mark<'_>, Label)]) {}

    /// Shows the labels of launches that were just placed, for a backend that needs a separate call.
    fn label_placed(&self, launches: &[Launch], placed: &[Result<Placement, BackendError>]) {
        let labels = launches.iter().zip(placed).filter_map(|(launch, placement)| {
            let mark = Mark { placement: placement.as_ref().ok()?, token: &launch.token };
            Some((mark, launch.label.clone()))
        });
        self.label(&labels.collect::<Vec<_>>());
    }
}

/// Where the team's panes go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TmuxHome {
    /// `tmux` as found in the caller's `PATH`.
    pub(crate) program: PathBuf,
    /// The server's socket: from the caller's `$TMUX` or the team's settings; none for the default server.
    pub(crate) socket: Option<PathBuf>,
    /// The caller's own pane (`$TMUX_PANE`), when it stands inside that server.
    pub(crate) inside: Option<String>,
    /// The team's name: names the window and the detached session.
    pub(crate) team: String,
    /// What marks windows as this team's (`@phalanx_team`): name and a random part, so that an older team of the
    /// same name is not taken for it.
    pub(crate) tag: String,
    pub(crate) layout: crate::model::placement::Layout,
}
