//! The I/O shell around the lead's pure step: reads what changed, calls `react`, carries out the
//! effects. All decisions are made in `react`.

mod carry;
mod read;

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;

use super::background::{attempt, warn};
use super::event::{Event, Stop};
use super::hooks::HookRunner;
use super::labels;
use super::react::react;
use super::sources::LeadInput;
use super::state::{Goal, LeadEnd, State};
use super::stopper::{self, DueStop};
use event_loop::{Batch, InputQueue, SWEEP};
use model::decisions::request::ShutdownRequest;
use model::id::RequestId;
use model::members::lifecycle::MemberState;
use model::members::record::MemberRecord;
use model::team::event::{Event as Noted, EventKind, Note};
use model::team::settings::Settings;
use model::time::Timestamp;
use model::topic::Topic;
use ops::{self, Context, JournalReader, Kind, Lease, OpsError, Reread, TeamStore};
use sys::clock::Deadline;
use sys::{failpoint, fs};

/// Delay before handled messages are marked as read in the lead's mailbox, counted from its last
/// change.
const MARK_DELAY: Duration = Duration::from_secs(1);
/// Maximum delay for a mailbox that keeps changing, counted from the first unmarked change.
const MAX_MARK_DELAY: Duration = Duration::from_secs(5);
/// Interval of the comparison of the team file's version. File notifications alone are not enough:
/// a program that stops with the file open and truncated causes none.
const TEAM_FILE_CHECK: Duration = Duration::from_millis(500);
/// Delay after a failed read before the next one.
const AGAIN: Duration = Duration::from_millis(100);
/// Time for the answers of other hosts, which are asked on another thread.
const HOSTS: Duration = Duration::from_secs(55);

/// The parameters of a lead that is about to run.
pub struct LeadOptions<'a> {
    pub ctx: &'a Context,
    pub team: &'a TeamStore,
    /// Held until the lead has ended.
    pub lease: Lease,
    pub goal: Goal,
    /// The settings that the goal follows from; `None` for a team of another program. Later ones
    /// are applied as changes.
    pub settings: Option<Settings>,
    /// An agent lead runs beside this loop and gets the lead's messages.
    pub has_agent_lead: bool,
    /// It also gets the requests of members.
    pub tells_agent: bool,
    /// Earlier events are not reported.
    pub journal: JournalReader,
}

struct LeadDriver<'a> {
    ctx: &'a Context,
    team: &'a TeamStore,
    state: State,
    queue: InputQueue<LeadInput>,
    labels: UnboundedSender<Vec<MemberRecord>>,
    stopper: UnboundedSender<DueStop>,
    journal: JournalReader,
    /// The agent lead is notified of questions.
    tells_agent: bool,
    /// Questions that it has been notified of.
    asked: BTreeSet<RequestId>,
    /// The earliest deadline of the open questions.
    due: Option<Timestamp>,
    /// Time of the next full re-read, which also happens under load.
    sweep: Deadline,
    /// Time of the next comparison of the team file's version.
    team_file_check: Deadline,
    /// Version of the last team file that was read, if it was complete and has been remembered.
    team_file: Option<fs::FileVersion>,
    /// The task that repairs a torn team file.
    restorer: Option<JoinHandle<()>>,
    /// Deadlines for marking handled messages in the mailbox: after the mailbox stopped changing,
    /// and at the latest. `None` if there is nothing to mark.
    mark: Option<(Deadline, Deadline)>,
    /// Ids of the unread texts that are in the journal.
    journaled: BTreeSet<String>,
    /// The last reported read or write failure, so that it is reported once.
    problem: Option<String>,
    /// The records and requests as last read: of many, one changes at a time.
    records: Reread<MemberRecord>,
    requests: Reread<ShutdownRequest>,
    /// The settings as last read; `None` if another program created the team.
    settings: Option<Settings>,
    /// `None` if the user has no hooks.
    hooks: Option<HookRunner>,
    report: &'a mut dyn FnMut(&Noted),
}

/// Leads until the goal is reached; passes each new journal event to `report`.
///
/// # Errors
/// Returns an error if the team cannot be watched, its settings cannot be read at the start, or the
/// journal cannot be written. A failure of one member is a warning in the journal instead.
pub async fn lead(
    lead: LeadOptions<'_>,
    stops: &mut UnboundedReceiver<Stop>,
    report: &mut dyn FnMut(&Noted),
) -> Result<LeadEnd, OpsError> {
    let team = lead.team.led_with(&lead.lease);
    let lead = LeadOptions { team: &team, ..lead };
    let queue = InputQueue::default();
    let inputs = queue.inputs();
    // The watch starts before the first read, so that no change is missed in between.
    let watch = lead.team.watch(move |topic| inputs.send_change(topic))?;
    if let Some(reason) = watch.polling() {
        warn(lead.team, None, ops::views::events::polling_notice(reason))?;
    }
    let mut driver = LeadDriver::begin(&lead, queue, report).await?;
    while driver.state.end().is_none() {
        lead.lease.must_be_held()?;
        let done = driver.run_turn(stops).await;
        driver.recover(done).await?;
    }
    let end = driver.finish(stops).await?;
    if end == LeadEnd::Interrupted {
        lead.lease.leave_record();
    }
    Ok(end)
}

/// Returns true for a failure of the shared store that can end by itself.
fn is_temporary(e: &OpsError) -> bool {
    matches!(e.kind(), Kind::Backend | Kind::Failed)
}

/// Builds the initial state from the settings and the results reported by earlier leads.
fn initial_state(lead: &LeadOptions<'_>) -> Result<State, OpsError> {
    // Without settings, another program has made this team.
    let templates = lead.settings.iter().flat_map(|settings| settings.templates.clone()).collect();
    let mut state = State::new(lead.goal.clone(), templates);
    state.has_agent_lead = lead.has_agent_lead;
    if let Some(settings) = &lead.settings {
        state.apply(settings);
        // Read only if it is needed: the journal can be long.
        if !settings.budgets.is_empty() {
            state.budget.reported = ops::effects::budget::reported(lead.team)?;
        }
    }
    if state.wants_reports() {
        let reported = ops::effects::results::reported(lead.team)?;
        state.reported = reported.into_iter().map(|id| (id, None)).collect();
    }
    Ok(state)
}

impl<'a> LeadDriver<'a> {
    /// A lead first recovers what earlier processes left unfinished; that can mean waiting for
    /// members that are starting.
    async fn begin(
        lead: &LeadOptions<'a>,
        queue: InputQueue<LeadInput>,
        report: &'a mut dyn FnMut(&Noted),
    ) -> Result<LeadDriver<'a>, OpsError> {
        let leads = matches!(lead.goal, Goal::Lead(_));
        if leads {
            ops::team::lease::announce(lead.team)?;
            failpoint::hit("lead.announced");
            let failed = "could not recover everything that an earlier process left unfinished";
            attempt(lead.ctx, lead.team, ops::starting::recover::recover, failed).await?;
        }
        let mut driver = LeadDriver {
            ctx: lead.ctx,
            team: lead.team,
            state: initial_state(lead)?,
            labels: labels::labeller(lead.ctx, lead.team),
            stopper: stopper::start(lead.ctx, lead.team, queue.inputs()),
            queue,
            journal: lead.journal.clone(),
            tells_agent: lead.tells_agent,
            asked: BTreeSet::new(),
            due: None,
            sweep: Deadline::after(SWEEP),
            team_file_check: Deadline::after(TEAM_FILE_CHECK),
            team_file: None,
            restorer: None,
            mark: None,
            journaled: BTreeSet::new(),
            problem: None,
            records: Reread::default(),
            requests: Reread::default(),
            settings: lead.settings.clone(),
            hooks: None,
            report,
        };
        driver.start_hooks()?;
        if let Err(e) = driver.read(&Topic::Everything) {
            // A short-lived command reports the error to its caller. A lead retries: its team may
            // already be running.
            if !leads {
                return Err(e);
            }
            driver.queue.inputs().send_change(Topic::Everything);
            driver.recover(Err(e)).await?;
        }
        Ok(driver)
    }

    /// Runs after the goal is reached: reports the remaining events, waits for hooks, and verifies
    /// the shutdown.
    async fn finish(&mut self, stops: &mut UnboundedReceiver<Stop>) -> Result<LeadEnd, OpsError> {
        if self.state.leads() {
            let team = self.team.clone();
            // Runs that end by themselves are journaled by their launchers. A failure is harmless
            // here: deleting the team waits for the launchers again.
            let _ = tokio::task::spawn_blocking(move || ops::members::status::see_off(&team)).await;
        }
        self.read(&Topic::Journal)?;
        let end = self.state.end().unwrap_or(LeadEnd::TeamGone);
        if end == LeadEnd::TeamGone {
            return Ok(end);
        }
        if end == LeadEnd::Interrupted {
            let failed = "the members cannot be ended";
            attempt(self.ctx, self.team, ops::ending::interrupt::end_with_lead, failed).await?;
        }
        if let Some(hooks) = self.hooks.take() {
            hooks.finish(stops).await;
            self.read(&Topic::Journal)?;
        }
        // Messages that cannot be marked now are marked together with the next ones.
        let _ = self.mark_read();
        if self.state.leads() {
            if end != LeadEnd::Interrupted {
                let failed = "the shutdown cannot be verified";
                attempt(self.ctx, self.team, ops::ending::report::report_all, failed).await?;
            }
            ops::team::lease::withdraw(self.team)?;
        }
        let note = Note::of(EventKind::LeadEnded).with("end", <&str>::from(end));
        self.team.record(note)?;
        Ok(end)
    }

    /// Does one thing that is overdue, or waits for an input or a deadline and handles it.
    async fn run_turn(&mut self, stops: &mut UnboundedReceiver<Stop>) -> Result<(), OpsError> {
        let mark =
            self.mark.map_or(SWEEP, |(still, latest)| still.remaining().min(latest.remaining()));
        if mark.is_zero() {
            return self.mark_read();
        }
        if self.sweep.expired() {
            return self.sweep();
        }
        if self.state.leads() && self.team_file_check.expired() {
            self.team_file_check = Deadline::after(TEAM_FILE_CHECK);
            self.check_team_file()?;
        }
        let due = self.state.next_tick().into_iter().chain(self.due).min();
        let tick = due.map(|at| Duration::from_millis(at.since(ops::now())));
        let rest = self.sweep.remaining().min(mark);
        let rest =
            if self.state.leads() { rest.min(self.team_file_check.remaining()) } else { rest };
        tokio::select! {
            Some(stop) = stops.recv() => self.step(match stop {
                Stop::Gracefully => Event::Stop { force: false },
                Stop::ByForce => Event::Stop { force: true },
                Stop::Leaving => Event::End(LeadEnd::Left),
                Stop::Interrupted => Event::End(LeadEnd::Interrupted),
            })?,
            batch = self.queue.receive() => self.handle(batch)?,
            () = tokio::time::sleep(tick.unwrap_or(rest).min(rest)) => {
                if tick.is_some_and(|left| left <= rest) {
                    let processed = self.process_questions();
                    let read = self.read_mail();
                    self.step(Event::Tick)?;
                    processed.and(read)?;
                }
            }
        }
        Ok(())
    }

    /// Handles all inputs one by one. A failed one is queued again and does not delay the others.
    fn handle(&mut self, (topics, others): Batch<LeadInput>) -> Result<(), OpsError> {
        let mut done = Ok(());
        for topic in self.forget_changed(topics) {
            if let Err(e) = self.read(&topic) {
                self.queue.inputs().send_change(topic);
                done = Err(e);
            }
        }
        let is_exit = |input: &LeadInput| matches!(input, LeadInput::Exited { .. });
        let mut heard = true;
        if others.iter().any(is_exit)
            && let Err(e) = self.read_last_words()
        {
            (heard, done) = (false, Err(e));
        }
        for input in others {
            if !heard && is_exit(&input) {
                self.queue.inputs().send(input);
                continue;
            }
            if let Err(e) = self.handle_source(input.clone()) {
                self.queue.inputs().send(input);
                done = Err(e);
            }
        }
        done
    }

    /// Handles a failed read or write without ending the lead: journals it once and pauses before
    /// the retry.
    async fn recover(&mut self, done: Result<(), OpsError>) -> Result<(), OpsError> {
        let Err(e) = done else {
            self.problem = None;
            return Ok(());
        };
        if !self.team.exists() {
            return self.step(Event::End(LeadEnd::TeamGone));
        }
        let text = e.to_string();
        if self.problem.as_ref() != Some(&text) {
            match warn(self.team, None, text.as_str()) {
                Ok(()) => self.problem = Some(text),
                // The journal is where the problem is. The lease decides whether this lead goes on.
                Err(e) if self.team.is_shared() && is_temporary(&e) => {}
                Err(e) => return Err(e),
            }
        }
        // Without the pause an overdue timer that keeps failing would spin.
        tokio::time::sleep(AGAIN).await;
        Ok(())
    }

    /// Reads the hooks of the team. Only a lead runs hooks.
    fn start_hooks(&mut self) -> Result<(), OpsError> {
        if self.state.leads()
            && let Some((hooks, events)) = HookRunner::start(self.ctx, self.team)?
        {
            let rests = |record: &MemberRecord| record.state == MemberState::Idle;
            let resting = self.team.member_records()?.into_iter().filter(rests);
            self.state.resting = resting.map(|record| record.name).collect();
            self.hooks = Some(hooks);
            self.step(Event::Journal(events))?;
        }
        Ok(())
    }

    fn mark_read(&mut self) -> Result<(), OpsError> {
        if self.mark.is_some() {
            ops::mail::inbox::mark(self.team)?;
            self.mark = None;
            if self.state.leads() {
                // phalanx has journaled its own messages by now.
                ops::mail::post::journal_native(self.team, &mut self.journaled)?;
            }
        }
        Ok(())
    }

    fn sweep(&mut self) -> Result<(), OpsError> {
        self.sweep = Deadline::after(SWEEP);
        if self.state.leads() {
            // A failed cleanup is retried at the next sweep.
            let _ = ops::starting::recover::sweep(self.ctx, self.team);
            self.check_hosts();
        }
        self.read(&Topic::Everything)
    }

    /// Asks other hosts for runs whose launchers have died without a record of the exit.
    fn check_hosts(&self) {
        let inputs = self.queue.inputs();
        self.run_blocking(None, move |ctx, team| {
            let records = team.member_records()?;
            for run in ops::hosts::dead_runs(ctx, team, &records, HOSTS) {
                inputs.send(LeadInput::Exited { name: run.name, incarnation: run.incarnation });
            }
            Ok(())
        });
    }

    fn handle_source(&mut self, input: LeadInput) -> Result<(), OpsError> {
        let event = match input {
            LeadInput::Done(event) => event,
            LeadInput::Exited { .. } if !self.team.exists() => Event::End(LeadEnd::TeamGone),
            LeadInput::Exited { name, incarnation } => {
                match self.team.member_record(&name)?.filter(|r| r.is(&incarnation)) {
                    Some(record) => Event::Exited(Box::new(record)),
                    None => return Ok(()),
                }
            }
        };
        self.step(event)
    }

    fn step(&mut self, event: Event) -> Result<(), OpsError> {
        self.step_at(event, ops::now())
    }

    fn step_at(&mut self, event: Event, now: Timestamp) -> Result<(), OpsError> {
        for effect in react(&mut self.state, event, now) {
            let what = effect.describe();
            if let Err(e) = self.carry_out(effect)
                && self.team.exists()
            {
                // A failed effect must not end the team; the next read shows what is still undone.
                warn(self.team, None, format!("could not {what}: {e}"))?;
            }
        }
        Ok(())
    }
}
