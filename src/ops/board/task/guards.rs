//! The demands of a team's board and its access policy, checked before a verb changes anything.

use crate::authority::access;
use crate::error::names;
use crate::{Context, OpsError, now};
use model::board::Board;
use model::board::policy::{self, BoardPolicy, BoardVersion};
use model::board::task::{Task, TaskState};
use model::id::{MemberName, TaskId};
use model::mail::scope::Scope;
use model::members::launch::LaunchSpec;
use model::text;
use store::{NewTask, TeamStore};

/// Number of pending tasks that a refusal lists.
const LISTED: usize = 10;
/// Characters of a subject in that list.
const SUBJECT: usize = 40;
/// Begins the refusal of an assignment by the access policy, before the name of the owner.
const NOT_ASSIGNED: &str = "cannot assign the task to";

fn policy(team: &TeamStore) -> Result<BoardPolicy, OpsError> {
    Ok(team.settings()?.map(|settings| settings.board).unwrap_or_default())
}

/// Refuses a verb that a board of version 1 does not have.
///
/// # Errors
/// A board of version 1.
pub(crate) fn must_have_verb(team: &TeamStore, verb: &str) -> Result<(), OpsError> {
    match policy(team)?.version {
        BoardVersion::Two => Ok(()),
        BoardVersion::One => Err(OpsError::refused(
            format!("`task {verb}` needs version 2 of the board"),
            "upgrade it: `phalanx team upgrade`",
        )),
    }
}

/// Checks new tasks against the access policy, for the team and for their owners, and against the
/// demands for an owner and for a look at the board.
///
/// # Errors
/// [`OpsError::AccessDenied`], a refusal or a refusal.
pub(crate) fn may_create(
    ctx: &Context,
    team: &TeamStore,
    batch: &[NewTask],
) -> Result<(), OpsError> {
    for NewTask { owner, scope, .. } in batch {
        access::must_admit(ctx, team, scope, "cannot create the task")?;
        owner.iter().try_for_each(|owner| must_be_open_to(ctx, team, scope, owner))?;
    }
    let policy = policy(team)?;
    if policy.assignee
        && let Some(task) = batch.iter().find(|task| task.owner.is_none())
    {
        let members: Vec<MemberName> =
            team.team()?.teammates().map(|member| member.name.clone()).collect();
        let known = if members.is_empty() { "none yet".to_owned() } else { names(&members) };
        return Err(OpsError::refused(
            format!(
                "this team creates no task without an owner: \"{}\" has none",
                text::short(&task.subject, SUBJECT)
            ),
            format!("give it one with `--owner NAME`; members: {known}"),
        ));
    }
    if !policy.list_before_create || batch.is_empty() {
        return Ok(());
    }
    let (board, looked_at) = (team.board()?, team.looked_at(&ctx.speaker)?);
    policy::has_seen_all(board.work(), &ctx.speaker, looked_at).map_err(|unseen| {
        let new = unseen.map(|id| format!("; task {id} is new since you looked"));
        OpsError::refused(
            format!(
                "this team looks at the board before it creates a task{}",
                new.unwrap_or_default()
            ),
            "look first: `phalanx task list`; the task may be there already",
        )
    })
}

/// Checks that the access policy lets a task of this origin be assigned to `owner`.
///
/// # Errors
/// [`OpsError::AccessDenied`].
pub(super) fn must_be_open_to(
    ctx: &Context,
    team: &TeamStore,
    scope: &Scope,
    owner: &MemberName,
) -> Result<(), OpsError> {
    access::must_admit_to(ctx, team, scope, (owner, None), NOT_ASSIGNED)
}

/// Notes that a member has looked at the board, if the team demands that.
pub fn note_look(team: &TeamStore, who: &MemberName) -> Result<(), OpsError> {
    if policy(team)?.list_before_create {
        team.set_looked_at(who, now())?;
    }
    Ok(())
}

/// Checks the task of a member that is to be started with a prompt, which is delegated work.
///
/// # Errors
/// A refusal if the team demands a task and none is given, or if the given one
/// does not exist or has begun; [`OpsError::AccessDenied`] if a member would take no tasks of its
/// origin.
pub fn may_delegate(
    ctx: &Context,
    team: &TeamStore,
    task: Option<TaskId>,
    has_prompt: bool,
    specs: &[LaunchSpec],
) -> Result<(), OpsError> {
    if task.is_none() && !(has_prompt && policy(team)?.delegation_task) {
        return Ok(());
    }
    let board = team.board()?;
    let problem = match task {
        None => "work that is delegated with a prompt needs a task".to_owned(),
        Some(id) => match board.tasks.get(&id) {
            Some(task) if task.state == TaskState::Pending => {
                return specs.iter().try_for_each(|spec| {
                    let name = MemberName::new(&spec.name)?;
                    let new = (&name, Some(spec));
                    access::must_admit_to(ctx, team, &task.extra.scope, new, NOT_ASSIGNED)
                });
            }
            Some(task) => format!("task {id} is {}, not pending", task.state.as_str()),
            None => format!("team {} has no task {id}", team.name()),
        },
    };
    let hint = match listed(&board).as_slice() {
        [] => "create one: `phalanx task create SUBJECT`, then `spawn --task ID`".to_owned(),
        some => format!("name one with `--task ID`; pending: {}", some.join(", ")),
    };
    Err(OpsError::refused(problem, hint))
}

fn listed(board: &Board) -> Vec<String> {
    let free = board.pending().into_iter().filter(|task| board.is_free(task));
    let line = |task: &Task| format!("#{} {}", task.id, text::short(&task.subject, SUBJECT));
    free.take(LISTED).map(line).collect()
}
