//! The agent programs on the caller's `PATH`, with their versions and with their credentials, as
//! far as these are known without a network.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::members::profiles;
use crate::{Caller, Context, OpsError};
use model::members::launch::LaunchSpec;
use model::text;
use profile::{LoginSigns, Profile, builtin_names};
use sys::exec::{self, ExecCommand};
use sys::parallel::parallel_map;
use sys::{env, fs};

/// Time limit for a program to print its version.
const VERSION_WITHIN: Duration = Duration::from_secs(5);
/// Characters of a version that are kept.
const VERSION: usize = 40;

/// An agent program that can be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentProgram {
    /// Name of its profile.
    pub profile: String,
    pub program: PathBuf,
    /// `None` if the program did not report one.
    pub version: Option<String>,
    /// The newest version that its profile was tried with.
    pub tried: Option<String>,
    pub login: LoginState,
}

impl AgentProgram {
    /// Returns its version for people. One that is newer than the profile may draw other screens.
    pub fn version_words(&self) -> String {
        let numbers = |version: &str| -> Vec<u32> {
            version.split('.').map(|number| number.parse().unwrap_or(0)).collect()
        };
        match (&self.version, &self.tried) {
            (None, _) => "version unknown".to_owned(),
            (Some(version), Some(tried)) if numbers(version) > numbers(tried) => {
                format!("{version} (not tried with phalanx; {tried} was)")
            }
            (Some(version), _) => version.clone(),
        }
    }
}

/// The credentials of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginState {
    /// There are some; they may have expired.
    LoggedIn,
    /// The profile does not say where they would be.
    Unknown,
    /// None of the places in the profile has any.
    NotFound,
}

impl LoginState {
    pub fn words(self) -> &'static str {
        match self {
            LoginState::LoggedIn => "logged in",
            LoginState::Unknown => "login unknown",
            LoginState::NotFound => "no login found",
        }
    }
}

/// Returns the agents on the caller's `PATH`, the most useful first: those with a login, then in
/// the order of the built-in profiles. Runs nothing.
///
/// # Errors
/// The directory of profiles cannot be read.
pub fn on_path(ctx: &Context) -> Result<Vec<AgentProgram>, OpsError> {
    let caller = &ctx.caller;
    let profiles = profiles::list(ctx)?.into_iter().filter_map(|listed| listed.profile.ok());
    let mut found: Vec<AgentProgram> =
        profiles.filter_map(|profile| agent_program(caller, profile)).collect();
    let place = |name: &str| builtin_names().position(|known| known == name).unwrap_or(usize::MAX);
    found.sort_by_key(|agent| (agent.login, place(&agent.profile)));
    Ok(found)
}

fn agent_program(caller: &Caller, profile: Profile) -> Option<AgentProgram> {
    let program = profile.program().filter(|_| profile.is_agent())?;
    let program = env::find_program(program.as_ref(), caller.var("PATH"), &caller.cwd)?;
    let login = profile.login.as_ref().map_or(LoginState::Unknown, |signs| login(caller, signs));
    Some(AgentProgram { profile: profile.name, program, version: None, tried: profile.seen, login })
}

fn login(caller: &Caller, signs: &LoginSigns) -> LoginState {
    let has_file = |file: &String| {
        let (first, rest) = file.split_once('/')?;
        let dir = match first.strip_prefix('$') {
            Some(variable) => PathBuf::from(caller.var(variable)?),
            None => caller.var("HOME").map(PathBuf::from).or_else(env::home_dir)?,
        };
        fs::exists(&dir.join(rest)).then_some(())
    };
    let is_set = |name: &String| caller.var(name).is_some();
    if signs.env.iter().any(is_set) || signs.files.iter().any(|file| has_file(file).is_some()) {
        LoginState::LoggedIn
    } else {
        LoginState::NotFound
    }
}

/// Returns advice for the agents of these members that cannot work here: the program is not on
/// PATH, or no login of it was found. Each is a line with what to type. Members on other hosts, and
/// those whose own environment may hold what is missing, are left out. Runs nothing.
///
/// # Errors
/// A profile that cannot be read.
pub fn advice<'s>(
    ctx: &Context,
    specs: impl IntoIterator<Item = &'s LaunchSpec>,
) -> Result<Vec<String>, OpsError> {
    let mut seen = BTreeSet::new();
    let mut lines = Vec::new();
    for spec in specs {
        let has_own = spec.host.is_some()
            || spec.env_file.is_some()
            || spec.wrap.as_ref().is_some_and(|wrap| !wrap.is_empty());
        let Some(name) = spec.profile.as_ref().filter(|name| !has_own && seen.insert(*name)) else {
            continue;
        };
        let profile = profiles::find(ctx, name)?;
        let sets = |variable: &str| spec.env.iter().any(|(name, _)| name == variable);
        lines.extend(missing(&ctx.caller, &profile, sets));
    }
    Ok(lines)
}

/// Returns what is missing for an agent whose member `sets` some variables.
fn missing(caller: &Caller, profile: &Profile, sets: impl Fn(&str) -> bool) -> Option<String> {
    let program = profile.program().filter(|_| profile.is_agent())?;
    if env::find_program(program.as_ref(), caller.var("PATH"), &caller.cwd).is_none() {
        let install = profile.install_hint();
        return Some(format!("`{program}` is not on PATH{install}")).filter(|_| !sets("PATH"));
    }
    let signs = profile.login.as_ref()?;
    if login(caller, signs) != LoginState::NotFound || signs.env.iter().any(|name| sets(name)) {
        return None;
    }
    let run = signs.run.as_ref().map(|line| format!("run `{line}`"));
    let set = signs.env.first().map(|name| format!("set {name}"));
    let ways: Vec<String> = run.into_iter().chain(set).collect();
    Some(format!("no login of {} was found; to log in: {}", profile.name, ways.join(", or ")))
}

/// Runs `PROGRAM --version` for each agent, all at the same time and not in the caller's directory,
/// whose configuration must not matter. A program that fails or takes too long has no version.
pub fn find_versions(ctx: &Context, agents: &mut [AgentProgram]) {
    let versions = parallel_map(agents, agents.len(), |agent| version(ctx, &agent.program));
    for (agent, version) in agents.iter_mut().zip(versions) {
        agent.version = version;
    }
}

fn version(ctx: &Context, program: &Path) -> Option<String> {
    let command = ExecCommand {
        program: program.into(),
        args: vec!["--version".into()],
        env: Some(ctx.caller.env.clone()),
        cwd: Some(PathBuf::from("/")),
        ..ExecCommand::default()
    };
    let output =
        exec::run(&command, VERSION_WITHIN).ok().filter(|output| output.code == Some(0))?;
    version_in(&String::from_utf8_lossy(&output.stdout))
}

/// Returns the version in the output of `--version`: the first word like `1.2.3` of the first line,
/// else the whole line.
fn version_in(printed: &str) -> Option<String> {
    let printed = text::plain(printed);
    let line = printed.lines().map(str::trim).find(|line| !line.is_empty())?;
    let numbers =
        |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    let words = line.split_whitespace();
    let found = words.map(|word| word.trim_start_matches('v').trim_end_matches('.')).find(numbers);
    Some(text::short(found.unwrap_or(line), VERSION))
}

/// Checks that a profile is that of an agent, which can do tasks that are given as text.
///
/// # Errors
/// [`OpsError::NoSuchProfile`] for an unknown name; [`OpsError::Usage`] for a profile that is no
/// agent's.
pub fn must_be_agent(ctx: &Context, name: &str) -> Result<(), OpsError> {
    let profile = profiles::find(ctx, name)?;
    if !profile.is_agent() {
        let (why, hint) = if profile.needs_command() {
            (
                "its program comes from a command line",
                "make a profile that names the program; see `phalanx docs profiles`",
            )
        } else {
            ("it only runs commands", "list the profiles with `phalanx profile list`")
        };
        let problem = format!("`{name}` is not an agent: {why}");
        return Err(OpsError::usage(problem, hint));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PM-20: a version that was never tried is named.
    #[test]
    fn pm_20_newer_version_than_the_tried_one_is_named() {
        let words = |version: Option<&str>, tried: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let (version, tried) = (owned(version), owned(tried));
            let (profile, program) = ("codex".to_owned(), PathBuf::from("codex"));
            let login = LoginState::Unknown;
            AgentProgram { profile, program, version, tried, login }.version_words()
        };
        let newer = "0.172.0 (not tried with phalanx; 0.171.0 was)";
        assert_eq!(words(Some("0.172.0"), Some("0.171.0")), newer);
        for known in ["0.171.0", "0.99.12", "of today"] {
            assert_eq!(words(Some(known), Some("0.171.0")), known);
            assert_eq!(words(Some(known), None), known);
        }
        assert_eq!(words(None, Some("0.171.0")), "version unknown");
    }

    #[test]
    fn version_is_the_number_of_the_first_line_without_control_characters() {
        for (printed, version) in [
            ("2.1.34 (Claude Code)\n", Some("2.1.34")),
            ("codex-cli 0.169.0\n", Some("0.169.0")),
            ("GitHub Copilot CLI 1.0.102.\n", Some("1.0.102")),
            ("\naider v0.86.2\nmore 1.2\n", Some("0.86.2")),
            ("tool of today\n", Some("tool of today")),
            ("\u{1b}[31m1.0\u{1b}[0m\u{9b}2J x", Some("1.0\u{fffd}2J")),
            ("", None),
            ("\n\n", None),
        ] {
            assert_eq!(version_in(printed).as_deref(), version, "{printed:?}");
        }
        assert_eq!(version_in(&"9.".repeat(500)).map(|version| version.chars().count()), Some(40));
    }

    #[test]
    fn login_is_found_by_a_variable_or_a_file() {
        let dir = tempfile::tempdir().expect("a home");
        let home = dir.path().to_string_lossy().into_owned();
        let caller = |more: &[(&str, &str)]| Caller {
            env: [("HOME", home.as_str())]
                .iter()
                .chain(more)
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            cwd: PathBuf::from("/"),
            exe: PathBuf::from("/bin/phalanx"),
        };
        let signs = LoginSigns {
            env: vec!["KEY".to_owned()],
            files: vec!["~/a/b.json".to_owned(), "$TOOL_HOME/b.json".to_owned()],
            run: None,
        };
        let state = |more: &[(&str, &str)]| login(&caller(more), &signs);
        assert_eq!(state(&[]), LoginState::NotFound);
        assert_eq!(state(&[("KEY", "")]), LoginState::NotFound);
        assert_eq!(state(&[("KEY", "x")]), LoginState::LoggedIn);
        sys::fs::private_dir(&dir.path().join("a")).expect("dir");
        sys::fs::create_new(&dir.path().join("a/b.json"), b"{}").expect("file");
        assert_eq!(state(&[]), LoginState::LoggedIn);
        let there = format!("{home}/a");
        assert_eq!(
            login(
                &caller(&[("TOOL_HOME", &there)]),
                &LoginSigns {
                    files: vec!["$TOOL_HOME/b.json".to_owned()],
                    ..LoginSigns::default()
                }
            ),
            LoginState::LoggedIn
        );
    }
}
