//! The tables of a team's settings.

use toml::Table as Document;

use crate::paint::{Paint, Tint};
use crate::table::{Table, cell, tinted};
use model::text;
use ops::starting::settings::{TEAM_KEYS, TeamKey, flatten};

/// Maximum length of a value, in characters.
const VALUE: usize = 24;

/// Formats every key of `[team]` with its value and meaning, and all other keys that have a value.
pub fn settings_table(document: &Document, paint: Paint) -> String {
    let mut flat = flatten(document);
    let mut table = Table::new(&["KEY", "VALUE", "MEANING"]);
    for TeamKey { key, meaning } in TEAM_KEYS.iter() {
        let is_table = flat.keys().any(|known| known.starts_with(&format!("{key}.")));
        let none = if is_table { "see below" } else { "-" };
        let value = flat.remove(key).unwrap_or_else(|| none.to_owned());
        table.row(vec![tinted(Tint::Bold, key), cell(text::short(&value, VALUE)), cell(meaning)]);
    }
    for (key, value) in &flat {
        table.row(vec![tinted(Tint::Bold, key), cell(text::short(value, VALUE)), cell("")]);
    }
    let more = "Also: env.allow, rules.deny, role.NAME.model, worktree.dir, member.NAME.scale …";
    format!("{}\n\n{}", table.render(paint), paint.put(Tint::Dim, more))
}

/// Formats the settings that differ from the defaults; returns `None` if there are none.
pub fn changed_settings(document: &Document, defaults: &Document, paint: Paint) -> Option<String> {
    let defaults = flatten(defaults);
    let mut table = Table::new(&["SETTING", "VALUE"]);
    let mut any = false;
    for (key, value) in
        flatten(document).iter().filter(|(key, value)| defaults.get(*key) != Some(*value))
    {
        any = true;
        table.row(vec![tinted(Tint::Bold, key), cell(text::short(value, 72))]);
    }
    any.then(|| table.render(paint))
}
