//! The files that members produce, and the log of the writes that verbs made. Programs also write
//! there directly, so what is found is not trusted: no symbolic link is followed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::files::dirs;
use crate::team::TeamStore;
use model::board::Board;
use model::board::task::Task;
use model::board::workspace::{
    FileFault, WorkspaceFile, WorkspaceMode, WorkspacePath, WorkspaceRules, WorkspaceUse,
    only_task_at,
};
use model::id::{MemberName, TaskId};
use model::mail::scope::ChatName;
use model::members::record::MemberRecord;
use model::time::Timestamp;
use sys::fs::{self, Beneath, EntryBeneath, FsError, LineFile};
use sys::lock::{Gate, LOCK_DEADLINE};

/// Entries of the workspace to look at. Beyond these it counts as full.
const MAX_ENTRIES: usize = 10_000;
/// Largest file that is read, in bytes.
const MAX_READ: u64 = 256 * 1024 * 1024;

/// A line of the log of writes.
#[derive(Debug, Serialize, Deserialize)]
struct WriteNote {
    /// Relative to the workspace.
    path: String,
    by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<TaskId>,
    time: Timestamp,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
}

/// The log entries of one file, combined.
#[derive(Debug, Default)]
struct LoggedWrites {
    by: String,
    at: Timestamp,
    tasks: BTreeSet<TaskId>,
}

/// The files of one conversation, or of the whole workspace if it is shared.
#[derive(Debug, Default)]
pub struct WorkspaceListing {
    pub files: Vec<WorkspaceFile>,
    pub used: WorkspaceUse,
    /// Entries that no verb uses, relative to the workspace: links, devices, names that are not
    /// UTF-8.
    pub unusable: Vec<String>,
    /// False if the workspace has too many entries to look at all of them.
    pub complete: bool,
}

impl TeamStore {
    /// Returns the directory of a conversation; it may be missing.
    pub fn workspace_dir(&self, rules: &WorkspaceRules, chat: &ChatName) -> PathBuf {
        let dir = rules.dir_of(chat);
        let root = self.layout.workspace();
        if dir.as_os_str().is_empty() { root } else { root.join(dir) }
    }

    /// Creates the directory of a conversation, private to the user, and returns it.
    ///
    /// # Errors
    /// [`FsError::Refused`] if it is a symbolic link or not a directory.
    pub fn make_workspace(
        &self,
        rules: &WorkspaceRules,
        chat: &ChatName,
    ) -> Result<PathBuf, StoreError> {
        self.workspace_root()?.make_dirs(rules.dir_of(chat))?;
        Ok(self.workspace_dir(rules, chat))
    }

    /// Lists the files of a conversation. A file that no verb wrote, or that was changed since, is
    /// attributed to the only task that was in progress at the time of its last change.
    pub fn workspace_files(
        &self,
        rules: &WorkspaceRules,
        chat: &ChatName,
    ) -> Result<WorkspaceListing, StoreError> {
        self.workspace_files_in(rules.dir_of(chat))
    }

    /// Returns the files of all conversations that were written during this task.
    pub fn workspace_files_of(&self, task: TaskId) -> Result<Vec<WorkspaceFile>, StoreError> {
        let mut files = self.workspace_files_in(Path::new(""))?.files;
        files.retain(|file| file.tasks.contains(&task));
        Ok(files)
    }

    /// Returns the paths of the files of all conversations, by the tasks during which they were
    /// written.
    pub fn workspace_files_by_task(&self) -> Result<BTreeMap<TaskId, Vec<String>>, StoreError> {
        let mut by_task: BTreeMap<TaskId, Vec<String>> = BTreeMap::new();
        for file in self.workspace_files_in(Path::new(""))?.files {
            for task in &file.tasks {
                by_task.entry(*task).or_default().push(file.path.clone());
            }
        }
        Ok(by_task)
    }

    /// Returns the bytes of a file.
    ///
    /// # Errors
    /// [`FileFault::Missing`], or [`FileFault::Unsafe`] if it is not a regular file of the
    /// workspace.
    pub fn read_workspace_file(
        &self,
        rules: &WorkspaceRules,
        chat: &ChatName,
        name: &WorkspacePath,
    ) -> Result<Vec<u8>, StoreError> {
        let missing = || FileFault::Missing { name: name.clone() };
        let Some(root) = Beneath::open(&self.layout.workspace())? else {
            return Err(missing().into());
        };
        let inside = rules.dir_of(chat).join(name.as_str());
        let read = root.read(&inside, MAX_READ).map_err(|e| fault(name, e))?;
        Ok(read.ok_or_else(missing)?)
    }

    /// Writes a file in one step and logs the writer. Writers of all processes follow each other,
    /// so that together they stay within the limits.
    ///
    /// # Errors
    /// [`StoreError::Workspace`] for a file beyond the limits, or one that is not a regular file.
    /// Nothing is changed then.
    pub fn write_workspace_file(
        &self,
        rules: &WorkspaceRules,
        chat: &ChatName,
        name: &WorkspacePath,
        bytes: &[u8],
        by: &MemberName,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<WorkspaceFile, StoreError> {
        let root = self.workspace_root()?;
        let _gate = self.workspace_gate()?;
        let listed = self.workspace_files(rules, chat)?;
        let dir = rules.dir_of(chat);
        let inside = dir.join(name.as_str());
        let old = root.len(&inside).map_err(|e| fault(name, e))?;
        let used = if listed.complete {
            listed.used
        } else {
            WorkspaceUse { files: usize::MAX, bytes: u64::MAX }
        };
        rules.admit(name, used, bytes.len() as u64, old)?;
        let log = self.layout.workspace_log();
        dirs::make_dirs_of(&log)?;
        root.replace(&inside, bytes, &log).map_err(|e| fault(name, e))?;
        let task = self.board()?.work_of(by);
        // The time is taken after the write: a later change of the file is then recognised.
        let note = WriteNote {
            path: inside.to_string_lossy().into_owned(),
            by: by.to_string(),
            task,
            time: now(),
            deleted: false,
        };
        self.log_write(&note)?;
        let logged = listed.files.into_iter().find(|file| file.name == *name);
        let tasks: BTreeSet<TaskId> =
            logged.into_iter().flat_map(|file| file.tasks).chain(task).collect();
        Ok(WorkspaceFile {
            name: name.clone(),
            path: note.path,
            bytes: bytes.len() as u64,
            modified: note.time,
            by: Some(note.by),
            tasks: tasks.into_iter().collect(),
        })
    }

    /// Deletes a file whose last writer is `writer`.
    ///
    /// # Errors
    /// [`FileFault::Missing`]; [`FileFault::Changed`] if another member has written it meanwhile.
    pub fn delete_workspace_file(
        &self,
        rules: &WorkspaceRules,
        chat: &ChatName,
        name: &WorkspacePath,
        writer: Option<&str>,
        by: &MemberName,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let root = self.workspace_root()?;
        let _gate = self.workspace_gate()?;
        let listed = self.workspace_files(rules, chat)?.files;
        let found = listed.iter().find(|file| file.name == *name);
        if found.and_then(|file| file.by.as_deref()) != writer {
            return Err(FileFault::Changed { name: name.clone() }.into());
        }
        let inside = rules.dir_of(chat).join(name.as_str());
        if !root.remove(&inside).map_err(|e| fault(name, e))? {
            return Err(FileFault::Missing { name: name.clone() }.into());
        }
        let path = inside.to_string_lossy().into_owned();
        self.log_write(&WriteNote {
            path,
            by: by.to_string(),
            task: None,
            time: now,
            deleted: true,
        })
    }

    /// Opens the workspace, which is created if it is missing.
    fn workspace_root(&self) -> Result<Beneath, StoreError> {
        let root = self.layout.workspace();
        // Creates `phalanx/` as well, but never the team's directory.
        dirs::make_dirs_of(&root.join("file"))?;
        let missing =
            || StoreError::NoSuchTeam { name: self.name().to_string(), known: Vec::new() };
        Beneath::open(&root)?.ok_or_else(missing)
    }

    fn workspace_gate(&self) -> Result<Gate, StoreError> {
        let gate = self.layout.gate("workspace");
        dirs::make_dirs_of(&gate)?;
        Ok(Gate::open(&gate, LOCK_DEADLINE)?)
    }

    fn log_write(&self, note: &WriteNote) -> Result<(), StoreError> {
        let line = serde_json::to_vec(note).expect("a note has string keys and can be written");
        let log = self.layout.workspace_log();
        dirs::make_dirs_of(&log)?;
        Ok(fs::append_line(&log, &line)?)
    }

    /// Lists the files below `dir`, a directory of the workspace.
    fn workspace_files_in(&self, dir: &Path) -> Result<WorkspaceListing, StoreError> {
        let mut listing = WorkspaceListing { complete: true, ..WorkspaceListing::default() };
        let Some(root) = Beneath::open(&self.layout.workspace())? else { return Ok(listing) };
        let (entries, complete) = root.list(MAX_ENTRIES)?;
        listing.complete = complete;
        if entries.is_empty() {
            return Ok(listing);
        }
        let (log, board) = (self.logged_writes()?, self.board()?);
        let chats = self.chats_of_members()?;
        for entry in entries {
            listing.used.bytes = listing.used.bytes.saturating_add(entry.len);
            let Ok(inside) = entry.path.strip_prefix(dir) else { continue };
            let name = inside.to_str().and_then(|name| WorkspacePath::parse(name).ok());
            match name.filter(|_| entry.is_file) {
                Some(name) => {
                    listing.used.files += 1;
                    listing.files.push(file(name, &entry, &log, (&board, &chats)));
                }
                None => listing.unusable.push(entry.path.to_string_lossy().into_owned()),
            }
        }
        Ok(listing)
    }

    /// Returns the directory in which each member works, by its name in lower case; empty if all
    /// work in one.
    fn chats_of_members(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let rules = self.settings()?.map(|settings| settings.workspace).unwrap_or_default();
        if rules.scope == WorkspaceMode::Shared {
            return Ok(BTreeMap::new());
        }
        let chat = |record: MemberRecord| {
            let chat =
                record.request.chat.unwrap_or_else(|| ChatName::default().as_str().to_owned());
            (record.name.folded(), chat)
        };
        Ok(self.member_records()?.into_iter().map(chat).collect())
    }

    /// Returns the combined log entries, by path relative to the workspace. Skips lines that do not
    /// parse, as the remains of an interrupted write.
    fn logged_writes(&self) -> Result<BTreeMap<String, LoggedWrites>, StoreError> {
        let mut logged: BTreeMap<String, LoggedWrites> = BTreeMap::new();
        let Some(log) = LineFile::open(&self.layout.workspace_log())? else { return Ok(logged) };
        log.read_lines(0, |line| {
            if let Ok(note) = serde_json::from_slice::<WriteNote>(line) {
                if note.deleted {
                    logged.remove(&note.path);
                } else {
                    let writes = logged.entry(note.path).or_default();
                    (writes.by, writes.at) = (note.by, note.time);
                    writes.tasks.extend(note.task);
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(logged)
    }
}

fn file(
    name: WorkspacePath,
    entry: &EntryBeneath,
    log: &BTreeMap<String, LoggedWrites>,
    (board, chats): (&Board, &BTreeMap<String, String>),
) -> WorkspaceFile {
    let path = entry.path.to_string_lossy().into_owned();
    let works_there = |task: &Task| {
        let of_member = || chats.get(&task.owner_member()?.folded()).map(String::as_str);
        let chat = task.extra.scope.chat.as_deref().or_else(of_member);
        let dir = entry.path.iter().next().filter(|_| !chats.is_empty());
        dir.zip(chat).is_some_and(|(dir, chat)| dir == chat)
    };
    let modified = Timestamp(entry.modified_ms);
    let logged = log.get(&path);
    let mut tasks = logged.map(|writes| writes.tasks.clone()).unwrap_or_default();
    let by = match logged.filter(|writes| modified <= writes.at) {
        Some(writes) => Some(writes.by.clone()),
        None => only_task_at(board, modified, works_there).and_then(|task| {
            tasks.insert(task.id);
            task.owner_name().map(str::to_owned)
        }),
    };
    let tasks = tasks.into_iter().collect();
    WorkspaceFile { name, path, bytes: entry.len, modified, by, tasks }
}

/// Returns the error of a file, so that a link or a device is refused as such.
fn fault(name: &WorkspacePath, error: FsError) -> StoreError {
    match &error {
        FsError::Refused { .. } | FsError::TooLarge { .. } => {
            FileFault::Unsafe { name: name.clone(), reason: error.reason() }.into()
        }
        FsError::Io { .. } => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::thread;

    use super::*;
    use crate::tests::{NOW, command, fresh, who};
    use sys::clock;

    /// Before any file of a test is written.
    const LONG_AGO: Timestamp = Timestamp(1);

    fn now() -> Timestamp {
        Timestamp(clock::now_ms())
    }

    fn path(name: &str) -> WorkspacePath {
        WorkspacePath::parse(name).expect("a path")
    }

    fn write(
        team: &TeamStore,
        chat: &str,
        name: &str,
        by: &str,
    ) -> Result<WorkspaceFile, StoreError> {
        let chat = ChatName::parse(chat).expect("a name");
        let rules = team.settings().expect("settings").expect("own team").workspace;
        team.write_workspace_file(&rules, &chat, &path(name), b"text", &who(by), now)
    }

    fn names(files: &[WorkspaceFile]) -> Vec<&str> {
        files.iter().map(|file| file.name.as_str()).collect()
    }

    #[test]
    fn files_are_linked_to_the_task_and_kept_by_conversation() {
        let (_dir, team) = fresh();
        let rules = WorkspaceRules::default();
        let (one, two) = (ChatName::default(), ChatName::parse("-100:7").expect("a name"));
        assert!(team.workspace_files(&rules, &one).expect("empty").files.is_empty());
        let ids = team.create_tasks(&[command("a"), command("b")], "x", NOW).expect("tasks");
        team.claim(ids[0].id, &who("ann"), false, NOW).expect("claimed");
        write(&team, "default", "a/report.md", "ann").expect("written");
        write(&team, "-100:7", "other.md", "bob").expect("written");
        let listed = team.workspace_files(&rules, &one).expect("listed");
        assert_eq!(names(&listed.files), ["a/report.md"]);
        assert_eq!((listed.used.files, listed.used.bytes), (1, 8), "bytes of both conversations");
        let report = &listed.files[0];
        assert_eq!(
            (report.by.as_deref(), report.tasks.as_slice()),
            (Some("ann"), &[TaskId(1)][..])
        );
        assert_eq!(names(&team.workspace_files(&rules, &two).expect("listed").files), ["other.md"]);
        let of_task = team.workspace_files_of(TaskId(1)).expect("listed");
        assert_eq!(of_task[0].path, "default/a/report.md");
        assert!(team.workspace_files_of(TaskId(2)).expect("listed").is_empty());
        let shared = WorkspaceRules {
            scope: model::board::workspace::WorkspaceMode::Shared,
            ..WorkspaceRules::default()
        };
        let all = team.workspace_files(&shared, &one).expect("listed");
        assert_eq!(names(&all.files), ["-100:7/other.md", "default/a/report.md"]);
    }

    #[test]
    fn file_of_a_program_belongs_to_the_only_task_in_progress() {
        let (_dir, team) = fresh();
        let rules = WorkspaceRules::default();
        let chat = ChatName::default();
        let dir = team.make_workspace(&rules, &chat).expect("made");
        let task = team.create_tasks(&[command("a")], "x", LONG_AGO).expect("tasks")[0].id;
        let by = || {
            let listed = team.workspace_files(&rules, &chat).expect("listed");
            listed
                .files
                .iter()
                .map(|file| (file.by.clone(), file.tasks.clone()))
                .collect::<Vec<_>>()
        };
        fs::write_atomic(&dir.join("direct"), b"x").expect("a file");
        assert_eq!(by(), [(None, vec![])], "no task is in progress");
        team.claim(task, &who("ann"), false, LONG_AGO).expect("claimed");
        assert_eq!(by(), [(Some("ann".to_owned()), vec![task])]);
        write(&team, "default", "direct", "bob").expect("written");
        assert_eq!(by(), [(Some("bob".to_owned()), vec![])], "the verb knows the writer");
        // A logged time before the file's own stands for a later change of the file.
        let (name, bob) = (path("direct"), who("bob"));
        let wrote = team.write_workspace_file(&rules, &chat, &name, b"x", &bob, || LONG_AGO);
        wrote.expect("written");
        assert_eq!(by(), [(Some("ann".to_owned()), vec![task])], "changed since");
    }

    #[test]
    fn hostile_entries_are_refused_and_reported() {
        let (outside, team) = fresh();
        let rules = WorkspaceRules::default();
        let chat = ChatName::default();
        let dir = team.make_workspace(&rules, &chat).expect("made");
        let secret = outside.path().join("secret");
        fs::write_atomic(&secret, b"secret").expect("a file");
        symlink(&secret, dir.join("link")).expect("a link");
        symlink(outside.path(), dir.join("up")).expect("a link");
        for name in ["link", "up/secret", "up/new"] {
            let read = team.read_workspace_file(&rules, &chat, &path(name));
            let unsafe_file =
                |e| matches!(e, Some(StoreError::Workspace(FileFault::Unsafe { .. })));
            assert!(unsafe_file(read.err()), "read {name}");
            assert!(unsafe_file(write(&team, "default", name, "ann").err()), "write {name}");
        }
        let listed = team.workspace_files(&rules, &chat).expect("listed");
        assert_eq!(
            (listed.files.len(), listed.unusable.join(" ")),
            (0, "default/link default/up".to_owned())
        );
        let delete =
            |name| team.delete_workspace_file(&rules, &chat, &path(name), None, &who("ann"), NOW);
        assert!(delete("up/secret").is_err() && delete("missing").is_err());
        delete("link").expect("the link itself");
        let kept = fs::read(&secret, 100).expect("readable");
        assert_eq!(kept.as_deref(), Some(&b"secret"[..]));
        // The directory of a conversation, and the workspace, may be links as well.
        let elsewhere = ChatName::parse("elsewhere").expect("a name");
        symlink(outside.path(), dir.with_file_name("elsewhere")).expect("a link");
        assert!(team.make_workspace(&rules, &elsewhere).is_err());
        assert!(write(&team, "elsewhere", "x", "ann").is_err());
        let root = dir.parent().expect("a parent");
        fs::rename(root, &outside.path().join("moved")).expect("moved");
        symlink(outside.path().join("moved"), root).expect("a link");
        assert!(write(&team, "default", "x", "ann").is_err());
        assert!(team.workspace_files(&rules, &chat).is_err());
    }

    #[test]
    fn concurrent_writers_stay_within_the_number_of_files() {
        let (_dir, team) = fresh();
        team.change_settings(|settings| settings.workspace.max_files = 5).expect("changed");
        let written = thread::scope(|scope| {
            let writers: Vec<_> = (0..12)
                .map(|n| {
                    let team = &team;
                    scope.spawn(move || write(team, "default", &format!("f{n}"), "ann").is_ok())
                })
                .collect();
            writers
                .into_iter()
                .map(|writer| usize::from(writer.join().expect("no panic")))
                .sum::<usize>()
        });
        assert_eq!(written, 5);
        let full = write(&team, "default", "g", "ann").expect_err("full");
        assert!(matches!(full, StoreError::Workspace(FileFault::TooMany { max: 5 })), "{full}");
        write(&team, "other", "g", "ann").expect("another conversation has room");
    }

    #[test]
    fn file_that_changed_hands_is_not_deleted() {
        let (_dir, team) = fresh();
        let rules = WorkspaceRules::default();
        let chat = ChatName::default();
        write(&team, "default", "a", "ann").expect("written");
        write(&team, "default", "a", "bob").expect("written");
        let delete = |writer| {
            team.delete_workspace_file(&rules, &chat, &path("a"), Some(writer), &who("ann"), NOW)
        };
        assert!(matches!(delete("ann"), Err(StoreError::Workspace(FileFault::Changed { .. }))));
        delete("bob").expect("deleted");
        let log = team.logged_writes().expect("log");
        assert!(log.is_empty(), "{log:?}");
    }
}
