//! Starting members on another host.

use std::time::Duration;

use super::origins;
use crate::hosts::link::{GIT, HostLink};
use crate::hosts::wire::{HostRequest, RemoteReport, RemoteSpawn};
use crate::starting::spawn::{SpawnOptions, Spawned, StartedWhen};
use crate::{Context, OpsError};
use model::id::HostName;
use model::members::launch::LaunchSpec;
use model::members::placement::BackendKind;
use store::TeamStore;

/// Time that the start or the end of members may take longer than its own deadline.
const GRACE: Duration = Duration::from_secs(20);

/// The result of starts on another host.
pub(crate) struct RemoteStarts {
    pub backend: BackendKind,
    pub why: String,
    pub results: Vec<Result<Spawned, OpsError>>,
    pub warnings: Vec<String>,
}

/// Starts members on a host.
///
/// # Errors
/// Failures of the whole batch. After [`OpsError::Host`] members may have been started.
pub(super) fn spawn(
    ctx: &Context,
    team: &TeamStore,
    host: &HostName,
    specs: &[LaunchSpec],
    options: &SpawnOptions,
) -> Result<RemoteStarts, OpsError> {
    let link = HostLink::to(ctx, team, host)?;
    let specs = specs.iter().map(|spec| LaunchSpec { host: None, ..spec.clone() }).collect();
    let mut tokens = Vec::new();
    let provided = origins::provide(ctx, team, &link, specs, options.unique, &mut tokens);
    let report = provided.and_then(|specs| {
        // Checking out a commit and the setup command are not part of the deadline of the starts.
        let worktrees = specs.iter().filter(|spec| spec.worktree.is_some()).count();
        let worktrees = GIT * u32::try_from(worktrees).unwrap_or(u32::MAX);
        let request = HostRequest::Spawn(remote_spawn(specs, options));
        link.call(request, worktrees.saturating_add(options.deadline + GRACE))
    });
    tokens.iter().for_each(|token| link.discard(token));
    let report: RemoteReport<Spawned> = report?;
    let there = |spawned| Spawned { host: Some(host.clone()), ..spawned };
    let failed = |failure| OpsError::OnHost { host: host.clone(), failure };
    Ok(RemoteStarts {
        backend: report.backend,
        why: report.why,
        results: report
            .results
            .into_iter()
            .map(|result| result.map(there).map_err(failed))
            .collect(),
        warnings: report.warnings.iter().map(|text| format!("host {host}: {text}")).collect(),
    })
}

fn remote_spawn(specs: Vec<LaunchSpec>, options: &SpawnOptions) -> RemoteSpawn {
    RemoteSpawn {
        specs,
        backend: options.backend,
        until_ready: options.until == StartedWhen::Ready,
        deadline_ms: u64::try_from(options.deadline.as_millis()).unwrap_or(u64::MAX),
        unique: options.unique,
        layout: options.layout,
        scope: options.scope.clone(),
    }
}
