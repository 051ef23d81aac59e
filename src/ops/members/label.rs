//! Labels beside the placements of members, for people. Cosmetic only: errors are ignored.

use std::collections::BTreeMap;

use crate::Context;
use crate::members::backends;
use backend::{Label, Mark};
use model::members::assessment::{Evidence, assess};
use model::members::record::MemberRecord;
use store::{TeamStore, now};

/// Shows the name, role and state of these runs.
pub fn label(ctx: &Context, team: &TeamStore, runs: &[MemberRecord]) {
    let mut groups: BTreeMap<_, (&MemberRecord, Vec<(Mark<'_>, Label)>)> = BTreeMap::new();
    for run in runs {
        let Some(placement) = &run.placement else { continue };
        let label = Label { state: state_of(run), ..describe(run) };
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

/// Returns what the record alone says of the run, in the words of `status --json`.
fn state_of(run: &MemberRecord) -> String {
    let evidence = Evidence {
        record: Some(run),
        is_dead: false,
        is_led: true,
        is_inside: false,
        is_active: None,
        mail: None,
        mail_changed_at: None,
        request: None,
        task: None,
        next_task: None,
        given: None,
        screen: None,
        now: now(),
    };
    assess(&evidence).doing.as_str().to_owned()
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
    use model::members::record::blocked_reason;
    use model::time::Timestamp;

    /// ST-06: the label has the word of `status --json`, as far as the record alone says it.
    #[test]
    fn st_06_label_has_the_words_of_status() {
        let dialog = blocked_reason("dialog:trust", "rule trust: Trust this folder?");
        for (reads_mail, state, reason, words) in [
            (false, MemberState::Idle, None, "running"),
            (true, MemberState::Idle, None, "idle"),
            (true, MemberState::Working, None, "working"),
            (true, MemberState::AwaitingPermission, None, "waiting"),
            (true, MemberState::Idle, Some(dialog), "waiting"),
        ] {
            let mut run = sample::record("ann", sample::run(1), "codex", Timestamp(5));
            (run.state, run.reason) = (state, reason);
            run.request.reads_mail = Some(reads_mail);
            assert_eq!(state_of(&run), words, "{state:?}");
        }
    }
}
