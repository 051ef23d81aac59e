//! `acp`: a team as an agent for an editor, over the Agent Client Protocol on stdin and stdout.

mod face;
mod members;
mod questions;

use std::io::{self, Read, Write};
use std::path::PathBuf;

use acp::{AgentFailure, AgentSide, ClientCall, FailureKind};
use clap::Args;

use crate::fail::{Exit, Failure, VerbResult};
use crate::members::agent_lead::{ServedAgent, lead_beside};
use crate::setup::Setup;
use crate::team::compose::team_name;
use crate::team::lead_session::OnExit;
use crate::team::make_team;
use ::profile::Runs;
use face::EditorFace;
use model::id::TeamName;
use ops::authority::Action;
use ops::{self, TeamStore};
use store::StoreError;

/// Be an agent for an editor: its prompts go to the lead of a team.
///
/// The editor starts this and opens a session in a directory. An agent over ACP then leads a team
/// there; its answers, the work of all members and their requests come back to the editor.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx acp\n  phalanx acp --profile codex-acp -t work\n  \
    phalanx acp --profile acp -- my-agent --acp\n\n\
    The team is the one of -t, else the one that is named after the directory; it is created if it does not exist. \
    --on-exit applies when the editor closes stdin.")]
pub(super) struct AcpArgs {
    /// Profile of the agent that leads [default: the first one over ACP on PATH that is logged in].
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Effect on the members when the editor ends this.
    #[arg(long, value_enum, default_value = "stop", value_name = "POLICY")]
    on_exit: OnExit,
    /// Command line of the agent [default: that of the profile].
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub(super) fn acp(setup: &Setup, args: &AcpArgs) -> VerbResult {
    let mut side = AgentSide::new(env!("CARGO_PKG_VERSION"));
    let mut calls = Vec::new();
    loop {
        let Some((cwd, early)) = wait_for_session(&mut side, calls)? else {
            return Ok(Exit::DONE);
        };
        let mut waiting = Some((side, early));
        let ended = lead(&setup.in_directory(PathBuf::from(cwd)), args, &mut waiting);
        // Without it, the session has begun.
        let Some((unled, early)) = waiting else { return ended };
        (side, calls) = (unled, early);
        match ended {
            // The editor shows the reason, and may try again.
            Err(Failure::Message(error)) => {
                let hint = error.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                let said = format!("{}{hint}", error.message);
                side.refuse(&AgentFailure { kind: FailureKind::Other, said });
            }
            ended => return ended,
        }
    }
}

/// Leads a team with an agent for the editor, until it closes its side. Takes the connection once
/// the agent runs.
fn lead(
    setup: &Setup,
    args: &AcpArgs,
    waiting: &mut Option<(AgentSide, Vec<ClientCall>)>,
) -> VerbResult {
    let ctx = &setup.ctx;
    let profile = profile(setup, args)?;
    let (team, is_new) = team(setup)?;
    let started = ops::starting::agent_lead::take(ctx, &team, Some(&profile), &args.command)
        .and_then(|(lease, agent)| {
            // Must be called on the main thread, before other threads exist.
            let program = teammate::start_acp_lead(ctx, &team, &agent)?;
            Ok((lease, agent, program))
        });
    if is_new && started.is_err() {
        // The failure of the start matters more than that of the removal, which leaves no more than
        // an empty team.
        let _ = ops::ending::delete::delete(ctx, &team, None);
    }
    let (lease, agent, program) = started?;
    let (side, early) = waiting.take().expect("it waits for an agent");
    let program = ServedAgent {
        end: Box::new(program.ender()),
        serve: Box::new(|| program.serve_in(|| EditorFace::new(ctx, &team, side, early))),
        // A person in the editor is asked instead.
        gets_questions: false,
    };
    // A report on stdout would be no message for the editor.
    let (code, _) = lead_beside(setup, &team, &agent, args.on_exit, lease, program)?;
    Ok(code)
}

/// Returns the profile of the agent: the given one, or the first one over ACP that is on PATH.
fn profile(setup: &Setup, args: &AcpArgs) -> Result<String, Failure> {
    let ctx = &setup.ctx;
    let is_acp = |name: &str| {
        ops::members::profiles::find(ctx, name).map(|profile| profile.runs == Runs::Acp)
    };
    if let Some(name) = &args.profile {
        if is_acp(name)? {
            return Ok(name.clone());
        }
        let problem = format!("the profile `{name}` does not run its program over ACP");
        return Err(Failure::usage(problem, "list those that do with `phalanx profile list`"));
    }
    let found = ops::starting::agents::on_path(ctx)?;
    let first = found.into_iter().find(|agent| is_acp(&agent.profile).unwrap_or(false));
    first.map(|agent| agent.profile).ok_or_else(|| {
        Failure::usage(
            "no agent over ACP is on PATH",
            "install one, or name its profile with `--profile`; `phalanx profile list` shows them",
        )
    })
}

/// Opens the team that the options name, else the one that is named after the directory. Creates it
/// if it does not exist, and then returns true with it.
fn team(setup: &Setup) -> Result<(TeamStore, bool), Failure> {
    let name = match setup.named_team(None)? {
        Some(name) => name,
        None => TeamName::new(&team_name(&setup.ctx.caller.cwd, None)).map_err(StoreError::from)?,
    };
    match setup.ctx.store.team(&name) {
        Err(StoreError::NoSuchTeam { .. }) => Ok((make_team(setup, name.as_str())?, true)),
        _ => Ok((setup.team_called(Some(name.as_str()), Action::Lead)?, false)),
    }
}

/// Answers the editor until it opens a session. Returns its directory and the calls that followed;
/// `None` if the editor has closed its side.
fn wait_for_session(
    side: &mut AgentSide,
    calls: Vec<ClientCall>,
) -> Result<Option<(String, Vec<ClientCall>)>, Failure> {
    let mut calls = calls;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        write(&side.take_output())?;
        let mut rest = calls.into_iter();
        let opened = rest.find_map(|call| match call {
            ClientCall::Open { cwd } => Some(cwd),
            ClientCall::Prompt(_) | ClientCall::Cancel | ClientCall::Answered { .. } => None,
        });
        if let Some(cwd) = opened {
            return Ok(Some((cwd, rest.collect())));
        }
        let read = match io::stdin().lock().read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => 0,
            Err(e) => return Err(e.into()),
        };
        calls = side.receive(&buffer[..read]);
    }
}

fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    Ok(stdout.write_all(bytes).and_then(|()| stdout.flush())?)
}
