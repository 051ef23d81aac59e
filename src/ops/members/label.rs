//! Labels beside the placements of members, for people. Cosmetic only: errors are ignored.

use std::collections::BTreeMap;

use crate::Context;
use crate::members::backends;
use backend::{Label, Mark};
use model::members::record::MemberRecord;
use store::TeamStore;

/// Shows the name, role and state of these runs.
pub fn label(ctx: &Context, team: &TeamStore, runs: &[MemberRecord]) {
    let mut groups: BTreeMap<_, (&MemberRecord, Vec<(Mark<'_>, Label)>)> = BTreeMap::new();
    for run in runs {
        let Some(placement) = &run.placement else { continue };
        let label = Label { state: run.state.as_str().to_owned(), ..describe(run) };
        let mark = Mark { placement, token: run.mark() };
        let key = (run.other_host(), placement.backend().as_str());
        groups.entry(key).or_insert_with(|| (run, Vec::new())).1.push((mark, label));
    }
    for (run, labels) in groups.values() {
        let placement = labels.first().map(|(mark, _)| mark.placement);
        if let Some(Ok(backend)) =
            placement.map(|placement| backends::open_for(ctx, team, run, placement))
        {
            backend.label(labels);
        }
    }
}

/// Returns the label of a run without its state, which only a lead keeps up to date.
pub fn describe(run: &MemberRecord) -> Label {
    Label {
        name: run.name.to_string(),
        role: run.request.role.clone(),
        state: String::new(),
        color: Some(run.request.color.clone()),
    }
}
