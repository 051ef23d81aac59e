//! The journals of teams that have ended, the mailboxes of their leads and their reports, kept for
//! some days in a directory that no other program reads. They are below a directory of each team, at
//! the place that they had in the team.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::StoreError;
use crate::files::layout::TeamLayout;
use crate::team::TeamStore;
use crate::team::journal::now;
use crate::team::teams::Store;
use model::id::{MemberName, TeamName};
use model::mail::envelope::Envelope;
use model::team::event::Event;
use model::time::Timestamp;
use sys::clock::{self, Deadline};
use sys::fs::{self, FileKind};

/// Time in ms for which a journal is kept.
const KEEP_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// Largest number of journals that are kept.
const MAX_KEPT: usize = 100;

/// Time in which a team is deleted, unless its deletion was interrupted.
const DELETION: Duration = Duration::from_secs(2);
/// Interval of looks meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// Name of the file with the report.
const REPORT: &str = "report.json";
/// Maximum size of this file in bytes.
const MAX_REPORT: u64 = 64 << 20;

/// Largest number of ended teams that an error names.
const MAX_NAMED: usize = 10;

/// A team that has ended, whose journal is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedTeam {
    pub ended_at: Timestamp,
    pub name: TeamName,
    dir: PathBuf,
}

impl EndedTeam {
    /// Returns the team that a directory of this name belongs to: `NAME@MILLISECONDS`.
    fn of_dir(parent: &Path, dir: &str) -> Option<EndedTeam> {
        let (name, ended_at) = dir.split_once('@')?;
        let name = TeamName::existing(name).ok().filter(|found| found.as_str() == name)?;
        let ended_at = Timestamp(ended_at.parse().ok()?);
        Some(EndedTeam { ended_at, name, dir: parent.join(dir) })
    }

    /// Returns all events of its journal.
    pub fn events(&self) -> Result<Vec<Event>, StoreError> {
        self.files().events()
    }

    /// Returns the messages to its lead, oldest first.
    pub fn messages(&self) -> Result<Vec<Envelope>, StoreError> {
        self.files().mailbox(&MemberName::lead()).all()
    }

    /// Returns the report of its end; `None` if none was made.
    pub fn report(&self) -> Result<Option<String>, StoreError> {
        let text = fs::read(&self.dir.join(REPORT), MAX_REPORT)?;
        Ok(text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn files(&self) -> TeamStore {
        Store::at(&self.dir).open(&self.name)
    }
}

impl Store {
    /// Returns the ended teams whose journals are kept, in the order in which they ended.
    pub(crate) fn ended_teams(&self) -> Result<Vec<EndedTeam>, StoreError> {
        let parent = TeamLayout::ended(self.root());
        let names = fs::list(&parent)?;
        let mut found: Vec<EndedTeam> =
            names.iter().filter_map(|name| EndedTeam::of_dir(&parent, name)).collect();
        found.sort_by(|a, b| (a.ended_at, &a.name).cmp(&(b.ended_at, &b.name)));
        Ok(found)
    }

    /// Returns the last team of this name that has ended by then, and whose journal is kept. Waits
    /// for a deletion that is under way.
    ///
    /// # Errors
    /// [`StoreError::NoEndedTeam`] if there is none.
    pub fn ended_team(&self, name: &TeamName, by: Timestamp) -> Result<EndedTeam, StoreError> {
        let deadline = Deadline::after(DELETION);
        while !self.open(name).remains()?.is_empty() && !deadline.expired() {
            clock::sleep(LOOK);
        }
        let kept = self.ended_teams()?;
        let found = kept.iter().rev().find(|team| team.name == *name && team.ended_at <= by);
        found.cloned().ok_or_else(|| {
            let described = |team: &EndedTeam| format!("{} ({})", team.name, team.ended_at.iso());
            let known = kept[kept.len().saturating_sub(MAX_NAMED)..].iter().map(described);
            StoreError::NoEndedTeam { name: name.clone(), known: known.collect() }
        })
    }

    /// Removes the journals that have been kept long enough.
    fn sweep_ended(&self) -> Result<(), StoreError> {
        let ended = self.ended_teams()?;
        let surplus = ended.len().saturating_sub(MAX_KEPT);
        for (nth, team) in ended.iter().enumerate() {
            if nth < surplus || now().since(team.ended_at) > KEEP_MS {
                fs::remove_dir_all(&team.dir)?;
            }
        }
        Ok(())
    }
}

impl TeamStore {
    /// Keeps the journal of this team, the mailbox of its lead and its report, and removes older
    /// ones. The directory of the team was moved to `moved` to be removed. A rename needs no space
    /// on the disk.
    pub(crate) fn keep_journal(
        &self,
        moved: &Path,
        report: Option<&str>,
    ) -> Result<(), StoreError> {
        let team_dir = self.layout.team_dir();
        let dir = TeamLayout::ended(&self.root).join(format!("{}@{}", self.name, now().0));
        let (kept, lead) = (TeamLayout::new(&dir, &self.name), MemberName::lead());
        // First, because another process may sweep away what was moved. It needs space on the disk,
        // so its failure must not stop the renames.
        let reported = report.map_or(Ok(()), |report| {
            fs::private_dir(&dir)?;
            fs::create_new(&dir.join(REPORT), report.as_bytes()).map(drop)
        });
        for (from, to) in [
            (self.layout.inbox(&lead), kept.inbox(&lead)),
            (self.layout.older_journal(), kept.older_journal()),
            (self.layout.journal(), kept.journal()),
        ] {
            let Ok(inside) = from.strip_prefix(&team_dir) else { continue };
            let from = moved.join(inside);
            if fs::about(&from)?.is_none_or(|about| about.kind != FileKind::File) {
                continue;
            }
            if let Some(parent) = to.parent() {
                fs::private_dir(parent)?;
            }
            fs::rename(&from, &to)?;
        }
        reported?;
        Store::at(&self.root).sweep_ended()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::team::Team;
    use model::team::event::{EventKind, Note};
    use model::team::settings::Settings;
    use sys::rand;

    fn begin(store: &Store, name: &str) -> TeamStore {
        let name = TeamName::new(name).expect("a name");
        let file = Team::found(&name, "", "team-lead", "session", "/", Timestamp(1));
        store.create(&name, &file, &Settings::by_hand(8)).expect("a team")
    }

    fn end(store: &Store, name: &str, text: &str) {
        let team = begin(store, name);
        team.record(Note::of(EventKind::Warning).with("text", text)).expect("recorded");
        team.delete().expect("deleted");
    }

    fn ended(store: &Store) -> Vec<String> {
        store.ended_teams().expect("readable").iter().map(|team| team.name.to_string()).collect()
    }

    #[test]
    fn journal_of_an_ended_team_is_kept_for_seven_days() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = Store::at(dir.path());
        assert_eq!(ended(&store), Vec::<String>::new());
        end(&store, "demo", "first");
        end(&store, "demo", "second");
        let teams = store.ended_teams().expect("readable");
        let texts: Vec<String> = teams
            .iter()
            .flat_map(|team| team.events().expect("readable"))
            .map(|event| event.detail["text"].as_str().expect("a text").to_owned())
            .collect();
        assert_eq!(texts, ["first", "second"]);
        assert_eq!(store.teams().expect("readable"), [], "it is no team");

        let parent = TeamLayout::ended(dir.path());
        let at = |ago: u64| parent.join(format!("old@{}", now().minus_ms(ago).0));
        let (within, beyond) = (at(KEEP_MS - 60_000), at(KEEP_MS + 60_000));
        for path in [&within, &beyond, &parent.join("stranger")] {
            fs::private_dir(path).expect("created");
        }
        end(&store, "other", "third");
        assert_eq!(ended(&store), ["old", "demo", "demo", "other"]);
        assert!(fs::exists(&within) && !fs::exists(&beyond));
        assert!(fs::exists(&parent.join("stranger")), "not a kept journal");
    }

    /// SD-16: a team that is being deleted is found by the reader that has seen it vanish.
    #[test]
    fn sd_16_reader_waits_for_the_end_of_a_deletion() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (store, name) = (Store::at(dir.path()), TeamName::new("demo").expect("name"));
        let missing = store.ended_team(&name, Timestamp(u64::MAX));
        assert!(matches!(missing, Err(StoreError::NoEndedTeam { .. })));
        let going = TeamLayout::teams(dir.path()).join(format!(".deleted-demo-{}", rand::uuid()));
        fs::private_dir(&going).expect("created");
        std::thread::scope(|scope| {
            let found = scope.spawn(|| store.ended_team(&name, Timestamp(u64::MAX)));
            fs::private_dir(&TeamLayout::ended(dir.path()).join("demo@5")).expect("created");
            fs::remove_dir_all(&going).expect("removed");
            let found = found.join().expect("no panic").expect("it is found");
            assert_eq!(found.ended_at, Timestamp(5));
        });
    }

    #[test]
    fn journal_that_cannot_be_kept_does_not_stop_the_deletion() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = Store::at(dir.path());
        fs::private_dir(&dir.path().join("phalanx")).expect("created");
        fs::create_new(&TeamLayout::ended(dir.path()), b"a file").expect("written");
        end(&store, "demo", "lost");
        assert_eq!(store.teams().expect("readable"), []);
        begin(&store, "demo").delete().expect("deleted");
    }
}
