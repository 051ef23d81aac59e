//! Members with another account of Claude Code: their programs have a config directory of their
//! own, and look for the team there.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::OpsError;
use model::members::record::MemberRecord;
use store::{StoreError, TeamStore};
use sys::fs;

/// Names the config directory of Claude Code.
const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";

/// Returns the config root in which a native program with this environment looks for its team, if
/// that is not the team's.
///
/// # Errors
/// [`OpsError::Usage`] if the variable holds a relative path: the program resolves it in whatever
/// directory it is at that moment.
pub(crate) fn other_root(
    team: &TeamStore,
    env: &[(OsString, OsString)],
) -> Result<Option<PathBuf>, OpsError> {
    let var = |name: &str| {
        let found = env.iter().rev().find(|(known, _)| known == OsStr::new(name));
        found.map(|(_, value)| PathBuf::from(value))
    };
    let Some(dir) = var(CONFIG_DIR).or_else(|| Some(var("HOME")?.join(".claude"))) else {
        return Ok(None);
    };
    if !dir.is_absolute() {
        let problem = format!("{CONFIG_DIR} is a relative path, `{}`", dir.display());
        let hint = Some(format!("give an absolute one: `--env {CONFIG_DIR}=/PATH`"));
        return Err(OpsError::Usage { problem, hint });
    }
    let is_root = dir == team.root() || fs::canonical(&dir).is_ok_and(|dir| dir == team.root());
    Ok((!is_root).then_some(dir))
}

/// Makes the team's files reachable for a member with another account.
///
/// # Errors
/// [`OpsError::Usage`] if that account has a team of this name.
pub(crate) fn link(team: &TeamStore, record: &MemberRecord) -> Result<(), OpsError> {
    let Some(dir) = &record.config_dir else { return Ok(()) };
    let Some(taken) = team.link_into(Path::new(dir))? else { return Ok(()) };
    let (name, member) = (team.name(), &record.name);
    let problem = format!(
        "{member} has its own {CONFIG_DIR}, and {} is not this team: the program would look for its mail there",
        taken.display()
    );
    let hint = format!(
        "choose another name than `{name}` for the team, or move {} away if nothing uses it",
        taken.display()
    );
    Err(OpsError::Usage { problem, hint: Some(hint) })
}

/// Removes the links for a member that has ended, unless another member needs them.
pub(crate) fn unlink(team: &TeamStore, record: &MemberRecord) -> Result<(), StoreError> {
    let Some(dir) = &record.config_dir else { return Ok(()) };
    let needs_it = |other: &MemberRecord| {
        let is_other = other.incarnation != record.incarnation;
        is_other && !other.state.is_over() && other.config_dir.as_ref() == Some(dir)
    };
    if team.member_records()?.iter().any(needs_it) {
        return Ok(());
    }
    team.unlink_from(Path::new(dir))
}

/// Removes the links of a team that is deleted.
pub(crate) fn unlink_all(team: &TeamStore) -> Result<(), StoreError> {
    let records = team.member_records()?;
    let dirs = records.iter().filter_map(|record| record.config_dir.as_deref());
    dirs.map(Path::new).try_for_each(|dir| team.unlink_from(dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::TeamName;
    use model::team::Team;
    use model::team::settings::Settings;
    use model::time::Timestamp;
    use store::Store;

    #[test]
    fn en_10_account_is_another_one_only_in_another_directory() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let home = fs::canonical(dir.path()).expect("a path");
        let root = home.join(".claude");
        let name = TeamName::new("demo").expect("name");
        let file = Team::found(&name, "", "team-lead", "session", "/", Timestamp(1));
        let team = Store::at(&root).create(&name, &file, &Settings::by_hand(8)).expect("a team");
        std::os::unix::fs::symlink(&root, home.join("same")).expect("a link");
        let found = |vars: &[(&str, PathBuf)]| {
            let env: Vec<(OsString, OsString)> =
                vars.iter().map(|(name, value)| (name.into(), value.into())).collect();
            other_root(&team, &env)
        };
        let of_home = ("HOME", home.clone());
        let own = |path: &str| (CONFIG_DIR, home.join(path));
        assert_eq!(found(&[]).expect("nothing"), None);
        assert_eq!(found(std::slice::from_ref(&of_home)).expect("the root"), None);
        assert_eq!(found(&[of_home.clone(), own("same")]).expect("a link to it"), None);
        assert_eq!(found(&[of_home.clone(), own("x")]).expect("other"), Some(home.join("x")));
        let moved = ("HOME", home.join("h2"));
        assert_eq!(
            found(std::slice::from_ref(&moved)).expect("other"),
            Some(home.join("h2/.claude"))
        );
        assert_eq!(found(&[moved, own(".claude")]).expect("the root"), None);
        assert!(found(&[(CONFIG_DIR, "x".into())]).is_err());
    }
}
