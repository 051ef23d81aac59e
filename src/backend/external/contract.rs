//! What is said to a program of somebody else's and what it may answer, as JSON (docs/backends.md). Shapes only: what
//! an answer is worth, `mod.rs` judges. Fields are only ever added; anything else makes a new [`VERSION`].

use serde::{Deserialize, Serialize};

use crate::model::placement::Layout;

/// The form of requests and answers; both carry it.
pub(super) const VERSION: u64 = 1;

/// A verb of the contract, as the program's only argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Place,
    Verify,
    Close,
    Screen,
    Focus,
    Hide,
    Show,
    Input,
    Label,
}

impl Verb {
    /// The word.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Verb::Place => "place",
            Verb::Verify => "verify",
            Verb::Close => "close",
            Verb::Screen => "screen",
            Verb::Focus => "focus",
            Verb::Hide => "hide",
            Verb::Show => "show",
            Verb::Input => "input",
            Verb::Label => "label",
        }
    }
}

/// What every request looks like: the version beside what the verb needs.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a, T> {
    pub(super) version: u64,
    #[serde(flatten)]
    pub(super) body: &'a T,
}

/// `place`
#[derive(Debug, Serialize)]
pub(super) struct Launches<'a> {
    pub(super) team: &'a str,
    pub(super) layout: Layout,
    pub(super) launches: Vec<OneLaunch<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct OneLaunch<'a> {
    pub(super) member: &'a str,
    pub(super) token: &'a str,
    pub(super) argv: Vec<&'a str>,
}

/// A place that the program made, and the token that it was given for it.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Place<'a> {
    pub(super) id: &'a str,
    pub(super) token: &'a str,
}

/// `verify`, `close`
#[derive(Debug, Serialize)]
pub(super) struct Places<'a> {
    pub(super) places: Vec<Place<'a>>,
}

/// `focus`, `hide`, `show`; with `lines` `screen`, with `text` `input`.
#[derive(Debug, Serialize)]
pub(super) struct OnePlace<'a> {
    pub(super) place: Place<'a>,
    #[serde(flatten)]
    pub(super) more: More<'a>,
}

/// The arguments of the verbs about one place that have any.
#[derive(Debug, Default, Serialize)]
pub(super) struct More<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lines: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<&'a str>,
}

/// `label`
#[derive(Debug, Serialize)]
pub(super) struct Labels<'a> {
    pub(super) labels: Vec<OneLabel<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct OneLabel<'a> {
    #[serde(flatten)]
    pub(super) place: Place<'a>,
    pub(super) name: &'a str,
    pub(super) role: Option<&'a str>,
    pub(super) state: &'a str,
    pub(super) color: Option<&'a str>,
}

/// What every answer may say before anything else.
#[derive(Debug, Deserialize)]
pub(super) struct Head {
    pub(super) version: u64,
    /// The program has no such verb.
    #[serde(default)]
    pub(super) unsupported: bool,
}

/// To `place`: one for each launch, in order.
#[derive(Debug, Deserialize)]
pub(super) struct Placed {
    pub(super) places: Vec<OnePlaced>,
}

/// Either an id or an error.
#[derive(Debug, Deserialize)]
pub(super) struct OnePlaced {
    pub(super) id: Option<String>,
    pub(super) watch: Option<String>,
    pub(super) error: Option<String>,
}

/// To `verify`: one for each place, in order.
#[derive(Debug, Deserialize)]
pub(super) struct Verdicts {
    pub(super) verdicts: Vec<Word>,
}

/// The program's verdict on a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Word {
    Owned,
    Foreign,
    Gone,
    Unknown,
}

/// To `screen`.
#[derive(Debug, Deserialize)]
pub(super) struct Screen {
    pub(super) text: String,
}

/// To what has nothing to tell.
#[derive(Debug, Deserialize)]
pub(super) struct Done {}
