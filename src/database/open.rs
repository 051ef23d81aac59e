//! Ways to open the shared store, and to set its database up.

use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;
#[cfg(test)]
use std::time::Duration;

use tokio::runtime::Builder;
use tokio_postgres::Client;

use super::calls::Database;
use super::client::{BrokerLink, BrokerPlace};
#[cfg(test)]
use super::direct::DirectLink;
#[cfg(test)]
use super::engine::PATIENCE;
use super::error::DatabaseError;
use super::schema;
use super::session::{self, CallFailure};
use super::transport::Transport;
use super::url::StoreUrl;

/// How the broker of a host is started: `PROGRAM ARGS… SOCKET`.
#[derive(Debug, Clone)]
pub(crate) struct BrokerCommand {
    pub(crate) program: std::path::PathBuf,
    /// Arguments before the path of the socket.
    pub(crate) args: Vec<OsString>,
    /// Its environment, without the address of the store.
    pub(crate) env: Vec<(OsString, OsString)>,
}

/// The state of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchemaReport {
    /// The version of PostgreSQL, as it reports it.
    pub(crate) server: String,
    /// The version of the schema that is applied, 0 for none.
    pub(crate) version: i64,
    /// The version that this release needs.
    pub(crate) known: i64,
}

impl Database {
    /// Uses the broker of this host, whose socket is in `socket_dir`, and starts it when it is
    /// needed. Connects with the first call.
    pub(crate) fn connect(url: &StoreUrl, socket_dir: &Path, command: &BrokerCommand) -> Database {
        let names = url.variables();
        let is_other = |(name, _): &&(OsString, OsString)| names.iter().all(|(own, _)| own != name);
        let others: Vec<_> = command.env.iter().filter(is_other).cloned().collect();
        let place = BrokerPlace {
            socket: socket_dir.join(&url.digest()[..16]).with_extension("sock"),
            program: command.program.clone(),
            args: command.args.clone(),
            env: others.into_iter().chain(names.clone()).collect(),
        };
        Database::new(Transport::broker(BrokerLink::new(place)))
    }

    /// Connects from this process, without a broker.
    #[cfg(test)]
    pub(crate) fn direct(url: &StoreUrl) -> Result<Database, DatabaseError> {
        Database::direct_for(url, PATIENCE)
    }

    /// As [`Database::direct`]; a call fails after `patience`.
    #[cfg(test)]
    pub(super) fn direct_for(
        url: &StoreUrl,
        patience: Duration,
    ) -> Result<Database, DatabaseError> {
        Ok(Database::new(Transport::direct(DirectLink::start(url, patience)?)))
    }

    /// Sets the database up, or upgrades it. Returns its state before and after.
    ///
    /// # Errors
    /// [`DatabaseError::TooNew`] if a newer release has set it up.
    pub(crate) fn init(url: &StoreUrl) -> Result<(SchemaReport, SchemaReport), DatabaseError> {
        on_client(url, async |client, url| {
            let before = report(client, url).await?;
            refuse_newer(&before, url)?;
            schema::upgrade(client).await.map_err(|e| failed(&e, url, "init"))?;
            Ok((before, report(client, url).await?))
        })
    }

    /// Returns the state of a database.
    pub(crate) fn check(url: &StoreUrl) -> Result<SchemaReport, DatabaseError> {
        on_client(url, async |client, url| report(client, url).await)
    }
}

fn refuse_newer(report: &SchemaReport, url: &StoreUrl) -> Result<(), DatabaseError> {
    let (found, known) = (report.version, report.known);
    if found <= known {
        return Ok(());
    }
    Err(DatabaseError::TooNew { place: url.place(), found, known })
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
    let (sender, result) = sync_channel(1);
    let own = url.clone();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let result = match runtime {
            Ok(runtime) => runtime.block_on(async {
                let (mut client, link) =
                    session::open(&own).await.map_err(|failure| lasting(failure, &own))?;
                tokio::spawn(link);
                work(&mut client, &own).await
            }),
            Err(e) => Err(lasting(CallFailure::Lost(e.to_string()), &own)),
        };
        let _ = sender.send(result);
    });
    result.recv().map_err(|_| DatabaseError::bad_reply("connect", &"its thread has ended"))?
}

/// Runs SQL statements for tests. Returns the columns of the rows as text.
#[cfg(feature = "testing")]
pub(crate) fn execute(
    url: &StoreUrl,
    sql: &str,
) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
    let sql = sql.to_owned();
    on_client(url, async move |client, url| {
        let messages = client.simple_query(&sql).await.map_err(|e| failed(&e, url, &sql))?;
        let columns = |row: &tokio_postgres::SimpleQueryRow| {
            (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect()
        };
        let rows = messages.iter().filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => Some(columns(row)),
            _ => None,
        });
        Ok(rows.collect())
    })
}
