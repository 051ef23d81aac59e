//! The journals of teams that have ended, the mailboxes of their leads and their reports, kept for
//! some days in a directory that no other program reads. They are below a directory of each team, at
//! the place that they had in the team.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::StoreError;
use crate::files::document::{self, Durability};
use crate::files::layout::TeamLayout;
use crate::team::TeamStore;
use crate::team::journal::now;
use crate::team::teams::Store;
use model::id::{MemberName, TeamName};
use model::mail::envelope::Envelope;
use model::team::event::Event;
use model::time::Timestamp;
use model::wire::Object;
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
    /// Returns the team as one that ends now.
    pub(super) fn now(team: &TeamStore) -> EndedTeam {
        let (name, dir) = (team.name.clone(), TeamLayout::ended(&team.root));
        let mut ended = EndedTeam { ended_at: now(), name, dir };
        ended.dir.push(ended.to_string());
        ended
    }

    /// Returns the team that a directory of this name belongs to: `NAME@MILLISECONDS`.
    pub(super) fn of_dir(parent: &Path, dir: &str) -> Option<EndedTeam> {
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

    /// Creates its directory, as the only process that does so.
    pub(super) fn claim(&self) -> Result<bool, StoreError> {
        self.dir.parent().map_or(Ok(()), fs::private_dir)?;
        Ok(fs::create_dir_exclusive(&self.dir)?)
    }

    /// Keeps the report of the team. Of a team in a shared store it also keeps the journal and the
    /// mailbox of the lead.
    pub(super) fn keep_copies(
        &self,
        team: &TeamStore,
        report: Option<&str>,
    ) -> Result<(), StoreError> {
        if let Some(report) = report {
            fs::create_new(&self.dir.join(REPORT), report.as_bytes())?;
        }
        if team.shared.is_some() {
            let (kept, lead) = (self.files(), MemberName::lead());
            let messages = team.mailbox(&lead).all()?;
            let entries: Vec<Object> = messages.iter().map(Envelope::to_entry).collect();
            for file in [kept.layout.inbox(&lead), kept.layout.journal()] {
                file.parent().map_or(Ok(()), fs::private_dir)?;
            }
            document::write_new(&kept.layout.inbox(&lead), &entries, Durability::Permanent)?;
            kept.write_events(&team.events()?)?;
        }
        Ok(())
    }

    /// Keeps the journal and the mailbox of the lead, which are in the directory `moved` that is to
    /// be removed. A rename needs no space on the disk.
    pub(super) fn keep_files(&self, moved: &Path) -> Result<(), StoreError> {
        let (kept, lead) = (self.files().layout, MemberName::lead());
        for to in [kept.inbox(&lead), kept.older_journal(), kept.journal()] {
            let Ok(inside) = to.strip_prefix(kept.team_dir()) else { continue };
            let from = moved.join(inside);
            let is_file = fs::about(&from)?.is_some_and(|about| about.kind == FileKind::File);
            if let (Some(parent), true, false) = (to.parent(), is_file, fs::exists(&to)) {
                fs::private_dir(parent)?;
                fs::rename(&from, &to)?;
            }
        }
        Ok(())
    }

    /// Removes what is kept.
    pub(super) fn forget(&self) -> Result<(), StoreError> {
        fs::remove_dir_all(&self.dir)?;
        Ok(())
    }
}

/// The name of its directory.
impl Display for EndedTeam {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.ended_at.0)
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

    /// Returns the team that ended last; `None` if no journal is kept.
    pub fn last_ended(&self) -> Option<EndedTeam> {
        self.ended_teams().ok()?.pop()
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
    pub(super) fn sweep_ended(&self) -> Result<(), StoreError> {
        let ended = self.ended_teams()?;
        let surplus = ended.len().saturating_sub(MAX_KEPT);
        for (nth, team) in ended.iter().enumerate() {
            if nth < surplus || now().since(team.ended_at) > KEEP_MS {
                team.forget()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::team::Team;
    use model::team::event::{EventKind, Note};
    use model::team::settings::Settings;

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
        let going = TeamLayout::teams(dir.path()).join(".deleted-demo@5");
        fs::private_dir(&going).expect("created");
        std::thread::scope(|scope| {
            let found = scope.spawn(|| store.ended_team(&name, Timestamp(u64::MAX)));
            fs::private_dir(&TeamLayout::ended(dir.path()).join("demo@5")).expect("created");
            fs::remove_dir_all(&going).expect("removed");
            let found = found.join().expect("no panic").expect("it is found");
            assert_eq!(found.ended_at, Timestamp(5));
        });
    }

    /// SD-16: the journal is kept also if its deletion was interrupted, or another process sweeps
    /// away what was moved.
    #[test]
    fn sd_16_journal_of_an_interrupted_deletion_is_kept() {
        for next in ["demo", "other"] {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let store = Store::at(dir.path());
            let team = begin(&store, "demo");
            team.record(Note::of(EventKind::Warning)).expect("recorded");
            let moved = TeamLayout::teams(dir.path()).join(".deleted-demo@5");
            fs::rename(&team.layout.team_dir(), &moved).expect("moved");
            fs::remove_dir_all(&team.layout.tasks()).expect("removed");
            begin(&store, next);
            assert!(!fs::exists(&moved));
            let ended = store.ended_team(&team.name, Timestamp(5)).expect("kept");
            assert_eq!(ended.events().expect("readable").len(), 1);
        }
    }

    /// SD-16: of two processes that delete a team, only the one that has removed it keeps a report.
    #[test]
    fn sd_16_second_deletion_keeps_no_report() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = Store::at(dir.path());
        let team = begin(&store, "demo");
        let founded_at = team.founded_at();
        team.delete_with(founded_at, Some("first")).expect("deleted");
        team.delete_with(founded_at, Some("second")).expect("nothing is left");
        let kept = store.ended_teams().expect("readable");
        let reports: Vec<_> = kept.iter().map(|team| team.report().expect("readable")).collect();
        assert_eq!(reports, [Some("first".to_owned())]);
    }

    /// SD-16: a team is not deleted by a process that has begun to delete an earlier one.
    #[test]
    fn sd_16_late_deletion_leaves_the_next_team_alone() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = Store::at(dir.path());
        let name = TeamName::new("demo").expect("a name");
        let create = |at: u64| {
            let file = Team::found(&name, "", "team-lead", "session", "/", Timestamp(at));
            store.create(&name, &file, &Settings::by_hand(8)).expect("a team")
        };
        let earlier = create(1).founded_at();
        store.open(&name).delete().expect("deleted");
        let next = create(2);
        next.delete_with(earlier, Some("late")).expect("nothing of it is left");
        assert_eq!(next.founded_at(), Some(Timestamp(2)));
        let kept = store.ended_teams().expect("readable");
        assert!(kept.iter().all(|team| team.report().expect("readable").is_none()));
    }

    /// SD-14: a team file that becomes unusable during the deletion does not stop it.
    #[test]
    fn sd_14_team_whose_file_breaks_meanwhile_is_deleted() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = Store::at(dir.path());
        let team = begin(&store, "demo");
        let founded_at = team.founded_at();
        let file = team.layout.team_file();
        fs::replace_if(&file, b"{", fs::Sync::Nothing, || true).expect("written");
        team.delete_with(founded_at, Some("all in order")).expect("deleted");
        assert!(!fs::exists(&team.layout.team_dir()));
        assert_eq!(ended(&store), ["demo"]);
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
