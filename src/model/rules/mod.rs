//! Rules that answer permission requests: lists of what is denied, what a person is asked, and what is allowed, in
//! Claude Code's pattern form. Pure. What no rule allows beyond doubt is asked; a denial is never overridden.

mod pattern;
mod shell;
mod suggest;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::id::MemberName;
use pattern::{Act, Fit};
pub(crate) use suggest::{suggest, updates};

/// One pattern: a tool, and perhaps what it is used for. `Bash(git:*)`, `Edit`, `WebFetch(domain:example.org)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Rule {
    tool: String,
    spec: Option<String>,
}

impl Rule {
    /// Reads one pattern.
    ///
    /// # Errors
    /// What is wrong with it, to stand behind the pattern itself.
    pub(crate) fn parse(text: &str) -> Result<Rule, String> {
        let text = text.trim();
        let (tool, spec) = match text.split_once('(') {
            Some((tool, rest)) => {
                let spec = rest.strip_suffix(')').ok_or("has no `)` at its end")?;
                (tool, Some(spec.trim()).filter(|spec| !spec.is_empty() && *spec != "*"))
            }
            None => (text, None),
        };
        let named = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let stem =
            tool.strip_suffix("__*").filter(|stem| stem.starts_with("mcp__")).unwrap_or(tool);
        if stem.is_empty() || !stem.chars().all(named) {
            return Err(
                "names no tool; write `Bash(git:*)`, `Edit`, `mcp__server__tool`".to_owned()
            );
        }
        let rule = Rule { tool: tool.to_owned(), spec: spec.map(str::to_owned) };
        pattern::check(&rule).map(|()| rule)
    }

    /// As it stands in an update of permissions (observed).
    pub(crate) fn entry(&self) -> Value {
        match &self.spec {
            Some(spec) => json!({"toolName": self.tool, "ruleContent": spec}),
            None => json!({"toolName": self.tool}),
        }
    }

    /// The tool that it is about.
    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }

    /// Whether it is about all that the tool can do.
    pub(crate) fn is_whole(&self) -> bool {
        self.spec.is_none()
    }

    /// Reads patterns with commas between them, as Claude Code's command line has them.
    ///
    /// # Errors
    /// The pattern and what is wrong with it.
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Rule>, String> {
        let (mut depth, mut from, mut parts) = (0_usize, 0, Vec::new());
        for (at, c) in text.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    parts.push(&text[from..at]);
                    from = at + 1;
                }
                _ => {}
            }
        }
        parts.push(&text[from..]);
        parts
            .iter()
            .map(|part| Rule::parse(part).map_err(|e| format!("`{}` {e}", part.trim())))
            .collect()
    }
}

impl From<Rule> for String {
    fn from(rule: Rule) -> String {
        rule.spec.map_or(rule.tool.clone(), |spec| format!("{}({spec})", rule.tool))
    }
}

impl TryFrom<String> for Rule {
    type Error = String;

    fn try_from(text: String) -> Result<Rule, String> {
        Rule::parse(&text).map_err(|e| format!("`{text}` {e}"))
    }
}

/// Which list of a rule set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Deny,
    Ask,
    Allow,
}

impl List {
    /// In the order in which they are looked at.
    pub(crate) const ALL: [List; 3] = [List::Deny, List::Ask, List::Allow];

    /// The wire's spelling, and that of the manifest.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            List::Deny => "deny",
            List::Ask => "ask",
            List::Allow => "allow",
        }
    }
}

/// The rules of a team, a role or a member. Looked at in the order deny, ask, allow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RuleSet {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) deny: Vec<Rule>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ask: Vec<Rule>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) allow: Vec<Rule>,
}

impl RuleSet {
    /// One of its lists.
    pub(crate) fn list(&self, which: List) -> &[Rule] {
        match which {
            List::Deny => &self.deny,
            List::Ask => &self.ask,
            List::Allow => &self.allow,
        }
    }

    /// Adds rules to a list; gives those that were not there.
    pub(crate) fn add(&mut self, to: List, rules: &[Rule]) -> Vec<Rule> {
        let list = self.list_mut(to);
        let before = list.len();
        for rule in rules {
            if !list.contains(rule) {
                list.push(rule.clone());
            }
        }
        list[before..].to_vec()
    }

    /// Takes rules out of a list, all of them or, where one is not there, none.
    ///
    /// # Errors
    /// The first that is not there.
    pub(crate) fn remove(&mut self, from: List, rules: &[Rule]) -> Result<(), Rule> {
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

/// All rules of a team: those of the team, of a role and of a member hold together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TeamRules {
    pub(crate) team: RuleSet,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) roles: BTreeMap<String, RuleSet>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) members: BTreeMap<String, RuleSet>,
}

impl TeamRules {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        *self == TeamRules::default()
    }

    /// Every set, with whose it is.
    pub(crate) fn all(&self) -> impl Iterator<Item = (String, &RuleSet)> {
        let roles = self.roles.iter().map(|(name, set)| (format!("role {name}"), set));
        let members = self.members.iter().map(|(name, set)| (format!("member {name}"), set));
        std::iter::once(("the team".to_owned(), &self.team)).chain(roles).chain(members)
    }

    /// Whether a program that is told of this permission, and of nothing else, would know all there is to know: nothing
    /// of the same tool is denied or asked, for anybody.
    pub(crate) fn allows_plainly(&self, allowed: &Rule) -> bool {
        let mut wary = self.all().flat_map(|(_, set)| set.deny.iter().chain(&set.ask));
        !wary.any(|rule| pattern::same_family(&rule.tool, &allowed.tool))
    }

    /// The rules for a member, with whose they are.
    pub(crate) fn of(&self, member: &MemberName, role: Option<&str>) -> Vec<(String, &RuleSet)> {
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

/// One use of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use<'a> {
    pub(crate) tool: &'a str,
    pub(crate) input: &'a Value,
    /// Whose `~` is meant.
    pub(crate) home: Option<&'a str>,
    /// The member's working directory.
    pub(crate) cwd: &'a str,
}

/// What the rules say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Judgement {
    /// Every part of it is allowed; `updates` tells the member's program so, where that says no more than this.
    Allow {
        rule: String,
        updates: Vec<Value>,
    },
    Deny {
        rule: String,
    },
    /// A person decides.
    Ask,
}

/// What `sets` say of one use. A denial in any of them wins over whatever another allows.
pub(crate) fn judge(sets: &[(String, &RuleSet)], used: &Use) -> Judgement {
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

/// The rules that allowed it, for the member's program to apply by itself. Only where nothing of that tool is denied
/// or asked: its program would not know of that.
fn session_updates(sets: &[(String, &RuleSet)], rules: &[(&str, &Rule)]) -> Vec<Value> {
    let mut wary = sets.iter().flat_map(|(_, set)| set.deny.iter().chain(&set.ask));
    if wary.any(|rule| {
        rules.iter().any(|(_, allowed)| pattern::same_family(&rule.tool, &allowed.tool))
    }) {
        return Vec::new();
    }
    let mut rules: Vec<Rule> = rules.iter().map(|(_, rule)| (*rule).clone()).collect();
    rules.dedup();
    updates(&rules)
}
