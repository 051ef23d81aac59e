//! Safe changes of one JSON file: gate, read, edit, peer lock, compare, atomic rename. A file can
//! only be changed through [`change`] and its variants, which hold the gate.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::error::StoreError;
use crate::files::layout::TeamLayout;
use crate::files::{dirs, repair_surrogates};
use crate::team::journal;
use model::digest;
use model::team::event::{EventKind, Note};
use sys::clock::{machine_ms, sleep};
use sys::failpoint;
use sys::fs::{self, Sync};
use sys::lock::{Gate, LOCK_DEADLINE, PeerLock};

/// Largest file that is read or written, in bytes.
pub(crate) const MAX_FILE: u64 = 64 * 1024 * 1024;
/// Retries of an unlocked read, since a foreign writer truncates and rewrites the file in place.
/// Under write load, 62 % of such reads were observed not to parse.
const TORN_TRIES: u32 = 8;
pub(crate) const TORN_PAUSE: Duration = Duration::from_millis(5);
/// Time after its last change, in milliseconds, during which another program may still be writing
/// the file. Claude Code 2.1.34 was observed to leave its team file empty for more than 100 ms on a
/// busy machine; 2.1.330 overwrites the old content and truncates the rest afterwards. A lead
/// restores the team file after this time.
const WRITING_MS: u64 = 500;
/// Bounds the retries if the clock of the file system is ahead of ours or another program writes
/// all the time.
pub(crate) const WRITING_TRIES: u32 = 100;
/// Attempts to make a change that an unlocked foreign writer interferes with.
pub(crate) const CONFLICT_TRIES: u32 = 20;
/// Attempts that exclude other programs only during the rename. If these fail, the others write so
/// often that they have to wait for the whole attempt.
const PATIENT_TRIES: u32 = 2;

/// The programs that write the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writers {
    /// Claude Code and other programs; their lock directory is acquired as well.
    AnyProgram,
    /// Only phalanx processes; the flock gate is enough.
    PhalanxOnly,
}

/// Durability of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Survives a power cut.
    Permanent,
    /// As [`Durability::Permanent`], synced by the caller together with other files.
    Deferred,
    /// Describes processes, none of which survives a power cut, so it is not synced. If it cannot
    /// be read, it counts as missing.
    ThisBoot,
}

impl Durability {
    pub(crate) fn sync(self) -> Sync {
        match self {
            Durability::Permanent => Sync::Entry,
            Durability::Deferred | Durability::ThisBoot => Sync::Nothing,
        }
    }
}

/// A file and its locks.
#[derive(Debug, Clone)]
pub(crate) struct FilePlace {
    pub(crate) path: PathBuf,
    /// The flock file that all phalanx processes use for this file.
    pub(crate) gate: PathBuf,
    /// Locates the team's quarantine and journal.
    pub(crate) layout: TeamLayout,
    pub(crate) writers: Writers,
    pub(crate) durability: Durability,
    /// Copy of the last complete content, for a file that other programs write in place and without
    /// a lock. It replaces the content of a file left empty or cut short by a writer that died
    /// (observed: Claude Code 2.1.34 on exit). If two programs wrote at once (also observed), the
    /// later write counts, without the rest of the longer one behind it. The next change writes the
    /// file whole.
    pub(crate) last: Option<PathBuf>,
}

/// The acquired gate of a place. It excludes phalanx processes; [`HeldGate::exclude_peers`] also
/// excludes other programs.
pub(crate) struct HeldGate {
    gate: Gate,
}

/// The part of a change during which other programs are excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerExclusion {
    /// Only the rename, unless they write all the time. Their earlier writes are detected, and the
    /// change is retried.
    WhilePublishing,
    /// From before the read, because the edit has effects that cannot be repeated.
    Throughout,
}

/// The lock that excludes programs that do not use the gate; `None` for a file that only phalanx
/// writes.
pub(crate) struct ExcludedPeers<'h>(Option<PeerLock<'h>>);

impl HeldGate {
    pub(crate) fn take(place: &FilePlace) -> Result<HeldGate, StoreError> {
        refuse_linked_dir(place)?;
        dirs::make_dirs_of(&place.gate)?;
        Ok(HeldGate { gate: Gate::open(&place.gate, LOCK_DEADLINE)? })
    }

    pub(crate) fn exclude_peers(&self, place: &FilePlace) -> Result<ExcludedPeers<'_>, StoreError> {
        let lock = match place.writers {
            Writers::AnyProgram => Some(PeerLock::acquire(&self.gate, &place.path, LOCK_DEADLINE)?),
            Writers::PhalanxOnly => None,
        };
        failpoint::hit("lock.taken");
        Ok(ExcludedPeers(lock))
    }

    /// Excludes other programs from the start of attempt `nth`, counted from 0, if `exclusion` or
    /// the number of failed attempts requires it.
    pub(crate) fn exclude_peers_early(
        &self,
        place: &FilePlace,
        exclusion: PeerExclusion,
        nth: u32,
    ) -> Result<Option<ExcludedPeers<'_>>, StoreError> {
        let early = exclusion == PeerExclusion::Throughout || nth >= PATIENT_TRIES;
        early.then(|| self.exclude_peers(place)).transpose()
    }
}

impl ExcludedPeers<'_> {
    fn still_ours(&self) -> bool {
        self.0.as_ref().is_none_or(PeerLock::still_ours)
    }
}

/// Reads a file that other programs may be writing; `None` if it does not exist.
pub(crate) fn read(place: &FilePlace) -> Result<Option<Value>, StoreError> {
    Ok(read_parsed(place, repair_surrogates::parse)?.map(|found| found.parsed))
}

/// Fails if the file's directory is a symbolic link, since the file could then be anywhere.
fn refuse_linked_dir(place: &FilePlace) -> Result<(), StoreError> {
    place.path.parent().map_or(Ok(()), |dir| Ok(fs::refuse_link(dir)?))
}

/// A file's content, and the value parsed from it or from the content that replaces it.
pub(crate) struct ParsedFile<T> {
    pub(crate) file: fs::Contents,
    pub(crate) parsed: T,
}

/// Reads until the file parses or the retries are used up; `None` if it does not exist. A file of
/// [`Durability::ThisBoot`] is always written whole, so one that does not parse was torn by a power
/// cut after its rename; it is copied into the quarantine and counts as missing.
///
/// # Errors
/// [`StoreError::Corrupt`] if the file does not parse and no remembered content can replace it.
pub(crate) fn read_parsed<T>(
    place: &FilePlace,
    parse: impl Fn(&[u8]) -> serde_json::Result<T>,
) -> Result<Option<ParsedFile<T>>, StoreError> {
    refuse_linked_dir(place)?;
    let mut tries = 0;
    loop {
        let Some(file) = fs::read_versioned(&place.path, MAX_FILE)? else { return Ok(None) };
        let (problem, is_short) = match parse(&file.bytes) {
            Ok(parsed) => return Ok(Some(ParsedFile { file, parsed })),
            Err(_) if file.bytes.is_empty() => ("it is empty".to_owned(), true),
            Err(e) => (e.to_string(), e.is_eof()),
        };
        if place.durability == Durability::ThisBoot {
            copy_aside(place, &problem)?;
            return Ok(None);
        }
        let may_be_written = place.writers != Writers::PhalanxOnly && is_fresh(&file.version);
        let is_last_try = tries >= if may_be_written { WRITING_TRIES } else { TORN_TRIES };
        if (is_last_try || !may_be_written)
            && let Some(parsed) = stand_in(place, &file.bytes, is_short, &parse)?
        {
            return Ok(Some(ParsedFile { file, parsed }));
        }
        if is_last_try {
            return Err(quarantine(place, problem));
        }
        tries += 1;
        sleep(TORN_PAUSE);
    }
}

/// Returns the content that replaces a torn one; `None` if the file has no remembered content or is
/// broken in another way.
fn stand_in<T>(
    place: &FilePlace,
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

/// Returns the later of two simultaneous writes: a complete value, followed by the rest of a longer
/// one.
fn first_value<T>(bytes: &[u8], parse: impl Fn(&[u8]) -> serde_json::Result<T>) -> Option<T> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    parse(&bytes[..values.byte_offset()]).ok()
}

/// Returns true if the file changed within the last [`WRITING_MS`].
pub(crate) fn is_fresh(version: &fs::FileVersion) -> bool {
    let changed_ms = u64::try_from(version.mtime / 1_000_000).unwrap_or_default();
    machine_ms().saturating_sub(changed_ms) < WRITING_MS
}

/// Copies the unreadable file into the quarantine and journals that, once per content. The file
/// itself is never overwritten (MSG-07).
pub(crate) fn quarantine(place: &FilePlace, problem: String) -> StoreError {
    match copy_aside(place, &problem) {
        Ok(copy) => StoreError::Corrupt { path: place.path.clone(), problem, copy },
        Err(e) => e,
    }
}

fn copy_aside(place: &FilePlace, problem: &str) -> Result<PathBuf, StoreError> {
    let bytes = fs::read(&place.path, MAX_FILE)?.unwrap_or_default();
    let name = place.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let copy = place.layout.quarantine().join(format!("{name}.{}", digest::hash(&[&bytes])));
    fs::private_dir(&place.layout.quarantine())?;
    if fs::create_new(&copy, &bytes)? {
        let note = Note::of(EventKind::FileQuarantined)
            .with("path", place.path.to_string_lossy())
            .with("copy", copy.to_string_lossy())
            .with("problem", problem);
        journal::append_to_file(&place.layout, vec![note])?;
    }
    Ok(copy)
}

/// Changes a file under its lock. `edit` receives the content (`None` if the file does not exist)
/// and returns the new content with a result. It runs again if an unlocked writer interfered. If it
/// returns no content, nothing is written.
///
/// # Errors
/// [`StoreError::Contended`] if other programs interfered with every attempt;
/// [`StoreError::LockLost`] if the lock directory was taken over; [`StoreError::Corrupt`] if the
/// file does not parse; the error of `edit`.
pub(crate) fn change<T>(
    place: &FilePlace,
    mut edit: impl FnMut(Option<Value>) -> Result<(Option<Value>, T), StoreError>,
) -> Result<T, StoreError> {
    let held = HeldGate::take(place)?;
    let mut last = None;
    let changed = change_held(place, &held, PeerExclusion::WhilePublishing, &mut |found| {
        let (wanted, answer) = edit(found)?;
        last = Some(answer);
        Ok(wanted)
    });
    failpoint::hit("unlock.before");
    changed?;
    Ok(last.expect("a change that succeeds has run `edit`"))
}

/// Like [`change`], for a caller that holds the lock and does more under it. Not generic, so that
/// it is compiled only once.
pub(crate) fn change_held(
    place: &FilePlace,
    held: &HeldGate,
    exclusion: PeerExclusion,
    edit: &mut dyn FnMut(Option<Value>) -> Result<Option<Value>, StoreError>,
) -> Result<(), StoreError> {
    for nth in 0..CONFLICT_TRIES {
        let early = held.exclude_peers_early(place, exclusion, nth)?;
        let found = read_parsed(place, repair_surrogates::parse)?;
        let (before, value) =
            found.map_or((None, None), |found| (Some(found.file.bytes), Some(found.parsed)));
        let Some(wanted) = edit(value)? else { return Ok(()) };
        let after = to_bytes(&wanted);
        if before.as_deref() == Some(after.as_slice()) {
            return Ok(());
        }
        // Compare bytes, because Claude Code rewrites the team file in place and without a lock.
        let unchanged = || match place.writers {
            Writers::AnyProgram => fs::read(&place.path, MAX_FILE).is_ok_and(|now| now == before),
            Writers::PhalanxOnly => true,
        };
        if publish(place, (held, early), &after, place.durability.sync(), unchanged)? {
            return Ok(());
        }
    }
    Err(StoreError::Contended { path: place.path.clone(), tries: CONFLICT_TRIES })
}

/// Rewrites a torn file with the content that replaces it, and returns that content; `None` if the
/// file is whole or missing.
pub(crate) fn restore(place: &FilePlace, held: &HeldGate) -> Result<Option<Value>, StoreError> {
    for nth in 0..CONFLICT_TRIES {
        let early = held.exclude_peers_early(place, PeerExclusion::WhilePublishing, nth)?;
        let Some(ParsedFile { file, parsed }) =
            read_parsed(place, repair_surrogates::parse::<Value>)?
        else {
            return Ok(None);
        };
        if repair_surrogates::parse::<IgnoredAny>(&file.bytes).is_ok() {
            return Ok(None);
        }
        let unchanged =
            || fs::read(&place.path, MAX_FILE).is_ok_and(|now| now.as_ref() == Some(&file.bytes));
        if publish(place, (held, early), &to_bytes(&parsed), place.durability.sync(), unchanged)? {
            return Ok(Some(parsed));
        }
    }
    Err(StoreError::Contended { path: place.path.clone(), tries: CONFLICT_TRIES })
}

/// Replaces the file if it is still what was read and the lock is still ours; both are checked
/// immediately before the rename. Returns false if another program wrote the file meanwhile.
///
/// Unless `early` already excludes other programs, they are excluded for the rename alone: Claude
/// Code 2.1.34 tries to lock once and drops its message if the lock is held. In two of thirty runs
/// this lost a member's consent to shut down while the lead waited for its disk under the lock.
///
/// # Errors
/// [`StoreError::LockLost`] if the lock directory was taken over.
pub(crate) fn publish(
    place: &FilePlace,
    (held, early): (&HeldGate, Option<ExcludedPeers<'_>>),
    after: &[u8],
    sync: Sync,
    unchanged: impl FnOnce() -> bool,
) -> Result<bool, StoreError> {
    fs::sweep_temporary(&place.path);
    let mut kept_out = early.map(Ok);
    let mut is_ours = true;
    let check = || {
        let lock = kept_out.get_or_insert_with(|| held.exclude_peers(place));
        let Ok(lock) = lock else { return false };
        let unchanged = unchanged();
        is_ours = lock.still_ours();
        is_ours && unchanged
    };
    let bytes_only = if sync == Sync::Entry { Sync::Bytes } else { sync };
    let published = fs::replace_if(&place.path, after, bytes_only, check)?;
    // Release the lock before waiting for the disk once more.
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

/// Serializes as Claude Code does: two-space indentation, no newline at the end.
pub(crate) fn to_bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec_pretty(value)
        .expect("a JSON value has string keys only and can always be written")
}

/// Creates a file that no other process changes at the same time. Returns false if it exists
/// already.
pub(crate) fn write_new<T: Serialize>(
    path: &Path,
    item: &T,
    durability: Durability,
) -> Result<bool, StoreError> {
    path.parent().map_or(Ok(()), fs::refuse_link)?;
    let value =
        serde_json::to_value(item).expect("our own forms have string keys and can be written");
    Ok(fs::create_with(path, &to_bytes(&value), durability.sync())?)
}
