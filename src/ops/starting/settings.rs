//! `team set`: the settings of a team, as it is made and afterwards, in the form and by the rules
//! of the manifest.

use toml::Table;

use crate::hosts;
use crate::members::depth;
use crate::starting::{manifest, resume, spawn};
use crate::{Context, OpsError};
use config::settings;
use model::id::MemberName;
use model::members::launch::{LaunchSpec, Template};
use model::team::event::{EventKind, Note};
use model::team::settings::{PlacementHome, Settings};
use store::TeamStore;

pub use config::manifest::{TEAM_KEYS, TeamKey};
pub use config::settings::flatten;

/// A change of some settings: keys with their values, and keys to reset to their defaults.
#[derive(Debug, Default)]
pub struct SettingsChange {
    pub set: Vec<(String, String)>,
    pub unset: Vec<String>,
}

impl SettingsChange {
    fn keys(&self) -> Vec<&str> {
        let set = self.set.iter().map(|(key, _)| key.as_str());
        set.chain(self.unset.iter().map(String::as_str)).collect()
    }

    /// Returns the values as one document.
    fn document(&self) -> Result<Table, OpsError> {
        let mut document = Table::new();
        for (key, value) in &self.set {
            settings::merge(&mut document, settings::assignment(key, value).map_err(usage)?);
        }
        must_be_settable(&document)?;
        Ok(document)
    }
}

/// Reads a prompt file.
pub(crate) type ReadPrompt<'a> = &'a mut dyn FnMut(&str) -> Result<String, OpsError>;

/// Returns the settings of a team as a document.
///
/// # Errors
/// [`OpsError::Usage`] for a team that another program created, which has none.
pub fn document(team: &TeamStore) -> Result<Table, OpsError> {
    Ok(settings::document(&existing_settings(team)?))
}

/// Returns the document of a team that was created without any settings.
pub fn defaults() -> Table {
    settings::document(&Settings::by_hand(model::team::settings::MAX_MEMBERS))
}

/// Returns `base` with the settings of a checked file laid over it. With `tasks_only`, for task
/// mode, each task of a member is a run of its own.
pub fn from_file(
    ctx: &Context,
    base: &Settings,
    text: &str,
    tasks_only: bool,
    read: ReadPrompt,
) -> Result<Settings, OpsError> {
    let mut document = settings::document(base);
    settings::merge(&mut document, settings::parse_file(text));
    convert_document(ctx, base, document, tasks_only, read)
}

/// Changes settings, all or none. A running lead reads them again.
///
/// # Errors
/// [`OpsError::Usage`] for a key or a value that a manifest may not have either, or that is fixed
/// once the team exists. Nothing is changed then.
pub fn set(
    ctx: &Context,
    team: &TeamStore,
    change: &SettingsChange,
    read: ReadPrompt,
) -> Result<(), OpsError> {
    let document = change.document()?;
    let unset = change.unset.iter().map(|key| settings::path(key).map_err(usage));
    let unset = unset.collect::<Result<Vec<_>, OpsError>>()?;
    let started = specs_of_started(ctx, team, &existing_settings(team)?, &document)?;
    let mut done = Ok(());
    team.change_settings(|found| {
        let mut whole = settings::document(found);
        settings::merge(&mut whole, started.clone());
        settings::merge(&mut whole, document.clone());
        let changed = unset.iter().try_for_each(|path| remove(&mut whole, path));
        match changed.and_then(|()| convert_document(ctx, found, whole, false, &mut *read)) {
            Ok(new) => *found = new,
            Err(e) => done = Err(e),
        }
    })?;
    done?;
    let note = Note::of(EventKind::SettingsChanged).with("by", ctx.speaker.as_str());
    team.record(note.with("keys", change.keys()))?;
    Ok(())
}

fn existing_settings(team: &TeamStore) -> Result<Settings, OpsError> {
    team.settings()?.ok_or_else(|| {
        OpsError::usage(
            format!(
                "team `{}` was not made by phalanx, which keeps no settings for it",
                team.name()
            ),
            "make a team with `phalanx team create NAME`",
        )
    })
}

/// Returns the settings of a whole document; what a document cannot hold is kept from `current`.
fn convert_document(
    ctx: &Context,
    current: &Settings,
    document: Table,
    tasks_only: bool,
    read: ReadPrompt,
) -> Result<Settings, OpsError> {
    let wanted = settings::parse_document(document, &hosts::user_hosts(ctx)?).map_err(|fault| {
        let nearest =
            fault.nearest.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
        usage(fault.message + &nearest)
    })?;
    let mut templates =
        manifest::member_launches(&wanted, tasks_only, &ctx.caller.cwd, &mut *read)?.templates;
    // A document sorts members by name; the lead serves them in the order in which they were added.
    let known: Vec<&String> =
        current.templates.iter().map(|template| &template.spec.name).collect();
    templates.sort_by_key(|of| {
        known.iter().position(|name| **name == of.spec.name).unwrap_or(known.len())
    });
    let is_marked = |name: &str| {
        current.templates.iter().any(|of| of.spec.name == name && of.spec.entry.is_some())
    };
    let specs = templates.iter_mut().map(|template| &mut template.spec);
    specs.filter(|spec| is_marked(&spec.name)).for_each(manifest::mark);
    let is_kept = |name: &str| templates.iter().any(|template| template.spec.name == name);
    if let Some(member) = wanted.members.iter().find(|member| !is_kept(&member.launch.name)) {
        let name = &member.launch.name;
        return Err(OpsError::usage(
            format!("member `{name}` is not one that the lead would start"),
            format!(
                "give it `scale`, `restart`, `task_only` or `start = \"when-needed\"`, or start it with \
                 `phalanx spawn {name}`"
            ),
        ));
    }
    if tasks_only {
        manifest::check_task_mode(&wanted)?;
    }
    if wanted.settings.max_depth != current.max_depth {
        depth::must_keep_within(ctx, wanted.settings.max_depth)?;
    }
    let samples: Vec<LaunchSpec> = templates.iter().map(Template::sample).collect();
    spawn::check(ctx, &wanted.settings, &samples)?;
    let has_template = |name: &MemberName| templates.iter().any(|template| template.makes(name));
    let new = over(current, wanted.settings, has_template);
    Ok(Settings { keep: current.keep, templates, ..new })
}

/// Returns new settings with what they do not decide as `current` has it: places, worktrees, the
/// creator, the applied manifest, an end that is under way, and the rules, lists and limits of all
/// members that they do not describe.
pub(crate) fn over(
    current: &Settings,
    mut new: Settings,
    describes: impl Fn(&MemberName) -> bool,
) -> Settings {
    let is_other = |name: &str| !MemberName::existing(name).is_ok_and(|name| describes(&name));
    let rules = current.rules.members.iter().filter(|(name, _)| is_other(name));
    new.rules.members.extend(rules.map(|(name, set)| (name.clone(), set.clone())));
    let access = current.access.members.iter().filter(|(name, _)| is_other(name));
    new.access.members.extend(access.map(|(name, link)| (name.clone(), link.clone())));
    let budgets = current.budgets.members.iter().filter(|(name, _)| is_other(name));
    new.budgets.members.extend(budgets.map(|(name, budget)| (name.clone(), *budget)));
    // Another backend is chosen anew, on every host.
    let same = new.backend == current.backend;
    let kept = |home: &PlacementHome| PlacementHome {
        chosen: home.chosen.filter(|_| same),
        tmux_socket: home.tmux_socket.clone(),
    };
    Settings {
        creator: current.creator.clone(),
        home: kept(&current.home),
        homes: current.homes.iter().map(|(host, home)| (host.clone(), kept(home))).collect(),
        checkouts: current.checkouts.clone(),
        manifest: current.manifest.clone(),
        ends_until: current.ends_until,
        ..new
    }
}

/// Returns the launch specs of started members that the change names but that have no template, as
/// a basis for the change.
fn specs_of_started(
    ctx: &Context,
    team: &TeamStore,
    settings: &Settings,
    change: &Table,
) -> Result<Table, OpsError> {
    let mut members = Table::new();
    let named = change.get("member").and_then(toml::Value::as_table);
    for name in named.into_iter().flat_map(Table::keys) {
        let is_known = settings.templates.iter().any(|template| template.spec.name == *name);
        let Some(name) = MemberName::existing(name).ok().filter(|_| !is_known) else { continue };
        if let Some(record) = team.member_record(&name)? {
            let checkout =
                settings.checkouts.get(&name).filter(|had| had.path == record.request.cwd);
            let spec = resume::relaunch_spec(ctx, &record, checkout)?;
            members.insert(name.to_string(), settings::launch_spec(&spec).into());
        }
    }
    Ok(if members.is_empty() {
        members
    } else {
        Table::from_iter([("member".to_owned(), members.into())])
    })
}

/// Rejects keys that a manifest has, but that an existing team cannot change.
fn must_be_settable(change: &Table) -> Result<(), OpsError> {
    let key = |section: &str, keys: &[&str], among: bool| {
        let table = change.get(section).and_then(toml::Value::as_table)?;
        table.keys().find(|key| keys.contains(&key.as_str()) == among).cloned()
    };
    if let Some(key) = key("team", &["name", "description", "mode"], true) {
        return Err(OpsError::usage(
            format!("`{key}` of a team is fixed when it is made"),
            "list what can be set with `phalanx team set`",
        ));
    }
    match key("defaults", &["allowed_tools", "disallowed_tools", "budget"], false) {
        Some(key) => Err(OpsError::usage(
            format!("`{key}` in [defaults] only matters in a manifest"),
            "set it for a role or a member: `role.NAME.KEY`, `member.NAME.KEY`",
        )),
        None => Ok(()),
    }
}

/// Removes a key. A known key of `[team]` may be missing, since it has its default already.
fn remove(document: &mut Table, path: &[String]) -> Result<(), OpsError> {
    let of_team = path.strip_prefix(&["team".to_owned()]);
    let named = of_team.unwrap_or(path).join(".");
    let is_known = of_team.is_some() && TEAM_KEYS.iter().any(|known| known.key == named);
    if settings::remove(document, path) || is_known {
        return Ok(());
    }
    Err(usage(format!("`{}` is not set", named.escape_debug())))
}

fn usage(problem: String) -> OpsError {
    OpsError::usage(problem, "list the settings with `phalanx team set`")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use config::manifest::Manifest;

    /// Every key of a manifest survives the round trip.
    #[test]
    fn settings_survive_the_round_trip_through_a_document() {
        let every_key = include_str!("../../../fixtures/manifests/every_key.toml");
        let runs = "[team]\nname = \"x\"\n[[member]]\nname = \"dev\"\nscale = { max = 3 }\n[[member]]\nname = \"qa\"\n";
        let read = |text: &str, tasks_only: bool| {
            let wanted = Manifest::parse_with_hosts(text, &[]).expect("manifest");
            let prompt = |file: &str| Ok::<_, ()>(format!("text of {file}"));
            let templates = manifest::member_launches(&wanted, tasks_only, Path::new("/w"), prompt)
                .expect("members")
                .templates;
            Settings { templates, ..wanted.settings }
        };
        for (text, tasks_only) in [(every_key, false), (runs, true)] {
            let before = read(text, tasks_only);
            let document = settings::document(&before);
            let parsed = settings::parse_document(document.clone(), &[]).expect("settings");
            let none = |_: &str| Err::<String, ()>(());
            let templates = manifest::member_launches(&parsed, false, Path::new("/x"), none)
                .expect("members")
                .templates;
            let after = Settings { templates, ..parsed.settings };
            assert_eq!(settings::document(&after), document);
            let mut sorted = before.templates;
            sorted.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
            assert_eq!(after.templates, sorted);
            assert_eq!(
                (after.followup, after.roles, after.hooks, after.hosts),
                (before.followup, before.roles, before.hooks, before.hosts)
            );
            assert_eq!(
                (after.budgets, after.prices, after.resume_limited),
                (before.budgets, before.prices, before.resume_limited)
            );
        }
    }

    #[test]
    fn new_settings_keep_what_they_do_not_decide() {
        use model::decisions::rules::RuleSet;
        use model::time::Timestamp;

        let member = |name: &str| (name.to_owned(), RuleSet::default());
        let mut current = Settings::by_hand(3);
        current.ends_until = Some(Timestamp(7));
        current.home.tmux_socket = Some("/s".to_owned());
        current.rules.members.extend([member("ann"), member("bob")]);
        let got = over(&current, Settings::by_hand(4), |name| name.as_str() == "ann");
        assert_eq!((got.max_members, got.ends_until), (4, Some(Timestamp(7))));
        assert_eq!(got.home, current.home);
        assert_eq!(got.rules.members.into_keys().collect::<Vec<_>>(), ["bob"]);
    }

    #[test]
    fn defaults_survive_the_round_trip_through_a_document() {
        let base = Settings::by_hand(model::team::settings::MAX_MEMBERS);
        let parsed = settings::parse_document(settings::document(&base), &[]).expect("settings");
        assert_eq!(parsed.settings, base);
        let empty = settings::parse_document(Table::new(), &[]).expect("settings");
        assert_eq!(empty.settings, base);
    }
}
