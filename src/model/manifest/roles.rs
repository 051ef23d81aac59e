//! Reads `[role.NAME]`.

use toml::de::DeValue;

use crate::model::role::{Role, Roles, Tools};
use crate::model::sheet::{At, Faults, Section};
use crate::model::team::COLORS;

use super::rules::read_patterns;
use super::sections::{inner, read_mode};

const ROLE: [&str; 8] = [
    "description",
    "prompt",
    "model",
    "mode",
    "color",
    "task_only",
    "allowed_tools",
    "disallowed_tools",
];

/// Reads all roles of the manifest. `tools` are those of `[defaults]`.
pub(super) fn read_roles(root: &Section, tools: Tools, faults: &mut Faults) -> Roles {
    let mut roles = Roles { tools, ..Roles::default() };
    let Some(value) = root.value("role") else { return roles };
    let DeValue::Table(table) = value.get_ref() else {
        faults.add(&value.span(), "`role` must contain tables: [role.NAME]");
        return roles;
    };
    for (name, value) in table {
        if name.get_ref().trim().is_empty() || name.get_ref().contains('\0') {
            faults.add(&name.span(), "a role must have a name");
        }
        if let Some(section) = Section::open("[role]", value, &ROLE, faults) {
            roles.named.insert(name.get_ref().to_string(), read_role(&section, faults));
        }
    }
    roles
}

fn read_role(section: &Section, faults: &mut Faults) -> Role {
    let color = section.choice("color", &COLORS.map(|color| (color, color)), faults);
    Role {
        description: inner(section.text("description", faults)),
        prompt: inner(section.word("prompt", faults)),
        model: inner(section.word("model", faults)),
        mode: read_mode(section, faults),
        color: color.map(At::into_inner).map(str::to_owned),
        task_only: section.flag("task_only", faults).unwrap_or(false),
        tools: read_tools(section, faults),
    }
}

/// Reads `allowed_tools` and `disallowed_tools`. A missing `allowed_tools` allows all tools, an
/// empty one none.
pub(super) fn read_tools(section: &Section, faults: &mut Faults) -> Tools {
    let allowed =
        section.value("allowed_tools").map(|_| read_patterns(section, "allowed_tools", faults));
    Tools { allowed, disallowed: read_patterns(section, "disallowed_tools", faults) }
}

#[cfg(test)]
mod tests {
    use crate::model::manifest::Manifest;
    use crate::model::mode::Mode;
    use crate::model::rules::Rule;

    fn names(rules: &[Rule]) -> Vec<String> {
        rules.iter().cloned().map(String::from).collect()
    }

    #[test]
    fn every_key_of_a_role_is_read() {
        let text = include_str!("../../../fixtures/manifests/every_key.toml");
        let manifest = Manifest::parse(text).expect("manifest");
        let scout = &manifest.roles.named["scout"];
        assert_eq!(scout.description.as_deref(), Some("looks first"));
        assert_eq!(scout.prompt.as_deref(), Some("Look, and change nothing."));
        assert_eq!((scout.model.as_deref(), scout.mode), (Some("haiku"), Some(Mode::Plan)));
        assert_eq!(scout.color.as_deref(), Some("pink"));
        assert_eq!(
            names(scout.tools.allowed.as_deref().expect("a list")),
            ["Read", "Grep", "Bash(git log:*)"]
        );
        assert_eq!(names(&scout.tools.disallowed), ["Edit"]);
        let (team, alice) = (&manifest.roles.tools, &manifest.members[0].tools);
        assert_eq!(
            (names(&team.disallowed), team.allowed.as_deref()),
            (vec!["WebSearch".to_owned()], None)
        );
        assert_eq!(names(alice.allowed.as_deref().expect("a list")), ["Read", "Edit"]);
    }

    /// ID-02: a restriction that cannot be parsed is refused.
    #[test]
    fn id_02_faults_of_a_role_are_reported_at_their_position() {
        let fault = |role: &str| {
            let text = format!("[team]\nname = \"x\"\n{role}");
            Manifest::parse(&text).expect_err("a fault").to_string()
        };
        let unknown = fault("[role.a]\ntools = []\n");
        assert!(unknown.starts_with("4:1: unknown key `tools` in [role]"), "{unknown}");
        assert!(fault("[role.a]\nallowed_tools = [\"Bash(\"]\n").starts_with("4:18: the pattern"));
        assert!(fault("[role.a]\ncolor = \"mauve\"\n").contains("unknown color `mauve`"));
        assert!(fault("[role.\" \"]\n").contains("a role must have a name"));
    }
}
