//! The conflicts of a merge, as git would leave them in the files, made without a checkout.

use serde::Serialize;

use super::error::WorktreeError;
use super::git;
use super::repository::Repository;
use model::team::worktree::Checkout;
use model::text;

/// Lines around a conflict that are shown.
const CONTEXT: usize = 3;
/// Largest file of which conflicts are shown, in bytes.
const LARGEST: usize = 1024 * 1024;
/// Maximum number of lines of a conflict that are shown.
const LINES: usize = 60;
/// Maximum number of conflicts of a file that are shown.
const HUNKS: usize = 20;

/// A file that a merge leaves in conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConflictedFile {
    pub path: String,
    /// The reason in git's words, such as `CONFLICT (content): Merge conflict in a.rs`.
    pub reason: String,
    /// The lines of each conflict between its markers, with some around it. Empty for conflicts
    /// that have no lines, such as those of binary or deleted files.
    pub hunks: Vec<ConflictHunk>,
}

/// A conflict in a file. The lines are fit to be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConflictHunk {
    /// Number of the first line in the file with markers, from 1.
    pub first: usize,
    pub lines: Vec<String>,
}

impl Repository {
    /// Returns the files in which `head` conflicts with the commit of the main working directory;
    /// `from` names it in the markers.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git cannot try the merge.
    pub fn conflicted_files(
        &self,
        checkout: &Checkout,
        head: &str,
        from: &str,
    ) -> Result<Vec<ConflictedFile>, WorktreeError> {
        let base = self.landed_base(checkout, head)?.map(|base| format!("--merge-base={base}"));
        let mut args = vec!["merge-tree", "--write-tree", "--name-only", "--messages", "-z"];
        args.extend(base.as_deref());
        args.extend(["HEAD", head]);
        let output = self.git.call(&args)?;
        if output.code == Some(0) {
            return Ok(Vec::new());
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut parts = text.split('\0').map(str::to_owned);
        let (Some(1), Some(tree)) = (output.code, parts.next().filter(|tree| !tree.is_empty()))
        else {
            return Err(git::refused("try the merge", &output));
        };
        let paths: Vec<String> = parts.by_ref().take_while(|path| !path.is_empty()).collect();
        let reasons = reasons(parts);
        let names = [self.main_name()?, text::line(from)];
        paths
            .into_iter()
            .map(|path| {
                let content = self.file_at(&tree, &path)?.filter(|of| of.len() <= LARGEST);
                let hunks = content.map(|of| hunks(&of, &names)).unwrap_or_default();
                let reason = reasons.iter().find(|(of, _)| of.contains(&path));
                let reason = reason.map(|(_, words)| text::line(words.trim())).unwrap_or_default();
                Ok(ConflictedFile { path, reason, hunks })
            })
            .collect()
    }
}

/// Reads the messages of `merge-tree -z`: the paths of each and its words. Those about merges
/// without a conflict are left out.
fn reasons(mut parts: impl Iterator<Item = String>) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    while let Some(count) = parts.next().and_then(|count| count.parse().ok()) {
        let paths: Vec<String> = parts.by_ref().take(count).collect();
        let (Some(kind), Some(words)) = (parts.next(), parts.next()) else { break };
        if kind.starts_with("CONFLICT") {
            found.push((paths, words));
        }
    }
    found
}

/// Finds the conflicts in a file with markers. `names` replace the ids of the two sides.
fn hunks(content: &[u8], names: &[String; 2]) -> Vec<ConflictHunk> {
    let content = String::from_utf8_lossy(content);
    let lines: Vec<&str> = content.lines().collect();
    let mut hunks = Vec::new();
    let mut at = 0;
    while let Some(begin) = position(&lines, at, "<<<<<<< ") {
        let Some(end) = position(&lines, begin, ">>>>>>> ") else { break };
        let first = begin.saturating_sub(CONTEXT).max(at);
        let last = (end + CONTEXT).min(lines.len() - 1);
        let shown = (first..=last).map(|at| match at {
            at if at == begin => format!("<<<<<<< {}", names[0]),
            at if at == end => format!(">>>>>>> {}", names[1]),
            at => text::line(lines[at]),
        });
        let mut shown: Vec<String> = shown.take(LINES).collect();
        if let more @ 1.. = (last + 1 - first).saturating_sub(LINES) {
            shown.push(format!("… {more} more lines"));
        }
        hunks.push(ConflictHunk { first: first + 1, lines: shown });
        at = end + 1;
        if hunks.len() == HUNKS {
            break;
        }
    }
    hunks
}

fn position(lines: &[&str], from: usize, start: &str) -> Option<usize> {
    (from..lines.len()).find(|at| lines[*at].starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_found_with_lines_around_them() {
        let content = b"1\n2\n3\n4\n<<<<<<< 0a\nours\n=======\ntheirs\n>>>>>>> 0b\n5\n<<<<<<< 0a\n=======\nx\x1b\n>>>>>>> 0b\n";
        let found = hunks(content, &["main".to_owned(), "demo-ada".to_owned()]);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].first, found[1].first), (2, 10));
        let expected = [
            "2",
            "3",
            "4",
            "<<<<<<< main",
            "ours",
            "=======",
            "theirs",
            ">>>>>>> demo-ada",
            "5",
            "<<<<<<< 0a",
            "=======",
        ];
        assert_eq!(found[0].lines, expected);
        assert!(found[1].lines.iter().all(|line| !line.contains('\u{1b}')));
        assert_eq!(hunks(b"<<<<<<< 0a\nno end\n", &[String::new(), String::new()]), []);
    }

    #[test]
    fn only_conflicts_have_a_reason() {
        let parts = "1\0a.rs\0Auto-merging\0Auto-merging a.rs\n\x001\0a.rs\0CONFLICT (contents)\0CONFLICT (content): x\n\x00";
        let found = reasons(parts.split('\0').map(str::to_owned));
        let expected = (vec!["a.rs".to_owned()], "CONFLICT (content): x\n".to_owned());
        assert_eq!(found, [expected]);
    }
}
