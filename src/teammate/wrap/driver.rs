//! The shell around a wrapper's step: looks at the screen and at what changed, steps, carries out. It decides nothing.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::super::desk::{self, Identity};
use super::super::event::Failure;
use super::super::state::Me;
use super::effect::Effect;
use super::event::{Event, Refusal};
use super::react::react;
use super::state::{HAND_MS, State};
use super::station::{Station, Wake};
use super::turn::{self, Manner};
use crate::model::envelope::Envelope;
use crate::model::event::{EventKind, Note};
use crate::model::id::RequestId;
use crate::model::lifecycle::MemberState;
use crate::model::placement::BackendKind;
use crate::model::record::MemberRecord;
use crate::model::topic::Topic;
use crate::ops::{self, Context, OpsError, Team};
use crate::profile::{self, Profile};
use crate::sys::clock::Deadline;
use crate::sys::failpoint;

/// A screen is judged when nothing came for so long, for it is not drawn to the end before …
const STILL: Duration = Duration::from_millis(10);
/// … and this often while a program never rests.
const RESTLESS: Duration = Duration::from_millis(250);
/// With nothing to do, everything is looked at again this often: a notification can be lost.
const SWEEP: Duration = Duration::from_secs(60);
/// The same where changes cannot be watched at all.
const BLIND_SWEEP: Duration = Duration::from_secs(5);

struct Driver<'a> {
    team: &'a Team,
    me: &'a Identity,
    profile: Profile,
    state: State,
    station: Station,
    /// What was typed last, as it is looked for on the screen.
    mark: Option<String>,
    /// Something was drawn since the screen was judged.
    drawn: bool,
    /// Since it was judged, and how long nothing had been drawn then.
    judged: Deadline,
    judged_quiet: Duration,
    wakes: Sender<Wake>,
}

/// Starts the program of this run on a terminal of its own and stays with it to its end; gives the exit code. To be called
/// in the first thread before there are others.
///
/// # Errors
/// Only what makes it impossible from the start.
pub(crate) fn wrap(ctx: &Context, team: &Team, me: &Identity) -> Result<i32, OpsError> {
    let record = ops::status::record(team, &me.name)?.filter(|record| record.is(&me.incarnation));
    let Some(record) = record else {
        let problem = format!("`{}` has another run now", me.name);
        return Err(OpsError::Usage { problem, hint: None });
    };
    let profile = ops::profiles::find(ctx, &record.wish.profile)?;
    let job = ops::run::Job {
        argv: record.wish.argv.clone(),
        cwd: ctx.caller.cwd.clone(),
        env: ctx.caller.env.clone(),
        size: (0, 0),
        alone: false,
    };
    let refused = |what: String| OpsError::NotEnded { what };
    let program = ops::run::program(&job).map_err(refused)?;
    let (wakes, incoming) = channel();
    // In a pane tmux or iTerm2 answers the program's questions to its terminal.
    let answers = record.backend == BackendKind::Pty;
    let station = Station::open(&program, answers, &wakes).map_err(refused)?;
    let state = State::new(myself(ctx, team, me, &record), profile.paste);
    let driver = Driver {
        team,
        me,
        profile,
        state,
        station,
        mark: None,
        drawn: true,
        judged: Deadline::after(Duration::MAX),
        judged_quiet: Duration::ZERO,
        wakes,
    };
    Ok(driver.run(&incoming))
}

fn myself(ctx: &Context, team: &Team, me: &Identity, record: &MemberRecord) -> Me {
    Me {
        name: me.name.clone(),
        incarnation: me.incarnation.clone(),
        team: team.name().clone(),
        pane: ctx.caller.var("TMUX_PANE").map(|pane| pane.to_string_lossy().into_owned()),
        backend: record.backend.wire(),
    }
}

impl Driver<'_> {
    fn run(mut self, incoming: &Receiver<Wake>) -> i32 {
        let changed = self.wakes.clone();
        // The watch comes before the first look, so that nothing falls in between.
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
                Ok(wake) => self.take(wake),
                Err(RecvTimeoutError::Timeout) if tick.is_none() && judge_in.is_none() => {
                    self.look(&Topic::Everything);
                }
                Err(RecvTimeoutError::Timeout) => self.step(Event::Tick),
                // We hold a sender ourselves.
                Err(RecvTimeoutError::Disconnected) => return 1,
            }
            // What has piled up meanwhile comes first: a screen is judged as it is at the end of it.
            while let Ok(wake) = incoming.try_recv() {
                self.take(wake);
            }
            if self.judge_in() == Some(Duration::ZERO) {
                self.judge();
            }
        }
    }

    fn take(&mut self, wake: Wake) {
        match wake {
            Wake::Drawn => self.drawn = true,
            Wake::Hand => self.step(Event::Hand),
            Wake::Put => {
                failpoint::hit("wrap.typed");
                self.step(Event::Staged(Ok(())));
            }
            Wake::Changed(topic) => self.look(&topic),
            Wake::Signal(signal) => self.step(Event::Signal(signal)),
            Wake::Ended(code) => self.step(Event::Ended(code)),
        }
    }

    /// When the screen is to be judged; none while it can say nothing new.
    fn judge_in(&self) -> Option<Duration> {
        let quiet = self.station.quiet();
        if self.drawn {
            let restless = RESTLESS.saturating_sub(self.judged.elapsed());
            return Some(STILL.saturating_sub(quiet).min(restless));
        }
        let times = self.profile.quiet_times().map(Duration::from_millis);
        let next = times.filter(|time| *time > self.judged_quiet).min();
        next.map(|time| time.saturating_sub(quiet))
    }

    fn judge(&mut self) {
        let look = self.station.look();
        self.drawn = false;
        self.judged = Deadline::after(Duration::MAX);
        self.judged_quiet = Duration::from_millis(look.quiet_ms);
        let shown = self.mark.as_ref().is_some_and(|mark| turn::shows(&look.rows, mark));
        let finding = profile::judge(&self.profile, &look);
        self.step(Event::Seen { finding, shown });
    }

    /// Looks again at what the change was about and steps over it.
    fn look(&mut self, topic: &Topic) {
        if !self.team.exists() {
            return self.step(Event::Over);
        }
        match topic {
            Topic::Journal | Topic::Tasks => {}
            Topic::Mail(owner) if *owner != self.me.name.file_stem() => {}
            Topic::Roster | Topic::Mail(_) => {
                let event = self.mail();
                self.step(event);
            }
            Topic::Members | Topic::Member(_) => self.look_at_record(),
            Topic::Requests => {
                let ids: Vec<String> = self.state.pending().map(RequestId::to_string).collect();
                if !ids.is_empty() {
                    let requests = desk::requests(self.team, ids);
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
        // A record that cannot be read now says nothing of another run.
        let Ok(Some(record)) = ops::status::record(self.team, &self.me.name) else { return };
        if !record.is(&self.me.incarnation) {
            return self.step(Event::Over);
        }
        if !matches!(record.state, MemberState::Pending | MemberState::Starting) {
            self.step(Event::Accepted(record.state));
        }
    }

    fn mail(&self) -> Event {
        match desk::mail(self.team, &self.me.name) {
            Ok((mail, requests)) => Event::Mail { mail, requests },
            Err(e) => self.failed(&e, Event::NoMail),
        }
    }

    /// The report of a failure; a team that was taken away explains every one.
    fn failed(&self, e: &OpsError, report: impl FnOnce(Failure) -> Event) -> Event {
        if !self.team.exists() { Event::Over } else { report(desk::failure(e)) }
    }

    fn step(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for effect in react(&mut self.state, event, ops::now()) {
                events.extend(self.carry_out(effect));
            }
        }
    }

    /// Carries out one effect; gives what is to be reported of it at once.
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
            Effect::Stage(mail) => self.stage(&mail).err().map(|refusal| Event::Staged(Err(refusal))),
            Effect::Submit => {
                failpoint::hit("wrap.staged");
                self.station.type_in(self.profile.keys.submit.clone().into_bytes());
                failpoint::hit("wrap.submitted");
                None
            }
            Effect::Release => {
                self.station.release_keyboard();
                None
            }
            Effect::End { keys } => {
                self.station.end(if keys { self.profile.keys.quit.clone() } else { Vec::new() });
                None
            }
            Effect::Do(errand) => Some(match desk::run_errand(self.team, self.me, errand) {
                Ok(true) => Event::Done(Ok(())),
                Ok(false) => Event::Over,
                Err(e) => self.failed(&e, |failure| Event::Done(Err(failure))),
            }),
        }
    }

    fn note(&self, note: Note) {
        // The journal is for looking back; a delivery does not wait for it. A team that has gone is not made anew.
        if self.team.exists() {
            let _ = ops::events::note(self.team, note.member(&self.me.name));
        }
    }

    /// Types the messages into the composer. Reports later that they are typed.
    fn stage(&mut self, mail: &[Envelope]) -> Result<(), Refusal> {
        if !self.station.hold_keyboard(Duration::from_millis(HAND_MS)) {
            return Err(Refusal::Hand);
        }
        let paste = self.profile.paste;
        let bracketed = paste.bracketed && self.station.look().bracketed_paste;
        let manner = Manner { bracketed, most_bytes: paste.most_bytes };
        let rendered =
            mail.iter().map(|envelope| self.render(manner, envelope)).collect::<Result<Vec<_>, _>>();
        let rendered = rendered.map_err(|e| Refusal::Failed(desk::failure(&e)))?;
        self.mark = turn::mark(&rendered);
        let gap = if bracketed { Duration::ZERO } else { Duration::from_millis(paste.gap_ms) };
        self.station.type_text(manner.keys(&rendered), gap);
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
