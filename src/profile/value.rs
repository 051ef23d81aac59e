//! Types of values in profiles, which check them while they are deserialized.

use std::fmt;

use serde::de::value::{Error as ValueError, SeqAccessDeserializer};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::words::{Group, TemplateWord};
use model::members::mode::Mode;
use model::name::check_variable;
use model::value::{CheckedValue, FIELD, checked, parse_text, text_types};

/// Maximum of every time in a profile, in milliseconds.
pub(super) const LONGEST_MS: u64 = 60_000;
/// Maximum of `most_bytes`.
pub(super) const LARGEST_PASTE: u64 = 1 << 20;
/// The modes that a profile can have, in their spelling there.
const MODES: &[&str] = &["default", "acceptEdits", "auto", "bypassPermissions", "plan", "dontAsk"];

/// An integer from 0 to `MOST`.
pub(super) struct AtMost<T, const MOST: u64>(T);

impl<'de, T: TryFrom<i64>, const MOST: u64> Deserialize<'de> for AtMost<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AtMost<T, MOST>, D::Error> {
        let number = i64::deserialize(deserializer)?;
        let is_valid = u64::try_from(number).is_ok_and(|number| number <= MOST);
        T::try_from(number)
            .ok()
            .filter(|_| is_valid)
            .map(AtMost)
            .ok_or_else(|| D::Error::custom(format!("{FIELD} must be from 0 to {MOST}")))
    }
}

impl<T, const MOST: u64> CheckedValue for AtMost<T, MOST> {
    type Value = T;

    fn into_value(self) -> T {
        self.0
    }
}

text_types! {
    /// Keys to type: any non-empty text.
    pub(crate) TypedKeys(String) = |keys| {
        if keys.is_empty() { Err(format!("{FIELD} is empty")) } else { Ok(keys.to_owned()) }
    };
    pub(crate) ListedVariable(String) = |text| checked(parse_text(text), check_variable);
    pub(crate) CredentialFile(String) = |text| checked(parse_text(text), check_credential_file);
    /// A permission mode, as a key.
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) ModeName(Mode) = |text| {
        let known = MODES.contains(&text).then(|| Mode::parse(text)).flatten();
        known.ok_or_else(|| ValueError::unknown_field(text, MODES).to_string())
    };
    /// The value of a variable, a template of one word.
    pub(crate) OneWord(Group) = |text| Ok(Group(vec![TemplateWord::parse(text)?]));
}

/// Checks the path of a file below the home directory or below the directory in a variable.
fn check_credential_file(path: &str) -> Result<(), String> {
    let rule = "does not begin with `~/` or `$NAME/`";
    let (first, rest) = path.split_once('/').ok_or(rule)?;
    let below = first == "~" || first.strip_prefix('$').is_some_and(|v| check_variable(v).is_ok());
    if below && !rest.is_empty() { Ok(()) } else { Err(rule.to_owned()) }
}

/// A command line: at least one group of words.
pub(super) struct CommandTemplate(Vec<Group>);

impl CheckedValue for CommandTemplate {
    type Value = Vec<Group>;

    fn into_value(self) -> Vec<Group> {
        self.0
    }
}

impl<'de> Deserialize<'de> for CommandTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CommandTemplate, D::Error> {
        deserializer.deserialize_seq(CommandTemplateVisitor)
    }
}

struct CommandTemplateVisitor;

impl<'de> Visitor<'de> for CommandTemplateVisitor {
    type Value = CommandTemplate;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of lists of strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<CommandTemplate, A::Error> {
        let groups = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        if groups.is_empty() {
            return Err(A::Error::custom(format!("{FIELD} does not name a program")));
        }
        Ok(CommandTemplate(groups))
    }
}

#[cfg(test)]
mod tests {
    use crate::Profile;

    #[test]
    fn login_names_variables_and_files_of_the_user() {
        let with = |login: &str| {
            let text = format!("about = \"x\"\n[launch]\nargv = [[\"x\"]]\n[login]\n{login}\n");
            Profile::parse("own", &text).map_err(|e| e.to_string())
        };
        let own = with("env = [\"KEY\"]\nfiles = [\"~/.x/a\", \"$X_HOME/a\"]").expect("valid");
        let signs = own.login.expect("a login");
        assert_eq!(
            (signs.env, signs.files.join(" ")),
            (vec!["KEY".to_owned()], "~/.x/a $X_HOME/a".to_owned())
        );
        for file in ["/etc/x", "x", "~", "~/", "$/x", "$X-Y/a", "~root/x"] {
            let fault = with(&format!("files = [\"{file}\"]")).expect_err("a fault");
            assert!(fault.contains("does not begin with `~/` or `$NAME/`"), "{file}: {fault}");
        }
        let fault = with("env = [\"A B\"]").expect_err("a fault");
        assert!(fault.contains("is not a variable name"), "{fault}");
    }
}
