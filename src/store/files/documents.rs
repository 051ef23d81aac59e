//! A team's JSON documents: files of the team, or documents of the shared store.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{StoreError, without_text};
use crate::files::document::{self, FilePlace, HeldGate};
use crate::files::format::refuse_newer;
use crate::shared::SharedDocument;
use model::wire::Object;
use sys::fs;

/// Where a document is stored.
pub(crate) enum DocumentPlace {
    File(FilePlace),
    Shared(SharedDocument),
}

impl DocumentPlace {
    /// Returns the error for content of another form. Copies a file into the quarantine.
    fn corrupt(&self, problem: String) -> StoreError {
        match self {
            DocumentPlace::File(place) => document::quarantine(place, problem),
            DocumentPlace::Shared(place) => place.corrupt(problem),
        }
    }

    fn refuse_newer(&self, value: &Value, known: u32) -> Result<(), StoreError> {
        refuse_newer(value, known, || match self {
            DocumentPlace::File(place) => place.path.clone(),
            DocumentPlace::Shared(place) => place.label().into(),
        })
    }

    fn typed<T: DeserializeOwned>(&self, value: Value) -> Result<T, StoreError> {
        serde_json::from_value(value).map_err(|e| self.corrupt(without_text(&e)))
    }
}

/// Reads a document; `None` if it does not exist.
pub(crate) fn read(place: &DocumentPlace) -> Result<Option<Value>, StoreError> {
    match place {
        DocumentPlace::File(place) => document::read(place),
        DocumentPlace::Shared(place) => place.read(),
    }
}

/// Changes a document. `edit` receives the content (`None` if there is none) and returns the new
/// content with a result. It runs again if another program interfered. If it returns no content,
/// nothing is written.
///
/// # Errors
/// As [`document::change`]; [`StoreError::Database`] if the shared store cannot be reached.
pub(crate) fn change<T>(
    place: &DocumentPlace,
    edit: impl FnMut(Option<Value>) -> Result<(Option<Value>, T), StoreError>,
) -> Result<T, StoreError> {
    match place {
        DocumentPlace::File(place) => document::change(place, edit),
        DocumentPlace::Shared(place) => place.change(edit),
    }
}

/// Creates a document. Returns false if it exists already.
pub(crate) fn create<T: Serialize>(place: &DocumentPlace, item: &T) -> Result<bool, StoreError> {
    match place {
        DocumentPlace::File(place) => document::write_new(&place.path, item, place.durability),
        DocumentPlace::Shared(place) => place.put(&to_value(item), None),
    }
}

fn to_value<T: Serialize>(item: &T) -> Value {
    serde_json::to_value(item).expect("our own forms have string keys and can be written")
}

/// Reads a document in phalanx's own format.
///
/// # Errors
/// [`StoreError::NewerFormat`] if the document's `format` is above `known`.
pub(crate) fn read_typed<T: DeserializeOwned>(
    place: &DocumentPlace,
    known: u32,
) -> Result<Option<T>, StoreError> {
    read(place)?.map(|value| typed(place, value, known)).transpose()
}

/// Returns a document in phalanx's own format, which was read from `place`.
///
/// # Errors
/// As [`read_typed`].
pub(crate) fn typed<T: DeserializeOwned>(
    place: &DocumentPlace,
    value: Value,
    known: u32,
) -> Result<T, StoreError> {
    place.refuse_newer(&value, known)?;
    place.typed(value)
}

/// Changes a document in phalanx's own format. Keys that a newer phalanx added survive.
///
/// # Errors
/// [`StoreError::NewerFormat`] if the document's `format` is above `known`; otherwise as
/// [`change`].
pub(crate) fn change_typed<T: DeserializeOwned + Serialize, R>(
    place: &DocumentPlace,
    known: u32,
    mut edit: impl FnMut(&mut Option<T>) -> Result<R, StoreError>,
) -> Result<R, StoreError> {
    let mut last = None;
    change(place, |found| {
        let after = edit_typed(place, known, found, &mut |item| {
            last = Some(edit(item)?);
            Ok(())
        })?;
        Ok((after, ()))
    })?;
    Ok(last.expect("a change that succeeds has run `edit`"))
}

/// The body of [`change_typed`], compiled once for each type of document.
fn edit_typed<T: DeserializeOwned + Serialize>(
    place: &DocumentPlace,
    known: u32,
    found: Option<Value>,
    edit: &mut dyn FnMut(&mut Option<T>) -> Result<(), StoreError>,
) -> Result<Option<Value>, StoreError> {
    if let Some(value) = &found {
        place.refuse_newer(value, known)?;
    }
    let stored = found.clone();
    let mut item: Option<T> = found.map(|value| place.typed(value)).transpose()?;
    let before = to_object(item.as_ref());
    edit(&mut item)?;
    let after = to_object(item.as_ref());
    Ok(after.map(|after| overlay(stored, before, after)))
}

/// Removes a document in phalanx's own format if `is_such` returns true for its content.
pub(crate) fn remove_if<T: DeserializeOwned>(
    place: &DocumentPlace,
    known: u32,
    is_such: impl Fn(&T) -> bool,
) -> Result<(), StoreError> {
    match place {
        DocumentPlace::File(file) => {
            let _held = HeldGate::take(file)?;
            if read_typed(place, known)?.is_some_and(|found| is_such(&found)) {
                fs::remove_file(&file.path)?;
            }
            Ok(())
        }
        DocumentPlace::Shared(shared) => shared.remove_if(|value| {
            place.refuse_newer(&value, known)?;
            Ok(is_such(&place.typed(value)?))
        }),
    }
}

fn to_object<T: Serialize>(item: Option<&T>) -> Option<Object> {
    match serde_json::to_value(item?) {
        Ok(Value::Object(object)) => Some(object),
        Ok(_) | Err(_) => None,
    }
}

/// Writes the new values over the stored ones. Removes keys that are in `before` but not in
/// `after`, and keeps unknown ones.
fn overlay(stored: Option<Value>, before: Option<Object>, after: Object) -> Value {
    let Some(Value::Object(mut object)) = stored else { return Value::Object(after) };
    for key in before.unwrap_or_default().keys().filter(|k| !after.contains_key(*k)) {
        object.shift_remove(key);
    }
    for (key, value) in after {
        object.insert(key, value);
    }
    Value::Object(object)
}
