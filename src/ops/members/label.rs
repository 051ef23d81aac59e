//! Labels beside the placements of members, for people. Cosmetic only: errors are ignored.

use std::collections::BTreeMap;

use crate::Context;
use crate::members::backends;
use backend::{Label, Mark};
use model::members::assessment::{Evidence, assess};
use model::members::record::MemberRecord;
use model::time::Timestamp;
use store::{TeamStore, now};

/// Shows the name, role and state of these runs.
pub fn label(ctx: &Context, team: &TeamStore, runs: &[MemberRecord]) {
    let mut groups: BTreeMap<_, (&MemberRecord, Vec<(Mark<'_>, Label)>)> = BTreeMap::new();
    for run in runs {
        let Some(placement) = &run.placement else { continue };
        let label = Label { state: state_of(run, now()).to_owned(), ..describe(run) };
        let mark = Mark::new(placement, run.mark());
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

/// Returns the state in the label of a run: the word of `status --json`, as far as the record alone
/// shows it.
pub fn state_of(run: &MemberRecord, now: Timestamp) -> &'static str {
    let evidence = Evidence { record: Some(run), is_led: true, now, ..Evidence::default() };
    assess(&evidence).doing.as_str()
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

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::sample;
    use model::members::lifecycle::MemberState;
    use model::members::record::{blocked_reason, retrying_reason};

    /// ST-06: the label has the word of `status --json`, as far as the record alone says it.
    #[test]
    fn st_06_label_has_the_words_of_status() {
        let dialog = blocked_reason("dialog:trust", "rule trust: Trust this folder?");
        for (reads_mail, state, reason, words) in [
            (false, MemberState::Idle, None, "running"),
            (true, MemberState::Idle, None, "idle"),
            (true, MemberState::Working, None, "working"),
            (true, MemberState::Working, Some(retrying_reason("529")), "retrying"),
            (true, MemberState::AwaitingPermission, None, "waiting"),
            (true, MemberState::Idle, Some(dialog), "waiting"),
        ] {
            let mut run = sample::record("ann", sample::run(1), "codex", Timestamp(5));
            (run.state, run.reason) = (state, reason);
            run.request.reads_mail = Some(reads_mail);
            assert_eq!(state_of(&run, Timestamp(9)), words, "{state:?}");
        }
    }
}
