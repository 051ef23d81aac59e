//! Shutdown requests (`phalanx/requests/`). Questions of members are in the same directory, under
//! names with a prefix.

use std::path::PathBuf;

use super::document::{self, Durability};
use super::error::StoreError;
use super::layout::QUESTION;
use super::teams::TeamStore;
use crate::model::digest;
use crate::model::id::RequestId;
use crate::model::request::ShutdownRequest;
use crate::sys::fs;

/// Format version of request files.
const FORMAT: u32 = 1;

impl TeamStore {
    /// Files a request. Returns false if its id is taken.
    pub(crate) fn file_request(&self, request: &ShutdownRequest) -> Result<bool, StoreError> {
        document::write_new(&self.layout.request(&request.id), request, Durability::ThisBoot)
    }

    /// Returns one request.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRequest`] if there is no request with this id.
    pub(crate) fn request(&self, id: &RequestId) -> Result<ShutdownRequest, StoreError> {
        let found = document::read_typed(&self.request_place(id))?;
        found.ok_or_else(|| StoreError::NoSuchRequest { id: id.clone() })
    }

    /// Returns all requests, oldest first.
    pub(crate) fn requests(&self) -> Result<Vec<ShutdownRequest>, StoreError> {
        let files = fs::list(&self.layout.requests())?;
        let stems =
            files.iter().filter(|f| !f.starts_with('.')).filter_map(|f| f.strip_suffix(".json"));
        let mut found = Vec::new();
        // Questions of members are in the same directory.
        for stem in stems.filter(|stem| !stem.starts_with(QUESTION)) {
            let file = format!("{stem}.json");
            let place = self.request_place_of(&file, self.layout.requests().join(&file));
            found.extend(document::read_typed::<ShutdownRequest>(&place)?);
        }
        found.sort_by(|a, b| (a.asked_at, &a.id).cmp(&(b.asked_at, &b.id)));
        Ok(found)
    }

    /// Changes a request, typically to end it.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRequest`] if there is no request with this id.
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

    /// Removes a request that has ended and was verified without a deviation; leaves any other.
    pub(crate) fn forget_request(&self, id: &RequestId) -> Result<(), StoreError> {
        document::remove_if(&self.request_place(id), ShutdownRequest::is_settled)
    }

    fn request_place(&self, id: &RequestId) -> document::FilePlace {
        self.request_place_of(&format!("{}.json", id.file_stem()), self.layout.request(id))
    }

    /// Returns the place of a file in the requests directory. All requests share 16 gates, because
    /// gates are never deleted while the team exists.
    pub(super) fn request_place_of(&self, file: &str, path: PathBuf) -> document::FilePlace {
        let shard = digest::of(&[file.as_bytes()]);
        self.boot_place(&format!("requests-{}", shard.get(..1).unwrap_or_default()), path)
    }
}
