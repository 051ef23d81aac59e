//! Messages between launcher and viewer: frames of one byte for the kind, a big-endian `u32` length
//! and the payload. Both ends are the same or nearly the same build, so an unknown frame ends the
//! connection.

use std::io::{self, Read, Write};

use model::members::input::{Input, Key, Text};
use sys::child::ChildExit;

/// Size limit of a payload, in bytes.
const LONGEST: usize = 4 * 1024 * 1024;
/// Bytes before the payload.
const HEAD: usize = 5;

/// A message from a viewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ViewerMessage {
    /// First message of a viewer that stays: requests all output from now on, for a terminal of
    /// this size.
    Attach { rows: u16, cols: u16 },
    /// First and only message of a viewer that watches without typing: requests all output from now
    /// on, for a terminal of any size.
    Follow,
    /// Only message of a client that requests the last lines of the screen once.
    Lines(u32),
    /// Keys typed on the viewer's terminal.
    Keys(Vec<u8>),
    /// Only message of a client that types without watching.
    Input(Input),
    /// The viewer's terminal has a new size.
    Size { rows: u16, cols: u16 },
}

/// A message from a launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LauncherMessage {
    /// Bytes to write to the viewer's terminal unchanged.
    Output(Vec<u8>),
    /// The size of the program's terminal. The next output draws the whole screen. Only sent after
    /// [`ViewerMessage::Follow`].
    Size { rows: u16, cols: u16 },
    /// The answer to [`ViewerMessage::Lines`]: plain text without control characters except line
    /// breaks.
    Lines(String),
    /// The answer to [`ViewerMessage::Input`]: all of the input was written to the program's
    /// terminal.
    Typed,
    /// The exit status of the program.
    Ended(ChildExit),
}

impl ViewerMessage {
    /// Writes the message in one call.
    pub(super) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        match self {
            ViewerMessage::Attach { rows, cols } => frame(to, b'A', &pair(*rows, *cols)),
            ViewerMessage::Follow => frame(to, b'F', b""),
            ViewerMessage::Lines(count) => frame(to, b'L', &count.to_be_bytes()),
            ViewerMessage::Keys(bytes) => frame(to, b'K', bytes),
            ViewerMessage::Input(Input::Text(text)) => frame(to, b'X', text.as_str().as_bytes()),
            ViewerMessage::Input(Input::Keys(keys)) => {
                let names: Vec<String> = keys.iter().map(Key::to_string).collect();
                frame(to, b'P', names.join(" ").as_bytes())
            }
            ViewerMessage::Size { rows, cols } => frame(to, b'S', &pair(*rows, *cols)),
        }
    }

    /// Reads the next message; `None` at the end of the stream.
    pub(super) fn read(from: &mut dyn Read) -> io::Result<Option<ViewerMessage>> {
        let Some((kind, payload)) = unframe(from)? else { return Ok(None) };
        let count = || payload.as_slice().try_into().ok().map(u32::from_be_bytes);
        let message = match kind {
            b'A' => unpair(&payload).map(|(rows, cols)| ViewerMessage::Attach { rows, cols }),
            b'S' => unpair(&payload).map(|(rows, cols)| ViewerMessage::Size { rows, cols }),
            b'F' => payload.is_empty().then_some(ViewerMessage::Follow),
            b'L' => count().map(ViewerMessage::Lines),
            b'K' => Some(ViewerMessage::Keys(payload)),
            b'X' => utf8(&payload)
                .and_then(|text| Text::parse(text).ok())
                .map(|text| ViewerMessage::Input(Input::Text(text))),
            b'P' => {
                utf8(&payload).and_then(keys).map(|keys| ViewerMessage::Input(Input::Keys(keys)))
            }
            _ => None,
        };
        message.map(Some).ok_or_else(no_frame)
    }
}

impl LauncherMessage {
    /// Writes the message in one call.
    pub fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        match self {
            LauncherMessage::Output(bytes) => frame(to, b'O', bytes),
            LauncherMessage::Size { rows, cols } => frame(to, b'S', &pair(*rows, *cols)),
            LauncherMessage::Lines(text) => frame(to, b'T', text.as_bytes()),
            LauncherMessage::Typed => frame(to, b'D', b""),
            LauncherMessage::Ended(end) => {
                frame(to, b'E', &[number(end.code), number(end.signal)].concat())
            }
        }
    }

    /// Reads the next message; `None` at the end of the stream.
    pub fn read(from: &mut dyn Read) -> io::Result<Option<LauncherMessage>> {
        let Some((kind, payload)) = unframe(from)? else { return Ok(None) };
        let message = match kind {
            b'O' => Some(LauncherMessage::Output(payload)),
            b'S' => unpair(&payload).map(|(rows, cols)| LauncherMessage::Size { rows, cols }),
            b'T' => String::from_utf8(payload).ok().map(LauncherMessage::Lines),
            b'D' => payload.is_empty().then_some(LauncherMessage::Typed),
            b'E' => match payload.as_slice() {
                [a, code @ .., b, w, x, y, z] if code.len() == 4 => {
                    Some(LauncherMessage::Ended(ChildExit {
                        code: known(*a, code),
                        signal: known(*b, &[*w, *x, *y, *z]),
                    }))
                }
                _ => None,
            },
            _ => None,
        };
        message.map(Some).ok_or_else(no_frame)
    }
}

fn utf8(payload: &[u8]) -> Option<&str> {
    std::str::from_utf8(payload).ok()
}

fn keys(names: &str) -> Option<Vec<Key>> {
    names.split(' ').map(|name| name.parse().ok()).collect()
}

fn pair(rows: u16, cols: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (rows.to_be_bytes(), cols.to_be_bytes());
    [a, b, c, d]
}

fn unpair(payload: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = payload.try_into().ok()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// Encodes an optional number: a byte that is 1 if it is present, then the number.
fn number(number: Option<i32>) -> Vec<u8> {
    [&[u8::from(number.is_some())][..], &number.unwrap_or(0).to_be_bytes()].concat()
}

fn known(is_there: u8, bytes: &[u8]) -> Option<i32> {
    bytes.try_into().ok().filter(|_| is_there == 1).map(i32::from_be_bytes)
}

fn no_frame() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the other end uses another protocol")
}

fn frame(to: &mut dyn Write, kind: u8, payload: &[u8]) -> io::Result<()> {
    let len = u32::try_from(payload.len()).map_err(|_| no_frame())?;
    to.write_all(&[&[kind], &len.to_be_bytes()[..], payload].concat())
}

fn unframe(from: &mut dyn Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut head = [0; HEAD];
    // Read apart from the rest of the head, because the end of the stream between two frames is no
    // error.
    loop {
        match from.read(&mut head[..1]) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => (),
            Err(e) => return Err(e),
        }
    }
    from.read_exact(&mut head[1..])?;
    let [kind, a, b, c, d] = head;
    let len = usize::try_from(u32::from_be_bytes([a, b, c, d])).map_err(|_| no_frame())?;
    if len > LONGEST {
        return Err(no_frame());
    }
    let mut payload = vec![0; len];
    from.read_exact(&mut payload)?;
    Ok(Some((kind, payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_a_round_trip() {
        let viewer_messages = [
            ViewerMessage::Attach { rows: 24, cols: 513 },
            ViewerMessage::Follow,
            ViewerMessage::Lines(70_000),
            ViewerMessage::Keys(b"\x1b[A\x00\xff".to_vec()),
            ViewerMessage::Keys(Vec::new()),
            ViewerMessage::Input(Input::Text(Text::parse("-x ü\n;").expect("a text"))),
            ViewerMessage::Input(Input::Keys(
                ["C-c", "Up", "Space", "é"].map(|k| k.parse().expect("a key")).to_vec(),
            )),
            ViewerMessage::Size { rows: 1, cols: u16::MAX },
        ];
        let mut wire = Vec::new();
        viewer_messages.iter().for_each(|message| message.write(&mut wire).expect("memory"));
        let mut from = wire.as_slice();
        for message in viewer_messages {
            assert_eq!(ViewerMessage::read(&mut from).expect("whole"), Some(message));
        }
        assert_eq!(ViewerMessage::read(&mut from).expect("the end"), None);
        let launcher_messages = [
            LauncherMessage::Output(vec![0; 70_000]),
            LauncherMessage::Size { rows: 24, cols: 513 },
            LauncherMessage::Lines("a\nü".to_owned()),
            LauncherMessage::Typed,
            LauncherMessage::Ended(ChildExit { code: Some(-1), signal: None }),
            LauncherMessage::Ended(ChildExit { code: None, signal: Some(9) }),
        ];
        let mut wire = Vec::new();
        launcher_messages.iter().for_each(|message| message.write(&mut wire).expect("memory"));
        let mut from = wire.as_slice();
        for message in launcher_messages {
            assert_eq!(LauncherMessage::read(&mut from).expect("whole"), Some(message));
        }
    }

    #[test]
    fn invalid_frames_are_errors_without_large_allocations() {
        let bad: [&[u8]; 11] = [
            b"A\0\0\0\x03abc",
            b"Z\0\0\0\0",
            b"K\xff\xff\xff\xff",
            b"K\0\0\0\x05ab",
            b"L\0",
            b"X\0\0\0\x01\x03",
            b"P\0\0\0\x05hello",
            b"D\0\0\0\x01x",
            b"F\0\0\0\x01x",
            b"S\0\0\0\x03abc",
            b"GET / HTTP/1.1\r\n",
        ];
        for bytes in bad {
            assert!(ViewerMessage::read(&mut &*bytes).is_err(), "{bytes:?}");
            assert!(LauncherMessage::read(&mut &*bytes).is_err(), "{bytes:?}");
        }
        assert!(LauncherMessage::read(&mut &b"T\0\0\0\x01\xff"[..]).is_err());
        assert!(LauncherMessage::read(&mut &b"E\0\0\0\x02\x01\x01"[..]).is_err());
    }
}
