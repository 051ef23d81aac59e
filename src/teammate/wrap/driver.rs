//! The I/O shell around the wrapper's pure step function: judges the screen, turns changes into
//! events and executes the resulting effects.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::runtime::Builder;

use super::super::effect::MemberEffect;
use super::super::member_io::{self, MemberIo, ProgramStart};
use super::dialog::Dialog;
use super::effect::Effect;
use super::event::{Event, Keyed, StageRefusal};
use super::pty_relay::{PtyRelay, WrapperInput};
use super::react::react;
use super::render::{self, TypingMode};
use super::state::{State, TYPING_MS};
use event_loop::{BLIND_SWEEP, Batch, InputQueue, SWEEP};
use launcher::command;
use model::mail::envelope::Envelope;
use model::time::Timestamp;
use model::topic::Topic;
use ops::{self, Context, JournalReader, OpsError, TeamStore};
use profile::{self, Composer, Profile, ScreenFinding, ScreenState};
use sys::clock::{self, Deadline};
use sys::failpoint;
use sys::signal::Signal;

/// Silence after which a screen is judged: before that it may be half drawn.
const SETTLE_TIME: Duration = Duration::from_millis(10);
/// Interval of judgements while a program prints without a pause.
const RESTLESS: Duration = Duration::from_millis(250);
/// Number of screen rows reported at the end of a turn.
const LAST_ROWS: usize = 5;

/// A running program that is wrapped.
pub struct WrapperDriver<'a> {
    io: MemberIo<'a>,
    profile: Profile,
    state: State,
    relay: PtyRelay,
    /// The text to look for on the screen, from the last message typed.
    mark: Option<String>,
    /// The letters of the last text that phalanx gave to the program, and of what it followed.
    given: Option<String>,
    /// Set if output arrived since the screen was judged.
    drawn: bool,
    /// The start of the current turn: position in the journal, and time.
    turn_from: (JournalReader, Timestamp),
    /// Time since the last judgement.
    judged: Deadline,
    /// Time without output, as of the last judgement.
    judged_quiet: Duration,
    queue: InputQueue<WrapperInput>,
}

/// Starts the program. Our terminal answers its queries.
///
/// # Errors
///
/// The program is not found, or a terminal cannot be opened.
pub(in super::super) fn open<'a>(
    ctx: &'a Context,
    team: &'a TeamStore,
    start: ProgramStart,
) -> Result<WrapperDriver<'a>, OpsError> {
    let myself = start.me.identity(ctx, team, start.backend);
    let ProgramStart { me, profile, argv, env, role, .. } = start;
    let cwd = ctx.caller.cwd.clone();
    // Its first prompt, if that is the value of its last option.
    let last = argv.last().and_then(|word| word.split_once('='));
    let given = last.map(|(_, prompt)| render::letters(prompt));
    let spec = command::CommandSpec { argv, cwd, env, size: (0, 0), alone: false };
    let refused = |problem: String| OpsError::Failed { problem };
    let program = command::program(&spec).map_err(refused)?;
    let queue = InputQueue::default();
    // Nothing may fail once the program runs: no process would be left to end it.
    let turn_from = (team.journal_end()?, ops::now());
    let relay = PtyRelay::open(&program, &queue.inputs()).map_err(refused)?;
    let state = State::new(myself, profile.paste).by(&profile).on(role);
    let state = State { zone: clock::local_zone(), ..state };
    Ok(WrapperDriver {
        io: MemberIo { ctx, team, me },
        profile,
        state,
        relay,
        mark: None,
        given,
        drawn: true,
        turn_from,
        judged: Deadline::after(Duration::MAX),
        judged_quiet: Duration::ZERO,
        queue,
    })
}

impl WrapperDriver<'_> {
    /// Serves the program until it exits. Returns the exit code.
    pub(in super::super) fn serve(self) -> i32 {
        // All inputs come from threads, so the runtime needs only its timers.
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime.expect("timers need no resources").block_on(self.run())
    }

    async fn run(mut self) -> i32 {
        let inputs = self.queue.inputs();
        // Subscribe before the first read, so that no change is missed between them.
        let MemberIo { team, me, .. } = &self.io;
        let watch = team.watch_as(&me.name, move |topic| inputs.send_change(topic));
        let interval = watch.as_ref().map_or(BLIND_SWEEP, |_| SWEEP);
        // A deadline, because a program that prints without a pause leaves no idle moment.
        let mut sweep = Deadline::after(interval);
        self.step(Event::Tick);
        self.read(&Topic::Everything);
        loop {
            if let Some(code) = self.state.end {
                return code;
            }
            let now = ops::now();
            let tick = self.state.next_tick(now).map(|at| Duration::from_millis(at.since(now)));
            let wait =
                tick.into_iter().chain(self.judge_in()).fold(sweep.remaining(), Duration::min);
            match tokio::time::timeout(wait, self.queue.receive()).await {
                Ok(batch) => self.handle(batch),
                Err(_) => {
                    self.judge_if_due();
                    self.step(Event::Tick);
                }
            }
            if sweep.expired() {
                sweep = Deadline::after(interval);
                self.read(&Topic::Everything);
            }
            self.judge_if_due();
        }
    }

    /// Returns a function that ends the program from another thread.
    pub(in super::super) fn ender(&self) -> impl FnOnce() + Send + 'static {
        let inputs = self.queue.inputs();
        move || inputs.send(WrapperInput::Signal(Signal::Terminate))
    }

    /// Handles all inputs. Topics come last, so that frequent file changes do not delay the screen.
    fn handle(&mut self, (topics, others): Batch<WrapperInput>) {
        for input in others {
            match input {
                WrapperInput::Output => self.drawn = true,
                WrapperInput::PersonTyped => self.step(Event::PersonTyped),
                WrapperInput::TextTyped => {
                    failpoint::hit("wrap.typed");
                    self.step(Event::Staged(Ok(())));
                }
                WrapperInput::Signal(signal) => self.step(Event::Signal(signal)),
                WrapperInput::Ended(code) => self.step(Event::Ended(code)),
            }
        }
        topics.iter().for_each(|topic| self.read(topic));
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
            return Some(SETTLE_TIME.saturating_sub(quiet).min(restless));
        }
        let times = self.profile.quiet_times().map(Duration::from_millis);
        let next = times.filter(|time| *time > self.judged_quiet).min();
        next.map(|time| time.saturating_sub(quiet))
    }

    fn judge(&mut self) {
        let snapshot = self.relay.snapshot();
        self.drawn = false;
        self.judged = Deadline::after(Duration::MAX);
        self.judged_quiet = Duration::from_millis(snapshot.quiet_ms);
        let shown = self.mark.as_ref().is_some_and(|mark| render::shows(&snapshot.rows, mark));
        let mut finding = profile::judge(&self.profile, &snapshot);
        // A program puts the prompt of an interrupted turn back. Mail may follow it there (MSG-21).
        if let Composer::Holds(text) = &finding.composer
            && self.state.turn.is_none()
            && self.given == Some(render::letters(text))
        {
            finding.composer = Composer::Empty;
        }
        self.step(Event::Judged { finding, shown });
    }

    /// Reads what `topic` covers and steps with the resulting event.
    fn read(&mut self, topic: &Topic) {
        if *topic == Topic::Everything {
            return self.io.topics().iter().for_each(|part| self.read(part));
        }
        let Some(event) = self.io.read(topic, self.state.pending()) else { return };
        if matches!(topic, Topic::Roster | Topic::Mail(_)) {
            // Reading a long mailbox takes time, and timeouts must be decided on the current
            // screen.
            self.judge_if_due();
        }
        self.step(Event::Member(event));
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
            Effect::Member(MemberEffect::Do(op)) => {
                let screen = || {
                    profile::last_words(&self.profile, &self.relay.snapshot(), LAST_ROWS).join("\n")
                };
                Some(Event::Member(self.io.execute_in_turn(op, &mut self.turn_from, screen)))
            }
            Effect::Member(effect @ MemberEffect::Acknowledge(_)) => {
                failpoint::hit("wrap.observed");
                let event = self.io.carry_out(effect);
                failpoint::hit("wrap.acknowledged");
                event.map(Event::Member)
            }
            Effect::Member(effect) => self.io.carry_out(effect).map(Event::Member),
            Effect::Journal { kind, ids, reason } => {
                self.io.journal_delivery(kind, ids, reason);
                None
            }
            Effect::Stage(mail) => {
                self.stage(&mail).err().map(|refusal| Event::Staged(Err(refusal)))
            }
            Effect::Announce(count) => {
                let line = vec![render::announcement(count)];
                self.type_texts(|_, _| Ok(line)).err().map(|refusal| Event::Staged(Err(refusal)))
            }
            Effect::Submit => {
                failpoint::hit("wrap.staged");
                // Usually held since staging, but released while a text waited for a working
                // program.
                self.relay.hold_keyboard(Duration::from_millis(TYPING_MS));
                self.relay.type_in(self.profile.keys.submit.clone().into_bytes());
                failpoint::hit("wrap.submitted");
                None
            }
            Effect::Answer { dialog, keys } => {
                let fits = |finding: &ScreenFinding| Dialog::on(finding).as_ref() == Some(&dialog);
                Some(Event::Answered(self.key(keys, fits)))
            }
            Effect::Interrupt => {
                // May be empty: the sender of an urgent message is warned if the profile has no
                // such key.
                let keys = self.profile.keys.interrupt.clone().unwrap_or_default();
                let works = |finding: &ScreenFinding| {
                    matches!(finding.state, ScreenState::Working | ScreenState::Retrying)
                };
                Some(Event::Interrupted(self.key(keys, works)))
            }
            Effect::Release => {
                self.relay.release_keyboard();
                None
            }
            Effect::End { keys } => {
                self.relay.end(if keys { self.profile.keys.quit.clone() } else { Vec::new() });
                None
            }
        }
    }

    /// Types the keys if no person is typing and the screen still fits them.
    fn key(&mut self, keys: String, fits: impl Fn(&ScreenFinding) -> bool) -> Keyed {
        if !self.relay.hold_keyboard(Duration::from_millis(TYPING_MS)) {
            return Keyed::PersonTyping;
        }
        let here = fits(&profile::judge(&self.profile, &self.relay.snapshot()));
        if here {
            self.relay.type_in(keys.into_bytes());
        }
        self.relay.release_keyboard();
        // The new screen content has to be judged.
        self.drawn |= !here;
        if here { Keyed::Typed } else { Keyed::Gone }
    }

    /// Starts typing the messages into the composer. Completion is reported as
    /// [`WrapperInput::TextTyped`].
    ///
    /// # Errors
    ///
    /// A person is typing, or a long text cannot be written to a file.
    fn stage(&mut self, mail: &[Envelope]) -> Result<(), StageRefusal> {
        self.type_texts(|driver, mode| {
            mail.iter().map(|envelope| driver.render(mode, envelope)).collect()
        })
    }

    fn type_texts(
        &mut self,
        texts: impl FnOnce(&Self, TypingMode) -> Result<Vec<String>, OpsError>,
    ) -> Result<(), StageRefusal> {
        if !self.relay.hold_keyboard(Duration::from_millis(TYPING_MS)) {
            return Err(StageRefusal::PersonTyping);
        }
        let paste = self.profile.paste;
        let bracketed = paste.bracketed && self.relay.snapshot().bracketed_paste;
        let mode = TypingMode { bracketed, most_bytes: paste.most_bytes };
        let texts = texts(self, mode).map_err(|e| StageRefusal::Failed(member_io::failure(&e)))?;
        self.mark = render::mark(&texts);
        // A prompt that was put back stays in front of it.
        let before = match profile::judge(&self.profile, &self.relay.snapshot()).composer {
            Composer::Holds(text) => render::letters(&text),
            Composer::Empty | Composer::Unknown => String::new(),
        };
        self.given = Some(before + &render::letters(&texts.concat()));
        let gap = if bracketed { Duration::ZERO } else { Duration::from_millis(paste.gap_ms) };
        self.relay.type_text(mode.keys(&texts), gap);
        Ok(())
    }

    fn render(&self, mode: TypingMode, envelope: &Envelope) -> Result<String, OpsError> {
        if mode.accepts(&envelope.text) {
            return Ok(mode.render(envelope, None));
        }
        let file = ops::mail::inbox::put_aside(self.io.team, &self.io.me.name, envelope)?;
        Ok(mode.render(envelope, Some(&file)))
    }
}
