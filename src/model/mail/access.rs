//! The access policy of a team: which users and channels may request work, of the team and of one
//! member.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::MemberName;
use crate::mail::scope::Scope;
use crate::text;
use crate::value::{As, NonBlank};

/// Channels of requests that the team itself makes. They are always admitted.
const OWN_CHANNELS: [&str; 2] = ["system", "teammate"];

/// The section that names the lists of `spawn`.
const OF_START: &str = "spawn";

/// The users and channels whose requests a team carries out. An empty list of what is allowed
/// allows everything, and a denial overrides it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccessPolicy {
    #[serde(flatten)]
    pub team: AccessLists,
    /// The lists of members, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, LinkAccess>,
}

/// The lists of the whole team, `[team.access]` in a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "access", deny_unknown_fields)]
pub struct AccessLists {
    /// Only these users may request work; if empty, all.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Vec<NonBlank>>")]
    pub allow_users: Vec<String>,
    /// These users may not request work.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Vec<NonBlank>>")]
    pub deny_users: Vec<String>,
    /// Only requests from these channels are carried out; if empty, from all.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Vec<NonBlank>>")]
    pub allow_channels: Vec<String>,
    /// No requests from these channels are carried out.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Vec<NonBlank>>")]
    pub deny_channels: Vec<String>,
}

/// The users that may request work of one member, or of the members with one role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "link", deny_unknown_fields)]
pub struct LinkAccess {
    /// Only these users may request work; if empty, all.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Vec<NonBlank>>")]
    pub allow_users: Vec<String>,
    /// These users may not request work.
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Vec<NonBlank>>")]
    pub deny_users: Vec<String>,
}

impl LinkAccess {
    pub fn is_empty(&self) -> bool {
        *self == LinkAccess::default()
    }
}

/// The list that refuses a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessDenied {
    #[error("{what} `{}` is denied by `{setting}`", text::line(value))]
    Listed { what: &'static str, value: String, setting: String },
    #[error("{what} `{}` is not in `{setting}`", text::line(value))]
    NotListed { what: &'static str, value: String, setting: String },
    #[error("the request names no {what}, and `{setting}` allows only some")]
    Unnamed { what: &'static str, setting: String },
}

impl AccessDenied {
    /// Returns the next step for the user.
    pub fn hint(&self) -> String {
        match self {
            AccessDenied::Listed { setting, .. } | AccessDenied::NotListed { setting, .. }
                if setting.starts_with(OF_START) =>
            {
                "it was started with this list (`spawn --allow-user`, `--deny-user`)".to_owned()
            }
            AccessDenied::Listed { setting, .. } | AccessDenied::NotListed { setting, .. } => {
                format!("the lead can change the list: `phalanx team set {setting} '[…]'`")
            }
            AccessDenied::Unnamed { what, .. } => {
                format!("name the origin of the request: `--scope {what}=NAME,…`")
            }
        }
    }
}

impl AccessPolicy {
    pub fn is_empty(&self) -> bool {
        *self == AccessPolicy::default()
    }

    /// Checks whether the team takes requests of this origin.
    ///
    /// # Errors
    /// The first list that refuses it: users before channels, denials before permissions.
    pub fn admit(&self, scope: &Scope) -> Result<(), AccessDenied> {
        if is_own(scope) {
            return Ok(());
        }
        let AccessLists { allow_users, deny_users, allow_channels, deny_channels } = &self.team;
        check("user", &scope.user, "access", allow_users, deny_users)?;
        check("channel", &scope.channel, "access", allow_channels, deny_channels)
    }

    /// Checks whether this member takes requests of this origin. `entry` is the name of its entry
    /// in the settings, which may stand for several members. `own` has the lists of its start, and
    /// `role` its role with the lists of that role.
    ///
    /// # Errors
    /// As [`AccessPolicy::admit`]; the lists of the member come first.
    pub fn admit_to(
        &self,
        scope: &Scope,
        member: &MemberName,
        entry: &str,
        own: &LinkAccess,
        role: Option<(&str, &LinkAccess)>,
    ) -> Result<(), AccessDenied> {
        if is_own(scope) {
            return Ok(());
        }
        for (_, link) in self.members.iter().filter(|(name, _)| member.clashes_with(name)) {
            let setting = format!("member.{entry}.access");
            check("user", &scope.user, &setting, &link.allow_users, &link.deny_users)?;
        }
        check("user", &scope.user, OF_START, &own.allow_users, &own.deny_users)?;
        let Some((name, link)) = role else { return Ok(()) };
        let setting = format!("role.{}.access", text::line(name));
        check("user", &scope.user, &setting, &link.allow_users, &link.deny_users)
    }
}

/// Returns the filter for the tasks that a caller of this origin sees: those of its user, and for
/// the team itself all.
pub fn visible_to(caller: &Scope) -> Scope {
    let user = caller.user.clone().filter(|_| !is_own(caller));
    Scope { user, ..Scope::default() }
}

/// Returns true for requests that no user or channel outside the team has caused.
fn is_own(scope: &Scope) -> bool {
    scope.is_empty()
        || scope.channel.as_deref().is_some_and(|channel| OWN_CHANNELS.contains(&channel))
}

fn check(
    what: &'static str,
    value: &Option<String>,
    section: &str,
    allow: &[String],
    deny: &[String],
) -> Result<(), AccessDenied> {
    let setting = |list: &str| format!("{section}.{list}_{what}s");
    match value {
        Some(value) if deny.contains(value) => {
            Err(AccessDenied::Listed { what, value: value.clone(), setting: setting("deny") })
        }
        _ if allow.is_empty() => Ok(()),
        Some(value) if allow.contains(value) => Ok(()),
        Some(value) => {
            Err(AccessDenied::NotListed { what, value: value.clone(), setting: setting("allow") })
        }
        None => Err(AccessDenied::Unnamed { what, setting: setting("allow") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &str) -> Vec<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    fn policy(lists: [&str; 4]) -> AccessPolicy {
        let [allow_users, deny_users, allow_channels, deny_channels] = lists.map(list);
        let team = AccessLists { allow_users, deny_users, allow_channels, deny_channels };
        AccessPolicy { team, ..AccessPolicy::default() }
    }

    /// Returns the setting that refuses a request, or `yes`.
    fn answer(got: Result<(), AccessDenied>) -> String {
        match got {
            Ok(()) => "yes".to_owned(),
            Err(
                AccessDenied::Listed { setting, .. }
                | AccessDenied::NotListed { setting, .. }
                | AccessDenied::Unnamed { setting, .. },
            ) => setting,
        }
    }

    #[test]
    fn denials_win_empty_lists_are_open_and_own_channels_pass() {
        let open = ["", "", "", ""];
        let strict = ["u1 u2", "u2", "web", "irc"];
        let table: [([&str; 4], &str, &str); 18] = [
            (open, "user=u1,channel=web", "yes"),
            (open, "chat=x", "yes"),
            (strict, "user=u1,channel=web", "yes"),
            (strict, "user=u2,channel=web", "access.deny_users"),
            (strict, "user=u3,channel=web", "access.allow_users"),
            (strict, "user=u1,channel=irc", "access.deny_channels"),
            (strict, "user=u1,channel=sms", "access.allow_channels"),
            (strict, "user=u1", "access.allow_channels"),
            (strict, "channel=web", "access.allow_users"),
            (strict, "chat=x", "access.allow_users"),
            (strict, "user=u2,channel=system", "yes"),
            (strict, "user=u2,channel=teammate", "yes"),
            (strict, "user=u2,channel=System", "access.deny_users"),
            (["", "u1", "", ""], "user=u2,channel=web", "yes"),
            (["", "u1", "", ""], "channel=web", "yes"),
            (["", "", "", "irc"], "user=u1", "yes"),
            (["U1", "", "", ""], "user=u1", "access.allow_users"),
            (["", "", "system", ""], "user=u,channel=web", "access.allow_channels"),
        ];
        for (lists, scope, expected) in table {
            let scope = Scope::parse(scope).expect("a scope");
            assert_eq!(answer(policy(lists).admit(&scope)), expected, "{lists:?} {scope}");
        }
        assert_eq!(answer(policy(strict).admit(&Scope::default())), "yes", "of the team itself");
    }

    #[test]
    fn users_see_their_own_tasks_and_the_team_sees_all() {
        let table = [
            ("user=u1,channel=web,chat=x", "user=u1"),
            ("channel=web", ""),
            ("user=u1,channel=teammate", ""),
            ("user=u1,channel=system", ""),
        ];
        for (caller, expected) in table {
            let caller = Scope::parse(caller).expect("a scope");
            assert_eq!(visible_to(&caller).to_string(), expected, "{caller}");
        }
    }

    #[test]
    fn member_and_role_limit_users_of_one_link() {
        let link = |allow, deny| LinkAccess { allow_users: list(allow), deny_users: list(deny) };
        let mut policy = AccessPolicy::default();
        policy.members.insert("ann".to_owned(), link("u1 u2", "u2"));
        let scout = link("", "u1");
        let table = [
            ("ann", None, "user=u1", "yes"),
            ("ANN", None, "user=u2", "member.entry.access.deny_users"),
            ("ann", None, "user=u3", "member.entry.access.allow_users"),
            ("ann", None, "channel=web", "member.entry.access.allow_users"),
            ("ann", None, "user=u3,channel=teammate", "yes"),
            ("bob", None, "user=u3", "yes"),
            ("ann", Some(("scout", &scout)), "user=u1", "role.scout.access.deny_users"),
            ("bob", Some(("scout", &scout)), "user=u3", "yes"),
        ];
        for (member, role, scope, expected) in table {
            let member = MemberName::existing(member).expect("a name");
            let scope = Scope::parse(scope).expect("a scope");
            let answered = answer(policy.admit_to(&scope, &member, "entry", &link("", ""), role));
            assert_eq!(answered, expected, "{member} {scope}");
        }
        let bob = MemberName::existing("bob").expect("a name");
        let of_start = |own: LinkAccess| {
            let scope = Scope::parse("user=u3").expect("a scope");
            answer(policy.admit_to(&scope, &bob, "entry", &own, None))
        };
        assert_eq!(of_start(link("u1", "")), "spawn.allow_users");
        assert_eq!(of_start(link("u3", "u1")), "yes");
    }

    #[test]
    fn refusal_names_value_setting_and_next_step() {
        let scope = Scope::parse("user=u\u{202e},channel=web").expect("a scope");
        let denied = policy(["", "u\u{202e}", "", ""]).admit(&scope).expect_err("denied");
        assert_eq!(denied.to_string(), "user `u\u{fffd}` is denied by `access.deny_users`");
        assert!(denied.hint().contains("phalanx team set access.deny_users"));
        let scope = Scope::parse("channel=web").expect("a scope");
        let unnamed = policy(["u", "", "", ""]).admit(&scope).expect_err("unnamed");
        assert!(unnamed.to_string().starts_with("the request names no user"));
        assert!(unnamed.hint().contains("--scope user=NAME"));
    }
}
