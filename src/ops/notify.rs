//! The user's own program is told of a request that waits for a person. What it does with that is its affair: it has a
//! deadline, and harms nothing when it hangs, fails or floods.

use std::time::Duration;

use super::error::OpsError;
use crate::model::event::{EventKind, Note};
use crate::model::question::Question;
use crate::store::TeamStore;
use crate::sys::exec::{self, Command};

/// How long it may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// Runs the team's `notify` command, if it has one, with the request as JSON on stdin; comes back when it has ended.
pub(crate) fn notify(team: &TeamStore, question: &Question) -> Result<(), OpsError> {
    let argv = team.settings()?.map(|settings| settings.notify).unwrap_or_default();
    let Some((program, args)) = argv.split_first() else { return Ok(()) };
    let told = serde_json::json!({
        "team": team.name(), "request_id": question.id, "kind": question.kind, "from": question.from,
        "summary": question.summary(), "deadline": question.deadline_at.iso(),
    });
    let command = Command {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        stdin: told.to_string().into_bytes(),
        ..Command::default()
    };
    let problem = match exec::run(&command, DEADLINE) {
        Ok(output) if output.code == Some(0) => return Ok(()),
        Ok(output) => format!("`{program}` ended with {:?}", output.code),
        Err(e) => e.to_string(),
    };
    let text = format!("notify: {problem}");
    team.record(Note::of(EventKind::Warning).member(&question.from).with("text", text))?;
    Ok(())
}
