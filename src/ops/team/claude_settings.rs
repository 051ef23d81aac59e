//! The permissions in Claude Code's settings files that also bind what phalanx starts: directories
//! that members may work in, and whether the mode `bypassPermissions` is disabled.

use std::path::{Path, PathBuf};

use crate::team::hooks::hook_files;
use crate::{Context, OpsError};
use config::claude_settings::ClaudeSettings;
use config::hooks::{HookFiles, is_trusted};
use model::members::mode::Mode;
use model::team::Team;

/// Settings of an organisation, which nothing overrides.
const MANAGED: &str = "/etc/claude-code/managed-settings.json";
/// Disables the mode if it is `false`, `0` or `disable`.
const VARIABLE: &str = "CLAUDE_CODE_BYPASS_PERMISSIONS_MODE";

/// Checks that settings and environment do not disable the mode.
///
/// # Errors
/// [`OpsError::NotAllowed`] for `bypassPermissions` if a settings file or the variable disables it.
/// A settings file that cannot be read disables it, too.
pub(crate) fn must_be_enabled(ctx: &Context, roster: &Team, mode: Mode) -> Result<(), OpsError> {
    if mode != Mode::BypassPermissions {
        return Ok(());
    }
    let files = hook_files(ctx, roster);
    let paths = global_files(&files).into_iter().chain(files.project_settings());
    let by_file = paths
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
    match ClaudeSettings::read(path) {
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
pub fn additional_directories(ctx: &Context, roster: &Team) -> Vec<String> {
    let files = hook_files(ctx, roster);
    let project = if is_trusted(&files) { files.project_settings() } else { Vec::new() };
    let base = files.project.clone().unwrap_or_else(|| ctx.caller.cwd.clone());
    let mut found: Vec<String> = Vec::new();
    for path in global_files(&files).iter().chain(&project) {
        let settings = ClaudeSettings::read(path).unwrap_or_default();
        for dir in settings.permissions.additional_directories {
            let dir = base.join(dir).to_string_lossy().into_owned();
            if !found.contains(&dir) {
                found.push(dir);
            }
        }
    }
    found
}

/// The settings that apply in every project.
fn global_files(files: &HookFiles) -> [PathBuf; 2] {
    [PathBuf::from(MANAGED), files.user.clone()]
}
