//! The checklist after a shutdown: every member has answered, timed out or been forced, and work
//! that members report as committed is committed. A finding is a deviation, recorded in the
//! request, in the journal and in every report.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{Context, OpsError};
use model::decisions::request::{self, ShutdownFinding, ShutdownRequest};
use model::decisions::shutdown_check::{self, WorkTree};
use model::team::event::{EventKind, Note};
use model::text;
use store::TeamStore;

/// Verifies the last request of each member that has ended or refused, unless it was verified
/// before.
pub fn report_all(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    let mut requests = request::latest(team.requests()?);
    report_findings(ctx, team, &mut requests)
}

/// Verifies these requests, each once; open ones are skipped. If the team was deleted, they are
/// judged as last read.
pub fn report_findings(
    ctx: &Context,
    team: &TeamStore,
    requests: &mut [ShutdownRequest],
) -> Result<(), OpsError> {
    // Several members can share a directory.
    let mut trees: BTreeMap<String, WorkTree> = BTreeMap::new();
    let (mut verified, mut findings) = (Vec::new(), Vec::new());
    for request in requests {
        match team.request(&request.id) {
            Ok(found) => *request = found,
            Err(_) if !team.exists() => {}
            Err(e) => return Err(e.into()),
        }
        if request.is_open() || request.deviations.is_some() {
            continue;
        }
        let cwd = request.cwd.clone().unwrap_or_default();
        let status = || trees.entry(cwd).or_insert_with_key(|cwd| git_status(ctx, cwd)).clone();
        let found = shutdown_check::findings(request, status);
        request.deviations = Some(found.clone());
        if record_findings(team, request)? {
            verified.push(request.id.to_string());
            findings.extend(found);
        }
    }
    journal_findings(team, verified, findings)
}

/// Writes the verdict to the request. Returns true if it is the first.
fn record_findings(team: &TeamStore, verified: &ShutdownRequest) -> Result<bool, OpsError> {
    let mut first = false;
    let written = team.change_request(&verified.id, |request| {
        first = request.deviations.is_none();
        if first {
            request.deviations.clone_from(&verified.deviations);
        }
    });
    match written {
        Ok(()) => Ok(first),
        Err(_) if !team.exists() => Ok(false),
        Err(e) => Err(e.into()),
    }
}

fn journal_findings(
    team: &TeamStore,
    ids: Vec<String>,
    findings: Vec<ShutdownFinding>,
) -> Result<(), OpsError> {
    if ids.is_empty() || !team.exists() {
        return Ok(());
    }
    let deviations = findings.iter().map(|deviation| {
        serde_json::json!({ "name": deviation.name, "kind": deviation.kind, "text": deviation.text })
    });
    let note = Note::of(EventKind::ShutdownVerified).with("request_ids", ids);
    team.record(note.with("deviations", deviations.collect::<Vec<_>>()))?;
    Ok(())
}

/// Returns git's status of a directory.
fn git_status(ctx: &Context, cwd: &str) -> WorkTree {
    match worktree::changed_paths(Path::new(cwd), &ctx.caller.env) {
        Ok(paths) if paths.is_empty() => WorkTree::Clean,
        Ok(paths) => WorkTree::Dirty(paths.iter().map(|path| text::line(path)).collect()),
        Err(e) => WorkTree::Unknown(text::line(&e.to_string())),
    }
}
