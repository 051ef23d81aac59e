//! Links to a team's files in another config root, where a program with another account looks for
//! them.

use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::files::layout::TeamLayout;
use crate::team::TeamStore;
use sys::fs;

impl TeamStore {
    /// Makes the team's files reachable in the config root `other`, by links to its directories.
    /// Returns the path that is in the way, if there is one; the links may be incomplete then.
    pub fn link_into(&self, other: &Path) -> Result<Option<PathBuf>, StoreError> {
        for (own, link) in self.links_in(other) {
            if let Some(parent) = link.parent().filter(|parent| !fs::is_dir(parent)) {
                fs::private_dir(parent)?;
            }
            if !fs::link(&own, &link)? && fs::link_target(&link)?.as_ref() != Some(&own) {
                return Ok(Some(link));
            }
        }
        Ok(None)
    }

    /// Removes the links of [`TeamStore::link_into`], and nothing else.
    pub fn unlink_from(&self, other: &Path) -> Result<(), StoreError> {
        for (own, link) in self.links_in(other) {
            if fs::link_target(&link)?.as_ref() == Some(&own) {
                fs::remove_file(&link)?;
            }
        }
        Ok(())
    }

    /// The team's directories, each with its place in another config root.
    fn links_in(&self, other: &Path) -> [(PathBuf, PathBuf); 2] {
        let there = TeamLayout::new(other, &self.name);
        [(self.layout.team_dir(), there.team_dir()), (self.layout.tasks(), there.tasks())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use model::id::TeamName;
    use model::team::Team;
    use model::team::settings::Settings;
    use model::time::Timestamp;

    #[test]
    fn en_10_links_are_made_and_removed_and_replace_nothing() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = fs::canonical(dir.path()).expect("a path").join("root");
        let other = dir.path().join("other");
        let name = TeamName::new("demo").expect("name");
        let file = Team::found(&name, "", "team-lead", "session", "/", Timestamp(1));
        let team = Store::at(&root).create(&name, &file, &Settings::by_hand(8)).expect("a team");
        for _ in 0..2 {
            assert_eq!(team.link_into(&other).expect("links"), None);
            assert!(fs::exists(&other.join("teams/demo/config.json")));
            assert!(fs::is_dir(&other.join("tasks/demo")));
        }
        team.unlink_from(&other).expect("removed");
        assert_eq!(fs::list(&other.join("teams")).expect("readable"), Vec::<String>::new());
        assert!(team.exists());
        // Another team of that account has the name.
        let taken = other.join("tasks/demo");
        fs::private_dir(&taken).expect("writable");
        assert_eq!(team.link_into(&other).expect("readable"), Some(taken.clone()));
        team.unlink_from(&other).expect("removed");
        assert!(fs::is_dir(&taken) && !fs::exists(&other.join("teams/demo")));
    }
}
