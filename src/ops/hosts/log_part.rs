//! Parts of the log of a run, as this host reads them for itself and for others.

use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::OpsError;
use model::members::record::MemberRecord;
use model::time::Timestamp;
use sys::fs::{self, older, times_of};

/// The number of bytes read from a log at once, also by one reply of another host.
pub(crate) const CHUNK: u64 = 1024 * 1024;
/// A larger file of times is not read: a log has at most one entry for each of its bytes.
const TIMES_LIMIT: u64 = 256 * 1024 * 1024;

/// The bytes to read of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogRange {
    /// Read the log before the last rotation.
    pub is_older: bool,
    pub at: u64,
    pub most: u64,
    /// Offset of the first line whose time is wanted.
    pub(crate) times_from: u64,
}

/// The part of a log in a [`LogRange`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogPart {
    /// In JSON, each byte is the character with its number.
    #[serde(serialize_with = "to_characters", deserialize_with = "from_characters")]
    pub bytes: Vec<u8>,
    /// The length of the whole log.
    pub len: u64,
    pub has_times: bool,
    /// Offsets with the times at which the log was written from there.
    pub times: Vec<(u64, Timestamp)>,
}

fn to_characters<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&bytes.iter().copied().map(char::from).collect::<String>())
}

fn from_characters<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    // A character beyond a byte cannot be in a log of this release.
    Ok(text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect())
}

/// Returns the path of the log of a run on this host.
pub(crate) fn log_here(record: &MemberRecord) -> Option<&Path> {
    record.log().filter(|_| !record.is_elsewhere).map(Path::new)
}

impl LogPart {
    /// Reads a part of the log at `path`.
    ///
    /// # Errors
    /// The files cannot be read.
    pub(crate) fn read(path: &Path, range: &LogRange) -> Result<LogPart, OpsError> {
        let full = if range.is_older { older(path) } else { path.to_owned() };
        let len = fs::len(&full)?.unwrap_or(0);
        let has_times = fs::len(&times_of(&full))?.unwrap_or(0) > 0;
        let bytes = fs::read_range(&full, range.at, range.most.min(CHUNK))?;
        if bytes.is_empty() && range.times_from >= range.at {
            return Ok(LogPart { bytes, len, has_times, times: Vec::new() });
        }
        let times = Times::read(&full)?.0;
        let begin = times.partition_point(|(from, _)| *from <= range.times_from).saturating_sub(1);
        let until = range.at + bytes.len() as u64;
        let times = times[begin..].iter().take_while(|(from, _)| *from < until).copied();
        Ok(LogPart { bytes, len, has_times, times: times.collect() })
    }
}

/// The times at which a log was written, by byte offset; in the file, lines `MILLISECONDS OFFSET`
/// in order.
pub(crate) struct Times(pub(crate) Vec<(u64, Timestamp)>);

impl Times {
    fn read(log: &Path) -> Result<Times, OpsError> {
        let bytes = fs::read(&times_of(log), TIMES_LIMIT)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let entry = |line: &str| {
            let (ms, offset) = line.split_once(' ')?;
            Some((offset.parse().ok()?, Timestamp(ms.parse().ok()?)))
        };
        Ok(Times(text.lines().filter_map(entry).collect()))
    }

    pub(crate) fn time_at(&self, offset: u64) -> Option<Timestamp> {
        let after = self.0.partition_point(|(from, _)| *from <= offset);
        after.checked_sub(1).and_then(|at| self.0.get(at)).map(|(_, time)| *time)
    }
}
