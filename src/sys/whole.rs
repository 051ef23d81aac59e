//! Reads whole small files, mostly with one call.

use std::fs::File;
use std::io::{self, Read};

/// Reads a file to its end, or one byte past `limit`, which shows that it is larger. The first read
/// has a buffer of `first` bytes. A read that does not fill its buffer has reached the end, once
/// `at_least` bytes were read; no further one is needed to see that.
pub(crate) fn read_whole(
    file: &mut File,
    first: usize,
    at_least: usize,
    limit: usize,
) -> io::Result<Vec<u8>> {
    let most = limit.saturating_add(1);
    let mut bytes = vec![0; first.min(most)];
    let mut filled = 0;
    loop {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if filled == bytes.len() {
            bytes.resize(filled.saturating_mul(2).min(most), 0);
        } else if filled >= at_least {
            break;
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
