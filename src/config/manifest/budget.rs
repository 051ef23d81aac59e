//! `budget`, `[team.prices]` and `resume_limited`.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use crate::model::budget::{Budget, OnExceeded};
use crate::model::rate_limit::ResumePolicy;
use crate::model::usage::Price;
use crate::model::value::{AtLeast, Choice, FIELD, inline_schema};

/// `budget` of the team, of `[defaults]` or of a member.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "budget")]
pub(super) struct BudgetTable {
    /// Maximum number of tokens; unlimited by default.
    tokens: Option<AtLeast<1>>,
    /// Maximum cost in dollars; unlimited by default.
    cost: Option<Dollars>,
    /// Reaction to a used-up budget.
    #[schemars(extend("default" = OnExceeded::default()))]
    on_exceeded: Option<Choice<OnExceeded>>,
}

impl BudgetTable {
    pub(super) fn to_budget(&self) -> Budget {
        Budget {
            tokens: self.tokens.as_ref().map(|limit| u64::try_from(limit.0).unwrap_or(u64::MAX)),
            cost: self.cost.as_ref().map(|limit| limit.0),
            on_exceeded: self.on_exceeded.as_ref().map(|choice| choice.0).unwrap_or_default(),
        }
    }
}

/// The prices of one model, in dollars per million tokens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "prices")]
pub(super) struct PriceTable {
    /// Price of input.
    input: Dollars,
    /// Price of output.
    output: Dollars,
    /// Price of input from the cache; that of `input` by default.
    cached_input: Option<Dollars>,
    /// Price of writing to the cache; that of `input` by default.
    cache_write: Option<Dollars>,
}

impl From<PriceTable> for Price {
    fn from(table: PriceTable) -> Price {
        Price {
            input: table.input.0,
            output: table.output.0,
            cached_input: table.cached_input.map(|price| price.0),
            cache_write: table.cache_write.map(|price| price.0),
        }
    }
}

/// `resume_limited` of the team.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "resume_limited")]
pub(super) struct ResumeTable {
    /// Number of times that a member is asked to continue; 0 for never.
    attempts: Option<AtLeast<0>>,
}

impl From<ResumeTable> for ResumePolicy {
    fn from(table: ResumeTable) -> ResumePolicy {
        let attempts = table.attempts.map(|count| u32::try_from(count.0).unwrap_or(u32::MAX));
        attempts.map_or_else(ResumePolicy::default, |attempts| ResumePolicy { attempts })
    }
}

/// A sum of dollars, at least 0.
#[derive(Debug)]
struct Dollars(f64);

inline_schema!(Dollars, { "type": "number", "minimum": 0 });

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Dollars, D::Error> {
        deserializer.deserialize_any(DollarsVisitor)
    }
}

struct DollarsVisitor;

impl Visitor<'_> for DollarsVisitor {
    type Value = Dollars;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number of dollars")
    }

    fn visit_f64<E: Error>(self, sum: f64) -> Result<Dollars, E> {
        match sum.is_finite() && sum >= 0.0 {
            true => Ok(Dollars(sum)),
            false => Err(E::custom(format!("{FIELD} must be a sum of dollars, at least 0"))),
        }
    }

    fn visit_i64<E: Error>(self, sum: i64) -> Result<Dollars, E> {
        self.visit_f64(sum as f64)
    }

    fn visit_u64<E: Error>(self, sum: u64) -> Result<Dollars, E> {
        self.visit_f64(sum as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::manifest::Manifest;
    use crate::model::settings::Settings;

    fn read(keys: &str) -> Result<Settings, String> {
        let text = format!("[team]\nname = \"t\"\n{keys}");
        Manifest::parse(&text).map(|manifest| manifest.settings).map_err(|e| e.to_string())
    }

    #[test]
    fn budgets_are_of_the_team_of_each_member_and_of_one_entry() {
        let settings = read(
            "budget = { cost = 5, on_exceeded = \"stop-spawns\" }\nresume_limited = { attempts = 0 }\n\
             [team.prices.\"m-1\"]\ninput = 1.5\noutput = 6\n\
             [defaults]\nbudget = { tokens = 1000 }\n\
             [[member]]\nname = \"dev\"\nscale = { max = 2 }\nbudget = { tokens = 7 }\n\
             [[member]]\nname = \"qa\"",
        )
        .expect("valid");
        assert_eq!(settings.budgets.team.cost, Some(5.0));
        assert_eq!(settings.budgets.team.on_exceeded, OnExceeded::StopSpawns);
        assert_eq!(settings.budgets.each.tokens, Some(1000));
        let members: Vec<(&str, Option<u64>)> =
            settings.budgets.members.iter().map(|(name, of)| (name.as_str(), of.tokens)).collect();
        assert_eq!(members, [("dev-1", Some(7)), ("dev-2", Some(7))]);
        assert_eq!(settings.resume_limited.attempts, 0);
        assert_eq!((settings.prices["m-1"].input, settings.prices["m-1"].output), (1.5, 6.0));
        assert_eq!(read("").expect("valid").resume_limited.attempts, 3);
    }

    #[test]
    fn invalid_budgets_are_refused() {
        let table = [
            ("budget = { tokens = 0 }", "at least 1"),
            ("budget = { cost = -1 }", "at least 0"),
            ("budget = { cost = nan }", "at least 0"),
            ("budget = { cost = \"5\" }", "a number of dollars"),
            ("budget = { on_exceeded = \"stop\" }", "known: `warn`, `stop-spawns`, `end-members`"),
            ("resume_limited = { attempts = -1 }", "at least 0"),
            ("[team.prices.m]\ninput = 1", "output"),
        ];
        for (keys, said) in table {
            let problem = read(keys).expect_err(keys);
            assert!(problem.contains(said), "{keys}: {problem}");
        }
    }
}
