//! The reviews of a team (`phalanx/reviews/team.json`).

use crate::error::StoreError;
use crate::files::dirs;
use crate::files::documents::{self, DocumentPlace};
use crate::team::TeamStore;
use database::DocumentKind;
use model::review::TeamReview;

/// Format version of the file.
const FORMAT: u32 = 1;
/// The key of the only document.
const KEY: &str = "team";

impl TeamStore {
    /// Returns the comments of the team, and what reviewers have looked at.
    pub fn review(&self) -> Result<TeamReview, StoreError> {
        Ok(documents::read_typed(&self.review_place(), FORMAT)?.unwrap_or_default())
    }

    /// Changes the comments or the looks under their lock.
    pub fn change_review<T>(
        &self,
        mut edit: impl FnMut(&mut TeamReview) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.shared.is_none() {
            dirs::make_dirs_of(&self.layout.review(KEY))?;
        }
        documents::change_typed(&self.review_place(), FORMAT, |found: &mut Option<TeamReview>| {
            let review = found.get_or_insert_with(TeamReview::default);
            review.format = FORMAT;
            edit(review)
        })
    }

    fn review_place(&self) -> DocumentPlace {
        self.document(DocumentKind::Review, KEY, || {
            self.own_place("reviews", self.layout.review(KEY))
        })
    }
}
