//! Announces a request or a prompt that waits for a person: a request in tmux, through the team's
//! `notify` command, and in the journal, for which the lead's terminal rings; a prompt through the
//! command only, because its launcher journals it. Each step is persisted before it is carried out,
//! so that a lead that takes over after a crash never repeats it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;

use serde_json::Value;

use super::notify::run_notify;
use crate::members::backends;
use crate::{Context, OpsError, Post, now};
use backend::tmux;
use model::board::task::Task;
use model::decisions::question::Question;
use model::decisions::user_question;
use model::id::{Incarnation, MemberName, RequestId};
use model::members::placement::Placement;
use model::team::event::{EventKind, Note};
use model::team::followup::{LastNotification, NotificationStep};
use model::text;
use store::{StoreError, TeamStore};

/// Characters of a request's summary that a message quotes.
const LONGEST: usize = 200;

/// Announces `step` of the request, unless it was announced before or the request is decided.
/// Returns when the `notify` command has ended.
pub fn announce(
    ctx: &Context,
    team: &TeamStore,
    id: &RequestId,
    step: NotificationStep,
) -> Result<(), OpsError> {
    let Some(question) = persist(team, id, step)? else { return Ok(()) };
    team.record(journal_entry(&question, step))?;
    if let NotificationStep::Escalation { .. } = step {
        let notice = Post::notice(&MemberName::lead(), compose_message(&question));
        notice.because(Some(question.event.clone())).send(team)?;
    }
    // Concurrently: tmux or the command may hang, and must not delay the other.
    thread::scope(|scope| {
        scope.spawn(|| show_in_tmux(ctx, team, &question, step));
        run_notify(team, &question.from, &described(team, &question, step))
    })
}

/// Announces the prompt at which a plain program waits through the `notify` command, unless it was
/// announced before. The launcher has journaled it.
pub fn announce_prompt(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<(), OpsError> {
    let seen = team.change_record(name, incarnation, |record| {
        let seen = record.prompt.as_mut().filter(|seen| !seen.is_announced)?;
        seen.is_announced = true;
        Some(seen.line.clone())
    })?;
    let Some(line) = seen.flatten() else { return Ok(()) };
    let subject =
        serde_json::json!({ "team": team.name(), "kind": "prompt", "from": name, "summary": line });
    run_notify(team, name, &subject)
}

/// Persists `step` as announced. Returns the question, or `None` if there is nothing to announce.
fn persist(
    team: &TeamStore,
    id: &RequestId,
    step: NotificationStep,
) -> Result<Option<Question>, OpsError> {
    let notification = LastNotification { times: step.times(), at: now() };
    let persisted = team.change_question(id, |question| {
        if !question.is_open()
            || question.last_notification.is_some_and(|last| last.times >= notification.times)
        {
            return Ok(None);
        }
        question.last_notification = Some(notification);
        Ok(Some(question.clone()))
    });
    match persisted {
        Err(StoreError::NoSuchRequest { .. }) => Ok(None),
        persisted => Ok(persisted?),
    }
}

fn journal_entry(question: &Question, step: NotificationStep) -> Note {
    let kind = match step {
        NotificationStep::First => EventKind::RequestAnnounced,
        NotificationStep::Reminder { .. } => EventKind::Reminded,
        NotificationStep::Escalation { .. } => EventKind::Escalated,
    };
    let note = Note::of(kind).because(&question.event).member(&question.from);
    let note = note.with("request_id", question.id.as_str()).with("kind", question.kind.as_str());
    counted(note.with("summary", question.summary()), step)
}

/// Begins the journal entry of a reminder about a task, or of its escalation.
pub(super) fn task_note(task: &Task, member: &MemberName, step: NotificationStep) -> Note {
    let note = match step {
        NotificationStep::First | NotificationStep::Reminder { .. } => {
            Note::of(EventKind::Reminded)
        }
        NotificationStep::Escalation { mode, .. } => {
            Note::of(EventKind::Escalated).with("mode", mode.as_str())
        }
    };
    counted(note.task(task.id).member(member).with("subject", task.subject.as_str()), step)
}

/// Adds the reminder counts of `step` to a note.
fn counted(note: Note, step: NotificationStep) -> Note {
    match step {
        NotificationStep::First => note,
        NotificationStep::Reminder { nth, of } => note.with("nth", nth).with("of", of),
        NotificationStep::Escalation { after, .. } => note.with("after", after),
    }
}

fn compose_message(question: &Question) -> String {
    let (from, kind, id) = (&question.from, question.kind.as_str(), &question.id);
    format!(
        "{from} is still waiting for an answer to its {kind} request `{id}`; earlier reminders were not answered: {}. Answer it \
         with `phalanx answer {id} {}` or `--reject`.",
        text::short(&question.summary(), LONGEST),
        user_question::option_for(&question.user_questions())
    )
}

/// The panes of one tmux server whose viewers are notified: those of members, by their marks, and
/// the caller's own.
#[derive(Default)]
struct Viewers {
    tokens: Vec<String>,
    pane: Option<String>,
}

/// Shows the announcement on the tmux clients that display the team. Errors are ignored: the
/// request is announced in other ways, too.
fn show_in_tmux(ctx: &Context, team: &TeamStore, question: &Question, step: NotificationStep) {
    let Ok(program) = backends::tmux_program(ctx) else { return };
    let mut servers: BTreeMap<PathBuf, Viewers> = BTreeMap::new();
    for record in team.member_records().unwrap_or_default() {
        if let Some(Placement::Tmux(pane)) = &record.placement
            && !record.is_elsewhere
        {
            servers
                .entry(PathBuf::from(&pane.socket))
                .or_default()
                .tokens
                .push(record.mark().to_owned());
        }
    }
    if let Some(here) = backends::caller_pane(ctx) {
        servers.entry(here.socket).or_default().pane = Some(here.inside.pane);
    }
    let notice = tmux::RequestNotice {
        team: team.name().as_str(),
        member: question.from.as_str(),
        kind: question.kind.as_str(),
        again: step != NotificationStep::First,
    };
    for (socket, viewers) in &servers {
        tmux::show_notice(&program, socket, &viewers.tokens, viewers.pane.as_deref(), &notice);
    }
}

/// Returns the request for the `notify` command.
fn described(team: &TeamStore, question: &Question, step: NotificationStep) -> Value {
    serde_json::json!({
        "team": team.name(), "request_id": question.id, "kind": question.kind, "from": question.from,
        "summary": question.summary(), "deadline": question.deadline_at.iso(), "reminder": step.times(),
    })
}
