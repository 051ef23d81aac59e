//! The `store` subcommands: set up and check a shared store.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use serde_json::json;

use super::fail::{Exit, Failure, VerbResult};
use super::setup::{self, Setup};
use crate::database::{self, Database, SchemaReport};
use crate::ops::Kind;
use crate::ops::authority::{Action, enter_without_team};
use crate::store::StoreError;

/// Time after which a broker without clients exits.
const IDLE: Duration = Duration::from_secs(60);

#[derive(Debug, Subcommand)]
pub(super) enum StoreVerb {
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
    /// Serve the processes of this host, which start it themselves.
    #[command(hide = true)]
    Serve {
        /// Path of the socket.
        socket: PathBuf,
    },
}

pub(super) fn store(setup: &Setup, verb: &StoreVerb) -> VerbResult {
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
            print(setup, &after, &format!("{url}: {what}"))
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
            print(setup, &report, &format!("{url}: ready"))
        }
        StoreVerb::Serve { socket } => {
            let url = setup::store_url(setup, None)?;
            database::serve(socket, &url, IDLE).map_err(StoreError::from)?;
            Ok(Exit::DONE)
        }
    }
}

fn print(setup: &Setup, report: &SchemaReport, what: &str) -> VerbResult {
    let document = json!({ "schema": report.version, "server": report.server });
    setup.out.print(&document, || {
        format!("{what} (schema {}, PostgreSQL {})\n", report.version, report.server)
    })?;
    Ok(Exit::DONE)
}
