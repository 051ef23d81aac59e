//! `[team.routing]`: who may message whom, and who gets the blockers of a member.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::model::routing::{Party, Route, RoutingPolicy};
use crate::model::value::{FIELD, KeyedTable, text_types};

text_types! {
    RouteText(Route) = |text| {
        Route::parse(text).map_err(|problem| format!("{FIELD}: `{}` {problem}", text.escape_debug()))
    };
    /// The member or role that is blocked, as a key.
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    BlockedParty(Party) = party;
    /// The recipient of its blockers.
    SuperiorParty(Party) = |text| match party(text)? {
        Party::Anyone => Err(format!("{FIELD} must be a role, a member or `lead`, not `*`")),
        named => Ok(named),
    };
}

fn party(text: &str) -> Result<Party, String> {
    Party::parse(text).map_err(|problem| format!("{FIELD}: `{}` {problem}", text.escape_debug()))
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "routing")]
pub(super) struct RoutingTable {
    /// The only messages that are delivered, as `"dev -> senior"`: roles, members, `lead` or `*`.
    allow: Vec<RouteText>,
    /// Messages that are not delivered, even if allowed.
    deny: Vec<RouteText>,
    /// By member or role, who gets its blockers: a role, a member or `lead`.
    escalate: KeyedTable<BTreeMap<BlockedParty, SuperiorParty>>,
}

impl From<RoutingTable> for RoutingPolicy {
    fn from(table: RoutingTable) -> RoutingPolicy {
        RoutingPolicy {
            allow: table.allow.into_iter().map(|rule| rule.0).collect(),
            deny: table.deny.into_iter().map(|rule| rule.0).collect(),
            escalate: table.escalate.0.into_iter().map(|(of, to)| (of.0, to.0)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::manifest::Manifest;

    fn read(keys: &str) -> Result<String, String> {
        let text = format!("[team]\nname = \"t\"\n[team.routing]\n{keys}");
        let manifest = Manifest::parse(&text).map_err(|e| e.to_string())?;
        Ok(serde_json::to_string(&manifest.settings.routing).expect("json"))
    }

    #[test]
    fn routing_rules_are_read() {
        let keys =
            "allow = [\"dev -> senior\", \"*->lead\"]\nescalate = { dev = \"senior\" }\ndeny = []";
        assert_eq!(
            read(keys).as_deref(),
            Ok(r#"{"allow":["dev -> senior","* -> lead"],"deny":[],"escalate":{"dev":"senior"}}"#)
        );
    }

    #[test]
    fn invalid_routing_rules_are_refused() {
        let table = [
            (
                "allow = [\"dev senior\"]",
                "4:10: `allow` in [team.routing]: `dev senior` is not a rule such as `dev -> lead`",
            ),
            (
                "escalate = { dev = \"*\" }",
                "4:20: `dev` in [team.routing.escalate] must be a role, a member or `lead`, not `*`",
            ),
            (
                "escalate = \"lead\"",
                "4:12: `team.routing.escalate` must be a table, [team.routing.escalate], not a string",
            ),
            (
                "escalate = { \"a->b\" = \"lead\" }",
                "4:14: `a->b` in [team.routing.escalate]: `a->b` is not a role, a member, `lead` or `*`",
            ),
            ("alow = []", "4:1: unknown key `alow` in [team.routing]; did you mean `allow`?"),
        ];
        for (keys, said) in table {
            assert_eq!(read(keys), Err(said.to_owned()), "{keys}");
        }
    }
}
