//! Builds a teammate's command line and environment from its profile. Has no side effects.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use strum::IntoEnumIterator;

use super::batch::BatchContext;
use super::resolve::ResolvedLaunch;
use crate::members::depth;
use crate::starting::roles;
use crate::{Caller, OpsError};
use model::decisions::rules::Rule;
use model::members::environ::{self, EnvRules};
use model::members::placeholder::MemberValues;
use model::members::record::MemberRecord;
use model::team::brief;
use model::team::{Member, Team};
use profile::{self, Brief, Placeholder, Profile, Runs, Values};
use sys::{fs, rand};
use worktree::MISLEADING;

/// The command line of a program, with its changes to the environment and its first message.
pub(super) struct CommandLine {
    pub(super) argv: Vec<String>,
    env: Vec<(String, String)>,
    /// Names of variables that must not be inherited.
    without: Vec<String>,
    /// The first message, with the briefing if that goes in the same way. It is delivered as the
    /// profile's `prompt` setting says.
    pub(super) first: Option<String>,
    /// The mode of its session, for an agent over ACP.
    pub(super) session_mode: Option<String>,
    /// The program's session: resumed, or new with an id of our choice.
    pub(super) session: Option<String>,
}

/// Fills the profile's templates with the values of a member. `known` is the team including all
/// members of the batch.
///
/// # Errors
///
/// [`OpsError::Usage`] if the command line comes out empty.
pub(super) fn command_line(
    batch: &BatchContext,
    launch: &ResolvedLaunch,
    member: &Member,
    numbered: MemberValues<'_>,
    known: &Team,
) -> Result<CommandLine, OpsError> {
    let profile = &launch.profile;
    let (brief, first) = first_message(batch, launch, member, known);
    let begins = launch.spec.session.is_none() && profile.takes(Placeholder::NewSession);
    let new_session = begins.then(rand::uuid);
    // An agent over ACP loads its session with a request.
    let resumes = launch.spec.session.is_some() && profile.runs != Runs::Acp;
    let words = if resumes { &profile.launch.resume } else { &profile.launch.argv };
    let mut values = values(batch, launch, member);
    if let Some(command) = values.get_mut(&Placeholder::Command) {
        command.iter_mut().for_each(|word| *word = numbered.fill(word));
    }
    let texts = [
        (Placeholder::Prompt, &first),
        (Placeholder::Brief, &brief),
        (Placeholder::NewSession, &new_session),
    ];
    values.extend(texts.into_iter().filter_map(|(name, text)| Some((name, vec![text.clone()?]))));
    let argv = profile::fill(words, &values);
    if argv.is_empty() {
        let problem = format!("profile `{}` comes to no command line", profile.name);
        return Err(OpsError::usage(problem, "its `argv` needs a group without values"));
    }
    let (mut env, mut without) = (Vec::new(), Vec::new());
    for (name, value) in &profile.launch.env {
        match value.fill(&values) {
            Some(words) => env.push((name.clone(), words.join(" "))),
            None => without.push(name.clone()),
        }
    }
    let session = new_session.or_else(|| launch.spec.session.clone());
    let session_mode = session_mode(&values, profile);
    Ok(CommandLine { argv, env, without, first, session_mode, session })
}

/// Returns the modes for the session of an agent over ACP. A plan is made in its own modes.
fn session_mode(values: &Values, profile: &Profile) -> Option<String> {
    let words = [Placeholder::Plan, Placeholder::Mode].map(|name| values.get(&name));
    let words = words.into_iter().flatten().find(|words| !words.is_empty())?;
    (profile.runs == Runs::Acp).then(|| words.join("\n"))
}

/// Composes the text for the `brief` value of the command line, and the first message, which a
/// resumed session got when it began.
fn first_message(
    batch: &BatchContext,
    launch: &ResolvedLaunch,
    member: &Member,
    known: &Team,
) -> (Option<String>, Option<String>) {
    let resumes = launch.spec.session.is_some();
    let prompt = launch.spec.prompt.clone().filter(|_| !resumes);
    let instructions = launch.instructions();
    let briefing = || {
        let descriptions = roles::descriptions(batch.ctx, &batch.settings.roles, known);
        Some(brief::brief(known, &member.name, instructions, &descriptions))
    };
    match launch.profile.launch.brief() {
        Brief::Argv => (briefing(), prompt),
        Brief::Supplement => (Some(brief::supplement()), prompt),
        _ if resumes => (None, None),
        Brief::FirstMessage => (None, join_paragraphs(briefing(), prompt)),
        // A run for one task gets no team briefing, but its role's instructions.
        Brief::None if launch.spec.task.is_some() => {
            (None, join_paragraphs(instructions.map(str::to_owned), prompt))
        }
        Brief::None => (None, prompt),
    }
}

fn join_paragraphs(first: Option<String>, then: Option<String>) -> Option<String> {
    let parts: Vec<String> = first.into_iter().chain(then).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Returns the values of the templates that the spec, the member and the team have.
fn values(batch: &BatchContext, launch: &ResolvedLaunch, member: &Member) -> Values {
    let (spec, profile, ctx, team) = (&launch.spec, &launch.profile, batch.ctx, batch.team);
    let one = |value: &str| Some(vec![value.to_owned()]);
    let value = |name: Placeholder| match name {
        Placeholder::Model => spec.model.as_deref().and_then(one),
        Placeholder::Mode => {
            batch.mode_of(launch).and_then(|mode| profile.mode_words(mode)).map(<[String]>::to_vec)
        }
        Placeholder::Plan => spec.plan.then(|| profile.launch.plan.clone()),
        Placeholder::AgentId => one(&member.agent_id),
        Placeholder::AgentName => one(member.name.as_str()),
        Placeholder::Team => one(team.name().as_str()),
        Placeholder::Color => member.color.as_deref().and_then(one),
        Placeholder::Session => {
            let session = batch.roster.lead_session_id.as_deref();
            session.filter(|session| !session.is_empty()).and_then(one)
        }
        Placeholder::Role => spec.role.as_deref().and_then(one),
        Placeholder::Agents => launch.agents().map(|agents| vec![agents]),
        Placeholder::AllowedTools => {
            let allowed = spec.tools.allowed.as_deref();
            allowed.and_then(|allowed| one(&whole_tools(allowed, &profile.launch.keep_tools)))
        }
        Placeholder::DisallowedTools => {
            let words = spec.tools.disallowed.iter().cloned().map(String::from);
            let words = words.collect::<Vec<_>>().join(",");
            (!words.is_empty()).then(|| vec![words])
        }
        Placeholder::Resume => spec.session.as_deref().and_then(one),
        Placeholder::ConfigDir => {
            config_dir(&ctx.caller, team.root()).map(|dir| vec![dir.to_string_lossy().into_owned()])
        }
        Placeholder::AddDir => Some(batch.add_dirs.clone()).filter(|dirs| !dirs.is_empty()),
        Placeholder::Phalanx => one(&batch.exe.to_string_lossy()),
        Placeholder::Command => Some(spec.command.clone()).filter(|command| !command.is_empty()),
        // Composed by `command_line`.
        Placeholder::Prompt | Placeholder::Brief | Placeholder::NewSession => None,
    };
    Placeholder::iter().filter_map(|name| Some((name, value(name)?))).collect()
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

/// Composes the environment: the caller's, filtered by team and profile, then the profile's own
/// variables, the spec's, and those that identify a teammate to its own program.
pub(super) fn environment(
    batch: &BatchContext,
    launch: &ResolvedLaunch,
    command: &CommandLine,
    member: &Member,
    record: &MemberRecord,
    values: MemberValues<'_>,
) -> Vec<(OsString, OsString)> {
    let (ctx, team) = (batch.ctx, batch.team);
    let mut own =
        EnvRules { allow: launch.profile.launch.allow.clone(), deny: command.without.clone() };
    if member.worktree_path.is_some() {
        // These variables would make its git work on the caller's checkout (EN-07).
        own.deny.extend(MISLEADING.map(str::to_owned));
    }
    let chat = launch.chat();
    let workspace = team.workspace_dir(&batch.settings.workspace, &chat);
    let identity = [
        ("PHALANX_TEAM", team.name().to_string()),
        ("PHALANX_AGENT_ID", member.agent_id.clone()),
        ("PHALANX_AGENT_NAME", member.name.to_string()),
        ("PHALANX_AGENT_COLOR", member.color.clone().unwrap_or_default()),
        ("PHALANX_MEMBER_INDEX", values.index.to_string()),
        ("PHALANX_CONFIG_DIR", team.root().to_string_lossy().into_owned()),
        ("PHALANX_PARENT_SESSION_ID", batch.roster.lead_session_id.clone().unwrap_or_default()),
        ("PHALANX_INCARNATION", record.incarnation.to_string()),
        ("PHALANX_TOKEN", record.token.clone()),
        ("PHALANX_DEPTH", depth::below(ctx).to_string()),
        ("PHALANX_CHAT", chat.as_str().to_owned()),
        ("PHALANX_WORKSPACE", workspace.to_string_lossy().into_owned()),
    ];
    let profile = &launch.profile;
    let mail = (profile.runs != Runs::Native).then(|| profile.mail.as_str().to_owned());
    let mail = mail.map(|mail| ("PHALANX_MAIL", mail));
    let identity: Vec<_> =
        identity.into_iter().chain(mail).map(|(name, value)| (name.to_owned(), value)).collect();
    let inherited = environ::compose(&ctx.caller.env, &own, &[], &[]);
    let filled =
        launch.spec.env.iter().map(|(name, value)| (name.clone(), values.fill_value(value)));
    let extra: Vec<_> = command.env.iter().cloned().chain(filled).collect();
    let mut env = environ::compose(&inherited, &batch.settings.env, &extra, &identity);
    environ::add_defaults(&mut env, &profile.launch.default_env);
    env.push(("PWD".into(), member.cwd.clone().into()));
    env
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
