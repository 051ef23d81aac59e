//! The user's hooks beside the lead's loop: which events they are to hear of is decided in `react`, and here they run, some
//! at a time, however long they take. Decides nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, JoinSet};

use super::driver::Stop;
use crate::model::event::{Event, EventKind, Note};
use crate::ops::hooks::{self, Occasion};
use crate::ops::{self, Context, OpsError, Team};

/// How many run at once: one that hangs does not hold up the others, and a large team does not fill the machine.
const AT_ONCE: usize = 4;
/// How long a lead that has reached its end waits for hooks that have not.
const LAST_ONES: Duration = Duration::from_secs(30);
/// How long it may take to end them then.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

/// The hooks of a team that is being led.
pub(super) struct Hooks {
    /// Up to here the journal has been looked at for them.
    at: u64,
    due: UnboundedSender<Occasion>,
    runner: JoinHandle<()>,
    found: Arc<hooks::Hooks>,
}

impl Hooks {
    /// Reads which there are; none if there are none. Gives also the events since this process took the lead: they count
    /// as news.
    pub(super) fn start(
        ctx: &Context,
        team: &Team,
    ) -> Result<Option<(Hooks, Vec<Event>)>, OpsError> {
        let found = hooks::configured(ctx, team);
        for warning in &found.warnings {
            ops::events::note(team, Note::of(EventKind::Warning).with("text", warning.as_str()))?;
        }
        if found.is_empty() {
            return Ok(None);
        }
        let (mut events, at) = ops::events::from(team, 0)?;
        let began = events.iter().rposition(|event| event.event == EventKind::LeadStarted);
        let fresh = events.split_off(began.unwrap_or(events.len()));
        let (due, incoming) = unbounded_channel();
        for start in hooks::unheard_starts(team, &events)? {
            // It ends only after us.
            let _ = due.send(start);
        }
        let found = Arc::new(found);
        let runner = tokio::spawn(run(incoming, ctx.clone(), team.clone(), found.clone()));
        Ok(Some((Hooks { at, due, runner, found }, fresh)))
    }

    /// What happened since the last look.
    pub(super) fn news(&mut self, team: &Team) -> Result<Vec<Event>, OpsError> {
        let (events, at) = ops::events::from(team, self.at)?;
        self.at = at;
        Ok(events)
    }

    /// Has them run for this, whenever there is room.
    pub(super) fn run(&self, occasion: Occasion) {
        // It ends only after us.
        let _ = self.due.send(occasion);
    }

    /// Waits for those that are underway, unless a person does not want to; then none is left running.
    pub(super) async fn finish(self, stops: &mut UnboundedReceiver<Stop>) {
        let Hooks { due, mut runner, found, .. } = self;
        drop(due);
        tokio::select! {
            _ = &mut runner => return,
            Some(_) = stops.recv() => {}
            () = tokio::time::sleep(LAST_ONES) => {}
        }
        // What has not begun does not begin any more.
        runner.abort();
        let underway = tokio::task::spawn_blocking(move || found.end_all());
        // What cannot be ended must not keep the lead.
        let _ = tokio::time::timeout(ENDED_WITHIN, underway).await;
    }
}

async fn run(
    mut due: UnboundedReceiver<Occasion>,
    ctx: Context,
    team: Team,
    hooks: Arc<hooks::Hooks>,
) {
    let mut underway = JoinSet::new();
    loop {
        tokio::select! {
            next = due.recv(), if underway.len() < AT_ONCE => {
                let Some(occasion) = next else { break };
                let (ctx, team, hooks) = (ctx.clone(), team.clone(), hooks.clone());
                underway.spawn_blocking(move || attend(&ctx, &team, &hooks, &occasion));
            }
            Some(_) = underway.join_next(), if !underway.is_empty() => {}
        }
    }
    while underway.join_next().await.is_some() {}
}

fn attend(ctx: &Context, team: &Team, hooks: &hooks::Hooks, occasion: &Occasion) {
    if let Err(e) = hooks::attend(ctx, team, hooks, occasion)
        && team.exists()
    {
        let text = format!("hook {}: {e}", occasion.event.as_str());
        let note = Note::of(EventKind::Warning).member(&occasion.member).with("text", text);
        // The journal is for looking back.
        let _ = ops::events::note(team, note);
    }
}
