//! `lead -- CMD`: an agent lead owns the terminal; the lead's loop runs silently behind it.

use std::thread;

use tokio::sync::oneshot;

use crate::fail::{Exit, Failure, VerbResult};
use crate::interrupt;
use crate::setup::Setup;
use crate::team::lead_report;
use crate::team::lead_session::{LeadResult, LeadSession, OnExit};
use ops::authority::Action;
use ops::starting::agent_lead::AgentLead;
use ops::{self, Kind, Lease, TeamStore};
use sys::signal::{Signal, Signals};
use sys::tty;

/// A running agent lead.
pub(crate) struct ServedAgent<'a> {
    /// Ends it from another thread.
    pub(crate) end: Box<dyn FnOnce() + Send>,
    /// Serves it until it exits, and returns its exit code.
    pub(crate) serve: Box<dyn FnOnce() -> i32 + 'a>,
    /// The requests of members are sent to it.
    pub(crate) gets_questions: bool,
}

pub(crate) fn run_agent_lead(
    setup: &Setup,
    profile: Option<&str>,
    command: &[String],
    on_exit: OnExit,
) -> VerbResult {
    let team = setup.team(Action::Lead)?;
    let (lease, agent) = ops::starting::agent_lead::take(&setup.ctx, &team, profile, command)?;
    // The program takes over the terminal from this thread, so no other thread may exist yet.
    let program = teammate::start_agent_lead(&setup.ctx, &team, &agent)?;
    let program = ServedAgent {
        end: program.ender(),
        serve: Box::new(|| program.serve()),
        gets_questions: agent.takes_mail(),
    };
    let (code, result) = lead_beside(setup, &team, &agent, on_exit, lease, program)?;
    let exit = lead_report::report_end(setup, &team, &result, None)?;
    Ok(if result.deletion_failure.is_some() { exit } else { code })
}

/// Serves the program on this thread, and leads the team on another one. Returns the exit code of
/// the program.
pub(crate) fn lead_beside(
    setup: &Setup,
    team: &TeamStore,
    agent: &AgentLead,
    on_exit: OnExit,
    lease: Lease,
    program: ServedAgent<'_>,
) -> Result<(Exit, LeadResult), Failure> {
    let ServedAgent { end: end_program, serve, gets_questions } = program;
    let (over, end) = oneshot::channel();
    let (code, concluded) = thread::scope(|scope| {
        let loop_of_lead = move || {
            let concluded = lead_behind(setup, team, (agent, gets_questions), on_exit, lease, end);
            // Without a loop there is no lead, so the agent lead must not continue unaware of it.
            if concluded.is_err() {
                end_program();
            }
            concluded
        };
        let leading =
            thread::Builder::new().name("lead".to_owned()).spawn_scoped(scope, loop_of_lead)?;
        let code = serve();
        tty::let_signals_through();
        // The loop has ended already if the team is gone.
        let _ = over.send(code);
        let concluded = leading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, Failure>((code, concluded))
    })?;
    Ok((Exit(u8::try_from(code).unwrap_or(Kind::Failed.exit_code())), concluded?))
}

/// Runs the lead's loop until the team is gone, or until the exit of the agent lead, of which `end`
/// receives the code, has been handled.
fn lead_behind(
    setup: &Setup,
    team: &TeamStore,
    (agent, gets_questions): (&AgentLead, bool),
    on_exit: OnExit,
    lease: Lease,
    end: oneshot::Receiver<i32>,
) -> Result<LeadResult, Failure> {
    ops::starting::agent_lead::send_brief(team, agent)?;
    let runtime = interrupt::runtime()?;
    let result = runtime.block_on(async {
        // While the agent lead has the terminal, its process gets the signals; afterwards this one
        // does.
        let mut signals = Signals::new()?;
        let (session, stop_requests) = LeadSession::new(setup, team, on_exit)?;
        let session = session.for_agent_lead(agent.takes_mail(), gets_questions);
        session.catch_up()?;
        let follow = async {
            // A dropped sender also means that the agent lead has exited.
            let code = end.await.unwrap_or_default();
            let signals = [Signal::Hangup, Signal::Terminate];
            let signal = signals.into_iter().find(|signal| signal.exit_code() == code);
            session.resume_output(signal.unwrap_or(Signal::Interrupt));
            std::future::pending().await
        };
        tokio::select! {
            biased;
            result = session.lead(&mut signals, stop_requests, lease) => result,
            result = follow => result,
        }
    });
    runtime.shutdown_background();
    result
}
