//! The origin of a request: the user, the channel and the conversation that it came from.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Longest user, channel or conversation, in bytes.
const MAX: usize = 128;

/// Where a request came from. Empty for a request of the team itself.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Scope {
    pub user: Option<String>,
    pub channel: Option<String>,
    /// The conversation.
    pub chat: Option<String>,
}

impl Scope {
    /// Parses `user=U,channel=C,chat=X`, of which at least one must be given.
    ///
    /// # Errors
    /// A message for the user.
    pub fn parse(text: &str) -> Result<Scope, String> {
        let mut scope = Scope::default();
        for part in text.split(',') {
            let (key, value) =
                part.split_once('=').ok_or("write it as user=U,channel=C,chat=X".to_owned())?;
            let field = match key {
                "user" => &mut scope.user,
                "channel" => &mut scope.channel,
                "chat" => &mut scope.chat,
                other => {
                    let other = other.escape_debug();
                    return Err(format!("unknown key `{other}`; known: user, channel, chat"));
                }
            };
            if field.is_some() {
                return Err(format!("`{key}` is given twice"));
            }
            if key == "chat" {
                ChatName::parse(value)?;
            }
            check_value(key, value)?;
            *field = Some(value.to_owned());
        }
        Ok(scope)
    }

    pub fn is_empty(&self) -> bool {
        *self == Scope::default()
    }

    /// Returns true if every field of `self` that is set has this value in `other`.
    pub fn covers(&self, other: &Scope) -> bool {
        let covers =
            |ours: &Option<String>, other: &Option<String>| ours.is_none() || ours == other;
        covers(&self.user, &other.user)
            && covers(&self.channel, &other.channel)
            && covers(&self.chat, &other.chat)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = [("user", &self.user), ("channel", &self.channel), ("chat", &self.chat)];
        let fields = fields.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
        let parts: Vec<String> = fields.map(|(key, value)| format!("{key}={value}")).collect();
        f.write_str(&parts.join(","))
    }
}

fn check_value(key: &str, value: &str) -> Result<(), String> {
    if value.trim().is_empty() {
        return Err(format!("`{key}` is empty"));
    }
    if value.len() > MAX || value.chars().any(char::is_control) {
        return Err(format!("`{key}` has control characters, or more than {MAX} bytes"));
    }
    Ok(())
}

/// The name of a conversation, which is also the name of its directory in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatName(String);

impl ChatName {
    /// Parses letters, digits, `-`, `_`, `:`, `@`, `+` and `.`, not starting with a dot.
    ///
    /// # Errors
    /// A message for the user.
    pub fn parse(given: &str) -> Result<ChatName, String> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_:@+.".contains(c);
        let is_plain =
            !given.is_empty() && !given.starts_with('.') && given.chars().all(is_allowed);
        if !is_plain || given.len() > MAX {
            return Err(format!(
                "`{}` does not name a conversation: use letters, digits and `-_:@+.`, not starting with a dot, \
                 at most {MAX}",
                given.escape_debug()
            ));
        }
        Ok(ChatName(given.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ChatName {
    fn default() -> ChatName {
        ChatName("default".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_is_parsed_and_displayed_in_one_form() {
        let text = "user=u 1,channel=telegram,chat=-100:7";
        let scope = Scope::parse(text).expect("a scope");
        assert_eq!(scope.to_string(), text);
        assert_eq!(Scope::parse("chat=x").expect("a scope").chat.as_deref(), Some("x"));
        let long = format!("user={}", "x".repeat(129));
        let hostile = [
            "",
            "user",
            "user=",
            "user= ",
            "usr=x",
            "user=a,user=b",
            "user=a,",
            "user=a\n",
            "chat=..",
            "chat=a/b",
            "chat=.x",
            "chat=a b",
            &long,
        ];
        for text in hostile {
            assert!(Scope::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn scope_covers_those_with_the_same_values() {
        let scope = |text| Scope::parse(text).expect("a scope");
        let full = scope("user=u,channel=c,chat=x");
        for part in ["user=u", "channel=c", "chat=x", "user=u,chat=x"] {
            assert!(scope(part).covers(&full) && !full.covers(&scope(part)), "{part}");
        }
        assert!(!scope("user=other").covers(&full));
        assert!(Scope::default().covers(&full) && !scope("user=u").covers(&Scope::default()));
    }
}
