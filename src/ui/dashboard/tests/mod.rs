//! Tests of the dashboard: a sample team, its pictures and its keys.

mod command_lines;
mod completion;
mod hostile;
mod keys;
mod pictures;
mod positions;
mod walk;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crossterm::event::{Event as TerminalEvent, KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

use super::{Dashboard, Effect, Theme, ThemeColors};
use crate::testing::shown_state;
use model::board::task::{Progress, TaskState};
use model::id::{Incarnation, MemberName, RequestId, TaskId, TeamName};
use model::mail::envelope::Envelope;
use model::members::assessment::Doing;
use model::members::lifecycle::MemberState;
use model::members::need::Need;
use model::team::event::{Event, EventKind};
use model::team::worktree::Checkout;
use model::time::Timestamp;
use ops::decisions::requests::Shown;
use ops::members::status::{LeadStatus, MemberStatus, ShownState, Status, TaskCounts};
use ops::views::snapshot::{MemberDetails, SentMessage, TaskCard, TeamSnapshot};

/// The clock of the tests.
const NOW: Timestamp = Timestamp(1_795_000_000_000);
const THEME: Theme =
    Theme { color: true, light: false, ascii: false, colors: ThemeColors::DEFAULT };

fn name(name: &str) -> MemberName {
    MemberName::new(name).expect("a name")
}

fn state_of(word: &str) -> ShownState {
    let (doing, reason) = match word {
        "working" => (Doing::Working, None),
        "idle" => (Doing::Idle, None),
        "running" => (Doing::Running, None),
        "failed" => (Doing::Ended(MemberState::Failed), Some("exit code 3 after 12s")),
        "awaiting_permission" => (Doing::Waiting(Need::Permission), None),
        other => panic!("no member of these tests is {other}"),
    };
    shown_state(doing, reason)
}

fn member(who: &str, state: &str, role: &str, task: Option<u64>) -> MemberStatus {
    MemberStatus {
        name: name(who),
        state: state_of(state),
        role: Some(role.to_owned()),
        profile: Some("claude".to_owned()),
        backend: Some("tmux".to_owned()),
        host: None,
        is_elsewhere: false,
        pane: Some("%1".to_owned()),
        pid: Some(7),
        color: Some("blue".to_owned()),
        task: task.map(TaskId),
        activity: task.map(|_| "Parsing the header of the format".to_owned()),
        idle_ms: None,
        limited_until: None,
        usage: None,
    }
}

fn card(id: u64, subject: &str, state: TaskState) -> TaskCard {
    TaskCard {
        id: TaskId(id),
        key: None,
        subject: subject.to_owned(),
        state,
        owner: None,
        blockers: Vec::new(),
        progress: None,
        priority: 0,
        running_since: None,
        stuck_since: None,
        reason: None,
        ending: None,
    }
}

fn permission(id: &str, from: &str, age_ms: u64) -> Shown {
    let body = json!({"type": "permission_request", "request_id": id, "tool_name": "Edit",
        "description": "make the parser accept version 2", "input": {
            "file_path": "/w/site/src/header.rs",
            "old_string": "fn version() {\n    1\n}",
            "new_string": "fn version() {\n    2\n}"}});
    Shown {
        request_id: RequestId::parse(id).expect("an id"),
        kind: "permission",
        from: name(from),
        state: "pending",
        age_ms,
        summary: "Edit: /w/site/src/header.rs".to_owned(),
        body,
        incarnation: None,
        updated_input: None,
        left_ms: Some(540_000),
        by: None,
        rule: None,
        reason: None,
        answered_by: None,
        typed: None,
        preview: None,
    }
}

fn message(from: &str, to: &str, text: &str, ago_ms: u64) -> SentMessage {
    let at = NOW.minus_ms(ago_ms);
    SentMessage {
        to: MemberName::existing(to).expect("a name"),
        at: Some(at),
        envelope: Envelope::new(from, text, format!("{from}-{ago_ms}"), at),
    }
}

fn event(kind: EventKind, who: &str, task: Option<u64>, ago_ms: u64) -> Event {
    let detail = match task {
        Some(_) => json!({"subject": "Parse the header"}),
        None => json!({}),
    };
    Event {
        id: format!("{who}-{ago_ms}"),
        cause: None,
        at: NOW.minus_ms(ago_ms),
        team: TeamName::new("site").expect("a name"),
        event: kind,
        member: Some(name(who)),
        task: task.map(TaskId),
        detail: detail.as_object().cloned().unwrap_or_default(),
    }
}

/// A team of five members, of whom one asks and one has failed.
fn sample() -> TeamSnapshot {
    let members = vec![
        member("ada", "working", "engineer", Some(3)),
        member("ben", "awaiting_permission", "engineer", None),
        member("cleo", "idle", "reviewer", None),
        member("dan", "failed", "tester", None),
        member("srv", "running", "general-purpose", None),
    ];
    let status = Status {
        team: TeamName::new("site").expect("a name"),
        lead: Some(LeadStatus {
            is_elsewhere: false,
            pid: 4711,
            host: "here".to_owned(),
            since: NOW.minus_ms(600_000).iso(),
            age_ms: 600_000,
            state: "running",
        }),
        dead_lead: None,
        members,
        left: Vec::new(),
        tasks: TaskCounts::default(),
        task_list: Vec::new(),
        requests: 1,
        unread: None,
        usage: None,
        budgets: Vec::new(),
    };
    let detail = |since_ms: u64, unread: usize| MemberDetails {
        run: Incarnation::parse("6f0c0f3e-8d1f-4a8e-9a51-3f1f5f0b2f11").ok(),
        state_since: Some(NOW.minus_ms(since_ms)),
        unread,
        cwd: Some("/w/site".to_owned()),
        worktree: None,
        command: None,
    };
    let mut details: BTreeMap<MemberName, MemberDetails> = BTreeMap::from([
        (name("ada"), detail(64_000, 0)),
        (name("ben"), detail(31_000, 1)),
        (name("cleo"), detail(184_000, 2)),
        (name("dan"), detail(12_000, 0)),
        (name("srv"), detail(3_700_000, 0)),
    ]);
    details.get_mut(&name("srv")).expect("a member").command = Some("make serve".to_owned());
    details.get_mut(&name("ada")).expect("a member").worktree = Some(Checkout {
        repository: "/w/site".to_owned(),
        path: "/w/site/.worktrees/site-ada".to_owned(),
        branch: "site-ada".to_owned(),
        base: "0000".to_owned(),
        new_branch: true,
        from: None,
        is_unfinished: false,
        origin: None,
        copy: None,
        landed: Vec::new(),
        landing: None,
        merged: None,
    });
    let parsing = TaskCard {
        owner: Some("ada".to_owned()),
        progress: Some(Progress { percent: 40, step: "header".to_owned() }),
        running_since: Some(NOW.minus_ms(64_000)),
        ..card(3, "Parse the header", TaskState::InProgress)
    };
    let blocked = |id: u64, subject: &str, by: &[u64]| TaskCard {
        blockers: by.iter().copied().map(TaskId).collect(),
        ..card(id, subject, TaskState::Blocked)
    };
    let tasks = vec![
        TaskCard {
            ending: Some("Version 2, with a checksum".to_owned()),
            ..card(1, "Agree on the format", TaskState::Completed)
        },
        TaskCard {
            owner: Some("cleo".to_owned()),
            ..card(2, "Review the plan", TaskState::InReview)
        },
        parsing,
        blocked(4, "Write the reader", &[3]),
        blocked(5, "Write the 日本語 documentation of the reader", &[3, 4]),
        TaskCard { priority: 5, ..card(6, "Find a name", TaskState::Pending) },
        TaskCard {
            owner: Some("dan".to_owned()),
            stuck_since: Some(NOW.minus_ms(12_000)),
            reason: Some("2 tests failed".to_owned()),
            ..card(7, "Run the tests", TaskState::Failed)
        },
    ];
    let messages = vec![
        message("team-lead", "ada", "Please begin with the header.", 120_000),
        message("ada", "team-lead", "The header has two versions.\nI take the second.", 60_000),
        message("cleo", "team-lead", "The plan is fine.", 30_000),
    ];
    let events = [
        event(EventKind::MemberReady, "ada", None, 120_000),
        event(EventKind::TaskClaimed, "ada", Some(3), 64_000),
        event(EventKind::RequestFiled, "ben", None, 31_000),
    ];
    TeamSnapshot {
        read_at: NOW,
        is_foreign: false,
        status,
        details,
        tasks: Arc::new(tasks),
        is_board_read: true,
        requests: vec![permission("perm-1795-ben", "ben", 31_000)],
        messages: Arc::new(messages),
        events: Arc::new(VecDeque::from(events)),
    }
}

fn dashboard(theme: Theme) -> Dashboard {
    let mut dashboard = Dashboard::new("site", theme);
    dashboard.set_snapshot(sample());
    dashboard
}

/// Draws the dashboard and returns the rows of the screen.
fn picture(dashboard: &mut Dashboard, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory");
    terminal.draw(|frame| dashboard.draw(frame, NOW)).expect("memory");
    let buffer = terminal.backend().buffer();
    let row = |y: u16| {
        let mut line = String::new();
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            let cells = unicode_width::UnicodeWidthStr::width(symbol).max(1);
            x += u16::try_from(cells).expect("a cell");
        }
        line.trim_end().to_owned()
    };
    (0..height).map(row).collect::<Vec<_>>().join("\n")
}

/// Presses keys, named as in tmux and separated by spaces; a word in quotes is typed.
fn press(dashboard: &mut Dashboard, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    for word in shlex::split(keys).expect("quotes") {
        let (ctrl, base) = match word.strip_prefix("C-") {
            Some(base) => (KeyModifiers::CONTROL, base),
            None => (KeyModifiers::NONE, word.as_str()),
        };
        let codes = match base {
            "Enter" => vec![KeyCode::Enter],
            "Escape" => vec![KeyCode::Esc],
            "Tab" => vec![KeyCode::Tab],
            "BTab" => vec![KeyCode::BackTab],
            "Up" => vec![KeyCode::Up],
            "Down" => vec![KeyCode::Down],
            "Left" => vec![KeyCode::Left],
            "Right" => vec![KeyCode::Right],
            "PPage" => vec![KeyCode::PageUp],
            "Home" => vec![KeyCode::Home],
            "End" => vec![KeyCode::End],
            "BSpace" => vec![KeyCode::Backspace],
            text => text.chars().map(KeyCode::Char).collect(),
        };
        for code in codes {
            let key = KeyEvent::new(code, ctrl);
            effects.extend(dashboard.handle(&TerminalEvent::Key(key), NOW));
        }
    }
    effects
}
