//! `doctor`: reports problems; `--fix` repairs those that are safe to repair.

use super::fail::{Class, Exit};
use super::setup::Setup;
use super::{Done, args};
use crate::ops::doctor::Finding;
use crate::{ops, ui};

pub(super) fn doctor(setup: &Setup, args: &args::Doctor) -> Done {
    if args.fix {
        ops::authority::enter_repair(&setup.ctx)?;
    }
    let checked = ops::doctor::doctor(&setup.ctx, args.fix)?;
    setup.out.give(&checked, || ui::doctor(&checked, setup.out.verbose, setup.out.paint))?;
    Ok(if checked.findings.iter().any(Finding::is_open) {
        Exit::of(Class::Failed)
    } else {
        Exit::DONE
    })
}
