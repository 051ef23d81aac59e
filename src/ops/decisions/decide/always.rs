//! `answer --always`: derives permission rules that allow the same use of a tool from now on.

use super::asker::{Asker, asker, rules_of};
use crate::{Context, OpsError};
use model::decisions::question::Question;
use model::decisions::rules::{self, Judgement, Rule, RuleSet, Use};
use serde_json::Value;
use store::TeamStore;

/// New rules of the team, and the permission updates to send to the asking member's program.
#[derive(Debug, Default)]
pub(super) struct Lasting {
    pub(super) rules: Vec<Rule>,
    pub(super) updates: Vec<Value>,
}

/// Derives the narrowest rules that allow the request.
///
/// # Errors
///
/// [`OpsError::AnswerRefused`] if the question is on the program's screen or is about a plan, if no
/// rule matches only this use, or if another rule denies the use or requires a question every time.
/// Otherwise a failed read of the store.
pub(super) fn rules_for(
    ctx: &Context,
    team: &TeamStore,
    question: &Question,
) -> Result<Lasting, OpsError> {
    let refused = |problem: &str, hint: &'static str| {
        let problem = format!("`--always` is not possible: {problem}");
        Err(OpsError::AnswerRefused { id: question.id.clone(), problem, hint })
    };
    if question.answered_by().is_some() {
        let problem = "its program asks on its screen, and no rule judges what stands on a screen";
        return refused(
            problem,
            "answer it with `--approve`; the program's own \"always\" can be chosen in its pane",
        );
    }
    let Some((tool, input)) = question.tool_use() else {
        return refused("a plan is approved once", "answer it with `--approve`");
    };
    let Some(asker) = asker(team, &question.from)? else { return Ok(Lasting::default()) };
    let Asker { member, .. } = &asker;
    let home = ctx.caller.var("HOME").map(|home| home.to_string_lossy().into_owned());
    let used = Use { tool: &tool, input: &input, home: home.as_deref(), cwd: &member.cwd };
    let Some(new) = rules::suggest(&used) else {
        let problem = "no rule allows this and nothing else";
        return refused(
            problem,
            "answer it with `--approve`, or add a wider rule: `phalanx rules allow PATTERN`",
        );
    };
    let known = crate::decisions::rules::list(team)?;
    let alone = RuleSet { allow: new.clone(), ..RuleSet::default() };
    let mut sets = rules_of(&known, &asker);
    sets.push(("the team".to_owned(), &alone));
    match rules::judge(&sets, &used) {
        Judgement::Allow { updates, .. } => Ok(Lasting { rules: new, updates }),
        Judgement::Deny { .. } | Judgement::Ask => refused(
            "another rule has this asked every time",
            "see it with `phalanx rules`, or answer with `--approve`",
        ),
    }
}
