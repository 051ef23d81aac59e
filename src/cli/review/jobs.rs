//! The threads of a review: one reads the works, one acts in the order of the keys, and one for
//! each request reads changes.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use diff::Patch;
use tokio::sync::mpsc::UnboundedSender;

use super::colors::{ColorThread, Highlighter};
use super::source::{PatchRange, ReviewSource, ReviewedWork};
use model::id::MemberName;
use sys::clock::Deadline;
use sys::contain::contain;
use sys::exec::CancelToken;
use ui::review::{ChangesRequest, DiffRange, OpenedWork, ReviewAction, ReviewEffect, ReviewNews};

/// Interval of reads of the works: commits of members cause no change in the files of the team.
const SWEEP: Duration = Duration::from_secs(30);
/// After a read of the works, changes are collected for this many times the duration of the read.
const REST: u32 = 20;
/// Longest such time.
const LONGEST_REST: Duration = Duration::from_secs(10);
/// Time limit for actions that still run when the screen ends.
const LAST_ACTIONS: Duration = Duration::from_secs(10);

/// A request to the thread that reads the works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListRequest {
    /// The person waits for it.
    Now,
    Changed,
    End,
}

/// A request to the thread that acts. One thread does all of it, so that what is read contains
/// what was done before.
enum ActionRequest {
    Perform(ReviewAction),
    Comments { member: MemberName, snapshot: String },
    Message { number: u64, member: MemberName },
    Conflicts { number: u64, member: MemberName },
}

/// The threads. A drop waits until the actions are done, and cancels the rest, also checks.
pub(crate) struct ReviewJobs {
    source: Arc<dyn ReviewSource>,
    news: UnboundedSender<ReviewNews>,
    list: Sender<ListRequest>,
    /// `None` only while it is dropped.
    actions: Option<Sender<ActionRequest>>,
    /// Disconnected when the threads that act have ended.
    acting: Receiver<()>,
    /// Given to each thread that acts. `None` only while it is dropped.
    is_acting: Option<Sender<()>>,
    /// Cancels the changes that are being read.
    opening: CancelToken,
    /// Ends the checks that run.
    checking: CancelToken,
    colors: ColorThread,
}

impl ReviewJobs {
    /// Starts the threads.
    pub(crate) fn start(
        source: Arc<dyn ReviewSource>,
        news: UnboundedSender<ReviewNews>,
    ) -> io::Result<ReviewJobs> {
        ReviewJobs::start_with(source, news, Highlighter::own())
    }

    /// Starts the threads, with a program for the colours of code.
    pub(super) fn start_with(
        source: Arc<dyn ReviewSource>,
        news: UnboundedSender<ReviewNews>,
        highlighter: Highlighter,
    ) -> io::Result<ReviewJobs> {
        let (list, list_requests) = channel();
        let (actions, action_requests) = channel();
        let (is_acting, acting) = channel();
        let (reader, target, changes) = (Arc::clone(&source), news.clone(), list.clone());
        thread::Builder::new().name("read-works".to_owned()).spawn(move || {
            let on_change = Box::new(move || {
                let _ = changes.send(ListRequest::Changed);
            });
            // Dropped at the end of the thread, which ends the watch. Without one, sweeps do.
            let _watch = reader.watch(on_change);
            read_works(&*reader, &target, &list_requests);
        })?;
        let (actor, target) = (Arc::clone(&source), news.clone());
        let acts = is_acting.clone();
        thread::Builder::new().name("review".to_owned()).spawn(move || {
            let _acts = acts;
            for request in action_requests {
                let _ = target.send(act(&*actor, request));
            }
        })?;
        let (opening, checking) = (CancelToken::default(), CancelToken::default());
        let (actions, is_acting) = (Some(actions), Some(is_acting));
        let colors = ColorThread::start(Arc::clone(&source), news.clone(), highlighter)?;
        Ok(ReviewJobs { source, news, list, actions, acting, is_acting, opening, checking, colors })
    }

    /// Begins to carry out an effect. The driver itself handles those on the terminal.
    pub(crate) fn take(&mut self, effect: ReviewEffect) {
        match effect {
            ReviewEffect::ReadList => {
                let _ = self.list.send(ListRequest::Now);
            }
            ReviewEffect::Open(request) => self.open(request),
            ReviewEffect::Cancel => self.opening.cancel(),
            ReviewEffect::ReadComments { member, snapshot } => {
                self.act(ActionRequest::Comments { member, snapshot });
            }
            ReviewEffect::ReadMessage { number, member } => {
                self.act(ActionRequest::Message { number, member });
            }
            ReviewEffect::ReadConflicts { number, member } => {
                self.act(ActionRequest::Conflicts { number, member });
            }
            ReviewEffect::Perform(action @ ReviewAction::Check { .. }) => self.check(action),
            ReviewEffect::ReadCode { member, code } => self.colors.ask(member, code),
            ReviewEffect::Perform(action) => self.act(ActionRequest::Perform(action)),
            ReviewEffect::Quit | ReviewEffect::Suspend | ReviewEffect::Redraw => {}
        }
    }

    fn act(&self, request: ActionRequest) {
        if let Some(actions) = &self.actions {
            let _ = actions.send(request);
        }
    }

    /// Runs checks on a thread of their own, since they can take long.
    fn check(&self, action: ReviewAction) {
        let (source, cancel) = (Arc::clone(&self.source), self.checking.clone());
        let (news, failed) = (self.news.clone(), action.clone());
        let acts = self.is_acting.clone();
        let started = thread::Builder::new().name("checks".to_owned()).spawn(move || {
            let _acts = acts;
            let words = contained(|| source.perform(&action, &cancel));
            let _ = news.send(ReviewNews::Done { action, words });
        });
        if let Err(e) = started {
            let words = Err(format!("cannot start a thread: {e}"));
            let _ = self.news.send(ReviewNews::Done { action: failed, words });
        }
    }

    /// Reads changes instead of those that are being read.
    fn open(&mut self, request: ChangesRequest) {
        self.opening.cancel();
        self.opening = CancelToken::default();
        let (source, cancel) = (Arc::clone(&self.source), self.opening.clone());
        let (news, number) = (self.news.clone(), request.number);
        let started = thread::Builder::new().name("changes".to_owned()).spawn(move || {
            let work = contained(|| open(&*source, &request, &cancel));
            if !cancel.is_cancelled() {
                let work = work.map(Box::new);
                let _ = news.send(ReviewNews::Opened { number: request.number, work });
            }
        });
        if let Err(e) = started {
            let work = Err(format!("cannot start a thread: {e}"));
            let _ = self.news.send(ReviewNews::Opened { number, work });
        }
    }
}

impl Drop for ReviewJobs {
    fn drop(&mut self) {
        self.opening.cancel();
        self.checking.cancel();
        let _ = self.list.send(ListRequest::End);
        (self.actions, self.is_acting) = (None, None);
        // Disconnected once all actions are done.
        let _ = self.acting.recv_timeout(LAST_ACTIONS);
    }
}

/// Runs a read or an action. A panic in it becomes an error, and the screen goes on.
fn contained<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    contain(work).unwrap_or_else(|| Err("internal error; please report it".to_owned()))
}

fn act(source: &dyn ReviewSource, request: ActionRequest) -> ReviewNews {
    match request {
        ActionRequest::Perform(action) => {
            let words = contained(|| source.perform(&action, &CancelToken::default()));
            ReviewNews::Done { action, words }
        }
        ActionRequest::Comments { member, snapshot } => {
            let comments = contained(|| source.comments(&member, &snapshot));
            ReviewNews::Comments { member, snapshot, comments }
        }
        ActionRequest::Message { number, member } => {
            ReviewNews::Message { number, text: contained(|| source.message(&member)) }
        }
        ActionRequest::Conflicts { number, member } => {
            ReviewNews::Conflicts { number, text: contained(|| source.conflicts(&member)) }
        }
    }
}

/// Reads the works at once when the person waits, soon after changes, and now and then.
fn read_works(
    source: &dyn ReviewSource,
    news: &UnboundedSender<ReviewNews>,
    requests: &Receiver<ListRequest>,
) {
    let Ok(mut next) = requests.recv() else { return };
    while next != ListRequest::End {
        let took = Deadline::after(SWEEP);
        let list = contained(|| source.works());
        let rest = Deadline::after((took.elapsed() * REST).min(LONGEST_REST));
        if news.send(ReviewNews::List(list)).is_err() {
            return;
        }
        next = next_read(requests, &rest);
    }
}

/// Waits for the reason of the next read. Changes wait until `rest` has expired.
fn next_read(requests: &Receiver<ListRequest>, rest: &Deadline) -> ListRequest {
    let sweep = Deadline::after(SWEEP);
    let mut has_changed = false;
    loop {
        let wait = if has_changed { rest.remaining() } else { sweep.remaining() };
        match requests.recv_timeout(wait) {
            Ok(ListRequest::Changed) => has_changed = true,
            Ok(request) => return request,
            Err(RecvTimeoutError::Timeout) => return ListRequest::Changed,
            Err(RecvTimeoutError::Disconnected) => return ListRequest::End,
        }
    }
}

/// Reads the changes of a member.
fn open(
    source: &dyn ReviewSource,
    request: &ChangesRequest,
    cancel: &CancelToken,
) -> Result<OpenedWork, String> {
    let member = &request.member;
    let ReviewedWork { object, nested } = source.reviewed(member, cancel)?;
    let look = source.look(member)?;
    // Marks of viewed files can be on record without a look.
    let seen = look.as_ref().map(|look| look.commit.clone()).filter(|seen| !seen.is_empty());
    let since = match request.range {
        DiffRange::All => object.base.clone(),
        DiffRange::Uncommitted => object.head.clone(),
        DiffRange::SinceLook => match request.look.clone().or_else(|| seen.clone()) {
            Some(commit) => commit,
            None => return Err(format!("you have not looked at the work of {member} before")),
        },
    };
    let range = PatchRange {
        from: &since,
        to: &object.snapshot,
        ignores_whitespace: request.ignores_whitespace,
    };
    let bytes = source.patch(member, &range, cancel)?;
    if cancel.is_cancelled() {
        return Err("cancelled".to_owned());
    }
    let patch = Patch::parse(&bytes).map_err(|e| format!("git printed an unknown patch: {e}"))?;
    let comments = source.comments(member, &object.snapshot)?;
    let viewed = look.map(|look| look.viewed).unwrap_or_default();
    Ok(OpenedWork { object, nested, since, patch, comments, look: seen, viewed })
}
