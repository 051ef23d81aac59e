//! The forms of a patch, and what is not a patch.

use super::patch;
use crate::{ChangeKind, LineKind, Patch};

/// The error of a patch that is not valid.
fn error(text: &str) -> String {
    Patch::parse(text.as_bytes()).expect_err("an invalid patch").to_string()
}

#[test]
fn empty_output_is_an_empty_patch() {
    assert_eq!(patch(""), Patch::default());
}

#[test]
fn rv_10_lines_that_look_like_headers_are_counted_as_lines() {
    let patch = patch(
        "diff --git a/x b/x\nindex 1111111..2222222 100644\n--- a/x\n+++ b/x\n\
         @@ -7,3 +7,3 @@ fn main() {\n--- a/y\n-@@ -1 +1 @@\n+++ b/y\n+diff --git a/z b/z\n \n",
    );
    let hunk = &patch.files[0].hunks[0];
    assert_eq!(hunk.section, b"fn main() {");
    let lines: Vec<_> = (hunk.lines.iter())
        .map(|line| (line.kind, line.old, line.new, line.text.as_slice()))
        .collect();
    assert_eq!(
        lines,
        [
            (LineKind::Removed, Some(7), None, b"-- a/y".as_slice()),
            (LineKind::Removed, Some(8), None, b"@@ -1 +1 @@"),
            (LineKind::Added, None, Some(7), b"++ b/y"),
            (LineKind::Added, None, Some(8), b"diff --git a/z b/z"),
            (LineKind::Context, Some(9), Some(9), b""),
        ]
    );
    assert_eq!((patch.files[0].added, patch.files[0].removed), (2, 2));
}

#[test]
fn changes_without_hunks_keep_their_names_and_modes() {
    let patch = patch(
        "diff --git a/run b b/run b\nold mode 100644\nnew mode 100755\n\
         diff --git a/old b/new\nsimilarity index 96%\nrename from old\nrename to new\n\
         diff --git a/one b/two\nsimilarity index 100%\ncopy from one\ncopy to two\n\
         diff --git a/empty b/empty\nnew file mode 100644\nindex 0000000..e69de29\n\
         diff --git a/i.png b/i.png\nindex 111..222 100644\nBinary files a/i.png and b/i.png differ\n\
         * Unmerged path torn\n",
    );
    let kinds: Vec<_> = patch.files.iter().map(|file| file.change).collect();
    assert_eq!(
        kinds,
        [
            ChangeKind::Modified,
            ChangeKind::Renamed,
            ChangeKind::Copied,
            ChangeKind::Added,
            ChangeKind::Modified,
            ChangeKind::Unmerged
        ]
    );
    let paths: Vec<_> = patch.files.iter().map(|file| file.path()).collect();
    assert_eq!(paths, [b"run b".as_slice(), b"new", b"two", b"empty", b"i.png", b"torn"]);
    assert_eq!(patch.files[0].mode_change(), Some((0o100_644, 0o100_755)));
    assert_eq!(patch.files[1].old.as_deref(), Some(b"old".as_slice()));
    assert_eq!(patch.files[1].similarity, Some(96));
    assert_eq!(patch.files[3].old, None);
    assert!(patch.files[4].is_binary);
    assert_eq!(patch.files[4].new_blob.as_deref(), Some("222"));
}

#[test]
fn quoted_names_become_bytes() {
    let patch = patch(
        "diff --git \"a/n\\303\\244m\\te\\\"\\\\\" \"b/n\\303\\244m\\te\\\"\\\\\"\n\
         deleted file mode 100644\nindex 111..000\n\
         diff --git a/a b b/a b\nindex 1..2 100644\n--- a/a b\t\n+++ \"b/\\377\"\n@@ -1 +1 @@\n-x\n+y\n",
    );
    assert_eq!(patch.files[0].path(), "näm\te\"\\".as_bytes());
    assert_eq!(patch.files[0].new, None);
    assert_eq!(patch.files[1].old.as_deref(), Some(b"a b".as_slice()));
    assert_eq!(patch.files[1].path(), b"\xff");
}

#[test]
fn raw_bytes_carriage_returns_and_missing_newlines_are_kept() {
    let printed = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-\xe4\r\n+\xe4\n+b\n\
        \\ No newline at end of file\n";
    let patch = Patch::parse(printed).expect("valid");
    let lines = &patch.files[0].hunks[0].lines;
    assert_eq!(lines[0].text, b"\xe4\r");
    assert_eq!(lines[1].text, b"\xe4");
    assert_eq!(lines.iter().map(|line| line.has_newline).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn rv_11_garbage_names_the_line() {
    const START: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n";
    let cases = [
        ("hello\n".to_owned(), "line 1 of the patch: expected the header of a file"),
        (format!("{START}@@ -1 +1 @@\n-a\n+b\nhello\n"), "line 7 of the patch: expected"),
        ("diff --git a/x b/y\n".to_owned(), "line 1 of the patch: the header of the file names no"),
        (format!("{START}hello\n"), "line 4 of the patch: unknown line in the header"),
        (format!("{START}@@ -1 +1\n"), "line 4 of the patch: the header of the hunk"),
        (format!("{START}@@ -4294967295 +1 @@\n"), "line 4 of the patch: the header of the hunk"),
        (format!("{START}@@ -1,2 +1 @@\n-a\n"), "line 5 of the patch: the hunk ends before"),
        (format!("{START}@@ -1 +1 @@\n-a\n-b\n"), "line 6 of the patch: the hunk has other lines"),
        (format!("{START}@@ -1 +1 @@\nab\n"), "line 5 of the patch: the hunk has other lines"),
        (format!("{START}@@ -1 +1 @@\n\\ x\n"), "line 5 of the patch: the hunk has other lines"),
        (format!("{START}@@ -1 +1 @@\n-a\n+b"), "line 6 of the patch: the patch ends within"),
        ("diff --git \"a/\\9\" \"b/\\9\"\n".to_owned(), "line 1 of the patch"),
        ("diff --git a/x b/x\nold mode 9\n".to_owned(), "line 2 of the patch"),
        ("diff --git a/x b/x\n--- x\n".to_owned(), "line 2 of the patch: the file name"),
        ("diff --git a/x b/x\nindex 1..z\n".to_owned(), "line 2 of the patch"),
        ("diff --cc x\nindex 1,2..3\n".to_owned(), "line 1 of the patch"),
    ];
    for (text, expected) in cases {
        let error = error(&text);
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
}
