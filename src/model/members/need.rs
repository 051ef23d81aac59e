//! The things for which members wait.

use serde::Serialize;

use crate::id::MemberName;

/// The thing that a member waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
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
    /// An approval of its lead. Its program says that it has asked for it.
    Approval,
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

    /// Returns what a member does that has this need: `needs a login`.
    pub fn words(self) -> &'static str {
        match self {
            Need::Permission => "asks for a permission",
            Need::Plan => "asks about its plan",
            Need::Question => "asks a question",
            Need::Login => "needs a login",
            Need::Trust => "asks whether it may trust the directory",
            Need::Limit => "is at its usage limit",
            Need::Prompt => "waits at its prompt",
            Need::Approval => "waits for its lead",
            Need::Dialog => "shows a dialog",
            Need::Error => "has an error",
        }
    }

    /// Returns the command with which a person sees to it, where no request can be answered.
    pub fn remedy(self, name: &MemberName) -> String {
        match self {
            Need::Prompt => format!("`phalanx type {name} TEXT --enter` answers it"),
            Need::Login => format!("`phalanx attach {name}`, and log in on its screen"),
            Need::Limit => "nothing: it continues after the limit".to_owned(),
            Need::Approval => format!(
                "answer it as the lead; a request that never arrived ends with \
                 `phalanx keys {name} Escape --at-dialog`, and a message asks for it again"
            ),
            Need::Permission
            | Need::Plan
            | Need::Question
            | Need::Trust
            | Need::Dialog
            | Need::Error => format!("`phalanx attach {name}`, and answer on its screen"),
        }
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
