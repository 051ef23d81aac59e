//! The environment of a teammate: the requesting process's environment without variables that
//! describe its terminal or session, plus the teammate's identity (EN-01 to EN-04).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{As, VariablePattern};

/// Variables that describe the requesting process's terminal or session and would be wrong in
/// another. A trailing `*` matches any suffix.
const MARKERS: [&str; 27] = [
    "TMUX*",
    "TERM",
    "TERM_PROGRAM*",
    "TERM_SESSION_ID",
    "ITERM_*",
    "LC_TERMINAL*",
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_SESSION_ID",
    "PHALANX_*",
    "STY",
    "WINDOW",
    "WINDOWID",
    "WEZTERM_*",
    "KITTY_*",
    "ZELLIJ*",
    "GHOSTTY_*",
    "ALACRITTY_*",
    "VTE_VERSION",
    "KONSOLE_*",
    "VSCODE_*",
    "COLUMNS",
    "LINES",
    "PWD",
    "OLDPWD",
    "SHLVL",
];

/// Parses a variable as the command line names it: `NAME=VALUE`.
///
/// # Errors
/// The form to write it in.
pub fn parse_variable(given: &str) -> Result<(String, String), String> {
    let (name, value) = given.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Filters for the variables of the requesting process. Empty lists pass all of them. A trailing
/// `*` matches any suffix.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "env", deny_unknown_fields)]
pub struct EnvRules {
    /// Inherited variables, by name or by prefix with `*`. If empty, all that are not denied.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Vec<VariablePattern>>")]
    pub allow: Vec<String>,
    /// Variables that are not inherited, in the same form.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Vec<VariablePattern>>")]
    pub deny: Vec<String>,
}

/// Builds the environment from the filtered `asking`, `extra` and `identity`. Later parts override
/// earlier ones.
pub fn compose(
    asking: &[(OsString, OsString)],
    rules: &EnvRules,
    extra: &[(String, String)],
    identity: &[(String, String)],
) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsStr| {
        !matches_any(name, MARKERS.iter().copied())
            && (rules.allow.is_empty() || matches_any(name, rules.allow.iter().map(String::as_str)))
            && !matches_any(name, rules.deny.iter().map(String::as_str))
    };
    let mut env: Vec<(OsString, OsString)> =
        asking.iter().filter(|(name, _)| passes(name)).cloned().collect();
    for (name, value) in extra.iter().chain(identity) {
        env.retain(|(known, _)| known != OsStr::new(name));
        env.push((name.into(), value.into()));
    }
    env
}

/// Adds the variables that an environment lacks.
pub fn add_defaults(env: &mut Vec<(OsString, OsString)>, defaults: &BTreeMap<String, String>) {
    for (name, value) in defaults {
        if !env.iter().any(|(known, _)| known == OsStr::new(name)) {
            env.push((name.into(), value.into()));
        }
    }
}

fn matches_any<'a>(name: &OsStr, patterns: impl Iterator<Item = &'a str>) -> bool {
    patterns.into_iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.as_bytes().starts_with(start.as_bytes()),
        None => name == OsStr::new(pattern),
    })
}

/// Returns true for names matching `[A-Za-z_][A-Za-z0-9_]*` that do not belong to the identity.
pub fn may_be_set(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_identity(OsStr::new(name))
}

/// Returns true for variables that state or prove a process's identity in a team. They must not be
/// passed on to child processes.
pub fn is_identity(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"PHALANX_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        list.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))).collect()
    }

    fn own(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn en_01_en_03_environment_passes_except_terminal_markers() {
        let asking = vars(&[
            ("PATH", "/bin"),
            ("API_KEY", "k"),
            ("TMUX", "x"),
            ("TMUX_PANE", "%1"),
            ("TERM", "vt52"),
            ("CLAUDECODE", "1"),
            ("ITERM_SESSION_ID", "w0"),
            ("TERM_PROGRAM_VERSION", "3"),
            ("PHALANX_TEAM", "other"),
            ("CLAUDE_CODE_USE_BEDROCK", "1"),
        ]);
        let env = compose(&asking, &EnvRules::default(), &[], &own(&[("PHALANX_TEAM", "mine")]));
        assert_eq!(
            env,
            vars(&[
                ("PATH", "/bin"),
                ("API_KEY", "k"),
                ("CLAUDE_CODE_USE_BEDROCK", "1"),
                ("PHALANX_TEAM", "mine")
            ])
        );
    }

    #[test]
    fn rules_filter_and_extra_variables_override() {
        let asking =
            vars(&[("PATH", "/bin"), ("AWS_KEY", "k"), ("AWS_SECRET", "s"), ("HOME", "/h")]);
        let rules = EnvRules {
            allow: vec!["PATH".into(), "AWS_*".into()],
            deny: vec!["AWS_SECRET".into()],
        };
        let env = compose(&asking, &rules, &own(&[("PATH", "/x"), ("NEW", "1")]), &[]);
        assert_eq!(env, vars(&[("AWS_KEY", "k"), ("PATH", "/x"), ("NEW", "1")]));
    }

    #[test]
    fn invalid_and_identity_names_cannot_be_set() {
        for bad in ["", "1A", "A-B", "A=B", "A B", "PHALANX_TOKEN", "A\0"] {
            assert!(!may_be_set(bad), "{bad:?}");
        }
        assert!(may_be_set("_a1"));
    }
}
