//! `doctor`: reports problems of the teams in this config root and of their environment. `--fix`
//! repairs only what is proven to belong to phalanx and is safe to remove.

mod orphans;
mod surroundings;
mod teams;

use std::cmp::Reverse;

use serde::Serialize;

pub(crate) use orphans::{end_lost_runs, lost_runs};

use super::context::Context;
use super::error::OpsError;
use crate::store::TeamStore;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Information; no action is needed.
    Note,
    /// A leftover, or something that works with restrictions.
    Warning,
    /// Something does not work, or runs without an owner: a person must act.
    Problem,
}

/// One reported problem or observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Stable identifier for scripts, for example `orphan_pane` or `stale_lock`.
    pub(crate) id: &'static str,
    pub(crate) severity: Severity,
    /// Description for people.
    pub(crate) what: String,
    /// A path, a socket or a process.
    #[serde(rename = "where")]
    pub(crate) place: String,
    /// The command to run, or a description of what to do.
    pub(crate) fix: Option<String>,
    /// Set if this run repaired it.
    pub(crate) fixed: bool,
    /// The reason why the repair failed, if it was attempted.
    pub(crate) failure: Option<String>,
}

impl Finding {
    fn new(
        id: &'static str,
        severity: Severity,
        what: impl Into<String>,
        place: impl Into<String>,
    ) -> Finding {
        let (what, place) = (what.into(), place.into());
        Finding { id, severity, what, place, fix: None, fixed: false, failure: None }
    }

    /// Adds the advice shown to the user.
    fn advise(self, fix: impl Into<String>) -> Finding {
        Finding { fix: Some(fix.into()), ..self }
    }

    /// Offers `--fix`; if `fix` is set, runs `mend` now. `Ok(false)` from `mend` means the object
    /// is in use again.
    fn mend(self, fix: bool, mend: impl FnOnce() -> Result<bool, OpsError>) -> Finding {
        let offered = self.advise("phalanx doctor --fix");
        if !fix {
            return offered;
        }
        match mend() {
            Ok(true) => Finding { fixed: true, ..offered },
            Ok(false) => Finding {
                failure: Some("it is in use again and was left alone".to_owned()),
                ..offered
            },
            Err(e) => Finding { failure: Some(e.to_string()), ..offered },
        }
    }

    /// Returns whether a person has to act.
    pub(crate) fn is_open(&self) -> bool {
        self.severity == Severity::Problem && !self.fixed
    }
}

/// The result of `doctor`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Checked {
    /// Number of teams checked.
    pub(crate) teams: usize,
    /// Number of tmux servers checked.
    pub(crate) servers: usize,
    /// Repaired findings last; within each group the most severe first.
    pub(crate) findings: Vec<Finding>,
}

/// Checks all teams, servers and shared directories; with `fix`, repairs what phalanx owns.
///
/// # Errors
///
/// The shared directories of the config root cannot be listed. A team that cannot be read becomes a
/// finding instead.
pub(crate) fn doctor(ctx: &Context, fix: bool) -> Result<Checked, OpsError> {
    // Read servers before records: a spawner writes its record before it creates the pane, so every
    // pane seen here has its record in the later read.
    let servers = surroundings::servers(ctx);
    // If the directory of teams cannot be listed, `common` reports it.
    let names = ctx.store.teams().unwrap_or_default();
    let teams: Vec<TeamStore> = names.iter().filter_map(|name| ctx.store.team(name).ok()).collect();
    let mut findings = servers.findings.clone();
    findings.extend(surroundings::machine(ctx));
    findings.extend(surroundings::common(ctx, fix)?);
    for team in &teams {
        // An unreadable team must not hide the findings of other teams.
        findings.extend(
            teams::team(ctx, team, fix).unwrap_or_else(|e| vec![teams::unreadable(team, &e)]),
        );
    }
    for team in ctx.store.without_team_file().unwrap_or_default() {
        findings.push(teams::without_file(&team));
    }
    findings.extend(orphans::orphans(ctx, &servers, &teams, fix));
    findings.sort_by_key(|finding| (finding.fixed, Reverse(finding.severity)));
    Ok(Checked { teams: teams.len(), servers: servers.census.len(), findings })
}
