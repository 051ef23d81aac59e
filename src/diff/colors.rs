//! The words of code for colours. They arrive after the patch, for the contents of its files.

use std::sync::Arc;

use model::code::{CodeLanguage, CodeTokens};

/// A content in a language.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodeBlob {
    pub id: String,
    pub language: CodeLanguage,
}

/// The words of both contents of a file; `None` until they are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileColors {
    pub(crate) old: Option<Arc<CodeTokens>>,
    pub(crate) new: Option<Arc<CodeTokens>>,
}
