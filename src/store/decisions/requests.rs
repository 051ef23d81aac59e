//! Shutdown requests (`phalanx/requests/`). Questions of members are in the same directory, under
//! names with a prefix.

use std::path::PathBuf;

use serde::de::DeserializeOwned;

use crate::error::StoreError;
use crate::files::document::FilePlace;
use crate::files::documents::{self, DocumentPlace};
use crate::files::layout::QUESTION;
use crate::files::reread::{Reread, read_versioned};
use crate::team::TeamStore;
use database::DocumentKind;
use model::decisions::request::ShutdownRequest;
use model::digest;
use model::id::RequestId;

/// Format version of request files.
const FORMAT: u32 = 1;

impl TeamStore {
    /// Files a request. Returns false if its id is taken.
    pub fn file_request(&self, request: &ShutdownRequest) -> Result<bool, StoreError> {
        documents::create(&self.request_place(&request.id), request)
    }

    /// Returns one request.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRequest`] if there is no request with this id.
    pub fn request(&self, id: &RequestId) -> Result<ShutdownRequest, StoreError> {
        let found = documents::read_typed(&self.request_place(id), FORMAT)?;
        found.ok_or_else(|| StoreError::NoSuchRequest { id: id.clone() })
    }

    /// Returns all requests, oldest first.
    pub fn requests(&self) -> Result<Vec<ShutdownRequest>, StoreError> {
        self.requests_again(&mut Reread::default())
    }

    /// Like [`TeamStore::requests`], for a process that has read them before.
    pub fn requests_again(
        &self,
        known: &mut Reread<ShutdownRequest>,
    ) -> Result<Vec<ShutdownRequest>, StoreError> {
        // Questions of members are in the same directory.
        let is_request = |stem: &str| !stem.starts_with(QUESTION);
        let mut found = self.in_requests(DocumentKind::Request, FORMAT, known, is_request)?;
        found.sort_by(|a, b| (a.asked_at, &a.id).cmp(&(b.asked_at, &b.id)));
        Ok(found)
    }

    /// Changes a request, typically to end it.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRequest`] if there is no request with this id.
    pub fn change_request(
        &self,
        id: &RequestId,
        mut edit: impl FnMut(&mut ShutdownRequest),
    ) -> Result<(), StoreError> {
        documents::change_typed(
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
    pub fn forget_request(&self, id: &RequestId) -> Result<(), StoreError> {
        documents::remove_if(&self.request_place(id), FORMAT, ShutdownRequest::is_settled)
    }

    fn request_place(&self, id: &RequestId) -> DocumentPlace {
        let stem = id.file_stem();
        self.document(DocumentKind::Request, &stem, || {
            self.request_file(&format!("{stem}.json"), self.layout.request(id))
        })
    }

    /// Returns the documents of a kind in the requests directory; `is_such` checks the stem of a
    /// file's name.
    pub(crate) fn in_requests<T: DeserializeOwned + Clone>(
        &self,
        kind: DocumentKind,
        format: u32,
        known: &mut Reread<T>,
        is_such: impl Fn(&str) -> bool,
    ) -> Result<Vec<T>, StoreError> {
        if let Some(shared) = &self.shared {
            return shared.documents(kind, format);
        }
        known.read(&self.layout.requests(), is_such, |stem| {
            let file = format!("{stem}.json");
            read_versioned(self.request_file(&file, self.layout.requests().join(&file)), format)
        })
    }

    /// Returns the place of a file in the requests directory. All requests share 16 gates, because
    /// gates are never deleted while the team exists.
    pub(crate) fn request_file(&self, file: &str, path: PathBuf) -> FilePlace {
        let shard = digest::hash(&[file.as_bytes()]);
        self.boot_place(&format!("requests-{}", shard.get(..1).unwrap_or_default()), path)
    }
}
