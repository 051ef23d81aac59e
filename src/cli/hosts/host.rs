//! The `host` subcommands: list and check the hosts on which members can run.

use std::io::{self, BufReader};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::args::host_name;
use crate::fail::{Exit, Failure, VerbResult};
use crate::read;
use crate::setup::Setup;
use model::id::HostName;
use ops::authority::{Action, enter_without_team};
use ops::hosts::{self, ConfiguredHost, HostReport};
use ops::{self, Kind, TeamStore};
use sys::env;
use sys::parallel::parallel_map;

/// Hosts that are checked at the same time.
const AT_ONCE: usize = 16;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum HostVerb {
    /// List the configured hosts.
    List,
    Check(CheckArgs),
    /// Give up the members on a host that does not answer and will not come back.
    ///
    /// Their tasks become free, and the shared store refuses their changes from then on.
    Lost {
        /// Name of the host.
        #[arg(value_parser = host_name)]
        name: HostName,
    },
    /// Carry out what a lead on another host asks for.
    #[command(hide = true)]
    Serve,
}

/// Check that members can run on a host.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx host check\n  phalanx host check build --install\n\n\
    Exits with 1 if a host has a problem. The work directory is created if it is missing.")]
pub(crate) struct CheckArgs {
    /// Name of the host [default: all].
    #[arg(value_parser = host_name)]
    pub(crate) name: Option<HostName>,
    /// Install phalanx in the work directory if it is missing there or has another version.
    #[arg(long, requires = "name")]
    pub(crate) install: bool,
    /// Program to install [default: this one, if it is linked statically].
    #[arg(long, value_name = "FILE", requires = "install")]
    pub(crate) from: Option<PathBuf>,
    /// Install without asking.
    #[arg(long, requires = "install")]
    pub(crate) yes: bool,
}

pub(crate) fn host(setup: &Setup, verb: &HostVerb) -> VerbResult {
    if matches!(verb, HostVerb::Serve) {
        let (ctx, input) = (&setup.ctx, BufReader::new(io::stdin()));
        ops::serving::serve(&ctx.caller, &ctx.store, input, Box::new(io::stdout()))?;
        return Ok(Exit::DONE);
    }
    if let HostVerb::Lost { name } = verb {
        return lost(setup, name);
    }
    let team = selected_team(setup)?;
    let hosts = known(setup, team.as_ref())?;
    match verb {
        HostVerb::Serve | HostVerb::Lost { .. } => Ok(Exit::DONE),
        HostVerb::List => list(setup, &hosts),
        HostVerb::Check(args) => check(setup, team.as_ref(), &hosts, args),
    }
}

fn lost(setup: &Setup, name: &HostName) -> VerbResult {
    let team = setup.team(Action::UseHosts)?;
    let lost = ops::ending::lost_host::give_up(&setup.ctx, &team, name)?;
    setup.out.confirm(&lost, || match lost.members.as_slice() {
        [] => format!("no member of team {} was on host {name}", team.name()),
        some => {
            let names = some.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            format!("gave up {names} on host {name}")
        }
    })
}

/// Returns the selected team, if there is one, for the use of its hosts and those of the user.
fn selected_team(setup: &Setup) -> Result<Option<TeamStore>, Failure> {
    if setup.named_team(None)?.is_some() {
        return setup.team(Action::UseHosts).map(Some);
    }
    enter_without_team(&setup.ctx, Action::UseHosts)?;
    Ok(setup.visible_team())
}

/// Returns the hosts of the team and of the user.
fn known(setup: &Setup, team: Option<&TeamStore>) -> Result<Vec<ConfiguredHost>, Failure> {
    let settings = team.map(|team| team.settings()).transpose()?.flatten();
    let of_team = settings.map(|settings| settings.hosts).unwrap_or_default();
    Ok(hosts::configured(&setup.ctx, &of_team)?)
}

fn list(setup: &Setup, hosts: &[ConfiguredHost]) -> VerbResult {
    let documents: Vec<Value> = hosts.iter().map(document).collect();
    let none = "no hosts; configure one with `[[host]]` in hosts.toml, see `phalanx docs hosts`";
    setup.out.print_list(&documents, none, || ui::host_table(hosts, setup.out.paint))
}

fn document(host: &ConfiguredHost) -> Value {
    let config = &host.config;
    json!({ "name": config.name, "ssh": config.ssh, "dir": config.dir, "labels": config.labels,
            "capacity": config.capacity, "source": host.source })
}

fn check(
    setup: &Setup,
    team: Option<&TeamStore>,
    known: &[ConfiguredHost],
    args: &CheckArgs,
) -> VerbResult {
    let chosen: Vec<&ConfiguredHost> = match &args.name {
        Some(name) => vec![hosts::find(known, name)?],
        None => known.iter().collect(),
    };
    if chosen.is_empty() {
        return list(setup, known);
    }
    let control_dir = hosts::control_dir(&setup.ctx);
    let mut reports =
        parallel_map(&chosen, AT_ONCE, |host| hosts::check(&host.config, &control_dir));
    if let (true, [host], [report]) = (args.install, chosen.as_slice(), reports.as_mut_slice())
        && report.needs_program()
    {
        install(setup, host, args)?;
        *report = hosts::check(&host.config, &control_dir);
    }
    if let Some(team) = team.filter(|team| team.is_shared()) {
        for (host, report) in chosen.iter().zip(&mut reports) {
            if report.problems.is_empty() {
                report.add_store(hosts::reach_store(&setup.ctx, team, &host.config.name));
            }
        }
    }
    let words = || ui::host_reports(&reports, setup.out.paint);
    match (&args.name, reports.as_slice()) {
        (Some(_), [report]) => setup.out.print(report, words)?,
        _ => setup.out.print(&reports, words)?,
    };
    let has_problem = reports.iter().any(|report: &HostReport| !report.problems.is_empty());
    Ok(if has_problem { Exit::of(Kind::Failed) } else { Exit::DONE })
}

fn install(setup: &Setup, host: &ConfiguredHost, args: &CheckArgs) -> Result<(), Failure> {
    let config = &host.config;
    let program = hosts::program_file(&setup.ctx, args.from.as_deref())?;
    let target = config.installed_program();
    let question =
        format!("Install {} as {target} on host `{}`?", program.path.display(), config.name);
    if !args.yes && !is_confirmed(&question)? {
        return Err(Failure::new(Kind::Refused, "nothing was installed", None));
    }
    let control_dir = hosts::control_dir(&setup.ctx);
    let path = hosts::install(config, &control_dir, &program)?;
    setup.out.print_message(&format!("installed {path} on host `{}`", config.name));
    Ok(())
}

/// Asks a person; only `y` and `yes` confirm.
fn is_confirmed(question: &str) -> Result<bool, Failure> {
    if !env::stdin_is_tty() {
        return Err(Failure::usage("there is no terminal to ask on", "confirm it with `--yes`"));
    }
    read::is_confirmed(question)
}
