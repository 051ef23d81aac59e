//! Tests of `[team.access]` and `[team.workspace]`.

use crate::manifest::Manifest;
use model::board::workspace::{WorkspaceMode, WorkspaceRules};

#[test]
fn access_and_workspace_are_read() {
    let text = include_str!("../../../../fixtures/manifests/every_key.toml");
    let settings = Manifest::parse(text).expect("manifest").settings;
    let access = &settings.access.team;
    assert_eq!(
        (access.allow_users.join(" "), access.deny_users.join(" ")),
        ("u1 u2".into(), "u3".into())
    );
    assert_eq!(
        (access.allow_channels.join(" "), access.deny_channels.join(" ")),
        ("web".into(), "irc".into())
    );
    assert_eq!(settings.access.members["alice"].allow_users, ["u1"]);
    assert_eq!(settings.access.members.len(), 1);
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
        ("[team.access]\ndeny_users = [\" \"]\n", "4:15: `deny_users` in [team.access] is empty"),
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
