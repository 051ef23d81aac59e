//! Maps journal events to the user's hooks. `TeammateIdle` is edge-triggered: a repeated idle state
//! of a member triggers no second hook.

use crate::effect::Effect;
use crate::state::State;
use model::members::lifecycle::MemberState;
use model::team::event::{Event, EventKind};
use model::team::hook::HookEvent;
use model::wire;
use ops::team::hooks::Occasion;

pub(super) fn handle_journal(state: &mut State, events: Vec<Event>, effects: &mut Vec<Effect>) {
    for event in events {
        let Some(member) = event.member else { continue };
        let state_word = wire::text(&event.detail, "state");
        let rests = state_word.as_deref() == Some(MemberState::Idle.as_str());
        let hook = match event.event {
            EventKind::MemberReady => {
                state.resting.insert(member.clone());
                HookEvent::SubagentStart
            }
            EventKind::MemberState if rests && state.resting.insert(member.clone()) => {
                HookEvent::TeammateIdle
            }
            EventKind::MemberState if !rests => {
                state.resting.remove(&member);
                continue;
            }
            EventKind::MemberLeft => {
                state.resting.remove(&member);
                HookEvent::SubagentStop
            }
            _ => continue,
        };
        effects.push(Effect::Hook(Occasion { event: hook, member, cause: event.id }));
    }
}
