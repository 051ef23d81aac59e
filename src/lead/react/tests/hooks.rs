//! The journal events that trigger hooks.

use super::*;
use model::id::TeamName;
use model::team::event::{Event as Noted, EventKind, Note};
use model::team::hook::HookEvent;

/// The `n`th journal event about `ann`.
fn journaled(n: usize, note: Note) -> Noted {
    let team = TeamName::new("checks").expect("name");
    let Note { event, cause, task, detail, .. } = note.member(&who("ann"));
    Noted { id: n.to_string(), cause, at: NOW, team, event, member: Some(who("ann")), task, detail }
}

fn state(word: &str) -> Note {
    Note::of(EventKind::MemberState).with("state", word)
}

/// The hooks that run for these events, each with the id of the event that triggered it.
fn hooks_for(state: &mut State, notes: Vec<Note>) -> Vec<(HookEvent, String)> {
    let events = notes.into_iter().enumerate().map(|(n, note)| journaled(n, note)).collect();
    let effects = react(state, Event::Journal(events), NOW).into_iter();
    effects
        .map(|effect| match effect {
            Effect::Hook(occasion) => {
                assert_eq!(occasion.member, who("ann"));
                (occasion.event, occasion.cause)
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

fn lead() -> State {
    State::new(Goal::Lead(Finish::Manual), Vec::new())
}

/// MSG-12: the idle hook is edge-triggered. A repeated idle state, or a remark about an idle
/// member, does not trigger it.
#[test]
fn msg_12_hooks_run_once_per_start_idle_and_end() {
    let of = Note::of;
    let notes = vec![
        of(EventKind::MemberAsked),
        of(EventKind::MemberReady),
        state("idle").with("reason", "stands before a dialog"),
        state("working"),
        state("idle"),
        state("idle"),
        state("awaiting_plan"),
        state("shutdown_requested"),
        of(EventKind::MemberLeft),
        of(EventKind::MemberReady),
    ];
    let expected = [
        (HookEvent::SubagentStart, "1"),
        (HookEvent::TeammateIdle, "4"),
        (HookEvent::SubagentStop, "8"),
        (HookEvent::SubagentStart, "9"),
    ];
    assert_eq!(
        hooks_for(&mut lead(), notes),
        expected.map(|(event, cause)| (event, cause.to_owned()))
    );
}

#[test]
fn member_idle_before_the_lead_started_triggers_no_hook() {
    let mut known = lead();
    known.resting.insert(who("ann"));
    assert_eq!(hooks_for(&mut known, vec![state("idle")]), []);
    assert_eq!(
        hooks_for(&mut lead(), vec![state("idle")]),
        [(HookEvent::TeammateIdle, "0".to_owned())]
    );
    let ignored = vec![Note::of(EventKind::TaskCompleted), Note::of(EventKind::MessageSent)];
    assert_eq!(hooks_for(&mut known, ignored), []);
}
