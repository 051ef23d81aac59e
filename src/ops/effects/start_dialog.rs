//! Dialogs on the screens of native programs, such as the question whether a directory is trusted,
//! as requests to the team. A wrapper does the same for its program.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::decisions::{decide, dialog};
use crate::members::output;
use crate::views::input;
use crate::{Context, OpsError, Post, now};
use model::decisions::question::{DecisionOutcome, Question, QuestionKind, Typed};
use model::id::{Incarnation, RequestId};
use model::mail::protocol::{AnsweredBy, Message, PermissionRequest};
use model::members::input::{Input, Key};
use model::members::record::MemberRecord;
use profile::{DialogQuestion, Profile, ScreenFinding, ScreenState, Screenshot, judge};
use store::TeamStore;
use sys::clock::{Deadline, sleep};

/// Time for which a dialog is shown before it is filed: a person may answer it at once.
const BELIEF: Duration = Duration::from_millis(700);
/// Time limit for a dialog to close after its keys were typed.
const CLOSES_WITHIN: Duration = Duration::from_secs(8);
/// The pause between two reads of the screen meanwhile.
const PAUSE: Duration = Duration::from_millis(200);
/// More lines than any screen has.
const LINES: usize = 200;

/// Returns the dialog that a screen shows, if the profile has keys that answer it.
pub(super) fn answerable<'f>(
    profile: &Profile,
    finding: &'f ScreenFinding,
) -> Option<&'f DialogQuestion> {
    finding.asked.as_ref().filter(|_| profile.answers.contains_key(&finding.rule))
}

/// Brings the requests of a run in line with its screen: files a dialog that is new, types the keys
/// of a decision while its dialog is shown, and closes a request whose dialog has gone. Never
/// answers without a decision (PM-01).
///
/// # Errors
/// A team that cannot be read or written; a terminal that takes no input.
pub(super) fn settle(
    ctx: &Context,
    team: &TeamStore,
    record: &MemberRecord,
    profile: &Profile,
    finding: &ScreenFinding,
) -> Result<(), OpsError> {
    let Some(_busy) = Busy::with(&record.incarnation) else { return Ok(()) };
    NativeScreen { ctx, team, record, profile, finding }.settle()
}

/// The screen of a run, with what was found on it.
struct NativeScreen<'a> {
    ctx: &'a Context,
    team: &'a TeamStore,
    record: &'a MemberRecord,
    profile: &'a Profile,
    finding: &'a ScreenFinding,
}

/// The next step with the last request of a run.
#[derive(Debug, PartialEq, Eq)]
enum TypingStep {
    Wait,
    Withdraw,
    Type {
        allow: bool,
    },
    /// The dialog has gone before the keys of its decision were typed.
    Gone,
    /// The request is over: what is shown, if anything, is another dialog, or was not closed.
    File,
}

/// Decides by the outcome of the request and the result of typing, and by whether its dialog is on
/// the screen. Only a decision of a person types: no key stands for a timeout, nor for a request
/// that was withdrawn.
fn next_step(decision: Option<(DecisionOutcome, Option<Typed>)>, is_shown: bool) -> TypingStep {
    use DecisionOutcome::{Allowed, AnsweredTooLate, AskerGone, Denied, TimedOut, Withdrawn};
    match (decision, is_shown) {
        (None, true) => TypingStep::Wait,
        (None, false) => TypingStep::Withdraw,
        (Some((outcome @ (Allowed | Denied), None)), true) => {
            TypingStep::Type { allow: outcome == Allowed }
        }
        (Some((Allowed | Denied, None)), false) => TypingStep::Gone,
        (Some((TimedOut | AnsweredTooLate, _)), true) => TypingStep::Wait,
        (Some((Allowed | Denied, Some(_)) | (AskerGone | Withdrawn, _)), _)
        | (Some((TimedOut | AnsweredTooLate, _)), false) => TypingStep::File,
    }
}

impl NativeScreen<'_> {
    fn settle(&self) -> Result<(), OpsError> {
        let (ctx, team) = (self.ctx, self.team);
        let shown = answerable(self.profile, self.finding);
        let Some(filed) = last_filed(team, self.record)? else {
            return shown.map_or(Ok(()), |asked| self.file(asked));
        };
        let is_shown = shown.is_some_and(|asked| is_about(&filed, &self.finding.rule, asked));
        match next_step(filed.decision.as_ref().map(|made| (made.outcome, made.typed)), is_shown) {
            TypingStep::Wait => Ok(()),
            TypingStep::Withdraw => dialog::withdraw(ctx, team, &filed.id, None),
            TypingStep::Type { allow } => {
                self.answer(allow)?;
                let closed = Deadline::after(CLOSES_WITHIN);
                while self.still_shows(&filed) && !closed.expired() {
                    sleep(PAUSE);
                }
                let stays = self.still_shows(&filed);
                let typed = if stays { Typed::Stays } else { Typed::Taken };
                dialog::record_typed(team, &filed.id, typed)
            }
            TypingStep::Gone => dialog::record_typed(team, &filed.id, Typed::Gone),
            TypingStep::File => shown.map_or(Ok(()), |asked| self.file(asked)),
        }
    }

    /// Reads the screen again.
    fn judge_again(&self) -> Result<ScreenFinding, OpsError> {
        let screen = output::peek(self.ctx, self.team, &self.record.name, LINES)?;
        Ok(judge(self.profile, &Screenshot::of_text(&screen)))
    }

    fn still_shows(&self, filed: &Question) -> bool {
        let Ok(finding) = self.judge_again() else { return false };
        answerable(self.profile, &finding)
            .is_some_and(|asked| is_about(filed, &finding.rule, asked))
    }

    /// Files a dialog that is still shown a moment later.
    fn file(&self, asked: &DialogQuestion) -> Result<(), OpsError> {
        let (team, record, finding) = (self.team, self.record, self.finding);
        let ScreenState::Dialog(name) = &finding.state else { return Ok(()) };
        sleep(BELIEF);
        let again = self.judge_again()?;
        if (&again.rule, again.asked.as_ref()) != (&finding.rule, Some(asked)) {
            return Ok(());
        }
        let request_id = format!("dialog-{}-{}", now().0, &record.incarnation.as_str()[..8]);
        RequestId::parse(&request_id).expect("digits, letters and hyphens are safe");
        let request = PermissionRequest {
            request_id,
            agent_id: Some(record.name.to_string()),
            tool_name: name.clone(),
            tool_use_id: Some(finding.rule.clone()),
            description: Some(asked.text.clone()),
            input: Value::Object(Map::new()),
            permission_suggestions: Vec::new(),
            answered_by: Some(AnsweredBy::Keys),
            is_dialog: true,
        };
        Post::report(team, &record.name, Message::PermissionRequest(request)).send(team)?;
        decide::process_requests(self.ctx, team).map(drop)
    }

    fn answer(&self, is_allowed: bool) -> Result<(), OpsError> {
        let keys = self.profile.answers.get(&self.finding.rule);
        let (Some(keys), Some(placement)) = (keys, &self.record.placement) else { return Ok(()) };
        let keys = keys_of(if is_allowed { &keys.allow } else { &keys.deny });
        input::write_into(self.ctx, self.team, self.record, placement, &Input::Keys(keys))
    }
}

/// Returns the last request that was filed for a dialog of this run.
fn last_filed(team: &TeamStore, record: &MemberRecord) -> Result<Option<Question>, OpsError> {
    let of_run = |question: &Question| {
        question.kind == QuestionKind::Dialog
            && question.incarnation.as_ref() == Some(&record.incarnation)
    };
    Ok(team.questions()?.into_iter().filter(of_run).max_by_key(|question| question.asked_at.0))
}

fn is_about(question: &Question, rule: &str, asked: &DialogQuestion) -> bool {
    question.dialog().is_some_and(|filed| {
        filed.tool_use_id.as_deref() == Some(rule)
            && filed.description.as_deref() == Some(&asked.text)
    })
}

/// Returns the keys that send these characters.
fn keys_of(mut typed: &str) -> Vec<Key> {
    const NAMED: [(&str, &str); 4] =
        [("\u{1b}[A", "Up"), ("\u{1b}[B", "Down"), ("\u{1b}", "Escape"), ("\r", "Enter")];
    let mut keys = Vec::new();
    while let Some(first) = typed.chars().next() {
        let named = NAMED
            .iter()
            .find_map(|(sent, name)| Some(((*name).to_owned(), typed.strip_prefix(sent)?)));
        let (name, rest) = named.unwrap_or((first.to_string(), &typed[first.len_utf8()..]));
        typed = rest;
        keys.extend(name.parse::<Key>());
    }
    keys
}

/// Marks a run as being looked after: checks of the lead can overlap, and keys are typed once.
struct Busy(Incarnation);

static RUNS: Mutex<BTreeSet<Incarnation>> = Mutex::new(BTreeSet::new());

impl Busy {
    fn with(run: &Incarnation) -> Option<Busy> {
        let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
        runs.insert(run.clone()).then(|| Busy(run.clone()))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        RUNS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PM-01: keys are typed only for a decision of a person, once, while its dialog is shown.
    #[test]
    fn pm_01_only_a_decision_types_into_a_native_dialog() {
        use DecisionOutcome::{Allowed, AnsweredTooLate, AskerGone, Denied, TimedOut, Withdrawn};
        let table = [
            (None, TypingStep::Wait, TypingStep::Withdraw),
            (Some((Allowed, None)), TypingStep::Type { allow: true }, TypingStep::Gone),
            (Some((Denied, None)), TypingStep::Type { allow: false }, TypingStep::Gone),
            (Some((Allowed, Some(Typed::Stays))), TypingStep::File, TypingStep::File),
            (Some((Denied, Some(Typed::Taken))), TypingStep::File, TypingStep::File),
            (Some((TimedOut, None)), TypingStep::Wait, TypingStep::File),
            (Some((AnsweredTooLate, None)), TypingStep::Wait, TypingStep::File),
            (Some((AskerGone, None)), TypingStep::File, TypingStep::File),
            (Some((Withdrawn, Some(Typed::Gone))), TypingStep::File, TypingStep::File),
        ];
        for (decision, shown, gone) in table {
            assert_eq!(next_step(decision, true), shown, "{decision:?}");
            assert_eq!(next_step(decision, false), gone, "{decision:?}");
        }
    }

    #[test]
    fn keys_of_a_profile_are_named() {
        let keys = |names: &[&str]| -> Vec<Key> {
            names.iter().map(|name| name.parse().expect("a key")).collect()
        };
        assert_eq!(keys_of("\u{1b}[B\r"), keys(&["Down", "Enter"]));
        assert_eq!(keys_of("\u{1b}"), keys(&["Escape"]));
        assert_eq!(keys_of("1y"), keys(&["1", "y"]));
    }
}
