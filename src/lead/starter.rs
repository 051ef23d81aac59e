//! Starts members beside the lead's loop: each has to prove that it runs, and others are heard meanwhile. Decides nothing.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::sources::Signal;
use crate::model::id::MemberName;
use crate::model::order::Order;
use crate::ops::spawn::{self, Terms};
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
        let names: Vec<MemberName> = orders.iter().filter_map(|o| MemberName::new(&o.name).ok()).collect();
        let terms = Terms { backend: None, deadline: DEADLINE, unique: false, layout: None };
        let failures = match spawn::spawn(&ctx, &team, &orders, &terms) {
            Ok(batch) => names
                .iter()
                .zip(batch.results)
                .filter_map(|(name, result)| Some((name.clone(), result.err()?.to_string())))
                .collect(),
            Err(e) => names.iter().map(|name| (name.clone(), e.to_string())).collect(),
        };
        // The driver may have ended: then nobody wants to know.
        let _ = signals.send(Signal::Started { kind, names, failures });
    });
}
