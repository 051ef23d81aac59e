//! Setting a database up, logins and TLS.

use super::*;
use crate::DatabaseError;
use crate::fixture::TestCluster;
use crate::open::on_client;

#[test]
fn database_is_set_up_once_and_checked_by_each_connection() {
    let Some(database) = TestDatabase::empty() else { return };
    let url = database.store_url();
    let db = connect(&database);
    let place = url.place();
    assert_eq!(db.teams().unwrap_err(), DatabaseError::NotInitialized { place: place.clone() });
    assert_eq!(Database::check(&url).unwrap().version, 0);
    // Several hosts at once.
    let reports = std::thread::scope(|scope| {
        let inits: Vec<_> = (0..4).map(|_| scope.spawn(|| Database::init(&url))).collect();
        inits.into_iter().map(|init| init.join().unwrap().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(reports.iter().filter(|(before, _)| before.version == 0).count().min(1), 1);
    assert!(reports.iter().all(|(_, after)| after.version == after.known));
    assert!(db.teams().unwrap().is_empty(), "the same connection works from now on");
    let (before, after) = Database::init(&url).unwrap();
    assert_eq!(before, after);

    database.execute("insert into phalanx.schema_version (version) values (99)");
    let too_new = DatabaseError::TooNew { place, found: 99, known: after.known };
    assert_eq!(Database::init(&url).unwrap_err(), too_new);
    let error = connect(&database).teams().unwrap_err();
    assert_eq!(error, too_new);
    assert!(error.to_string().contains("version 99"), "{error}");
}

#[test]
fn unreachable_and_unknown_databases_are_named() {
    let Some(database) = TestDatabase::empty() else { return };
    let url = StoreUrl::parse("postgres://ann:s3cret@127.0.0.1:1/agents").unwrap();
    let db = Database::direct_for(&url, Duration::from_millis(300));
    let error = db.teams().unwrap_err();
    assert!(matches!(error, DatabaseError::Unreachable { .. }), "{error:?}");
    let shown = error.to_string();
    assert!(shown.contains("127.0.0.1:1/agents") && shown.contains("refused"), "{shown}");
    assert!(!shown.contains("s3cret"), "{shown}");

    let absent = database.url().replace("phalanx_test_", "absent_");
    let db = Database::direct(&StoreUrl::parse(&absent).unwrap());
    let error = db.teams().unwrap_err();
    assert!(matches!(error, DatabaseError::Login { .. }), "{error:?}");
}

#[test]
fn calls_are_possible_inside_a_runtime() {
    let Some(stage) = stage() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(async { stage.db.teams() }).unwrap(), [TEAM]);
}

#[test]
fn tls_is_used_and_verified_as_the_address_demands() {
    let Some(cluster) = TestCluster::start(&[]) else { return };
    let database = TestDatabase::of(cluster);
    let cluster = database.cluster();
    let at = |name: &str| cluster.root().join(name).display().to_string();
    let (key, certificate) = (at("data/server.key"), at("data/server.crt"));
    cluster.run_tool(&[
        "openssl",
        "req",
        "-new",
        "-x509",
        "-days",
        "2",
        "-nodes",
        "-newkey",
        "rsa:2048",
        "-keyout",
        &key,
        "-out",
        &certificate,
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ]);
    cluster.run_tool(&["chmod", "600", &key]);
    database.execute("alter system set ssl = on");
    cluster.stop("fast");
    cluster.start_again();
    Database::init(&database.store_url()).unwrap();

    let encode = |path: &str| path.replace('/', "%2F");
    let root = encode(&certificate);
    let is_encrypted = |host: &str, query: &str| {
        let url = database.url().replace("127.0.0.1", host);
        let url = StoreUrl::parse(&format!("{url}?{query}")).unwrap();
        on_client(&url, async |client, _| {
            let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
            let row = client.query_typed_one(sql, &[]).await.expect("the server has the view");
            Ok(row.get::<_, bool>(0))
        })
    };
    assert_eq!(is_encrypted("127.0.0.1", "sslmode=disable"), Ok(false));
    assert_eq!(is_encrypted("127.0.0.1", "sslmode=prefer"), Ok(true));
    assert_eq!(is_encrypted("127.0.0.1", "sslmode=require"), Ok(true));
    let verified = |mode: &str| format!("sslmode={mode}&sslrootcert={root}");
    assert_eq!(is_encrypted("localhost", &verified("verify-full")), Ok(true));
    assert_eq!(is_encrypted("127.0.0.1", &verified("verify-ca")), Ok(true));
    for (host, query) in [
        ("127.0.0.1", verified("verify-full")),
        ("localhost", "sslmode=verify-full".to_owned()),
        ("localhost", "sslmode=verify-full&sslrootcert=%2Fabsent".to_owned()),
    ] {
        let error = is_encrypted(host, &query).unwrap_err();
        assert!(matches!(error, DatabaseError::Tls { .. }), "{query}: {error:?}");
    }

    // The whole engine over TLS.
    let url =
        format!("{}?{}", database.url().replace("127.0.0.1", "localhost"), verified("verify-full"));
    let db = Database::direct(&StoreUrl::parse(&url).unwrap());
    assert!(db.create_team(TEAM, &[]).unwrap());
}
