//! The backend fallback: members that the chosen backend could not start are retried on the next
//! tier, until they run or no tier is left. Applies only if the user did not choose the backend
//! (SP-08), and not to failures of the program itself.

use std::collections::BTreeMap;
use std::fmt;

use super::super::backends;
use super::super::context::Context;
use super::super::error::OpsError;
use super::prepare::{self, Draft};
use super::{Attempt, Batch, SpawnOptions, Spawned, attempt, open, worktree_setup};
use crate::backend::choose::{Chosen, Tier};
use crate::model::event::{EventKind, Note};
use crate::model::id::MemberName;
use crate::model::order::Order;
use crate::model::role::Roles;
use crate::model::text;
use crate::store::TeamStore;

/// The move of one member to the next tier. Displayed as `[FALLBACK] reason: from → to for member`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fallback {
    pub(crate) member: MemberName,
    pub(crate) from: Tier,
    pub(crate) to: Tier,
    /// The failure on the previous tier, as one line.
    pub(crate) reason: String,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from.as_str(), self.to.as_str());
        write!(f, "[FALLBACK] {}: {from} → {to} for {}", self.reason, self.member)
    }
}

/// An order that is being tried on one tier after another.
struct Candidate {
    /// Index in the batch.
    nth: usize,
    order: Order,
    name: MemberName,
    /// The tiers that failed, each with the reason as one line.
    tried: Vec<(Tier, String)>,
    /// Id of the journal event of the latest attempt.
    asked: Option<String>,
}

impl Candidate {
    fn note(&mut self, tier: Tier, failure: &OpsError) {
        let words = failure.to_string();
        self.tried.push((tier, text::line(words.lines().next().unwrap_or_default())));
    }

    fn give_up(self) -> OpsError {
        let tried =
            self.tried.iter().map(|(tier, why)| format!("{}: {why}", tier.as_str())).collect();
        OpsError::NoTierLeft { name: self.name, tried }
    }
}

/// Starts `drafts` on the chosen backend and, if that was not the user's explicit choice, retries
/// failures on the following tiers.
///
/// # Errors
///
/// As for [`super::spawn`]. Once one member of the batch may run, failures are in the results
/// instead.
pub(super) fn descend(
    ctx: &Context,
    team: &TeamStore,
    roles: &Roles,
    drafts: Vec<Draft>,
    chosen: Chosen,
    terms: &SpawnOptions,
) -> Result<Batch, OpsError> {
    let said = said(&drafts);
    let mut tier = Tier::Place(chosen.backend);
    let first = open(ctx, team, tier, terms)
        .and_then(|backend| attempt(ctx, team, &drafts, backend.as_ref(), terms, Some(&chosen)));
    let mut came = match first {
        Err(e) if !(chosen.auto && is_the_places_fault(&e)) => return Err(e),
        Ok(attempts) if !chosen.auto => {
            let results = attempts.into_iter().map(|one| one.result).collect();
            return Ok(batch(team, chosen, Vec::new(), results, &said));
        }
        came => came,
    };
    let mut trying: Vec<Candidate> = drafts.into_iter().enumerate().map(faller).collect();
    let (mut settled, mut fallbacks) = (Settled::new(), Vec::new());
    loop {
        let failed = sort(trying, tier, came, &mut settled);
        let next = (!failed.is_empty()).then(|| tier.next(|| backends::check_iterm2(ctx).is_ok()));
        let Some(next) = next.flatten() else {
            settled.extend(failed.into_iter().map(|one| (one.nth, Err(one.give_up()))));
            break;
        };
        let (going, drafts) = draft_for(ctx, roles, next, failed, &mut settled);
        if going.is_empty() {
            break;
        }
        fallbacks.extend(tell(team, &going, tier, next));
        tier = next;
        came = open(ctx, team, tier, terms)
            .and_then(|backend| attempt(ctx, team, &drafts, backend.as_ref(), terms, None));
        trying = going;
    }
    Ok(batch(team, chosen, fallbacks, settled.into_values().collect(), &said))
}

/// Builds the batch result and adds the warnings about its running members.
fn batch(
    team: &TeamStore,
    chosen: Chosen,
    fallbacks: Vec<Fallback>,
    results: Vec<Result<Spawned, OpsError>>,
    said: &[(MemberName, String)],
) -> Batch {
    note(team, said);
    let new: Vec<MemberName> =
        results.iter().flatten().filter_map(|one| MemberName::existing(&one.name).ok()).collect();
    let found = worktree_setup::warnings(team, &new.iter().collect::<Vec<_>>());
    // Failing to detect shared checkouts is only worth a warning, since the members run.
    let mut warnings =
        found.unwrap_or_else(|e| vec![format!("nobody knows who shares a checkout: {e}")]);
    warnings.extend(said.iter().map(|(name, text)| format!("`{name}`: {text}")));
    Batch { chosen, fallbacks, results, warnings }
}

/// Journals the warnings.
pub(super) fn note(team: &TeamStore, said: &[(MemberName, String)]) {
    let note = |(name, text): &(MemberName, String)| {
        Note::of(EventKind::Warning).member(name).with("text", text.as_str())
    };
    // Best effort: the journal is a history only.
    let _ = team.record_all(said.iter().map(note).collect());
}

/// Returns the warnings of drafts, with the member each belongs to.
pub(super) fn said(drafts: &[Draft]) -> Vec<(MemberName, String)> {
    let of = |draft: &Draft| {
        let name = draft.name.clone();
        draft.part.warnings.clone().into_iter().map(move |text| (name.clone(), text))
    };
    drafts.iter().flat_map(of).collect()
}

fn faller((nth, draft): (usize, Draft)) -> Candidate {
    Candidate { nth, order: draft.part.order, name: draft.name, tried: Vec::new(), asked: None }
}

type Settled = BTreeMap<usize, Result<Spawned, OpsError>>;

/// Moves final results into `settled` and returns the orders whose backend failed.
fn sort(
    trying: Vec<Candidate>,
    tier: Tier,
    came: Result<Vec<Attempt>, OpsError>,
    settled: &mut Settled,
) -> Vec<Candidate> {
    let mut failed = Vec::new();
    let attempts = match came {
        Ok(attempts) => attempts,
        Err(e) => {
            failed.extend(trying);
            failed.iter_mut().for_each(|one| one.note(tier, &e));
            return failed;
        }
    };
    for (mut one, attempt) in trying.into_iter().zip(attempts) {
        (one.name, one.asked) = (attempt.name, Some(attempt.asked));
        match attempt.result {
            Err(e) if is_the_places_fault(&e) => {
                one.note(tier, &e);
                failed.push(one);
            }
            result => drop(settled.insert(one.nth, result)),
        }
    }
    failed
}

/// Returns whether another backend may succeed where this one failed.
fn is_the_places_fault(failure: &OpsError) -> bool {
    matches!(
        failure,
        OpsError::Backend(_)
            | OpsError::BackendUnavailable { .. }
            | OpsError::NoLauncher { .. }
            | OpsError::StartDeadline { silent: true, .. }
    )
}

/// Prepares drafts for the next tier. An order without a form for that tier gets its final error.
fn draft_for(
    ctx: &Context,
    roles: &Roles,
    next: Tier,
    failed: Vec<Candidate>,
    settled: &mut Settled,
) -> (Vec<Candidate>, Vec<Draft>) {
    let (mut going, mut drafts) = (Vec::new(), Vec::new());
    for mut one in failed {
        let drafted = match next {
            Tier::Place(_) => prepare::draft(ctx, roles, &one.order),
            Tier::Once => prepare::draft_once(ctx, roles, &one.order),
        };
        match drafted {
            Ok(draft) => {
                going.push(one);
                drafts.push(draft);
            }
            Err(e) => {
                one.note(next, &e);
                settled.insert(one.nth, Err(one.give_up()));
            }
        }
    }
    (going, drafts)
}

/// Journals the fallbacks before the next tier is tried, and returns them.
fn tell(team: &TeamStore, going: &[Candidate], from: Tier, to: Tier) -> Vec<Fallback> {
    let fallback = |one: &Candidate| {
        let reason = one.tried.last().map(|(_, why)| why.clone()).unwrap_or_default();
        Fallback { member: one.name.clone(), from, to, reason }
    };
    let fallbacks: Vec<Fallback> = going.iter().map(fallback).collect();
    let notes = going.iter().zip(&fallbacks).map(|(one, fallback)| {
        let note =
            Note::of(EventKind::MemberFallback).member(&one.name).with("reason", &*fallback.reason);
        let note = note.with("from", from.as_str()).with("to", to.as_str());
        Note { cause: one.asked.clone(), ..note }
    });
    // Best effort: the journal is a history only.
    let _ = team.record_all(notes.collect());
    fallbacks
}
