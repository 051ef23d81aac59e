//! The task verbs.

use super::Done;
use super::args_task::{Create, TaskVerb, Update};
use super::fail::{Class, Exit, Failure};
use super::interrupt;
use super::setup::Setup;
use crate::model::id::{MemberName, TaskId};
use crate::model::task::{Extra, Task};
use crate::model::wire;
use crate::ops::task::Completed;
use crate::ops::{self, NewTask, TaskChanges, TaskOwner, Team};
use crate::ui;

pub(super) fn task(setup: &Setup, verb: TaskVerb) -> Done {
    let named = match &verb {
        TaskVerb::Create(args) => args.owner.as_slice(),
        TaskVerb::Update(args) => args.owner.as_slice(),
        _ => &[],
    };
    let (team, mut owner) = setup.members(named)?;
    match verb {
        TaskVerb::Create(args) => create(setup, &team, *args, owner.pop()),
        TaskVerb::List { all } => list(setup, &team, all),
        TaskVerb::Get { id } => {
            let task = ops::task::get(&team, id)?;
            setup.out.give(&task.to_object(), || ui::task_page(&task, setup.out.paint))?;
            Ok(Exit::DONE)
        }
        TaskVerb::Claim { id } => {
            let task = ops::task::claim(&setup.ctx, &team, id)?;
            told(setup, &task, &format!("task {id} is in progress, owned by {}", setup.ctx.speaker))
        }
        TaskVerb::Complete { id } => {
            let done = complete(setup, &team, id)?;
            done.complaints.iter().for_each(|complaint| setup.out.say(complaint));
            let free = done.freed.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ");
            let free = if free.is_empty() { free } else { format!("; free now: {free}") };
            told(setup, &done.task, &format!("task {id} is completed{free}"))
        }
        TaskVerb::Update(args) => update(setup, &team, *args, owner.pop()),
        TaskVerb::Delete { id, force } => {
            let task = ops::task::delete(&setup.ctx, &team, id, force)?;
            told(setup, &task, &format!("task {id} is deleted"))
        }
    }
}

/// Hooks can take long: a signal ends them, and the task is left as it is.
fn complete(setup: &Setup, team: &Team, id: TaskId) -> Result<Completed, Failure> {
    let hooks = ops::hooks::configured(&setup.ctx, team);
    if !hooks.guard_tasks() {
        return Ok(ops::task::complete(&setup.ctx, team, &hooks, id, &setup.ctx.speaker, None)?);
    }
    let (ctx, team, asked) = (setup.ctx.clone(), team.clone(), hooks.clone());
    let stopped = Failure::interrupted("interrupted while hooks were asked", None);
    let work = move || Ok(ops::task::complete(&ctx, &team, &asked, id, &ctx.speaker, None)?);
    let done = interrupt::breakable(stopped, work);
    if done.as_ref().is_err_and(|failure| failure.exit() == Exit::of(Class::Interrupted)) {
        hooks.end_all();
    }
    done
}

fn told(setup: &Setup, task: &Task, words: &str) -> Done {
    setup.out.confirm(&task.to_object(), || words.to_owned())?;
    Ok(Exit::DONE)
}

fn update(setup: &Setup, team: &Team, args: Update, owner: Option<MemberName>) -> Done {
    let changes = TaskChanges {
        subject: args.subject,
        description: args.description,
        owner: owner.map(TaskOwner::Member).or(args.no_owner.then_some(TaskOwner::Nobody)),
        blocked_by: args.blocked_by,
        unblock: args.unblock,
        ..TaskChanges::default()
    };
    if changes == TaskChanges::default() {
        return Err(Failure::usage("no change was given", "see `phalanx task update --help`"));
    }
    if changes.subject.as_ref().is_some_and(|subject| subject.trim().is_empty()) {
        return Err(Failure::usage("the subject is empty", "give a short title"));
    }
    let task = ops::task::update(&setup.ctx, team, args.id, &changes)?;
    told(setup, &task, &format!("task {} is changed", args.id))
}

fn create(setup: &Setup, team: &Team, args: Create, owner: Option<MemberName>) -> Done {
    if args.subject.trim().is_empty() {
        return Err(Failure::usage("the subject is empty", "give a short title"));
    }
    let mut metadata = args.metadata.unwrap_or_default();
    if let Some(kind) = args.kind {
        wire::put(&mut metadata, "type", kind);
    }
    let new = NewTask {
        subject: args.subject,
        description: args.description,
        active_form: args.active_form,
        owner,
        blocked_by: args.blocked_by,
        extra: Extra { run: args.command, files: args.files, priority: args.priority, ..Extra::default() },
        metadata,
        ..NewTask::default()
    };
    let made = ops::task::create(&setup.ctx, team, &[new])?;
    match made.first() {
        Some(task) => told(setup, task, &format!("task {} is on the board", task.id)),
        None => Ok(Exit::DONE),
    }
}

fn list(setup: &Setup, team: &Team, all: bool) -> Done {
    let board = ops::task::board(team)?;
    let open = |task: &&Task| all || !task.state.frees_dependants();
    let shown: Vec<&Task> = board.tasks.values().filter(open).collect();
    for id in &board.unreadable {
        setup.out.say(&format!("task {id} cannot be read"));
    }
    if setup.out.json {
        setup.out.document(&shown.iter().map(|task| task.to_object()).collect::<Vec<_>>())?;
    } else if shown.is_empty() {
        setup.out.say(if all { "no tasks" } else { "no open tasks" });
    } else {
        let ids: Vec<_> = shown.iter().map(|task| task.id).collect();
        setup.out.data(&ui::task_table(&board, &ids, setup.out.paint))?;
    }
    Ok(Exit::DONE)
}
