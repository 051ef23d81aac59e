//! The settings of a team as a TOML document, for `team set` and `team show`. A change is applied
//! to the document, which is then read like a manifest, so that both have the same keys and rules.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use toml::{Table, Value};

use super::ConfigError;
use super::manifest::Manifest;
use model::board::policy::BoardPolicy;
use model::decisions::rules::{RuleSet, TeamRules};
use model::digest;
use model::mail::access::LinkAccess;
use model::members::budget::Budget;
use model::members::launch::{Demand, EntryDigests, LaunchSpec, Scale, Template};
use model::team::hook::{HookCommand, Invocation};
use model::team::host::{HostChoice, HostConfig};
use model::team::role::{Role, Tools};
use model::team::settings::Settings;
use model::team::worktree::WorktreeRequest;

/// The sections besides `[team]`. `member` contains only members that the lead starts by itself.
pub(crate) const SECTIONS: [&str; 9] =
    ["env", "rules", "role", "defaults", "worktree", "hook", "check", "host", "member"];

/// The lists of tables that a document has as tables keyed by `name`.
const KEYED: [&str; 3] = ["check", "host", "member"];

/// Returns the settings as a document with sorted keys. Checks, hosts and members are keyed by
/// name, so that a dotted key can lead to one.
pub fn document(settings: &Settings) -> Table {
    let mut document = Table::new();
    put(&mut document, "team", team(settings));
    put(&mut document, "env", table_of(&settings.env));
    put(&mut document, "rules", rules(&settings.rules));
    let roles =
        settings.roles.named.iter().map(|(name, of)| (name.clone(), Value::Table(role(of))));
    put(&mut document, "role", roles.collect());
    let mut defaults = tools(&settings.roles.tools);
    put(&mut defaults, "budget", budget(&settings.budgets.each));
    put(&mut document, "defaults", defaults);
    put(&mut document, "worktree", table_of(&settings.worktree));
    // A hook of a manifest always runs a program.
    let hooks = settings.hooks.iter().filter(|hook| matches!(hook.run, Invocation::Program(_)));
    let hooks: Vec<Value> = hooks.map(|of| Value::Table(hook(of))).collect();
    if !hooks.is_empty() {
        document.insert("hook".to_owned(), hooks.into());
    }
    let checks = settings.checks.iter();
    let checks = checks.map(|of| (of.name.clone(), Value::Table(named_table(of))));
    put(&mut document, "check", checks.collect());
    let hosts = settings.hosts.iter();
    let hosts = hosts.map(|of| (of.name.to_string(), Value::Table(named_table(of))));
    put(&mut document, "host", hosts.collect());
    let members = settings.templates.iter().map(|template| {
        let first = template.names().first().map(ToString::to_string).unwrap_or_default();
        let rules = settings.rules.members.get(&first).cloned().unwrap_or_default();
        let link = settings.access.members.get(&first).cloned().unwrap_or_default();
        let mut table = member(template, &rules, &link);
        let own = settings.budgets.members.get(&first).copied().unwrap_or_default();
        put(&mut table, "budget", budget(&own));
        (template.spec.name.clone(), Value::Table(table))
    });
    put(&mut document, "member", members.collect());
    sorted(document)
}

/// Sorts the keys of all tables, so that their order does not depend on that of the code above.
fn sorted(table: Table) -> Table {
    let table: BTreeMap<String, Value> =
        table.into_iter().map(|(key, value)| (key, sorted_value(value))).collect();
    table.into_iter().collect()
}

fn sorted_value(value: Value) -> Value {
    match value {
        Value::Table(table) => Value::Table(sorted(table)),
        Value::Array(items) => Value::Array(items.into_iter().map(sorted_value).collect()),
        other => other,
    }
}

/// Returns a document that sets one key. A value that is not TOML is taken as a string.
///
/// # Errors
/// A message for the user if `key` is not a dotted TOML key.
pub fn assignment(key: &str, value: &str) -> Result<Table, String> {
    let path = path(key)?;
    let parsed: Option<Table> = toml::from_str(&format!("value = {value}")).ok();
    let parsed =
        parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
    let nest = |inner: Value, key: &String| Value::Table(Table::from_iter([(key.clone(), inner)]));
    match path.iter().rev().fold(value, nest) {
        Value::Table(table) => Ok(table),
        _ => Err(format!("`{key}` is not a key")),
    }
}

/// Splits a dotted key into its steps. A key that does not start with a section is in `[team]`.
///
/// # Errors
/// A message for the user if `key` is not a dotted TOML key.
pub fn path(key: &str) -> Result<Vec<String>, String> {
    let problem = || format!("`{}` is not a key", key.escape_debug());
    let parsed: Table = toml::from_str(&format!("{key} = 0")).map_err(|_| problem())?;
    let (mut at, mut steps) = (Value::Table(parsed), Vec::new());
    while let Value::Table(table) = at {
        let mut entries = table.into_iter();
        let (Some((step, inner)), None) = (entries.next(), entries.next()) else {
            return Err(problem());
        };
        steps.push(step);
        at = inner;
    }
    let first = steps.first().map(String::as_str).unwrap_or_default();
    if first != "team" && !SECTIONS.contains(&first) {
        steps.insert(0, "team".to_owned());
    }
    Ok(steps)
}

/// Merges `change` into a document: merges tables, replaces anything else.
pub fn merge(document: &mut Table, change: Table) {
    for (key, value) in change {
        match (document.get_mut(&key), value) {
            (Some(Value::Table(there)), Value::Table(inner)) => merge(there, inner),
            (_, value) => drop(document.insert(key, value)),
        }
    }
}

/// Removes a key from a document. Returns true if it was there.
pub fn remove(document: &mut Table, path: &[String]) -> bool {
    let Some((last, above)) = path.split_last() else { return false };
    let inner = above
        .iter()
        .try_fold(document, |table, step| table.get_mut(step).and_then(Value::as_table_mut));
    inner.is_some_and(|table| table.remove(last).is_some())
}

/// Parses a settings file, which was checked with [`Manifest::parse_settings`], into a document.
pub fn parse_file(text: &str) -> Table {
    let mut document: Table = toml::from_str(text).unwrap_or_default();
    for section in KEYED {
        let Some(Value::Array(entries)) = document.remove(section) else { continue };
        let named = entries.into_iter().filter_map(|entry| {
            let Value::Table(mut entry) = entry else { return None };
            Some((entry.remove("name")?.as_str()?.to_owned(), Value::Table(entry)))
        });
        document.insert(section.to_owned(), Value::Table(named.collect()));
    }
    document
}

/// Reads a document as a manifest whose members may also name the hosts in `known`.
///
/// # Errors
/// The first fault. Its position is in generated text and means nothing to the user.
pub fn parse_document(mut document: Table, known: &[HostConfig]) -> Result<Manifest, ConfigError> {
    for section in KEYED {
        let Some(Value::Table(entries)) = document.remove(section) else { continue };
        // By name, whatever the order in which the document got them.
        let entries: BTreeMap<String, Value> = entries.into_iter().collect();
        let entry = |(name, of): (String, Value)| {
            let mut entry = Table::from_iter([("name".to_owned(), Value::String(name))]);
            if let Value::Table(of) = of {
                entry.extend(of);
            }
            Value::Table(entry)
        };
        let entries: Vec<Value> = entries.into_iter().map(entry).collect();
        document.insert(section.to_owned(), Value::Array(entries));
    }
    Manifest::parse_settings(&document.to_string(), known)
}

/// Returns each value of a document by its dotted key; keys of `[team]` have no prefix.
pub fn flatten(document: &Table) -> BTreeMap<String, String> {
    let mut flat = BTreeMap::new();
    for (section, value) in document {
        match value {
            Value::Table(table) if section == "team" => flatten_into("", table, &mut flat),
            Value::Table(table) => flatten_into(section, table, &mut flat),
            other => drop(flat.insert(section.clone(), shown(other))),
        }
    }
    flat
}

fn flatten_into(prefix: &str, table: &Table, flat: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let plain = !key.is_empty()
            && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        let key = if plain { key.clone() } else { Value::String(key.clone()).to_string() };
        let key = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(inner) => flatten_into(&key, inner, flat),
            other => drop(flat.insert(key, shown(other))),
        }
    }
}

/// Formats a value as `team set` accepts it: plain words need no quotes.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text)
            if text.chars().all(|c| c.is_ascii_alphabetic() || "-_:/".contains(c)) =>
        {
            text.clone()
        }
        other => other.to_string(),
    }
}

fn team(settings: &Settings) -> Table {
    let mut team = Table::from_iter([
        ("backend".to_owned(), word(settings.backend)),
        ("layout".to_owned(), word(settings.layout)),
        ("finish".to_owned(), word(settings.finish)),
        ("max_members".to_owned(), count(settings.max_members)),
        ("max_depth".to_owned(), count(settings.max_depth)),
        ("privacy".to_owned(), word(settings.privacy)),
        ("answer_within".to_owned(), count(settings.answer_within_s)),
        ("unresponsive_after".to_owned(), count(settings.unresponsive_after_s)),
        ("on_hang".to_owned(), word(settings.on_hang)),
        ("hang_after".to_owned(), count(settings.hang_after_s)),
        ("grace".to_owned(), count(settings.grace_s)),
    ]);
    team.extend(settings.timeout_s.map(|limit| ("timeout".to_owned(), count(limit))));
    if settings.fail_fast {
        team.insert("fail_fast".to_owned(), true.into());
    }
    team.extend(table_of(settings.limits));
    team.extend(lists([("notify", settings.notify.clone())]));
    put(&mut team, "board", board(&settings.board));
    put(&mut team, "access", table_of(&settings.access.team));
    put(&mut team, "workspace", table_of(&settings.workspace));
    put(&mut team, "budget", budget(&settings.budgets.team));
    put(&mut team, "prices", table_of(&settings.prices));
    put(&mut team, "resume_limited", table_of(settings.resume_limited));
    if let Some(followup) = settings.followup {
        let key = |key: &str| key.to_owned();
        team.insert(key("followup_interval_minutes"), minutes(followup.interval_ms));
        team.insert(key("followup_max_reminders"), count(followup.max_reminders));
        team.insert(key("escalation_mode"), word(followup.escalation));
    }
    put(&mut team, "routing", table_of(&settings.routing));
    team
}

/// Omits a budget without a limit.
fn budget(budget: &Budget) -> Table {
    if *budget == Budget::default() { Table::new() } else { table_of(budget) }
}

/// Omits what is as by default, except the version.
fn board(policy: &BoardPolicy) -> Table {
    let (mut board, default) = (table_of(policy), table_of(BoardPolicy::default()));
    board.retain(|key, value| key == "version" || default.get(key) != Some(value));
    board
}

/// Returns a struct as a table.
fn table_of(value: impl Serialize) -> Table {
    Table::try_from(value).expect("a struct without nulls is a table")
}

/// Returns the word of an enum's value.
fn word(value: impl Serialize) -> Value {
    Value::try_from(value).expect("a value of an enum is a string")
}

/// Returns an interval in minutes. A float represents any interval up to a year exactly to the
/// millisecond.
fn minutes(ms: u64) -> Value {
    match ms % 60_000 {
        0 => count(ms / 60_000),
        _ => Value::Float(Duration::from_millis(ms).as_secs_f64() / 60.0),
    }
}

fn rules(rules: &TeamRules) -> Table {
    let mut table = table_of(&rules.team);
    put(&mut table, "role", table_of(&rules.roles));
    table
}

fn role(role: &Role) -> Table {
    let mut table = table_of(role);
    table.remove("tools");
    table.extend(tools(&role.tools));
    table
}

/// A missing list of allowed tools allows all, an empty one none.
fn tools(tools: &Tools) -> Table {
    table_of(tools).into_iter().map(|(key, rules)| (format!("{key}_tools"), rules)).collect()
}

/// Returns the table of a hook of a manifest.
fn hook(hook: &HookCommand) -> Table {
    let mut table = table_of(hook);
    if let Some(limit) = table.remove("timeout_s") {
        table.insert("timeout".to_owned(), limit);
    }
    table
}

/// Returns the table of a check or a host, without its name.
fn named_table(of: &impl Serialize) -> Table {
    let mut table = table_of(of);
    table.remove("name");
    table
}

/// Returns the table of a member that the lead starts by itself, without its name.
pub fn member(template: &Template, rules: &RuleSet, link: &LinkAccess) -> Table {
    let mut table = launch_spec(&template.spec);
    put(&mut table, "rules", table_of(rules));
    put(&mut table, "access", table_of(link));
    match template.demand {
        Demand::Once => {}
        Demand::Standing => put_text(&mut table, "restart", Some("on-failure")),
        Demand::Always => put_text(&mut table, "restart", Some("always")),
        Demand::WhenNeeded => put_text(&mut table, "start", Some("when-needed")),
        Demand::Scaled(scale) => put(&mut table, "scale", table_of(scale)),
        Demand::PerTask(max) => {
            put_flag(&mut table, "task_only", true);
            let scale = max.map(|max| table_of(Scale { min: 0, max }));
            put(&mut table, "scale", scale.unwrap_or_default());
        }
    }
    table
}

/// The fields of a launch spec that are keys of a member.
const MEMBER_KEYS: [&str; 10] =
    ["profile", "role", "model", "mode", "prompt", "cwd", "pull", "base", "env_file", "wrap"];

/// Returns the table of a teammate, without its name.
pub fn launch_spec(spec: &LaunchSpec) -> Table {
    let mut table = table_of(spec);
    table.retain(|key, _| MEMBER_KEYS.contains(&key));
    table.extend(tools(&spec.tools));
    match &spec.host {
        Some(HostChoice::Name(name)) => put_text(&mut table, "host", Some(name.as_str())),
        Some(HostChoice::Labels(labels)) => table.extend(lists([("labels", labels.clone())])),
        None => {}
    }
    put_flag(&mut table, "plan", spec.plan);
    if spec.is_unattended {
        table.insert("attention".to_owned(), Value::Boolean(false));
    }
    table.extend(lists([("run", spec.command.clone()), ("after", spec.after.clone())]));
    put(&mut table, "ready", spec.ready.as_ref().map(table_of).unwrap_or_default());
    let env = spec.env.iter().map(|(name, value)| (name.clone(), Value::String(value.clone())));
    put(&mut table, "env", env.collect());
    match &spec.worktree {
        Some(WorktreeRequest::Own) => put_flag(&mut table, "worktree", true),
        Some(WorktreeRequest::Branch(branch)) => put_text(&mut table, "worktree", Some(branch)),
        None => {}
    }
    table
}

/// Returns the digests of a teammate's keys.
pub fn entry_digests(spec: &LaunchSpec) -> EntryDigests {
    digests(launch_spec(spec))
}

/// Returns the digests of the keys of a member that the lead starts by itself.
pub fn template_digests(template: &Template) -> EntryDigests {
    digests(member(template, &RuleSet::default(), &LinkAccess::default()))
}

fn digests(table: Table) -> EntryDigests {
    let digest = |value: Value| digest::hash(&[sorted_value(value).to_string().as_bytes()]);
    EntryDigests(table.into_iter().map(|(key, value)| (key, digest(value))).collect())
}

fn count(number: impl TryInto<i64>) -> Value {
    Value::Integer(number.try_into().unwrap_or(i64::MAX))
}

/// Omits empty lists.
fn lists<const N: usize>(lists: [(&str, Vec<String>); N]) -> Table {
    let filled = lists.into_iter().filter(|(_, list)| !list.is_empty());
    filled.map(|(key, list)| (key.to_owned(), list.into())).collect()
}

/// Omits an empty table.
fn put(table: &mut Table, key: &str, inner: Table) {
    if !inner.is_empty() {
        table.insert(key.to_owned(), Value::Table(inner));
    }
}

fn put_text(table: &mut Table, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        table.insert(key.to_owned(), Value::String(text.to_owned()));
    }
}

fn put_flag(table: &mut Table, key: &str, flag: bool) {
    if flag {
        table.insert(key.to_owned(), Value::Boolean(true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignment_takes_a_dotted_key_and_a_toml_value_or_text() {
        let of =
            |key, value| assignment(key, value).map(|table| table.to_string().trim().to_owned());
        assert_eq!(of("max_members", "3").as_deref(), Ok("[team]\nmax_members = 3"));
        assert_eq!(of("team.finish", "manual").as_deref(), Ok("[team]\nfinish = \"manual\""));
        assert_eq!(of("env.deny", "[\"A\"]").as_deref(), Ok("[env]\ndeny = [\"A\"]"));
        assert_eq!(
            of("role.\"a b\".prompt", "x\ny = 1").as_deref(),
            Ok("[role.\"a b\"]\nprompt = \"\"\"\nx\ny = 1\"\"\"")
        );
        for key in ["", "a b", "a\nb", "a = 1\nb", "a..b", "[x]", "="] {
            assert!(assignment(key, "1").is_err(), "{key:?}");
        }
    }

    #[test]
    fn changes_are_merged_and_keys_are_removed() {
        let mut whole: Table =
            toml::from_str("[env]\nallow = [\"A\"]\n[role.x]\nmodel = \"m\"").expect("toml");
        merge(&mut whole, assignment("env.deny", "[\"B\"]").expect("change"));
        merge(&mut whole, assignment("role.x", "{ prompt = \"p\" }").expect("change"));
        assert!(remove(&mut whole, &path("role.x.model").expect("path")));
        assert!(!remove(&mut whole, &path("role.y.model").expect("path")));
        let flat: Vec<String> =
            flatten(&whole).into_iter().map(|(key, value)| format!("{key} {value}")).collect();
        assert_eq!(flat, ["env.allow [\"A\"]", "env.deny [\"B\"]", "role.x.prompt p"]);
    }
}
