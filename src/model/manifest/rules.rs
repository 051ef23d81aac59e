//! Reads `[rules]` and the `rules` of a member. An invalid pattern is reported at its position.

use toml::de::DeValue;

use crate::model::rules::{Rule, RuleSet, TeamRules};
use crate::model::sheet::{Faults, Section};

const LISTS: [&str; 3] = ["deny", "ask", "allow"];
pub(super) const RULES: [&str; 4] = ["deny", "ask", "allow", "role"];

/// Reads `[rules]` and `[rules.role.NAME]`.
pub(super) fn read_rules(section: &Section, faults: &mut Faults) -> TeamRules {
    let mut rules = TeamRules { team: read_set(section, faults), ..TeamRules::default() };
    let Some(roles) = section.value("role") else { return rules };
    let DeValue::Table(table) = roles.get_ref() else {
        faults.add(&roles.span(), "`role` in [rules] must contain tables: [rules.role.NAME]");
        return rules;
    };
    for (name, value) in table {
        let set = Section::open("[rules.role]", value, &LISTS, faults);
        let set = set.map(|section| read_set(&section, faults)).unwrap_or_default();
        rules.roles.insert(name.get_ref().to_string(), set);
    }
    rules
}

/// Reads `rules = { … }` of a member.
pub(super) fn read_member_rules(section: &Section, faults: &mut Faults) -> RuleSet {
    read_set(&section.table("rules", "[member.rules]", &LISTS, faults), faults)
}

/// Reads a list of patterns. One string may contain several, separated by commas.
pub(super) fn read_patterns(section: &Section, key: &str, faults: &mut Faults) -> Vec<Rule> {
    let mut rules = Vec::new();
    for text in section.list(key, faults) {
        match Rule::parse_list(text.get_ref()) {
            Ok(some) => rules.extend(some),
            Err(said) => faults.add(&text.span(), format!("the pattern {}", said.escape_debug())),
        }
    }
    rules
}

fn read_set(section: &Section, faults: &mut Faults) -> RuleSet {
    let mut list = |key: &str| read_patterns(section, key, faults);
    RuleSet { deny: list("deny"), ask: list("ask"), allow: list("allow") }
}
