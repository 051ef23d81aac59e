//! The options, the shared input and the results of a batch of starts.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::resolve::ResolvedLaunch;
use crate::authority::access;
use crate::decisions::decide;
use crate::team::claude_settings;
use crate::{Context, OpsError, now};
use backend::choose::{Chosen, Tier};
use model::id::{HostName, MemberName};
use model::mail::scope::Scope;
use model::members::mode::Mode;
use model::members::placement::{BackendKind, Layout};
use model::team::Team;
use model::team::settings::{BackendChoice, Settings};
use model::team::worktree::Checkout;
use model::text;
use store::{StoreError, TeamStore};

/// The point at which a start counts as successful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum StartedWhen {
    /// The launcher has recorded the program's process.
    Running,
    /// The member is ready as its profile defines it.
    #[default]
    Ready,
}

/// Options of a batch.
#[derive(Debug, Clone)]
pub struct SpawnOptions {
    /// None: the team's own choice, or automatic.
    pub backend: Option<BackendChoice>,
    pub until: StartedWhen,
    /// Time limit until all members have reached that point.
    pub deadline: Duration,
    /// A taken name gets a numeric suffix instead of being rejected.
    pub unique: bool,
    /// None: as in the team's settings.
    pub layout: Option<Layout>,
    /// The origin of the request, for the access policy.
    pub scope: Scope,
}

impl SpawnOptions {
    /// Returns the options that leave backend and layout to the team's settings and require all
    /// members to be ready within `deadline`.
    pub fn ready_within(deadline: Duration) -> SpawnOptions {
        let until = StartedWhen::Ready;
        let scope = Scope::default();
        SpawnOptions { backend: None, until, deadline, unique: false, layout: None, scope }
    }
}

/// A running teammate, as `spawn --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spawned {
    pub teammate_id: String,
    pub agent_id: String,
    pub name: String,
    pub agent_type: Option<String>,
    pub model: Option<String>,
    pub color: Option<String>,
    pub team_name: String,
    pub plan_mode_required: bool,
    pub(crate) tmux_session_name: Option<String>,
    pub tmux_window_name: Option<String>,
    pub tmux_pane_id: Option<String>,
    pub backend: BackendKind,
    /// The host that it runs on, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    pub incarnation: String,
    /// Pid of the program, not of its launcher.
    pub pid: i32,
    pub cwd: String,
    /// The branch of a new worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<SpawnedBranch>,
    /// A command or description of how to view the member.
    #[serde(skip)]
    pub watch: String,
}

/// The branch of a worktree that was made for a teammate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpawnedBranch {
    pub name: String,
    /// The branch or revision that it starts from, if it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The commit of the worktree.
    pub commit: String,
}

impl SpawnedBranch {
    pub(super) fn of_checkout(checkout: &Checkout) -> SpawnedBranch {
        SpawnedBranch {
            name: checkout.branch.clone(),
            from: checkout.from.clone(),
            commit: checkout.base.clone(),
        }
    }
}

/// The result of `--dry-run`: how a teammate would be started.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DryRun {
    pub name: String,
    pub agent_id: String,
    pub profile: String,
    /// `native` or `wrapped`.
    pub runs: &'static str,
    pub argv: Vec<String>,
    pub cwd: String,
    /// Names only, because values may be secrets.
    pub env: Vec<String>,
    pub model: Option<String>,
    pub mode: Option<Mode>,
    pub role: Option<String>,
    /// Delivery of the first prompt: `mailbox`, `argv` or `typed`. None without a prompt.
    pub prompt: Option<&'static str>,
    /// Delivery of the team briefing: `argv` or `first-message`. None if there is no briefing.
    pub brief: Option<&'static str>,
    /// Parts of the role that this program cannot enforce.
    pub warnings: Vec<String>,
}

/// The move of one member to the next tier. Displayed as
/// `[FALLBACK] reason: from → to for member`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    pub member: MemberName,
    pub from: Tier,
    pub to: Tier,
    /// The failure on the previous tier, as one line.
    pub reason: String,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from.as_str(), self.to.as_str());
        write!(f, "[FALLBACK] {}: {from} → {to} for {}", self.reason, self.member)
    }
}

/// The result of a batch.
pub struct SpawnReport {
    /// The backend chosen first.
    pub chosen: Chosen,
    /// Members that another tier had to start.
    pub fallbacks: Vec<Fallback>,
    /// One result per spec, in the order of the batch.
    pub results: Vec<Result<Spawned, OpsError>>,
    /// Messages for the user about members that run nevertheless.
    pub warnings: Vec<String>,
}

impl SpawnReport {
    /// Returns the lines for the user beside the results.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        let warnings = self.warnings.iter().map(|text| format!("warning: {}", text::block(text)));
        self.fallbacks.iter().map(ToString::to_string).chain(warnings)
    }

    pub(super) fn empty(chosen: Chosen) -> SpawnReport {
        SpawnReport { chosen, fallbacks: Vec::new(), results: Vec::new(), warnings: Vec::new() }
    }
}

/// The input that all members of a batch share, read once.
pub(super) struct BatchContext<'a> {
    pub(super) ctx: &'a Context,
    pub(super) team: &'a TeamStore,
    pub(super) options: &'a SpawnOptions,
    /// The team's settings; the defaults for a team that phalanx did not create.
    pub(super) settings: Settings,
    pub(super) made_by_phalanx: bool,
    /// The members before the batch.
    pub(super) roster: Team,
    /// Directories besides their own that members may access.
    pub(super) add_dirs: Vec<String>,
    /// The phalanx that runs the launchers and workers.
    pub(super) exe: PathBuf,
}

impl<'a> BatchContext<'a> {
    /// Reads the settings and the roster.
    ///
    /// # Errors
    ///
    /// The store cannot be read; a refusal while a command ends the team; phalanx was removed.
    pub(super) fn read(
        ctx: &'a Context,
        team: &'a TeamStore,
        options: &'a SpawnOptions,
    ) -> Result<BatchContext<'a>, OpsError> {
        let settings = team.settings()?;
        let made_by_phalanx = settings.is_some();
        let settings = settings.unwrap_or_else(|| Settings::by_hand(usize::MAX));
        if settings.ends_until.is_some_and(|until| now() < until) {
            return Err(OpsError::refused(
                format!("team `{}` is being ended, so no member starts", team.name()),
                "wait until it is gone; if its `down` was killed, members can start 20 s after its \
                 deadline",
            ));
        }
        let roster = team.team()?;
        let add_dirs = claude_settings::additional_directories(ctx, &roster);
        let exe = ctx.caller.program()?;
        Ok(BatchContext { ctx, team, options, settings, made_by_phalanx, roster, add_dirs, exe })
    }

    /// Checks that no mode is disabled or more permissive than the lead's (PM-06). A lead without a
    /// mode is a person, who may grant any.
    ///
    /// # Errors
    ///
    /// [`OpsError::NotAllowed`] for a mode above the lead's. Errors of the settings check pass
    /// through.
    pub(super) fn check_modes(&self, launches: &[ResolvedLaunch]) -> Result<(), OpsError> {
        let modes = launches.iter().filter_map(|launch| launch.spec.mode);
        for mode in modes.clone() {
            claude_settings::must_be_enabled(self.ctx, &self.roster, mode)?;
        }
        let Some(own) = decide::lead_mode(&self.roster) else { return Ok(()) };
        match modes.filter(|mode| mode.reach() > own.reach()).max_by_key(|mode| mode.reach()) {
            Some(mode) => Err(OpsError::NotAllowed { problem: decide::above(own, mode) }),
            None => Ok(()),
        }
    }

    /// Returns the mode in which the program starts. A member without a mode gets the one in which
    /// a person or a rule decides, whatever the program's default is, or `dontAsk` if that is the
    /// lead's mode. `None` for a program that has to plan first, which starts in its plan mode.
    pub(super) fn mode_of(&self, launch: &ResolvedLaunch) -> Option<Mode> {
        let asking = || match decide::lead_mode(&self.roster) {
            Some(Mode::DontAsk) => Mode::DontAsk,
            Some(_) | None => Mode::Default,
        };
        launch.spec.mode.or_else(|| (!launch.spec.plan).then(asking))
    }

    /// Rejects a request whose origin the access policy of the team, or of one of the members,
    /// refuses.
    pub(super) fn check_access(&self, launches: &[ResolvedLaunch]) -> Result<(), OpsError> {
        let scope = &self.options.scope;
        access::must_admit(self.ctx, self.team, scope, "cannot start members")?;
        launches.iter().try_for_each(|launch| {
            // An earlier run of this name may have had a role, which does not count.
            let new = Some(&launch.spec);
            access::must_admit_to(self.ctx, self.team, scope, (&launch.name, new), "cannot start")
        })
    }

    /// Returns the name for a new member: `wanted`, or with `--unique` the first free one.
    pub(super) fn choose_name(
        &self,
        known: &Team,
        wanted: &MemberName,
    ) -> Result<MemberName, StoreError> {
        let mut name = wanted.clone();
        let mut ending = 2;
        while self.options.unique && known.member(&name).is_some() {
            name = MemberName::new(&format!("{wanted}-{ending}"))?;
            ending += 1;
        }
        Ok(name)
    }
}
