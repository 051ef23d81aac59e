//! The program in the lead's place: what of the lead's mail it is told, and in which words. The rest is the lead's loop's,
//! which runs beside it; nothing of the lead's life, requests and end is decided here.

use std::sync::mpsc::{Receiver, Sender};

use super::super::desk::Identity;
use super::driver::{Driver, Start, open};
use super::effect::Effect;
use super::state::{Seat, State};
use super::station::Wake;
use crate::model::envelope::Envelope;
use crate::model::id::MemberName;
use crate::model::protocol::{
    AtTheLead, IdleNotification, Message, Speaker, TaskCompleted, may_say,
};
use crate::model::text;
use crate::ops::{self, Context, OpsError, Team};
use crate::sys::signal::Signal;

/// So much of what a member says of its turn is repeated, characters.
const WORDS: usize = 2000;

/// A program that runs in the lead's place.
pub(crate) struct Seated<'a> {
    driver: Driver<'a>,
    incoming: Receiver<Wake>,
    wakes: Sender<Wake>,
}

/// Starts the program on a terminal of its own, in our terminal. To be called in the first thread before there are others.
///
/// # Errors
/// There is no terminal to stand in, or the program cannot run.
pub(crate) fn seat<'a>(
    ctx: &'a Context,
    team: &'a Team,
    seat: &ops::seat::Seat,
) -> Result<Seated<'a>, OpsError> {
    let me = Identity { name: MemberName::lead(), incarnation: seat.incarnation.clone() };
    let start = Start {
        me,
        profile: seat.profile.clone(),
        argv: seat.argv.clone(),
        env: seat.env.clone(),
        seat: Seat::Lead,
        answers: false,
        pane: None,
        backend: "",
    };
    let (driver, incoming, wakes) = open(ctx, team, start)?;
    Ok(Seated { driver, incoming, wakes })
}

impl Seated<'_> {
    /// Stays with the program to its end; gives its exit code, or that of the signal that ended us.
    pub(crate) fn stay(self) -> i32 {
        self.driver.run(&self.incoming)
    }

    /// What ends the program from another thread.
    pub(crate) fn ender(&self) -> impl FnOnce() + Send + 'static {
        let wakes = self.wakes.clone();
        // It may have ended already.
        move || drop(wakes.send(Wake::Signal(Signal::Terminate)))
    }
}

/// Whether the program is told of this message. What nobody may say, and what only the loop understands, the loop puts
/// away.
pub(super) fn is_for_program(envelope: &Envelope) -> bool {
    let message = Message::parse(&envelope.text);
    message.at_the_lead() != AtTheLead::Loop && may_say(Speaker::named(&envelope.from), &message)
}

/// A message as the program is to read it: news of members in words, any other as it is.
pub(super) fn in_words(envelope: Envelope) -> Envelope {
    let words = match Message::parse(&envelope.text) {
        Message::IdleNotification(notice) => rests(&notice),
        Message::TaskCompleted(news) => completed(&news),
        Message::TeammateTerminated(news) => text::short(&news.message, WORDS),
        Message::ShutdownRequest(_)
        | Message::ShutdownApproved(_)
        | Message::ShutdownRejected(_)
        | Message::PlanApprovalRequest(_)
        | Message::PlanApprovalResponse(_)
        | Message::PermissionRequest(_)
        | Message::PermissionResponse(_)
        | Message::SandboxPermissionRequest(_)
        | Message::SandboxPermissionResponse(_)
        | Message::TaskAssignment(_)
        | Message::TeamPermissionUpdate(_)
        | Message::ModeSetRequest(_)
        | Message::Text(_)
        | Message::Unknown { .. }
        | Message::Malformed { .. } => return envelope,
    };
    Envelope { text: words, ..envelope }
}

fn rests(notice: &IdleNotification) -> String {
    let IdleNotification { summary, completed_task_id, completed_status, failure_reason, .. } =
        notice;
    let task = completed_task_id.as_deref().map(|id| {
        let status =
            completed_status.as_deref().map(|word| format!(" ({word})")).unwrap_or_default();
        format!(" My last task: #{id}{status}.")
    });
    let failure = failure_reason.as_deref().map(|why| format!(" I failed: {why}."));
    // On one line: not every program takes several.
    let said =
        summary.as_deref().map(|words| words.split_whitespace().collect::<Vec<_>>().join(" "));
    let said = said.map(|words| format!(" Result of my turn: {words}"));
    let whole = ["I am idle.".to_owned()].into_iter().chain(task).chain(failure).chain(said);
    text::short(&whole.collect::<String>(), WORDS)
}

fn completed(news: &TaskCompleted) -> String {
    let subject =
        news.task_subject.as_deref().map(|words| format!(": {words}")).unwrap_or_default();
    text::short(&format!("I completed task #{}{subject}.", news.task_id), WORDS)
}

/// The team has gone. The program is a person's, and goes on without: nothing is typed any more.
pub(super) fn let_go(state: &mut State, effects: &mut Vec<Effect>) {
    state.waiting.clear();
    if state.turn.take().is_some() {
        effects.push(Effect::Release);
    }
    state.teamless = true;
}

#[cfg(test)]
mod tests;
