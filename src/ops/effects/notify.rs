//! Runs the team's `notify` command.

use std::time::Duration;

use serde_json::Value;

use crate::OpsError;
use model::id::MemberName;
use model::team::event::{EventKind, Note};
use store::TeamStore;
use sys::exec::{self, ExecCommand};

/// Time limit of the `notify` command.
const DEADLINE: Duration = Duration::from_secs(10);

/// Runs the team's `notify` command, if it has one, with `subject` as JSON on stdin. Returns when
/// the command has ended. A command that hangs, fails or floods is a warning in the journal and
/// affects nothing else.
pub fn run_notify(team: &TeamStore, member: &MemberName, subject: &Value) -> Result<(), OpsError> {
    let argv = team.settings()?.map(|settings| settings.notify).unwrap_or_default();
    let Some((program, args)) = argv.split_first() else { return Ok(()) };
    let command = ExecCommand {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        stdin: subject.to_string().into_bytes(),
        ..ExecCommand::default()
    };
    let problem = match exec::run(&command, DEADLINE) {
        Ok(output) if output.code == Some(0) => return Ok(()),
        Ok(output) => format!("`{program}` exited with {:?}", output.code),
        Err(e) => e.to_string(),
    };
    let text = format!("notify: {problem}");
    team.record(Note::of(EventKind::Warning).member(member).with("text", text))?;
    Ok(())
}
