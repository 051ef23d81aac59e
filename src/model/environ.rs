//! The environment of a teammate: that of the process that asked for it, less the markers of another place, plus its
//! identity (EN-01 to EN-04). Pure: whose environment it is, the caller says.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Serialize};

/// Variables that tell of the place where the asking process stands; they would lie in another one. A trailing `*`
/// stands for any ending.
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

/// Which of the asking process's variables go on. Empty lists: all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EnvRules {
    /// If not empty, only these go on.
    pub(crate) allow: Vec<String>,
    /// These do not.
    pub(crate) deny: Vec<String>,
}

/// Makes the environment; later parts win: the asking process's own (filtered), `extra`, `identity`.
pub(crate) fn compose(
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

fn matches_any<'a>(name: &OsStr, patterns: impl Iterator<Item = &'a str>) -> bool {
    patterns.into_iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.as_bytes().starts_with(start.as_bytes()),
        None => name == OsStr::new(pattern),
    })
}

/// Whether a name can be an environment variable's: `[A-Za-z_][A-Za-z0-9_]*`, and not the identity's.
pub(crate) fn may_be_set(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_identity(OsStr::new(name))
}

/// Whether a variable says who a process is in a team, or proves it: it is for that process, and not for what it starts.
pub(crate) fn is_identity(name: &OsStr) -> bool {
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
    fn en_01_en_03_all_goes_on_but_the_markers_of_another_place() {
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
    fn rules_narrow_and_extras_win() {
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
    fn names_that_may_be_set() {
        for bad in ["", "1A", "A-B", "A=B", "A B", "PHALANX_TOKEN", "A\0"] {
            assert!(!may_be_set(bad), "{bad:?}");
        }
        assert!(may_be_set("_a1"));
    }
}
