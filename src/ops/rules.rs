//! `rules`: the team's rules as they are, and a rule more or less while the team runs. Of one more the members' programs are
//! told (`team_permission_update`, protocol.md section 5); there is no message that takes one back.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::context::Context;
use super::error::OpsError;
use super::{profiles, send};
use crate::model::id::MemberName;
use crate::model::protocol::{Message, TeamPermissionUpdate};
use crate::model::rules::{List, Rule, TeamRules};
use crate::profile::Names;
use crate::store::TeamStore;

/// What became of a change.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Changed {
    /// The rules that were not there before.
    pub(crate) added: Vec<Rule>,
    /// Whose programs were told.
    pub(crate) told: Vec<MemberName>,
    /// Rules that no program was told: it would know of the permission and not of what is denied beside it.
    pub(crate) kept_back: Vec<Rule>,
}

/// The rules of a team, of its roles and of its members.
///
/// # Errors
/// A team that another program made, which keeps none.
pub(crate) fn list(team: &TeamStore) -> Result<TeamRules, OpsError> {
    team.settings()?.map(|settings| settings.rules).ok_or_else(|| no_rules_here(team))
}

/// Adds rules to the team's. They hold from now on, also for what waits for a person.
///
/// # Errors
/// A team that another program made. Nothing is changed then.
pub(crate) fn add(
    ctx: &Context,
    team: &TeamStore,
    to: List,
    rules: &[Rule],
) -> Result<Changed, OpsError> {
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

/// What became of a removal.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Removed {
    pub(crate) removed: Vec<Rule>,
    /// Whose programs may have been told of them, and keep to them until they are started again.
    pub(crate) kept_by: Vec<MemberName>,
}

/// Takes rules out of the team's. They hold no more from now on, also for what waits for a person.
///
/// # Errors
/// As [`add`]; a rule that is not there. Nothing is changed then.
pub(crate) fn remove(
    ctx: &Context,
    team: &TeamStore,
    from: List,
    rules: &[Rule],
) -> Result<Removed, OpsError> {
    list(team)?;
    let mut done = Ok(());
    team.change_settings(|settings| done = settings.rules.team.remove(from, rules))?;
    done.map_err(|rule| OpsError::NoSuchRule { rule: rule.into(), list: from.as_str() })?;
    let mut kept_by = Vec::new();
    for member in team.team()?.teammates() {
        if knows_rules(ctx, team, &member.name)? {
            kept_by.push(member.name.clone());
        }
    }
    Ok(Removed { removed: rules.to_vec(), kept_by })
}

/// Every rule of one message has the same behaviour; `toolName` is that of the first (seen in the code of 2.1.34: it is
/// only shown there).
fn update(to: List, rules: &[Rule]) -> Message {
    let mut body = Map::new();
    body.insert("type".to_owned(), json!("addRules"));
    body.insert("rules".to_owned(), rules.iter().map(Rule::entry).collect::<Vec<Value>>().into());
    body.insert("behavior".to_owned(), json!(to.as_str()));
    body.insert("destination".to_owned(), json!("session"));
    let tool_name = rules.first().map(|rule| rule.tool().to_owned());
    Message::TeamPermissionUpdate(TeamPermissionUpdate { permission_update: body, tool_name })
}

/// Tells every member whose program knows such rules. For the others phalanx keeps them.
fn broadcast(
    ctx: &Context,
    team: &TeamStore,
    message: &Message,
) -> Result<Vec<MemberName>, OpsError> {
    let mut told = Vec::new();
    for member in team.team()?.teammates() {
        if knows_rules(ctx, team, &member.name)? {
            send::say(team, &MemberName::lead(), &member.name, message, None)?;
            told.push(member.name.clone());
        }
    }
    Ok(told)
}

/// One that phalanx did not start is a native agent, and does.
fn knows_rules(ctx: &Context, team: &TeamStore, name: &MemberName) -> Result<bool, OpsError> {
    let Some(record) = team.member_record(name)? else { return Ok(true) };
    let profile = profiles::find(ctx, &record.wish.profile);
    Ok(record.reads_mail() && profile.is_ok_and(|profile| profile.takes(Names::DisallowedTools)))
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
