//! `[role.NAME]`, and the tools of roles and members.

use schemars::JsonSchema;
use serde::Deserialize;

use model::decisions::rules::RuleList;
use model::mail::access::LinkAccess;
use model::members::mode::Mode;
use model::team::COLORS;
use model::team::role::{Role, Tools};
use model::value::{CheckedValue, Choice, KeyedTable, NonBlank, PlainText, known_word, text_types};

text_types! {
    /// The name of a role, as a key.
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) RoleName(String) = |name| {
        if name.trim().is_empty() || name.contains('\0') {
            return Err("a role must have a name".to_owned());
        }
        Ok(name.to_owned())
    };
    pub(crate) Color(String) { "enum": COLORS } = |color| known_word(color, &COLORS);
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "role")]
pub(super) struct RoleTable {
    /// Purpose of the role.
    description: Option<String>,
    /// Instructions for members with this role.
    prompt: Option<NonBlank>,
    /// Model of the program.
    model: Option<NonBlank>,
    /// Permission mode.
    mode: Option<Choice<Mode>>,
    /// Command line that starts the program, as `wrap` in `[[member]]`.
    wrap: Option<Vec<PlainText>>,
    /// Colour of the members.
    color: Option<Color>,
    /// Each task of these members is a run of its own. See `phalanx docs manifest task-mode`.
    task_only: bool,
    /// The only tools that the members may use. See `phalanx docs manifest tools`.
    allowed_tools: Option<RuleList>,
    /// Tools that the members may not use.
    disallowed_tools: RuleList,
    /// The users that may request work of the members. See `phalanx docs manifest teamaccess`.
    access: KeyedTable<LinkAccess>,
}

impl From<RoleTable> for Role {
    fn from(table: RoleTable) -> Role {
        Role {
            description: table.description,
            prompt: table.prompt.map(|prompt| prompt.0),
            model: table.model.map(|model| model.0),
            mode: table.mode.map(|mode| mode.0),
            wrap: table.wrap.into_value(),
            color: table.color.map(|color| color.0),
            task_only: table.task_only,
            access: table.access.0,
            tools: tools(table.allowed_tools, table.disallowed_tools),
        }
    }
}

/// Returns the tools of `allowed_tools` and `disallowed_tools`. A missing `allowed_tools` allows
/// all tools, an empty one none.
pub(super) fn tools(allowed: Option<RuleList>, disallowed: RuleList) -> Tools {
    Tools { allowed: allowed.into_value(), disallowed: disallowed.into_value() }
}

#[cfg(test)]
mod tests {
    use crate::manifest::Manifest;
    use model::decisions::rules::Rule;
    use model::members::mode::Mode;

    fn names(rules: &[Rule]) -> Vec<String> {
        rules.iter().cloned().map(String::from).collect()
    }

    #[test]
    fn every_key_of_a_role_is_read() {
        let text = include_str!("../../../fixtures/manifests/every_key.toml");
        let manifest = Manifest::parse(text).expect("manifest");
        let scout = &manifest.settings.roles.named["scout"];
        assert_eq!(scout.description.as_deref(), Some("looks first"));
        assert_eq!(scout.prompt.as_deref(), Some("Look, and change nothing."));
        assert_eq!((scout.model.as_deref(), scout.mode), (Some("haiku"), Some(Mode::Plan)));
        assert_eq!(scout.color.as_deref(), Some("pink"));
        assert_eq!(
            names(scout.tools.allowed.as_deref().expect("a list")),
            ["Read", "Grep", "Bash(git log:*)"]
        );
        assert_eq!(names(&scout.tools.disallowed), ["Edit"]);
        let (team, alice) = (&manifest.settings.roles.tools, &manifest.members[0].launch.tools);
        assert_eq!(
            (names(&team.disallowed), team.allowed.as_ref().map(Vec::len)),
            (vec!["WebSearch".to_owned()], Some(2))
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
