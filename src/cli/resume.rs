//! `resume` and `restart`: start members again with their last settings.

use std::time::Duration;

use serde_json::json;

use super::args_lead::Resume;
use super::args_short::Restart;
use super::fail::{Class, Exit, Failure, chain};
use super::setup::Setup;
use super::{Done, interrupt, shutdown, spawn};
use crate::model::id::MemberName;
use crate::model::launch::LaunchSpec;
use crate::ops::authority::Action;
use crate::ops::resume::RestartSpecs;
use crate::ops::spawn::{SpawnOptions, Spawned};
use crate::ops::{self, OpsError, Team};

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
    team: &Team,
    names: &[MemberName],
    session: Option<&str>,
    deadline: Duration,
) -> Done {
    let all = ops::resume::specs(&setup.ctx, team, names, session)?;
    if all.is_empty() {
        setup.out.confirm(&json!([]), || "no member failed or vanished".to_owned())?;
        return Ok(Exit::DONE);
    }
    let options = SpawnOptions::ready_within(deadline);
    let runtime = interrupt::runtime()?;
    let begun = runtime.block_on(begin(setup, team, all, &options));
    runtime.shutdown_background();
    let (starts, interrupted) = begun?;
    let (mut rows, mut lines, mut worst) = (Vec::new(), Vec::new(), None);
    for RestartResult { name, session, lost, result } in starts {
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
struct RestartResult {
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
    team: &Team,
    all: Vec<RestartSpecs>,
    options: &SpawnOptions,
) -> Result<(Vec<RestartResult>, bool), Failure> {
    let specs: Vec<LaunchSpec> = all.iter().map(|restart| restart.spec.clone()).collect();
    let (batch, mut interrupted) = spawn::start(setup, team, specs, options.clone()).await?;
    let mut starts = Vec::new();
    for (RestartSpecs { spec, without_session }, result) in all.into_iter().zip(batch.results) {
        let LaunchSpec { name, session, .. } = spec;
        let (spec, why) = match (without_session, &result) {
            (Some(spec), Err(e)) if !interrupted => (spec, chain(e)),
            (_, _) => {
                starts.push(RestartResult { name, session, lost: None, result });
                continue;
            }
        };
        let (mut second, broken_off) =
            spawn::start(setup, team, vec![spec], options.clone()).await?;
        interrupted |= broken_off;
        let result = second.results.pop().unwrap_or(result);
        starts.push(RestartResult { name, session: None, lost: Some(why), result });
    }
    Ok((starts, interrupted))
}
