//! Applies settings that change while the team has a lead.

use crate::state::{BoardView, Goal, Pool, State, makers};
use model::id::MemberName;
use model::team::settings::Settings;

/// Applies the differences. Running members keep the settings of their start.
pub(super) fn handle_settings(state: &mut State, before: &Settings, now: Settings) {
    state.apply(&now);
    if before.on_hang != now.on_hang {
        // The new action applies to members that hang already.
        let checks = state.members.values_mut().filter_map(|view| view.activity.as_mut());
        checks.for_each(|activity| activity.is_reported = false);
    }
    // An agent lead decides itself when the work is done.
    if let Goal::Lead(finish) = &mut state.goal
        && before.finish != now.finish
        && !state.has_agent_lead
    {
        *finish = now.finish;
        let has_tasks = |seen: &BoardView| seen.board.work().next().is_some();
        state.awaits_tasks = !state.seen.as_ref().is_some_and(has_tasks);
    }
    let named = |kind: &Pool, name: &str| kind.template.spec.name == name;
    for kind in &mut state.kinds {
        kind.removed = !now.templates.iter().any(|template| named(kind, &template.spec.name));
    }
    for template in now.templates {
        match state.kinds.iter_mut().find(|kind| named(kind, &template.spec.name)) {
            Some(kind) if kind.template == template => {}
            Some(kind) => kind.adopt(template),
            None => state.kinds.push(Pool::new(template)),
        }
    }
    state.makers = makers(&state.kinds);
    if let Some(seen) = &state.seen {
        state.kinds.iter_mut().for_each(|kind| kind.handle_board(&seen.board));
    }
    let made: Vec<(MemberName, Option<usize>)> =
        state.members.keys().map(|name| (name.clone(), state.maker(name))).collect();
    for (name, nth) in made {
        if let Some(view) = state.members.get_mut(&name) {
            // A member beyond a reduced scale still counts as one of its kind, so that it is
            // dismissed.
            let old = view.kind.filter(|old| !state.kinds[*old].removed);
            view.kind = nth.or(old);
        }
    }
}
