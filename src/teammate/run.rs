//! Starts the program of a member or of an agent lead, wrapped or over ACP, as its profile says.

use crate::acp::{self, AcpDriver, SessionOptions};
use crate::member_io::{MemberRun, ProgramStart};
use crate::words::AgentRole;
use crate::wrap::{self, WrapperDriver};
use model::id::MemberName;
use model::members::mode::Mode;
use model::members::record::LaunchRequest;
use ops::starting::agent_lead::AgentLead;
use ops::{self, Context, OpsError, TeamStore};
use profile::Runs;

/// Starts the program of this run and serves it until it exits. Returns the exit code. Must be
/// called on the main thread before other threads exist.
///
/// # Errors
///
/// The record belongs to a later run, the profile is missing, or the program or its terminal cannot
/// be opened. Later failures do not end this process.
pub fn serve_member(ctx: &Context, team: &TeamStore, me: &MemberRun) -> Result<i32, OpsError> {
    let record = team.member_record(&me.name)?.filter(|record| record.is(&me.incarnation));
    let Some(record) = record else {
        let problem = format!("`{}` has another run now", me.name);
        return Err(OpsError::Usage { problem, hint: None });
    };
    let profile = ops::members::profiles::find(ctx, &record.request.profile)?;
    let start = ProgramStart {
        me: me.clone(),
        profile,
        argv: record.request.command_line(),
        env: ctx.caller.env.clone(),
        role: AgentRole::Teammate,
        backend: record.backend.wire(),
    };
    if start.profile.runs == Runs::Acp {
        let LaunchRequest { session_mode: mode, model, .. } = record.request;
        let session = SessionOptions { mode, model, load: record.session };
        return Ok(acp::open(ctx, team, start, session)?.serve());
    }
    Ok(wrap::open(ctx, team, start)?.serve())
}

/// A running agent lead: an agent that leads the team. The lead's own loop runs beside it.
pub enum RunningAgentLead<'a> {
    Wrapped(Box<WrapperDriver<'a>>),
    Acp(Box<AcpDriver<'a>>),
}

/// Starts the program inside our terminal. Must be called on the main thread before other threads
/// exist.
///
/// # Errors
///
/// There is no terminal, or the program cannot run.
pub fn start_agent_lead<'a>(
    ctx: &'a Context,
    team: &'a TeamStore,
    agent: &AgentLead,
) -> Result<RunningAgentLead<'a>, OpsError> {
    if agent.profile.runs == Runs::Acp {
        return Ok(RunningAgentLead::Acp(Box::new(start_acp_lead(ctx, team, agent)?)));
    }
    Ok(RunningAgentLead::Wrapped(Box::new(wrap::open(ctx, team, start_of(agent))?)))
}

fn start_of(agent: &AgentLead) -> ProgramStart {
    ProgramStart {
        me: MemberRun { name: MemberName::lead(), incarnation: agent.incarnation.clone() },
        profile: agent.profile.clone(),
        argv: agent.argv.clone(),
        env: agent.env.clone(),
        role: AgentRole::Lead,
        backend: "",
    }
}

/// Starts an agent over ACP. Must be called on the main thread before other threads exist.
///
/// # Errors
///
/// The program cannot run.
pub fn start_acp_lead<'a>(
    ctx: &'a Context,
    team: &'a TeamStore,
    agent: &AgentLead,
) -> Result<AcpDriver<'a>, OpsError> {
    // Without a mode, some agents decide about permissions by themselves.
    let words = agent.profile.mode_words(Mode::Default);
    let mode = words.and_then(|words| words.first().cloned());
    let session = SessionOptions { mode, ..SessionOptions::default() };
    acp::open(ctx, team, start_of(agent), session)
}

impl RunningAgentLead<'_> {
    /// Serves the program until it exits. Returns its exit code, or that of the signal that ended
    /// this process.
    pub fn serve(self) -> i32 {
        match self {
            RunningAgentLead::Wrapped(lead) => lead.serve(),
            RunningAgentLead::Acp(lead) => lead.serve(),
        }
    }

    /// Returns a function that ends the program from another thread.
    pub fn ender(&self) -> Box<dyn FnOnce() + Send + 'static> {
        match self {
            RunningAgentLead::Wrapped(lead) => Box::new(lead.ender()),
            RunningAgentLead::Acp(lead) => Box::new(lead.ender()),
        }
    }
}
