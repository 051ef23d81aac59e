//! Starts members beside the lead's loop: each has to prove that it runs, and others are heard meanwhile. Decides nothing.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::sources::Signal;
use crate::model::id::MemberName;
use crate::model::order::Order;
use crate::model::topic::Topic;
use crate::ops::spawn;
use crate::ops::{Context, Team};

/// How long a member may take to prove that it runs.
const DEADLINE: Duration = Duration::from_secs(30);

/// Starts these members of a kind on a thread of its own, which reports `Started`.
pub(super) fn start(
    ctx: &Context,
    team: &Team,
    kind: usize,
    orders: &[Order],
    signals: UnboundedSender<Signal>,
) {
    let (ctx, team, orders) = (ctx.clone(), team.clone(), orders.to_vec());
    tokio::task::spawn_blocking(move || {
        let names: Vec<MemberName> =
            orders.iter().filter_map(|o| MemberName::new(&o.name).ok()).collect();
        let failures = match spawn::for_lead(&ctx, &team, &orders, DEADLINE) {
            Ok(results) => names
                .iter()
                .zip(results)
                .filter_map(|(name, result)| Some((name.clone(), result.err()?)))
                // The board is looked at again, and says what is to be done.
                .filter(|(_, e)| !e.is_refused_claim())
                .map(|(name, e)| (name, e.to_string()))
                .collect(),
            Err(e) => names.iter().map(|name| (name.clone(), e.to_string())).collect(),
        };
        // Who was started, and for which tasks, is seen before they count as underway no more.
        for topic in [Topic::Members, Topic::Tasks] {
            let _ = signals.send(Signal::Changed(topic));
        }
        // The driver may have ended: then nobody wants to know.
        let _ = signals.send(Signal::Started { kind, names, failures });
    });
}
