//! The tokens and the cost of a turn. Agents count tokens of a turn, of the session or of the last
//! request, in three places.

use crate::report::TokenUsage;
use crate::start::UsageBasis;
use crate::wire::{CostPart, PromptReply, UsageReply};

/// Counts what each turn uses.
#[derive(Debug, Default)]
pub(crate) struct UsageMeter {
    counts: UsageBasis,
    /// The last count of the whole session.
    session: TokenUsage,
    /// The sum of the pieces of the current turn.
    pieces: Option<TokenUsage>,
    /// The cost of the session so far.
    cost: f64,
    cost_before_turn: f64,
    /// The agent has sent a cost in the current turn.
    has_cost: bool,
}

impl UsageMeter {
    pub(crate) fn new(counts: UsageBasis) -> Self {
        Self { counts, ..Self::default() }
    }

    pub(crate) fn begin_turn(&mut self) {
        self.pieces = None;
        self.cost_before_turn = self.cost;
        self.has_cost = false;
    }

    /// Adds the tokens of one request, which qwen sends with an empty text.
    pub(crate) fn add_piece(&mut self, piece: UsageReply) {
        let piece = tokens(piece);
        let sum = self.pieces.get_or_insert_default();
        sum.input = sum.input.saturating_add(piece.input);
        sum.cached_input = sum.cached_input.saturating_add(piece.cached_input);
        sum.cache_write = sum.cache_write.saturating_add(piece.cache_write);
        sum.output = sum.output.saturating_add(piece.output);
    }

    /// Takes the cost of the session so far. Other currencies than US dollars are ignored.
    pub(crate) fn set_cost(&mut self, cost: &CostPart) {
        if matches!(cost.currency.as_str(), "" | "USD") && cost.amount.is_finite() {
            self.cost = cost.amount;
            self.has_cost = true;
        }
    }

    pub(crate) fn end_turn(&mut self, reply: Option<&PromptReply>) -> Option<TokenUsage> {
        let counted = reply.and_then(|reply| match reply.usage {
            Some(usage) => Some(self.turn_part(tokens(usage))),
            None => reply.meta.quota.token_count.map(tokens),
        });
        let used = counted.or(self.pieces.take());
        let cost = self.has_cost.then_some((self.cost - self.cost_before_turn).max(0.0));
        match (used, cost) {
            (None, None) => None,
            (used, cost) => Some(TokenUsage { cost, ..used.unwrap_or_default() }),
        }
    }

    /// Returns the part of a count that belongs to the current turn.
    fn turn_part(&mut self, now: TokenUsage) -> TokenUsage {
        match self.counts {
            UsageBasis::Turn | UsageBasis::Request => now,
            UsageBasis::Session => {
                let before = std::mem::replace(&mut self.session, now);
                TokenUsage {
                    input: now.input.saturating_sub(before.input),
                    cached_input: now.cached_input.saturating_sub(before.cached_input),
                    cache_write: now.cache_write.saturating_sub(before.cache_write),
                    output: now.output.saturating_sub(before.output),
                    cost: None,
                }
            }
        }
    }
}

/// Brings a count into one form: the input is without its cached part, the output with the
/// reasoning. Agents differ in both, and their total shows how they count.
fn tokens(reply: UsageReply) -> TokenUsage {
    let UsageReply {
        input_tokens: input,
        output_tokens: output,
        cached_read_tokens: cached,
        cached_write_tokens: written,
        thought_tokens: thought,
        total_tokens: total,
    } = reply;
    let sum = |counts: &[u64]| counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let cached_is_in_input = cached > 0
        && cached <= input
        && [sum(&[input, output]), sum(&[input, output, thought])].contains(&total);
    let thought_is_extra = thought > 0
        && [sum(&[input, output, thought]), sum(&[input, output, thought, cached, written])]
            .contains(&total);
    TokenUsage {
        input: if cached_is_in_input { input - cached } else { input },
        cached_input: cached,
        cache_write: written,
        output: if thought_is_extra { sum(&[output, thought]) } else { output },
        cost: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(input: u64, output: u64) -> UsageReply {
        UsageReply { input_tokens: input, output_tokens: output, ..UsageReply::default() }
    }

    fn reply(usage: UsageReply) -> PromptReply {
        PromptReply { usage: Some(usage), ..PromptReply::default() }
    }

    fn used(input: u64, output: u64) -> Option<TokenUsage> {
        Some(TokenUsage { input, output, ..TokenUsage::default() })
    }

    #[test]
    fn cumulative_count_becomes_the_part_of_the_turn() {
        let mut meter = UsageMeter::new(UsageBasis::Session);
        meter.begin_turn();
        assert_eq!(meter.end_turn(Some(&reply(counted(100, 10)))), used(100, 10));
        meter.begin_turn();
        assert_eq!(meter.end_turn(Some(&reply(counted(150, 5)))), used(50, 0));
        meter.begin_turn();
        assert_eq!(meter.end_turn(None), None);
    }

    #[test]
    fn counts_of_turn_and_request_are_taken_as_they_are() {
        for counts in [UsageBasis::Turn, UsageBasis::Request] {
            let mut meter = UsageMeter::new(counts);
            for _ in 0..2 {
                meter.begin_turn();
                assert_eq!(meter.end_turn(Some(&reply(counted(7, 3)))), used(7, 3));
            }
        }
    }

    #[test]
    fn pieces_are_summed_over_one_turn() {
        let mut meter = UsageMeter::new(UsageBasis::Turn);
        meter.begin_turn();
        meter.add_piece(counted(10, 1));
        meter.add_piece(counted(20, 2));
        assert_eq!(meter.end_turn(Some(&PromptReply::default())), used(30, 3));
        meter.begin_turn();
        assert_eq!(meter.end_turn(Some(&PromptReply::default())), None);
    }

    #[test]
    fn cost_of_a_turn_is_the_difference() {
        let cost = |amount| CostPart { amount, currency: "USD".to_owned() };
        let mut meter = UsageMeter::new(UsageBasis::Turn);
        meter.begin_turn();
        meter.set_cost(&cost(1.5));
        assert_eq!(meter.end_turn(None).unwrap().cost, Some(1.5));
        meter.begin_turn();
        meter.set_cost(&cost(2.0));
        meter.set_cost(&CostPart { amount: 9.0, currency: "EUR".to_owned() });
        assert_eq!(meter.end_turn(None).unwrap().cost, Some(0.5));
        meter.begin_turn();
        assert_eq!(meter.end_turn(None), None);
    }

    #[test]
    fn input_excludes_cached_tokens_and_output_includes_reasoning() {
        let usage = |input, output, cached, thought, total| UsageReply {
            input_tokens: input,
            output_tokens: output,
            cached_read_tokens: cached,
            thought_tokens: thought,
            total_tokens: total,
            ..UsageReply::default()
        };
        // codex, opencode and qwen, in this order, for the same request.
        for reply in [usage(60, 20, 40, 5, 120), usage(60, 15, 40, 5, 120)] {
            let tokens = tokens(reply);
            assert_eq!((tokens.input, tokens.cached_input, tokens.output), (60, 40, 20));
        }
        let tokens = tokens(usage(100, 15, 40, 5, 120));
        assert_eq!((tokens.input, tokens.cached_input, tokens.output), (60, 40, 20));
    }
}
