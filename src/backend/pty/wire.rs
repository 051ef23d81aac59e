//! What a launcher and a viewer say to each other over the socket: frames of one byte of kind, four of length (big
//! endian) and the payload. Both ends are one build of phalanx or two near ones; a frame that is not understood ends
//! the conversation.

use std::io::{self, Read, Write};

use crate::model::input::{Input, Key, Text};

/// A longer payload is no frame of ours.
const LONGEST: usize = 4 * 1024 * 1024;
/// Before the payload.
const HEAD: usize = 5;

/// From a viewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    /// The first word of one who stays: shows him everything from now on, on a terminal of this size.
    Attach { rows: u16, cols: u16 },
    /// The only word of one who wants the last lines of the screen once.
    Lines(u32),
    /// Typed on the viewer's terminal.
    Keys(Vec<u8>),
    /// The only word of a process that types without looking.
    Input(Input),
    /// The viewer's terminal has another size.
    Size { rows: u16, cols: u16 },
}

/// From a launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tell {
    /// For the terminal, as it is.
    Output(Vec<u8>),
    /// The answer to [`Ask::Lines`]: plain text, cells with control characters never are in it.
    Lines(String),
    /// The answer to [`Ask::Input`]: all of it was written to the program's terminal.
    Typed,
    /// The program has ended.
    Ended(End),
}

/// How a program ended; neither is there when nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

impl Ask {
    /// Writes it in one go.
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        match self {
            Ask::Attach { rows, cols } => frame(to, b'A', &pair(*rows, *cols)),
            Ask::Lines(count) => frame(to, b'L', &count.to_be_bytes()),
            Ask::Keys(bytes) => frame(to, b'K', bytes),
            Ask::Input(Input::Text(text)) => frame(to, b'X', text.as_str().as_bytes()),
            Ask::Input(Input::Keys(keys)) => {
                let names: Vec<String> = keys.iter().map(Key::to_string).collect();
                frame(to, b'P', names.join(" ").as_bytes())
            }
            Ask::Size { rows, cols } => frame(to, b'S', &pair(*rows, *cols)),
        }
    }

    /// The next one; none at the end of the stream.
    pub(crate) fn read(from: &mut dyn Read) -> io::Result<Option<Ask>> {
        let Some((kind, payload)) = unframe(from)? else { return Ok(None) };
        let size = || payload.first_chunk::<4>().filter(|_| payload.len() == 4);
        let ask = match kind {
            b'A' => size().map(|[a, b, c, d]| Ask::Attach {
                rows: u16::from_be_bytes([*a, *b]),
                cols: u16::from_be_bytes([*c, *d]),
            }),
            b'S' => size().map(|[a, b, c, d]| Ask::Size {
                rows: u16::from_be_bytes([*a, *b]),
                cols: u16::from_be_bytes([*c, *d]),
            }),
            b'L' => size().map(|count| Ask::Lines(u32::from_be_bytes(*count))),
            b'K' => Some(Ask::Keys(payload)),
            b'X' => utf8(&payload)
                .and_then(|text| Text::parse(text).ok())
                .map(|text| Ask::Input(Input::Text(text))),
            b'P' => utf8(&payload).and_then(keys).map(|keys| Ask::Input(Input::Keys(keys))),
            _ => None,
        };
        ask.map(Some).ok_or_else(no_frame)
    }
}

impl Tell {
    /// Writes it in one go.
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        match self {
            Tell::Output(bytes) => frame(to, b'O', bytes),
            Tell::Lines(text) => frame(to, b'T', text.as_bytes()),
            Tell::Typed => frame(to, b'D', b""),
            Tell::Ended(end) => frame(to, b'E', &[number(end.code), number(end.signal)].concat()),
        }
    }

    /// The next one; none at the end of the stream.
    pub(crate) fn read(from: &mut dyn Read) -> io::Result<Option<Tell>> {
        let Some((kind, payload)) = unframe(from)? else { return Ok(None) };
        let tell = match kind {
            b'O' => Some(Tell::Output(payload)),
            b'T' => String::from_utf8(payload).ok().map(Tell::Lines),
            b'D' => payload.is_empty().then_some(Tell::Typed),
            b'E' => match payload.as_slice() {
                [a, code @ .., b, w, x, y, z] if code.len() == 4 => Some(Tell::Ended(End {
                    code: known(*a, code),
                    signal: known(*b, &[*w, *x, *y, *z]),
                })),
                _ => None,
            },
            _ => None,
        };
        tell.map(Some).ok_or_else(no_frame)
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

/// A byte that says whether it is there, and the number.
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
    // Byte by byte for the first: an end between two frames is none of the stream's faults.
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
    fn every_word_survives_the_way() {
        let asks = [
            Ask::Attach { rows: 24, cols: 513 },
            Ask::Lines(70_000),
            Ask::Keys(b"\x1b[A\x00\xff".to_vec()),
            Ask::Keys(Vec::new()),
            Ask::Input(Input::Text(Text::parse("-x ü\n;").expect("a text"))),
            Ask::Input(Input::Keys(
                ["C-c", "Up", "Space", "é"].map(|k| k.parse().expect("a key")).to_vec(),
            )),
            Ask::Size { rows: 1, cols: u16::MAX },
        ];
        let mut wire = Vec::new();
        asks.iter().for_each(|ask| ask.write(&mut wire).expect("memory"));
        let mut from = wire.as_slice();
        for ask in asks {
            assert_eq!(Ask::read(&mut from).expect("whole"), Some(ask));
        }
        assert_eq!(Ask::read(&mut from).expect("the end"), None);
        let tells = [
            Tell::Output(vec![0; 70_000]),
            Tell::Lines("a\nü".to_owned()),
            Tell::Typed,
            Tell::Ended(End { code: Some(-1), signal: None }),
            Tell::Ended(End { code: None, signal: Some(9) }),
        ];
        let mut wire = Vec::new();
        tells.iter().for_each(|tell| tell.write(&mut wire).expect("memory"));
        let mut from = wire.as_slice();
        for tell in tells {
            assert_eq!(Tell::read(&mut from).expect("whole"), Some(tell));
        }
    }

    #[test]
    fn garbage_is_an_error_and_costs_no_memory() {
        let bad: [&[u8]; 9] = [
            b"A\0\0\0\x03abc",
            b"Z\0\0\0\0",
            b"K\xff\xff\xff\xff",
            b"K\0\0\0\x05ab",
            b"L\0",
            b"X\0\0\0\x01\x03",
            b"P\0\0\0\x05hello",
            b"D\0\0\0\x01x",
            b"GET / HTTP/1.1\r\n",
        ];
        for bytes in bad {
            assert!(Ask::read(&mut &*bytes).is_err(), "{bytes:?}");
            assert!(Tell::read(&mut &*bytes).is_err(), "{bytes:?}");
        }
        assert!(Tell::read(&mut &b"T\0\0\0\x01\xff"[..]).is_err());
        assert!(Tell::read(&mut &b"E\0\0\0\x02\x01\x01"[..]).is_err());
    }
}
