//! Permissions of teammates in their team. Every entry point calls [`enter`] before it acts in a
//! team, so that one table decides; docs/security.md shows it.

use std::ffi::OsStr;

use super::context::Context;
use super::error::OpsError;
use super::speaker;
use crate::model::event::{EventKind, Note};
use crate::model::id::{MemberName, TeamName};
use crate::model::settings::Privacy;
use crate::store::TeamStore;

/// An action in a team, in the order of docs/security.md, which lists the commands that perform
/// each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub(crate) enum Action {
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
            Action::Look => {
                "`status`, `events`, `wait`, `explain`, `requests`, `brief`, `task list`, `task get`, `task graph`, \
                 `task search`, `task export`, `task scopes`, `team show`, `worktree list`, `worktree diff`, `handoff list`, `handoff get`"
            }
            Action::Talk => "`send`, `broadcast`, `handoff send`, `plan submit`, `ask permission`",
            Action::Task => {
                "`task create`, `claim`, `update`, `complete`, `review`, `cancel`, `fail`, `retry`, `release`, `assign`, \
                 `block`, `unblock`, `comment`, `progress`, `attach`, `remind`, `unremind`, `delete`, \
                 `import`"
            }
            Action::Spawn => "`spawn`, as far as `max_depth` allows",
            Action::Serve => "`worker`, `wrap`, `hook`",
            Action::UseWorkspace => "`workspace list`, `read`, `write`, `path`",
            Action::ReadOutput => "`logs`, `peek`",
            Action::ReadMail => "`inbox`, with every option",
            Action::Watch => "`watch`, `popup`",
            Action::Answer => "`answer` to a request to end",
            Action::Attach => "`attach`",
            Action::MovePane => "`focus`, `hide`, `show`",
            Action::Type => "`type`, `keys`",
            Action::RemoveWorktree => "`worktree remove`",
            Action::DeleteFile => "`workspace delete` of a file that the member wrote",
            Action::Shutdown => "`shutdown`, `kill`",
            Action::Decide => "`answer` to a plan or a permission",
            Action::DecideTask => "`task approve`, `reject`",
            Action::Restart => "`restart`",
            Action::Resume => "`resume`",
            Action::SetMode => "`mode`",
            Action::SetRules => "`rules`, to change them",
            Action::SetTeam => "`team set`, `team upgrade`",
            Action::HandOver => "`handoff put`",
            Action::UseHosts => {
                "`host list`, `host check`, `host lost`, `store init`, `store check`"
            }
            Action::Lead => "`lead`",
            Action::Adopt => "`adopt`",
            Action::Down => "`down`",
            Action::Delete => "`team delete`, `rm`",
            Action::Repair => "`doctor --fix`",
        }
    }

    /// Returns the action as a verb phrase; with `to_member`, a member's name follows it.
    fn deed(self, to_member: bool) -> &'static str {
        match (self, to_member) {
            (Action::Look, _) => "look at the team",
            (Action::Talk, _) => "send messages",
            (Action::Task, _) => "change tasks",
            (Action::Spawn, _) => "start members",
            (Action::Answer, _) => "answer requests",
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
            (Action::RemoveWorktree, _) => "remove the worktree of",
            (Action::DeleteFile, true) => "delete files of",
            (Action::DeleteFile, false) => "delete files of unknown origin",
            (Action::Shutdown, true) => "end",
            (Action::Shutdown, false) => "end all members",
            (Action::Decide, _) => "answer what members ask the lead",
            (Action::DecideTask, _) => "approve or reject the work of others",
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
            Action::Look
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
/// a whole. A refused attempt is journaled.
///
/// # Errors
/// [`OpsError::NotTheSpeaker`] for a caller that carries another member's token;
/// [`StoreError::NoSuchMember`](crate::store::StoreError::NoSuchMember) for a speaker that is not
/// on the team; [`OpsError::NotPermitted`] for an action that is not granted.
pub(crate) fn enter(
    ctx: &Context,
    team: &TeamStore,
    action: Action,
    targets: &[MemberName],
) -> Result<(), OpsError> {
    speaker::check(ctx, team)?;
    let privacy = match action.grant() {
        Grant::ByPrivacy => team.settings()?.map(|settings| settings.privacy).unwrap_or_default(),
        _ => Privacy::Open,
    };
    if may(&ctx.speaker, action, targets, privacy) {
        return Ok(());
    }
    let whom = targets.iter().find(|target| **target != ctx.speaker).or(targets.first()).cloned();
    let deed = action.deed(whom.is_some());
    let refusal = OpsError::NotPermitted { speaker: ctx.speaker.clone(), deed, whom };
    team.record(
        Note::of(EventKind::Warning).member(&ctx.speaker).with("text", refusal.to_string()),
    )?;
    Err(refusal)
}

/// Checks that the caller may perform an action that concerns no team, such as a repair of all.
///
/// # Errors
/// As [`enter`], for the team that the caller is a member of.
pub(crate) fn enter_without_team(ctx: &Context, action: Action) -> Result<(), OpsError> {
    let own = ctx.caller.var("PHALANX_TEAM").and_then(OsStr::to_str);
    let own = own
        .and_then(|name| TeamName::existing(name).ok())
        .and_then(|name| ctx.store.team(&name).ok());
    match own {
        Some(team) => enter(ctx, &team, action, &[]),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;

    const PAGE: &str = include_str!("../../docs/security.md");

    fn name(name: &str) -> MemberName {
        MemberName::existing(name).expect("a name")
    }

    /// A row of docs/security.md: the lead, a teammate on itself, a teammate on another or on the
    /// team.
    fn row(action: Action) -> String {
        let yes = |speaker: &str, targets: &[&str], privacy| {
            let targets: Vec<MemberName> = targets.iter().map(|target| name(target)).collect();
            may(&name(speaker), action, &targets, privacy)
        };
        let word = |speaker, targets: &[&str]| match (
            yes(speaker, targets, Privacy::Own),
            yes(speaker, targets, Privacy::Open),
        ) {
            (true, true) => "yes",
            (false, true) => "unless `privacy` is `own`",
            _ => "no",
        };
        format!(
            "| {} | {} | {} | {} |",
            action.commands(),
            word("team-lead", &["bob"]),
            word("ann", &["ann"]),
            word("ann", &["bob"])
        )
    }

    #[test]
    fn security_page_shows_the_permission_table() {
        let rows: Vec<String> = Action::VARIANTS.iter().copied().map(row).collect();
        assert!(
            PAGE.contains(&rows.join("\n")),
            "docs/security.md should have:\n{}",
            rows.join("\n")
        );
    }

    #[test]
    fn action_on_several_members_is_own_only_if_all_are_the_speaker() {
        let ann = name("ann");
        let may = |targets: &[MemberName]| may(&ann, Action::Shutdown, targets, Privacy::Open);
        assert!(may(std::slice::from_ref(&ann)) && may(&[ann.clone(), ann.clone()]));
        assert!(!may(&[ann.clone(), name("bob")]) && !may(&[]), "nobody named is the whole team");
    }
}
