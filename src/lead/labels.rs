//! Labels on a thread of their own: a backend that hangs keeps no lead waiting, and what piles up meanwhile is shown
//! once, as it is then.

use std::collections::BTreeMap;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::model::id::MemberName;
use crate::model::record::MemberRecord;
use crate::ops::{self, Context, Team};

/// Labels what it is sent, until the sender is dropped.
pub(super) fn labeller(ctx: &Context, team: &Team) -> UnboundedSender<Vec<MemberRecord>> {
    let (sender, mut wanted) = unbounded_channel();
    let (ctx, team) = (ctx.clone(), team.clone());
    tokio::task::spawn_blocking(move || {
        while let Some(first) = wanted.blocking_recv() {
            let latest = latest(first, &mut wanted);
            ops::label::label(&ctx, &team, &latest);
        }
    });
    sender
}

/// Takes what has piled up behind `first`: of each member what was sent last.
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
