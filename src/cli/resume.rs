//! `resume` and `restart`: start members again with their last settings.

use std::time::Duration;

use serde_json::json;

use super::args_lead::Resume;
use super::args_short::Restart;
use super::fail::{Class, Exit, Failure, chain};
use super::setup::Setup;
use super::{Done, interrupt, shutdown, spawn};
use crate::model::id::MemberName;
use crate::model::order::Order;
use crate::ops::authority::Action;
use crate::ops::resume::Again;
use crate::ops::spawn::{SpawnOptions, Spawned, StartedWhen};
use crate::ops::{self, OpsError, TeamStore};

/// Time limit for a restarted member to prove that it runs.
const START: Duration = Duration::from_secs(30);

pub(super) fn resume(setup: &Setup, args: &Resume) -> Done {
    let (team, names) = setup.members(&args.names, Action::Resume)?;
    if names.len() > 1 && args.session.is_some() {
        return Err(Failure::usage(
            "`--session` is for one member",
            "name one member, or omit `--session`",
        ));
    }
    start_again(setup, &team, &names, args.session.as_deref(), args.deadline)
}

/// Stops running members, then starts all of them again.
pub(super) fn restart(setup: &Setup, args: &Restart) -> Done {
    let (team, names) = setup.members(&args.names, Action::Restart)?;
    let (stopped, refused) = shutdown::stop(setup, &team, args, &names)?;
    if stopped.is_empty() {
        setup.out.confirm(&json!([]), String::new)?;
        return Ok(refused.unwrap_or(Exit::DONE));
    }
    let started = start_again(setup, &team, &stopped, None, START)?;
    Ok(refused.unwrap_or(started))
}

fn start_again(
    setup: &Setup,
    team: &TeamStore,
    names: &[MemberName],
    session: Option<&str>,
    deadline: Duration,
) -> Done {
    let all = ops::resume::orders(&setup.ctx, team, names, session)?;
    if all.is_empty() {
        setup.out.confirm(&json!([]), || "no member failed or vanished".to_owned())?;
        return Ok(Exit::DONE);
    }
    let terms = SpawnOptions {
        backend: None,
        until: StartedWhen::Ready,
        deadline,
        unique: false,
        layout: None,
    };
    let runtime = interrupt::runtime()?;
    let begun = runtime.block_on(begin(setup, team, all, &terms));
    runtime.shutdown_background();
    let (starts, interrupted) = begun?;
    let (mut rows, mut lines, mut worst) = (Vec::new(), Vec::new(), None);
    for Start { name, session, lost, result } in starts {
        let problem = result.as_ref().err().map(|e| chain(e));
        lines
            .extend(lost.iter().map(|why| format!("{name}: its session cannot be resumed: {why}")));
        lines.push(match (&result, &session) {
            (Ok(one), Some(session)) => {
                format!("{name} runs again (process {}) and continues session {session}", one.pid)
            }
            (Ok(one), None) => format!("{name} runs again (process {})", one.pid),
            (Err(e), _) => {
                worst.get_or_insert(Class::from(e.kind()));
                format!("{name}: {}", chain(e))
            }
        });
        rows.push(
            json!({ "name": name, "started": result.ok(), "problem": problem, "session": session }),
        );
    }
    setup.out.outcome(&rows, worst.is_none(), || lines.join("\n"))?;
    let interrupted = interrupted.then_some(Class::Interrupted);
    Ok(interrupted.or(worst).map_or(Exit::DONE, Exit::of))
}

/// The result of starting one member again.
struct Start {
    name: String,
    /// The session that its program continues.
    session: Option<String>,
    /// The reason why the known session could not be resumed.
    lost: Option<String>,
    result: Result<Spawned, OpsError>,
}

/// Starts all members, with a new session if the known one cannot be resumed. Also returns whether
/// a signal interrupted the start.
async fn begin(
    setup: &Setup,
    team: &TeamStore,
    all: Vec<Again>,
    terms: &SpawnOptions,
) -> Result<(Vec<Start>, bool), Failure> {
    let orders: Vec<Order> = all.iter().map(|again| again.order.clone()).collect();
    let (batch, mut interrupted) = spawn::start(setup, team, orders, terms.clone()).await?;
    let mut starts = Vec::new();
    for (again, result) in all.into_iter().zip(batch.results) {
        let name = again.order.name.clone();
        let (anew, why) = match (again.anew, &result) {
            (Some(anew), Err(e)) if !interrupted => (anew, chain(e)),
            (_, _) => {
                starts.push(Start { name, session: again.order.session, lost: None, result });
                continue;
            }
        };
        let (mut second, broken_off) = spawn::start(setup, team, vec![anew], terms.clone()).await?;
        interrupted |= broken_off;
        let result = second.results.pop().unwrap_or(result);
        starts.push(Start { name, session: None, lost: Some(why), result });
    }
    Ok((starts, interrupted))
}
