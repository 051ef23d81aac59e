//! The tables of a manifest as they are written, and their conversion. [`super::check`] checks
//! references between entries.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::followup::{Interval, ReminderCount, reminder_policy};
use super::member::{DefaultsTable, MemberTable, member_spec};
use super::roles::{RoleName, RoleTable, tools};
use super::spec::{Manifest, MemberSpec, TeamMode};
use super::task::TaskTable;
use crate::checks::distinct_checks;
use crate::hooks::{HookTable, hook_commands};
use crate::hosts::distinct_hosts;
use crate::value::TableList;
use crate::{ConfigError, Document, Faults, Place};
use model::board::limits::Limits;
use model::board::policy::BoardPolicy;
use model::board::workspace::WorkspaceRules;
use model::decisions::rules::{RuleList, RuleSet, TeamRules};
use model::mail::access::{AccessLists, AccessPolicy, LinkAccess};
use model::mail::routing::RoutingPolicy;
use model::members::budget::{Budget, Budgets};
use model::members::environ::EnvRules;
use model::members::placement::Layout;
use model::members::rate_limit::ResumePolicy;
use model::members::usage::Price;
use model::team::check::TeamCheck;
use model::team::followup::{Escalation, MAX_REMINDERS};
use model::team::host::HostConfig;
use model::team::role::Roles;
use model::team::settings::{self, BackendChoice, Finish, OnHang, Privacy, Settings};
use model::team::worktree::Rules;
use model::value::{Argv, AtLeast, CheckedValue, Choice, KeyedTable, Name, NonBlank};

const DEFAULT_MAX_MEMBERS: usize = 8;

/// The kind of a text: a whole manifest, one with placeholders, the settings of a team that already
/// has a name, or the tasks for a team that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Manifest,
    Template,
    Settings,
    Tasks,
}

impl Form {
    pub(super) fn document(self) -> Document {
        match self {
            Form::Manifest | Form::Tasks => {
                Document { title: "the manifest", denied: &["template"] }
            }
            Form::Template => Document { title: "the template", denied: &[] },
            Form::Settings => Document {
                title: "the settings",
                denied: &["team.name", "team.store", "task", "template"],
            },
        }
    }
}

/// A team for `phalanx up`: its settings, members and tasks.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "Manifest of a phalanx team", extend("required" = ["team"]))]
pub(super) struct ManifestTable {
    /// The team and its settings.
    team: Option<KeyedTable<TeamTable>>,
    /// The variables of the caller that members inherit.
    env: KeyedTable<EnvRules>,
    /// Patterns that answer requests of members. See `phalanx docs decisions rules`.
    rules: KeyedTable<RulesTable>,
    /// Roles by name. See `phalanx docs manifest roles`.
    role: BTreeMap<RoleName, KeyedTable<RoleTable>>,
    /// Values for members that do not set them.
    defaults: KeyedTable<DefaultsTable>,
    /// The creation of git worktrees for members. See `phalanx docs hosts worktrees`.
    worktree: KeyedTable<Rules>,
    /// Commands that run at events. See `phalanx docs events hooks`.
    hook: TableList<HookTable>,
    /// Commands that test the work of a member. See `phalanx docs review checks`.
    check: TableList<TeamCheck>,
    /// Hosts on which members can run. See `phalanx docs hosts`.
    host: TableList<HostConfig>,
    /// The members of the team.
    member: TableList<MemberTable>,
    /// The tasks of the team.
    task: TableList<TaskTable>,
    // A template is not a manifest.
    #[schemars(skip)]
    pub(super) template: Option<KeyedTable<TemplateTable>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "rules")]
struct RulesTable {
    /// Patterns that deny a request.
    deny: RuleList,
    /// Patterns that ask a person.
    ask: RuleList,
    /// Patterns that allow a request.
    allow: RuleList,
    /// Further rules for members with a role, by its name.
    role: BTreeMap<String, KeyedTable<RuleSet>>,
}

/// The description of a template.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TemplateTable {
    pub(super) about: NonBlank,
    pub(super) task: Option<NonBlank>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "team", extend("required" = ["name"]))]
pub(super) struct TeamTable {
    /// Name of the team.
    name: Option<Name>,
    /// Purpose of the team.
    description: Option<String>,
    /// Address of a PostgreSQL database to keep the team in, `postgres://…`; files if omitted. See
    /// `phalanx docs hosts the-shared-store`.
    store: Option<NonBlank>,
    /// The kind of members that do the tasks. See `phalanx docs manifest task-mode`.
    #[schemars(extend("default" = "teammate"))]
    mode: Option<Choice<TeamMode>>,
    /// Where members run. See `phalanx docs backends`.
    backend: Option<Choice<BackendChoice>>,
    /// Arrangement of the members' panes.
    layout: Option<Choice<Layout>>,
    /// Condition on which the team ends. For `phalanx team create --settings` the default is
    /// `manual`.
    finish: Option<Choice<Finish>>,
    /// Seconds after which the lead ends the team, as `up --timeout` does.
    timeout: Option<AtLeast<1, u64>>,
    /// End the team when a task has failed, as `up --fail-fast` does.
    fail_fast: bool,
    /// Maximum number of teammates. For `phalanx team create --settings` the default is 256.
    max_members: Option<AtLeast<1>>,
    /// Nesting depth of teams. With 2, teammates may create teams and start members; those teams
    /// cannot allow a greater depth.
    max_depth: Option<AtLeast<1>>,
    /// Access of teammates to a member's output with `logs` and `peek`.
    privacy: Option<Choice<Privacy>>,
    /// Maximum number of open tasks that one member may have assigned to another. See
    /// `phalanx docs lifecycle task-limits`.
    max_per_link: Option<AtLeast<1>>,
    /// Maximum number of open tasks of a member when another task is assigned.
    max_per_member: Option<AtLeast<1>>,
    /// Seconds in which a member's request can be answered.
    answer_within: Option<AtLeast<1>>,
    /// Seconds until a member that rests and has not taken the assignment of a task counts as
    /// unresponsive.
    unresponsive_after: Option<AtLeast<1>>,
    /// Reaction to a member that hangs.
    on_hang: Option<Choice<OnHang>>,
    /// Seconds until a member with a task in progress counts as hanging. In that time its screen,
    /// the mail it has read, and its task have not changed. A member that waits for an answer does
    /// not hang.
    hang_after: Option<AtLeast<1>>,
    /// Seconds between SIGTERM and SIGKILL for the command of a worker, or a plain program, that is
    /// asked to end. See `phalanx docs lifecycle how-members-end`.
    grace: Option<AtLeast<0, u64>>,
    /// A program with arguments that runs for each request that waits for a person. See
    /// `phalanx docs decisions announcements`.
    notify: Option<Argv>,
    /// Limits on what all members together may use. See `phalanx docs dashboard budgets`.
    budget: KeyedTable<Budget>,
    /// Dollars per million tokens by model, for programs that report no cost.
    prices: BTreeMap<String, KeyedTable<Price>>,
    /// Continuation after a usage limit of a provider. See
    /// `phalanx docs dashboard usage-limits-of-a-provider`.
    resume_limited: KeyedTable<ResumePolicy>,
    /// Minutes between reminders for overdue answers and tasks. They may be a fraction; without the
    /// key no reminders are sent. See `phalanx docs decisions reminders`.
    followup_interval_minutes: Option<Interval>,
    /// Number of reminders before the escalation. With 0 a silent task is escalated after one
    /// interval. Requires `followup_interval_minutes`.
    #[schemars(extend("default" = MAX_REMINDERS))]
    followup_max_reminders: Option<ReminderCount>,
    /// Escalation of a task without progress. Requires `followup_interval_minutes`. See
    /// `phalanx docs decisions stale-tasks`.
    #[schemars(extend("default" = Escalation::default()))]
    escalation_mode: Option<Choice<Escalation>>,
    /// Permitted messages between members and roles. See `phalanx docs messages routing`.
    routing: KeyedTable<RoutingPolicy>,
    /// Demands on those who use the task board. See `phalanx docs lifecycle demands-of-a-team`.
    board: KeyedTable<BoardPolicy>,
    /// The users and channels whose requests the team carries out.
    access: KeyedTable<AccessLists>,
    /// The directory for files that members produce. See `phalanx docs cli/places workspace`.
    workspace: KeyedTable<WorkspaceRules>,
}

impl ManifestTable {
    /// Applies the defaults and adds the faults of each table by itself.
    pub(super) fn into_manifest(self, form: Form, text: &str) -> Result<Manifest, ConfigError> {
        let mut faults = Faults::new(text);
        if matches!(form, Form::Manifest | Form::Template) {
            match &self.team {
                None => faults.add_at(&[], "the manifest has no [team]"),
                Some(KeyedTable(team)) if team.name.is_none() => {
                    faults.add_at(&[Place::Key("team")], "[team] has no `name`");
                }
                Some(_) => {}
            }
        }
        let mut team = self.team.unwrap_or_default().0;
        let defaults = self.defaults.0;
        let RulesTable { deny, ask, allow, role } = self.rules.0;
        let [deny, ask, allow] = [deny, ask, allow].map(RuleList::into_value);
        let mut rules = TeamRules {
            team: RuleSet { deny, ask, allow },
            roles: role.into_iter().map(|(name, set)| (name, set.0)).collect(),
            ..TeamRules::default()
        };
        let mut links = BTreeMap::new();
        let mut budgets = Budgets { each: defaults.budget.0, ..Budgets::default() };
        let members: Vec<MemberSpec> = (0..)
            .zip(self.member.0)
            .map(|(at, mut member)| {
                let budget = member.budget.take();
                let spec = member_spec(at, member, &defaults, &mut rules, &mut links, &mut faults);
                if let Some(KeyedTable(budget)) = budget {
                    let names = spec.instance_names().into_iter();
                    budgets.members.extend(names.map(|name| (name, budget)));
                }
                spec
            })
            .collect();
        budgets.team = team.budget.0;
        let manifest = Manifest {
            name: team.name.take().map(|name| name.0).unwrap_or_default(),
            description: team.description.take(),
            store: team.store.take().map(|url| url.0),
            mode: chosen(team.mode.take()),
            settings: Settings {
                env: self.env.0,
                rules,
                roles: Roles {
                    named: self
                        .role
                        .into_iter()
                        .map(|(name, role)| (name.0, role.0.into()))
                        .collect(),
                    tools: tools(defaults.allowed_tools, defaults.disallowed_tools),
                },
                worktree: self.worktree.0,
                hooks: hook_commands(self.hook, &mut faults),
                checks: distinct_checks(self.check, &mut faults),
                hosts: distinct_hosts(self.host, &mut faults),
                budgets,
                ..team.into_settings(form, links, &mut faults)
            },
            members,
            tasks: self.task.0.into_iter().map(TaskTable::into_definition).collect(),
        };
        faults.into_result().map(|()| manifest)
    }
}

impl TeamTable {
    fn into_settings(
        self,
        form: Form,
        links: BTreeMap<String, LinkAccess>,
        faults: &mut Faults,
    ) -> Settings {
        let (finish, max_members) = match form {
            Form::Manifest | Form::Template => (Finish::TasksDone, DEFAULT_MAX_MEMBERS),
            Form::Settings | Form::Tasks => (Finish::Manual, settings::MAX_MEMBERS),
        };
        let default = Settings::by_hand(self.max_members.map_or(max_members, |count| count.0));
        let seconds = |count: Option<AtLeast<1>>, default: u64| {
            count.map_or(default, |seconds| u64::try_from(seconds.0).unwrap_or(u64::MAX))
        };
        let Limits { max_per_link, max_per_member } = default.limits;
        Settings {
            backend: chosen(self.backend),
            layout: chosen(self.layout),
            finish: self.finish.map_or(finish, |finish| finish.0),
            timeout_s: self.timeout.map(|limit| limit.0),
            fail_fast: self.fail_fast,
            answer_within_s: seconds(self.answer_within, default.answer_within_s),
            unresponsive_after_s: seconds(self.unresponsive_after, default.unresponsive_after_s),
            on_hang: chosen(self.on_hang),
            hang_after_s: seconds(self.hang_after, default.hang_after_s),
            grace_s: self.grace.map_or(default.grace_s, |grace| grace.0),
            followup: reminder_policy(
                self.followup_interval_minutes,
                self.followup_max_reminders,
                self.escalation_mode,
                faults,
            ),
            notify: self.notify.map(|notify| notify.0).unwrap_or_default(),
            prices: self.prices.into_iter().map(|(model, of)| (model, of.0)).collect(),
            resume_limited: self.resume_limited.0,
            board: self.board.0,
            routing: self.routing.0,
            max_depth: self.max_depth.map_or(default.max_depth, |depth| depth.0),
            privacy: chosen(self.privacy),
            limits: Limits {
                max_per_link: self.max_per_link.map_or(max_per_link, |limit| limit.0),
                max_per_member: self.max_per_member.map_or(max_per_member, |limit| limit.0),
            },
            access: AccessPolicy { team: self.access.0, members: links },
            workspace: self.workspace.0,
            ..default
        }
    }
}

fn chosen<T: Default>(choice: Option<Choice<T>>) -> T {
    choice.map(|choice| choice.0).unwrap_or_default()
}
