//! The texts and colours of journal events.

use crate::paint::Tint;
use crate::views::life::span;
use model::decisions::question::Typed;
use model::members::need::Need;
use model::members::record;
use model::team::event::{Event, EventKind};
use model::{text, wire};

/// Maximum length of texts from events, in characters.
const LONGEST: usize = 200;

pub(crate) fn is_end(event: &Event) -> bool {
    matches!(event.event, EventKind::TaskCompleted | EventKind::TaskFailed)
}

pub(crate) fn tint(event: &Event) -> Tint {
    use EventKind as Kind;
    match event.event {
        Kind::TaskFailed | Kind::MemberStartFailed => Tint::Bad,
        Kind::TaskCompleted | Kind::MemberServes => Tint::Good,
        Kind::MemberFallback | Kind::MemberHealth | Kind::MemberPrompt => Tint::Warn,
        Kind::RestartDelayed | Kind::BudgetReached | Kind::Warning => Tint::Warn,
        Kind::RequestFiled | Kind::Reminded | Kind::Escalated => Tint::Warn,
        Kind::TaskVanished | Kind::TaskRewritten => Tint::Warn,
        _ if is_waiting(event) => Tint::Warn,
        _ => Tint::Plain,
    }
}

/// Returns true for a program that begins to wait for a person, as its screen shows.
pub(crate) fn is_waiting(event: &Event) -> bool {
    match event.event {
        EventKind::MemberPrompt => event.detail.contains_key("text"),
        EventKind::MemberState => {
            wire::text(&event.detail, "reason").is_some_and(|why| record::need_in(&why).is_some())
        }
        _ => false,
    }
}

/// Returns a detail of the event, with control characters made visible.
pub(crate) fn detail(event: &Event, key: &str) -> Option<String> {
    wire::text(&event.detail, key).map(|words| text::short(&words, LONGEST))
}

pub(crate) fn with_reason(event: &Event, words: &str) -> String {
    match detail(event, "reason").or_else(|| detail(event, "answer")) {
        Some(reason) => format!("{words}: {reason}"),
        None => words.to_owned(),
    }
}

pub(crate) fn with_task(event: &Event, words: &str) -> String {
    let id = event.task.map(|id| format!("#{id}")).unwrap_or_default();
    format!("{words} {id} {}", detail(event, "subject").unwrap_or_default())
}

/// Returns the line that says what an ended task has brought.
fn result(event: &Event) -> String {
    detail(event, "result").map(|line| format!(": {line}")).unwrap_or_default()
}

/// Returns the text of an event, or `None` if it is not shown while a team is watched.
pub fn words(event: &Event) -> Option<String> {
    use EventKind as Kind;
    match event.event {
        Kind::MemberReady => Some("runs".to_owned()),
        Kind::MemberServes => Some(format!("is ready: {}", detail(event, "condition")?)),
        Kind::MemberRenamed => Some(format!("was called {} before", detail(event, "from")?)),
        Kind::MemberStartFailed => Some(with_reason(event, "did not start")),
        Kind::MemberFallback => Some(fallback_words(event)),
        Kind::MemberHealth => Some(match wire::text(&event.detail, "state").as_deref() {
            Some("unresponsive") => with_reason(event, "warning: unresponsive"),
            Some("limited") => with_reason(event, "warning: at its usage limit"),
            Some("error") => with_reason(event, "warning: ended its turn with an error"),
            Some(_) | None
                if wire::text(&event.detail, "prev_state").as_deref() == Some("limited") =>
            {
                "works again after its usage limit".to_owned()
            }
            Some(_) | None => "answers again".to_owned(),
        }),
        Kind::MemberPrompt => Some(match detail(event, "text") {
            Some(line) => with_remedy(event, Need::Prompt, &format!("waits at its prompt: {line}")),
            None => "no longer waits at its prompt".to_owned(),
        }),
        Kind::MemberState => waiting_words(event),
        Kind::RestartDelayed => Some(restart_words(event)),
        Kind::BudgetReached => Some(format!("warning: {}", detail(event, "text")?)),
        Kind::MemberExited => Some(exit_words(event)),
        Kind::MemberLeft => Some(with_reason(event, "stopped")),
        Kind::TaskClaimed => Some(with_task(event, "began")),
        Kind::TaskCompleted => Some(with_task(event, "completed") + &result(event)),
        Kind::TaskFailed => {
            let code =
                wire::number(&event.detail, "exit_code").map(|code| format!(", exit code {code}"));
            let failed = with_task(event, "failed") + &code.unwrap_or_default();
            Some(with_reason(event, &failed) + &result(event))
        }
        Kind::TaskAssigned => Some(with_task(event, "was given")),
        Kind::TaskCancelled => Some(with_reason(event, &with_task(event, "cancelled"))),
        Kind::TaskSubmitted => Some(with_task(event, "submitted for approval")),
        Kind::TaskApproved => Some(with_task(event, "approved")),
        Kind::TaskRejected => Some(with_reason(event, &with_task(event, "sent back"))),
        Kind::TaskStale => Some(with_task(event, "warning: has been silent about")),
        Kind::TaskRecovered => Some(with_task(event, "works again on")),
        Kind::TaskCommented => {
            let said = detail(event, "text").unwrap_or_default();
            Some(format!("{}: {said}", with_task(event, "commented on")))
        }
        Kind::TaskProgress => {
            let percent = wire::number(&event.detail, "percent").unwrap_or_default();
            let step = detail(event, "step").map(|step| format!(", {step}")).unwrap_or_default();
            Some(format!("{}: {percent} %{step}", with_task(event, "reports on")))
        }
        Kind::TaskAttached => {
            let path = detail(event, "path").unwrap_or_default();
            Some(format!("{}: {path}", with_task(event, "attached a file to")))
        }
        Kind::TaskReleased => Some(with_reason(event, &with_task(event, "gave back"))),
        Kind::TaskRetried => Some(with_task(event, "retries")),
        Kind::TaskDeleted => Some(with_task(event, "deleted")),
        Kind::TaskVanished => Some(with_task(event, "warning: another program took away")),
        Kind::TaskChanged => {
            Some(format!("{}: {}", with_task(event, "another program changed"), changes(event)))
        }
        Kind::TaskRewritten => Some(format!(
            "{} ({})",
            with_task(event, "warning: another program rewrote"),
            fields(event)
        )),
        Kind::ShutdownRequested => Some(with_reason(event, "is stopping")),
        Kind::ShutdownEnded => outcome_words(event),
        Kind::RequestFiled => asked_words(event),
        Kind::RequestDecided => decided_words(event),
        Kind::Reminded => Some(reminded_words(event)),
        Kind::Escalated => Some(escalated_words(event)),
        Kind::AnswerTyped => {
            let typed: Typed = detail(event, "typed")?.parse().ok()?;
            Some(format!("answer to {}: {}", detail(event, "request_id")?, typed.describe()))
        }
        Kind::Typed => Some(format!("was typed into by {}", detail(event, "by")?)),
        Kind::Recovered => {
            Some(format!("put right what was left half done: {}", recovered_words(event)))
        }
        Kind::Warning => Some(format!("warning: {}", detail(event, "text").unwrap_or_default())),
        Kind::FileQuarantined => {
            Some(format!("warning: {} cannot be read", detail(event, "path").unwrap_or_default()))
        }
        Kind::MessageSent if wire::text(&event.detail, "kind").as_deref() == Some("message") => {
            let preview = detail(event, "preview").map(|text| format!(": {text}"));
            let from = detail(event, "from").unwrap_or_default();
            Some(format!("got a message from {from}{}", preview.unwrap_or_default()))
        }
        Kind::MessageSent if event.detail.contains_key("summary") => {
            let part = |key| detail(event, key).unwrap_or_default();
            Some(format!("got a handoff: {} {}", part("from"), part("summary")))
        }
        Kind::HandoffSent => Some(handoff_words(event, "handed over to team", "to_team")),
        Kind::HandoffReceived => Some(handoff_words(event, "got a handoff from team", "from_team")),
        Kind::TurnInterrupted => Some("broke off its turn for an urgent message".to_owned()),
        Kind::MessageUndelivered => Some(with_reason(event, "cannot be given its mail")),
        Kind::MessageStaged | Kind::MessageSubmitted | Kind::TurnEnded => None,
        Kind::HookRan => held_words(event),
        Kind::SettingsChanged => {
            let keys = wire::texts(&event.detail, "keys").join(", ");
            Some(format!("settings changed: {}", text::short(&keys, LONGEST)))
        }
        Kind::MessageSent | Kind::MessageHandled | Kind::TeamCreated | Kind::TeamDeleted => None,
        Kind::LeadStarted
        | Kind::LeadAdopted
        | Kind::HostLost
        | Kind::LeadEnded
        | Kind::MemberAsked
        | Kind::MemberPlaced => None,
        Kind::TaskCreated | Kind::TaskUpdated | Kind::PlacementVerdict => None,
        Kind::MemberHidden | Kind::MemberShown | Kind::Repaired | Kind::RequestAnnounced => None,
        Kind::ReviewSent => {
            let (by, comments) = (detail(event, "by")?, detail(event, "comments")?);
            Some(format!("got a review of {by}: {comments}"))
        }
        Kind::CommentAnswered => {
            let (comment, answer) = (detail(event, "comment")?, detail(event, "answer")?);
            let text = detail(event, "text").filter(|text| !text.is_empty());
            let text = text.map(|text| format!(": {text}")).unwrap_or_default();
            Some(format!("answered {comment}, {answer}{text}"))
        }
        Kind::WorktreeMade
        | Kind::WorktreeRemoved
        | Kind::WorkLanded
        | Kind::WorkTakenBack
        | Kind::WorkDropped
        | Kind::ReviewPassed
        | Kind::PullRequestOpened
        | Kind::CommentResolved => None,
        // The final report contains it.
        Kind::ShutdownVerified => None,
    }
}

/// Describes a state in which the program waits for a person, as its screen shows.
fn waiting_words(event: &Event) -> Option<String> {
    let reason = wire::text(&event.detail, "reason")?;
    let (need, text) = record::need_in(&reason)?;
    let words = format!("{}: {}", need.words(), text::short(text, LONGEST));
    Some(with_remedy(event, need, &words))
}

fn with_remedy(event: &Event, need: Need, words: &str) -> String {
    match &event.member {
        Some(name) => format!("{words}; {}", need.remedy(name)),
        None => words.to_owned(),
    }
}

/// Describes a handoff between teams: `handed over to team web (api_contract): proposes …`.
fn handoff_words(event: &Event, words: &str, team: &str) -> String {
    let part = |key| detail(event, key).unwrap_or_default();
    let summary = Some(part("summary")).filter(|summary| !summary.is_empty());
    let summary = summary.map(|summary| format!(": {summary}")).unwrap_or_default();
    format!("{words} {} ({}){summary}", part(team), part("type"))
}

/// Describes the exit of a member's program: `exited with code 7 after 50 ms`.
fn exit_words(event: &Event) -> String {
    let number = |key| wire::number(&event.detail, key);
    let part = |key| number(key).and_then(|number| i32::try_from(number).ok());
    let ran_ms = number("elapsed_ms").unwrap_or_default();
    let ending = record::ending(part("exit_code"), part("signal"), ran_ms);
    match detail(event, "last_line") {
        Some(line) => format!("{ending}: {line}"),
        None => ending,
    }
}

/// Describes the state of the circuit breaker of a restarted member.
fn restart_words(event: &Event) -> String {
    let number = |key| wire::number(&event.detail, key);
    match (number("failures").unwrap_or_default(), number("delay_ms")) {
        (0, _) => "was started by hand: its earlier failures no longer count".to_owned(),
        (failures, Some(delay)) => {
            format!("consecutive failures: {failures}; it is started again in {}", span(delay))
        }
        (failures, None) => format!("consecutive failures: {failures}; it is not started again"),
    }
}

/// Describes a fallback to another backend. The line repeats the member's name, which also precedes
/// it.
fn fallback_words(event: &Event) -> String {
    let part = |key| detail(event, key).unwrap_or_default();
    let who = event.member.as_ref().map(|n| text::line(n.as_str())).unwrap_or_default();
    format!("[FALLBACK] {}: {} → {} for {who}", part("reason"), part("from"), part("to"))
}

/// Describes a hook that held an action up; a failed hook has a warning of its own.
fn held_words(event: &Event) -> Option<String> {
    detail(event, "outcome").filter(|outcome| outcome == "held")?;
    Some(with_reason(event, &format!("held by hook {}", detail(event, "hook")?)))
}

/// Describes the changes of a task by another program.
fn changes(event: &Event) -> String {
    let status = detail(event, "status").map(|status| format!("now {status}"));
    let owner = detail(event, "owner").map(|owner| {
        if owner.is_empty() { "owned by nobody".to_owned() } else { format!("owned by {owner}") }
    });
    let fields = Some(fields(event)).filter(|f| !f.is_empty());
    [status, owner, fields].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

pub(crate) fn fields(event: &Event) -> String {
    text::short(&wire::texts(&event.detail, "fields").join(", "), LONGEST)
}

/// Describes a new request; one that was decided at once is covered by its decision.
fn asked_words(event: &Event) -> Option<String> {
    wire::text(&event.detail, "state").filter(|state| state == "pending")?;
    let (kind, id) = (detail(event, "kind")?, detail(event, "request_id")?);
    let summary = detail(event, "summary").unwrap_or_default();
    let words = format!("asks for a {kind}: {summary}");
    Some(match wire::text(&event.detail, "answered_by").as_deref() {
        Some("pane") => with_remedy(event, Need::Dialog, &words),
        Some("text") => format!("{words}; `phalanx answer {id} --answer TEXT` or `--reject`"),
        Some(_) | None => format!("{words}; `phalanx answer {id} --approve` or `--reject`"),
    })
}

fn decided_words(event: &Event) -> Option<String> {
    let (kind, outcome) = (detail(event, "kind")?, detail(event, "outcome")?.replace('_', " "));
    let key = detail(event, "via").map(|key| format!(" with the key {key} of the dashboard"));
    let what = detail(event, "summary").map(|summary| format!(" ({summary})"));
    let why = detail(event, "rule").or_else(|| detail(event, "reason"));
    let why = why.map(|why| format!(": {why}"));
    let by = detail(event, "by")?;
    let [key, what, why] = [key, what, why].map(Option::unwrap_or_default);
    Some(format!("{kind} {outcome} by {by}{key}{what}{why}"))
}

/// Describes the overdue item: the answer to a request, the decision about a task that a member has
/// set a reminder for, or an update of a task.
fn overdue_words(event: &Event) -> String {
    match (detail(event, "kind"), detail(event, "request_id")) {
        (Some(kind), Some(id)) => {
            let summary = detail(event, "summary").unwrap_or_default();
            format!("waits for an answer to {kind} {id}: {summary}")
        }
        (_, _) => match detail(event, "text") {
            Some(text) => format!("{}: {text}", with_task(event, "waits for a decision about")),
            None => with_task(event, "says nothing of"),
        },
    }
}

fn reminded_words(event: &Event) -> String {
    let number = |key| wire::number(&event.detail, key).unwrap_or_default();
    format!("reminder {} of {}: {}", number("nth"), number("of"), overdue_words(event))
}

fn escalated_words(event: &Event) -> String {
    let after = wire::number(&event.detail, "after").unwrap_or_default();
    let failed = match wire::text(&event.detail, "mode").as_deref() {
        Some("fail_task") => "; the task is failed",
        Some(_) | None => "",
    };
    format!("warning: {} (reminders: {after}){failed}", overdue_words(event))
}

fn recovered_words(event: &Event) -> String {
    let part = |key: &str, words: &str| {
        let what = wire::texts(&event.detail, key).join(", ");
        (!what.is_empty()).then(|| format!("{what} {words}"))
    };
    let parts = [
        part("taken_in", "taken in"),
        part("taken_back", "taken back"),
        part("removed", "taken off the team"),
        part("released", "free again"),
    ];
    text::short(&parts.into_iter().flatten().collect::<Vec<_>>().join("; "), LONGEST)
}

/// Describes the outcome of a shutdown; after consent the event of the member's leaving suffices.
fn outcome_words(event: &Event) -> Option<String> {
    match wire::text(&event.detail, "outcome").as_deref() {
        Some("rejected") => Some(with_reason(event, "refused to end")),
        Some("timed_out") => Some(with_reason(event, "was ended, it had not answered")),
        Some("forced") => Some("was stopped by force".to_owned()),
        Some(_) | None => None,
    }
}
