//! Resolves launch specs: finds profile, role and repository, fills the gaps of the spec from the
//! role (ID-02), and rejects what the program cannot do (ID-01, PM-06). Has no side effects.

use std::path::{Path, PathBuf};

use serde_json::json;
use strum::IntoEnumIterator;

use crate::members::profiles;
use crate::starting::roles::{self, ResolvedRole, RoleSource};
use crate::{Context, OpsError};
use model::decisions::rules::Rule;
use model::id::MemberName;
use model::mail::scope::ChatName;
use model::members::environ;
use model::members::launch::LaunchSpec;
use model::members::mode::Mode;
use model::members::placeholder;
use model::team::role::{Role, Tools};
use model::team::settings::Settings;
use model::text;
use profile::{self, Brief, Placeholder, Profile, Runs};
use worktree::Repository;

/// If `true` in the caller's environment, every teammate must have a plan approved before it works.
const PLAN_REQUIRED: &str = "CLAUDE_CODE_PLAN_MODE_REQUIRED";

/// A valid launch spec, with everything that it refers to. Its name may still be taken.
pub(super) struct ResolvedLaunch {
    /// The spec with its gaps filled from the role.
    pub(super) spec: LaunchSpec,
    pub(super) name: MemberName,
    pub(super) profile: Profile,
    role: Option<ResolvedRole>,
    /// The working directory, or the one whose repository the worktree is made from.
    pub(super) cwd: String,
    /// The source of its worktree, if one is requested.
    pub(super) repository: Option<Repository>,
    /// Messages for the user.
    pub(super) warnings: Vec<String>,
}

/// Validates one spec without looking at the team.
///
/// # Errors
///
/// The name, role, profile, command line, environment or worktree is invalid, the role is reserved
/// for tasks, the program has no one-shot form for a task, or the member is for another host.
pub(super) fn resolve(
    ctx: &Context,
    settings: &Settings,
    wanted: &LaunchSpec,
) -> Result<ResolvedLaunch, OpsError> {
    let roles = &settings.roles;
    let mut spec = wanted.clone();
    let default = if spec.command.is_empty() { profile::WORKER } else { profile::SHELL };
    let mut profile = profiles::find(ctx, spec.profile.as_deref().unwrap_or(default))?;
    if spec.task.is_some() {
        profile = one_shot_form(profile)?;
    }
    let name = MemberName::new(&spec.name)?;
    let cwd = ctx.caller.cwd.join(spec.cwd.as_deref().unwrap_or("."));
    let cwd = cwd.components().collect::<PathBuf>();
    let role =
        spec.role.as_deref().map(|role| roles::resolve_role(ctx, roles, role, &cwd)).transpose()?;
    let mut warnings = Vec::new();
    if let Some(role) = &role {
        apply_role(&mut spec, role, &profile, &mut warnings);
    }
    // A member in plan mode has its plan approved before it does anything else.
    if spec.mode == Some(Mode::Plan) && spec.task.is_none() {
        (spec.mode, spec.plan) = (None, true);
    }
    spec.tools = spec.tools.or(&roles.tools).without_forbidden();
    warnings.extend(unenforced(&spec.tools, &profile));
    check_options(&spec, &profile)?;
    if let Some((bad, _)) = spec.env.iter().find(|(name, _)| !environ::may_be_set(name)) {
        return Err(usage(format!("{bad:?} cannot be set as an environment variable"), None));
    }
    // A task may have variables of its own, with any text in braces.
    if spec.task.is_none() {
        for (name, value) in &spec.env {
            let is_known = placeholder::check_value(value);
            is_known.map_err(|problem| usage(format!("`{name}` {problem}"), None))?;
        }
    }
    let required = ctx.caller.var(PLAN_REQUIRED).is_some_and(|word| word == "true");
    spec.plan |= required && !profile.needs_command();
    let cwd = cwd.to_string_lossy().into_owned();
    let repository = match (&spec.worktree, &spec.origin) {
        (Some(_), Some(origin)) => Some(Repository::at(Path::new(&origin.copy), &ctx.caller.env)),
        (Some(_), None) => {
            let repository = Repository::find(Path::new(&cwd), &ctx.caller.env)?;
            repository.must_not_be_linked(settings.worktree.dir.as_deref())?;
            Some(repository)
        }
        (None, _) => None,
    };
    let mut launch = ResolvedLaunch { spec, name, profile, role, cwd, repository, warnings };
    if launch.spec.task.is_some() {
        launch.warnings.extend(launch.check_one_shot()?);
        return Ok(launch);
    }
    if launch.spec.plan {
        launch.warnings.extend(check_plan(&launch.spec, &launch.profile)?);
    }
    match &launch.spec.role {
        Some(role) if roles.named.get(role).is_some_and(|role| role.task_only) => Err(usage(
            format!("role `{}` is task-only: nobody stands in it", text::line(role)),
            Some("make a task for it; the lead starts a run for each"),
        )),
        Some(_) | None => Ok(launch),
    }
}

impl ResolvedLaunch {
    /// Changes the launch to the one-shot form of its program, which answers its prompt and exits.
    /// Returns a warning for the user about an option that this form drops.
    ///
    /// # Errors
    ///
    /// There is no prompt or no one-shot form, an option cannot be passed to that form, or a plan
    /// is required.
    pub(super) fn make_one_shot(&mut self) -> Result<Option<String>, OpsError> {
        if self.spec.prompt.is_none() {
            return Err(usage("there is no prompt that it could answer".to_owned(), None));
        }
        self.profile = one_shot_form(self.profile.clone())?;
        check_options(&self.spec, &self.profile)?;
        self.check_one_shot()
    }

    fn check_one_shot(&self) -> Result<Option<String>, OpsError> {
        // A plain command line makes no plans.
        if self.profile.needs_command() {
            return Ok(None);
        }
        if self.spec.plan {
            let problem = format!(
                "`{}` has to have a plan approved, and a run without mail cannot",
                self.name
            );
            return Err(usage(problem, None));
        }
        let dropped = self.spec.mode.filter(|_| !self.profile.takes(Placeholder::Mode));
        Ok(dropped.map(|mode| {
            let (name, mode) = (&self.profile.name, mode.as_str());
            format!("the one-shot form of `{name}` is not told its mode, `{mode}`")
        }))
    }

    /// Returns the conversation whose workspace the member gets.
    pub(super) fn chat(&self) -> ChatName {
        let given = self.spec.chat.as_deref().and_then(|chat| ChatName::parse(chat).ok());
        given.unwrap_or_default()
    }

    /// Returns the colour that the role defines.
    pub(super) fn color(&self) -> Option<&str> {
        self.role.as_ref()?.role.color.as_deref()
    }

    /// Returns the role's instructions, for a program that accepts no roles.
    pub(super) fn instructions(&self) -> Option<&str> {
        let role = self.role.as_ref().filter(|_| !self.profile.takes(Placeholder::Agents))?;
        role.role.prompt.as_deref()
    }

    /// Returns the role as JSON for Claude Code's `--agents`, if the program accepts roles but
    /// cannot find this one itself. Model and tools have separate flags.
    pub(super) fn agents(&self) -> Option<String> {
        let ResolvedRole { name, role, source } = self.role.as_ref()?;
        if !self.profile.takes(Placeholder::Agents) || *source != RoleSource::Manifest {
            return None;
        }
        let Role { prompt, description, .. } = role;
        let prompt = prompt.as_deref()?;
        let description = description.as_deref().filter(|words| !words.trim().is_empty());
        let description = description.unwrap_or(name);
        Some(json!({ name: { "description": description, "prompt": prompt } }).to_string())
    }

    /// Returns whether the member works as soon as it is up: on a task, or on its first message. A
    /// worker only shows its first message. A resumed session got its first message when it began.
    pub(super) fn works_at_once(&self) -> bool {
        let briefed = self.profile.launch.brief() == Brief::FirstMessage;
        let has_first_message =
            (self.spec.prompt.is_some() || briefed) && self.spec.session.is_none();
        (has_first_message && self.profile.name != profile::WORKER) || self.spec.task.is_some()
    }
}

fn one_shot_form(profile: Profile) -> Result<Profile, OpsError> {
    let problem = format!("profile `{}` has no one-shot form", profile.name);
    profile.once().ok_or_else(|| usage(problem, None))
}

fn usage(problem: String, hint: Option<&str>) -> OpsError {
    OpsError::Usage { problem, hint: hint.map(str::to_owned) }
}

/// Fills the gaps of a spec from its role. Settings of an agent file that this program does not
/// support cause warnings, because such files are written for another program.
fn apply_role(
    spec: &mut LaunchSpec,
    found: &ResolvedRole,
    profile: &Profile,
    warnings: &mut Vec<String>,
) {
    let ResolvedRole { name, role, source } = found;
    let (shown, program) = (text::line(name), &profile.name);
    let mut warn = |problem: String| warnings.push(format!("role `{shown}`: {problem}"));
    let is_file = matches!(source, RoleSource::File(_, _));
    if spec.model.is_none() {
        let passes = profile.takes_model() && (!is_file || profile.takes(Placeholder::Agents));
        match &role.model {
            Some(model) if !passes => {
                warn(format!("its model, `{}`, is not passed to `{program}`", text::line(model)));
            }
            model => spec.model.clone_from(model),
        }
    }
    if spec.mode.is_none() {
        match role.mode {
            Some(Mode::Plan) if !profile.launch.plan.is_empty() => spec.mode = Some(Mode::Plan),
            Some(mode) if is_file && profile.mode_words(mode).is_none() => {
                warn(format!("`{program}` has no mode `{}`", mode.as_str()));
            }
            mode => spec.mode = mode,
        }
    }
    if spec.wrap.is_none() {
        spec.wrap.clone_from(&role.wrap);
    }
    if let RoleSource::File(path, notes) = source {
        warnings.extend(notes.iter().map(|note| format!("{}: {note}", path.display())));
    }
    spec.tools = std::mem::take(&mut spec.tools).or(&role.tools);
}

/// Returns warnings about tool rules that this program cannot enforce.
fn unenforced(tools: &Tools, profile: &Profile) -> Vec<String> {
    let words =
        |rules: &[Rule]| rules.iter().cloned().map(String::from).collect::<Vec<_>>().join(", ");
    let (name, mut warnings) = (&profile.name, Vec::new());
    if let Some(allowed) = &tools.allowed {
        let narrow: Vec<Rule> = allowed.iter().filter(|rule| !rule.is_whole()).cloned().collect();
        if !profile.takes(Placeholder::AllowedTools) {
            warnings.push(format!("`{name}` cannot be held to these tools: {}", words(allowed)));
        } else if !narrow.is_empty() {
            warnings.push(format!("`{name}` is held to {} only where it asks", words(&narrow)));
        }
    }
    if !tools.disallowed.is_empty() && !profile.takes(Placeholder::DisallowedTools) {
        let words = words(&tools.disallowed);
        warnings.push(format!("`{name}` cannot be kept from these tools: {words}"));
    }
    warnings
}

/// Rejects options that the profile cannot pass to its program, instead of dropping them (ID-01,
/// PM-06).
///
/// # Errors
///
/// [`OpsError::Usage`] if a command line is missing or not accepted, or the profile has no word for
/// the model, the session or the mode.
fn check_options(spec: &LaunchSpec, profile: &Profile) -> Result<(), OpsError> {
    let name = &profile.name;
    let member = text::line(&spec.name);
    let reject = |problem: String, hint: &str| Err(usage(problem, Some(hint)));
    if profile.needs_command() && spec.command.is_empty() {
        let hint = "in a manifest add `run = [\"CMD\", \"ARG\"]`; for `spawn` add `-- CMD ARG`";
        return reject(format!("profile `{name}` of `{member}` needs a command line"), hint);
    }
    if !profile.needs_command() && !spec.command.is_empty() {
        let hint =
            "omit the command line, which is `run` in a manifest, or use the profile `shell`";
        return reject(format!("profile `{name}` of `{member}` takes no command line"), hint);
    }
    if spec.model.is_some() && !profile.takes_model() {
        return reject(format!("profile `{name}` takes no model"), "omit `--model`");
    }
    if spec.session.is_some() && !profile.can_resume() {
        return reject(format!("profile `{name}` cannot resume a session"), "omit `--session`");
    }
    match spec.mode {
        Some(mode) if profile.mode_words(mode).is_none() => {
            let known = |mode: &Mode| profile.mode_words(*mode).is_some();
            let known: Vec<&str> = Mode::iter().filter(known).map(Mode::as_str).collect();
            let problem = format!("profile `{name}` has no permission mode `{}`", mode.as_str());
            reject(problem, &format!("its modes: {}", known.join(", ")))
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
/// the requested mode.
fn check_plan(spec: &LaunchSpec, profile: &Profile) -> Result<Option<String>, OpsError> {
    let name = &profile.name;
    let is_agent = profile.reads_mail && !profile.needs_command();
    match profile.runs {
        // The built-in worker asks for approval before each task.
        Runs::Native if profile.takes(Placeholder::Phalanx) => Ok(None),
        Runs::Native if !is_agent || profile.launch.plan.is_empty() => Err(usage(
            format!("profile `{name}` cannot be held to a plan"),
            Some("omit `--plan` and `--mode plan`, or use a profile with `plan` in [launch]"),
        )),
        Runs::Native => Ok(None),
        Runs::Wrapped | Runs::Acp if profile.launch.plan.is_empty() => Ok(Some(format!(
            "`{name}` has no mode for planning: only its brief asks it to submit a plan first"
        ))),
        Runs::Wrapped if spec.mode.is_some() => Err(usage(
            format!("profile `{name}` plans in a mode of its own, which it keeps while it runs"),
            Some("omit `--mode` or `--plan`"),
        )),
        Runs::Acp if spec.mode.is_some() => Err(usage(
            format!("profile `{name}` plans in a mode of its own"),
            Some("omit `--mode`, and give it with the answer to the plan"),
        )),
        Runs::Wrapped | Runs::Acp => Ok(None),
    }
}
