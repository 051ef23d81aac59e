//! Rules about which member may message which other, and the recipients of a member's blockers.
//! They apply to texts that members write, not to protocol messages.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::LEAD;
use crate::team::Member;
use crate::value::{As, FIELD, text_types};

/// One side of a rule: `*`, `lead`, or the name of a member or a role.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Party {
    Anyone,
    Lead,
    Named(String),
}

impl Party {
    /// Parses a side of a rule.
    ///
    /// # Errors
    /// A message that continues a sentence starting with the text, if it is no name.
    pub fn parse(text: &str) -> Result<Party, String> {
        let name = text.trim();
        match name {
            "*" => Ok(Party::Anyone),
            "lead" | LEAD => Ok(Party::Lead),
            _ if name.is_empty() || name.contains("->") || name.chars().any(char::is_control) => {
                Err("is not a role, a member, `lead` or `*`".to_owned())
            }
            _ => Ok(Party::Named(name.to_owned())),
        }
    }

    /// Returns true if the member is meant, by its name or by its role.
    fn includes(&self, member: &Member) -> bool {
        match self {
            Party::Anyone => true,
            Party::Lead => member.name.is_lead(),
            Party::Named(name) => {
                member.name.as_str() == name || member.agent_type.as_ref() == Some(name)
            }
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Party::Anyone => "*",
            Party::Lead => "lead",
            Party::Named(name) => name,
        })
    }
}

impl TryFrom<String> for Party {
    type Error = String;

    fn try_from(text: String) -> Result<Party, String> {
        Party::parse(&text).map_err(|problem| format!("{text:?} {problem}"))
    }
}

impl From<Party> for String {
    fn from(party: Party) -> String {
        party.to_string()
    }
}

/// A rule, `FROM -> TO`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Route {
    from: Party,
    to: Party,
}

impl Route {
    /// Parses `FROM -> TO`.
    ///
    /// # Errors
    /// A message that continues a sentence starting with the text, if it is no rule.
    pub fn parse(text: &str) -> Result<Route, String> {
        let sides = text.split_once("->").map(|(from, to)| (Party::parse(from), Party::parse(to)));
        match sides {
            Some((Ok(from), Ok(to))) => Ok(Route { from, to }),
            Some(_) | None => Err("is not a rule such as `dev -> lead`".to_owned()),
        }
    }

    fn covers(&self, from: &Member, to: &Member) -> bool {
        self.from.includes(from) && self.to.includes(to)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

impl TryFrom<String> for Route {
    type Error = String;

    fn try_from(text: String) -> Result<Route, String> {
        Route::parse(&text).map_err(|problem| format!("{text:?} {problem}"))
    }
}

impl From<Route> for String {
    fn from(route: Route) -> String {
        route.to_string()
    }
}

text_types! {
    pub RouteText(Route) = |text| {
        Route::parse(text).map_err(|problem| format!("{FIELD}: `{}` {problem}", text.escape_debug()))
    };
    /// The member or role that is blocked, as a key.
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    pub BlockedParty(Party) = party;
    /// The recipient of its blockers.
    pub SuperiorParty(Party) = |text| match party(text)? {
        Party::Anyone => Err(format!("{FIELD} must be a role, a member or `lead`, not `*`")),
        named => Ok(named),
    };
}

fn party(text: &str) -> Result<Party, String> {
    Party::parse(text).map_err(|problem| format!("{FIELD}: `{}` {problem}", text.escape_debug()))
}

/// The routing rules of a team.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "routing", deny_unknown_fields)]
pub struct RoutingPolicy {
    /// The only messages that are delivered, as `"dev -> senior"`: roles, members, `lead` or `*`.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Vec<RouteText>>")]
    pub allow: Vec<Route>,
    /// Messages that are not delivered, even if allowed.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Vec<RouteText>>")]
    pub deny: Vec<Route>,
    /// By member or role, who gets its blockers: a role, a member or `lead`.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        with = "As::<BTreeMap<BlockedParty, SuperiorParty>>"
    )]
    pub escalate: BTreeMap<Party, Party>,
}

/// The reason why a member may not message another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoutingRefusal {
    #[error("the rule `{0}` in `deny` forbids it")]
    Denied(Route),
    #[error("no rule in `allow` permits it: {}", listed(.0))]
    NotAllowed(Vec<Route>),
}

fn listed(rules: &[Route]) -> String {
    rules.iter().map(|rule| format!("`{rule}`")).collect::<Vec<_>>().join(", ")
}

impl RoutingPolicy {
    pub fn is_empty(&self) -> bool {
        *self == RoutingPolicy::default()
    }

    /// Checks whether `from` may message `to`. Without rules every member may message every other.
    ///
    /// # Errors
    /// The rule that forbids it, or the rules of which none permits it.
    pub fn check(&self, from: &Member, to: &Member) -> Result<(), RoutingRefusal> {
        if let Some(rule) = self.deny.iter().find(|rule| rule.covers(from, to)) {
            return Err(RoutingRefusal::Denied(rule.clone()));
        }
        if self.allow.is_empty() || self.allow.iter().any(|rule| rule.covers(from, to)) {
            return Ok(());
        }
        Err(RoutingRefusal::NotAllowed(self.allow.clone()))
    }

    /// Returns the other members that `from` may message.
    pub fn recipients<'m>(&self, from: &Member, members: &'m [Member]) -> Vec<&'m Member> {
        let others = members.iter().filter(|member| member.name != from.name);
        others.filter(|member| self.check(from, member).is_ok()).collect()
    }

    /// Returns the members that get the blockers of `from`, in the order of the roster. An entry
    /// for its name takes precedence over one for its role, and that one over `*`.
    pub fn superiors<'m>(&self, from: &Member, members: &'m [Member]) -> Vec<&'m Member> {
        let name = Party::parse(from.name.as_str()).ok();
        let role = from.agent_type.clone().map(Party::Named);
        let keys = [name, role, Some(Party::Anyone)].into_iter().flatten();
        let Some(to) = keys.filter_map(|key| self.escalate.get(&key)).next() else {
            return Vec::new();
        };
        members.iter().filter(|member| member.name != from.name && to.includes(member)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::Object;

    /// Returns a member from `NAME` or `NAME:ROLE`.
    fn member(text: &str) -> Member {
        let (name, role) = text.split_once(':').map_or((text, None), |(n, r)| (n, Some(r)));
        let entry = json!({"name": name, "agentType": role});
        let entry: &Object = entry.as_object().expect("an object");
        Member::read(entry).expect("a member")
    }

    fn rules(rules: &[&str]) -> Vec<Route> {
        rules.iter().map(|rule| Route::parse(rule).expect("a rule")).collect()
    }

    fn policy(allow: &[&str], deny: &[&str]) -> RoutingPolicy {
        RoutingPolicy { allow: rules(allow), deny: rules(deny), ..RoutingPolicy::default() }
    }

    #[test]
    fn rules_decide_who_may_message_whom() {
        type RuleTexts = &'static [&'static str];
        const CHAIN: RuleTexts = &["dev -> senior", "senior -> lead", "* -> dev"];
        let (denied, unlisted) = (Err("in `deny` forbids it"), Err("no rule in `allow`"));
        type Case = (RuleTexts, RuleTexts, &'static str, &'static str, Result<(), &'static str>);
        let table: [Case; 17] = [
            (&[], &[], "ann:dev", "team-lead", Ok(())),
            (&[], &[], "ann", "bob", Ok(())),
            (CHAIN, &[], "ann:dev", "sam:senior", Ok(())),
            (CHAIN, &[], "ann:dev", "team-lead", unlisted),
            (CHAIN, &[], "ann:dev", "bob:dev", Ok(())),
            (CHAIN, &[], "sam:senior", "team-lead", Ok(())),
            (CHAIN, &[], "team-lead", "ann:dev", Ok(())),
            (CHAIN, &[], "team-lead", "sam:senior", unlisted),
            (CHAIN, &["* -> dev"], "team-lead", "ann:dev", denied),
            (&[], &["dev -> lead"], "ann:dev", "team-lead", denied),
            (&[], &["dev -> team-lead"], "ann:dev", "team-lead", denied),
            (&[], &["dev -> lead"], "ann:dev", "sam:senior", Ok(())),
            (&["* -> *"], &["ann -> bob"], "ann:dev", "bob:dev", denied),
            (&["* -> *"], &["ann -> bob"], "bob:dev", "ann:dev", Ok(())),
            (&["ann -> bob"], &[], "ann:dev", "bob:dev", Ok(())),
            (&["Dev -> bob"], &[], "ann:dev", "bob:dev", unlisted),
            // The role of a teammate does not make it the lead.
            (&["lead -> bob"], &[], "ann:lead", "bob", unlisted),
        ];
        for (allow, deny, from, to, expected) in table {
            let found = policy(allow, deny).check(&member(from), &member(to));
            let about = format!("{allow:?} {deny:?}: {from} to {to}: {found:?}");
            match (found, expected) {
                (Ok(()), Ok(())) => {}
                (Err(refusal), Err(said)) => assert!(refusal.to_string().contains(said), "{about}"),
                _ => panic!("{about}"),
            }
        }
    }

    #[test]
    fn refusal_names_the_rule() {
        let said = |policy: RoutingPolicy| {
            policy.check(&member("ann:dev"), &member("team-lead")).expect_err("refused").to_string()
        };
        assert_eq!(
            said(policy(&[], &["qa -> *", "dev->lead"])),
            "the rule `dev -> lead` in `deny` forbids it"
        );
        assert_eq!(
            said(policy(&["dev -> senior", "* -> dev"], &[])),
            "no rule in `allow` permits it: `dev -> senior`, `* -> dev`"
        );
    }

    #[test]
    fn recipients_are_the_others_that_may_be_messaged() {
        let all = ["team-lead", "ann:dev", "bob:dev", "sam:senior"].map(member);
        let names = |policy: RoutingPolicy, from: usize| {
            let found = policy.recipients(&all[from], &all);
            found.iter().map(|member| member.name.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(policy(&[], &[]), 1), "team-lead bob sam");
        assert_eq!(names(policy(&["dev -> senior"], &[]), 1), "sam");
        assert_eq!(names(policy(&["dev -> senior"], &[]), 3), "");
    }

    #[test]
    fn blockers_go_to_whom_the_escalation_names() {
        let all = ["team-lead", "ann:dev", "bob:dev", "sam:senior", "tom:senior"].map(member);
        let to = |escalate: &[(&str, &str)], from: usize| {
            let party = |text: &&str| Party::parse(text).expect("a party");
            let escalate = escalate.iter().map(|(of, to)| (party(of), party(to))).collect();
            let policy = RoutingPolicy { escalate, ..RoutingPolicy::default() };
            let found = policy.superiors(&all[from], &all);
            found.iter().map(|member| member.name.to_string()).collect::<Vec<_>>().join(" ")
        };
        let chain = [("dev", "senior"), ("senior", "lead")];
        assert_eq!(to(&chain, 1), "sam tom");
        assert_eq!(to(&chain, 3), "team-lead");
        assert_eq!(to(&chain, 0), "");
        assert_eq!(to(&[("dev", "senior"), ("ann", "tom")], 1), "tom");
        assert_eq!(to(&[("*", "lead"), ("dev", "bob")], 1), "bob");
        assert_eq!(to(&[("dev", "bob")], 2), "", "never the member itself");
        assert_eq!(to(&[("dev", "architect")], 1), "");
        assert_eq!(to(&[("lead", "sam")], 0), "sam");
    }

    #[test]
    fn text_that_is_no_rule_is_refused() {
        for bad in ["", "dev", "dev ->", "-> dev", "a -> b -> c", "a > b", "a\nb -> c"] {
            assert!(Route::parse(bad).is_err(), "{bad:?}");
        }
        let rule = Route::parse("  general-purpose->team-lead ").expect("a rule");
        assert_eq!(rule.to_string(), "general-purpose -> lead");
    }

    #[test]
    fn policy_round_trips_through_json() {
        let text =
            r#"{"allow":["dev -> lead"],"deny":["* -> *"],"escalate":{"*":"lead","dev":"sam"}}"#;
        let policy: RoutingPolicy = serde_json::from_str(text).expect("a policy");
        let back = serde_json::to_string(&policy).expect("json");
        assert_eq!(serde_json::from_str::<RoutingPolicy>(&back).expect("a policy"), policy);
        assert!(serde_json::from_str::<RoutingPolicy>(r#"{"deny":["x"]}"#).is_err());
        assert!(RoutingPolicy::default().is_empty() && !policy.is_empty());
    }
}
