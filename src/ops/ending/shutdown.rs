//! `shutdown`: asks members to end. This verb files the request and sends it to the mailbox; the
//! lead carries it out (SD-01).

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use crate::authority::names::started_record;
use crate::mail::post::Post;
use crate::members::lead;
use crate::{Kind, OpsError, now};
use model::decisions::request::{ShutdownFinding, ShutdownOutcome, ShutdownRequest, WorkLeft};
use model::id::{MemberName, RequestId};
use model::mail::protocol::{self, Message};
use model::members::record::{MemberRecord, PlannedRestart};
use model::team::event::{EventKind, Note};
use model::team::settings::grace_s;
use model::text;
use model::time::Timestamp;
use model::topic::Topic;
use store::{StoreError, TeamStore};
use sys::clock::Deadline;
use sys::parallel::parallel_map;
use sys::{failpoint, rand};

/// Maximum number of mailboxes that are written at once.
const AT_ONCE: usize = 16;

/// Number of members that the progress message names; the others are counted.
const NAMED: usize = 4;
/// Characters of a task's subject in the progress message.
const NAMED_SUBJECT: usize = 30;

/// The options of a shutdown.
#[derive(Debug, Clone, Default)]
pub struct ShutdownOptions {
    pub reason: Option<String>,
    pub deadline_s: u64,
    /// Time between SIGTERM and SIGKILL for commands and plain programs [default: the team's].
    pub grace_s: Option<u64>,
    /// End the members without asking them.
    pub force: bool,
    /// They are started again: if the caller is killed before that, `resume` does it.
    pub restarts: bool,
}

impl ShutdownOptions {
    /// Returns the options to end members that the caller starts again.
    pub fn for_restart(reason: String, deadline_s: u64, force: bool) -> ShutdownOptions {
        ShutdownOptions { reason: Some(reason), deadline_s, grace_s: None, force, restarts: true }
    }
}

/// Files a request of `asker` for each of `names`. A second request for the same run returns the
/// first, so that asking twice does no harm; `force` is added to it. A member that asks for its own
/// end has agreed to it.
pub fn ask(
    team: &TeamStore,
    asker: &MemberName,
    names: &[MemberName],
    options: &ShutdownOptions,
) -> Result<Vec<ShutdownRequest>, OpsError> {
    let records =
        names.iter().map(|name| started_record(team, name)).collect::<Result<Vec<_>, _>>()?;
    let mut open: Vec<ShutdownRequest> =
        team.requests()?.into_iter().filter(ShutdownRequest::is_open).collect();
    let grace_s = match options.grace_s {
        Some(given) => given,
        None => team.settings()?.map_or(grace_s(), |settings| settings.grace_s),
    };
    let (mut asked, mut new) = (Vec::new(), Vec::new());
    for record in &records {
        let earlier = open.iter().find(|r| r.member == record.name && record.is(&r.incarnation));
        let request = match earlier {
            Some(earlier) => {
                if record.name == *asker && earlier.agreed_at.is_none() {
                    record_agreement(team, &earlier.id, &WorkLeft::default())?;
                }
                if options.force && !earlier.force {
                    team.change_request(&earlier.id, |r| r.force = true)?;
                }
                team.request(&earlier.id)?
            }
            None => {
                let request = file(team, record, options, grace_s, record.name == *asker)?;
                new.push((record, request.clone()));
                request
            }
        };
        open.push(request.clone());
        asked.push(request);
    }
    failpoint::hit("shutdown.filed");
    let planned = options.restarts.then(|| PlannedRestart { failures: 0, at: now() });
    for record in records.iter().filter(|record| planned.is_some() || record.restart.is_some()) {
        team.change_record(&record.name, &record.incarnation, |record| record.restart = planned)?;
    }
    // Concurrently: each append waits for the disk, which handles many at a time.
    let send = |(record, request): &(&MemberRecord, ShutdownRequest)| {
        send_request(team, record, request, options)
    };
    parallel_map(&new, AT_ONCE, send).into_iter().collect::<Result<(), OpsError>>()?;
    failpoint::hit("shutdown.asked");
    Ok(asked)
}

/// Lets no member start while the team is ended, for `deadline_s` and the time that the lead may
/// need beyond it. A lead that restarts members would otherwise undo the end (SD-14).
pub fn hold_starts(team: &TeamStore, deadline_s: u64) -> Result<(), OpsError> {
    let length = Duration::from_secs(deadline_s).saturating_add(MARGIN);
    let until = now().plus_ms(u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
    Ok(team.change_settings(|settings| settings.ends_until = Some(until))?)
}

/// Lets members start again: the team was kept.
pub fn allow_starts(team: &TeamStore) -> Result<(), OpsError> {
    Ok(team.change_settings(|settings| settings.ends_until = None)?)
}

/// Returns the progress message: the members that have not ended, their tasks, and the time limit.
/// `None` once all have ended.
pub fn awaited(team: &TeamStore, ids: &BTreeSet<RequestId>) -> Result<Option<String>, OpsError> {
    let open: Vec<ShutdownRequest> =
        team.requests()?.into_iter().filter(|r| r.is_open() && ids.contains(&r.id)).collect();
    let board = team.board()?;
    let busy = |name: &MemberName| {
        let task = board.work_of(name).and_then(|id| board.tasks.get(&id))?;
        Some(format!("running #{} {}", task.id, text::short(&task.subject, NAMED_SUBJECT)))
    };
    let members: Vec<(MemberName, Option<String>)> =
        open.iter().map(|r| (r.member.clone(), busy(&r.member))).collect();
    let seconds = open.iter().map(|r| r.deadline_at.since(r.asked_at) / 1000).max();
    let stopped = lead::stopped(team)?;
    Ok(seconds.map(|seconds| awaited_words(&members, seconds, stopped)))
}

fn awaited_words(
    members: &[(MemberName, Option<String>)],
    seconds: u64,
    stopped_lead: Option<i32>,
) -> String {
    let one = |(name, work): &(MemberName, Option<String>)| match work {
        Some(work) => format!("{name} ({work})"),
        None => name.to_string(),
    };
    let mut names: Vec<String> = members.iter().take(NAMED).map(one).collect();
    if members.len() > NAMED {
        names.push(format!("{} more", members.len() - NAMED));
    }
    let stopped = stopped_lead
        .map(|pid| format!("; the lead, process {pid}, is stopped"))
        .unwrap_or_default();
    format!("waiting for {} to end, up to {seconds} s{stopped}", names.join(", "))
}

/// Sends the request to the member, unless it is forced, agreed or over, or the member reads no
/// mail. Journals the request.
fn send_request(
    team: &TeamStore,
    record: &MemberRecord,
    request: &ShutdownRequest,
    options: &ShutdownOptions,
) -> Result<(), OpsError> {
    let asks =
        !options.force && request.is_open() && request.agreed_at.is_none() && record.reads_mail();
    if asks {
        let message = Message::ShutdownRequest(protocol::ShutdownRequestBody {
            request_id: request.id.to_string(),
            from: Some(MemberName::lead().to_string()),
            reason: options.reason.clone(),
            timestamp: Some(request.asked_at.iso()),
            deadline_seconds: Some(options.deadline_s),
        });
        let post = Post::new(&MemberName::lead(), &record.name, message);
        match post.because(request.event.clone()).send(team) {
            // The lead has ended it meanwhile, and records that after it has removed the member.
            Err(OpsError::Store(StoreError::NoSuchMember { .. })) => {}
            Err(_) if !team.request(&request.id)?.is_open() => {}
            sent => drop(sent?),
        }
    }
    let note = Note::of(EventKind::ShutdownRequested)
        .member(&record.name)
        .with("request_id", request.id.as_str())
        .with("force", options.force)
        .with("asked", asks)
        .with("deadline_seconds", options.deadline_s)
        .with_some("by", request.agreed_at.map(|_| record.name.as_str()))
        .with_some("reason", options.reason.as_deref());
    team.record(Note { id: request.event.clone(), ..note })?;
    // The run was over, so the request ended as it was filed.
    if let Some(outcome) = request.outcome {
        let note = Note { cause: request.event.clone(), ..Note::of(EventKind::ShutdownEnded) };
        let note = note.member(&request.member).with("request_id", request.id.as_str());
        team.record(note.with("outcome", outcome.as_str()))?;
    }
    Ok(())
}

fn file(
    team: &TeamStore,
    record: &MemberRecord,
    options: &ShutdownOptions,
    grace_s: u64,
    agrees: bool,
) -> Result<ShutdownRequest, OpsError> {
    let asked_at = now();
    // The lead starts a member again after its failure, unless it sees an open request.
    let over = record.state.is_over() && !record.is_restarted_by_lead();
    // Requests for one name in the same millisecond need different ids.
    for offset in 0.. {
        let request = ShutdownRequest {
            format: 1,
            id: RequestId::shutdown(asked_at.0 + offset, &record.name),
            member: record.name.clone(),
            incarnation: record.incarnation.clone(),
            reason: options.reason.clone(),
            asked_at,
            deadline_at: asked_at.plus_ms(options.deadline_s.saturating_mul(1000)),
            grace_s,
            force: options.force,
            restarts: options.restarts,
            outcome: over.then_some(ShutdownOutcome::Gone),
            answer: None,
            ended_at: over.then_some(asked_at),
            agreed_at: agrees.then_some(asked_at),
            work_left: WorkLeft::default(),
            cwd: Some(
                record.start.as_ref().map_or(&record.request.cwd, |start| &start.cwd).clone(),
            ),
            deviations: None,
            event: Some(rand::uuid()),
        };
        if team.file_request(&request)? {
            return Ok(request);
        }
    }
    unreachable!("some millisecond is free");
}

/// Records the outcome of a request. Only the first outcome counts.
pub fn resolve(
    team: &TeamStore,
    id: &RequestId,
    outcome: ShutdownOutcome,
    answer: Option<&str>,
) -> Result<(), OpsError> {
    let (mut changed, mut work_left) = (None, WorkLeft::default());
    team.change_request(id, |request| {
        changed = request.is_open().then(|| (request.member.clone(), request.event.clone()));
        if changed.is_some() {
            work_left = request.work_left.clone();
            request.outcome = Some(outcome);
            request.answer = answer.map(str::to_owned);
            request.ended_at = Some(now());
        }
    })?;
    if let Some((member, cause)) = changed {
        let note = Note { cause, ..Note::of(EventKind::ShutdownEnded) }
            .member(&member)
            .with("request_id", id.as_str())
            .with("outcome", outcome.as_str())
            .with_some("answer", answer);
        team.record(with_work_left(note, &work_left))?;
    }
    Ok(())
}

fn with_work_left(note: Note, work_left: &WorkLeft) -> Note {
    let WorkLeft { status, pending_work, artifacts_committed } = work_left;
    note.with_some("status", status.map(|status| status.as_str()))
        .with_some("artifacts_committed", *artifacts_committed)
        .with_some("pending_work", (!pending_work.is_empty()).then(|| pending_work.clone()))
}

/// Records that the member agrees, and how it leaves its work. A lead that takes over later carries
/// the request out from there.
pub fn record_agreement(
    team: &TeamStore,
    id: &RequestId,
    work_left: &WorkLeft,
) -> Result<(), OpsError> {
    team.change_request(id, |request| {
        if request.is_open() {
            request.agreed_at = Some(now());
            request.work_left = work_left.clone();
        }
    })?;
    Ok(())
}

/// The outcome of one shutdown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShutdownResult {
    pub name: MemberName,
    /// The word of its outcome; `requested` while it has none.
    pub outcome: &'static str,
    pub request_id: RequestId,
    /// The member's answer, or the error.
    pub reason: Option<String>,
    pub elapsed_ms: Option<u64>,
    #[serde(flatten)]
    pub work_left: WorkLeft,
    /// Deviations that verification found; also empty before verification.
    pub deviations: Vec<ShutdownFinding>,
}

/// Time beyond the members' deadline that a running lead may need to end them.
const MARGIN: Duration = Duration::from_secs(20);

/// The result of waiting for a lead to carry requests out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// All requests have ended.
    Ended,
    /// No phalanx leads the team any longer; the caller may take over.
    LeadGone,
    /// The lead is stopped, and the requests are forced.
    LeadStopped,
    /// The team was deleted, which implies that all its members have ended.
    TeamGone,
}

/// The interval at which the lead is looked for: it can die without writing anything.
const SWEEP: Duration = Duration::from_millis(500);
/// The interval at which all requests are read, in case a change notification is lost.
const LOST_NOTIFICATION: Duration = Duration::from_secs(5);

/// Waits until the team's lead has carried these requests out. Updates them at each poll, since a
/// team that is deleted right afterwards leaves nothing to read.
///
/// # Errors
/// [`OpsError::Deadline`] if a running lead has not carried them out [`MARGIN`] after `limit`, the
/// members' deadline. a refusal if the lead is stopped at `limit`.
pub fn await_end(
    team: &TeamStore,
    requests: &mut [ShutdownRequest],
    limit: Duration,
) -> Result<Awaited, OpsError> {
    let (deadline, latest) =
        (Deadline::after(limit), Deadline::after(limit.saturating_add(MARGIN)));
    let changes = match team.changes() {
        Ok(changes) => changes,
        Err(_) if !team.exists() => return Ok(Awaited::TeamGone),
        Err(e) => return Err(e.into()),
    };
    let mut changed = BTreeSet::from([Topic::Everything]);
    let (mut sweep, mut reread) = (Deadline::after(SWEEP), Deadline::after(LOST_NOTIFICATION));
    loop {
        if reread.expired() {
            changed.insert(Topic::Everything);
        }
        let everything = changed.contains(&Topic::Everything);
        if everything {
            reread = Deadline::after(LOST_NOTIFICATION);
        }
        let looks_for_lead = everything || sweep.expired();
        if looks_for_lead {
            sweep = Deadline::after(SWEEP);
        }
        match await_step(team, requests, &changed, looks_for_lead) {
            Ok(Some(awaited)) => return Ok(awaited),
            Ok(None) => {}
            Err(_) if !team.exists() => return Ok(Awaited::TeamGone),
            Err(e) => return Err(e),
        }
        if deadline.expired()
            && let Some(pid) = lead::stopped(team)?
        {
            let problem = format!(
                "the lead of team `{}`, process {pid}, is stopped and has not ended the members \
                 within {} s",
                team.name(),
                limit.as_secs_f64()
            );
            let hint = format!(
                "continue it with `kill -CONT {pid}`, or end the members without it: the same \
                 command with `--force`"
            );
            return Err(OpsError::described(Kind::Deadline, problem, hint));
        }
        if latest.expired() {
            let what = "the shutdown was not carried out by the team's lead".to_owned();
            return Err(OpsError::Deadline { what, limit: limit.saturating_add(MARGIN) });
        }
        let next = if deadline.expired() { latest } else { deadline };
        changed = changes.wait(sweep.remaining().min(next.remaining()));
    }
}

/// Reads the requests that have changed. If asked, looks for the lead first; without a running one,
/// reads all requests.
fn await_step(
    team: &TeamStore,
    requests: &mut [ShutdownRequest],
    changed: &BTreeSet<Topic>,
    looks_for_lead: bool,
) -> Result<Option<Awaited>, OpsError> {
    if !team.exists() {
        return Ok(Some(Awaited::TeamGone));
    }
    // Read before the requests: a lead that exits in between has written its results.
    let lead = match looks_for_lead {
        true => Some((lead::is_led(team)?, lead::stopped(team)?.is_some())),
        false => None,
    };
    let everything = changed.contains(&Topic::Everything)
        || changed.contains(&Topic::Requests)
        || matches!(lead, Some((false, _) | (true, true)));
    let is_changed = |request: &ShutdownRequest| {
        everything || changed.contains(&Topic::Request(request.id.file_stem()))
    };
    for request in requests.iter_mut().filter(|request| request.is_open() && is_changed(request)) {
        *request = team.request(&request.id)?;
    }
    if !requests.iter().any(ShutdownRequest::is_open) {
        return Ok(Some(Awaited::Ended));
    }
    let forced = requests.iter().filter(|request| request.is_open()).all(|request| request.force);
    Ok(match lead {
        Some((false, _)) => Some(Awaited::LeadGone),
        Some((true, true)) if forced => Some(Awaited::LeadStopped),
        Some(_) | None => None,
    })
}

/// Returns the outcomes of these requests, for a caller that asked at `since`. All members of a
/// team that was deleted meanwhile have ended.
pub fn outcomes(
    team: &TeamStore,
    requests: &[ShutdownRequest],
    since: Timestamp,
) -> Result<Vec<ShutdownResult>, OpsError> {
    requests.iter().map(|asked| outcome(team, asked, since)).collect()
}

fn outcome(
    team: &TeamStore,
    asked: &ShutdownRequest,
    since: Timestamp,
) -> Result<ShutdownResult, OpsError> {
    let found = match team.request(&asked.id) {
        Ok(request) => Some(request),
        Err(_) if !team.exists() => None,
        Err(e) => return Err(e.into()),
    };
    let gone = found.is_none().then_some(ShutdownOutcome::Gone);
    let request = found.as_ref().unwrap_or(asked);
    let outcome = gone.filter(|_| asked.is_open()).or(request.outcome);
    Ok(ShutdownResult {
        name: request.member.clone(),
        outcome: outcome.map_or("requested", ShutdownOutcome::as_str),
        request_id: request.id.clone(),
        reason: request.answer.clone(),
        elapsed_ms: request.ended_at.map(|at| at.since(request.asked_at.max(since))),
        work_left: request.work_left.clone(),
        deviations: request.deviations.clone().unwrap_or_default(),
    })
}

/// Returns the teammates that can be asked to end: those that phalanx started and that are on the
/// roster or alive.
pub fn all_members(team: &TeamStore) -> Result<Vec<MemberName>, OpsError> {
    let records = team.member_records()?;
    let mut ours = crate::members::status::live_of(&records);
    for member in team.team()?.teammates() {
        let is_known = records.iter().any(|record| record.name == member.name);
        if is_known && !ours.contains(&member.name) {
            ours.push(member.name.clone());
        }
    }
    Ok(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_message_names_members_and_their_tasks() {
        let one = |name: &str, work: Option<&str>| {
            (MemberName::new(name).expect("name"), work.map(str::to_owned))
        };
        let two = [one("ann", Some("running #3 Run the tests")), one("bob", None)];
        assert_eq!(
            awaited_words(&two, 30, None),
            "waiting for ann (running #3 Run the tests), bob to end, up to 30 s"
        );
        let six: Vec<_> =
            ["a", "b", "c", "d", "e", "f"].iter().map(|name| one(name, None)).collect();
        assert_eq!(
            awaited_words(&six, 10, Some(42)),
            "waiting for a, b, c, d, 2 more to end, up to 10 s; the lead, process 42, is stopped"
        );
    }
}
