//! `[team.access]`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::model::access::AccessPolicy;
use crate::model::value::NonBlank;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "access")]
pub(super) struct AccessTable {
    /// Only these users may request work; if empty, all.
    allow_users: Vec<NonBlank>,
    /// These users may not request work.
    deny_users: Vec<NonBlank>,
    /// Only requests from these channels are carried out; if empty, from all.
    allow_channels: Vec<NonBlank>,
    /// No requests from these channels are carried out.
    deny_channels: Vec<NonBlank>,
}

impl From<AccessTable> for AccessPolicy {
    fn from(table: AccessTable) -> AccessPolicy {
        AccessPolicy {
            allow_users: words(table.allow_users),
            deny_users: words(table.deny_users),
            allow_channels: words(table.allow_channels),
            deny_channels: words(table.deny_channels),
            ..AccessPolicy::default()
        }
    }
}

fn words(list: Vec<NonBlank>) -> Vec<String> {
    list.into_iter().map(|word| word.0).collect()
}

#[cfg(test)]
mod tests {
    use crate::config::manifest::Manifest;
    use crate::model::workspace::{WorkspaceMode, WorkspaceRules};

    #[test]
    fn access_and_workspace_are_read() {
        let text = include_str!("../../../fixtures/manifests/every_key.toml");
        let settings = Manifest::parse(text).expect("manifest").settings;
        let access = &settings.access;
        assert_eq!(
            (access.allow_users.join(" "), access.deny_users.join(" ")),
            ("u1 u2".into(), "u3".into())
        );
        assert_eq!(
            (access.allow_channels.join(" "), access.deny_channels.join(" ")),
            ("web".into(), "irc".into())
        );
        assert_eq!(access.members["alice"].allow_users, ["u1"]);
        assert_eq!(access.members.len(), 1);
        assert_eq!(settings.roles.named["scout"].access.deny_users, ["u2"]);
        let expected = WorkspaceRules {
            scope: WorkspaceMode::Shared,
            max_file_mb: 2,
            max_files: 20,
            quota_mb: Some(50),
        };
        assert_eq!(settings.workspace, expected);
    }

    #[test]
    fn faults_are_reported_at_their_position() {
        let fault = |more: &str| {
            let text = format!("[team]\nname = \"x\"\n{more}");
            Manifest::parse(&text).expect_err("a fault").to_string()
        };
        let table = [
            ("[team.access]\nallow_user = []\n", "4:1: unknown key `allow_user` in [team.access]"),
            ("[team.access]\nallow_users = \"u\"\n", "4:15: `allow_users` in [team.access]"),
            (
                "[team.access]\ndeny_users = [\" \"]\n",
                "4:15: `deny_users` in [team.access] is empty",
            ),
            (
                "[team.workspace]\nscope = \"own\"\n",
                "4:9: unknown scope `own`; known: `isolated`, `shared`",
            ),
            (
                "[team.workspace]\nmax_files = 0\n",
                "4:13: `max_files` in [team.workspace] must be at least 1",
            ),
            (
                "[[member]]\nname = \"a\"\n[member.access]\nallow_channels = []\n",
                "6:1: unknown key `allow_channels` in [member.access]",
            ),
        ];
        for (more, expected) in table {
            let got = fault(more);
            assert!(got.starts_with(expected), "{got}");
        }
    }
}
