//! What a member that is not a worker reports to the files of the team: operations that must not be
//! lost, in order, and the activity that was reported last.

use std::collections::VecDeque;

use super::effect::{MemberEffect, OutboundOp};
use super::event::{MemberEvent, OpFailure};
use super::state::{LONG_PAUSE_MS, Me, PAUSE_MS};
use model::decisions::request::ShutdownRequest;
use model::mail::protocol::Message;
use model::members::lifecycle::{Cause, MemberState};
use model::members::rate_limit::LimitHit;
use model::members::record::UNRECOGNISED;
use model::members::usage;
use model::time::Timestamp;

/// The activity of a program, as reported to the team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Activity {
    Idle,
    Working,
    /// Working, but its provider refuses, and it tries again by itself, with the reason.
    Retrying(String),
    /// Idle, but its account has reached its usage limit.
    Limited(LimitHit),
    /// Idle, but its last turn ended with this error.
    Failed {
        said: String,
        needs_login: bool,
    },
    /// A person is needed, with the reason.
    Blocked(String),
    /// No rule matches its screen.
    Unrecognised,
    /// Its mail waits, for this reason.
    Undelivered(String),
}

/// The reports of a member.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct MemberOutbox {
    /// Set once [`OutboundOp::Hello`] has been queued.
    pub(super) up: bool,
    /// Set once the spawner has confirmed the start. Before that the start may be rolled back, and
    /// the program gets nothing.
    pub(super) accepted: bool,
    /// The activity last reported to the record.
    pub(super) reported: Option<Activity>,
    /// The number of usage limits that were reported since the last turn that ended without one.
    pub(super) refusals: usize,
    /// Operations not yet completed, in order.
    pub(super) queue: VecDeque<OutboundOp>,
    /// Set while the driver executes the first operation.
    pub(super) asked: bool,
    /// The mail has to be read.
    pub(super) mail_due: bool,
    /// After a failure, no operation and no read of the mail before this time.
    pub(super) pause_until: Option<Timestamp>,
    /// The last failure reported, to avoid repeating it.
    complaint: Option<String>,
}

impl MemberOutbox {
    /// Of a program that was started; `accepted` if no spawner has to confirm that.
    pub(super) fn new(accepted: bool) -> MemberOutbox {
        MemberOutbox { accepted, mail_due: true, ..MemberOutbox::default() }
    }

    pub(super) fn push(&mut self, op: OutboundOp) {
        self.queue.push_back(op);
    }

    /// Queues a message to the lead.
    pub(super) fn send(&mut self, message: Message) {
        self.push(OutboundOp::Send(Box::new(message)));
    }

    /// Returns the next effect: the first operation, or the read of the mail.
    pub(super) fn next(&mut self, now: Timestamp) -> Option<MemberEffect> {
        if !self.is_ready(now) {
            return None;
        }
        self.pause_until = None;
        if let Some(op) = self.queue.front() {
            self.asked = true;
            return Some(MemberEffect::Do(op.clone()));
        }
        std::mem::take(&mut self.mail_due).then_some(MemberEffect::ReadMail)
    }

    /// Returns true if all reports have been made.
    pub(super) fn is_empty(&self, now: Timestamp) -> bool {
        self.is_ready(now) && self.queue.is_empty()
    }

    fn is_ready(&self, now: Timestamp) -> bool {
        !self.asked && self.pause_until.is_none_or(|until| until <= now)
    }

    /// Handles an event that is about the files only. Returns a failure to journal.
    pub(super) fn handle(&mut self, event: MemberEvent, now: Timestamp) -> Option<MemberEffect> {
        match event {
            MemberEvent::NoMail(failure) => {
                let complaint = self.complain(&failure, now);
                self.mail_due = true;
                let pause = if failure.lasting { LONG_PAUSE_MS } else { PAUSE_MS };
                self.pause_until = Some(now.plus_ms(pause));
                complaint
            }
            MemberEvent::NotMarked(failure) => {
                self.mail_due |= !failure.lasting;
                self.complain(&failure, now)
            }
            MemberEvent::Accepted(recorded) => {
                self.accept(recorded);
                None
            }
            MemberEvent::Done(result) => self.handle_done(result, now),
            MemberEvent::Mail { .. } | MemberEvent::Requests(_) | MemberEvent::Over(_) => None,
        }
    }

    /// Agrees to the shutdown requests. Returns whether there was one.
    pub(super) fn agree(
        &mut self,
        me: &Me,
        pending: &mut Vec<ShutdownRequest>,
        now: Timestamp,
    ) -> bool {
        let asked = !pending.is_empty();
        for request in pending.drain(..) {
            self.send(me.agreement(&request, now));
        }
        asked
    }

    /// Handles the result of an operation. Returns a failure to journal.
    fn handle_done(
        &mut self,
        result: Result<(), OpFailure>,
        now: Timestamp,
    ) -> Option<MemberEffect> {
        self.asked = false;
        match result {
            Ok(()) => {
                self.complaint = None;
                self.queue.pop_front();
                None
            }
            Err(failure) => {
                let complaint = self.complain(&failure, now);
                if failure.lasting {
                    self.queue.pop_front();
                }
                complaint
            }
        }
    }

    /// Returns a failure to journal, once, and delays the next attempt if a retry can help. The
    /// pane belongs to the program, so nothing is printed.
    fn complain(&mut self, failure: &OpFailure, now: Timestamp) -> Option<MemberEffect> {
        if !failure.lasting {
            self.pause_until = Some(now.plus_ms(PAUSE_MS));
        }
        if self.complaint.as_ref() == Some(&failure.text) {
            return None;
        }
        self.complaint = Some(failure.text.clone());
        Some(MemberEffect::Warn(failure.text.clone()))
    }

    /// Adopts the recorded state as the last one reported. The spawner, and the process that
    /// handles a declined shutdown, write the record too.
    fn accept(&mut self, recorded: MemberState) {
        let first = !std::mem::replace(&mut self.accepted, true);
        let is_special = match self.reported {
            Some(Activity::Idle | Activity::Working) | None => false,
            // Until acceptance its state was not reported.
            Some(Activity::Retrying(_)) => !first,
            Some(_) => true,
        };
        if !(first || self.queue.is_empty()) || is_special {
            return;
        }
        match recorded {
            MemberState::Working => self.reported = Some(Activity::Working),
            MemberState::Idle => self.reported = Some(Activity::Idle),
            MemberState::Pending
            | MemberState::Starting
            | MemberState::AwaitingPlan
            | MemberState::AwaitingPermission
            | MemberState::ShutdownRequested
            | MemberState::Completed
            | MemberState::Failed
            | MemberState::Killed
            | MemberState::Disappeared => {}
        }
    }

    /// Queues the reports of an activity that differs from the last one. The lead is notified of
    /// transitions to idle only (MSG-12).
    pub(super) fn report(&mut self, me: &Me, activity: Activity, now: Timestamp) {
        let is_new = match (&self.reported, &activity) {
            // The evidence beside a dialog may change while it is open, and the time of the next
            // try is computed anew.
            (Some(Activity::Blocked(before)), Activity::Blocked(now))
            | (Some(Activity::Retrying(before)), Activity::Retrying(now)) => {
                head(before) != head(now)
            }
            (Some(Activity::Limited(before)), Activity::Limited(now)) => before.until != now.until,
            (before, now) => before.as_ref() != Some(now),
        };
        let is_known = !matches!(activity, Activity::Unrecognised | Activity::Undelivered(_));
        if is_new && (self.accepted || !self.up) {
            self.queue_report(me, &activity, now);
            self.reported = Some(activity);
        }
        if is_known && !std::mem::replace(&mut self.up, true) {
            self.push(OutboundOp::Hello);
        }
    }

    fn queue_report(&mut self, me: &Me, activity: &Activity, now: Timestamp) {
        let was = self.reported.clone();
        let has_reason = |activity: &Activity| {
            !matches!(activity, Activity::Idle | Activity::Working | Activity::Limited(_))
        };
        if was.as_ref().is_some_and(has_reason) && !has_reason(activity) {
            self.push(OutboundOp::Remark(None));
        }
        // A turn that ends without the limit shows that it is over.
        match activity {
            Activity::Limited(hit) => {
                self.refusals += 1;
                self.push(OutboundOp::Limit(Some(hit.clone())));
            }
            Activity::Idle | Activity::Failed { .. } if std::mem::take(&mut self.refusals) > 0 => {
                self.push(OutboundOp::Limit(None));
            }
            _ => {}
        }
        match activity {
            Activity::Blocked(reason) => self.push(OutboundOp::Remark(Some(reason.clone()))),
            Activity::Unrecognised => self.push(OutboundOp::Remark(Some(UNRECOGNISED.to_owned()))),
            Activity::Undelivered(why) => {
                self.push(OutboundOp::Remark(Some(format!("blocked: undelivered: {why}"))));
                let text = format!("Mail for {0} waits: {why}; see `phalanx peek {0}`.", me.name);
                self.send(Message::Text(text));
            }
            // Until acceptance the spawner changes the state.
            _ if !self.accepted => {}
            Activity::Working => self.push(OutboundOp::MoveOn(Cause::Work, None)),
            Activity::Retrying(reason) => {
                self.push(OutboundOp::MoveOn(Cause::Work, None));
                self.push(OutboundOp::Remark(Some(reason.clone())));
            }
            Activity::Idle | Activity::Limited(_) | Activity::Failed { .. } => {
                self.push(OutboundOp::MoveOn(Cause::Rest, None));
                // An error can end a turn before the program is seen at work.
                let mut has_ended_turn = matches!(
                    was,
                    Some(Activity::Working | Activity::Retrying(_) | Activity::Unrecognised)
                );
                let failure = match activity {
                    Activity::Limited(hit) => Some(hit.said.clone()),
                    Activity::Failed { said, needs_login } => {
                        let reason = usage::failed_reason(said, *needs_login);
                        self.push(OutboundOp::Remark(Some(reason)));
                        has_ended_turn |= was == Some(Activity::Idle);
                        Some(said.clone())
                    }
                    _ => None,
                };
                if has_ended_turn {
                    self.send(Message::IdleNotification(me.idle_notice(failure, now)));
                }
            }
        }
    }
}

/// Returns the part of a reason before the rule, or before the time of the next try: for example
/// `blocked: dialog:trust`.
fn head(reason: &str) -> &str {
    let parts = reason.rsplit_once(" (rule ").or_else(|| reason.rsplit_once(" (next try "));
    parts.map_or(reason, |(head, _)| head)
}
