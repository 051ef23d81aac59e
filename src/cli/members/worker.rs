//! The verbs that read a member's identity from the environment: the built-in teammate (`worker`),
//! the wrapper of a program that is not native (`wrap`), and the receiver of a program's own hook
//! (`hook`).

use clap::Args;

use crate::args::Global;
use crate::fail::{Exit, Failure, VerbResult};
use crate::interrupt;
use crate::out::Out;
use crate::read::stdin;
use crate::setup::{Setup, identity_var};
use model::id::{Incarnation, MemberName};
use model::members::said::TurnEnd;
use ops::authority::Action;
use ops::{self, Kind};
use teammate::{self, MemberRun};

/// Receive the end of a turn from a program's hook; not for people.
///
/// Reads the JSON that codex passes to `notify` and Claude Code to its `Stop` hook, and ignores
/// anything else. Prints nothing and always exits with 0.
#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// The JSON [default: read from stdin].
    #[arg(value_name = "JSON")]
    payload: Option<String>,
}

pub(crate) fn worker(setup: &Setup) -> VerbResult {
    let (me, team) = (identity(setup)?, setup.team(Action::Serve)?);
    let runtime = interrupt::runtime()?;
    let code = runtime.block_on(teammate::worker(&setup.ctx, &team, me));
    runtime.shutdown_background();
    Ok(exit(code?))
}

pub(crate) fn wrap(setup: &Setup) -> VerbResult {
    let (me, team) = (identity(setup)?, setup.team(Action::Serve)?);
    Ok(exit(teammate::serve_member(&setup.ctx, &team, &me)?))
}

/// Never disturbs the program: prints nothing and exits with 0 whatever its input.
pub(crate) fn hook(global: &Global, args: HookArgs) -> Exit {
    // A failing hook would be shown to the program's user, or keep the agent from ending its turn.
    let _ = report_turn_end(global, args);
    Exit::DONE
}

fn report_turn_end(global: &Global, args: HookArgs) -> VerbResult {
    let json = match args.payload {
        Some(json) => json,
        None => stdin()?,
    };
    if let Some(end) = TurnEnd::parse(&json) {
        let setup = Setup::new(global, Out::new(false, true, false, global.color))?;
        let (me, team) = (identity(&setup)?, setup.team(Action::Serve)?);
        ops::members::turn::ended(&team, &me.name, &me.incarnation, &end)?;
    }
    Ok(Exit::DONE)
}

/// Returns the identity of this process from its environment.
fn identity(setup: &Setup) -> Result<MemberRun, Failure> {
    let name = MemberName::existing(&identity_var(&setup.ctx, "PHALANX_AGENT_NAME")?)?;
    let incarnation = Incarnation::parse(&identity_var(&setup.ctx, "PHALANX_INCARNATION")?)?;
    Ok(MemberRun { name, incarnation })
}

fn exit(code: i32) -> Exit {
    Exit(u8::try_from(code).unwrap_or(Kind::Failed.exit_code()))
}
