//! `wait`: waits until members or a task reach a state.

use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::args::seconds;
use crate::fail::{Exit, Failure, VerbResult};
use crate::interrupt;
use crate::json;
use crate::notice::WaitNotice;
use crate::setup::Setup;
use model::board::task_ref::TaskRef;
use model::id::MemberName;
use model::text;
use ops::authority::Action;
use ops::views::wait::{Came, StateWait, Until};
use ops::{self, Kind, TeamStore};

/// Wait until members or a task reach a state.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx wait ada --until idle --timeout 60\n  phalanx wait --until task=3"
)]
pub(crate) struct WaitArgs {
    /// Members to wait for [default: all; with idle, all that take work].
    #[arg(value_name = "NAME")]
    #[serde(default)]
    pub(crate) names: Vec<String>,
    /// Return as soon as one of them is there.
    #[arg(long)]
    #[serde(default)]
    pub(crate) any: bool,
    /// State to wait for: ready, idle, quiet (no output for 5 s) or quiet=S, gone, or task=ID.
    #[arg(long, value_parser = until, value_name = "STATE")]
    #[serde(deserialize_with = "until_from_json")]
    #[schemars(with = "String")]
    pub(crate) until: Until,
    /// Seconds to wait, then exit with 5 [default: no limit].
    #[arg(long, value_parser = seconds, value_name = "S")]
    #[serde(default, deserialize_with = "json::seconds")]
    #[schemars(with = "Option<f64>")]
    pub(crate) timeout: Option<Duration>,
}

/// Time without output after which a program counts as quiet.
const QUIET: Duration = Duration::from_secs(5);

fn until(given: &str) -> Result<Until, String> {
    match given.split_once('=').unwrap_or((given, "")) {
        ("ready", "") => Ok(Until::Ready),
        ("idle", "") => Ok(Until::Idle),
        ("quiet", "") => Ok(Until::Quiet(QUIET)),
        ("quiet", span) => seconds(span).map(Until::Quiet),
        ("gone", "") => Ok(Until::Gone),
        ("task", task) => TaskRef::parse(task).map(Until::Task),
        _ => Err("possible: ready, idle, quiet, quiet=S, gone, task=ID".to_owned()),
    }
}

fn until_from_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Until, D::Error> {
    json::text(deserializer, until)
}

pub(crate) fn wait(setup: &Setup, args: WaitArgs) -> VerbResult {
    let wait = begin(setup, &args)?;
    let describe = wait.describer();
    let _notice = WaitNotice::start(&setup.out, move || Some(describe()));
    let interrupted = Failure::interrupted("interrupted while waiting", None);
    let came = interrupt::run_interruptible(interrupted, move || Ok(wait.finish()?))?;
    let line = |came: &Came| {
        let needs = came.needs.as_ref().map(|needs| format!(": it {}", text::line(needs)));
        format!("{} {}{}", came.name, came.state, needs.unwrap_or_default())
    };
    let words = || came.iter().map(line).collect::<Vec<_>>().join("\n");
    let good = came.iter().all(|c| ops::views::wait::is_good(c, &args.until));
    setup.out.print_outcome(&came, good, words)?;
    Ok(if good { Exit::DONE } else { Exit::of(Kind::Failed) })
}

/// Begins the wait that the arguments describe.
pub(crate) fn begin(setup: &Setup, args: &WaitArgs) -> Result<StateWait, Failure> {
    let (team, named) = setup.members(&args.names, Action::Look)?;
    let names = names(&team, args, named)?;
    Ok(StateWait::begin(&setup.ctx, &team, &names, args.any, &args.until, args.timeout)?)
}

/// Returns the members to wait for: the named ones, or all.
fn names(
    team: &TeamStore,
    args: &WaitArgs,
    named: Vec<MemberName>,
) -> Result<Vec<MemberName>, Failure> {
    match args.until {
        Until::Task(_) if !args.names.is_empty() => Err(Failure::usage(
            "`--until task=ID` takes no names of members",
            "leave out the names",
        )),
        // A plain program never becomes idle.
        Until::Idle if args.names.is_empty() => Ok(ops::views::wait::who_can_be_idle(team)?),
        Until::Task(_) => Ok(named),
        _ if args.names.is_empty() => {
            Ok(team.team()?.teammates().map(|m| m.name.clone()).collect())
        }
        _ => Ok(named),
    }
}
