//! Tools for messages, plans and permissions.

use std::ffi::OsStr;
use std::time::Duration;

use serde_json::{Value, json};

use super::arguments::ToolArguments;
use super::call::{Reply, ToolCall};
use super::deliveries::ShownMessages;
use super::inputs::{
    ReadInboxInput, RequestsInput, SendMessageInput, SendMessageType, SubmitPlanInput, TextToAll,
    TextToMember,
};
use crate::decisions::answer::{self, AnswerArgs};
use crate::decisions::ask::{self, AskVerb, PermissionArgs};
use crate::decisions::requests::{self, RequestsArgs, RequestsVerb};
use crate::ending::shutdown::{self, ShutdownArgs};
use crate::fail::{Exit, Failure};
use crate::mail::scope::ScopeArgs;
use crate::setup::since;
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::time::Timestamp;
use ops::authority::Action;
use ops::mail::inbox::{read_messages, read_news};

/// Maximum time that `ReadInbox` waits.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Seconds in which a member answers a request to end.
const ANSWER_LIMIT: u64 = 30;

pub(super) fn send_message(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let input: SendMessageInput = given.parse()?;
    let SendMessageInput { kind, recipient, content, summary, scope, urgent, .. } = input;
    match kind {
        SendMessageType::Message => {
            let (to, text) = (needed(recipient, "recipient")?, needed(content, "content")?);
            send(call, &to, &text, &Extras { summary, urgent, scope })
        }
        SendMessageType::Broadcast => {
            broadcast(call, &needed(content, "content")?, &Extras { summary, urgent, scope })
        }
        SendMessageType::ShutdownRequest => {
            request_shutdown(call, needed(recipient, "recipient")?, content)
        }
        SendMessageType::ShutdownResponse | SendMessageType::PlanApprovalResponse => {
            let approve = input.approve.ok_or_else(|| missing("approve"))?;
            let id = needed(input.request_id, "request_id")?;
            let args = AnswerArgs {
                id,
                approve,
                reject: !approve,
                reason: content,
                status: input.status,
                pending: input.pending,
                committed: input.committed == Some(true),
                uncommitted: input.committed == Some(false),
                ..AnswerArgs::default()
            };
            respond(call, args)
        }
    }
}

pub(super) fn send_text(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let TextToMember { to, text } = given.parse()?;
    send(call, &to, &needed(Some(text), "text")?, &Extras::default())
}

pub(super) fn broadcast_text(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let TextToAll { text } = given.parse()?;
    broadcast(call, &needed(Some(text), "text")?, &Extras::default())
}

/// The parts of a message besides its text.
#[derive(Default)]
struct Extras {
    summary: Option<String>,
    urgent: bool,
    scope: ScopeArgs,
}

fn needed(given: Option<String>, name: &str) -> Result<String, Failure> {
    given.filter(|text| !text.trim().is_empty()).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Failure {
    Failure::usage(format!("`{name}` is missing"), "call the tool again with it")
}

fn send(call: &ToolCall, to: &str, text: &str, extras: &Extras) -> Result<Reply, Failure> {
    call.with(|setup| {
        let (team, to) = setup.member(to, Action::Talk)?;
        let scope = extras.scope.resolve(setup)?;
        let summary = extras.summary.as_deref();
        let sent =
            ops::mail::send::send(&setup.ctx, &team, &to, text, summary, extras.urgent, &scope)?;
        Ok(Reply::of(json!(sent)))
    })
}

fn broadcast(call: &ToolCall, text: &str, extras: &Extras) -> Result<Reply, Failure> {
    call.with(|setup| {
        let team = setup.team(Action::Talk)?;
        let scope = extras.scope.resolve(setup)?;
        let sent =
            ops::mail::send::broadcast(&setup.ctx, &team, text, extras.summary.as_deref(), &scope)?;
        Ok(Reply::of(json!(sent)))
    })
}

/// Asks a member to end, and closes its place in the background when it has agreed.
fn request_shutdown(
    call: &ToolCall,
    name: String,
    reason: Option<String>,
) -> Result<Reply, Failure> {
    let args = |no_wait| ShutdownArgs {
        names: vec![name.clone()],
        all: false,
        reason: reason.clone(),
        deadline: ANSWER_LIMIT,
        grace: None,
        force: false,
        no_wait,
    };
    let printed = call.run(|setup| shutdown::shutdown(setup, &args(true)))?;
    let request = printed.document[0].clone();
    if request["outcome"] != "requested" {
        let outcome = request["outcome"].as_str().unwrap_or_default();
        let message = format!("{name} was not asked to end: it is {outcome}");
        let document = json!({
            "success": false, "message": message, "outcome": outcome, "target": name,
            "request_id": request["request_id"],
        });
        return Ok(Reply { is_error: true, ..printed.reply_with(document) });
    }
    let waiting = args(false);
    call.in_background(move |call| {
        // The outcome is in the journal, and a refusal is in the mailbox.
        let _ = call.run(|setup| shutdown::shutdown(setup, &waiting));
    });
    let message = format!("Shutdown request sent to {name}");
    let document = json!({
        "success": true, "message": message, "request_id": request["request_id"], "target": name,
    });
    Ok(printed.reply_with(document))
}

fn respond(call: &ToolCall, args: AnswerArgs) -> Result<Reply, Failure> {
    let (id, approve) = (args.id.clone(), args.approve);
    let printed = call.run(|setup| answer::answer(setup, args))?;
    let word = if approve { "approved" } else { "rejected" };
    let message = match printed.document["message"].as_str() {
        Some(message) => message.to_owned(),
        None => format!("{id} is {word}"),
    };
    let success = printed.exit == Exit::DONE;
    let document = json!({ "success": success, "message": message, "request_id": id });
    Ok(printed.reply_with(document))
}

pub(super) fn answer(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let args: AnswerArgs = given.parse()?;
    let args = AnswerArgs { reject: !args.approve, ..args };
    let printed = call.run(|setup| answer::answer(setup, args))?;
    Ok(printed.into_reply())
}

pub(super) fn list_requests(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let input: RequestsInput = given.parse()?;
    let shows_one = input.request_id.is_some();
    let verb = input.request_id.map(|id| RequestsVerb::Show { id });
    let args = RequestsArgs { all: input.all, verb };
    let printed = call.run(|setup| requests::requests(setup, &args))?;
    Ok(if shows_one { printed.into_reply() } else { printed.into_list("requests") })
}

pub(super) fn submit_plan(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let SubmitPlanInput { plan } = given.parse()?;
    let plan = needed(Some(plan), "plan")?;
    call.with(|setup| {
        let team = setup.team(Action::Talk)?;
        let filed = ops::decisions::ask::submit_plan(&setup.ctx, &team, None, plan)?;
        Ok(Reply::of(json!(filed)))
    })
}

pub(super) fn ask_permission(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let args: PermissionArgs = given.parse()?;
    if args.command.is_some() == args.input.is_some() {
        let problem = "give `command`, or `tool` and `input`".to_owned();
        return Err(Failure::usage(problem, "a command is what a shell runs"));
    }
    let printed = call.run(|setup| ask::ask(setup, AskVerb::Permission(args)))?;
    Ok(printed.into_reply())
}

pub(super) fn read_inbox(call: &ToolCall, given: ToolArguments) -> Result<Reply, Failure> {
    let input: ReadInboxInput = given.parse()?;
    let wait = Duration::try_from_secs_f64(input.wait).unwrap_or_default().min(MAX_WAIT);
    let _permit = if wait.is_zero() { None } else { Some(call.begin_wait()?) };
    call.with(|setup| {
        let speaker = setup.ctx.speaker.clone();
        let named = input.name.as_deref().unwrap_or(speaker.as_str());
        let (team, owner) = setup.member(named, Action::ReadMail)?;
        let since = input.since.as_deref().map(since).transpose()?;
        let is_own = owner == speaker;
        let delivery = setup.ctx.caller.var("PHALANX_MAIL").and_then(OsStr::to_str);
        if is_own && delivery == Some("typed") {
            let message = "your messages are typed into your terminal; there is nothing to read";
            return Ok(Reply::of(json!({ "messages": [], "message": message })));
        }
        // The wrapper handles these, and types what is left to the program.
        let is_for_wrapper = |message: &Envelope| {
            is_own
                && delivery.is_some()
                && matches!(Message::parse(&message.text), Message::ShutdownRequest(_))
        };
        // Before the first read, so that no message is missed.
        let changes = team.changes().map_err(ops::OpsError::from)?;
        let look = || -> Result<Option<Vec<Envelope>>, Failure> {
            if owner.is_lead() {
                // Without it the mailbox still has what was sent before.
                let _ = ops::starting::catch_up::catch_up(&setup.ctx, &team);
            }
            let mut messages = if input.all || since.is_some() {
                read_messages(&team, &owner, true)?
            } else {
                read_news(&team, &owner)?
            };
            // A message without a valid timestamp may be recent, so it is included.
            messages.retain(|message| {
                let sent = Timestamp::parse(&message.timestamp);
                since.zip(sent).is_none_or(|(since, sent)| sent >= since)
            });
            let taken = call.messages_on_their_way();
            messages.retain(|message| !taken.contains(&message.msg_id) && !is_for_wrapper(message));
            Ok(Some(messages).filter(|messages| !messages.is_empty()))
        };
        let found = call.wait(wait, "waiting for messages", |limit| {
            let found = look()?;
            if found.is_some() || limit.is_zero() {
                return Ok(found);
            }
            changes.wait(limit);
            look()
        })?;
        let envelopes = found.unwrap_or_default();
        let entries: Vec<Value> =
            envelopes.iter().map(|message| json!(message.to_entry())).collect();
        let reply = Reply::of(json!({ "messages": entries }));
        let unread: Vec<Envelope> = envelopes.into_iter().filter(|message| !message.read).collect();
        let is_marked = is_own && !input.peek && !unread.is_empty();
        let messages = is_marked.then(|| ShownMessages {
            ctx: setup.ctx.clone(),
            team,
            owner,
            envelopes: unread,
        });
        Ok(Reply { messages, ..reply })
    })
}
