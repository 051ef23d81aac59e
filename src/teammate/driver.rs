//! The I/O shell around the worker's pure step function: turns changes into events and executes the
//! resulting effects.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use super::effect::WorkerEffect;
use super::event::{OpFailure, WorkerEvent};
use super::member_io::{self, MemberIo, MemberRun};
use super::react::react;
use super::sources;
use super::state::WorkerState;
use event_loop::{BLIND_SWEEP, InputQueue, SWEEP};
use launcher::command::{self, Canceller, WorkerScreen};
use model::board::task::{CommandOutcome, Task, TaskAction};
use model::id::TaskId;
use model::members::placement::BackendKind;
use model::topic::Topic;
use ops::board::task::Completed;
use ops::{self, ClaimKind, Context, OpsError, TaskStep, TeamStore};
use sys::clock::Deadline;
use sys::proc;

/// The worker's surroundings, which tests replace.
struct WorkerProcess {
    screen: WorkerScreen,
    /// Set if this process is a subreaper and runs nothing but the worker's commands.
    alone: bool,
    queue: InputQueue<WorkerEvent>,
}

struct WorkerDriver<'a> {
    io: MemberIo<'a>,
    /// Limits the tasks that the worker may claim.
    role: Option<String>,
    state: WorkerState,
    process: WorkerProcess,
    running: Option<Canceller>,
}

/// Runs the worker until it agrees to a shutdown, gets a signal or loses its team, and returns the
/// exit code.
/// Takes over the process: its signals, its standard output and orphaned descendants.
///
/// # Errors
///
/// The member's record cannot be read at the start. Later failures are printed in the pane and
/// retried.
pub async fn worker(ctx: &Context, team: &TeamStore, me: MemberRun) -> Result<i32, OpsError> {
    let queue = InputQueue::default();
    sources::forward_signals(queue.inputs());
    let alone = proc::become_subreaper();
    let screen = WorkerScreen::stdout();
    work(ctx, team, me, WorkerProcess { screen, alone, queue }).await
}

async fn work(
    ctx: &Context,
    team: &TeamStore,
    me: MemberRun,
    process: WorkerProcess,
) -> Result<i32, OpsError> {
    let inputs = process.queue.inputs();
    // Subscribe before the first read, so that no change is missed between them.
    let watch = team.watch_as(&me.name, move |topic| inputs.send_change(topic));
    let interval = watch.as_ref().map_or(BLIND_SWEEP, |_| SWEEP);
    let record = team.member_record(&me.name)?;
    let backend = record.as_ref().map_or(BackendKind::Pty, |record| record.backend).wire();
    let myself = me.identity(ctx, team, backend);
    let state = WorkerState::new(myself, record.as_ref().is_some_and(|record| record.request.plan));
    let role = record.and_then(|record| record.request.role);
    process.screen.line(&format!("{}: waiting for tasks", state.who()));
    if let Err(e) = &watch {
        let seconds = interval.as_secs();
        process.screen.line(&format!("{}: {e}; polling every {seconds} s", state.who()));
    }
    let io = MemberIo { ctx, team, me };
    let mut driver = WorkerDriver { io, role, state, process, running: None };
    // A deadline, because a team that changes without a pause leaves no idle moment.
    let mut sweep = Deadline::after(interval);
    driver.step(WorkerEvent::Tick);
    loop {
        if let Some(code) = driver.state.end {
            return Ok(code);
        }
        driver.run_turn(sweep.remaining()).await;
        if sweep.expired() {
            sweep = Deadline::after(interval);
            driver.read(&Topic::Everything);
        }
    }
}

impl WorkerDriver<'_> {
    /// Handles the inputs that arrive before the next tick or `sweep`.
    async fn run_turn(&mut self, sweep: Duration) {
        let tick = self.state.next_tick().map(|at| Duration::from_millis(at.since(ops::now())));
        let queue = &mut self.process.queue;
        match tokio::time::timeout(tick.unwrap_or(sweep).min(sweep), queue.receive()).await {
            Ok(batch) => {
                let (topics, others) = sources::signals_first(batch, queue).await;
                others.into_iter().for_each(|event| self.handle(event));
                topics.iter().for_each(|topic| self.read(topic));
            }
            Err(_) if tick.is_some_and(|left| left <= sweep) => self.step(WorkerEvent::Tick),
            Err(_) => {}
        }
    }

    fn handle(&mut self, event: WorkerEvent) {
        if matches!(event, WorkerEvent::CommandEnded { .. }) {
            self.running = None;
        }
        self.step(event);
    }

    /// Reads what `topic` covers and steps with the resulting event.
    fn read(&mut self, topic: &Topic) {
        if *topic == Topic::Everything {
            return self.io.topics().iter().for_each(|part| self.read(part));
        }
        // The roster matters only to a member that is not on it and therefore cannot read mail.
        let is_relevant = *topic != Topic::Roster || self.state.mail_due || !self.io.team.exists();
        if self.state.end.is_some() || !is_relevant {
            return;
        }
        match self.io.read(topic, self.state.pending()) {
            Some(event) => self.step(WorkerEvent::Member(event)),
            None if *topic == Topic::Tasks => self.step(WorkerEvent::Board),
            None => {}
        }
    }

    fn step(&mut self, event: WorkerEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for effect in react(&mut self.state, event, ops::now()) {
                events.extend(self.carry_out(effect));
            }
        }
    }

    /// Executes one effect. Returns its event if the result is known at once.
    fn carry_out(&mut self, effect: WorkerEffect) -> Option<WorkerEvent> {
        let team = self.io.team;
        match effect {
            WorkerEffect::Print(text) => {
                self.process.screen.line(&text);
                None
            }
            WorkerEffect::Run(task) => self.start_command(*task),
            WorkerEffect::Cancel { grace_ms } => {
                self.cancel(Duration::from_millis(grace_ms));
                None
            }
            WorkerEffect::Member(effect) => self.io.carry_out(effect).map(WorkerEvent::Member),
            // The store would recreate the directories of a deleted team.
            _ if !self.io.team.exists() => Some(member_io::gone().into()),
            WorkerEffect::Claim => {
                let claimed = ops::board::task::claim_next(
                    team,
                    &self.io.me.name,
                    self.role.as_deref(),
                    ClaimKind::Command,
                );
                Some(self.report(claimed.map(|task| task.map(Box::new)), WorkerEvent::Claimed))
            }
            WorkerEffect::Recheck(task) => {
                let task = ops::board::task::claimed(team, task, &self.io.me.name);
                Some(self.report(task.map(|task| task.map(Box::new)), WorkerEvent::Rechecked))
            }
            WorkerEffect::ConfirmStopped(task) => {
                let confirmed = ops::board::task::confirm_stopped(team, task, &self.io.me.name);
                Some(self.report(confirmed, WorkerEvent::LetGo))
            }
            WorkerEffect::GiveBack(task, reason) => {
                let step = TaskStep { reason, ..TaskStep::of(TaskAction::Release) };
                let released = ops::board::task::end(team, task, &self.io.me.name, &step);
                Some(self.report(released.map(drop), WorkerEvent::LetGo))
            }
            WorkerEffect::EndTask { task, ending: TaskAction::Complete, outcome, .. } => {
                self.complete(task, outcome)
            }
            WorkerEffect::EndTask { task, ending, outcome, reason } => {
                let step = TaskStep { reason, ..TaskStep::with_outcome(ending, &outcome) };
                let ended = ops::board::task::end(team, task, &self.io.me.name, &step);
                Some(self.report(ended.map(drop), WorkerEvent::TaskEnded))
            }
        }
    }

    fn report<T>(
        &self,
        result: Result<T, OpsError>,
        report: impl FnOnce(Result<T, OpFailure>) -> WorkerEvent,
    ) -> WorkerEvent {
        match result {
            Ok(value) => report(Ok(value)),
            Err(e) => member_io::failed(self.io.team, &e, |failure| report(Err(failure))),
        }
    }

    /// Completes the task, on a separate thread if hooks guard it: they can take long, and mail
    /// must still be handled.
    fn complete(&self, task: TaskId, outcome: CommandOutcome) -> Option<WorkerEvent> {
        let (ctx, team, who) = (self.io.ctx.clone(), self.io.team.clone(), self.io.me.name.clone());
        let hooks = ops::team::hooks::load_hooks(&ctx, &team);
        let asks = hooks.guard_tasks();
        let complete = move || {
            let step = TaskStep::with_outcome(TaskAction::Complete, &outcome);
            completed(&team, ops::board::task::act(&ctx, &team, &hooks, task, &who, &step))
        };
        if !asks {
            return Some(complete());
        }
        let inputs = self.process.queue.inputs();
        let asking = thread::Builder::new().name("hooks".to_owned()).spawn(move || {
            inputs.send(complete());
        });
        Some(match asking {
            Ok(_) => WorkerEvent::Held,
            Err(e) => {
                let text = format!("hooks could not be queried: {e}");
                WorkerEvent::TaskEnded(Err(OpFailure { text, lasting: false }))
            }
        })
    }

    /// Starts the command; its exit arrives as an input. Uses threads instead of the runtime's
    /// blocking pool, which would keep the process from exiting while a terminal blocks.
    fn start_command(&mut self, task: Task) -> Option<WorkerEvent> {
        let caller = &self.io.ctx.caller;
        let mut env = caller.env.clone();
        if let Err(e) = ops::board::workspace::enter_chat(self.io.team, &task, &mut env) {
            let outcome = command::failed_start(e.to_string());
            return Some(WorkerEvent::CommandEnded { task: task.id, outcome });
        }
        let spec = command::for_task(&task, &caller.cwd, &env, self.process.alone);
        let task = task.id;
        let running = match command::start(&spec, &self.process.screen) {
            Ok(running) => running,
            Err(reason) => {
                let outcome = command::failed_start(reason);
                return Some(WorkerEvent::CommandEnded { task, outcome });
            }
        };
        let canceller = running.canceller();
        let inputs = self.process.queue.inputs();
        let waiting = thread::Builder::new().name("command".to_owned()).spawn(move || {
            let outcome = running.wait();
            inputs.send(WorkerEvent::CommandEnded { task, outcome });
        });
        if let Err(e) = waiting {
            // Dropping `running` with the closure hung up the terminal; cancelling also ends
            // processes that ignore SIGHUP.
            canceller.cancel(Duration::ZERO);
            let outcome = command::failed_start(format!("cannot be waited for: {e}"));
            return Some(WorkerEvent::CommandEnded { task, outcome });
        }
        self.running = Some(canceller);
        None
    }

    /// Cancels the command on a separate thread, since a stubborn command takes seconds. If no
    /// thread can be started, the hang-up of the terminal at exit ends the command.
    fn cancel(&self, grace: Duration) {
        if let Some(canceller) = self.running.clone() {
            let cancel = move || canceller.cancel(grace);
            let _ = thread::Builder::new().name("cancel".to_owned()).spawn(cancel);
        }
    }
}

fn completed(team: &TeamStore, result: Result<Completed, OpsError>) -> WorkerEvent {
    match result {
        Ok(_) => WorkerEvent::TaskEnded(Ok(())),
        Err(e @ OpsError::HookRefused { .. }) => WorkerEvent::Refused(e.to_string()),
        Err(e) => member_io::failed(team, &e, |failure| WorkerEvent::TaskEnded(Err(failure))),
    }
}

#[cfg(test)]
mod tests;
