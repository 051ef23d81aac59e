//! The places of lines in later commits, checked against git.

use proptest::prelude::*;

use super::*;

impl Lab {
    /// Commits all changes of the main working directory, and returns the commit.
    fn commit_all(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "next"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn moves(&self, from: &str, to: &str, path: &str) -> LineMoves {
        self.repository().line_moves(from, to, path).expect("git answers")
    }
}

/// Returns the moves between two versions of a file.
fn moves_between(old: &str, new: &str) -> LineMoves {
    let lab = Lab::new();
    write(lab.top.join("f"), old);
    let from = lab.commit_all();
    write(lab.top.join("f"), new);
    let to = lab.commit_all();
    lab.moves(&from, &to, "f")
}

#[test]
fn lines_move_with_changes_before_them() {
    let old: String = (1..=20).map(|n| format!("line {n}\n")).collect();
    let new = old.replace("line 3\n", "").replace("line 10\n", "ten\n");
    let new = new.replace("line 15\n", "line 15\na\nb\n").replace("line 18\n", "x\ny\n");
    let moves = moves_between(&old, &new);
    assert_eq!(moves.path(), Some("f"));
    for (lines, expected) in [
        ((1, 2), Followed::Same { first: 1, last: 2 }),
        ((3, 3), Followed::Changed { first: 2, last: 2 }),
        ((2, 4), Followed::Changed { first: 2, last: 3 }),
        ((4, 9), Followed::Same { first: 3, last: 8 }),
        ((10, 10), Followed::Changed { first: 9, last: 9 }),
        ((9, 11), Followed::Changed { first: 8, last: 10 }),
        ((15, 15), Followed::Same { first: 14, last: 14 }),
        ((15, 16), Followed::Changed { first: 14, last: 17 }),
        ((16, 17), Followed::Same { first: 17, last: 18 }),
        ((18, 18), Followed::Changed { first: 19, last: 20 }),
        ((19, 20), Followed::Same { first: 21, last: 22 }),
    ] {
        assert_eq!(moves.follow(lines.0, lines.1), expected, "{lines:?}");
    }
}

#[test]
fn lines_of_an_emptied_file_have_changed() {
    let moves = moves_between("one\ntwo\n", "");
    assert_eq!(moves.follow(1, 2), Followed::Changed { first: 1, last: 1 });
}

#[test]
fn renamed_and_deleted_files_are_told_apart() {
    let lab = Lab::new();
    let text: String = (1..=40).map(|n| format!("line {n}\n")).collect();
    mkdir(lab.top.join("dir"));
    write(lab.top.join("dir/[a] *.txt"), &text);
    write(lab.top.join("dir/a .txt"), "not the same\n");
    write(lab.top.join("plain"), "plain\nfile\n");
    write(lab.top.join("binary"), "one\n\0\nthree\n");
    let from = lab.commit_all();
    lab.sh("mkdir new; git mv 'dir/[a] *.txt' 'new/n\u{e4}me'; echo changed >'dir/a .txt'; \
        rm plain; mkdir plain; echo other >plain/inner; printf 'zero\\none\\n\\0\\nthree\\n' >binary");
    write(lab.top.join("new/n\u{e4}me"), &format!("first\n{text}"));
    let to = lab.commit_all();
    let moves = lab.moves(&from, &to, "dir/[a] *.txt");
    assert_eq!(moves.path(), Some("new/n\u{e4}me"));
    assert_eq!(moves.follow(5, 6), Followed::Same { first: 6, last: 7 });
    let gone = lab.moves(&from, &to, "plain");
    assert_eq!((gone.path(), gone.follow(1, 1)), (None, Followed::Gone));
    assert_eq!(lab.moves(&from, &to, "binary").follow(3, 3), Followed::Same { first: 4, last: 4 });
    let same = lab.moves(&from, &to, "a.txt");
    assert_eq!(
        (same.path(), same.follow(2, 3)),
        (Some("a.txt"), Followed::Same { first: 2, last: 3 })
    );
    assert_eq!(lab.moves(&to, &to, "binary").follow(1, 1), Followed::Same { first: 1, last: 1 });
}

fn lines() -> impl Strategy<Value = Vec<&'static str>> {
    let line = prop::sample::select(vec!["", "a", "b", "c", "@@ -1 +1 @@", "-x", "+y", "\\ No"]);
    prop::collection::vec(line, 1..24)
}

/// Returns a file, and one that was made of it by removed, changed and added lines.
fn versions() -> impl Strategy<Value = (Vec<&'static str>, Vec<&'static str>)> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..4usize, lines()), 0..4);
    (lines(), edits).prop_map(|(old, edits)| {
        let mut new = old.clone();
        for (at, removed, mut added) in edits {
            let at = at.index(new.len() + 1);
            let end = (at + removed).min(new.len());
            added.truncate(removed);
            drop(new.splice(at..end, added));
        }
        (old, new)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    /// Lines that are said to be the same have the same text, and each line of which git keeps the
    /// text is said to be the same.
    #[test]
    fn lines_are_followed_as_git_moves_them((old, new) in versions(), ends in any::<bool>()) {
        let text = |lines: &[&str]| {
            let text = lines.join("\n");
            if ends && !text.is_empty() { format!("{text}\n") } else { text }
        };
        let (old_text, new_text) = (text(&old), text(&new));
        let moves = moves_between(&old_text, &new_text);
        let (old, new): (Vec<&str>, Vec<&str>) = (old_text.lines().collect(), new_text.lines().collect());
        let mut kept = 0;
        let mut previous = 0;
        for first in 1..=old.len() {
            for last in first..=old.len() {
                let number = |n: usize| u32::try_from(n).expect("short");
                match moves.follow(number(first), number(last)) {
                    Followed::Same { first: there, last: end } => {
                        let (there, end) = (there as usize, end as usize);
                        prop_assert_eq!(&old[first - 1..last], &new[there - 1..end]);
                        if first == last {
                            prop_assert!(there > previous, "in order");
                            (kept, previous) = (kept + 1, there);
                        }
                    }
                    Followed::Changed { first: there, last: end } => {
                        prop_assert!(1 <= there && there <= end);
                        prop_assert!(end as usize <= new.len().max(1));
                    }
                    Followed::Gone => prop_assert!(false, "the file is there"),
                }
            }
        }
        // As many lines are kept as git neither removes nor changes.
        let removed = moves.replaced_lines();
        prop_assert_eq!(kept + removed, old.len());
    }
}
