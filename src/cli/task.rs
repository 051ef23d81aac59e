//! The `task` subcommands.

use std::cmp::Reverse;
use std::path::Path;

use super::Done;
use super::args_task::{Create, TaskVerb, Update};
use super::fail::{Class, Exit, Failure};
use super::interrupt;
use super::setup::Setup;
use crate::model::id::MemberName;
use crate::model::task::{Extra, Task};
use crate::model::wire::{self, Object};
use crate::ops::authority::Action;
use crate::ops::hooks::Hooks;
use crate::ops::task::Completed;
use crate::ops::{self, Context, NewTask, OpsError, TaskChanges, TaskOwner, TeamStore};
use crate::ui;

pub(super) fn task(setup: &Setup, verb: TaskVerb) -> Done {
    let named = match &verb {
        TaskVerb::Create(args) => args.owner.as_slice(),
        TaskVerb::Update(args) => args.owner.as_slice(),
        _ => &[],
    };
    let action = match &verb {
        TaskVerb::List { .. } | TaskVerb::Get { .. } => Action::Look,
        _ => Action::Task,
    };
    let (team, mut owner) = setup.members(named, action)?;
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
            let done = guarded(setup, &team, move |ctx, team, hooks| {
                ops::task::complete(ctx, team, hooks, id, &ctx.speaker, None)
            })?;
            changed(setup, &done, &format!("task {id} is completed"))
        }
        TaskVerb::Retry { id } => {
            let task = ops::task::retry(&setup.ctx, &team, id)?;
            let whom =
                task.owner.as_deref().map(|name| format!(", for {name}")).unwrap_or_default();
            told(setup, &task, &format!("task {id} is pending again{whom}"))
        }
        TaskVerb::Update(args) => update(setup, &team, *args, owner.pop()),
        TaskVerb::Delete { id, force } => {
            let task = ops::task::delete(&setup.ctx, &team, id, force)?;
            told(setup, &task, &format!("task {id} is deleted"))
        }
    }
}

/// Runs a verb that calls hooks. They can take long, so a signal kills them and leaves the task
/// unchanged.
fn guarded(
    setup: &Setup,
    team: &TeamStore,
    verb: impl FnOnce(&Context, &TeamStore, &Hooks) -> Result<Completed, OpsError> + Send + 'static,
) -> Result<Completed, Failure> {
    let hooks = ops::hooks::configured(&setup.ctx, team);
    if !hooks.guard_tasks() {
        return Ok(verb(&setup.ctx, team, &hooks)?);
    }
    let (ctx, team, asked) = (setup.ctx.clone(), team.clone(), hooks.clone());
    let stopped = Failure::interrupted("interrupted while hooks were asked", None);
    let done = interrupt::breakable(stopped, move || Ok(verb(&ctx, &team, &asked)?));
    if done.as_ref().is_err_and(|failure| failure.exit() == Exit::of(Class::Interrupted)) {
        hooks.end_all();
    }
    done
}

/// Prints the change of a task, the tasks that it unblocked and the messages of hooks.
fn changed(setup: &Setup, done: &Completed, words: &str) -> Done {
    done.complaints.iter().for_each(|complaint| setup.out.say(complaint));
    let free = done.freed.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ");
    let free = if free.is_empty() { free } else { format!("; free now: {free}") };
    told(setup, &done.task, &format!("{words}{free}"))
}

fn told(setup: &Setup, task: &Task, words: &str) -> Done {
    setup.out.confirm(&task.to_object(), || words.to_owned())?;
    Ok(Exit::DONE)
}

fn update(setup: &Setup, team: &TeamStore, args: Update, owner: Option<MemberName>) -> Done {
    let (id, fields) = (args.id, args.fields);
    let cwd = fields
        .cwd
        .map(|dir| if dir.is_empty() { Ok(dir) } else { setup.absolute(Path::new(&dir)) });
    let changes = TaskChanges {
        subject: args.subject,
        description: args.description,
        active_form: fields.active_form,
        status: args.status,
        priority: fields.priority,
        role: fields.role,
        cwd: cwd.transpose()?,
        files: fields
            .files
            .map(|files| files.into_iter().filter(|file| !file.trim().is_empty()).collect()),
        run: Some(fields.command).filter(|run| !run.is_empty()),
        env: fields.env.map(|env| env.into_iter().collect()),
        metadata: metadata(fields.metadata, fields.kind),
        owner: owner.map(TaskOwner::Member).or(args.no_owner.then_some(TaskOwner::Nobody)),
        blocked_by: args.blocked_by,
        unblock: args.unblock,
        blocks: args.blocks,
        ..TaskChanges::default()
    };
    if changes == TaskChanges::default() {
        return Err(Failure::usage(
            "no field to change was given",
            "see `phalanx task update --help`",
        ));
    }
    if changes.subject.as_ref().is_some_and(|subject| subject.trim().is_empty()) {
        return Err(Failure::usage("the subject is empty", "give a short title"));
    }
    let done = guarded(setup, team, move |ctx, team, hooks| {
        ops::task::update(ctx, team, hooks, id, &changes)
    })?;
    let word =
        args.status.map_or("changed".to_owned(), |_| done.task.state.as_str().replace('_', " "));
    changed(setup, &done, &format!("task {id} is {word}"))
}

/// Returns the metadata with the task's type under the key `type`.
fn metadata(given: Option<Object>, kind: Option<String>) -> Object {
    let mut metadata = given.unwrap_or_default();
    if let Some(kind) = kind {
        wire::put(&mut metadata, "type", kind);
    }
    metadata
}

fn create(setup: &Setup, team: &TeamStore, args: Create, owner: Option<MemberName>) -> Done {
    if args.subject.trim().is_empty() {
        return Err(Failure::usage("the subject is empty", "give a short title"));
    }
    let fields = args.fields;
    let new = NewTask {
        subject: args.subject,
        description: args.description,
        active_form: fields.active_form,
        owner,
        blocked_by: args.blocked_by,
        extra: Extra {
            run: fields.command,
            cwd: fields.cwd.map(|dir| setup.absolute(Path::new(&dir))).transpose()?,
            env: fields.env.unwrap_or_default().into_iter().collect(),
            role: fields.role,
            files: fields.files.unwrap_or_default(),
            priority: fields.priority,
            ..Extra::default()
        },
        metadata: metadata(fields.metadata, fields.kind),
        ..NewTask::default()
    };
    let made = ops::task::create(&setup.ctx, team, &[new])?;
    match made.first() {
        Some(task) => told(setup, task, &format!("created task {}", task.id)),
        None => Ok(Exit::DONE),
    }
}

fn list(setup: &Setup, team: &TeamStore, all: bool) -> Done {
    let board = ops::task::board(team)?;
    let open = |task: &&Task| all || !task.is_internal() && !task.state.frees_dependants();
    let mut shown: Vec<&Task> = board.tasks.values().filter(open).collect();
    shown.sort_by_key(|task| Reverse(task.extra.priority.unwrap_or(0)));
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
