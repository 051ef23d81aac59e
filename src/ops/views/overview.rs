//! The teams on the start page of `phalanx`, and what waits for a person in them.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::members::lead::{self, LeadSeen};
use crate::starting::resume;
use crate::views::snapshot::{AttentionCause, AttentionItem, SnapshotReader};
use crate::{Context, OpsError, authority, team};
use model::id::{MemberName, TeamName};
use store::TeamStore;

/// A team as the start page shows it.
#[derive(Debug, Clone, Serialize)]
pub struct TeamGlance {
    pub name: TeamName,
    /// Another program made it, and phalanx has not adopted it.
    pub is_foreign: bool,
    pub members: usize,
    pub lead: Option<LeadSeen>,
    /// The members that have ended as their lead has, and can be started again.
    pub stopped: Vec<MemberName>,
    /// The needs that a person has to see to, oldest first.
    pub needs: Vec<AttentionItem>,
    /// The reason why the other fields are empty: files that cannot be read.
    pub problem: Option<String>,
}

/// The teams under the config root that were read, and the number of those that were not. Without
/// those that the caller may not look at.
#[derive(Debug, Clone, Default)]
pub struct Overview {
    pub teams: Vec<TeamGlance>,
    pub more: usize,
}

/// Reads the first `most` teams, those of phalanx before those of other programs: each session of
/// Claude Code leaves one. Never fails: a team that cannot be read carries its problem.
pub fn overview(ctx: &Context, most: usize) -> Overview {
    let names = authority::visible_teams(ctx).unwrap_or_default();
    let (ours, foreign) = team::by_maker(ctx, names);
    let all = ours.into_iter().map(|name| (name, false));
    let mut all: Vec<_> = all.chain(foreign.into_iter().map(|name| (name, true))).collect();
    let more = all.len().saturating_sub(most);
    all.truncate(most);
    let teams = all.into_iter().map(|(name, is_foreign)| glance(ctx, name, is_foreign)).collect();
    Overview { teams, more }
}

fn glance(ctx: &Context, name: TeamName, is_foreign: bool) -> TeamGlance {
    let empty = TeamGlance {
        name: name.clone(),
        is_foreign,
        members: 0,
        lead: None,
        stopped: Vec::new(),
        needs: Vec::new(),
        problem: None,
    };
    let read = || -> Result<TeamGlance, OpsError> {
        let team = ctx.store.team(&name)?;
        let (members, lead) = (team.team()?.teammates().count(), lead::find_lead(&team)?);
        let glance = TeamGlance { members, lead, ..empty.clone() };
        if is_foreign { Ok(glance) } else { with_needs(ctx, &team, glance) }
    };
    read().unwrap_or_else(|e| TeamGlance { problem: Some(e.to_string()), ..empty })
}

fn with_needs(ctx: &Context, team: &TeamStore, glance: TeamGlance) -> Result<TeamGlance, OpsError> {
    let stopped = resume::stopped_with_lead(team)?;
    let mut needs = SnapshotReader::new(ctx, team).read(&BTreeSet::new())?.attention();
    // One command starts all of them again.
    if !stopped.is_empty() {
        needs.retain(|need| {
            let is_stopped = need.member.as_ref().is_some_and(|m| stopped.contains(m));
            !is_stopped && need.cause != AttentionCause::Lead
        });
    }
    Ok(TeamGlance { stopped, needs, ..glance })
}
