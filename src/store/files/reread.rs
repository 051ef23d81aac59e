//! Documents that one process reads again and again: only those that have changed are read anew.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::StoreError;
use crate::files::document::{self, FilePlace};
use crate::files::documents::{self, DocumentPlace};
use crate::files::repair_surrogates;
use sys::fs::{self, FileVersion};

/// The documents of one directory as they were last read, by the name of their file without
/// `.json`. A document is unchanged while its file has the same version. Two changes within one
/// tick of the file system's clock can leave the version of the first, so what a watch reports is
/// to be forgotten.
#[derive(Debug)]
pub struct Reread<T> {
    known: BTreeMap<String, (FileVersion, T)>,
}

impl<T> Default for Reread<T> {
    fn default() -> Reread<T> {
        Reread { known: BTreeMap::new() }
    }
}

impl<T> Reread<T> {
    /// Lets the next read read this document, whatever its version.
    pub fn forget(&mut self, stem: &str) {
        self.known.remove(stem);
    }

    /// Lets the next read read all documents.
    pub fn forget_all(&mut self) {
        self.known.clear();
    }
}

impl<T: DeserializeOwned + Clone> Reread<T> {
    /// Returns the documents of `dir` whose stem `is_such`, by file name. `read` reads the one with
    /// this stem; what it returns `None` for is left out, and read again the next time.
    pub(crate) fn read(
        &mut self,
        dir: &Path,
        is_such: impl Fn(&str) -> bool,
        mut read: impl FnMut(&str) -> Result<Option<(FileVersion, T)>, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut before = std::mem::take(&mut self.known);
        for file in fs::list(dir)? {
            let Some(stem) = file.strip_suffix(".json").filter(|stem| !stem.starts_with('.'))
            else {
                continue;
            };
            if !is_such(stem) {
                continue;
            }
            let found = match before.remove(stem) {
                Some(known) if fs::version(&dir.join(&file))? == Some(known.0) => Some(known),
                _ => read(stem)?,
            };
            self.known.extend(found.map(|found| (stem.to_owned(), found)));
        }
        Ok(self.known.values().map(|(_, document)| document.clone()).collect())
    }
}

/// Reads a document in phalanx's own format, with the version of its file.
///
/// # Errors
/// As [`documents::read_typed`].
pub(crate) fn read_versioned<T: DeserializeOwned>(
    place: FilePlace,
    known: u32,
) -> Result<Option<(FileVersion, T)>, StoreError> {
    let Some(found) = document::read_parsed(&place, repair_surrogates::parse)? else {
        return Ok(None);
    };
    let document = documents::typed(&DocumentPlace::File(place), found.parsed, known)?;
    Ok(Some((found.file.version, document)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use sys::fs::Sync;

    /// PF-14: only what has changed, or was forgotten, is read again.
    #[test]
    fn pf_14_only_changed_documents_are_read_again() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = |stem: &str| dir.path().join(format!("{stem}.json"));
        let write = |stem: &str, text: &str| {
            let written = fs::replace_if(&path(stem), text.as_bytes(), Sync::Nothing, || true);
            assert!(written.expect("writable"));
        };
        ["a", "b", "no", ".hidden"].iter().for_each(|stem| write(stem, "1"));
        let reads = RefCell::new(Vec::new());
        let read = |known: &mut Reread<String>| {
            let read_one = |stem: &str| {
                reads.borrow_mut().push(stem.to_owned());
                let found = fs::read_versioned(&path(stem), 100)?.expect("listed");
                Ok(Some((found.version, String::from_utf8_lossy(&found.bytes).into_owned())))
            };
            let documents = known.read(dir.path(), |stem| stem != "no", read_one);
            (documents.expect("readable").join(" "), reads.take().join(" "))
        };
        let (known, pair) =
            (&mut Reread::default(), |a: &str, b: &str| (a.to_owned(), b.to_owned()));
        assert_eq!(read(known), pair("1 1", "a b"));
        assert_eq!(read(known), pair("1 1", ""));
        write("b", "22");
        assert_eq!(read(known), pair("1 22", "b"));
        known.forget("a");
        assert_eq!(read(known), pair("1 22", "a"));
        fs::remove_file(&path("a")).expect("removable");
        assert_eq!(read(known), pair("22", ""));
        known.forget_all();
        assert_eq!(read(known), pair("22", "b"));
    }
}
