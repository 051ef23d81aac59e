//! One call of a tool: runs verbs with captured output, waits, and reports progress.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::Command;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::background_lead::StartedLeads;
use super::deliveries::{Deliveries, ShownMessages};
use crate::args::Global;
use crate::fail::{Exit, Failure, VerbResult};
use crate::out::Out;
use crate::setup::Setup;
use model::wire::Object;
use ops::Kind;
use sys::clock::Deadline;

/// Number of calls that run at the same time; others wait.
pub(super) const MAX_CALLS: u32 = 128;
/// Number of these calls that may wait for something to happen, so that the others do their work.
const MAX_WAITS: u32 = MAX_CALLS / 2;
/// Interval at which a wait looks whether it was cancelled, and reports progress.
const SLICE: Duration = Duration::from_secs(1);

/// The state of the server.
pub(super) struct ServerState {
    global: Global,
    pub(super) read_only: bool,
    /// Returns the definition of the command line.
    pub(super) definition: fn() -> Command,
    /// The team that this server has created.
    created: Mutex<Option<String>>,
    pub(super) deliveries: Arc<Deliveries>,
    pub(super) leads: StartedLeads,
    /// A permit for each call that runs.
    pub(super) calls: Arc<Semaphore>,
    /// A permit for each call that waits.
    waits: Semaphore,
    /// Held by the call that changes the board; others wait in their order. The lock of the board
    /// has a deadline, which many calls at once would exceed.
    pub(super) board: tokio::sync::Mutex<()>,
    /// Ends waits when the client is gone.
    pub(super) ending: CancellationToken,
}

impl ServerState {
    pub(super) fn new(
        global: &Global,
        read_only: bool,
        definition: fn() -> Command,
    ) -> ServerState {
        ServerState {
            global: Global { json: true, ..global.clone() },
            read_only,
            definition,
            created: Mutex::new(None),
            deliveries: Arc::new(Deliveries::default()),
            leads: StartedLeads::default(),
            calls: Arc::new(Semaphore::new(MAX_CALLS as usize)),
            waits: Semaphore::new(MAX_WAITS as usize),
            board: tokio::sync::Mutex::new(()),
            ending: CancellationToken::new(),
        }
    }

    /// The team that this server has created.
    pub(super) fn created(&self) -> MutexGuard<'_, Option<String>> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the environment and resolves the team and the speaker, as each command does.
    pub(super) fn setup(&self, out: Out) -> Result<Setup, Failure> {
        self.setup_in(None, out)
    }

    /// As [`ServerState::setup`], for a call that names its team.
    ///
    /// # Errors
    /// A usage [`Failure`] if the server acts for another team.
    fn setup_in(&self, named: Option<&str>, out: Out) -> Result<Setup, Failure> {
        let own = self.global.team.clone().or_else(|| self.created().clone());
        let team = own.clone().or_else(|| named.map(str::to_owned));
        let setup = Setup::new(&Global { team, ..self.global.clone() }, out)?;
        if let (Some(own), Some(named)) = (own, named)
            && setup.named_team(Some(named)).is_err()
        {
            let problem = format!("this server acts for the team `{own}`, not for `{named}`");
            return Err(Failure::usage(problem, "omit `team_name`"));
        }
        Ok(setup)
    }
}

/// The result of a tool.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) document: Object,
    /// Warnings and the like.
    pub(super) notes: Vec<String>,
    /// True if the tool failed; the document then has the reason.
    pub(super) is_error: bool,
    /// Messages in the document, which count as read once the client has it.
    pub(super) messages: Option<ShownMessages>,
}

impl Reply {
    /// Returns a reply with these fields.
    pub(super) fn of(document: Value) -> Reply {
        match document {
            Value::Object(document) => Reply { document, ..Reply::default() },
            other => Reply::of(json!({ "result": other })),
        }
    }
}

/// The output of a verb.
#[derive(Debug)]
pub(super) struct PrintedOutput {
    pub(super) document: Value,
    pub(super) notes: Vec<String>,
    pub(super) exit: Exit,
}

impl PrintedOutput {
    /// Returns the document as it is.
    pub(super) fn into_reply(mut self) -> Reply {
        let document = self.document.take();
        self.reply_with(document)
    }

    /// Returns a list as the field `name`.
    pub(super) fn into_list(mut self, name: &str) -> Reply {
        let document = json!({ name: self.document.take() });
        self.reply_with(document)
    }

    /// Returns another document with the notes and the success of this one.
    pub(super) fn reply_with(self, document: Value) -> Reply {
        let is_error = self.exit != Exit::DONE;
        Reply { notes: self.notes, is_error, ..Reply::of(document) }
    }
}

/// A call of a tool.
pub(super) struct ToolCall {
    pub(super) server: Arc<ServerState>,
    /// The team that the caller has named.
    pub(super) team: Option<String>,
    pub(super) cancel: CancellationToken,
    pub(super) progress: Option<ProgressReport>,
}

/// The way to report progress to the client.
pub(super) struct ProgressReport {
    pub(super) runtime: Handle,
    pub(super) peer: Peer<RoleServer>,
    pub(super) token: ProgressToken,
}

impl ToolCall {
    /// Runs a verb and returns its JSON output.
    pub(super) fn run(
        &self,
        verb: impl FnOnce(&Setup) -> VerbResult,
    ) -> Result<PrintedOutput, Failure> {
        let mut printed = self.run_lines(verb)?;
        printed.document = printed.document.get_mut(0).map(Value::take).unwrap_or_default();
        Ok(printed)
    }

    /// Runs a verb that prints one document per line, and returns these as a list.
    pub(super) fn run_lines(
        &self,
        verb: impl FnOnce(&Setup) -> VerbResult,
    ) -> Result<PrintedOutput, Failure> {
        let (out, captured) = Out::captured();
        let setup = self.setup(out)?;
        let exit = verb(&setup).map_err(|failure| setup.explain_deleted_team(failure))?;
        let captured =
            std::mem::take(&mut *captured.lock().unwrap_or_else(PoisonError::into_inner));
        let documents = serde_json::Deserializer::from_slice(&captured.stdout).into_iter();
        let documents = documents.collect::<Result<Vec<Value>, _>>();
        let documents = documents.map_err(|e| Failure::new(Kind::Internal, e.to_string(), None))?;
        let notes = captured.messages;
        Ok(PrintedOutput { document: Value::Array(documents), notes, exit })
    }

    pub(super) fn setup(&self, out: Out) -> Result<Setup, Failure> {
        self.server.setup_in(self.team.as_deref(), out)
    }

    /// Runs an operation that has no verb of its own.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&Setup) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let setup = self.setup(Out::captured().0)?;
        work(&setup).map_err(|failure| setup.explain_deleted_team(failure))
    }

    /// Registers a call that is to wait, until the permit is dropped.
    ///
    /// # Errors
    /// A refusal if too many calls wait.
    pub(super) fn begin_wait(&self) -> Result<SemaphorePermit<'_>, Failure> {
        self.server.waits.try_acquire().map_err(|_| {
            let hint = "wait in one call for several members, or for several tasks".to_owned();
            let problem = format!("{MAX_WAITS} other calls wait already");
            Failure::new(Kind::Refused, problem, Some(hint))
        })
    }

    /// Calls `step` with time limits until it returns something. `None` after `limit`.
    ///
    /// # Errors
    /// Those of `step`; [`Kind::Interrupted`] if the call is cancelled.
    pub(super) fn wait<T>(
        &self,
        limit: Duration,
        what: &str,
        mut step: impl FnMut(Duration) -> Result<Option<T>, Failure>,
    ) -> Result<Option<T>, Failure> {
        let deadline = Deadline::after(limit);
        for seconds in 0_u32.. {
            if let Some(found) = step(deadline.remaining().min(SLICE))? {
                return Ok(Some(found));
            }
            if deadline.expired() {
                break;
            }
            if self.cancel.is_cancelled() || self.server.ending.is_cancelled() {
                return Err(Failure::interrupted("the call was cancelled", None));
            }
            self.report_progress(f64::from(seconds + 1), limit, what);
        }
        Ok(None)
    }

    fn report_progress(&self, seconds: f64, limit: Duration, what: &str) {
        let Some(ProgressReport { runtime, peer, token }) = &self.progress else { return };
        let mut progress = ProgressNotificationParam::new(token.clone(), seconds);
        progress.total = Some(limit.as_secs_f64());
        progress.message = Some(what.to_owned());
        let peer = peer.clone();
        // Not waited for: a client that reads nothing must not delay the wait.
        runtime.spawn(async move { drop(peer.notify_progress(progress).await) });
    }

    /// Runs work that outlives the call. The server waits for it before it exits.
    pub(super) fn in_background(&self, work: impl FnOnce(&ToolCall) + Send + 'static) {
        let server = Arc::clone(&self.server);
        let permit = Arc::clone(&server.calls).try_acquire_owned();
        let team = self.team.clone();
        let call = ToolCall { server, team, cancel: CancellationToken::new(), progress: None };
        // Without a thread the work is left to the next `Shutdown`.
        let _ = std::thread::Builder::new().name("background".to_owned()).spawn(move || {
            work(&call);
            drop(permit);
        });
    }

    /// The ids of messages that other calls are returning.
    pub(super) fn messages_on_their_way(&self) -> BTreeSet<String> {
        self.server.deliveries.ids()
    }
}
