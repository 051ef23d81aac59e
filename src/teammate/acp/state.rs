//! The state of a member over ACP.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::tz::TimeZone;

use super::super::effect::MemberEffect;
use super::super::outbox::{Activity, MemberOutbox};
use super::super::state::{Leaving, Me};
use super::super::words::AgentRole;
use super::effect::Effect;
use super::face::ConversationUpdate;
use acp::{AgentFailure, FailureKind, QuestionId, Session};
use conversation::ConversationStatus;
use model::decisions::request::ShutdownRequest;
use model::id::RequestId;
use model::mail::envelope::Envelope;
use model::members::mode::Mode;
use model::members::rate_limit::{LimitHit, end_of};
use model::time::Timestamp;
use serde_json::Value;

/// Milliseconds without output after which a turn counts as silent: agents retry without a word.
pub(super) const SILENCE_MS: u64 = 30_000;
/// Milliseconds in which the replay of a loaded conversation may follow the reply to its load, as
/// with gemini.
const REPLAY_MS: u64 = 2000;
/// Maximum length of the end of the agent's last message that is kept, in characters.
pub(super) const LAST_WORDS: usize = 600;

/// What the agent is to be set up with, besides its session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct AgentFacts {
    /// A prompt of mail needs a heading.
    pub(super) needs_heading: bool,
    /// Words of the profile for each mode.
    pub(super) modes: BTreeMap<Mode, String>,
    /// The version with which its profile was tried, and the command line that installs it.
    pub(super) seen: Option<String>,
    pub(super) install: Option<String>,
}

/// A prompt that the agent works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunningPrompt {
    /// Ids of its messages that are not acknowledged.
    pub(super) ids: Vec<String>,
    /// The agent has received it.
    pub(super) is_received: bool,
    /// Time from which an agent that has received it has also stored it.
    pub(super) stored_at: Timestamp,
    /// Time of the agent's last output, or of the last answer: until then the agent has waited.
    pub(super) heard_at: Timestamp,
    /// The silence is on record, or that the agent repeats a request.
    pub(super) has_remark: bool,
}

/// Urgent messages that were sent into a turn without a reply so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SteeredMail {
    /// The number of the turn.
    pub(super) turn: u64,
    pub(super) ids: Vec<String>,
    /// Set once the turn has ended: the time after which no reply is expected.
    pub(super) reply_by: Option<Timestamp>,
}

/// A question of the agent that was filed as a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FiledQuestion {
    pub(super) request: RequestId,
    pub(super) question: QuestionId,
    pub(super) is_plan: bool,
    /// The input of the tool, as it was filed.
    pub(super) input: Value,
}

/// The complete state.
#[derive(Debug)]
pub(super) struct State {
    pub(super) me: Me,
    /// Time of the last event.
    pub(super) now: Timestamp,
    /// Effects of the current step.
    pub(super) effects: Vec<Effect>,
    pub(super) role: AgentRole,
    /// Set if the team is gone but the agent lead continues.
    pub(super) teamless: bool,
    pub(super) facts: AgentFacts,
    pub(super) zone: TimeZone,
    pub(super) session: Session,
    pub(super) outbox: MemberOutbox,
    /// Mail for the agent, oldest first.
    pub(super) waiting: Vec<Envelope>,
    /// Prompts that a person has typed, and words of this program, oldest first.
    pub(super) typed: VecDeque<String>,
    pub(super) turn: Option<RunningPrompt>,
    /// The number of turns so far.
    pub(super) turns: u64,
    /// Urgent messages for which a turn was cancelled or steered.
    pub(super) interrupted: BTreeSet<String>,
    /// Urgent messages that are being taken into a turn, by their tag.
    pub(super) steered: BTreeMap<String, SteeredMail>,
    /// Time when the session was ready.
    pub(super) ready_at: Timestamp,
    /// Messages that an earlier run, or this one, has sent without a receipt.
    pub(super) in_doubt: BTreeSet<String>,
    pub(super) filed: Vec<FiledQuestion>,
    /// The number of requests filed so far.
    pub(super) asked: u64,
    /// The failure of the last turn.
    pub(super) failure: Option<AgentFailure>,
    /// The usage limit of the last turn.
    pub(super) limit: Option<(LimitHit, Timestamp)>,
    pub(super) model: Option<String>,
    /// The message whose text is in `last_words`.
    pub(super) message: Option<String>,
    /// The end of the agent's last message.
    pub(super) last_words: String,
    /// The paths of the files that the agent has changed in its last turn.
    pub(super) changed: BTreeSet<String>,
    /// The last status shown.
    pub(super) shown: ConversationStatus,
    /// Messages that need no further delivery; they may be repeated until they are marked as read.
    pub(super) handled: BTreeSet<String>,
    /// Shutdown requests to answer.
    pub(super) pending: Vec<ShutdownRequest>,
    /// Requests accepted in this run; each is accepted only once.
    pub(super) honoured: BTreeSet<RequestId>,
    /// Shutdown was agreed to; the agent is ended once all messages are sent.
    pub(super) agreed: bool,
    pub(super) leaving: Option<Leaving>,
    /// Set once the agent has exited, or is left: until then, what is queued is still sent.
    pub(super) closing: Option<Leaving>,
    /// The exit code, once this program is done.
    pub(super) end: Option<i32>,
}

impl State {
    pub(super) fn new(me: Me, session: Session, facts: AgentFacts, role: AgentRole) -> State {
        State {
            me,
            now: Timestamp::default(),
            effects: Vec::new(),
            role,
            teamless: false,
            facts,
            zone: TimeZone::UTC,
            session,
            // An agent lead needs no spawner to accept it.
            outbox: MemberOutbox::new(role == AgentRole::Lead),
            waiting: Vec::new(),
            typed: VecDeque::new(),
            turn: None,
            turns: 0,
            interrupted: BTreeSet::new(),
            steered: BTreeMap::new(),
            ready_at: Timestamp::default(),
            in_doubt: BTreeSet::new(),
            filed: Vec::new(),
            asked: 0,
            failure: None,
            limit: None,
            model: None,
            message: None,
            last_words: String::new(),
            changed: BTreeSet::new(),
            shown: ConversationStatus::default(),
            handled: BTreeSet::new(),
            pending: Vec::new(),
            honoured: BTreeSet::new(),
            agreed: false,
            leaving: None,
            closing: None,
            end: None,
        }
    }

    /// Journals a warning.
    pub(super) fn warn(&mut self, text: String) {
        self.effects.push(Effect::Member(MemberEffect::Warn(text)));
    }

    /// Marks messages as read.
    pub(super) fn acknowledge(&mut self, ids: Vec<String>) {
        self.effects.push(Effect::Member(MemberEffect::Acknowledge(ids)));
    }

    /// Shows something to the person.
    pub(super) fn show(&mut self, update: ConversationUpdate) {
        self.effects.push(Effect::Show(update));
    }

    /// Returns whether the agent can take a prompt now.
    pub(super) fn is_free(&self) -> bool {
        self.session.is_free() && self.turn.is_none()
    }

    /// Returns whether the agent waits for an answer.
    pub(super) fn is_asked(&self) -> bool {
        self.session.questions().next().is_some()
    }

    /// Returns the time from which messages in doubt are sent again; `None` if there are none.
    pub(super) fn settled_at(&self) -> Option<Timestamp> {
        let is_ready = self.session.is_ready() && !self.in_doubt.is_empty();
        is_ready.then(|| self.ready_at.plus_ms(REPLAY_MS))
    }

    /// Returns what the agent does; `None` before its session has begun.
    pub(super) fn activity(&self) -> Option<Activity> {
        if !self.session.is_ready() {
            return None;
        }
        if self.turn.is_some() {
            return Some(Activity::Working);
        }
        if let Some((hit, _)) = &self.limit {
            return Some(Activity::Limited(hit.clone()));
        }
        Some(match &self.failure {
            Some(failure) => Activity::Failed {
                said: failure.said.clone(),
                needs_login: failure.kind == FailureKind::NeedsLogin,
            },
            None => Activity::Idle,
        })
    }

    /// Returns the time before which a turn would fail for lack of quota.
    pub(super) fn limited_until(&self) -> Option<Timestamp> {
        let (hit, since) = self.limit.as_ref()?;
        Some(end_of(*since, hit.until, self.outbox.refusals))
    }

    /// Ids of the requests that await an answer.
    pub(super) fn pending(&self) -> impl Iterator<Item = &RequestId> {
        self.pending.iter().map(|request| &request.id)
    }
}
