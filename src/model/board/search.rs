//! Search in the texts of tasks. A task is found if it contains every word of the query.

use std::cmp::Reverse;

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::board::task::Task;

/// Maximum length of a query in characters. The matcher counts 26 points for a character in 16
/// bits.
pub const MAX_QUERY: usize = 1000;
/// Weights of a word in the subject, the description and a comment. A hit at the start of a word
/// scores up to 1.7 times as much as one inside, so a hit in the subject outranks any in the
/// description.
const WEIGHTS: [u32; 3] = [4, 2, 1];

/// A task to search, with the texts of its comments.
#[derive(Debug, Clone, Copy)]
pub struct SearchTask<'t> {
    pub task: &'t Task,
    pub comments: &'t [String],
}

/// The words of a query. A word matches inside longer words too. A word without capitals ignores
/// case, and one without accents ignores accents.
#[derive(Debug)]
pub struct Query(Vec<Atom>);

/// A task that contains the words of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit<'t> {
    pub task: &'t Task,
    pub score: u32,
    /// The text that contains a word the subject does not, and the position of the first such word
    /// in characters.
    found: Option<(&'t str, usize)>,
}

impl Query {
    /// Returns `None` for a query without a word, or with more than [`MAX_QUERY`] characters.
    pub fn new(words: &str) -> Option<Query> {
        let atom = |word| {
            Atom::new(word, CaseMatching::Smart, Normalization::Smart, AtomKind::Substring, false)
        };
        let atoms: Vec<Atom> = words.split_whitespace().map(atom).collect();
        (!atoms.is_empty() && words.chars().count() <= MAX_QUERY).then_some(Query(atoms))
    }

    /// Returns the tasks that contain all words, in the given order.
    pub fn hits<'t>(&self, tasks: &[SearchTask<'t>]) -> Vec<SearchHit<'t>> {
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut chars = Vec::new();
        tasks.iter().filter_map(|task| self.hit(task, &mut matcher, &mut chars)).collect()
    }

    /// Each word counts once, in the first text that contains it.
    fn hit<'t>(
        &self,
        &SearchTask { task, comments }: &SearchTask<'t>,
        matcher: &mut Matcher,
        chars: &mut Vec<char>,
    ) -> Option<SearchHit<'t>> {
        let [subject, description, comment] = WEIGHTS;
        let own = [(subject, task.subject.as_str()), (description, task.description.as_str())];
        let texts = own.into_iter().chain(comments.iter().map(|text| (comment, text.as_str())));
        let mut missing: Vec<&Atom> = self.0.iter().collect();
        let mut hit = SearchHit { task, score: 0, found: None };
        let mut indices = Vec::new();
        for (nth, (weight, text)) in texts.enumerate() {
            let haystack = Utf32Str::new(text, chars);
            let mut first = None;
            missing.retain(|word| {
                indices.clear();
                let Some(score) = word.indices(haystack, matcher, &mut indices) else {
                    return true;
                };
                hit.score += weight * u32::from(score);
                let at = indices.first().map_or(0, |at| *at as usize);
                first = Some(first.map_or(at, |first: usize| first.min(at)));
                false
            });
            if nth > 0 && hit.found.is_none() {
                hit.found = first.map(|at| (text, at));
            }
            if missing.is_empty() {
                return Some(hit);
            }
        }
        None
    }
}

impl SearchHit<'_> {
    /// Returns at most `max` characters of the text around the first word that the subject does not
    /// contain, on one line; `None` if the subject contains all words.
    pub fn snippet(&self, max: usize) -> Option<String> {
        let (text, at) = self.found?;
        let start = at.saturating_sub(max / 4);
        let room = max.saturating_sub(2);
        let mut rest = text.chars().skip(start);
        let cut: String = rest.by_ref().take(room).collect();
        let words: Vec<&str> = cut.split_whitespace().collect();
        let (before, after) =
            (if start > 0 { "…" } else { "" }, if rest.next().is_some() { "…" } else { "" });
        Some(format!("{before}{}{after}", words.join(" ")))
    }
}

/// Sorts hits by score, equal ones by id.
pub fn rank(hits: &mut [SearchHit]) {
    hits.sort_by_key(|hit| (Reverse(hit.score), hit.task.id));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TaskId;

    fn task(id: u64, subject: &str, description: &str) -> Task {
        Task::new(TaskId(id), subject, description)
    }

    /// The ids of the tasks found, best first.
    fn found(query: &str, tasks: &[Task], comments: &[String]) -> Vec<u64> {
        let tasks: Vec<SearchTask> =
            tasks.iter().map(|task| SearchTask { task, comments }).collect();
        let mut hits = Query::new(query).expect("a query").hits(&tasks);
        rank(&mut hits);
        hits.iter().map(|hit| hit.task.id.0).collect()
    }

    #[test]
    fn subject_outranks_description_and_description_outranks_comment() {
        let comments = ["the cache".to_owned()];
        let tasks = [
            task(1, "x", "y"),
            task(2, "x", "the cache of tasks"),
            task(3, "uncached", "y"),
            task(4, "fill the cache", ""),
        ];
        assert_eq!(found("cache", &tasks, &comments), [4, 3, 2, 1]);
        assert_eq!(found("cache", &tasks, &[]), [4, 3, 2]);
    }

    #[test]
    fn all_words_must_match_in_any_order_and_any_text() {
        let comments = ["blue".to_owned()];
        let tasks = [task(1, "red apple", "green"), task(2, "apple", "red")];
        assert_eq!(found("green  red", &tasks, &[]), [1]);
        assert_eq!(found("blue apple red", &tasks, &comments), [1, 2]);
        assert_eq!(found("red pear", &tasks, &comments), [0_u64; 0]);
    }

    #[test]
    fn equal_scores_are_ordered_by_id() {
        let tasks = [task(3, "same", ""), task(1, "same", ""), task(2, "same", "")];
        assert_eq!(found("same", &tasks, &[]), [1, 2, 3]);
    }

    #[test]
    fn capitals_and_accents_count_only_if_the_word_has_them() {
        let tasks = [task(1, "API für Größe", ""), task(2, "api fur Grosse", "")];
        assert_eq!(found("api", &tasks, &[]), [1, 2]);
        assert_eq!(found("API", &tasks, &[]), [1]);
        assert_eq!(found("fur", &tasks, &[]), [1, 2]);
        assert_eq!(found("für", &tasks, &[]), [1]);
    }

    #[test]
    fn characters_with_a_meaning_in_patterns_are_literal() {
        let tasks = [task(1, "a.*b ^x $y !z 'q\\", "")];
        for query in ["a.*b", "^x", "$y", "!z", "'q\\", ".*"] {
            assert_eq!(found(query, &tasks, &[]), [1], "{query}");
        }
        assert_eq!(found("a..b", &tasks, &[]), [0_u64; 0]);
    }

    #[test]
    fn query_without_words_or_too_long_is_refused() {
        assert!(Query::new(" \n").is_none() && Query::new("").is_none());
        assert!(Query::new(&"x".repeat(MAX_QUERY + 1)).is_none());
        let long = "x ".repeat(MAX_QUERY / 2);
        assert_eq!(found(&long, &[task(1, "x", "")], &[]), [1]);
        let word = "X".repeat(MAX_QUERY);
        assert_eq!(found(&word, &[task(1, &word, "")], &[]), [1]);
    }

    #[test]
    fn snippet_surrounds_the_first_hit_within_the_limit() {
        let long = format!("{}\n needle  {}", "ä".repeat(700), "b".repeat(700));
        let tasks = [task(1, "s", &long), task(2, "needle", "text"), task(3, "s", "a needle")];
        let tasks: Vec<SearchTask> =
            tasks.iter().map(|task| SearchTask { task, comments: &[] }).collect();
        let hits = Query::new("needle").expect("a query").hits(&tasks);
        let snippets: Vec<Option<String>> = hits.iter().map(|hit| hit.snippet(500)).collect();
        let cut = snippets[0].as_deref().expect("a snippet");
        assert!(cut.starts_with("…ä") && cut.ends_with("b…") && cut.contains("ä needle b"));
        assert!((480..=500).contains(&cut.chars().count()), "{}", cut.chars().count());
        assert_eq!(snippets[1..], [None, Some("a needle".to_owned())]);
        for max in 0..5 {
            assert!(hits[0].snippet(max).expect("a snippet").chars().count() <= max.max(2));
        }
    }
}
