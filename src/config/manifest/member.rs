//! `[[member]]` and `[defaults]`.

use std::collections::BTreeMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::hosts::{LocatedChoice, locate_choice};
use super::roles::tools;
use super::rules::RuleLists;
use super::spec::MemberSpec;
use super::worktree::WorktreeKey;
use crate::config::Faults;
use crate::config::value::{Patterns, Positioned};
use crate::model::access::LinkAccess;
use crate::model::board_policy::Pull;
use crate::model::budget::Budget;
use crate::model::host::{Label, NewHostName};
use crate::model::launch::{LaunchSpec, SHELL, Scale, WORKER, ability};
use crate::model::mode::Mode;
use crate::model::rules::{RuleSet, TeamRules};
use crate::model::value::{
    Argv, As, AtLeast, Choice, KeyedTable, Name, NewMemberName, NonBlank, Variables,
};
use crate::model::waiting::Ability;
use crate::model::worktree::WorktreeRequest;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "defaults")]
pub(super) struct DefaultsTable {
    /// Profile of the program. See docs/profiles.md.
    #[schemars(extend("default" = WORKER))]
    profile: Option<Name>,
    /// Working directory.
    cwd: Option<NonBlank>,
    /// Model, for members whose program takes one.
    model: Option<NonBlank>,
    /// Permission mode. See docs/decisions.md#plans-and-modes.
    mode: Option<Choice<Mode>>,
    /// Environment variables.
    #[serde(with = "As::<Variables>")]
    env: BTreeMap<String, String>,
    /// Limits on what each member may use. See docs/dashboard.md#budgets.
    pub(super) budget: KeyedTable<Budget>,
    /// The only tools that members may use. See docs/manifest.md#tools.
    pub(super) allowed_tools: Option<Vec<Patterns>>,
    /// Tools that members may not use.
    pub(super) disallowed_tools: Vec<Patterns>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "member")]
pub(super) struct MemberTable {
    /// Name of the member; unique, ignoring case.
    name: Positioned<NewMemberName>,
    /// Role of the member. Tasks with this `role` go to it. See docs/manifest.md#roles.
    role: Option<NonBlank>,
    /// Profile of the program. A member with `run` has the profile `shell`. See docs/profiles.md.
    profile: Option<Positioned<Name>>,
    /// Model of the program.
    model: Option<NonBlank>,
    /// Permission mode. See docs/decisions.md#plans-and-modes.
    mode: Option<Choice<Mode>>,
    /// The first message.
    prompt: Option<String>,
    /// A file with the first message, instead of `prompt`.
    prompt_file: Option<Positioned<NonBlank>>,
    /// Name of the host that the member runs on. See docs/hosts.md#members.
    host: Option<Positioned<NewHostName>>,
    /// Labels, instead of `host`: any host that has all of them.
    labels: Option<Positioned<Vec<Label>>>,
    /// Working directory. A relative one of a member on another host is below the work directory of
    /// the host, which is also the default there; with `worktree` it is a directory of the
    /// repository on this machine.
    cwd: Option<NonBlank>,
    /// A command line of the member's own.
    run: Option<Argv>,
    /// Environment variables, in addition to those of `[defaults]`.
    #[serde(default, with = "As::<Variables>")]
    env: BTreeMap<String, String>,
    /// Require an approved plan before the member works.
    #[schemars(extend("default" = false))]
    plan: Option<bool>,
    /// Ask for a person's attention when its command waits at a prompt. See
    /// docs/lifecycle.md#prompts-of-plain-programs.
    #[schemars(extend("default" = true))]
    attention: Option<bool>,
    /// Notification of free tasks while the member is idle, as `pull` in
    /// `[team.board]`, which is the default.
    pull: Option<Pull>,
    /// `true` or the name of a branch: the member works in its own git worktree, also on another
    /// host. See docs/hosts.md#worktrees.
    worktree: Option<Positioned<WorktreeKey>>,
    /// Time at which the member is started.
    #[schemars(extend("default" = "now"))]
    start: Option<Positioned<Choice<Start>>>,
    /// A pool of members `NAME-1`, `NAME-2` …, sized by the number of tasks in progress and ready
    /// to start.
    scale: Option<Positioned<KeyedTable<ScaleTable>>>,
    /// Reaction to a program that fails or disappears.
    #[schemars(extend("default" = "never"))]
    restart: Option<Positioned<Choice<Restart>>>,
    /// Each task of this member is a run of its own. A role can set this, too. See
    /// docs/manifest.md#task-mode.
    #[schemars(extend("default" = false))]
    task_only: Option<Positioned<bool>>,
    /// Rules in addition to those of the team and the role. See docs/decisions.md#rules.
    #[serde(default)]
    rules: KeyedTable<RuleLists>,
    /// The users that may request work of this member. See docs/manifest.md#teamaccess.
    #[serde(default)]
    access: KeyedTable<LinkAccess>,
    /// Limits on what this member may use; each member of a `scale` has its own. See
    /// docs/dashboard.md#budgets.
    pub(super) budget: Option<KeyedTable<Budget>>,
    /// The only tools that the member may use, if its program can enforce that. See
    /// docs/manifest.md#tools.
    allowed_tools: Option<Vec<Patterns>>,
    /// Tools that the member may not use.
    #[serde(default)]
    disallowed_tools: Vec<Patterns>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Start {
    /// With the team.
    Now,
    /// When the first task for its name or role can start.
    WhenNeeded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Restart {
    /// The member stays ended.
    Never,
    /// The member is restarted after 1, 2, 4 … seconds. Five failures in a row, each within a minute
    /// of its start, end this until `resume` starts the member.
    OnFailure,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "scale")]
struct ScaleTable {
    /// Number of members that run even without tasks.
    #[schemars(extend("default" = 0))]
    min: Option<AtLeast<0>>,
    /// Maximum number of members.
    #[schemars(extend("default" = DEFAULT_SCALE_MAX))]
    max: Option<AtLeast<1>>,
}

/// A member with the positions to report for clashes.
pub(super) struct LocatedMember {
    pub(super) header: Range<usize>,
    pub(super) name: Range<usize>,
    pub(super) host: Option<LocatedChoice>,
    pub(super) spec: MemberSpec,
}

/// Members of a scaled entry by default: with more, they wait for each other.
const DEFAULT_SCALE_MAX: usize = 5;

/// Applies the defaults to a member, and adds its rules and access lists to those of the team.
pub(super) fn locate_member(
    table: Spanned<MemberTable>,
    defaults: &DefaultsTable,
    rules: &mut TeamRules,
    links: &mut BTreeMap<String, LinkAccess>,
    faults: &mut Faults,
) -> LocatedMember {
    let header = table.span();
    let table = table.into_inner();
    table.check_prompt_and_profile(faults);
    table.check_start_and_scale(faults);
    table.check_task_only(faults);
    let name = table.name.span();
    let host = locate_choice(table.host, table.labels, faults);
    let run = table.run.map(|run| run.0);
    let inherited = match (&run, &defaults.profile) {
        (Some(_), _) => SHELL,
        (None, Some(profile)) => &profile.0,
        (None, None) => WORKER,
    };
    let profile = table.profile.map_or(inherited.to_owned(), |profile| profile.into_inner().0);
    let default_model = defaults.model.as_ref().filter(|_| ability(&profile) == Ability::Prompts);
    let default_cwd = || defaults.cwd.as_ref().map(|cwd| cwd.0.clone());
    let mut env = defaults.env.clone();
    env.extend(table.env);
    let launch = LaunchSpec {
        name: table.name.into_inner().0,
        role: table.role.map(|role| role.0),
        model: table.model.as_ref().or(default_model).map(|model| model.0.clone()),
        mode: table.mode.as_ref().or(defaults.mode.as_ref()).map(|mode| mode.0),
        profile: Some(profile),
        prompt: table.prompt,
        host: host.as_ref().map(|(_, choice)| choice.clone()),
        cwd: table.cwd.map(|cwd| cwd.0).or_else(default_cwd),
        worktree: table.worktree.and_then(|worktree| match worktree.into_inner() {
            WorktreeKey::Own(own) => own.then_some(WorktreeRequest::Own),
            WorktreeKey::Branch(branch) => Some(WorktreeRequest::Branch(branch)),
        }),
        command: run.unwrap_or_default(),
        env: env.into_iter().collect(),
        plan: table.plan.unwrap_or(false),
        is_unattended: table.attention == Some(false),
        pull: table.pull,
        tools: tools(table.allowed_tools, table.disallowed_tools),
        ..LaunchSpec::default()
    };
    let spec = MemberSpec {
        launch,
        prompt_file: table.prompt_file.map(|file| file.into_inner().0),
        when_needed: table.start.is_some_and(|start| start.get_ref().0 == Start::WhenNeeded),
        scale: table.scale.map(|scale| convert_scale(&scale, faults)),
        restart: table.restart.is_some_and(|restart| restart.get_ref().0 == Restart::OnFailure),
        task_only: table.task_only.is_some_and(Positioned::into_inner),
    };
    let own = table.rules.0.into_set();
    if own != RuleSet::default() {
        rules.members.extend(spec.instance_names().into_iter().map(|name| (name, own.clone())));
    }
    let link = table.access.0;
    if !link.is_empty() {
        links.extend(spec.instance_names().into_iter().map(|name| (name, link.clone())));
    }
    LocatedMember { header, name, host, spec }
}

impl MemberTable {
    fn check_prompt_and_profile(&self, faults: &mut Faults) {
        if let (Some(_), Some(file)) = (&self.prompt, &self.prompt_file) {
            faults.add(&file.span(), "[[member]] has both `prompt` and `prompt_file`");
        }
        if let (Some(_), Some(profile)) = (&self.run, &self.profile)
            && profile.get_ref().0 != SHELL
        {
            let name = &profile.get_ref().0;
            let message = format!("a member with `run` uses the profile `shell`, not `{name}`");
            faults.add(&profile.span(), message);
        }
    }

    /// Adds faults for keys that make no sense with `start` or `scale`. A member that stands for
    /// several is never started as itself, and one that is started on demand needs no `restart`.
    fn check_start_and_scale(&self, faults: &mut Faults) {
        if let Some(restart) = &self.restart
            && (self.start.is_some() || self.scale.is_some())
        {
            faults.add(
                &restart.span(),
                "[[member]] combines `restart` with `start` or `scale`, which restart it anyway",
            );
        }
        if let (Some(_), Some(worktree)) = (&self.scale, &self.worktree)
            && matches!(worktree.get_ref(), WorktreeKey::Branch(_))
        {
            let message = "[[member]] combines `scale` with a single branch: write `worktree = true` to give each its own";
            faults.add(&worktree.span(), message);
        }
        if let (Some(start), Some(_)) = (&self.start, &self.scale) {
            faults.add(
                &start.span(),
                "[[member]] has both `start` and `scale`; `scale.min` sets how many start at once",
            );
        }
    }

    /// Adds faults for a task-only member with keys that only apply to standing members.
    fn check_task_only(&self, faults: &mut Faults) {
        let Some(task_only) = self.task_only.as_ref().filter(|marked| *marked.get_ref()) else {
            return;
        };
        let standing = [
            ("start", self.start.is_some()),
            ("restart", self.restart.is_some()),
            ("plan", self.plan.is_some()),
            ("run", self.run.is_some()),
        ];
        for (key, _) in standing.into_iter().filter(|(_, is_set)| *is_set) {
            let message = format!(
                "[[member]] has both `task_only` and `{key}`, which applies to standing members only"
            );
            faults.add(&task_only.span(), message);
        }
    }
}

fn convert_scale(table: &Positioned<KeyedTable<ScaleTable>>, faults: &mut Faults) -> Scale {
    let ScaleTable { min, max } = &table.get_ref().0;
    let min = min.as_ref().map_or(0, |min| min.0);
    let max = max.as_ref().map_or(DEFAULT_SCALE_MAX.max(min), |max| max.0);
    if max < min {
        let message = format!("`max` in [member.scale] is {max}, less than `min`, {min}");
        faults.add(&table.span(), message);
    }
    Scale { min, max }
}
