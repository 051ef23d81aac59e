//! Deletes teams. A team disappears in one step. The next deletion, or the next team of its name,
//! finishes one that was interrupted.

use std::path::PathBuf;

use crate::error::StoreError;
use crate::files::layout::TeamLayout;
use crate::team::TeamStore;
use crate::team::ended::EndedTeam;
use crate::team::teams::Store;
use model::id::TeamName;
use model::time::Timestamp;
use sys::{failpoint, fs};

/// Name prefix of directories that are being deleted.
const DELETED: &str = ".deleted-";

impl Store {
    /// Finishes an interrupted deletion of this team. Returns false if there was none.
    pub fn finish_deletion(&self, name: &TeamName) -> Result<bool, StoreError> {
        let team = self.locate(name)?;
        if team.shared.is_some() {
            return Ok(false);
        }
        // A process that creates a team of this name meanwhile clears the remains itself.
        if team.remains()?.is_empty() || !fs::create_dir_exclusive(&team.layout.team_dir())? {
            return Ok(false);
        }
        let cleared = team.clear_remains();
        fs::remove_dir_all(&team.layout.team_dir())?;
        cleared.map(|()| true)
    }

    /// Removes directories that deletions have moved aside, except those of an interrupted
    /// deletion, which are the only sign that the team's tasks are still to be removed. Failures
    /// are ignored; the next call tries again.
    pub(super) fn sweep_deleted(&self) {
        for parent in self.common_dirs() {
            for name in
                fs::list(&parent).unwrap_or_default().iter().filter(|n| n.starts_with(DELETED))
            {
                let ended = self.deleted(name);
                let is_needed = ended.as_ref().is_some_and(|ended| {
                    let team = self.open(&ended.name);
                    fs::exists(&team.layout.tasks()) && !fs::exists(&team.layout.team_dir())
                });
                if !is_needed {
                    let moved = parent.join(name);
                    // A deletion may be under way in another process.
                    let _ = ended.map_or(Ok(()), |ended| ended.keep_files(&moved));
                    let _ = fs::remove_dir_all(&moved);
                }
            }
        }
    }

    /// Returns the team whose directory was moved aside as `.deleted-NAME@MILLISECONDS`.
    fn deleted(&self, dir: &str) -> Option<EndedTeam> {
        EndedTeam::of_dir(&TeamLayout::ended(self.root()), dir.strip_prefix(DELETED)?)
    }
}

impl TeamStore {
    /// Returns the directories that deletions of a team of this name moved aside and did not
    /// remove.
    pub(super) fn remains(&self) -> Result<Vec<(PathBuf, EndedTeam)>, StoreError> {
        let (store, mut found) = (Store::at(&self.root), Vec::new());
        for parent in store.common_dirs() {
            let names = fs::list(&parent)?;
            let ended = names.iter().filter_map(|n| Some((parent.join(n), store.deleted(n)?)));
            found.extend(ended.filter(|(_, ended)| ended.name == self.name));
        }
        Ok(found)
    }

    /// Removes what an earlier team of this name left. This includes its tasks if its deletion was
    /// interrupted before they were removed.
    pub(super) fn clear_remains(&self) -> Result<(), StoreError> {
        let remains = self.remains()?;
        if !remains.is_empty() {
            fs::remove_dir_all(&self.layout.tasks())?;
        }
        for (dir, ended) in remains {
            let _ = ended.keep_files(&dir);
            fs::remove_dir_all(&dir)?;
        }
        Ok(())
    }

    /// Deletes what is left of a team without a team file. Returns false for a team that has one,
    /// or is in a shared store.
    pub fn delete_without_file(&self) -> Result<bool, StoreError> {
        let is_needed = [self.layout.team_file(), self.layout.store_address()];
        if self.shared.is_some() || is_needed.iter().any(|file| fs::exists(file)) {
            return Ok(false);
        }
        self.delete().map(|()| true)
    }

    /// Deletes the team: renames its directories, so that it disappears at once, and then removes
    /// them, except for the journal and the mailbox of the lead, which are kept for some days.
    /// [`Store::finish_deletion`] or the next team of this name completes an interrupted deletion.
    pub fn delete(&self) -> Result<(), StoreError> {
        self.delete_with(self.founded_at(), None)
    }

    /// Returns the time at which the team was created; `None` without a usable team file.
    pub fn founded_at(&self) -> Option<Timestamp> {
        self.team().ok().map(|team| team.created_at)
    }

    /// Deletes the team that was created at this time, and keeps this report beside its journal. If
    /// another process has deleted it meanwhile, a later team of the same name is left alone.
    pub fn delete_with(
        &self,
        founded_at: Option<Timestamp>,
        report: Option<&str>,
    ) -> Result<(), StoreError> {
        let ended = EndedTeam::now(self);
        // The team ends also if nothing of it can be kept.
        let has_copies = report.is_some() || self.shared.is_some();
        let is_claimed = has_copies && ended.claim().unwrap_or(false);
        let _ = ended.keep_copies(self, report);
        let mut is_gone = false;
        let removed = match self.is_another_than(founded_at) {
            true => Ok(()),
            false => self.remove(&ended, &mut is_gone),
        };
        if is_claimed && !is_gone {
            // It lives on, or another process has deleted it and keeps what it was.
            ended.forget()?;
        }
        let _ = Store::at(&self.root).sweep_ended();
        removed
    }

    /// Returns true if the team that was created at this time is gone. A team file that cannot be
    /// read is no sign of that: Claude Code rewrites it in place.
    fn is_another_than(&self, founded_at: Option<Timestamp>) -> bool {
        match (founded_at, self.founded_at()) {
            (Some(then), Some(now)) => then != now,
            // A team that is being created has no team file yet.
            (Some(_), None) => self.shared.is_none() && !fs::exists(&self.layout.team_file()),
            (None, _) => false,
        }
    }

    /// Removes the team, and sets `is_gone` once that has begun.
    fn remove(&self, ended: &EndedTeam, is_gone: &mut bool) -> Result<(), StoreError> {
        let mut aside: Vec<PathBuf> = Vec::new();
        let dirs = [self.layout.team_dir(), self.layout.tasks()];
        dirs.iter().try_for_each(|dir| fs::refuse_link(dir))?;
        if let Some(shared) = &self.shared {
            *is_gone = shared.database.delete_team(shared.name())?;
        }
        for dir in dirs {
            let (Some(parent), true) = (dir.parent(), fs::exists(&dir)) else { continue };
            // A new team has removed the tasks of this one, and has its own.
            if !aside.is_empty() && fs::exists(&self.layout.team_dir()) {
                break;
            }
            let target = parent.join(format!("{DELETED}{ended}"));
            fs::rename(&dir, &target)?;
            *is_gone = true;
            failpoint::hit("delete.moved");
            aside.push(target);
        }
        for dir in aside {
            let _ = ended.keep_files(&dir);
            fs::remove_dir_all(&dir)?;
        }
        Ok(())
    }
}
