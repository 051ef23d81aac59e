//! The step of a member over ACP: a function of its state, an event and the time.

use super::super::effect::OutboundOp;
use super::super::event::{MemberEvent, Requests};
use super::super::outbox::Activity;
use super::super::react::mail::accept;
use super::super::state::{Leaving, follow_clock, is_ended};
use super::super::words::{self, AgentRole};
use super::ask::{self, AnswerEffect};
use super::deliver;
use super::effect::Effect;
use super::event::Event;
use super::face::ConversationUpdate;
use super::state::{LAST_WORDS, SILENCE_MS, State};
use acp::{
    AgentFailure, AgentInfo, AgentToolCall, EndedTurn, FailureKind, ModeChoice, Outcome,
    SessionReport, TokenUsage, ToolContent,
};
use conversation::{ConversationAction, ConversationStatus};
use model::id::LEAD;
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::mail::protocol::news::is_for_agent_lead;
use model::members::mode::Mode;
use model::members::rate_limit::LimitHit;
use model::members::record::retrying_reason;
use model::members::usage::Usage;
use model::text;
use model::time::Timestamp;

/// Time in milliseconds for the agent to exit after its input was closed, and by signals.
const LEAVE_MS: u64 = 15_000;
/// Time in milliseconds to send what is queued after the agent has exited.
const CLOSE_MS: u64 = 5000;

impl State {
    /// The time of the next `Tick`; none while no deadline is pending.
    pub(super) fn next_tick(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.leaving.iter().chain(&self.closing);
        let mut times: Vec<Timestamp> = ends.map(|leaving| leaving.by).collect();
        times.extend(self.outbox.pause_until);
        times.extend(self.limited_until().filter(|_| !self.waiting.is_empty()));
        times.extend(self.settled_at());
        times.extend(self.steered.values().filter_map(|steered| steered.reply_by));
        times.extend(self.turn.as_ref().map(|turn| turn.stored_at));
        let silence = self.turn.as_ref().filter(|turn| !turn.has_remark && !self.is_asked());
        times.extend(silence.map(|turn| turn.heard_at.plus_ms(SILENCE_MS)));
        // One that has passed since the last event is due now.
        times.into_iter().filter(|at| *at > self.now).min().map(|at| at.max(now))
    }
}

/// Applies an event to the state and returns the effects to execute.
pub(super) fn react(state: &mut State, event: Event, now: Timestamp) -> Vec<Effect> {
    let of_turn = state.turn.iter_mut().flat_map(|turn| [&mut turn.heard_at, &mut turn.stored_at]);
    let times = [
        state.outbox.pause_until.as_mut(),
        state.leaving.as_mut().map(|leaving| &mut leaving.by),
        state.closing.as_mut().map(|closing| &mut closing.by),
        Some(&mut state.ready_at),
    ];
    let replies = state.steered.values_mut().filter_map(|steered| steered.reply_by.as_mut());
    follow_clock(&mut state.now, now, times.into_iter().flatten().chain(of_turn).chain(replies));
    match event {
        Event::Output(bytes) => {
            note_output(state);
            for report in state.session.receive(&bytes) {
                handle_report(state, report);
            }
        }
        Event::Person(action) => handle_action(state, action),
        Event::Member(event) => handle_member_event(state, event),
        Event::Ended { code, said } => handle_end(state, code, said),
        Event::Signal(signal) => leave(state, signal.exit_code()),
        Event::Tick => {}
    }
    advance(state);
    std::mem::take(&mut state.effects)
}

fn handle_action(state: &mut State, action: ConversationAction) {
    match action {
        ConversationAction::Send(text) => state.typed.push_back(text),
        ConversationAction::Cancel => drop(state.session.cancel()),
        ConversationAction::DropQueued => state.typed.clear(),
        ConversationAction::Answer { id, option } => ask::answer_in_pane(state, id, &option),
        ConversationAction::Leave => leave(state, 0),
    }
}

fn handle_member_event(state: &mut State, event: MemberEvent) {
    match event {
        MemberEvent::Mail { mail, requests } => {
            state.outbox.mail_due = false;
            read(state, mail, &requests);
        }
        MemberEvent::Requests(requests) => {
            state.pending.retain(|request| !is_ended(request, &requests));
        }
        MemberEvent::Over(_) if state.role == AgentRole::Lead => {
            state.waiting.clear();
            state.teamless = true;
        }
        MemberEvent::Over(_) => leave(state, 0),
        event => state.effects.extend(state.outbox.handle(event, state.now).map(Effect::Member)),
    }
}

/// Ends the silence of the turn. Some updates have no report, and reports also follow from calls of
/// this side.
fn note_output(state: &mut State) {
    let Some(turn) = &mut state.turn else { return };
    turn.heard_at = state.now;
    if std::mem::take(&mut turn.has_remark) {
        state.outbox.push(OutboundOp::Remark(None));
    }
}

/// Records that the agent repeats a failed request by itself, until its next output.
fn note_retries(state: &mut State, said: &str) {
    let Some(turn) = &mut state.turn else { return };
    turn.has_remark = true;
    state.outbox.push(OutboundOp::Remark(Some(retrying_reason(&text::short(said, 300)))));
}

fn handle_report(state: &mut State, report: SessionReport) {
    state.show(ConversationUpdate::Report(Box::new(report.clone())));
    match report {
        SessionReport::Initialized(agent) => greet(state, &agent),
        SessionReport::Ready { session, found, .. } => {
            state.ready_at = state.now;
            deliver::settle_doubts(state, &found);
            if state.role == AgentRole::Teammate {
                state.outbox.push(OutboundOp::Session(session));
            }
        }
        SessionReport::Refused(failure) => {
            let words = text::short(&failure.said, 300);
            state.warn(words);
            leave(state, 1);
        }
        SessionReport::Text { message, text } => keep_last_words(state, message, &text),
        SessionReport::Tool(call) => note_changes(state, &call),
        SessionReport::Model(model) => state.model = Some(model),
        SessionReport::Received { .. } => deliver::received(state),
        SessionReport::Steered { tag, result } => deliver::steered(state, &tag, result),
        SessionReport::Asked(question) => ask::file(state, &question),
        SessionReport::Withdrawn { id } => ask::end(state, id, "withdrawn".to_owned(), None),
        SessionReport::Ended(end) => end_turn(state, end),
        SessionReport::Fault(text) => {
            let text = format!("from its agent: {}", text::short(&text, 200));
            state.warn(text);
        }
        SessionReport::Retries(said) => note_retries(state, &said),
        SessionReport::User(text) => deliver::replayed(state, &text),
        SessionReport::Thought(_)
        | SessionReport::Plan(_)
        | SessionReport::Commands(_)
        | SessionReport::Mode { .. }
        | SessionReport::Title(_)
        | SessionReport::Context { .. }
        | SessionReport::Notice(_) => {}
    }
}

/// Warns of an agent that is older than the one with which its profile was tried: npm installs an
/// old version without a word if Node is too old for the latest.
fn greet(state: &mut State, agent: &AgentInfo) {
    let numbers = |version: &str| -> Vec<u64> {
        version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
    };
    let Some(seen) = &state.facts.seen else { return };
    let (own, known) = (numbers(&agent.version), numbers(seen));
    // A patch release is not older in any way that matters.
    if own.is_empty() || own.iter().take(2).cmp(known.iter().take(2)).is_ge() {
        return;
    }
    let install = state.facts.install.as_ref().map(|line| format!(": `{line}`"));
    let text = format!(
        "{} {} is older than {seen}, with which its profile was tried; install a new one, on a new Node{}",
        text::short(&agent.name, 60),
        text::short(&agent.version, 40),
        install.unwrap_or_default()
    );
    state.show(ConversationUpdate::Notice(text.clone()));
    state.warn(text);
}

fn keep_last_words(state: &mut State, message: Option<String>, text: &str) {
    if message.is_some() && message != state.message {
        state.last_words.clear();
        state.message = message;
    }
    state.last_words.push_str(text);
    let over = state.last_words.chars().count().saturating_sub(LAST_WORDS);
    if over > LAST_WORDS {
        state.last_words = state.last_words.chars().skip(over).collect();
    }
}

fn note_changes(state: &mut State, call: &AgentToolCall) {
    let paths = call.content.iter().filter_map(|content| match content {
        ToolContent::Diff(diff) => Some(diff.path.clone()),
        ToolContent::Text(_) => None,
    });
    if call.status == acp::ToolStatus::Completed {
        state.changed.extend(paths);
    }
}

fn end_turn(state: &mut State, end: EndedTurn) {
    deliver::turn_ended(state);
    if let Some(used) = end.usage.filter(|_| state.role == AgentRole::Teammate) {
        state.outbox.push(OutboundOp::Usage(state.model.clone(), usage(&used)));
    }
    (state.failure, state.limit) = (None, None);
    match end.outcome {
        Outcome::Done | Outcome::Cancelled => {}
        Outcome::Stopped(reason) => {
            let said = format!("stopped: {}", text::short(&reason, 100));
            state.failure = Some(AgentFailure { kind: FailureKind::Other, said });
        }
        Outcome::Failed(failure) if failure.kind == FailureKind::Limited => {
            state.limit =
                Some((LimitHit::of_text(&failure.said, state.now, &state.zone), state.now));
        }
        Outcome::Failed(failure) => state.failure = Some(failure),
    }
}

fn usage(used: &TokenUsage) -> Usage {
    Usage {
        input: used.input,
        cached_input: used.cached_input,
        cache_write: used.cache_write,
        output: used.output,
        cost: used.cost,
    }
}

/// Handles the exit of the agent. One that was not asked to end has failed, whatever its exit code.
fn handle_end(state: &mut State, code: i32, said: Option<String>) {
    if state.closing.is_some() {
        return;
    }
    end_session(state);
    let Some(leaving) = state.leaving else {
        let said = said.map(|said| format!("; it said last: {said}")).unwrap_or_default();
        let words = format!("the agent has exited with code {code}{said}");
        state.show(ConversationUpdate::Notice(words));
        return close(state, if code == 0 { 1 } else { code });
    };
    if let Some(said) = said.filter(|_| leaving.code != 0) {
        state.show(ConversationUpdate::Notice(said));
    }
    close(state, leaving.code);
}

/// Ends the turn and the questions of an agent that is gone.
fn end_session(state: &mut State) {
    // A message without a receipt stays unread, and the next run looks for it.
    if let Some(turn) = &mut state.turn {
        turn.ids.clear();
    }
    for report in state.session.end() {
        handle_report(state, report);
    }
}

/// Ends this program once what is queued is sent, or in time if the files of the team fail.
fn close(state: &mut State, code: i32) {
    state.closing.get_or_insert(Leaving { code, by: state.now.plus_ms(CLOSE_MS) });
}

/// Sorts the mail: handles shutdown requests and answers to questions, queues messages for the
/// agent, and marks the rest as read.
fn read(state: &mut State, mail: Vec<Envelope>, requests: &Requests) {
    let mut done = Vec::new();
    let is_unread = |id: &String| mail.iter().any(|e| e.msg_id == *id && !e.read);
    state.waiting.retain(|envelope| is_unread(&envelope.msg_id));
    let under_way: Vec<String> = deliver::under_way(state).cloned().collect();
    for envelope in mail.into_iter().filter(|envelope| !envelope.read) {
        let known = state.waiting.iter().any(|waiting| waiting.msg_id == envelope.msg_id);
        if known || under_way.contains(&envelope.msg_id) {
            continue;
        }
        if state.role == AgentRole::Lead && !state.handled.contains(&envelope.msg_id) {
            // The lead's loop marks all other messages as read.
            state.waiting.extend(is_for_agent_lead(&envelope).then(|| words::for_lead(envelope)));
        } else if state.handled.contains(&envelope.msg_id)
            || !is_for_agent(state, &envelope, requests)
        {
            state.handled.insert(envelope.msg_id.clone());
            done.push(envelope.msg_id);
        } else {
            state.waiting.push(words::for_teammate(envelope));
        }
    }
    if !done.is_empty() {
        state.acknowledge(done);
    }
}

fn is_for_agent(state: &mut State, envelope: &Envelope, requests: &Requests) -> bool {
    let message = Message::parse(&envelope.text);
    let is_of_lead = envelope.from == LEAD;
    match &message {
        Message::Text(_)
        | Message::Unknown { .. }
        | Message::Malformed { .. }
        | Message::TaskAssignment(_)
        | Message::TaskCompleted(_)
        | Message::TeammateTerminated(_)
        | Message::SandboxPermissionResponse(_) => return true,
        // Only the lead may answer (SEC-04).
        Message::PermissionResponse(answer) if is_of_lead => {
            return ask::answered(state, answer) == AnswerEffect::None;
        }
        Message::PlanApprovalResponse(answer) if is_of_lead => {
            let effect = ask::plan_answered(state, answer);
            // An agent whose profile has no modes keeps its own.
            let has_modes = !state.facts.modes.is_empty();
            let mode = answer.permission_mode.as_deref().filter(|_| has_modes);
            if let Some(mode) = mode.filter(|_| effect == AnswerEffect::Allowed) {
                change_mode(state, mode);
            }
            return effect == AnswerEffect::None;
        }
        Message::PermissionResponse(_) | Message::PlanApprovalResponse(_) => return true,
        Message::ShutdownRequest(asked) => {
            let (me, honoured) = (&state.me, &mut state.honoured);
            match accept(me, honoured, &envelope.from, asked, requests) {
                Ok(request) => state.pending.push(request),
                Err(text) => state.warn(text),
            }
        }
        Message::ModeSetRequest(asked) if is_of_lead => change_mode(state, &asked.mode),
        Message::ShutdownApproved(_)
        | Message::ShutdownRejected(_)
        | Message::PlanApprovalRequest(_)
        | Message::PermissionRequest(_)
        | Message::SandboxPermissionRequest(_)
        | Message::IdleNotification(_)
        | Message::TeamPermissionUpdate(_)
        | Message::ModeSetRequest(_) => {
            let from = text::short(&envelope.from, 60);
            state.warn(format!(
                "ignored a {} from {from}: this program cannot handle it",
                message.kind()
            ));
        }
    }
    false
}

/// Asks the agent for the mode that its profile has for `mode`.
fn change_mode(state: &mut State, mode: &str) {
    let words = mode.parse::<Mode>().ok().and_then(|mode| state.facts.modes.get(&mode));
    match words.map(String::as_str).map(mode_choice) {
        Some(mode) => state.session.set_mode(&mode),
        None => {
            let mode = text::short(mode, 40);
            let text = format!("ignored the mode `{mode}`: its profile has no such mode");
            state.warn(text);
        }
    }
}

/// Reads a mode of a profile: an id, or `option=value`.
pub(super) fn mode_choice(words: &str) -> ModeChoice {
    match words.split_once('=') {
        Some((id, value)) => ModeChoice::Option { id: id.to_owned(), value: value.to_owned() },
        None => ModeChoice::Mode(words.to_owned()),
    }
}

fn leave(state: &mut State, code: i32) {
    if let Some(closing) = state.closing {
        state.end.get_or_insert(closing.code);
    } else if state.leaving.is_none() {
        state.leaving = Some(Leaving { code, by: state.now.plus_ms(LEAVE_MS) });
        state.effects.push(Effect::End);
    }
}

/// Derives the next effects from the current state.
fn advance(state: &mut State) {
    if state.end.is_some() {
        return;
    }
    if let Some(leaving) = state.leaving.filter(|leaving| leaving.by <= state.now) {
        end_session(state);
        close(state, leaving.code);
    }
    if let Some(closing) = state.closing {
        if state.teamless || state.outbox.queue.is_empty() || closing.by <= state.now {
            state.end = Some(closing.code);
        } else {
            state.effects.extend(state.outbox.next(state.now).map(Effect::Member));
        }
        return;
    }
    if state.leaving.is_some() {
        return;
    }
    deliver::acknowledge_stored(state);
    deliver::give_up_replies(state);
    if !state.teamless {
        deliver::advance_urgent(state);
    }
    if state.failure.is_some() || state.limit.is_some() {
        // The next prompt would hide it.
        report_if_teammate(state);
    }
    deliver::begin(state);
    let output = state.session.take_output();
    if !output.is_empty() {
        state.effects.push(Effect::Write(output));
    }
    // A change of mode can be refused without the agent.
    for report in state.session.receive(&[]) {
        handle_report(state, report);
    }
    show_status(state);
    if state.teamless {
        return;
    }
    report_if_teammate(state);
    if state.role == AgentRole::Teammate {
        answer_requests(state);
    }
    if state.agreed && state.outbox.is_empty(state.now) {
        leave(state, 0);
        return;
    }
    state.effects.extend(state.outbox.next(state.now).map(Effect::Member));
}

fn report_if_teammate(state: &mut State) {
    if state.role == AgentRole::Teammate && !state.teamless {
        report_activity(state);
    }
}

fn report_activity(state: &mut State) {
    let Some(activity) = state.activity() else { return };
    let works = activity == Activity::Working;
    state.outbox.report(&state.me, activity, state.now);
    let is_due = works && !state.is_asked();
    let Some(turn) = state.turn.as_mut().filter(|_| is_due) else { return };
    if !turn.has_remark && state.now.since(turn.heard_at) >= SILENCE_MS {
        turn.has_remark = true;
        let since = turn.heard_at.iso();
        let reason = format!("silent since {since}: it may be retrying");
        state.outbox.push(OutboundOp::Remark(Some(reason)));
    }
}

fn show_status(state: &mut State) {
    let silent = state.turn.as_ref().filter(|turn| state.now.since(turn.heard_at) >= SILENCE_MS);
    let status = ConversationStatus {
        queued: state.waiting.len() + state.typed.len(),
        silent_since: silent.filter(|_| !state.is_asked()).map(|turn| turn.heard_at.0),
    };
    if status != state.shown {
        state.shown = status.clone();
        state.show(ConversationUpdate::Status(status));
    }
}

/// Agrees to shutdown requests once the agent waits for a prompt: its turn may end before the
/// deadline, at which the lead ends a busy one.
fn answer_requests(state: &mut State) {
    if state.is_free() && state.typed.is_empty() {
        state.agreed |= state.outbox.agree(&state.me, &mut state.pending, state.now);
    }
}
