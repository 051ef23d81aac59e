//! The agent lead: a wrapped program that leads the team. The lead's own loop runs beside it.

use super::super::member_io::MemberRun;
use super::driver::{WrapperDriver, WrapperOptions, open};
use super::state::AgentRole;
use model::id::MemberName;
use ops::starting::agent_lead::AgentLead;
use ops::{Context, OpsError, TeamStore};

/// A running agent lead.
pub struct RunningAgentLead<'a>(WrapperDriver<'a>);

/// Starts the program on a pty inside our terminal. Must be called on the main thread before other
/// threads exist.
///
/// # Errors
///
/// There is no terminal, or the program cannot run.
pub fn start_agent_lead<'a>(
    ctx: &'a Context,
    team: &'a TeamStore,
    agent: &AgentLead,
) -> Result<RunningAgentLead<'a>, OpsError> {
    let start = WrapperOptions {
        me: MemberRun { name: MemberName::lead(), incarnation: agent.incarnation.clone() },
        profile: agent.profile.clone(),
        argv: agent.argv.clone(),
        env: agent.env.clone(),
        role: AgentRole::Lead,
        answers: false,
        pane: None,
        backend: "",
    };
    Ok(RunningAgentLead(open(ctx, team, start)?))
}

impl RunningAgentLead<'_> {
    /// Serves the program until it exits. Returns its exit code, or that of the signal that ended
    /// the wrapper.
    pub fn serve(self) -> i32 {
        self.0.serve()
    }

    /// Returns a function that ends the program from another thread.
    pub fn ender(&self) -> impl FnOnce() + Send + 'static {
        self.0.ender()
    }
}
