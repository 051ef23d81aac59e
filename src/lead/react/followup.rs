//! Reminders: pending requests are announced again to those who decide them, owners of silent tasks
//! in progress are reminded, and the lead gets the reminders that members have set on tasks.
//! `docs/decisions.md` has the rules.

use std::collections::BTreeMap;

use crate::effect::Effect;
use crate::event::SignOfLife;
use crate::state::{Phase, Quiet, State, TrackedMember};
use model::board::Board;
use model::board::task::{Task, TaskState};
use model::decisions::question::Question;
use model::id::{MemberName, TaskId};
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::members::lifecycle::MemberState;
use model::team::followup::{Escalation, LastNotification, NotificationStep};
use model::time::Timestamp;

/// Updates the announcements of the open questions. An announcement that is still on its way is not
/// in the files yet, so the higher count wins.
pub(super) fn handle_filed(state: &mut State, open: &[Question]) {
    let before = std::mem::take(&mut state.notifications);
    let with_latest = |question: &Question| {
        let requested = before.get(&question.id).copied().flatten();
        let known = requested.into_iter().chain(question.last_notification);
        let latest = known.max_by_key(|last| last.times);
        (question.id.clone(), latest)
    };
    state.notifications = open.iter().map(with_latest).collect();
}

/// Returns the stale tasks of each owner, with the time since when each is stale; by the owner's
/// name in lower case.
pub(super) fn stale_tasks(board: &Board) -> BTreeMap<String, Vec<(TaskId, Timestamp)>> {
    let mut stale: BTreeMap<String, Vec<(TaskId, Timestamp)>> = BTreeMap::new();
    for task in board.work().filter(|task| task.state == TaskState::Stale) {
        let owner = task.owner_member();
        if let (Some(owner), Some(since)) = (owner, task.extra.stalled_at) {
            stale.entry(owner.folded()).or_default().push((task.id, since));
        }
    }
    stale
}

/// Returns the times of the next reminders that members have set on open tasks.
pub(super) fn task_reminders(board: &Board) -> BTreeMap<TaskId, Timestamp> {
    let open = board.work().filter(|task| !task.state.is_over());
    open.filter_map(|task| Some((task.id, task.extra.reminder.as_ref()?.next()?.0))).collect()
}

/// Treats any change of a task as a sign of life, except what the lead itself changes: that the
/// task became stale, and that a reminder about it was sent.
pub(super) fn handle_board(
    state: &mut State,
    board: &Board,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let Some(before) = &state.seen else { return };
    let seen = |board: &Board, id: &TaskId| {
        let mut task = board.tasks.get(id)?.clone();
        task.extra.reminder = None;
        Some(task)
    };
    let is_stale =
        |id: &TaskId| board.tasks.get(id).is_some_and(|task| task.state == TaskState::Stale);
    let changed = |id: &TaskId| !is_stale(id) && seen(&before.board, id) != seen(board, id);
    let quiet = state
        .members
        .iter()
        .filter(|(_, view)| view.quiet.is_some_and(|quiet| changed(&quiet.task)));
    let active: Vec<MemberName> = quiet.map(|(name, _)| name.clone()).collect();
    active.iter().for_each(|name| reset_silence(state, name, now, effects));
}

/// Treats mail from an owner as a sign of life. Idle notifications do not count: the member is idle
/// while its task is not done.
pub(super) fn handle_mail(
    state: &mut State,
    mail: &[Envelope],
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    if state.followup.is_none() && state.seen.as_ref().is_none_or(|seen| seen.stale.is_empty()) {
        return;
    }
    for envelope in mail.iter().filter(|envelope| !envelope.read) {
        let Some(name) =
            state.members.keys().find(|name| name.clashes_with(&envelope.from)).cloned()
        else {
            continue;
        };
        let Some(at) = Timestamp::parse(&envelope.timestamp) else { continue };
        if !matches!(Message::parse(&envelope.text), Message::IdleNotification(_)) {
            handle_sign(state, &name, at.min(now), effects);
        }
    }
}

/// Treats messages to other members, questions, and what members say about tasks as signs of life.
pub(super) fn handle_signs_of_life(
    state: &mut State,
    signs: &[SignOfLife],
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    for sign in signs {
        handle_sign(state, &sign.member, sign.at.min(now), effects);
    }
}

/// Restarts the count of reminders of a member, and resumes its stale tasks. A sign of life from
/// before a task became stale does not resume it.
fn handle_sign(state: &mut State, name: &MemberName, at: Timestamp, effects: &mut Vec<Effect>) {
    reset_silence(state, name, at, effects);
    let leads = state.leads();
    let stale = state.seen.as_mut().and_then(|seen| seen.stale.get_mut(&name.folded()));
    if let Some(stale) = stale.filter(|_| leads) {
        // The board shows the tasks as stale until it is read again.
        for (task, _) in stale.extract_if(.., |(_, since)| *since < at) {
            effects.push(Effect::Recover { task, owner: name.clone() });
        }
    }
}

/// Restarts the count of reminders, unless the sign of life was seen before.
fn reset_silence(state: &mut State, name: &MemberName, at: Timestamp, effects: &mut Vec<Effect>) {
    let Some(view) = state.members.get_mut(name) else { return };
    if let Some(quiet) = view.quiet.filter(|quiet| quiet.since < at) {
        view.quiet = Some(Quiet { since: at, times: 0, ..quiet });
        forget(name, view, quiet, effects);
    }
}

/// Resets the persisted reminder counter of a member that was reminded.
fn forget(name: &MemberName, view: &TrackedMember, quiet: Quiet, effects: &mut Vec<Effect>) {
    if quiet.times > 0 {
        let (name, incarnation) = (name.clone(), view.incarnation.clone());
        effects.push(Effect::ResetReminders { name, incarnation });
    }
}

/// Requests the announcements and reminders that are due.
pub(super) fn follow_up(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if !state.leads() {
        return;
    }
    announce(state, now, effects);
    remind_owners(state, now, effects);
    send_task_reminders(state, now, effects);
}

/// Requests the reminders that members have set on tasks. Each sent step changes the task, so that
/// the next read of the board has the time of the next step.
fn send_task_reminders(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if let (Some(seen), Phase::Leading) = (&mut state.seen, state.phase) {
        let due = seen.reminders.extract_if(.., |_, at| *at <= now);
        effects.extend(due.map(|(task, _)| Effect::SendReminder(task)));
    }
}

/// Announces pending requests. The first announcement does not depend on the team's reminders.
fn announce(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    let followup = state.followup.filter(|_| state.phase == Phase::Leading);
    for (id, last) in &mut state.notifications {
        let step = match *last {
            None => Some(NotificationStep::First),
            Some(LastNotification { times, at }) => {
                followup.and_then(|followup| followup.due(times, at, now))
            }
        };
        if let Some(step) = step {
            *last = Some(LastNotification { times: step.times(), at: now });
            effects.push(Effect::Announce { id: id.clone(), step });
        }
    }
}

fn remind_owners(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    let (Some(followup), Some(seen), Phase::Leading) =
        (state.followup, &mut state.seen, state.phase)
    else {
        return;
    };
    let tasks = &seen.board.tasks;
    let in_progress: Vec<&Task> =
        tasks.values().filter(|task| task.state == TaskState::InProgress).collect();
    for (name, view) in &mut state.members {
        let Some(task) = owed(&in_progress, name, view) else {
            if let Some(quiet) = view.quiet.take() {
                forget(name, view, quiet, effects);
            }
            continue;
        };
        // A task that was escalated before and is in progress again starts anew.
        let before = view
            .reminded
            .take()
            .filter(|before| before.task == task && before.times <= followup.max_reminders);
        let quiet = view.quiet.filter(|quiet| quiet.task == task).unwrap_or(Quiet {
            task,
            since: now,
            // An earlier lead may have sent reminders already.
            times: before.map_or(0, |before| before.times),
        });
        view.quiet = Some(quiet);
        if let Some(step) = followup.due(quiet.times, quiet.since, now) {
            view.quiet = Some(Quiet { since: now, times: step.times(), ..quiet });
            if let NotificationStep::Escalation { mode: Escalation::NotifyLead, .. } = step {
                // The next sign of life may come before the board is read again.
                seen.stale.entry(name.folded()).or_default().push((task, now));
            }
            let (name, incarnation) = (name.clone(), view.incarnation.clone());
            effects.push(Effect::Remind { name, incarnation, task, step });
        }
    }
}

/// Returns the task that a member is expected to report on. Members that wait for an answer owe no
/// report, nor does a worker that runs a task's command: it exits by itself and reads no messages.
fn owed(in_progress: &[&Task], name: &MemberName, view: &TrackedMember) -> Option<TaskId> {
    let is_up = view.watched && view.ending.is_none() && view.reads_mail && view.limit.is_none();
    if !is_up || !matches!(view.state, MemberState::Idle | MemberState::Working) {
        return None;
    }
    in_progress
        .iter()
        .find(|task| task.is_owned_by(name) && task.extra.run.is_empty())
        .map(|task| task.id)
}

/// Returns the time of the next announcement or reminder.
pub(super) fn next_reminder(state: &State) -> Option<Timestamp> {
    let seen = state.seen.as_ref().filter(|_| state.is_leading());
    let of_tasks = seen.and_then(|seen| seen.reminders.values().min().copied());
    of_tasks.into_iter().chain(next_followup(state)).min()
}

/// Returns the time of the next reminder that the settings of the team ask for.
fn next_followup(state: &State) -> Option<Timestamp> {
    let followup = state.followup.filter(|_| state.phase == Phase::Leading)?;
    let announced = state.notifications.values().flatten();
    let requests = announced.filter_map(|last| followup.next(last.times, last.at));
    let quiet =
        state.members.values().filter(|view| view.ending.is_none()).filter_map(|view| view.quiet);
    let owners = quiet.filter_map(|quiet| followup.next(quiet.times, quiet.since));
    requests.chain(owners).map(|(at, _)| at).min()
}
