//! The kinds of texts that have the form of a manifest.

use crate::config::Document;

/// The kind of a text: a whole manifest, one with placeholders, the settings of a team that already
/// has a name, or the tasks for a team that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Manifest,
    Template,
    Settings,
    Tasks,
}

impl Form {
    pub(super) fn document(self) -> Document {
        match self {
            Form::Manifest | Form::Tasks => {
                Document { title: "the manifest", denied: &["template"] }
            }
            Form::Template => Document { title: "the template", denied: &[] },
            Form::Settings => Document {
                title: "the settings",
                denied: &["team.name", "team.store", "task", "template"],
            },
        }
    }
}
