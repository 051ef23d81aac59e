//! Builds a teammate's command line and environment changes from its profile. Has no side effects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use strum::IntoEnumIterator;

use super::super::context::{Caller, Context};
use super::super::error::OpsError;
use super::super::roles;
use super::prepare::Draft;
use crate::model::brief;
use crate::model::mode::Mode;
use crate::model::order::Order;
use crate::model::role::Roles;
use crate::model::rules::Rule;
use crate::model::spec::Word;
use crate::model::team::{Member, Team};
use crate::profile::{self, Brief, Names, Profile, Runs, Values};
use crate::store::TeamStore;
use crate::sys::{fs, rand};

/// A command line and its changes to the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    /// Names of variables that must not be inherited.
    pub(super) without: Vec<String>,
}

/// The briefing and the first message of a teammate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// The text for the `brief` value of the command line.
    brief: Option<String>,
    /// The first message, delivered as the profile's `prompt` setting says.
    pub(super) first: Option<String>,
}

/// Values for the command line that are not part of the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaunchContext<'a> {
    /// The lead's session id; empty if it has none.
    pub(super) lead_session: &'a str,
    /// Id for a new session, if the profile accepts one.
    pub(super) new_session: Option<String>,
    /// Directories besides its working directory that the member may access.
    pub(super) add_dirs: &'a [String],
}

/// Generates an id for the new session of a program that accepts one.
pub(super) fn new_session(draft: &Draft) -> Option<String> {
    let begins = draft.part.order.session.is_none() && draft.profile.takes(Names::NewSession);
    begins.then(rand::uuid)
}

/// Composes the briefing and first message of `member`. `known` is the team including all members
/// of the batch. A resumed session got both when it began.
pub(super) fn told(
    ctx: &Context,
    roles: &Roles,
    draft: &Draft,
    known: &Team,
    member: &Member,
) -> Told {
    let order = &draft.part.order;
    let new = order.session.is_none();
    let is_briefed = new && draft.profile.launch.brief != Brief::None;
    let text = is_briefed.then(|| {
        let descriptions = roles::descriptions(ctx, roles, known);
        brief::brief(known, &member.name, draft.part.duty.as_deref(), &descriptions)
    });
    let prompt = order.prompt.clone().filter(|_| new);
    match draft.profile.launch.brief {
        Brief::Argv => Told { brief: text, first: prompt },
        Brief::FirstMessage => Told { brief: None, first: both(text, prompt) },
        // A run for one task gets no team briefing, but its role's instructions.
        Brief::None if order.task.is_some() => {
            Told { brief: None, first: both(draft.part.duty.clone(), prompt) }
        }
        Brief::None => Told { brief: None, first: prompt },
    }
}

/// Joins the texts that exist with an empty line.
fn both(first: Option<String>, then: Option<String>) -> Option<String> {
    let parts: Vec<String> = first.into_iter().chain(then).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Rejects options that the profile cannot pass to its program, instead of dropping them (ID-01,
/// PM-06).
///
/// # Errors
///
/// [`OpsError::Usage`] if a command line is missing or not accepted, or the profile has no word for
/// the model, the session or the mode.
pub(super) fn check(order: &Order, profile: &Profile) -> Result<(), OpsError> {
    let name = &profile.name;
    let usage = |problem: String, hint: String| Err(OpsError::Usage { problem, hint: Some(hint) });
    if profile.needs_command() && order.command.is_empty() {
        let hint = "put it after `--`: `phalanx spawn NAME -- CMD ARG`".to_owned();
        return usage(format!("profile `{name}` needs a command line"), hint);
    }
    if !profile.needs_command() && !order.command.is_empty() {
        let hint = "omit the command, or use `--profile shell`".to_owned();
        return usage(format!("profile `{name}` takes no command line"), hint);
    }
    if order.model.is_some() && !profile.takes(Names::Model) {
        return usage(format!("profile `{name}` takes no model"), "omit `--model`".to_owned());
    }
    if order.session.is_some() && profile.launch.resume.is_empty() {
        let problem = format!("profile `{name}` cannot resume a session");
        return usage(problem, "omit `--session`".to_owned());
    }
    match order.mode {
        Some(mode) if profile.mode_words(mode).is_none() => {
            let known = |mode: &Mode| profile.mode_words(*mode).is_some();
            let known: Vec<&str> = Mode::iter().filter(known).map(Mode::as_str).collect();
            let problem = format!("profile `{name}` has no permission mode `{}`", mode.as_str());
            usage(problem, format!("its modes: {}", known.join(", ")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks that a member of this profile can be made to plan first. Returns a warning if only its
/// briefing asks for it.
///
/// # Errors
///
/// [`OpsError::Usage`] if the profile has no way to require a plan, or its plan mode conflicts with
/// the ordered mode.
pub(super) fn check_plan(order: &Order, profile: &Profile) -> Result<Option<String>, OpsError> {
    let name = &profile.name;
    let usage =
        |problem: String, hint: &str| Err(OpsError::Usage { problem, hint: Some(hint.to_owned()) });
    let is_agent = profile.reads_mail && !profile.needs_command();
    match profile.runs {
        // The built-in worker asks for approval before each task.
        Runs::Native if profile.takes(Names::Phalanx) => Ok(None),
        Runs::Native if !is_agent || profile.launch.plan.is_empty() => {
            let problem = format!("profile `{name}` cannot be held to a plan");
            usage(problem, "omit `--plan`, or use a profile with `plan` in [launch]")
        }
        Runs::Native => Ok(None),
        Runs::Wrapped if profile.launch.plan.is_empty() => Ok(Some(format!(
            "`{name}` has no mode for planning: only its brief asks it to submit a plan first"
        ))),
        Runs::Wrapped if order.mode.is_some() => {
            let problem = format!(
                "profile `{name}` plans in a mode of its own, which it keeps while it runs"
            );
            usage(problem, "omit `--mode` or `--plan`")
        }
        Runs::Wrapped => Ok(None),
    }
}

/// Fills the profile's templates with the values of a member.
///
/// # Errors
///
/// [`OpsError::Usage`] if the command line comes out empty.
pub(super) fn command(
    ctx: &Context,
    team: &TeamStore,
    draft: &Draft,
    member: &Member,
    told: &Told,
    launch: &LaunchContext,
) -> Result<Command, OpsError> {
    let values = values(ctx, team, draft, member, told, launch);
    let profile = &draft.profile.launch;
    let words = if draft.part.order.session.is_some() { &profile.resume } else { &profile.argv };
    let argv = profile::fill(words, &values);
    if argv.is_empty() {
        let problem = format!("profile `{}` comes to no command line", draft.profile.name);
        return Err(OpsError::Usage {
            problem,
            hint: Some("its `argv` needs a group without values".to_owned()),
        });
    }
    let filled = profile.env.iter().map(|(name, value)| (name, value.fill(&values)));
    let (present, absent): (Vec<_>, Vec<_>) = filled.partition(|(_, value)| value.is_some());
    Ok(Command {
        argv,
        env: present
            .into_iter()
            .map(|(name, value)| (name.clone(), value.unwrap_or_default().join(" ")))
            .collect(),
        without: absent.into_iter().map(|(name, _)| name.clone()).collect(),
    })
}

/// Returns the launcher's argv: the program itself, or the wrapper, which reads the program from
/// the member's record.
pub(super) fn started(ctx: &Context, draft: &Draft, command: &Command) -> Vec<Word> {
    match draft.profile.runs {
        Runs::Native => command.argv.iter().map(|word| Word::of(word.as_ref())).collect(),
        Runs::Wrapped => vec![Word::of(ctx.caller.exe.as_os_str()), Word::of("wrap".as_ref())],
    }
}

fn values(
    ctx: &Context,
    team: &TeamStore,
    draft: &Draft,
    member: &Member,
    told: &Told,
    launch: &LaunchContext,
) -> Values {
    let (order, tools) = (&draft.part.order, &draft.part.tools);
    let profile = &draft.profile.launch;
    let one = |value: &str| Some(vec![value.to_owned()]);
    let value = |name: Names| match name {
        Names::Model => order.model.as_deref().and_then(one),
        Names::Mode => {
            order.mode.and_then(|mode| draft.profile.mode_words(mode)).map(<[String]>::to_vec)
        }
        Names::Plan => draft.plan.then(|| profile.plan.clone()),
        Names::Prompt => told.first.as_deref().and_then(one),
        Names::Brief => told.brief.as_deref().and_then(one),
        Names::AgentId => one(&member.agent_id),
        Names::AgentName => one(member.name.as_str()),
        Names::Team => one(team.name().as_str()),
        Names::Color => member.color.as_deref().and_then(one),
        Names::Session => {
            Some(launch.lead_session).filter(|session| !session.is_empty()).and_then(one)
        }
        Names::NewSession => launch.new_session.as_deref().and_then(one),
        Names::Role => order.role.as_deref().and_then(one),
        Names::Agents => draft.part.agents.as_deref().and_then(one),
        Names::AllowedTools => tools
            .allowed
            .as_deref()
            .and_then(|allowed| one(&whole_tools(allowed, &profile.keep_tools))),
        Names::DisallowedTools => {
            let words: Vec<String> = tools.disallowed.iter().cloned().map(String::from).collect();
            (!words.is_empty()).then(|| vec![words.join(",")])
        }
        Names::Resume => order.session.as_deref().and_then(one),
        Names::ConfigDir => {
            config_dir(&ctx.caller, team.root()).map(|dir| vec![dir.to_string_lossy().into_owned()])
        }
        Names::AddDir => Some(launch.add_dirs.to_vec()).filter(|dirs| !dirs.is_empty()),
        Names::Phalanx => one(&ctx.caller.exe.to_string_lossy()),
        Names::Command => (!order.command.is_empty()).then(|| order.command.clone()),
    };
    Names::iter().filter_map(|name| Some((name, value(name)?))).collect()
}

/// Joins the names of the tools with commas, without duplicates.
fn whole_tools(allowed: &[Rule], kept: &[String]) -> String {
    let mut names: Vec<&str> =
        allowed.iter().map(Rule::tool).chain(kept.iter().map(String::as_str)).collect();
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    names.join(",")
}

/// Returns the value of `CLAUDE_CONFIG_DIR` for a member of a team under `root`. None for
/// `~/.claude`, unless the caller's own variable names it: claude reads other files in that
/// directory when the variable is set.
fn config_dir(caller: &Caller, root: &Path) -> Option<PathBuf> {
    // A team's root is already canonical; the caller's variable may name a symlink to it.
    let is_root = |dir: &PathBuf| dir == root || fs::canonical(dir).is_ok_and(|real| real == root);
    let named = caller.var("CLAUDE_CONFIG_DIR").map(|dir| caller.cwd.join(dir));
    let default = caller.var("HOME").map(|home| Path::new(home).join(".claude"));
    match named.filter(is_root) {
        Some(own) => Some(own),
        None if default.as_ref().is_some_and(is_root) => None,
        None => Some(root.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn en_02_config_dir_is_passed_on_if_it_names_the_root() {
        let dir = tempfile::tempdir().expect("a home");
        let (home, other) = (dir.path().join("home"), dir.path().join("other"));
        let usual = home.join(".claude");
        for made in [&home, &usual, &other] {
            fs::private_dir(made).expect("dir");
        }
        std::os::unix::fs::symlink(&usual, dir.path().join("link")).expect("link");
        let given = |root: &Path, own: Option<&Path>| {
            let own = own.map(|own| ("CLAUDE_CONFIG_DIR".into(), own.into()));
            let env = own.into_iter().chain([("HOME".into(), home.clone().into())]).collect();
            let caller =
                Caller { env, cwd: dir.path().to_owned(), exe: PathBuf::from("/bin/phalanx") };
            config_dir(&caller, root)
        };
        assert_eq!(given(&usual, None), None);
        assert_eq!(given(&usual, Some(&usual)), Some(usual.clone()));
        assert_eq!(given(&usual, Some(Path::new("link"))), Some(dir.path().join("link")));
        assert_eq!(given(&usual, Some(&other)), None, "`--config-dir` chose the root");
        assert_eq!(given(&other, None), Some(other.clone()));
        assert_eq!(given(&other, Some(&usual)), Some(other.clone()));
    }
}
