//! Starts members; shared by `spawn`, `up`, `resume` and `restart`.

use std::time::Duration;

use crate::fail::Failure;
use crate::interrupt;
use crate::notice::WaitNotice;
use crate::setup::Setup;
use model::members::launch::LaunchSpec;
use model::members::placement::BackendKind;
use model::text;
use ops::starting::spawn::{SpawnOptions, SpawnReport, Spawned};
use ops::{self, TeamStore};
use sys::signal::Signals;

/// Time limit for members to prove that they run.
pub(crate) const START: Duration = Duration::from_secs(30);

/// Starts members. A start cannot be interrupted in the middle, so signals are deferred; also
/// returns whether one arrived.
pub(crate) async fn start(
    setup: &Setup,
    team: &TeamStore,
    specs: Vec<LaunchSpec>,
    options: SpawnOptions,
) -> Result<(SpawnReport, bool), Failure> {
    let mut signals = Signals::new()?;
    let _notice = proof_notice(setup, &specs, options.deadline);
    let (ctx, store) = (setup.ctx.clone(), team.clone());
    let work = interrupt::run_on_thread(move || {
        Ok(ops::starting::spawn::spawn(&ctx, &store, &specs, &options)?)
    });
    tokio::pin!(work);
    let mut interrupted = false;
    loop {
        tokio::select! {
            batch = &mut work => return Ok((batch?, interrupted)),
            _signal = signals.recv() => {
                interrupted = true;
                setup.out.print_message("stopping as soon as the start has come to its end");
            }
        }
    }
}

/// Starts a notice about the members that are starting.
pub(crate) fn proof_notice(setup: &Setup, specs: &[LaunchSpec], limit: Duration) -> WaitNotice {
    let seconds = limit.as_secs();
    let words = match specs {
        [one] => format!("waiting for {} to start, up to {seconds} s", text::line(&one.name)),
        several => format!("waiting for {} members to start, up to {seconds} s", several.len()),
    };
    WaitNotice::fixed(&setup.out, words)
}

/// Returns where to see the team: the window if it is in the user's tmux session, else a phalanx
/// command.
pub(crate) fn how_to_watch(team: &TeamStore, one: &Spawned) -> String {
    let named = || format!("phalanx attach {} -t {}", one.name, team.name());
    match one.backend {
        _ if one.host.is_some() => named(),
        BackendKind::Tmux if one.watch.starts_with("window") => one.watch.clone(),
        BackendKind::Tmux => format!("phalanx attach -t {}", team.name()),
        BackendKind::Pty => named(),
        BackendKind::Iterm2 => one.watch.clone(),
    }
}
