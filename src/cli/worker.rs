//! The hidden `worker`: the built-in teammate, which learns from its environment who it is.

use super::fail::{Class, Exit};
use super::setup::{Setup, identity_var};
use super::{Done, interrupt};
use crate::model::id::{Incarnation, MemberName};
use crate::teammate::{self, Identity};

pub(super) fn worker(setup: &Setup) -> Done {
    let name = MemberName::existing(&identity_var(&setup.ctx, "PHALANX_AGENT_NAME")?)?;
    let incarnation = Incarnation::parse(&identity_var(&setup.ctx, "PHALANX_INCARNATION")?)?;
    let team = setup.team()?;
    let runtime = interrupt::runtime()?;
    let code = runtime.block_on(teammate::worker(&setup.ctx, &team, Identity { name, incarnation }));
    runtime.shutdown_background();
    Ok(Exit(u8::try_from(code?).unwrap_or(Class::Failed.code())))
}
