//! Classes and hints of the errors that come from the store and from git worktrees.

use super::kind::Kind;
use model::board::Refusal;
use model::board::task::TaskState;
use model::board::workspace::FileFault;
use model::id::{MemberName, TeamName, nearest_name};
use model::name::nearest;
use remote::HostError;
use store::{DatabaseError, StoreError};
use worktree::WorktreeError;

/// The hint for commands that need a team where none exists.
pub const NO_TEAM: &str =
    "create one: `phalanx spawn NAME`, `phalanx up MANIFEST` or `phalanx team create NAME`";

/// Lists the known names, after a suggestion of the nearest.
pub(super) fn meant(nearest: &Option<String>, what: &str, known: &[String]) -> String {
    let known = known.iter().map(|name| model::text::line(name)).collect::<Vec<_>>().join(", ");
    let nearest =
        nearest.as_ref().map(|name| format!("did you mean `{}`? ", model::text::line(name)));
    format!("{}{what}: {known}", nearest.unwrap_or_default())
}

/// Suggests a team or a member for a name that was not found.
pub(super) fn meant_name(given: &str, what: &str, known: &[&str]) -> String {
    let nearest = nearest_name(given, known).map(str::to_owned);
    meant(&nearest, what, &known.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
}

/// Returns a path as a word of a shell.
pub(crate) fn quoted(path: &str) -> String {
    // A path holds no NUL.
    shlex::try_quote(path).map_or_else(|_| path.to_owned(), |word| word.into_owned())
}

pub(super) fn host_kind(e: &HostError) -> Kind {
    match e {
        HostError::Unreachable { .. }
        | HostError::Lost { .. }
        | HostError::HostKey { .. }
        | HostError::Login { .. }
        | HostError::Shell { .. }
        | HostError::NoProgram { .. }
        | HostError::LongPath { .. }
        | HostError::NoClient => Kind::Backend,
        HostError::Deadline { .. } => Kind::Deadline,
        HostError::Nul => Kind::Usage,
        HostError::Command { .. } | HostError::Exec(_) | HostError::File(_) => Kind::Failed,
    }
}

pub(super) fn worktree_kind(e: &WorktreeError) -> Kind {
    match e {
        WorktreeError::NotARepository { .. }
        | WorktreeError::NoBase { .. }
        | WorktreeError::NotAPart { .. }
        | WorktreeError::Ambiguous { .. }
        | WorktreeError::Shallow { .. }
        | WorktreeError::RemoteName { .. }
        | WorktreeError::NoRemote { .. }
        | WorktreeError::Unborn { .. } => Kind::Usage,
        WorktreeError::Taken { .. }
        | WorktreeError::InUse { .. }
        | WorktreeError::LinkedDir { .. }
        | WorktreeError::NotAWorktree { .. }
        | WorktreeError::BranchTaken { .. }
        | WorktreeError::NothingToLand { .. }
        | WorktreeError::Moved { .. }
        | WorktreeError::OtherBranch { .. }
        | WorktreeError::PushRejected { .. }
        | WorktreeError::Diverged { .. } => Kind::Refused,
        WorktreeError::NoDirectory { .. } => Kind::NotFound,
        WorktreeError::Git { .. }
        | WorktreeError::Conflicts { .. }
        | WorktreeError::TooLarge
        | WorktreeError::TooManyChanges { .. }
        | WorktreeError::Copy { .. }
        | WorktreeError::Setup { .. }
        | WorktreeError::Exec(_)
        | WorktreeError::File(_) => Kind::Failed,
    }
}

pub(super) fn worktree_hint(e: &WorktreeError) -> Option<String> {
    match e {
        WorktreeError::NotARepository { .. } => {
            Some("pass the repository with `--cwd DIR`, or omit `--worktree`".to_owned())
        }
        WorktreeError::NoBase { .. } => Some(
            "name a branch, a tag or a commit: `git log --oneline --all` lists them".to_owned(),
        ),
        WorktreeError::Ambiguous { found, .. } => found
            .first()
            .map(|first| format!("name the one to start from, for example with `--base {first}`")),
        WorktreeError::Git { hint, .. } => hint.clone(),
        WorktreeError::Unborn { .. } => {
            Some("commit something first: `git commit --allow-empty`".to_owned())
        }
        WorktreeError::Taken { path } => Some(format!(
            "check its content, then run `git worktree remove {0}`, or `rm -r {0}` if git knows no worktree there",
            quoted(path)
        )),
        WorktreeError::InUse { .. } => {
            Some("choose another name or branch, or end that member first".to_owned())
        }
        WorktreeError::LinkedDir { path, target } => Some(format!(
            "remove the link: `rm {}`, or name its target: `phalanx team set worktree.dir {}`",
            quoted(path),
            quoted(target)
        )),
        WorktreeError::NotAWorktree { path } => Some(format!(
            "run `git worktree repair {}` in its repository; if that fails, move the directory away: the next \
             start makes a new worktree",
            quoted(path)
        )),
        WorktreeError::BranchTaken { branch } => Some(format!(
            "reuse the branch with `--worktree={branch}`, or delete it first with `git branch -d {branch}`"
        )),
        WorktreeError::NotAPart { .. } => Some(
            "`phalanx worktree merge NAME --dry-run` shows the last one; `git log` lists them all"
                .to_owned(),
        ),
        WorktreeError::NothingToLand { .. } => None,
        WorktreeError::Conflicts { into, .. } => Some(format!(
            "see the lines with `phalanx review conflicts NAME`; with `--task` the member gets the task to merge {into}"
        )),
        WorktreeError::Moved { .. } => Some("run it again".to_owned()),
        WorktreeError::OtherBranch { dir, branch, .. } => Some(format!(
            "check it out, and run this again: `{}`",
            shlex::try_join(["git", "-C", dir, "switch", branch]).unwrap_or_default()
        )),
        WorktreeError::Diverged { .. } => Some("name another branch".to_owned()),
        WorktreeError::Shallow { .. } => Some(
            "run `git fetch --unshallow`, or set `remote` in the host's configuration".to_owned(),
        ),
        WorktreeError::TooLarge => {
            Some("set `remote` in the host's configuration to a git remote".to_owned())
        }
        WorktreeError::TooManyChanges { from, to, .. } => Some(format!(
            "find the largest files: `git diff --stat {from} {to}`, and show the others alone: \
             `git diff {from} {to} -- PATH`"
        )),
        WorktreeError::RemoteName { host } => {
            Some(format!("rename it: `git remote rename {host} NEW`, or rename the host"))
        }
        WorktreeError::NoRemote { .. } => Some(
            "`remote` in the host's configuration is the name of a git remote, or an address"
                .to_owned(),
        ),
        WorktreeError::PushRejected { remote, branch } => Some(format!(
            "let the member merge them: `git fetch {remote} {branch}`, then `git merge FETCH_HEAD`; \
             if its commits were rewritten, delete the branch of the remote first"
        )),
        WorktreeError::NoDirectory { .. } => Some(
            "if it was moved, run `git worktree repair NEW-PATH` in its repository; else remove it with \
             `phalanx worktree remove NAME`"
                .to_owned(),
        ),
        WorktreeError::Copy { .. }
        | WorktreeError::Setup { .. }
        | WorktreeError::Exec(_)
        | WorktreeError::File(_) => None,
    }
}

fn database_kind(e: &DatabaseError) -> Kind {
    match e {
        DatabaseError::NoSuchTeam { .. } => Kind::NotFound,
        DatabaseError::Fenced { .. } | DatabaseError::LeaseLost { .. } => Kind::Refused,
        DatabaseError::BadUrl { .. } => Kind::Usage,
        DatabaseError::Unreachable { .. }
        | DatabaseError::Login { .. }
        | DatabaseError::Tls { .. }
        | DatabaseError::NotInitialized { .. }
        | DatabaseError::TooOld { .. }
        | DatabaseError::TooNew { .. }
        | DatabaseError::Broker { .. } => Kind::Backend,
        DatabaseError::Refused { .. } | DatabaseError::BadReply { .. } => Kind::Failed,
    }
}

pub(super) fn store_kind(e: &StoreError) -> Kind {
    match e {
        StoreError::NoSuchTeam { .. }
        | StoreError::NoSuchMember { .. }
        | StoreError::NoSuchRequest { .. }
        | StoreError::NoEndedTeam { .. } => Kind::NotFound,
        StoreError::Refused(Refusal::TaskNotFound(_) | Refusal::KeyNotFound { .. })
        | StoreError::Workspace(FileFault::Missing { .. }) => Kind::NotFound,
        StoreError::Refused(Refusal::AmbiguousKey { .. }) => Kind::Usage,
        StoreError::TeamTaken { .. }
        | StoreError::MemberTaken { .. }
        | StoreError::TeamFull { .. }
        | StoreError::BoxFull { .. }
        | StoreError::HandoffsFull { .. }
        | StoreError::Refused(_)
        | StoreError::Transition { .. }
        | StoreError::LeadOnly { .. }
        | StoreError::NotRunning { .. }
        | StoreError::NotYours { .. }
        | StoreError::NotOver { .. }
        | StoreError::Over { .. }
        | StoreError::Circle { .. }
        | StoreError::AtCapacity(_)
        | StoreError::Workspace(_)
        | StoreError::NewerFormat { .. }
        | StoreError::OtherHost { .. }
        | StoreError::HostTaken { .. } => Kind::Refused,
        StoreError::MessageTooLong { .. } | StoreError::Name(_) => Kind::Usage,
        StoreError::Database(e) => database_kind(e),
        StoreError::Lock(sys::lock::LockError::Timeout { .. }) => Kind::Deadline,
        StoreError::Corrupt { .. }
        | StoreError::BadDocument { .. }
        | StoreError::Contended { .. }
        | StoreError::LockLost { .. }
        | StoreError::Lock(_)
        | StoreError::File(_)
        | StoreError::NoFreeIds { .. }
        | StoreError::Watch(_) => Kind::Failed,
    }
}

pub(super) fn store_hint(e: &StoreError) -> Option<String> {
    match e {
        StoreError::HostTaken { team, host } => Some(format!(
            "give this machine another name (`name` of its [[host]], or PHALANX_HOST); if it was reinstalled, or \
             replaces that machine: `phalanx host lost {host} -t {team}`"
        )),
        StoreError::NoSuchTeam { known, .. } if known.is_empty() => Some(NO_TEAM.to_owned()),
        StoreError::NoSuchTeam { name, known } => {
            Some(meant_name(name, "teams", &known.iter().map(TeamName::as_str).collect::<Vec<_>>()))
        }
        StoreError::NoSuchMember { name, known, .. } => {
            let known: Vec<&str> = known.iter().map(MemberName::as_str).collect();
            Some(meant_name(name.as_str(), "members", &known))
        }
        StoreError::NoEndedTeam { known, .. } => {
            let kept = match known.as_slice() {
                [] => "none".to_owned(),
                known => known.join(", "),
            };
            Some(format!("journals are kept for 7 days; the last ones are: {kept}"))
        }
        StoreError::TeamTaken { name } => Some(format!(
            "choose another name, or end that team with `phalanx down -t {name}` (`--force` if its files are broken)"
        )),
        StoreError::MemberTaken { team, holder } => Some(format!(
            "choose another name, or end that member with `phalanx shutdown {holder} -t {team}`"
        )),
        StoreError::TeamFull { .. } => Some(
            "shut a member down first, or raise it: `phalanx team set max_members N`".to_owned(),
        ),
        StoreError::BoxFull { owner, .. } => {
            Some(format!("its owner must read it first: `phalanx inbox --as {owner}`"))
        }
        StoreError::MessageTooLong { .. } => {
            Some("write it to a file and send the file's path".to_owned())
        }
        StoreError::NewerFormat { .. } => {
            Some("install the release of phalanx that wrote it, or a newer one".to_owned())
        }
        StoreError::Workspace(fault) => Some(fault.hint()),
        StoreError::Transition { id, .. } => Some(format!("see it with `phalanx task get {id}`")),
        StoreError::NotRunning { id, state: TaskState::Pending } => {
            Some(format!("claim it first: `phalanx task claim {id}`"))
        }
        StoreError::Refused(Refusal::KeyNotFound { key, known }) => {
            let near = nearest(key, known.iter().map(String::as_str));
            let meant = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            Some(format!("{meant}see ids and keys with `phalanx task list --all`"))
        }
        StoreError::Refused(Refusal::AmbiguousKey { ids, .. }) => Some(format!(
            "name one of them by its id, such as {}",
            ids.first().map(ToString::to_string).unwrap_or_default()
        )),
        StoreError::LeadOnly { .. } => {
            Some("ask the lead: `phalanx send team-lead TEXT`".to_owned())
        }
        StoreError::Refused(Refusal::AlreadyResolved { id, state: TaskState::Failed })
        | StoreError::Over { id, state: TaskState::Failed } => {
            Some(format!("make it pending again with `phalanx task retry {id}`"))
        }
        StoreError::NotOver { .. } => {
            Some("wait until it ends, or delete it anyway with `--force`".to_owned())
        }
        StoreError::AtCapacity(full) => Some(format!(
            "wait for one of them (`phalanx wait --until task={}`), give it to another member, leave it without an \
             owner, or raise the limit: `phalanx team set {} N`",
            full.open.first().map(ToString::to_string).unwrap_or_default(),
            full.key()
        )),
        StoreError::NotYours { .. } => {
            Some("act as its owner or as the lead with `--as NAME`".to_owned())
        }
        _ => None,
    }
}

/// Returns the hint for a team that another program made. `adopting` is true if the command was to
/// adopt it.
pub(crate) fn adopt_hint(team: &TeamName, adopting: bool) -> String {
    match adopting {
        true => format!(
            "if that program has ended, or does not lead this team: `phalanx adopt --force -t {team}`"
        ),
        false => {
            format!("if that program has ended, take the team over with `phalanx adopt -t {team}`")
        }
    }
}
