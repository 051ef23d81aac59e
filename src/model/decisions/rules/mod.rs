//! Rules that answer permission requests: deny, ask and allow lists in Claude Code's pattern
//! format. A use that is not clearly allowed is asked, and a denial is never overridden.

mod outside;
mod pattern;
mod rule;
mod shell;
mod suggest;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use crate::id::MemberName;
use crate::value::As;
pub use outside::path_outside;
pub use pattern::Use;
use pattern::{Act, Fit};
pub use rule::{Rule, RuleList};
pub use suggest::suggest;

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr, strum::VariantNames,
)]
#[strum(serialize_all = "lowercase")]
pub enum List {
    Deny,
    Ask,
    Allow,
}

impl List {
    /// All lists in the order in which they are evaluated.
    pub const ALL: [List; 3] = [List::Deny, List::Ask, List::Allow];

    /// The name on the wire and in the manifest.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Rules of a team, a role or a member, evaluated in the order deny, ask, allow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "rule_lists", deny_unknown_fields)]
pub struct RuleSet {
    /// Patterns that deny a request.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<RuleList>")]
    pub deny: Vec<Rule>,
    /// Patterns that ask a person.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<RuleList>")]
    pub ask: Vec<Rule>,
    /// Patterns that allow a request.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<RuleList>")]
    pub allow: Vec<Rule>,
}

impl RuleSet {
    pub fn list(&self, which: List) -> &[Rule] {
        match which {
            List::Deny => &self.deny,
            List::Ask => &self.ask,
            List::Allow => &self.allow,
        }
    }

    /// Adds rules to a list and returns those that were new.
    pub fn add(&mut self, to: List, rules: &[Rule]) -> Vec<Rule> {
        let list = self.list_mut(to);
        let before = list.len();
        for rule in rules {
            if !list.contains(rule) {
                list.push(rule.clone());
            }
        }
        list[before..].to_vec()
    }

    /// Removes rules from a list, or none of them if one is missing.
    ///
    /// # Errors
    /// The first rule that is not in the list.
    pub fn remove(&mut self, from: List, rules: &[Rule]) -> Result<(), Rule> {
        let list = self.list_mut(from);
        match rules.iter().find(|rule| !list.contains(rule)) {
            Some(missing) => Err(missing.clone()),
            None => {
                list.retain(|rule| !rules.contains(rule));
                Ok(())
            }
        }
    }

    fn list_mut(&mut self, which: List) -> &mut Vec<Rule> {
        match which {
            List::Deny => &mut self.deny,
            List::Ask => &mut self.ask,
            List::Allow => &mut self.allow,
        }
    }
}

/// All rules of a team. The rules of the team, of a member's role and of the member itself apply
/// together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TeamRules {
    pub team: RuleSet,
    /// By role name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, RuleSet>,
    /// By member name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, RuleSet>,
}

impl TeamRules {
    pub fn is_empty(&self) -> bool {
        *self == TeamRules::default()
    }

    /// Returns every set with the name of its owner.
    pub fn all(&self) -> impl Iterator<Item = (String, &RuleSet)> {
        let roles = self.roles.iter().map(|(name, set)| (format!("role {name}"), set));
        let members = self.members.iter().map(|(name, set)| (format!("member {name}"), set));
        std::iter::once(("the team".to_owned(), &self.team)).chain(roles).chain(members)
    }

    /// Returns true if a program that knows only this permission would decide like phalanx: no set
    /// denies or asks about uses of the same tool.
    pub fn allows_plainly(&self, allowed: &Rule) -> bool {
        let mut wary = self.all().flat_map(|(_, set)| set.deny.iter().chain(&set.ask));
        !wary.any(|rule| pattern::same_family(&rule.tool, &allowed.tool))
    }

    /// Returns the sets that apply to a member, each with the name of its owner.
    pub fn sets_for(&self, member: &MemberName, role: Option<&str>) -> Vec<(String, &RuleSet)> {
        let mut sets = vec![("the team".to_owned(), &self.team)];
        let roles = self
            .roles
            .iter()
            .filter(|(name, _)| role.is_some_and(|r| r.eq_ignore_ascii_case(name)));
        sets.extend(roles.map(|(name, set)| (format!("role {name}"), set)));
        let members = self.members.iter().filter(|(name, _)| member.clashes_with(name));
        sets.extend(members.map(|(name, set)| (format!("member {name}"), set)));
        sets
    }
}

/// The result of evaluating the rules.
#[derive(Debug, Clone, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Judgement {
    /// Every part of the use is allowed. `updates` lets the member's program apply the rules
    /// itself; it is empty if the program would then allow more than phalanx does.
    Allow {
        rule: String,
        updates: Vec<Value>,
    },
    Deny {
        rule: String,
    },
    /// A person must decide.
    Ask,
}

/// Evaluates one use against `sets`. A denial in any set overrides permissions in all others.
pub fn judge(sets: &[(String, &RuleSet)], used: &Use) -> Judgement {
    let act = Act::of(used);
    let deny = |(whose, set): &(String, &RuleSet)| {
        let rule = set.deny.iter().find(|rule| act.fits(rule) == Fit::Yes)?;
        Some(format!("deny {} of {whose}", String::from(rule.clone())))
    };
    if let Some(rule) = sets.iter().find_map(deny) {
        return Judgement::Deny { rule };
    }
    let mut wary = sets.iter().flat_map(|(_, set)| set.deny.iter().chain(&set.ask));
    if wary.any(|rule| act.fits(rule) != Fit::No) {
        return Judgement::Ask;
    }
    let all: Vec<(&str, &Rule)> = sets
        .iter()
        .flat_map(|(whose, set)| set.allow.iter().map(|rule| (whose.as_str(), rule)))
        .collect();
    let Some(rules) = act.allowed_by(&all) else { return Judgement::Ask };
    let named =
        rules.iter().map(|(whose, rule)| format!("{} of {whose}", String::from((*rule).clone())));
    let mut named: Vec<String> = named.collect();
    named.dedup();
    Judgement::Allow {
        rule: format!("allow {}", named.join(", ")),
        updates: session_updates(sets, &rules),
    }
}

/// Denies a use outside of the patterns to which a member's list of allowed tools narrows the tool.
/// `None` for any other use: the list grants nothing, and a program is not offered what it lacks.
pub fn judge_tools(allowed: &[Rule], used: &Use) -> Option<Judgement> {
    let patterns: Vec<(&str, &Rule)> =
        allowed.iter().filter(|rule| rule.tool == used.tool).map(|rule| ("", rule)).collect();
    let is_whole = patterns.is_empty() || patterns.iter().any(|(_, rule)| rule.is_whole());
    if is_whole || Act::of(used).allowed_by(&patterns).is_some() {
        return None;
    }
    let named: Vec<String> = patterns.into_iter().map(|(_, rule)| rule.clone().into()).collect();
    Some(Judgement::Deny { rule: format!("only {} of its tools", named.join(", ")) })
}

/// Returns the rule that has a person asked about this use, whatever else allows it.
pub fn asking_rule(sets: &[(String, &RuleSet)], used: &Use) -> Option<String> {
    let act = Act::of(used);
    sets.iter().find_map(|(whose, set)| {
        let asking = set.ask.iter().find(|rule| act.fits(rule) != Fit::No)?;
        Some(format!("ask {} of {whose}", String::from(asking.clone())))
    })
}

/// Returns updates with the rules that allowed the use. They are empty if any set denies or asks
/// about the same tool, because the program does not know of those rules.
fn session_updates(sets: &[(String, &RuleSet)], rules: &[(&str, &Rule)]) -> Vec<Value> {
    let mut wary = sets.iter().flat_map(|(_, set)| set.deny.iter().chain(&set.ask));
    if wary.any(|rule| {
        rules.iter().any(|(_, allowed)| pattern::same_family(&rule.tool, &allowed.tool))
    }) {
        return Vec::new();
    }
    let mut rules: Vec<Rule> = rules.iter().map(|(_, rule)| (*rule).clone()).collect();
    rules.dedup();
    rule::updates(&rules)
}
