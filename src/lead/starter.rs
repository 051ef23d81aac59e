//! Starts members outside the lead's loop: waiting for each to prove that it runs would block other
//! events.

use std::time::Duration;

use super::event::Event;
use super::sources::LeadInput;
use event_loop::Inputs;
use model::id::MemberName;
use model::members::launch::LaunchSpec;
use model::topic::Topic;
use ops::starting::spawn;
use ops::{Context, TeamStore};

/// Time limit for a member to prove that it runs.
const DEADLINE: Duration = Duration::from_secs(30);

/// Starts these members on a blocking thread, which reports `Started`.
pub(super) fn start(
    ctx: &Context,
    team: &TeamStore,
    kind: usize,
    specs: Vec<LaunchSpec>,
    inputs: Inputs<LeadInput>,
) {
    let (ctx, team) = (ctx.clone(), team.clone());
    tokio::task::spawn_blocking(move || {
        let names: Vec<MemberName> =
            specs.iter().filter_map(|spec| MemberName::new(&spec.name).ok()).collect();
        let failures = match spawn::for_lead(&ctx, &team, &specs, DEADLINE) {
            Ok(results) => names
                .iter()
                .zip(results)
                .filter_map(|(name, result)| Some((name.clone(), result.err()?)))
                // Another member has claimed the task. The board is read again and decides the next
                // start.
                .filter(|(_, e)| !e.is_refused_claim())
                .map(|(name, e)| (name, e.to_string()))
                .collect(),
            Err(e) => names.iter().map(|name| (name.clone(), e.to_string())).collect(),
        };
        // The new runs and their tasks must be read before `Started` removes them from the pending
        // starts.
        for topic in [Topic::Members, Topic::Tasks] {
            inputs.send_change(topic);
        }
        inputs.send(LeadInput::Done(Event::Started { kind, names, failures }));
    });
}
