//! What phalanx keeps of a team beside the team file, in `phalanx/team.json`: how it is run. The manifest or the
//! command line set it once; whoever leads the team later reads it.

use serde::{Deserialize, Serialize};

use super::environ::EnvRules;
use super::placement::{BackendKind, Layout};

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

/// Which backend was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BackendChoice {
    /// The best that works; what was chosen is said in one line.
    #[default]
    Auto,
    Tmux,
    Pty,
}

/// The form of the file that this phalanx writes.
const FORMAT: u32 = 1;

/// How a team is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Form of this file.
    pub(crate) format: u32,
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
    #[serde(default)]
    pub(crate) env: EnvRules,
}

impl Settings {
    /// A team of at most so many members that nothing else was said about: it stays until it is told to end, and stays
    /// on disk then.
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
            env: EnvRules::default(),
        }
    }
}
