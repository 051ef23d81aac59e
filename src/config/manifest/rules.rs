//! `[rules]`, and the rules of a role or a member.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::roles::all_rules;
use crate::config::value::Patterns;
use crate::model::rules::{RuleSet, TeamRules};
use crate::model::value::KeyedTable;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "rules")]
pub(super) struct RulesTable {
    /// Patterns that deny a request.
    deny: Vec<Patterns>,
    /// Patterns that ask a person.
    ask: Vec<Patterns>,
    /// Patterns that allow a request.
    allow: Vec<Patterns>,
    /// Further rules for members with a role, by its name.
    role: BTreeMap<String, KeyedTable<RuleLists>>,
}

/// The rules of a role or a member.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "rule_lists")]
pub(super) struct RuleLists {
    /// Patterns that deny a request.
    deny: Vec<Patterns>,
    /// Patterns that ask a person.
    ask: Vec<Patterns>,
    /// Patterns that allow a request.
    allow: Vec<Patterns>,
}

impl RulesTable {
    pub(super) fn into_rules(self) -> TeamRules {
        TeamRules {
            team: rule_set(self.deny, self.ask, self.allow),
            roles: self.role.into_iter().map(|(name, lists)| (name, lists.0.into_set())).collect(),
            ..TeamRules::default()
        }
    }
}

impl RuleLists {
    pub(super) fn into_set(self) -> RuleSet {
        rule_set(self.deny, self.ask, self.allow)
    }
}

fn rule_set(deny: Vec<Patterns>, ask: Vec<Patterns>, allow: Vec<Patterns>) -> RuleSet {
    RuleSet { deny: all_rules(deny), ask: all_rules(ask), allow: all_rules(allow) }
}
