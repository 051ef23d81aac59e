//! Roles: those of the team's manifest, and the agent files of Claude Code, which are read again at
//! each use. A team's role overrides the project's of that name, which overrides the user's.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use crate::{Context, OpsError};
use config::agent_file::AgentFile;
use model::team::Team;
use model::team::role::{PLAIN, Role, Roles};
use store::TeamStore;
use sys::fs::{self, FsError};
use worktree::checkout_of;

/// Size limit of an agent file, in bytes.
const LARGEST: u64 = 256 * 1024;
const ENDING: &str = ".md";
/// A project's directory of agent files.
const PROJECT: &str = ".claude/agents";

/// A role and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedRole {
    pub name: String,
    pub role: Role,
    pub source: RoleSource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RoleSource {
    Manifest,
    /// An agent file, and its fields that phalanx ignores.
    File(PathBuf, Vec<String>),
    /// A role that is only a name.
    Plain,
}

/// Returns the roles of a team's manifest; none for a team that phalanx did not create.
pub fn team_roles(team: &TeamStore) -> Result<Roles, OpsError> {
    Ok(team.settings()?.map(|settings| settings.roles).unwrap_or_default())
}

/// Returns the descriptions of the roles that the members have. A role that is not found has none.
pub fn descriptions(ctx: &Context, own: &Roles, team: &Team) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for member in team.teammates() {
        let Some(role) = member.agent_type.as_deref().filter(|role| !PLAIN.contains(role)) else {
            continue;
        };
        if !found.contains_key(role)
            && let Ok(ResolvedRole { role: Role { description: Some(words), .. }, .. }) =
                resolve_role(ctx, own, role, Path::new(&member.cwd))
        {
            found.insert(role.to_owned(), words);
        }
    }
    found
}

/// Returns the role of this name for a member that works in `cwd`.
///
/// # Errors
/// A refusal for an unknown name; [`OpsError::Role`] for a directory of agent files,
/// or the agent file of this name, that cannot be read.
pub(crate) fn resolve_role(
    ctx: &Context,
    own: &Roles,
    name: &str,
    cwd: &Path,
) -> Result<ResolvedRole, OpsError> {
    let found = |role, source| ResolvedRole { name: name.to_owned(), role, source };
    if let Some(role) = own.named.get(name) {
        return Ok(found(role.clone(), RoleSource::Manifest));
    }
    let mut known: Vec<String> =
        own.named.keys().cloned().chain(PLAIN.map(str::to_owned)).collect();
    for (dir, inside) in agent_dirs(ctx, cwd) {
        let files = agent_files(&dir)
            .map_err(|e| OpsError::Role { file: dir.clone(), problem: describe(&e) })?;
        for path in files {
            match read_agent_file(&path, inside.as_deref()) {
                Ok(agent) if agent.name == name => {
                    return Ok(found(agent.role, RoleSource::File(path, agent.notes)));
                }
                Ok(agent) => known.push(agent.name),
                Err(problem) if path.file_stem().is_some_and(|stem| stem == name) => {
                    return Err(OpsError::Role { file: path, problem });
                }
                // A broken agent file of another name does not concern this member.
                Err(_) => {}
            }
        }
    }
    if PLAIN.contains(&name) {
        return Ok(found(Role::default(), RoleSource::Plain));
    }
    known.sort();
    known.dedup();
    let own = "; define one with `phalanx team set role.NAME.prompt TEXT`, or as an agent file in \
               .claude/agents";
    Err(OpsError::unknown_word("role", name, &known, own))
}

/// Returns the agent files in a directory, then those in the directories below it, as Claude Code
/// finds them. A link to a directory is not followed.
fn agent_files(dir: &Path) -> Result<Vec<PathBuf>, FsError> {
    let mut found = Vec::new();
    let mut dirs = VecDeque::from([dir.to_owned()]);
    while let Some(dir) = dirs.pop_front() {
        for name in fs::list(&dir)? {
            let path = dir.join(&name);
            if name.ends_with(ENDING) {
                found.push(path);
            } else if fs::is_dir(&path) && fs::refuse_link(&path).is_ok() {
                dirs.push_back(path);
            }
        }
    }
    Ok(found)
}

/// Returns the directories of agent files, nearest first: from `cwd` up to the top of its
/// repository, then the user's. Each project directory comes with the repository, outside which its
/// links must not point: others may have put them there.
fn agent_dirs(ctx: &Context, cwd: &Path) -> Vec<(PathBuf, Option<PathBuf>)> {
    let mut dirs = Vec::new();
    // The launcher reports a directory that does not exist.
    if let Ok(cwd) = fs::canonical(cwd) {
        let top = checkout_of(&cwd).unwrap_or_else(|| cwd.clone());
        let home = ctx.caller.var("HOME").and_then(|home| fs::canonical(Path::new(home)).ok());
        let project = cwd
            .ancestors()
            .take_while(|dir| dir.starts_with(&top) && Some(*dir) != home.as_deref());
        dirs.extend(project.map(|dir| (dir.join(PROJECT), Some(top.clone()))));
    }
    dirs.push((ctx.store.agents(), None));
    dirs
}

fn read_agent_file(path: &Path, inside: Option<&Path>) -> Result<AgentFile, String> {
    let real = fs::canonical(path).map_err(|e| describe(&e))?;
    if inside.is_some_and(|inside| !real.starts_with(inside)) {
        return Err("it is a symbolic link that points outside its repository".to_owned());
    }
    let bytes = fs::read(&real, LARGEST).map_err(|e| describe(&e))?.ok_or("it no longer exists")?;
    AgentFile::parse(&String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?)
}

fn describe(e: &FsError) -> String {
    match e {
        FsError::Io { source, .. } => source.to_string(),
        FsError::Refused { reason, .. } => reason.clone(),
        FsError::TooLarge { limit, .. } => format!("it is larger than {limit} bytes"),
    }
}
