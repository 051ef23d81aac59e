//! Reads the sections of the manifest: keys, types and defaults of each by itself. [`super::check`]
//! checks references between entries.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::followup::read_followup;
use super::roles::{read_roles, read_tools};
use super::rules::{RULES, read_member_rules, read_rules};
use super::{Defaults, EnvSection, Finish, Manifest, MemberSpec, TaskSpec, TeamMode, TeamSection};
use crate::model::hook::{Hook, read_hooks};
use crate::model::launch::{SHELL, Scale, WORKER, ability};
use crate::model::limits::Limits;
use crate::model::mode::Mode;
use crate::model::placement::Layout;
use crate::model::role::Roles;
use crate::model::rules::TeamRules;
use crate::model::settings::{self, BackendChoice, OnHang, Privacy};
use crate::model::sheet::{
    self, At, Faults, Section, check_member_name, check_name, check_pattern,
};
use crate::model::waiting::Ability;
use crate::model::worktree::{Rules, WorktreeRequest, check_branch, check_inside};

/// The kind of a text: a whole manifest, or the settings of a team that already has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Manifest,
    Settings,
}

/// `task` is last: settings have none.
pub(super) const ROOT: [&str; 9] =
    ["team", "env", "rules", "role", "defaults", "worktree", "hook", "member", "task"];
/// `name` is first: settings have none.
pub(super) const TEAM: [&str; 19] = [
    "name",
    "description",
    "mode",
    "backend",
    "layout",
    "finish",
    "max_members",
    "max_depth",
    "privacy",
    "max_per_link",
    "max_per_member",
    "answer_within",
    "unresponsive_after",
    "on_hang",
    "hang_after",
    "notify",
    "followup_interval_minutes",
    "followup_max_reminders",
    "escalation_mode",
];
const ENV: [&str; 2] = ["allow", "deny"];
const WORKTREE: [&str; 3] = ["dir", "copy", "setup"];
const DEFAULTS: [&str; 7] =
    ["profile", "cwd", "model", "mode", "env", "allowed_tools", "disallowed_tools"];
const MEMBER: [&str; 19] = [
    "name",
    "role",
    "profile",
    "model",
    "mode",
    "prompt",
    "prompt_file",
    "cwd",
    "run",
    "env",
    "plan",
    "worktree",
    "start",
    "scale",
    "restart",
    "task_only",
    "rules",
    "allowed_tools",
    "disallowed_tools",
];
const SCALE: [&str; 2] = ["min", "max"];
/// `start = …`; true for a start on demand.
const STARTS: [(&str, bool); 2] = [("now", false), ("when-needed", true)];
/// `restart = …`; true for a restart on failure.
const RESTARTS: [(&str, bool); 2] = [("never", false), ("on-failure", true)];
const TASK: [&str; 13] = [
    "key",
    "subject",
    "description",
    "active_form",
    "run",
    "after",
    "files",
    "owner",
    "role",
    "priority",
    "cwd",
    "env",
    "show_output",
];

const FINISHES: [(&str, Finish); 2] =
    [("tasks-done", Finish::TasksDone), ("manual", Finish::Manual)];
const TEAM_MODES: [(&str, TeamMode); 3] =
    [("teammate", TeamMode::Teammate), ("task", TeamMode::Task), ("auto", TeamMode::Auto)];
const MODES: [Mode; 6] = [
    Mode::Default,
    Mode::AcceptEdits,
    Mode::BypassPermissions,
    Mode::Plan,
    Mode::Delegate,
    Mode::DontAsk,
];

const DEFAULT_MAX_MEMBERS: usize = 8;

/// A manifest with the positions of its entries, for the checks between them.
pub(super) struct Draft {
    pub(super) team: TeamSection,
    env: EnvSection,
    rules: TeamRules,
    pub(super) roles: Roles,
    defaults: Defaults,
    worktree: Rules,
    hooks: Vec<Hook>,
    pub(super) members: Vec<MemberDraft>,
    pub(super) tasks: Vec<TaskDraft>,
}

/// A member with the positions to report for clashes.
pub(super) struct MemberDraft {
    pub(super) header: Range<usize>,
    pub(super) name: Range<usize>,
    pub(super) spec: MemberSpec,
}

/// A task with the positions of its key and of its references to other entries.
pub(super) struct TaskDraft {
    pub(super) key: Range<usize>,
    pub(super) after: Vec<At<String>>,
    pub(super) owner: Option<At<String>>,
    pub(super) role: Option<At<String>>,
    pub(super) spec: TaskSpec,
}

impl Draft {
    pub(super) fn into_manifest(self) -> Manifest {
        Manifest {
            team: self.team,
            env: self.env,
            rules: self.rules,
            roles: self.roles,
            defaults: self.defaults,
            worktree: self.worktree,
            hooks: self.hooks,
            members: self.members.into_iter().map(|member| member.spec).collect(),
            tasks: self.tasks.into_iter().map(|task| task.spec).collect(),
        }
    }
}

/// Reads all sections. Omits faulty values or replaces them by defaults, so that the rest is
/// checked as well; the draft is only valid if no fault was added.
pub(super) fn read(form: Form, table: &DeTable, faults: &mut Faults) -> Draft {
    let (called, sections, keys) = match form {
        Form::Manifest => ("the manifest", &ROOT[..], &TEAM[..]),
        Form::Settings => ("the settings", &ROOT[..ROOT.len() - 1], &TEAM[1..]),
    };
    let root = Section::root(called, table, sections, faults);
    if form == Form::Manifest {
        root.demand("team", "[team]", faults);
    }
    let team = root.value("team").and_then(|value| Section::open("[team]", value, keys, faults));
    let team = team.map(|section| read_team(form, &section, faults));
    let inherited = root.table("defaults", "[defaults]", &DEFAULTS, faults);
    let (defaults, tools) = (read_defaults(&inherited, faults), read_tools(&inherited, faults));
    let env = root.table("env", "[env]", &ENV, faults);
    let env =
        EnvSection { allow: patterns(&env, "allow", faults), deny: patterns(&env, "deny", faults) };
    let members = root.tables("member", "[[member]]", &MEMBER, faults);
    let tasks = root.tables("task", "[[task]]", &TASK, faults);
    Draft {
        team: team
            .unwrap_or_else(|| read_team(form, &Section::absent("[team]"), &mut Faults::default())),
        env,
        worktree: read_worktrees(&root.table("worktree", "[worktree]", &WORKTREE, faults), faults),
        hooks: read_hooks(&root, faults),
        rules: read_rules(&root.table("rules", "[rules]", &RULES, faults), faults),
        roles: read_roles(&root, tools, faults),
        members: members.iter().map(|section| read_member(section, &defaults, faults)).collect(),
        tasks: tasks.iter().map(|section| read_task(section, faults)).collect(),
        defaults,
    }
}

fn read_team(form: Form, section: &Section, faults: &mut Faults) -> TeamSection {
    let (name, finish, max_members) = match form {
        Form::Manifest => (
            owned(section.required_name("name", check_name, faults)),
            Finish::TasksDone,
            DEFAULT_MAX_MEMBERS,
        ),
        Form::Settings => (String::new(), Finish::Manual, settings::MAX_MEMBERS),
    };
    TeamSection {
        name,
        description: inner(section.text("description", faults)),
        mode: inner(section.choice("mode", &TEAM_MODES, faults)).unwrap_or_default(),
        backend: read_backend(section, faults).unwrap_or_default(),
        layout: inner(section.choice("layout", &Layout::ALL, faults)).unwrap_or_default(),
        finish: inner(section.choice("finish", &FINISHES, faults)).unwrap_or(finish),
        max_members: read_count(section, "max_members", 1, faults).unwrap_or(max_members),
        answer_within: read_seconds(section, "answer_within", settings::answer_within_s(), faults),
        unresponsive_after: read_seconds(
            section,
            "unresponsive_after",
            settings::unresponsive_after_s(),
            faults,
        ),
        on_hang: inner(section.choice("on_hang", &OnHang::ALL, faults)).unwrap_or_default(),
        hang_after: read_seconds(section, "hang_after", settings::hang_after_s(), faults),
        followup: read_followup(section, faults),
        notify: section.command("notify", faults).unwrap_or_default(),
        max_depth: read_count(section, "max_depth", 1, faults).unwrap_or(1),
        privacy: inner(section.choice("privacy", &Privacy::ALL, faults)).unwrap_or_default(),
        limits: read_limits(section, faults),
    }
}

fn read_limits(section: &Section, faults: &mut Faults) -> Limits {
    let Limits { max_per_link, max_per_member } = Limits::default();
    Limits {
        max_per_link: read_count(section, "max_per_link", 1, faults).unwrap_or(max_per_link),
        max_per_member: read_count(section, "max_per_member", 1, faults).unwrap_or(max_per_member),
    }
}

fn read_backend(section: &Section, faults: &mut Faults) -> Option<BackendChoice> {
    let word = section.word("backend", faults)?;
    let choice = BackendChoice::parse(word.get_ref());
    if choice.is_none() {
        sheet::unknown("backend", &word, &BackendChoice::FORMS, faults);
    }
    choice
}

fn read_defaults(section: &Section, faults: &mut Faults) -> Defaults {
    Defaults {
        profile: inner(section.name("profile", check_name, faults)).unwrap_or(WORKER.to_owned()),
        cwd: inner(section.word("cwd", faults)).unwrap_or(".".to_owned()),
        model: inner(section.word("model", faults)),
        mode: read_mode(section, faults),
        env: section.variables("[defaults.env]", faults),
    }
}

fn read_worktrees(section: &Section, faults: &mut Faults) -> Rules {
    Rules {
        dir: inner(section.word("dir", faults)),
        copy: section.names("copy", check_inside, faults).into_iter().map(At::into_inner).collect(),
        setup: section.command("setup", faults).unwrap_or_default(),
    }
}

/// Reads `worktree`: `true`, or the name of a branch.
fn read_wish(section: &Section, faults: &mut Faults) -> Option<WorktreeRequest> {
    let value = section.value("worktree")?;
    match value.get_ref() {
        DeValue::Boolean(wished) => wished.then_some(WorktreeRequest::Own),
        DeValue::String(_) => {
            inner(section.name("worktree", check_branch, faults)).map(WorktreeRequest::Branch)
        }
        other => {
            section.refuse("worktree", value, "true, false or the name of a branch", other, faults)
        }
    }
}

fn read_member(section: &Section, defaults: &Defaults, faults: &mut Faults) -> MemberDraft {
    refuse_contradictions(section, faults);
    refuse_when_needed_scale(section, faults);
    refuse_standing_task_only(section, faults);
    let name = section.required_name("name", check_member_name, faults);
    let place = name.as_ref().map_or(section.span.clone(), At::span);
    let run = section.command("run", faults);
    let inherited = if run.is_some() { SHELL } else { defaults.profile.as_str() };
    let mut env = defaults.env.clone();
    env.extend(section.variables("[member.env]", faults));
    let profile =
        inner(section.name("profile", check_name, faults)).unwrap_or(inherited.to_owned());
    let default_model = defaults.model.clone().filter(|_| ability(&profile) == Ability::Prompts);
    let spec = MemberSpec {
        name: owned(name),
        role: inner(section.word("role", faults)),
        model: inner(section.word("model", faults)).or(default_model),
        mode: read_mode(section, faults).or(defaults.mode),
        profile,
        prompt: inner(section.text("prompt", faults)),
        prompt_file: inner(section.word("prompt_file", faults)),
        cwd: inner(section.word("cwd", faults)).unwrap_or(defaults.cwd.clone()),
        worktree: read_wish(section, faults),
        run,
        env,
        plan: section.flag("plan", faults).unwrap_or(false),
        when_needed: inner(section.choice("start", &STARTS, faults)).unwrap_or(false),
        scale: read_scale(section, faults),
        restart: inner(section.choice("restart", &RESTARTS, faults)).unwrap_or(false),
        task_only: section.flag("task_only", faults).unwrap_or(false),
        rules: read_member_rules(section, faults),
        tools: read_tools(section, faults),
    };
    MemberDraft { header: section.span.clone(), name: place, spec }
}

/// Reads `scale`. At most five members by default: with more, they wait for each other.
fn read_scale(section: &Section, faults: &mut Faults) -> Option<Scale> {
    const MAX: usize = 5;
    let value = section.value("scale")?;
    let scale = Section::open("[member.scale]", value, &SCALE, faults)?;
    let min = read_count(&scale, "min", 0, faults).unwrap_or(0);
    let max = read_count(&scale, "max", 1, faults).unwrap_or(MAX.max(min));
    if max < min {
        faults.add(
            &value.span(),
            format!("`max` in [member.scale] is {max}, less than `min`, {min}"),
        );
    }
    Some(Scale { min, max })
}

fn read_count(section: &Section, key: &str, least: usize, faults: &mut Faults) -> Option<usize> {
    let number = section.integer(key, faults)?;
    let count = usize::try_from(*number.get_ref()).ok().filter(|count| *count >= least);
    if count.is_none() {
        faults
            .add(&number.span(), format!("`{key}` in {} must be at least {least}", section.title));
    }
    count
}

fn read_seconds(section: &Section, key: &str, default: u64, faults: &mut Faults) -> u64 {
    read_count(section, key, 1, faults)
        .map_or(default, |seconds| u64::try_from(seconds).unwrap_or(u64::MAX))
}

fn refuse_contradictions(section: &Section, faults: &mut Faults) {
    if let (Some(_), Some(file)) = (section.value("prompt"), section.value("prompt_file")) {
        faults.add(&file.span(), "[[member]] has both `prompt` and `prompt_file`");
    }
    let (Some(_), Some(profile)) = (section.value("run"), section.value("profile")) else { return };
    if let DeValue::String(word) = profile.get_ref()
        && word != SHELL
    {
        let said =
            format!("a member with `run` uses the profile `shell`, not `{}`", word.escape_debug());
        faults.add(&profile.span(), said);
    }
}

/// Adds faults for keys that make no sense with `start` or `scale`. A member that stands for
/// several is never started as itself, and one that is started on demand needs no `restart`.
fn refuse_when_needed_scale(section: &Section, faults: &mut Faults) {
    if let (Some(_), Some(restart)) =
        (section.value("start").or(section.value("scale")), section.value("restart"))
    {
        faults.add(
            &restart.span(),
            "[[member]] combines `restart` with `start` or `scale`, which restart it anyway",
        );
    }
    if let (Some(_), Some(branch)) = (section.value("scale"), section.value("worktree"))
        && matches!(branch.get_ref(), DeValue::String(_))
    {
        let said = "[[member]] combines `scale` with a single branch: write `worktree = true` to give each its own";
        faults.add(&branch.span(), said);
    }
    if let (Some(start), Some(_)) = (section.value("start"), section.value("scale")) {
        faults.add(
            &start.span(),
            "[[member]] has both `start` and `scale`; `scale.min` sets how many start at once",
        );
    }
}

/// Adds faults for a task-only member with keys that only apply to standing members.
fn refuse_standing_task_only(section: &Section, faults: &mut Faults) {
    let marked =
        section.value("task_only").filter(|v| matches!(v.get_ref(), DeValue::Boolean(true)));
    let Some(task_only) = marked else { return };
    for key in ["start", "restart", "plan", "run"] {
        if section.value(key).is_some() {
            let said = format!(
                "[[member]] has both `task_only` and `{key}`, which applies to standing members only"
            );
            faults.add(&task_only.span(), said);
        }
    }
}

fn read_task(section: &Section, faults: &mut Faults) -> TaskDraft {
    let key = section.required_name("key", check_name, faults);
    let place = key.as_ref().map_or(section.span.clone(), At::span);
    let after = section.list("after", faults);
    let owner = section.word("owner", faults);
    let role = section.word("role", faults);
    let mut unique: Vec<String> = Vec::new();
    for key in &after {
        if !unique.contains(key.get_ref()) {
            unique.push(key.get_ref().clone());
        }
    }
    let spec = TaskSpec {
        key: owned(key),
        subject: owned(section.required("subject", faults)),
        description: inner(section.text("description", faults)),
        active_form: inner(section.word("active_form", faults)),
        run: section.command("run", faults),
        after: unique,
        files: section.list("files", faults).into_iter().map(At::into_inner).collect(),
        owner: owner.as_ref().map(|owner| owner.get_ref().clone()),
        role: role.as_ref().map(|role| role.get_ref().clone()),
        priority: inner(section.integer("priority", faults)),
        cwd: inner(section.word("cwd", faults)),
        env: section.variables("[task.env]", faults),
        show_output: section.flag("show_output", faults).unwrap_or(false),
    };
    TaskDraft { key: place, after, owner, role, spec }
}

pub(super) fn read_mode(section: &Section, faults: &mut Faults) -> Option<Mode> {
    inner(section.choice("mode", &MODES.map(|mode| (mode.as_str(), mode)), faults))
}

fn patterns(section: &Section, key: &str, faults: &mut Faults) -> Vec<String> {
    section.names(key, check_pattern, faults).into_iter().map(At::into_inner).collect()
}

pub(super) fn inner<T>(value: Option<At<T>>) -> Option<T> {
    value.map(At::into_inner)
}

/// Unwraps a required value. If it is missing, the fault has been added already.
fn owned(value: Option<At<String>>) -> String {
    inner(value).unwrap_or_default()
}
