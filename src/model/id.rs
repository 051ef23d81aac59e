//! Validated names and ids. Values read from disk are validated as well, because they become parts
//! of paths (SEC-08).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::nearest;

/// Name of every lead, in the roster and as its mailbox.
pub const LEAD: &str = "team-lead";
/// Names that a teammate may not take, because they are addresses with a meaning of their own
/// (ID-06).
const RESERVED: [&str; 5] = [LEAD, "lead", "system", "user", "all"];

/// Maximum length of a name that phalanx creates, in bytes.
const MAX_NAME: usize = 64;

/// Validation failure of a name or an id. The message states the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// A name for a new team or member breaks the naming rule.
    #[error(
        "{what} name {given:?} is not allowed: 1 to 64 characters of a-z, A-Z, 0-9, `_` and `-`, the first a letter or a digit"
    )]
    Name { what: &'static str, given: String },
    /// A name for a new member has a meaning of its own.
    #[error("{given:?} is reserved and cannot name a teammate")]
    Reserved { given: String },
    /// A name read from disk is unsafe as a path component.
    #[error("{what} {given:?} found on disk is not safe to use as a file name")]
    Unsafe { what: &'static str, given: String },
    /// A task id is not a decimal number from 1 to [`TaskId::MAX`].
    #[error("task id {given:?} is not a number from 1 to {}", TaskId::MAX)]
    TaskId { given: String },
    /// An incarnation is not a UUID.
    #[error("incarnation {given:?} is not a uuid")]
    Incarnation { given: String },
}

impl IdError {
    /// Returns a valid name that resembles the refused one.
    pub fn alternative(&self) -> Option<String> {
        match self {
            IdError::Name { what: "team", given } => {
                allowed_name(given).map(|name| sanitize_team(&name))
            }
            IdError::Name { given, .. } => allowed_name(given),
            IdError::Reserved { .. }
            | IdError::Unsafe { .. }
            | IdError::TaskId { .. }
            | IdError::Incarnation { .. } => None,
        }
    }
}

/// Returns `given` with each run of forbidden characters replaced by `-` and truncated to the
/// maximum length, or `None` if no valid name is left.
pub fn allowed_name(given: &str) -> Option<String> {
    let parts = given.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let joined = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    let mut name = joined.trim_start_matches(['-', '_']).to_owned();
    name.truncate(MAX_NAME);
    follows_rule(&name).then_some(name)
}

/// Returns the name in `known` that `given` probably means: one that differs only in case or
/// separators, else the nearest by edit distance.
pub fn nearest_name<'n>(given: &str, known: &[&'n str]) -> Option<&'n str> {
    let folded = sanitize_team(given);
    let same = known.iter().copied().find(|known| sanitize_team(known) == folded);
    same.or_else(|| nearest(given, known.iter().copied()))
}

/// Checks the rule for names that phalanx creates: 1 to 64 of `a-z A-Z 0-9 _ -`, starting with a
/// letter or a digit.
fn follows_rule(name: &str) -> bool {
    let mut chars = name.chars();
    let first_ok = chars.next().is_some_and(|c| c.is_ascii_alphanumeric());
    first_ok
        && name.len() <= MAX_NAME
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Returns true if `name` is safe as a single path component: non-empty, at most 200 bytes, no
/// separator or control character, and no leading `.` or `-`.
fn is_safe_component(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 200
        && !name.starts_with('.')
        && !name.starts_with('-')
        && !name.chars().any(|c| c.is_control() || c == '/' || c == '\\')
}

/// Implements `as_str`, `Display` and serde for a string newtype. `$parse` validates deserialized
/// values.
macro_rules! text_id {
    ($name:ident, $parse:path) => {
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                $parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// A team name in its sanitized form, which phalanx writes everywhere and which names the team's
/// directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TeamName(String);

impl TeamName {
    /// Validates and sanitizes the name of a new team.
    ///
    /// # Errors
    /// [`IdError::Name`] if the name breaks the naming rule.
    pub fn new(given: &str) -> Result<Self, IdError> {
        if !follows_rule(given) {
            return Err(IdError::Name { what: "team", given: given.to_owned() });
        }
        Ok(Self(sanitize_team(given)))
    }

    /// Sanitizes the name of an existing team, which may be any name that Claude Code accepted: it
    /// stores `My Demo!` in `my-demo-`.
    ///
    /// # Errors
    /// [`IdError::Unsafe`] if the name is empty, longer than 200 bytes, or contains a control
    /// character.
    pub fn existing(given: &str) -> Result<Self, IdError> {
        let unsafe_name = || IdError::Unsafe { what: "team name", given: given.to_owned() };
        if given.is_empty() || given.len() > 200 || given.chars().any(char::is_control) {
            return Err(unsafe_name());
        }
        Ok(Self(sanitize_team(given)))
    }
}

/// Replaces every character outside `[a-zA-Z0-9]` by `-` and converts to lower case, as Claude Code
/// does.
fn sanitize_team(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect()
}

text_id!(TeamName, TeamName::existing);

/// A member's name, unique within its team without regard to case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberName(String);

impl MemberName {
    /// Validates the name of a new teammate.
    ///
    /// # Errors
    /// [`IdError::Name`] if the name breaks the naming rule, [`IdError::Reserved`] if it is
    /// reserved.
    pub fn new(given: &str) -> Result<Self, IdError> {
        if !follows_rule(given) {
            return Err(IdError::Name { what: "member", given: given.to_owned() });
        }
        if RESERVED.iter().any(|r| r.eq_ignore_ascii_case(given)) {
            return Err(IdError::Reserved { given: given.to_owned() });
        }
        Ok(Self(given.to_owned()))
    }

    /// Validates a name from a file or an address: any name that is safe as a file name. `lead` is
    /// an alias of the lead's name (ID-06).
    ///
    /// # Errors
    /// [`IdError::Unsafe`] if the name is unsafe as a file name.
    pub fn existing(given: &str) -> Result<Self, IdError> {
        if given.eq_ignore_ascii_case("lead") {
            return Ok(Self::lead());
        }
        if !is_safe_component(given) {
            return Err(IdError::Unsafe { what: "member name", given: given.to_owned() });
        }
        Ok(Self(given.to_owned()))
    }

    pub fn lead() -> Self {
        Self(LEAD.to_owned())
    }

    /// The sender of notices of the team itself.
    pub fn system() -> Self {
        Self("system".to_owned())
    }

    pub fn is_lead(&self) -> bool {
        self.0 == LEAD
    }

    /// Returns true if both names map to the same file on a case-insensitive file system (ID-05).
    pub fn clashes_with(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }

    /// Returns the lower-case form, which is equal for all names that clash.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Returns the form used in file names: `@` becomes `-`.
    pub fn file_stem(&self) -> String {
        self.0.replace('@', "-")
    }
}

text_id!(MemberName, MemberName::existing);

/// Returns the agent id, `NAME@TEAM`.
pub fn agent_id(name: &MemberName, team: &TeamName) -> String {
    format!("{name}@{team}")
}

/// A task id: a decimal number that increases and is never reused. It is a string on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

impl TaskId {
    /// The largest integer that JavaScript represents exactly. Claude Code derives the next id from
    /// the largest one.
    pub const MAX: TaskId = TaskId((1 << 53) - 1);

    /// Parses the decimal form without sign, spaces or leading zeros.
    ///
    /// # Errors
    /// [`IdError::TaskId`] if the form is different or the number exceeds [`TaskId::MAX`].
    pub fn parse(given: &str) -> Result<Self, IdError> {
        let refused = || IdError::TaskId { given: given.to_owned() };
        let plain = !given.is_empty()
            && given.bytes().all(|b| b.is_ascii_digit())
            && !given.starts_with('0');
        if !plain {
            return Err(refused());
        }
        given.parse().ok().map(Self).filter(|id| *id <= Self::MAX).ok_or_else(refused)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Serialize for TaskId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// The id of a request that awaits an answer, for example `shutdown-<ms>@<name>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(String);

impl RequestId {
    /// Validates an id from the wire or the command line.
    ///
    /// # Errors
    /// [`IdError::Unsafe`] if the id is unsafe as a file name.
    pub fn parse(given: &str) -> Result<Self, IdError> {
        if !is_safe_component(given) {
            return Err(IdError::Unsafe { what: "request id", given: given.to_owned() });
        }
        Ok(Self(given.to_owned()))
    }

    /// Returns the id of a shutdown request sent at `ms` (milliseconds since the epoch).
    pub fn shutdown(ms: u64, name: &MemberName) -> Self {
        Self(format!("shutdown-{ms}@{name}"))
    }

    pub fn is_shutdown(&self) -> bool {
        self.0.starts_with("shutdown-")
    }

    /// Returns the form used in file names: `@` becomes `-`.
    pub fn file_stem(&self) -> String {
        self.0.replace('@', "-")
    }
}

text_id!(RequestId, RequestId::parse);

/// One run of a member: a UUID that is new at each start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(String);

impl Incarnation {
    /// Validates the 36-character UUID form.
    ///
    /// # Errors
    /// [`IdError::Incarnation`] if the form is different.
    pub fn parse(given: &str) -> Result<Self, IdError> {
        let shaped = given.len() == 36 && given.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        if !shaped {
            return Err(IdError::Incarnation { given: given.to_owned() });
        }
        Ok(Self(given.to_owned()))
    }

    /// Returns true for the id of a request that a member over ACP has filed in this run.
    pub fn has_asked(&self, request: &str) -> bool {
        request.contains(&format!("-{}-", &self.0[..8]))
    }
}

text_id!(Incarnation, Incarnation::parse);

/// The name of a configured host, unique without regard to case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

impl HostName {
    /// Validates the name of a host.
    ///
    /// # Errors
    /// [`IdError::Name`] if the name breaks the naming rule.
    pub fn new(given: &str) -> Result<Self, IdError> {
        if !follows_rule(given) {
            return Err(IdError::Name { what: "host", given: given.to_owned() });
        }
        Ok(Self(given.to_owned()))
    }

    /// Returns true if both names mean the same host.
    pub fn clashes_with(&self, other: &HostName) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

text_id!(HostName, HostName::new);

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-08, SEC-02: names with a meaning to a shell, a path or tmux.
    const HOSTILE: [&str; 17] = [
        "",
        "a/b",
        "..",
        ".",
        "a b",
        "a\"b",
        "it's",
        "#(touch x)",
        "$(touch x)",
        "a;",
        "-a",
        "a\nb",
        "a\u{1b}[2J",
        "a\0",
        "ünï",
        "a.b",
        "a:b",
    ];

    #[test]
    fn sec_08_new_names_must_follow_the_rule() {
        for name in HOSTILE {
            assert!(TeamName::new(name).is_err(), "team {name:?}");
            assert!(MemberName::new(name).is_err(), "member {name:?}");
        }
        assert!(MemberName::new(&"a".repeat(64)).is_ok());
        assert!(MemberName::new(&"a".repeat(65)).is_err());
        assert!(MemberName::new("Alice_2-b").is_ok());
    }

    #[test]
    fn sec_08_names_from_disk_stay_one_path_component() {
        for name in ["", "a/b", "..", ".hidden", "-x", "a\0b", "a\nb", "a\\b"] {
            assert!(MemberName::existing(name).is_err(), "{name:?}");
            assert!(RequestId::parse(name).is_err(), "{name:?}");
        }
        assert_eq!(MemberName::existing("Bob Smith").expect("safe").as_str(), "Bob Smith");
    }

    #[test]
    fn id_06_lead_is_an_alias_and_its_names_are_reserved() {
        assert!(MemberName::existing("lead").expect("alias").is_lead());
        assert!(MemberName::new("Team-Lead").is_err());
        assert!(MemberName::new("LEAD").is_err());
    }

    #[test]
    fn team_names_are_sanitized_like_claude_code_does() {
        assert_eq!(TeamName::existing("My Demo!").expect("any name").as_str(), "my-demo-");
        assert_eq!(TeamName::new("My_Team").expect("rule").as_str(), "my-team");
    }

    #[test]
    fn refused_name_suggests_an_allowed_one() {
        let long = "a".repeat(70);
        let table = [
            ("My Team!", Some("my-team")),
            ("a/b", Some("a-b")),
            ("--x__y--", Some("x--y")),
            (long.as_str(), Some(&long[..MAX_NAME])),
            ("ünï", Some("n")),
            ("../..", None),
            ("", None),
        ];
        for (given, expected) in table {
            let refused = TeamName::new(given).expect_err("not a name");
            assert_eq!(refused.alternative().as_deref(), expected, "{given:?}");
        }
        let refused = MemberName::new("Bob Smith").expect_err("not a name");
        assert_eq!(refused.alternative().as_deref(), Some("Bob-Smith"));
    }

    #[test]
    fn nearest_name_prefers_matches_ignoring_case_and_separators() {
        let known = ["my-site", "mysite", "ann", "Anna", "team-lead"];
        let table = [
            ("MY-SITE", Some("my-site")),
            ("my/site", Some("my-site")),
            ("my site", Some("my-site")),
            ("MYSITE", Some("mysite")),
            ("ANN", Some("ann")),
            ("anna", Some("Anna")),
            ("my-sit", Some("my-site")),
            ("production", None),
            ("", None),
        ];
        for (given, expected) in table {
            assert_eq!(nearest_name(given, &known), expected, "{given:?}");
        }
    }

    #[test]
    fn shutdown_request_id_has_the_observed_form() {
        let id = RequestId::shutdown(1_795_214_628_804, &MemberName::new("alice").expect("name"));
        assert_eq!(id.as_str(), "shutdown-1795214628804@alice");
        assert_eq!(id.file_stem(), "shutdown-1795214628804-alice");
    }

    #[test]
    fn task_ids_are_plain_decimals() {
        let beyond = ["9007199254740992", "18446744073709551615", "99999999999999999999999"];
        for bad in ["", "0", "01", "-1", "1 ", "+1", "1.0", "x"].into_iter().chain(beyond) {
            assert!(TaskId::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(TaskId::parse("9007199254740991").expect("the limit"), TaskId::MAX);
        assert_eq!(TaskId::parse("17").expect("number").to_string(), "17");
    }
}
