//! The table of the evidence, and rules over its product (ST-01).

use super::*;
use crate::id::MemberName;
use crate::members::lifecycle::MemberState::{
    AwaitingPermission, AwaitingPlan, Completed, Disappeared, Failed, Idle, Killed, Pending,
    ShutdownRequested, Starting, Working,
};
use crate::members::placement::ProcessId;
use crate::members::prompt::PromptSeen;
use crate::members::rate_limit::RateLimit;
use crate::members::record::{ExitRecord, StartRecord, blocked_reason, retrying_reason};
use crate::members::usage::{MemberUsage, TranscriptState, TurnError};
use crate::sample;
use strum::VariantArray;

const NOW: Timestamp = Timestamp(1_000_000);
/// The time since which the record of a case has its state.
const THEN: Timestamp = Timestamp(900_000);

/// What a case may say about a member.
#[derive(Clone)]
struct Case {
    profile: &'static str,
    state: MemberState,
    is_dead: bool,
    is_led: bool,
    is_active: Option<bool>,
    rested_at: Option<Timestamp>,
    untaken: usize,
    mail_since: Timestamp,
    mail_changed_at: Option<Timestamp>,
    request: Option<Need>,
    asked_at: Timestamp,
    task: Option<TaskId>,
    next_task: Option<TaskId>,
    given: Option<TaskId>,
    screen: Option<ScreenSign>,
    reason: Option<String>,
    prompt: Option<&'static str>,
    exit: Option<i32>,
    unresponsive: bool,
    is_limited: bool,
    has_failed: bool,
    restart: bool,
    turn_ended_at: Option<Timestamp>,
}

impl Case {
    fn of(profile: &'static str, state: MemberState) -> Case {
        Case {
            profile,
            state,
            is_dead: false,
            is_led: true,
            is_active: None,
            rested_at: None,
            untaken: 0,
            mail_since: Timestamp(997_000),
            mail_changed_at: None,
            request: None,
            asked_at: Timestamp(990_000),
            task: None,
            next_task: None,
            given: None,
            screen: None,
            reason: None,
            prompt: None,
            exit: None,
            unresponsive: false,
            is_limited: false,
            has_failed: false,
            restart: false,
            turn_ended_at: None,
        }
    }

    fn record(&self) -> MemberRecord {
        let process = ProcessId { pid: 7, start: 9 };
        let exit = self.exit.map(|code| ExitRecord {
            code: Some(code),
            at: Timestamp(950_000),
            ..ExitRecord::default()
        });
        let limit = RateLimit {
            said: "limit reached".to_owned(),
            since: THEN,
            until: None,
            refusals: 1,
            attempts: 0,
            resumed_at: None,
            is_over: false,
            is_reported: false,
        };
        let mut record = MemberRecord {
            state: self.state,
            state_since: THEN,
            reason: self.reason.clone(),
            prompt: self.prompt.map(|line| PromptSeen {
                line: line.to_owned(),
                since: Timestamp(990_000),
                is_announced: false,
            }),
            exit,
            unresponsive: self.unresponsive.then(|| "task #1 was given to it".to_owned()),
            rate_limit: self.is_limited.then_some(limit),
            restart: self
                .restart
                .then_some(PlannedRestart { failures: 2, at: Timestamp(1_004_000) }),
            turn_ended_at: self.turn_ended_at,
            usage: self.has_failed.then(|| MemberUsage {
                transcripts: vec![TranscriptState {
                    error: Some(TurnError {
                        said: "Prompt is too long".to_owned(),
                        needs_login: false,
                        at: Timestamp(950_000),
                    }),
                    ..TranscriptState::default()
                }],
                ..MemberUsage::default()
            }),
            start: Some(StartRecord {
                launcher: process,
                program: process,
                tty: None,
                socket: None,
                cwd: "/".to_owned(),
                at: Timestamp(890_000),
            }),
            ..sample::record("ann", sample::run(1), self.profile, THEN)
        };
        record.request.reads_mail = Some(self.profile != "shell");
        record.request.native = Some(self.profile == "claude");
        record
    }

    fn assess(&self) -> Assessment {
        self.assess_at(NOW)
    }

    fn assess_at(&self, now: Timestamp) -> Assessment {
        let record = self.record();
        let request = self.request.map(|need| OpenRequest {
            need,
            id: "perm-1".to_owned(),
            summary: "Bash: rm -rf out".to_owned(),
            since: self.asked_at,
        });
        assess(&Evidence {
            record: Some(&record),
            is_dead: self.is_dead,
            is_led: self.is_led,
            is_inside: false,
            is_active: self.is_active,
            rested_at: self.rested_at,
            mail: Some(UntakenMail { count: self.untaken, since: Some(self.mail_since) }),
            mail_changed_at: self.mail_changed_at,
            request: request.as_ref(),
            task: self.task,
            next_task: self.next_task,
            given: self.given,
            screen: self.screen.as_ref(),
            now,
        })
    }
}

/// ST-06: a member that has taken its mail and rests answers, whatever it has not begun.
#[test]
fn st_06_member_that_has_not_begun_its_task_is_idle_with_the_reason() {
    let given = Some(TaskId(7));
    let idle = Case { given, is_active: Some(false), ..Case::of("claude", Idle) };
    let found = idle.assess();
    assert_eq!((&found.doing, found.reason.as_deref()), (&Doing::Idle, Some("has not begun #7")));
    let late = Case { untaken: 1, mail_since: Timestamp(0), ..idle };
    assert_eq!(late.assess().doing, Doing::Unresponsive, "it has not taken the assignment");
    let works = Case { given, task: Some(TaskId(6)), ..Case::of("codex", Idle) };
    assert_eq!(works.assess().reason, None, "it has a task");
}

/// ST-05: the screen of a program shows the same while its request is open and after it was lost.
#[test]
fn st_05_request_that_was_never_sent_is_shown_by_the_screen() {
    let says_so = ScreenSign::Waits(Need::Approval, "Waiting for team lead approval".to_owned());
    let mut case = Case { screen: Some(says_so), ..Case::of("claude", Working) };
    assert_eq!(case.assess().doing, Doing::Waiting(Need::Approval));
    case.request = Some(Need::Permission);
    assert_eq!(case.assess().doing, Doing::Waiting(Need::Permission));
}

/// Changes a case; a row of the table applies several.
type Change = fn(&mut Case);

#[test]
fn each_combination_of_evidence_has_one_state() {
    let waits = Doing::Waiting;
    let table: &[(&str, MemberState, &[Change], Doing)] = &[
        // Starts.
        ("claude", Pending, &[], Doing::Starting),
        ("codex", Starting, &[], Doing::Starting),
        ("codex", Starting, &[trust], waits(Need::Trust)),
        ("claude", Starting, &[|c| c.screen = login_screen()], waits(Need::Login)),
        // Claude Code says in the team file whether it works; the record follows later.
        ("claude", Idle, &[|c| c.is_active = Some(true)], Doing::Working),
        ("claude", Idle, &[|c| c.is_active = Some(false)], Doing::Idle),
        ("claude", Working, &[|c| c.is_active = Some(false)], Doing::Idle),
        ("claude", Working, &[|c| c.is_active = Some(true)], Doing::Working),
        ("claude", Idle, &[|c| c.is_active = Some(false), mail], Doing::Working),
        // It did not find its team: only its screen shows that it works.
        (
            "claude",
            Idle,
            &[|c| c.is_active = Some(false), |c| c.screen = Some(ScreenSign::Working)],
            Doing::Working,
        ),
        // 2.1.34 has marked its mail as read and has not yet said that it works.
        ("claude", Idle, &[|c| c.is_active = Some(false), took_mail], Doing::Working),
        ("claude", Idle, &[|c| c.is_active = Some(false), took_mail, turn_ended], Doing::Working),
        // ST-02: mail that it took during its turn begins the next one; its screen rests before.
        ("claude", Idle, &[rests, took_mail_long_ago, turn_ended], Doing::Working),
        ("claude", Idle, &[rests, took_mail_long_ago, turn_ended_before], Doing::Idle),
        // The lead has yet to record the end, after which it begins the next turn as above.
        ("claude", Working, &[rests, took_mail_long_ago, rested], Doing::Working),
        ("claude", Working, &[rests, took_mail_long_ago, rested_before], Doing::Idle),
        ("claude", Idle, &[rests, turn_ended], Doing::Idle),
        ("codex", Idle, &[took_mail_long_ago, turn_ended], Doing::Idle),
        ("claude", Idle, &[|c| c.is_active = Some(false), took_mail_long_ago], Doing::Idle),
        ("claude", AwaitingPermission, &[|c| c.is_active = Some(true)], waits(Need::Permission)),
        ("claude", AwaitingPlan, &[], waits(Need::Plan)),
        // A request that no lead has recorded in the member's state yet.
        ("claude", Idle, &[asks], waits(Need::Permission)),
        ("claude", Idle, &[|c| c.screen = login_screen()], waits(Need::Login)),
        // Wrapped programs.
        ("codex", Working, &[], Doing::Working),
        ("codex", Idle, &[], Doing::Idle),
        ("codex", Idle, &[mail], Doing::Working),
        ("codex", Idle, &[mail, |c| c.mail_since = Timestamp(940_000)], Doing::Unresponsive),
        // It was answered in its pane, or went on without an answer.
        ("codex", Working, &[asks, |c| c.asked_at = Timestamp(899_000)], Doing::Working),
        ("codex", Idle, &[asks, |c| c.asked_at = Timestamp(899_000)], Doing::Idle),
        ("codex", Idle, &[took_mail], Doing::Working),
        ("codex", Idle, &[trust], waits(Need::Trust)),
        ("codex", Working, &[trust, asks], waits(Need::Permission)),
        ("codex", Idle, &[|c| c.reason = Some(undelivered())], waits(Need::Error)),
        // MSG-21: it runs, and it cannot be seen whether it rests.
        ("codex", Idle, &[unrecognised], Doing::Running),
        ("codex", Working, &[unrecognised], Doing::Running),
        ("codex", Working, &[unrecognised, asks], waits(Need::Permission)),
        ("codex", Idle, &[|c| c.is_limited = true], waits(Need::Limit)),
        ("codex", Working, &[|c| c.unresponsive = true], Doing::Unresponsive),
        // The last turn ended with an error; a new one may have begun since then.
        ("codex", Idle, &[failed], waits(Need::Error)),
        ("codex", Working, &[failed], Doing::Working),
        ("codex", Idle, &[failed, mail], Doing::Working),
        ("codex", Idle, &[failed, asks], waits(Need::Permission)),
        ("codex", Idle, &[failed, |c| c.is_limited = true], waits(Need::Limit)),
        ("claude", Idle, &[|c| c.is_active = Some(false), failed], waits(Need::Error)),
        // 2.1.34 does not say in the team file that such a turn is over.
        ("claude", Working, &[|c| c.is_active = Some(true), failed], waits(Need::Error)),
        ("claude", Working, &[|c| c.is_active = Some(true), failed, mail], Doing::Working),
        ("claude", Working, &[|c| c.is_active = Some(true), failed, took_mail], Doing::Working),
        (
            "claude",
            Working,
            &[|c| c.is_active = Some(true), failed, |c| c.screen = Some(ScreenSign::Working)],
            Doing::Working,
        ),
        // ST-08: a program that tries again by itself works.
        ("codex", Working, &[retries], Doing::Retrying),
        ("codex", Working, &[retries, asks], waits(Need::Permission)),
        ("codex", ShutdownRequested, &[retries], Doing::Stopping),
        ("claude", Working, &[|c| c.is_active = Some(true), retries], Doing::Retrying),
        ("claude", Working, &[|c| c.is_active = Some(true), retries, failed], Doing::Retrying),
        ("claude", Working, &[|c| c.is_active = Some(false), retries], Doing::Idle),
        // A screen that was read now is newer than the record.
        ("claude", Idle, &[|c| c.is_active = Some(false), retry_screen], Doing::Retrying),
        (
            "claude",
            Working,
            &[|c| c.is_active = Some(true), retries, |c| c.screen = Some(ScreenSign::Working)],
            Doing::Working,
        ),
        // The board does not decide for an agent: its turn can end before its task.
        ("codex", Idle, &[|c| c.task = Some(TaskId(3))], Doing::Idle),
        // Workers.
        ("worker", Idle, &[], Doing::Idle),
        ("worker", Working, &[], Doing::Working),
        ("worker", Idle, &[|c| c.task = Some(TaskId(3))], Doing::Working),
        ("worker", Idle, &[|c| c.next_task = Some(TaskId(4))], Doing::Working),
        ("worker", Idle, &[took_mail], Doing::Idle),
        // Plain programs.
        ("shell", Idle, &[], Doing::Running),
        ("shell", Idle, &[mail], Doing::Running),
        ("shell", Idle, &[|c| c.prompt = Some("Continue? [y/N]")], waits(Need::Prompt)),
        ("shell", Idle, &[|c| c.task = Some(TaskId(3))], Doing::Working),
        // Ends.
        ("codex", ShutdownRequested, &[mail], Doing::Stopping),
        ("shell", Failed, &[], Doing::Ended(Failed)),
        ("codex", Killed, &[asks, mail], Doing::Ended(Killed)),
        ("shell", Idle, &[|c| c.exit = Some(7)], Doing::Ended(Failed)),
        ("shell", Idle, &[|c| c.exit = Some(0)], Doing::Ended(Completed)),
        ("claude", Working, &[|c| c.is_dead = true, asks], Doing::Ended(Disappeared)),
        ("worker", Failed, &[|c| c.restart = true], Doing::Restarting(planned())),
        ("worker", Failed, &[|c| c.restart = true, |c| c.is_led = false], Doing::Ended(Failed)),
        ("worker", Completed, &[|c| c.restart = true], Doing::Restarting(planned())),
    ];
    for (at, (profile, state, changes, expected)) in table.iter().enumerate() {
        let mut case = Case::of(profile, *state);
        changes.iter().for_each(|change| change(&mut case));
        let found = case.assess();
        assert_eq!(found.doing, *expected, "row {at}: {profile} {state:?}: {found:?}");
    }
}

fn planned() -> PlannedRestart {
    PlannedRestart { failures: 2, at: Timestamp(1_004_000) }
}

fn login_screen() -> Option<ScreenSign> {
    Some(ScreenSign::Waits(Need::Login, "Select login method:".to_owned()))
}

fn undelivered() -> String {
    "blocked: undelivered: the submit key had no effect".to_owned()
}

fn retries(case: &mut Case) {
    case.reason = Some(retrying_reason("529 · attempt 5/10"));
}

fn retry_screen(case: &mut Case) {
    case.screen = Some(ScreenSign::Retrying("529 · attempt 6/10".to_owned()));
}

fn unrecognised(case: &mut Case) {
    case.reason = Some(UNRECOGNISED.to_owned());
}

fn failed(case: &mut Case) {
    case.has_failed = true;
}

fn mail(case: &mut Case) {
    case.untaken = 1;
}

fn asks(case: &mut Case) {
    case.request = Some(Need::Permission);
}

fn trust(case: &mut Case) {
    case.reason = Some(blocked_reason("dialog:trust", "rule trust: Trust this folder?"));
}

fn took_mail(case: &mut Case) {
    case.mail_changed_at = Some(Timestamp(999_900));
}

fn took_mail_long_ago(case: &mut Case) {
    case.mail_changed_at = Some(Timestamp(990_000));
}

fn rested(case: &mut Case) {
    case.rested_at = Some(Timestamp(999_950));
}

fn rested_before(case: &mut Case) {
    case.rested_at = Some(Timestamp(998_000));
}

fn turn_ended(case: &mut Case) {
    case.turn_ended_at = Some(Timestamp(999_950));
}

fn turn_ended_before(case: &mut Case) {
    case.turn_ended_at = Some(Timestamp(998_500));
}

/// The team file and the screen say that it rests.
fn rests(case: &mut Case) {
    case.is_active = Some(false);
    case.screen = Some(ScreenSign::Idle);
}

/// Rules that hold whatever else the evidence says, over the product of the evidence.
#[test]
fn no_combination_of_evidence_breaks_a_rule() {
    let flags: &[Change] = &[
        |c| c.is_dead = true,
        mail,
        took_mail,
        asks,
        trust,
        |c| c.exit = Some(7),
        |c| c.unresponsive = true,
        |c| c.is_limited = true,
        |c| c.next_task = Some(TaskId(4)),
        |c| c.is_active = Some(true),
        |c| c.is_active = Some(false),
        |c| c.screen = Some(ScreenSign::Working),
        |c| c.screen = Some(ScreenSign::Idle),
    ];
    let mut cases = 0;
    for profile in ["claude", "codex", "worker", "shell"] {
        for state in MemberState::VARIANTS.iter().copied() {
            for set in 0_u32..1 << flags.len() {
                let mut case = Case::of(profile, state);
                let chosen = flags.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
                chosen.for_each(|(_, change)| change(&mut case));
                check_rules(&case);
                cases += 1;
            }
        }
    }
    assert_eq!(cases, (4 * 11) << flags.len());
}

fn check_rules(case: &Case) {
    let found = case.assess();
    let is_over = case.state.is_over() || case.is_dead || case.exit.is_some();
    assert_eq!(matches!(found.doing, Doing::Ended(_)), is_over, "{found:?}");
    if found.doing == Doing::Idle {
        let is_free = case.untaken == 0 && case.request.is_none() && case.next_task.is_none();
        assert!(is_free && !case.is_limited && case.profile != "shell", "{found:?}");
        let is_at_work = case.profile == "claude" && case.is_active == Some(true);
        assert!(!is_at_work, "{found:?}");
    }
    if !is_over && case.request.is_some() && !case.is_limited {
        let is_waiting = matches!(found.doing, Doing::Waiting(_) | Doing::Stopping);
        assert!(is_waiting, "an open request comes before all work: {found:?}");
    }
    assert!(found.since.is_none_or(|since| since <= NOW), "{found:?}");
    assert!(!found.because.is_empty());
}

/// ST-06: who shows a state reads it again at the time at which it may change by itself.
#[test]
fn st_06_state_that_changes_with_time_names_when() {
    let flags: &[Change] = &[
        mail,
        took_mail,
        turn_ended,
        failed,
        |c| c.is_active = Some(true),
        |c| c.is_active = Some(false),
    ];
    let mut changed = 0;
    for profile in ["claude", "codex"] {
        for state in [Working, Idle] {
            for set in 0_u32..1 << flags.len() {
                let mut case = Case::of(profile, state);
                let chosen = flags.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
                chosen.for_each(|(_, change)| change(&mut case));
                let mut before = case.assess();
                for ms in 1..700 {
                    let now = NOW.plus_ms(ms * 100);
                    let next = case.assess_at(now);
                    if next.doing != before.doing {
                        changed += 1;
                        assert!(
                            before.lapses_at.is_some_and(|at| at <= now),
                            "{before:?} {next:?}"
                        );
                    }
                    before = next;
                }
            }
        }
    }
    assert!(changed > 20, "{changed}");
}

/// The team file alone describes a member that phalanx did not start.
#[test]
fn member_without_a_record_is_what_the_team_file_says() {
    let assess_in = |is_inside, is_dead, is_active, count| {
        let mail = Some(UntakenMail { count, since: None });
        let now = NOW;
        let evidence = Evidence { is_dead, is_inside, is_active, mail, now, ..Evidence::default() };
        super::assess(&evidence).doing
    };
    let assess = |is_active, count| assess_in(false, false, is_active, count);
    assert_eq!(assess_in(true, false, None, 0), Doing::Running);
    assert_eq!(assess_in(true, false, Some(false), 0), Doing::Idle);
    assert_eq!(assess_in(true, true, None, 0), Doing::Ended(Disappeared));
    assert_eq!(assess(Some(true), 0), Doing::Working);
    assert_eq!(assess(None, 0), Doing::Working);
    assert_eq!(assess(Some(false), 0), Doing::Idle);
    assert_eq!(assess(Some(false), 2), Doing::Working);
}

#[test]
fn reason_and_time_are_those_of_the_evidence_that_decided() {
    let mut case = Case::of("codex", Idle);
    asks(&mut case);
    let found = case.assess();
    assert_eq!(found.reason.as_deref(), Some("Bash: rm -rf out"));
    assert_eq!(found.since, Some(Timestamp(990_000)));
    assert_eq!(found.because, "its request perm-1 is open");
    let mut case = Case::of("codex", Idle);
    trust(&mut case);
    assert_eq!(case.assess().reason.as_deref(), Some("Trust this folder?"));
    let mut case = Case::of("codex", Idle);
    mail(&mut case);
    assert_eq!(case.assess().reason.as_deref(), Some("1 message on the way to it"));
    let retrying: [(Change, &str); 2] =
        [(retries, "529 · attempt 5/10"), (retry_screen, "529 · attempt 6/10")];
    for (change, said) in retrying {
        let mut case = Case::of("claude", Working);
        case.is_active = Some(true);
        change(&mut case);
        assert_eq!(case.assess().reason.as_deref(), Some(said));
        assert!(!case.assess().doing.needs_attention());
    }
    let mut case = Case::of("shell", Failed);
    (case.restart, case.reason) = (true, Some("exit code 3".to_owned()));
    let reason = case.assess().reason;
    assert_eq!(reason.as_deref(), Some("in 4.0s, after 2 failures: exit code 3"));
    let mut case = Case::of("shell", Idle);
    case.exit = Some(7);
    let found = case.assess();
    assert_eq!(found.reason.as_deref(), Some("exited with code 7 after 1m00s"));
    assert_eq!(found.since, Some(Timestamp(950_000)));
}

#[test]
fn needs_are_read_from_the_reasons_that_screens_give() {
    for (what, need) in [
        ("dialog:permission", Need::Permission),
        ("dialog:question", Need::Question),
        ("dialog:trust", Need::Trust),
        ("dialog:approval", Need::Approval),
        ("dialog:menu", Need::Dialog),
        ("needs_login", Need::Login),
        ("api-error", Need::Error),
    ] {
        assert_eq!(Need::of_screen(what), need, "{what}");
        let mut record = sample::record("ann", sample::run(1), "codex", THEN);
        record.reason = Some(blocked_reason(what, "a (text)"));
        assert_eq!(record.need(), Some((need, "a (text)")), "{what}");
    }
    let name = MemberName::new("ann").expect("a name");
    let mut record = sample::record(name.as_str(), sample::run(1), "codex", THEN);
    record.reason = Some("task #3".to_owned());
    assert_eq!(record.need(), None);
}
