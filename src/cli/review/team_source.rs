//! The team as the screen of a review uses it. Each call performs one operation, after the check
//! that the caller may, and that the work is still the one that was on the screen.

use std::any::Any;
use std::slice;

use super::source::{PatchRange, ReviewSource, ReviewedWork};
use model::id::{HostName, MemberName};
use model::review::{PlacedComment, ReviewLook};
use ops::authority::{self, Action};
use ops::review::changes::{self, PatchOptions};
use ops::review::checks::{self, WorkCheck};
use ops::review::comments::{self, NewComment};
use ops::review::decide::{self, Approval};
use ops::review::landing::{self, LandRequest};
use ops::review::overview::{self, ReviewOverview, ReviewRow};
use ops::review::tasks;
use ops::review::{conflicts, place, send};
use ops::{Context, OpsError, TeamStore};
use sys::exec::CancelToken;
use ui::review::{ListedWork, ReviewAction, SeenWork, WorkList, WorkObject};

/// The team, for the caller.
pub(super) struct TeamSource {
    pub(super) ctx: Context,
    pub(super) team: TeamStore,
}

impl ReviewSource for TeamSource {
    fn works(&self) -> Result<WorkList, String> {
        let found = || {
            authority::enter(&self.ctx, &self.team, Action::Look, &[])?;
            overview::overview(&self.ctx, &self.team)
        };
        found().map(work_list).map_err(text)
    }

    fn reviewed(&self, member: &MemberName, cancel: &CancelToken) -> Result<ReviewedWork, String> {
        let found = || {
            self.enter(Action::Look, member)?;
            let reviewed = changes::reviewed(&self.ctx, &self.team, member, cancel)?;
            let task = tasks::open_task(&self.team.board()?, member);
            let object = WorkObject {
                member: member.clone(),
                from: reviewed.from,
                into: reviewed.into,
                base: reviewed.base,
                head: reviewed.head,
                snapshot: reviewed.snapshot,
                uncommitted: reviewed.uncommitted,
                task,
            };
            Ok::<_, OpsError>(ReviewedWork { object, nested: reviewed.nested })
        };
        found().map_err(text)
    }

    fn patch(
        &self,
        member: &MemberName,
        range: &PatchRange<'_>,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>, String> {
        let options = PatchOptions {
            ignores_whitespace: range.ignores_whitespace,
            ..PatchOptions::default()
        };
        let (ctx, team) = (&self.ctx, &self.team);
        changes::patch(ctx, team, member, range.from, range.to, &options, cancel).map_err(text)
    }

    fn content(
        &self,
        member: &MemberName,
        blob: &str,
        largest: usize,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>, String> {
        changes::content(&self.ctx, &self.team, member, blob, largest, cancel).map_err(text)
    }

    fn comments(&self, member: &MemberName, snapshot: &str) -> Result<Vec<PlacedComment>, String> {
        place::placed(&self.ctx, &self.team, member, snapshot).map_err(text)
    }

    fn look(&self, member: &MemberName) -> Result<Option<ReviewLook>, String> {
        comments::look(&self.ctx, &self.team, member).map_err(text)
    }

    fn conflicts(&self, member: &MemberName) -> Result<String, String> {
        let found = conflicts::find(&self.ctx, &self.team, member).map_err(text)?;
        Ok(ui::work_conflicts(&found))
    }

    fn message(&self, member: &MemberName) -> Result<String, String> {
        send::message(&self.ctx, &self.team, member).map_err(text)
    }

    fn perform(&self, action: &ReviewAction, cancel: &CancelToken) -> Result<String, String> {
        self.carry_out(action, cancel).map_err(text)
    }

    fn watch(&self, on_change: Box<dyn Fn() + Send>) -> Result<Box<dyn Any>, String> {
        let watch = self.team.watch(move |_| on_change());
        watch.map(|watch| Box::new(watch) as Box<dyn Any>).map_err(|e| text(e.into()))
    }
}

impl TeamSource {
    fn enter(&self, action: Action, member: &MemberName) -> Result<(), OpsError> {
        authority::enter(&self.ctx, &self.team, action, slice::from_ref(member))
    }

    fn carry_out(&self, action: &ReviewAction, cancel: &CancelToken) -> Result<String, OpsError> {
        let (ctx, team) = (&self.ctx, &self.team);
        match action {
            ReviewAction::Draft { member, kind, place, base, commit, text } => {
                self.enter(Action::Talk, member)?;
                let new = NewComment {
                    member: member.clone(),
                    kind: *kind,
                    place: place.clone(),
                    base: base.clone(),
                    commit: commit.clone(),
                    text: text.clone(),
                };
                let made = comments::draft(ctx, team, new)?;
                Ok(format!("{} is kept as a draft", made.id))
            }
            ReviewAction::Revise { member, id, kind, text } => {
                self.enter(Action::Talk, member)?;
                comments::revise(ctx, team, *id, *kind, text)?;
                Ok(format!("{id} is changed"))
            }
            ReviewAction::Discard { member, id } => {
                self.enter(Action::Talk, member)?;
                comments::discard(ctx, team, *id)?;
                Ok(format!("{id} is discarded"))
            }
            ReviewAction::Resolve { member, id } => {
                self.enter(Action::Talk, member)?;
                comments::resolve(ctx, team, *id)?;
                Ok(format!("{id} is resolved"))
            }
            ReviewAction::Reopen { member, id, text } => {
                self.enter(Action::Talk, member)?;
                let report = send::reopen(ctx, team, *id, text)?;
                Ok(ui::sent_review(&report))
            }
            ReviewAction::Send { member, commit: _, message } => {
                self.enter(Action::Talk, member)?;
                if send::message(ctx, team, member)? != *message {
                    return Err(changed("the drafts have changed"));
                }
                let report = send::send(ctx, team, member)?;
                Ok(ui::sent_review(&report))
            }
            ReviewAction::Approve { member, task, commit, landing } => {
                self.enter(Action::DecideTask, member)?;
                if landing.is_some() {
                    self.enter(Action::LandWork, member)?;
                }
                if tasks::task_in_review(team, member)?.is_none_or(|found| found.id != *task) {
                    return Err(changed(&format!("task #{task} is not in review: it has changed")));
                }
                let approval = Approval {
                    commit: Some(commit.clone()),
                    landing: *landing,
                    leaves_uncommitted: true,
                    checks: false,
                };
                let done = decide::approve(ctx, team, member, &approval, cancel)?;
                let complaints = done.complaints.iter().map(|complaint| format!("; {complaint}"));
                let complaints: String = complaints.collect();
                let landed = done.landed.map(|landed| landed_words(member, &landed.into));
                let landed = landed.map(|words| format!("; {words}")).unwrap_or_default();
                Ok(format!("task #{task} is completed{landed}{complaints}"))
            }
            ReviewAction::Drop { member, commit } => {
                self.enter(Action::DecideTask, member)?;
                let report = decide::drop_work(ctx, team, member, Some(commit))?;
                Ok(ui::dropped_work(&report))
            }
            ReviewAction::Check { member, commit } => {
                self.enter(Action::LandWork, member)?;
                if changes::reviewed(ctx, team, member, cancel)?.snapshot != *commit {
                    return Err(changed("the work has changed"));
                }
                let done = checks::run(ctx, team, member, &[], cancel)?;
                let results: Vec<String> = done.checks.iter().map(WorkCheck::words).collect();
                let words = format!("{member}: {}", results.join(", "));
                if done.has_passed() {
                    return Ok(words);
                }
                Err(OpsError::Failed { problem: format!("{words}\n{}", ui::checked_work(&done)) })
            }
            ReviewAction::GiveConflicts { member, commit } => {
                self.enter(Action::Task, member)?;
                if conflicts::find(ctx, team, member)?.commit != *commit {
                    return Err(changed("the work has changed"));
                }
                let task = conflicts::give_task(ctx, team, member)?;
                Ok(format!("{member} has task #{}: {}", task.id, task.subject))
            }
            ReviewAction::Land { member, head, kind, completes } => {
                self.enter(Action::LandWork, member)?;
                let open = tasks::open_task(&team.board()?, member);
                let open = open.filter(|task| *completes == Some(task.id));
                let request = LandRequest {
                    kind: *kind,
                    head: Some(head.clone()),
                    message: None,
                    title: None,
                    leaves_uncommitted: true,
                    task: open.map(|task| (task.id, task.ending())),
                };
                let landed = landing::land(ctx, team, member, &request)?;
                Ok(landed_words(member, &landed.into))
            }
            ReviewAction::Undo { into, main } => {
                authority::enter(ctx, team, Action::LandWork, &[])?;
                if overview::main_commit(ctx, team)?.as_ref() != Some(main) {
                    return Err(changed(&format!("{into} has moved")));
                }
                let report = landing::take_back(ctx, team)?;
                Ok(format!("{into} is without the work of {} again", report.name))
            }
            ReviewAction::NoteLook { member, commit } => {
                self.enter(Action::Look, member)?;
                comments::note_look(ctx, team, member, commit)?;
                Ok(String::new())
            }
            ReviewAction::MarkViewed { member, path, blob, viewed } => {
                self.enter(Action::Look, member)?;
                comments::mark_viewed(ctx, team, member, path, blob, *viewed)?;
                Ok(String::new())
            }
        }
    }
}

fn landed_words(member: &MemberName, into: &str) -> String {
    format!("the work of {member} is on {into}; u takes it back")
}

/// Returns the refusal of a decision about something that was on the screen and is different now.
fn changed(what: &str) -> OpsError {
    OpsError::refused(format!("{what} since it was shown"), "look at it again, and decide then")
}

fn text(e: OpsError) -> String {
    match e.hint() {
        Some(hint) => format!("{e}; {hint}"),
        None => e.to_string(),
    }
}

fn work_list(found: ReviewOverview) -> WorkList {
    WorkList {
        into: found.into,
        main: found.main,
        works: found.work.into_iter().map(listed_work).collect(),
        overlaps: found.overlaps,
    }
}

fn listed_work(row: ReviewRow) -> ListedWork {
    let work = row.work.as_ref();
    let seen = match (&row.seen, work) {
        (Some(seen), Ok(work)) if *seen == work.snapshot => SeenWork::All,
        (Some(_), _) => SeenWork::Earlier,
        (None, _) => SeenWork::Never,
    };
    ListedWork {
        from: work.map(|work| work.from.clone()).unwrap_or_default(),
        host: work.ok().and_then(|work| work.host.as_ref()).map(HostName::to_string),
        task: row.open_task,
        seen,
        comments: row.comments,
        checks: row.checks,
        passed_by: row.passed_by,
        member: row.name,
        changes: row.work,
    }
}
