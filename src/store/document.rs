//! One JSON file, changed safely: lock among us → read → change → keep others out → compare → atomic write (protocol.md,
//! section 2). Knows no particular file. Whoever wants to change something gets it only inside [`change`], that is under
//! the lock among us.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::error::StoreError;
use super::journal;
use super::layout::Layout;
use super::lenient;
use crate::model::digest;
use crate::model::event::{EventKind, Note};
use crate::model::wire::Object;
use crate::sys::clock::{now_ms, sleep};
use crate::sys::failpoint;
use crate::sys::fs::{self, Sync};
use crate::sys::lock::{Gate, LOCK_DEADLINE, PeerLock};

/// A file larger than this is neither read nor made.
pub(super) const MAX_FILE: u64 = 64 * 1024 * 1024;
/// A foreign writer truncates and rewrites in place: a reader without a lock looks again this often (observed: 62 %
/// of such reads do not parse under write load).
const TORN_TRIES: u32 = 8;
pub(super) const TORN_PAUSE: Duration = Duration::from_millis(5);
/// Time after its last change during which a file of other programs may still be in the middle of a
/// write. Claude Code 2.1.34 was seen to leave its team file empty for more than 100 ms on a busy
/// machine; 2.1.330 writes over the old content and cuts the rest off afterwards. A lead restores
/// the team file after this time.
const WRITING_MS: u64 = 500;
/// Bounds the retries where the clock of the file system is ahead of ours, or another program
/// writes all the time.
pub(super) const WRITING_TRIES: u32 = 100;
/// How often a change is made again because an unlocked foreign writer got in between.
pub(super) const CONFLICT_TRIES: u32 = 20;
/// So often others are kept out for the rename only; then they write so much that they have to wait.
const PATIENT_TRIES: u32 = 2;

/// Who else writes the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    /// Claude Code and other programs: their lock directory is taken too.
    WithOthers,
    /// Only phalanx processes: the flock gate is enough.
    AmongUs,
}

/// For how long the file means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It survives a power cut.
    ForGood,
    /// It speaks of processes, and after a power cut none of them is there: it is not waited for on its way to the
    /// disk. What cannot be read of it is as if it had never been written.
    ForThisBoot,
}

impl Kept {
    pub(super) fn sync(self) -> Sync {
        match self {
            Kept::ForGood => Sync::Entry,
            Kept::ForThisBoot => Sync::Nothing,
        }
    }
}

/// A file and what guards it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) gate: PathBuf,
    /// The team's: for the quarantine and the journal.
    pub(super) layout: Layout,
    pub(super) shared: Shared,
    pub(super) kept: Kept,
    /// A copy of the last whole content of a file that other programs write in place and without a
    /// lock. It stands in for a file that was left empty or cut short: its writer died (observed:
    /// Claude Code 2.1.34 when it ends). Where two programs wrote at once, the later write counts,
    /// and not the rest of the longer one behind it (observed, too). The next change writes the
    /// file whole.
    pub(super) last: Option<PathBuf>,
}

/// The lock of a place among our own processes, held. Others are kept out by [`Held::keep_others_out`], for as long as that
/// lives.
pub(super) struct Held {
    gate: Gate,
}

/// For how long others are kept out of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// While the file is replaced, as long as they do not write all the time. What they write before that is seen, and the
    /// change is made again.
    OutBriefly,
    /// From before it is read: the change does something else with what it reads, that cannot be made again.
    OutAllAlong,
}

/// Those that know only the lock directory are kept out; nobody needs to be of a file that is ours alone.
pub(super) struct KeptOut<'h>(Option<PeerLock<'h>>);

impl Held {
    pub(super) fn take(place: &Place) -> Result<Held, StoreError> {
        refuse_linked_dir(place)?;
        ready_gate(&place.gate)?;
        Ok(Held { gate: Gate::open(&place.gate, LOCK_DEADLINE)? })
    }

    pub(super) fn keep_others_out(&self, place: &Place) -> Result<KeptOut<'_>, StoreError> {
        let lock = match place.shared {
            Shared::WithOthers => Some(PeerLock::acquire(&self.gate, &place.path, LOCK_DEADLINE)?),
            Shared::AmongUs => None,
        };
        failpoint::hit("lock.taken");
        Ok(KeptOut(lock))
    }

    /// For the `nth` try, counted from 0: they are kept out from its beginning on, if that has to be.
    pub(super) fn keep_out_early(
        &self,
        place: &Place,
        others: Others,
        nth: u32,
    ) -> Result<Option<KeptOut<'_>>, StoreError> {
        let early = others == Others::OutAllAlong || nth >= PATIENT_TRIES;
        early.then(|| self.keep_others_out(place)).transpose()
    }
}

impl KeptOut<'_> {
    fn still_ours(&self) -> bool {
        self.0.as_ref().is_none_or(PeerLock::still_ours)
    }
}

/// Makes the gates' directory where a team has none yet: one that another program made. The team's own directory is
/// never made here: a write that comes after the team was deleted must not bring it back.
pub(super) fn ready_gate(gate: &Path) -> Result<(), StoreError> {
    let Some(gates) = gate.parent().filter(|dir| !fs::exists(dir)) else { return Ok(()) };
    for dir in gates.parent().into_iter().chain([gates]) {
        fs::create_dir_exclusive(dir)?;
    }
    Ok(())
}

/// Reads a file that others may be writing. None: there is none.
pub(super) fn read(place: &Place) -> Result<Option<Value>, StoreError> {
    Ok(read_parsed(place, lenient::parse)?.map(|found| found.parsed))
}

/// Refuses a file whose directory is a symbolic link: it could lie anywhere.
fn refuse_linked_dir(place: &Place) -> Result<(), StoreError> {
    place.path.parent().map_or(Ok(()), |dir| Ok(fs::refuse_link(dir)?))
}

/// A file's content, and the value parsed from it or from the content that stands in for it.
pub(super) struct Found<T> {
    pub(super) file: fs::Contents,
    pub(super) parsed: T,
}

/// Reads until the file parses, for a while; then returns the problem. A file of this boot is
/// always written whole: if it does not parse the power was cut (renamed and not on the disk yet it
/// is empty, or cut short), and there is none.
pub(super) fn read_parsed<T>(
    place: &Place,
    parse: impl Fn(&[u8]) -> serde_json::Result<T>,
) -> Result<Option<Found<T>>, StoreError> {
    refuse_linked_dir(place)?;
    let mut tries = 0;
    loop {
        let Some(file) = fs::read_identified(&place.path, MAX_FILE)? else { return Ok(None) };
        let (problem, is_short) = match parse(&file.bytes) {
            Ok(parsed) => return Ok(Some(Found { file, parsed })),
            Err(_) if file.bytes.is_empty() => ("it is empty".to_owned(), true),
            Err(e) => (e.to_string(), e.is_eof()),
        };
        if place.kept == Kept::ForThisBoot {
            copy_aside(place, &problem)?;
            return Ok(None);
        }
        let may_be_written = place.shared != Shared::AmongUs && is_fresh(&file.identity);
        let is_last_try = tries >= if may_be_written { WRITING_TRIES } else { TORN_TRIES };
        if (is_last_try || !may_be_written)
            && let Some(parsed) = stand_in(place, &file.bytes, is_short, &parse)?
        {
            return Ok(Some(Found { file, parsed }));
        }
        if is_last_try {
            return Err(quarantine(place, problem));
        }
        tries += 1;
        sleep(TORN_PAUSE);
    }
}

/// The content that counts in place of a torn one; none where the file has no remembered content,
/// or is broken otherwise.
fn stand_in<T>(
    place: &Place,
    bytes: &[u8],
    is_short: bool,
    parse: impl Fn(&[u8]) -> serde_json::Result<T>,
) -> Result<Option<T>, StoreError> {
    let Some(last) = &place.last else { return Ok(None) };
    let (found, problem) = if is_short {
        let last = fs::read(last, MAX_FILE)?;
        (
            last.and_then(|last| parse(&last).ok()),
            "it was left empty or cut short; using its previous content",
        )
    } else {
        (
            first_value(bytes, &parse),
            "two programs wrote it at the same time; using the later write",
        )
    };
    if found.is_some() {
        copy_aside(place, problem)?;
    }
    Ok(found)
}

/// The later write of two that came at once: a whole value before the rest of a longer one.
fn first_value<T>(bytes: &[u8], parse: impl Fn(&[u8]) -> serde_json::Result<T>) -> Option<T> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    parse(&bytes[..values.byte_offset()]).ok()
}

/// Whether the file was changed a moment ago.
pub(super) fn is_fresh(identity: &fs::Identity) -> bool {
    let changed_ms = u64::try_from(identity.mtime / 1_000_000).unwrap_or_default();
    now_ms().saturating_sub(changed_ms) < WRITING_MS
}

/// Copies the unreadable file aside and says so in the journal, once for each content; the file itself is never
/// overwritten (MSG-07).
pub(super) fn quarantine(place: &Place, problem: String) -> StoreError {
    match copy_aside(place, &problem) {
        Ok(copy) => StoreError::Corrupt { path: place.path.clone(), problem, copy },
        Err(e) => e,
    }
}

fn copy_aside(place: &Place, problem: &str) -> Result<PathBuf, StoreError> {
    let bytes = fs::read(&place.path, MAX_FILE)?.unwrap_or_default();
    let name = place.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let copy = place.layout.quarantine().join(format!("{name}.{}", digest::of(&[&bytes])));
    fs::private_dir(&place.layout.quarantine())?;
    if fs::create_new(&copy, &bytes)? {
        let note = Note::of(EventKind::FileQuarantined)
            .with("path", place.path.to_string_lossy())
            .with("copy", copy.to_string_lossy())
            .with("problem", problem);
        journal::append(&place.layout, note)?;
    }
    Ok(copy)
}

/// Changes a file under its lock. `edit` gets what is there (none: no file yet) and gives what shall be there, with
/// its answer; it runs again if an unlocked writer came in between. Where it gives none, nothing is written.
pub(super) fn change<T>(
    place: &Place,
    mut edit: impl FnMut(Option<Value>) -> Result<(Option<Value>, T), StoreError>,
) -> Result<T, StoreError> {
    let held = Held::take(place)?;
    let answer = change_held(place, &held, Others::OutBriefly, &mut edit);
    failpoint::hit("unlock.before");
    answer
}

/// Like [`change`], for whoever holds the lock and does more under it.
pub(super) fn change_held<T>(
    place: &Place,
    held: &Held,
    others: Others,
    edit: &mut impl FnMut(Option<Value>) -> Result<(Option<Value>, T), StoreError>,
) -> Result<T, StoreError> {
    let mut last = None;
    change_value(place, held, others, &mut |found| {
        let (wanted, answer) = edit(found)?;
        last = Some(answer);
        Ok(wanted)
    })?;
    Ok(last.expect("a change that succeeds has run `edit`"))
}

/// The body of [`change_held`], compiled once for all types.
fn change_value(
    place: &Place,
    held: &Held,
    others: Others,
    edit: &mut dyn FnMut(Option<Value>) -> Result<Option<Value>, StoreError>,
) -> Result<(), StoreError> {
    for nth in 0..CONFLICT_TRIES {
        let early = held.keep_out_early(place, others, nth)?;
        let found = read_parsed(place, lenient::parse)?;
        let (before, value) =
            found.map_or((None, None), |found| (Some(found.file.bytes), Some(found.parsed)));
        let Some(wanted) = edit(value)? else { return Ok(()) };
        let after = to_bytes(&wanted);
        if before.as_deref() == Some(after.as_slice()) {
            return Ok(());
        }
        // By its bytes: Claude Code rewrites the team file in place and without a lock.
        let unchanged = || match place.shared {
            Shared::WithOthers => fs::read(&place.path, MAX_FILE).is_ok_and(|now| now == before),
            Shared::AmongUs => true,
        };
        if publish(place, (held, early), &after, place.kept.sync(), unchanged)? {
            return Ok(());
        }
    }
    Err(StoreError::Contended { path: place.path.clone(), tries: CONFLICT_TRIES })
}

/// Writes a torn file whole, and returns the content that stood in for it; none where the file is
/// whole or missing.
pub(super) fn restore(place: &Place, held: &Held) -> Result<Option<Value>, StoreError> {
    for nth in 0..CONFLICT_TRIES {
        let early = held.keep_out_early(place, Others::OutBriefly, nth)?;
        let Some(Found { file, parsed }) = read_parsed(place, lenient::parse::<Value>)? else {
            return Ok(None);
        };
        if lenient::parse::<IgnoredAny>(&file.bytes).is_ok() {
            return Ok(None);
        }
        let unchanged =
            || fs::read(&place.path, MAX_FILE).is_ok_and(|now| now.as_ref() == Some(&file.bytes));
        if publish(place, (held, early), &to_bytes(&parsed), place.kept.sync(), unchanged)? {
            return Ok(Some(parsed));
        }
    }
    Err(StoreError::Contended { path: place.path.clone(), tries: CONFLICT_TRIES })
}

/// Writes if the file is still what was read and the lock is ours, both looked at right before the rename. False: somebody
/// else wrote the file meanwhile.
///
/// Others are kept out for the rename alone, unless they are already: Claude Code 2.1.34 asks for a lock once, and drops
/// what it has to say if somebody holds it (seen: two of thirty times a member's agreement to its end, while the lead
/// waited for its disk under the lock).
pub(super) fn publish(
    place: &Place,
    (held, early): (&Held, Option<KeptOut<'_>>),
    after: &[u8],
    sync: Sync,
    unchanged: impl FnOnce() -> bool,
) -> Result<bool, StoreError> {
    fs::sweep_temporary(&place.path);
    let mut kept_out = early.map(Ok);
    let mut is_ours = true;
    let check = || {
        let lock = kept_out.get_or_insert_with(|| held.keep_others_out(place));
        let Ok(lock) = lock else { return false };
        let unchanged = unchanged();
        is_ours = lock.still_ours();
        is_ours && unchanged
    };
    let bytes_only = if sync == Sync::Entry { Sync::Bytes } else { sync };
    let published = fs::replace_if(&place.path, after, bytes_only, check)?;
    // Given back before the disk is waited for once more.
    kept_out.transpose().map(drop)?;
    if !published {
        return if is_ours {
            Ok(false)
        } else {
            Err(StoreError::LockLost { path: place.path.clone() })
        };
    }
    if sync == Sync::Entry {
        fs::sync_dir_of(&place.path);
    }
    Ok(true)
}

/// Two-space indentation, no newline at the end: as Claude Code writes.
pub(super) fn to_bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec_pretty(value)
        .expect("a JSON value has string keys only and can always be written")
}

/// Reads a file of our own form.
pub(super) fn read_typed<T: DeserializeOwned>(place: &Place) -> Result<Option<T>, StoreError> {
    read(place)?.map(|value| typed(place, value)).transpose()
}

/// Changes a file of our own form; keys that a newer phalanx put there survive. A file of a newer form is refused.
pub(super) fn change_typed<T: DeserializeOwned + Serialize, R>(
    place: &Place,
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

/// The body of [`change_typed`], compiled once for each type of file.
fn edit_typed<T: DeserializeOwned + Serialize>(
    place: &Place,
    known: u32,
    found: Option<Value>,
    edit: &mut dyn FnMut(&mut Option<T>) -> Result<(), StoreError>,
) -> Result<Option<Value>, StoreError> {
    if let Some(form) = found.as_ref().and_then(|v| v.get("format")).and_then(Value::as_u64)
        && form > u64::from(known)
    {
        return Err(StoreError::NewerFormat { path: place.path.clone(), found: form, known });
    }
    let stored = found.clone();
    let mut item: Option<T> = found.map(|value| typed(place, value)).transpose()?;
    let before = to_object(item.as_ref());
    edit(&mut item)?;
    let after = to_object(item.as_ref());
    Ok(after.map(|after| overlay(stored, before, after)))
}

/// Removes a file of our own form if what it holds is such; any other stays.
pub(super) fn remove_if<T: DeserializeOwned>(
    place: &Place,
    is_such: impl FnOnce(&T) -> bool,
) -> Result<(), StoreError> {
    let _held = Held::take(place)?;
    if read_typed(place)?.is_some_and(|found| is_such(&found)) {
        fs::remove_file(&place.path)?;
    }
    Ok(())
}

fn typed<T: DeserializeOwned>(place: &Place, value: Value) -> Result<T, StoreError> {
    serde_json::from_value(value).map_err(|e| quarantine(place, e.to_string()))
}

fn to_object<T: Serialize>(item: Option<&T>) -> Option<Object> {
    match serde_json::to_value(item?) {
        Ok(Value::Object(object)) => Some(object),
        Ok(_) | Err(_) => None,
    }
}

/// Puts the new values into what is stored, takes out what we knew and no longer have, keeps the rest.
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

/// Writes a file of our own that nobody else changes at the same time.
pub(super) fn write_new<T: Serialize>(
    path: &Path,
    item: &T,
    kept: Kept,
) -> Result<bool, StoreError> {
    path.parent().map_or(Ok(()), fs::refuse_link)?;
    let value =
        serde_json::to_value(item).expect("our own forms have string keys and can be written");
    Ok(fs::create_with(path, &to_bytes(&value), kept.sync())?)
}
