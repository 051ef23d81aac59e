//! Git worktrees of members: the requested branch, the team's settings, and the worktrees created.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_with::skip_serializing_none;

use crate::board::task::TaskAction;
use crate::digest;
use crate::id::{HostName, MemberName, TaskId};
use crate::value::{
    Argv, As, CheckedValue, NonBlank, checked, inline_schema, parse_non_blank, parse_text,
    text_types,
};

/// The branch requested for a member's worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorktreeRequest {
    /// A new branch named after the team and the member.
    Own,
    /// This branch, created if it does not exist.
    Branch(String),
}

impl WorktreeRequest {
    /// Returns the branch of a worktree that is named `own`.
    pub fn branch<'a>(&'a self, own: &'a str) -> &'a str {
        match self {
            WorktreeRequest::Own => own,
            WorktreeRequest::Branch(branch) => branch,
        }
    }
}

/// The worktree that a member asks for: `true`, or the name of a branch.
#[derive(Debug)]
pub struct WorktreeKey(Option<WorktreeRequest>);

inline_schema!(WorktreeKey, { "type": ["boolean", "string"] });

impl CheckedValue for WorktreeKey {
    type Value = Option<WorktreeRequest>;

    fn into_value(self) -> Option<WorktreeRequest> {
        self.0
    }
}

impl<'de> Deserialize<'de> for WorktreeKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WorktreeKey, D::Error> {
        deserializer.deserialize_any(WorktreeVisitor)
    }
}

struct WorktreeVisitor;

impl Visitor<'_> for WorktreeVisitor {
    type Value = WorktreeKey;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("true, false or the name of a branch")
    }

    fn visit_bool<E: Error>(self, own: bool) -> Result<WorktreeKey, E> {
        Ok(WorktreeKey(own.then_some(WorktreeRequest::Own)))
    }

    fn visit_unit<E: Error>(self) -> Result<WorktreeKey, E> {
        self.visit_bool(false)
    }

    fn visit_str<E: Error>(self, branch: &str) -> Result<WorktreeKey, E> {
        // Some callers have only texts.
        if let Ok(own) = branch.parse() {
            return self.visit_bool(own);
        }
        let branch = checked(parse_non_blank(branch), check_branch).map_err(E::custom)?;
        Ok(WorktreeKey(Some(WorktreeRequest::Branch(branch))))
    }
}

/// Settings for the worktrees of a team (`[worktree]` in the manifest).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "worktree", deny_unknown_fields)]
pub struct Rules {
    /// Directory of the worktrees, relative to the repository.
    #[serde(skip_serializing_if = "Option::is_none", with = "As::<Option<NonBlank>>")]
    #[schemars(extend("default" = DIR))]
    pub dir: Option<String>,
    /// Revision that new branches start from, instead of the commit that the caller has checked
    /// out. A member may name another one.
    #[serde(skip_serializing_if = "Option::is_none", with = "As::<Option<Revision>>")]
    pub base: Option<String>,
    /// Files that git does not track and the member needs, such as `.env`. They are copied from the
    /// caller's checkout, else from the repository's main one, unless the worktree contains them.
    /// Ignored files that `.worktreeinclude` names are copied as well.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Vec<InsidePath>>")]
    pub copy: Vec<String>,
    /// A command that runs in a new worktree before its member starts, for at most ten minutes.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Argv>")]
    pub setup: Vec<String>,
}

text_types! {
    /// A revision that git resolves to a commit.
    pub Revision(String) = |text| checked(parse_non_blank(text), check_revision);
    /// The path of a file inside the repository.
    pub InsidePath(String) = |text| checked(parse_text(text), check_inside);
}

/// Default parent directory of worktrees, relative to the repository.
pub const DIR: &str = ".worktrees";

/// A worktree that phalanx created. All paths are absolute.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkout {
    /// The repository's main working directory.
    pub repository: String,
    pub path: String,
    pub branch: String,
    /// Commit that the worktree started from.
    pub base: String,
    /// The branch was created for the worktree and is deleted with it.
    pub new_branch: bool,
    /// The branch or revision that a new branch started from.
    pub from: Option<String>,
    /// It has not been made completely yet, and no member has worked in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unfinished: bool,
    /// The machine that has `repository`; `None` in a team of files.
    pub origin: Option<HostName>,
    /// The copy of `repository` that the worktree belongs to, if it is on another host.
    pub copy: Option<RepositoryCopy>,
    /// Its landings that were not taken back, the last one at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "read_landings")]
    pub landed: Vec<LandedWork>,
    /// A landing of it, or the taking back of one, that has begun.
    pub landing: Option<LandingIntent>,
    /// The last commit of its pull request, if the forge has merged that.
    pub merged: Option<String>,
}

/// Reads a list of landings. Earlier versions kept the last one alone.
fn read_landings<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<LandedWork>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Landings {
        Last(LandedWork),
        All(Vec<LandedWork>),
    }
    Ok(match Landings::deserialize(reader)? {
        Landings::Last(landed) => vec![landed],
        Landings::All(all) => all,
    })
}

/// The form in which commits of a worktree land on the branch of the main working directory.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum LandingKind {
    /// As they are; with a merge commit unless the branch has no others.
    Merge,
    /// As one commit.
    Squash,
    /// As copies on top of the branch, one for each.
    Rebase,
}

/// Commits that have landed. All are ids of commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandedWork {
    /// The last commit of the worktree that has landed.
    pub head: String,
    /// The branch of the main working directory before it.
    pub old: String,
    /// That branch after it.
    pub new: String,
    pub kind: LandingKind,
    /// The name of that branch; `None` for a detached HEAD, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// A landing that has begun, or the taking back of one. It is recorded before git changes anything,
/// so that the next process can finish what a killed one has left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandingIntent {
    pub work: LandedWork,
    /// The work is taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_back: bool,
    /// The task of the work, and the action that ends it once the work has landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<(TaskId, TaskAction)>,
    pub by: MemberName,
    /// The id of its event in the journal.
    pub event: String,
}

/// Maximum number of landings of a worktree that are kept.
const LANDINGS: usize = 200;

impl Checkout {
    /// Returns its landings, the last one first. The first may not have ended.
    pub fn landings(&self) -> impl Iterator<Item = &LandedWork> {
        let begun = self.landing.iter().map(|intent| &intent.work);
        begun.chain(self.landed.iter().rev())
    }

    /// Ends a landing or the taking back of one. `is_on_branch` is true if the branch has the work
    /// now.
    pub fn end_landing(&mut self, work: &LandedWork, is_on_branch: bool) {
        self.landing = None;
        self.landed.retain(|other| other.new != work.new);
        if is_on_branch {
            self.landed.push(work.clone());
        }
        self.landed.drain(..self.landed.len().saturating_sub(LANDINGS));
    }

    /// Returns the machine that has the worktree; `None` in a team of files.
    pub fn host(&self) -> Option<&HostName> {
        self.copy.as_ref().map(|copy| &copy.host).or(self.origin.as_ref())
    }

    /// Returns what its host needs to know to start the member in it again; `None` for a worktree
    /// on the machine of its repository.
    pub fn known_origin(&self) -> Option<WorktreeOrigin> {
        let (Some(host), Some(copy)) = (&self.origin, &self.copy) else { return None };
        Some(WorktreeOrigin {
            host: host.clone(),
            repository: self.repository.clone(),
            copy: copy.path.clone(),
            start: self.base.clone(),
            from: None,
            files: Vec::new(),
            staged: None,
        })
    }

    /// Returns the branch as it is named in `repository`.
    pub fn branch_here(&self) -> String {
        match &self.copy {
            Some(copy) => format!("{}/{}", copy.host, self.branch),
            None => self.branch.clone(),
        }
    }
}

/// A bare repository on a host, which has the commits of a repository on another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryCopy {
    pub host: HostName,
    pub path: String,
}

/// The repository on another machine from which a host makes a worktree. The host's copy has the
/// commit already.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorktreeOrigin {
    /// The machine that has the repository.
    pub host: HostName,
    /// The repository's main working directory.
    pub repository: String,
    /// Path of the copy on the host.
    pub copy: String,
    /// Commit that the worktree starts from.
    pub start: String,
    /// The branch or revision of a new branch's start.
    pub from: Option<String>,
    /// Files to copy into a new worktree. The n-th one is `N` in `staged`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Directory on the host that has the files.
    pub staged: Option<String>,
}

/// Characters of a commit id that people read.
const SHORT_ID: usize = 12;

/// Returns the beginning of a commit id, for people.
pub fn short_commit(id: &str) -> String {
    id.chars().take(SHORT_ID).collect()
}

/// Returns the name of the directory that has a host's copy of a repository.
pub fn copy_name(origin: &HostName, repository: &str) -> String {
    let last = repository.rsplit('/').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' };
    let title: String = last.chars().take(40).map(plain).collect();
    let origin = origin.as_str().to_ascii_lowercase();
    format!("{title}-{}.git", &digest::hash(&[origin.as_bytes(), repository.as_bytes()])[..16])
}

/// The evidence that the commits of a worktree are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum MergeEvidence {
    /// Another branch has them, or what phalanx has landed of them.
    Commits,
    /// To merge them changes nothing in the main branch.
    Tree,
    /// The main branch has the changes of each in a commit of its own.
    Patches,
    /// The forge has merged their pull request.
    PullRequest,
}

/// Condition of a worktree, which decides whether it can be removed without losing work (EN-07).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Condition {
    /// No commits beyond `base` and no uncommitted changes.
    Clean,
    /// All its commits are kept elsewhere.
    Merged { by: MergeEvidence },
    /// Some files are changed or untracked.
    Dirty { files: usize },
    /// Some commits are on no other branch.
    Unmerged { commits: usize },
    /// A repository of a submodule, which is removed with the worktree, has commits of its own.
    Submodule { repository: String, commits: usize },
    /// The worktree is locked; `reason` may be empty.
    Locked { reason: String },
    /// Another worktree lies inside this one.
    Nested { other: String },
    /// The directory is missing, and the branch has no commits of its own.
    Missing,
    /// Something exists at the path, but git knows no worktree there.
    Foreign,
    /// Neither git nor the file system has it.
    Gone,
    /// Its creation was cut off, so no member has worked in it.
    Unfinished,
}

impl Condition {
    pub fn word(&self) -> &'static str {
        self.into()
    }

    /// Returns the evidence by which its commits are merged.
    pub fn evidence(&self) -> Option<&'static str> {
        if let Condition::Merged { by } = self { Some(by.into()) } else { None }
    }

    /// Returns why the worktree must be kept; `None` if it can be removed.
    pub fn keeps(&self) -> Option<String> {
        match self {
            Condition::Clean
            | Condition::Merged { .. }
            | Condition::Missing
            | Condition::Gone
            | Condition::Unfinished => None,
            Condition::Dirty { files } => Some(format!("uncommitted work in {files} file(s)")),
            Condition::Unmerged { commits } => {
                Some(format!("{commits} commit(s) on no other branch"))
            }
            Condition::Submodule { repository, commits } => {
                Some(format!("{commits} commit(s) on no remote of its submodule {repository}"))
            }
            Condition::Locked { reason } if reason.is_empty() => Some("it is locked".to_owned()),
            Condition::Locked { reason } => Some(format!("it is locked: {reason}")),
            Condition::Nested { other } => Some(format!("worktree {other} is inside it")),
            Condition::Foreign => {
                Some("git has no worktree there; try `git worktree repair PATH`".to_owned())
            }
        }
    }
}

/// Checks a branch name: at most 200 bytes, and valid by the rules of `git check-ref-format`.
///
/// # Errors
/// Fails if the name is invalid. The message is a predicate that follows the name of the key.
pub fn check_branch(name: &str) -> Result<(), String> {
    let strange = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    let bad = name.is_empty()
        || name.starts_with(['-', '/'])
        || name.ends_with(['/', '.'])
        || ["..", "//", "@{"].iter().any(|pair| name.contains(pair))
        || name.split('/').any(|part| part.starts_with('.') || part.ends_with(".lock"))
        || ["@", "HEAD"].contains(&name)
        || name.len() > 200
        || name.contains(strange);
    if bad { Err("is not a valid git branch name".to_owned()) } else { Ok(()) }
}

/// Checks a revision: at most 200 bytes, no option, and no control character. Git decides the rest.
///
/// # Errors
/// Fails if the revision is invalid. The message is a predicate that follows the name of the key.
pub fn check_revision(revision: &str) -> Result<(), String> {
    let bad = revision.is_empty()
        || revision.len() > 200
        || revision.starts_with('-')
        || revision.contains(char::is_control);
    if bad { Err("is not a revision of git".to_owned()) } else { Ok(()) }
}

/// Checks the path of a file to copy: it must be inside the repository and outside of `.git`.
///
/// # Errors
/// Fails if the path is absolute, has an empty, `.`, `..` or `.git` component, or contains a
/// control character. The message is a predicate that follows the name of the key.
pub fn check_inside(path: &str) -> Result<(), String> {
    let plain = path
        .split('/')
        .all(|part| !part.is_empty() && part != "." && part != ".." && part != ".git");
    if plain && !path.contains(char::is_control) {
        return Ok(());
    }
    Err("must be the path of a file inside the repository, without `.` and `..`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_different_repositories_have_different_plain_names() {
        let host = |name| HostName::new(name).expect("a name");
        let name = copy_name(&host("Desk"), "/home/ann/my repo;x");
        assert!(name.starts_with("my_repo_x-") && name.ends_with(".git"), "{name}");
        assert_eq!(name, copy_name(&host("desk"), "/home/ann/my repo;x"));
        assert_ne!(name, copy_name(&host("desk"), "/home/bob/my repo;x"));
        assert_ne!(name, copy_name(&host("other"), "/home/ann/my repo;x"));
        assert!(copy_name(&host("desk"), "/").starts_with('-'));
    }

    #[test]
    fn worktree_on_another_host_is_named_with_its_host() {
        let desk = HostName::new("desk").expect("a name");
        let local = Checkout {
            repository: "/r".to_owned(),
            path: "/r/.worktrees/x-bob".to_owned(),
            branch: "x-bob".to_owned(),
            base: "0".to_owned(),
            new_branch: true,
            from: None,
            is_unfinished: false,
            origin: Some(desk.clone()),
            copy: None,
            landed: Vec::new(),
            landing: None,
            merged: None,
        };
        assert_eq!((local.branch_here().as_str(), local.host()), ("x-bob", Some(&desk)));
        assert_eq!(local.known_origin(), None);
        let host = HostName::new("h1").expect("a name");
        let copy = RepositoryCopy { host: host.clone(), path: "/w/c.git".to_owned() };
        let away = Checkout { copy: Some(copy), ..local };
        assert_eq!((away.branch_here().as_str(), away.host()), ("h1/x-bob", Some(&host)));
        let origin = away.known_origin().expect("an origin");
        assert_eq!((origin.host, origin.copy.as_str()), (desk, "/w/c.git"));
    }

    /// RV-36: earlier versions kept the last landing alone.
    #[test]
    fn rv_36_record_of_a_single_landing_is_read_as_a_list() {
        let landed = serde_json::json!({ "head": "1", "old": "2", "new": "3", "kind": "squash" });
        let record = |landed: serde_json::Value| {
            let checkout = serde_json::json!({
                "repository": "/r", "path": "/w", "branch": "b", "base": "0", "new_branch": true,
                "landed": landed,
            });
            serde_json::from_value::<Checkout>(checkout).expect("a record")
        };
        let mut checkout = record(landed.clone());
        assert_eq!((checkout.landed.len(), &checkout.landed[0].branch), (1, &None));
        assert_eq!(record(serde_json::json!([landed, landed])).landed.len(), 2);
        let work = |n: usize| LandedWork { new: n.to_string(), ..checkout.landed[0].clone() };
        for landed in (10..10 + LANDINGS).map(work).collect::<Vec<_>>() {
            checkout.end_landing(&landed, true);
        }
        assert_eq!((checkout.landed.len(), checkout.landed[0].new.as_str()), (LANDINGS, "10"));
        let last = checkout.landings().next().expect("a landing").clone();
        checkout.end_landing(&last, false);
        assert!(checkout.landings().all(|landed| landed.new != last.new));
        let text = serde_json::to_string(&checkout).expect("json");
        assert_eq!(serde_json::from_str::<Checkout>(&text).expect("a record"), checkout);
    }

    #[test]
    fn branch_names_follow_git_rules() {
        for good in ["main", "feat/x", "a-b_c.d", "öäü", "x@y", "#1", "it's", "$(x)"] {
            assert_eq!(check_branch(good), Ok(()), "{good}");
        }
        let long = "x".repeat(201);
        for bad in [
            "",
            "-f",
            "/a",
            "a/",
            "a.",
            "a..b",
            "a//b",
            "a@{1}",
            "a b",
            "a\tb",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "@",
            "HEAD",
            "a\nb",
            long.as_str(),
        ] {
            assert!(check_branch(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn files_to_copy_must_be_inside_the_repository() {
        for good in [".env", "config/local.toml", "a b"] {
            assert_eq!(check_inside(good), Ok(()), "{good}");
        }
        for bad in
            ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", ".git/config", "a\0"]
        {
            assert!(check_inside(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn en_07_only_worktrees_without_unsaved_work_can_be_removed() {
        let may_go = [
            Condition::Clean,
            Condition::Merged { by: MergeEvidence::Tree },
            Condition::Missing,
            Condition::Gone,
            Condition::Unfinished,
        ];
        assert!(may_go.iter().all(|condition| condition.keeps().is_none()));
        let must_stay = [
            Condition::Dirty { files: 1 },
            Condition::Unmerged { commits: 2 },
            Condition::Submodule { repository: "lib".to_owned(), commits: 1 },
            Condition::Locked { reason: String::new() },
            Condition::Locked { reason: "mine".to_owned() },
            Condition::Nested { other: "/x".to_owned() },
            Condition::Foreign,
        ];
        assert!(must_stay.iter().all(|condition| condition.keeps().is_some()));
    }
}
