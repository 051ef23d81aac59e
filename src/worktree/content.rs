//! Reads files of commits, and contents by their ids.

use super::error::WorktreeError;
use super::git;
use super::repository::Repository;

impl Repository {
    /// Returns the content of a file of a commit; `None` if the commit has no such file. `path` is
    /// relative to the repository.
    ///
    /// # Errors
    /// [`WorktreeError::Exec`] if git cannot be run or times out; [`WorktreeError::Git`] if it
    /// cannot read an object that exists.
    pub fn file_at(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>, WorktreeError> {
        // Ids and modes, so that no part of the path is read as a pattern or an option.
        let list = ["--literal-pathspecs", "ls-tree", "-z", "--full-tree", commit, "--", path];
        let entry = self.git.get("read a commit", &list)?;
        // With a final `/` git lists what is in a directory.
        let named = entry.trim_end_matches('\0').split_once('\t').filter(|of| of.1 == path);
        let mut words = named.unwrap_or_default().0.split(' ').skip(1);
        let (Some("blob"), Some(id)) = (words.next(), words.next()) else { return Ok(None) };
        let output = self.git.call(&["cat-file", "blob", id])?;
        git::take_stdout("read a file of a commit", output).map(Some)
    }

    /// Returns the content with this id.
    ///
    /// # Errors
    /// [`WorktreeError::Exec`] if git cannot be run or times out, or if the content has more than
    /// `largest` bytes; [`WorktreeError::Git`] if there is no such content.
    pub fn blob(&self, id: &str, largest: usize) -> Result<Vec<u8>, WorktreeError> {
        let output = self.git.printing_at_most(largest).call(&["cat-file", "blob", id])?;
        git::take_stdout("read a content", output)
    }
}
