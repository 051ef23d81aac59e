//! `[[member]]` and `[defaults]`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::roles::tools;
use super::spec::MemberSpec;
use crate::{Faults, Place};
use model::board::policy::Pull;
use model::board::waiting::Ability;
use model::decisions::rules::{RuleList, RuleSet, TeamRules};
use model::mail::access::LinkAccess;
use model::members::budget::Budget;
use model::members::launch::{Demand, LaunchSpec, SHELL, Scale, WORKER, ability};
use model::members::mode::Mode;
use model::members::readiness::ReadyCheck;
use model::team::host::{HostChoice, Label, NewHostName};
use model::team::worktree::{Revision, WorktreeKey, WorktreeRequest};
use model::value::{
    Argv, As, AtLeast, CheckedValue, Choice, KeyedTable, MemberText, Name, NewMemberName, NonBlank,
    PlainText, Variables,
};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "defaults")]
pub(super) struct DefaultsTable {
    /// Profile of the program. See `phalanx docs profiles`.
    #[schemars(extend("default" = WORKER))]
    profile: Option<Name>,
    /// Working directory.
    cwd: Option<NonBlank>,
    /// Model, for members whose program takes one.
    model: Option<NonBlank>,
    /// Permission mode. See `phalanx docs decisions plans-and-modes`.
    mode: Option<Choice<Mode>>,
    /// Environment variables. `{name}` and `{index}` stand for the member's name and number.
    #[serde(with = "As::<Variables<MemberText>>")]
    env: BTreeMap<String, String>,
    /// File with environment variables, as `env_file` in `[[member]]`.
    env_file: Option<NonBlank>,
    /// Command line that starts each program, as `wrap` in `[[member]]`.
    wrap: Option<Vec<PlainText>>,
    /// Limits on what each member may use. See `phalanx docs dashboard budgets`.
    pub(super) budget: KeyedTable<Budget>,
    /// The only tools that members may use. See `phalanx docs manifest tools`.
    pub(super) allowed_tools: Option<RuleList>,
    /// Tools that members may not use.
    pub(super) disallowed_tools: RuleList,
}

impl DefaultsTable {
    fn wrap(&self) -> Option<Vec<String>> {
        Some(self.wrap.as_ref()?.iter().map(|word| word.0.clone()).collect())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "member")]
pub(super) struct MemberTable {
    /// Name of the member; unique, ignoring case.
    name: NewMemberName,
    /// Role of the member. Tasks with this `role` go to it. See `phalanx docs manifest roles`.
    role: Option<NonBlank>,
    /// Profile of the program; by default `shell` for a member with `run`. See
    /// `phalanx docs profiles`.
    profile: Option<Name>,
    /// Model of the program.
    model: Option<NonBlank>,
    /// Permission mode. See `phalanx docs decisions plans-and-modes`.
    mode: Option<Choice<Mode>>,
    /// The first message.
    prompt: Option<String>,
    /// A file with the first message, instead of `prompt`.
    prompt_file: Option<NonBlank>,
    /// Name of the host that the member runs on. See `phalanx docs hosts members`.
    host: Option<NewHostName>,
    /// Labels, instead of `host`: any host that has all of them.
    labels: Option<Vec<Label>>,
    /// Working directory. A relative one of a member on another host is below the work directory of
    /// the host, which is also the default there; with `worktree` it is a directory of the
    /// repository on this machine.
    cwd: Option<NonBlank>,
    /// A command line of the member's own, if its profile takes one, as `shell` and `acp` do.
    run: Option<Argv>,
    /// Environment variables, in addition to those of `[defaults]`.
    #[serde(default, with = "As::<Variables<MemberText>>")]
    env: BTreeMap<String, String>,
    /// File of lines `NAME=VALUE` with further environment variables, read at each start. A
    /// relative one is below the member's own directory.
    env_file: Option<NonBlank>,
    /// Command line that starts the program in the member's own directory, such as
    /// `["direnv", "exec", "."]`; the program's own is appended. An empty list means none.
    wrap: Option<Vec<PlainText>>,
    /// Require an approved plan before the member works.
    #[schemars(extend("default" = false))]
    plan: Option<bool>,
    /// Ask for a person's attention when its command waits at a prompt. See
    /// `phalanx docs lifecycle prompts-of-plain-programs`.
    #[schemars(extend("default" = true))]
    attention: Option<bool>,
    /// Notification of free tasks while the member is idle, as `pull` in
    /// `[team.board]`, which is the default.
    pull: Option<Pull>,
    /// `true` or the name of a branch: the member works in its own git worktree, also on another
    /// host. See `phalanx docs hosts worktrees`.
    #[serde(default, with = "As::<WorktreeKey>")]
    worktree: Option<WorktreeRequest>,
    /// Revision that the branch of its worktree starts from, if it is new, instead of `base` in
    /// `[worktree]`.
    base: Option<Revision>,
    /// Time at which the member is started.
    #[schemars(extend("default" = "now"))]
    start: Option<Choice<Start>>,
    /// A pool of members `NAME-1`, `NAME-2` …, sized by the number of tasks in progress and ready
    /// to start.
    scale: Option<KeyedTable<ScaleTable>>,
    /// The check whether the member is ready; without one it is when its program runs. See
    /// `phalanx docs manifest services`.
    ready: Option<KeyedTable<ReadyCheck>>,
    /// Members that must be ready before this one is started, as `member:NAME`.
    after: Option<Vec<String>>,
    /// Reaction to a program that ends.
    #[schemars(extend("default" = "never"))]
    restart: Option<Choice<Restart>>,
    /// Each task of this member is a run of its own. A role can set this, too. See
    /// `phalanx docs manifest task-mode`.
    #[schemars(extend("default" = false))]
    task_only: Option<bool>,
    /// Rules in addition to those of the team and the role. See `phalanx docs decisions rules`.
    #[serde(default)]
    rules: KeyedTable<RuleSet>,
    /// The users that may request work of this member. See `phalanx docs manifest teamaccess`.
    #[serde(default)]
    access: KeyedTable<LinkAccess>,
    /// Limits on what this member may use; each member of a `scale` has its own. See
    /// `phalanx docs dashboard budgets`.
    pub(super) budget: Option<KeyedTable<Budget>>,
    /// The only tools that the member may use, if its program can enforce that. See
    /// `phalanx docs manifest tools`.
    allowed_tools: Option<RuleList>,
    /// Tools that the member may not use.
    #[serde(default)]
    disallowed_tools: RuleList,
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
    /// After a failure the member is restarted after 1, 2, 4 … seconds. Five failures in a row,
    /// each within a minute of its start, end this until `resume` starts the member.
    OnFailure,
    /// As `on-failure`, also after an exit with 0. Each end counts as a failure.
    Always,
}

impl Restart {
    fn demand(self) -> Option<Demand> {
        match self {
            Restart::Never => None,
            Restart::OnFailure => Some(Demand::Standing),
            Restart::Always => Some(Demand::Always),
        }
    }
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

/// Members of a scaled entry by default: with more, they wait for each other.
const DEFAULT_SCALE_MAX: usize = 5;

/// Applies the defaults to a member, and adds its rules and access lists to those of the team.
pub(super) fn member_spec(
    at: usize,
    table: MemberTable,
    defaults: &DefaultsTable,
    rules: &mut TeamRules,
    links: &mut BTreeMap<String, LinkAccess>,
    faults: &mut Faults,
) -> MemberSpec {
    for (key, message) in table.faults() {
        faults.add_at(&[Place::Key("member"), Place::Index(at), Place::Key(key)], message);
    }
    let labels = table.labels.map(|all| all.into_iter().map(|label| label.0).collect());
    let run = table.run.map(|run| run.0);
    let inherited = match (&run, &defaults.profile) {
        (Some(_), _) => SHELL,
        (None, Some(profile)) => &profile.0,
        (None, None) => WORKER,
    };
    let profile = table.profile.map_or(inherited.to_owned(), |profile| profile.0);
    let default_model = defaults.model.as_ref().filter(|_| ability(&profile) == Ability::Prompts);
    let mut env = defaults.env.clone();
    env.extend(table.env);
    let launch = LaunchSpec {
        name: table.name.0,
        role: table.role.map(|role| role.0),
        model: table.model.as_ref().or(default_model).map(|model| model.0.clone()),
        mode: table.mode.as_ref().or(defaults.mode.as_ref()).map(|mode| mode.0),
        profile: Some(profile),
        prompt: table.prompt,
        host: table.host.map(|name| HostChoice::Name(name.0)).or(labels.map(HostChoice::Labels)),
        cwd: table.cwd.as_ref().or(defaults.cwd.as_ref()).map(|cwd| cwd.0.clone()),
        worktree: table.worktree,
        base: table.base.map(|base| base.0),
        command: run.unwrap_or_default(),
        env: env.into_iter().collect(),
        env_file: table.env_file.as_ref().or(defaults.env_file.as_ref()).map(|file| file.0.clone()),
        wrap: table.wrap.into_value().or_else(|| defaults.wrap()),
        plan: table.plan.unwrap_or(false),
        is_unattended: table.attention == Some(false),
        pull: table.pull,
        tools: tools(table.allowed_tools, table.disallowed_tools),
        ready: table.ready.map(|ready| ready.0),
        after: table.after.unwrap_or_default(),
        ..LaunchSpec::default()
    };
    let spec = MemberSpec {
        launch,
        prompt_file: table.prompt_file.map(|file| file.0),
        when_needed: table.start.is_some_and(|start| start.0 == Start::WhenNeeded),
        scale: table.scale.map(|scale| scale.0.bounds()),
        restart: table.restart.and_then(|restart| restart.0.demand()),
        task_only: table.task_only.unwrap_or(false),
    };
    let own = table.rules.0;
    if own != RuleSet::default() {
        rules.members.extend(spec.instance_names().into_iter().map(|name| (name, own.clone())));
    }
    let link = table.access.0;
    if !link.is_empty() {
        links.extend(spec.instance_names().into_iter().map(|name| (name, link.clone())));
    }
    spec
}

impl MemberTable {
    /// Returns the contradictions between its keys, each with the key to report.
    fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let mut add = |key, message: &str| faults.push((key, message.to_owned()));
        if self.prompt.is_some() && self.prompt_file.is_some() {
            add("prompt_file", "[[member]] has both `prompt` and `prompt_file`");
        }
        if self.host.is_some() && self.labels.is_some() {
            add("labels", "[[member]] has both `host` and `labels`");
        } else if self.labels.as_ref().is_some_and(Vec::is_empty) {
            add("labels", "`labels` in [[member]] is empty");
        }
        // A member that stands for several is never started as itself, and one that is started on
        // demand needs no `restart`.
        if self.restart.is_some() && (self.start.is_some() || self.scale.is_some()) {
            add(
                "restart",
                "[[member]] combines `restart` with `start` or `scale`, which restart it anyway",
            );
        }
        if let (Some(_), Some(WorktreeRequest::Branch(_))) = (&self.scale, &self.worktree) {
            let message = "[[member]] combines `scale` with a single branch: write `worktree = true` to give each its own";
            add("worktree", message);
        }
        if self.start.is_some() && self.scale.is_some() {
            add(
                "start",
                "[[member]] has both `start` and `scale`; `scale.min` sets how many start at once",
            );
        }
        if let Some(fault) = self.ready.as_ref().and_then(|ready| ready.0.fault()) {
            add("ready", &fault);
        }
        if let Some(KeyedTable(scale)) = &self.scale {
            let Scale { min, max } = scale.bounds();
            if max < min {
                let message = format!("`max` in [member.scale] is {max}, less than `min`, {min}");
                add("scale", &message);
            }
        }
        let standing = [
            ("start", self.start.is_some()),
            ("restart", self.restart.is_some()),
            ("ready", self.ready.is_some()),
            ("after", self.after.is_some()),
            ("plan", self.plan.is_some()),
            ("run", self.run.is_some()),
        ];
        for (key, _) in
            standing.into_iter().filter(|(_, is_set)| *is_set && self.task_only == Some(true))
        {
            let message = format!(
                "[[member]] has both `task_only` and `{key}`, which applies to standing members only"
            );
            add("task_only", &message);
        }
        faults
    }
}

impl ScaleTable {
    fn bounds(&self) -> Scale {
        let min = self.min.as_ref().map_or(0, |min| min.0);
        let max = self.max.as_ref().map_or(DEFAULT_SCALE_MAX.max(min), |max| max.0);
        Scale { min, max }
    }
}

#[cfg(test)]
mod tests {
    use crate::hosts::parse_hosts;
    use crate::manifest::Manifest;
    use model::team::host::HostChoice;

    const HOST: &str =
        "[[host]]\nname = \"build\"\nssh = \"b\"\ndir = \"/w\"\nlabels = [\"gpu\"]\n";

    fn manifest(member: &str) -> String {
        format!("[team]\nname = \"t\"\n[[member]]\nname = \"a\"\n{member}{HOST}")
    }

    fn fault(member: &str) -> String {
        Manifest::parse(&manifest(member)).expect_err("a fault").to_string()
    }

    #[test]
    fn member_can_name_a_host_or_its_labels() {
        let read = Manifest::parse(&manifest("host = \"build\"\n")).expect("a manifest");
        let host = read.settings.hosts[0].clone();
        assert_eq!(read.members[0].launch.host, Some(HostChoice::Name(host.name.clone())));
        let read = Manifest::parse(&manifest("labels = [\"gpu\"]\n")).expect("a manifest");
        assert!(read.members[0].launch.host.as_ref().is_some_and(|choice| choice.accepts(&host)));
    }

    #[test]
    fn unknown_hosts_and_labels_are_reported_with_suggestions() {
        let table = [
            (
                "host = \"biuld\"\n",
                "5:8: host `biuld` of member `a` is not configured; did you mean `build`?",
            ),
            (
                "labels = [\"gpu\", \"gup\"]\n",
                "5:10: no host has all labels of member `a`: gpu, gup; did you mean `gpu`?",
            ),
            ("labels = []\n", "5:10: `labels` in [[member]] is empty"),
            (
                "host = \"build\"\nlabels = [\"gpu\"]\n",
                "6:10: [[member]] has both `host` and `labels`",
            ),
            ("host = \"\"\n", "5:8: `host` in [[member]] is empty"),
        ];
        for (member, expected) in table {
            assert_eq!(fault(member), expected);
        }
    }

    #[test]
    fn members_can_wait_only_for_members_that_stand() {
        let after = |names: &str| format!("after = [{names}]\n");
        let other = |more: &str| format!("[[member]]\nname = \"b\"\n{more}");
        let table = [
            (after("\"member:b\"") + &other(""), ""),
            (
                after("\"b\"") + &other(""),
                "5:10: a member can only wait for members: write `member:b`",
            ),
            (after("\"member:c\"") + &other(""), "5:10: `c` is not a member"),
            (
                after("\"member:b\"") + &other("scale = { max = 2 }\n"),
                "5:10: `b` is not one standing member, so nothing can wait for it",
            ),
            (
                after("\"member:b\"") + &other("task_only = true\n"),
                "5:10: `b` is not one standing member, so nothing can wait for it",
            ),
            (
                after("\"member:b\"") + &other("after = [\"member:a\"]\n"),
                "5:9: members wait for each other: `a` after `b` after `a`",
            ),
            (after("\"member:a\""), "5:9: members wait for each other: `a` after `a`"),
            (
                "ready = { line = \"x\", port = 1 }\n".to_owned(),
                "5:9: `ready` needs one of `line`, `port` and `run`",
            ),
            (
                "ready = { timeout = 1 }\n".to_owned(),
                "5:9: `ready` needs one of `line`, `port` and `run`",
            ),
        ];
        for (member, expected) in table {
            let found = Manifest::parse(&manifest(&member)).err();
            let found = found.map(|e| e.to_string()).unwrap_or_default();
            assert_eq!(found, expected, "{member}");
        }
    }

    #[test]
    fn hosts_of_the_user_are_known_in_a_manifest() {
        let hosts = parse_hosts(HOST).expect("hosts");
        let text = "[team]\nname = \"t\"\n[[member]]\nname = \"a\"\nhost = \"build\"\n";
        assert!(Manifest::parse(text).is_err());
        let read = Manifest::parse_with_hosts(text, &hosts).expect("a manifest");
        assert_eq!(read.settings.hosts, [], "hosts of the user stay in the user's file");
    }
}
