//! The backend fallback: members that the chosen backend could not start are retried on the next
//! tier, until they run or no tier is left. Applies only if the user did not choose the backend
//! (SP-08), and not to failures of the program itself.

use std::collections::BTreeMap;

use super::attempt::attempt;
use super::batch::{BatchContext, Fallback, SpawnReport, Spawned};
use super::checkouts;
use super::resolve::ResolvedLaunch;
use crate::members::backends;
use crate::{Kind, OpsError};
use backend::choose::{Chosen, Tier};
use model::id::MemberName;
use model::team::event::{EventKind, Note};
use model::text;
use store::TeamStore;

/// A member that does not run yet, and the tiers that it was tried on.
struct UnstartedMember {
    /// Index in the batch.
    nth: usize,
    launch: ResolvedLaunch,
    name: MemberName,
    /// The tiers that failed, each with the reason as one line.
    tried: Vec<(Tier, String)>,
    /// Id of the journal event of the latest attempt.
    asked: Option<String>,
}

impl UnstartedMember {
    fn add_failure(&mut self, tier: Tier, failure: &OpsError) {
        let words = failure.to_string();
        self.tried.push((tier, text::line(words.lines().next().unwrap_or_default())));
    }

    fn into_error(self) -> OpsError {
        let failure = |(tier, why): &(Tier, String)| format!("{}: {why}", tier.as_str());
        let tried: Vec<String> = self.tried.iter().map(failure).collect();
        OpsError::described(
            Kind::Backend,
            format!("`{}` could not be started in any way: {}", self.name, tried.join("; ")),
            "run `phalanx doctor` to find the cause",
        )
    }
}

/// Starts a batch on the chosen backend and, if that was not the user's explicit choice, retries
/// failures on the following tiers.
///
/// # Errors
///
/// As for `spawn`. Once one member of the batch may run, failures are in the results
/// instead.
pub(super) fn start_batch(
    batch: &BatchContext,
    launches: Vec<ResolvedLaunch>,
    chosen: Chosen,
) -> Result<SpawnReport, OpsError> {
    let (ctx, team, options) = (batch.ctx, batch.team, batch.options);
    let mut warnings = warnings_of(&launches);
    let unstarted = |(nth, launch): (usize, ResolvedLaunch)| {
        let name = launch.name.clone();
        UnstartedMember { nth, launch, name, tried: Vec::new(), asked: None }
    };
    let mut unstarted: Vec<_> = launches.into_iter().enumerate().map(unstarted).collect();
    let mut results: BTreeMap<usize, Result<Spawned, OpsError>> = BTreeMap::new();
    let mut tier = Tier::Place(chosen.backend);
    let mut fallbacks = Vec::new();
    loop {
        let is_first = fallbacks.is_empty();
        let launches: Vec<_> = unstarted.iter().map(|member| &member.launch).collect();
        let backend = match tier {
            Tier::Place(kind) => backends::open(ctx, team, &batch.settings, kind, options.layout),
            Tier::Once => Ok(backends::open_one_shot(ctx, team, None)),
        };
        let kept = is_first.then_some(&chosen);
        let outcome = backend.and_then(|backend| attempt(batch, &launches, backend.as_ref(), kept));
        let mut failed = Vec::new();
        match outcome {
            Err(e) if is_first && !(chosen.auto && is_backend_failure(&e)) => return Err(e),
            Err(e) => {
                unstarted.iter_mut().for_each(|member| member.add_failure(tier, &e));
                failed = unstarted;
            }
            Ok(attempts) => {
                for (mut member, (start, result)) in unstarted.into_iter().zip(attempts) {
                    let of_start = |text| (start.member.name.clone(), text);
                    warnings.extend(start.warnings.into_iter().map(of_start));
                    (member.name, member.asked) = (start.member.name, Some(start.asked));
                    match result {
                        Err(e) if chosen.auto && is_backend_failure(&e) => {
                            member.add_failure(tier, &e);
                            failed.push(member);
                        }
                        result => drop(results.insert(member.nth, result)),
                    }
                }
            }
        }
        let in_iterm2 = || backends::check_iterm2(ctx).is_ok();
        let next = if failed.is_empty() { None } else { tier.next(in_iterm2) };
        let Some(next) = next else {
            results.extend(failed.into_iter().map(|member| (member.nth, Err(member.into_error()))));
            break;
        };
        unstarted = Vec::new();
        for mut member in failed {
            if next == Tier::Once {
                match member.launch.make_one_shot() {
                    Ok(warning) => {
                        warnings.extend(warning.map(|text| (member.launch.name.clone(), text)));
                    }
                    Err(e) => {
                        member.add_failure(next, &e);
                        results.insert(member.nth, Err(member.into_error()));
                        continue;
                    }
                }
            }
            unstarted.push(member);
        }
        if unstarted.is_empty() {
            break;
        }
        fallbacks.extend(journal_fallbacks(team, &unstarted, tier, next));
        tier = next;
    }
    Ok(report(team, chosen, fallbacks, results.into_values().collect(), warnings))
}

/// Returns whether another backend may succeed where this one failed.
fn is_backend_failure(failure: &OpsError) -> bool {
    matches!(
        failure,
        OpsError::Backend(_)
            | OpsError::BackendUnavailable { .. }
            | OpsError::NoLauncher { .. }
            | OpsError::StartDeadline { silent: true, .. }
    )
}

/// Journals the fallbacks before the next tier is tried, and returns them.
fn journal_fallbacks(
    team: &TeamStore,
    members: &[UnstartedMember],
    from: Tier,
    to: Tier,
) -> Vec<Fallback> {
    let fallback = |member: &UnstartedMember| {
        let reason = member.tried.last().map(|(_, why)| why.clone()).unwrap_or_default();
        Fallback { member: member.name.clone(), from, to, reason }
    };
    let fallbacks: Vec<Fallback> = members.iter().map(fallback).collect();
    let notes = members.iter().zip(&fallbacks).map(|(member, fallback)| {
        let note = Note::of(EventKind::MemberFallback).member(&member.name);
        let note = note.with("reason", &*fallback.reason);
        let note = note.with("from", from.as_str()).with("to", to.as_str());
        Note { cause: member.asked.clone(), ..note }
    });
    // Best effort: the journal is a history only.
    let _ = team.record_all(notes.collect());
    fallbacks
}

/// Builds the report of a batch and adds the warnings about its running members.
fn report(
    team: &TeamStore,
    chosen: Chosen,
    fallbacks: Vec<Fallback>,
    results: Vec<Result<Spawned, OpsError>>,
    own_warnings: Vec<(MemberName, String)>,
) -> SpawnReport {
    journal_warnings(team, &own_warnings);
    let new: Vec<MemberName> =
        results.iter().flatten().filter_map(|one| MemberName::existing(&one.name).ok()).collect();
    let found = checkouts::warn_of_shared(team, &new);
    // Failing to detect shared checkouts is only worth a warning, since the members run.
    let mut warnings =
        found.unwrap_or_else(|e| vec![format!("nobody knows who shares a checkout: {e}")]);
    warnings.extend(own_warnings.iter().map(|(name, text)| format!("`{name}`: {text}")));
    SpawnReport { chosen, fallbacks, results, warnings }
}

/// Returns the warnings of launches, with the member each belongs to.
pub(super) fn warnings_of(launches: &[ResolvedLaunch]) -> Vec<(MemberName, String)> {
    let warnings = |launch: &ResolvedLaunch| {
        let name = launch.name.clone();
        launch.warnings.clone().into_iter().map(move |text| (name.clone(), text))
    };
    launches.iter().flat_map(warnings).collect()
}

pub(super) fn journal_warnings(team: &TeamStore, warnings: &[(MemberName, String)]) {
    let note = |(name, text): &(MemberName, String)| {
        Note::of(EventKind::Warning).member(name).with("text", text.as_str())
    };
    // Best effort: the journal is a history only.
    let _ = team.record_all(warnings.iter().map(note).collect());
}
