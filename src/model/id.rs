//! Names and ids: validated on the way in, also when they come from disk (SEC-08). Knows nothing of paths beyond
//! which characters are safe inside one.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::sheet::nearest;

/// The name of every lead, in the roster and as mailbox.
pub(crate) const LEAD: &str = "team-lead";
/// Names that a teammate may not take: they are addresses with a meaning of their own (ID-06).
const RESERVED: [&str; 5] = [LEAD, "lead", "system", "user", "all"];

/// The longest name that phalanx creates, in bytes.
const MAX_NAME: usize = 64;

/// Why a name or an id was refused. The text states the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IdError {
    /// A name that phalanx would create and that breaks the rule.
    #[error(
        "{what} name {given:?} is not allowed: 1 to 64 characters of a-z, A-Z, 0-9, `_` and `-`, the first a letter or a digit"
    )]
    Name { what: &'static str, given: String },
    /// A name with a meaning of its own.
    #[error("{given:?} is reserved and cannot name a teammate")]
    Reserved { given: String },
    /// A name found on disk that could not be a single path component.
    #[error("{what} {given:?} found on disk is not safe to use as a file name")]
    Unsafe { what: &'static str, given: String },
    /// A task id that is not a decimal number within the limit.
    #[error("task id {given:?} is not a number from 1 to {}", TaskId::MAX)]
    TaskId { given: String },
    /// An incarnation that is not a uuid.
    #[error("incarnation {given:?} is not a uuid")]
    Incarnation { given: String },
}

impl IdError {
    /// A name that follows the rule and resembles the one that was refused.
    pub(crate) fn alternative(&self) -> Option<String> {
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

/// The parts of `given` that a name may have, joined by `-`; none if no letter or digit is left.
pub(crate) fn allowed_name(given: &str) -> Option<String> {
    let parts = given.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let joined = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    let mut name = joined.trim_start_matches(['-', '_']).to_owned();
    name.truncate(MAX_NAME);
    follows_rule(&name).then_some(name)
}

/// The name among `known` that `given` probably means: the same in another case or with other
/// separators, else the nearest by edit distance.
pub(crate) fn nearest_name<'n>(given: &str, known: &[&'n str]) -> Option<&'n str> {
    let folded = sanitize_team(given);
    let same = known.iter().copied().find(|known| sanitize_team(known) == folded);
    same.or_else(|| nearest(given, known.iter().copied()))
}

/// The rule for every name that phalanx creates (protocol.md, section 1).
fn follows_rule(name: &str) -> bool {
    let mut chars = name.chars();
    let first_ok = chars.next().is_some_and(|c| c.is_ascii_alphanumeric());
    first_ok
        && name.len() <= MAX_NAME
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// What may stand as one path component: not empty, no separator, no control character, no dot name, not long.
fn is_safe_component(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 200
        && !name.starts_with('.')
        && !name.starts_with('-')
        && !name.chars().any(|c| c.is_control() || c == '/' || c == '\\')
}

/// Gives a string newtype its reading, showing and serde forms; `$parse` validates what comes from disk.
macro_rules! text_id {
    ($name:ident, $parse:path) => {
        impl $name {
            /// The id as text.
            pub(crate) fn as_str(&self) -> &str {
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

/// A team's name in its sanitized form: what phalanx writes everywhere and what its directory is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TeamName(String);

impl TeamName {
    /// A name for a team to be made. It must follow the rule; it is then sanitized.
    pub(crate) fn new(given: &str) -> Result<Self, IdError> {
        if !follows_rule(given) {
            return Err(IdError::Name { what: "team", given: given.to_owned() });
        }
        Ok(Self(sanitize_team(given)))
    }

    /// The name of a team that may already exist under any name Claude Code gave it (observed: `My Demo!` lives in `my-demo-`).
    pub(crate) fn existing(given: &str) -> Result<Self, IdError> {
        let unsafe_name = || IdError::Unsafe { what: "team name", given: given.to_owned() };
        if given.is_empty() || given.len() > 200 || given.chars().any(char::is_control) {
            return Err(unsafe_name());
        }
        Ok(Self(sanitize_team(given)))
    }
}

/// Every character outside `[a-zA-Z0-9]` becomes `-`, then lower case (protocol.md, section 1).
fn sanitize_team(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect()
}

text_id!(TeamName, TeamName::existing);

/// A member's name: unique in its team without regard to case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MemberName(String);

impl MemberName {
    /// A name for a teammate to be made.
    pub(crate) fn new(given: &str) -> Result<Self, IdError> {
        if !follows_rule(given) {
            return Err(IdError::Name { what: "member", given: given.to_owned() });
        }
        if RESERVED.iter().any(|r| r.eq_ignore_ascii_case(given)) {
            return Err(IdError::Reserved { given: given.to_owned() });
        }
        Ok(Self(given.to_owned()))
    }

    /// A name read from a file or given as an address: anything that is safe as a file name. `lead` means the lead (ID-06).
    pub(crate) fn existing(given: &str) -> Result<Self, IdError> {
        if given.eq_ignore_ascii_case("lead") {
            return Ok(Self::lead());
        }
        if !is_safe_component(given) {
            return Err(IdError::Unsafe { what: "member name", given: given.to_owned() });
        }
        Ok(Self(given.to_owned()))
    }

    /// The lead's name.
    pub(crate) fn lead() -> Self {
        Self(LEAD.to_owned())
    }

    /// Whether this is the lead.
    pub(crate) fn is_lead(&self) -> bool {
        self.0 == LEAD
    }

    /// Whether both names would share one file on some file system (ID-05).
    pub(crate) fn clashes_with(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }

    /// What all names that clash with this one have in common.
    pub(crate) fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// The name as it stands in file names: `@` becomes `-`.
    pub(crate) fn file_stem(&self) -> String {
        self.0.replace('@', "-")
    }
}

text_id!(MemberName, MemberName::existing);

/// The form `NAME@TEAM`.
pub(crate) fn agent_id(name: &MemberName, team: &TeamName) -> String {
    format!("{name}@{team}")
}

/// A task's id: a decimal number that grows and is never reused; a string on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaskId(pub(crate) u64);

impl TaskId {
    /// The largest integer that JavaScript counts up exactly; Claude Code derives the next id from
    /// the largest one.
    pub(crate) const MAX: TaskId = TaskId((1 << 53) - 1);

    /// Parses the decimal form without sign, spaces or leading zeros, up to [`TaskId::MAX`].
    pub(crate) fn parse(given: &str) -> Result<Self, IdError> {
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

/// The id of a request that waits for an answer (protocol.md, section 5): `shutdown-<ms>@<name>` and the like.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RequestId(String);

impl RequestId {
    /// Takes an id from the wire or from the command line.
    pub(crate) fn parse(given: &str) -> Result<Self, IdError> {
        if !is_safe_component(given) {
            return Err(IdError::Unsafe { what: "request id", given: given.to_owned() });
        }
        Ok(Self(given.to_owned()))
    }

    /// The id of a shutdown request made at `ms` (epoch milliseconds).
    pub(crate) fn shutdown(ms: u64, name: &MemberName) -> Self {
        Self(format!("shutdown-{ms}@{name}"))
    }

    /// Whether it has the form of a shutdown request's.
    pub(crate) fn is_shutdown(&self) -> bool {
        self.0.starts_with("shutdown-")
    }

    /// The id as it stands in file names.
    pub(crate) fn file_stem(&self) -> String {
        self.0.replace('@', "-")
    }
}

text_id!(RequestId, RequestId::parse);

/// One run of a member: a uuid that is new at each start (protocol.md, section 8).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Incarnation(String);

impl Incarnation {
    /// Takes the 36-character uuid form.
    pub(crate) fn parse(given: &str) -> Result<Self, IdError> {
        let shaped = given.len() == 36 && given.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        if !shaped {
            return Err(IdError::Incarnation { given: given.to_owned() });
        }
        Ok(Self(given.to_owned()))
    }
}

text_id!(Incarnation, Incarnation::parse);

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-08, SEC-02: names that a shell, a path or tmux would read as something else.
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
    fn sec_08_created_names_follow_the_rule() {
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
    fn id_06_the_lead_has_one_name() {
        assert!(MemberName::existing("lead").expect("alias").is_lead());
        assert!(MemberName::new("Team-Lead").is_err());
        assert!(MemberName::new("LEAD").is_err());
    }

    #[test]
    fn observed_team_directory_names() {
        assert_eq!(TeamName::existing("My Demo!").expect("any name").as_str(), "my-demo-");
        assert_eq!(TeamName::new("My_Team").expect("rule").as_str(), "my-team");
    }

    #[test]
    fn a_refused_name_comes_with_an_allowed_one() {
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
    fn the_nearest_name_ignores_case_and_separators_first() {
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
    fn observed_form_of_a_shutdown_request() {
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
