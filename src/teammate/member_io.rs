//! I/O that the loops of the worker and the wrapper share: mail, shutdown requests, the member's
//! record and outbound operations.

use std::ffi::OsString;

use super::effect::{MemberEffect, OutboundOp};
use super::event::{MemberEvent, OpFailure, Requests};
use super::state::Me;
use super::words::AgentRole;
use model::id::{Incarnation, MemberName, RequestId};
use model::mail::envelope::Envelope;
use model::mail::protocol::{IdleNotification, Message};
use model::team::event::{EventKind, Note};
use model::text;
use model::time::Timestamp;
use model::topic::Topic;
use ops::decisions::dialog;
use ops::members::presence;
use ops::{self, Context, JournalReader, Kind, OpsError, TeamStore};
use profile::Profile;

/// Maximum length of the summary of a turn, in characters.
const SUMMARY: usize = 600;

/// The member and run that this process serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRun {
    pub name: MemberName,
    pub incarnation: Incarnation,
}

impl MemberRun {
    /// Returns who and where the member is, as messages say it.
    pub(super) fn identity(&self, ctx: &Context, team: &TeamStore, backend: &'static str) -> Me {
        let pane = ctx.caller.var("TMUX_PANE");
        Me {
            name: self.name.clone(),
            incarnation: self.incarnation.clone(),
            team: team.name().clone(),
            pane: pane.map(|pane| pane.to_string_lossy().into_owned()),
            backend,
        }
    }
}

/// Parameters for starting the program of a member or of an agent lead.
pub(super) struct ProgramStart {
    pub(super) me: MemberRun,
    pub(super) profile: Profile,
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) role: AgentRole,
    /// The backend's name in the team file.
    pub(super) backend: &'static str,
}

/// The files of the team, as far as they concern one run of a member.
pub(super) struct MemberIo<'a> {
    pub(super) ctx: &'a Context,
    pub(super) team: &'a TeamStore,
    pub(super) me: MemberRun,
}

impl MemberIo<'_> {
    /// The topics of a full re-read. Mail comes before tasks: a worker that is asked to shut down
    /// must not claim another task.
    pub(super) fn topics(&self) -> [Topic; 4] {
        [Topic::Members, Topic::Requests, Topic::Mail(self.me.name.file_stem()), Topic::Tasks]
    }

    /// Reads what `topic` covers; `pending` are the requests that await an answer.
    pub(super) fn read<'r>(
        &self,
        topic: &Topic,
        pending: impl Iterator<Item = &'r RequestId>,
    ) -> Option<MemberEvent> {
        if !self.team.exists() {
            return Some(gone());
        }
        match topic {
            Topic::Mail(owner) if *owner != self.me.name.file_stem() => None,
            Topic::Roster | Topic::Mail(_) => Some(self.read_mail()),
            Topic::Members | Topic::Member(_) => self.read_record(),
            Topic::Requests | Topic::Request(_) => {
                let is_meant = |id: &&RequestId| match topic {
                    Topic::Request(stem) => id.file_stem() == *stem,
                    _ => true,
                };
                let ids: Vec<String> = pending.filter(is_meant).map(RequestId::to_string).collect();
                (!ids.is_empty()).then(|| MemberEvent::Requests(requests(self.team, ids)))
            }
            Topic::Tasks | Topic::Journal | Topic::Settings | Topic::Everything => None,
        }
    }

    /// Reads the unread mail, oldest first, with the shutdown requests that it refers to.
    fn read_mail(&self) -> MemberEvent {
        match ops::mail::inbox::read_messages(self.team, &self.me.name, false) {
            Ok(mail) => {
                // Requests are read after the mail, because a request is filed before its message
                // is sent.
                let requests = requests(self.team, mail.iter().filter_map(request_in));
                MemberEvent::Mail { mail, requests }
            }
            Err(e) => failed(self.team, &e, MemberEvent::NoMail),
        }
    }

    fn read_record(&self) -> Option<MemberEvent> {
        // An unreadable record does not prove that another run has replaced this one.
        let record = self.team.member_record(&self.me.name).ok()??;
        if !record.is(&self.me.incarnation) {
            return Some(replaced());
        }
        // A withdrawn start may still run for a moment; such a run must not begin work or receive
        // mail.
        record.state.is_up().then_some(MemberEvent::Accepted(record.state))
    }

    /// Executes one effect. Returns its event if the result is known at once.
    pub(super) fn carry_out(&self, effect: MemberEffect) -> Option<MemberEvent> {
        match effect {
            MemberEffect::Do(op) => Some(self.execute(op)),
            // The store would recreate the directories of a deleted team.
            _ if !self.team.exists() => Some(gone()),
            MemberEffect::Warn(text) => {
                self.journal(Note::of(EventKind::Warning).with("text", text));
                None
            }
            MemberEffect::Acknowledge(ids) => {
                let marked = ops::mail::inbox::acknowledge(self.team, &self.me.name, &ids);
                marked.err().map(|e| failed(self.team, &e, MemberEvent::NotMarked))
            }
            MemberEffect::ReadMail => Some(self.read_mail()),
        }
    }

    /// Executes an outbound operation, unless the team is gone: the store would recreate its
    /// directories.
    pub(super) fn execute(&self, op: OutboundOp) -> MemberEvent {
        if !self.team.exists() {
            return gone();
        }
        match self.try_execute(op) {
            Ok(true) => MemberEvent::Done(Ok(())),
            Ok(false) => replaced(),
            Err(e) => failed(self.team, &e, |failure| MemberEvent::Done(Err(failure))),
        }
    }

    /// Returns false if a later run now uses this name.
    fn try_execute(&self, op: OutboundOp) -> Result<bool, OpsError> {
        let MemberIo { ctx, team, me: MemberRun { name, incarnation } } = self;
        match op {
            OutboundOp::Hello => return presence::hello(team, name, incarnation),
            OutboundOp::Send(message) => {
                // Sent again if the reply was lost. The messages of a member's loop differ by a
                // time or the id of a request.
                let post = ops::Post::report(team, name, *message).with_id_of_text();
                post.send(team).map(drop)?
            }
            OutboundOp::MoveOn(cause, reason) => {
                presence::move_on(team, name, incarnation, cause, reason.as_deref()).map(drop)?
            }
            OutboundOp::Remark(reason) => {
                presence::remark(team, name, incarnation, reason.as_deref())?
            }
            OutboundOp::Limit(hit) => team.record_limit(name, incarnation, hit.as_ref())?,
            OutboundOp::Withdraw(id, allowed) => dialog::withdraw(ctx, team, &id, allowed)?,
            OutboundOp::Session(session) => {
                team.change_record(name, incarnation, |record| record.begin_session(&session))?;
            }
            OutboundOp::Usage(model, usage) => {
                team.change_record(name, incarnation, |record| {
                    record.usage.get_or_insert_default().add(model.as_deref(), &usage);
                })?;
            }
            OutboundOp::Typed(id, typed) => dialog::record_typed(team, &id, typed)?,
        }
        Ok(true)
    }

    /// Executes an outbound operation. An idle notification gets the result of the turn that began
    /// at `turn_from`, with `said` if the program has no last words. The next turn begins once it
    /// is sent.
    pub(super) fn execute_in_turn(
        &self,
        mut op: OutboundOp,
        turn_from: &mut (JournalReader, Timestamp),
        said: impl FnOnce() -> String,
    ) -> MemberEvent {
        let mut next = turn_from.clone();
        if let OutboundOp::Send(message) = &mut op
            && let Message::IdleNotification(notice) = &mut **message
        {
            next = match self.add_report(notice, next, said) {
                Ok(next) => next,
                Err(e) => {
                    return failed(self.team, &e, |failure| MemberEvent::Done(Err(failure)));
                }
            };
        }
        let event = self.execute(op);
        if event == MemberEvent::Done(Ok(())) {
            *turn_from = next;
        }
        event
    }

    /// Adds the result of a turn to an idle notification: the task that ended, the last message to a
    /// peer, and the program's last words or else `said`. Returns the start of the next turn.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    fn add_report(
        &self,
        notice: &mut IdleNotification,
        (mut journal, since): (JournalReader, Timestamp),
        said: impl FnOnce() -> String,
    ) -> Result<(JournalReader, Timestamp), OpsError> {
        let now = ops::now();
        let deeds = ops::members::turn::deeds(self.team, &self.me.name, since, &mut journal)?;
        let words = deeds.last_words.unwrap_or_else(said);
        let parts: Vec<String> =
            deeds.told.into_iter().chain([words].into_iter().filter(|w| !w.is_empty())).collect();
        notice.summary = Some(bounded(&parts.join("\n"))).filter(|summary| !summary.is_empty());
        notice.completed_status =
            deeds.task.map(|(_, well)| if well { "resolved" } else { "failed" }.to_owned());
        notice.completed_task_id = deeds.task.map(|(id, _)| id.to_string());
        Ok((journal, now))
    }

    /// Journals the progress of messages, with a reason if they were not delivered.
    pub(super) fn journal_delivery(&self, kind: EventKind, ids: Vec<String>, why: Option<String>) {
        self.journal(Note::of(kind).with("msg_ids", ids).with_some("reason", why));
    }

    /// Appends an event of this member to the journal, which is a history only: a failure is
    /// ignored. A deleted team is not recreated.
    fn journal(&self, note: Note) {
        if self.team.exists() {
            self.team.record_unconfirmed(note.member(&self.me.name));
        }
    }
}

/// Makes a text printable and keeps its end, which has the latest information.
fn bounded(text: &str) -> String {
    let text = text::block(text);
    let over = text.chars().count().saturating_sub(SUMMARY);
    text.chars().skip(over).collect()
}

/// Reads the current state of the requests with these ids.
fn requests(team: &TeamStore, ids: impl IntoIterator<Item = String>) -> Requests {
    let read = |id: &String| {
        let known = RequestId::parse(id).map_err(OpsError::from);
        known.and_then(|id| Ok(team.request(&id)?)).map_err(|e| e.to_string())
    };
    ids.into_iter().map(|id| (id.clone(), read(&id))).collect()
}

/// Returns the id of the shutdown request in a message.
fn request_in(envelope: &Envelope) -> Option<String> {
    let Message::ShutdownRequest(asked) = Message::parse(&envelope.text) else { return None };
    Some(asked.request_id)
}

/// Returns the event for a failure. A deleted team replaces every other reason.
pub(super) fn failed<E: From<MemberEvent>>(
    team: &TeamStore,
    e: &OpsError,
    report: impl FnOnce(OpFailure) -> E,
) -> E {
    if team.exists() { report(failure(e)) } else { gone().into() }
}

/// Classifies an error by whether a retry can help.
pub(super) fn failure(e: &OpsError) -> OpFailure {
    let lasting = match e.kind() {
        Kind::NotFound | Kind::Refused | Kind::Usage => true,
        Kind::Failed | Kind::Deadline | Kind::Backend | Kind::Internal | Kind::Interrupted => false,
    };
    OpFailure { text: e.to_string(), lasting }
}

pub(super) fn gone() -> MemberEvent {
    MemberEvent::Over("the team is gone".to_owned())
}

fn replaced() -> MemberEvent {
    MemberEvent::Over("another run now uses this name".to_owned())
}
