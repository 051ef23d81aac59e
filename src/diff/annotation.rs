//! Comments that are shown below a line, a file or above all files.

/// The side of a line: before or after the change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DiffSide {
    Old,
    #[default]
    New,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// Chosen by the owner; [`crate::DiffAction::OpenAnnotation`] returns it.
    pub id: u64,
    pub place: AnnotationPlace,
    pub state: AnnotationState,
    /// Name of the comment, for example `R12 must`.
    pub label: String,
    /// Text, wrapped by the view.
    pub rows: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationPlace {
    /// The whole patch.
    Whole,
    File {
        path: Vec<u8>,
    },
    Line {
        path: Vec<u8>,
        side: DiffSide,
        line: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotationState {
    Draft,
    Sent,
    Answered,
    Resolved,
}

impl AnnotationState {
    /// The state in a word, which is shown beside the label.
    pub(crate) fn word(self) -> &'static str {
        match self {
            AnnotationState::Draft => "draft",
            AnnotationState::Sent => "sent",
            AnnotationState::Answered => "answered",
            AnnotationState::Resolved => "resolved",
        }
    }
}
