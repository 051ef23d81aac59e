//! Permissions of teammates in their team. Every entry point calls [`enter`] before it acts in a
//! team, so that one table decides; docs/security.md shows it.

pub mod access;
pub mod names;
pub mod speaker;

use crate::authority::speaker::CallerRights;
use crate::error::holder;
use crate::{Context, OpsError};
use model::id::{MemberName, TeamName};
use model::team::event::{EventKind, Note};
use model::team::settings::Privacy;
use store::TeamStore;

/// An action in a team, in the order of docs/security.md, which lists the commands that perform
/// each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub enum Action {
    /// List teams, and check them.
    ListTeams,
    CreateTeam,
    Look,
    Talk,
    Task,
    Spawn,
    /// A member's own process: worker, wrapper, hook.
    Serve,
    UseWorkspace,
    ReadOutput,
    ReadMail,
    /// See everything of the team: all screens and all mail.
    Watch,
    Answer,
    Attach,
    MovePane,
    Type,
    RemoveWorktree,
    LandWork,
    DeleteFile,
    Shutdown,
    Decide,
    DecideTask,
    Restart,
    Resume,
    SetMode,
    SetRules,
    SetTeam,
    HandOver,
    UseHosts,
    Lead,
    Adopt,
    Down,
    Delete,
    Repair,
}

/// The members that may perform an action. The lead may perform all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grant {
    Everyone,
    /// A teammate may perform it on itself only.
    Owner,
    /// As [`Grant::Owner`] in a team with `privacy = "own"`, otherwise everyone.
    ByPrivacy,
    LeadOnly,
}

impl Action {
    /// The commands that perform the action, as docs/security.md lists them.
    #[cfg(test)]
    fn commands(self) -> &'static str {
        match self {
            Action::ListTeams => {
                "`ls`, `team list`, `ps`, `doctor`, with the teams that the caller may look at"
            }
            Action::CreateTeam => "`team create`, `up`, as far as the caller's depth allows",
            Action::Look => {
                "`status`, `report`, `events`, `wait`, `explain`, `requests`, `requests show`, `rules`, `brief`, `task list`, \
                 `task get`, `task graph`, `task search`, `task export`, `task scopes`, `team show`, `team set` \
                 without a key, `worktree list`, `worktree diff`, `worktree merge --dry-run`, `handoff list`, `handoff get`, \
                 `review`, `review overview`, `review show`, `review list`, `review conflicts`"
            }
            Action::Talk => {
                "`send`, `broadcast`, `handoff send`, `plan submit`, `ask permission`, `review comment`, `review discard`, \
                 `review send`, `review answer`, `review resolve`, `review reopen`, `review pass`"
            }
            Action::Task => {
                "`task create`, `task claim`, `task update`, `task complete`, `task review`, `task cancel`, `task fail`, \
                 `task retry`, `retry`, `task release`, `task assign`, `task block`, `task unblock`, `task comment`, \
                 `task progress`, `task attach`, `task remind`, `task unremind`, `task delete`, `task import`, \
                 `review conflicts --task`"
            }
            Action::Spawn => "`spawn`, as far as the caller's depth allows",
            Action::Serve => "`worker`, `wrap`, `hook`",
            Action::UseWorkspace => {
                "`workspace list`, `workspace read`, `workspace write`, `workspace path`"
            }
            Action::ReadOutput => "`logs`, `peek`",
            Action::ReadMail => "`inbox`, with every option",
            Action::Watch => "`watch`, `popup`",
            Action::Answer => "`answer` to a request to end",
            Action::Attach => "`attach`",
            Action::MovePane => "`focus`, `hide`, `show`",
            Action::Type => "`type`, `keys`",
            Action::RemoveWorktree => "`worktree remove`",
            Action::LandWork => {
                "`worktree merge`, `worktree undo`, `review check`, `review approve` that lands or checks, `review --pr`, \
                 `review --sync`"
            }
            Action::DeleteFile => "`workspace delete` of a file that the member wrote",
            Action::Shutdown => "`shutdown`, `kill`",
            Action::Decide => "`answer` to a plan or a permission",
            Action::DecideTask => "`task approve`, `task reject`, `review approve`, `review drop`",
            Action::Restart => "`restart`, `rename`",
            Action::Resume => "`resume`",
            Action::SetMode => "`mode`",
            Action::SetRules => "`rules`, to change them",
            Action::SetTeam => "`team set`, `team upgrade`",
            Action::HandOver => "`handoff put`",
            Action::UseHosts => {
                "`host list`, `host check`, `host lost`, `host serve`, `store init`, `store check`, `store export`, \
                 `store import`"
            }
            Action::Lead => "`lead`, `acp`, `up` of a team that exists",
            Action::Adopt => "`adopt`",
            Action::Down => "`down`",
            Action::Delete => "`team delete`, `rm`",
            Action::Repair => "`doctor --fix`",
        }
    }

    /// Returns the action as a verb phrase; with `to_member`, a member's name follows it.
    fn deed(self, to_member: bool) -> &'static str {
        match (self, to_member) {
            (Action::ListTeams, _) => "list teams",
            (Action::CreateTeam, _) => "create teams",
            (Action::Look, true) => "look at",
            (Action::Look, false) => "look at the team",
            (Action::Talk, true) => "send messages to",
            (Action::Talk, false) => "send messages",
            (Action::Task, _) => "change tasks",
            (Action::Spawn, _) => "start members",
            (Action::Answer, true) => "answer requests to",
            (Action::Answer, false) => "answer requests",
            (Action::Serve, _) => "run as a member",
            (Action::UseWorkspace, _) => "use the workspace",
            (Action::ReadOutput, true) => "read the output of",
            (Action::ReadOutput, false) => "read the output of all members",
            (Action::ReadMail, _) => "read the mail of",
            (Action::Watch, _) => "see all screens and messages of the team",
            (Action::Attach, true) => "attach to the terminal of",
            (Action::Attach, false) => "attach to the terminals of the team",
            (Action::MovePane, _) => "move the pane of",
            (Action::Type, _) => "type into the terminal of",
            (Action::LandWork, true) => "land the work of",
            (Action::LandWork, false) => "take landed work back",
            (Action::RemoveWorktree, _) => "remove the worktree of",
            (Action::DeleteFile, true) => "delete files of",
            (Action::DeleteFile, false) => "delete files of unknown origin",
            (Action::Shutdown, true) => "end",
            (Action::Shutdown, false) => "end all members",
            (Action::Decide, _) => "answer what members ask the lead",
            (Action::DecideTask, true) => "approve or reject the work of",
            (Action::DecideTask, false) => "approve or reject the work of others",
            (Action::Restart, true) => "restart",
            (Action::Restart, false) => "restart members",
            (Action::Resume, true) => "start again",
            (Action::Resume, false) => "start members again",
            (Action::SetMode, true) => "change the mode of",
            (Action::SetMode, false) => "change the mode of all members",
            (Action::SetRules, _) => "change the rules of the team",
            (Action::SetTeam, _) => "change the settings of the team",
            (Action::HandOver, _) => "hand over to another team",
            (Action::UseHosts, _) => "use the hosts and the shared store",
            (Action::Lead, _) => "lead the team",
            (Action::Adopt, _) => "adopt the team",
            (Action::Down, _) => "end the team",
            (Action::Delete, _) => "delete the team",
            (Action::Repair, _) => "repair the team",
        }
    }

    fn grant(self) -> Grant {
        match self {
            Action::ListTeams
            | Action::CreateTeam
            | Action::Look
            | Action::Talk
            | Action::Task
            | Action::Spawn
            | Action::Serve
            | Action::UseWorkspace => Grant::Everyone,
            Action::ReadOutput => Grant::ByPrivacy,
            Action::ReadMail
            | Action::Answer
            | Action::Attach
            | Action::MovePane
            | Action::Type
            | Action::RemoveWorktree
            | Action::DeleteFile
            | Action::Shutdown => Grant::Owner,
            Action::Watch
            | Action::Decide
            | Action::DecideTask
            | Action::LandWork
            | Action::Restart
            | Action::Resume
            | Action::SetMode
            | Action::SetRules
            | Action::SetTeam
            | Action::HandOver
            | Action::UseHosts
            | Action::Lead
            | Action::Adopt
            | Action::Down
            | Action::Delete
            | Action::Repair => Grant::LeadOnly,
        }
    }
}

/// Returns true if `speaker` may do this to these members; without any, to the team as a whole.
fn may(speaker: &MemberName, action: Action, targets: &[MemberName], privacy: Privacy) -> bool {
    let own = || !targets.is_empty() && targets.iter().all(|target| target == speaker);
    match action.grant() {
        _ if speaker.is_lead() => true,
        Grant::Everyone => true,
        Grant::ByPrivacy => privacy == Privacy::Open || own(),
        Grant::Owner => own(),
        Grant::LeadOnly => false,
    }
}

/// Checks that the caller may perform the action on these members, or, without any, on the team as
/// a whole. A refused attempt is journaled in this team.
///
/// # Errors
/// [`OpsError::NotTheSpeaker`] for a caller that carries the token of another member or of a run
/// that has ended; [`OpsError::NotItsTeam`] for a member of another team;
/// [`StoreError::NoSuchMember`](store::StoreError::NoSuchMember) for a speaker that is not
/// on the team; [`OpsError::NotPermitted`] for an action that is not granted.
pub fn enter(
    ctx: &Context,
    team: &TeamStore,
    action: Action,
    targets: &[MemberName],
) -> Result<(), OpsError> {
    let whom = targets.iter().find(|target| **target != ctx.speaker).or(targets.first());
    let entered = speaker::check(ctx, team).and_then(|()| {
        let privacy = match action.grant() {
            Grant::ByPrivacy => {
                team.settings()?.map(|settings| settings.privacy).unwrap_or_default()
            }
            _ => Privacy::Open,
        };
        if may(&ctx.speaker, action, targets, privacy) {
            return Ok(());
        }
        let deed = action.deed(whom.is_some());
        Err(OpsError::NotPermitted { speaker: ctx.speaker.clone(), deed, whom: whom.cloned() })
    });
    if let Err(refusal) = &entered
        && let Some(note) = warning(refusal, action, whom)
    {
        team.record(note)?;
    }
    entered
}

/// Returns true if the speaker, who has entered the team for another action, may also perform this
/// one.
pub(crate) fn permits(ctx: &Context, action: Action) -> bool {
    may(&ctx.speaker, action, &[], Privacy::Own)
}

/// Returns the journal entry of a refusal, which names the caller; `None` for another error.
fn warning(refusal: &OpsError, action: Action, whom: Option<&MemberName>) -> Option<Note> {
    let (member, text) = match refusal {
        OpsError::NotTheSpeaker { speaker, owner } => {
            let who = holder(owner.as_ref());
            (owner.clone(), format!("{who} tried to act as `{speaker}` and was refused"))
        }
        OpsError::NotItsTeam { member, own, .. } => {
            let deed = action.deed(whom.is_some());
            let whom = whom.map(|whom| format!(" `{whom}`")).unwrap_or_default();
            (None, format!("`{member}` of team `{own}` tried to {deed}{whom} and was refused"))
        }
        OpsError::NotPermitted { speaker, .. } => (Some(speaker.clone()), refusal.to_string()),
        _ => return None,
    };
    Some(Note { member, ..Note::of(EventKind::Warning).with("text", text) })
}

/// Checks that the caller may perform an action that concerns no team, or all of them. A member
/// acts under its own name, whichever team and speaker the options select.
///
/// # Errors
/// As [`enter`], for the team that the caller is a member of; [`OpsError::NotTheSpeaker`] for a
/// token without such a team.
pub fn enter_without_team(ctx: &Context, action: Action) -> Result<(), OpsError> {
    let Some(team) = speaker::own_team(ctx) else {
        return if speaker::has_token(ctx) {
            Err(OpsError::NotTheSpeaker { speaker: ctx.speaker.clone(), owner: None })
        } else {
            Ok(())
        };
    };
    let speaker = match speaker::rights(ctx, &team)? {
        CallerRights::Member(name) => name,
        CallerRights::Person | CallerRights::Stranger { .. } | CallerRights::Invalid => {
            ctx.speaker.clone()
        }
    };
    enter(&Context { speaker, ..ctx.clone() }, &team, action, &[])
}

/// Returns true if the caller may look at the team. Unlike [`enter`] it journals nothing: it is for
/// lists, which leave out other teams, and not for an attempt to act in one.
pub fn may_look(ctx: &Context, team: &TeamStore) -> bool {
    let rights = speaker::rights(ctx, team);
    matches!(rights, Ok(CallerRights::Person | CallerRights::Member(_)))
}

/// Returns the teams under the config root that the caller may look at.
pub fn visible_teams(ctx: &Context) -> Result<Vec<TeamName>, OpsError> {
    let mut names = ctx.store.teams()?;
    if speaker::has_token(ctx) {
        names.retain(|name| ctx.store.team(name).is_ok_and(|team| may_look(ctx, &team)));
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
