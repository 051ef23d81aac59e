//! The shell around the lead's step: reads what changed, steps, carries out. It decides nothing.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::effect::Effect;
use super::event::{Answer, Event};
use super::hooks::Hooks;
use super::labels;
use super::react::react;
use super::sources::{self, Signal};
use super::state::{End, Goal, State};
use super::terminator::{self, Due};
use crate::model::event::{Event as Noted, EventKind, Note};
use crate::model::id::{Incarnation, MemberName, RequestId};
use crate::model::lifecycle::MemberState;
use crate::model::order::Order;
use crate::model::record::MemberRecord;
use crate::model::time::Timestamp;
use crate::model::topic::Topic;
use crate::ops::spawn::Terms;
use crate::ops::terminate::{Ending, Manner};
use crate::ops::{self, Context, Lease, OpsError, Team};

/// With nothing to do, everything is looked at again this often: a notification can be lost.
const SWEEP: Duration = Duration::from_secs(60);
/// Between one look that fails and the next one.
const AGAIN: Duration = Duration::from_millis(100);
/// How long a member that the lead starts may take to prove that it runs.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// How long members get to end when the lead stops them by itself.
const STOP_DEADLINE_S: u64 = 30;

/// A person's wish that this come to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Gracefully,
    ByForce,
    /// Only the lead: members run on.
    Leaving,
}

/// A lead about to run.
pub(crate) struct Lead<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) team: &'a Team,
    /// Held until the lead has ended.
    pub(crate) lease: Lease,
    pub(crate) goal: Goal,
    /// A program has the lead's place, and is told of what comes to the lead.
    pub(crate) beside_program: bool,
    /// Journal events before this byte are not reported.
    pub(crate) journal_from: u64,
}

struct Driver<'a> {
    ctx: &'a Context,
    team: &'a Team,
    state: State,
    signals: UnboundedSender<Signal>,
    labels: UnboundedSender<Vec<MemberRecord>>,
    terminator: UnboundedSender<Due>,
    journal_at: u64,
    /// It is there for what members ask; a verb that only carries its own requests is not.
    leads: bool,
    /// A program in the lead's place is told of what members ask.
    beside_program: bool,
    /// The questions that the user's program was told of.
    announced: BTreeSet<RequestId>,
    /// When the first of the open questions runs out.
    due: Option<Timestamp>,
    /// What could not be read or written at the last look.
    problem: Option<String>,
    /// None where the user has none.
    hooks: Option<Hooks>,
    report: &'a mut dyn FnMut(&Noted),
}

/// Leads until the goal is reached; `report` gets every event of the journal as it comes.
///
/// # Errors
/// Only what makes leading impossible. What goes wrong with one member is a warning in the journal.
pub(crate) async fn lead(
    lead: Lead<'_>,
    stops: &mut UnboundedReceiver<Stop>,
    report: &mut dyn FnMut(&Noted),
) -> Result<End, OpsError> {
    let (signals, mut incoming) = unbounded_channel();
    let changed = signals.clone();
    // The watch comes before the first look, so that nothing falls in between.
    let watch = ops::events::watch(lead.team, move |topic| drop(changed.send(Signal::Changed(topic))))?;
    if watch.is_polling() {
        ops::events::note(lead.team, Note::of(EventKind::Warning).with("text", ops::events::POLLING))?;
    }
    let leads = matches!(lead.goal, Goal::Lead(_));
    if leads {
        ops::lease::announce(lead.team)?;
        recover(lead.ctx, lead.team).await?;
    }
    let settings = lead.team.settings()?;
    let unresponsive_after_s = settings.as_ref().map(|settings| settings.unresponsive_after_s);
    let state = State::new(lead.goal, settings.map(|settings| settings.templates).unwrap_or_default());
    let state = state.beside_program(lead.beside_program);
    let state = match unresponsive_after_s {
        Some(seconds) => state.unresponsive_after(seconds),
        None => state,
    };
    let state = match state.wants_reports() {
        true => state.with_reported(ops::results::reported(lead.team)?),
        false => state,
    };
    let labels = labels::labeller(lead.ctx, lead.team);
    let terminator = terminator::start(lead.ctx, lead.team, signals.clone());
    let (ctx, team, journal_at) = (lead.ctx, lead.team, lead.journal_from);
    let (announced, due, hooks) = (BTreeSet::new(), None, None);
    let mut driver = Driver {
        ctx,
        team,
        state,
        signals,
        labels,
        terminator,
        journal_at,
        leads,
        beside_program: lead.beside_program,
        announced,
        due,
        problem: None,
        hooks,
        report,
    };
    driver.find_hooks()?;
    driver.look(&Topic::Everything)?;
    while driver.state.end().is_none() {
        let done = driver.next(&mut incoming, stops).await;
        driver.outlive(done).await?;
    }
    driver.look(&Topic::Journal)?;
    let end = driver.state.end().unwrap_or(End::TeamGone);
    if let Some(hooks) = driver.hooks.take().filter(|_| end != End::TeamGone) {
        hooks.finish(stops).await;
        driver.look(&Topic::Journal)?;
    }
    if end != End::TeamGone {
        if leads {
            verify(lead.ctx, lead.team).await?;
            ops::lease::withdraw(lead.team)?;
        }
        ops::events::note(lead.team, Note::of(EventKind::LeadEnded).with("end", format!("{end:?}")))?;
    }
    drop(lead.lease);
    Ok(end)
}

/// Once all members have ended; git may take its time. What cannot be verified does not keep the lead from ending.
async fn verify(ctx: &Context, team: &Team) -> Result<(), OpsError> {
    let (ctx, of) = (ctx.clone(), team.clone());
    let verified = tokio::task::spawn_blocking(move || ops::verify::verify_all(&ctx, &of)).await;
    if let Ok(Err(e)) = verified
        && team.exists()
    {
        let text = format!("the shutdown cannot be verified: {e}");
        ops::events::note(team, Note::of(EventKind::Warning).with("text", text))?;
    }
    Ok(())
}

/// Brings to an end what died half-way. It can wait for members to come up: beside the loop that hears signals.
async fn recover(ctx: &Context, team: &Team) -> Result<(), OpsError> {
    let (beside, here) = (ctx.clone(), team.clone());
    let done = tokio::task::spawn_blocking(move || ops::recover::recover(&beside, &here)).await;
    let problem = match done {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(e)) => e.to_string(),
        Err(e) => e.to_string(),
    };
    if team.exists() {
        let text = format!("what was left half done could not all be put right: {problem}");
        ops::events::note(team, Note::of(EventKind::Warning).with("text", text))?;
    }
    Ok(())
}

impl Driver<'_> {
    async fn next(
        &mut self,
        incoming: &mut UnboundedReceiver<Signal>,
        stops: &mut UnboundedReceiver<Stop>,
    ) -> Result<(), OpsError> {
        let now = ops::now();
        let tick = self
            .state
            .next_tick()
            .into_iter()
            .chain(self.due)
            .min()
            .map(|at| Duration::from_millis(at.since(now)));
        tokio::select! {
            Some(stop) = stops.recv() => self.step(match stop {
                Stop::Gracefully => Event::Stop { force: false },
                Stop::ByForce => Event::Stop { force: true },
                Stop::Leaving => Event::Leave,
            })?,
            Some(first) = incoming.recv() => {
                let (topics, others) = sources::drain(first, incoming);
                let mut done = Ok(());
                for signal in topics.into_iter().map(Signal::Changed).chain(others) {
                    if let Err(e) = self.take(signal.clone()) {
                        // Nothing of it is lost: it comes again. What can be seen to meanwhile does not wait for it.
                        drop(self.signals.send(signal));
                        done = Err(e);
                    }
                }
                done?;
            }
            () = tokio::time::sleep(tick.unwrap_or(SWEEP).min(SWEEP)) => {
                match tick {
                    Some(left) if left <= SWEEP => {
                        self.attend()?;
                        self.step(Event::Tick)?;
                    }
                    Some(_) | None => self.sweep()?,
                }
            }
        }
        Ok(())
    }

    /// What cannot be read or written now must not end the team: it is told, once, and looked at again.
    async fn outlive(&mut self, done: Result<(), OpsError>) -> Result<(), OpsError> {
        let Err(e) = done else {
            self.problem = None;
            return Ok(());
        };
        if !self.team.exists() {
            return self.step(Event::TeamGone);
        }
        let text = e.to_string();
        if self.problem.as_ref() != Some(&text) {
            ops::events::note(self.team, Note::of(EventKind::Warning).with("text", text.as_str()))?;
        }
        self.problem = Some(text);
        // What is due and cannot be done stays due.
        tokio::time::sleep(AGAIN).await;
        Ok(())
    }

    /// Only who leads has hooks run for members.
    fn find_hooks(&mut self) -> Result<(), OpsError> {
        if self.leads
            && let Some((hooks, news)) = Hooks::start(self.ctx, self.team)?
        {
            let rests = |record: &MemberRecord| record.state == MemberState::Idle;
            let resting = ops::status::records(self.team)?.into_iter().filter(rests);
            self.state.resting = resting.map(|record| record.name).collect();
            self.hooks = Some(hooks);
            self.step(Event::Journal(news))?;
        }
        Ok(())
    }

    fn sweep(&mut self) -> Result<(), OpsError> {
        if self.leads {
            // What cannot be cleared away now is tried again.
            let _ = ops::recover::sweep(self.team);
        }
        self.look(&Topic::Everything)
    }

    /// Reads again what the change was about and steps over it.
    fn look(&mut self, topic: &Topic) -> Result<(), OpsError> {
        if !self.team.exists() {
            return self.step(Event::TeamGone);
        }
        match topic {
            Topic::Roster => Ok(()),
            Topic::Mail(owner) if *owner != MemberName::lead().file_stem() => Ok(()),
            Topic::Mail(_) => {
                self.look(&Topic::Members)?;
                // Who asks is known to wait before its question is taken out of the mailbox.
                self.look_at_mail()?;
                self.attend()
            }
            Topic::Members | Topic::Member(_) => {
                // Who has ended waits for nothing any more.
                if self.due.is_some() {
                    self.attend()?;
                }
                let records = ops::status::records(self.team)?;
                self.step(Event::Members(records))
            }
            Topic::Requests => {
                self.attend()?;
                let requests = ops::shutdown::requests(self.team)?;
                self.step(Event::Requests(requests))
            }
            Topic::Tasks => {
                let board = ops::task::board(self.team)?;
                // A team that is taken away while it is looked at has not lost its tasks to a stranger.
                match self.team.exists() {
                    true => self.step(Event::Board(board)),
                    false => self.step(Event::TeamGone),
                }
            }
            Topic::Journal => self.look_at_journal(),
            Topic::Everything => {
                let parts = [Topic::Mail(MemberName::lead().file_stem()), Topic::Tasks, Topic::Journal];
                parts.iter().try_for_each(|part| self.look(part))
            }
        }
    }

    /// Sees to what members ask; tells the user's program of what waits for a person.
    fn attend(&mut self) -> Result<(), OpsError> {
        if !self.leads {
            return Ok(());
        }
        let waiting = match ops::decide::attend(self.ctx, self.team) {
            Ok(waiting) => waiting,
            Err(_) if !self.team.exists() => return Ok(()),
            Err(e) => {
                // What cannot be read or written now must not end the team; it is looked at again.
                let text = format!("requests of members: {e}");
                ops::events::note(self.team, Note::of(EventKind::Warning).with("text", text))?;
                return Ok(());
            }
        };
        self.due = waiting.iter().map(|question| question.deadline_at).min();
        self.announced.retain(|id| waiting.iter().any(|question| question.id == *id));
        self.step(Event::Filed(waiting.clone()))?;
        if self.beside_program {
            let mut fresh = waiting.iter().filter(|question| !self.announced.contains(&question.id));
            fresh.try_for_each(|question| ops::seat::tell(self.team, question))?;
        }
        let fresh: Vec<_> = waiting.into_iter().filter(|q| self.announced.insert(q.id.clone())).collect();
        if !fresh.is_empty() {
            let team = self.team.clone();
            // If it cannot be told, it still stands in the view and in `phalanx requests`.
            tokio::task::spawn_blocking(move || {
                fresh.iter().for_each(|question| drop(ops::notify::notify(&team, question)))
            });
        }
        Ok(())
    }

    fn look_at_mail(&mut self) -> Result<(), OpsError> {
        // The answer to what was asked a moment ago may be here already: the request is heard of first.
        let requests = ops::shutdown::requests(self.team)?;
        self.step(Event::Requests(requests))?;
        let mail = ops::inbox::look(self.team, &MemberName::lead(), false)?;
        self.step(Event::Mail(mail))
    }

    fn look_at_journal(&mut self) -> Result<(), OpsError> {
        let (events, at) = ops::events::from(self.team, self.journal_at)?;
        self.journal_at = at;
        events.iter().for_each(|event| (self.report)(event));
        if let Some(hooks) = &mut self.hooks {
            let news = hooks.news(self.team)?;
            self.step(Event::Journal(news))?;
        }
        let answers: Vec<Answer> = events.iter().filter_map(Answer::told_by).collect();
        if answers.is_empty() {
            return Ok(());
        }
        // What is answered may have been asked a moment ago: the question is heard first.
        self.look(&Topic::Mail(MemberName::lead().file_stem()))?;
        self.step(Event::Answers(answers))
    }

    fn take(&mut self, signal: Signal) -> Result<(), OpsError> {
        match signal {
            Signal::Changed(topic) => self.look(&topic),
            Signal::Terminated(ended) => self.step(Event::Terminated(ended)),
            Signal::Started { kind, names, failures } => self.step(Event::Started { kind, names, failures }),
            Signal::Exited { name, incarnation } => {
                if !self.team.exists() {
                    return self.step(Event::TeamGone);
                }
                // Its last words came before its end: they are heard first.
                self.look(&Topic::Mail(MemberName::lead().file_stem()))?;
                match ops::status::record(self.team, &name)?.filter(|r| r.is(&incarnation)) {
                    Some(record) => self.step(Event::Exited(Box::new(record))),
                    None => Ok(()),
                }
            }
        }
    }

    fn step(&mut self, event: Event) -> Result<(), OpsError> {
        let mut effects = VecDeque::from(react(&mut self.state, event, ops::now()));
        while let Some(effect) = effects.pop_front() {
            let about = format!("{effect:?}");
            if let Err(e) = self.carry_out(effect)
                && self.team.exists()
            {
                // One effect that fails must not end the team; what it left undone is seen at the next look.
                let text = format!("{about}: {e}");
                ops::events::note(self.team, Note::of(EventKind::Warning).with("text", text))?;
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect) -> Result<(), OpsError> {
        match effect {
            Effect::WatchExit { name, incarnation, process } => {
                sources::watch_exit(name, incarnation, process, self.signals.clone());
            }
            // If it has ended, there is no label; nothing else is lost.
            Effect::Label { runs } => drop(self.labels.send(runs)),
            Effect::Acknowledge { ids } => ops::inbox::acknowledge(self.team, &MemberName::lead(), &ids)?,
            Effect::AskShutdown { names, reason, force } => {
                let wish = ops::shutdown::Wish { reason: Some(reason), deadline_s: STOP_DEADLINE_S, force };
                ops::shutdown::ask(self.team, &names, &wish)?;
            }
            Effect::Start { kind, orders } => self.start(kind, orders),
            Effect::Terminate { name, incarnation, agreed } => self.terminate(name, incarnation, agreed)?,
            Effect::Retire(retirements) => ops::retire::retire(self.team, &retirements)?,
            Effect::Agree { request, parting } => ops::shutdown::agreed(self.team, &request, &parting)?,
            Effect::Resolve { request, outcome, answer } => {
                ops::shutdown::resolve(self.team, &request, outcome, answer.as_deref())?;
            }
            Effect::MoveOn { name, incarnation, cause, reason } => {
                ops::presence::move_on(self.team, &name, &incarnation, cause, reason.as_deref())?;
            }
            Effect::Health { name, incarnation, debt } => self.health(name, incarnation, debt),
            Effect::Report(tasks) => ops::results::report(self.team, &tasks)?,
            Effect::Hook(occasion) => self.hooks.iter().for_each(|hooks| hooks.run(occasion.clone())),
            Effect::Tell(drift) => ops::task::tell(self.team, drift)?,
            Effect::Warn { member, text } => {
                let note = Note::of(EventKind::Warning).with("text", text);
                ops::events::note(self.team, Note { member, ..note })?;
            }
        }
        Ok(())
    }

    /// On a thread of its own: the screen that is asked may hang.
    fn health(&self, name: MemberName, incarnation: Incarnation, debt: Option<ops::health::Debt>) {
        let (ctx, team) = (self.ctx.clone(), self.team.clone());
        tokio::task::spawn_blocking(move || {
            let said = ops::health::note(&ctx, &team, &name, &incarnation, debt);
            if let Err(e) = said.as_ref().map_err(ToString::to_string)
                && team.exists()
            {
                let note = Note::of(EventKind::Warning).member(&name).with("text", e);
                // The journal is for looking back.
                let _ = ops::events::note(&team, note);
            }
        });
    }

    /// Starts members on a thread of its own: each has to prove that it runs.
    fn start(&self, kind: usize, orders: Vec<Order>) {
        let (ctx, team, signals) = (self.ctx.clone(), self.team.clone(), self.signals.clone());
        tokio::task::spawn_blocking(move || {
            let names: Vec<MemberName> =
                orders.iter().filter_map(|o| MemberName::new(&o.name).ok()).collect();
            let terms = Terms { backend: None, deadline: START_DEADLINE, unique: false, layout: None };
            let failures = match ops::spawn::spawn(&ctx, &team, &orders, &terms) {
                Ok(batch) => names
                    .iter()
                    .zip(batch.results)
                    .filter_map(|(name, result)| Some((name.clone(), result.err()?.to_string())))
                    .collect(),
                Err(e) => names.iter().map(|name| (name.clone(), e.to_string())).collect(),
            };
            let _ = signals.send(Signal::Started { kind, names, failures });
        });
    }

    fn terminate(&self, name: MemberName, incarnation: Incarnation, agreed: bool) -> Result<(), OpsError> {
        let record = ops::status::record(self.team, &name)?.filter(|r| r.is(&incarnation));
        let manner = if agreed { Manner::Agreed } else { Manner::Told };
        let ending = record.map(|record| Ending { record, manner });
        // It ends only after the driver.
        let _ = self.terminator.send(Due { name, incarnation, ending });
        Ok(())
    }
}
