//! The `store` subcommands: set up and check a shared store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use serde_json::{Value, json};

use crate::fail::{Exit, Failure, VerbResult};
use crate::setup::{self, Setup};
use database::{self, Database, SchemaReport};
use ops::authority::{Action, enter, enter_without_team};
use ops::team::transfer::{self, TransferredTeam};
use ops::{Kind, Store};
use store::StoreError;
use sys::fs;

/// Time after which a broker without clients exits.
const IDLE: Duration = Duration::from_secs(60);

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum StoreVerb {
    /// Set a database up for teams, or upgrade it to this release.
    #[command(after_help = "Example:\n  phalanx store init postgres://ann@db.example/phalanx")]
    Init {
        /// Address of the database [default: $PHALANX_STORE].
        url: Option<String>,
    },
    /// Check that a database can be reached and fits this release.
    Check {
        /// Address of the database [default: $PHALANX_STORE].
        url: Option<String>,
    },
    /// Copy a team from the shared store to files, for a team without a lead and running members.
    ///
    /// The directory becomes a config directory (`--config-dir`) with this team. The team stays in
    /// the store.
    #[command(after_help = "Example:\n  phalanx store export demo backup/")]
    Export {
        /// The team.
        #[arg(value_name = "TEAM", conflicts_with = "team")]
        name: String,
        /// The config directory to write to.
        dir: PathBuf,
    },
    /// Copy a team of files to the shared store, for a team without a lead and running members.
    ///
    /// The team's files stay where they are.
    #[command(after_help = "Example:\n  phalanx store import demo backup/")]
    Import {
        /// The team.
        #[arg(value_name = "TEAM", conflicts_with = "team")]
        name: String,
        /// The config directory of the team's files, another one than that in use.
        dir: PathBuf,
        /// Address of the database [default: $PHALANX_STORE].
        url: Option<String>,
    },
    /// Serve the processes of this host, which start it themselves.
    #[command(hide = true)]
    Serve {
        /// Path of the socket.
        socket: PathBuf,
    },
}

pub(crate) fn store(setup: &Setup, verb: &StoreVerb) -> VerbResult {
    match verb {
        StoreVerb::Init { url } => {
            enter_without_team(&setup.ctx, Action::UseHosts)?;
            let url = setup::store_url(setup, url.as_deref())?;
            let (before, after) = Database::init(&url).map_err(StoreError::from)?;
            let what = match before.version {
                0 => "set up".to_owned(),
                same if same == after.version => "is set up already".to_owned(),
                older => format!("upgraded from schema {older}"),
            };
            setup.out.confirm(&document(&after), || schema_line(&after, &format!("{url}: {what}")))
        }
        StoreVerb::Check { url } => {
            enter_without_team(&setup.ctx, Action::UseHosts)?;
            let url = setup::store_url(setup, url.as_deref())?;
            let report = Database::check(&url).map_err(StoreError::from)?;
            if report.version != report.known {
                let problem = match report.version {
                    0 => format!("{url} is not set up for phalanx"),
                    found => format!(
                        "{url} has schema {found}, and this release needs schema {}",
                        report.known
                    ),
                };
                let hint = if report.version > report.known {
                    "install the newer phalanx on this host"
                } else {
                    "run `phalanx store init`"
                };
                return Err(Failure::new(Kind::Refused, problem, Some(hint.to_owned())));
            }
            setup.out.print(&document(&report), || schema_line(&report, &format!("{url}: ready")))
        }
        StoreVerb::Export { name, dir } => {
            let team = setup.team_called(Some(name), Action::UseHosts)?;
            if !team.is_shared() {
                let problem = format!("team `{}` is not in a shared store", team.name());
                return Err(Failure::usage(problem, "its files can be copied as they are"));
            }
            let target = setup.ctx.store.under(Path::new(&setup.absolute(dir)?));
            let copied = transfer::copy(&team, &target)?;
            confirm(setup, &copied, &format!("to {}", dir.display()))
        }
        StoreVerb::Import { name, dir, url } => {
            enter_without_team(&setup.ctx, Action::UseHosts)?;
            let url = setup::store_url(setup, url.as_deref())?;
            let from = PathBuf::from(setup.absolute(dir)?);
            if fs::canonical(&from).ok() == fs::canonical(setup.ctx.store.root()).ok() {
                let hint = "copy its `teams` and `tasks` elsewhere, and delete the team here";
                return Err(Failure::usage("the directory is that of this host's teams", hint));
            }
            let (address, password) = url.parts();
            let target = setup.ctx.store.joining(&address, password.as_deref(), None)?;
            let source = Store::at(&from);
            let team = source.team(&source.find(name)?)?;
            enter(&setup.ctx, &team, Action::UseHosts, &[])?;
            let copied = transfer::copy(&team, &target)?;
            confirm(setup, &copied, &format!("to {url}"))
        }
        StoreVerb::Serve { socket } => {
            let url = setup::store_url(setup, None)?;
            database::serve(socket, &url, IDLE).map_err(StoreError::from)?;
            Ok(Exit::DONE)
        }
    }
}

fn confirm(setup: &Setup, copied: &TransferredTeam, target: &str) -> VerbResult {
    setup.out.confirm(copied, || {
        let TransferredTeam { team, tasks, messages } = copied;
        format!("copied team {team} {target}, with its tasks ({tasks}) and messages ({messages})")
    })
}

fn document(report: &SchemaReport) -> Value {
    json!({ "schema": report.version, "server": report.server })
}

fn schema_line(report: &SchemaReport, what: &str) -> String {
    format!("{what} (schema {}, PostgreSQL {})", report.version, report.server)
}
