//! `lead -- CMD`: an agent lead owns the terminal; the lead's loop runs silently behind it.

use std::thread;

use tokio::sync::oneshot;

use super::args_lead::{Lead, OnExit};
use super::conduct::{Conclusion, LeadSession};
use super::fail::{Class, Exit, Failure};
use super::setup::Setup;
use super::{Done, interrupt, lead};
use crate::ops::authority::Action;
use crate::ops::seat::Seat;
use crate::ops::{self, Lease, TeamStore};
use crate::sys::signal::Signals;
use crate::sys::tty;
use crate::teammate;

pub(super) fn lead(setup: &Setup, args: &Lead) -> Done {
    let team = setup.team(Action::Lead)?;
    let (lease, seat) = ops::seat::take(&setup.ctx, &team, args.profile.as_deref(), &args.command)?;
    // The program takes over the terminal from this thread, so no other thread may exist yet.
    let program = teammate::seat(&setup.ctx, &team, &seat)?;
    let (over, end) = oneshot::channel();
    let (code, concluded) = thread::scope(|scope| {
        let (end_program, policy, team, seat) = (program.ender(), args.how.on_exit, &team, &seat);
        let loop_of_lead = move || {
            let concluded = lead_behind(setup, team, seat, policy, lease, end);
            // Without a loop there is no lead, so the agent lead must not continue unaware of it.
            if concluded.is_err() {
                end_program();
            }
            concluded
        };
        let leading =
            thread::Builder::new().name("lead".to_owned()).spawn_scoped(scope, loop_of_lead)?;
        let code = program.stay();
        tty::let_signals_through();
        // The loop has ended already if the team is gone.
        let _ = over.send(());
        let concluded = leading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, Failure>((code, concluded))
    })?;
    let conclusion = concluded?;
    let exit = lead::told(setup, &team, &conclusion)?;
    let of_program = Exit(u8::try_from(code).unwrap_or(Class::Failed.code()));
    Ok(if conclusion.left.is_some() { exit } else { of_program })
}

/// Runs the lead's loop until the team is gone, or until the exit of the agent lead has been
/// handled.
fn lead_behind(
    setup: &Setup,
    team: &TeamStore,
    seat: &Seat,
    policy: OnExit,
    lease: Lease,
    end: oneshot::Receiver<()>,
) -> Result<Conclusion, Failure> {
    ops::seat::brief_program(team, seat)?;
    let runtime = interrupt::runtime()?;
    let conclusion = runtime.block_on(async {
        // While the agent lead has the terminal, its process gets the signals; afterwards this one
        // does.
        let mut signals = Signals::new()?;
        let (session, wishes) = LeadSession::new(setup, team, policy)?;
        let session = session.behind(seat.is_told());
        session.catch_up()?;
        let follow = async {
            // A dropped sender also means that the agent lead has exited.
            let _ = end.await;
            session.unveil();
            std::future::pending().await
        };
        tokio::select! {
            biased;
            conclusion = session.lead(&mut signals, wishes, lease) => conclusion,
            conclusion = follow => conclusion,
        }
    });
    runtime.shutdown_background();
    conclusion
}
