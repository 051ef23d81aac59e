//! `review` on a terminal: the loop that waits for keys and news, draws, and carries out effects.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::jobs::ReviewJobs;
use super::source::ReviewSource;
use crate::fail::{Exit, Failure, VerbResult};
use crate::interrupt::runtime;
use crate::setup::Setup;
use crate::terminal::theme::configured_theme;
use crate::terminal::{FullScreen, MouseUse, ScreenInput, TerminalWake};
use model::id::MemberName;
use ops::TeamStore;
use sys::clock::Deadline;
use sys::signal::{self, TerminalSignal};
use ui::review::{ReviewEffect, ReviewNews, ReviewScreen};

/// Time in a frame for the differences of words.
const COMPARING: Duration = Duration::from_millis(8);

/// Shows the works of the team, or the changes of `start`, until the person quits or a signal
/// arrives. The caller has checked that there is a terminal that can be drawn on.
pub(crate) fn run(
    setup: &Setup,
    team: &TeamStore,
    source: Arc<dyn ReviewSource>,
    start: Option<MemberName>,
) -> VerbResult {
    let theme = configured_theme(setup)?;
    let screen = ReviewScreen::new(team.name().as_str(), theme);
    let runtime = runtime()?;
    let done = runtime.block_on(async { ReviewDriver::new(screen, source)?.run(start).await });
    // Not waited for: the thread that reads keys may be blocked.
    runtime.shutdown_background();
    done
}

/// The screen with its terminal and its threads. The terminal is restored before the drop waits
/// for the threads.
struct ReviewDriver {
    screen: ReviewScreen,
    terminal: FullScreen,
    news: UnboundedReceiver<ReviewNews>,
    jobs: ReviewJobs,
}

impl ReviewDriver {
    fn new(screen: ReviewScreen, source: Arc<dyn ReviewSource>) -> Result<ReviewDriver, Failure> {
        let (sender, news) = unbounded_channel();
        let jobs = ReviewJobs::start(source, sender)?;
        let terminal = FullScreen::enter(MouseUse::Terminal)?;
        Ok(ReviewDriver { screen, terminal, news, jobs })
    }

    async fn run(mut self, start: Option<MemberName>) -> VerbResult {
        let mut input = ScreenInput::new()?;
        let mut effects = self.screen.start(start);
        loop {
            for effect in effects {
                match effect {
                    ReviewEffect::Quit => return Ok(Exit::DONE),
                    ReviewEffect::Redraw => self.terminal.redraw()?,
                    ReviewEffect::Suspend => {
                        input.release();
                        self.terminal.leave();
                        signal::act_by_default(TerminalSignal::Suspend)?;
                        self.terminal.take()?;
                        self.jobs.take(ReviewEffect::ReadList);
                    }
                    other => self.jobs.take(other),
                }
            }
            self.draw()?;
            for effect in self.screen.drawn_effects() {
                self.jobs.take(effect);
            }
            let wake = tokio::select! {
                biased;
                wake = input.next() => wake,
                Some(news) = self.news.recv() => {
                    effects = self.screen.apply(news);
                    continue;
                }
            };
            effects = match wake {
                TerminalWake::Event(event) => self.screen.handle(&event, self.terminal.size()?),
                TerminalWake::Suspend => vec![ReviewEffect::Suspend],
                TerminalWake::Redraw => {
                    self.terminal.redraw()?;
                    Vec::new()
                }
                TerminalWake::Gone | TerminalWake::End => {
                    self.terminal.leave();
                    for effect in self.screen.hang_up() {
                        self.jobs.take(effect);
                    }
                    return Err(Failure::StreamEnded);
                }
            };
        }
    }

    fn draw(&mut self) -> Result<(), Failure> {
        let deadline = Deadline::after(COMPARING).instant();
        self.terminal.draw(|frame| {
            let area = frame.area();
            if let Some(cursor) = self.screen.draw(area, frame.buffer_mut(), deadline) {
                frame.set_cursor_position(cursor);
            }
        })?;
        Ok(())
    }
}
