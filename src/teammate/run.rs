//! Starts the program of a member or of an agent lead, wrapped or over ACP, as its profile says.

use std::io;

use crate::acp::{self, AcpDriver, AcpOptions, Face};
use crate::member_io::MemberRun;
use crate::words::AgentRole;
use crate::wrap::{self, WrapperDriver, WrapperOptions};
use model::id::MemberName;
use model::members::mode::Mode;
use model::members::placement::BackendKind;
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
    let record =
        ops::members::status::record(team, &me.name)?.filter(|record| record.is(&me.incarnation));
    let Some(record) = record else {
        let problem = format!("`{}` has another run now", me.name);
        return Err(OpsError::Usage { problem, hint: None });
    };
    let profile = ops::members::profiles::find(ctx, &record.request.profile)?;
    let (argv, env) = (record.request.command_line(), ctx.caller.env.clone());
    let pane = ctx.caller.var("TMUX_PANE").map(|pane| pane.to_string_lossy().into_owned());
    let (role, backend) = (AgentRole::Teammate, record.backend.wire());
    if profile.runs == Runs::Acp {
        let (mode, model) = (record.request.session_mode.clone(), record.request.model.clone());
        let load = record.session.clone();
        let me = me.clone();
        let options = AcpOptions { me, profile, argv, env, role, mode, model, load, pane, backend };
        return Ok(acp::open(ctx, team, options)?.serve());
    }
    // In a pane, tmux or iTerm2 answers the program's terminal queries.
    let answers = record.backend == BackendKind::Pty;
    let me = me.clone();
    let options = WrapperOptions { me, profile, argv, env, role, answers, pane, backend };
    Ok(wrap::open(ctx, team, options)?.serve())
}

/// A running agent lead: an agent that leads the team. The lead's own loop runs beside it.
pub enum RunningAgentLead<'a> {
    Wrapped(Box<WrappedLead<'a>>),
    Acp(Box<AcpLead<'a>>),
}

/// An agent lead whose program is wrapped.
pub struct WrappedLead<'a>(WrapperDriver<'a>);

/// An agent lead over ACP.
pub struct AcpLead<'a>(AcpDriver<'a>);

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
    let me = MemberRun { name: MemberName::lead(), incarnation: agent.incarnation.clone() };
    let profile = agent.profile.clone();
    let (argv, env, role) = (agent.argv.clone(), agent.env.clone(), AgentRole::Lead);
    let (pane, backend, answers) = (None, "", false);
    let options = WrapperOptions { me, profile, argv, env, role, answers, pane, backend };
    Ok(RunningAgentLead::Wrapped(Box::new(WrappedLead(wrap::open(ctx, team, options)?))))
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
) -> Result<AcpLead<'a>, OpsError> {
    let me = MemberRun { name: MemberName::lead(), incarnation: agent.incarnation.clone() };
    let profile = agent.profile.clone();
    let (argv, env, role) = (agent.argv.clone(), agent.env.clone(), AgentRole::Lead);
    // Without a mode, some agents decide about permissions by themselves.
    let words = profile.mode_words(Mode::Default);
    let mode = words.and_then(|words| words.first().cloned());
    let (model, load, pane, backend) = (None, None, None, "");
    let options = AcpOptions { me, profile, argv, env, role, mode, model, load, pane, backend };
    Ok(AcpLead(acp::open(ctx, team, options)?))
}

impl AcpLead<'_> {
    /// Serves the program until it exits, in a view that is opened inside the runtime. Returns its
    /// exit code, or that of the signal that ended this process.
    pub fn serve_in<F: Face>(self, open: impl FnOnce() -> io::Result<F>) -> i32 {
        self.0.serve_in(open)
    }

    /// Returns a function that ends the program from another thread.
    pub fn ender(&self) -> impl FnOnce() + Send + 'static {
        self.0.ender()
    }
}

impl RunningAgentLead<'_> {
    /// Serves the program until it exits. Returns its exit code, or that of the signal that ended
    /// this process.
    pub fn serve(self) -> i32 {
        match self {
            RunningAgentLead::Wrapped(lead) => lead.0.serve(),
            RunningAgentLead::Acp(lead) => lead.0.serve(),
        }
    }

    /// Returns a function that ends the program from another thread.
    pub fn ender(&self) -> Box<dyn FnOnce() + Send + 'static> {
        match self {
            RunningAgentLead::Wrapped(lead) => Box::new(lead.0.ender()),
            RunningAgentLead::Acp(lead) => Box::new(lead.0.ender()),
        }
    }
}
