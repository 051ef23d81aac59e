//! JSON types of the contract with external backend programs (docs/backends.md). A version only
//! gains fields; any other change needs a new [`VERSION`].

use serde::{Deserialize, Serialize};

use crate::model::placement::Layout;

/// The version of the contract, in every request and answer.
pub(super) const VERSION: u64 = 1;

/// A verb of the contract, passed as the program's only argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum ContractVerb {
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

impl ContractVerb {
    pub(super) fn as_str(self) -> &'static str {
        self.into()
    }
}

#[derive(Debug, Serialize)]
pub(super) struct VersionedRequest<'a, T> {
    pub(super) version: u64,
    #[serde(flatten)]
    pub(super) body: &'a T,
}

/// The request of `place`.
#[derive(Debug, Serialize)]
pub(super) struct LaunchesRequest<'a> {
    pub(super) team: &'a str,
    pub(super) layout: Layout,
    pub(super) launches: Vec<LaunchEntry<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct LaunchEntry<'a> {
    pub(super) member: &'a str,
    /// Proves the place ours in later requests.
    pub(super) token: &'a str,
    /// The command line to run in the new place, without a shell.
    pub(super) argv: Vec<&'a str>,
}

/// A place that the program created, with the token that it received for it.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct PlaceKey<'a> {
    pub(super) id: &'a str,
    pub(super) token: &'a str,
}

/// The request of `verify` and `close`.
#[derive(Debug, Serialize)]
pub(super) struct PlacesRequest<'a> {
    pub(super) places: Vec<PlaceKey<'a>>,
}

/// The request of `focus`, `hide` and `show`, of `screen` with `lines`, and of `input` with `text`.
#[derive(Debug, Serialize)]
pub(super) struct PlaceRequest<'a> {
    pub(super) place: PlaceKey<'a>,
    #[serde(flatten)]
    pub(super) more: PlaceOptions<'a>,
}

/// The optional arguments of verbs for one place.
#[derive(Debug, Default, Serialize)]
pub(super) struct PlaceOptions<'a> {
    /// For `screen`: the number of lines to return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lines: Option<usize>,
    /// For `input`: the text to write, with the codes of keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<&'a str>,
}

/// The request of `label`.
#[derive(Debug, Serialize)]
pub(super) struct LabelsRequest<'a> {
    pub(super) labels: Vec<LabelEntry<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct LabelEntry<'a> {
    #[serde(flatten)]
    pub(super) place: PlaceKey<'a>,
    pub(super) name: &'a str,
    pub(super) role: Option<&'a str>,
    pub(super) state: &'a str,
    pub(super) color: Option<&'a str>,
}

/// The fields that every answer may have; parsed first.
#[derive(Debug, Deserialize)]
pub(super) struct AnswerHeader {
    pub(super) version: u64,
    /// The program does not support the verb.
    #[serde(default)]
    pub(super) unsupported: bool,
}

/// The answer to `place`: one entry per launch, in order.
#[derive(Debug, Deserialize)]
pub(super) struct PlaceAnswer {
    pub(super) places: Vec<PlacedEntry>,
}

/// Either the id of a new place or an error.
#[derive(Debug, Deserialize)]
pub(super) struct PlacedEntry {
    /// Opaque; repeated to the program in later requests.
    pub(super) id: Option<String>,
    /// Where to watch the place, as text for the user.
    pub(super) watch: Option<String>,
    /// The reason why the place was not created.
    pub(super) error: Option<String>,
}

/// The answer to `verify`: one entry per place, in order.
#[derive(Debug, Deserialize)]
pub(super) struct VerdictsAnswer {
    pub(super) verdicts: Vec<VerdictWord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum VerdictWord {
    Owned,
    Foreign,
    Gone,
    Unknown,
}

/// The answer to `screen`.
#[derive(Debug, Deserialize)]
pub(super) struct ScreenAnswer {
    pub(super) text: String,
}

/// The answer to verbs that return nothing.
#[derive(Debug, Deserialize)]
pub(super) struct EmptyAnswer {}
