//! Tests of checks, approvals, conflicts and dropped work.

use super::super::checks::{self, CheckedWork};
use super::super::conflicts;
use super::super::decide::{Approval, approve, drop_work};
use super::super::landing;
use super::*;
use crate::board::task;
use model::board::task::{TaskAction, TaskState};
use model::id::TaskId;
use model::review::CheckEnd;
use model::team::check::TeamCheck;
use model::team::worktree::{Checkout, LandingIntent};
use store::{NewTask, TaskStep};
use worktree::Landing;

impl Stage {
    fn set_checks(&self, checks: &[(&str, &str)]) {
        let checks: Vec<TeamCheck> = checks
            .iter()
            .map(|(name, script)| TeamCheck {
                name: (*name).to_owned(),
                run: ["sh", "-c", script].map(str::to_owned).to_vec(),
                timeout: Some(if script.contains("sleep") { 1 } else { 60 }),
            })
            .collect();
        let set = |settings: &mut Settings| settings.checks.clone_from(&checks);
        self.team.change_settings(set).expect("settings");
    }

    fn run_checks(&self, member: &str) -> CheckedWork {
        let cancel = CancelToken::default();
        checks::run(&self.ctx, &self.team, &name(member), &[], &cancel).expect("they run")
    }

    fn require(&self, member: &str) -> Result<String, String> {
        let cancel = CancelToken::default();
        checks::require(&self.ctx, &self.team, &name(member), &cancel).map_err(|e| e.to_string())
    }

    /// Puts a task of the member into review.
    fn task_in_review(&self, member: &str) -> TaskId {
        let new = NewTask { subject: "Tokens".to_owned(), ..NewTask::default() };
        let id = task::create(&self.ctx, &self.team, &[new]).expect("a task")[0].id;
        for action in [TaskAction::Claim, TaskAction::Review] {
            let step = TaskStep::of(action);
            self.team.step_task(id, &name(member), &step, crate::now()).expect("a step");
        }
        id
    }

    fn state(&self, id: TaskId) -> TaskState {
        task::get(&self.team, id).expect("it is there").state
    }

    fn approve(&self, member: &str, approval: &Approval) -> Result<bool, String> {
        let cancel = CancelToken::default();
        let done = approve(&self.ctx, &self.team, &name(member), approval, &cancel);
        done.map(|report| report.landed.is_some()).map_err(|e| e.to_string())
    }

    fn waiting(&self) -> Vec<String> {
        self.overview().work.iter().map(|row| row.name.to_string()).collect()
    }
}

/// RV-24: results count for the files on which the checks have run, and for nothing else.
#[test]
fn rv_24_results_of_checks_count_for_the_files_that_were_checked() {
    let stage = Stage::new(&["ada", "bob"]);
    stage.sh_of("ada", "echo x >>a.txt; git commit -qam x");
    stage.set_checks(&[("test", "test -e good"), ("lint", "echo out; echo bad >&2; exit 3")]);
    let done = stage.run_checks("ada");
    let ends: Vec<_> = done.checks.iter().map(|of| of.last.as_ref().expect("it ran")).collect();
    assert_eq!(ends[0].end, CheckEnd::Failed { exit: 1 });
    assert_eq!(
        (&ends[1].end, ends[1].output.as_str()),
        (&CheckEnd::Failed { exit: 3 }, "out\nbad")
    );
    assert!(!done.has_passed());
    let row = |member: &str| {
        let found = stage.overview().work.into_iter().find(|row| row.name == name(member));
        found.expect("it has work").checks
    };
    assert_eq!(row("ada"), done.checks);
    // Other files have no results.
    stage.sh_of("ada", "echo y >>a.txt");
    assert!(row("ada").iter().all(|check| check.last.is_none()));
    stage.sh_of("ada", "git checkout -q a.txt");
    assert_eq!(row("ada"), done.checks);
    stage.sh_of("bob", "echo x >>b.txt");
    assert!(row("bob").iter().all(|check| check.last.is_none()));
    // A check that changes what it checks proves nothing.
    stage.set_checks(&[("test", "echo z >>b.txt")]);
    let done = stage.run_checks("ada");
    assert!(done.changed && !done.has_passed());
    assert!(row("ada").iter().all(|check| check.last.is_none()));
    stage.sh_of("ada", "git checkout -q b.txt");
    // Late, not startable, unknown.
    stage.set_checks(&[("slow", "sleep 600")]);
    let done = stage.run_checks("ada");
    assert_eq!(done.checks[0].last.as_ref().expect("it ran").end, CheckEnd::Late { after_s: 1 });
    let cancel = CancelToken::default();
    let (ctx, team) = (&stage.ctx, &stage.team);
    let unknown = checks::run(ctx, team, &name("ada"), &["tset".to_owned()], &cancel);
    assert!(unknown.expect_err("unknown").to_string().contains("no check `tset`"));
    cancel.cancel();
    assert!(checks::run(ctx, team, &name("ada"), &[], &cancel).is_err());
}

/// RV-25: the code of a member runs without the identity of the lead.
#[test]
fn rv_25_check_has_no_token_of_the_lead() {
    let mut stage = Stage::new(&["ada"]);
    stage.ctx.caller.env.push(("PHALANX_TOKEN".into(), "secret".into()));
    stage.ctx.caller.env.push(("AWS_KEY".into(), "key".into()));
    stage.sh_of("ada", "echo x >>a.txt");
    let deny = |settings: &mut Settings| settings.env.deny = vec!["AWS_*".to_owned()];
    stage.team.change_settings(deny).expect("settings");
    stage.set_checks(&[("test", "env; pwd")]);
    let done = stage.run_checks("ada");
    let output = &done.checks[0].last.as_ref().expect("it ran").output;
    assert!(!output.contains("secret") && !output.contains("AWS_KEY"), "{output}");
    assert!(output.contains("HOME=") && output.ends_with("demo-ada"), "{output}");
}

#[test]
fn work_is_checked_before_it_lands_and_only_once() {
    let stage = Stage::new(&["ada"]);
    stage.sh_of("ada", "echo x >>a.txt");
    stage.set_checks(&[(
        "test",
        "echo ran >>\"$(git rev-parse --git-dir)/runs\"; test -e good.txt",
    )]);
    assert!(stage.require("ada").expect_err("uncommitted").contains("are not committed"));
    stage.sh_of("ada", "git commit -qam x");
    let refused = stage.require("ada").expect_err("it fails");
    assert!(refused.contains("check test failed with exit code 1"), "{refused}");
    stage.sh_of("ada", "echo >good.txt; git add .; git commit -qm good");
    let head = stage.sh_of("ada", "git rev-parse HEAD");
    assert_eq!(stage.require("ada"), Ok(head.clone()));
    assert_eq!(stage.require("ada"), Ok(head));
    assert_eq!(stage.sh_of("ada", "wc -l <\"$(git rev-parse --git-dir)/runs\"").trim(), "2");
}

/// RV-26: an approval that lands is done as a whole, or not at all.
#[test]
fn rv_26_nothing_is_approved_if_the_work_cannot_land() {
    let stage = Stage::new(&["ada", "bob"]);
    let squash = Approval { landing: Some(LandingKind::Squash), ..Approval::default() };
    assert!(stage.approve("ada", &squash).expect_err("no task").contains("no task in review"));
    stage.sh_of("ada", "sed -i 2s/.*/two/ a.txt; git commit -qam two");
    stage.sh_of("bob", "sed -i 2s/.*/zwei/ a.txt; git commit -qam zwei");
    let (first, second) = (stage.task_in_review("ada"), stage.task_in_review("bob"));
    let shown = stage.reviewed("ada").snapshot;
    stage.sh_of("ada", "echo more >>b.txt");
    let seen = Approval { commit: Some(shown), ..squash.clone() };
    assert!(stage.approve("ada", &seen).expect_err("changed").contains("has changed"));
    let uncommitted = stage.approve("ada", &squash).expect_err("uncommitted");
    assert!(uncommitted.contains("not committed"), "{uncommitted}");
    stage.set_checks(&[("test", "false")]);
    stage.sh_of("ada", "git commit -qam more");
    let checked = Approval { checks: true, ..squash.clone() };
    assert!(stage.approve("ada", &checked).expect_err("it fails").contains("check test failed"));
    assert_eq!(stage.state(first), TaskState::InReview);
    let seen = stage.reviewed("ada").snapshot[..8].to_owned();
    let seen = Approval { commit: Some(seen), ..squash.clone() };
    assert_eq!(stage.approve("ada", &seen), Ok(true));
    assert_eq!(stage.state(first), TaskState::Completed);
    let conflict = stage.approve("bob", &squash).expect_err("a conflict");
    assert!(conflict.contains("a.txt"), "{conflict}");
    assert_eq!(stage.state(second), TaskState::InReview);
    assert_eq!(stage.approve("bob", &Approval::default()), Ok(false));
    assert_eq!(
        (stage.state(second), stage.waiting()),
        (TaskState::Completed, vec!["bob".to_owned()])
    );
}

impl Stage {
    fn checkout(&self, member: &str) -> Checkout {
        let settings = self.team.settings().expect("settings").expect("settings");
        settings.checkouts[&name(member)].clone()
    }

    fn undo(&self) -> Result<String, String> {
        let done = landing::take_back(&self.ctx, &self.team);
        done.map(|report| report.name.to_string()).map_err(|e| e.to_string())
    }
}

/// RV-35: a file of the person in the way refuses the landing with its approval.
#[test]
fn rv_35_nothing_is_approved_if_a_file_is_in_the_way_of_the_work() {
    let stage = Stage::new(&["ada"]);
    stage.sh_of("ada", "echo new >new.txt; git add .; git commit -qm new");
    let id = stage.task_in_review("ada");
    let merge = Approval { landing: Some(LandingKind::Merge), ..Approval::default() };
    for (before, after) in [
        ("echo mine >new.txt", "rm new.txt"),
        ("touch .git/refs/heads/main.lock", "rm .git/refs/heads/main.lock"),
    ] {
        stage.sh(&stage.top(), before);
        let status = stage.sh(&stage.top(), "git status --porcelain");
        stage.approve("ada", &merge).expect_err(before);
        assert_eq!(stage.state(id), TaskState::InReview, "{before}");
        assert_eq!(stage.sh(&stage.top(), "git status --porcelain"), status, "{before}");
        assert_eq!((stage.checkout("ada").landing, stage.checkout("ada").landed.len()), (None, 0));
        stage.sh(&stage.top(), after);
    }
    assert_eq!(stage.approve("ada", &merge), Ok(true));
    assert_eq!(stage.state(id), TaskState::Completed);
}

/// RV-35: what a killed process has recorded is finished, or has not begun if git refuses it. A
/// landing whose task cannot be approved any more is taken back.
#[test]
fn rv_35_landing_of_a_killed_process_is_finished_or_taken_back() {
    for (before, state, landings) in [
        ("", TaskState::Completed, 1),
        ("echo mine >new.txt", TaskState::InReview, 0),
        ("reject", TaskState::InProgress, 0),
    ] {
        let stage = Stage::new(&["ada"]);
        stage.sh_of("ada", "echo new >new.txt; git add .; git commit -qm new");
        let (id, head) = (stage.task_in_review("ada"), stage.reviewed("ada").head);
        let repository = Repository::find(&stage.top(), &stage.ctx.caller.env).expect("there");
        let landing = Landing {
            head: &head,
            from: "x",
            kind: LandingKind::Squash,
            message: None,
            title: None,
        };
        let work = repository.prepare(&stage.checkout("ada"), &landing).expect("prepared");
        let intent = LandingIntent {
            work,
            takes_back: false,
            task: Some((id, TaskAction::Approve)),
            by: MemberName::lead(),
            event: "e1".to_owned(),
        };
        let begin = |settings: &mut Settings| {
            settings.checkouts.get_mut(&name("ada")).expect("there").landing = Some(intent.clone());
        };
        stage.team.change_settings(begin).expect("settings");
        if before == "reject" {
            let step = TaskStep { reason: Some("no".into()), ..TaskStep::of(TaskAction::Reject) };
            let lead = MemberName::lead();
            stage.team.step_task(id, &lead, &step, crate::now()).expect("a step");
        } else {
            stage.sh(&stage.top(), before);
        }
        let held = repository.lock_landings().expect("the lock");
        landing::finish(&stage.ctx, &stage.team).expect("another process lands");
        assert_ne!(stage.checkout("ada").landing, None, "{before}");
        drop(held);
        let done = landing::finish(&stage.ctx, &stage.team);
        assert_eq!(done.is_err(), before == "reject", "{before}: {done:?}");
        let checkout = stage.checkout("ada");
        assert_eq!((checkout.landing, checkout.landed.len()), (None, landings), "{before}");
        assert_eq!(stage.state(id), state, "{before}");
        let subject = stage.sh(&stage.top(), "git log -1 --format=%s");
        assert_eq!(subject, if landings == 1 { "new" } else { "first" }, "{before}");
    }
}

/// RV-36: landings are taken back in the reverse order, of whichever member they are.
#[test]
fn rv_36_landings_of_all_members_are_taken_back_in_reverse() {
    let stage = Stage::new(&["ada", "bob"]);
    let merge = Approval { landing: Some(LandingKind::Squash), ..Approval::default() };
    for (n, member) in ["ada", "bob", "ada"].into_iter().enumerate() {
        stage.sh_of(member, &format!("echo {n} >{n}.txt; git add .; git commit -qm {n}"));
        stage.task_in_review(member);
        assert_eq!(stage.approve(member, &merge), Ok(true));
    }
    assert_eq!(stage.checkout("ada").landed.len(), 2);
    for member in ["ada", "bob", "ada"] {
        assert_eq!(stage.undo().as_deref(), Ok(member));
    }
    assert_eq!(stage.sh(&stage.top(), "git log -1 --format=%s"), "first");
    assert!(stage.undo().expect_err("none").contains("is left to take back"));
}

#[test]
fn conflicts_are_shown_by_line() {
    let stage = Stage::new(&["ada"]);
    let give = || conflicts::give_task(&stage.ctx, &stage.team, &name("ada"));
    stage.sh_of("ada", "sed -i 2s/.*/ada/ a.txt; git rm -q b.txt; git commit -qam ada");
    assert!(give().expect_err("no conflict").to_string().contains("no conflicts"));
    stage.sh(
        &stage.top(),
        "sed -i 2s/.*/main/ a.txt; sed -i 2s/.*/main/ b.txt; git commit -qam main",
    );
    let found = conflicts::find(&stage.ctx, &stage.team, &name("ada")).expect("git answers");
    let [a, b] = &found.files[..] else { panic!("{found:?}") };
    let expected =
        ["1", "<<<<<<< main", "main", "=======", "ada", ">>>>>>> demo-ada", "3", "4", "5"];
    assert_eq!(
        (a.path.as_str(), a.hunks[0].first, &a.hunks[0].lines[..]),
        ("a.txt", 1, &expected.map(str::to_owned)[..])
    );
    assert_eq!((b.path.as_str(), b.hunks.len()), ("b.txt", 0));
    assert!(b.reason.starts_with("CONFLICT (modify/delete)"), "{}", b.reason);
}

#[test]
fn dropped_work_is_off_the_list_until_it_changes() {
    let stage = Stage::new(&["ada"]);
    stage.sh_of("ada", "echo x >>a.txt; git commit -qam x; echo y >>a.txt");
    let id = stage.task_in_review("ada");
    let shown = stage.reviewed("ada").snapshot;
    let other = drop_work(&stage.ctx, &stage.team, &name("ada"), Some(&"0".repeat(40)));
    assert!(other.expect_err("changed").to_string().contains("has changed"));
    assert_eq!(stage.waiting(), ["ada"]);
    let done = drop_work(&stage.ctx, &stage.team, &name("ada"), Some(&shown)).expect("it drops");
    assert_eq!((done.task, done.commit), (Some(id), shown));
    assert_eq!((stage.state(id), stage.waiting().len()), (TaskState::Cancelled, 0));
    assert_eq!(stage.sh_of("ada", "git status --porcelain"), " M a.txt", "nothing is lost");
    stage.sh_of("ada", "echo z >>a.txt");
    assert_eq!(stage.waiting(), ["ada"]);
}
