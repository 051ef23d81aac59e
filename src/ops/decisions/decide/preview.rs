//! Consequences of approving an open request, for the person who is about to do it.

use super::always;
use super::asker::{asker, rules_of};
use crate::{Context, OpsError};
use model::decisions::question::Question;
use model::decisions::rules::{Rule, Use, asking_rule, path_outside};
use store::TeamStore;

/// The consequences of approving the use of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalPreview {
    /// The rules that `answer --always` adds to the team, or the reason why it is refused.
    pub always: Result<Vec<Rule>, String>,
    /// The rule that has a person asked about this use.
    pub asked_by: Option<String>,
    /// A path outside of the member's directory that the use names and may write to.
    pub outside: Option<String>,
}

impl ApprovalPreview {
    /// Returns the reasons to look twice before the use is approved.
    pub fn reasons(&self) -> Vec<String> {
        let rule = self.asked_by.iter().map(|rule| format!("A rule has this asked: {rule}."));
        let outside = self.outside.iter();
        let outside = outside.map(|path| format!("It names {path}, outside of its directory."));
        rule.chain(outside).collect()
    }
}

/// Returns the consequences of approving an open question about the use of a tool; `None` for any
/// other question, and for one whose member has left.
///
/// # Errors
/// A failed read of the store.
pub fn approval_preview(
    ctx: &Context,
    team: &TeamStore,
    question: &Question,
) -> Result<Option<ApprovalPreview>, OpsError> {
    let Some((tool, input)) = question.tool_use().filter(|_| question.is_open()) else {
        return Ok(None);
    };
    let Some(asker) = asker(team, &question.from)? else { return Ok(None) };
    let home = ctx.caller.var("HOME").map(|home| home.to_string_lossy().into_owned());
    let cwd = &asker.member.cwd;
    let used = Use { tool: &tool, input: &input, home: home.as_deref(), cwd };
    let known = crate::decisions::rules::list(team)?;
    let always = match always::rules_for(ctx, team, question) {
        Ok(lasting) => Ok(lasting.rules),
        Err(OpsError::AnswerRefused { problem, .. }) => Err(problem),
        Err(e) => return Err(e),
    };
    Ok(Some(ApprovalPreview {
        always,
        asked_by: asking_rule(&rules_of(&known, &asker), &used),
        outside: path_outside(&used),
    }))
}
