//! The versions of the schema. Each one is a file of SQL that is applied once, in order, and never
//! changed after its release.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// The SQL of each version, the first one at index 0.
const VERSIONS: [&str; 1] = [include_str!("0001.sql")];

/// The version that this release needs.
pub(super) const NEWEST: i64 = VERSIONS.len() as i64;

/// Key of the advisory lock under which versions are applied.
const UPGRADE_LOCK: i64 = 8_099_894_826_475_520;

/// Returns the version of the schema; `None` if the database has none.
pub(super) async fn version(client: &Client) -> Result<Option<i64>, tokio_postgres::Error> {
    let sql = "select max(version) from phalanx.schema_version";
    match client.query_typed_one(sql, &[]).await {
        Ok(row) => row.try_get(0),
        Err(e) => match e.code() {
            Some(&(SqlState::UNDEFINED_TABLE | SqlState::INVALID_SCHEMA_NAME)) => Ok(None),
            _ => Err(e),
        },
    }
}

/// Applies the missing versions, each in a transaction.
pub(super) async fn upgrade(client: &mut Client) -> Result<(), tokio_postgres::Error> {
    // Two hosts may upgrade at once; `create … if not exists` fails in a race, too.
    client.execute_typed("select pg_advisory_lock($1)", &[(&UPGRADE_LOCK, INT8)]).await?;
    let applied = version(client).await?.unwrap_or(0);
    for (number, sql) in (1..).zip(VERSIONS).filter(|(number, _)| *number > applied) {
        let step = client.transaction().await?;
        if number == 1 {
            let versions = "create schema if not exists phalanx;
                create table phalanx.schema_version (
                    version bigint primary key,
                    applied_at timestamptz not null default now()
                )";
            step.batch_execute(versions).await?;
        }
        step.batch_execute(sql).await?;
        let insert = "insert into phalanx.schema_version (version) values ($1)";
        step.execute_typed(insert, &[(&number, INT8)]).await?;
        step.commit().await?;
    }
    client.execute_typed("select pg_advisory_unlock($1)", &[(&UPGRADE_LOCK, INT8)]).await?;
    Ok(())
}

const INT8: tokio_postgres::types::Type = tokio_postgres::types::Type::INT8;
