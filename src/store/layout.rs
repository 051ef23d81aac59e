//! Every path of a team, once (protocol.md, section 1). Reads and writes nothing.

use std::path::{Path, PathBuf};

use crate::model::id::{Incarnation, MemberName, RequestId, TaskId, TeamName};
use crate::model::topic::Topic;

/// What the names of the files begin with in which members' questions lie; no other request's id does.
pub(super) const QUESTION: &str = "asked.";

/// The paths of one team.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
    team: TeamName,
}

impl Layout {
    pub(super) fn new(root: &Path, team: &TeamName) -> Layout {
        Layout { root: root.to_owned(), team: team.clone() }
    }

    pub(super) fn teams(root: &Path) -> PathBuf {
        root.join("teams")
    }

    pub(super) fn all_tasks(root: &Path) -> PathBuf {
        root.join("tasks")
    }

    /// The users' own profiles.
    pub(super) fn profiles(root: &Path) -> PathBuf {
        root.join("phalanx").join("profiles")
    }

    /// The user's own hooks.
    pub(super) fn hooks(root: &Path) -> PathBuf {
        root.join("phalanx").join("hooks.toml")
    }

    /// Claude's settings of the user.
    pub(super) fn claude_settings(root: &Path) -> PathBuf {
        root.join("settings.json")
    }

    /// The user's agent files.
    pub(super) fn agents(root: &Path) -> PathBuf {
        root.join("agents")
    }

    pub(super) fn team(&self) -> &TeamName {
        &self.team
    }

    pub(super) fn team_dir(&self) -> PathBuf {
        Self::teams(&self.root).join(self.team.as_str())
    }

    pub(super) fn team_file(&self) -> PathBuf {
        self.team_dir().join("config.json")
    }

    pub(super) fn inboxes(&self) -> PathBuf {
        self.team_dir().join("inboxes")
    }

    pub(super) fn inbox(&self, name: &MemberName) -> PathBuf {
        self.inboxes().join(format!("{}.json", name.file_stem()))
    }

    pub(super) fn tasks(&self) -> PathBuf {
        Self::all_tasks(&self.root).join(self.team.as_str())
    }

    pub(super) fn task(&self, id: TaskId) -> PathBuf {
        self.tasks().join(format!("{id}.json"))
    }

    pub(super) fn task_list_lock(&self) -> PathBuf {
        self.tasks().join(".lock")
    }

    pub(super) fn high_water_mark(&self) -> PathBuf {
        self.tasks().join(".highwatermark")
    }

    /// The ids of the tasks that phalanx deleted, one a line.
    pub(super) fn deleted_tasks(&self) -> PathBuf {
        self.ours().join("deleted-tasks")
    }

    /// All that only phalanx knows.
    pub(super) fn ours(&self) -> PathBuf {
        self.team_dir().join("phalanx")
    }

    /// What the team file was last seen to hold.
    pub(super) fn last_team_file(&self) -> PathBuf {
        self.ours().join("config.last.json")
    }

    pub(super) fn settings(&self) -> PathBuf {
        self.ours().join("team.json")
    }

    pub(super) fn lead(&self) -> PathBuf {
        self.ours().join("lead.json")
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.ours().join("journal.jsonl")
    }

    pub(super) fn members(&self) -> PathBuf {
        self.ours().join("members")
    }

    pub(super) fn member(&self, name: &MemberName) -> PathBuf {
        self.members().join(format!("{}.json", name.file_stem()))
    }

    pub(super) fn requests(&self) -> PathBuf {
        self.ours().join("requests")
    }

    pub(super) fn request(&self, id: &RequestId) -> PathBuf {
        self.requests().join(format!("{}.json", id.file_stem()))
    }

    pub(super) fn question(&self, id: &RequestId) -> PathBuf {
        self.requests().join(format!("{QUESTION}{}.json", id.file_stem()))
    }

    pub(super) fn specs(&self) -> PathBuf {
        self.ours().join("specs")
    }

    pub(super) fn spec(&self, incarnation: &Incarnation) -> PathBuf {
        self.specs().join(format!("{incarnation}.json"))
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.ours().join("logs")
    }

    pub(super) fn socket(&self, incarnation: &Incarnation) -> PathBuf {
        self.ours().join("sockets").join(incarnation.as_str())
    }

    pub(super) fn quarantine(&self) -> PathBuf {
        self.ours().join("quarantine")
    }

    /// The ids of the messages that a mailbox's reader has been given.
    pub(super) fn handed(&self, name: &MemberName) -> PathBuf {
        self.ours().join("handed").join(format!("{}.jsonl", name.file_stem()))
    }

    /// What was read long ago and moved out of the mailbox.
    pub(super) fn archive(&self, name: &MemberName) -> PathBuf {
        self.ours().join("archive").join(format!("{}.jsonl", name.file_stem()))
    }

    /// The messages of a member that are too long to be typed.
    pub(super) fn letters(&self, name: &MemberName) -> PathBuf {
        self.ours().join("letters").join(name.file_stem())
    }

    pub(super) fn gates(&self) -> PathBuf {
        self.ours().join("gates")
    }

    /// The flock gate that goes before the lock of one resource. Gates are never deleted while the team lives.
    pub(super) fn gate(&self, resource: &str) -> PathBuf {
        self.gates().join(resource)
    }

    /// Every directory of a team, parents first.
    pub(super) fn all_dirs(&self) -> Vec<PathBuf> {
        let mut dirs = vec![self.team_dir(), self.inboxes(), self.tasks()];
        dirs.extend(self.our_dirs());
        dirs
    }

    /// Those that only phalanx knows of, each after the one that it is in.
    pub(super) fn our_dirs(&self) -> [PathBuf; 7] {
        [
            self.ours(),
            self.members(),
            self.requests(),
            self.specs(),
            self.logs(),
            self.quarantine(),
            self.gates(),
        ]
    }

    /// The directories in which a change means something to a loop.
    pub(super) fn watched(&self) -> Vec<PathBuf> {
        vec![
            self.team_dir(),
            self.inboxes(),
            self.tasks(),
            self.ours(),
            self.members(),
            self.requests(),
        ]
    }

    /// The same for one teammate: the journal and the lead's record mean nothing to it.
    pub(super) fn watched_by_members(&self) -> Vec<PathBuf> {
        vec![self.team_dir(), self.inboxes(), self.tasks(), self.members(), self.requests()]
    }

    /// What tells of changed paths what they are about.
    pub(super) fn topics(&self) -> Topics {
        Topics {
            watched: self.watched(),
            team: self.team_dir(),
            inboxes: self.inboxes(),
            tasks: self.tasks(),
            members: self.members(),
            requests: self.requests(),
            journal: self.journal(),
            settings: self.settings(),
        }
    }
}

/// The directories in which a change means something, made once: a change is told to every watcher of the team.
#[derive(Debug)]
pub(super) struct Topics {
    watched: Vec<PathBuf>,
    team: PathBuf,
    inboxes: PathBuf,
    tasks: PathBuf,
    members: PathBuf,
    requests: PathBuf,
    journal: PathBuf,
    settings: PathBuf,
}

impl Topics {
    /// What a changed path is about; none for locks, gates and temporary files.
    pub(super) fn of(&self, path: &Path) -> Option<Topic> {
        let name = path.file_name()?.to_str()?;
        if self.watched.iter().any(|dir| dir == path) {
            return Some(Topic::Everything);
        }
        if name.starts_with('.') || name.ends_with(".lock") || name.contains(".lock.") {
            return None;
        }
        let parent = path.parent()?;
        match name.strip_suffix(".json") {
            Some("config") if parent == self.team => Some(Topic::Roster),
            Some(stem) if parent == self.inboxes => Some(Topic::Mail(stem.to_owned())),
            Some(_) if parent == self.tasks => Some(Topic::Tasks),
            Some(stem) if parent == self.members => Some(Topic::Member(stem.to_owned())),
            Some(_) if parent == self.requests => Some(Topic::Requests),
            None if path == self.journal => Some(Topic::Journal),
            Some(_) if path == self.settings => Some(Topic::Settings),
            Some(_) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_of_changes() {
        let layout = Layout::new(Path::new("/r"), &TeamName::new("demo").expect("name"));
        let topics = layout.topics();
        let topic = |p: &str| topics.of(Path::new(p));
        assert_eq!(topic("/r/teams/demo/config.json"), Some(Topic::Roster));
        assert_eq!(topic("/r/teams/demo/config.json.lock"), None);
        assert_eq!(topic("/r/teams/demo/inboxes/bob.json"), Some(Topic::Mail("bob".to_owned())));
        assert_eq!(topic("/r/teams/demo/inboxes/.bob.json.x.tmp"), None);
        assert_eq!(topic("/r/tasks/demo/3.json"), Some(Topic::Tasks));
        assert_eq!(topic("/r/tasks/demo/3.json.lock.uuid"), None);
        assert_eq!(
            topic("/r/teams/demo/phalanx/members/bob.json"),
            Some(Topic::Member("bob".to_owned()))
        );
        assert_eq!(topic("/r/teams/demo/phalanx/requests/x.json"), Some(Topic::Requests));
        assert_eq!(topic("/r/teams/demo/phalanx/journal.jsonl"), Some(Topic::Journal));
        assert_eq!(topic("/r/teams/demo/phalanx/team.json"), Some(Topic::Settings));
        assert_eq!(topic("/r/teams/demo/inboxes"), Some(Topic::Everything));
        assert_eq!(topic("/elsewhere/x.json"), None);
    }
}
