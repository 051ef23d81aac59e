//! `rules`: lists the team's rules, and adds or removes some while the team runs. The members'
//! programs are notified of additions (`team_permission_update`); there is no message for a
//! removal.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::mail::post::Post;
use crate::members::profiles;
use crate::{Context, Kind, OpsError};
use model::decisions::rules::{List, Rule, TeamRules};
use model::id::MemberName;
use model::mail::protocol::{Message, TeamPermissionUpdate};
use profile::Placeholder;
use store::TeamStore;

/// The result of an addition.
#[derive(Debug, Clone, Serialize)]
pub struct Changed {
    /// Rules that the team did not have before.
    pub added: Vec<Rule>,
    /// Members whose programs were notified.
    pub told: Vec<MemberName>,
    /// Rules of which no program was notified: it would know the permission, but not the rules that
    /// deny a part of it.
    pub kept_back: Vec<Rule>,
}

/// Returns the rules of a team, of its roles and of its members.
///
/// # Errors
/// [`OpsError::Usage`] for a team that another program created, which has no rules.
pub fn list(team: &TeamStore) -> Result<TeamRules, OpsError> {
    team.settings()?.map(|settings| settings.rules).ok_or_else(|| no_rules_here(team))
}

/// Adds rules to the team's. They apply at once, also to requests that wait for a person.
///
/// # Errors
/// As [`list`]. Nothing is changed then.
pub fn add(ctx: &Context, team: &TeamStore, to: List, rules: &[Rule]) -> Result<Changed, OpsError> {
    list(team)?;
    let (mut added, mut now) = (Vec::new(), TeamRules::default());
    team.change_settings(|settings| {
        added = settings.rules.team.add(to, rules);
        now = settings.rules.clone();
    })?;
    let (telling, kept_back): (Vec<Rule>, Vec<Rule>) =
        added.iter().cloned().partition(|rule| to != List::Allow || now.allows_plainly(rule));
    let told = match telling.as_slice() {
        [] => Vec::new(),
        some => broadcast(ctx, team, &update(to, some))?,
    };
    Ok(Changed { added, told, kept_back })
}

/// The result of a removal.
#[derive(Debug, Clone, Serialize)]
pub struct Removed {
    pub removed: Vec<Rule>,
    /// Members whose programs may know the rules, and apply them until they are restarted.
    pub kept_by: Vec<MemberName>,
}

/// Removes rules from the team's. They no longer apply, not even to requests that wait for a
/// person.
///
/// # Errors
/// As [`list`]; a refusal for a rule that the team does not have. Nothing is changed
/// then.
pub fn remove(
    ctx: &Context,
    team: &TeamStore,
    from: List,
    rules: &[Rule],
) -> Result<Removed, OpsError> {
    list(team)?;
    let mut done = Ok(());
    team.change_settings(|settings| done = settings.rules.team.remove(from, rules))?;
    done.map_err(|rule| {
        OpsError::described(
            Kind::NotFound,
            format!("the team has no rule `{}` in `{}`", String::from(rule), from.as_str()),
            "list them with `phalanx rules`; rules of roles and members are set in the manifest",
        )
    })?;
    let mut kept_by = Vec::new();
    for member in team.team()?.teammates() {
        if knows_rules(ctx, team, &member.name)? {
            kept_by.push(member.name.clone());
        }
    }
    Ok(Removed { removed: rules.to_vec(), kept_by })
}

/// Returns the message for these rules. All rules of a message share one behaviour; `toolName` is
/// that of the first, which Claude Code 2.1.34 only displays (by its code).
fn update(to: List, rules: &[Rule]) -> Message {
    let mut body = Map::new();
    body.insert("type".to_owned(), json!("addRules"));
    body.insert("rules".to_owned(), rules.iter().map(Rule::entry).collect::<Vec<Value>>().into());
    body.insert("behavior".to_owned(), json!(to.as_str()));
    body.insert("destination".to_owned(), json!("session"));
    let tool_name = rules.first().map(|rule| rule.tool().to_owned());
    Message::TeamPermissionUpdate(TeamPermissionUpdate { permission_update: body, tool_name })
}

/// Notifies every member whose program accepts such rules; phalanx applies them for the others.
fn broadcast(
    ctx: &Context,
    team: &TeamStore,
    message: &Message,
) -> Result<Vec<MemberName>, OpsError> {
    let mut told = Vec::new();
    for member in team.team()?.teammates() {
        if knows_rules(ctx, team, &member.name)? {
            Post::new(&MemberName::lead(), &member.name, message.clone()).send(team)?;
            told.push(member.name.clone());
        }
    }
    Ok(told)
}

/// A member that phalanx did not start is a native agent, which accepts rules.
fn knows_rules(ctx: &Context, team: &TeamStore, name: &MemberName) -> Result<bool, OpsError> {
    let Some(record) = team.member_record(name)? else { return Ok(true) };
    let profile = profiles::find(ctx, &record.request.profile);
    Ok(record.reads_mail()
        && profile.is_ok_and(|profile| profile.takes(Placeholder::DisallowedTools)))
}

fn no_rules_here(team: &TeamStore) -> OpsError {
    let problem = format!(
        "team `{}` was not created by phalanx, so phalanx manages no rules for it",
        team.name()
    );
    OpsError::Usage {
        problem,
        hint: Some("its own lead decides what its members may do".to_owned()),
    }
}
