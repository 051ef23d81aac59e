//! Unresponsive members: records and reports a silence, and computes a fingerprint of activity.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::members::output;
use crate::{Context, OpsError, Post};
use model::board::task::Task;
use model::id::{Incarnation, MemberName, TaskId};
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::team::event::{EventKind, Note};
use model::team::settings::OnHang;
use model::{text, time};
use store::TeamStore;
use sys::rand;

/// Number of screen lines that the fingerprint covers.
const SCREEN: usize = 200;
/// Characters of the screen's last line that a report quotes.
const LONGEST: usize = 160;

/// A silence that has lasted for the set time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// The member was given the task, and rests; it has not started it. It is silent if it has not
    /// taken the assignment.
    NotTaken { task: TaskId, for_ms: u64 },
    /// The task is in progress, and nothing has changed; `on_hang` follows.
    Hang { task: TaskId, for_ms: u64, on_hang: OnHang },
}

impl Silence {
    fn task(self) -> TaskId {
        match self {
            Silence::NotTaken { task, .. } | Silence::Hang { task, .. } => task,
        }
    }
}

/// Records a silence, or its end, in the run's record and the journal, and reports a silence to the
/// lead's mailbox; what is recorded already, once. A later run of the name is left alone.
///
/// # Errors
/// A record, journal or mailbox that cannot be read or written.
pub fn record_silence(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
    silence: Option<Silence>,
) -> Result<(), OpsError> {
    let silence = match silence {
        Some(Silence::NotTaken { task, .. }) if has_taken(team, name, task)? => None,
        silence => silence,
    };
    let reason = silence.map(|silence| describe(silence, &screen(ctx, team, name)));
    let written = team.change_record(name, incarnation, |record| {
        let is_news = record.unresponsive.is_some() != reason.is_some();
        if is_news {
            record.unresponsive.clone_from(&reason);
        }
        is_news.then_some(record.state)
    })?;
    let Some(Some(state)) = written else { return Ok(()) };
    let event = rand::uuid();
    let (now, before) = match silence {
        Some(_) => ("unresponsive", state.as_str()),
        None => (state.as_str(), "unresponsive"),
    };
    let note = Note { id: Some(event.clone()), ..Note::of(EventKind::MemberHealth) }.member(name);
    let note = note
        .with("state", now)
        .with("prev_state", before)
        .with("timeout_triggered", silence.is_some());
    let note = Note { task: silence.map(Silence::task), ..note };
    team.record(note.with_some("reason", reason.as_deref()))?;
    if let (Some(reason), Some(silence)) = (reason, silence) {
        let notice = Post::notice(&MemberName::lead(), compose_message(name, silence, &reason));
        notice.because(Some(event)).send(team)?;
    }
    Ok(())
}

/// Returns true if no assignment of the task waits in the member's mailbox.
fn has_taken(team: &TeamStore, name: &MemberName, task: TaskId) -> Result<bool, OpsError> {
    let is_assignment = |envelope: &Envelope| match Message::parse(&envelope.text) {
        Message::TaskAssignment(assignment) => assignment.task_id == task.to_string(),
        _ => false,
    };
    Ok(team.mailbox(name).unread_where(is_assignment)?.is_empty())
}

fn describe(silence: Silence, screen: &str) -> String {
    match silence {
        Silence::NotTaken { task, for_ms } => {
            let ago = time::human(for_ms);
            format!(
                "task #{task} was assigned to it {ago} ago, and it has not taken the message; \
                 {screen}"
            )
        }
        Silence::Hang { task, for_ms, .. } => format!(
            "task #{task} is in progress, and for {} it has printed nothing, read no mail and not changed the task; \
             {screen}",
            time::human(for_ms)
        ),
    }
}

fn compose_message(name: &MemberName, silence: Silence, reason: &str) -> String {
    let task = silence.task();
    let follows = match silence {
        Silence::Hang { on_hang: OnHang::Restart, .. } => {
            format!("It is killed and started again, and task #{task} is free until then.")
        }
        Silence::Hang { on_hang: OnHang::Release, .. } => {
            format!(
                "It is still running, but its tasks are free for other members. End it with `phalanx shutdown {name}`."
            )
        }
        Silence::Hang { on_hang: OnHang::Report, .. } | Silence::NotTaken { .. } => format!(
            "It is still running, and phalanx has not touched it. Check its screen with `phalanx peek {name}`, \
             send it a message, reassign the task, or end it with `phalanx shutdown {name}`."
        ),
    };
    format!("{name} is unresponsive: {reason}. {follows}")
}

/// Computes a fingerprint of the member's activity: its screen, the mail that it has read, and the
/// task that it works on. `None` if the screen cannot be read, or if another run has begun.
///
/// # Errors
/// A mailbox or board that cannot be read.
pub fn fingerprint(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<Option<u64>, OpsError> {
    if !team.member_record(name)?.is_some_and(|record| record.is(incarnation)) {
        return Ok(None);
    }
    let Ok(screen) = output::peek(ctx, team, name, SCREEN) else { return Ok(None) };
    let read = team.mailbox(name).entries()?.iter().filter(|envelope| envelope.read).count();
    let board = team.board()?;
    let task = board.work_of(name).and_then(|id| board.tasks.get(&id)).map(Task::digest);
    let mut hasher = DefaultHasher::new();
    (screen, read, task).hash(&mut hasher);
    Ok(Some(hasher.finish()))
}

/// Quotes the last line of the screen. That a screen cannot be read says nothing about the member.
fn screen(ctx: &Context, team: &TeamStore, name: &MemberName) -> String {
    match output::peek(ctx, team, name, 5) {
        Ok(screen) => match screen.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => format!("its screen ends with: {}", text::short(line.trim(), LONGEST)),
            None => "its screen is empty".to_owned(),
        },
        Err(e) => format!("its screen cannot be read: {}", text::short(&e.to_string(), LONGEST)),
    }
}
