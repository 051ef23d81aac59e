//! Budgets of members and teams: how much was used of each, and what follows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::MemberName;
use crate::members::record::MemberRecord;
use crate::members::usage::{MemberUsage, Prices, UsageTotal, count, dollars};
use crate::value::{As, AtLeast, Choice, Dollars};

/// The shares of a budget, in percent, at which the lead is notified.
const LEVELS: [u64; 2] = [80, 100];
/// The share from which a budget is used up.
const FULL: u64 = 100;

/// The reaction to a used-up budget, besides the warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnExceeded {
    /// Only warns.
    #[default]
    Warn,
    /// Starts no further member that the budget covers.
    StopSpawns,
    /// In addition, asks those that run to shut down.
    EndMembers,
}

/// A limit on what is used.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "budget", deny_unknown_fields)]
pub struct Budget {
    /// Maximum number of tokens; unlimited by default.
    #[serde(skip_serializing_if = "Option::is_none", with = "As::<Option<AtLeast<1, u64>>>")]
    pub tokens: Option<u64>,
    /// Maximum cost in dollars; unlimited by default.
    #[serde(skip_serializing_if = "Option::is_none", with = "As::<Option<Dollars>>")]
    pub cost: Option<f64>,
    /// Reaction to a used-up budget.
    #[serde(with = "As::<Choice<OnExceeded>>")]
    pub on_exceeded: OnExceeded,
}

/// The budgets of a team.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Budgets {
    /// Of all members together.
    pub team: Budget,
    /// Of each member without one of its own.
    pub each: Budget,
    /// By member.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, Budget>,
}

impl Budgets {
    pub fn is_empty(&self) -> bool {
        *self == Budgets::default()
    }

    /// Returns the budget of a member, with the table in which it is set.
    fn of_member(&self, name: &MemberName) -> (Budget, String) {
        match self.members.get(name.as_str()) {
            Some(budget) => (*budget, format!("member.{name}.")),
            None => (self.each, "defaults.".to_owned()),
        }
    }
}

/// The state of one budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetUse {
    /// The member; `None` for the team.
    pub member: Option<MemberName>,
    /// The used share.
    pub percent: u64,
    /// The used amount: `1.2M`, `$3.40`.
    pub used: String,
    /// The limit: `1.0M tokens`, `$5.00`.
    pub limit: String,
    /// The key of `team set` for the limit.
    #[serde(skip)]
    pub key: String,
    pub on_exceeded: OnExceeded,
}

impl BudgetUse {
    pub fn is_used_up(&self) -> bool {
        self.percent >= FULL
    }

    /// Returns true if the budget allows no further start of members that it covers.
    pub fn stops_spawns(&self) -> bool {
        self.is_used_up() && self.on_exceeded != OnExceeded::Warn
    }

    pub fn ends_members(&self) -> bool {
        self.is_used_up() && self.on_exceeded == OnExceeded::EndMembers
    }

    /// Returns the level that was reached; `None` below the first one.
    pub fn level(&self) -> Option<u64> {
        LEVELS.into_iter().rfind(|level| self.percent >= *level)
    }

    /// Identifies this level of this limit, to notify of each once.
    pub fn mark(&self) -> Option<String> {
        let subject = self.member.as_ref().map_or("", MemberName::as_str);
        Some(format!("{subject}|{}|{}", self.limit, self.level()?))
    }

    /// Describes the use: `team: 81 % of its budget is used, 8.1M of 10.0M tokens`.
    pub fn describe(&self) -> String {
        let subject = self.member.as_ref().map_or("the team", MemberName::as_str);
        format!(
            "{subject} has used {} % of its budget: {} of {}",
            self.percent, self.used, self.limit
        )
    }
}

/// Returns the use of every budget. A budget with two limits counts with the one that is nearer to
/// its end.
pub fn uses(budgets: &Budgets, prices: &Prices, records: &[MemberRecord]) -> Vec<BudgetUse> {
    if budgets.is_empty() {
        return Vec::new();
    }
    let used = |records: &mut dyn Iterator<Item = &MemberUsage>| UsageTotal::of(records, prices);
    let all = used(&mut records.iter().filter_map(|record| record.usage.as_ref()));
    let team = use_of(&budgets.team, all, None, "");
    let members = records.iter().filter_map(|record| {
        let (budget, table) = budgets.of_member(&record.name);
        use_of(&budget, used(&mut record.usage.iter()), Some(&record.name), &table)
    });
    team.into_iter().chain(members).collect()
}

fn use_of(
    budget: &Budget,
    total: Option<UsageTotal>,
    member: Option<&MemberName>,
    table: &str,
) -> Option<BudgetUse> {
    let total = total?;
    let found = |key: &str, percent: f64, used: String, limit: String| BudgetUse {
        member: member.cloned(),
        // A float that is too large, or not a number, becomes the nearest integer or 0.
        percent: percent as u64,
        used,
        limit,
        key: format!("{table}budget.{key}"),
        on_exceeded: budget.on_exceeded,
    };
    let tokens = budget.tokens.map(|limit| {
        let percent = total.tokens as f64 / limit.max(1) as f64 * 100.0;
        found("tokens", percent, count(total.tokens), format!("{} tokens", count(limit)))
    });
    let cost = budget.cost.map(|limit| {
        let cost = total.usage.cost.unwrap_or(0.0);
        found("cost", cost / limit * 100.0, dollars(cost), dollars(limit))
    });
    tokens.into_iter().chain(cost).max_by_key(|found| found.percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::usage::{Price, Usage};
    use crate::sample;
    use crate::time::Timestamp;

    fn record(name: &str, output: u64) -> MemberRecord {
        let mut usage = MemberUsage::default();
        usage.models.insert("m".to_owned(), Usage { output, ..Usage::default() });
        MemberRecord {
            usage: Some(usage),
            ..sample::record(name, sample::run(1), "claude", Timestamp(1))
        }
    }

    fn tokens(limit: u64, on_exceeded: OnExceeded) -> Budget {
        Budget { tokens: Some(limit), cost: None, on_exceeded }
    }

    #[test]
    fn team_and_members_have_budgets_of_their_own() {
        let budgets = Budgets {
            team: tokens(1000, OnExceeded::StopSpawns),
            each: tokens(600, OnExceeded::Warn),
            members: BTreeMap::from([("bob".to_owned(), tokens(250, OnExceeded::EndMembers))]),
        };
        let records = [record("ann", 500), record("bob", 500)];
        let uses = uses(&budgets, &Prices::new(), &records);
        let percent: Vec<u64> = uses.iter().map(|of| of.percent).collect();
        let levels: Vec<Option<u64>> = uses.iter().map(BudgetUse::level).collect();
        let stops: Vec<bool> = uses.iter().map(BudgetUse::stops_spawns).collect();
        let ends: Vec<bool> = uses.iter().map(BudgetUse::ends_members).collect();
        assert_eq!(percent, [100, 83, 200]);
        assert_eq!(levels, [Some(100), Some(80), Some(100)]);
        assert_eq!((stops, ends), (vec![true, false, true], vec![false, false, true]));
        assert_eq!(
            uses[0].describe(),
            "the team has used 100 % of its budget: 1.0k of 1.0k tokens"
        );
        let keys: Vec<&str> = uses.iter().map(|of| of.key.as_str()).collect();
        assert_eq!(keys, ["budget.tokens", "defaults.budget.tokens", "member.bob.budget.tokens"]);
    }

    #[test]
    fn cost_counts_by_price_and_the_nearer_limit_decides() {
        let price = Price { output: 1e6, ..Price::default() };
        let prices = Prices::from([("m".to_owned(), price)]);
        let team = Budget { tokens: Some(10_000), cost: Some(2.0), ..Budget::default() };
        let budgets = Budgets { team, ..Budgets::default() };
        let found = uses(&budgets, &prices, &[record("ann", 3)]);
        assert_eq!(found[0].describe(), "the team has used 150 % of its budget: $3.00 of $2.00");
        assert_eq!(found[0].mark().as_deref(), Some("|$2.00|100"));
        let without = uses(&budgets, &Prices::new(), &[record("ann", 3)]);
        assert_eq!((without[0].percent, without[0].mark()), (0, None));
        assert!(uses(&Budgets::default(), &prices, &[record("ann", 3)]).is_empty());
    }
}
