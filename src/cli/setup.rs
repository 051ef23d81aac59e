//! The context of a verb: caller, config root and team, from options, environment variables and
//! defaults, in this order.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::args::Global;
use crate::fail::{Exit, Failure, chain};
use crate::out::Out;
use database::{BrokerCommand, StoreUrl};
use model::id::{HostName, MemberName, TeamName};
use model::time::{self, Timestamp, parse_since};
use ops::authority::Action;
use ops::{self, Caller, Context, Kind, Store, TeamStore};
use store::{StoreAccess, StoreError};
use sys::proc::Liveness;
use sys::{env, fs};

/// Number of teams that an error names.
const NAMED: usize = 5;
/// The hint for a config root that cannot be used.
const CHOOSE_ROOT: &str = "choose a directory with `--config-dir DIR`";

/// The context that a verb needs besides its own options.
pub(super) struct Setup {
    pub(super) ctx: Context,
    pub(super) out: Out,
    /// The team names given by `--team` and `--as NAME@TEAM`.
    named_teams: Vec<String>,
    /// The team that the verb has opened.
    opened: OnceLock<TeamStore>,
}

impl Setup {
    pub(super) fn new(global: &Global, out: Out) -> Result<Setup, Failure> {
        let caller =
            Caller { env: env::vars(), cwd: env::current_dir()?, exe: env::current_exe()? };
        let root = real_root(config_root(global.config_dir.as_deref(), &caller, env::home_dir())?)?;
        let store = Store::at(&root).with_access(store_access(&caller));
        let store = match caller.var("PHALANX_STORE").and_then(OsStr::to_str) {
            Some(url) => store.shared_at(url)?,
            None => store,
        };
        let is_elsewhere = is_elsewhere(&store, global.team.as_deref(), &caller);
        let (speaker, speakers_team) =
            resolve_speaker(global.speaker.as_deref(), &caller, is_elsewhere)?;
        let ctx = Context { store, speaker, caller };
        let named_teams = global.team.iter().cloned().chain(speakers_team).collect();
        Ok(Setup { ctx, out, named_teams, opened: OnceLock::new() })
    }

    /// Returns the same for a caller in another directory.
    pub(super) fn in_directory(&self, cwd: PathBuf) -> Setup {
        let mut ctx = self.ctx.clone();
        ctx.caller.env.retain(|(name, _)| name != "PWD");
        ctx.caller.env.push(("PWD".into(), cwd.clone().into()));
        ctx.caller.cwd = cwd;
        let (out, named_teams) = (self.out.clone(), self.named_teams.clone());
        Setup { ctx, out, named_teams, opened: OnceLock::new() }
    }

    /// Returns the context in which to create a team whose manifest names this shared store. The
    /// environment counts more.
    pub(super) fn ctx_for_store(&self, url: Option<&str>) -> Result<Context, Failure> {
        let mut ctx = self.ctx.clone();
        if let (Some(url), None) = (url, ctx.caller.var("PHALANX_STORE")) {
            ctx.store = ctx.store.shared_at(url)?;
        }
        Ok(ctx)
    }

    /// Replaces the failure of a verb if its cause is that another process has deleted the team.
    pub(super) fn explain_deleted_team(&self, failure: Failure) -> Failure {
        let Some(team) = self.opened.get().filter(|team| !team.exists()) else { return failure };
        let possible = [Kind::Failed, Kind::NotFound, Kind::Deadline, Kind::Backend];
        if !possible.iter().any(|kind| failure.exit() == Exit::of(*kind)) {
            return failure;
        }
        let hint =
            Some("it was deleted while this command ran; see `phalanx team list`".to_owned());
        Failure::new(Kind::NotFound, format!("team {} is gone", team.name()), hint)
    }

    /// Opens the team that the options name, for an action on the team as a whole.
    pub(super) fn team(&self, action: Action) -> Result<TeamStore, Failure> {
        self.team_called(None, action)
    }

    /// Opens the team that an argument or the options name, for an action on the team as a whole.
    pub(super) fn team_called(
        &self,
        given: Option<&str>,
        action: Action,
    ) -> Result<TeamStore, Failure> {
        let team = self.resolve(given.as_slice())?;
        let ends = matches!(action, Action::Down | Action::Delete);
        if ends && ops::team::lease::is_foreign(&team) && self.one_team(given.as_slice())?.is_none()
        {
            let problem = format!("team {} was made by another program", team.name());
            let hint = format!("name it to end it: `-t {}`", team.name());
            return Err(ops::OpsError::refused(problem, hint).into());
        }
        self.authorize(team, action, &[])
    }

    /// Resolves the member that `given` names, as NAME or NAME@TEAM, and its team.
    pub(super) fn member(
        &self,
        given: &str,
        action: Action,
    ) -> Result<(TeamStore, MemberName), Failure> {
        let (team, mut names) = self.members(&[given], action)?;
        names.pop().map(|name| (team, name)).ok_or_else(|| invalid_name(given))
    }

    /// Resolves several members of one team for an action on them, or on the team if there are
    /// none.
    pub(super) fn members<S: AsRef<str>>(
        &self,
        given: &[S],
        action: Action,
    ) -> Result<(TeamStore, Vec<MemberName>), Failure> {
        let given: Vec<&str> = given.iter().map(AsRef::as_ref).collect();
        let (names, teams) = split_addresses(&given);
        let team = self.resolve(&teams)?;
        let names = names.into_iter().map(parse_member).collect::<Result<Vec<_>, _>>()?;
        // First, because the error about a name lists the names of the team.
        let team = self.authorize(team, action, &names)?;
        names.iter().try_for_each(|name| ops::authority::names::must_be_exact(&team, name))?;
        Ok((team, names))
    }

    /// Resolves addresses without opening their team: the members, and the team that they or the
    /// options name.
    pub(super) fn unopened_members<S: AsRef<str>>(
        &self,
        given: &[S],
    ) -> Result<(Vec<MemberName>, Option<TeamName>), Failure> {
        let given: Vec<&str> = given.iter().map(AsRef::as_ref).collect();
        let (names, teams) = split_addresses(&given);
        let names = names.into_iter().map(parse_member).collect::<Result<Vec<_>, _>>()?;
        Ok((names, self.one_team(&teams)?))
    }

    /// Splits these addresses of one team; opens the team and returns the names without looking
    /// them up. Where no team is named and none exists, `make` makes one, and the last is true.
    pub(super) fn addressed_or_made<'g>(
        &self,
        given: &[&'g str],
        action: Action,
        make: impl FnOnce() -> Result<TeamStore, Failure>,
    ) -> Result<(TeamStore, Vec<&'g str>, bool), Failure> {
        let (names, teams) = split_addresses(given);
        if self.one_team(&teams)?.is_some() || !self.ctx.store.teams()?.is_empty() {
            return Ok((self.authorize(self.resolve(&teams)?, action, &[])?, names, false));
        }
        let team = make()?;
        ops::authority::enter(&self.ctx, &team, action, &[])?;
        Ok((team, names, true))
    }

    fn authorize(
        &self,
        team: TeamStore,
        action: Action,
        targets: &[MemberName],
    ) -> Result<TeamStore, Failure> {
        ops::authority::enter(&self.ctx, &team, action, targets)?;
        if self.ctx.speaker.is_lead() {
            // Another landing reports what prevents it.
            let _ = ops::review::landing::finish(&self.ctx, &team);
        }
        Ok(self.opened.get_or_init(|| team).clone())
    }

    /// Opens the team of the dashboard. Returns `None` if there are several teams and neither the
    /// options, `given` nor the environment name one of them: the dashboard then lists them.
    pub(super) fn team_to_watch(&self, given: Option<&str>) -> Result<Option<TeamStore>, Failure> {
        if self.one_team(given.as_slice())?.is_none() {
            let several = self.default_team(self.ctx.store.teams()?).err().unwrap_or_default();
            if !several.is_empty() {
                return Ok(None);
            }
        }
        self.team_called(given, Action::Watch).map(Some)
    }

    /// Returns the team that the verb has opened, for which the caller has the authority.
    pub(super) fn opened_team(&self) -> Option<&TeamStore> {
        self.opened.get()
    }

    /// Opens the team that the options name, to complete or to suggest something; `None` also for a
    /// team that the caller may not look at. Journals nothing.
    pub(super) fn visible_team(&self) -> Option<TeamStore> {
        let team = self.selected_team().ok()?;
        ops::authority::may_look(&self.ctx, &team).then_some(team)
    }

    /// Opens the team that the options name, without a check of what the caller may do.
    pub(super) fn selected_team(&self) -> Result<TeamStore, Failure> {
        self.resolve(&[])
    }

    fn resolve(&self, named: &[&str]) -> Result<TeamStore, Failure> {
        match self.one_team(named)? {
            Some(name) => self.ctx.store.team(&name).map_err(|e| self.missing_team(&name, e)),
            None => self.only_team(),
        }
    }

    /// Returns the only team; else the only one that phalanx has made; else the only one, of those
    /// if there are any, whose lead runs in this directory. Each session of Claude Code makes a
    /// team of its own.
    ///
    /// # Errors
    /// All teams, those of phalanx first.
    fn default_team(&self, teams: Vec<TeamName>) -> Result<TeamName, Vec<TeamName>> {
        if let [only] = teams.as_slice() {
            return Ok(only.clone());
        }
        let (ours, others) = ops::team::by_maker(&self.ctx, teams);
        let possible = if ours.is_empty() { &others } else { &ours };
        let led_here: Vec<&TeamName> = match possible.as_slice() {
            [only] => vec![only],
            some => some.iter().filter(|name| self.is_led_here(name)).collect(),
        };
        match led_here.as_slice() {
            [only] => Ok((*only).clone()),
            _ => Err(ours.into_iter().chain(others).collect()),
        }
    }

    /// Returns true if the lead of the team runs, and in this directory.
    fn is_led_here(&self, name: &TeamName) -> bool {
        let team = self.ctx.store.open(name);
        let lead = MemberName::lead();
        let is_here = team.team().is_ok_and(|roster| {
            roster.member(&lead).is_some_and(|lead| Path::new(&lead.cwd) == self.ctx.caller.cwd)
        });
        let seen = if is_here { ops::members::lead::find_lead(&team).ok().flatten() } else { None };
        seen.is_some_and(|lead| lead.alive == Liveness::Alive)
    }

    fn only_team(&self) -> Result<TeamStore, Failure> {
        let names = match self.default_team(self.ctx.store.teams()?) {
            Ok(only) => return Ok(self.ctx.store.team(&only)?),
            Err(names) => names,
        };
        if names.is_empty() {
            let last = self
                .ctx
                .store
                .last_ended()
                .map(|team| format!("; {0} has ended: `phalanx report {0}`", team.name));
            let hint = Some(format!("{}{}", ops::NO_TEAM, last.unwrap_or_default()));
            return Err(Failure::new(Kind::NotFound, "there is no team", hint));
        }
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more: `phalanx team list`"),
        };
        let names =
            names.iter().take(NAMED).map(TeamName::to_string).collect::<Vec<_>>().join(", ");
        Err(Failure::usage(
            "there are several teams",
            &format!("choose one with `-t`: {names}{more}"),
        ))
    }

    /// Returns the error for a team that cannot be opened. If the config root does not have it, the
    /// hint names another root that does, or when the team ended.
    fn missing_team(&self, name: &TeamName, error: StoreError) -> Failure {
        if !matches!(error, StoreError::NoSuchTeam { .. }) {
            return error.into();
        }
        let hint = if let Some(root) = ops::views::ps::root_of(&self.ctx, name) {
            let root = root.display();
            format!("a team of that name is under another root: add `--config-dir {root}`")
        } else if let Ok(ended) = self.ctx.store.ended_team(name, ops::now()) {
            let ago = time::human(ops::now().since(ended.ended_at));
            format!(
                "it ended {ago} ago; `phalanx report {name}` shows how, and \
                 `phalanx events -t {name} --ended` what happened"
            )
        } else {
            return error.into();
        };
        Failure::new(Kind::NotFound, chain(&ops::OpsError::from(error)), Some(hint))
    }

    /// Returns the absolute form of a path from the command line.
    pub(super) fn absolute(&self, path: &Path) -> Result<String, Failure> {
        let full: PathBuf = self.ctx.caller.cwd.join(path).components().collect();
        full.into_os_string().into_string().map_err(|path| {
            Failure::usage(format!("the path {path:?} is not UTF-8"), "use another path")
        })
    }

    /// Returns the team name that the options or `given` select; the team may not exist.
    pub(super) fn named_team(&self, given: Option<&str>) -> Result<Option<TeamName>, Failure> {
        self.one_team(given.as_slice())
    }

    /// Returns the one team name that the options and `addresses` select, else that of the
    /// environment.
    ///
    /// # Errors
    /// Returns a usage error if they name two teams or an invalid name.
    fn one_team(&self, addresses: &[&str]) -> Result<Option<TeamName>, Failure> {
        let mut found: Option<TeamName> = None;
        for given in self.named_teams.iter().map(String::as_str).chain(addresses.iter().copied()) {
            let name = self.find_team(given)?;
            if let Some(other) = found.as_ref().filter(|other| **other != name) {
                let problem = format!("two teams are named: `{other}` and `{name}`");
                return Err(Failure::usage(problem, "name one team, with `-t` or as NAME@TEAM"));
            }
            found = Some(name);
        }
        match (found, self.ctx.caller.var("PHALANX_TEAM")) {
            (None, Some(given)) => self.find_team(&given.to_string_lossy()).map(Some),
            (found, _) => Ok(found),
        }
    }

    fn find_team(&self, given: &str) -> Result<TeamName, Failure> {
        self.ctx.store.find(given).map_err(|e| match e {
            StoreError::Name(_) => {
                let problem = format!("{given:?} is not the name of a team");
                Failure::usage(problem, "list the teams with `phalanx team list`")
            }
            e => e.into(),
        })
    }
}

/// Splits addresses into the names and the teams that some of them name.
fn split_addresses<'g>(given: &[&'g str]) -> (Vec<&'g str>, Vec<&'g str>) {
    let (names, teams): (Vec<_>, Vec<_>) = given.iter().map(|one| split_address(one)).unzip();
    (names, teams.into_iter().flatten().collect())
}

/// Splits the address of a member: NAME or NAME@TEAM.
fn split_address(given: &str) -> (&str, Option<&str>) {
    match given.rsplit_once('@') {
        Some((name, team)) if !name.is_empty() && !team.is_empty() => (name, Some(team)),
        Some(_) | None => (given, None),
    }
}

/// Parses the value of `--since`: an RFC 3339 time, or a time span before now.
pub(super) fn since(given: &str) -> Result<Timestamp, Failure> {
    parse_since(given, ops::now()).ok_or_else(|| {
        let hint =
            "write a span such as 90s, 10m, 2h or 1d, or a time such as 2026-01-31T12:00:00Z";
        Failure::usage(format!("{given:?} is not a time"), hint)
    })
}

/// Returns the store of a launcher, whose spec names the root.
pub(super) fn launcher_store() -> Store {
    let exe = env::current_exe().unwrap_or_else(|_| PathBuf::from("phalanx"));
    let caller = Caller { env: env::vars(), cwd: PathBuf::from("/"), exe };
    let root = caller.var("PHALANX_CONFIG_DIR").map(PathBuf::from);
    let root = root.or_else(|| Some(env::home_dir()?.join(".claude"))).unwrap_or_default();
    Store::at(&root).with_access(store_access(&caller))
}

/// Returns the access to shared stores that this process has.
fn store_access(caller: &Caller) -> StoreAccess {
    let text = |name: &str| caller.var(name).and_then(OsStr::to_str).map(str::to_owned);
    let home = || text("HOME").map(PathBuf::from).or_else(env::home_dir);
    let passfile = text("PGPASSFILE").map(PathBuf::from).or_else(|| Some(home()?.join(".pgpass")));
    StoreAccess {
        broker: BrokerCommand {
            program: caller.exe.clone(),
            args: vec!["store".into(), "serve".into()],
            // It serves all teams, and outlives the member that happens to start it.
            env: caller.env.iter().filter(|(name, _)| !is_own(name)).cloned().collect(),
        },
        incarnation: text("PHALANX_INCARNATION"),
        short_dirs: short_dirs(caller),
        password: text("PGPASSWORD"),
        passfile,
        host: host_name(text("PHALANX_HOST").as_deref()),
    }
}

/// Returns true for a variable of phalanx.
fn is_own(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with("PHALANX_")
}

/// Returns the address of a shared store: `given`, or that of `PHALANX_STORE`.
pub(super) fn store_url(setup: &Setup, given: Option<&str>) -> Result<StoreUrl, Failure> {
    let caller = &setup.ctx.caller;
    let text = given.or_else(|| caller.var("PHALANX_STORE").and_then(OsStr::to_str));
    let text = text.ok_or_else(|| {
        Failure::usage("no shared store is named", "pass its address, or set PHALANX_STORE")
    })?;
    let access = store_access(caller);
    let url = StoreUrl::parse(text).map_err(StoreError::from)?;
    Ok(url.with_password(access.password.as_deref(), access.passfile.as_deref()))
}

/// Returns the directories for the sockets of brokers with paths that are too long otherwise.
fn short_dirs(caller: &Caller) -> Vec<PathBuf> {
    let runtime = caller.var("XDG_RUNTIME_DIR").map(|dir| Path::new(dir).join("phalanx-store"));
    let short = PathBuf::from(format!("/tmp/phalanx-store-{}", env::effective_uid()));
    runtime.filter(|dir| dir.is_absolute()).into_iter().chain([short]).collect()
}

/// Returns the name of this host: `given`, else what the rule for names leaves of the system's.
fn host_name(given: Option<&str>) -> HostName {
    let own = env::hostname();
    let usable = |name: &str| {
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        HostName::new(name.trim_matches('-')).ok()
    };
    let found = given.and_then(|name| HostName::new(name).ok()).or_else(|| usable(&own));
    found.unwrap_or_else(|| HostName::new("local").expect("it follows the rule"))
}

fn parse_member(given: &str) -> Result<MemberName, Failure> {
    MemberName::existing(given).map_err(|_| invalid_name(given))
}

fn invalid_name(given: &str) -> Failure {
    let hint = "see who is on the team with `phalanx status`";
    Failure::usage(format!("{given:?} is not the name of a member"), hint)
}

fn config_root(
    flag: Option<&Path>,
    caller: &Caller,
    home: Option<PathBuf>,
) -> Result<PathBuf, Failure> {
    let var = |name| caller.var(name).map(PathBuf::from);
    let given = flag.map(Path::to_owned).filter(|dir| *dir != Path::new(""));
    let found = given.or_else(|| var("PHALANX_CONFIG_DIR")).or_else(|| var("CLAUDE_CONFIG_DIR"));
    if let Some(root) = found {
        return Ok(caller.cwd.join(root).components().collect());
    }
    match home {
        Some(home) if fs::is_dir(&home) => {
            Ok(caller.cwd.join(home).join(".claude").components().collect())
        }
        Some(home) => {
            let problem = format!("the home directory {} does not exist", home.display());
            Err(Failure::new(Kind::Backend, problem, Some(CHOOSE_ROOT.to_owned())))
        }
        None => Err(Failure::usage("there is no home directory to keep teams in", CHOOSE_ROOT)),
    }
}

/// Resolves a root that is a symbolic link, because dotfile managers keep `~/.claude` elsewhere. A
/// link to another user's directory is refused; below the root no link is followed.
fn real_root(root: PathBuf) -> Result<PathBuf, Failure> {
    if !fs::about(&root)?.is_some_and(|about| about.kind == fs::FileKind::Link) {
        return Ok(root);
    }
    let refused = |problem: String| {
        let problem = format!("the link {} cannot be used: {problem}", root.display());
        Failure::new(Kind::Backend, problem, Some(CHOOSE_ROOT.to_owned()))
    };
    let real = fs::canonical(&root).map_err(|e| refused(chain(&e)))?;
    match fs::about(&real)? {
        Some(about) if about.uid != env::effective_uid() => {
            Err(refused(format!("{} belongs to user {}", real.display(), about.uid)))
        }
        _ => Ok(real),
    }
}

/// Returns whether the options name another team than the caller's own.
fn is_elsewhere(store: &Store, named: Option<&str>, caller: &Caller) -> bool {
    let root = caller.var("PHALANX_CONFIG_DIR").is_none_or(|root| root == store.root().as_os_str());
    let own = caller.var("PHALANX_TEAM").map(OsStr::to_string_lossy);
    match (named, own) {
        _ if !root => true,
        (Some(named), Some(own)) => {
            named != own && store.find(named).is_ok_and(|name| name.as_str() != own)
        }
        (_, _) => false,
    }
}

/// Returns the member to act as, and the team of its address. A teammate's identity is valid only
/// in its own team: elsewhere it acts as the lead unless `--as` is given.
fn resolve_speaker(
    flag: Option<&str>,
    caller: &Caller,
    is_elsewhere: bool,
) -> Result<(MemberName, Option<String>), Failure> {
    let given: Option<OsString> = flag.map(OsString::from);
    let own = caller.var("PHALANX_AGENT_NAME").filter(|_| !is_elsewhere).map(OsStr::to_owned);
    match given.or(own) {
        Some(given) => {
            let given = given.to_string_lossy();
            let (name, team) = split_address(&given);
            Ok((parse_member(name)?, team.map(str::to_owned)))
        }
        None => Ok((MemberName::lead(), None)),
    }
}

/// Returns a variable that only a teammate's process has.
pub(super) fn identity_var(ctx: &Context, name: &str) -> Result<String, Failure> {
    let value = ctx.caller.var(name).and_then(OsStr::to_str).map(str::to_owned);
    value.ok_or_else(|| {
        let hint = Some("this verb is started by `phalanx spawn`, not by hand".to_owned());
        Failure::new(Kind::Usage, format!("${name} is not set"), hint)
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
    fn config_root_is_the_first_one_given_and_absolute() {
        let dir = tempfile::tempdir().expect("a home");
        let home = || Some(dir.path().to_owned());
        let both = [("PHALANX_CONFIG_DIR", "p"), ("CLAUDE_CONFIG_DIR", "/c")];
        let get = |flag: Option<&str>, vars: &[(&str, &str)]| {
            config_root(flag.map(Path::new), &caller(vars), home())
                .expect("root")
                .display()
                .to_string()
        };
        assert_eq!(get(Some("./x/"), &both), "/here/x");
        assert_eq!(get(None, &both), "/here/p");
        assert_eq!(get(None, &[("PHALANX_CONFIG_DIR", ""), both[1]]), "/c");
        assert_eq!(get(None, &[]), dir.path().join(".claude").to_string_lossy());
        let missing =
            config_root(None, &caller(&[]), Some(dir.path().join("missing"))).expect_err("no home");
        assert_eq!(missing.exit(), Exit::of(Kind::Backend));
        assert!(config_root(None, &caller(&[]), None).is_err());
    }

    #[test]
    fn speaker_is_the_lead_unless_another_member_is_named() {
        let vars = [("PHALANX_AGENT_NAME", "ada")];
        let name = |flag, vars: &[(&str, &str)]| {
            resolve_speaker(flag, &caller(vars), false).map(|(n, _)| n.to_string()).ok()
        };
        assert_eq!(name(Some("bob"), &vars).as_deref(), Some("bob"));
        assert_eq!(name(None, &vars).as_deref(), Some("ada"));
        assert_eq!(name(None, &[]).as_deref(), Some("team-lead"));
        assert_eq!(name(Some("lead"), &[]).as_deref(), Some("team-lead"));
        assert_eq!(name(Some("../x"), &[]), None);
        let elsewhere = resolve_speaker(None, &caller(&vars), true).expect("the lead");
        assert_eq!(elsewhere.0, MemberName::lead());
    }

    #[test]
    fn member_can_be_addressed_with_its_team() {
        assert_eq!(split_address("ann@demo"), ("ann", Some("demo")));
        assert_eq!(split_address("team-lead@My Demo!"), ("team-lead", Some("My Demo!")));
        assert_eq!(split_address("ann"), ("ann", None));
        assert_eq!(split_address("ann@"), ("ann@", None));
        assert_eq!(split_address("@demo"), ("@demo", None));
        let (name, team) =
            resolve_speaker(Some("ada@demo"), &caller(&[]), false).expect("a speaker");
        assert_eq!((name.as_str(), team.as_deref()), ("ada", Some("demo")));
    }
}
