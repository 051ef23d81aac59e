//! A small mutator that yields the same mutants from the same seed on every machine. Of the formats
//! it knows only a few fragments that JSON and TOML parsers find hard.

/// Fragments that make deep or wide input when repeated.
pub(crate) const BOMBS: [&str; 12] = [
    "[",
    "{\"a\":",
    "[{\"members\":",
    "\u{0}",
    "\u{feff}",
    "9",
    "1e9",
    "\\u0000",
    "0,",
    "\"a\":1,",
    "[],",
    "\\ud83d",
];

/// Fragments that change the meaning of the rest when inserted.
const PIECES: [&str; 16] = [
    "\u{0}",
    "\u{feff}",
    "\"",
    "\\",
    "\\ud800",
    "\n",
    "null",
    "-0",
    "1e999999999",
    "18446744073709551616",
    "\"type\":\"shutdown_request\",",
    "\"from\":[],",
    "\"status\":7,",
    "\"metadata\":{\"phalanx\":[]},",
    "[[task]]\n",
    "''''",
];

/// A mutator driven by xorshift64*.
pub(crate) struct Mutator {
    state: u64,
    longest: usize,
}

impl Mutator {
    pub(crate) fn new(seed: u64, longest: usize) -> Mutator {
        Mutator { state: seed | 1, longest }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let high = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        usize::try_from(high).map_or(0, |high| high % bound.max(1))
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// Returns a random seed after one to five changes.
    pub(crate) fn mutant(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = self.pick(seeds).clone();
        for _ in 0..=self.below(5) {
            self.change(&mut bytes, seeds);
        }
        bytes.truncate(self.longest);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.below(bytes.len() + 1);
        match self.below(10) {
            0 | 1 => self.flip(bytes),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..(at + 1 + self.below(16)).min(bytes.len()).max(at))),
            4 => self.splice(bytes, at, seeds),
            5 | 6 => {
                let piece = *self.pick(&PIECES);
                insert(bytes, at, piece.as_bytes());
            }
            7 => insert(bytes, 0, "\u{feff}".as_bytes()),
            8 => self.repeat(bytes, at),
            _ => self.bomb(bytes, at),
        }
    }

    fn flip(&mut self, bytes: &mut [u8]) {
        if !bytes.is_empty() {
            let at = self.below(bytes.len());
            bytes[at] ^= 1 << self.below(8);
        }
    }

    /// Joins the head of this input and the tail of another.
    fn splice(&mut self, bytes: &mut Vec<u8>, at: usize, seeds: &[Vec<u8>]) {
        let other = self.pick(seeds);
        bytes.truncate(at);
        bytes.extend_from_slice(&other[self.below(other.len())..]);
    }

    /// Repeats a part of the input up to 20 times, for duplicate keys and entries.
    fn repeat(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let end = (at + 1 + self.below(80)).min(bytes.len()).max(at);
        let part = bytes[at..end].repeat(1 + self.below(20));
        insert(bytes, at, &part);
    }

    /// Inserts a repeated fragment, usually a few; one time in 64, as many as fit.
    fn bomb(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let unit = *self.pick(&BOMBS);
        let times =
            if self.below(64) == 0 { self.longest / unit.len() } else { 1 + self.below(400) };
        insert(bytes, at, unit.repeat(times).as_bytes());
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
    bytes.splice(at..at, part.iter().copied());
}
