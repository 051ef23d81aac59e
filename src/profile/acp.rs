//! What a profile says of an agent over the Agent Client Protocol.

use serde::{Deserialize, Serialize};

use model::value::{As, Choice, NonBlank};

/// What an agent over ACP does that the protocol does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AcpTraits {
    /// What the tokens in its reply to a prompt count.
    #[serde(with = "As::<Choice<UsageCount>>")]
    pub usage: UsageCount,
    /// A prompt of mail needs a line before the tag of the first message.
    pub heading: bool,
    /// Begins the text of its answer that says why a turn has failed.
    #[serde(with = "As::<Option<NonBlank>>")]
    pub failure: Option<String>,
}

/// The turns whose tokens a reply counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum UsageCount {
    #[default]
    Turn,
    /// All turns of the session so far.
    Session,
    /// The last request of the turn.
    Request,
}

#[cfg(test)]
mod tests {
    use super::super::definition::{Profile, Ready};

    /// SP-21: no screen of an agent over ACP can be recognised, so its start waits for its session.
    #[test]
    fn sp_21_agent_over_acp_is_ready_with_its_session() {
        let ready = |more: &str| {
            let text = format!("about = \"x\"\n{more}[launch]\nargv = [[\"x\"]]\n");
            Profile::parse("own", &text).expect("a profile").ready
        };
        assert_eq!(ready("runs = \"acp\"\n"), Ready::Hello);
        assert_eq!(ready("runs = \"acp\"\n[ready]\nwhen = \"running\"\n"), Ready::Running);
        assert_eq!(ready(""), Ready::Screen);
    }
}
