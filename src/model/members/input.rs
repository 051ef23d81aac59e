//! Text and keys for a member's terminal: validation, and the bytes that an xterm-compatible
//! terminal would send.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::name::nearest;
use crate::text::line_breaks;

/// Named keys, spelled as in tmux.
const NAMED: [(&str, Named); 16] = [
    ("Enter", Named::Enter),
    ("Escape", Named::Escape),
    ("Space", Named::Space),
    ("Tab", Named::Tab),
    ("BTab", Named::BTab),
    ("BSpace", Named::BSpace),
    ("IC", Named::Tilde(2)),
    ("DC", Named::Tilde(3)),
    ("PPage", Named::Tilde(5)),
    ("NPage", Named::Tilde(6)),
    ("Up", Named::Cursor('A')),
    ("Down", Named::Cursor('B')),
    ("Right", Named::Cursor('C')),
    ("Left", Named::Cursor('D')),
    ("Home", Named::Cursor('H')),
    ("End", Named::Cursor('F')),
];
/// Alternative names of keys, and the tmux names they stand for.
const ALIASES: [(&str, &str); 6] = [
    ("PageUp", "PPage"),
    ("PgUp", "PPage"),
    ("PageDown", "NPage"),
    ("PgDn", "NPage"),
    ("Insert", "IC"),
    ("Delete", "DC"),
];
/// Escape codes of `F5` to `F12`. `F1` to `F4` are encoded with letters instead.
const FUNCTION_CODES: [u8; 8] = [15, 17, 18, 19, 20, 21, 23, 24];

/// Input to send to a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    Text(Text),
    Keys(Vec<Key>),
}

/// Non-empty text whose only control characters are line breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text(String);

/// Terminal modes that change the bytes a key or a paste sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modes {
    /// Cursor keys send `ESC O A` instead of `ESC [ A` (DECCKM).
    pub application_cursor: bool,
    /// A paste is wrapped in `ESC [200~` and `ESC [201~`.
    pub bracketed_paste: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Named {
    Enter,
    Escape,
    Space,
    Tab,
    BTab,
    BSpace,
    /// `ESC [ n ~`
    Tilde(u8),
    /// `ESC [ A`, or `ESC O A`
    Cursor(char),
    /// `F1` to `F12`
    Function(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Base {
    Char(char),
    Named(Named),
}

/// A key with its modifiers: `C-c`, `M-x`, `S-Up`, `Enter`, `a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    base: Base,
    ctrl: bool,
    meta: bool,
    shift: bool,
}

impl Text {
    /// Validates a text.
    ///
    /// # Errors
    /// Fails if the text is empty or contains a control character other than a line break. The
    /// message is a predicate that follows "TEXT".
    pub fn parse(text: &str) -> Result<Text, String> {
        let text = line_breaks(text);
        if text.is_empty() {
            return Err("is empty".to_owned());
        }
        match text.chars().find(|c| c.is_control() && *c != '\n') {
            Some(c) => Err(format!("contains the control character U+{:04X}", u32::from(c))),
            None => Ok(Text(text.into_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true for text with line breaks, which is pasted. A single line is typed.
    pub fn is_block(&self) -> bool {
        self.0.contains('\n')
    }
}

impl Input {
    /// The `Enter` key, which submits a line.
    pub fn enter() -> Input {
        Input::Keys(vec![Key::plain(Base::Named(Named::Enter))])
    }

    /// Encodes the input as a terminal in these modes would send it.
    pub fn bytes(&self, modes: Modes) -> Vec<u8> {
        match self {
            Input::Keys(keys) => keys.iter().flat_map(|key| key.bytes(modes)).collect(),
            Input::Text(text) => {
                let typed = text.as_str().replace('\n', "\r");
                if text.is_block() && modes.bracketed_paste {
                    format!("\u{1b}[200~{typed}\u{1b}[201~").into_bytes()
                } else {
                    typed.into_bytes()
                }
            }
        }
    }
}

impl Key {
    fn plain(base: Base) -> Key {
        Key { base, ctrl: false, meta: false, shift: false }
    }

    fn bytes(self, modes: Modes) -> Vec<u8> {
        let escaped = |sequence: String| sequence.into_bytes();
        let modifier = 1 + u8::from(self.shift) + 2 * u8::from(self.meta) + 4 * u8::from(self.ctrl);
        let named = match self.base {
            Base::Char(c) => {
                return self.with_meta(if self.ctrl { vec![control(c)] } else { utf8(c) });
            }
            Base::Named(named) => named,
        };
        match (named, modifier) {
            (Named::Enter, _) => self.with_meta(vec![b'\r']),
            (Named::Escape, _) => self.with_meta(vec![0x1b]),
            (Named::Space, _) => self.with_meta(vec![b' ']),
            (Named::Tab, _) => self.with_meta(vec![b'\t']),
            (Named::BSpace, _) => self.with_meta(vec![0x7f]),
            (Named::BTab, _) => escaped("\u{1b}[Z".to_owned()),
            (Named::Cursor(code), 1) if modes.application_cursor => {
                escaped(format!("\u{1b}O{code}"))
            }
            (Named::Cursor(code), 1) => escaped(format!("\u{1b}[{code}")),
            (Named::Cursor(code), modifier) => escaped(format!("\u{1b}[1;{modifier}{code}")),
            (Named::Tilde(code), 1) => escaped(format!("\u{1b}[{code}~")),
            (Named::Tilde(code), modifier) => escaped(format!("\u{1b}[{code};{modifier}~")),
            (Named::Function(nth), modifier) => escaped(function(nth, modifier)),
        }
    }

    fn with_meta(self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.meta {
            bytes.insert(0, 0x1b);
        }
        bytes
    }
}

fn utf8(c: char) -> Vec<u8> {
    c.to_string().into_bytes()
}

/// Returns the control code of a character for which [`has_control`] is true.
fn control(c: char) -> u8 {
    if c == '?' { 0x7f } else { c.to_ascii_uppercase() as u8 & 0x1f }
}

fn has_control(c: char) -> bool {
    c.is_ascii_alphabetic() || "[\\]^_?".contains(c)
}

fn function(nth: u8, modifier: u8) -> String {
    if let Some(code) = nth.checked_sub(5).and_then(|at| FUNCTION_CODES.get(usize::from(at))) {
        return if modifier == 1 {
            format!("\u{1b}[{code}~")
        } else {
            format!("\u{1b}[{code};{modifier}~")
        };
    }
    let letter = char::from(b'P' + nth.saturating_sub(1));
    if modifier == 1 { format!("\u{1b}O{letter}") } else { format!("\u{1b}[1;{modifier}{letter}") }
}

impl FromStr for Key {
    type Err = String;

    /// Parses a key name as tmux spells it. Names are matched case-insensitively.
    fn from_str(word: &str) -> Result<Key, String> {
        let (mut ctrl, mut meta, mut shift) = (false, false, false);
        let mut rest = word;
        loop {
            let mut chars = rest.chars();
            let (first, dash, more) = (chars.next(), chars.next(), chars.next());
            match (first, dash, more) {
                (Some('C' | 'c'), Some('-'), Some(_)) => ctrl = true,
                (Some('M' | 'm'), Some('-'), Some(_)) => meta = true,
                (Some('S' | 's'), Some('-'), Some(_)) => shift = true,
                _ => break,
            }
            rest = &rest[2..];
        }
        let base = base(rest).ok_or_else(|| unknown(word, rest))?;
        let key = Key { base, ctrl, meta, shift };
        match key.base {
            Base::Char(_) if shift => {
                Err(format!("`{word}` has no code: write the shifted character"))
            }
            Base::Char(c) if ctrl && !has_control(c) => {
                Err(format!("`{word}` has no control code"))
            }
            Base::Named(
                Named::Enter
                | Named::Escape
                | Named::Space
                | Named::Tab
                | Named::BTab
                | Named::BSpace,
            ) if ctrl || shift => Err(format!("`{word}` has no code in a terminal")),
            Base::Named(Named::BTab) if meta => Err(format!("`{word}` has no code in a terminal")),
            Base::Char(_) | Base::Named(_) => Ok(key),
        }
    }
}

fn base(rest: &str) -> Option<Base> {
    let mut chars = rest.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return match c {
            ' ' => Some(Base::Named(Named::Space)),
            c if c.is_control() || c.is_whitespace() => None,
            c => Some(Base::Char(c)),
        };
    }
    let name = ALIASES
        .iter()
        .find(|(alias, _)| alias.eq_ignore_ascii_case(rest))
        .map_or(rest, |(_, name)| name);
    let known = NAMED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let function = || {
        let number = name.strip_prefix(['F', 'f'])?.parse().ok()?;
        (1..=12).contains(&number).then_some(Named::Function(number))
    };
    known.map(|(_, named)| *named).or_else(function).map(Base::Named)
}

fn unknown(word: &str, rest: &str) -> String {
    let spelled = [
        ("ctrl-", "C-"),
        ("ctrl+", "C-"),
        ("^", "C-"),
        ("alt-", "M-"),
        ("alt+", "M-"),
        ("shift-", "S-"),
    ];
    let lower = word.to_lowercase();
    if let Some((long, short)) = spelled.iter().find(|(long, _)| lower.starts_with(long)) {
        return format!("{word:?} is not a key; did you mean `{short}{}`?", &lower[long.len()..]);
    }
    let known = NAMED.iter().map(|(name, _)| *name).chain(ALIASES.iter().map(|(name, _)| *name));
    match nearest(rest, known) {
        Some(name) => format!("{word:?} is not a key; did you mean `{name}`?"),
        None => format!("{word:?} is not a key"),
    }
}

impl fmt::Display for Key {
    /// Writes the name in a form that tmux accepts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (held, prefix) in [(self.ctrl, "C-"), (self.meta, "M-"), (self.shift, "S-")] {
            if held {
                f.write_str(prefix)?;
            }
        }
        match self.base {
            Base::Char(c) => write!(f, "{c}"),
            Base::Named(Named::Function(nth)) => write!(f, "F{nth}"),
            Base::Named(named) => {
                let name = NAMED.iter().find(|(_, known)| *known == named);
                f.write_str(name.map_or("", |(name, _)| *name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(word: &str) -> Key {
        word.parse().unwrap_or_else(|e| panic!("{word}: {e}"))
    }

    fn sent(word: &str) -> Vec<u8> {
        Input::Keys(vec![key(word)]).bytes(Modes::default())
    }

    #[test]
    fn keys_are_encoded_as_xterm_does() {
        let table: [(&str, &[u8]); 30] = [
            ("a", b"a"),
            ("é", "é".as_bytes()),
            (";", b";"),
            ("-", b"-"),
            ("C-c", b"\x03"),
            ("c-C", b"\x03"),
            ("C-[", b"\x1b"),
            ("C-\\", b"\x1c"),
            ("C-_", b"\x1f"),
            ("C-?", b"\x7f"),
            ("M-x", b"\x1bx"),
            ("C-M-x", b"\x1b\x18"),
            ("Enter", b"\r"),
            ("enter", b"\r"),
            ("M-Enter", b"\x1b\r"),
            ("Escape", b"\x1b"),
            ("Space", b" "),
            ("Tab", b"\t"),
            ("BTab", b"\x1b[Z"),
            ("BSpace", b"\x7f"),
            ("Delete", b"\x1b[3~"),
            ("PgUp", b"\x1b[5~"),
            ("Up", b"\x1b[A"),
            ("Home", b"\x1b[H"),
            ("C-Left", b"\x1b[1;5D"),
            ("S-NPage", b"\x1b[6;2~"),
            ("F1", b"\x1bOP"),
            ("M-F4", b"\x1b[1;3S"),
            ("F5", b"\x1b[15~"),
            ("C-F12", b"\x1b[24;5~"),
        ];
        for (word, bytes) in table {
            assert_eq!(sent(word), bytes, "{word}");
        }
        let application = Modes { application_cursor: true, bracketed_paste: false };
        assert_eq!(Input::Keys(vec![key("Up"), key("End")]).bytes(application), b"\x1bOA\x1bOF");
        assert_eq!(Input::Keys(vec![key("S-Up")]).bytes(application), b"\x1b[1;2A");
    }

    #[test]
    fn key_names_are_displayed_in_tmux_spelling() {
        for (given, name) in
            [("pgdn", "NPage"), ("c-m-up", "C-M-Up"), ("f7", "F7"), ("M--", "M--"), ("X", "X")]
        {
            assert_eq!(key(given).to_string(), name);
            assert_eq!(key(&key(given).to_string()), key(given));
        }
    }

    #[test]
    fn unknown_keys_are_refused_with_a_suggestion() {
        let refusal = |word: &str| word.parse::<Key>().expect_err("no key");
        assert_eq!(refusal("Entre"), "\"Entre\" is not a key; did you mean `Enter`?");
        assert_eq!(refusal("Ctrl-C"), "\"Ctrl-C\" is not a key; did you mean `C-c`?");
        assert_eq!(refusal("^c"), "\"^c\" is not a key; did you mean `C-c`?");
        assert_eq!(refusal("hello"), "\"hello\" is not a key");
        for word in [
            "", "C-", "C-ü", "C-1", "S-a", "C-Enter", "S-Tab", "M-BTab", "F0", "F13", "\n", "ab",
            "C-Space",
        ] {
            assert!(word.parse::<Key>().is_err(), "{word:?}");
        }
    }

    #[test]
    fn text_is_sent_verbatim_and_line_breaks_as_enter() {
        let text = |text: &str| Input::Text(Text::parse(text).expect("a text"));
        let odd = "-x; #{pane_id} $HOME ~ ü \u{1f600} \\;";
        assert_eq!(text(odd).bytes(Modes::default()), odd.as_bytes());
        assert_eq!(text("a\nb\n").bytes(Modes::default()), b"a\rb\r");
        let pasting = Modes { application_cursor: false, bracketed_paste: true };
        assert_eq!(text("a\nb").bytes(pasting), b"\x1b[200~a\rb\x1b[201~");
        assert_eq!(text("a").bytes(pasting), b"a");
    }

    #[test]
    fn control_characters_in_text_are_refused() {
        for (given, found) in [("a\u{3}", "U+0003"), ("\t", "U+0009"), ("\u{9b}", "U+009B")] {
            let problem = Text::parse(given).expect_err("refused");
            assert_eq!(problem, format!("contains the control character {found}"));
        }
        assert_eq!(Text::parse(""), Err("is empty".to_owned()));
        let parsed = Text::parse("a\r\nb\rc\n").expect("a text");
        assert_eq!(parsed.as_str(), "a\nb\nc\n", "line breaks of any system");
    }
}
