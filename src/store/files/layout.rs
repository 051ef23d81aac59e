//! The paths of a team's files. No other module builds them, and this one does no I/O.

use std::path::{Path, PathBuf};

use model::id::{Incarnation, MemberName, RequestId, TaskId, TeamName};
use model::topic::Topic;

/// Prefix of the names of question files. No id of another request starts with it.
pub(crate) const QUESTION: &str = "asked.";

#[derive(Debug, Clone)]
pub(crate) struct TeamLayout {
    root: PathBuf,
    team: TeamName,
}

impl TeamLayout {
    pub(crate) fn new(root: &Path, team: &TeamName) -> TeamLayout {
        TeamLayout { root: root.to_owned(), team: team.clone() }
    }

    pub(crate) fn teams(root: &Path) -> PathBuf {
        root.join("teams")
    }

    pub(crate) fn all_tasks(root: &Path) -> PathBuf {
        root.join("tasks")
    }

    /// The user's own profiles.
    pub(crate) fn profiles(root: &Path) -> PathBuf {
        root.join("phalanx").join("profiles")
    }

    /// The user's own templates of manifests.
    pub(crate) fn templates(root: &Path) -> PathBuf {
        root.join("phalanx").join("templates")
    }

    pub(crate) fn hooks(root: &Path) -> PathBuf {
        root.join("phalanx").join("hooks.toml")
    }

    pub(crate) fn watch_settings(root: &Path) -> PathBuf {
        root.join("phalanx").join("watch.toml")
    }

    pub(crate) fn hosts(root: &Path) -> PathBuf {
        root.join("phalanx").join("hosts.toml")
    }

    /// The id of this machine, if the system has none.
    pub(crate) fn machine(root: &Path) -> PathBuf {
        root.join("phalanx").join("machine")
    }

    /// The journals of teams that have ended.
    pub(crate) fn ended(root: &Path) -> PathBuf {
        root.join("phalanx").join("ended")
    }

    /// The sockets of the brokers of shared stores.
    pub(crate) fn broker_dir(root: &Path) -> PathBuf {
        root.join("phalanx").join("store")
    }

    /// The sockets of the connections to hosts.
    pub(crate) fn ssh_dir(root: &Path) -> PathBuf {
        root.join("phalanx").join("ssh")
    }

    /// The user's settings of Claude Code.
    pub(crate) fn claude_settings(root: &Path) -> PathBuf {
        root.join("settings.json")
    }

    pub(crate) fn agents(root: &Path) -> PathBuf {
        root.join("agents")
    }

    pub(crate) fn team(&self) -> &TeamName {
        &self.team
    }

    pub(crate) fn team_dir(&self) -> PathBuf {
        Self::teams(&self.root).join(self.team.as_str())
    }

    pub(crate) fn team_file(&self) -> PathBuf {
        self.team_dir().join("config.json")
    }

    pub(crate) fn inboxes(&self) -> PathBuf {
        self.team_dir().join("inboxes")
    }

    pub(crate) fn inbox(&self, name: &MemberName) -> PathBuf {
        self.inboxes().join(format!("{}.json", name.file_stem()))
    }

    pub(crate) fn tasks(&self) -> PathBuf {
        Self::all_tasks(&self.root).join(self.team.as_str())
    }

    pub(crate) fn task(&self, id: TaskId) -> PathBuf {
        self.tasks().join(format!("{id}.json"))
    }

    pub(crate) fn task_list_lock(&self) -> PathBuf {
        self.tasks().join(".lock")
    }

    /// The files of several changes of the board, before they are committed.
    pub(crate) fn staged_batch(&self) -> PathBuf {
        self.tasks().join(".batch.new")
    }

    /// The files of several changes of the board that are committed and not yet published.
    pub(crate) fn committed_batch(&self) -> PathBuf {
        self.tasks().join(".batch")
    }

    pub(crate) fn high_water_mark(&self) -> PathBuf {
        self.tasks().join(".highwatermark")
    }

    /// The time at which a member last looked at the board.
    pub(crate) fn looked_at(&self, who: &MemberName) -> PathBuf {
        self.ours().join("board").join(format!("{}.looked", who.file_stem()))
    }

    /// The events of tasks.
    pub(crate) fn task_log(&self) -> PathBuf {
        self.ours().join("board").join("events.jsonl")
    }

    /// The ids of the tasks that phalanx deleted, one per line.
    pub(crate) fn deleted_tasks(&self) -> PathBuf {
        self.ours().join("deleted-tasks")
    }

    /// The directory of files that only phalanx uses.
    pub(crate) fn ours(&self) -> PathBuf {
        self.team_dir().join("phalanx")
    }

    /// The directory of files about the task board.
    pub(crate) fn board(&self) -> PathBuf {
        self.ours().join("board")
    }

    /// The parsed task files of a large board, a cache.
    pub(crate) fn board_index(&self) -> PathBuf {
        self.board().join("index")
    }

    /// The team file's content as phalanx last saw it whole.
    pub(crate) fn last_team_file(&self) -> PathBuf {
        self.ours().join("config.last.json")
    }

    pub(crate) fn settings(&self) -> PathBuf {
        self.ours().join("team.json")
    }

    /// The address of the shared store that has the team, readable by the user only.
    pub(crate) fn store_address(&self) -> PathBuf {
        self.ours().join("store")
    }

    pub(crate) fn lead(&self) -> PathBuf {
        self.ours().join("lead.json")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.ours().join("journal.jsonl")
    }

    /// The journal before the current one, which was renamed when it was full.
    pub(crate) fn older_journal(&self) -> PathBuf {
        self.ours().join("journal.1.jsonl")
    }

    pub(crate) fn members(&self) -> PathBuf {
        self.ours().join("members")
    }

    pub(crate) fn member(&self, name: &MemberName) -> PathBuf {
        self.members().join(format!("{}.json", name.file_stem()))
    }

    pub(crate) fn requests(&self) -> PathBuf {
        self.ours().join("requests")
    }

    pub(crate) fn request(&self, id: &RequestId) -> PathBuf {
        self.requests().join(format!("{}.json", id.file_stem()))
    }

    pub(crate) fn question(&self, id: &RequestId) -> PathBuf {
        self.requests().join(format!("{QUESTION}{}.json", id.file_stem()))
    }

    pub(crate) fn reviews(&self) -> PathBuf {
        self.ours().join("reviews")
    }

    pub(crate) fn review(&self, key: &str) -> PathBuf {
        self.reviews().join(format!("{key}.json"))
    }

    pub(crate) fn specs(&self) -> PathBuf {
        self.ours().join("specs")
    }

    pub(crate) fn spec(&self, incarnation: &Incarnation) -> PathBuf {
        self.specs().join(format!("{incarnation}.json"))
    }

    /// The environment of a member's program.
    pub(crate) fn environment(&self, name: &MemberName) -> PathBuf {
        self.specs().join(format!("{}.env", name.file_stem()))
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.ours().join("logs")
    }

    pub(crate) fn socket(&self, incarnation: &Incarnation) -> PathBuf {
        self.ours().join("sockets").join(incarnation.as_str())
    }

    pub(crate) fn quarantine(&self) -> PathBuf {
        self.ours().join("quarantine")
    }

    /// The ids of the messages that a mailbox's reader was given.
    pub(crate) fn deliveries(&self, name: &MemberName) -> PathBuf {
        self.all_deliveries().join(format!("{}.jsonl", name.file_stem()))
    }

    /// The directory of these records for all mailboxes.
    pub(crate) fn all_deliveries(&self) -> PathBuf {
        self.ours().join("handed")
    }

    /// The tasks as they were when the files of this host and the shared store were equal.
    pub(crate) fn bridge(&self) -> PathBuf {
        self.ours().join("bridge")
    }

    /// Read messages that were moved out of the mailbox.
    pub(crate) fn archive(&self, name: &MemberName) -> PathBuf {
        self.ours().join("archive").join(format!("{}.jsonl", name.file_stem()))
    }

    /// The messages of a member that are too long to be typed into its terminal.
    pub(crate) fn spilled_bodies(&self, name: &MemberName) -> PathBuf {
        self.ours().join("letters").join(name.file_stem())
    }

    /// The handoffs from other teams.
    pub(crate) fn handoffs(&self) -> PathBuf {
        self.ours().join("handoffs")
    }

    /// The ids of the handoffs about which the lead got its message. Names of files of handoffs
    /// contain a second dot.
    pub(crate) fn notified_handoffs(&self) -> PathBuf {
        self.handoffs().join("notified.jsonl")
    }

    /// The files that members produce.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.ours().join("workspace")
    }

    /// The log of the writes of verbs to the workspace.
    pub(crate) fn workspace_log(&self) -> PathBuf {
        self.ours().join("board").join("files.jsonl")
    }

    pub(crate) fn gates(&self) -> PathBuf {
        self.ours().join("gates")
    }

    /// The flock file of one resource, acquired before its lock directory. It is never deleted
    /// while the team exists.
    pub(crate) fn gate(&self, resource: &str) -> PathBuf {
        self.gates().join(resource)
    }

    /// All directories of the team, parents first.
    pub(crate) fn all_dirs(&self) -> Vec<PathBuf> {
        let mut dirs = vec![self.team_dir(), self.inboxes(), self.tasks()];
        dirs.extend(self.our_dirs());
        dirs
    }

    /// The directories that only phalanx uses, parents first.
    pub(crate) fn our_dirs(&self) -> [PathBuf; 7] {
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

    /// The directories to watch for changes of the team.
    pub(crate) fn watched(&self) -> Vec<PathBuf> {
        vec![
            self.team_dir(),
            self.inboxes(),
            self.tasks(),
            self.ours(),
            self.members(),
            self.requests(),
        ]
    }

    /// The directories for a teammate to watch, which needs neither the journal nor the lead's
    /// record.
    pub(crate) fn watched_by_members(&self) -> Vec<PathBuf> {
        vec![self.team_dir(), self.inboxes(), self.tasks(), self.members(), self.requests()]
    }

    /// Returns the mapping from changed paths to topics.
    pub(crate) fn topics(&self) -> Topics {
        Topics {
            watched: self.watched(),
            team: self.team_dir(),
            inboxes: self.inboxes(),
            tasks: self.tasks(),
            members: self.members(),
            requests: self.requests(),
            journals: [self.journal(), self.older_journal()],
            settings: self.settings(),
        }
    }
}

/// Maps changed paths to topics. The paths are built once, because every watcher of the team maps
/// every change.
#[derive(Debug)]
pub(crate) struct Topics {
    watched: Vec<PathBuf>,
    team: PathBuf,
    inboxes: PathBuf,
    tasks: PathBuf,
    members: PathBuf,
    requests: PathBuf,
    journals: [PathBuf; 2],
    settings: PathBuf,
}

impl Topics {
    /// Returns the topic of a changed path; `None` for locks, gates and temporary files.
    pub(crate) fn topic(&self, path: &Path) -> Option<Topic> {
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
            Some(stem) if parent == self.requests => Some(Topic::Request(stem.to_owned())),
            None if self.journals.iter().any(|file| file == path) => Some(Topic::Journal),
            Some(_) if path == self.settings => Some(Topic::Settings),
            Some(_) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_paths_map_to_topics() {
        let layout = TeamLayout::new(Path::new("/r"), &TeamName::new("demo").expect("name"));
        let topics = layout.topics();
        let topic = |p: &str| topics.topic(Path::new(p));
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
        assert_eq!(
            topic("/r/teams/demo/phalanx/requests/x.json"),
            Some(Topic::Request("x".to_owned()))
        );
        assert_eq!(topic("/r/teams/demo/phalanx/journal.jsonl"), Some(Topic::Journal));
        assert_eq!(topic("/r/teams/demo/phalanx/journal.1.jsonl"), Some(Topic::Journal));
        assert_eq!(topic("/r/teams/demo/phalanx/team.json"), Some(Topic::Settings));
        assert_eq!(topic("/r/teams/demo/inboxes"), Some(Topic::Everything));
        assert_eq!(topic("/elsewhere/x.json"), None);
    }
}
