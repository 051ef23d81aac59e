//! The hidden `worker` and `wrap` commands: the built-in teammate, and the wrapper of a program
//! that is not native. Both read their identity from the environment.

use super::fail::{Class, Exit, Failure};
use super::setup::{Setup, identity_var};
use super::{Done, interrupt};
use crate::model::id::{Incarnation, MemberName};
use crate::ops::authority::Action;
use crate::teammate::{self, MemberRun};

pub(super) fn worker(setup: &Setup) -> Done {
    let (me, team) = (identity(setup)?, setup.team(Action::Serve)?);
    let runtime = interrupt::runtime()?;
    let code = runtime.block_on(teammate::worker(&setup.ctx, &team, me));
    runtime.shutdown_background();
    Ok(exit(code?))
}

pub(super) fn wrap(setup: &Setup) -> Done {
    let (me, team) = (identity(setup)?, setup.team(Action::Serve)?);
    Ok(exit(teammate::wrap(&setup.ctx, &team, &me)?))
}

/// Returns the identity of this process from its environment.
pub(super) fn identity(setup: &Setup) -> Result<MemberRun, Failure> {
    let name = MemberName::existing(&identity_var(&setup.ctx, "PHALANX_AGENT_NAME")?)?;
    let incarnation = Incarnation::parse(&identity_var(&setup.ctx, "PHALANX_INCARNATION")?)?;
    Ok(MemberRun { name, incarnation })
}

fn exit(code: i32) -> Exit {
    Exit(u8::try_from(code).unwrap_or(Class::Failed.code()))
}
