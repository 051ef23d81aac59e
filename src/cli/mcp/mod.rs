//! `mcp`: the team as tools for an agent, over the Model Context Protocol on stdin and stdout.

mod absent;
mod aliases;
mod arguments;
mod background_lead;
mod backlog;
mod call;
mod deliveries;
mod files;
mod inputs;
mod install;
mod mail;
mod offered;
#[cfg(test)]
pub(super) mod pages;
mod resources;
mod schema;
mod server;
mod table;
mod tasks;
mod team;
#[cfg(test)]
mod tests;
mod tools;
mod wording;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Command, Subcommand};
use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;

use backlog::BoundedTransport;
use call::{MAX_CALLS, ServerState};
use deliveries::ConfirmingTransport;
use server::TeamServer;

use crate::args::Global;
use crate::fail::{Exit, Failure, VerbResult};
use crate::interrupt;
use crate::out::Out;
use ops::Kind;
use sys::exec::become_program_in;
use sys::signal::Signals;

pub(super) use install::InstallArgs;

/// Offer the team to an agent as tools, over MCP on stdin and stdout.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  phalanx mcp install --for claude\n  phalanx mcp --read-only -t demo\n\n\
    An agent program starts this; `phalanx mcp install` writes its configuration. In the program of a member it \
    acts for that member, elsewhere for the lead."
)]
pub(super) struct McpArgs {
    /// Offer only tools that change nothing.
    #[arg(long)]
    pub(super) read_only: bool,
    /// File of phalanx with the environment to run in.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) env_file: Option<PathBuf>,
    #[command(subcommand)]
    pub(super) verb: Option<McpVerb>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum McpVerb {
    Install(InstallArgs),
}

/// Serves the tools, or installs the server. `definition` returns the definition of the command
/// line, whose words hints contain.
pub(super) fn mcp(
    global: &Global,
    out: &Out,
    args: &McpArgs,
    definition: fn() -> Command,
) -> VerbResult {
    match (&args.verb, &args.env_file) {
        (Some(McpVerb::Install(install)), _) => install::install(out, install),
        (None, Some(file)) => serve_in(file),
        (None, None) => serve(ServerState::new(global, args.read_only, definition)),
    }
}

/// Begins again in the environment of a member's program: agents over ACP start the server with
/// another one.
fn serve_in(file: &Path) -> VerbResult {
    let env = store::read_environment(file)?;
    let gone = || {
        let problem = format!("{} does not exist: the run has ended", file.display());
        Failure::new(Kind::NotFound, problem, None)
    };
    let exe = sys::env::current_exe()?;
    Err(become_program_in(exe.as_os_str(), &["mcp".into()], &env.ok_or_else(gone)?).into())
}

/// Serves until the client closes stdin, or a signal arrives. Calls that change something are then
/// carried out to their end; waits are cancelled.
fn serve(state: ServerState) -> VerbResult {
    let state = Arc::new(state);
    let runtime = interrupt::runtime()?;
    let ended = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let (reader, writer) = stdio_pipes();
        let transport = ConfirmingTransport {
            inner: BoundedTransport::new(AsyncRwTransport::new_server(reader, writer)),
            deliveries: Arc::clone(&state.deliveries),
            ending: state.ending.clone(),
        };
        let server = TeamServer::new(Arc::clone(&state));
        let served = async {
            match server.serve(transport).await {
                Ok(running) => drop(running.waiting().await),
                // The client has closed stdin before its first request.
                Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => {}
                Err(e) => return Err(Failure::new(Kind::Failed, e.to_string(), None)),
            }
            Ok(Exit::DONE)
        };
        let ended = tokio::select! {
            ended = served => ended,
            _signal = signals.recv() => Ok(Exit::of(Kind::Interrupted)),
        };
        state.ending.cancel();
        let _ = state.calls.acquire_many(MAX_CALLS).await;
        state.leads.leave();
        ended
    });
    // A read of stdin that is not a pipe cannot be cancelled.
    runtime.shutdown_background();
    ended
}
