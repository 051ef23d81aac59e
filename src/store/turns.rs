//! What is kept beside a file that is appended to again and again: a note of the content that was last seen whole, and
//! some older contents that are written over in turn, instead of a new file for each message. All of it can be lost at
//! any time; then the file is looked through once, and new spares are made. Knows no particular file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::document::Place;
use super::error::StoreError;
use crate::sys::fs::{self, Identity, Spare, Sync};

/// So many older contents, of which the first one's turn begins with a wait for the disk (half a millisecond where it is
/// measured; one alone would wait each time).
pub(super) const SPARES: u32 = 8;

/// The last publication of one of us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Note {
    /// What it made the file.
    identity: Identity,
    /// The spare that was last exchanged.
    turn: u32,
}

impl Note {
    fn read(path: &Path) -> Option<Note> {
        let text = String::from_utf8(fs::read(path, 1024).ok()??).ok()?;
        let words: Vec<&str> = text.strip_suffix('\n')?.split(' ').collect();
        let [dev, ino, len, mtime, turn] = words[..] else { return None };
        let (dev, ino, len) = (dev.parse().ok()?, ino.parse().ok()?, len.parse().ok()?);
        let identity = Identity { dev, ino, len, mtime: mtime.parse().ok()? };
        Some(Note { identity, turn: turn.parse().ok()? })
    }

    /// Of one length, so that it can be written over an older one: one that was cut off in between matches nothing.
    fn text(&self) -> String {
        let Identity { dev, ino, len, mtime } = self.identity;
        format!("{dev:020} {ino:020} {len:020} {mtime:030} {:010}\n", self.turn)
    }

    fn write(&self, path: &Path) {
        let text = self.text();
        if fs::overwrite(path, text.as_bytes()).is_err()
            && let Some(dir) = path.parent()
        {
            // The directory is made when it is first needed. What else may be wrong costs time only.
            let _ = fs::create_dir_exclusive(dir)
                .and_then(|_made| fs::overwrite(path, text.as_bytes()));
        }
    }
}

/// Whether this content of the file was seen whole before.
pub(super) fn is_remembered(place: &Place, identity: &Identity) -> bool {
    let note = place.turns.as_deref().and_then(Note::read);
    note.is_some_and(|note| note.identity == *identity)
}

/// Like [`fs::replace_if`], with an older content of the file where one can be had.
pub(super) fn replace_if(
    place: &Place,
    after: &[u8],
    sync: Sync,
    check: impl FnOnce() -> bool,
) -> Result<Option<Identity>, StoreError> {
    let Some(turns) = &place.turns else {
        return Ok(fs::replace_if(&place.path, after, sync, check)?);
    };
    let last = last_turn(place, turns);
    let turn = (last + 1) % SPARES;
    let path = spare_path(turns, turn);
    let (published, turn) = match ready(place, &path, turn, after.len()) {
        Some(spare) => (spare.exchange_if(&place.path, after, sync, check)?, turn),
        None => (fs::replace_if(&place.path, after, sync, check)?, last),
    };
    if let Some(identity) = published {
        Note { identity, turn }.write(turns);
    }
    Ok(published)
}

/// The spare that was exchanged last. Without the note of the last publication nobody knows which exchanges are on the
/// disk; then it is as if the first one's turn came next.
fn last_turn(place: &Place, turns: &Path) -> u32 {
    let live = fs::identity(&place.path).ok().flatten();
    match Note::read(turns) {
        Some(note) if Some(note.identity) == live => note.turn % SPARES,
        Some(_) | None => SPARES - 1,
    }
}

/// The spare, ready to be written over. One that was put aside since the first one's last turn is not on the disk under
/// this name yet; none is used again before the first one was, so that one wait is enough for all.
fn ready<'a>(place: &Place, path: &'a Path, turn: u32, len: usize) -> Option<Spare<'a>> {
    let spare = Spare::open(path, &place.path, len)?;
    if turn == 0 {
        fs::settle([place.path.parent()?, path.parent()?]).ok()?;
    }
    Some(spare)
}

/// No member's name has an `@` in its file's.
fn spare_path(turns: &Path, turn: u32) -> PathBuf {
    let mut path = OsString::from(turns);
    path.push(format!("@{turn}"));
    PathBuf::from(path)
}
