//! The I/O shell around the worker's pure step function: turns changes into events and executes the
//! resulting effects.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::effect::{Effect, OutboundOp};
use super::event::{Event, Failure};
use super::member_io::{self, Identity};
use super::react::react;
use super::sources::{self, Wake};
use super::state::{Me, State};
use crate::launcher::command::{self, Canceller, WorkerScreen};
use crate::model::event::{EventKind, Note};
use crate::model::id::{RequestId, TaskId};
use crate::model::placement::BackendKind;
use crate::model::task::{Outcome, Task};
use crate::model::topic::Topic;
use crate::ops::task::Completed;
use crate::ops::{self, Context, Ending, OpsError, Team};
use crate::sys::proc;

/// Interval of full checks while idle, since a change notification can be lost.
const SWEEP: Duration = Duration::from_secs(60);
/// The same if changes cannot be watched.
const BLIND_SWEEP: Duration = Duration::from_secs(5);

/// The worker's surroundings, which tests replace.
struct Station {
    screen: WorkerScreen,
    /// Set if this process is a subreaper and runs nothing but the worker's commands.
    alone: bool,
    wakes: UnboundedSender<Wake>,
    incoming: UnboundedReceiver<Wake>,
}

struct Driver<'a> {
    ctx: &'a Context,
    team: &'a Team,
    me: &'a Identity,
    /// Limits the tasks that the worker may claim.
    role: Option<String>,
    state: State,
    screen: WorkerScreen,
    alone: bool,
    wakes: UnboundedSender<Wake>,
    running: Option<Canceller>,
}

/// Runs the worker until it agrees to a shutdown or is told to exit, and returns the exit code.
/// Takes over the process: its signals, its standard output and orphaned descendants.
///
/// # Errors
///
/// The member's record cannot be read at the start. Later failures are printed in the pane and
/// retried.
pub(crate) async fn worker(ctx: &Context, team: &Team, me: Identity) -> Result<i32, OpsError> {
    let (wakes, incoming) = unbounded_channel();
    sources::hear_signals(wakes.clone());
    let alone = proc::become_subreaper();
    work(ctx, team, &me, Station { screen: WorkerScreen::stdout(), alone, wakes, incoming }).await
}

async fn work(ctx: &Context, team: &Team, me: &Identity, relay: Station) -> Result<i32, OpsError> {
    let Station { screen, alone, wakes, mut incoming } = relay;
    let changed = wakes.clone();
    // Subscribe before the first read, so that no change is missed between them.
    let watch = ops::events::watch_as(team, &me.name, move |topic| {
        drop(changed.send(Wake::Changed(topic)))
    });
    let sweep = watch.as_ref().map_or(BLIND_SWEEP, |_| SWEEP);
    let record = ops::status::record(team, &me.name)?;
    let myself = Me {
        name: me.name.clone(),
        incarnation: me.incarnation.clone(),
        team: team.name().clone(),
        pane: ctx.caller.var("TMUX_PANE").map(|pane| pane.to_string_lossy().into_owned()),
        backend: record.as_ref().map_or(BackendKind::Pty, |record| record.backend).wire(),
    };
    let state = State::new(myself, record.as_ref().is_some_and(|record| record.wish.plan));
    let role = record.and_then(|record| record.wish.role);
    screen.line(&format!("{}: waiting for tasks", state.who()));
    if let Err(e) = &watch {
        screen.line(&format!("{}: {e}; polling every {} s", state.who(), sweep.as_secs()));
    }
    let mut driver = Driver { ctx, team, me, role, state, screen, alone, wakes, running: None };
    driver.step(Event::Tick);
    loop {
        if let Some(code) = driver.state.end() {
            return Ok(code);
        }
        driver.next(&mut incoming, sweep).await;
    }
}

impl Driver<'_> {
    async fn next(&mut self, incoming: &mut UnboundedReceiver<Wake>, sweep: Duration) {
        let tick = self.state.next_tick().map(|at| Duration::from_millis(at.since(ops::now())));
        tokio::select! {
            Some(first) = incoming.recv() => {
                let (topics, others) = sources::drain(first, incoming);
                let others = sources::hear_own_end_first(others, incoming).await;
                others.into_iter().for_each(|wake| self.take(wake));
                topics.iter().for_each(|topic| self.look(topic));
            }
            () = tokio::time::sleep(tick.unwrap_or(sweep).min(sweep)) => match tick {
                Some(left) if left <= sweep => self.step(Event::Tick),
                Some(_) | None => self.look(&Topic::Everything),
            }
        }
    }

    fn take(&mut self, wake: Wake) {
        match wake {
            Wake::Changed(topic) => self.look(&topic),
            Wake::CommandEnded { task, outcome } => {
                self.running = None;
                self.step(Event::CommandEnded { task, outcome });
            }
            Wake::Completed(event) => self.step(*event),
            Wake::Signal(signal) => self.step(Event::Signal(signal)),
        }
    }

    /// Reads what `topic` covers and steps with the resulting event.
    fn look(&mut self, topic: &Topic) {
        if self.state.end().is_some() {
            return;
        }
        if !self.team.exists() {
            return self.step(gone());
        }
        match topic {
            Topic::Journal | Topic::Settings => {}
            // Relevant only while the member is not on the roster and therefore cannot read mail.
            Topic::Roster if !self.state.waits_for_mail() => {}
            Topic::Mail(owner) if *owner != self.me.name.file_stem() => {}
            Topic::Roster | Topic::Mail(_) => {
                let event = self.mail();
                self.step(event);
            }
            Topic::Members | Topic::Member(_) => self.look_at_record(),
            Topic::Requests => {
                let ids: Vec<String> = self.state.pending().map(RequestId::to_string).collect();
                if !ids.is_empty() {
                    let requests = member_io::requests(self.team, ids);
                    self.step(Event::Requests(requests));
                }
            }
            Topic::Tasks => self.step(Event::Board),
            // Mail first: a worker asked to shut down must not claim another task.
            Topic::Everything => {
                let mail = Topic::Mail(self.me.name.file_stem());
                [Topic::Members, Topic::Requests, mail, Topic::Tasks]
                    .iter()
                    .for_each(|part| self.look(part));
            }
        }
    }

    fn look_at_record(&mut self) {
        // An unreadable record does not prove that another run has replaced this one.
        let Ok(Some(record)) = ops::status::record(self.team, &self.me.name) else { return };
        if !record.is(&self.me.incarnation) {
            return self.step(replaced());
        }
        // A withdrawn start may still run for a moment; such a run must not begin work.
        if record.state.is_up() {
            self.step(Event::Accepted);
        }
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
        // The store would recreate the directories of a deleted team.
        if needs_team(&effect) && !self.team.exists() {
            return Some(gone());
        }
        match effect {
            Effect::Print(text) => self.screen.line(&text),
            Effect::Warn(text) => {
                let note = Note::of(EventKind::Warning).member(&self.me.name).with("text", text);
                // Best effort: the warning is also in the pane.
                let _ = ops::events::note(self.team, note);
            }
            Effect::Acknowledge(ids) => {
                let marked = ops::inbox::acknowledge(self.team, &self.me.name, &ids);
                return marked.err().map(|e| self.failed(&e, Event::NotMarked));
            }
            Effect::LookAtMail => return Some(self.mail()),
            Effect::Claim => {
                let claimed = ops::task::claim_next(self.team, &self.me.name, self.role.as_deref());
                return Some(self.reply(claimed.map(|task| task.map(Box::new)), Event::Claimed));
            }
            Effect::Recheck(task) => {
                let task = ops::task::claimed(self.team, task, &self.me.name);
                return Some(self.reply(task.map(|task| task.map(Box::new)), Event::Rechecked));
            }
            Effect::Run(task) => return self.run(*task),
            Effect::Cancel => self.cancel(),
            Effect::EndTask { task, ending: Ending::Completed, outcome } => {
                return self.complete(task, outcome);
            }
            Effect::EndTask { task, ending, outcome } => {
                let ended = ops::task::end(self.team, task, &self.me.name, ending, Some(&outcome));
                return Some(self.reply(ended.map(drop), Event::TaskEnded));
            }
            Effect::Do(op) => return Some(self.run_errand(op)),
        }
        None
    }

    /// Completes the task, on a separate thread if hooks guard it: they can take long, and mail
    /// must still be handled.
    fn complete(&self, task: TaskId, outcome: Outcome) -> Option<Event> {
        let (ctx, team, who) = (self.ctx.clone(), self.team.clone(), self.me.name.clone());
        let hooks = ops::hooks::configured(&ctx, &team);
        let asks = hooks.guard_tasks();
        let complete = move || {
            completed(&team, ops::task::complete(&ctx, &team, &hooks, task, &who, Some(&outcome)))
        };
        if !asks {
            return Some(complete());
        }
        let wakes = self.wakes.clone();
        let asking = thread::Builder::new().name("hooks".to_owned()).spawn(move || {
            // Fails only if the worker has exited without waiting.
            let _ = wakes.send(Wake::Completed(Box::new(complete())));
        });
        Some(match asking {
            Ok(_) => Event::Held,
            Err(e) => {
                let text = format!("hooks could not be queried: {e}");
                Event::TaskEnded(Err(Failure { text, lasting: false }))
            }
        })
    }

    fn run_errand(&self, op: OutboundOp) -> Event {
        match member_io::run_errand(self.ctx, self.team, self.me, op) {
            Ok(true) => Event::Done(Ok(())),
            Ok(false) => replaced(),
            Err(e) => self.failed(&e, |failure| Event::Done(Err(failure))),
        }
    }

    fn reply<T>(
        &self,
        result: Result<T, OpsError>,
        report: impl FnOnce(Result<T, Failure>) -> Event,
    ) -> Event {
        match result {
            Ok(value) => report(Ok(value)),
            Err(e) => self.failed(&e, |failure| report(Err(failure))),
        }
    }

    /// Returns the event for a failure. A deleted team replaces every other reason.
    fn failed(&self, e: &OpsError, report: impl FnOnce(Failure) -> Event) -> Event {
        failed(self.team, e, report)
    }

    fn mail(&self) -> Event {
        match member_io::mail(self.team, &self.me.name) {
            Ok((mail, requests)) => Event::Mail { mail, requests },
            Err(e) => self.failed(&e, Event::NoMail),
        }
    }

    /// Starts the command; its exit arrives as a [`Wake`]. Uses threads instead of the runtime's
    /// blocking pool, which would keep the process from exiting while a terminal blocks.
    fn run(&mut self, task: Task) -> Option<Event> {
        let caller = &self.ctx.caller;
        let spec = command::for_task(&task, &caller.cwd, &caller.env, self.alone);
        let task = task.id;
        let running = match command::start(&spec, &self.screen) {
            Ok(running) => running,
            Err(reason) => {
                return Some(Event::CommandEnded { task, outcome: command::failed_start(reason) });
            }
        };
        let canceller = running.canceller();
        let wakes = self.wakes.clone();
        let waiting = thread::Builder::new().name("command".to_owned()).spawn(move || {
            let outcome = running.wait();
            // Fails only if the worker has exited without waiting.
            let _ = wakes.send(Wake::CommandEnded { task, outcome });
        });
        if let Err(e) = waiting {
            // Dropping `running` with the closure hung up the terminal; cancelling also ends
            // processes that ignore SIGHUP.
            canceller.cancel();
            let outcome = command::failed_start(format!("cannot be waited for: {e}"));
            return Some(Event::CommandEnded { task, outcome });
        }
        self.running = Some(canceller);
        None
    }

    /// Cancels the command on a separate thread, since a stubborn command takes seconds. If no
    /// thread can be started, the hang-up of the terminal at exit ends the command.
    fn cancel(&self) {
        if let Some(canceller) = self.running.clone() {
            let _ =
                thread::Builder::new().name("cancel".to_owned()).spawn(move || canceller.cancel());
        }
    }
}

fn needs_team(effect: &Effect) -> bool {
    match effect {
        Effect::Warn(_)
        | Effect::Acknowledge(_)
        | Effect::LookAtMail
        | Effect::Claim
        | Effect::Recheck(_)
        | Effect::EndTask { .. }
        | Effect::Do(_) => true,
        Effect::Print(_) | Effect::Run(_) | Effect::Cancel => false,
    }
}

fn completed(team: &Team, result: Result<Completed, OpsError>) -> Event {
    match result {
        Ok(_) => Event::TaskEnded(Ok(())),
        Err(e @ OpsError::HookRefused { .. }) => Event::Refused(e.to_string()),
        Err(e) => failed(team, &e, |failure| Event::TaskEnded(Err(failure))),
    }
}

fn failed(team: &Team, e: &OpsError, report: impl FnOnce(Failure) -> Event) -> Event {
    if !team.exists() {
        return gone();
    }
    report(member_io::failure(e))
}

fn gone() -> Event {
    Event::Over("the team is gone".to_owned())
}

fn replaced() -> Event {
    Event::Over("another run now uses this name".to_owned())
}

#[cfg(test)]
mod tests;
