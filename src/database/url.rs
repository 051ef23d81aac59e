//! The address of the shared store: `postgres://USER@HOST:PORT/DATABASE?OPTIONS`.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::error::{DatabaseError, with_causes};
use model::digest;
use sys::fs;

/// Part of the digest, so that releases with another protocol use another broker.
const PROTOCOL: &[u8] = b"phalanx store 3";

/// Options that an address can override. Together the timeouts notice a cut network within about
/// 15 s.
const DEFAULTS: &str = "application_name=phalanx&connect_timeout=10&tcp_user_timeout=15\
    &keepalives_idle=5&keepalives_interval=3&keepalives_retries=3";

const PASSFILE_LIMIT: u64 = 1 << 20;

/// The check of the server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CertificateCheck {
    /// Encrypts only (`sslmode=prefer` and `require`, as in libpq).
    None,
    /// The certificate is signed by a trusted authority (`verify-ca`).
    Chain,
    /// It is also made out to the host of the address (`verify-full`).
    ChainAndName,
}

/// A parsed address. Its texts do not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    /// As given, with the password if it had one.
    text: String,
    config: Config,
    check: CertificateCheck,
    /// File with the certificates of trusted authorities; `None` for those of the system.
    roots: Option<PathBuf>,
    /// A password from outside of the address.
    password: Option<String>,
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
        write!(f, "postgres://{user}{}", self.place())
    }
}

impl StoreUrl {
    /// Parses an address. `sslmode` may be `disable`, `prefer`, `require`, `verify-ca` or
    /// `verify-full`; `sslrootcert` names a file of PEM certificates, or is `system`. The other
    /// options are those of tokio-postgres.
    ///
    /// # Errors
    /// [`DatabaseError::BadUrl`], which does not show the address, since it may hold a password.
    pub fn parse(text: &str) -> Result<StoreUrl, DatabaseError> {
        let bad = |reason: &str| DatabaseError::BadUrl { reason: reason.to_owned() };
        if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Err(bad("it does not begin with postgres:// or postgresql://"));
        }
        let (address, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => roots = Some(decode(value)?),
                _ => rest.push(option),
            }
        }
        let plain = format!("{address}?{DEFAULTS}&{}", rest.join("&"));
        let mut config: Config = plain.parse().map_err(|e| bad(&with_causes(&e)))?;
        let check = apply_mode(&mut config, mode, roots.is_some())?;
        check_hosts(&config)?;
        let roots = roots.filter(|path| path != "system").map(PathBuf::from);
        Ok(StoreUrl { text: text.to_owned(), config, check, roots, password: None })
    }

    /// Adds the password if the address has none: `given` (`PGPASSWORD`), or the entry of the
    /// passfile (`PGPASSFILE`, `~/.pgpass`). A passfile that other users can read is ignored, as by
    /// libpq.
    pub fn with_password(mut self, given: Option<&str>, passfile: Option<&Path>) -> StoreUrl {
        if self.config.get_password().is_some() {
            return self;
        }
        let found = given.map(str::to_owned).or_else(|| self.find_password(passfile?));
        if let Some(password) = &found {
            self.config.password(password);
        }
        self.password = found;
        self
    }

    fn find_password(&self, passfile: &Path) -> Option<String> {
        let about = fs::about(passfile).ok().flatten()?;
        if about.mode & 0o077 != 0 {
            return None;
        }
        let lines = fs::read(passfile, PASSFILE_LIMIT).ok().flatten()?;
        let (host, port) = self.first_host();
        let user = self.config.get_user().unwrap_or_default();
        let database = self.config.get_dbname().unwrap_or(user);
        let wanted = [host.as_str(), &port.to_string(), database, user];
        String::from_utf8_lossy(&lines).lines().find_map(|line| password_in(line, wanted))
    }

    /// Returns host, port and database, for messages.
    pub fn place(&self) -> String {
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        let (host, port) = self.first_host();
        format!("{host}:{port}/{database}")
    }

    fn first_host(&self) -> (String, u16) {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(dir)) => dir.display().to_string(),
            None => {
                self.config.get_hostaddrs().first().map(ToString::to_string).unwrap_or_default()
            }
        };
        (host, self.config.get_ports().first().copied().unwrap_or(5432))
    }

    /// Returns a name for files that belong to this address; the password is not part of it.
    fn digest(&self) -> String {
        let mut shown = self.config.clone();
        shown.password("");
        let checks = format!("{shown:?} {:?} {:?}", self.check, self.roots);
        digest::hash(&[PROTOCOL, checks.as_bytes()])
    }

    /// Returns the socket of the broker that connects to this address, in the directory of sockets.
    pub fn socket_in(&self, dir: &Path) -> PathBuf {
        dir.join(&self.digest()[..16]).with_extension("sock")
    }

    /// Returns the address as it was given, and a password from outside of it.
    pub fn parts(&self) -> (String, Option<String>) {
        (self.text.clone(), self.password.clone())
    }

    /// Returns the variables from which another process makes the same address.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let password = self.password.iter().map(|word| ("PGPASSWORD".into(), word.into()));
        std::iter::once(("PHALANX_STORE".into(), self.text.clone().into()))
            .chain(password)
            .collect()
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn check(&self) -> &CertificateCheck {
        &self.check
    }

    pub(super) fn roots(&self) -> Option<&Path> {
        self.roots.as_deref()
    }
}

fn apply_mode(
    config: &mut Config,
    mode: Option<&str>,
    has_roots: bool,
) -> Result<CertificateCheck, DatabaseError> {
    let (tls, check) = match mode.unwrap_or("prefer") {
        "disable" => (SslMode::Disable, CertificateCheck::None),
        "prefer" => (SslMode::Prefer, CertificateCheck::None),
        // libpq, too, verifies the chain if it is given an authority.
        "require" if has_roots => (SslMode::Require, CertificateCheck::Chain),
        "require" => (SslMode::Require, CertificateCheck::None),
        "verify-ca" => (SslMode::Require, CertificateCheck::Chain),
        "verify-full" => (SslMode::Require, CertificateCheck::ChainAndName),
        other => {
            let reason = format!(
                "sslmode {other:?} is not disable, prefer, require, verify-ca or verify-full"
            );
            return Err(DatabaseError::BadUrl { reason });
        }
    };
    // PostgreSQL has no TLS on Unix sockets.
    let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
    let is_local = is_local && config.get_hostaddrs().is_empty();
    config.ssl_mode(if is_local { SslMode::Disable } else { tls });
    Ok(check)
}

fn check_hosts(config: &Config) -> Result<(), DatabaseError> {
    let hosts = config.get_hosts();
    let is_strange = |host: &Host| matches!(host, Host::Tcp(name) if name.contains(['@', ' ']));
    let reason = if hosts.is_empty() && config.get_hostaddrs().is_empty() {
        "it names no host"
    } else if hosts.iter().any(is_strange) {
        "the host is not a host name; write `@` in a password as %40, `:` as %3A and `/` as %2F"
    } else {
        return Ok(());
    };
    Err(DatabaseError::BadUrl { reason: reason.to_owned() })
}

/// Decodes `%XX`.
fn decode(value: &str) -> Result<String, DatabaseError> {
    let bad = || DatabaseError::BadUrl { reason: "a % is not followed by two hex digits".into() };
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|two| std::str::from_utf8(two).ok()).ok_or_else(bad)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

/// Returns the password of a passfile's line if its first four fields match.
fn password_in(line: &str, wanted: [&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        let taken = match c {
            '\\' => characters.next(),
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                None
            }
            other => Some(other),
        };
        fields.last_mut().expect("there is at least one").extend(taken);
    }
    let [found @ .., password] = fields.as_slice() else { return None };
    let matches = found.len() == 4 && found.iter().zip(wanted).all(|(f, w)| f == "*" || f == w);
    matches.then(|| password.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> StoreUrl {
        StoreUrl::parse(text).expect("a valid address")
    }

    #[test]
    fn texts_and_digest_hide_the_password() {
        let url = parse("postgres://ann:s3cret@db.example:5433/agents?sslmode=require");
        for shown in [format!("{url}"), format!("{url:?}"), url.place()] {
            assert!(shown.contains("db.example:5433/agents"), "{shown}");
            assert!(!shown.contains("s3cret"), "{shown}");
        }
        let other = parse("postgres://ann:other@db.example:5433/agents?sslmode=require");
        assert_eq!(url.digest(), other.digest());
        assert_ne!(url.digest(), parse("postgres://ann@db.example:5433/agents").digest());
        assert_ne!(
            parse("postgres://ann@db.example/agents").digest(),
            parse("postgres://ann@db.example/others").digest()
        );
    }

    #[test]
    fn invalid_addresses_are_refused_without_their_password() {
        for text in [
            "mysql://ann:s3cret@db/agents",
            "postgres://ann:s3cret@db/agents?sslmode=sometimes",
            "postgres://ann:s3cret@db/agents?colour=red",
            "postgres://ann:s3@cret@db/agents",
            "postgres:///agents",
            "postgres://ann:s3cret@db:many/agents",
            "postgres://ann:s3cret@db/agents?sslrootcert=%zz",
        ] {
            let error = StoreUrl::parse(text).expect_err(text).to_string();
            assert!(!error.contains("s3"), "{error}");
        }
    }

    #[test]
    fn sslmode_is_that_of_libpq() {
        let check = |query: &str| {
            let url = parse(&format!("postgres://db/agents{query}"));
            (url.config.get_ssl_mode(), url.check)
        };
        assert_eq!(check(""), (SslMode::Prefer, CertificateCheck::None));
        assert_eq!(check("?sslmode=disable"), (SslMode::Disable, CertificateCheck::None));
        assert_eq!(
            check("?sslmode=require&sslrootcert=%2Fca.pem"),
            (SslMode::Require, CertificateCheck::Chain)
        );
        assert_eq!(
            check("?sslmode=verify-full"),
            (SslMode::Require, CertificateCheck::ChainAndName)
        );
        let local = parse("postgres://%2Frun%2Fpostgresql/agents?sslmode=require");
        assert_eq!(local.config.get_ssl_mode(), SslMode::Disable);
        assert_eq!(
            parse("postgres://db/agents?sslrootcert=%2Fca.pem").roots(),
            Some(Path::new("/ca.pem"))
        );
        assert_eq!(parse("postgres://db/agents?sslrootcert=system").roots(), None);
    }

    #[test]
    fn password_of_the_environment_is_used_if_the_address_has_none() {
        let url = parse("postgres://ann@db/agents").with_password(Some("s3cret"), None);
        assert_eq!(url.config.get_password(), Some(&b"s3cret"[..]));
        assert_eq!(url.variables().len(), 2);
        let url = parse("postgres://ann:own@db/agents").with_password(Some("s3cret"), None);
        assert_eq!(url.config.get_password(), Some(&b"own"[..]));
        assert_eq!(url.variables().len(), 1);
    }

    #[test]
    fn passfile_is_used_if_it_is_private() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("pgpass");
        let lines = "# comment\ndb:5432:other:ann:no\n*:5432:agents:ann:a\\:b\\\\c\n*:*:*:*:last\n";
        fs::write_atomic(&path, lines.as_bytes()).expect("writable");
        let found = |text: &str| {
            let url = parse(text).with_password(None, Some(&path));
            url.config.get_password().map(|word| String::from_utf8_lossy(word).into_owned())
        };
        assert_eq!(found("postgres://ann@db/agents").as_deref(), Some("a:b\\c"));
        assert_eq!(found("postgres://bob@db/agents").as_deref(), Some("last"));
    }
}
