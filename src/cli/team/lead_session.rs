//! Leads a team in this process while a person watches and may stop it; shared by `up` and `lead`.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use clap::ValueEnum;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::fail::Failure;
use crate::notice;
use crate::out::Out;
use crate::setup::Setup;
use crate::team::closing::ClosingReport;
use crate::team::deletion::{ENDED, delete_reported};
use lead::{Goal, LeadEnd, LeadOptions, STOP_DEADLINE_S, Stop, lead};
use model::members::record::need_in;
use model::team::event::{Event, EventKind};
use model::team::settings::Finish;
use model::time::Timestamp;
use model::wire;
use ops::views::report::{KnownRuns, Report};
use ops::{self, Context, JournalReader, Kind, Lease, OpsError, TeamStore};
use sys::clock::Deadline;
use sys::signal::{self, Signal, Signals, TerminalSignal, TerminalSignals};
use sys::{env, failpoint, lock};
use ui::{DesktopNotification, Style, View};

/// The effect of a signal to the lead on the members (SD-12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnExit {
    /// Ctrl-C asks them to stop, and kills them the second time; TERM and HUP end them at once and
    /// keep the team.
    Stop,
    /// Leave them running without a lead.
    Detach,
    /// Keep leading while one of them lives.
    Refuse,
}

/// Interval of redraws when nothing happens.
const REDRAW: Duration = Duration::from_millis(250);
/// Interval at which the activities of members are read without an event: programs change the team
/// file and their mailboxes by themselves.
const STATES: Duration = Duration::from_secs(1);
/// Delay of a redraw after an event, because events come in bursts.
const REDRAW_DELAY: Duration = Duration::from_millis(40);

/// A team that this process leads, with its display and its reaction to signals.
pub(crate) struct LeadSession<'a> {
    ctx: &'a Context,
    team: &'a TeamStore,
    out: &'a Out,
    /// Set if an agent leads.
    agent: Option<AgentPart>,
    view: RefCell<View>,
    started_at: Timestamp,
    on_exit: OnExit,
    /// The last request to stop the members.
    stop_asked: Cell<Option<Stop>>,
    stops: UnboundedSender<Stop>,
    /// Notified when an event is not on display yet.
    redraw_requested: Notify,
    /// The command that shows the members' screens.
    watch_command: RefCell<Option<String>>,
    /// Notified when members leave or are asked to.
    members_changed: Notify,
    /// The events that it has read are on display.
    journal: RefCell<JournalReader>,
    known_runs: RefCell<KnownRuns>,
    /// The report as of the last change of the members, in case the team is deleted before its end.
    last_report: RefCell<Option<Report>>,
}

/// The part of an agent lead in leading.
#[derive(Debug, Clone, Copy)]
struct AgentPart {
    /// The lead's messages are for it.
    gets_mail: bool,
    /// So are the requests of members.
    gets_questions: bool,
}

/// The result of leading a team.
pub(crate) struct LeadResult {
    pub(crate) end: LeadEnd,
    /// The final report; the last known one if another process deleted the team.
    pub(crate) report: Option<Report>,
    /// The reason why the team's files could not be removed.
    pub(crate) deletion_failure: Option<Failure>,
    /// Why it has failed, as its exit code says.
    pub(crate) failed: Option<Kind>,
}

impl<'a> LeadSession<'a> {
    /// Creates the session. [`LeadSession::lead`] needs the returned receiver of stop requests.
    pub(crate) fn new(
        setup: &'a Setup,
        team: &'a TeamStore,
        on_exit: OnExit,
    ) -> Result<(LeadSession<'a>, UnboundedReceiver<Stop>), Failure> {
        let started_at = team.team()?.created_at;
        let (stops, stop_requests) = unbounded_channel();
        let out = &setup.out;
        let view = View::new(style(out), started_at, out.stderr_paint);
        if let Some(print) = view.line_printer() {
            lock::observe_waits(move |wait| print(&notice::lock_wait_text(wait)));
        }
        let session = LeadSession {
            ctx: &setup.ctx,
            team,
            out,
            agent: None,
            view: RefCell::new(view),
            started_at,
            on_exit,
            stop_asked: Cell::new(None),
            stops,
            redraw_requested: Notify::new(),
            watch_command: RefCell::new(None),
            members_changed: Notify::new(),
            journal: RefCell::new(team.journal()),
            known_runs: RefCell::default(),
            last_report: RefCell::new(None),
        };
        Ok((session, stop_requests))
    }

    /// Returns the session for an agent lead, which owns the terminal: silent until
    /// [`LeadSession::resume_output`].
    pub(crate) fn for_agent_lead(self, gets_mail: bool, gets_questions: bool) -> LeadSession<'a> {
        let view = RefCell::new(View::new(Style::Silent, self.started_at, self.out.stderr_paint));
        LeadSession { agent: Some(AgentPart { gets_mail, gets_questions }), view, ..self }
    }

    /// Resumes output after the agent lead has left the terminal, and handles its exit like this
    /// signal.
    pub(crate) fn resume_output(&self, signal: Signal) {
        let style =
            if self.out.quiet { Style::Silent } else { Style::Plain { all: self.out.verbose } };
        let mut view = View::new(style, self.started_at, self.out.stderr_paint);
        // Without the journal the lines only lack context.
        view.add_past(&self.team.events().unwrap_or_default());
        // The agent lead may have left the cursor in the middle of a line.
        view.print_line("");
        self.view.replace(view);
        self.color_members();
        // The lead may have ended already.
        let _ = self.stop_request(signal).map(|request| self.stops.send(request));
    }

    /// Returns whether a person has asked to stop the members.
    pub(crate) fn interrupted(&self) -> bool {
        self.stop_asked.get().is_some()
    }

    /// Returns whether the display is a live frame rather than lines.
    pub(crate) fn is_live(&self) -> bool {
        self.view.borrow().is_live()
    }

    /// Prints a line outside the frame.
    pub(crate) fn print_message(&self, words: &str) {
        self.view.borrow_mut().print_line(words);
    }

    /// Sets the command that the frame names for watching the members.
    pub(crate) fn set_watch_command(&self, how: String) {
        self.watch_command.replace(Some(how));
    }

    /// Returns useful commands and keys, most important first.
    fn hints(&self) -> Vec<String> {
        let name = self.team.name();
        let stop = match (self.interrupted(), self.on_exit) {
            (true, _) => "Ctrl-C again ends it by force",
            (false, OnExit::Stop) => "Ctrl-C ends the team",
            (false, OnExit::Detach) => "Ctrl-C leaves the team running",
            (false, OnExit::Refuse) => "Ctrl-C ends the lead once no member lives",
        };
        let watch = self.watch_command.borrow().clone();
        watch.into_iter().chain([stop.to_owned(), format!("phalanx status -t {name}")]).collect()
    }

    /// Adds past events to the display without printing them.
    pub(crate) fn catch_up(&self) -> Result<(), Failure> {
        let events = self.journal.borrow_mut().read()?;
        if !events.is_empty() {
            self.view.borrow_mut().add_past(&events);
            self.color_members();
        }
        Ok(())
    }

    pub(crate) fn close(&self) {
        self.view.borrow_mut().close();
    }

    /// Runs `work`, which reports no events itself, while handling signals and updating the
    /// display.
    pub(crate) async fn run_with_signals<T>(
        &self,
        signals: &mut Signals,
        work: impl Future<Output = T>,
    ) -> T {
        self.run_beside(signals, true, work).await
    }

    async fn run_beside<T>(
        &self,
        signals: &mut Signals,
        follow: bool,
        work: impl Future<Output = T>,
    ) -> T {
        self.view.borrow_mut().take_terminal();
        tokio::select! {
            biased;
            done = work => done,
            never = self.forward_signals(signals) => match never {},
            never = self.redraw(follow) => match never {},
            never = self.follow_terminal() => match never {},
            never = self.keep_report() => match never {},
        }
    }

    async fn forward_signals(&self, signals: &mut Signals) -> Infallible {
        loop {
            let signal = signals.recv().await;
            // The lead may have ended already; then there is nothing to stop.
            let _ = self.stop_request(signal).map(|request| self.stops.send(request));
        }
    }

    /// Returns the request that a signal stands for, or `None` if it has no effect (SD-12).
    fn stop_request(&self, signal: Signal) -> Option<Stop> {
        if self.on_exit == OnExit::Detach {
            return Some(Stop::Leaving);
        }
        // If the members cannot be listed, some may be alive.
        let live = ops::members::status::live_members(self.team).ok();
        if self.on_exit == OnExit::Refuse && live.as_ref().is_none_or(|live| !live.is_empty()) {
            self.print_message(&format!(
                "members live, the lead stays; `phalanx down -t {}` ends them",
                self.team.name()
            ));
            return None;
        }
        let is_empty = live.as_ref().is_some_and(Vec::is_empty);
        let members = match live.map(|live| live.len()) {
            Some(1) => "1 member".to_owned(),
            Some(some) => format!("{some} members"),
            None => "the members".to_owned(),
        };
        let is_of_system = matches!(signal, Signal::Terminate | Signal::Hangup);
        let (stop, words) = match self.stop_asked.get() {
            Some(Stop::Interrupted) => return None,
            None if is_of_system && self.on_exit == OnExit::Stop => {
                (Stop::Interrupted, format!("ending with {members}; the team stays"))
            }
            None if is_empty => (Stop::Gracefully, "ending the team".to_owned()),
            None => {
                let limit = format!("up to {STOP_DEADLINE_S} s; Ctrl-C again to force");
                (Stop::Gracefully, format!("asking {members} to stop, {limit}"))
            }
            Some(_) => (Stop::ByForce, format!("ending {members} by force")),
        };
        self.stop_asked.set(Some(stop));
        self.print_message(&words);
        Some(stop)
    }

    async fn redraw(&self, follow: bool) -> Infallible {
        if !self.is_live() {
            std::future::pending::<()>().await;
        }
        let mut read_states = Deadline::after(Duration::ZERO);
        loop {
            // A failed read is repeated at the next redraw; the lead reports persistent failures.
            let _ = if follow { self.catch_up() } else { Ok(()) };
            if read_states.expired() {
                read_states = Deadline::after(STATES);
                if let Ok(status) = ops::members::status::status(self.team) {
                    self.view.borrow_mut().set_states(&status);
                }
            }
            let hints = self.hints();
            self.view.borrow_mut().set_hints(hints);
            self.view.borrow_mut().draw(ops::now());
            // A burst of events is drawn once.
            tokio::select! {
                () = self.redraw_requested.notified() => {
                    tokio::time::sleep(REDRAW_DELAY).await;
                    read_states = Deadline::after(Duration::ZERO);
                }
                () = tokio::time::sleep(REDRAW) => {}
            }
        }
    }

    /// Restores the terminal when this process is suspended or quits from the keyboard, and redraws
    /// after a change of its size.
    async fn follow_terminal(&self) -> Infallible {
        // Without these signals the frame still works.
        let Some(mut signals) = self.is_live().then(TerminalSignals::new).and_then(Result::ok)
        else {
            return std::future::pending().await;
        };
        let mut resumed = false;
        loop {
            let signal = signals.recv().await;
            match signal {
                TerminalSignal::Suspend => {
                    self.view.borrow_mut().suspend();
                    let _ = signal::act_by_default(signal);
                    // The frame must be set up before the next redraw; the `SIGCONT` of this
                    // resumption arrives later.
                    self.view.borrow_mut().resume();
                    resumed = true;
                }
                TerminalSignal::Continue if resumed => resumed = false,
                TerminalSignal::Continue => self.view.borrow_mut().resume(),
                TerminalSignal::Quit => {
                    self.close();
                    let _ = signal::act_by_default(signal);
                }
                TerminalSignal::Resize => {}
            }
            self.redraw_requested.notify_one();
        }
    }

    /// Saves a report whenever members leave: if the team is deleted, its files are gone before the
    /// final report is made.
    async fn keep_report(&self) -> Infallible {
        loop {
            // The notification coalesces members that leave together.
            self.members_changed.notified().await;
            self.save_report();
        }
    }

    /// Leads the team until its goal is reached, then removes it unless it is to be kept.
    pub(crate) async fn lead(
        &self,
        signals: &mut Signals,
        mut stop_requests: UnboundedReceiver<Stop>,
        lease: Lease,
    ) -> Result<LeadResult, Failure> {
        failpoint::hit("lead.begun");
        let led = self.lead_to_end(signals, &mut stop_requests, lease).await;
        self.close();
        match led {
            Ok((end, keeps)) => Ok(self.conclude(end, keeps)),
            // The files vanish during a read if the team is deleted at this moment.
            Err(_) if !self.team.exists() => Ok(self.conclude(LeadEnd::TeamGone, true)),
            Err(failure) => Err(failure),
        }
    }

    /// Leads the team until an end is reached. Also returns whether it is kept then.
    async fn lead_to_end(
        &self,
        signals: &mut Signals,
        stop_requests: &mut UnboundedReceiver<Stop>,
        lease: Lease,
    ) -> Result<(LeadEnd, bool), Failure> {
        self.save_report();
        if self.is_live() {
            // Past events belong to the frame and are not reported as new.
            self.catch_up()?;
        }
        ops::team::foreign_members::take_over(self.ctx, self.team)?;
        let settings = self.team.settings()?;
        let finish = settings.as_ref().map(|s| s.finish).unwrap_or_default();
        // An agent lead decides itself when the work is done.
        let finish = self.agent.map_or(finish, |_| Finish::Manual);
        let (goal, journal) = (Goal::Lead(finish), self.journal.borrow().clone());
        let has_agent_lead = self.agent.is_some_and(|agent| agent.gets_mail);
        let tells_agent = self.agent.is_some_and(|agent| agent.gets_questions);
        let keeps = settings.as_ref().is_none_or(|settings| settings.keep);
        let (ctx, team) = (self.ctx, self.team);
        let options =
            LeadOptions { ctx, team, lease, goal, settings, has_agent_lead, tells_agent, journal };
        let mut show_event = |event: &Event| self.show_event(event);
        let led = lead(options, stop_requests, &mut show_event);
        let end = self.run_beside(signals, false, led).await?;
        Ok((end, keeps || end == LeadEnd::Interrupted))
    }

    fn show_event(&self, event: &Event) {
        let mut view = self.view.borrow_mut();
        view.show_event(event);
        if env::stderr_is_tty()
            && let Some(words) = notification_text(event)
        {
            view.notify(&words, notification());
        }
        drop(view);
        if event.event == EventKind::MemberReady {
            self.color_members();
        }
        if matches!(event.event, EventKind::MemberLeft | EventKind::ShutdownRequested) {
            self.members_changed.notify_one();
        }
        self.redraw_requested.notify_one();
    }

    fn color_members(&self) {
        // Without the team file only the colours are missing.
        let Ok(roster) = self.team.team() else { return };
        let mut view = self.view.borrow_mut();
        roster.teammates().for_each(|member| view.set_color(&member.name, member.color.as_deref()));
    }

    fn save_report(&self) {
        if let Ok(report) = self.report() {
            self.last_report.replace(Some(report));
        }
    }

    fn report(&self) -> Result<Report, OpsError> {
        let known = &mut self.known_runs.borrow_mut();
        let elapsed_ms = ops::now().since(self.started_at);
        ops::views::report::report_again(self.ctx, self.team, elapsed_ms, known)
    }

    fn conclude(&self, end: LeadEnd, keep: bool) -> LeadResult {
        let last = || self.last_report.borrow().clone();
        let result = |report: Option<Report>| {
            let failed = match end {
                _ if self.interrupted() => Some(Kind::Interrupted),
                LeadEnd::TimedOut => Some(Kind::Deadline),
                _ => report.as_ref().is_none_or(|report| !report.success).then_some(Kind::Failed),
            };
            LeadResult { end, report, deletion_failure: None, failed }
        };
        if matches!(end, LeadEnd::TeamGone | LeadEnd::Left) {
            return result(last());
        }
        // The final one is read anew, not by what seems unchanged.
        self.known_runs.take();
        let mut report = self.report().ok().or_else(last);
        if let Some(report) = &mut report {
            report.branches = ops::views::report::branches(self.ctx, self.team);
        }
        if end == LeadEnd::TasksOver && !keep {
            // Nobody may be looking on. What was in the mailbox is kept for some days.
            let _ = ops::effects::results::report_rest(self.team);
        }
        let mut result = result(report);
        if !keep {
            let kept = result
                .report
                .as_ref()
                .and_then(|report| ClosingReport::of(self.team, report, result.failed, ENDED).ok());
            let print = |words: &str| self.print_message(words);
            let deleted = delete_reported(self.ctx, self.team, kept, print);
            result.deletion_failure = deleted.err().map(Failure::from);
        }
        result
    }
}

/// Returns the kind of desktop notification that this terminal supports.
fn notification() -> DesktopNotification {
    let term = env::var("TERM").map(|term| term.to_string_lossy().into_owned());
    DesktopNotification::for_terminal(term.as_deref(), env::var("VTE_VERSION").is_some())
}

/// Returns the text of a notification for the person at the terminal, if a request, a prompt or a
/// dialog waits, or a member has set a reminder.
fn notification_text(event: &Event) -> Option<String> {
    use EventKind::{Escalated, MemberPrompt, MemberState, Reminded, RequestAnnounced};
    let name = event.member.as_ref()?;
    if event.event == MemberPrompt {
        let line = wire::text(&event.detail, "text")?;
        return Some(format!("{name} waits at its prompt: {line}"));
    }
    if let Some(reason) = wire::text(&event.detail, "reason").filter(|_| event.event == MemberState)
    {
        let (need, text) = need_in(&reason)?;
        return Some(format!("{name} {}: {text}", need.words()));
    }
    if !matches!(event.event, RequestAnnounced | Reminded | Escalated) {
        return None;
    }
    let part = |key| wire::text(&event.detail, key);
    if let Some(text) = part("text") {
        return Some(format!("{name} asks about task #{}: {text}", event.task?));
    }
    let (kind, summary) = (part("kind")?, part("summary").unwrap_or_default());
    Some(format!("{name} asks for a {kind}: {summary}"))
}

fn style(out: &Out) -> Style {
    let dumb = env::var("TERM").is_none_or(|term| term == "dumb");
    match (out.quiet, out.verbose) {
        (true, _) => Style::Silent,
        (false, false) if env::stderr_is_tty() && !dumb => Style::Live,
        (false, all) => Style::Plain { all },
    }
}
