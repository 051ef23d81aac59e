//! `doctor`: what is wrong with the teams of this config root and with what they stand on. Without `fix` nothing is
//! changed. With it only what is proven ours, and harmless to clear, is cleared; everything else is for a person.

mod orphans;
mod surroundings;
mod teams;

use std::cmp::Reverse;

use serde::Serialize;

pub(crate) use orphans::{end_lost_runs, lost_runs};

use super::context::Context;
use super::error::OpsError;
use crate::store::TeamStore;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Good to know; nothing has to be done.
    Note,
    /// Something was left behind, or works worse than it could.
    Warning,
    /// Something does not work, or runs and belongs to nobody: it needs somebody.
    Problem,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Stable, for scripts: `orphan_pane`, `stale_lock` …
    pub(crate) id: &'static str,
    pub(crate) severity: Severity,
    pub(crate) what: String,
    /// A path, a socket, a process.
    #[serde(rename = "where")]
    pub(crate) place: String,
    /// The command to type, or in words what to do.
    pub(crate) fix: Option<String>,
    /// Whether it was put right in this run.
    pub(crate) fixed: bool,
    /// Why it was not, though that was tried.
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

    /// With what a person can do.
    fn advise(self, fix: impl Into<String>) -> Finding {
        Finding { fix: Some(fix.into()), ..self }
    }

    /// Something that `--fix` can put right; with `fix` it does so now.
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

    /// Whether a person has to do something.
    pub(crate) fn is_open(&self) -> bool {
        self.severity == Severity::Problem && !self.fixed
    }
}

/// What `doctor` gives.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Checked {
    /// What was looked at: teams and tmux servers.
    pub(crate) teams: usize,
    pub(crate) servers: usize,
    /// What was put right last; the worst first.
    pub(crate) findings: Vec<Finding>,
}

/// Looks at everything; with `fix`, puts right what is ours to put right.
pub(crate) fn doctor(ctx: &Context, fix: bool) -> Result<Checked, OpsError> {
    // The servers come first: whoever makes a pane writes down beforehand that it will.
    let servers = surroundings::servers(ctx);
    // A directory of all teams that cannot be listed is reported below.
    let names = ctx.store.teams().unwrap_or_default();
    let teams: Vec<TeamStore> = names.iter().filter_map(|name| ctx.store.team(name).ok()).collect();
    let mut findings = servers.findings.clone();
    findings.extend(surroundings::machine(ctx));
    findings.extend(surroundings::common(ctx, fix)?);
    for team in &teams {
        // One that cannot be read must not hide what is wrong with the others.
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
