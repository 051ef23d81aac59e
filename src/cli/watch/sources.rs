//! The sources of the dashboard: threads that read the team, follow a screen, send keys and run
//! commands, and report to the loop.

use std::collections::BTreeSet;
use std::io;
use std::iter;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::setup::Setup;
use model::id::{MemberName, TaskId};
use model::members::input::{Input, Key, Text};
use model::topic::Topic;
use ops::views::input::TypingSession;
use ops::views::screen::{ScreenFollower, ScreenUpdate};
use ops::views::snapshot::{SnapshotReader, TeamChoice, TeamSnapshot};
use ops::{self, Context, TeamStore};
use sys::clock::Deadline;
use ui::dashboard::{CompletionRequest, FinishedCommand, FormChoices, PaletteCandidate};

/// Interval of full re-reads: a change notification can be lost.
const SWEEP: Duration = Duration::from_secs(60);
/// The same if changes cannot be watched.
const BLIND_SWEEP: Duration = Duration::from_secs(5);
/// Time after a change in which further ones are collected.
const GATHER: Duration = Duration::from_millis(15);
/// After a read, changes are collected for this many times the duration of the read, so that
/// reading takes less than one percent of a core.
const REST: u32 = 150;
/// Longest such time.
const LONGEST_REST: Duration = Duration::from_secs(3);
/// Pause in typing after which it counts as finished.
const TYPING_PAUSE: Duration = Duration::from_secs(5);

/// Number of updates that wait for the loop. A source blocks if it is faster than the loop.
pub(super) const QUEUE: usize = 64;

/// A report to the loop.
pub(super) enum SourceReport {
    Team(Box<TeamSnapshot>),
    TeamProblem(String),
    /// The team was deleted.
    TeamGone,
    /// An update for the request of this number to follow a screen.
    Screen {
        request: u64,
        member: MemberName,
        update: ScreenUpdate,
    },
    /// The team that was chosen, or why it cannot be shown.
    Opened(Box<Result<(Setup, TeamStore), String>>),
    /// Keys have reached the member.
    Typed,
    History(MemberName, Result<String, String>),
    Finished(FinishedCommand),
    Teams(Result<Vec<TeamChoice>, String>),
    Candidates(CompletionRequest, Vec<PaletteCandidate>),
    FormChoices(FormChoices),
    /// Subject and description of a task.
    TaskTexts(TaskId, Result<(String, String), String>),
    Problem(String),
}

/// Sends reports about one team. Reports about a team that is no longer on display are dropped by
/// their number.
#[derive(Clone)]
pub(super) struct Reports {
    sender: mpsc::Sender<(u64, SourceReport)>,
    team: u64,
}

impl Reports {
    pub(super) fn new(sender: mpsc::Sender<(u64, SourceReport)>, team: u64) -> Reports {
        Reports { sender, team }
    }

    /// Waits while the queue is full. Has no effect once the loop has ended.
    pub(super) fn send(&self, report: SourceReport) {
        let _ = self.sender.blocking_send((self.team, report));
    }

    /// Drops the report if the queue is full.
    fn try_send(&self, report: SourceReport) {
        let _ = self.sender.try_send((self.team, report));
    }
}

/// A request to the thread that follows screens.
enum ScreenRequest {
    Follow(u64, Option<MemberName>),
    Refresh,
}

/// The thread that follows the screen of the selected member; ends on drop. It proves the screen
/// first, which takes as long as the backend or the host needs to answer.
pub(super) struct ScreenFeed {
    requests: Sender<ScreenRequest>,
    latest: u64,
}

impl ScreenFeed {
    pub(super) fn start(
        ctx: &Context,
        team: &TeamStore,
        reports: Reports,
    ) -> io::Result<ScreenFeed> {
        let (requests, incoming) = channel();
        let (ctx, team) = (ctx.clone(), team.clone());
        thread::Builder::new()
            .name("screens".to_owned())
            .spawn(move || follow_until_ended(&ctx, &team, &reports, &incoming))?;
        Ok(ScreenFeed { requests, latest: 0 })
    }

    /// Follows this screen instead of the one before.
    pub(super) fn follow(&mut self, member: Option<MemberName>) {
        self.latest += 1;
        let _ = self.requests.send(ScreenRequest::Follow(self.latest, member));
    }

    /// Reads the screen soon, because the person has typed something.
    pub(super) fn refresh(&self) {
        let _ = self.requests.send(ScreenRequest::Refresh);
    }

    /// Returns true if no other screen was requested later.
    pub(super) fn is_current(&self, request: u64) -> bool {
        request == self.latest
    }
}

fn follow_until_ended(
    ctx: &Context,
    team: &TeamStore,
    reports: &Reports,
    incoming: &Receiver<ScreenRequest>,
) {
    let mut follower = None;
    while let Ok(first) = incoming.recv() {
        // While one screen was proven, several others may have been selected.
        let mut wanted = None;
        for request in iter::once(first).chain(incoming.try_iter()) {
            match request {
                ScreenRequest::Follow(number, member) => wanted = Some((number, member)),
                ScreenRequest::Refresh => follower.iter().for_each(ScreenFollower::refresh),
            }
        }
        let Some((request, member)) = wanted else { continue };
        follower = None;
        let Some(member) = member else { continue };
        let (target, name) = (reports.clone(), member.clone());
        let report = move |update| {
            target.send(SourceReport::Screen { request, member: name.clone(), update });
        };
        match ops::views::screen::follow(ctx, team, &member, report) {
            Ok(started) => follower = Some(started),
            Err(e) => {
                let update = ScreenUpdate::Ended(e.to_string());
                reports.send(SourceReport::Screen { request, member, update });
            }
        }
    }
}

/// A request to the thread that reads the team.
enum ReaderRequest {
    Changed(Topic),
    /// Read at once, because the person has just changed something.
    Now,
    End,
}

/// The thread that reads the team, at first and whenever it changes; ends on drop.
pub(super) struct TeamFeed(Sender<ReaderRequest>);

impl TeamFeed {
    pub(super) fn start(ctx: &Context, team: &TeamStore, reports: Reports) -> io::Result<TeamFeed> {
        let (requests, incoming) = channel();
        let (ctx, team, changes) = (ctx.clone(), team.clone(), requests.clone());
        thread::Builder::new().name("read-team".to_owned()).spawn(move || {
            let on_change = move |topic| drop(changes.send(ReaderRequest::Changed(topic)));
            // Dropped at the end of the thread, which ends the watch.
            let watch = team.watch(on_change);
            let sweep = if watch.is_ok() { SWEEP } else { BLIND_SWEEP };
            read_until_ended(&ctx, &team, &reports, &incoming, sweep);
        })?;
        Ok(TeamFeed(requests))
    }

    /// Reads the team at once.
    pub(super) fn refresh(&self) {
        let _ = self.0.send(ReaderRequest::Now);
    }
}

impl Drop for TeamFeed {
    fn drop(&mut self) {
        let _ = self.0.send(ReaderRequest::End);
    }
}

fn read_until_ended(
    ctx: &Context,
    team: &TeamStore,
    reports: &Reports,
    incoming: &Receiver<ReaderRequest>,
    sweep: Duration,
) {
    let mut reader = SnapshotReader::new(ctx, team);
    let mut topics = BTreeSet::new();
    loop {
        let took = Deadline::after(sweep);
        let mut limit = sweep;
        match reader.read(&topics) {
            Ok(snapshot) => {
                limit = snapshot.lapses_in().map_or(sweep, |lapse| (lapse + GATHER).min(sweep));
                reports.send(SourceReport::Team(Box::new(snapshot)));
                if reader.must_read_on() {
                    continue;
                }
            }
            Err(_) if !team.exists() => {
                reports.send(SourceReport::TeamGone);
                return;
            }
            Err(e) => reports.send(SourceReport::TeamProblem(e.to_string())),
        }
        let rest = (took.elapsed() * REST).min(LONGEST_REST);
        topics.clear();
        if gather(incoming, &mut topics, rest) == Gathered::End {
            return;
        }
        if topics.is_empty() {
            match gather_first(incoming, &mut topics, limit) {
                Gathered::End => return,
                Gathered::Nothing if limit < sweep => drop(topics.insert(Topic::Members)),
                Gathered::Nothing => drop(topics.insert(Topic::Everything)),
                Gathered::Something => {
                    if gather(incoming, &mut topics, GATHER) == Gathered::End {
                        return;
                    }
                }
            }
        }
    }
}

/// The result of waiting for changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gathered {
    Nothing,
    Something,
    End,
}

/// Waits for a change for so long.
fn gather_first(
    incoming: &Receiver<ReaderRequest>,
    topics: &mut BTreeSet<Topic>,
    limit: Duration,
) -> Gathered {
    match incoming.recv_timeout(limit) {
        Ok(ReaderRequest::Changed(topic)) => {
            topics.insert(topic);
            Gathered::Something
        }
        Ok(ReaderRequest::Now) => {
            topics.insert(Topic::Everything);
            Gathered::Something
        }
        Ok(ReaderRequest::End) | Err(RecvTimeoutError::Disconnected) => Gathered::End,
        Err(RecvTimeoutError::Timeout) => Gathered::Nothing,
    }
}

/// Collects changes for so long, or until the person has changed something.
fn gather(
    incoming: &Receiver<ReaderRequest>,
    topics: &mut BTreeSet<Topic>,
    time: Duration,
) -> Gathered {
    let end = Deadline::after(time);
    while !end.expired() && !topics.contains(&Topic::Everything) {
        if gather_first(incoming, topics, end.remaining()) == Gathered::End {
            return Gathered::End;
        }
    }
    if topics.is_empty() { Gathered::Nothing } else { Gathered::Something }
}

/// Keys or a text for a member.
pub(super) enum TypedInput {
    Keys(MemberName, Vec<Key>),
    Text(MemberName, Text),
}

/// The thread that types into members, in the order of the keys. A drop waits until all keys are
/// typed and journaled, so the thread never waits for the loop.
pub(super) struct Typist {
    sender: Option<Sender<TypedInput>>,
    thread: Option<JoinHandle<()>>,
}

impl Typist {
    pub(super) fn start(ctx: &Context, team: &TeamStore, reports: Reports) -> io::Result<Typist> {
        let (sender, incoming) = channel();
        let (ctx, team) = (ctx.clone(), team.clone());
        let thread = thread::Builder::new()
            .name("type".to_owned())
            .spawn(move || type_until_closed(&ctx, &team, &reports, &incoming))?;
        Ok(Typist { sender: Some(sender), thread: Some(thread) })
    }

    pub(super) fn send(&self, input: TypedInput) {
        let _ = self.sender.as_ref().map(|sender| sender.send(input));
    }
}

impl Drop for Typist {
    fn drop(&mut self) {
        self.sender = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn type_until_closed(
    ctx: &Context,
    team: &TeamStore,
    reports: &Reports,
    incoming: &Receiver<TypedInput>,
) {
    let mut session: Option<TypingSession> = None;
    let mut next = incoming.recv().ok();
    while let Some(input) = next.take() {
        let (member, input) = match input {
            TypedInput::Text(member, text) => (member, Input::Text(text)),
            TypedInput::Keys(member, mut keys) => {
                // Keys that were typed meanwhile are sent together.
                loop {
                    match incoming.try_recv() {
                        Ok(TypedInput::Keys(same, more)) if same == member => keys.extend(more),
                        Ok(other) => {
                            next = Some(other);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                (member, Input::Keys(keys))
            }
        };
        if session.as_ref().is_none_or(|session| *session.member() != member) {
            session = None;
            match TypingSession::open(ctx, team, &member) {
                Ok(opened) => session = Some(opened),
                Err(e) => reports.try_send(SourceReport::Problem(e.to_string())),
            }
        }
        match session.as_mut().map(|session| session.write(&input)) {
            Some(Ok(())) => reports.try_send(SourceReport::Typed),
            Some(Err(e)) => {
                reports.try_send(SourceReport::Problem(e.to_string()));
                session = None;
            }
            None => {}
        }
        if next.is_none() {
            next = match incoming.recv_timeout(TYPING_PAUSE) {
                Ok(input) => Some(input),
                Err(RecvTimeoutError::Timeout) => {
                    // Journals what was typed, and proves the terminal again next time.
                    session = None;
                    incoming.recv().ok()
                }
                Err(RecvTimeoutError::Disconnected) => None,
            };
        }
    }
}

/// Runs work that reports its result on a thread of its own.
pub(super) fn in_background(
    reports: &Reports,
    work: impl FnOnce() -> SourceReport + Send + 'static,
) {
    let target = reports.clone();
    let started = thread::Builder::new().name("work".to_owned()).spawn(move || target.send(work()));
    if let Err(e) = started {
        // The queue has room for it only if the loop is not blocked, which it is not: it is here.
        reports.try_send(SourceReport::Problem(format!("cannot start a thread: {e}")));
    }
}
