//! PostgreSQL for tests: a database of its own for each test, and private clusters for tests that
//! restart the server.
//!
//! `PHALANX_TEST_POSTGRES` holds the address of a server and a superuser, which `scripts/test`
//! sets. Without it, each test starts a cluster. Without an installed PostgreSQL, the test is
//! skipped.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::calls::Database;
use super::open::execute;
use super::url::StoreUrl;
use sys::exec::{self, ExecCommand};
use sys::{env, fs, rand};

const DEADLINE: Duration = Duration::from_secs(60);

/// Debian's folder of versions.
const INSTALLED: &str = "/usr/lib/postgresql";

/// A database that no other test uses, dropped at the end.
#[derive(Debug)]
pub struct TestDatabase {
    /// Ends after the database is dropped.
    cluster: Option<TestCluster>,
    admin: String,
    name: String,
}

impl TestDatabase {
    /// Creates a database with the schema. Returns `None`, and reports the test as skipped, if
    /// PostgreSQL is not installed.
    pub fn create() -> Option<TestDatabase> {
        let made = TestDatabase::empty()?;
        Database::init(&made.store_url()).expect("the schema applies to an empty database");
        Some(made)
    }

    /// As [`TestDatabase::create`], without the schema.
    pub fn empty() -> Option<TestDatabase> {
        match env::var("PHALANX_TEST_POSTGRES") {
            Some(admin) => Some(TestDatabase::on(None, admin.into_string().expect("UTF-8"))),
            None => TestCluster::start(&[]).map(TestDatabase::of),
        }
    }

    /// Creates an empty database on a cluster of its own.
    pub fn of(cluster: TestCluster) -> TestDatabase {
        let admin = cluster.admin();
        TestDatabase::on(Some(cluster), admin)
    }

    fn on(cluster: Option<TestCluster>, admin: String) -> TestDatabase {
        let name = format!("phalanx_test_{}", rand::uuid().replace('-', ""));
        let made = TestDatabase { cluster, admin, name };
        made.administer(&format!("create database {}", made.name));
        made
    }

    /// Returns the address of the database.
    pub fn url(&self) -> String {
        let (address, query) = self.admin.split_once('?').unwrap_or((&self.admin, ""));
        let (server, _) = address.rsplit_once('/').expect("an address names a database");
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        format!("{server}/{}{query}", self.name)
    }

    pub fn store_url(&self) -> StoreUrl {
        StoreUrl::parse(&self.url()).expect("a valid address")
    }

    /// Returns the private cluster.
    ///
    /// # Panics
    /// Panics if the database is on a shared one.
    #[cfg(test)]
    pub(crate) fn cluster(&self) -> &TestCluster {
        self.cluster.as_ref().expect("the database has a cluster of its own")
    }

    /// Runs SQL statements. Returns the columns of the rows as text.
    pub fn execute(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        execute(&self.store_url(), sql).unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    fn administer(&self, sql: &str) {
        let admin = StoreUrl::parse(&self.admin).expect("a valid address");
        execute(&admin, sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if self.cluster.is_none() {
            self.administer(&format!("drop database if exists {} with (force)", self.name));
        }
    }
}

/// A server of its own, on a loopback port and a private directory, stopped and removed at the end.
#[derive(Debug)]
pub struct TestCluster {
    bin: PathBuf,
    root: PathBuf,
    port: u16,
    options: String,
    /// The command line that the server is started through; empty for this namespace.
    enter: Vec<OsString>,
}

impl TestCluster {
    /// Starts a server. `settings` are those of `postgresql.conf`, as `name=value`. Returns `None`,
    /// and reports the test as skipped, if PostgreSQL is not installed.
    pub fn start(settings: &[&str]) -> Option<TestCluster> {
        TestCluster::start_through(&[], settings)
    }

    /// As [`TestCluster::start`], in the network namespace that the command line `enter` enters.
    /// The server listens on all addresses there, and trusts them.
    pub fn start_through(enter: &[&str], settings: &[&str]) -> Option<TestCluster> {
        let Some(bin) = installed() else {
            skip_without("PostgreSQL is missing (package postgresql)");
            return None;
        };
        let cluster = TestCluster::stopped(bin, enter, settings);
        let data = cluster.data();
        let arguments = ["-D", &data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"];
        cluster.run("initdb", &[&arguments[..], &["--no-sync"]].concat());
        if !enter.is_empty() {
            let rules = cluster.root.join("data/pg_hba.conf");
            fs::append_line(&rules, b"host all all 0.0.0.0/0 trust").expect("a writable file");
        }
        cluster.start_again();
        Some(cluster)
    }

    /// Starts a standby of this server, which follows it by streaming replication. `settings` as
    /// for [`TestCluster::start`].
    pub fn start_standby(&self, settings: &[&str]) -> TestCluster {
        let enter: Vec<&str> = self.enter.iter().filter_map(|word| word.to_str()).collect();
        let standby = TestCluster::stopped(self.bin.clone(), &enter, settings);
        let (here, port) = (self.root.display().to_string(), self.port.to_string());
        let from = ["-h", &here, "-p", &port, "-U", "postgres", "-D", &standby.data()];
        let how = ["-R", "-X", "stream", "-c", "fast", "--no-sync"];
        self.run("pg_basebackup", &[&from[..], &how].concat());
        standby.start_again();
        standby
    }

    /// Makes a standby the primary server.
    pub fn promote(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-w", "promote"]);
    }

    /// Runs SQL statements through the socket. Returns the rows as unaligned text.
    pub fn sql(&self, statements: &str) -> String {
        let (root, port) = (self.root.display().to_string(), self.port.to_string());
        let mut args = vec!["-h", &root, "-p", &port, "-U", "postgres", "-XAtq"];
        args.extend(["-v", "ON_ERROR_STOP=1", "-c", statements]);
        self.run("psql", &args)
    }

    /// Returns a server without data that does not run.
    fn stopped(bin: PathBuf, enter: &[&str], settings: &[&str]) -> TestCluster {
        let made =
            run_as_owner(&[], ["mktemp", "-d", "/tmp/phalanx-postgres.XXXXXX"].map(OsString::from));
        let root = PathBuf::from(made.trim());
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("loopback has a free port").port();
        let (shown, addresses) = (root.display(), if enter.is_empty() { "127.0.0.1" } else { "*" });
        let mut options = format!(
            "-k {shown} -p {port} -c listen_addresses={addresses} -c fsync=off \
             -c max_connections=300"
        );
        for setting in settings {
            options.push_str(" -c ");
            options.push_str(setting);
        }
        let enter = enter.iter().map(OsString::from).collect();
        TestCluster { bin, root, port, options, enter }
    }

    /// Returns the directory, which belongs to the owner of the server.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn admin(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    fn data(&self) -> String {
        self.root.join("data").display().to_string()
    }

    /// Runs a program as the owner of the server. Returns its standard output.
    #[cfg(test)]
    pub(crate) fn run_tool(&self, argv: &[&str]) -> String {
        run_as_owner(&[], argv.iter().map(OsString::from))
    }

    /// Starts the server after [`TestCluster::stop`].
    pub fn start_again(&self) {
        let log = self.root.join("log").display().to_string();
        let args = ["-D", &self.data(), "-w", "-l", &log, "-o", &self.options, "start"];
        self.run_through(&self.enter, "pg_ctl", &args);
    }

    /// Stops the server in a `pg_ctl` mode: `smart`, `fast` or `immediate`.
    pub fn stop(&self, mode: &str) {
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-m", mode, "stop"]);
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        self.run_through(&[], program, arguments)
    }

    fn run_through(&self, enter: &[OsString], program: &str, arguments: &[&str]) -> String {
        let program = std::iter::once(self.bin.join(program).into_os_string());
        run_as_owner(enter, program.chain(arguments.iter().map(OsString::from)))
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        if fs::exists(&self.root.join("data/postmaster.pid")) {
            self.stop("immediate");
        }
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Returns the programs of the newest version.
fn installed() -> Option<PathBuf> {
    let versions = fs::names(Path::new(INSTALLED)).ok()?;
    let newest = versions.into_iter().filter_map(|name| name.parse::<u32>().ok()).max()?;
    let bin = Path::new(INSTALLED).join(newest.to_string()).join("bin");
    fs::exists(&bin.join("initdb")).then_some(bin)
}

/// Runs a command as the user that owns the server: PostgreSQL does not run as root. `enter` is
/// the start of the command line, with the rights of this process.
fn run_as_owner(enter: &[OsString], command: impl IntoIterator<Item = OsString>) -> String {
    let is_root = env::effective_uid() == 0;
    let prefix: &[&str] = if is_root { &["runuser", "-u", "postgres", "--"] } else { &[] };
    let mut argv = enter.iter().cloned().chain(prefix.iter().map(OsString::from)).chain(command);
    let program = argv.next().expect("a program");
    let args: Vec<OsString> = argv.collect();
    let cmd =
        ExecCommand { program, args, env: None, cwd: Some(PathBuf::from("/")), stdin: Vec::new() };
    let output = exec::run(&cmd, DEADLINE).unwrap_or_else(|e| panic!("{cmd:?}: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(output.code, Some(0), "{cmd:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Reports that the calling test lacks a tool. `scripts/test` lists these reports at its end, from
/// the file that `PHALANX_SKIPPED` names. In CI a missing tool is a failure.
fn skip_without(tool: &str) {
    let is_ci = env::var("CI").is_some_and(|value| value == "true");
    assert!(!is_ci, "CI must not skip this test: {tool}");
    let thread = std::thread::current();
    let line = format!("{}: {tool}", thread.name().unwrap_or("a test"));
    eprintln!("SKIPPED {line}");
    if let Some(path) = env::var("PHALANX_SKIPPED") {
        let appended = fs::append_line(&PathBuf::from(path), line.as_bytes());
        appended.expect("the file of PHALANX_SKIPPED is writable");
    }
}
