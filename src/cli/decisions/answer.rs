//! `answer`: approves or rejects a request. The operations check who may answer which request.

use std::time::Duration;

use clap::{ArgGroup, Args};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::args::{mode, object, request_id, word};
use crate::fail::{Exit, Failure, VerbResult};
use crate::setup::Setup;
use model::decisions::question::Typed;
use model::decisions::request::WorkLeft;
use model::id::RequestId;
use model::mail::protocol::ShutdownStatus;
use model::members::mode::Mode;
use model::text;
use ops::authority::Action;
use ops::decisions::answer::ShutdownAnswer;
use ops::decisions::decide::Answered;
use ops::{self, Kind};

/// Answer a request: a plan, a permission, a question, a shutdown.
#[derive(Debug, Default, Args, Deserialize, JsonSchema)]
#[command(
    group(ArgGroup::new("verdict").required(true).multiple(true).args(["approve", "reject", "answer"])),
    after_help = "Examples:\n  phalanx answer perm-1795214628804-k2j --approve\n  \
    phalanx answer ada --approve --always\n  \
    phalanx answer ada --answer blue\n  \
    phalanx answer ada --answer 1=blue --answer \"Which parts?=1,2\"\n  \
    phalanx answer perm-1795214628804-k2j --approve --input '{\"command\": \"make test\"}'\n  \
    phalanx answer plan_approval-1795214628804@ada@demo --reject --reason \"leave the schema alone\"\n  \
    phalanx answer shutdown-1771364400000@ada --approve --committed\n  \
    phalanx answer shutdown-1771364400000@ada --approve --status in_progress --pending \"the tests\"\n  \
    phalanx answer shutdown-1771364400000@ada --reject --reason \"in the middle of #3\"\n\n\
    The lead lists open requests with `phalanx requests` and prints one with `phalanx requests show ID`; a member finds the id in the message that asks. \
    Outside the member's own program add --as NAME."
)]
pub(crate) struct AnswerArgs {
    /// Id of the request, its beginning, or its member [default: the only open one].
    #[arg(value_name = "ID", default_value = "", hide_default_value = true)]
    pub(crate) id: String,
    /// Approve it.
    #[arg(long)]
    pub(crate) approve: bool,
    /// Reject it.
    #[arg(long, conflicts_with = "approve")]
    #[serde(skip)]
    pub(crate) reject: bool,
    /// Reason, or what to change; required to reject a shutdown.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Permission mode after an approved plan [default: that of the lead].
    #[arg(long, value_parser = mode(), value_name = "MODE", conflicts_with = "reject")]
    #[serde(default)]
    #[schemars(schema_with = "crate::json::words::<Mode>")]
    pub(crate) mode: Option<Mode>,
    /// Approve a permission with this edited tool input, a JSON object.
    #[arg(long, value_parser = object, value_name = "JSON", conflicts_with = "reject")]
    #[serde(default)]
    #[schemars(schema_with = "crate::json::object")]
    pub(crate) input: Option<Map<String, Value>>,
    /// Answer a question of the program to its user with an option, by number or label, or with a
    /// text; repeatable, as QUESTION=TEXT for each of several questions.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["reject", "input", "always"])]
    #[serde(default)]
    pub(crate) answer: Vec<String>,
    /// Approve, and add a team rule that allows the same from now on.
    #[arg(long, conflicts_with = "reject")]
    #[serde(default)]
    pub(crate) always: bool,
    /// Key of the dashboard that a person has pressed, for the journal.
    #[arg(long, value_name = "KEY", hide = true)]
    #[serde(skip)]
    pub(crate) via: Option<String>,
    /// State of the work at a shutdown.
    #[arg(help_heading = "Shutdown", long, value_parser = word::<ShutdownStatus>(), value_name = "STATUS")]
    #[arg(conflicts_with = "reject")]
    #[serde(default)]
    #[schemars(schema_with = "crate::json::words::<ShutdownStatus>")]
    pub(crate) status: Option<ShutdownStatus>,
    /// Work that is left to do; repeatable.
    #[arg(help_heading = "Shutdown", long, value_name = "TEXT", conflicts_with = "reject")]
    #[serde(default)]
    pub(crate) pending: Vec<String>,
    /// All work is committed; git is used to check it.
    #[arg(help_heading = "Shutdown", long, conflicts_with_all = ["reject", "uncommitted"])]
    #[serde(default)]
    pub(crate) committed: bool,
    /// Some work is not committed.
    #[arg(help_heading = "Shutdown", long, conflicts_with = "reject")]
    #[serde(skip)]
    pub(crate) uncommitted: bool,
}

/// Time limit for giving an answer to a program: for typing it and seeing its dialog close.
const TYPING: Duration = Duration::from_secs(20);

pub(crate) fn answer(setup: &Setup, args: AnswerArgs) -> VerbResult {
    let team = setup.team(Action::Look)?;
    let id = match args.id.as_str() {
        "" => ops::decisions::ids::only_request(&setup.ctx, &team)?,
        given => ops::decisions::ids::request_to_answer(&setup.ctx, &team, &request_id(given)?)?,
    };
    if id.is_shutdown() { answer_shutdown(setup, &id, args) } else { decide(setup, &id, args) }
}

/// Sends a member's reply to a request for its own shutdown.
fn answer_shutdown(setup: &Setup, id: &RequestId, args: AnswerArgs) -> VerbResult {
    if args.input.is_some() || args.always || !args.answer.is_empty() {
        let hint = "`--input`, `--answer` and `--always` answer a permission";
        return Err(Failure::usage(format!("`{id}` asks to shut down"), hint));
    }
    let (team, _) = setup.member(setup.ctx.speaker.as_str(), Action::Answer)?;
    let answered = ops::decisions::answer::answer(&setup.ctx, &team, id, verdict(args)?)?;
    setup.out.confirm(&answered, || answered.message.clone())
}

/// Records the lead's decision on a plan or permission.
fn decide(setup: &Setup, id: &RequestId, args: AnswerArgs) -> VerbResult {
    let team = setup.team(Action::Decide)?;
    let answer = ops::decisions::decide::Answer {
        approve: !args.reject,
        reason: args.reason,
        mode: args.mode,
        input: args.input,
        answers: args.answer,
        always: args.always,
        via: args.via,
    };
    let Answered { question, added } =
        ops::decisions::decide::answer(&setup.ctx, &team, id, &answer)?;
    let question = if question.reports_result() {
        ops::decisions::dialog::outcome(&team, &question, TYPING)?
    } else {
        question
    };
    let typed = question.typed();
    let document = json!({
        "request_id": question.id, "kind": question.kind, "from": question.from, "state": question.state(),
        "typed": typed, "added": added,
    });
    setup.out.print_outcome(&document, matches!(typed, None | Some(Typed::Taken)), || {
        let typed = typed.map(|typed| format!(": {}", typed.describe())).unwrap_or_default();
        let mut lines = vec![format!("{}: {}{typed}", question.from, question.state())];
        lines.extend(
            added.iter().map(|rule| {
                format!("rule added to the team: allow {}", String::from(rule.clone()))
            }),
        );
        text::block(&lines.join("\n"))
    })?;
    Ok(match typed {
        None | Some(Typed::Taken) => Exit::DONE,
        Some(Typed::Gone | Typed::Rejected) => Exit::of(Kind::Refused),
        Some(Typed::Stays) => Exit::of(Kind::Failed),
    })
}

fn verdict(args: AnswerArgs) -> Result<ShutdownAnswer, Failure> {
    if args.approve {
        let artifacts_committed = (args.committed || args.uncommitted).then_some(args.committed);
        return Ok(ShutdownAnswer::Approve(WorkLeft {
            status: args.status,
            pending_work: args.pending,
            artifacts_committed,
        }));
    }
    let reason = args.reason.unwrap_or_default();
    match reason.trim() {
        "" => Err(Failure::usage("a rejection needs a reason", "say why: `--reason TEXT`")),
        _ => Ok(ShutdownAnswer::Reject { reason }),
    }
}
