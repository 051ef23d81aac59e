//! Requests of the view that its owner carries out.

use crate::annotation::DiffSide;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffAction {
    /// Write a comment.
    Comment(CommentTarget),
    /// Open a comment that exists.
    OpenAnnotation(u64),
    /// A file was marked as viewed, or no longer is. The view has done so already.
    Viewed {
        path: Vec<u8>,
        /// The id of the content after the change; `None` if the patch has none.
        blob: Option<String>,
        viewed: bool,
    },
    /// Make the patch again, with or without changes of white space. The owner calls
    /// [`crate::DiffView::set_ignores_whitespace`] when it has the other patch.
    IgnoreWhitespace(bool),
    /// Make the patch again, from another base.
    ChooseBase,
    Close,
}

/// The object of a new comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommentTarget {
    /// The whole patch.
    Whole,
    File {
        path: Vec<u8>,
    },
    /// The lines `first..=last` of one side. `quote` has their raw bytes.
    Lines {
        path: Vec<u8>,
        side: DiffSide,
        first: u32,
        last: u32,
        quote: Vec<Vec<u8>>,
    },
}
