//! Who asks, where teams are kept, and which team is meant: from options, variables and defaults, in this order.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::args::Global;
use super::fail::{Class, Failure};
use super::out::Out;
use crate::model::id::{MemberName, TeamName};
use crate::ops::{self, Caller, Context, Store, Team};
use crate::sys::env;

/// All that a verb needs beside its own options.
pub(super) struct Setup {
    pub(super) ctx: Context,
    pub(super) out: Out,
    /// The team that `--team` names.
    asked: Option<String>,
}

impl Setup {
    pub(super) fn new(global: &Global, out: Out) -> Result<Setup, Failure> {
        let caller = Caller { env: env::vars(), cwd: env::current_dir()?, exe: env::current_exe()? };
        let root = root(global.config_dir.as_deref(), &caller, env::home_dir())?;
        let speaker = speaker(global.speaker.as_deref(), &caller)?;
        let ctx = Context { store: Store::at(&root), speaker, caller };
        Ok(Setup { ctx, out, asked: global.team.clone() })
    }

    /// The team that is meant, once it is clear that the speaker may speak in it.
    pub(super) fn team(&self) -> Result<Team, Failure> {
        let team = self.meant()?;
        ops::speaker::check(&self.ctx, &team)?;
        Ok(team)
    }

    fn meant(&self) -> Result<Team, Failure> {
        if let Some(name) = self.named_team()? {
            return Ok(self.ctx.store.team(&name)?);
        }
        let teams = self.ctx.store.teams()?;
        match teams.as_slice() {
            [only] => Ok(self.ctx.store.team(only)?),
            [] => Err(Failure::usage(
                "there is no team",
                "make one: `phalanx up MANIFEST` or `phalanx team create NAME`",
            )),
            some => {
                let names = some.iter().map(TeamName::to_string).collect::<Vec<_>>().join(", ");
                Err(Failure::usage("there are several teams", &format!("choose one with `-t`: {names}")))
            }
        }
    }

    /// A path that somebody wrote, as seen from everywhere.
    pub(super) fn absolute(&self, path: &Path) -> Result<String, Failure> {
        let full: PathBuf = self.ctx.caller.cwd.join(path).components().collect();
        full.into_os_string()
            .into_string()
            .map_err(|path| Failure::usage(format!("the path {path:?} is not UTF-8"), "use a path that is"))
    }

    /// The name of the team that was asked for, whether there is one or not.
    pub(super) fn named_team(&self) -> Result<Option<TeamName>, Failure> {
        let named = self.asked.as_deref().map(OsStr::new).or_else(|| self.ctx.caller.var("PHALANX_TEAM"));
        let Some(given) = named else { return Ok(None) };
        let name = given.to_str().and_then(|given| TeamName::existing(given).ok());
        let problem = || {
            let problem = format!("{given:?} is not the name of a team");
            Failure::usage(problem, "list the teams with `phalanx team list`")
        };
        name.map(Some).ok_or_else(problem)
    }
}

/// The name of a member as somebody wrote it.
pub(super) fn member(given: &str) -> Result<MemberName, Failure> {
    MemberName::existing(given).map_err(|_| {
        let hint = "see who is on the team with `phalanx status`";
        Failure::usage(format!("{given:?} is not the name of a member"), hint)
    })
}

fn root(flag: Option<&Path>, caller: &Caller, home: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let var = |name| caller.var(name).map(PathBuf::from);
    let given = flag.map(Path::to_owned).filter(|dir| *dir != Path::new(""));
    let found = given.or_else(|| var("PHALANX_CONFIG_DIR")).or_else(|| var("CLAUDE_CONFIG_DIR"));
    match found.or_else(|| home.map(|home| home.join(".claude"))) {
        Some(root) => Ok(caller.cwd.join(root).components().collect()),
        None => Err(Failure::usage(
            "there is no home directory to keep teams in",
            "say where with `--config-dir DIR`",
        )),
    }
}

fn speaker(flag: Option<&str>, caller: &Caller) -> Result<MemberName, Failure> {
    let given: Option<OsString> = flag.map(OsString::from);
    match given.or_else(|| caller.var("PHALANX_AGENT_NAME").map(OsStr::to_owned)) {
        Some(name) => member(&name.to_string_lossy()),
        None => Ok(MemberName::lead()),
    }
}

/// A variable that only a teammate's own process has.
pub(super) fn identity_var(ctx: &Context, name: &str) -> Result<String, Failure> {
    let value = ctx.caller.var(name).and_then(OsStr::to_str).map(str::to_owned);
    value.ok_or_else(|| {
        let hint = Some("it is started by `phalanx spawn`, not by hand".to_owned());
        Failure::new(Class::Usage, format!("${name} is not set"), hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(vars: &[(&str, &str)]) -> Caller {
        let env = vars.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Caller { env, cwd: PathBuf::from("/here"), exe: PathBuf::from("/bin/phalanx") }
    }

    #[test]
    fn the_root_is_the_first_that_is_named_and_absolute() {
        let home = || Some(PathBuf::from("/home/u"));
        let both = [("PHALANX_CONFIG_DIR", "p"), ("CLAUDE_CONFIG_DIR", "/c")];
        let get = |flag: Option<&str>, vars: &[(&str, &str)]| {
            root(flag.map(Path::new), &caller(vars), home()).expect("root").display().to_string()
        };
        assert_eq!(get(Some("./x/"), &both), "/here/x");
        assert_eq!(get(None, &both), "/here/p");
        assert_eq!(get(None, &[("PHALANX_CONFIG_DIR", ""), both[1]]), "/c");
        assert_eq!(get(None, &[]), "/home/u/.claude");
        assert!(root(None, &caller(&[]), None).is_err());
    }

    #[test]
    fn the_speaker_is_the_lead_unless_somebody_else_is_named() {
        let vars = [("PHALANX_AGENT_NAME", "ada")];
        let name = |flag, vars: &[(&str, &str)]| speaker(flag, &caller(vars)).map(|n| n.to_string()).ok();
        assert_eq!(name(Some("bob"), &vars).as_deref(), Some("bob"));
        assert_eq!(name(None, &vars).as_deref(), Some("ada"));
        assert_eq!(name(None, &[]).as_deref(), Some("team-lead"));
        assert_eq!(name(Some("lead"), &[]).as_deref(), Some("team-lead"));
        assert_eq!(name(Some("../x"), &[]), None);
    }
}
