//! Hosts on which members can run, as a manifest or the user's `hosts.toml` configures them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::HostName;
use crate::name::check_name;
use crate::value::{
    As, AtLeast, FIELD, NAME_PATTERN, NonBlank, Variables, checked, parse_non_blank, text_types,
};

/// A configured host, as a `[[host]]` and in the settings of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "host", deny_unknown_fields)]
pub struct HostConfig {
    /// Name of the host.
    #[serde(with = "As::<NewHostName>")]
    pub name: HostName,
    /// Destination, as the user's ssh takes it.
    #[serde(with = "As::<Destination>")]
    pub ssh: String,
    /// Work directory on the host, an absolute path.
    #[serde(with = "As::<RemotePath>")]
    pub dir: String,
    /// Environment variables of the members there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "As::<Variables>")]
    pub env: BTreeMap<String, String>,
    /// Maximum number of members on the host; unlimited by default.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<AtLeast<1>>>")]
    pub capacity: Option<usize>,
    /// Labels that members can ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<Label>>")]
    pub labels: Vec<String>,
    /// Absolute path of phalanx on the host; by default `DIR/bin/phalanx` if it exists, else
    /// `phalanx` of the PATH there.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<RemotePath>>")]
    pub phalanx: Option<String>,
    /// Git remote through which the commits of worktrees go, a name or an address; by default they
    /// go through the ssh connection. See `phalanx docs hosts worktrees-on-other-hosts`.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<NonBlank>>")]
    pub remote: Option<String>,
}

text_types! {
    /// The name of a host.
    pub NewHostName(HostName) { "pattern": NAME_PATTERN } = |text| {
        let name = checked(parse_non_blank(text), check_name)?;
        HostName::new(&name).map_err(|e| format!("{FIELD}: {e}"))
    };
    pub Destination(String) = |text| checked(parse_non_blank(text), check_destination);
    pub RemotePath(String) { "pattern": "^/" } =
        |text| checked(parse_non_blank(text), check_remote_path);
    /// A label of a host.
    pub Label(String) { "pattern": "^[A-Za-z0-9_.:=/-]{1,64}$" } =
        |text| checked(parse_non_blank(text), check_label);
}

impl HostConfig {
    /// Returns true if the host has each of these labels.
    pub(crate) fn has_labels(&self, wanted: &[String]) -> bool {
        wanted.iter().all(|label| self.labels.contains(label))
    }

    /// Returns the path to which phalanx is installed.
    pub fn installed_program(&self) -> String {
        format!("{}/bin/phalanx", self.dir.trim_end_matches('/'))
    }
}

/// The host that a member asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostChoice {
    Name(HostName),
    /// Any host that has all of these labels.
    Labels(Vec<String>),
}

impl HostChoice {
    /// Returns true if `host` satisfies the choice.
    pub fn accepts(&self, host: &HostConfig) -> bool {
        match self {
            HostChoice::Name(name) => host.name.clashes_with(name),
            HostChoice::Labels(labels) => host.has_labels(labels),
        }
    }
}

/// Returns the host that a member gets: of those that satisfy the choice and have room, the one
/// with the most free capacity, then with the fewest members, and the first one of equals.
/// `members` counts the members on a host.
pub fn choose_host<'h>(
    hosts: impl Iterator<Item = &'h HostConfig>,
    choice: &HostChoice,
    members: impl Fn(&HostName) -> usize,
) -> Option<&'h HostConfig> {
    let free = |host: &HostConfig| {
        host.capacity.map_or(usize::MAX, |most| most.saturating_sub(members(&host.name)))
    };
    let suiting: Vec<&HostConfig> =
        hosts.filter(|host| choice.accepts(host) && free(host) > 0).collect();
    let rank = |host: &HostConfig| (free(host), Reverse(members(&host.name)));
    let best = suiting.iter().map(|host| rank(host)).max()?;
    suiting.into_iter().find(|host| rank(host) == best)
}

/// Checks a destination for ssh.
///
/// # Errors
/// A message that continues a sentence starting with the destination.
pub(crate) fn check_destination(destination: &str) -> Result<(), String> {
    if destination.starts_with('-') {
        return Err("starts with `-`, which ssh takes for an option".to_owned());
    }
    if destination.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("contains white space or control characters".to_owned());
    }
    Ok(())
}

/// Checks a path on a host: absolute, without control characters.
///
/// # Errors
/// A message that continues a sentence starting with the path.
pub(crate) fn check_remote_path(path: &str) -> Result<(), String> {
    if !path.starts_with('/') {
        return Err("is not an absolute path".to_owned());
    }
    if path.chars().any(char::is_control) {
        return Err("contains control characters".to_owned());
    }
    Ok(())
}

/// Checks a label of a host.
///
/// # Errors
/// A message that continues a sentence starting with the label.
pub(crate) fn check_label(label: &str) -> Result<(), String> {
    let inside = |c: char| c.is_ascii_alphanumeric() || "-_.:=/".contains(c);
    if !label.is_empty() && label.len() <= 64 && label.chars().all(inside) {
        return Ok(());
    }
    Err("is not a label: use letters, digits and `-_.:=/`, at most 64 characters".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::KeyedTable;

    fn host(name: &str, labels: &[&str]) -> HostConfig {
        HostConfig {
            name: HostName::new(name).expect("a name"),
            ssh: name.to_owned(),
            dir: "/w/".to_owned(),
            env: BTreeMap::new(),
            capacity: None,
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            phalanx: None,
            remote: None,
        }
    }

    #[test]
    fn choice_needs_the_name_or_all_labels() {
        let big = host("Big", &["gpu", "x86"]);
        let labels = |labels: &[&str]| {
            HostChoice::Labels(labels.iter().map(|label| (*label).to_owned()).collect())
        };
        assert!(labels(&["x86", "gpu"]).accepts(&big) && labels(&[]).accepts(&big));
        assert!(!labels(&["gpu", "arm"]).accepts(&big));
        assert!(HostChoice::Name(HostName::new("big").expect("a name")).accepts(&big));
        assert!(!HostChoice::Name(HostName::new("bi").expect("a name")).accepts(&big));
        assert_eq!(big.installed_program(), "/w/bin/phalanx");
    }

    /// docs/dev/protocol.md: a newer release may add fields to the settings of a team.
    #[test]
    fn unknown_key_is_refused_only_where_people_write() {
        let text = r#"{"name":"a","ssh":"a","dir":"/w","later":1}"#;
        assert!(serde_json::from_str::<HostConfig>(text).is_ok());
        let strict = serde_json::from_str::<KeyedTable<HostConfig>>(text).expect_err("a fault");
        assert!(strict.to_string().starts_with("unknown field `later`"), "{strict}");
        let zero = r#"{"name":"a","ssh":"a","dir":"/w","capacity":0}"#;
        let zero = serde_json::from_str::<HostConfig>(zero).expect_err("a fault");
        assert!(zero.to_string().starts_with("the value must be at least 1"), "{zero}");
    }

    #[test]
    fn host_with_the_most_free_capacity_is_chosen() {
        let sized = |name, most| HostConfig { capacity: most, ..host(name, &["x86"]) };
        let hosts = [sized("a", Some(3)), sized("b", Some(9)), sized("c", Some(8))];
        let labels = HostChoice::Labels(vec!["x86".to_owned()]);
        let chosen = |used: [usize; 3]| {
            let members = |name: &HostName| {
                hosts.iter().zip(used).find(|(host, _)| host.name == *name).map_or(0, |(_, n)| n)
            };
            choose_host(hosts.iter(), &labels, members).map(|host| host.name.as_str())
        };
        assert_eq!(chosen([0, 0, 0]), Some("b"));
        assert_eq!(chosen([0, 5, 4]), Some("c"), "the fewest members of equals");
        assert_eq!(chosen([0, 8, 6]), Some("a"));
        assert_eq!(chosen([3, 9, 9]), None, "all are full");
        let open = [sized("a", Some(3)), sized("y", None), sized("z", None)];
        let found = choose_host(open.iter(), &labels, |_| 1000).map(|host| host.name.as_str());
        assert_eq!(found, Some("y"), "no limit, and the first of equals");
    }

    #[test]
    fn destination_cannot_be_an_option_or_several_words() {
        for good in ["build", "ann@build.example", "ssh://ann@[::1]:2222", "10.0.0.7"] {
            assert_eq!(check_destination(good), Ok(()), "{good}");
        }
        for bad in ["-oProxyCommand=x", "a b", "a\nb", "a\tb"] {
            assert!(check_destination(bad).is_err(), "{bad:?}");
        }
        assert!(check_remote_path("w").is_err() && check_remote_path("~/w").is_err());
        assert!(check_remote_path("/w\n").is_err() && check_remote_path("/a b").is_ok());
    }
}
