//! Differences by words between a removed line and the added line that replaces it.

use std::ops::Range;
use std::time::Instant;

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// Longer lines are not compared.
const LONGEST: usize = 2000;

/// The bytes of both lines that differ.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct WordChanges {
    pub(crate) old: Vec<Range<usize>>,
    pub(crate) new: Vec<Range<usize>>,
}

/// Compares two lines. Returns `None` if a line is too long, or if less than two fifths of both is
/// the same. After the deadline, the rest of a comparison counts as different.
pub(crate) fn compare(old: &[u8], new: &[u8], deadline: Option<Instant>) -> Option<WordChanges> {
    if old.len().max(new.len()) > LONGEST {
        return None;
    }
    let (old_words, new_words) = (words(old), words(new));
    let slices = |line, words: &[Range<usize>]| -> Vec<&[u8]> {
        words.iter().map(|word| &<[u8]>::as_ref(line)[word.clone()]).collect()
    };
    let (old_slices, new_slices) = (slices(old, &old_words), slices(new, &new_words));
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old_slices, &new_slices, deadline);
    let mut changes = WordChanges::default();
    let mut same = 0;
    for op in ops {
        if let DiffOp::Equal { old_index, len, .. } = op {
            let equal = &old_slices[old_index..old_index + len];
            same += equal.iter().map(|word| visible(word)).sum::<usize>();
        } else {
            changes.old.extend(bytes(&old_words, op.old_range()));
            changes.new.extend(bytes(&new_words, op.new_range()));
        }
    }
    (same * 5 >= visible(old) + visible(new)).then_some(changes)
}

/// Returns the number of bytes that are not white space.
fn visible(text: &[u8]) -> usize {
    text.iter().filter(|byte| !byte.is_ascii_whitespace()).count()
}

/// Returns the bytes of consecutive words.
fn bytes(words: &[Range<usize>], range: Range<usize>) -> Option<Range<usize>> {
    let (first, last) = (words.get(range.start)?, words.get(range.end.checked_sub(1)?)?);
    (!range.is_empty()).then_some(first.start..last.end)
}

/// Splits a line into words, white space and single punctuation marks. A byte that is not ASCII
/// belongs to a word, so no character is split.
fn words(line: &[u8]) -> Vec<Range<usize>> {
    let class = |byte: u8| match byte {
        b'_' | 0x80.. => 1,
        byte if byte.is_ascii_alphanumeric() => 1,
        byte if byte.is_ascii_whitespace() => 2,
        _ => 0,
    };
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, byte) in line.iter().enumerate() {
        match found.last_mut() {
            Some(last) if class(*byte) != 0 && class(line[at - 1]) == class(*byte) => {
                last.end = at + 1;
            }
            _ => found.push(at..at + 1),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_words_are_found() {
        let changes = compare(b"let t = env(\"A\").unwrap();", b"let t = env(\"A\")?;", None);
        let changes = changes.expect("the lines are alike");
        assert_eq!((changes.old[0].clone(), changes.old.len()), (16..25, 1));
        assert_eq!((changes.new[0].clone(), changes.new.len()), (16..17, 1));
    }

    #[test]
    fn long_and_unlike_lines_are_not_compared() {
        assert_eq!(compare(&[b'a'; 2001], b"a", None), None);
        assert_eq!(compare(b"alpha beta", b"gamma delta", None), None);
        let changes = compare("näm a".as_bytes(), "näm b".as_bytes(), None).expect("alike");
        assert_eq!((changes.old[0].clone(), changes.new[0].clone()), (5..6, 5..6));
    }
}
