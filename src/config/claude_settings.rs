//! The permissions in a settings file of Claude Code that also bind what phalanx starts.

use std::path::Path;

use serde::Deserialize;

use super::hooks::read_trusted_file;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClaudeSettings {
    pub permissions: ClaudePermissions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaudePermissions {
    /// Directories that members may work in besides their own.
    pub additional_directories: Vec<String>,
    /// Disables the mode `bypassPermissions` if it is `disable`.
    pub disable_bypass_permissions_mode: Option<String>,
}

impl ClaudeSettings {
    /// Reads a settings file; a missing one sets nothing.
    ///
    /// # Errors
    /// A message if the file cannot be trusted ([`read_trusted_file`]) or does not have this form.
    pub fn read(path: &Path) -> Result<ClaudeSettings, String> {
        let Some(text) = read_trusted_file(path)? else { return Ok(ClaudeSettings::default()) };
        serde_json::from_str(&text).map_err(|e| e.to_string())
    }
}
