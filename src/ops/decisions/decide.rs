//! `requests` and `answer`: files what members ask and answers it once, by rule, timeout or person.
//! Nothing is allowed by default. A running lead calls [`process_requests`]; without one, these
//! verbs and those that show members do.

mod always;
mod asker;
pub mod close;
mod limit;
mod preview;

use serde_json::{Map, Value};

use crate::authority::names;
use crate::ending::prune;
use crate::mail::inbox;
use crate::members::{assess, lead, presence};
use crate::team::{claude_settings, foreign_members};
use crate::{Context, OpsError, now};
use asker::{asker, rules_of};
use close::{BY_NOBODY, BY_RULE, decide_question, decision, decision_note, gone, send};
use model::decisions::question::{Ask, Decision, DecisionOutcome, Question, QuestionKind};
use model::decisions::rules::{self, Judgement, List, Rule, TeamRules, Use};
use model::decisions::user_question;
use model::id::{MemberName, RequestId};
use model::mail::envelope::Envelope;
use model::mail::protocol::{AnsweredBy, Message, SenderRole, may_send};
use model::members::assessment::ScreenSign;
use model::members::lifecycle::Cause;
use model::members::mode::Mode;
use model::team::Team;
use model::team::event::{EventKind, Note};
use model::time::Timestamp;
pub use preview::{ApprovalPreview, approval_preview};
use store::{StoreError, TeamStore};
use sys::rand;

const FORMAT: u32 = 1;
/// Distinguishes a timeout from a person's rejection (PM-04).
const TIMED_OUT: &str =
    "the request timed out without an answer; this is not a rejection, and you may ask again";

#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub approve: bool,
    pub reason: Option<String>,
    /// The mode to continue in; plans only.
    pub mode: Option<Mode>,
    /// The input to continue with; permissions only.
    pub input: Option<Map<String, Value>>,
    /// Answers to the questions of the program to its user.
    pub answers: Vec<String>,
    pub always: bool,
    /// The key of the dashboard that a person has pressed.
    pub via: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Answered {
    pub question: Question,
    pub added: Vec<Rule>,
}

/// Files new requests, decides those that a rule, a timeout or the end of their run settles, and
/// sends answers that a crash delayed. Returns those that wait for a person, oldest first.
pub fn process_requests(ctx: &Context, team: &TeamStore) -> Result<Vec<Question>, OpsError> {
    // Without settings, another program leads this team and reads its own mail.
    let Some(settings) = team.settings()? else { return Ok(Vec::new()) };
    let within_ms = settings.answer_within_s.saturating_mul(1000);
    file_mail(ctx, team, &settings.rules, within_ms)?;
    let mut waiting = Vec::new();
    let all = team.questions()?;
    prune::questions(team, &all)?;
    for question in all {
        if question.is_unsent() {
            send(team, &question.id)?;
        }
        if !question.is_open() {
            continue;
        }
        match verdict(ctx, team, &settings.rules, &question)? {
            Some(decision) => drop(decide_question(team, &question.id, &decision)?),
            None => waiting.push(question),
        }
    }
    Ok(waiting)
}

/// As [`process_requests`] in a team that no lead serves, before its members are shown, so that
/// those that ask do not seem to work. What cannot be filed stays unread in the lead's mailbox; it
/// is not to hide the team. Returns whether a lead serves it.
pub(crate) fn process_if_not_led(ctx: &Context, team: &TeamStore) -> Result<bool, OpsError> {
    let is_led = lead::is_led(team)?;
    if !is_led {
        drop(process_requests(ctx, team));
    }
    Ok(is_led)
}

/// Answers one request for a person. Fails if the request is unknown, decided, dropped by its
/// program or answerable only in its pane, if the lead may not grant the mode, or if it takes no
/// input or lasting rule.
pub fn answer(
    ctx: &Context,
    team: &TeamStore,
    id: &RequestId,
    answer: &Answer,
) -> Result<Answered, OpsError> {
    process_requests(ctx, team)?;
    let question = names::suggest_nearest_request(team, id, team.question(id))?;
    // A host that does not answer must not hold up the answer.
    if question.is_in_turn()
        && let Some(record) = team.member_record(&question.from)?.filter(|r| !r.is_elsewhere)
        && assess::read_screen(ctx, team, &record) == Some(ScreenSign::Idle)
    {
        close::withdraw_at_rest(team, &record)?;
    }
    if question.is_open() && question.answered_by() == Some(AnsweredBy::Pane) {
        let name = question.from;
        return Err(OpsError::refused(
            format!(
                "request `{id}` can only be answered in the pane of `{name}`: its profile has no \
                 keys for this dialog"
            ),
            format!("answer it there: `phalanx attach {name}`"),
        ));
    }
    if question.is_open() && foreign_members::needs_signature(team, &question.from)? {
        return Err(OpsError::AnswerRefused {
            id: id.clone(),
            problem: "its program accepts only answers signed by the lead that started it"
                .to_owned(),
            hint: "end it with `phalanx shutdown NAME --force`, and start it again with `phalanx spawn`",
        });
    }
    let mode = mode_for(ctx, team, &question, answer)?;
    let input = input_for(&question, answer)?;
    let lasting = if answer.always && question.is_open() {
        always::rules_for(ctx, team, &question)?
    } else {
        always::Lasting::default()
    };
    // The lead types into a native program, which would take a reply for a message.
    let is_typed_by_lead = question.kind == QuestionKind::Dialog
        && asker(team, &question.from)?
            .and_then(|asker| asker.record)
            .is_some_and(|record| record.is_native());
    let made = decision(DecisionOutcome::Denied, &ctx.speaker.to_string());
    let decision = Decision {
        outcome: if answer.approve { DecisionOutcome::Allowed } else { DecisionOutcome::Denied },
        reason: answer.reason.clone(),
        mode,
        input: input.map(Value::Object),
        updates: lasting.updates,
        via: answer.via.clone(),
        reply: made.reply.clone().filter(|_| !is_typed_by_lead),
        ..made
    };
    let question = decide_question(team, id, &decision)?;
    if is_typed_by_lead {
        close::go_on(team, question.clone())?;
    }
    match &question.decision {
        // Only now: a running lead would answer by the new rule first.
        Some(made)
            if (&made.reply, made.at, &made.by) == (&decision.reply, decision.at, &decision.by) =>
        {
            let added = match lasting.rules.as_slice() {
                [] => Vec::new(),
                new => crate::decisions::rules::add(ctx, team, List::Allow, new)?.added,
            };
            Ok(Answered { question, added })
        }
        Some(made) if made.outcome == DecisionOutcome::TimedOut => {
            Err(too_late(ctx, team, &question)?)
        }
        _ => Err(decided(&question)),
    }
}

/// Returns the refusal of an answer to a request that was decided otherwise.
pub(super) fn decided(question: &Question) -> OpsError {
    let made = question.decision.as_ref();
    let (by, at) = made.map_or((String::new(), Timestamp(0)), |d| (d.by.clone(), d.at));
    OpsError::Decided { id: question.id.clone(), state: question.state(), by, at: at.iso() }
}

/// Records that an answer came too late; the member already received the timeout.
fn too_late(ctx: &Context, team: &TeamStore, question: &Question) -> Result<OpsError, OpsError> {
    let by = ctx.speaker.to_string();
    team.change_question(&question.id, |question| {
        if let Some(made) = &mut question.decision {
            (made.outcome, made.by) = (DecisionOutcome::AnsweredTooLate, by.clone());
        }
        Ok(())
    })?;
    team.record(decision_note(&team.question(&question.id)?))?;
    let by = BY_NOBODY.to_owned();
    Ok(OpsError::Decided {
        id: question.id.clone(),
        state: DecisionOutcome::TimedOut.as_str(),
        by,
        at: question.deadline_at.iso(),
    })
}

/// Grants no more than the lead's own mode (PM-06). A lead without a mode is a person.
fn mode_for(
    ctx: &Context,
    team: &TeamStore,
    question: &Question,
    answer: &Answer,
) -> Result<Option<Mode>, OpsError> {
    let usage = |problem: &str| {
        let hint = Some("`--mode` is only valid with `--approve`, for a plan".to_owned());
        Err(OpsError::Usage { problem: problem.to_owned(), hint })
    };
    if question.kind != QuestionKind::Plan || !answer.approve {
        return match answer.mode {
            Some(_) => usage("only the approval of a plan takes a mode"),
            None => Ok(None),
        };
    }
    let roster = team.team()?;
    let own = lead_mode(&roster);
    match answer.mode {
        None => Ok(Some(own.unwrap_or(Mode::Default))),
        Some(mode) => {
            may_give(own, mode)?;
            claude_settings::must_be_enabled(ctx, &roster, mode)?;
            Ok(Some(mode))
        }
    }
}

fn input_for(question: &Question, answer: &Answer) -> Result<Option<Map<String, Value>>, OpsError> {
    let refused = |problem: String, hint| {
        Err(OpsError::AnswerRefused { id: question.id.clone(), problem, hint })
    };
    let asked = question.user_questions();
    if asked.is_empty() && !answer.answers.is_empty() {
        return refused("it asks no question".to_owned(), "answer it with `--approve`");
    }
    if answer.approve && !asked.is_empty() {
        let (_, asking) = question.tool_use().unwrap_or_default();
        let input = match &answer.input {
            Some(input) if user_question::is_answered(input, &asked) => Ok(input.clone()),
            Some(_) => Err("the input has no `answers` to its questions".to_owned()),
            None => user_question::with_answers(&asking, &asked, &answer.answers),
        };
        return match input {
            Ok(input) => Ok(Some(input)),
            Err(problem) => refused(
                problem,
                "answer with `--answer TEXT`, or for each of several questions \
                 `--answer QUESTION=TEXT`; `phalanx requests show ID` lists questions and options",
            ),
        };
    }
    let Some(input) = &answer.input else { return Ok(None) };
    let problem = match (question.kind, question.answered_by()) {
        (QuestionKind::Permission, None) => return Ok(Some(input.clone())),
        (QuestionKind::Permission, Some(_)) => {
            "its program asks on its screen, where only yes or no can be typed"
        }
        (QuestionKind::Plan | QuestionKind::Sandbox | QuestionKind::Dialog, _) => {
            "only the use of a tool has an input"
        }
    };
    refused(format!("`--input` is not possible: {problem}"), "answer it without `--input`")
}

/// Returns the lead's mode in the team file; plan and delegate count as default, as in Claude Code.
pub(crate) fn lead_mode(roster: &Team) -> Option<Mode> {
    let own = roster.member(&MemberName::lead()).and_then(|lead| lead.mode);
    own.map(|mode| if mode.reach() == 0 { Mode::Default } else { mode })
}

fn may_give(own: Option<Mode>, mode: Mode) -> Result<(), OpsError> {
    let problem = match own {
        _ if matches!(mode, Mode::Plan | Mode::Delegate) => {
            format!("mode `{}` cannot follow a plan", mode.as_str())
        }
        Some(own) if mode.reach() > own.reach() => above(own, mode),
        Some(_) | None => return Ok(()),
    };
    Err(OpsError::NotAllowed { problem })
}

pub fn above(own: Mode, mode: Mode) -> String {
    format!(
        "mode `{}` is more permissive than the lead's own mode, `{}`",
        mode.as_str(),
        own.as_str()
    )
}

/// Files each request in the lead's mailbox. The message stays unread until the person or program
/// that leads was shown it, or the request is decided.
fn file_mail(
    ctx: &Context,
    team: &TeamStore,
    rules: &TeamRules,
    within_ms: u64,
) -> Result<(), OpsError> {
    let lead = MemberName::lead();
    let is_ask = |envelope: &Envelope| Ask::of(Message::parse(&envelope.text)).is_some();
    for envelope in team.mailbox(&lead).unread_where(is_ask)? {
        let message = Message::parse(&envelope.text);
        let Ok(from) = MemberName::existing(&envelope.from) else { continue };
        // The lead's loop warns of senders that may not send this.
        let speaker = if from.is_lead() { SenderRole::Lead } else { SenderRole::Member };
        let system = from.as_str() == "system";
        if system || !may_send(speaker, &message) {
            continue;
        }
        let Some(ask) = Ask::of(message) else { continue };
        let waits = match RequestId::parse(ask.request_id()) {
            Ok(id) => match waits(team, &id, &envelope)? {
                Some(waits) => waits,
                None => {
                    file(ctx, team, rules, &envelope, &ask, id.clone(), within_ms)?;
                    waits(team, &id, &envelope)?.unwrap_or(false)
                }
            },
            Err(problem) => {
                warn(team, &from, format!("a {} request: {problem}", ask.kind().as_str()))?;
                false
            }
        };
        if !waits {
            inbox::record_handled(team, std::slice::from_ref(&envelope.msg_id))?;
        }
    }
    Ok(())
}

/// Returns true if the request that this message has filed waits for an answer; `None` if the
/// message has filed none.
fn waits(team: &TeamStore, id: &RequestId, envelope: &Envelope) -> Result<Option<bool>, OpsError> {
    match team.question(id) {
        Ok(filed) => Ok((filed.msg_id == envelope.msg_id).then(|| filed.is_open())),
        Err(StoreError::NoSuchRequest { .. }) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

fn file(
    ctx: &Context,
    team: &TeamStore,
    rules: &TeamRules,
    envelope: &Envelope,
    ask: &Ask,
    id: RequestId,
    within_ms: u64,
) -> Result<(), OpsError> {
    let asked_at = now();
    let given = MemberName::existing(&envelope.from)?;
    let asker = asker(team, &given)?;
    let sent_at = Timestamp::parse(&envelope.timestamp);
    let here = asker.as_ref().filter(|asker| sent_at.is_none_or(|at| at >= asker.since));
    let mut question = Question {
        format: FORMAT,
        id,
        kind: ask.kind(),
        // The roster's spelling, which is also the name of the mailbox.
        from: asker.as_ref().map_or(given, |asker| asker.member.name.clone()),
        incarnation: here.and_then(|asker| asker.record.as_ref().map(|r| r.incarnation.clone())),
        msg_id: envelope.msg_id.clone(),
        asked_at,
        deadline_at: asked_at.plus_ms(within_ms),
        last_notification: None,
        message: envelope.text.clone(),
        decision: None,
        event: rand::uuid(),
    };
    question.decision = match here {
        Some(_) => match verdict(ctx, team, rules, &question)? {
            None => limit::over(team, &question.from)?,
            decided => decided,
        },
        None => Some(gone()),
    };
    if !team.file_question(&question)? {
        return refuse_second(team, &question);
    }
    let note = Note { id: Some(question.event.clone()), ..Note::of(EventKind::RequestFiled) };
    let note = note.member(&question.from).with("request_id", question.id.as_str());
    let note = note.with("kind", question.kind.as_str()).with("summary", question.summary());
    let is_question = !question.user_questions().is_empty();
    let by = question.answered_by().map(AnsweredBy::as_str).or(is_question.then_some("text"));
    team.record(note.with_some("answered_by", by).with("state", question.state()))?;
    if let Some(incarnation) = question.incarnation.as_ref().filter(|_| question.is_open()) {
        let cause = match question.kind {
            QuestionKind::Plan => Cause::PlanSent,
            QuestionKind::Permission | QuestionKind::Sandbox | QuestionKind::Dialog => {
                Cause::PermissionAsked
            }
        };
        presence::move_on(team, &question.from, incarnation, cause, Some(question.id.as_str()))?;
    }
    if !question.is_open() {
        team.record(decision_note(&question))?;
        send(team, &question.id)?;
    }
    Ok(())
}

/// Ignores a second request with the same id; the same message again is redelivery after a crash.
fn refuse_second(team: &TeamStore, question: &Question) -> Result<(), OpsError> {
    match team.question(&question.id) {
        Ok(first) if first.msg_id == question.msg_id => Ok(()),
        Ok(_) | Err(StoreError::NoSuchRequest { .. }) => {
            let text = format!("ignored a second request with the id `{}`", question.id);
            warn(team, &question.from, text)
        }
        Err(e) => Err(e.into()),
    }
}

fn warn(team: &TeamStore, from: &MemberName, text: String) -> Result<(), OpsError> {
    team.record(Note::of(EventKind::Warning).member(from).with("text", text))?;
    Ok(())
}

/// Decides an open question without a person; `None` if only a person can.
fn verdict(
    ctx: &Context,
    team: &TeamStore,
    rules: &TeamRules,
    question: &Question,
) -> Result<Option<Decision>, OpsError> {
    let Some(asker) = asker(team, &question.from)? else { return Ok(Some(gone())) };
    if question.incarnation != asker.record.as_ref().map(|record| record.incarnation.clone()) {
        return Ok(Some(gone()));
    }
    if question.deadline_at <= now() {
        let decision = decision(DecisionOutcome::TimedOut, BY_NOBODY);
        return Ok(Some(match question.answered_by() {
            None => Decision { reason: Some(TIMED_OUT.to_owned()), ..decision },
            // No reply: its program keeps waiting, and no key stands for a timeout.
            Some(_) => Decision { reply: None, ..decision },
        }));
    }
    // A screen may show only a part of the action, so no rule judges it.
    if question.answered_by().is_some() {
        return Ok(None);
    }
    let sets = rules_of(rules, &asker);
    let asks_the_user = !question.user_questions().is_empty();
    let Some((tool, input)) = question.tool_use() else { return Ok(None) };
    let home = ctx.caller.var("HOME").map(|home| home.to_string_lossy().into_owned());
    let used = Use { tool: &tool, input: &input, home: home.as_deref(), cwd: &asker.member.cwd };
    let tools = asker.record.as_ref().and_then(|record| record.request.tools.allowed.as_ref());
    let outside = tools.and_then(|allowed| rules::judge_tools(allowed, &used));
    Ok(match outside.unwrap_or_else(|| rules::judge(&sets, &used)) {
        // No rule knows the answers.
        Judgement::Allow { .. } if asks_the_user => None,
        Judgement::Allow { rule, updates } => Some(Decision {
            rule: Some(rule),
            updates,
            ..decision(DecisionOutcome::Allowed, BY_RULE)
        }),
        Judgement::Deny { rule } => {
            let reason = Some(format!("denied by the team's rules: {rule}"));
            Some(Decision {
                rule: Some(rule),
                reason,
                ..decision(DecisionOutcome::Denied, BY_RULE)
            })
        }
        Judgement::Ask => None,
    })
}
