//! Dialogs of the program: files them as requests to the team, types the decision while the same
//! dialog is on the screen, and withdraws the request when it is not. Never answers without a
//! decision (PM-01).

use super::super::effect::OutboundOp;
use super::dialog::{AnswerStage, Dialog, FiledDialog};
use super::effect::Effect;
use super::event::Keyed;
use super::state::{BELIEF_MS, DeliveryStep, State, TYPING_MS};
use model::decisions::question::Typed;
use model::id::RequestId;
use model::mail::protocol::{AnsweredBy, Message, PermissionRequest, PermissionVerdict};
use model::time::Timestamp;
use profile::{ScreenFinding, ScreenState};

/// The dialog that is always filed as a request; others are if their rule has keys.
const PERMISSION: &str = "permission";
/// Milliseconds a dialog may take to disappear after its keys were typed.
const TAKE_MS: u64 = 10_000;

/// Updates the dialog on the screen.
pub(super) fn update_dialog(state: &mut State, finding: &ScreenFinding) {
    let shown = Dialog::on(finding);
    if shown != state.dialogs.shown {
        (state.dialogs.shown, state.dialogs.since) = (shown, state.now);
    }
}

/// Handles a response if it answers a dialog of this run. Returns whether it does.
pub(super) fn handle_answer(
    state: &mut State,
    request_id: &str,
    verdict: &PermissionVerdict,
) -> bool {
    let Some(id) = state.dialogs.filed.iter().find(|id| id.as_str() == request_id).cloned() else {
        return false;
    };
    let allowed = matches!(verdict, PermissionVerdict::Allowed { .. });
    match &mut state.dialogs.request {
        Some(request) if request.id == id => {
            if request.stage == AnswerStage::Open {
                request.stage = AnswerStage::Decided(allowed);
            }
        }
        Some(_) | None => state.outbox.push(OutboundOp::Typed(id, Typed::Gone)),
    }
    true
}

/// Advances the open request and files a new dialog.
pub(super) fn advance(state: &mut State) {
    if state.now.since(state.dialogs.since) < BELIEF_MS || !state.outbox.accepted {
        return;
    }
    let shown = state.dialogs.shown.clone();
    match state.dialogs.request.take_if(|request| shown.as_ref() != Some(&request.dialog)) {
        Some(gone) => close(state, gone),
        None => answer(state),
    }
    if state.dialogs.request.is_none()
        && let Some(dialog) = shown.filter(|dialog| is_asked(state, dialog))
    {
        file(state, dialog);
    }
}

/// The times at which [`advance`] has to run again.
pub(super) fn next_times(state: &State) -> Vec<Timestamp> {
    let dialogs = &state.dialogs;
    let Some(request) = &dialogs.request else { return vec![dialogs.since.plus_ms(BELIEF_MS)] };
    let typed = state.typed_at.map(|at| at.plus_ms(TYPING_MS));
    let stage = match request.stage {
        AnswerStage::Decided(_) => typed,
        AnswerStage::Typed(at) => Some(at.plus_ms(TAKE_MS)),
        AnswerStage::Open | AnswerStage::Typing(_) | AnswerStage::Stuck => None,
    };
    [Some(dialogs.since.plus_ms(BELIEF_MS)), stage].into_iter().flatten().collect()
}

fn is_asked(state: &State, dialog: &Dialog) -> bool {
    let permission = ScreenState::Dialog(PERMISSION.to_owned());
    let state_shown = state.screen.as_ref().map(|screen| &screen.finding.state);
    state_shown == Some(&permission) || state.answers.contains_key(&dialog.rule)
}

fn file(state: &mut State, dialog: Dialog) {
    let run = state.me.incarnation.as_str();
    let id = format!("perm-{}-{}", state.now.0, &run[..8]);
    let id = RequestId::parse(&id).expect("digits, letters and hyphens are safe");
    let by =
        if state.answers.contains_key(&dialog.rule) { AnsweredBy::Keys } else { AnsweredBy::Pane };
    let name = dialog.asked.tool.clone().unwrap_or_else(|| dialog.rule.clone());
    let (is_dialog, tool_name) = match state.screen.as_ref().map(|screen| &screen.finding.state) {
        Some(ScreenState::Dialog(named)) if named != PERMISSION => (true, named.clone()),
        _ => (false, name),
    };
    state.outbox.send(Message::PermissionRequest(PermissionRequest {
        request_id: id.to_string(),
        agent_id: Some(state.me.name.to_string()),
        tool_name,
        description: Some(dialog.asked.text.clone()),
        input: serde_json::Value::Object(serde_json::Map::new()),
        answered_by: Some(by),
        is_dialog,
        ..PermissionRequest::default()
    }));
    state.dialogs.filed.push(id.clone());
    state.dialogs.request = Some(FiledDialog { id, dialog, stage: AnswerStage::Open });
}

/// Ends a request whose dialog has disappeared.
fn close(state: &mut State, gone: FiledDialog) {
    match gone.stage {
        AnswerStage::Open | AnswerStage::Stuck => {
            state.outbox.push(OutboundOp::Withdraw(gone.id, None))
        }
        AnswerStage::Decided(_) | AnswerStage::Typing(_) => {
            state.outbox.push(OutboundOp::Typed(gone.id, Typed::Gone))
        }
        AnswerStage::Typed(_) => state.outbox.push(OutboundOp::Typed(gone.id, Typed::Taken)),
    }
}

fn answer(state: &mut State) {
    let alone = state.typed_at.is_none_or(|at| state.now.since(at) >= TYPING_MS);
    // The keyboard is in use while a message is being typed.
    let free = !state.turn.as_ref().is_some_and(|turn| turn.step == DeliveryStep::Typing);
    let Some(request) = &mut state.dialogs.request else { return };
    match request.stage {
        AnswerStage::Decided(allowed) if alone && free => {
            let Some(keys) = state.answers.get(&request.dialog.rule) else { return };
            let keys = if allowed { keys.allow.clone() } else { keys.deny.clone() };
            request.stage = AnswerStage::Typing(allowed);
            state.effects.push(Effect::Answer { dialog: request.dialog.clone(), keys });
        }
        AnswerStage::Typed(at) if state.now.since(at) >= TAKE_MS => {
            request.stage = AnswerStage::Stuck;
            let id = request.id.clone();
            state.outbox.push(OutboundOp::Typed(id, Typed::Stays));
        }
        AnswerStage::Open
        | AnswerStage::Decided(_)
        | AnswerStage::Typing(_)
        | AnswerStage::Typed(_)
        | AnswerStage::Stuck => {}
    }
}

/// Handles the result of typing the answer.
pub(super) fn handle_answered(state: &mut State, keyed: Keyed) {
    let Some(request) = &mut state.dialogs.request else { return };
    let AnswerStage::Typing(allowed) = request.stage else { return };
    request.stage = match keyed {
        Keyed::Typed => AnswerStage::Typed(state.now),
        Keyed::Gone | Keyed::PersonTyping => AnswerStage::Decided(allowed),
    };
    match keyed {
        Keyed::Typed => {}
        Keyed::PersonTyping => state.typed_at = Some(state.now),
        // Treat the dialog as gone until the screen is judged again.
        Keyed::Gone => (state.dialogs.shown, state.dialogs.since) = (None, state.now),
    }
}

#[cfg(test)]
mod tests;
