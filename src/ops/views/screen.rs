//! Follows a member's screen: by the launcher's socket if it has one, else by the backend. Reads
//! only; neither the terminal nor its program notices.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::authority::names::started_record;
use crate::members::backends;
use crate::members::output::{kept_lines, live_screen};
use crate::views::focus::prove;
use crate::{Context, OpsError};
use backend::follow::{LINES, poll};
use backend::pty::{LauncherMessage, Viewer};
use backend::{Backend, BackendError, Mark, ScreenImage};
use model::id::MemberName;
use model::members::placement::{Placement, Verdict};
use model::members::record::{ExitRecord, MemberRecord};
use store::{TeamStore, now};
use sys::child::ChildExit;
use sys::output_watch::{OutputWatch, Stopper};

/// A change of a member's screen. The bytes come from other programs: they are for a terminal
/// emulator, not for a person's terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScreenUpdate {
    /// The whole screen. `bytes` draw it on an empty terminal of this size.
    Whole { rows: u16, cols: u16, bytes: Vec<u8> },
    /// Further output of the program, for the terminal that drew the last `Whole`.
    Output(Vec<u8>),
    /// The last update, with the reason as text for people.
    Ended(String),
}

/// Follows a screen on a thread of its own until dropped. The drop does not wait for the thread: an
/// update that has begun may still be delivered, and no other one.
pub struct ScreenFollower {
    is_dropped: Arc<AtomicBool>,
    viewer: Option<Viewer>,
    stopper: Stopper,
}

impl ScreenFollower {
    /// Reads the screen soon, because the person has typed something.
    pub fn refresh(&self) {
        self.stopper.wake();
    }
}

impl Drop for ScreenFollower {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
        if let Some(viewer) = &self.viewer {
            viewer.leave();
        }
    }
}

/// Follows the screen of `name`: passes it to `on_update` now and after each change. For a member
/// that has ended, passes the last lines on, if there are any, and the reason.
///
/// # Errors
/// [`OpsError::NotProven`] if the placement is not proven to be the member's;
/// [`OpsError::Failed`] for a member that was never placed, and for the caller's own terminal.
pub fn follow(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    on_update: impl Fn(ScreenUpdate) + Send + 'static,
) -> Result<ScreenFollower, OpsError> {
    let failed = |problem: String| OpsError::Failed { problem };
    let record = started_record(team, name)?;
    let Some(placement) = record.placement.clone() else {
        return Err(failed(format!("`{name}` has no screen: it was never placed")));
    };
    // Each update would be output on the screen that it is about.
    let caller = ctx.caller.var("PHALANX_INCARNATION").and_then(OsStr::to_str);
    if caller == Some(record.incarnation.as_str()) {
        return Err(failed(format!("`{name}` cannot be followed: this is its own terminal")));
    }
    let backend = backends::open_for(ctx, team, &record, &placement)?;
    let has_ended = match prove(&record, &placement, backend.as_ref()) {
        Ok(()) => false,
        Err(OpsError::NotProven { verdict: Verdict::Gone, .. }) => true,
        Err(error) => return Err(error),
    };
    let no_follower = |e| failed(format!("the screen of `{name}` cannot be followed: {e}"));
    let (watch, stopper) = OutputWatch::new().map_err(no_follower)?;
    let socket = record.socket().map(str::to_owned);
    // Without a connection, the backend reads the screen.
    let viewer = socket
        .filter(|_| !has_ended)
        .and_then(|socket| Viewer::follow(Path::new(&socket)).ok())
        .and_then(|viewer| Some((viewer.try_clone().ok()?, viewer)));
    let (handle, viewer) = viewer.unzip();
    let is_dropped = Arc::new(AtomicBool::new(false));
    let relay = ScreenRelay {
        team: team.clone(),
        record,
        placement,
        backend,
        is_dropped: is_dropped.clone(),
        on_update,
    };
    let thread = thread::Builder::new().name("screen".to_owned());
    let started = thread
        .spawn(move || if has_ended { relay.show_last_lines() } else { relay.run(viewer, watch) });
    started.map_err(no_follower)?;
    Ok(ScreenFollower { is_dropped, viewer: handle, stopper })
}

/// The thread's side of a [`ScreenFollower`].
struct ScreenRelay<F> {
    team: TeamStore,
    record: MemberRecord,
    placement: Placement,
    backend: Box<dyn Backend>,
    is_dropped: Arc<AtomicBool>,
    on_update: F,
}

/// The end of a connection to a launcher.
enum ConnectionEnd {
    Exited(ChildExit),
    /// The launcher has gone, or the follower was dropped.
    Closed,
    /// The launcher has sent no screen: it is of an older build, or has too many connections.
    NotServed,
}

impl<F: Fn(ScreenUpdate)> ScreenRelay<F> {
    fn run(&self, viewer: Option<Viewer>, mut watch: OutputWatch) {
        let end = match viewer.map(|viewer| self.relay(viewer)) {
            Some(ConnectionEnd::Exited(ChildExit { code, signal })) => {
                let exit = ExitRecord { code, signal, at: now(), ..ExitRecord::default() };
                exit.describe()
            }
            Some(ConnectionEnd::Closed) => self.reason("its launcher has gone".to_owned()),
            Some(ConnectionEnd::NotServed) | None => match self.follow_placement(&mut watch) {
                Ok(()) => return,
                Err(BackendError::NotOurs { place, verdict }) => {
                    self.reason(format!("{place} is {verdict}"))
                }
                Err(error) => self.reason(error.to_string()),
            },
        };
        // The end of its output came after the last read of its pane.
        if let Some(text) = self.record_now().and_then(|record| kept_lines(&record, LINES)) {
            self.show(ScreenImage::of_text(&text));
        }
        self.send(ScreenUpdate::Ended(end));
    }

    /// Passes on what the launcher sends.
    fn relay(&self, mut viewer: Viewer) -> ConnectionEnd {
        let (mut size, mut is_served) = (None, false);
        loop {
            match viewer.receive() {
                Ok(Some(LauncherMessage::Size { rows, cols })) => {
                    size = Some((rows, cols));
                    is_served = true;
                }
                Ok(Some(LauncherMessage::Output(bytes))) if is_served => {
                    self.send(match size.take() {
                        Some((rows, cols)) => ScreenUpdate::Whole { rows, cols, bytes },
                        None => ScreenUpdate::Output(bytes),
                    });
                }
                Ok(Some(LauncherMessage::Ended(exit))) => return ConnectionEnd::Exited(exit),
                Ok(
                    Some(
                        LauncherMessage::Output(_)
                        | LauncherMessage::Lines(_)
                        | LauncherMessage::Typed,
                    )
                    | None,
                )
                | Err(_) => {
                    return if is_served {
                        ConnectionEnd::Closed
                    } else {
                        ConnectionEnd::NotServed
                    };
                }
            }
        }
    }

    fn follow_placement(&self, watch: &mut OutputWatch) -> Result<(), BackendError> {
        let ScreenRelay { record, placement, backend, .. } = self;
        let mark = Mark::new(placement, record.mark());
        let mut show = |image| self.show(image);
        if record.socket().is_none() {
            return backend.follow(mark, watch, &mut show);
        }
        let read = || match live_screen(record, LINES) {
            Some(text) => Ok(text),
            None => match backend.verify(mark) {
                Verdict::Owned => backend.screen(mark, LINES),
                verdict => Err(BackendError::NotOurs { place: placement.to_string(), verdict }),
            },
        };
        poll(watch, read, &mut show)
    }

    /// Shows the end of a screen that outlives its placement.
    fn show_last_lines(&self) {
        let mark = Mark::new(&self.placement, self.record.mark());
        let last =
            kept_lines(&self.record, LINES).or_else(|| self.backend.screen(mark, LINES).ok());
        if let Some(text) = last.filter(|text| !text.is_empty()) {
            self.show(ScreenImage::of_text(&text));
        }
        self.send(ScreenUpdate::Ended(self.reason(format!("{} is gone", self.placement))));
    }

    /// Returns the exit of the member's program, or `otherwise` if it is not known.
    fn reason(&self, otherwise: String) -> String {
        let exit = self.record_now().and_then(|record| record.exit);
        exit.map_or(otherwise, |exit| exit.describe())
    }

    /// Returns the present record of the run that is followed.
    fn record_now(&self) -> Option<MemberRecord> {
        let record = self.team.member_record(&self.record.name).ok().flatten();
        record.filter(|record| record.is(&self.record.incarnation))
    }

    fn show(&self, ScreenImage { rows, cols, bytes }: ScreenImage) {
        self.send(ScreenUpdate::Whole { rows, cols, bytes });
    }

    fn send(&self, update: ScreenUpdate) {
        if !self.is_dropped.load(Ordering::Relaxed) {
            (self.on_update)(update);
        }
    }
}

#[cfg(test)]
mod tests;
