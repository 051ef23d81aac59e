//! What a wrapper knows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::effect::Errand;
use super::super::state::{Me, Pending};
use super::ask::{self, Dialogs};
use super::part::Put;
use crate::model::envelope::Envelope;
use crate::model::id::RequestId;
use crate::model::time::Timestamp;
use crate::profile::{Answer, Composer, Finding, Paste, Profile, ScreenState, ShutdownPolicy};

/// A person who has typed nothing for so long is not at it (MSG-11).
pub(super) const HAND_MS: u64 = 2000;
/// A screen that shows something for so long is believed; less is a flicker.
pub(super) const BELIEF_MS: u64 = 300;
/// So long a text may take to appear in the composer.
pub(super) const APPEAR_MS: u64 = 10_000;
/// A text that still stands in the composer so long after the submit key was not taken.
pub(super) const RETRY_MS: u64 = 1500;
/// So long a turn may take to be seen after the composer took the text.
pub(super) const OBSERVE_MS: u64 = 10_000;
/// How often the submit key is typed for one text.
pub(super) const TRIES: u8 = 3;
/// After a text could not be made nothing is tried for this long.
pub(super) const LONG_PAUSE_MS: u64 = 60_000;

/// How far the messages in hand are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The driver types them.
    Typing,
    /// They are typed, and not submitted.
    Staged,
    /// The same, and the program has begun to work by itself: they are submitted when it rests, if nobody has typed.
    Left,
    /// The submit key was typed so many times.
    Submitted(u8),
    /// It was typed as often as it may be, or a person has taken over: nothing more is typed, only watched.
    Stuck,
}

/// Messages on their way into the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) ids: Vec<String>,
    pub(super) step: Step,
    /// When this step began.
    pub(super) at: Timestamp,
    /// Their text was seen in the composer.
    pub(super) stood: bool,
}

/// What the program's screen shows, as far as anybody outside is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Life {
    Idle,
    Working,
    /// It needs a person; why.
    Blocked(String),
}

/// The screen, and since when it shows that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) finding: Finding,
    pub(super) shown: bool,
    pub(super) since: Timestamp,
}

impl Sight {
    /// It waits for input and nothing stands in its composer.
    pub(super) fn is_free(&self) -> bool {
        self.rests() && self.finding.composer == Composer::Empty
    }

    /// It waits for input.
    pub(super) fn rests(&self) -> bool {
        matches!(self.finding.state, ScreenState::Idle | ScreenState::Ready)
    }

    pub(super) fn works(&self) -> bool {
        self.finding.state == ScreenState::Working
    }

    pub(super) fn holds_text(&self) -> bool {
        matches!(self.finding.composer, Composer::Holds(_))
    }

    /// None: it cannot be told.
    pub(super) fn life(&self) -> Option<Life> {
        let Finding { state, rule, evidence, .. } = &self.finding;
        match state {
            ScreenState::Ready | ScreenState::Idle => Some(Life::Idle),
            ScreenState::Working => Some(Life::Working),
            ScreenState::Blocked(_) | ScreenState::Dialog(_) | ScreenState::NeedsLogin => {
                let what = state.to_string();
                let what = what.strip_prefix("blocked:").unwrap_or(&what);
                Some(Life::Blocked(format!("blocked: {what} (rule {rule}: {evidence})")))
            }
            ScreenState::Unknown => None,
        }
    }
}

/// It was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leaving {
    pub(super) code: i32,
    /// The program has until then to be gone.
    pub(super) by: Timestamp,
}

/// Whose program it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seat {
    Teammate,
    /// The lead itself: the lead's loop sees to the rest.
    Lead,
}

/// All that a wrapper knows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub(super) me: Me,
    pub(super) seat: Seat,
    /// The team has gone, and the program goes on.
    pub(super) teamless: bool,
    /// As its profile says.
    pub(super) paste: Paste,
    /// As its profile says.
    pub(super) answers: BTreeMap<String, Answer>,
    /// As its profile says.
    pub(super) shutdown: ShutdownPolicy,
    pub(super) sight: Option<Sight>,
    pub(super) dialogs: Dialogs,
    /// When a person has typed last.
    pub(super) hand_at: Option<Timestamp>,
    /// What the record was told last; none: nothing yet.
    pub(super) told: Option<Life>,
    /// Its hello was said, or is about to be.
    pub(super) up: bool,
    /// It counts as a member. A start may still be taken back, and until then nothing is typed.
    pub(super) accepted: bool,
    /// Mail for the program, oldest first.
    pub(super) waiting: Vec<Envelope>,
    pub(super) turn: Option<Turn>,
    /// The driver types the key that breaks off a turn.
    pub(super) interrupting: bool,
    /// Urgent messages that a turn was broken off for.
    pub(super) interrupted: BTreeSet<String>,
    /// Was typed and not seen to arrive, and other mail came: it stays unread, and is not typed again in this run.
    pub(super) unseen: BTreeSet<String>,
    /// Why the mail that was typed last cannot be said to be delivered.
    pub(super) undelivered: Option<String>,
    /// Nothing is typed before this.
    pub(super) rest_until: Option<Timestamp>,
    /// Words that have not been said yet, in order.
    pub(super) errands: VecDeque<Errand>,
    /// The driver is at an errand.
    pub(super) asked: bool,
    pub(super) mail_due: bool,
    /// Something failed: no errand and no look at the mail before this.
    pub(super) pause_until: Option<Timestamp>,
    /// What failed last; the same is not complained of twice in a row.
    pub(super) complaint: Option<String>,
    pub(super) handled: BTreeSet<String>,
    pub(super) pending: Vec<Pending>,
    /// Requests to end that are the agent's to answer.
    pub(super) put: Vec<Put>,
    pub(super) honoured: BTreeSet<RequestId>,
    /// It has agreed to end: once this is said, it does.
    pub(super) agreed: bool,
    pub(super) leaving: Option<Leaving>,
    pub(super) end: Option<i32>,
}

impl State {
    /// A wrapper that has just started its program.
    pub(crate) fn new(me: Me, paste: Paste) -> State {
        State {
            me,
            seat: Seat::Teammate,
            teamless: false,
            paste,
            answers: BTreeMap::new(),
            shutdown: ShutdownPolicy::Auto,
            sight: None,
            dialogs: Dialogs::default(),
            hand_at: None,
            told: None,
            up: false,
            accepted: false,
            waiting: Vec::new(),
            turn: None,
            interrupting: false,
            interrupted: BTreeSet::new(),
            unseen: BTreeSet::new(),
            undelivered: None,
            rest_until: None,
            errands: VecDeque::new(),
            asked: false,
            mail_due: true,
            pause_until: None,
            complaint: None,
            handled: BTreeSet::new(),
            pending: Vec::new(),
            put: Vec::new(),
            honoured: BTreeSet::new(),
            agreed: false,
            leaving: None,
            end: None,
        }
    }

    /// With what its profile says of dialogs and of its end.
    pub(crate) fn by(self, profile: &Profile) -> State {
        State { answers: profile.answers.clone(), shutdown: profile.shutdown, ..self }
    }

    /// In this place. The lead's program needs nobody to accept it.
    pub(crate) fn on(self, seat: Seat) -> State {
        State { accepted: self.accepted || seat == Seat::Lead, seat, ..self }
    }

    /// The exit code, once it is time to go.
    pub(crate) fn end(&self) -> Option<i32> {
        self.end
    }

    /// When it wants to be told that time has passed; none while nothing depends on it.
    pub(crate) fn next_tick(&self, now: Timestamp) -> Option<Timestamp> {
        let mut times: Vec<Timestamp> = self.pending.iter().map(|p| p.answer_by).collect();
        times.extend(self.put.iter().map(|put| put.pending.answer_by));
        times.extend(self.leaving.map(|leaving| leaving.by));
        times.extend(self.pause_until);
        times.extend(self.rest_until.filter(|_| !self.waiting.is_empty()));
        times.extend(
            self.hand_at.filter(|_| !self.waiting.is_empty()).map(|at| at.plus_ms(HAND_MS)),
        );
        let spans = |from: Timestamp, spans: &[u64]| {
            spans.iter().map(|ms| from.plus_ms(*ms)).collect::<Vec<_>>()
        };
        times.extend(
            self.sight
                .iter()
                .flat_map(|sight| spans(sight.since, &[BELIEF_MS, self.paste.settle_ms])),
        );
        times.extend(ask::next_times(self));
        let turn = [self.paste.settle_ms, RETRY_MS, APPEAR_MS, OBSERVE_MS];
        times.extend(self.turn.iter().flat_map(|t| spans(t.at, &turn)));
        if let (Some(_), Some(sight)) = (&self.turn, &self.sight) {
            times.extend(spans(sight.since, &[RETRY_MS, OBSERVE_MS]));
        }
        times.into_iter().filter(|at| *at > now).min()
    }

    /// The requests that wait for an answer.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &RequestId> {
        self.pending.iter().chain(self.put.iter().map(|put| &put.pending)).map(|p| &p.request.id)
    }
}
