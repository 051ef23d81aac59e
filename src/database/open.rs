//! Ways to open the shared store, and to set its database up.

use std::path::Path;
use std::thread;

use tokio::runtime::Builder;
use tokio_postgres::Client;

use super::calls::Database;
use super::client::{BrokerCommand, BrokerLink};
use super::error::DatabaseError;
use super::schema;
use super::session::{self, CallFailure};
use super::url::StoreUrl;

/// The state of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaReport {
    /// The version of PostgreSQL, as it reports it.
    pub server: String,
    /// The version of the schema that is applied, 0 for none.
    pub version: i64,
    /// The version that this release needs.
    pub known: i64,
}

impl Database {
    /// Uses the broker of this host, whose socket is in `socket_dir`, and starts it when it is
    /// needed. Connects with the first call.
    pub fn connect(url: &StoreUrl, socket_dir: &Path, command: &BrokerCommand) -> Database {
        let mut command = command.clone();
        let variables = url.variables();
        command.env.retain(|(name, _)| variables.iter().all(|(own, _)| own != name));
        command.env.extend(variables);
        Database::new(BrokerLink::new(url.socket_in(socket_dir), command))
    }

    /// Sets the database up, or upgrades it. Returns its state before and after.
    ///
    /// # Errors
    /// [`DatabaseError::TooNew`] if a newer release has set it up.
    pub fn init(url: &StoreUrl) -> Result<(SchemaReport, SchemaReport), DatabaseError> {
        on_client(url, async |client, url| {
            let before = report(client, url).await?;
            let SchemaReport { version: found, known, .. } = before;
            if found > known {
                return Err(DatabaseError::TooNew { place: url.place(), found, known });
            }
            schema::upgrade(client).await.map_err(|e| failed(&e, url, "init"))?;
            Ok((before, report(client, url).await?))
        })
    }

    /// Returns the state of a database.
    pub fn check(url: &StoreUrl) -> Result<SchemaReport, DatabaseError> {
        on_client(url, async |client, url| report(client, url).await)
    }
}

async fn report(client: &Client, url: &StoreUrl) -> Result<SchemaReport, DatabaseError> {
    let fail = |e: tokio_postgres::Error| failed(&e, url, "check");
    let row = client.query_typed_one("show server_version", &[]).await.map_err(fail)?;
    let version = schema::version(client).await.map_err(fail)?.unwrap_or(0);
    Ok(SchemaReport { server: row.get(0), version, known: schema::NEWEST })
}

fn failed(error: &tokio_postgres::Error, url: &StoreUrl, function: &str) -> DatabaseError {
    lasting(session::call_failure(error, url, function), url)
}

fn lasting(failure: CallFailure, url: &StoreUrl) -> DatabaseError {
    let last = match failure {
        CallFailure::Final(error) => return error,
        CallFailure::Lost(reason) => reason,
        CallFailure::Conflict => "the transaction conflicts with others".to_owned(),
    };
    DatabaseError::Unreachable { place: url.place(), seconds: 0, last }
}

/// Runs `work` with a connection of its own, on a thread of its own: the caller may be inside a
/// runtime.
pub(super) fn on_client<T: Send + 'static>(
    url: &StoreUrl,
    work: impl AsyncFnOnce(&mut Client, &StoreUrl) -> Result<T, DatabaseError> + Send + 'static,
) -> Result<T, DatabaseError> {
    let own = url.clone();
    let working = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| lasting(CallFailure::Lost(e.to_string()), &own))?;
        runtime.block_on(async {
            let opened = session::open(&own).await;
            let (mut client, link) = opened.map_err(|failure| lasting(failure, &own))?;
            tokio::spawn(link);
            work(&mut client, &own).await
        })
    });
    working.join().map_err(|_| DatabaseError::bad_reply("connect", &"its thread has failed"))?
}
