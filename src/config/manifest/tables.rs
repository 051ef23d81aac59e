//! The tables of a manifest as they are written, and their conversion. [`super::check`] checks
//! references between entries.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::access::{AccessTable, LinkTable, WorkspaceTable};
use super::budget::{BudgetTable, PriceTable, ResumeTable};
use super::followup::{Interval, ReminderCount, reminder_policy};
use super::form::Form;
use super::hosts::{LocatedChoice, locate_choice};
use super::roles::{RoleName, RoleTable, all_rules, tools};
use super::routing::RoutingTable;
use super::spec::{MemberSpec, TaskSpec, TeamMode};
use super::worktree::WorktreeKey;
use crate::config::Faults;
use crate::config::hooks::{HookTable, hook_commands};
use crate::config::hosts::{HostTable, Label, NewHostName, host_configs};
use crate::config::value::{
    Argv, AtLeast, Choice, InsidePath, KeyedTable, Name, NewMemberName, NonBlank, Patterns,
    PlainText, TableList, VariablePattern, Variables, parse_non_blank, text_types, unknown_word,
};
use crate::model::access::LinkAccess;
use crate::model::board_policy::{BoardPolicy, BoardVersion};
use crate::model::budget::Budgets;
use crate::model::environ::EnvRules;
use crate::model::followup::Escalation;
use crate::model::launch::{LaunchSpec, SHELL, Scale, WORKER, ability};
use crate::model::limits::Limits;
use crate::model::mode::Mode;
use crate::model::placement::Layout;
use crate::model::role::Roles;
use crate::model::rules::{RuleSet, TeamRules};
use crate::model::settings::{self, BackendChoice, Finish, OnHang, Privacy, Settings};
use crate::model::waiting::Ability;
use crate::model::worktree::{Rules, WorktreeRequest};

/// Members of a scaled entry by default: with more, they wait for each other.
const DEFAULT_SCALE_MAX: usize = 5;
const DEFAULT_MAX_MEMBERS: usize = 8;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ManifestTable {
    team: Option<Spanned<KeyedTable<TeamTable>>>,
    env: KeyedTable<EnvTable>,
    rules: KeyedTable<RulesTable>,
    role: BTreeMap<RoleName, KeyedTable<RoleTable>>,
    defaults: KeyedTable<DefaultsTable>,
    worktree: KeyedTable<WorktreeTable>,
    hook: TableList<HookTable>,
    host: TableList<HostTable>,
    member: TableList<MemberTable>,
    task: TableList<TaskTable>,
    template: Option<KeyedTable<TemplateTable>>,
}

/// The description of a template.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TemplateTable {
    pub(super) about: NonBlank,
    pub(super) task: Option<NonBlank>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TeamTable {
    name: Option<Name>,
    description: Option<String>,
    store: Option<NonBlank>,
    mode: Option<Choice<TeamMode>>,
    backend: Option<BackendWord>,
    layout: Option<Choice<Layout>>,
    finish: Option<Choice<Finish>>,
    max_members: Option<AtLeast<1>>,
    max_depth: Option<AtLeast<1>>,
    privacy: Option<Choice<Privacy>>,
    max_per_link: Option<AtLeast<1>>,
    max_per_member: Option<AtLeast<1>>,
    answer_within: Option<AtLeast<1>>,
    unresponsive_after: Option<AtLeast<1>>,
    on_hang: Option<Choice<OnHang>>,
    hang_after: Option<AtLeast<1>>,
    notify: Option<Argv>,
    budget: KeyedTable<BudgetTable>,
    prices: BTreeMap<String, KeyedTable<PriceTable>>,
    resume_limited: KeyedTable<ResumeTable>,
    followup_interval_minutes: Option<Interval>,
    followup_max_reminders: Option<Spanned<ReminderCount>>,
    escalation_mode: Option<Spanned<Choice<Escalation>>>,
    routing: KeyedTable<RoutingTable>,
    board: KeyedTable<BoardTable>,
    access: KeyedTable<AccessTable>,
    workspace: KeyedTable<WorkspaceTable>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BoardTable {
    version: BoardVersion,
    assignee: bool,
    list_before_create: bool,
    delegation_task: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct EnvTable {
    allow: Vec<VariablePattern>,
    deny: Vec<VariablePattern>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RulesTable {
    deny: Vec<Patterns>,
    ask: Vec<Patterns>,
    allow: Vec<Patterns>,
    role: BTreeMap<String, KeyedTable<RuleLists>>,
}

/// The rules of a role or a member.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RuleLists {
    deny: Vec<Patterns>,
    ask: Vec<Patterns>,
    allow: Vec<Patterns>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DefaultsTable {
    profile: Option<Name>,
    cwd: Option<NonBlank>,
    model: Option<NonBlank>,
    mode: Option<Choice<Mode>>,
    env: Variables,
    budget: KeyedTable<BudgetTable>,
    allowed_tools: Option<Vec<Patterns>>,
    disallowed_tools: Vec<Patterns>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WorktreeTable {
    dir: Option<NonBlank>,
    copy: Vec<InsidePath>,
    setup: Option<Argv>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberTable {
    name: Spanned<NewMemberName>,
    role: Option<NonBlank>,
    profile: Option<Spanned<Name>>,
    model: Option<NonBlank>,
    mode: Option<Choice<Mode>>,
    prompt: Option<String>,
    prompt_file: Option<Spanned<NonBlank>>,
    host: Option<Spanned<NewHostName>>,
    labels: Option<Spanned<Vec<Label>>>,
    cwd: Option<NonBlank>,
    run: Option<Argv>,
    #[serde(default)]
    env: Variables,
    plan: Option<bool>,
    worktree: Option<Spanned<WorktreeKey>>,
    start: Option<Spanned<Choice<Start>>>,
    scale: Option<Spanned<KeyedTable<ScaleTable>>>,
    restart: Option<Spanned<Choice<Restart>>>,
    task_only: Option<Spanned<bool>>,
    #[serde(default)]
    rules: KeyedTable<RuleLists>,
    #[serde(default)]
    access: KeyedTable<LinkTable>,
    budget: Option<KeyedTable<BudgetTable>>,
    allowed_tools: Option<Vec<Patterns>>,
    #[serde(default)]
    disallowed_tools: Vec<Patterns>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Start {
    Now,
    WhenNeeded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Restart {
    Never,
    OnFailure,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ScaleTable {
    min: Option<AtLeast<0>>,
    max: Option<AtLeast<1>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskTable {
    key: Spanned<Name>,
    subject: NonBlank,
    description: Option<String>,
    active_form: Option<NonBlank>,
    run: Option<Argv>,
    #[serde(default)]
    after: Vec<Spanned<String>>,
    #[serde(default)]
    files: Vec<PlainText>,
    owner: Option<Spanned<NonBlank>>,
    role: Option<Spanned<NonBlank>>,
    priority: Option<i64>,
    cwd: Option<NonBlank>,
    #[serde(default)]
    env: Variables,
    #[serde(default)]
    show_output: bool,
}

text_types! {
    BackendWord(BackendChoice) = |text| {
        let word = parse_non_blank(text)?;
        BackendChoice::parse(&word).ok_or_else(|| unknown_word(&word, &BackendChoice::FORMS))
    };
}

/// A manifest with the positions of its entries, for the checks between them.
pub(super) struct LocatedManifest {
    pub(super) template: Option<TemplateTable>,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) store: Option<String>,
    pub(super) mode: TeamMode,
    pub(super) settings: Settings,
    pub(super) members: Vec<LocatedMember>,
    pub(super) tasks: Vec<LocatedTask>,
}

/// A member with the positions to report for clashes.
pub(super) struct LocatedMember {
    pub(super) header: Range<usize>,
    pub(super) name: Range<usize>,
    pub(super) host: Option<LocatedChoice>,
    pub(super) spec: MemberSpec,
}

/// A task with the positions of its key and of its references to other entries.
pub(super) struct LocatedTask {
    pub(super) key: Range<usize>,
    pub(super) after: Vec<Spanned<String>>,
    pub(super) owner: Option<Spanned<String>>,
    pub(super) role: Option<Spanned<String>>,
    pub(super) spec: TaskSpec,
}

impl ManifestTable {
    /// Applies the defaults and adds the faults of each table by itself.
    pub(super) fn locate(self, form: Form, faults: &mut Faults) -> LocatedManifest {
        if matches!(form, Form::Manifest | Form::Template) {
            match &self.team {
                None => faults.add(&(0..0), "the manifest has no [team]"),
                Some(team) if team.get_ref().0.name.is_none() => {
                    faults.add(&team.span(), "[team] has no `name`");
                }
                Some(_) => {}
            }
        }
        let mut team = self.team.map(Spanned::into_inner).unwrap_or_default().0;
        let defaults = self.defaults.0;
        let mut rules = self.rules.0.into_rules();
        let mut links = BTreeMap::new();
        let mut budgets = Budgets { each: defaults.budget.0.to_budget(), ..Budgets::default() };
        let members: Vec<LocatedMember> = self
            .member
            .0
            .into_iter()
            .map(|mut member| {
                let budget = member.get_mut().budget.take();
                let located = locate_member(member, &defaults, &mut rules, &mut links, faults);
                if let Some(KeyedTable(budget)) = budget {
                    let names = located.spec.instance_names().into_iter();
                    budgets.members.extend(names.map(|name| (name, budget.to_budget())));
                }
                located
            })
            .collect();
        budgets.team = team.budget.0.to_budget();
        LocatedManifest {
            template: self.template.map(|template| template.0),
            name: team.name.take().map(|name| name.0).unwrap_or_default(),
            description: team.description.take(),
            store: team.store.take().map(|url| url.0),
            mode: chosen(team.mode.take()),
            settings: Settings {
                env: EnvRules {
                    allow: self.env.0.allow.into_iter().map(|pattern| pattern.0).collect(),
                    deny: self.env.0.deny.into_iter().map(|pattern| pattern.0).collect(),
                },
                rules,
                roles: Roles {
                    named: self
                        .role
                        .into_iter()
                        .map(|(name, role)| (name.0, role.0.into()))
                        .collect(),
                    tools: tools(defaults.allowed_tools, defaults.disallowed_tools),
                },
                worktree: Rules {
                    dir: self.worktree.0.dir.map(|dir| dir.0),
                    copy: self.worktree.0.copy.into_iter().map(|path| path.0).collect(),
                    setup: self.worktree.0.setup.map(|setup| setup.0).unwrap_or_default(),
                },
                hooks: hook_commands(self.hook, faults),
                hosts: host_configs(self.host, faults),
                budgets,
                ..with_links(team.into_settings(form, faults), links)
            },
            members,
            tasks: self.task.0.into_iter().map(|task| task.into_inner().locate()).collect(),
        }
    }
}

fn with_links(mut settings: Settings, links: BTreeMap<String, LinkAccess>) -> Settings {
    settings.access.members = links;
    settings
}

impl TeamTable {
    fn into_settings(self, form: Form, faults: &mut Faults) -> Settings {
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
            backend: self.backend.map(|backend| backend.0).unwrap_or_default(),
            layout: chosen(self.layout),
            finish: self.finish.map_or(finish, |finish| finish.0),
            answer_within_s: seconds(self.answer_within, default.answer_within_s),
            unresponsive_after_s: seconds(self.unresponsive_after, default.unresponsive_after_s),
            on_hang: chosen(self.on_hang),
            hang_after_s: seconds(self.hang_after, default.hang_after_s),
            followup: reminder_policy(
                self.followup_interval_minutes,
                self.followup_max_reminders,
                self.escalation_mode,
                faults,
            ),
            notify: self.notify.map(|notify| notify.0).unwrap_or_default(),
            prices: self.prices.into_iter().map(|(model, of)| (model, of.0.into())).collect(),
            resume_limited: self.resume_limited.0.into(),
            board: BoardPolicy {
                version: self.board.0.version,
                assignee: self.board.0.assignee,
                list_before_create: self.board.0.list_before_create,
                delegation_task: self.board.0.delegation_task,
            },
            routing: self.routing.0.into(),
            max_depth: self.max_depth.map_or(default.max_depth, |depth| depth.0),
            privacy: chosen(self.privacy),
            limits: Limits {
                max_per_link: self.max_per_link.map_or(max_per_link, |limit| limit.0),
                max_per_member: self.max_per_member.map_or(max_per_member, |limit| limit.0),
            },
            access: self.access.0.into(),
            workspace: self.workspace.0.into(),
            ..default
        }
    }
}

impl RulesTable {
    fn into_rules(self) -> TeamRules {
        TeamRules {
            team: rule_set(self.deny, self.ask, self.allow),
            roles: self.role.into_iter().map(|(name, lists)| (name, lists.0.into_set())).collect(),
            ..TeamRules::default()
        }
    }
}

impl RuleLists {
    fn into_set(self) -> RuleSet {
        rule_set(self.deny, self.ask, self.allow)
    }
}

fn rule_set(deny: Vec<Patterns>, ask: Vec<Patterns>, allow: Vec<Patterns>) -> RuleSet {
    RuleSet { deny: all_rules(deny), ask: all_rules(ask), allow: all_rules(allow) }
}

/// Applies the defaults to a member, and adds its rules and access lists to those of the team.
fn locate_member(
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
    let mut env = defaults.env.0.clone();
    env.extend(table.env.0);
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
        tools: tools(table.allowed_tools, table.disallowed_tools),
        ..LaunchSpec::default()
    };
    let spec = MemberSpec {
        launch,
        prompt_file: table.prompt_file.map(|file| file.into_inner().0),
        when_needed: table.start.is_some_and(|start| start.get_ref().0 == Start::WhenNeeded),
        scale: table.scale.map(|scale| convert_scale(&scale, faults)),
        restart: table.restart.is_some_and(|restart| restart.get_ref().0 == Restart::OnFailure),
        task_only: table.task_only.is_some_and(Spanned::into_inner),
    };
    let own = table.rules.0.into_set();
    if own != RuleSet::default() {
        rules.members.extend(spec.instance_names().into_iter().map(|name| (name, own.clone())));
    }
    let link = LinkAccess::from(table.access.0);
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

fn convert_scale(table: &Spanned<KeyedTable<ScaleTable>>, faults: &mut Faults) -> Scale {
    let ScaleTable { min, max } = &table.get_ref().0;
    let min = min.as_ref().map_or(0, |min| min.0);
    let max = max.as_ref().map_or(DEFAULT_SCALE_MAX.max(min), |max| max.0);
    if max < min {
        let message = format!("`max` in [member.scale] is {max}, less than `min`, {min}");
        faults.add(&table.span(), message);
    }
    Scale { min, max }
}

impl TaskTable {
    fn locate(self) -> LocatedTask {
        let mut after: Vec<String> = Vec::new();
        for key in &self.after {
            if !after.contains(key.get_ref()) {
                after.push(key.get_ref().clone());
            }
        }
        let spec = TaskSpec {
            key: self.key.get_ref().0.clone(),
            subject: self.subject.0,
            description: self.description,
            active_form: self.active_form.map(|form| form.0),
            run: self.run.map(|run| run.0),
            after,
            files: self.files.into_iter().map(|file| file.0).collect(),
            owner: self.owner.as_ref().map(|owner| owner.get_ref().0.clone()),
            role: self.role.as_ref().map(|role| role.get_ref().0.clone()),
            priority: self.priority,
            cwd: self.cwd.map(|cwd| cwd.0),
            env: self.env.0,
            show_output: self.show_output,
        };
        let located = |word: Spanned<NonBlank>| Spanned::new(word.span(), word.into_inner().0);
        LocatedTask {
            key: self.key.span(),
            after: self.after,
            owner: self.owner.map(located),
            role: self.role.map(located),
            spec,
        }
    }
}

fn chosen<T: Default>(choice: Option<Choice<T>>) -> T {
    choice.map(|choice| choice.0).unwrap_or_default()
}
