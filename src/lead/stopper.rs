//! Stops runs outside the lead's loop, in batches: a stop can take seconds, and other
//! runs end meanwhile.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::event::{Event, StoppedRun};
use super::sources::LeadInput;
use event_loop::Inputs;
use model::id::{Incarnation, MemberName};
use ops::ending::stop::{MemberStop, stop_all};
use ops::hosts::stop_mode::StopMode;
use ops::{Context, TeamStore};
use sys::failpoint;

/// Time to gather a batch: members that are asked to shut down together become due one after the
/// other.
const GATHER: Duration = Duration::from_millis(5);
/// Time that the next batch waits for the running one. A batch that takes longer does not delay the
/// next.
const HEAD_START: Duration = Duration::from_millis(200);

/// A run to be stopped; `ending` is `None` if no trace of it is left.
pub(super) struct DueStop {
    pub(super) name: MemberName,
    pub(super) incarnation: Incarnation,
    pub(super) ending: Option<MemberStop>,
}

/// Starts the stopper, which ends when its last sender is dropped.
pub(super) fn start(
    ctx: &Context,
    team: &TeamStore,
    inputs: Inputs<LeadInput>,
) -> UnboundedSender<DueStop> {
    let (sender, due) = unbounded_channel();
    tokio::spawn(end_in_batches(due, ctx.clone(), team.clone(), inputs));
    sender
}

async fn end_in_batches(
    mut due: UnboundedReceiver<DueStop>,
    ctx: Context,
    team: TeamStore,
    inputs: Inputs<LeadInput>,
) {
    while let Some(first) = due.recv().await {
        let mut batch = vec![first];
        let gathered = timeout(GATHER, async {
            while let Some(next) = due.recv().await {
                batch.push(next);
            }
        });
        // The timeout normally expires; the receiver closes only when all senders are dropped.
        let _ = gathered.await;
        for batch in by_grace(batch) {
            let (ctx, team, inputs) = (ctx.clone(), team.clone(), inputs.clone());
            let ended = tokio::task::spawn_blocking(move || {
                inputs.send(LeadInput::Done(Event::RunsStopped(end(&ctx, &team, batch))));
            });
            // The batch reports its results by itself, also after this timeout.
            let _ = timeout(HEAD_START, ended).await;
        }
    }
}

/// Separates the stops with a grace, so that no other stop waits for it: neither that of a member
/// that has agreed, nor one by force of the same run.
fn by_grace(batch: Vec<DueStop>) -> impl Iterator<Item = Vec<DueStop>> {
    let has_grace = |due: &DueStop| {
        due.ending.as_ref().is_some_and(|run| matches!(run.mode, StopMode::Graceful(_)))
    };
    let (graceful, others): (Vec<_>, Vec<_>) = batch.into_iter().partition(has_grace);
    [others, graceful].into_iter().filter(|batch| !batch.is_empty())
}

fn end(ctx: &Context, team: &TeamStore, batch: Vec<DueStop>) -> Vec<StoppedRun> {
    let endings: Vec<MemberStop> = batch.iter().filter_map(|due| due.ending.clone()).collect();
    let mut results = stop_all(ctx, team, &endings).into_iter();
    failpoint::hit("stop.ended");
    let answer = |DueStop { name, incarnation, ending }| {
        let result =
            ending.and_then(|_| results.next()).unwrap_or(Ok(())).map_err(|e| e.to_string());
        StoppedRun { name, incarnation, result }
    };
    batch.into_iter().map(answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::sample;
    use model::time::Timestamp;

    /// SD-21: force that comes at the same time as the request cuts its grace short.
    #[test]
    fn sd_21_force_is_not_in_the_batch_of_a_grace() {
        let due = |name: &str, mode: Option<StopMode>| {
            let record = sample::record(name, sample::run(1), "shell", Timestamp(1));
            DueStop {
                name: record.name.clone(),
                incarnation: record.incarnation.clone(),
                ending: mode.map(|mode| MemberStop { record, mode }),
            }
        };
        let grace = Some(StopMode::Graceful(Duration::from_secs(600)));
        let batch = vec![
            due("ann", grace),
            due("ann", Some(StopMode::Immediate)),
            due("bob", Some(StopMode::Agreed)),
            due("cat", None),
        ];
        let modes = by_grace(batch).map(|batch| {
            batch.iter().map(|due| due.ending.as_ref().map(|run| run.mode)).collect::<Vec<_>>()
        });
        let others = vec![Some(StopMode::Immediate), Some(StopMode::Agreed), None];
        assert_eq!(modes.collect::<Vec<_>>(), [others, vec![grace]]);
        assert_eq!(by_grace(vec![due("cat", None)]).count(), 1);
    }
}
