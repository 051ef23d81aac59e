//! The permissions in Claude Code's settings files that also bind what phalanx starts: directories
//! that members may work in, and whether the mode `bypassPermissions` is disabled.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::context::Context;
use super::error::OpsError;
use super::hooks::places;
use crate::hooks::{self, Places};
use crate::model::mode::Mode;
use crate::model::team::Team;

/// Settings of an organisation, which nothing overrides.
const MANAGED: &str = "/etc/claude-code/managed-settings.json";
/// Disables the mode if it is `false`, `0` or `disable`.
const VARIABLE: &str = "CLAUDE_CODE_BYPASS_PERMISSIONS_MODE";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Settings {
    permissions: Permissions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Permissions {
    additional_directories: Vec<String>,
    disable_bypass_permissions_mode: Option<String>,
}

/// Checks that settings and environment do not disable the mode.
///
/// # Errors
/// [`OpsError::NotAllowed`] for `bypassPermissions` if a settings file or the variable disables it.
/// A settings file that cannot be read disables it, too.
pub(super) fn must_be_enabled(ctx: &Context, roster: &Team, mode: Mode) -> Result<(), OpsError> {
    if mode != Mode::BypassPermissions {
        return Ok(());
    }
    let places = places(ctx, roster);
    let files = everywhere(&places).into_iter().chain(places.project_settings());
    let by_file = files
        .map(|path| (disabled_by(&path), path))
        .find_map(|(why, path)| why.map(|why| format!("{}: {why}", path.display())));
    let value = ctx.caller.var(VARIABLE).map(|value| value.to_string_lossy().to_lowercase());
    let by_variable = value.filter(|value| ["false", "0", "disable"].contains(&value.as_str()));
    match by_file.or_else(|| by_variable.map(|value| format!("{VARIABLE}={value}"))) {
        None => Ok(()),
        Some(source) => {
            let problem = format!("mode `{}` is disabled ({source})", mode.as_str());
            Err(OpsError::NotAllowed { problem })
        }
    }
}

fn disabled_by(path: &Path) -> Option<String> {
    match read(path) {
        Ok(settings) => {
            let value = settings.permissions.disable_bypass_permissions_mode?;
            (value == "disable").then(|| "permissions.disableBypassPermissionsMode".to_owned())
        }
        Err(problem) => Some(format!("cannot be read: {problem}")),
    }
}

/// Returns the directories outside their own that members may work in: those of the organisation's
/// and the user's settings, and those of the project's settings if the user trusts the project.
/// Files that cannot be read are skipped.
pub(super) fn additional_directories(ctx: &Context, roster: &Team) -> Vec<String> {
    let places = places(ctx, roster);
    let project = if hooks::is_trusted(&places) { places.project_settings() } else { Vec::new() };
    let base = places.project.clone().unwrap_or_else(|| ctx.caller.cwd.clone());
    let mut found: Vec<String> = Vec::new();
    for path in everywhere(&places).iter().chain(&project) {
        let settings = read(path).unwrap_or_default();
        for dir in settings.permissions.additional_directories {
            let dir = base.join(dir).to_string_lossy().into_owned();
            if !found.contains(&dir) {
                found.push(dir);
            }
        }
    }
    found
}

fn read(path: &Path) -> Result<Settings, String> {
    let Some(text) = hooks::read_settings(path)? else { return Ok(Settings::default()) };
    serde_json::from_str(&text).map_err(|e| e.to_string())
}

/// The settings that apply in every project.
fn everywhere(places: &Places) -> [PathBuf; 2] {
    [PathBuf::from(MANAGED), places.user.clone()]
}
