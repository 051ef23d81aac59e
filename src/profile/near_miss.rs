//! The rule that comes closest to a screen that no rule fits, for authors of profiles.

use serde::Serialize;

use super::definition::Profile;
use super::judge::composer_row;
use super::rule::ScreenRule;
use super::snapshot::Screenshot;

/// A rule that does not fit a screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NearMiss {
    pub rule: String,
    /// Number of its conditions that hold.
    pub met: usize,
    /// Its conditions that do not hold, each as a clause: `in the last 8 rows there is no 'yes'`.
    pub missing: Vec<String>,
}

impl NearMiss {
    /// Describes it for people: `b: on the screen there is no "x" (1 of 2 conditions hold)`.
    pub fn describe(&self) -> String {
        let all = self.met + self.missing.len();
        format!(
            "{}: {} ({} of {all} conditions hold)",
            self.rule,
            self.missing.join("; "),
            self.met
        )
    }
}

/// Returns the rule with the largest part of its conditions met, the first of several; `None` if no
/// condition of any rule is met.
pub fn nearest(profile: &Profile, look: &Screenshot) -> Option<NearMiss> {
    let end = composer_row(profile, look);
    let misses = profile.rules.iter().map(|rule| miss(rule, look, end)).filter(|miss| miss.met > 0);
    // The first of equals: `max_by` returns the last.
    misses.reduce(|best, other| {
        let part = |miss: &NearMiss, of: &NearMiss| miss.met * (of.met + of.missing.len());
        if part(&other, &best) > part(&best, &other) { other } else { best }
    })
}

fn miss(rule: &ScreenRule, look: &Screenshot, end: Option<usize>) -> NearMiss {
    let (text, place) = (rule.area.text(look, end).unwrap_or_default(), rule.area.describe());
    let patterns = rule.patterns.iter().map(|pattern| {
        let clause = format!("{place} there is no {:?}", pattern.as_str());
        (pattern.find(&text).is_some(), clause)
    });
    let absent = rule.absent.iter().map(|pattern| {
        let clause = format!("{place} there is {:?}", pattern.as_str());
        (pattern.find(&text).is_none(), clause)
    });
    let title = rule.title.iter().map(|pattern| {
        let clause = format!("the title is {:?}, without {:?}", look.title, pattern.as_str());
        (pattern.find(&look.title).is_some(), clause)
    });
    let conditions = patterns.chain(title).chain(absent);
    let (met, missing): (Vec<_>, Vec<_>) = conditions.partition(|(holds, _)| *holds);
    let mut missing: Vec<String> = missing.into_iter().map(|(_, clause)| clause).collect();
    if missing.is_empty() {
        missing.push("another condition: progress, quiet time or a mode of the screen".to_owned());
    }
    NearMiss { rule: rule.name.clone(), met: met.len(), missing }
}

#[cfg(test)]
mod tests {
    use super::super::Screen;
    use super::*;

    #[test]
    fn nearest_rule_is_named_with_what_is_missing() {
        let text = "runs = \"wrapped\"\nabout = \"x\"\n[launch]\nargv = [[\"x\"]]\n[ready]\nwhen = \"screen\"\n\
            [[rule]]\nname = \"a\"\nstate = \"working\"\nmatch = ['one', 'two', 'three']\n\
            [[rule]]\nname = \"b\"\nstate = \"idle\"\narea = \"last 2\"\nmatch = ['one', 'zwei']\nnot = ['dead']\n";
        let profile = Profile::parse("x", text).expect("a profile");
        let near = |printed: &str| {
            let mut screen = Screen::new(10, 40);
            screen.feed(printed.as_bytes());
            nearest(&profile, &screen.look(0)).map(|miss| miss.describe())
        };
        let b = "b: in the last 2 rows there is no \"zwei\" (2 of 3 conditions hold)";
        assert_eq!(near("one").as_deref(), Some(b));
        let a = "a: on the screen there is no \"three\" (2 of 3 conditions hold)";
        assert_eq!(near("two\r\none").as_deref(), Some(a), "the first of two equals");
        assert_eq!(near("dead"), None);
    }
}
