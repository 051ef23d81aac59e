//! The loop of the dashboard: waits for keys, reports and signals, and draws.

use std::time::Duration;

use tokio::sync::mpsc;

use super::commands::CommandContext;
use super::sources::{
    QUEUE, Reports, ScreenFeed, SourceReport, TeamFeed, TypedInput, Typist, in_background,
};
use crate::args::Global;
use crate::complete::candidates_for_line;
use crate::fail::{Exit, Failure, VerbResult};
use crate::setup::Setup;
use crate::terminal::{FullScreen, MouseUse, ScreenInput, TerminalWake};
use model::id::MemberName;
use ops::authority::Action;
use ops::decisions::mark_read::{Afterwards, mark_or_remove};
use ops::views::snapshot::{AttentionCause, teams};
use ops::{self, Context, TeamStore};
use sys::clock::Deadline;
use sys::signal::{self, TerminalSignal};
use sys::{failpoint, fs};
use ui::DesktopNotification;
use ui::dashboard::{Dashboard, Effect, FormChoices};

/// Shortest time between two frames that no key has caused.
const FRAME: Duration = Duration::from_millis(50);
/// Number of lines of a member's earlier output that can be scrolled.
const HISTORY: usize = 2_000;

/// The team on display, with the threads that serve it.
struct ShownTeam {
    ctx: Context,
    team: TeamStore,
    reports: Reports,
    commands: CommandContext,
    feed: TeamFeed,
    typist: Typist,
    screens: ScreenFeed,
}

impl ShownTeam {
    fn start(ctx: &Context, team: TeamStore, reports: Reports) -> Result<ShownTeam, Failure> {
        let feed = TeamFeed::start(ctx, &team, reports.clone())?;
        let typist = Typist::start(ctx, &team, reports.clone())?;
        let screens = ScreenFeed::start(ctx, &team, reports.clone())?;
        let commands = CommandContext::new(ctx, &team);
        Ok(ShownTeam { ctx: ctx.clone(), team, reports, commands, feed, typist, screens })
    }
}

/// Settings of the dashboard.
pub(super) struct WatchOptions {
    pub(super) global: Global,
    /// The announcement of a new request; `None` for none.
    pub(super) notification: Option<DesktopNotification>,
}

/// An input of the loop.
enum Wake {
    Terminal(TerminalWake),
    SourceReport(u64, SourceReport),
    Time,
}

/// The dashboard with its terminal and the team on display.
pub(super) struct Driver {
    dashboard: Dashboard,
    terminal: FullScreen,
    setup: Setup,
    /// `None` until a person has chosen a team.
    shown: Option<ShownTeam>,
    number: u64,
    sender: mpsc::Sender<(u64, SourceReport)>,
    incoming: mpsc::Receiver<(u64, SourceReport)>,
    options: WatchOptions,
    /// The items that were announced, so that each is announced once.
    announced: Vec<AttentionCause>,
    /// The first state of the team is not announced.
    is_first: bool,
}

impl Driver {
    /// Takes the terminal and starts to read the team, or the teams to choose from.
    pub(super) fn new(
        dashboard: Dashboard,
        setup: Setup,
        team: Option<TeamStore>,
        options: WatchOptions,
    ) -> Result<Driver, Failure> {
        let (sender, incoming) = mpsc::channel(QUEUE);
        let reports = Reports::new(sender.clone(), 0);
        let shown = match team {
            Some(team) => Some(ShownTeam::start(&setup.ctx, team, reports)?),
            None => {
                read_teams(&setup.ctx, &reports);
                None
            }
        };
        let terminal = FullScreen::enter(MouseUse::Screen)?;
        Ok(Driver {
            dashboard,
            terminal,
            setup,
            shown,
            number: 0,
            sender,
            incoming,
            options,
            announced: Vec::new(),
            is_first: true,
        })
    }

    /// Marks the lead's messages that the panel of messages has shown, if the person leads.
    fn mark_shown_mail(&mut self) {
        let shown_mail = self.dashboard.take_shown_mail();
        let Some(shown) = self.shown.as_ref().filter(|_| !shown_mail.is_empty()) else { return };
        if !shown.ctx.speaker.is_lead() {
            return;
        }
        let (ctx, team) = (shown.ctx.clone(), shown.team.clone());
        tokio::task::spawn_blocking(move || {
            // Unmarked messages stay unread for other readers.
            let lead = MemberName::lead();
            let _ = mark_or_remove(&ctx, &team, &lead, shown_mail, Afterwards::Mark);
        });
    }

    /// Runs until the person quits or a signal arrives.
    pub(super) async fn run(mut self) -> VerbResult {
        let mut input = ScreenInput::new()?;
        let mut drawn = Deadline::after(Duration::ZERO);
        let (mut is_dirty, mut is_urgent) = (true, true);
        loop {
            if is_dirty && (is_urgent || drawn.expired()) {
                failpoint::hit("watch.frame");
                let now = ops::now();
                self.terminal.draw(|frame| self.dashboard.draw(frame, now))?;
                self.mark_shown_mail();
                drawn = Deadline::after(FRAME);
                (is_dirty, is_urgent) = (false, false);
            }
            let wait = if is_dirty {
                Some(drawn.remaining())
            } else {
                self.dashboard.redraw_after_ms(ops::now()).map(Duration::from_millis)
            };
            let wake = tokio::select! {
                biased;
                wake = input.next() => Wake::Terminal(wake),
                Some((number, report)) = self.incoming.recv() => Wake::SourceReport(number, report),
                () = sleep(wait) => Wake::Time,
            };
            let effects = match wake {
                Wake::Terminal(TerminalWake::Event(event)) => {
                    (is_dirty, is_urgent) = (true, true);
                    self.dashboard.handle(&event, ops::now())
                }
                Wake::Terminal(TerminalWake::Gone) => return Ok(Exit::DONE),
                Wake::Terminal(TerminalWake::End) => return Err(Failure::StreamEnded),
                Wake::Terminal(TerminalWake::Suspend) => vec![Effect::Suspend],
                Wake::Terminal(TerminalWake::Redraw) => {
                    (is_dirty, is_urgent) = (true, true);
                    self.terminal.redraw()?;
                    Vec::new()
                }
                Wake::SourceReport(number, report) if number == self.number => {
                    is_dirty = true;
                    self.take_report(report)?
                }
                Wake::SourceReport(..) => Vec::new(),
                Wake::Time => {
                    is_dirty = true;
                    Vec::new()
                }
            };
            for effect in effects {
                if effect == Effect::Quit {
                    return Ok(Exit::DONE);
                }
                if matches!(effect, Effect::RunHere(_) | Effect::Page(_) | Effect::Suspend) {
                    // Nothing else may read the keys meanwhile.
                    input.release();
                    (is_dirty, is_urgent) = (true, true);
                }
                self.perform(effect)?;
            }
        }
    }

    fn take_report(&mut self, report: SourceReport) -> Result<Vec<Effect>, Failure> {
        let now = ops::now();
        match report {
            SourceReport::Team(snapshot) => {
                let effects = self.dashboard.set_snapshot(*snapshot);
                self.announce()?;
                return Ok(effects);
            }
            SourceReport::TeamProblem(problem) => self.dashboard.set_problem(problem),
            SourceReport::TeamGone => {
                if let Some(shown) = &mut self.shown {
                    shown.screens.follow(None);
                    self.dashboard.set_team_gone();
                }
            }
            SourceReport::Typed => {
                self.shown.iter().for_each(|shown| shown.screens.refresh());
            }
            SourceReport::Screen { request, member, update } => {
                if self.shown.as_ref().is_some_and(|shown| shown.screens.is_current(request)) {
                    self.dashboard.set_screen(&member, update);
                }
            }
            SourceReport::Opened(opened) => match *opened {
                Ok((setup, team)) => self.open(setup, team)?,
                Err(problem) => self.dashboard.report_problem(&problem, now),
            },
            SourceReport::History(member, Ok(text)) => self.dashboard.set_history(&member, &text),
            SourceReport::Finished(done) => {
                self.refresh();
                return Ok(self.dashboard.finish(done, now));
            }
            SourceReport::Teams(Ok(teams)) => self.dashboard.set_teams(teams),
            SourceReport::Candidates(request, candidates) => {
                return Ok(self.dashboard.set_candidates(&request, candidates));
            }
            SourceReport::FormChoices(choices) => self.dashboard.set_form_choices(&choices),
            SourceReport::TaskTexts(task, Ok((subject, description))) => {
                self.dashboard.set_task_texts(task, &subject, &description);
            }
            SourceReport::History(_, Err(problem))
            | SourceReport::TaskTexts(_, Err(problem))
            | SourceReport::Teams(Err(problem))
            | SourceReport::Problem(problem) => self.dashboard.report_problem(&problem, now),
        }
        Ok(Vec::new())
    }

    /// Announces what has begun to wait for the person, once.
    fn announce(&mut self) -> Result<(), Failure> {
        let waiting: Vec<_> = self.dashboard.waiting().to_vec();
        let new = waiting.iter().find(|item| !self.announced.contains(&item.cause));
        if let (Some(item), Some(notification), false) =
            (new, self.options.notification, self.is_first)
        {
            let who = item.member.as_ref().map(|name| format!("{name} ")).unwrap_or_default();
            let words = format!("{who}{}", item.for_keys());
            self.terminal.write(notification.sequence(&words).as_bytes())?;
        }
        self.announced = waiting.into_iter().map(|item| item.cause).collect();
        self.is_first = false;
        Ok(())
    }

    /// Reads the team on display at once.
    fn refresh(&self) {
        if let Some(shown) = &self.shown {
            shown.feed.refresh();
        }
    }

    fn perform(&mut self, effect: Effect) -> Result<(), Failure> {
        match (effect, &mut self.shown) {
            (Effect::Quit, _) => {}
            (Effect::Redraw, _) => self.terminal.redraw()?,
            (Effect::Suspend, _) => {
                self.terminal.leave();
                signal::act_by_default(TerminalSignal::Suspend)?;
                self.terminal.take()?;
                self.refresh();
            }
            (Effect::RunHere(command), _) => self.away(|commands| commands.run_here(&command))?,
            (Effect::Page(command), _) => self.away(|commands| commands.page(&command))?,
            (Effect::ReadTeams, _) => {
                let reports = Reports::new(self.sender.clone(), self.number);
                read_teams(&self.setup.ctx, &reports);
            }
            (Effect::OpenTeam { root, name }, _) => {
                let global = Global {
                    team: Some(name.to_string()),
                    config_dir: Some(root),
                    ..self.options.global.clone()
                };
                let out = self.setup.out.clone();
                // The team's database or disk may be slow.
                in_background(&Reports::new(self.sender.clone(), self.number), move || {
                    let opened = Setup::new(&global, out)
                        .and_then(|setup| setup.team(Action::Watch).map(|team| (setup, team)));
                    SourceReport::Opened(Box::new(opened.map_err(|failure| failure.words())))
                });
            }
            (Effect::Run { command, after }, Some(shown)) => {
                let commands = shown.commands.clone();
                in_background(&shown.reports, move || {
                    SourceReport::Finished(commands.run(command, after))
                });
            }
            (Effect::Follow(member), Some(shown)) => {
                shown.screens.follow(member);
            }
            (Effect::ReadHistory(member), Some(shown)) => {
                let (ctx, team) = (shown.ctx.clone(), shown.team.clone());
                in_background(&shown.reports, move || {
                    let text = ops::members::output::peek(&ctx, &team, &member, HISTORY);
                    SourceReport::History(member, text.map_err(|e| e.to_string()))
                });
            }
            (Effect::Press { member, keys }, Some(shown)) => {
                shown.typist.send(TypedInput::Keys(member, keys));
            }
            (Effect::Paste { member, text }, Some(shown)) => {
                shown.typist.send(TypedInput::Text(member, text));
            }
            (Effect::Complete(request), Some(shown)) => {
                let global = Global {
                    team: Some(shown.team.name().to_string()),
                    config_dir: Some(shown.team.root().to_owned()),
                    ..self.options.global.clone()
                };
                let dir = shown.ctx.caller.cwd.clone();
                in_background(&shown.reports, move || {
                    let candidates = candidates_for_line(&global, &request, &dir);
                    SourceReport::Candidates(request, candidates)
                });
            }
            (Effect::ReadFormChoices, Some(shown)) => {
                let (ctx, team) = (shown.ctx.clone(), shown.team.clone());
                in_background(&shown.reports, move || {
                    SourceReport::FormChoices(form_choices(&ctx, &team))
                });
            }
            (Effect::ReadTask(id), Some(shown)) => {
                let team = shown.team.clone();
                in_background(&shown.reports, move || {
                    let task = ops::board::task::get(&team, id).map_err(|e| e.to_string());
                    SourceReport::TaskTexts(id, task.map(|task| (task.subject, task.description)))
                });
            }
            // No team has been chosen yet.
            (_, None) => {}
        }
        Ok(())
    }

    /// Shows another team.
    fn open(&mut self, setup: Setup, team: TeamStore) -> Result<(), Failure> {
        self.number += 1;
        let name = team.name().to_string();
        let reports = Reports::new(self.sender.clone(), self.number);
        self.shown = Some(ShownTeam::start(&setup.ctx, team, reports)?);
        self.setup = setup;
        self.announced.clear();
        self.is_first = true;
        self.dashboard.set_team(&name);
        Ok(())
    }

    /// Leaves the terminal to `work` and comes back.
    fn away(
        &mut self,
        work: impl FnOnce(&CommandContext) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Some(shown) = &self.shown else { return Ok(()) };
        self.terminal.leave();
        let done = work(&shown.commands);
        self.terminal.take()?;
        failpoint::hit("watch.back");
        shown.feed.refresh();
        if let Err(failure) = done {
            self.dashboard.report_problem(&failure.words(), ops::now());
        }
        Ok(())
    }
}

/// Starts to list the teams of the machine.
fn read_teams(ctx: &Context, reports: &Reports) {
    let ctx = ctx.clone();
    in_background(reports, move || SourceReport::Teams(teams(&ctx).map_err(|e| e.to_string())));
}

/// Reads what the forms offer. What cannot be read is not offered; the verbs report it.
fn form_choices(ctx: &Context, team: &TeamStore) -> FormChoices {
    let profiles = ops::members::profiles::list(ctx).unwrap_or_default();
    let roles = ops::starting::roles::team_roles(team).unwrap_or_default();
    let templates = ops::starting::templates::list(ctx).unwrap_or_default();
    let files = fs::names(&ctx.caller.cwd).unwrap_or_default();
    let manifests = files.into_iter().filter(|name| name.ends_with(".toml"));
    let agents = ops::starting::agents::on_path(ctx).unwrap_or_default();
    FormChoices {
        profiles: profiles.into_iter().map(|profile| profile.name).collect(),
        roles: roles.named.into_keys().collect(),
        sources: templates.into_iter().map(|template| template.name).chain(manifests).collect(),
        agents: agents.into_iter().map(|agent| agent.profile).collect(),
    }
}

/// Sleeps for so long; forever without a limit.
async fn sleep(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}
