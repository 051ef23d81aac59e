//! The host that a member asks for.

use std::ops::Range;

use crate::config::Faults;
use crate::config::value::Positioned;
use crate::model::host::HostChoice;
use crate::model::host::{Label, NewHostName};

/// A choice with its position.
pub(super) type LocatedChoice = (Range<usize>, HostChoice);

/// Returns the choice that a member makes with its keys `host` and `labels`.
pub(super) fn locate_choice(
    host: Option<Positioned<NewHostName>>,
    labels: Option<Positioned<Vec<Label>>>,
    faults: &mut Faults,
) -> Option<LocatedChoice> {
    if let (Some(_), Some(labels)) = (&host, &labels) {
        faults.add(&labels.span(), "[[member]] has both `host` and `labels`");
    }
    if let Some(name) = host {
        return Some((name.span(), HostChoice::Name(name.into_inner().0)));
    }
    let labels = labels?;
    let span = labels.span();
    let labels: Vec<String> = labels.into_inner().into_iter().map(|label| label.0).collect();
    if labels.is_empty() {
        faults.add(&span, "`labels` in [[member]] is empty");
    }
    Some((span, HostChoice::Labels(labels)))
}

#[cfg(test)]
mod tests {
    use crate::config::hosts::parse_hosts;
    use crate::config::manifest::Manifest;
    use crate::model::host::HostChoice;

    const HOST: &str =
        "[[host]]\nname = \"build\"\nssh = \"b\"\ndir = \"/w\"\nlabels = [\"gpu\"]\n";

    fn manifest(member: &str) -> String {
        format!("[team]\nname = \"t\"\n[[member]]\nname = \"a\"\n{member}{HOST}")
    }

    fn fault(member: &str) -> String {
        Manifest::parse(&manifest(member)).expect_err("a fault").to_string()
    }

    #[test]
    fn member_can_name_a_host_or_its_labels() {
        let read = Manifest::parse(&manifest("host = \"build\"\n")).expect("a manifest");
        let host = read.settings.hosts[0].clone();
        assert_eq!(read.members[0].launch.host, Some(HostChoice::Name(host.name.clone())));
        let read = Manifest::parse(&manifest("labels = [\"gpu\"]\n")).expect("a manifest");
        assert!(read.members[0].launch.host.as_ref().is_some_and(|choice| choice.accepts(&host)));
    }

    #[test]
    fn unknown_hosts_and_labels_are_reported_with_suggestions() {
        let table = [
            (
                "host = \"biuld\"\n",
                "5:8: host `biuld` of member `a` is not configured; did you mean `build`?",
            ),
            (
                "labels = [\"gpu\", \"gup\"]\n",
                "5:10: no host has all labels of member `a`: gpu, gup; did you mean `gpu`?",
            ),
            ("labels = []\n", "5:10: `labels` in [[member]] is empty"),
            (
                "host = \"build\"\nlabels = [\"gpu\"]\n",
                "6:10: [[member]] has both `host` and `labels`",
            ),
            ("host = \"\"\n", "5:8: `host` in [[member]] is empty"),
        ];
        for (member, expected) in table {
            assert_eq!(fault(member), expected);
        }
    }

    #[test]
    fn hosts_of_the_user_are_known_in_a_manifest() {
        let hosts = parse_hosts(HOST).expect("hosts");
        let text = "[team]\nname = \"t\"\n[[member]]\nname = \"a\"\nhost = \"build\"\n";
        assert!(Manifest::parse(text).is_err());
        let read = Manifest::parse_with_hosts(text, &hosts).expect("a manifest");
        assert_eq!(read.settings.hosts, [], "hosts of the user stay in the user's file");
    }
}
