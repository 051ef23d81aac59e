//! Runs the user's hooks outside the lead's loop, a limited number at a time. `react` decides which
//! events trigger a hook.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, JoinSet};

use super::background::warn;
use super::event::Stop;
use model::team::event::{Event, EventKind};
use ops::team::hooks::{self, Occasion};
use ops::{Context, JournalReader, OpsError, TeamStore};

/// Maximum number of concurrent hooks: a hanging one does not block the others, and a large team
/// does not overload the machine.
const AT_ONCE: usize = 4;
/// Time that a lead which has reached its end waits for running hooks.
const LAST_ONES: Duration = Duration::from_secs(30);
/// Time limit for killing the hooks after that.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

/// The hooks of a team that has a lead.
pub(super) struct HookRunner {
    pub(super) journal: JournalReader,
    due: UnboundedSender<Occasion>,
    runner: JoinHandle<()>,
    found: Arc<hooks::TeamHooks>,
}

impl HookRunner {
    /// Reads the configured hooks; returns `None` if there are none. Also returns the events since
    /// this process became the lead, which count as new.
    ///
    /// # Errors
    /// Returns an error if the journal or a record cannot be read, or a warning cannot be
    /// journaled.
    pub(super) fn start(
        ctx: &Context,
        team: &TeamStore,
    ) -> Result<Option<(HookRunner, Vec<Event>)>, OpsError> {
        let found = hooks::load_hooks(ctx, team);
        for warning in &found.warnings {
            warn(team, None, warning.as_str())?;
        }
        if found.is_empty() {
            return Ok(None);
        }
        let mut journal = team.journal();
        let mut events = journal.read()?;
        let began = events.iter().rposition(|event| event.event == EventKind::LeadStarted);
        let fresh = events.split_off(began.unwrap_or(events.len()));
        let (due, incoming) = unbounded_channel();
        for start in hooks::starts_without_hooks(team, &events)? {
            // The runner outlives this sender.
            let _ = due.send(start);
        }
        let found = Arc::new(found);
        let runner = tokio::spawn(run(incoming, ctx.clone(), team.clone(), found.clone()));
        Ok(Some((HookRunner { journal, due, runner, found }, fresh)))
    }

    pub(super) fn run(&self, occasion: Occasion) {
        // The runner outlives this sender.
        let _ = self.due.send(occasion);
    }

    /// Waits for queued and running hooks, up to a limit or until a person stops the wait; kills
    /// the rest.
    pub(super) async fn finish(self, stops: &mut UnboundedReceiver<Stop>) {
        let HookRunner { due, mut runner, found, .. } = self;
        drop(due);
        tokio::select! {
            _ = &mut runner => return,
            Some(_) = stops.recv() => {}
            () = tokio::time::sleep(LAST_ONES) => {}
        }
        // Drops the queued hooks.
        runner.abort();
        let underway = tokio::task::spawn_blocking(move || found.end_all());
        // A hook that cannot be killed must not block the lead.
        let _ = tokio::time::timeout(ENDED_WITHIN, underway).await;
    }
}

async fn run(
    mut due: UnboundedReceiver<Occasion>,
    ctx: Context,
    team: TeamStore,
    hooks: Arc<hooks::TeamHooks>,
) {
    let mut underway = JoinSet::new();
    loop {
        tokio::select! {
            next = due.recv(), if underway.len() < AT_ONCE => {
                let Some(occasion) = next else { break };
                let (ctx, team, hooks) = (ctx.clone(), team.clone(), hooks.clone());
                underway.spawn_blocking(move || run_one(&ctx, &team, &hooks, &occasion));
            }
            Some(_) = underway.join_next(), if !underway.is_empty() => {}
        }
    }
    while underway.join_next().await.is_some() {}
}

fn run_one(ctx: &Context, team: &TeamStore, hooks: &hooks::TeamHooks, occasion: &Occasion) {
    if let Err(e) = hooks::run_hooks(ctx, team, hooks, occasion)
        && team.exists()
    {
        let text = format!("hook {}: {e}", occasion.event.as_str());
        // The warning is best effort: the journal is only a history.
        let _ = warn(team, Some(occasion.member.clone()), text);
    }
}
