//! Updates labels on a thread of its own, so that a hanging backend does not block the lead. Of
//! several queued updates of a member only the latest is applied.

use std::collections::BTreeMap;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use model::id::MemberName;
use model::members::record::MemberRecord;
use ops::{self, Context, TeamStore};

/// Starts the label thread, which ends when the sender is dropped.
pub(super) fn labeller(ctx: &Context, team: &TeamStore) -> UnboundedSender<Vec<MemberRecord>> {
    let (sender, mut wanted) = unbounded_channel();
    let (ctx, team) = (ctx.clone(), team.clone());
    tokio::task::spawn_blocking(move || {
        while let Some(first) = wanted.blocking_recv() {
            let latest = latest(first, &mut wanted);
            ops::members::label::label(&ctx, &team, &latest);
        }
    });
    sender
}

/// Merges `first` with all queued records; the last record of each member wins.
fn latest(
    first: Vec<MemberRecord>,
    wanted: &mut UnboundedReceiver<Vec<MemberRecord>>,
) -> Vec<MemberRecord> {
    let mut latest: BTreeMap<MemberName, MemberRecord> = BTreeMap::new();
    let mut next = Some(first);
    while let Some(runs) = next {
        latest.extend(runs.into_iter().map(|run| (run.name.clone(), run)));
        next = wanted.try_recv().ok();
    }
    latest.into_values().collect()
}
