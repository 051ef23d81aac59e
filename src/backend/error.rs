//! The error of all backends. It quotes the messages of the programs behind them.

use model::id::MemberName;
use model::members::placement::{BackendKind, Verdict};

#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The program behind the backend is missing or does not work.
    #[error("{program} does not work here: {problem}")]
    Unavailable { program: &'static str, problem: String },
    /// tmux rejected a command; `stderr` is its own message. It comes first: a command may be long.
    #[error("tmux: {stderr} (the command was: {command})")]
    Refused { command: String, stderr: String },
    /// tmux gave an answer that could not be parsed.
    #[error("tmux answered `{command}` with {answer:?}")]
    Unreadable { command: String, answer: String },
    /// iTerm2 rejected a script or timed out; `message` is the message of iTerm2 or macOS.
    #[error("iTerm2 cannot {doing}: {message}")]
    Iterm2 {
        /// The attempted action, to follow "cannot".
        doing: &'static str,
        /// Apple's error number, such as -1743.
        code: Option<i32>,
        message: String,
        /// An instruction for the user.
        advice: Option<&'static str>,
    },
    /// A command could not be run, or timed out.
    #[error(transparent)]
    Exec(#[from] sys::exec::ExecError),
    /// The launcher exited before it could be identified.
    #[error("the launcher of {member} exited at once")]
    LauncherGone { member: MemberName },
    /// The operation requires a placement that is proven ours; nothing was changed.
    #[error("{place} was not touched: {verdict}")]
    NotOurs { place: String, verdict: Verdict },
    /// The placement still exists after its close was requested.
    #[error("{place} is still there after {waited_ms} ms")]
    StillThere { place: String, waited_ms: u64 },
    /// The placement is ours, but its terminal does not accept input at present.
    #[error("{place} takes no input: {problem}")]
    NoInput { place: String, problem: &'static str },
    #[error("the {} backend cannot {verb} a member", backend.as_str())]
    CannotDo { backend: BackendKind, verb: &'static str },
    /// The placement can be brought to the front only where a terminal shows its session.
    #[error("no terminal is attached to the session of {place}")]
    NotShown { place: String },
    /// The host of the placement refused, or cannot do this; the texts are its own.
    #[error("{text}")]
    OnHost { is_refusal: bool, text: String, hint: Option<String> },
    /// A file of the placement could not be read.
    #[error(transparent)]
    File(#[from] sys::fs::FsError),
}

impl BackendError {
    /// Returns whether tmux rejected a command with this message.
    pub(crate) fn says(&self, message: &str) -> bool {
        matches!(self, BackendError::Refused { stderr, .. } if stderr.ends_with(message))
    }

    /// An instruction for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            BackendError::Iterm2 { advice, .. } => advice.map(str::to_owned),
            BackendError::OnHost { hint, .. } => hint.clone(),
            BackendError::Unavailable { .. }
            | BackendError::Refused { .. }
            | BackendError::Unreadable { .. }
            | BackendError::Exec(_)
            | BackendError::LauncherGone { .. }
            | BackendError::NotOurs { .. }
            | BackendError::StillThere { .. }
            | BackendError::NoInput { .. }
            | BackendError::CannotDo { .. }
            | BackendError::NotShown { .. }
            | BackendError::File(_) => None,
        }
    }
}
