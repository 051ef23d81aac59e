//! The lead's decisions: one pure step over what it knows, what happened, and the time (invariant 7).

use super::effect::Effect;
use super::event::Event;
use super::state::{End, Ending, Goal, Phase, State, View};
use crate::model::board::Board;
use crate::model::drift;
use crate::model::envelope::Envelope;
use crate::model::id::{Incarnation, MemberName, RequestId};
use crate::model::lifecycle::{Cause, MemberState};
use crate::model::protocol::{Message, Speaker, may_say};
use crate::model::record::MemberRecord;
use crate::model::request::{ShutdownOutcome, ShutdownRequest};
use crate::model::settings::Finish;
use crate::model::time::Timestamp;

/// Takes in what happened and says what is to be done.
pub(crate) fn react(state: &mut State, event: Event, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    match event {
        Event::Mail(mail) => read_mail(state, mail, &mut effects),
        Event::Members(records) => see_members(state, &records, &mut effects),
        Event::Requests(requests) => see_requests(state, requests, &mut effects),
        Event::Board(board) => see_board(state, board, &mut effects),
        Event::Exited(record) => see_exit(state, &record, &mut effects),
        Event::Terminated { name, incarnation, result } => {
            see_terminated(state, &name, &incarnation, result, &mut effects);
        }
        Event::Stop { force } => stop(state, End::Stopped, force, &mut effects),
        Event::TeamGone => state.phase = Phase::Done(End::TeamGone),
        Event::Tick => {}
    }
    pass_time(state, now, &mut effects);
    settle(state, &mut effects);
    effects
}

/// What others did to tasks since the last look is told (TK-07).
fn see_board(state: &mut State, board: Board, effects: &mut Vec<Effect>) {
    if let Some(before) = &state.board {
        effects.extend(drift::between(before, &board).into_iter().map(Effect::Tell));
    }
    state.board = Some(board);
}

/// Members that have proven themselves are watched. One that still starts is known, so that it can be asked to end
/// (SD-03), but whether it comes up is for whoever spawns it to see.
fn see_members(state: &mut State, records: &[MemberRecord], effects: &mut Vec<Effect>) {
    state.members_seen = true;
    for record in records {
        let known = state.members.get(&record.name).filter(|v| record.is(&v.incarnation));
        if record.state.is_over() {
            if known.is_some_and(|v| v.ending.is_none()) {
                state.members.remove(&record.name);
            }
            continue;
        }
        let was_up = known.is_some_and(|v| v.watched);
        let mut view = known.cloned().unwrap_or_else(|| view_of(record));
        view.state = record.state;
        view.watched = is_up(record.state);
        if let Some(process) = record.launcher().filter(|_| view.watched && !was_up) {
            let (name, incarnation) = (record.name.clone(), record.incarnation.clone());
            effects.push(Effect::WatchExit { name, incarnation, process });
        }
        state.members.insert(record.name.clone(), view);
    }
    state.members.retain(|name, view| view.ending.is_some() || records.iter().any(|r| r.name == *name));
    join_stopping(state, effects);
}

/// Whether a member has proven that it runs, and its run is not over.
fn is_up(state: MemberState) -> bool {
    match state {
        MemberState::Idle | MemberState::Working | MemberState::ShutdownRequested => true,
        MemberState::Pending
        | MemberState::Starting
        | MemberState::Completed
        | MemberState::Failed
        | MemberState::Killed
        | MemberState::Disappeared => false,
    }
}

fn view_of(record: &MemberRecord) -> View {
    View {
        incarnation: record.incarnation.clone(),
        state: record.state,
        reads_mail: record.reads_mail(),
        watched: false,
        ending: None,
        refused: false,
        stuck: false,
    }
}

/// A member that joins a team that is being stopped is stopped too.
fn join_stopping(state: &State, effects: &mut Vec<Effect>) {
    if let Phase::Stopping { force, .. } = state.phase {
        ask_all(state, "the team ends", force, effects);
    }
}

fn see_requests(state: &mut State, requests: Vec<ShutdownRequest>, effects: &mut Vec<Effect>) {
    state.requests_seen = true;
    state.open.retain(|id, _| requests.iter().any(|r| r.id == *id && r.is_open()));
    for request in requests.into_iter().filter(ShutdownRequest::is_open) {
        state.open.insert(request.id.clone(), request.clone());
        carry(state, &request, effects);
    }
}

/// What an open request asks for at this moment.
fn carry(state: &mut State, request: &ShutdownRequest, effects: &mut Vec<Effect>) {
    let Some(view) = state.members.get(&request.member).filter(|v| v.incarnation == request.incarnation)
    else {
        if state.members_seen {
            effects.push(resolve(&request.id, ShutdownOutcome::Gone, None));
            state.open.remove(&request.id);
        }
        return;
    };
    if view.ending.is_some() || view.stuck {
        return;
    }
    let with = |outcome| Some((request.id.clone(), outcome));
    if request.force {
        begin(
            state,
            &request.member,
            false,
            ending(Cause::Forced, "ended by force", with(ShutdownOutcome::Forced)),
            effects,
        );
    } else if !view.reads_mail {
        // It cannot be asked, so it need not agree.
        begin(
            state,
            &request.member,
            false,
            ending(Cause::Released, "shut down", with(ShutdownOutcome::Closed)),
            effects,
        );
    } else if matches!(view.state, MemberState::Idle | MemberState::Working) {
        let (name, incarnation) = (request.member.clone(), request.incarnation.clone());
        effects.push(Effect::MoveOn {
            name,
            incarnation,
            cause: Cause::Asked,
            reason: request.reason.clone(),
        });
        if let Some(view) = state.members.get_mut(&request.member) {
            view.state = MemberState::ShutdownRequested;
        }
    }
}

fn ending(cause: Cause, reason: &str, request: Option<(RequestId, ShutdownOutcome)>) -> Ending {
    Ending { cause, reason: reason.to_owned(), request }
}

fn begin(state: &mut State, name: &MemberName, agreed: bool, ending: Ending, effects: &mut Vec<Effect>) {
    let Some(view) = state.members.get_mut(name) else { return };
    view.ending = Some(ending);
    effects.push(Effect::Terminate { name: name.clone(), incarnation: view.incarnation.clone(), agreed });
}

fn resolve(request: &RequestId, outcome: ShutdownOutcome, answer: Option<String>) -> Effect {
    Effect::Resolve { request: request.clone(), outcome, answer }
}

fn read_mail(state: &mut State, mail: Vec<Envelope>, effects: &mut Vec<Effect>) {
    let mut done = Vec::new();
    for envelope in mail.into_iter().filter(|e| !e.read) {
        let is_new = !state.handled.contains(&envelope.msg_id);
        if is_new && !act_on(state, &envelope, effects) {
            continue;
        }
        state.handled.insert(envelope.msg_id.clone());
        done.push(envelope.msg_id);
    }
    if !done.is_empty() {
        effects.push(Effect::Acknowledge { ids: done });
    }
}

/// Acts on one message; false if it is for somebody else to read: a text, a plan, a question.
fn act_on(state: &mut State, envelope: &Envelope, effects: &mut Vec<Effect>) -> bool {
    let message = Message::parse(&envelope.text);
    if !may_say(speaker(&envelope.from), &message) {
        effects.push(warn(
            &envelope.from,
            format!("a {} from `{}`, who may not say that", message.kind(), envelope.from),
        ));
        return true;
    }
    match message {
        Message::ShutdownApproved(answer) => {
            let reason = "shut down as agreed";
            match answered(state, &envelope.from, &answer.request_id) {
                Ok(request) => {
                    let with = Some((request.id.clone(), ShutdownOutcome::Closed));
                    begin(state, &request.member, true, ending(Cause::Released, reason, with), effects);
                }
                Err(problem) => effects.push(warn(&envelope.from, problem)),
            }
            true
        }
        Message::ShutdownRejected(answer) => {
            match answered(state, &envelope.from, &answer.request_id) {
                Ok(request) => refuse(state, &request, answer.reason, effects),
                Err(problem) => effects.push(warn(&envelope.from, problem)),
            }
            true
        }
        Message::IdleNotification(_) => {
            rest(state, &envelope.from, effects);
            true
        }
        Message::TaskCompleted(_) | Message::TeammateTerminated(_) => true,
        Message::Malformed { kind, problem, .. } => {
            effects.push(warn(&envelope.from, format!("a {kind} that cannot be read: {problem}")));
            true
        }
        Message::Text(_)
        | Message::Unknown { .. }
        | Message::PlanApprovalRequest(_)
        | Message::PermissionRequest(_)
        | Message::SandboxPermissionRequest(_)
        | Message::ShutdownRequest(_)
        | Message::PlanApprovalResponse(_)
        | Message::PermissionResponse(_)
        | Message::SandboxPermissionResponse(_)
        | Message::TaskAssignment(_)
        | Message::TeamPermissionUpdate(_)
        | Message::ModeSetRequest(_) => false,
    }
}

/// Whose word it is, by the name that the mailbox entry bears.
fn speaker(from: &str) -> Speaker {
    match MemberName::existing(from) {
        Ok(name) if name.is_lead() => Speaker::Lead,
        Ok(name) if name.as_str() == "system" => Speaker::System,
        Ok(_) | Err(_) => Speaker::Member,
    }
}

/// The request that this answer belongs to. Only the run that was asked may answer, and only once (SD-10, SD-11).
fn answered(state: &State, from: &str, id: &str) -> Result<ShutdownRequest, String> {
    let request = state.open.values().find(|r| r.id.as_str() == id);
    let request = request.ok_or_else(|| format!("an answer to `{id}`, which is not an open request"))?;
    if !request.member.clashes_with(from) {
        return Err(format!("an answer to `{id}` from `{from}`, which was asked of `{}`", request.member));
    }
    match state.members.get(&request.member) {
        Some(view) if view.incarnation != request.incarnation => {
            Err(format!("an answer to `{id}`, which was asked of an earlier run of `{}`", request.member))
        }
        Some(view) if view.ending.is_some() => Err(format!("a second answer to `{id}`")),
        Some(_) => Ok(request.clone()),
        None => Err(format!("an answer to `{id}` from a member that has ended")),
    }
}

fn refuse(state: &mut State, request: &ShutdownRequest, reason: Option<String>, effects: &mut Vec<Effect>) {
    state.open.remove(&request.id);
    let (name, incarnation) = (request.member.clone(), request.incarnation.clone());
    effects.push(Effect::MoveOn { name, incarnation, cause: Cause::Refused, reason: reason.clone() });
    effects.push(resolve(&request.id, ShutdownOutcome::Rejected, reason));
    if let Some(view) = state.members.get_mut(&request.member) {
        view.state = MemberState::Working;
        // A refusal from before the stop must not keep the member from being asked when the team stops.
        view.refused = matches!(state.phase, Phase::Stopping { .. });
    }
}

/// A member has nothing to do: one that refused to end before is asked again.
fn rest(state: &mut State, from: &str, effects: &mut Vec<Effect>) {
    let Some((name, view)) = state.members.iter_mut().find(|(name, _)| name.clashes_with(from)) else {
        return;
    };
    let (name, incarnation) = (name.clone(), view.incarnation.clone());
    if view.state == MemberState::Working {
        view.state = MemberState::Idle;
        effects.push(Effect::MoveOn { name: name.clone(), incarnation, cause: Cause::Rest, reason: None });
    }
    if view.refused
        && let Phase::Stopping { force, .. } = state.phase
    {
        view.refused = false;
        effects.push(Effect::AskShutdown { names: vec![name], reason: "the team ends".to_owned(), force });
    }
}

fn warn(from: &str, text: String) -> Effect {
    Effect::Warn { member: MemberName::existing(from).ok(), text }
}

/// A process is gone. If nobody had asked for it, its work is given back at once.
fn see_exit(state: &mut State, record: &MemberRecord, effects: &mut Vec<Effect>) {
    let Some(view) = state.members.get(&record.name).filter(|v| record.is(&v.incarnation)) else { return };
    if view.ending.is_some() {
        return;
    }
    let (cause, reason) = match &record.exit {
        Some(exit) => (Cause::Ended { code: exit.code }, exit.describe()),
        None => (Cause::Vanished, "its process is gone".to_owned()),
    };
    let request =
        state.request_for(&record.name, &record.incarnation).map(|r| (r.id.clone(), ShutdownOutcome::Gone));
    begin(state, &record.name, false, ending(cause, &reason, request), effects);
}

fn see_terminated(
    state: &mut State,
    name: &MemberName,
    incarnation: &Incarnation,
    result: Result<(), String>,
    effects: &mut Vec<Effect>,
) {
    let Some(view) = state.members.get_mut(name).filter(|v| v.incarnation == *incarnation) else { return };
    let Some(ending) = view.ending.take() else { return };
    match result {
        Ok(()) => {
            state.members.remove(name);
            let (name, incarnation) = (name.clone(), incarnation.clone());
            effects.push(Effect::Retire { name, incarnation, cause: ending.cause, reason: ending.reason });
            if let Some((id, outcome)) = ending.request {
                state.open.remove(&id);
                effects.push(resolve(&id, outcome, None));
            }
        }
        Err(problem) => {
            view.stuck = true;
            effects.push(Effect::Warn {
                member: Some(name.clone()),
                text: format!("could not be ended: {problem}"),
            });
            if let Some((id, _)) = ending.request {
                state.open.remove(&id);
                effects.push(resolve(
                    &id,
                    ShutdownOutcome::TimedOut,
                    Some(format!("could not be ended: {problem}")),
                ));
            }
        }
    }
}

/// Requests whose time is up are carried out without consent (SD-01).
fn pass_time(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    let due: Vec<ShutdownRequest> = state.open.values().filter(|r| r.deadline_at <= now).cloned().collect();
    for request in due {
        let waits = |v: &&View| v.incarnation == request.incarnation && v.ending.is_none() && !v.stuck;
        if state.members.get(&request.member).filter(waits).is_some() {
            let with = Some((request.id.clone(), ShutdownOutcome::TimedOut));
            begin(
                state,
                &request.member,
                false,
                ending(Cause::Forced, "did not answer in time", with),
                effects,
            );
        }
    }
}

fn stop(state: &mut State, end: End, force: bool, effects: &mut Vec<Effect>) {
    let (end, force) = match state.phase {
        Phase::Done(_) => return,
        Phase::Leading => (end, force),
        Phase::Stopping { end: earlier, force: was } => (earlier, force || was),
    };
    state.phase = Phase::Stopping { end, force };
    let reason = match end {
        End::TasksOver => "all tasks are over",
        End::Stopped | End::Carried | End::TeamGone => "the team is stopped",
    };
    ask_all(state, reason, force, effects);
}

fn ask_all(state: &State, reason: &str, force: bool, effects: &mut Vec<Effect>) {
    let wants = |(name, view): &(&MemberName, &View)| {
        let request = state.request_for(name, &view.incarnation);
        let asked = request.is_some_and(|r| r.force || !force);
        view.ending.is_none() && !view.stuck && !asked && (force || !view.refused)
    };
    let names: Vec<MemberName> = state.members.iter().filter(wants).map(|(name, _)| name.clone()).collect();
    if !names.is_empty() {
        effects.push(Effect::AskShutdown { names, reason: reason.to_owned(), force });
    }
}

/// Whether the goal is reached.
fn settle(state: &mut State, effects: &mut Vec<Effect>) {
    if let (Goal::Carry(requests), Phase::Leading) = (&state.goal, state.phase) {
        if state.requests_seen && requests.iter().all(|id| !state.open.contains_key(id)) {
            state.phase = Phase::Done(End::Carried);
        }
        return;
    }
    if state.goal == Goal::Lead(Finish::TasksDone) && state.phase == Phase::Leading && nothing_moves(state) {
        stop(state, End::TasksOver, false, effects);
    }
    if let Phase::Stopping { end, .. } = state.phase
        && state.members.values().all(|v| v.stuck)
    {
        state.phase = Phase::Done(end);
    }
}

/// No task can be begun any more, or there is nobody left to do it.
fn nothing_moves(state: &State) -> bool {
    state.members_seen
        && state.board.as_ref().is_some_and(|board| !board.can_move() || state.members.is_empty())
}

#[cfg(test)]
mod tests;
