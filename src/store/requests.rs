//! Requests that wait for an answer (`phalanx/requests/`). Who carries them out is not known here.

use std::path::PathBuf;

use super::document::{self, Kept};
use super::error::StoreError;
use super::layout::QUESTION;
use super::teams::TeamStore;
use crate::model::digest;
use crate::model::id::RequestId;
use crate::model::request::ShutdownRequest;
use crate::sys::fs;

/// The form of request files.
const FORMAT: u32 = 1;

impl TeamStore {
    /// Files a request; whether its id was free.
    pub(crate) fn file_request(&self, request: &ShutdownRequest) -> Result<bool, StoreError> {
        document::write_new(&self.layout.request(&request.id), request, Kept::ForThisBoot)
    }

    /// One request.
    pub(crate) fn request(&self, id: &RequestId) -> Result<ShutdownRequest, StoreError> {
        let found = document::read_typed(&self.request_place(id))?;
        found.ok_or_else(|| StoreError::NoSuchRequest { id: id.clone() })
    }

    /// All requests, oldest first.
    pub(crate) fn requests(&self) -> Result<Vec<ShutdownRequest>, StoreError> {
        let files = fs::list(&self.layout.requests())?;
        let stems =
            files.iter().filter(|f| !f.starts_with('.')).filter_map(|f| f.strip_suffix(".json"));
        let mut found = Vec::new();
        // What members ask lies there too, under names of its own.
        for stem in stems.filter(|stem| !stem.starts_with(QUESTION)) {
            let file = format!("{stem}.json");
            let place = self.request_place_of(&file, self.layout.requests().join(&file));
            found.extend(document::read_typed::<ShutdownRequest>(&place)?);
        }
        found.sort_by(|a, b| (a.asked_at, &a.id).cmp(&(b.asked_at, &b.id)));
        Ok(found)
    }

    /// Changes a request, typically to bring it to its end.
    pub(crate) fn change_request(
        &self,
        id: &RequestId,
        mut edit: impl FnMut(&mut ShutdownRequest),
    ) -> Result<(), StoreError> {
        document::change_typed(
            &self.request_place(id),
            FORMAT,
            |found: &mut Option<ShutdownRequest>| {
                let request =
                    found.as_mut().ok_or_else(|| StoreError::NoSuchRequest { id: id.clone() })?;
                edit(request);
                Ok(())
            },
        )
    }

    /// Takes a request off the table that has ended and was verified without a deviation; any other stays.
    pub(crate) fn forget_request(&self, id: &RequestId) -> Result<(), StoreError> {
        document::remove_if(&self.request_place(id), ShutdownRequest::is_settled)
    }

    fn request_place(&self, id: &RequestId) -> document::Place {
        self.request_place_of(&format!("{}.json", id.file_stem()), self.layout.request(id))
    }

    /// Requests come and go, and gates stay for as long as the team does: a few gates serve them all.
    pub(super) fn request_place_of(&self, file: &str, path: PathBuf) -> document::Place {
        let shard = digest::of(&[file.as_bytes()]);
        self.of_this_boot(&format!("requests-{}", shard.get(..1).unwrap_or_default()), path)
    }
}
