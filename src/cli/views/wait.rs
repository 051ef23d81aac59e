//! `wait`: waits until members or a task reach a state.

use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::args::seconds;
use crate::fail::{Exit, Failure, VerbResult};
use crate::notice::WaitNotice;
use crate::setup::Setup;
use crate::team::closing;
use crate::{interrupt, json};
use model::board::task_ref::TaskRef;
use model::id::MemberName;
use model::members::assessment::Doing;
use model::text;
use ops::authority::Action;
use ops::views::wait::{Came, StateWait, Until};
use ops::{self, Kind, TeamStore};

/// Wait until members or a task reach a state.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx wait ada --until idle --timeout 60\n  phalanx wait --until done\n  \
    phalanx wait --until task=3,4 --any\n\n\
    Exits with 1 if a task that was waited for has failed, or a member with `gone`."
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
    /// State to wait for: ready, idle, quiet (no output for 5 s) or quiet=S, gone, a state of
    /// `status`; done (all tasks), or task=ID,ID.
    #[arg(long, required = true, value_parser = until, value_name = "STATE")]
    #[serde(deserialize_with = "until_from_json")]
    #[schemars(with = "String")]
    pub(crate) until: Vec<Until>,
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
        ("done", "") => Ok(Until::Done),
        ("task", tasks) => {
            tasks.split(',').map(TaskRef::parse).collect::<Result<_, _>>().map(Until::Tasks)
        }
        (word, "") if Doing::names().any(|name| name == word) => Ok(Until::State(word.to_owned())),
        _ => Err(format!(
            "possible: ready, quiet, quiet=S, gone, done, task=ID, {}; see `phalanx docs cli/watching wait`",
            Doing::names().collect::<Vec<_>>().join(", ")
        )),
    }
}

fn until_from_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Until>, D::Error> {
    json::text(deserializer, |given| until(given).map(|until| vec![until]))
}

/// Returns the one state that is waited for; several tasks can be named one by one.
fn goal(args: &WaitArgs) -> Result<Until, Failure> {
    let tasks = args.until.iter().map(|until| match until {
        Until::Tasks(tasks) => Some(tasks.as_slice()),
        _ => None,
    });
    match (args.until.as_slice(), tasks.collect::<Option<Vec<_>>>()) {
        ([one], _) => Ok(one.clone()),
        (_, Some(tasks)) => Ok(Until::Tasks(tasks.concat())),
        _ => {
            Err(Failure::usage("several states are given", "only tasks can be several: `task=1,2`"))
        }
    }
}

pub(crate) fn wait(setup: &Setup, args: WaitArgs) -> VerbResult {
    let (until, began_at) = (goal(&args)?, ops::now());
    let wait = begin(setup, &args)?;
    let team = wait.team().clone();
    let describe = wait.describer();
    let _notice = WaitNotice::start(&setup.out, move || Some(describe()));
    let interrupted = Failure::interrupted("interrupted while waiting", None);
    let came = interrupt::run_interruptible(interrupted, move || Ok(wait.finish()?));
    if until == Until::Done && came.is_err() && !team.exists() {
        // Its lead has ended it with its tasks.
        let report = closing::kept_since(setup, team.name(), began_at)?;
        return report.map_or(came.map(|_| Exit::DONE), |report| report.print(setup));
    }
    let came = came?;
    let line = |came: &Came| {
        let needs = came.needs.as_ref().map(|needs| format!(": it {}", text::line(needs)));
        let exit = || came.exit_code.map(|code| format!("exit code {code}"));
        let why = came.reason.clone().or_else(exit).filter(|_| !came.is_good(&until));
        let why = why.map(|why| format!(": {}", text::line(&why)));
        format!("{} {}{}", came.name, came.state, needs.or(why).unwrap_or_default())
    };
    let words = || came.iter().map(line).collect::<Vec<_>>().join("\n");
    let good = came.iter().all(|came| came.is_good(&until));
    setup.out.print_outcome(&came, good, words)?;
    Ok(if good { Exit::DONE } else { Exit::of(Kind::Failed) })
}

/// Begins the wait that the arguments describe.
pub(crate) fn begin(setup: &Setup, args: &WaitArgs) -> Result<StateWait, Failure> {
    let (team, named) = setup.members(&args.names, Action::Look)?;
    let until = goal(args)?;
    let names = names(&team, args, &until, named)?;
    Ok(StateWait::begin(&setup.ctx, &team, &names, args.any, &until, args.timeout)?)
}

/// Returns the members to wait for: the named ones, or all.
fn names(
    team: &TeamStore,
    args: &WaitArgs,
    until: &Until,
    named: Vec<MemberName>,
) -> Result<Vec<MemberName>, Failure> {
    match until {
        Until::Tasks(_) | Until::Done if !args.names.is_empty() => {
            Err(Failure::usage("a wait for tasks takes no names of members", "leave out the names"))
        }
        // A plain program never becomes idle.
        Until::Idle if args.names.is_empty() => Ok(ops::views::wait::who_can_be_idle(team)?),
        Until::Tasks(_) | Until::Done => Ok(named),
        _ if args.names.is_empty() => {
            Ok(team.team()?.teammates().map(|m| m.name.clone()).collect())
        }
        _ => Ok(named),
    }
}
