//! Running verbs that call hooks, and printing what changed.

use super::views::document;
use crate::fail::{Exit, Failure, VerbResult};
use crate::interrupt;
use crate::setup::Setup;
use model::board::task::Task;
use ops::board::task::Completed;
use ops::team::hooks::TeamHooks;
use ops::{self, Context, Kind, OpsError, TeamStore};

/// Runs a verb that calls hooks. They can take long, so a signal kills them and leaves the task
/// unchanged.
pub(super) fn run_with_hooks(
    setup: &Setup,
    team: &TeamStore,
    verb: impl FnOnce(&Context, &TeamStore, &TeamHooks) -> Result<Completed, OpsError> + Send + 'static,
) -> Result<Completed, Failure> {
    let hooks = ops::team::hooks::load_hooks(&setup.ctx, team);
    if !hooks.guard_tasks() {
        return Ok(verb(&setup.ctx, team, &hooks)?);
    }
    let (ctx, team, running_hooks) = (setup.ctx.clone(), team.clone(), hooks.clone());
    let stopped = Failure::interrupted("interrupted while hooks were asked", None);
    let done =
        interrupt::run_interruptible(stopped, move || Ok(verb(&ctx, &team, &running_hooks)?));
    if done.as_ref().is_err_and(|failure| failure.exit() == Exit::of(Kind::Interrupted)) {
        hooks.end_all();
    }
    done
}

/// Prints the change of a task, the tasks that it unblocked and the messages of hooks.
pub(super) fn print_change(setup: &Setup, done: &Completed, words: &str) -> VerbResult {
    done.complaints.iter().for_each(|complaint| setup.out.print_message(complaint));
    let free = done.freed.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ");
    let free = if free.is_empty() { free } else { format!("; free now: {free}") };
    print_task(setup, &done.task, &format!("{words}{free}"))
}

pub(super) fn print_task(setup: &Setup, task: &Task, words: &str) -> VerbResult {
    setup.out.confirm(&document(task, task.state), || words.to_owned())
}

/// Prints that no member was notified of a free task, because no lead runs.
pub(super) fn warn_if_unnoticed(
    setup: &Setup,
    team: &TeamStore,
    task: &Task,
) -> Result<(), Failure> {
    if ops::starting::catch_up::is_unnoticed(team, task)? {
        let id = task.id;
        setup.out.print_message(&format!(
            "no member was notified of task {id}, because no lead is running: `phalanx lead --detach` \
             starts one, `phalanx task assign {id} NAME` gives it to a member"
        ));
    }
    Ok(())
}
