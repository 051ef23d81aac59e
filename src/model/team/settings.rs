//! Settings of a team, stored in `phalanx/team.json` beside the team file. The manifest or the
//! command line sets them, and every later lead reads them.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::board::limits::Limits;
use crate::board::policy::{BoardPolicy, Pull};
use crate::board::task::Task;
use crate::board::workspace::WorkspaceRules;
use crate::decisions::rules::TeamRules;
use crate::id::{HostName, MemberName, TeamName};
use crate::mail::access::{AccessDenied, AccessPolicy, LinkAccess};
use crate::mail::routing::RoutingPolicy;
use crate::mail::scope::Scope;
use crate::members::budget::Budgets;
use crate::members::environ::EnvRules;
use crate::members::launch::Template;
use crate::members::placement::{BackendKind, Layout};
use crate::members::rate_limit::ResumePolicy;
use crate::members::record::LaunchRequest;
use crate::members::usage::Prices;
use crate::team::check::TeamCheck;
use crate::team::followup::ReminderPolicy;
use crate::team::hook::HookCommand;
use crate::team::host::HostConfig;
use crate::team::role::Roles;
use crate::team::worktree::{Checkout, Rules};
use crate::time::Timestamp;

/// The condition on which a lead ends its team by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// Once no task is running and none can be started; after `phalanx team set`, once the team has
    /// had a task.
    TasksDone,
    /// Only on request.
    #[default]
    Manual,
}

/// The members that may read a member's output with `logs` and `peek`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Privacy {
    /// All teammates.
    #[default]
    Open,
    /// Only the member itself and the lead.
    Own,
}

/// The lead's reaction to a member that hangs, that is, has a task in progress but shows no
/// activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnHang {
    /// Sends a message to the lead's mailbox.
    #[default]
    Report,
    /// Kills the member and starts it as `resume` does.
    Restart,
    /// Releases its tasks to other members, after a worker has ended their command, and leaves it
    /// running.
    Release,
}

/// The requested backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::Display, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum BackendChoice {
    /// The best available backend. The choice is reported in one line.
    #[default]
    Auto,
    /// Panes of a tmux server.
    Tmux,
    /// Sessions of iTerm2 beside yours.
    Iterm2,
    /// A PTY of each launcher, which needs no other program.
    Pty,
}

/// Format version that this release writes.
pub const FORMAT: u32 = 1;

/// Member limit of a team created by hand. It stops runaway scripts.
pub const MAX_MEMBERS: usize = 256;

/// Default of [`Settings::unresponsive_after_s`].
pub const fn unresponsive_after_s() -> u64 {
    60
}

/// Default of [`Settings::hang_after_s`]: 15 minutes, since a build can be silent for long.
pub const fn hang_after_s() -> u64 {
    900
}

/// Default of [`Settings::grace_s`].
pub const fn grace_s() -> u64 {
    10
}

/// Default of [`Settings::answer_within_s`]: an hour, to allow for a person's absence.
pub const fn answer_within_s() -> u64 {
    3600
}

/// Where a host places the members of a team.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlacementHome {
    /// Result of `auto` at the first spawn, which later spawns reuse.
    pub chosen: Option<BackendKind>,
    /// Socket of the team's tmux server, once it has one.
    pub tmux_socket: Option<String>,
}

/// The member or agent lead of another team that created a team, and may lead it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Creator {
    pub team: TeamName,
    /// Tells that team from a later one of its name. Unlike the config root, it is the same on all
    /// hosts of a shared store.
    pub team_created_at: Timestamp,
    pub member: MemberName,
}

/// The part of a manifest that `up` keeps, to compare a later one with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedManifest {
    /// Digest of all that the manifest says.
    pub digest: String,
    /// The keys of its tasks.
    pub tasks: BTreeSet<String>,
}

/// [`Settings::by_hand`] has the values of a new team. Those of `Default` are empty.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Format version of the file.
    pub format: u32,
    /// `None` for a team that a person created.
    pub creator: Option<Creator>,
    /// The requested backend.
    pub backend: BackendChoice,
    /// Where this host places members.
    #[serde(flatten)]
    pub home: PlacementHome,
    /// Where other hosts place members, in a team of the shared store.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub homes: BTreeMap<HostName, PlacementHome>,
    #[serde(default)]
    pub layout: Layout,
    pub finish: Finish,
    /// Time after which its lead ends the team. Seconds.
    pub timeout_s: Option<u64>,
    /// A failed task ends a team that would end with its tasks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fail_fast: bool,
    /// Keep the team's files after it has ended.
    #[serde(default)]
    pub keep: bool,
    pub max_members: usize,
    /// Maximum nesting depth of teams. With 1, teammates cannot lead teams of their own.
    #[serde(default = "one")]
    pub max_depth: usize,
    #[serde(default)]
    pub privacy: Privacy,
    /// Time after which a member that owes an answer counts as unresponsive. Seconds.
    #[serde(default = "unresponsive_after_s")]
    pub unresponsive_after_s: u64,
    #[serde(default)]
    pub on_hang: OnHang,
    /// Time without activity after which a member with a task in progress counts as hanging.
    /// Seconds.
    #[serde(default = "hang_after_s")]
    pub hang_after_s: u64,
    /// Time that a command or a plain program has to exit after SIGTERM. Seconds.
    #[serde(default = "grace_s")]
    pub grace_s: u64,
    /// Limits on tasks assigned to one member.
    #[serde(default)]
    pub limits: Limits,
    /// Limits on what members use.
    #[serde(default, skip_serializing_if = "Budgets::is_empty")]
    pub budgets: Budgets,
    /// Prices of tokens, for programs that do not report their cost.
    #[serde(default, skip_serializing_if = "Prices::is_empty")]
    pub prices: Prices,
    /// The policy for members at a usage limit of their provider.
    #[serde(default)]
    pub resume_limited: ResumePolicy,
    #[serde(default)]
    pub env: EnvRules,
    /// Permission rules for members.
    #[serde(default, skip_serializing_if = "TeamRules::is_empty")]
    pub rules: TeamRules,
    /// Roles defined in the manifest, in addition to agent files.
    #[serde(default, skip_serializing_if = "Roles::is_empty")]
    pub roles: Roles,
    /// Time within which members' requests can be answered. Seconds.
    #[serde(default = "answer_within_s")]
    pub answer_within_s: u64,
    /// Program and arguments to run for each request that waits for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<String>,
    /// Reminder settings; `None` disables reminders.
    pub followup: Option<ReminderPolicy>,
    /// Demands on those who use the task board.
    #[serde(default, skip_serializing_if = "BoardPolicy::is_default")]
    pub board: BoardPolicy,
    /// Rules about who may message whom.
    #[serde(default, skip_serializing_if = "RoutingPolicy::is_empty")]
    pub routing: RoutingPolicy,
    /// Hooks defined in the manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookCommand>,
    /// Checks of members' work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<TeamCheck>,
    /// Hosts defined in the manifest, in addition to those of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostConfig>,
    /// Templates of the members that the lead starts itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<Template>,
    /// The users and channels that may request work.
    #[serde(default, skip_serializing_if = "AccessPolicy::is_empty")]
    pub access: AccessPolicy,
    #[serde(default)]
    pub workspace: WorkspaceRules,
    /// Settings for members' worktrees.
    #[serde(default)]
    pub worktree: Rules,
    /// Existing worktrees by member. A worktree may outlive its member.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checkouts: BTreeMap<MemberName, Checkout>,
    /// The manifest that `up` has applied last.
    pub manifest: Option<AppliedManifest>,
    /// Set while a command ends the team: until this time no member starts.
    pub ends_until: Option<Timestamp>,
}

fn one() -> usize {
    1
}

impl Settings {
    /// Returns shared settings as `host` uses them.
    pub fn seen_from(mut self, host: &HostName) -> Settings {
        self.home = self.homes.remove(host).unwrap_or_default();
        self
    }

    /// Returns settings that `host` used, as all hosts share them.
    pub fn shared_by(mut self, host: &HostName) -> Settings {
        let home = std::mem::take(&mut self.home);
        if home != PlacementHome::default() {
            self.homes.insert(host.clone(), home);
        }
        self
    }

    /// Checks whether a member with this role, and the lists of its start, takes requests of this
    /// origin.
    ///
    /// # Errors
    /// As [`AccessPolicy::admit_to`].
    pub fn admit_to(
        &self,
        scope: &Scope,
        member: &MemberName,
        own: &LinkAccess,
        role: Option<&str>,
    ) -> Result<(), AccessDenied> {
        let role = role.and_then(|role| {
            let lists = &self.roles.named.get(role)?.access;
            Some((role, lists)).filter(|(_, lists)| **lists != LinkAccess::default())
        });
        let template = self.templates.iter().find(|template| template.makes(member));
        let entry = template.map_or(member.as_str(), |template| &template.spec.name);
        self.access.admit_to(scope, member, entry, own, role)
    }

    /// Returns true if a member is notified of this free task while it is idle.
    pub fn tells_of(&self, task: &Task, member: &MemberName, request: &LaunchRequest) -> bool {
        let role = request.role.as_deref();
        let is_told = request.pull.unwrap_or(self.board.pull) == Pull::Tell && task.fits(role);
        let scope = &task.extra.scope;
        is_told && self.admit_to(scope, member, &request.access, role).is_ok()
    }

    /// Returns the settings of a team created by hand: it runs until it is asked to end, and keeps
    /// its files.
    pub fn by_hand(max_members: usize) -> Settings {
        Settings {
            format: FORMAT,
            keep: true,
            max_members,
            max_depth: one(),
            unresponsive_after_s: unresponsive_after_s(),
            hang_after_s: hang_after_s(),
            grace_s: grace_s(),
            answer_within_s: answer_within_s(),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_settings_have_the_values_of_a_team_created_by_hand() {
        let text = r#"{"format":1,"backend":"auto","finish":"manual","keep":true,"max_members":8}"#;
        let settings: Settings = serde_json::from_str(text).expect("settings");
        assert_eq!(settings, Settings::by_hand(8));
    }
}
