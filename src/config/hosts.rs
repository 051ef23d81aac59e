//! Hosts on which members can run: `[[host]]` in a manifest or in a user's `hosts.toml`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::hooks::read_trusted_file;
use super::value::TableList;
use super::{ConfigError, Document, Faults, Place, parse};
use model::team::host::HostConfig;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct HostsFile {
    host: TableList<HostConfig>,
}

/// A host and the file that configures it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredHost {
    pub config: HostConfig,
    /// The path of the file, or the team whose settings have the host.
    pub source: String,
}

/// Parses a `hosts.toml`.
///
/// # Errors
/// The first fault with its position: invalid TOML, an unknown key, an invalid value, or a name
/// that two hosts have.
pub fn parse_hosts(text: &str) -> Result<Vec<HostConfig>, ConfigError> {
    let table: HostsFile = parse(Document { title: "hosts.toml", denied: &[] }, text)?;
    let mut faults = Faults::new(text);
    let hosts = distinct_hosts(table.host, &mut faults);
    faults.into_result()?;
    Ok(hosts)
}

/// Reads the user's files in this order; of hosts with the same name the first one counts. A file
/// that does not exist has no hosts.
///
/// # Errors
/// A message with the path, for a file that cannot be parsed or that other users can write
/// (SEC-07).
pub fn read_hosts(files: &[PathBuf]) -> Result<Vec<ConfiguredHost>, String> {
    let mut found: Vec<ConfiguredHost> = Vec::new();
    for file in files {
        let source = file.display().to_string();
        for config in read_file(file).map_err(|problem| format!("{source}{problem}"))? {
            if !found.iter().any(|known| known.config.name.clashes_with(&config.name)) {
                found.push(ConfiguredHost { config, source: source.clone() });
            }
        }
    }
    Ok(found)
}

fn read_file(file: &Path) -> Result<Vec<HostConfig>, String> {
    let text = read_trusted_file(file).map_err(|problem| format!(": {problem}"))?;
    text.map_or(Ok(Vec::new()), |text| parse_hosts(&text)).map_err(|e| format!(":{e}"))
}

/// Returns the hosts of a file, and adds a fault for each with the name of an earlier one.
pub(crate) fn distinct_hosts(hosts: TableList<HostConfig>, faults: &mut Faults) -> Vec<HostConfig> {
    let hosts = hosts.0;
    for (at, host) in hosts.iter().enumerate() {
        let Some(known) = hosts[..at].iter().find(|known| known.name.clashes_with(&host.name))
        else {
            continue;
        };
        let message = if known.name == host.name {
            format!("two hosts are named `{}`", host.name)
        } else {
            format!("hosts `{}` and `{}` differ only in case", known.name, host.name)
        };
        faults.add_at(&[Place::Key("host"), Place::Index(at), Place::Key("name")], message);
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::fs::write_atomic;

    const ONE: &str = "[[host]]\nname = \"build\"\nssh = \"ann@build\"\ndir = \"/work/phalanx\"\n";

    fn fault(more: &str) -> String {
        parse_hosts(&format!("{ONE}{more}")).expect_err("a fault").to_string()
    }

    #[test]
    fn every_key_of_a_host_is_read() {
        let more = "env = { LANG = \"C\" }\ncapacity = 4\nlabels = [\"gpu\", \"arch=x86\"]\n\
                    phalanx = \"/opt/phalanx\"\nremote = \"origin\"\n";
        let hosts = parse_hosts(&format!("{ONE}{more}")).expect("hosts");
        let [host] = hosts.as_slice() else { panic!("one host: {hosts:?}") };
        assert_eq!((host.name.as_str(), host.ssh.as_str()), ("build", "ann@build"));
        assert_eq!((host.dir.as_str(), host.capacity), ("/work/phalanx", Some(4)));
        assert_eq!(
            (host.labels.join(" "), &host.env["LANG"]),
            ("gpu arch=x86".into(), &"C".into())
        );
        assert_eq!(host.phalanx.as_deref(), Some("/opt/phalanx"));
        assert_eq!(host.remote.as_deref(), Some("origin"));
    }

    #[test]
    fn faults_of_a_host_have_positions_and_suggestions() {
        let table = [
            ("dirr = 1\n", "5:1: unknown key `dirr` in [[host]]; did you mean `dir`?"),
            ("capacity = 0\n", "5:12: `capacity` in [[host]] must be at least 1"),
            ("labels = [\"a b\"]\n", "5:11: `labels` in [[host]]: `a b` is not a label"),
            ("phalanx = \"bin/phalanx\"\n", "5:11: `phalanx` in [[host]]: `bin/phalanx` is not an"),
            (ONE, "6:8: two hosts are named `build`"),
            (&ONE.replace("build\"\nssh", "Build\"\nssh"), "6:8: hosts `build` and `Build` differ"),
            ("[[host]]\nname = \"a b\"\n", "6:8: `name` in [[host]]: `a b` is not a name"),
            (
                "[[host]]\nname = \"b\"\nssh = \"-oX\"\n",
                "7:7: `ssh` in [[host]]: `-oX` starts with",
            ),
            ("[[host]]\nname = \"b\"\nssh = \"b\"\n", "5:1: [[host]] has no `dir`"),
        ];
        for (more, expected) in table {
            let found = fault(more);
            assert!(found.starts_with(expected), "{found}\n{expected}");
        }
    }

    #[test]
    fn first_file_that_has_a_host_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        let [first, second, missing] = ["a.toml", "b.toml", "c.toml"].map(|f| dir.path().join(f));
        write_atomic(&first, ONE.as_bytes()).expect("writable");
        let other = ONE.replace("ann@", "bob@") + &ONE.replace("build\"\nssh", "big\"\nssh");
        write_atomic(&second, other.as_bytes()).expect("writable");
        let found = read_hosts(&[missing, first, second.clone()]).expect("hosts");
        let shown: Vec<(&str, &str)> = found
            .iter()
            .map(|host| (host.config.name.as_str(), host.config.ssh.as_str()))
            .collect();
        assert_eq!(shown, [("build", "ann@build"), ("big", "ann@build")]);
        assert!(found[1].source.ends_with("/b.toml"));
        write_atomic(&second, b"[[host]]\nnam = 1\n").expect("writable");
        let problem = read_hosts(&[second]).expect_err("a fault");
        assert!(problem.contains("/b.toml:2:1: unknown key `nam`"), "{problem}");
    }
}
