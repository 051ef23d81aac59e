//! Hosts on which members can run: `[[host]]` in a manifest or in a user's `hosts.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::hooks::read_trusted_file;
use super::value::{
    As, AtLeast, FIELD, NAME_PATTERN, NonBlank, Positioned, TableList, Variables, checked,
    parse_non_blank, text_types,
};
use super::{ConfigError, Document, Faults, parse};
use crate::model::host::{HostConfig, check_destination, check_label, check_remote_path};
use crate::model::id::HostName;
use crate::model::name::check_name;

/// A `[[host]]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "host")]
pub(crate) struct HostTable {
    /// Name of the host.
    name: Positioned<NewHostName>,
    /// Destination, as the user's ssh takes it.
    ssh: Destination,
    /// Work directory on the host, an absolute path.
    dir: RemotePath,
    /// Environment variables of the members there.
    #[serde(default, with = "As::<Variables>")]
    env: BTreeMap<String, String>,
    /// Maximum number of members on the host; unlimited by default.
    capacity: Option<AtLeast<1>>,
    /// Labels that members can ask for.
    #[serde(default)]
    labels: Vec<Label>,
    /// Absolute path of phalanx on the host; by default `DIR/bin/phalanx` if it exists, else
    /// `phalanx` of the PATH there.
    phalanx: Option<RemotePath>,
    /// Git remote through which the commits of worktrees go, a name or an address; by default they
    /// go through the ssh connection. See docs/worktrees.md#on-other-hosts.
    remote: Option<NonBlank>,
}

text_types! {
    /// The name of a host.
    NewHostName(HostName) { "pattern": NAME_PATTERN } = |text| {
        let name = checked(parse_non_blank(text), check_name)?;
        HostName::new(&name).map_err(|e| format!("{FIELD}: {e}"))
    };
    Destination(String) = |text| checked(parse_non_blank(text), check_destination);
    RemotePath(String) { "pattern": "^/" } =
        |text| checked(parse_non_blank(text), check_remote_path);
    /// A label of a host.
    Label(String) { "pattern": "^[A-Za-z0-9_.:=/-]{1,64}$" } =
        |text| checked(parse_non_blank(text), check_label);
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct HostsFile {
    host: TableList<HostTable>,
}

/// A host and the file that configures it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfiguredHost {
    pub(crate) config: HostConfig,
    /// The path of the file, or the team whose settings have the host.
    pub(crate) source: String,
}

/// Parses a `hosts.toml`.
///
/// # Errors
/// The first fault with its position: invalid TOML, an unknown key, an invalid value, or a name
/// that two hosts have.
pub(crate) fn parse_hosts(text: &str) -> Result<Vec<HostConfig>, ConfigError> {
    let table: HostsFile = parse(Document { title: "hosts.toml", denied: &[] }, text)?;
    let mut faults = Faults::default();
    let hosts = host_configs(table.host, &mut faults);
    faults.into_result(text)?;
    Ok(hosts)
}

/// Reads the user's files in this order; of hosts with the same name the first one counts. A file
/// that does not exist has no hosts.
///
/// # Errors
/// A message with the path, for a file that cannot be parsed or that other users can write
/// (SEC-07).
pub(crate) fn read_hosts(files: &[PathBuf]) -> Result<Vec<ConfiguredHost>, String> {
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

/// Converts the `[[host]]` tables of a file and adds their faults to `faults`.
pub(crate) fn host_configs(tables: TableList<HostTable>, faults: &mut Faults) -> Vec<HostConfig> {
    let mut hosts: Vec<HostConfig> = Vec::new();
    for table in tables.0 {
        let table = table.into_inner();
        let span = table.name.span();
        let host = table.into_config();
        match hosts.iter().find(|known| known.name.clashes_with(&host.name)) {
            Some(known) if known.name == host.name => {
                faults.add(&span, format!("two hosts are named `{}`", host.name));
            }
            Some(known) => {
                let message =
                    format!("hosts `{}` and `{}` differ only in case", known.name, host.name);
                faults.add(&span, message);
            }
            None => hosts.push(host),
        }
    }
    hosts
}

impl HostTable {
    fn into_config(self) -> HostConfig {
        HostConfig {
            name: self.name.into_inner().0,
            ssh: self.ssh.0,
            dir: self.dir.0,
            env: self.env,
            capacity: self.capacity.map(|most| most.0),
            labels: self.labels.into_iter().map(|label| label.0).collect(),
            phalanx: self.phalanx.map(|path| path.0),
            remote: self.remote.map(|remote| remote.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fs::write_atomic;

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
