//! Services: members that are ready some time after their start, and what waits for them.

use schemars::JsonSchema;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_with::skip_serializing_none;

use crate::members::placeholder::MemberValues;
use crate::text;
use crate::time::Timestamp;
use crate::value::{Argv, As, AtLeast, CheckedValue, FIELD, NonBlank, inline_schema};

/// Beginning of the entries of `after` that name a member.
const MEMBER: &str = "member:";
/// Seconds that a check gets if it does not say so itself.
const TIMEOUT_S: u64 = 60;
/// Maximum length of a line or a command in a sentence, in characters.
const QUOTED: usize = 60;

/// Returns the entry of `after` that names a member. It is also the key of the task that is
/// completed when the member is ready; no other key contains a colon.
pub fn readiness_key(member: &str) -> String {
    format!("{MEMBER}{member}")
}

/// Returns the member that an entry of `after`, or the key of a task, names.
pub fn awaited_member(key: &str) -> Option<&str> {
    key.strip_prefix(MEMBER)
}

/// The check whether a member is ready: exactly one of `line`, `port` and `run` is set. Their texts
/// may contain placeholders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ready", deny_unknown_fields)]
pub struct ReadyCheck {
    /// The member is ready when it has printed a line that contains this text.
    #[serde(skip_serializing_if = "Option::is_none", with = "As::<Option<NonBlank>>")]
    pub line: Option<String>,
    /// The member is ready when this port of its machine's loopback interface accepts connections.
    /// A text may contain `{index}`.
    #[serde(skip_serializing_if = "Option::is_none", with = "As::<Option<PortKey>>")]
    pub port: Option<String>,
    /// The member is ready when this command exits with 0. It runs every second in the member's
    /// directory, with its variables.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Argv>")]
    pub run: Vec<String>,
    /// Seconds after which a member that is not ready asks for attention.
    #[serde(skip_serializing_if = "Option::is_none", with = "As::<Option<AtLeast<1, u64>>>")]
    #[schemars(extend("default" = TIMEOUT_S))]
    pub timeout: Option<u64>,
}

impl ReadyCheck {
    /// Returns what is wrong with the table, as a message.
    pub fn fault(&self) -> Option<String> {
        let given = [self.line.is_some(), self.port.is_some(), !self.run.is_empty()];
        let count = given.into_iter().filter(|given| *given).count();
        (count != 1).then(|| "`ready` needs one of `line`, `port` and `run`".to_owned())
    }

    /// Returns the check for one member.
    pub fn filled(&self, values: MemberValues<'_>) -> ReadyCheck {
        ReadyCheck {
            line: self.line.as_ref().map(|line| values.fill(line)),
            port: self.port.as_ref().map(|port| values.fill(port)),
            run: self.run.iter().map(|word| values.fill(word)).collect(),
            timeout: self.timeout,
        }
    }

    /// Returns the number of the port, if the check has a valid one.
    pub fn port_number(&self) -> Option<u16> {
        self.port.as_ref()?.parse().ok().filter(|port| *port > 0)
    }

    pub fn timeout_ms(&self) -> u64 {
        self.timeout.unwrap_or(TIMEOUT_S).saturating_mul(1000)
    }

    /// Returns what has to happen, as a clause.
    pub fn condition(&self) -> String {
        match (&self.line, &self.port) {
            (Some(line), _) => format!("it prints \"{}\"", text::short(line, QUOTED)),
            (None, Some(port)) => format!("port {port} accepts connections"),
            (None, None) => format!("`{}` succeeds", text::short(&self.run.join(" "), QUOTED)),
        }
    }
}

/// The state of the check of a run.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// Time at which the check passed.
    pub passed_at: Option<Timestamp>,
    /// The part that is missing after the timeout, as a sentence without its end.
    pub overdue: Option<String>,
}

impl Readiness {
    /// Returns true if the check has not ended in any way.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.passed_at.is_none() && self.overdue.is_none()
    }
}

/// A port: a number, or a text that becomes one.
#[derive(Debug)]
pub(crate) struct PortKey(String);

inline_schema!(PortKey, {
    "type": ["integer", "string"],
    "minimum": 1,
    "maximum": 65535,
    "pattern": r"^([0-9]|\{index\})+$",
});

impl CheckedValue for PortKey {
    type Value = String;

    fn into_value(self) -> String {
        self.0
    }
}

impl<'de> Deserialize<'de> for PortKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PortKey, D::Error> {
        deserializer.deserialize_any(PortVisitor)
    }
}

struct PortVisitor;

impl Visitor<'_> for PortVisitor {
    type Value = PortKey;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("the number of a port")
    }

    fn visit_i64<E: de::Error>(self, port: i64) -> Result<PortKey, E> {
        match u16::try_from(port) {
            Ok(port) if port > 0 => Ok(PortKey(port.to_string())),
            _ => Err(E::custom(format!("{FIELD} must be a port, from 1 to 65535"))),
        }
    }

    fn visit_u64<E: de::Error>(self, port: u64) -> Result<PortKey, E> {
        self.visit_i64(i64::try_from(port).unwrap_or(i64::MAX))
    }

    fn visit_str<E: de::Error>(self, port: &str) -> Result<PortKey, E> {
        // The number of any member shows whether the text becomes a number; a name never does.
        let sample = MemberValues { name: "name", index: 1 }.fill(port);
        let number = sample.parse().map_err(|_| {
            E::custom(format!("{FIELD} must be a port, or a text such as \"80{{index}}0\""))
        })?;
        self.visit_i64::<E>(number).map(|_| PortKey(port.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_a_number_or_becomes_one() {
        let read = |json: &str| {
            serde_json::from_str::<PortKey>(json).map(|port| port.0).map_err(|e| e.to_string())
        };
        for (json, port) in [("8000", "8000"), ("\"80{index}0\"", "80{index}0"), ("\"80\"", "80")] {
            assert_eq!(read(json).as_deref(), Ok(port), "{json}");
        }
        for json in ["0", "-1", "65536", "1e3", "\"\"", "\"x\"", "\"80{name}\"", "\"9999{index}\""]
        {
            assert!(read(json).is_err(), "{json}");
        }
    }

    #[test]
    fn check_needs_exactly_one_condition() {
        let check = |json: &str| serde_json::from_str::<ReadyCheck>(json).expect("a check");
        assert!(check("{}").fault().is_some());
        assert!(check(r#"{"line":"x","port":1}"#).fault().is_some());
        let table = [
            (r#"{"line":"up"}"#, "it prints \"up\""),
            (r#"{"port":8000}"#, "port 8000 accepts connections"),
            (r#"{"run":["pg_isready","-q"]}"#, "`pg_isready -q` succeeds"),
        ];
        for (json, condition) in table {
            let check = check(json);
            assert_eq!((check.fault(), check.condition().as_str()), (None, condition));
            assert_eq!(check.timeout_ms(), 60_000);
        }
    }

    #[test]
    fn key_of_a_readiness_task_names_its_member() {
        assert_eq!(awaited_member(&readiness_key("db")), Some("db"));
        assert_eq!(awaited_member("db"), None);
        assert!(crate::board::task_definition::check_key(&readiness_key("db")).is_err());
    }
}
