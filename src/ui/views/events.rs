//! Formats journal events, one line each: `2m ago  ada  completed #1 Check the format (2.1s)` for
//! the journal, `12.3s  ada  completed #1 Check the format (2.1s)` while a team is watched.

use crate::paint::{Paint, Tint};
use crate::team::progress::TeamProgress;
use crate::views::event_words;
use crate::views::life::{member_word, span};
use model::members::lifecycle::MemberState;
use model::team::event::{Event, EventKind};
use model::time::{self, Timestamp};
use model::{text, wire};

/// The column width of a time such as `59m ago`.
const WHEN: usize = 8;

/// The form of lines for events.
#[derive(Debug, Clone, Copy)]
pub struct EventFormat {
    pub now: Timestamp,
    /// Times are absolute, not relative to `now`.
    pub absolute: bool,
    /// Maximum number of characters in a line.
    pub width: Option<usize>,
    pub paint: Paint,
}

pub fn event_lines(events: &[Event], format: EventFormat) -> String {
    let name =
        |event: &Event| event.member.as_ref().map(|n| text::line(n.as_str())).unwrap_or_default();
    let widest = events.iter().map(|event| name(event).chars().count()).max().unwrap_or(0);
    let line = |event: &Event| {
        let when = when(event.at, format);
        let who = name(event);
        let pad = " ".repeat(widest - who.chars().count());
        let room =
            format.width.unwrap_or(usize::MAX).saturating_sub(when.chars().count() + widest + 4);
        let words = text::short(&sentence(event), room.clamp(WHEN, usize::MAX - 1));
        let paint = format.paint;
        let (when, who) = (paint.put(Tint::Dim, &when), paint.put(Tint::Bold, &who));
        let gap = if widest == 0 { "" } else { "  " };
        format!("{when}  {who}{pad}{gap}{}", paint.put(event_words::tint(event), &words))
    };
    events.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn when(at: Timestamp, format: EventFormat) -> String {
    if format.absolute { at.iso() } else { format!("{:>WHEN$}", time::ago(format.now.since(at))) }
}

/// Returns the progress line of an event, or `None` for an event that is not shown while a team is
/// watched.
pub(crate) fn progress_line(
    event: &Event,
    started_at: Timestamp,
    known: &TeamProgress,
    all: bool,
    paint: Paint,
) -> Option<String> {
    let words = match event_words::words(event) {
        Some(words) => words,
        None if all => sentence(event),
        None => return None,
    };
    let who = event.member.as_ref().map(|n| text::line(n.as_str())).unwrap_or_default();
    let pad = " ".repeat(known.name_width().saturating_sub(who.chars().count()));
    let who = event.member.as_ref().map_or(who.clone(), |n| paint.put(known.tint(n), &who));
    let took = event.task.filter(|_| event_words::is_end(event)).and_then(|id| known.elapsed(id));
    let took = took.map(|ms| format!(" ({})", span(ms))).unwrap_or_default();
    let clock = paint.put(Tint::Dim, &format!("{:>7}", span(event.at.since(started_at))));
    Some(format!("{clock}  {who}{pad}  {}{took}", paint.put(event_words::tint(event), &words)))
}

/// Returns the predicate of a sentence whose subject is the event's member.
fn sentence(event: &Event) -> String {
    let words = event_words::words(event).unwrap_or_else(|| quiet_words(event));
    let took = wire::number(&event.detail, "elapsed_ms").filter(|_| event_words::is_end(event));
    words + &took.map(|ms| format!(" ({})", span(ms))).unwrap_or_default()
}

/// Returns the text of events that are not shown while a team is watched.
fn quiet_words(event: &Event) -> String {
    use EventKind as Kind;
    let part = |key| event_words::detail(event, key).filter(|words| !words.is_empty());
    let some =
        |key, words: &str| part(key).map(|part| format!("{words}{part}")).unwrap_or_default();
    match event.event {
        Kind::TeamCreated => "team created".to_owned(),
        Kind::TeamDeleted => "team deleted".to_owned(),
        Kind::LeadStarted => format!("process {} leads the team", number(event, "pid")),
        Kind::HostLost => format!("a host was declared lost{}", some("host", ": ")),
        Kind::LeadAdopted => format!("process {} took the team over", number(event, "pid")),
        Kind::LeadEnded => format!("the lead ended{}", some("end", ": ").replace('_', " ")),
        Kind::MemberAsked => format!("is to be started{}", some("profile", " as ")),
        Kind::MemberPlaced => {
            format!("has a place{}{}", some("backend", " in "), some("pane", ", pane "))
        }
        Kind::MemberState => state_words(event),
        Kind::MemberHidden => "was hidden".to_owned(),
        Kind::MemberShown => "was shown again".to_owned(),
        Kind::MessageSent => {
            let kind = part("kind").unwrap_or_else(|| "message".to_owned()).replace('_', " ");
            format!("got a message ({kind}){}", some("from", " from "))
        }
        Kind::MessageHandled => format!("read {}", messages(event)),
        Kind::MessageStaged => format!("{} typed into its program", messages(event)),
        Kind::MessageSubmitted => format!("{} submitted to its program", messages(event)),
        Kind::TurnEnded => "ended a turn".to_owned(),
        Kind::TaskCreated => {
            format!("{}{}", event_words::with_task(event, "created"), some("by", " by "))
        }
        Kind::TaskUpdated => {
            let fields = Some(event_words::fields(event)).filter(|fields| !fields.is_empty());
            let fields = fields.map(|fields| format!(" ({fields})")).unwrap_or_default();
            format!("{}{fields}{}", event_words::with_task(event, "updated"), some("by", " by "))
        }
        Kind::ShutdownEnded => match part("outcome").as_deref() {
            Some("closed") => "agreed to end".to_owned(),
            Some("gone") => "had ended before it was asked".to_owned(),
            Some(other) => format!("shutdown ended: {}", other.replace('_', " ")),
            None => "shutdown ended".to_owned(),
        },
        Kind::ShutdownVerified => {
            let deviations = event.detail.get("deviations").and_then(|found| found.as_array());
            match deviations.map_or(0, Vec::len) {
                0 => "shutdown checked: all in order".to_owned(),
                1 => "shutdown checked: 1 deviation".to_owned(),
                some => format!("shutdown checked: {some} deviations"),
            }
        }
        Kind::RequestFiled => {
            let state = some("state", ", ").replace('_', " ");
            format!("asks for a {}{state}{}", kind_of(event), some("summary", ": "))
        }
        Kind::RequestAnnounced => {
            format!("waits for an answer to its {}{}", kind_of(event), some("summary", ": "))
        }
        Kind::RequestDecided | Kind::AnswerTyped => {
            format!("request{} answered", some("request_id", " "))
        }
        Kind::PlacementVerdict => format!("its place was checked{}", some("verdict", ": ")),
        Kind::WorktreeMade => {
            let from = some("from", ", from ");
            format!("has a worktree{}{}{from}", some("path", " at "), some("branch", " on branch "))
        }
        Kind::WorkLanded => {
            format!("its work landed{}{}", some("into", " on "), some("kind", ": "))
        }
        Kind::ReviewPassed => format!("its work was passed{}", some("by", " by ")),
        Kind::WorkDropped => "its work was dropped".to_owned(),
        Kind::WorkTakenBack => format!("its work was taken off {}", some("into", "")),
        Kind::CommentResolved => format!("comment{} is resolved", some("comment", " ")),
        Kind::PullRequestOpened => {
            format!("a pull request for its work was opened{}", some("url", ": "))
        }
        Kind::WorktreeRemoved => format!("its worktree was removed{}", some("path", ": ")),
        Kind::Repaired => {
            format!("doctor repaired {}{}", part("what").unwrap_or_default(), some("where", " at "))
        }
        Kind::HookRan => {
            let (hook, outcome) =
                (part("hook").unwrap_or_default(), some("outcome", ": ").replace('_', " "));
            format!("hook {hook}{outcome}")
        }
        // `event_words::words` always has a text for these.
        Kind::MemberReady
        | Kind::MemberServes
        | Kind::MemberRenamed
        | Kind::MemberStartFailed
        | Kind::MemberFallback
        | Kind::MemberHealth
        | Kind::MemberPrompt
        | Kind::RestartDelayed
        | Kind::BudgetReached
        | Kind::MemberExited
        | Kind::MemberLeft
        | Kind::MessageUndelivered
        | Kind::HandoffSent
        | Kind::HandoffReceived
        | Kind::TurnInterrupted
        | Kind::TaskClaimed
        | Kind::TaskAssigned
        | Kind::TaskCompleted
        | Kind::TaskFailed
        | Kind::TaskCancelled
        | Kind::TaskSubmitted
        | Kind::TaskApproved
        | Kind::TaskRejected
        | Kind::TaskStale
        | Kind::TaskRecovered
        | Kind::TaskCommented
        | Kind::TaskProgress
        | Kind::TaskAttached
        | Kind::TaskReleased
        | Kind::TaskRetried
        | Kind::TaskDeleted
        | Kind::TaskVanished
        | Kind::TaskChanged
        | Kind::TaskRewritten
        | Kind::ShutdownRequested
        | Kind::Reminded
        | Kind::Escalated
        | Kind::Recovered
        | Kind::FileQuarantined
        | Kind::SettingsChanged
        | Kind::Typed
        | Kind::ReviewSent
        | Kind::CommentAnswered
        | Kind::Warning => event.event.as_str().replace('_', " "),
    }
}

fn state_words(event: &Event) -> String {
    let word = event.detail.get("state").cloned().unwrap_or_default();
    let words = match serde_json::from_value::<MemberState>(word) {
        Ok(MemberState::Completed) => "has ended",
        Ok(MemberState::Failed) => "has failed",
        Ok(MemberState::Killed) => "was ended",
        Ok(MemberState::Disappeared) => "has disappeared",
        Ok(MemberState::AwaitingPlan) => "waits for approval of its plan",
        Ok(MemberState::AwaitingPermission) => "waits for permission",
        Ok(state) => return event_words::with_reason(event, &format!("is {}", member_word(state))),
        Err(_) => "is in another state",
    };
    event_words::with_reason(event, words)
}

fn kind_of(event: &Event) -> String {
    let kind = event_words::detail(event, "kind").filter(|kind| kind != "dialog");
    kind.unwrap_or_else(|| "decision".to_owned()).replace('_', " ")
}

fn messages(event: &Event) -> String {
    match wire::texts(&event.detail, "msg_ids").len() {
        1 => "1 message".to_owned(),
        some => format!("{some} messages"),
    }
}

fn number(event: &Event, key: &str) -> u64 {
    wire::number(&event.detail, key).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::progress::tests::{event, name, run};
    use model::team::event::Note;

    fn format(width: Option<usize>) -> EventFormat {
        EventFormat {
            now: Timestamp(1_124_000),
            absolute: false,
            width,
            paint: Paint { on: false },
        }
    }

    #[test]
    fn run_is_formatted_as_sentences_with_relative_times() {
        assert_eq!(
            event_lines(&run(), format(None)),
            "  2m ago       created #1 Check the format\n\
             \x20 2m ago       created #2 Run the \u{241b}[31mtests\n\
             \x20 2m ago       created #3 Publish\n\
             \x20 2m ago  ada  is to be started as worker\n\
             \x20 2m ago  ada  is starting\n\
             \x20 2m ago  ada  is idle\n\
             \x20 2m ago  ada  began #1 Check the format\n\
             \x20 2m ago  ada  is working\n\
             \x20 2m ago  ada  completed #1 Check the format (2.1s)\n\
             \x20 2m ago  ada  began #2 Run the \u{241b}[31mtests\n\
             \x20 2m ago  ada  failed #2 Run the \u{241b}[31mtests, exit code 7 (1.4s)"
        );
    }

    #[test]
    fn lines_are_cut_to_the_terminal_width() {
        let text = event_lines(&run(), format(Some(30)));
        assert!(text.lines().all(|line| line.chars().count() <= 30), "{text}");
        assert!(text.contains("completed #1 C…"), "{text}");
    }

    #[test]
    fn absolute_times_are_in_iso_form() {
        let events = event(0, Note::of(EventKind::LeadStarted).with("pid", 7));
        let format = EventFormat { absolute: true, ..format(None) };
        assert_eq!(
            event_lines(&[events], format),
            "1970-01-01T00:16:40.000Z  process 7 leads the team"
        );
    }

    #[test]
    fn events_hidden_while_watching_are_sentences_too() {
        let ada = name("ada");
        let about_ada = |kind| Note::of(kind).member(&ada);
        let table = [
            (
                Note::of(EventKind::LeadEnded).with("end", "tasks_over"),
                "the lead ended: tasks over",
            ),
            (
                about_ada(EventKind::MemberPlaced).with("backend", "tmux").with("pane", "%3"),
                "has a place in tmux, pane %3",
            ),
            (
                about_ada(EventKind::MemberPlaced).with("backend", "pty").with("pane", ""),
                "has a place in pty",
            ),
            (
                about_ada(EventKind::MemberState).with("state", "awaiting_plan"),
                "waits for approval of its plan",
            ),
            (
                about_ada(EventKind::MemberState)
                    .with("state", "idle")
                    .with("reason", "blocked: needs_login (rule login: Sign in)"),
                "needs a login: Sign in; `phalanx attach ada`, and log in on its screen",
            ),
            (
                about_ada(EventKind::MemberState)
                    .with("state", "working")
                    .with("reason", "retrying: 529 refused · attempt 5/10"),
                "is working: retrying: 529 refused · attempt 5/10",
            ),
            (
                about_ada(EventKind::MemberPrompt).with("text", "Overwrite it?"),
                "waits at its prompt: Overwrite it?; `phalanx type ada TEXT --enter` answers it",
            ),
            (
                about_ada(EventKind::MessageSent)
                    .with("from", "bob")
                    .with("kind", "idle_notification"),
                "got a message (idle notification) from bob",
            ),
            (
                about_ada(EventKind::MessageHandled).with("msg_ids", vec!["a", "b"]),
                "read 2 messages",
            ),
            (
                about_ada(EventKind::MessageSent)
                    .with("from", "bob")
                    .with("kind", "dev_progress")
                    .with("summary", "reports 1/T1 complete"),
                "got a handoff: bob reports 1/T1 complete",
            ),
            (
                about_ada(EventKind::HandoffReceived)
                    .with("from_team", "web")
                    .with("type", "api_contract")
                    .with("summary", "agrees"),
                "got a handoff from team web (api_contract): agrees",
            ),
            (
                about_ada(EventKind::HandoffSent).with("to_team", "web").with("type", "note"),
                "handed over to team web (note)",
            ),
            (about_ada(EventKind::ShutdownEnded).with("outcome", "closed"), "agreed to end"),
            (
                about_ada(EventKind::ShutdownVerified).with("deviations", vec!["x"]),
                "shutdown checked: 1 deviation",
            ),
            (
                about_ada(EventKind::RequestFiled)
                    .with("kind", "permission")
                    .with("state", "allowed")
                    .with("summary", "Bash ls"),
                "asks for a permission, allowed: Bash ls",
            ),
            (
                about_ada(EventKind::HookRan).with("hook", "Stop").with("outcome", "done"),
                "hook Stop: done",
            ),
            (
                about_ada(EventKind::MemberHealth).with("state", "unresponsive"),
                "warning: unresponsive",
            ),
        ];
        for (note, expected) in table {
            assert_eq!(sentence(&event(0, note)), expected);
        }
    }

    fn lines(events: &[Event], all: bool) -> Vec<String> {
        let mut known = TeamProgress::default();
        let line = |known: &mut TeamProgress, e: &Event| {
            known.apply(e);
            progress_line(e, Timestamp(1_000_000), known, all, Paint { on: false })
        };
        events.iter().filter_map(|e| line(&mut known, e)).collect()
    }

    #[test]
    fn run_is_formatted_as_plain_lines() {
        assert_eq!(
            lines(&run(), false),
            [
                "   0.4s  ada  began #1 Check the format",
                "   2.5s  ada  completed #1 Check the format (2.1s)",
                "   2.6s  ada  began #2 Run the \u{241b}[31mtests",
                "   4.0s  ada  failed #2 Run the \u{241b}[31mtests, exit code 7 (1.4s)",
            ]
        );
        assert_eq!(lines(&run(), true).len(), run().len());
    }

    #[test]
    fn ends_and_warnings_include_their_reason() {
        let ada = || name("ada");
        let events = [
            event(1, Note::of(EventKind::MemberAsked).member(&ada())),
            event(
                100,
                Note::of(EventKind::MemberLeft).member(&ada()).with("reason", "exit code 3"),
            ),
            event(200, Note::of(EventKind::Warning).with("text", "odd")),
            event(
                300,
                Note::of(EventKind::ShutdownEnded)
                    .member(&ada())
                    .with("outcome", "rejected")
                    .with("answer", "busy"),
            ),
            event(300, Note::of(EventKind::ShutdownEnded).member(&ada()).with("outcome", "closed")),
        ];
        assert_eq!(
            lines(&events, false),
            [
                "   0.1s  ada  stopped: exit code 3",
                "   0.2s       warning: odd",
                "   0.3s  ada  refused to end: busy"
            ]
        );
    }
}
