//! The `profile` subcommands: list, show, test and learn profiles.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::args::seconds;
use crate::fail::{Exit, Failure, VerbResult};
use crate::members::learn::{LearnArgs, learn};
use crate::members::recordings::{composer, table_of};
use crate::setup::Setup;
use model::text;
use ops::Kind;
use ops::members::profiles::{self, ListedProfile, Source, TestedScreen, Trial};
use ops::starting::agents::{self, AgentProgram};
use profile::{Profile, ScreenFinding};
use sys::fs;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ProfileVerb {
    /// List all profiles, with the agents that are there.
    List,
    /// Print the TOML of a profile, as a template for your own.
    Show {
        /// Name of the profile.
        name: String,
    },
    Test(TestArgs),
    Learn(LearnArgs),
}

/// Test the rules of a profile on a recording or on the program itself.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx profile test codex\n  \
    phalanx profile test codex --screen fixtures/screens/codex/ready.ansi\n  \
    phalanx profile test mine --screen ~/.claude/phalanx/profiles/mine\n\n\
    A directory of recordings lists them in `expected.toml`, as `profile learn` writes it. \
    Exit code 1: a recording shows another state than the expected one.\n\n\
    Without a recording the program runs on a terminal of its own in an empty directory; \
    nothing is typed into it.")]
pub(crate) struct TestArgs {
    /// Name of the profile.
    pub(crate) name: String,
    /// Recorded output of the program, whose last screen is judged, or a directory of recordings.
    #[arg(long, value_name = "PATH")]
    pub(crate) screen: Option<PathBuf>,
    /// Rows of the terminal.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u16).range(2..=500))]
    pub(crate) rows: u16,
    /// Columns of the terminal.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u16).range(2..=500))]
    pub(crate) cols: u16,
    /// Seconds to watch the program.
    #[arg(long = "for", value_parser = seconds, value_name = "S", default_value = "10", conflicts_with = "screen")]
    pub(crate) length: Duration,
    /// Command line, for a profile that needs one.
    #[arg(last = true, value_name = "CMD", conflicts_with = "screen")]
    pub(crate) command: Vec<String>,
}

pub(crate) fn profile(setup: &Setup, verb: ProfileVerb) -> VerbResult {
    match verb {
        ProfileVerb::List => list(setup),
        ProfileVerb::Show { name } => show(setup, &name),
        ProfileVerb::Test(args) => test(setup, args),
        ProfileVerb::Learn(args) => learn(setup, &args),
    }
}

fn list(setup: &Setup) -> VerbResult {
    let found = profiles::list(&setup.ctx)?;
    let mut agents = agents::on_path(&setup.ctx)?;
    agents::find_versions(&setup.ctx, &mut agents);
    let agent_of = |one: &ListedProfile| agents.iter().find(|agent| agent.profile == one.name);
    let document: Vec<Value> = found.iter().map(|one| entry(one, agent_of(one))).collect();
    let is_verbose = setup.out.verbose;
    setup.out.print(&document, || {
        let rows = found.iter().map(|one| ui::ProfileRow {
            name: one.name.clone(),
            runs: is_verbose
                .then(|| one.profile.as_ref().map_or("-", |p| p.runs.as_str()).to_owned()),
            here: here(one, agent_of(one)),
            seen: (one.profile.as_ref().ok().filter(|_| is_verbose))
                .and_then(|profile| profile.seen.clone()),
            source: Some(&one.source)
                .filter(|source| is_verbose || **source != Source::Builtin)
                .map(ToString::to_string),
            about: one.profile.as_ref().map_or_else(ToString::to_string, |p| p.about.clone()),
        });
        ui::profile_table(rows, setup.out.paint)
    })
}

/// Returns what is there of an agent: its version and its login.
fn here(one: &ListedProfile, agent: Option<&AgentProgram>) -> Option<String> {
    let profile = one.profile.as_ref().ok().filter(|profile| profile.is_agent())?;
    Some(match (agent, &profile.install) {
        (Some(agent), _) => format!("{}, {}", agent.version_words(), agent.login.words()),
        (None, Some(install)) => format!("no: {install}"),
        (None, None) => "no".to_owned(),
    })
}

fn entry(one: &ListedProfile, agent: Option<&AgentProgram>) -> Value {
    match &one.profile {
        Ok(profile) => json!({
            "name": one.name, "source": one.source.to_string(), "about": profile.about, "runs": profile.runs,
            "reads_mail": profile.reads_mail, "seen": profile.seen, "install": profile.install,
            "program": agent.map(|agent| &agent.program),
            "version": agent.and_then(|agent| agent.version.as_ref()),
            "login": agent.map(|agent| agent.login),
        }),
        Err(e) => {
            json!({ "name": one.name, "source": one.source.to_string(), "problem": e.to_string() })
        }
    }
}

fn show(setup: &Setup, name: &str) -> VerbResult {
    let found = profiles::listed(&setup.ctx, name)?;
    let profile: Profile = found.profile?;
    setup.out.print(&profile, || text::block(&found.text))
}

fn test(setup: &Setup, args: TestArgs) -> VerbResult {
    let profile = profiles::find(&setup.ctx, &args.name)?;
    match &args.screen {
        Some(dir) if fs::is_dir(dir) => {
            let tested = profiles::test_recordings(&profile, dir)?;
            setup.out.print(&tested, || table_of(setup, &tested))?;
            if tested.iter().any(|one| !one.passed) {
                return Ok(Exit::of(Kind::Failed));
            }
        }
        Some(file) => {
            let tested = profiles::test_recording(&profile, file, (args.rows, args.cols))?;
            setup.out.print(&tested, || describe(&tested))?;
        }
        None => watch(setup, profile, args)?,
    }
    Ok(Exit::DONE)
}

fn describe(tested: &TestedScreen) -> String {
    let near = tested.nearest.iter().map(|near| format!("\nnearest rule {}", near.describe()));
    line(&tested.finding) + &near.collect::<String>()
}

fn watch(setup: &Setup, profile: Profile, args: TestArgs) -> Result<(), Failure> {
    let trial =
        Trial { profile, command: args.command, length: args.length, size: (args.rows, args.cols) };
    // A closed reader does not stop the trial; the program is still ended after its time.
    let mut printed = Ok(());
    let ended = profiles::watch(&setup.ctx, &trial, &mut |observed| {
        let document = json!({ "at_ms": observed.at_ms, "finding": observed.finding });
        let words = || {
            format!(
                "{:>6.1}s  {}",
                f64::from(u32::try_from(observed.at_ms).unwrap_or(u32::MAX)) / 1000.0,
                line(&observed.finding)
            )
        };
        if printed.is_ok() {
            printed = setup.out.print(&document, words).map(drop);
        }
    })?;
    setup.out.print_message(if ended {
        "the program has ended by itself"
    } else {
        "the time is over; the program was ended"
    });
    printed
}

/// Formats a finding, such as `idle by rule composer: › Ask Codex …; composer empty`.
fn line(finding: &ScreenFinding) -> String {
    let rule =
        if finding.rule.is_empty() { String::new() } else { format!(" by rule {}", finding.rule) };
    let composer = composer(&finding.composer).map(|words| format!("; composer {words}"));
    let composer = composer.unwrap_or_default();
    format!("{}{rule}: {}{composer}", finding.state, text::line(&finding.evidence))
}
