//! A request that waits for a person is told of: at the terminals that look at the team, by the user's own program, and by
//! a line of the journal, which the lead's own terminal rings for. Each time once, also when the lead dies in between: it
//! is written down before it is done. Nothing of it keeps the request from being answered.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::backends;
use super::context::{Context, now};
use super::error::OpsError;
use super::send;
use crate::backend::tmux;
use crate::model::event::{EventKind, Note};
use crate::model::followup::{Step, Told};
use crate::model::id::{MemberName, RequestId};
use crate::model::placement::Placement;
use crate::model::protocol::Message;
use crate::model::question::Question;
use crate::model::text;
use crate::store::{StoreError, TeamStore};
use crate::sys::exec::{self, Command};

/// How long the user's program may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// How much of what a member writes stands in a message.
const LONGEST: usize = 200;

/// Tells of it, unless that was done or it waits no more; comes back when the user's program has ended.
pub(crate) fn announce(
    ctx: &Context,
    team: &TeamStore,
    id: &RequestId,
    step: Step,
) -> Result<(), OpsError> {
    let Some(question) = note(team, id, step)? else { return Ok(()) };
    team.record(news(&question, step))?;
    if let Step::Escalation { .. } = step {
        let system = MemberName::existing("system")?;
        let message = Message::Text(words(&question));
        send::say(team, &system, &MemberName::lead(), &message, Some(question.event.clone()))?;
    }
    // Side by side: each may hang, and nobody is to hear of it late because of the other.
    thread::scope(|scope| {
        scope.spawn(|| call_in_tmux(ctx, team, &question, step));
        run_notify(team, &question, step)
    })
}

/// Writes down that it is said now; the question, if that is so.
fn note(team: &TeamStore, id: &RequestId, step: Step) -> Result<Option<Question>, OpsError> {
    let told = Told { times: step.times(), at: now() };
    let noted = team.change_question(id, |question| {
        if !question.is_open() || question.told.is_some_and(|earlier| earlier.times >= told.times) {
            return Ok(None);
        }
        question.told = Some(told);
        Ok(Some(question.clone()))
    });
    match noted {
        Err(StoreError::NoSuchRequest { .. }) => Ok(None),
        noted => Ok(noted?),
    }
}

fn news(question: &Question, step: Step) -> Note {
    let kind = match step {
        Step::First => EventKind::RequestAnnounced,
        Step::Reminder { .. } => EventKind::Reminded,
        Step::Escalation { .. } => EventKind::Escalated,
    };
    let note = Note::of(kind).because(&question.event).member(&question.from);
    let note = note.with("request_id", question.id.as_str()).with("kind", question.kind.as_str());
    counted(note.with("summary", question.summary()), step)
}

/// The same with how many reminders there were.
pub(super) fn counted(note: Note, step: Step) -> Note {
    match step {
        Step::First => note,
        Step::Reminder { nth, of } => note.with("nth", nth).with("of", of),
        Step::Escalation { after, .. } => note.with("after", after),
    }
}

fn words(question: &Question) -> String {
    let (from, kind, id) = (&question.from, question.kind.as_str(), &question.id);
    format!(
        "{from} is still waiting for an answer to its {kind} request `{id}`; earlier reminders were not answered: {}. Answer it \
         with `phalanx answer {id} --approve` or `--reject`.",
        text::short(&question.summary(), LONGEST)
    )
}

/// Where the team, or its lead, is to be seen on one tmux server.
#[derive(Default)]
struct Seen {
    tokens: Vec<String>,
    pane: Option<String>,
}

/// What cannot be asked or read shows nothing, and that is all: the request is told of elsewhere, too.
fn call_in_tmux(ctx: &Context, team: &TeamStore, question: &Question, step: Step) {
    let Ok(program) = backends::tmux_program(ctx) else { return };
    let mut servers: BTreeMap<PathBuf, Seen> = BTreeMap::new();
    for record in team.member_records().unwrap_or_default() {
        if let Some(Placement::Tmux(pane)) = &record.placement {
            servers
                .entry(PathBuf::from(&pane.socket))
                .or_default()
                .tokens
                .push(record.mark().to_owned());
        }
    }
    if let Some(here) = backends::inside(ctx) {
        servers.entry(here.socket).or_default().pane = Some(here.pane);
    }
    let call = tmux::Call {
        team: team.name().as_str(),
        member: question.from.as_str(),
        kind: question.kind.as_str(),
        again: step != Step::First,
    };
    for (socket, seen) in &servers {
        tmux::call(&program, socket, &seen.tokens, seen.pane.as_deref(), &call);
    }
}

/// Runs the team's `notify` command, if it has one, with the request as JSON on stdin. What it does with that is its affair:
/// it has a deadline, and harms nothing when it hangs, fails or floods.
fn run_notify(team: &TeamStore, question: &Question, step: Step) -> Result<(), OpsError> {
    let argv = team.settings()?.map(|settings| settings.notify).unwrap_or_default();
    let Some((program, args)) = argv.split_first() else { return Ok(()) };
    let told = serde_json::json!({
        "team": team.name(), "request_id": question.id, "kind": question.kind, "from": question.from,
        "summary": question.summary(), "deadline": question.deadline_at.iso(), "reminder": step.times(),
    });
    let command = Command {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        stdin: told.to_string().into_bytes(),
        ..Command::default()
    };
    let problem = match exec::run(&command, DEADLINE) {
        Ok(output) if output.code == Some(0) => return Ok(()),
        Ok(output) => format!("`{program}` exited with {:?}", output.code),
        Err(e) => e.to_string(),
    };
    let text = format!("notify: {problem}");
    team.record(Note::of(EventKind::Warning).member(&question.from).with("text", text))?;
    Ok(())
}
