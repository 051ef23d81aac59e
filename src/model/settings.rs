//! What phalanx keeps of a team beside the team file, in `phalanx/team.json`: how it is run. The manifest or the
//! command line set it once; whoever leads the team later reads it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::environ::EnvRules;
use super::followup::Followup;
use super::hook::Hook;
use super::id::MemberName;
use super::limits::Limits;
use super::order::Template;
use super::placement::{BackendKind, Layout};
use super::role::Roles;
use super::rules::TeamRules;
use super::worktree::{Checkout, Rules};

/// When a lead takes its team to the end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Finish {
    /// When no task is running and none can be started.
    TasksDone,
    /// Only when told.
    #[default]
    Manual,
}

/// Readers of a member's output, by `logs` and `peek`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Privacy {
    /// Every teammate.
    #[default]
    Open,
    /// The member itself and the lead.
    Own,
}

impl Privacy {
    /// Every one, with its word in manifests.
    pub(crate) const ALL: [(&str, Privacy); 2] = [("open", Privacy::Open), ("own", Privacy::Own)];
}

/// The lead's action for a member that hangs: it has a task in progress and shows no activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnHang {
    /// Tells the lead's mailbox.
    #[default]
    Report,
    /// Kills the member and starts it again.
    Restart,
    /// Makes its tasks free for other members.
    Release,
}

impl OnHang {
    /// Every one, with its word in manifests.
    pub(crate) const ALL: [(&str, OnHang); 3] =
        [("report", OnHang::Report), ("restart", OnHang::Restart), ("release", OnHang::Release)];

    /// The word in manifests.
    pub(crate) fn as_str(self) -> &'static str {
        OnHang::ALL
            .into_iter()
            .find(|(_, action)| *action == self)
            .map_or("report", |(word, _)| word)
    }
}

/// Which backend was asked for: `auto`, `tmux`, `iterm2`, `pty`, or `exec:PROGRAM`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum BackendChoice {
    /// The best that works; what was chosen is said in one line.
    #[default]
    Auto,
    Tmux,
    Iterm2,
    Pty,
    /// This program, found in `PATH` or by its path.
    Exec(String),
}

impl BackendChoice {
    /// Every form, for messages.
    pub(crate) const FORMS: [&str; 5] = ["auto", "tmux", "iterm2", "pty", "exec:PROGRAM"];

    /// Reads the word; none when it is not one of [`BackendChoice::FORMS`].
    pub(crate) fn parse(word: &str) -> Option<BackendChoice> {
        Some(match word {
            "auto" => BackendChoice::Auto,
            "tmux" => BackendChoice::Tmux,
            "iterm2" => BackendChoice::Iterm2,
            "pty" => BackendChoice::Pty,
            other => BackendChoice::Exec(
                other.strip_prefix("exec:").filter(|p| !p.is_empty())?.to_owned(),
            ),
        })
    }
}

impl TryFrom<String> for BackendChoice {
    type Error = String;

    fn try_from(word: String) -> Result<BackendChoice, String> {
        BackendChoice::parse(&word).ok_or_else(|| format!("no such backend: {word:?}"))
    }
}

impl From<BackendChoice> for String {
    fn from(choice: BackendChoice) -> String {
        choice.to_string()
    }
}

impl fmt::Display for BackendChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackendChoice::Auto => f.write_str("auto"),
            BackendChoice::Tmux => f.write_str("tmux"),
            BackendChoice::Iterm2 => f.write_str("iterm2"),
            BackendChoice::Pty => f.write_str("pty"),
            BackendChoice::Exec(program) => write!(f, "exec:{program}"),
        }
    }
}

/// The form of the file that this phalanx writes.
const FORMAT: u32 = 1;

/// Limit of members for a team that is built by hand: it stops a script that runs away.
pub(crate) const MAX_MEMBERS: usize = 256;

/// Seed 002, "Health Tracking".
pub(crate) const fn unresponsive_after_s() -> u64 {
    60
}

/// A quarter of an hour: a build can be silent for long.
pub(crate) const fn hang_after_s() -> u64 {
    900
}

/// An hour: a person may be at lunch.
pub(crate) const fn answer_within_s() -> u64 {
    3600
}

/// How a team is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Form of this file.
    pub(crate) format: u32,
    /// What was asked for. A program of somebody else's that was used stands here by its full path.
    pub(crate) backend: BackendChoice,
    /// What `auto` came to at the first spawn; later members follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chosen: Option<BackendKind>,
    /// Socket of the team's tmux server, once one was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tmux_socket: Option<String>,
    #[serde(default)]
    pub(crate) layout: Layout,
    pub(crate) finish: Finish,
    /// The team stays on disk when it has come to its end.
    #[serde(default)]
    pub(crate) keep: bool,
    pub(crate) max_members: usize,
    /// How deep teams may be nested: 1, none of its teammates leads others.
    #[serde(default = "one")]
    pub(crate) max_depth: usize,
    #[serde(default)]
    pub(crate) privacy: Privacy,
    /// A member that owes an answer for so long is unresponsive; seconds.
    #[serde(default = "unresponsive_after_s")]
    pub(crate) unresponsive_after_s: u64,
    #[serde(default)]
    pub(crate) on_hang: OnHang,
    /// Seconds without activity after which a member with a task in progress hangs.
    #[serde(default = "hang_after_s")]
    pub(crate) hang_after_s: u64,
    /// How much one member is given at once.
    #[serde(default)]
    pub(crate) limits: Limits,
    #[serde(default)]
    pub(crate) env: EnvRules,
    /// What members may do unasked, must not do, and must ask for.
    #[serde(default, skip_serializing_if = "TeamRules::is_empty")]
    pub(crate) rules: TeamRules,
    /// What its members can be for, beside what agent files say.
    #[serde(default, skip_serializing_if = "Roles::is_empty")]
    pub(crate) roles: Roles,
    /// How long what members ask can be answered.
    #[serde(default = "answer_within_s")]
    pub(crate) answer_within_s: u64,
    /// A program of the user's that is told of each request that waits for a person, and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notify: Vec<String>,
    /// How who owes an answer or progress is reminded; none: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) followup: Option<Followup>,
    /// What the manifest has run when something happens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hooks: Vec<Hook>,
    /// Who is started by the lead itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) templates: Vec<Template>,
    /// How members' worktrees are made.
    #[serde(default)]
    pub(crate) worktree: Rules,
    /// The worktrees that were made and not removed, by member; their members may have left.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) checkouts: BTreeMap<MemberName, Checkout>,
}

fn one() -> usize {
    1
}

impl Settings {
    /// The default settings, with this limit of members. The team runs until it is asked to end,
    /// and its files stay.
    pub(crate) fn by_hand(max_members: usize) -> Settings {
        Settings {
            format: FORMAT,
            backend: BackendChoice::default(),
            chosen: None,
            tmux_socket: None,
            layout: Layout::default(),
            finish: Finish::default(),
            keep: true,
            max_members,
            max_depth: 1,
            privacy: Privacy::default(),
            unresponsive_after_s: unresponsive_after_s(),
            on_hang: OnHang::default(),
            hang_after_s: hang_after_s(),
            limits: Limits::default(),
            env: EnvRules::default(),
            rules: TeamRules::default(),
            roles: Roles::default(),
            answer_within_s: answer_within_s(),
            notify: Vec::new(),
            followup: None,
            hooks: Vec::new(),
            templates: Vec::new(),
            worktree: Rules::default(),
            checkouts: BTreeMap::new(),
        }
    }
}
