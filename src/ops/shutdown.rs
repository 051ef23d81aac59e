//! `shutdown`: asking members to end. This verb files the request and puts it into the mailbox; carrying it out to the
//! end is the lead's, whoever that is (SD-01).

use super::context::now;
use super::error::OpsError;
use super::send;
use crate::model::event::{EventKind, Note};
use crate::model::id::{MemberName, RequestId};
use crate::model::protocol::{self, Message};
use crate::model::record::MemberRecord;
use crate::model::request::{ShutdownOutcome, ShutdownRequest};
use crate::profile;
use crate::store::{StoreError, TeamStore};

/// How a shutdown is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) reason: Option<String>,
    pub(crate) deadline_s: u64,
    /// Skip the waiting.
    pub(crate) force: bool,
}

/// Files a request for each of `names`. A second request for the same run gives the first one back, so that asking
/// twice does no harm; `force` hurries it.
pub(crate) fn ask(
    team: &TeamStore,
    names: &[MemberName],
    wish: &Wish,
) -> Result<Vec<ShutdownRequest>, OpsError> {
    let records = names.iter().map(|name| record_of(team, name)).collect::<Result<Vec<_>, _>>()?;
    records.iter().map(|record| ask_one(team, record, wish)).collect()
}

fn record_of(team: &TeamStore, name: &MemberName) -> Result<MemberRecord, OpsError> {
    if let Some(record) = team.member_record(name)? {
        return Ok(record);
    }
    let roster = team.team()?;
    match roster.member(name) {
        Some(_) => Err(OpsError::NotOurMember { name: name.clone() }),
        None => {
            let known = roster.members.into_iter().map(|m| m.name).collect();
            Err(StoreError::NoSuchMember { team: team.name().clone(), name: name.clone(), known }.into())
        }
    }
}

fn ask_one(team: &TeamStore, record: &MemberRecord, wish: &Wish) -> Result<ShutdownRequest, OpsError> {
    if let Some(open) = open_request(team, record)? {
        if wish.force && !open.force {
            team.change_request(&open.id, |r| r.force = true)?;
        }
        return Ok(team.request(&open.id)?);
    }
    let request = file(team, record, wish)?;
    let asks = !wish.force && request.is_open() && reads_mail(record);
    if asks {
        let message = Message::ShutdownRequest(protocol::ShutdownRequest {
            request_id: request.id.to_string(),
            from: Some(MemberName::lead().to_string()),
            reason: wish.reason.clone(),
            timestamp: Some(request.asked_at.iso()),
            deadline_seconds: Some(wish.deadline_s),
        });
        send::say(team, &MemberName::lead(), &record.name, &message)?;
    }
    let mut note = Note::of(EventKind::ShutdownRequested)
        .member(&record.name)
        .with("request_id", request.id.as_str())
        .with("force", wish.force)
        .with("asked", asks);
    if let Some(reason) = &wish.reason {
        note = note.with("reason", reason.as_str());
    }
    team.record(note)?;
    Ok(request)
}

/// Whether the member's program reads its mailbox, so that it can be asked.
pub(crate) fn reads_mail(record: &MemberRecord) -> bool {
    profile::named(&record.wish.profile).is_none_or(|p| p.reads_mail)
}

fn open_request(team: &TeamStore, record: &MemberRecord) -> Result<Option<ShutdownRequest>, OpsError> {
    let requests = team.requests()?;
    Ok(requests.into_iter().find(|r| r.is_open() && r.member == record.name && record.is(&r.incarnation)))
}

fn file(team: &TeamStore, record: &MemberRecord, wish: &Wish) -> Result<ShutdownRequest, OpsError> {
    let asked_at = now();
    let over = record.state.is_over();
    // Two requests for one name in one millisecond get different ids.
    for offset in 0.. {
        let request = ShutdownRequest {
            format: 1,
            id: RequestId::shutdown(asked_at.0 + offset, &record.name),
            member: record.name.clone(),
            incarnation: record.incarnation.clone(),
            reason: wish.reason.clone(),
            asked_at,
            deadline_at: asked_at.plus_ms(wish.deadline_s.saturating_mul(1000)),
            force: wish.force,
            outcome: over.then_some(ShutdownOutcome::Gone),
            answer: None,
            ended_at: over.then_some(asked_at),
        };
        if team.file_request(&request)? {
            return Ok(request);
        }
    }
    unreachable!("some millisecond is free");
}

/// Writes how a request ended. What has ended stays as it ended: a request is honoured once.
pub(crate) fn resolve(
    team: &TeamStore,
    id: &RequestId,
    outcome: ShutdownOutcome,
    answer: Option<&str>,
) -> Result<(), OpsError> {
    let mut changed = None;
    team.change_request(id, |request| {
        changed = request.is_open().then(|| request.member.clone());
        if changed.is_some() {
            request.outcome = Some(outcome);
            request.answer = answer.map(str::to_owned);
            request.ended_at = Some(now());
        }
    })?;
    if let Some(member) = changed {
        let mut note = Note::of(EventKind::ShutdownEnded)
            .member(&member)
            .with("request_id", id.as_str())
            .with("outcome", outcome.as_str());
        if let Some(answer) = answer {
            note = note.with("answer", answer);
        }
        team.record(note)?;
    }
    Ok(())
}

/// All requests, oldest first.
pub(crate) fn requests(team: &TeamStore) -> Result<Vec<ShutdownRequest>, OpsError> {
    Ok(team.requests()?)
}

/// One request.
pub(crate) fn request(team: &TeamStore, id: &RequestId) -> Result<ShutdownRequest, OpsError> {
    Ok(team.request(id)?)
}
