//! Parses hooks in phalanx's own format: `[[hook]]` in a manifest or in `hooks.toml`.

use super::{Hook, HookEvent, LONGEST_S, Matcher, TIMEOUT_S, Words};
use crate::model::sheet::{At, Faults, Section, SheetError};

/// The keys of a `[[hook]]`.
const HOOK: [&str; 4] = ["event", "matcher", "run", "timeout"];
const ROOT: [&str; 2] = ["trusted", "hook"];

/// The contents of a user's `hooks.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OwnHooks {
    pub(crate) hooks: Vec<Hook>,
    /// Directories of projects whose Claude Code settings may run hooks.
    pub(crate) trusted: Vec<String>,
}

/// Parses a `hooks.toml`.
///
/// # Errors
/// The first fault with its position: invalid TOML, an unknown key, or an invalid value.
pub(crate) fn read_own(text: &str) -> Result<OwnHooks, SheetError> {
    let table = toml::de::DeTable::parse(text).map_err(|error| SheetError::syntax(text, &error))?;
    let mut faults = Faults::default();
    let root = Section::root("hooks.toml", table.get_ref(), &ROOT, &mut faults);
    let trusted = root.names("trusted", check_absolute, &mut faults);
    let hooks = read_hooks(&root, &mut faults);
    faults.into_result(text)?;
    Ok(OwnHooks { hooks, trusted: trusted.into_iter().map(At::into_inner).collect() })
}

/// Reads the `[[hook]]` tables of a sheet and adds their faults to `faults`.
pub(crate) fn read_hooks(root: &Section, faults: &mut Faults) -> Vec<Hook> {
    let sections = root.tables("hook", "[[hook]]", &HOOK, faults);
    sections.iter().filter_map(|section| read_hook(section, faults)).collect()
}

fn read_hook(section: &Section, faults: &mut Faults) -> Option<Hook> {
    section.demand("event", "`event`", faults);
    section.demand("run", "`run`", faults);
    let event = section.choice("event", &HookEvent::ALL, faults).map(At::into_inner);
    let matcher = read_matcher(section, event, faults);
    let timeout_s = read_timeout(section, faults);
    let run = section.command("run", faults);
    Some(Hook { event: event?, matcher, run: Words::Program(run?), timeout_s })
}

fn read_matcher(
    section: &Section,
    event: Option<HookEvent>,
    faults: &mut Faults,
) -> Option<Matcher> {
    let text = section.text("matcher", faults)?;
    if let Some(event) = event.filter(|event| !event.has_matcher()) {
        let said = format!(
            "`matcher` in [[hook]] has no meaning for {}: it runs for every one",
            event.as_str()
        );
        faults.add(&text.span(), said);
    }
    match Matcher::parse(text.get_ref()) {
        Ok(matcher) => matcher,
        Err(said) => {
            faults.add(&text.span(), format!("`matcher` in [[hook]] {said}"));
            None
        }
    }
}

fn read_timeout(section: &Section, faults: &mut Faults) -> u64 {
    let Some(number) = section.integer("timeout", faults) else { return TIMEOUT_S };
    match u64::try_from(*number.get_ref()) {
        Ok(seconds @ 1..=LONGEST_S) => seconds,
        Ok(_) | Err(_) => {
            let said = format!("`timeout` in [[hook]] must be from 1 to {LONGEST_S}, in seconds");
            faults.add(&number.span(), said);
            TIMEOUT_S
        }
    }
}

fn check_absolute(path: &str) -> Result<(), String> {
    if path.starts_with('/') { Ok(()) } else { Err("is not an absolute path".to_owned()) }
}
