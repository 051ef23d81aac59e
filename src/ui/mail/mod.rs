//! Formats messages for people: protocol messages are shown as sentences, never as JSON.

pub(crate) mod handoffs;

use crate::paint::{Paint, Tint};
use crate::views::life::span;
use model::mail::envelope::Envelope;
use model::mail::handoff::Handoff;
use model::mail::protocol::{Message, PermissionVerdict, ShutdownApproved};
use model::text;
use model::time::{self, Timestamp};

/// Maximum length of a sentence or summary, in characters.
const LONGEST: usize = 100;

/// The readable form of a message: a sentence about its sender, and a text.
struct MessageText {
    sentence: Option<String>,
    body: String,
}

/// Formats a message: a header with sender, time and summary, then the text, indented so that it
/// cannot imitate a header. The time is relative to `now`; without `now` it is shown as the sender
/// wrote it.
pub fn message(envelope: &Envelope, now: Option<Timestamp>, paint: Paint) -> String {
    let from = paint.put(Tint::member(envelope.color.as_deref()), &text::line(&envelope.from));
    let sent =
        now.and_then(|now| Some(time::ago(now.since(Timestamp::parse(&envelope.timestamp)?))));
    let at = paint.put(Tint::Dim, &sent.unwrap_or_else(|| text::short(&envelope.timestamp, 40)));
    let text = message_text(&Message::parse(&envelope.text));
    let about = text.sentence.or_else(|| envelope.summary.clone());
    let about =
        about.map(|words| format!("  {}", text::short(&words, LONGEST))).unwrap_or_default();
    let read = if envelope.read { "  (read)" } else { "" };
    let body = text::block(text.body.trim_end());
    let lines = body.lines().map(|line| format!("\n  {line}")).collect::<String>();
    format!("{from}  {at}{about}{read}{lines}")
}

/// Returns the message in one line: what it says about its sender, its summary, or its text.
pub(crate) fn in_one_line(envelope: &Envelope) -> String {
    let text = message_text(&Message::parse(&envelope.text));
    let first = text.body.lines().map(str::trim).find(|line| !line.is_empty());
    text.sentence
        .or_else(|| envelope.summary.clone())
        .or_else(|| first.map(str::to_owned))
        .unwrap_or_default()
}

fn message_text(message: &Message) -> MessageText {
    let only = |sentence: String| MessageText { sentence: Some(sentence), body: String::new() };
    let with = |sentence: String, body: Option<&str>| MessageText {
        sentence: Some(sentence),
        body: body.unwrap_or_default().to_owned(),
    };
    let because =
        |reason: Option<&str>| reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    match message {
        Message::Text(text) => MessageText { sentence: None, body: text.clone() },
        Message::Unknown { kind, .. } => match Handoff::of_message(message) {
            Some(Ok(handoff)) => with(handoff.sentence(), Some(&handoff.details().join("\n"))),
            Some(Err(problem)) => {
                only(format!("sent a faulty `{kind}` ({problem}); `--json` shows it whole"))
            }
            None => only(format!("sent a message of type `{kind}`; `--json` shows it whole")),
        },
        Message::Malformed { kind, problem, .. } => {
            only(format!("sent a faulty `{kind}` ({problem}); `--json` shows it whole"))
        }
        Message::IdleNotification(idle) => {
            let task = idle.completed_task_id.as_ref().map(|id| {
                let state = idle.completed_status.as_deref().unwrap_or("completed");
                format!(" after task #{id} ({state})")
            });
            let why = idle.failure_reason.as_deref().or(idle.summary.as_deref());
            let how = match idle.idle_reason.as_deref() {
                Some("failed") => "is idle after an error",
                Some("interrupted") => "was interrupted",
                Some(_) | None => "is idle",
            };
            only(format!("{how}{}{}", task.unwrap_or_default(), because(why)))
        }
        Message::TaskAssignment(task) => {
            let subject =
                task.subject.as_deref().map(|subject| format!(" {subject}")).unwrap_or_default();
            with(format!("gives you task #{}{subject}", task.task_id), task.description.as_deref())
        }
        Message::TaskCompleted(task) => {
            let subject = task.task_subject.as_deref().map(|subject| format!(" {subject}"));
            only(format!("completed task #{}{}", task.task_id, subject.unwrap_or_default()))
        }
        Message::ShutdownRequest(ask) => {
            let limit = ask.deadline_seconds.map(|s| format!(" within {}", span(s * 1000)));
            let reason = because(ask.reason.as_deref());
            let answer =
                format!("answer with `phalanx answer {} --approve` or `--reject`", ask.request_id);
            with(format!("asks you to end{}{reason}", limit.unwrap_or_default()), Some(&answer))
        }
        Message::ShutdownApproved(answer) => only(format!("agrees to end{}", work_left(answer))),
        Message::ShutdownRejected(answer) => {
            only(format!("refuses to end{}", because(answer.reason.as_deref())))
        }
        Message::PlanApprovalRequest(plan) => with(
            format!("asks for approval of its plan ({})", plan.request_id),
            plan.plan_content.as_deref(),
        ),
        Message::PlanApprovalResponse(answer) => {
            let verdict = if answer.approved { "approves" } else { "rejects" };
            only(format!("{verdict} your plan{}", because(answer.feedback.as_deref())))
        }
        Message::PermissionRequest(ask) => {
            let about = because(ask.description.as_deref());
            only(format!(
                "asks for permission to use {} ({}){about}",
                ask.tool_name, ask.request_id
            ))
        }
        Message::PermissionResponse(answer) => match &answer.verdict {
            PermissionVerdict::Allowed { .. } => {
                only(format!("allows request {}", answer.request_id))
            }
            PermissionVerdict::Denied { error, .. } => {
                only(format!("denies request {}: {error}", answer.request_id))
            }
        },
        Message::SandboxPermissionRequest(ask) => {
            only(format!("asks for permission to connect to {} ({})", ask.host, ask.request_id))
        }
        Message::SandboxPermissionResponse(answer) => {
            let verdict = if answer.allow { "allows" } else { "denies" };
            let host = answer.host.as_deref().map(|host| format!(" to {host}")).unwrap_or_default();
            only(format!("{verdict} the connection{host}"))
        }
        Message::TeamPermissionUpdate(update) => {
            let tool =
                update.tool_name.as_deref().map(|tool| format!(" for {tool}")).unwrap_or_default();
            only(format!("changes the team's permissions{tool}"))
        }
        Message::ModeSetRequest(ask) => only(format!("asks you to work in mode {}", ask.mode)),
        Message::TeammateTerminated(notice) => only(notice.message.clone()),
    }
}

fn work_left(answer: &ShutdownApproved) -> String {
    let status =
        answer.status.map(|status| format!("; its work is {}", status.as_str().replace('_', " ")));
    let pending = Some(answer.pending_work.join("; ")).filter(|work| !work.is_empty());
    let pending = pending.map(|work| format!("; left: {work}")).unwrap_or_default();
    status.unwrap_or_default() + &pending
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint { on: false };

    fn shown(text: &str) -> String {
        let envelope = Envelope::new("bob", text, "id".to_owned(), Timestamp(0));
        message(&envelope, Some(Timestamp(125_000)), PLAIN)
    }

    #[test]
    fn text_cannot_imitate_a_header() {
        let envelope = Envelope::new("bob", "hi\nada  now\u{7}\n", "id".to_owned(), Timestamp(0))
            .with(Some("greets"), None);
        assert_eq!(
            message(&envelope, None, PLAIN),
            "bob  1970-01-01T00:00:00.000Z  greets\n  hi\n  ada  now\u{2407}"
        );
        assert_eq!(
            message(&envelope, Some(Timestamp(0)), PLAIN).lines().next(),
            Some("bob  now  greets")
        );
    }

    #[test]
    fn protocol_messages_are_shown_as_sentences() {
        let table = [
            (
                r#"{"type":"idle_notification","from":"bob","timestamp":"t","idleReason":"available"}"#,
                "is idle",
            ),
            (
                r#"{"type":"idle_notification","from":"bob","timestamp":"t","completedTaskId":"3","completedStatus":"failed","failureReason":"exit code 7"}"#,
                "is idle after task #3 (failed): exit code 7",
            ),
            (
                r#"{"type":"task_assignment","taskId":"3","subject":"Build","description":"all","assignedBy":"team-lead","timestamp":"t"}"#,
                "gives you task #3 Build\n  all",
            ),
            (
                r#"{"type":"shutdown_request","requestId":"shutdown-1@bob","from":"team-lead","reason":"done","timestamp":"t"}"#,
                "asks you to end: done\n  answer with `phalanx answer shutdown-1@bob --approve` or `--reject`",
            ),
            (
                r#"{"type":"plan_approval_request","from":"bob","timestamp":"t","planFilePath":"p","planContent":"1. look","requestId":"plan-1"}"#,
                "asks for approval of its plan (plan-1)\n  1. look",
            ),
            (
                r#"{"type":"permission_request","request_id":"perm-1","agent_id":"bob","tool_name":"Bash","tool_use_id":"u","description":"list files","input":{"command":"ls"},"permission_suggestions":[]}"#,
                "asks for permission to use Bash (perm-1): list files",
            ),
            (
                r#"{"type":"teammate_terminated","message":"ada has shut down."}"#,
                "ada has shut down.",
            ),
            (
                r#"{"type":"dev_progress","task":"01-01/T3","plan_id":"01-01","commit":"abc1234","status":"complete","concerns":["slow\u001b[31m"]}"#,
                "reports 01-01/T3 complete (abc1234)\n  concern: slow\u{241b}[31m",
            ),
            (
                r#"{"type":"brand_new","x":1}"#,
                "sent a message of type `brand_new`; `--json` shows it whole",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(shown(text), format!("bob  2m ago  {expected}"));
        }
        assert!(shown(r#"{"type":"shutdown_request"}"#).contains("faulty `shutdown_request`"));
    }
}
