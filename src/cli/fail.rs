//! Failures as people and scripts see them: a kind with its exit code, a message and a hint.

use std::error::Error;
use std::io;

use serde_json::{Value, json};
use strum::VariantArray;

use model::causes::causes;
use model::id::IdError;
use model::text;
use ops::{Kind, OpsError};
use store::StoreError;
use sys::exec::ExecError;
use sys::fs::FsError;

/// Returns each exit code with the `error.kind` in JSON output, if it has one, and its meaning.
pub(super) fn exits() -> impl Iterator<Item = (u8, Option<&'static str>, &'static str)> {
    let failure = |kind: &Kind| (kind.exit_code(), Some(kind.word()), kind.meaning());
    [(0, None, "success")].into_iter().chain(Kind::VARIANTS.iter().map(failure))
}

/// The exit code of a verb that needs no further message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exit(pub(super) u8);

impl Exit {
    pub(super) const DONE: Exit = Exit(0);

    /// Returns the exit code of a kind, for a verb whose output already describes the failure.
    pub(super) fn of(kind: Kind) -> Exit {
        Exit(kind.exit_code())
    }

    /// Returns the exit code of a program that did the work of the verb.
    pub(super) fn of_program(code: i32) -> Exit {
        Exit(u8::try_from(code).unwrap_or(1))
    }
}

/// A failure with a message for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ErrorMessage {
    pub(super) kind: Kind,
    /// Starts in lower case and has no full stop; further lines are a screen or a list.
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// The result of a verb: its exit code, or a failure to report.
pub(super) type VerbResult = Result<Exit, Failure>;

/// The reason why a verb has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    Message(ErrorMessage),
    /// A person interrupted a stream that has no end of its own; no message is needed.
    StreamEnded,
    /// The reader of the output has closed it, so a message would reach no one.
    OutputClosed,
}

impl Failure {
    pub(super) fn new(kind: Kind, message: impl Into<String>, hint: Option<String>) -> Failure {
        Failure::Message(ErrorMessage { kind, message: message.into(), hint })
    }

    pub(super) fn usage(message: impl Into<String>, hint: &str) -> Failure {
        Failure::new(Kind::Usage, message, Some(hint.to_owned()))
    }

    pub(super) fn interrupted(message: &str, hint: Option<String>) -> Failure {
        Failure::new(Kind::Interrupted, message, hint)
    }

    /// Returns the message and the hint in one line.
    pub(super) fn words(&self) -> String {
        match self {
            Failure::Message(error) => {
                let hint = error.hint.as_deref().map(|hint| format!(": {hint}"));
                format!("{}{}", error.message, hint.unwrap_or_default())
            }
            Failure::StreamEnded | Failure::OutputClosed => "interrupted".to_owned(),
        }
    }

    pub(super) fn exit(&self) -> Exit {
        match self {
            Failure::Message(error) => Exit::of(error.kind),
            Failure::StreamEnded => Exit::of(Kind::Interrupted),
            Failure::OutputClosed => Exit::DONE,
        }
    }
}

impl ErrorMessage {
    /// Formats the failure for stderr: `error: …`, further lines indented, `hint: …`.
    pub(super) fn text(&self) -> String {
        let mut lines = Vec::new();
        for (at, line) in text::block(&self.message).lines().enumerate() {
            lines.push(if at == 0 { format!("error: {line}") } else { format!("  {line}") });
        }
        if let Some(hint) = &self.hint {
            lines.push(format!("hint: {}", text::line(hint)));
        }
        lines.join("\n")
    }

    /// Formats the failure for stdout with `--json`.
    pub(super) fn document(&self) -> Value {
        json!({ "error": { "kind": self.kind.word(), "message": self.message, "hint": self.hint } })
    }
}

impl From<OpsError> for Failure {
    fn from(e: OpsError) -> Failure {
        Failure::new(e.kind(), chain(&e), e.hint())
    }
}

impl From<StoreError> for Failure {
    fn from(e: StoreError) -> Failure {
        OpsError::from(e).into()
    }
}

impl From<FsError> for Failure {
    fn from(e: FsError) -> Failure {
        OpsError::from(e).into()
    }
}

impl From<IdError> for Failure {
    fn from(e: IdError) -> Failure {
        OpsError::from(e).into()
    }
}

impl From<ExecError> for Failure {
    fn from(e: ExecError) -> Failure {
        Failure::new(Kind::Failed, chain(&e), None)
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::new(Kind::Failed, plain_words(&e.to_string()), None),
        }
    }
}

/// Formats an error with its causes on one line.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut whole = error.to_string();
    for cause in causes(error).skip(1) {
        let words = plain_words(&cause.to_string());
        if !whole.contains(&words) {
            whole = format!("{whole}: {words}");
        }
    }
    whole
}

/// Returns the description of the resource limit that a system error refers to, if any.
pub(super) fn exhausted(words: &str) -> Option<&'static str> {
    let limits = [
        ("Resource temporarily unavailable", "no more processes are allowed (see `ulimit -u`)"),
        ("Too many open files", "no more open files are allowed (see `ulimit -n`)"),
    ];
    limits.into_iter().find(|(text, _)| words.contains(text)).map(|(_, limit)| limit)
}

/// Rewrites a system error in our style: `No such file or directory (os error 2)` becomes `no such
/// file or directory`.
pub(super) fn plain_words(words: &str) -> String {
    if let Some(limit) = exhausted(words) {
        return limit.to_owned();
    }
    let words = words.split_once(" (os error ").map_or(words, |(before, _)| before);
    let mut chars = words.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            let rest = &words[first.len_utf8()..];
            format!("{}{rest}", first.to_lowercase())
        }
        _ => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::board::Refusal;
    use model::id::{MemberName, TaskId, TeamName};

    #[test]
    fn every_kind_has_its_exit_code_and_word() {
        let table = [
            (Kind::Failed, 1, "failed"),
            (Kind::Usage, 2, "usage"),
            (Kind::NotFound, 3, "not_found"),
            (Kind::Refused, 4, "refused"),
            (Kind::Deadline, 5, "deadline"),
            (Kind::Backend, 6, "backend"),
            (Kind::Internal, 70, "internal"),
            (Kind::Interrupted, 130, "interrupted"),
        ];
        for (kind, code, word) in table {
            assert_eq!((kind.exit_code(), kind.word()), (code, word));
        }
        assert_eq!(table.map(|(kind, ..)| kind), Kind::VARIANTS, "in the order of the codes");
    }

    #[test]
    fn operation_errors_map_to_their_exit_codes() {
        let team = || TeamName::new("demo").expect("name");
        let name = || MemberName::new("bob").expect("name");
        let table: [(OpsError, u8); 9] = [
            (StoreError::NoSuchTeam { name: team().to_string(), known: vec![] }.into(), 3),
            (StoreError::NoSuchMember { team: team(), name: name(), known: vec![] }.into(), 3),
            (StoreError::Refused(Refusal::TaskNotFound(TaskId(1))).into(), 3),
            (StoreError::TeamTaken { name: team() }.into(), 4),
            (
                StoreError::Refused(Refusal::Blocked { id: TaskId(2), by: vec![TaskId(1)] }).into(),
                4,
            ),
            (
                OpsError::Deadline {
                    what: "not idle: bob".to_owned(),
                    limit: std::time::Duration::from_secs(3),
                },
                5,
            ),
            (
                OpsError::BackendUnavailable {
                    backend: model::team::settings::BackendChoice::Tmux,
                    problem: "no".to_owned(),
                },
                6,
            ),
            (OpsError::Name(IdError::Name { what: "team", given: "a b".to_owned() }), 2),
            (OpsError::NotEnded { what: "x".to_owned() }, 1),
        ];
        for (error, code) in table {
            let shown = error.to_string();
            assert_eq!(Failure::from(error).exit(), Exit(code), "{shown}");
        }
    }

    #[test]
    fn failure_is_formatted_for_stderr_and_json() {
        let error = ErrorMessage {
            kind: Kind::Refused,
            message: "it is so\nlast \u{1b}[1mline".to_owned(),
            hint: Some("run that".to_owned()),
        };
        assert_eq!(error.text(), "error: it is so\n  last \u{241b}[1mline\nhint: run that");
        let expected =
            json!({"error": {"kind": "refused", "message": error.message, "hint": "run that"}});
        assert_eq!(error.document(), expected);
        let bare = ErrorMessage { hint: None, ..error };
        assert_eq!(bare.document()["error"]["hint"], Value::Null);
    }

    #[test]
    fn causes_are_listed_once_and_in_our_style() {
        let source = io::Error::from_raw_os_error(2);
        let error = FsError::Io { op: "read", path: "/x".into(), source };
        assert_eq!(chain(&error), "cannot read /x: no such file or directory");
        assert_eq!(plain_words("TOML is"), "TOML is");
        let limit = io::Error::from_raw_os_error(24);
        assert_eq!(
            plain_words(&limit.to_string()),
            "no more open files are allowed (see `ulimit -n`)"
        );
        assert_eq!(
            Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)),
            Failure::OutputClosed
        );
    }
}
