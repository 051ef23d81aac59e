//! `rename`: starts a member again under another name.

use clap::Args;
use serde_json::json;

use crate::ending::stop::{exit_code, stop_or_report};
use crate::fail::{Exit, Failure, VerbResult};
use crate::interrupt;
use crate::members::resume::{RestartResult, start_members};
use crate::members::start::START;
use crate::setup::Setup;
use model::id::MemberName;
use ops::authority::Action;
use ops::ending::shutdown::ShutdownOptions;
use ops::members::status::live_members;
use ops::starting::recover::recover_starts;
use ops::starting::rename::{self, RenamedWork};
use ops::starting::resume::check;
use ops::starting::spawn::SpawnOptions;
use ops::{OpsError, TeamStore};

/// Stop a member and start it again under another name.
///
/// Its open tasks, unread messages, worktree and settings go to the new name, and its program
/// continues its conversation. A running member is asked to stop first, as by `shutdown`, which
/// ends the command of a worker.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  phalanx rename ann parser\n\n\
    Finished tasks and the journal keep the old name. A manifest is not changed: change the name there \
    before the next `phalanx up`. Exits with 4 if the member refuses to stop; it keeps running.")]
pub(crate) struct RenameArgs {
    /// Member to rename.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Its new name.
    #[arg(value_name = "NEW_NAME")]
    pub(crate) new: String,
    /// Seconds to wait for it to stop.
    #[arg(long, value_name = "S", default_value_t = 30)]
    pub(crate) deadline: u64,
    /// Kill it without asking.
    #[arg(long)]
    pub(crate) force: bool,
}

pub(crate) fn rename(setup: &Setup, args: &RenameArgs) -> VerbResult {
    let to = MemberName::new(&args.new).map_err(OpsError::from)?;
    let (team, mut names) = setup.members(&[&args.name], Action::Restart)?;
    let Some(from) = names.pop().filter(|from| *from != to) else {
        return Err(Failure::usage("the member has this name", "give another name"));
    };
    let mut session = None;
    recover_starts(&setup.ctx, &team)?;
    if !rename::check(&team, &from, &to)? {
        check(&setup.ctx, &team, std::slice::from_ref(&from))?;
        if let Some(exit) = stop(setup, &team, args, &from)? {
            return Ok(exit);
        }
        session = start(setup, &team, &from, &to)?;
    }
    let handed = rename::hand_over(&setup.ctx, &team, &from, &to)?;
    let document = json!({ "from": from, "to": to, "session": session, "tasks": handed.tasks,
                           "messages": handed.messages });
    setup.out.confirm(&document, || words(&from, &to, session.as_deref(), &handed))
}

/// Stops the member if it runs. Returns the exit code if it runs on.
fn stop(
    setup: &Setup,
    team: &TeamStore,
    args: &RenameArgs,
    from: &MemberName,
) -> Result<Option<Exit>, Failure> {
    if !live_members(team)?.contains(from) {
        return Ok(None);
    }
    let reason = format!("the member is renamed to {}", args.new);
    let options = ShutdownOptions::for_restart(reason, args.deadline, args.force);
    let hint =
        |_: &MemberName| format!("kill it: `phalanx rename --force {} {}`", args.name, args.new);
    let names = std::slice::from_ref(from);
    let (_, running) = stop_or_report(setup, team, names, &options, hint)?;
    Ok((!running.is_empty()).then(|| exit_code(&running)))
}

/// Starts the member under its new name. Returns the session that it continues.
fn start(
    setup: &Setup,
    team: &TeamStore,
    from: &MemberName,
    to: &MemberName,
) -> Result<Option<String>, Failure> {
    let specs = rename::specs(&setup.ctx, team, from, to)?;
    let options = SpawnOptions::ready_within(START);
    let runtime = interrupt::runtime()?;
    let started = runtime.block_on(start_members(setup, team, specs, &options));
    runtime.shutdown_background();
    let (mut starts, _) = started?;
    let Some(RestartResult { session, lost, result, .. }) = starts.pop() else { return Ok(None) };
    if let Err(e) = result {
        rename::take_back(team, from, to)?;
        let hint = format!("`phalanx resume {from}` starts it as it was");
        setup.out.print_message(&format!("{from} keeps its name; {hint}"));
        return Err(e.into());
    }
    if let Some(lost) = lost {
        setup.out.print_message(&format!("{to}: {lost}"));
    }
    Ok(session)
}

fn words(
    from: &MemberName,
    to: &MemberName,
    session: Option<&str>,
    handed: &RenamedWork,
) -> String {
    let count = |count: usize, what: &str| match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        more => Some(format!("{more} {what}s")),
    };
    let parts = [
        count(handed.tasks.len(), "task"),
        count(handed.messages, "message"),
        session.map(|_| "its conversation".to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let with =
        if parts.is_empty() { String::new() } else { format!(", with {}", parts.join(", ")) };
    format!("{from} is now {to}{with}")
}
