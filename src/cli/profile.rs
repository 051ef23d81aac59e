//! The `profile` subcommands: list, show and test profiles.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use super::args::seconds;
use super::fail::{Exit, Failure, VerbResult};
use super::setup::Setup;
use crate::model::text;
use crate::ops::Kind;
use crate::ops::profiles::{self, ListedProfile, Trial};
use crate::profile::{
    Composer, NearMiss, Profile, Screen, ScreenFinding, ScreenState, judge, nearest,
};
use crate::sys::fs;
use crate::ui;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum ProfileVerb {
    /// List all profiles.
    List,
    /// Print the TOML of a profile, as a template for your own.
    Show {
        /// Name of the profile.
        name: String,
    },
    Test(TestArgs),
}

/// Test the rules of a profile on a recording or on the program itself.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx profile test codex\n  \
    phalanx profile test codex --screen fixtures/screens/codex/ready.ansi\n\n\
    Without a recording the program runs on a terminal of its own in an empty directory; \
    nothing is typed into it.")]
pub(super) struct TestArgs {
    /// Name of the profile.
    pub(super) name: String,
    /// Recorded output of the program; its last screen is judged.
    #[arg(long, value_name = "FILE")]
    pub(super) screen: Option<PathBuf>,
    /// Rows of the terminal.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u16).range(2..=500))]
    pub(super) rows: u16,
    /// Columns of the terminal.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u16).range(2..=500))]
    pub(super) cols: u16,
    /// Seconds to watch the program.
    #[arg(long = "for", value_parser = seconds, value_name = "S", default_value = "10", conflicts_with = "screen")]
    pub(super) length: Duration,
    /// Command line, for a profile that needs one.
    #[arg(last = true, value_name = "CMD", conflicts_with = "screen")]
    pub(super) command: Vec<String>,
}

/// Maximum size of a recording, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;
/// Time without output to assume for a recording, in ms.
const AT_REST_MS: u64 = 60_000;

pub(super) fn profile(setup: &Setup, verb: ProfileVerb) -> VerbResult {
    match verb {
        ProfileVerb::List => list(setup),
        ProfileVerb::Show { name } => show(setup, &name),
        ProfileVerb::Test(args) => test(setup, args),
    }
}

fn list(setup: &Setup) -> VerbResult {
    let found = profiles::list(&setup.ctx)?;
    let document: Vec<Value> = found.iter().map(entry).collect();
    setup.out.print(&document, || {
        let rows = found.iter().map(|one| ui::ProfileRow {
            name: one.name.clone(),
            runs: one.profile.as_ref().map_or("-", |p| p.runs.as_str()).to_owned(),
            seen: one.profile.as_ref().ok().and_then(|p| p.seen.clone()),
            source: one.source.to_string(),
            about: one.profile.as_ref().map_or_else(ToString::to_string, |p| p.about.clone()),
        });
        ui::profile_table(rows, setup.out.paint)
    })?;
    Ok(Exit::DONE)
}

fn entry(one: &ListedProfile) -> Value {
    match &one.profile {
        Ok(profile) => json!({
            "name": one.name, "source": one.source.to_string(), "about": profile.about, "runs": profile.runs,
            "reads_mail": profile.reads_mail, "seen": profile.seen,
        }),
        Err(e) => {
            json!({ "name": one.name, "source": one.source.to_string(), "problem": e.to_string() })
        }
    }
}

fn show(setup: &Setup, name: &str) -> VerbResult {
    let found = profiles::listed(&setup.ctx, name)?;
    let profile: Profile = found.profile?;
    setup.out.print(&profile, || text::block(&found.text))?;
    Ok(Exit::DONE)
}

fn test(setup: &Setup, args: TestArgs) -> VerbResult {
    let profile = profiles::find(&setup.ctx, &args.name)?;
    match &args.screen {
        Some(file) => {
            let mut screen = Screen::new(args.rows, args.cols);
            screen.feed(&recording(file)?);
            let look = screen.look(AT_REST_MS);
            let finding = judge(&profile, &look);
            let is_unknown = finding.state == ScreenState::Unknown;
            let nearest = if is_unknown { nearest(&profile, &look) } else { None };
            let tested = TestedScreen { finding, nearest };
            setup.out.print(&tested, || tested.describe())?;
        }
        None => watch(setup, profile, args)?,
    }
    Ok(Exit::DONE)
}

/// The verdict about a recording.
#[derive(Serialize)]
struct TestedScreen {
    #[serde(flatten)]
    finding: ScreenFinding,
    /// The rule that comes closest, if none fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<NearMiss>,
}

impl TestedScreen {
    fn describe(&self) -> String {
        let near = self.nearest.iter().map(|near| format!("\nnearest rule {}", near.describe()));
        line(&self.finding) + &near.collect::<String>()
    }
}

fn recording(file: &Path) -> Result<Vec<u8>, Failure> {
    let bytes =
        fs::read(file, LARGEST).map_err(|e| Failure::new(Kind::Usage, e.to_string(), None))?;
    bytes.ok_or_else(|| {
        Failure::new(Kind::Usage, format!("there is no file {}", file.display()), None)
    })
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
            printed = setup.out.print(&document, words);
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
    let composer = match &finding.composer {
        Composer::Empty => "; composer empty".to_owned(),
        Composer::Holds(words) => format!("; composer holds {:?}", text::short(words, 60)),
        Composer::Unknown => String::new(),
    };
    format!("{}{rule}: {}{composer}", finding.state, text::line(&finding.evidence))
}
