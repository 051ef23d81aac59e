//! A single rule: a pattern in Claude Code's format, as text and in permission updates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::value::{CheckedValue, parse_text, text_types};

/// Maximum length of a pattern or a path to compare, in bytes.
pub(super) const LONGEST: usize = 4096;

/// A pattern for a tool and optionally its input: `Bash(git:*)`, `Edit`,
/// `WebFetch(domain:example.org)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rule {
    pub(super) tool: String,
    pub(super) spec: Option<String>,
}

impl Rule {
    /// Parses one pattern.
    ///
    /// # Errors
    /// Fails if the pattern names no tool, has no closing `)`, reads as several patterns, or its
    /// content is not supported for the tool. The message is a predicate that follows the pattern.
    pub fn parse(text: &str) -> Result<Rule, String> {
        if split_list(text).len() > 1 {
            return Err("is several patterns".to_owned());
        }
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
        check(&rule).map(|()| rule)
    }

    /// Returns the rule's form in a permission update, as observed in Claude Code.
    pub fn entry(&self) -> Value {
        match &self.spec {
            Some(spec) => json!({"toolName": self.tool, "ruleContent": spec}),
            None => json!({"toolName": self.tool}),
        }
    }

    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns true if the rule covers all uses of the tool.
    pub fn is_whole(&self) -> bool {
        self.spec.is_none()
    }

    /// Parses comma-separated patterns, as on Claude Code's command line.
    ///
    /// # Errors
    /// Fails at the first invalid pattern. The message includes the pattern.
    pub fn parse_list(text: &str) -> Result<Vec<Rule>, String> {
        split_list(text)
            .into_iter()
            .map(|part| Rule::parse(part).map_err(|e| format!("`{}` {e}", part.trim())))
            .collect()
    }
}

/// Splits a list at the commas that are not inside parentheses.
fn split_list(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

text_types! {
    /// Comma-separated permission patterns.
    pub(crate) Patterns(Vec<Rule>) = |text| {
        let text = parse_text(text)?;
        Rule::parse_list(&text).map_err(|problem| format!("the pattern {}", problem.escape_debug()))
    };
}

/// A list of rules in which one string may contain several.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct RuleList(Vec<Patterns>);

impl CheckedValue for RuleList {
    type Value = Vec<Rule>;

    fn into_value(self) -> Vec<Rule> {
        self.0.into_iter().flat_map(|patterns| patterns.0).collect()
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

/// Rejects patterns that would otherwise silently never match.
///
/// # Errors
/// Fails if the pattern is too long, contains control characters, or has a form that its tool does
/// not support. The message is a predicate that follows the pattern.
fn check(rule: &Rule) -> Result<(), String> {
    let Some(spec) = &rule.spec else { return Ok(()) };
    if spec.len() > LONGEST || spec.contains(char::is_control) {
        return Err("is too long, or has control characters".to_owned());
    }
    match rule.tool.as_str() {
        "Bash" if spec.contains(['\'', '"', '\\', '$', '`', ';', '&', '|', '<', '>', '(', ')']) => {
            Err("must be one simple command without quotes: `Bash(git push:*)`".to_owned())
        }
        "WebFetch" if spec.strip_prefix("domain:").is_none_or(str::is_empty) => {
            Err("must be a domain: `WebFetch(domain:example.org)`".to_owned())
        }
        _ => Ok(()),
    }
}

/// Returns the permission update, in Claude Code's format, that adds `rules` to a session.
pub(super) fn updates(rules: &[Rule]) -> Vec<Value> {
    let entries: Vec<Value> = rules.iter().map(Rule::entry).collect();
    vec![
        json!({"type": "addRules", "rules": entries, "behavior": "allow", "destination": "session"}),
    ]
}
