//! `hook`: receives the end of a turn from a program's own hook. It never disturbs the program: it
//! prints nothing and exits with 0 whatever its input.

use clap::Args;

use super::args::Global;
use super::fail::Exit;
use super::out::Out;
use super::setup::Setup;
use super::spawn::stdin;
use super::{Done, worker};
use crate::model::said::TurnEnd;
use crate::ops;
use crate::ops::authority::Action;

/// Receive the end of a turn from a program's hook; not for people.
///
/// Reads the JSON that codex passes to `notify` and Claude Code to its `Stop` hook, and ignores
/// anything else. Prints nothing and always exits with 0.
#[derive(Debug, Args)]
pub(super) struct Hook {
    /// The JSON [default: read from stdin].
    #[arg(value_name = "JSON")]
    told: Option<String>,
}

pub(super) fn hook(global: &Global, args: Hook) -> Exit {
    // A failing hook would be shown to the program's user, or keep the agent from ending its turn.
    let _ = report(global, args);
    Exit::DONE
}

fn report(global: &Global, args: Hook) -> Done {
    let told = match args.told {
        Some(told) => told,
        None => stdin()?,
    };
    if let Some(end) = TurnEnd::parse(&told) {
        let setup = Setup::new(global, Out::new(false, true, false, global.color))?;
        let (me, team) = (worker::identity(&setup)?, setup.team(Action::Serve)?);
        ops::turn::ended(&team, &me.name, &me.incarnation, &end)?;
    }
    Ok(Exit::DONE)
}
