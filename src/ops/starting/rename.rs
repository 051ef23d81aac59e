//! `rename`: starts a member again under another name, which gets what the member has: its
//! settings, its worktree with its reviews, its open tasks and its unread messages.
//!
//! A running program cannot be given another name, so the member has been stopped before. The
//! journal names the change before the new run starts: a call that was killed can be repeated.

use crate::authority::names::started_record;
use crate::board::task;
use crate::starting::resume::{self, RestartSpecs};
use crate::team::hooks;
use crate::{Context, OpsError, now};
use model::board::task::Task;
use model::id::{MemberName, TaskId};
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::members::launch::LaunchSpec;
use model::members::record::PlannedRestart;
use model::review::{TeamReview, rekey};
use model::team::event::{Event, EventKind, Note};
use model::team::settings::Settings;
use model::wire;
use store::{TaskChanges, TaskOwner, TeamStore};
use sys::failpoint;

/// The work that the new name has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenamedWork {
    pub tasks: Vec<TaskId>,
    /// Number of messages.
    pub messages: usize,
}

/// Checks that the member can get this name. Returns true if an earlier call has started it under
/// the name already, and was killed before it handed everything over.
///
/// # Errors
/// [`OpsError::NotOurMember`] for a member that phalanx did not start; a refusal if the name is
/// taken, or was chosen when the member was to run for one task.
pub fn check(team: &TeamStore, from: &MemberName, to: &MemberName) -> Result<bool, OpsError> {
    if is_begun(team, from, to)? {
        return Ok(true);
    }
    let record = started_record(team, from)?;
    if record.request.task.is_some() {
        let problem = format!("`{from}` runs for one task, and ends with it");
        return Err(OpsError::Usage { problem, hint: None });
    }
    let roster = team.team()?;
    match roster.members.iter().find(|member| member.name.clashes_with(to.as_str())) {
        Some(holder) => Err(OpsError::usage(
            format!("team `{}` has a member `{}`", team.name(), holder.name),
            "choose another name",
        )),
        None => Ok(false),
    }
}

/// Gives the settings and the worktree of a stopped member to its new name, and returns the specs
/// to start it.
///
/// # Errors
/// As [`resume::specs`].
pub fn specs(
    ctx: &Context,
    team: &TeamStore,
    from: &MemberName,
    to: &MemberName,
) -> Result<Vec<RestartSpecs>, OpsError> {
    let named = |spec: LaunchSpec| LaunchSpec { name: to.to_string(), ..spec };
    let renamed = |restart: RestartSpecs| RestartSpecs {
        spec: named(restart.spec),
        without_session: restart.without_session.map(named),
        ..restart
    };
    let specs = resume::specs(ctx, team, std::slice::from_ref(from), None)?;
    plan_restart(team, from, true)?;
    failpoint::hit("rename.stopped");
    // First: a rename that is cut is taken back by it.
    team.record(Note::of(EventKind::MemberRenamed).member(to).with("from", from.as_str()))?;
    move_settings(team, from, to)?;
    failpoint::hit("rename.settled");
    Ok(specs.into_iter().map(renamed).collect())
}

/// Gives the settings back to a member that could not be started under its new name.
///
/// # Errors
/// Settings or a journal that cannot be written.
pub fn take_back(team: &TeamStore, from: &MemberName, to: &MemberName) -> Result<(), OpsError> {
    move_settings(team, to, from)?;
    team.record(Note::of(EventKind::MemberRenamed).member(from).with("from", to.as_str()))?;
    Ok(())
}

/// Takes back the renames by calls that were killed before they started the new name: the old name
/// has its settings again, and can be started.
///
/// # Errors
/// As [`take_back`]; records that cannot be read.
pub(crate) fn take_back_cut(team: &TeamStore) -> Result<(), OpsError> {
    for event in team.events()?.iter().filter(|event| event.event == EventKind::MemberRenamed) {
        let from =
            wire::text(&event.detail, "from").and_then(|from| MemberName::existing(&from).ok());
        let Some((from, to)) = from.zip(event.member.as_ref()) else { continue };
        let of_new = team.member_record(to)?.filter(|record| record.asked_at >= event.at);
        let of_old = team.member_record(&from)?.and_then(|record| record.restart);
        if of_new.is_none() && of_old.is_some() && is_last_change(team, &from, to)? {
            take_back(team, &from, to)?;
        }
    }
    Ok(())
}

/// Gives the tasks of the old name that are still free, and its unread messages, to the new one,
/// which runs: the lead takes tasks back from names that are not on the team. Returns what it has.
///
/// # Errors
/// [`OpsError::AccessDenied`] for a task that its new owner may not take; files of the team that
/// cannot be changed.
pub fn hand_over(
    ctx: &Context,
    team: &TeamStore,
    from: &MemberName,
    to: &MemberName,
) -> Result<RenamedWork, OpsError> {
    failpoint::hit("rename.started");
    plan_restart(team, from, false)?;
    let hooks = hooks::load_hooks(ctx, team);
    for id in left_tasks(team, from)? {
        let owner = Some(TaskOwner::Member(to.clone()));
        task::update(ctx, team, &hooks, id, &TaskChanges { owner, ..TaskChanges::default() })?;
    }
    failpoint::hit("rename.given");
    // Messages about the ended run stay with it. The update has notified the new owner of tasks.
    let is_kept = |envelope: &Envelope| {
        !matches!(
            Message::parse(&envelope.text),
            Message::ShutdownRequest(_) | Message::TaskAssignment(_)
        )
    };
    let unread = team.mailbox(from).unread_where(is_kept)?;
    if !unread.is_empty() {
        let ids: Vec<String> = unread.iter().map(|envelope| envelope.msg_id.clone()).collect();
        team.mailbox(to).append_all(&unread)?;
        team.mailbox(from).remove(&ids)?;
    }
    let board = team.board()?;
    let own = board.tasks.values().filter(|task| is_open_of(task, to)).map(|task| task.id);
    Ok(RenamedWork { tasks: own.collect(), messages: unread.len() })
}

/// Records whether a start is planned in place of a run that has been stopped.
fn plan_restart(team: &TeamStore, name: &MemberName, is_planned: bool) -> Result<(), OpsError> {
    let restart = is_planned.then(|| PlannedRestart { failures: 0, at: now() });
    if let Some(record) = team.member_record(name)? {
        team.change_record(name, &record.incarnation, |record| record.restart = restart)?;
    }
    Ok(())
}

/// Returns true if the member runs under its new name already.
fn is_begun(team: &TeamStore, from: &MemberName, to: &MemberName) -> Result<bool, OpsError> {
    let roster = team.team()?;
    let runs = roster.member(to).is_some() && roster.member(from).is_none();
    Ok(runs && is_last_change(team, from, to)?)
}

/// Returns true if the last change of one of these names was this one, and the old name has not
/// been started since.
fn is_last_change(team: &TeamStore, from: &MemberName, to: &MemberName) -> Result<bool, OpsError> {
    let events = team.events()?;
    let is_about = |event: &&Event, name: &MemberName| event.member.as_ref() == Some(name);
    let last = events.iter().rev().find(|event| match event.event {
        EventKind::MemberRenamed => is_about(event, from) || is_about(event, to),
        EventKind::MemberAsked => is_about(event, from),
        _ => false,
    });
    Ok(last.is_some_and(|event| {
        event.event == EventKind::MemberRenamed
            && is_about(&event, to)
            && wire::text(&event.detail, "from").as_deref() == Some(from.as_str())
    }))
}

fn is_open_of(task: &Task, name: &MemberName) -> bool {
    !task.state.is_over() && task.owner.as_deref() == Some(name.as_str())
}

/// Returns the open tasks that a stopped member still has, and those that it gave back at its end
/// and that are free.
fn left_tasks(team: &TeamStore, from: &MemberName) -> Result<Vec<TaskId>, OpsError> {
    let events = team.events()?;
    let is_its_end = |event: &&Event| {
        event.event == EventKind::MemberLeft && event.member.as_ref() == Some(from)
    };
    let last = events.iter().rev().find(is_its_end);
    let given_back = last.map(|event| wire::texts(&event.detail, "released")).unwrap_or_default();
    let board = team.board()?;
    let is_free = |task: &Task| {
        !task.state.is_over() && task.owner.is_none() && given_back.contains(&task.id.to_string())
    };
    let due = board.tasks.values().filter(|task| is_open_of(task, from) || is_free(task));
    Ok(due.map(|task| task.id).collect())
}

fn move_settings(team: &TeamStore, from: &MemberName, to: &MemberName) -> Result<(), OpsError> {
    if team.review()? != TeamReview::default() {
        team.change_review(|review| {
            review.rename(from, to);
            Ok(())
        })?;
    }
    Ok(team.change_settings(|settings: &mut Settings| {
        let (old, new) = (from.to_string(), to.to_string());
        rekey(&mut settings.checkouts, from, to);
        rekey(&mut settings.access.members, &old, &new);
        rekey(&mut settings.rules.members, &old, &new);
        rekey(&mut settings.budgets.members, &old, &new);
        for template in settings.templates.iter_mut().filter(|one| one.spec.name == old) {
            template.spec.name.clone_from(&new);
        }
    })?)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use model::id::TeamName;
    use model::team::Team;
    use model::time::Timestamp;
    use store::Store;

    fn stage() -> (TempDir, TeamStore) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let name = TeamName::new("demo").expect("name");
        let file = Team::found(&name, "", "team-lead", "session", "/", Timestamp(1));
        let team = Store::at(dir.path()).create(&name, &file, &Settings::by_hand(8));
        (dir, team.expect("a team"))
    }

    fn name(name: &str) -> MemberName {
        MemberName::new(name).expect("name")
    }

    /// SP-18: above all its rules, by which it may not do something.
    #[test]
    fn sp_18_settings_of_a_member_go_to_its_new_name() {
        let (_dir, team) = stage();
        let add = |settings: &mut Settings| {
            for member in ["ann", "bob"] {
                settings.rules.members.insert(member.to_owned(), Default::default());
                settings.access.members.insert(member.to_owned(), Default::default());
                settings.budgets.members.insert(member.to_owned(), Default::default());
            }
        };
        team.change_settings(add).expect("settings");
        move_settings(&team, &name("ann"), &name("parser")).expect("moved");
        let settings = team.settings().expect("read").expect("settings");
        let expected = ["bob", "parser"];
        assert_eq!(settings.rules.members.into_keys().collect::<Vec<_>>(), expected);
        assert_eq!(settings.access.members.into_keys().collect::<Vec<_>>(), expected);
        assert_eq!(settings.budgets.members.into_keys().collect::<Vec<_>>(), expected);
    }

    /// SP-18: only a call that was killed is completed, not one of an earlier member of the name.
    #[test]
    fn sp_18_change_counts_as_begun_until_the_old_name_is_started_again() {
        let (_dir, team) = stage();
        let (ann, parser) = (name("ann"), name("parser"));
        let is_begun = || is_last_change(&team, &ann, &parser).expect("a journal");
        let record = |note: Note| drop(team.record(note).expect("recorded"));
        assert!(!is_begun());
        record(Note::of(EventKind::MemberRenamed).member(&parser).with("from", "ann"));
        record(Note::of(EventKind::MemberRenamed).member(&name("dora")).with("from", "cid"));
        assert!(is_begun(), "another change is between the two calls");
        record(Note::of(EventKind::MemberAsked).member(&ann).with("profile", "worker"));
        assert!(!is_begun());
    }
}
