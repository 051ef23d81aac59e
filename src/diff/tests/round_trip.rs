//! Properties of the parser: generated patches keep their content, and no bytes cause a panic.

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::{ChangeKind, FilePatch, Hunk, LineKind, Patch, PatchLine};

/// Formats a patch as git prints it, with all names quoted.
pub(super) fn format(patch: &Patch) -> Vec<u8> {
    let mut out = Vec::new();
    for file in &patch.files {
        format_file(file, &mut out);
    }
    out
}

fn quoted(prefix: &str, name: &[u8]) -> String {
    let mut text = format!("\"{prefix}");
    for byte in name {
        let _ = match byte {
            b'"' | b'\\' => write!(text, "\\{}", char::from(*byte)),
            b'\t' => write!(text, "\\t"),
            b'\n' => write!(text, "\\n"),
            b' '..=b'~' => write!(text, "{}", char::from(*byte)),
            byte => write!(text, "\\{byte:03o}"),
        };
    }
    text + "\""
}

fn format_file(file: &FilePatch, out: &mut Vec<u8>) {
    let old = file.old.as_deref().unwrap_or(file.path());
    let mut head = format!("diff --git {} {}\n", quoted("a/", old), quoted("b/", file.path()));
    match file.change {
        ChangeKind::Added => {
            let _ = writeln!(head, "new file mode {:06o}", file.new_mode.unwrap_or(0));
        }
        ChangeKind::Deleted => {
            let _ = writeln!(head, "deleted file mode {:06o}", file.old_mode.unwrap_or(0));
        }
        ChangeKind::Modified => {
            if let Some((old, new)) = file.mode_change() {
                let _ = write!(head, "old mode {old:06o}\nnew mode {new:06o}\n");
            }
        }
        ChangeKind::Renamed | ChangeKind::Copied => {
            let verb = if file.change == ChangeKind::Copied { "copy" } else { "rename" };
            let (from, to) = (quoted("", old), quoted("", file.path()));
            let _ = writeln!(head, "similarity index {}%", file.similarity.unwrap_or(0));
            let _ = write!(head, "{verb} from {from}\n{verb} to {to}\n");
        }
        ChangeKind::Unmerged => {
            out.extend(format!("* Unmerged path {}\n", quoted("", old)).into_bytes());
            return;
        }
    }
    if let Some((old, new)) = file.old_blob.as_ref().zip(file.new_blob.as_ref()) {
        let same = file.old_mode.filter(|mode| file.new_mode == Some(*mode));
        let mode = same.map_or(String::new(), |mode| format!(" {mode:06o}"));
        let _ = writeln!(head, "index {old}..{new}{mode}");
    }
    if file.is_binary {
        head.push_str("Binary files a and b differ\n");
    }
    if !file.hunks.is_empty() {
        let name = |prefix, name: &Option<Vec<u8>>| {
            name.as_ref().map_or("/dev/null".to_owned(), |name| quoted(prefix, name))
        };
        let _ = write!(head, "--- {}\n+++ {}\n", name("a/", &file.old), name("b/", &file.new));
    }
    out.extend(head.into_bytes());
    for hunk in &file.hunks {
        let (old, new) = ((hunk.old_start, hunk.old_len), (hunk.new_start, hunk.new_len));
        out.extend(format!("@@ -{},{} +{},{} @@ ", old.0, old.1, new.0, new.1).into_bytes());
        out.extend_from_slice(&hunk.section);
        out.push(b'\n');
        for line in &hunk.lines {
            out.push(match line.kind {
                LineKind::Context => b' ',
                LineKind::Added => b'+',
                LineKind::Removed => b'-',
            });
            out.extend_from_slice(&line.text);
            out.extend_from_slice(if line.has_newline {
                b"\n"
            } else {
                b"\n\\ No newline at end of file\n".as_slice()
            });
        }
    }
}

/// Bytes without a line feed, many of which are words, wide characters or hostile.
pub(super) fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[a-c ]{0,40}( (alpha|beta|gamma)){0,9}".prop_map(String::into_bytes),
        1 => "[漢字e\u{301}👩\u{200d}💻\t]{0,30}".prop_map(String::into_bytes),
        1 => "[\u{1b}\u{9b}\u{202e}\u{0}\r\u{7}\\[2Jm-]{0,12}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>().prop_filter("a line", |byte| *byte != b'\n'), 0..60),
        1 => Just("x".repeat(2500).into_bytes()),
    ]
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[a-z]{1,8}(/[a-z]{1,8}){0,3}\\.rs".prop_map(String::into_bytes),
        prop::collection::vec(1..=255u8, 1..30),
    ]
}

fn hunk() -> impl Strategy<Value = Hunk> {
    let line = (0..3u8, text(), any::<bool>());
    let lines = prop::collection::vec(line, 1..30);
    (1..9_999_999u32, 1..9_999_999u32, text(), lines).prop_map(
        |(old_start, new_start, section, lines)| {
            let (mut old, mut new) = (old_start, new_start);
            let lines: Vec<PatchLine> = lines
                .into_iter()
                .map(|(kind, text, has_newline)| {
                    let kind =
                        [LineKind::Context, LineKind::Added, LineKind::Removed][usize::from(kind)];
                    let (has_old, has_new) = (kind != LineKind::Added, kind != LineKind::Removed);
                    let line = PatchLine {
                        kind,
                        old: has_old.then_some(old),
                        new: has_new.then_some(new),
                        text,
                        has_newline,
                    };
                    old += u32::from(has_old);
                    new += u32::from(has_new);
                    line
                })
                .collect();
            let (old_len, new_len) = (old - old_start, new - new_start);
            Hunk { old_start, old_len, new_start, new_len, section, lines }
        },
    )
}

fn file() -> impl Strategy<Value = FilePatch> {
    let change = prop_oneof![
        4 => Just(ChangeKind::Modified),
        1 => Just(ChangeKind::Added),
        1 => Just(ChangeKind::Deleted),
        1 => Just(ChangeKind::Renamed),
        1 => Just(ChangeKind::Copied),
        1 => Just(ChangeKind::Unmerged),
    ];
    let hunks = prop::collection::vec(hunk(), 0..5);
    (change, name(), name(), hunks, any::<bool>(), 0..=100u8).prop_map(
        |(change, one, other, hunks, is_binary, similarity)| {
            let is_pair = matches!(change, ChangeKind::Renamed | ChangeKind::Copied);
            let (mode, is_unmerged) = (Some(0o100_644), change == ChangeKind::Unmerged);
            let hunks = if is_binary || is_unmerged { Vec::new() } else { hunks };
            let count = |kind| {
                hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == kind).count()
            };
            FilePatch {
                old: (change != ChangeKind::Added).then(|| one.clone()),
                new: match change {
                    ChangeKind::Deleted => None,
                    _ if is_pair => Some(other),
                    _ => Some(one),
                },
                change,
                old_blob: (!is_unmerged).then(|| "0123abc".to_owned()),
                new_blob: (!is_unmerged).then(|| "4567def".to_owned()),
                old_mode: mode.filter(|_| change != ChangeKind::Added && !is_unmerged),
                new_mode: mode.filter(|_| change != ChangeKind::Deleted && !is_unmerged),
                similarity: is_pair.then_some(similarity),
                is_binary: is_binary && !is_unmerged,
                added: count(LineKind::Added),
                removed: count(LineKind::Removed),
                hunks,
            }
        },
    )
}

pub(super) fn patches() -> impl Strategy<Value = Patch> {
    prop::collection::vec(file(), 0..6).prop_map(|files| Patch { files })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn formatted_patches_keep_their_content(patch in patches()) {
        prop_assert_eq!(Patch::parse(&format(&patch)), Ok(patch));
    }

    #[test]
    fn rv_11_no_bytes_cause_a_panic(
        patch in patches(),
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..12),
        cut in any::<bool>(),
    ) {
        let mut text = format(&patch);
        if !text.is_empty() {
            let at = at.index(text.len());
            let end = if cut { text.len() } else { at };
            text.splice(at..end, bytes.iter().copied());
        }
        let lines = text.split(|byte| *byte == b'\n').count();
        if let Err(error) = Patch::parse(&text) {
            prop_assert!((1..=lines).contains(&error.line), "{error}");
        }
        let _ = Patch::parse(&bytes);
    }
}
