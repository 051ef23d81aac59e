//! Progress of a team, from its events to the lines of a frame.

use super::*;
use crate::testing::shown_state;
use model::id::TeamName;
use model::members::lifecycle::MemberState;
use model::members::need::Need;
use model::members::record::PlannedRestart;
use model::team::event::Note;

pub(crate) fn event(ms: u64, note: Note) -> Event {
    Event {
        id: "e".to_owned(),
        cause: note.cause,
        at: Timestamp(1_000_000 + ms),
        team: TeamName::new("checks").expect("name"),
        event: note.event,
        member: note.member,
        task: note.task,
        detail: note.detail,
    }
}

pub(crate) fn name(name: &str) -> MemberName {
    MemberName::new(name).expect("name")
}

/// A short run: `ada` completes one task and fails the next; a third is never started.
pub(crate) fn run() -> Vec<Event> {
    let task = |kind, id, subject: &str| Note::of(kind).task(TaskId(id)).with("subject", subject);
    let ada = name("ada");
    let state =
        |word: &str| Note::of(EventKind::MemberState).member(&name("ada")).with("state", word);
    vec![
        event(
            0,
            task(EventKind::TaskCreated, 1, "Check the format")
                .with("active_form", "Checking the format"),
        ),
        event(0, task(EventKind::TaskCreated, 2, "Run the \u{1b}[31mtests")),
        event(0, task(EventKind::TaskCreated, 3, "Publish")),
        event(10, Note::of(EventKind::MemberAsked).member(&ada).with("profile", "worker")),
        event(20, state("starting")),
        event(300, state("idle")),
        event(
            400,
            Note {
                member: Some(ada.clone()),
                ..task(EventKind::TaskClaimed, 1, "Check the format")
            },
        ),
        event(400, state("working")),
        event(
            2_500,
            Note {
                member: Some(ada.clone()),
                ..task(EventKind::TaskCompleted, 1, "Check the format")
            }
            .with("exit_code", 0)
            .with("elapsed_ms", 2_100),
        ),
        event(
            2_600,
            Note {
                member: Some(ada.clone()),
                ..task(EventKind::TaskClaimed, 2, "Run the \u{1b}[31mtests")
            },
        ),
        event(
            4_000,
            Note { member: Some(ada), ..task(EventKind::TaskFailed, 2, "Run the \u{1b}[31mtests") }
                .with("exit_code", 7)
                .with("elapsed_ms", 1_400),
        ),
    ]
}

const HINTS: [&str; 3] = ["phalanx attach -t checks", "Ctrl-C ends it", "phalanx status -t checks"];

fn frame(
    progress: &TeamProgress,
    ms: u64,
    columns: usize,
    rows: usize,
    paint: Paint,
) -> Vec<String> {
    let (now, started_at) = (Timestamp(1_000_000 + ms), Timestamp(1_000_000));
    progress.frame(&ProgressFrame {
        now,
        started_at,
        columns,
        rows,
        hints: &HINTS.map(str::to_owned),
        paint,
    })
}

const PLAIN: Paint = Paint { on: false };

fn crowd() -> TeamProgress {
    let mut progress = TeamProgress::default();
    for (nth, who) in ["ada", "benjamin-of-the-long-name", "cleo", "dan"].into_iter().enumerate() {
        let id = TaskId(nth as u64 + 1);
        let member = name(who);
        let task = |kind| {
            let subject = format!(
                "A subject of many words, far too long for a narrow terminal, number {nth}"
            );
            Note::of(kind).task(id).with("subject", subject)
        };
        progress.apply(&event(0, task(EventKind::TaskCreated)));
        progress.apply(&event(10, Note::of(EventKind::MemberAsked).member(&member)));
        let (doing, reason) = match nth {
            0 | 1 => (Doing::Working, None),
            2 => (Doing::Idle, None),
            _ => (Doing::Waiting(Need::Permission), Some("Bash: make deploy")),
        };
        set_state(&mut progress, who, doing, reason, false);
        if nth < 2 {
            progress
                .apply(&event(20, Note { member: Some(member), ..task(EventKind::TaskClaimed) }));
        }
    }
    progress
}

/// Sets the activity of a member, for 2.0 s, as a status would.
fn set_state(
    progress: &mut TeamProgress,
    who: &str,
    doing: Doing,
    reason: Option<&str>,
    left: bool,
) {
    let state = ShownState { state_ms: Some(2_000), ..shown_state(doing, reason) };
    let member = progress.member(&name(who));
    (member.state, member.left) = (Some(state), left);
}

/// ST-01: members that left as they should share a dimmed line; one that failed keeps its own.
#[test]
fn st_01_members_that_left_are_one_line_and_failures_name_their_reason() {
    let mut progress = TeamProgress::default();
    for who in ["ada", "ben", "cleo", "dan", "eve"] {
        progress.apply(&event(10, Note::of(EventKind::MemberAsked).member(&name(who))));
    }
    set_state(&mut progress, "ada", Doing::Running, None, false);
    let failed = Doing::Ended(MemberState::Failed);
    set_state(&mut progress, "ben", failed, Some("exit code 7: boom"), true);
    let restart = PlannedRestart { failures: 3, at: Timestamp(0) };
    let restarting = Doing::Restarting(restart);
    set_state(&mut progress, "cleo", restarting, Some("in 4.0s, after 3 failures"), true);
    for who in ["dan", "eve"] {
        progress.apply(&event(20, Note::of(EventKind::MemberLeft).member(&name(who))));
    }
    assert_eq!(
        frame(&progress, 2_000, 80, 10, PLAIN)[..4],
        [
            "ada   running       2.0s",
            "ben   failed        2.0s  exit code 7: boom",
            "cleo  restarting    2.0s  in 4.0s, after 3 failures",
            "left: dan, eve",
        ]
    );
}

#[test]
fn pm_03_frame_counts_waiting_requests() {
    let mut progress = TeamProgress::default();
    let filed = |id: &str, state: &str| {
        Note::of(EventKind::RequestFiled).with("request_id", id).with("state", state)
    };
    let decided = |id: &str| Note::of(EventKind::RequestDecided).with("request_id", id);
    let steps = [
        (filed("a", "pending"), "1 request waits: `phalanx requests`"),
        (filed("b", "allowed"), "1 request waits: `phalanx requests`"),
        (filed("c", "pending"), "2 requests wait: `phalanx requests`"),
        (decided("a"), "1 request waits: `phalanx requests`"),
        (decided("c"), "phalanx attach -t checks"),
    ];
    for (note, expected) in steps {
        progress.apply(&event(0, note));
        let lines = frame(&progress, 0, 40, 24, PLAIN);
        assert_eq!(lines, ["no tasks  0.0s", expected]);
    }
}

#[test]
fn frame_counts_unread_messages() {
    let mut progress = TeamProgress::default();
    let sent = |to: MemberName, id: &str, kind: &str| {
        Note::of(EventKind::MessageSent).member(&to).with("msg_id", id).with("kind", kind)
    };
    let read = |ids: &[&str]| {
        Note::of(EventKind::MessageHandled)
            .member(&MemberName::lead())
            .with("msg_ids", ids.to_vec())
    };
    let steps = [
        (sent(MemberName::lead(), "a", "message"), "1 unread message: `phalanx inbox`"),
        (sent(MemberName::lead(), "b", "idle_notification"), "1 unread message: `phalanx inbox`"),
        (sent(name("ann"), "c", "message"), "1 unread message: `phalanx inbox`"),
        (sent(MemberName::lead(), "d", "message"), "2 unread messages: `phalanx inbox`"),
        (read(&["a", "d"]), "phalanx attach -t checks"),
    ];
    for (note, expected) in steps {
        progress.apply(&event(0, note));
        let lines = frame(&progress, 0, 40, 24, PLAIN);
        assert_eq!(lines, ["no tasks  0.0s", expected]);
    }
}

#[test]
fn frame_follows_the_journal() {
    let mut progress = TeamProgress::default();
    let events = run();
    assert!(progress.is_empty());
    events[..8].iter().for_each(|e| progress.apply(e));
    set_state(&mut progress, "ada", Doing::Working, None, false);
    assert_eq!(
        frame(&progress, 1_400, 80, 10, PLAIN),
        [
            "ada  working    1.0s  #1 Checking the format",
            "──────────────────────────────  0 of 3 tasks  1.4s",
            "phalanx attach -t checks · Ctrl-C ends it · phalanx status -t checks",
        ]
    );
    events[8..].iter().for_each(|e| progress.apply(e));
    assert_eq!(
        frame(&progress, 4_000, 80, 10, PLAIN)[..2],
        ["ada  working    2.0s", "━━━━━━━━━━━━━━━━━━━━──────────  1 of 3 tasks, 1 failed  4.0s"]
    );
}

#[test]
fn wide_terminal_shows_every_column() {
    assert_eq!(
        frame(&crowd(), 2_020, 120, 40, PLAIN),
        [
            "ada                        working          2.0s  #1 A subject of many words, far too long for a narrow terminal, numbe…",
            "benjamin-of-the-long-name  working          2.0s  #2 A subject of many words, far too long for a narrow terminal, numbe…",
            "cleo                       idle             2.0s",
            "dan                        waits for you    2.0s  permission: Bash: make deploy",
            "──────────────────────────────  0 of 4 tasks  2.0s",
            "phalanx attach -t checks · Ctrl-C ends it · phalanx status -t checks",
        ]
    );
}

#[test]
fn narrow_terminal_shows_tasks_or_states() {
    assert_eq!(
        frame(&crowd(), 2_020, 40, 10, PLAIN),
        [
            "ada              2.0s  #1 A subject of …",
            "benjamin-of-…    2.0s  #2 A subject of …",
            "cleo             2.0s  idle",
            "dan              2.0s  waits for you: p…",
            "────────────────────  0 of 4 tasks  2.0s",
            "phalanx attach -t checks",
        ]
    );
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut failed = crowd();
    run().iter().for_each(|e| failed.apply(e));
    for progress in [crowd(), failed] {
        for columns in 1..130 {
            for rows in 1..12 {
                let lines = frame(&progress, 3_725_000, columns, rows, PLAIN);
                assert!(lines.len() <= rows, "{columns}x{rows}: {lines:?}");
                // On narrower terminals `Redraw` cuts the count of tasks.
                let wide =
                    lines.iter().find(|line| columns >= 30 && line.chars().count() > columns);
                assert_eq!(wide, None, "{columns}x{rows}");
            }
        }
    }
}

#[test]
fn waiting_and_working_members_come_first_on_few_rows() {
    let lines = frame(&crowd(), 2_020, 80, 5, PLAIN);
    assert!(lines[0].starts_with("ada ") && lines[1].starts_with("dan "), "{lines:?}");
    assert_eq!(lines[2], "… 2 more members");
    assert_eq!(
        frame(&crowd(), 0, 80, 1, PLAIN),
        ["──────────────────────────────  0 of 4 tasks  0.0s"]
    );
}

#[test]
fn single_failure_is_visible_in_the_bar() {
    let red = |done, failed, total| {
        bar(10, done, failed, total, Paint { on: true }).contains("\u{1b}[31m━")
    };
    assert!(red(0, 1, 100) && red(99, 1, 100) && red(0, 1, 1));
    assert!(!red(99, 0, 100));
    for (done, failed, total) in [(0, 1, 100), (99, 1, 100), (3, 3, 7), (0, 0, 1), (5, 0, 5)] {
        assert_eq!(bar(10, done, failed, total, PLAIN).chars().count(), 10);
    }
}

#[test]
fn member_names_have_their_colour() {
    let mut progress = TeamProgress::default();
    run().iter().for_each(|e| progress.apply(e));
    progress.set_color(&name("ada"), Some("blue"));
    let lines = frame(&progress, 4_000, 80, 9, Paint { on: true });
    assert!(lines[0].starts_with("\u{1b}[34mada\u{1b}[0m"), "{:?}", lines[0]);
}
