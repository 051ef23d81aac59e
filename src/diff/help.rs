//! The keys of a view in words.

/// Keys as the help shows them, and their effect.
pub type ViewKey = (&'static str, &'static str);

/// The keys of the view, for the help.
pub const KEYS: [ViewKey; 23] = [
    ("j k ↓ ↑", "next, previous line"),
    ("space PgDn PgUp", "next, previous page"),
    ("g G Home End", "first, last line"),
    ("] [", "next, previous hunk"),
    ("} {", "next, previous file"),
    ("m P", "next, previous comment"),
    ("h l ← →", "scroll long lines"),
    ("Enter", "fold or unfold the file; open the comment"),
    ("f", "list of files"),
    ("t", "unified, or side by side"),
    ("Tab", "side for comments, side by side"),
    ("w", "differences of words on, off"),
    ("W", "ignore white space, or not"),
    ("/", "search"),
    ("n N", "next, previous match"),
    ("V", "file is viewed, or not"),
    ("v", "begin a range of lines"),
    ("c", "comment on the line or range"),
    ("C", "comment on the file"),
    ("A", "comment on the whole"),
    ("b", "choose the base"),
    ("?", "keys"),
    ("q Esc", "close"),
];
