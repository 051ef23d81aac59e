//! The lead of a team whose members a client has started. Without one, members that have ended
//! stay on the team until the client reads its mail, and none is restarted or reminded.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::fail::Failure;
use crate::setup::Setup;
use crate::team::background::start_background_lead;
use ops::authority::Action;
use ops::{self, Kind};
use sys::proc::{self, Process};
use sys::signal::TERM;

/// Time limit for a lead to leave its team.
const LEAVE_LIMIT: Duration = Duration::from_secs(3);

/// The leads that this server has started, which leave their teams when it ends.
#[derive(Default)]
pub(super) struct StartedLeads(Mutex<Vec<Process>>);

impl StartedLeads {
    /// Starts a lead in the background if members run and nothing leads them. Returns a note about
    /// a lead that could not be started.
    pub(super) fn ensure(&self, setup: &Setup) -> Option<String> {
        match self.start(setup) {
            Err(Failure::Message(error)) if error.kind != Kind::Refused => {
                Some(format!("no lead is running: {}", error.message))
            }
            _ => None,
        }
    }

    fn start(&self, setup: &Setup) -> Result<(), Failure> {
        if !setup.ctx.speaker.is_lead() {
            return Ok(());
        }
        let Some(team) = setup.visible_team() else { return Ok(()) };
        // Of calls at the same time, one starts the lead.
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !ops::starting::catch_up::lacks_lead(&team)? {
            return Ok(());
        }
        let team = setup.team(Action::Lead)?;
        ops::team::lease::may_lead(&setup.ctx, &team)?;
        let pid = start_background_lead(setup, &team, &["lead", "--on-exit", "detach"])?;
        started.extend(Process::of(pid));
        Ok(())
    }

    /// Ends the leads. Their members run on.
    pub(super) fn leave(&self) {
        let started = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let leaving: Vec<Process> =
            started.into_iter().filter(|lead| proc::signal(*lead, TERM)).collect();
        for lead in leaving {
            proc::wait_exit(lead, LEAVE_LIMIT);
        }
    }
}
