//! Suggests the narrowest rules that would allow a use again. A suggested rule covers only that
//! exact command, file or host, or a single tool of an MCP server.

use super::pattern::{Act, What};
use super::shell::{Line, Part, Word};
use super::{Judgement, Rule, RuleSet, Use, judge};

/// Returns rules that together allow `used` on their own; `None` if they would allow more than this
/// use.
pub fn suggest(used: &Use) -> Option<Vec<Rule>> {
    let act = Act::of(used);
    let rules = match act.what() {
        What::Shell(line) => commands(line)?,
        What::File { path: Some(path), tidy: true } if !path.contains('*') => {
            // Claude Code resolves a path with a single slash relative to its settings directory.
            vec![Rule::parse(&format!("{}(/{path})", family(used.tool))).ok()?]
        }
        What::Host(Some(host)) => vec![Rule::parse(&format!("WebFetch(domain:{host})")).ok()?],
        What::Other if used.tool.starts_with("mcp__") => vec![Rule::parse(used.tool).ok()?],
        What::File { .. } | What::Host(None) | What::Other => return None,
    };
    let alone = RuleSet { allow: rules.clone(), ..RuleSet::default() };
    let judged = judge(&[(String::new(), &alone)], used);
    matches!(judged, Judgement::Allow { .. }).then_some(rules)
}

/// Returns one literal rule for each command of the line.
fn commands(line: &Line) -> Option<Vec<Rule>> {
    let mut rules: Vec<Rule> = Vec::new();
    for part in line.parts.iter().filter(|part| !part.hidden) {
        let rule = command(part)?;
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    (line.clear && !rules.is_empty()).then_some(rules)
}

/// Returns a literal rule; `None` if a pattern cannot express a word literally.
fn command(part: &Part) -> Option<Rule> {
    let is_exact = |word: &Word| {
        !word.hazy
            && !word.text.is_empty()
            && !word.text.contains(|c: char| c == '*' || c.is_whitespace())
    };
    if !part.words.iter().all(is_exact) {
        return None;
    }
    let words: Vec<&str> = part.words.iter().map(|word| word.text.as_str()).collect();
    Rule::parse(&format!("Bash({})", words.join(" "))).ok()
}

fn family(tool: &str) -> &str {
    if super::pattern::changes_files(tool) { "Edit" } else { "Read" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn suggested(tool: &str, input: &Value) -> Option<Vec<String>> {
        let used = Use { tool, input, home: Some("/home/u"), cwd: "/w" };
        suggest(&used).map(|rules| rules.into_iter().map(String::from).collect())
    }

    #[test]
    fn suggested_rule_covers_exactly_the_given_use() {
        let bash = |command: &str| suggested("Bash", &json!({ "command": command }));
        let one = |rule: &str| Some(vec![rule.to_owned()]);
        assert_eq!(bash("make test"), one("Bash(make test)"));
        assert_eq!(bash("cargo  'test' --all"), one("Bash(cargo test --all)"));
        assert_eq!(
            bash("make test && git status"),
            Some(vec!["Bash(make test)".into(), "Bash(git status)".into()])
        );
        assert_eq!(
            suggested("Write", &json!({"file_path": "src/a.rs"})),
            one("Edit(//w/src/a.rs)")
        );
        assert_eq!(suggested("Grep", &json!({"path": "/etc"})), one("Read(//etc)"));
        assert_eq!(
            suggested("WebFetch", &json!({"url": "https://docs.rs/x"})),
            one("WebFetch(domain:docs.rs)")
        );
        assert_eq!(suggested("mcp__files__read", &json!({})), one("mcp__files__read"));
    }

    /// PM-13: the rule is written into lists of patterns, and read from them again.
    #[test]
    fn pm_13_no_rule_is_suggested_for_a_path_that_reads_as_several_patterns() {
        let path = |path: &str| suggested("Edit", &json!({ "file_path": path }));
        assert_eq!(path("a), Bash(rm:*"), None);
        assert_eq!(path("a), WebFetch(domain:x.org"), None);
        assert_eq!(path("a (1, 2)"), Some(vec!["Edit(//w/a (1, 2))".to_owned()]));
    }

    #[test]
    fn no_rule_is_suggested_if_it_would_allow_more() {
        for command in [
            "git commit -m 'a b'",
            "ls *.rs",
            "echo $HOME",
            "make > out",
            "echo 'x*'",
            "",
            "A=1 make",
            "(ls)",
        ] {
            assert_eq!(suggested("Bash", &json!({ "command": command })), None, "{command}");
        }
        assert_eq!(suggested("Edit", &json!({"file_path": "../x"})), None);
        assert_eq!(suggested("Edit", &json!({"file_path": "/w/*"})), None);
        assert_eq!(suggested("WebFetch", &json!({"url": "file:///etc/passwd"})), None);
        assert_eq!(suggested("Task", &json!({"prompt": "x"})), None);
        assert_eq!(suggested("AskUserQuestion", &json!({"questions": []})), None);
    }
}
