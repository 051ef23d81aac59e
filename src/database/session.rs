//! One connection to the database, and what an error of it means for a call.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::{DatabaseError, with_causes};
use super::url::StoreUrl;
use super::{schema, tls};
use sys::clock;

/// Limit of a connection attempt with TLS and login. Resolving a name has no limit of its own.
const OPENING: Duration = Duration::from_secs(15);

/// The server notices a vanished client as early as the client a vanished server, so that a lease
/// of a host that is cut off can be acquired elsewhere. Planning would cost more than most
/// statements themselves, so plans are kept. One that was made while a table was small must not
/// scan it later.
const SETTINGS: &str = "set client_min_messages = warning; set statement_timeout = '25s';
    set default_transaction_isolation = 'read committed'; set jit = off;
    set plan_cache_mode = force_generic_plan; set enable_seqscan = off;
    set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 3; set tcp_keepalives_count = 3;
    set tcp_user_timeout = 15000";

pub(super) type Tls = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
pub(super) type Link = Connection<Socket, Tls>;

/// The reason for which a connection or a call failed.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// The connection is lost, or the server does not accept changes: try on a new one.
    Lost(String),
    /// The transaction was rolled back because of another one: try again.
    Conflict,
    /// Another attempt would fail as well.
    Final(DatabaseError),
}

/// Opens a connection. The caller must drive it.
pub(super) async fn open(url: &StoreUrl) -> Result<(Client, Link), CallFailure> {
    let connector = tls::connector(url).map_err(CallFailure::Final)?;
    match timeout(OPENING, url.config().connect(connector)).await {
        Ok(Ok(pair)) => Ok(pair),
        Ok(Err(e)) => Err(opening_failure(&e, url)),
        Err(_) => Err(CallFailure::Lost(format!("no connection within {} s", OPENING.as_secs()))),
    }
}

/// Smaller differences of clocks are those of clocks that are kept right.
const RIGHT_MS: u64 = 100;

/// Sets a new connection up and checks the version of the schema. Returns the clock of the server
/// minus the clock of this machine, in milliseconds; 0 if that is less than what can be measured.
pub(super) async fn set_up(client: &Client, url: &StoreUrl) -> Result<i64, CallFailure> {
    let fail = |e: Error| call_failure(&e, url, "connect");
    client.batch_execute(SETTINGS).await.map_err(fail)?;
    let (place, known) = (url.place(), schema::NEWEST);
    Err(CallFailure::Final(match schema::version(client).await.map_err(fail)? {
        Some(found) if found == known => return clock_offset(client).await.map_err(fail),
        None => DatabaseError::NotInitialized { place },
        Some(found) if found < known => DatabaseError::TooOld { place, found, known },
        Some(found) => DatabaseError::TooNew { place, found, known },
    }))
}

async fn clock_offset(client: &Client) -> Result<i64, Error> {
    let before_ms = clock::machine_ms();
    let sql = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";
    let server_ms: i64 = client.query_typed_one(sql, &[]).await?.get(0);
    let took_ms = clock::machine_ms().saturating_sub(before_ms);
    let here_ms = i64::try_from(before_ms + took_ms / 2).unwrap_or(i64::MAX);
    let offset_ms = server_ms.saturating_sub(here_ms);
    let is_right = offset_ms.unsigned_abs() <= RIGHT_MS + took_ms / 2;
    Ok(if is_right { 0 } else { offset_ms })
}

/// Calls a function of the schema. Returns its reply as JSON text.
pub(super) async fn call(
    client: &Client,
    url: &StoreUrl,
    function: &str,
    arguments: &str,
) -> Result<String, CallFailure> {
    // A typed query needs one round trip also the first time, unlike a prepared statement. The
    // server parses this line in microseconds, and keeps the plans of the function's body.
    let sql = format!("select phalanx.{function}($1::text::jsonb)::text");
    match client.query_typed_one(&sql, &[(&arguments, Type::TEXT)]).await {
        Ok(row) => Ok(row.get::<_, Option<String>>(0).unwrap_or_else(|| "null".to_owned())),
        Err(e) => Err(call_failure(&e, url, function)),
    }
}

fn opening_failure(error: &Error, url: &StoreUrl) -> CallFailure {
    let (place, reason) = (url.place(), with_causes(error));
    let Some(code) = error.code() else {
        let text = error.to_string();
        let is_network = has_io_cause(error);
        return if text.contains("TLS") && !is_network {
            CallFailure::Final(DatabaseError::Tls { place, reason })
        } else if text.contains("authentication") || text.contains("configuration") {
            CallFailure::Final(DatabaseError::Login { place, reason })
        } else {
            CallFailure::Lost(reason)
        };
    };
    let is_refused = *code == SqlState::INVALID_PASSWORD
        || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION
        || *code == SqlState::INVALID_CATALOG_NAME
        || *code == SqlState::INSUFFICIENT_PRIVILEGE;
    if is_refused {
        CallFailure::Final(DatabaseError::Login { place, reason })
    } else {
        CallFailure::Lost(reason)
    }
}

/// Returns true for the loss of a connection in the midst of a handshake.
fn has_io_cause(error: &Error) -> bool {
    use std::error::Error as _;
    use std::io::ErrorKind;
    let cause = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.is_some_and(|e| {
        matches!(
            e.kind(),
            ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::TimedOut
                | ErrorKind::UnexpectedEof
        )
    })
}

pub(super) fn call_failure(error: &Error, url: &StoreUrl, function: &str) -> CallFailure {
    let Some(state) = error.as_db_error() else { return CallFailure::Lost(with_causes(error)) };
    let (place, team) = (url.place(), state.message().to_owned());
    let code = state.code().code();
    let is_away = ["08", "57P", "58"].iter().any(|class| code.starts_with(class))
        || *state.code() == SqlState::TOO_MANY_CONNECTIONS
        // The server has become a standby.
        || *state.code() == SqlState::READ_ONLY_SQL_TRANSACTION;
    match code {
        "PX001" => CallFailure::Final(DatabaseError::Fenced { team }),
        "PX002" => CallFailure::Final(DatabaseError::LeaseLost { team }),
        "PX003" => CallFailure::Final(DatabaseError::NoSuchTeam { team }),
        "40001" | "40P01" => CallFailure::Conflict,
        "3F000" | "42883" => CallFailure::Final(DatabaseError::NotInitialized { place }),
        _ if is_away => CallFailure::Lost(state.message().to_owned()),
        _ => CallFailure::Final(DatabaseError::Refused {
            place,
            function: function.to_owned(),
            reason: state.message().to_owned(),
            code: code.to_owned(),
        }),
    }
}
