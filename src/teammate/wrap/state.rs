//! The state of a wrapper.

use std::collections::{BTreeMap, BTreeSet};

use super::super::effect::MemberEffect;
use super::super::outbox::{Activity, MemberOutbox};
use super::super::state::{Leaving, Me};
use super::super::words::AgentRole;
use super::dialog::Dialogs;
use super::effect::Effect;
use jiff::tz::TimeZone;

use model::decisions::request::ShutdownRequest;
use model::id::RequestId;
use model::mail::envelope::Envelope;
use model::members::rate_limit::{LimitHit, end_of, next_try};
use model::members::record::{UNRECOGNISED, retrying_reason};
use model::time::Timestamp;
use profile::{
    Composer, DialogKeys, MailDelivery, Paste, Profile, ScreenFinding, ScreenState, ShutdownPolicy,
};

/// Milliseconds without a keystroke after which a person counts as not typing (MSG-11).
pub(super) const TYPING_MS: u64 = 2000;
/// Milliseconds a screen state must last to be reported; a shorter one counts as flicker.
pub(super) const BELIEF_MS: u64 = 300;
/// Milliseconds after which a screen that no rule matches, or that keeps mail from being typed, is
/// reported. From then on, mail is typed into the empty composer of a screen that no rule matches.
pub(super) const HELD_MS: u64 = 30_000;
/// Milliseconds a typed text may take to appear in the composer.
pub(super) const APPEAR_MS: u64 = 10_000;
/// Milliseconds after which a text still in the composer shows that the submit key had no effect.
pub(super) const RETRY_MS: u64 = 1500;
/// Milliseconds a turn may take to be seen after the submit key.
pub(super) const OBSERVE_MS: u64 = 10_000;
/// Maximum number of submit keys for one text.
pub(super) const TRIES: u8 = 3;

/// The stage of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryStep {
    /// The driver is typing the text.
    Typing,
    /// The text is typed but not submitted.
    Staged,
    /// Staged, but the program began to work by itself: to be submitted when it is idle, unless a
    /// person types first.
    Left,
    /// The submit key was typed this many times.
    Submitted(u8),
    /// The attempts are used up or a person has taken over: nothing more is typed, only watched.
    Stuck,
}

/// A delivery in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingDelivery {
    /// Ids of the messages.
    pub(super) ids: Vec<String>,
    /// The messages are only announced; the program reads them itself.
    pub(super) announces: bool,
    pub(super) step: DeliveryStep,
    /// Time when this step began.
    pub(super) at: Timestamp,
    /// Set once the text was seen in the composer.
    pub(super) stood: bool,
}

/// A usage limit on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScreenLimit {
    pub(super) hit: LimitHit,
    /// The end of the limit in the words of the program.
    pub(super) until: Option<String>,
    /// Time when these words were first seen. The end was computed then: later, the same words
    /// would mean a later time.
    pub(super) since: Timestamp,
}

/// The latest judgement of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScreenSnapshot {
    pub(super) finding: ScreenFinding,
    /// The last typed text is visible.
    pub(super) shown: bool,
    /// Time since when state and composer are unchanged.
    pub(super) since: Timestamp,
    /// The usage limit that the screen shows, or has shown since the program was last idle or
    /// working.
    pub(super) limit: Option<ScreenLimit>,
}

impl ScreenSnapshot {
    /// Returns whether the program waits for input with an empty composer.
    pub(super) fn is_free(&self) -> bool {
        self.rests() && self.finding.composer == Composer::Empty
    }

    /// Returns whether the program waits for input.
    pub(super) fn rests(&self) -> bool {
        matches!(
            self.finding.state,
            ScreenState::Idle
                | ScreenState::Ready
                | ScreenState::Limited
                | ScreenState::Failed { .. }
        )
    }

    /// Returns the time before which a turn would fail for lack of quota, after so many refusals.
    pub(super) fn limited_until(&self, refusals: usize) -> Option<Timestamp> {
        let limit = self.limit.as_ref().filter(|_| self.finding.state == ScreenState::Limited)?;
        Some(end_of(limit.since, limit.hit.until, refusals))
    }

    pub(super) fn works(&self) -> bool {
        matches!(self.finding.state, ScreenState::Working | ScreenState::Retrying)
    }

    pub(super) fn holds_text(&self) -> bool {
        matches!(self.finding.composer, Composer::Holds(_))
    }

    /// Returns whether a text can be typed: as [`ScreenSnapshot::is_free`], or on a screen that is
    /// not recognised.
    pub(super) fn is_open(&self) -> bool {
        !self.works() && self.finding.composer == Composer::Empty
    }

    /// Returns what keeps mail from being typed, although the program may wait for input.
    pub(super) fn obstacle(&self) -> Option<String> {
        let is_unknown = self.finding.state == ScreenState::Unknown;
        match &self.finding.composer {
            _ if !is_unknown && !self.rests() => None,
            Composer::Holds(text) => {
                Some(format!("a draft of {} characters is in its composer", text.chars().count()))
            }
            Composer::Empty if !is_unknown => None,
            Composer::Empty | Composer::Unknown => Some(UNRECOGNISED.to_owned()),
        }
    }

    /// Returns the activity at this time; none if the screen is not recognised.
    pub(super) fn activity(&self, now: Timestamp, zone: &TimeZone) -> Option<Activity> {
        match &self.finding.state {
            ScreenState::Ready | ScreenState::Idle => Some(Activity::Idle),
            ScreenState::Working => Some(Activity::Working),
            ScreenState::Retrying => {
                let next = next_try(self.finding.until.as_deref(), now, zone);
                Some(Activity::Retrying(retrying_reason(&self.finding.evidence) + &next))
            }
            ScreenState::Limited => {
                self.limit.as_ref().map(|limit| Activity::Limited(limit.hit.clone()))
            }
            ScreenState::Failed { needs_login } => {
                let said = self.finding.evidence.clone();
                Some(Activity::Failed { said, needs_login: *needs_login })
            }
            ScreenState::Blocked(_) | ScreenState::Dialog(_) | ScreenState::NeedsLogin => {
                self.finding.blocked_reason().map(Activity::Blocked)
            }
            ScreenState::Unknown => None,
        }
    }
}

/// A shutdown request that the agent is to answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ForwardedRequest {
    pub(super) request: ShutdownRequest,
    /// Id of the message with the request.
    pub(super) msg_id: String,
}

/// The complete state of a wrapper.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub(super) me: Me,
    /// Time of the last event.
    pub(super) now: Timestamp,
    /// Effects of the current step.
    pub(super) effects: Vec<Effect>,
    pub(super) role: AgentRole,
    /// Set if the team is gone but the agent lead continues.
    pub(super) teamless: bool,
    /// Paste settings of the profile.
    pub(super) paste: Paste,
    /// Keys that answer dialogs, by rule of the profile.
    pub(super) answers: BTreeMap<String, DialogKeys>,
    /// The way of the profile to deliver mail.
    pub(super) mail: MailDelivery,
    /// Shutdown policy of the profile.
    pub(super) shutdown: ShutdownPolicy,
    /// The latest judgement; none before the first one, and while it is outdated.
    pub(super) screen: Option<ScreenSnapshot>,
    pub(super) dialogs: Dialogs,
    /// Time when a person last typed.
    pub(super) typed_at: Option<Timestamp>,
    /// The time zone in which the program shows times.
    pub(super) zone: TimeZone,
    pub(super) outbox: MemberOutbox,
    /// Mail for the program, oldest first.
    pub(super) waiting: Vec<Envelope>,
    /// The delivery in progress.
    pub(super) turn: Option<PendingDelivery>,
    /// Set while the driver types the interrupt key.
    pub(super) interrupting: bool,
    /// Urgent messages for which a turn has been interrupted.
    pub(super) interrupted: BTreeSet<String>,
    /// Messages typed without a visible result before other mail was delivered. They stay unread
    /// and are not typed again in this run.
    pub(super) unseen: BTreeSet<String>,
    /// Messages that were announced to a program that reads them with tools. They stay unread until
    /// it does.
    pub(super) announced: BTreeSet<String>,
    /// The reason why the last delivery failed or is uncertain.
    pub(super) undelivered: Option<String>,
    /// No delivery begins before this time.
    pub(super) rest_until: Option<Timestamp>,
    /// Messages that need no further delivery; they may be repeated until they are marked as read.
    pub(super) handled: BTreeSet<String>,
    /// Shutdown requests that the wrapper answers itself.
    pub(super) pending: Vec<ShutdownRequest>,
    /// Shutdown requests that the agent answers.
    pub(super) forwarded: Vec<ForwardedRequest>,
    /// Requests accepted in this run; each is accepted only once.
    pub(super) honoured: BTreeSet<RequestId>,
    /// Shutdown was agreed to; the program is ended once all messages are sent.
    pub(super) agreed: bool,
    /// Set once the program is being ended.
    pub(super) leaving: Option<Leaving>,
    /// The exit code, once the wrapper is done.
    pub(super) end: Option<i32>,
}

impl State {
    /// The initial state, after the program was started.
    pub(super) fn new(me: Me, paste: Paste) -> State {
        State {
            me,
            now: Timestamp::default(),
            effects: Vec::new(),
            role: AgentRole::Teammate,
            teamless: false,
            paste,
            answers: BTreeMap::new(),
            mail: MailDelivery::Typed,
            shutdown: ShutdownPolicy::Auto,
            screen: None,
            dialogs: Dialogs::default(),
            typed_at: None,
            zone: TimeZone::UTC,
            outbox: MemberOutbox::new(false),
            waiting: Vec::new(),
            turn: None,
            interrupting: false,
            interrupted: BTreeSet::new(),
            unseen: BTreeSet::new(),
            announced: BTreeSet::new(),
            undelivered: None,
            rest_until: None,
            handled: BTreeSet::new(),
            pending: Vec::new(),
            forwarded: Vec::new(),
            honoured: BTreeSet::new(),
            agreed: false,
            leaving: None,
            end: None,
        }
    }

    /// Applies the profile's settings for dialogs and shutdown.
    pub(super) fn by(self, profile: &Profile) -> State {
        let (mail, shutdown) = (profile.mail, profile.shutdown);
        State { answers: profile.answers.clone(), mail, shutdown, ..self }
    }

    /// Sets the role. An agent lead needs no spawner to accept it.
    pub(super) fn on(mut self, role: AgentRole) -> State {
        self.outbox.accepted |= role == AgentRole::Lead;
        State { role, ..self }
    }

    /// Journals a warning.
    pub(super) fn warn(&mut self, text: String) {
        self.effects.push(Effect::Member(MemberEffect::Warn(text)));
    }

    /// Marks messages as read.
    pub(super) fn acknowledge(&mut self, ids: Vec<String>) {
        self.effects.push(Effect::Member(MemberEffect::Acknowledge(ids)));
    }

    /// Ids of the requests that await an answer.
    pub(super) fn pending(&self) -> impl Iterator<Item = &RequestId> {
        self.pending
            .iter()
            .chain(self.forwarded.iter().map(|forwarded| &forwarded.request))
            .map(|request| &request.id)
    }
}
