//! The built-in profiles.

use super::definition::Profile;
use model::members::launch::{SHELL, WORKER};

/// Names and TOML texts of the built-in profiles.
const BUILTIN: [(&str, &str); 17] = [
    ("claude", include_str!("builtin/claude.toml")),
    ("codex", include_str!("builtin/codex.toml")),
    ("gemini", include_str!("builtin/gemini.toml")),
    ("opencode", include_str!("builtin/opencode.toml")),
    ("aider", include_str!("builtin/aider.toml")),
    ("qwen", include_str!("builtin/qwen.toml")),
    ("copilot", include_str!("builtin/copilot.toml")),
    ("amp", include_str!("builtin/amp.toml")),
    ("claude-acp", include_str!("builtin/claude-acp.toml")),
    ("codex-acp", include_str!("builtin/codex-acp.toml")),
    ("gemini-acp", include_str!("builtin/gemini-acp.toml")),
    ("opencode-acp", include_str!("builtin/opencode-acp.toml")),
    ("qwen-acp", include_str!("builtin/qwen-acp.toml")),
    ("copilot-acp", include_str!("builtin/copilot-acp.toml")),
    ("acp", include_str!("builtin/acp.toml")),
    (SHELL, include_str!("builtin/shell.toml")),
    (WORKER, include_str!("builtin/worker.toml")),
];

pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// Returns the TOML text of a built-in profile.
pub fn builtin_text(name: &str) -> Option<&'static str> {
    BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

pub fn builtin(name: &str) -> Option<Profile> {
    let text = builtin_text(name)?;
    Some(Profile::parse(name, text).expect("a test parses every built-in profile"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Placeholder, Values};

    #[test]
    fn configuration_of_opencode_is_json() {
        let profile = builtin("opencode").expect("a built-in profile");
        let values = Values::from([(Placeholder::Phalanx, vec!["/bin/phalanx".to_owned()])]);
        let filled = profile.launch.env["OPENCODE_CONFIG_CONTENT"].fill(&values);
        let text = filled.expect("all values are present").concat();
        let config: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(config["mcp"]["phalanx"]["command"][0], "/bin/phalanx", "{config}");
    }
}
