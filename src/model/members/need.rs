//! The things for which members wait.

use serde::Serialize;

use crate::decisions::question::QuestionKind;

/// The thing that a member waits for.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Need {
    /// A decision about one use of a tool, or about access to a host.
    Permission,
    /// A decision about its plan.
    Plan,
    /// An answer to a question of its program.
    Question,
    /// A login to its provider.
    Login,
    /// A decision whether its program may trust the directory.
    Trust,
    /// The end of a usage limit of its provider.
    Limit,
    /// Input to a plain program that waits at a prompt.
    Prompt,
    /// An answer to another dialog on its screen.
    Dialog,
    /// A remedy for an error that stops its program.
    Error,
}

impl Need {
    /// The name in `--json`, and in tables after "waits for you:".
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the need that a profile's rule names: `needs_login`, `dialog:NAME` or the word of an
    /// error.
    pub fn of_screen(what: &str) -> Need {
        match (what, what.strip_prefix("dialog:")) {
            ("needs_login", _) => Need::Login,
            (_, Some(name)) => name.parse().unwrap_or(Need::Dialog),
            (_, None) => Need::Error,
        }
    }
}

impl From<QuestionKind> for Need {
    fn from(kind: QuestionKind) -> Need {
        match kind {
            QuestionKind::Plan => Need::Plan,
            QuestionKind::Permission | QuestionKind::Sandbox => Need::Permission,
        }
    }
}
