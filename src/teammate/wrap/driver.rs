//! The I/O shell around the wrapper's pure step function: judges the screen, turns changes into
//! events and executes the resulting effects.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::super::effect::OutboundOp;
use super::super::event::Failure;
use super::super::member_io::{self, Identity};
use super::super::state::Me;
use super::ask::Dialog;
use super::effect::Effect;
use super::event::{Event, Keyed, Refusal};
use super::pty_relay::{PtyRelay, Wake};
use super::react::react;
use super::state::{HAND_MS, Seat, State};
use super::turn::{self, Manner};
use crate::launcher::command;
use crate::model::envelope::Envelope;
use crate::model::event::{EventKind, Note};
use crate::model::id::RequestId;
use crate::model::placement::BackendKind;
use crate::model::protocol::{IdleNotification, Message};
use crate::model::text;
use crate::model::time::Timestamp;
use crate::model::topic::Topic;
use crate::ops::{self, Context, OpsError, Team};
use crate::profile::{self, Finding, Profile, ScreenState};
use crate::sys::clock::Deadline;
use crate::sys::failpoint;

/// Silence after which a screen is judged: before that it may be half drawn.
const STILL: Duration = Duration::from_millis(10);
/// Interval of judgements while a program prints without a pause.
const RESTLESS: Duration = Duration::from_millis(250);
/// Interval of full checks while idle, since a change notification can be lost.
const SWEEP: Duration = Duration::from_secs(60);
/// Number of screen rows reported at the end of a turn.
const LAST_ROWS: usize = 5;
/// Maximum length of the whole summary, in characters.
const SUMMARY: usize = 600;
/// Interval of full checks if changes cannot be watched.
const BLIND_SWEEP: Duration = Duration::from_secs(5);

pub(super) struct Driver<'a> {
    ctx: &'a Context,
    team: &'a Team,
    me: Identity,
    profile: Profile,
    state: State,
    relay: PtyRelay,
    /// The text to look for on the screen, from the last message typed.
    mark: Option<String>,
    /// Set if output arrived since the screen was judged.
    drawn: bool,
    /// The start of the current turn: offset in the journal, and time.
    turn_from: (u64, Timestamp),
    /// Time since the last judgement.
    judged: Deadline,
    /// Time without output, as of the last judgement.
    judged_quiet: Duration,
    wakes: Sender<Wake>,
}

/// Starts the program of this run on a pty and serves it until it exits. Returns the exit code.
/// Must be called on the main thread before other threads exist.
///
/// # Errors
///
/// The record belongs to a later run, the profile is missing, or the program or its terminal cannot
/// be opened. Later failures do not end the wrapper.
pub(crate) fn wrap(ctx: &Context, team: &Team, me: &Identity) -> Result<i32, OpsError> {
    let record = ops::status::record(team, &me.name)?.filter(|record| record.is(&me.incarnation));
    let Some(record) = record else {
        let problem = format!("`{}` has another run now", me.name);
        return Err(OpsError::Usage { problem, hint: None });
    };
    let start = Start {
        me: me.clone(),
        profile: ops::profiles::find(ctx, &record.wish.profile)?,
        argv: record.wish.argv.clone(),
        env: ctx.caller.env.clone(),
        seat: Seat::Teammate,
        // In a pane, tmux or iTerm2 answers the program's terminal queries.
        answers: record.backend == BackendKind::Pty,
        pane: ctx.caller.var("TMUX_PANE").map(|pane| pane.to_string_lossy().into_owned()),
        backend: record.backend.wire(),
    };
    let (driver, incoming, _wakes) = open(ctx, team, start)?;
    Ok(driver.run(&incoming))
}

/// Parameters for starting a wrapped program.
pub(super) struct Start {
    pub(super) me: Identity,
    pub(super) profile: Profile,
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) seat: Seat,
    /// Set if the wrapper must answer terminal queries itself, because no terminal emulator is
    /// attached.
    pub(super) answers: bool,
    /// The pane according to `$TMUX_PANE`.
    pub(super) pane: Option<String>,
    /// The backend's name in the team file.
    pub(super) backend: &'static str,
}

/// Starts the program. Also returns both ends of the driver's wake channel.
///
/// # Errors
///
/// The program is not found, or a terminal cannot be opened.
pub(super) fn open<'a>(
    ctx: &'a Context,
    team: &'a Team,
    start: Start,
) -> Result<(Driver<'a>, Receiver<Wake>, Sender<Wake>), OpsError> {
    let Start { me, profile, argv, env, seat, answers, pane, backend } = start;
    let cwd = ctx.caller.cwd.clone();
    let spec = command::CommandSpec { argv, cwd, env, size: (0, 0), alone: false };
    let refused = |problem: String| OpsError::Failed { problem };
    let program = command::program(&spec).map_err(refused)?;
    let (wakes, incoming) = channel();
    let relay = PtyRelay::open(&program, answers, &wakes).map_err(refused)?;
    let (name, incarnation) = (me.name.clone(), me.incarnation.clone());
    let myself = Me { name, incarnation, team: team.name().clone(), pane, backend };
    let state = State::new(myself, profile.paste).by(&profile).on(seat);
    let driver = Driver {
        ctx,
        team,
        me,
        profile,
        state,
        relay,
        mark: None,
        drawn: true,
        turn_from: (0, ops::now()),
        judged: Deadline::after(Duration::MAX),
        judged_quiet: Duration::ZERO,
        wakes: wakes.clone(),
    };
    Ok((driver, incoming, wakes))
}

impl Driver<'_> {
    pub(super) fn run(mut self, incoming: &Receiver<Wake>) -> i32 {
        let changed = self.wakes.clone();
        // Subscribe before the first read, so that no change is missed between them.
        let watch = ops::events::watch_as(self.team, &self.me.name, move |topic| {
            drop(changed.send(Wake::Changed(topic)))
        });
        let sweep = watch.as_ref().map_or(BLIND_SWEEP, |_| SWEEP);
        self.step(Event::Tick);
        self.look(&Topic::Everything);
        loop {
            if let Some(code) = self.state.end() {
                return code;
            }
            let now = ops::now();
            let tick = self.state.next_tick(now).map(|at| Duration::from_millis(at.since(now)));
            let judge_in = self.judge_in();
            let wait = [tick, judge_in].into_iter().flatten().fold(sweep, Duration::min);
            match incoming.recv_timeout(wait) {
                Ok(wake) => self.take_all(wake, incoming),
                Err(RecvTimeoutError::Timeout) if tick.is_none() && judge_in.is_none() => {
                    self.look(&Topic::Everything);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.judge_if_due();
                    self.step(Event::Tick);
                }
                // Cannot happen: the driver holds a sender itself.
                Err(RecvTimeoutError::Disconnected) => return 1,
            }
            self.judge_if_due();
        }
    }

    /// Handles all queued wakes, then reads each changed topic once. Topics come last, so that
    /// frequent file changes do not delay the screen.
    fn take_all(&mut self, first: Wake, incoming: &Receiver<Wake>) {
        let mut topics = Vec::new();
        for wake in std::iter::once(first).chain(incoming.try_iter()) {
            match wake {
                Wake::Drawn => self.drawn = true,
                Wake::Hand => self.step(Event::Hand),
                Wake::Put => {
                    failpoint::hit("wrap.typed");
                    self.step(Event::Staged(Ok(())));
                }
                Wake::Changed(topic) if topics.contains(&topic) => {}
                Wake::Changed(topic) => topics.push(topic),
                Wake::Signal(signal) => self.step(Event::Signal(signal)),
                Wake::Ended(code) => self.step(Event::Ended(code)),
            }
        }
        topics.iter().for_each(|topic| self.look(topic));
    }

    fn judge_if_due(&mut self) {
        if self.judge_in() == Some(Duration::ZERO) {
            self.judge();
        }
    }

    /// Returns the time until the next judgement; none while it could not differ from the last.
    fn judge_in(&self) -> Option<Duration> {
        let quiet = self.relay.quiet();
        if self.drawn {
            let restless = RESTLESS.saturating_sub(self.judged.elapsed());
            return Some(STILL.saturating_sub(quiet).min(restless));
        }
        let times = self.profile.quiet_times().map(Duration::from_millis);
        let next = times.filter(|time| *time > self.judged_quiet).min();
        next.map(|time| time.saturating_sub(quiet))
    }

    fn judge(&mut self) {
        let look = self.relay.look();
        self.drawn = false;
        self.judged = Deadline::after(Duration::MAX);
        self.judged_quiet = Duration::from_millis(look.quiet_ms);
        let shown = self.mark.as_ref().is_some_and(|mark| turn::shows(&look.rows, mark));
        let finding = profile::judge(&self.profile, &look);
        self.step(Event::Seen { finding, shown });
    }

    /// Reads what `topic` covers and steps with the resulting event.
    fn look(&mut self, topic: &Topic) {
        if !self.team.exists() {
            return self.step(Event::Over);
        }
        match topic {
            Topic::Journal | Topic::Tasks | Topic::Settings => {}
            Topic::Mail(owner) if *owner != self.me.name.file_stem() => {}
            Topic::Roster | Topic::Mail(_) => {
                let event = self.mail();
                // Reading a long mailbox takes time, and timeouts must be decided on the current
                // screen.
                self.judge_if_due();
                self.step(event);
            }
            Topic::Members | Topic::Member(_) if self.state.seat == Seat::Lead => {}
            Topic::Members | Topic::Member(_) => self.look_at_record(),
            Topic::Requests => {
                let ids: Vec<String> = self.state.pending().map(RequestId::to_string).collect();
                if !ids.is_empty() {
                    let requests = member_io::requests(self.team, ids);
                    self.step(Event::Requests(requests));
                }
            }
            Topic::Everything => {
                let mail = Topic::Mail(self.me.name.file_stem());
                [Topic::Members, Topic::Requests, mail].iter().for_each(|part| self.look(part));
            }
        }
    }

    fn look_at_record(&mut self) {
        // An unreadable record does not prove that another run has replaced this one.
        let Ok(Some(record)) = ops::status::record(self.team, &self.me.name) else { return };
        if !record.is(&self.me.incarnation) {
            return self.step(Event::Over);
        }
        // A withdrawn start may still run for a moment; such a run must not receive mail.
        if record.state.is_up() {
            self.step(Event::Accepted(record.state));
        }
    }

    fn mail(&self) -> Event {
        match member_io::mail(self.team, &self.me.name) {
            Ok((mail, requests)) => Event::Mail { mail, requests },
            Err(e) => self.failed(&e, Event::NoMail),
        }
    }

    /// Returns the event for a failure. A deleted team replaces every other reason.
    fn failed(&self, e: &OpsError, report: impl FnOnce(Failure) -> Event) -> Event {
        if !self.team.exists() { Event::Over } else { report(member_io::failure(e)) }
    }

    fn step(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for effect in react(&mut self.state, event, ops::now()) {
                events.extend(self.carry_out(effect));
            }
        }
    }

    /// Executes one effect. Returns its event if the result is known at once.
    fn carry_out(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Warn(text) => {
                self.note(Note::of(EventKind::Warning).with("text", text));
                None
            }
            Effect::Note { kind, ids, reason } => {
                let note = Note::of(kind).with("msg_ids", ids);
                self.note(match reason {
                    Some(reason) => note.with("reason", reason),
                    None => note,
                });
                None
            }
            Effect::Acknowledge(ids) => {
                failpoint::hit("wrap.observed");
                let marked = ops::inbox::acknowledge(self.team, &self.me.name, &ids);
                failpoint::hit("wrap.acknowledged");
                marked.err().map(|e| self.failed(&e, Event::NotMarked))
            }
            Effect::LookAtMail => Some(self.mail()),
            Effect::Stage(mail) => {
                self.stage(&mail).err().map(|refusal| Event::Staged(Err(refusal)))
            }
            Effect::Submit => {
                failpoint::hit("wrap.staged");
                // Usually held since staging, but released while a text waited for a working
                // program.
                self.relay.hold_keyboard(Duration::from_millis(HAND_MS));
                self.relay.type_in(self.profile.keys.submit.clone().into_bytes());
                failpoint::hit("wrap.submitted");
                None
            }
            Effect::Answer { dialog, keys } => {
                let fits = |finding: &Finding| Dialog::on(finding).as_ref() == Some(&dialog);
                Some(Event::Answered(self.key(keys, fits)))
            }
            Effect::Interrupt => {
                // May be empty: the sender of an urgent message is warned if the profile has no
                // such key.
                let keys = self.profile.keys.interrupt.clone().unwrap_or_default();
                Some(Event::Interrupted(
                    self.key(keys, |finding| finding.state == ScreenState::Working),
                ))
            }
            Effect::Release => {
                self.relay.release_keyboard();
                None
            }
            Effect::End { keys } => {
                self.relay.end(if keys { self.profile.keys.quit.clone() } else { Vec::new() });
                None
            }
            Effect::Do(op) => Some(match self.run_errand(op) {
                Ok(true) => Event::Done(Ok(())),
                Ok(false) => Event::Over,
                Err(e) => self.failed(&e, |failure| Event::Done(Err(failure))),
            }),
        }
    }

    fn run_errand(&mut self, op: OutboundOp) -> Result<bool, OpsError> {
        let OutboundOp::Say(message) = op else {
            return member_io::run_errand(self.ctx, self.team, &self.me, op);
        };
        let (message, next) = match *message {
            Message::IdleNotification(notice) => {
                let (notice, next) = self.report(notice)?;
                (Message::IdleNotification(notice), next)
            }
            other => (other, self.turn_from),
        };
        let said = member_io::run_errand(
            self.ctx,
            self.team,
            &self.me,
            OutboundOp::Say(Box::new(message)),
        )?;
        self.turn_from = next;
        Ok(said)
    }

    /// Adds the result of the turn to an idle notification: the task that ended, the last message
    /// to a peer, and the program's last words or else the end of its screen. Also returns the
    /// start of the next turn.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    fn report(
        &self,
        notice: IdleNotification,
    ) -> Result<(IdleNotification, (u64, Timestamp)), OpsError> {
        let (offset, since) = self.turn_from;
        let now = ops::now();
        let (deeds, at) = ops::turn::deeds(self.team, &self.me.name, since, offset)?;
        let screen =
            || profile::last_words(&self.profile, &self.relay.look(), LAST_ROWS).join("\n");
        let words = deeds.last_words.unwrap_or_else(screen);
        let parts: Vec<String> =
            deeds.told.into_iter().chain([words].into_iter().filter(|w| !w.is_empty())).collect();
        let summary = Some(bounded(&parts.join("\n"))).filter(|summary| !summary.is_empty());
        let completed_status =
            deeds.task.map(|(_, well)| if well { "success" } else { "failed" }.to_owned());
        let completed_task_id = deeds.task.map(|(id, _)| id.to_string());
        Ok((IdleNotification { summary, completed_task_id, completed_status, ..notice }, (at, now)))
    }

    fn note(&self, note: Note) {
        // Best effort: the journal is a history only. A deleted team is not recreated.
        if self.team.exists() {
            let _ = ops::events::note(self.team, note.member(&self.me.name));
        }
    }

    /// Types the keys if no person is typing and the screen still fits them.
    fn key(&mut self, keys: String, fits: impl Fn(&Finding) -> bool) -> Keyed {
        if !self.relay.hold_keyboard(Duration::from_millis(HAND_MS)) {
            return Keyed::Hand;
        }
        let here = fits(&profile::judge(&self.profile, &self.relay.look()));
        if here {
            self.relay.type_in(keys.into_bytes());
        }
        self.relay.release_keyboard();
        // The new screen content has to be judged.
        self.drawn |= !here;
        if here { Keyed::Typed } else { Keyed::Gone }
    }

    /// Starts typing the messages into the composer. Completion is reported as [`Wake::Put`].
    ///
    /// # Errors
    ///
    /// A person is typing, or a long text cannot be written to a file.
    fn stage(&mut self, mail: &[Envelope]) -> Result<(), Refusal> {
        if !self.relay.hold_keyboard(Duration::from_millis(HAND_MS)) {
            return Err(Refusal::Hand);
        }
        let paste = self.profile.paste;
        let bracketed = paste.bracketed && self.relay.look().bracketed_paste;
        let manner = Manner { bracketed, most_bytes: paste.most_bytes };
        let rendered = mail
            .iter()
            .map(|envelope| self.render(manner, envelope))
            .collect::<Result<Vec<_>, _>>();
        let rendered = rendered.map_err(|e| Refusal::Failed(member_io::failure(&e)))?;
        self.mark = turn::mark(&rendered);
        let gap = if bracketed { Duration::ZERO } else { Duration::from_millis(paste.gap_ms) };
        self.relay.type_text(manner.keys(&rendered), gap);
        Ok(())
    }

    fn render(&self, manner: Manner, envelope: &Envelope) -> Result<String, OpsError> {
        let file: Option<PathBuf> = match manner.takes(&envelope.text) {
            true => None,
            false => Some(ops::inbox::put_aside(self.team, &self.me.name, envelope)?),
        };
        Ok(manner.render(envelope, file.as_deref()))
    }
}

/// Makes a text printable and keeps its end, which has the latest information.
fn bounded(said: &str) -> String {
    let said = text::block(said);
    let over = said.chars().count().saturating_sub(SUMMARY);
    said.chars().skip(over).collect()
}
