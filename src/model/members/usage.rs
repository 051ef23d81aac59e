//! The tokens that a member's program has used, as its transcripts report them, and their cost.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::time::Timestamp;
use crate::value::{As, Dollars};

/// Maximum number of models that are counted separately for one member.
const MOST_MODELS: usize = 32;
/// The name under which the tokens of further models, and of unnamed ones, are counted.
const OTHER: &str = "other";
/// Tokens to which a price applies.
const PER_TOKENS: f64 = 1e6;

/// A number of tokens, and what they cost if the program reports that.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input that was neither read from nor written to the provider's cache.
    pub input: u64,
    /// Input read from the cache.
    pub cached_input: u64,
    /// Input written to the cache.
    pub cache_write: u64,
    pub output: u64,
    /// Dollars, as reported by the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// Returns the number of all tokens.
    pub fn tokens(&self) -> u64 {
        [self.input, self.cached_input, self.cache_write, self.output]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    pub fn is_zero(&self) -> bool {
        *self == Usage::default()
    }

    /// Returns the part that was not in `earlier`, a previous state of the same count.
    pub(crate) fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            input: self.input.saturating_sub(earlier.input),
            cached_input: self.cached_input.saturating_sub(earlier.cached_input),
            cache_write: self.cache_write.saturating_sub(earlier.cache_write),
            output: self.output.saturating_sub(earlier.output),
            cost: self.cost.map(|cost| (cost - earlier.cost.unwrap_or(0.0)).max(0.0)),
        }
    }
}

impl AddAssign<&Usage> for Usage {
    fn add_assign(&mut self, more: &Usage) {
        self.input = self.input.saturating_add(more.input);
        self.cached_input = self.cached_input.saturating_add(more.cached_input);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
        self.output = self.output.saturating_add(more.output);
        self.cost = match (self.cost, more.cost) {
            (None, None) => None,
            (own, more) => Some(own.unwrap_or(0.0) + more.unwrap_or(0.0)),
        };
    }
}

/// A transcript and how far it was read.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TranscriptState {
    pub path: String,
    /// The byte after the last line that was read.
    pub offset: u64,
    /// The latest responses (claude).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) recent: Vec<Response>,
    /// The sum that the program has reported so far (codex).
    #[serde(skip_serializing_if = "Usage::is_zero")]
    pub(crate) counted: Usage,
    /// The model of the current turn (codex).
    pub(crate) model: Option<String>,
    /// The text of the program about its usage limit, if its last request was refused for that.
    pub limit: Option<String>,
    /// The error with which the last turn ended, if the program has got no message since then.
    pub error: Option<TurnError>,
    /// Number of requests that were refused.
    #[serde(skip_serializing_if = "is_zero")]
    pub refused: u64,
}

/// An error with which a program gave up a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnError {
    /// The text of the program, on one line.
    pub said: String,
    /// Its provider refuses the login.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_login: bool,
    pub at: Timestamp,
}

/// Beginnings of the reason of an idle run whose last turn ended with an error, as its screen
/// shows; the second one of an error that a login mends.
const FAILED: [(&str, bool); 2] = [("failed: ", false), ("failed:login: ", true)];

/// Returns the reason of an idle run whose last turn ended with an error; `said` is what the
/// screen says.
pub fn failed_reason(said: &str, needs_login: bool) -> String {
    let (beginning, _) = FAILED[usize::from(needs_login)];
    format!("{beginning}{said}")
}

impl TurnError {
    /// Reads the reason of an idle run; `None` if it is not about an error.
    pub(crate) fn of_reason(reason: &str, at: Timestamp) -> Option<TurnError> {
        FAILED.iter().find_map(|(beginning, needs_login)| {
            let said = reason.strip_prefix(beginning)?.to_owned();
            Some(TurnError { said, needs_login: *needs_login, at })
        })
    }
}

/// A response of a model, as it was counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Response {
    pub(crate) id: String,
    pub(crate) usage: Usage,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl TranscriptState {
    /// Returns the state of a transcript of which nothing was read.
    pub fn new(path: String) -> TranscriptState {
        TranscriptState { path, ..TranscriptState::default() }
    }
}

/// The usage of all runs of a member, with the positions up to which its transcripts were read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberUsage {
    /// By model.
    pub models: BTreeMap<String, Usage>,
    /// The transcripts of the latest session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transcripts: Vec<TranscriptState>,
}

impl MemberUsage {
    /// Returns the error with which the last turn of the program's main conversation ended.
    pub fn turn_error(&self) -> Option<&TurnError> {
        self.transcripts.first()?.error.as_ref()
    }

    /// Adds tokens of a model.
    pub fn add(&mut self, model: Option<&str>, more: &Usage) {
        if more.is_zero() {
            return;
        }
        let model = model.unwrap_or(OTHER);
        let has_room = self.models.contains_key(model) || self.models.len() < MOST_MODELS;
        let model = if has_room { model } else { OTHER };
        *self.models.entry(model.to_owned()).or_default() += more;
    }
}

/// The price of a million tokens of a model, in dollars, as the user has given it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "prices", deny_unknown_fields)]
pub struct Price {
    /// Price of input.
    #[serde(with = "As::<Dollars>")]
    pub input: f64,
    /// Price of output.
    #[serde(with = "As::<Dollars>")]
    pub output: f64,
    /// Price of input from the cache; that of `input` by default.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<Dollars>>")]
    pub cached_input: Option<f64>,
    /// Price of writing to the cache; that of `input` by default.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<Dollars>>")]
    pub cache_write: Option<f64>,
}

impl Price {
    fn cost(&self, usage: &Usage) -> f64 {
        let parts = [
            (usage.input, self.input),
            (usage.cached_input, self.cached_input.unwrap_or(self.input)),
            (usage.cache_write, self.cache_write.unwrap_or(self.input)),
            (usage.output, self.output),
        ];
        parts.into_iter().map(|(tokens, price)| tokens as f64 * price / PER_TOKENS).sum()
    }
}

/// Prices by model.
pub type Prices = BTreeMap<String, Price>;

/// The usage of a member or a team, for people and `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct UsageTotal {
    /// All tokens.
    pub tokens: u64,
    #[serde(flatten)]
    pub usage: Usage,
    /// True if `cost` lacks the tokens of a model: its program reports no cost, and it has no
    /// price.
    pub(crate) cost_is_partial: bool,
}

impl UsageTotal {
    /// Sums up the usage of members. The cost is the one that a program reports, else the one by
    /// the price of its model. Returns `None` if no program has reported anything.
    pub fn of<'u>(
        members: impl IntoIterator<Item = &'u MemberUsage>,
        prices: &Prices,
    ) -> Option<UsageTotal> {
        let (mut usage, mut cost_is_partial) = (Usage::default(), false);
        for (model, of_model) in members.into_iter().flat_map(|member| &member.models) {
            let by_price = || prices.get(model).map(|price| price.cost(of_model));
            let cost = of_model.cost.or_else(by_price);
            cost_is_partial |= cost.is_none();
            usage += &Usage { cost, ..*of_model };
        }
        let tokens = usage.tokens();
        (!usage.is_zero()).then_some(UsageTotal { tokens, usage, cost_is_partial })
    }

    /// Formats the total: `1.2M tokens, $3.40`; a partial cost as `$3.40+`.
    pub fn describe(&self) -> String {
        let cost = self.cost_word().map(|cost| format!(", {cost}")).unwrap_or_default();
        format!("{} tokens{cost}", count(self.tokens))
    }

    /// Formats the cost, if any of it is known.
    pub fn cost_word(&self) -> Option<String> {
        let cost = self.usage.cost?;
        Some(format!("{}{}", dollars(cost), if self.cost_is_partial { "+" } else { "" }))
    }
}

/// Formats a sum of dollars.
pub(crate) fn dollars(sum: f64) -> String {
    format!("${sum:.2}")
}

/// Formats a number of tokens: `999`, `12.3k`, `1.2M`.
pub fn count(tokens: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", tokens / unit, tokens % unit * 10 / unit);
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", tenths(1_000)),
        _ => format!("{}M", tenths(1_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(model: &str, usage: Usage) -> MemberUsage {
        let mut member = MemberUsage::default();
        member.add(Some(model), &usage);
        member
    }

    #[test]
    fn total_sums_members_and_prices_their_models() {
        let million = Usage { input: 1_000_000, cached_input: 1_000_000, ..Usage::default() };
        let ann = used("m", Usage { output: 500_000, ..million });
        let bob = used("n", million);
        assert_eq!(UsageTotal::of([&MemberUsage::default()], &Prices::new()), None);
        let total = UsageTotal::of([&ann, &bob], &Prices::new()).expect("a total");
        assert_eq!((total.tokens, total.usage.cost), (4_500_000, None));
        assert_eq!(total.describe(), "4.5M tokens");
        let price = Price { input: 3.0, output: 10.0, cached_input: Some(0.5), cache_write: None };
        let prices = Prices::from([("m".to_owned(), price)]);
        let total = UsageTotal::of([&ann, &bob], &prices).expect("a total");
        assert_eq!(total.describe(), "4.5M tokens, $8.50+");
        let total = UsageTotal::of([&ann], &prices).expect("a total");
        assert_eq!(total.describe(), "2.5M tokens, $8.50");
    }

    #[test]
    fn reported_cost_precedes_prices() {
        let ann = used("m", Usage { input: 10, cost: Some(0.25), ..Usage::default() });
        let prices = Prices::from([("m".to_owned(), Price { input: 1e6, ..Price::default() })]);
        let total = UsageTotal::of([&ann], &prices).expect("a total");
        assert_eq!(total.usage.cost, Some(0.25));
        assert!(!total.cost_is_partial);
    }

    #[test]
    fn models_beyond_the_limit_are_counted_together() {
        let mut member = MemberUsage::default();
        for n in 0..100 {
            member.add(Some(&format!("m{n}")), &Usage { output: 1, ..Usage::default() });
        }
        assert_eq!(member.models.len(), MOST_MODELS + 1);
        let total = UsageTotal::of([&member], &Prices::new()).expect("a total");
        assert_eq!(total.tokens, 100);
    }

    #[test]
    fn sums_saturate_and_differences_do_not_underflow() {
        let most = Usage { input: u64::MAX, output: u64::MAX, ..Usage::default() };
        let mut sum = most;
        sum += &most;
        assert_eq!(sum.tokens(), u64::MAX);
        assert!(Usage::default().since(&most).is_zero());
    }

    #[test]
    fn counts_are_short() {
        let table =
            [(0, "0"), (999, "999"), (1_000, "1.0k"), (12_345, "12.3k"), (1_250_000, "1.2M")];
        for (tokens, shown) in table {
            assert_eq!(count(tokens), shown);
        }
    }
}
