//! `host serve`: carries out what a lead on another host asks for, on standard input and output,
//! for members that run here. Every request is carried out as this host's own processes would do
//! it, and as the lead, which the caller's token must permit.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::hosted;
use crate::authority::{self, Action};
use crate::ending::stop::{self, MemberStop};
use crate::error::RemoteFailure;
use crate::hosts::log_part::{LogPart, log_here};
use crate::hosts::wire::{
    HostCall, HostHello, HostReply, HostRequest, LogRequest, MarkedPlacement, RELEASE,
    RemoteReport, RemoteSpawn, RunToEnd, failure_of,
};
use crate::members::{backends, output, presence};
use crate::starting::spawn::{self, SpawnOptions, Spawned, StartedWhen};
use crate::views::focus::to_ops_error;
use crate::views::input;
use crate::{Caller, Context, OpsError};
use backend::{Backend, CloseOutcome, Mark};
use model::id::{Incarnation, MemberName};
use model::members::record::MemberRecord;
use store::{Store, TeamStore};
use sys::exec::CancelToken;
use sys::proc::Liveness;

type Output = Arc<Mutex<Box<dyn Write + Send>>>;

/// The calls that are being carried out.
type Running = Mutex<HashMap<u64, CancelToken>>;

/// Serves one lead until `input` ends.
///
/// # Errors
/// The first line is not a greeting, or names another release or another host. As
/// [`authority::enter`] for the team of the greeting.
pub fn serve(
    caller: &Caller,
    store: &Store,
    mut input: impl BufRead,
    output: Box<dyn Write + Send>,
) -> Result<(), OpsError> {
    let output: Output = Arc::new(Mutex::new(output));
    let mut line = String::new();
    let mut next = |line: &mut String| {
        line.clear();
        input.read_line(line).is_ok_and(|count| count > 0)
    };
    if !next(&mut line) {
        return Ok(());
    }
    let opened = open(caller, store, &line);
    let (ctx, team) = match opened {
        Ok(opened) => opened,
        Err(e) => {
            send(&output, None, Err::<(), _>(&e));
            return Err(e);
        }
    };
    send(&output, None, Ok(()));
    let running = Running::default();
    thread::scope(|scope| {
        while next(&mut line) {
            let call: HostCall = match serde_json::from_str(&line) {
                Ok(call) => call,
                Err(e) => {
                    let problem = format!("a request could not be read: {e}");
                    // The caller of a request that this build does not know must not wait.
                    let call = serde_json::from_str::<Value>(&line).unwrap_or_default();
                    send(&output, call["id"].as_u64(), Err::<(), _>(&OpsError::Failed { problem }));
                    continue;
                }
            };
            let (ctx, team, output) = (ctx.clone(), team.clone(), Arc::clone(&output));
            let (cancel, running) = (CancelToken::default(), &running);
            // Before the next line is read, which may cancel this call.
            lock(running).insert(call.id, cancel.clone());
            // A start can take minutes, and the screens of other members are asked for meanwhile.
            scope.spawn(move || {
                let result = carry_out(&ctx, &team, call.request, &cancel, running);
                lock(running).remove(&call.id);
                match result {
                    Ok(value) => send(&output, Some(call.id), Ok(value)),
                    Err(e) => send(&output, Some(call.id), Err::<(), _>(&e)),
                }
            });
        }
        // The lead is gone, and waits for no check.
        lock(&running).values().for_each(CancelToken::cancel);
    });
    Ok(())
}

fn lock(running: &Running) -> MutexGuard<'_, HashMap<u64, CancelToken>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the team of a greeting.
fn open(caller: &Caller, store: &Store, line: &str) -> Result<(Context, TeamStore), OpsError> {
    let hello: HostHello = serde_json::from_str(line).map_err(|e| OpsError::Usage {
        problem: format!("the greeting could not be read: {e}"),
        hint: Some("this verb is started by phalanx on another host".to_owned()),
    })?;
    if hello.release != RELEASE {
        return Err(OpsError::Usage {
            problem: format!(
                "this host has phalanx {RELEASE}, and the lead has phalanx {}",
                hello.release
            ),
            hint: Some(format!(
                "install the same release: `phalanx host check {} --install`",
                hello.host
            )),
        });
    }
    let store = store.joining(&hello.store, hello.password.as_deref(), Some(&hello.host))?;
    let team = store.team(&hello.team)?;
    let caller = Caller { cwd: hello.dir.into(), ..caller.clone() };
    let ctx = Context { store, speaker: MemberName::lead(), caller };
    authority::enter(&ctx, &team, Action::UseHosts, &[])?;
    team.join_host()?;
    Ok((ctx, team))
}

fn send<T: Serialize>(output: &Output, id: Option<u64>, result: Result<T, &OpsError>) {
    let result = match result {
        Ok(value) => serde_json::to_value(value)
            .map_err(|e| failure_of(&OpsError::Failed { problem: e.to_string() })),
        Err(e) => Err(failure_of(e)),
    };
    let line = serde_json::to_string(&HostReply { id, result });
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    // A lead that is gone closes the input, which ends the server.
    let _ = line.map(|line| writeln!(output, "{line}").and_then(|()| output.flush()));
}

/// `cancel` ends a check.
fn carry_out(
    ctx: &Context,
    team: &TeamStore,
    request: HostRequest,
    cancel: &CancelToken,
    running: &Running,
) -> Result<Value, OpsError> {
    match request {
        HostRequest::Cancel(id) => {
            lock(running).get(&id).inspect(|call| call.cancel());
            value(())
        }
        HostRequest::Spawn(wanted) => value(start(ctx, team, &wanted)?),
        HostRequest::StopRuns(runs) => value(end(ctx, team, &runs)?),
        HostRequest::Verify(marks) => {
            let verdicts = marks.iter().map(|at| {
                let backend = backends::open_here(ctx, team, &at.placement)?;
                Ok(backend.verify(at.mark()))
            });
            value(verdicts.collect::<Result<Vec<_>, OpsError>>()?)
        }
        HostRequest::Close(marks) => {
            let closed = marks.iter().map(|at| close(ctx, team, at).map_err(|e| failure_of(&e)));
            value(closed.collect::<Vec<_>>())
        }
        HostRequest::Screen { at, lines } => {
            let record = at.record(team)?;
            let held = record.and_then(|record| output::launcher_screen(&record, lines));
            value(match held {
                Some(screen) => screen,
                None => at.backend(ctx, team)?.screen(at.mark(), lines)?,
            })
        }
        HostRequest::Focus(at) => {
            value(at.backend(ctx, team)?.focus(at.mark()).map_err(to_ops_error)?)
        }
        HostRequest::Hide(at) => {
            value(at.backend(ctx, team)?.hide(at.mark()).map_err(to_ops_error)?)
        }
        HostRequest::Show(at) => {
            value(at.backend(ctx, team)?.show(at.mark()).map_err(to_ops_error)?)
        }
        HostRequest::Input { at, input } => {
            let problem = "the team has another run now".to_owned();
            let record = at.record(team)?.ok_or(OpsError::Failed { problem })?;
            value(input::write_into(ctx, team, &record, &at.placement, &input)?)
        }
        HostRequest::Label(labels) => {
            for (at, label) in labels {
                at.backend(ctx, team)?.label(&[(at.mark(), label)]);
            }
            value(())
        }
        HostRequest::Runs(runs) => value(states(team, &runs)?),
        HostRequest::OpenCopy(asked) => value(hosted::open_copy(ctx, &asked)?),
        HostRequest::Receive(delivery) => value(hosted::receive(ctx, &delivery)?),
        HostRequest::Worktree(checkout) => value(hosted::state(ctx, &checkout)?),
        HostRequest::Snapshot(checkout) => value(hosted::snapshot(ctx, &checkout)?),
        HostRequest::Check { checkout, check, env } => {
            value(hosted::check(ctx, &checkout, &check, &env, cancel))
        }
        HostRequest::Send(asked) => value(hosted::send(ctx, &asked)?),
        HostRequest::RemoveWorktree { checkout, seen, deletes_branch } => {
            value(hosted::remove(ctx, &checkout, &seen, deletes_branch)?)
        }
        HostRequest::Log(LogRequest { name, incarnation, range }) => {
            let record = team.member_record(&name)?.filter(|record| record.is(&incarnation));
            let log = record.as_ref().and_then(log_here).ok_or_else(|| OpsError::Failed {
                problem: format!("host has no log of this run of `{name}`"),
            })?;
            value(LogPart::read(log, &range)?)
        }
    }
}

impl MarkedPlacement {
    fn mark(&self) -> Mark<'_> {
        Mark::new(&self.placement, &self.token)
    }

    fn backend(&self, ctx: &Context, team: &TeamStore) -> Result<Box<dyn Backend>, OpsError> {
        backends::open_here(ctx, team, &self.placement)
    }

    /// Returns the run on this host whose placement this is.
    fn record(&self, team: &TeamStore) -> Result<Option<MemberRecord>, OpsError> {
        let is_it = |record: &MemberRecord| record.mark() == self.token && !record.is_elsewhere;
        Ok(team.member_records()?.into_iter().find(is_it))
    }
}

fn value<T: Serialize>(item: T) -> Result<Value, OpsError> {
    serde_json::to_value(item).map_err(|e| OpsError::Failed { problem: e.to_string() })
}

fn start(
    ctx: &Context,
    team: &TeamStore,
    wanted: &RemoteSpawn,
) -> Result<RemoteReport<Spawned>, OpsError> {
    let report = spawn::spawn(ctx, team, &wanted.specs, &options_of(wanted))?;
    let fallbacks = report.fallbacks.iter().map(ToString::to_string);
    let warnings = report.warnings.iter().cloned().chain(fallbacks).collect();
    let results = report.results.into_iter().map(|result| result.map_err(|e| failure_of(&e)));
    Ok(RemoteReport {
        backend: report.chosen.backend,
        why: report.chosen.why,
        results: results.collect(),
        warnings,
    })
}

fn end(
    ctx: &Context,
    team: &TeamStore,
    runs: &[RunToEnd],
) -> Result<Vec<Result<(), RemoteFailure>>, OpsError> {
    let (mut found, mut results) = (Vec::new(), Vec::new());
    for run in runs {
        let record = team.member_record(&run.name)?.filter(|record| record.is(&run.incarnation));
        // A later run of this name was started, so that the one meant has ended.
        let Some(record) = record else { continue };
        found.push(MemberStop { record, mode: run.mode });
    }
    let mut ended = stop::stop_all(ctx, team, &found).into_iter();
    for run in runs {
        let is_found = found.iter().any(|one| one.record.is(&run.incarnation));
        let result = if is_found { ended.next().unwrap_or(Ok(())) } else { Ok(()) };
        results.push(result.map_err(|e| failure_of(&e)));
    }
    Ok(results)
}

fn close(ctx: &Context, team: &TeamStore, at: &MarkedPlacement) -> Result<(), OpsError> {
    match at.backend(ctx, team)?.close(at.mark()) {
        CloseOutcome::Gone => Ok(()),
        outcome => Ok(outcome.into_verdict(&at.placement).map(drop)?),
    }
}

fn states(team: &TeamStore, runs: &[(MemberName, Incarnation)]) -> Result<Vec<Liveness>, OpsError> {
    let state = |(name, incarnation): &(MemberName, Incarnation)| {
        let record = team.member_record(name)?.filter(|record| record.is(incarnation));
        Ok(record.map_or(Liveness::Unknown, |record| presence::liveness(&record)))
    };
    runs.iter().map(state).collect()
}

fn options_of(wanted: &RemoteSpawn) -> SpawnOptions {
    SpawnOptions {
        backend: wanted.backend,
        until: if wanted.until_ready { StartedWhen::Ready } else { StartedWhen::Running },
        deadline: Duration::from_millis(wanted.deadline_ms),
        unique: wanted.unique,
        layout: wanted.layout,
        scope: wanted.scope.clone(),
    }
}
