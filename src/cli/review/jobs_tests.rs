//! Tests of the threads of a review, with a team that is made up.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::jobs::ReviewJobs;
use super::source::{PatchRange, ReviewSource, ReviewedWork};
use model::id::MemberName;
use model::review::{PlacedComment, ReviewLook};
use sys::clock::{Deadline, sleep};
use sys::exec::CancelToken;
use ui::review::{
    ChangesRequest, DiffRange, ReviewAction, ReviewEffect, ReviewNews, WorkList, WorkObject,
};

const PATCH: &str =
    "diff --git a/x b/x\nindex 1111111..2222222 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
const LIMIT: Duration = Duration::from_secs(20);

/// A team whose calls are recorded.
#[derive(Default)]
struct FakeTeam {
    calls: Mutex<Vec<String>>,
    /// Members whose patch is not made before it is cancelled.
    stuck: Vec<&'static str>,
    /// True once actions may go on.
    gate: (Mutex<bool>, Condvar),
    looks: Mutex<VecDeque<Option<ReviewLook>>>,
}

impl FakeTeam {
    fn note(&self, call: String) {
        self.calls.lock().expect("the calls").push(call);
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().expect("the calls").clone()
    }

    fn open_gate(&self) {
        *self.gate.0.lock().expect("the gate") = true;
        self.gate.1.notify_all();
    }
}

impl ReviewSource for FakeTeam {
    fn works(&self) -> Result<WorkList, String> {
        self.note("works".to_owned());
        Ok(WorkList::default())
    }

    fn reviewed(&self, member: &MemberName, _cancel: &CancelToken) -> Result<ReviewedWork, String> {
        if member.as_str() == "bad" {
            panic!("a bug");
        }
        let object = WorkObject {
            member: member.clone(),
            from: format!("demo-{member}"),
            into: "main".to_owned(),
            base: "base".to_owned(),
            head: "head".to_owned(),
            snapshot: "snapshot".to_owned(),
            uncommitted: 0,
            task: None,
        };
        Ok(ReviewedWork { object, nested: Vec::new() })
    }

    fn patch(
        &self,
        member: &MemberName,
        range: &PatchRange<'_>,
        cancel: &CancelToken,
    ) -> Result<Vec<u8>, String> {
        self.note(format!("patch {member} {}..{}", range.from, range.to));
        let limit = Deadline::after(LIMIT);
        while self.stuck.contains(&member.as_str()) && !cancel.is_cancelled() {
            assert!(!limit.expired(), "cancelled in time");
            sleep(Duration::from_millis(2));
        }
        if cancel.is_cancelled() {
            self.note(format!("cancelled {member}"));
        }
        Ok(PATCH.as_bytes().to_vec())
    }

    fn content(
        &self,
        member: &MemberName,
        blob: &str,
        _largest: usize,
        _cancel: &CancelToken,
    ) -> Result<Vec<u8>, String> {
        self.note(format!("content {member} {blob}"));
        Ok(b"fn f() {}\n".to_vec())
    }

    fn comments(&self, member: &MemberName, _: &str) -> Result<Vec<PlacedComment>, String> {
        self.note(format!("comments {member}"));
        Ok(Vec::new())
    }

    fn look(&self, _: &MemberName) -> Result<Option<ReviewLook>, String> {
        Ok(self.looks.lock().expect("the looks").pop_front().flatten())
    }

    fn message(&self, member: &MemberName) -> Result<String, String> {
        self.note(format!("message {member}"));
        Ok("Review".to_owned())
    }

    fn conflicts(&self, member: &MemberName) -> Result<String, String> {
        self.note(format!("conflicts {member}"));
        Ok("none".to_owned())
    }

    fn perform(&self, action: &ReviewAction, cancel: &CancelToken) -> Result<String, String> {
        if matches!(action, ReviewAction::Check { .. }) {
            self.note("checking".to_owned());
            let limit = Deadline::after(LIMIT);
            while !cancel.is_cancelled() {
                assert!(!limit.expired(), "cancelled in time");
                sleep(Duration::from_millis(2));
            }
            self.note("ended".to_owned());
            return Ok("done".to_owned());
        }
        let open = self.gate.0.lock().expect("the gate");
        let waited = self.gate.1.wait_timeout_while(open, LIMIT, |is_open| !*is_open);
        drop(waited.expect("the gate"));
        self.note(format!("perform {:?}", action.member().map(MemberName::as_str)));
        Ok("done".to_owned())
    }

    fn watch(&self, on_change: Box<dyn Fn() + Send>) -> Result<Box<dyn Any>, String> {
        Ok(Box::new(on_change))
    }
}

fn name(name: &str) -> MemberName {
    MemberName::existing(name).expect("a name")
}

fn request(number: u64, member: &str, range: DiffRange) -> ReviewEffect {
    let member = name(member);
    ReviewEffect::Open(ChangesRequest {
        number,
        member,
        range,
        look: None,
        ignores_whitespace: false,
    })
}

fn started(team: FakeTeam) -> (Arc<FakeTeam>, ReviewJobs, UnboundedReceiver<ReviewNews>) {
    let team = Arc::new(team);
    let (sender, news) = unbounded_channel();
    let source: Arc<dyn ReviewSource> = team.clone();
    let jobs = ReviewJobs::start(source, sender).expect("threads");
    (team, jobs, news)
}

/// Returns the next news, which must come in time.
pub(super) fn next(news: &mut UnboundedReceiver<ReviewNews>) -> ReviewNews {
    let limit = Deadline::after(LIMIT);
    loop {
        match news.try_recv() {
            Ok(news) => return news,
            Err(_) => assert!(!limit.expired(), "news in time"),
        }
        sleep(Duration::from_millis(2));
    }
}

/// RV-16: of two requests, only the later one has a result.
#[test]
fn rv_16_request_for_changes_cancels_the_one_before() {
    let (team, mut jobs, mut news) =
        started(FakeTeam { stuck: vec!["ada"], ..FakeTeam::default() });
    jobs.take(request(1, "ada", DiffRange::All));
    jobs.take(request(2, "bob", DiffRange::All));
    let ReviewNews::Opened { number: 2, work: Ok(work) } = next(&mut news) else {
        panic!("no changes of bob")
    };
    assert_eq!((work.object.from.as_str(), work.patch.files.len()), ("demo-bob", 1));
    jobs.take(request(3, "ada", DiffRange::All));
    jobs.take(ReviewEffect::Cancel);
    let limit = Deadline::after(LIMIT);
    while team.calls().iter().filter(|call| *call == "cancelled ada").count() < 2 {
        assert!(!limit.expired(), "cancelled in time: {:?}", team.calls());
        sleep(Duration::from_millis(2));
    }
    assert!(news.try_recv().is_err());
}

#[test]
fn range_decides_which_commits_are_compared() {
    let look = |commit: &str| {
        let viewed = [("x".to_owned(), "2222222".to_owned())].into_iter().collect();
        Some(ReviewLook { commit: commit.to_owned(), at: model::time::Timestamp(1), viewed })
    };
    let looks = [None, None, look("seen"), look("")].into();
    let (team, mut jobs, mut news) =
        started(FakeTeam { looks: Mutex::new(looks), ..FakeTeam::default() });
    for (number, range) in
        [DiffRange::All, DiffRange::Uncommitted, DiffRange::SinceLook].into_iter().enumerate()
    {
        jobs.take(request(number as u64, "ada", range));
        assert!(matches!(next(&mut news), ReviewNews::Opened { work: Ok(_), .. }));
    }
    let patches: Vec<String> =
        team.calls().into_iter().filter(|call| call.starts_with("patch")).collect();
    let expected =
        ["patch ada base..snapshot", "patch ada head..snapshot", "patch ada seen..snapshot"];
    assert_eq!(patches, expected);
    jobs.take(request(9, "ada", DiffRange::SinceLook));
    assert!(matches!(next(&mut news), ReviewNews::Opened { number: 9, work: Err(_) }));
}

/// RV-17: what was being saved is saved before the program ends, and read after it was saved.
#[test]
fn rv_17_actions_are_done_in_order_and_before_the_end() {
    let (team, mut jobs, mut news) = started(FakeTeam::default());
    for member in ["ada", "bob"] {
        let commit = "snapshot".to_owned();
        let action = ReviewAction::NoteLook { member: name(member), commit };
        jobs.take(ReviewEffect::Perform(action));
    }
    let snapshot = "snapshot".to_owned();
    jobs.take(ReviewEffect::ReadComments { member: name("ada"), snapshot });
    jobs.take(ReviewEffect::ReadMessage { number: 4, member: name("ada") });
    assert!(news.try_recv().is_err(), "the first action has not ended");
    team.open_gate();
    drop(jobs);
    let expected =
        ["perform Some(\"ada\")", "perform Some(\"bob\")", "comments ada", "message ada"];
    assert_eq!(team.calls(), expected);
    assert!(matches!(next(&mut news), ReviewNews::Done { words: Ok(_), .. }));
}

/// RV-19: a bug in a thread becomes a message on the screen.
#[test]
fn rv_19_panic_of_a_thread_is_a_problem_on_the_screen() {
    let (_team, mut jobs, mut news) = started(FakeTeam::default());
    jobs.take(request(1, "bad", DiffRange::All));
    let ReviewNews::Opened { number: 1, work: Err(problem) } = next(&mut news) else {
        panic!("no problem")
    };
    assert!(problem.contains("internal error"), "{problem}");
    jobs.take(ReviewEffect::ReadList);
    assert_eq!(next(&mut news), ReviewNews::List(Ok(WorkList::default())));
}

/// RV-23: checks take long. They hold up no other action, and end with the program.
#[test]
fn rv_23_checks_hold_up_no_action_and_end_with_the_screen() {
    let (team, mut jobs, mut news) = started(FakeTeam::default());
    team.open_gate();
    let commit = "snapshot".to_owned();
    let check = ReviewAction::Check { member: name("ada"), commit: commit.clone() };
    jobs.take(ReviewEffect::Perform(check));
    let limit = Deadline::after(LIMIT);
    while !team.calls().contains(&"checking".to_owned()) {
        assert!(!limit.expired(), "started in time");
        sleep(Duration::from_millis(2));
    }
    jobs.take(ReviewEffect::Perform(ReviewAction::NoteLook { member: name("bob"), commit }));
    let done = next(&mut news);
    assert!(matches!(done, ReviewNews::Done { action: ReviewAction::NoteLook { .. }, .. }));
    drop(jobs);
    assert_eq!(team.calls(), ["checking", "perform Some(\"bob\")", "ended"]);
}
