//! Positions of lists that scroll, and the list of teams to choose from.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::dialog::OpenDialog;
use super::super::layout::Panel;
use super::super::state::BoardColumn;
use super::{
    NOW, THEME, card, dashboard, event, message, name, permission, picture, press, sample,
};
use crate::dashboard::{AfterRun, ChosenCommand, Dashboard, Effect, FinishedCommand};
use model::board::task::TaskState;
use model::id::{TaskId, TeamName};
use model::team::event::EventKind;
use ops::members::status::MemberStatus;
use ops::views::snapshot::{TaskCard, TeamChoice, TeamSnapshot};

/// A team with 60 members, tasks, requests, messages and events.
fn large() -> TeamSnapshot {
    let mut snapshot = sample();
    let member = snapshot.status.members[2].clone();
    let named = |n| MemberStatus { name: name(&format!("m-{n:02}")), ..member.clone() };
    snapshot.status.members = (1..=60).map(named).collect();
    let tasks = (1..=60).map(|n| card(n, "A task", TaskState::Pending));
    snapshot.tasks = Arc::new(tasks.collect());
    let requests = (1..=60).map(|n| permission(&format!("perm-{n}-m"), "m-01", 90_000 - n));
    snapshot.requests = requests.collect();
    let messages = (1..=60).map(|n| message("m-01", "team-lead", "done", 90_000 - n));
    snapshot.messages = Arc::new(messages.collect());
    let events = (1..=60).map(|n| event(EventKind::MemberReady, "ada", None, 90_000 - n));
    snapshot.events = Arc::new(events.collect());
    snapshot
}

fn titles(dashboard: &mut Dashboard, width: u16, height: u16) -> String {
    let shown = picture(dashboard, width, height);
    shown.lines().skip(3).take(2).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_list_that_scrolls_has_its_position_in_the_title() {
    let table = [
        (Panel::Members, "Down Down", "Members by attention  3/60"),
        (Panel::Board, "g Down Down", " 3/60"),
        (Panel::Requests, "Down Down", "Requests  3/60"),
        (Panel::Messages, "", "Messages of m-01  60/60"),
        (Panel::Messages, "w Up Up", "Messages of all  59/60"),
        (Panel::Events, "Up Up", "Events  58/60"),
    ];
    for (width, height) in [(80, 24), (120, 30), (200, 50)] {
        for (panel, keys, expected) in table {
            let mut dashboard = dashboard(THEME);
            dashboard.set_snapshot(large());
            dashboard.zoomed = true;
            dashboard.show(panel);
            picture(&mut dashboard, width, height);
            press(&mut dashboard, keys);
            let shown = titles(&mut dashboard, width, height);
            assert!(shown.contains(expected), "{width}x{height} {keys}: {shown}");
        }
    }
}

#[test]
fn position_survives_in_a_narrow_panel_and_is_omitted_where_all_fits() {
    let mut dashboard = dashboard(THEME);
    let shown = picture(&mut dashboard, 120, 40);
    assert!(shown.contains("Members by attention ─"), "{shown}");
    dashboard.set_snapshot(large());
    let shown = picture(&mut dashboard, 80, 24);
    assert!(shown.contains("Members by atten…  1/60 ┐"), "{shown}");
}

#[test]
fn scrolling_beyond_the_first_event_is_undone_by_one_key() {
    let mut dashboard = dashboard(THEME);
    dashboard.set_snapshot(large());
    dashboard.zoomed = true;
    dashboard.show(Panel::Events);
    picture(&mut dashboard, 80, 24);
    press(&mut dashboard, "Up Up PPage PPage PPage PPage");
    let shown = picture(&mut dashboard, 80, 24);
    assert!(shown.contains("Events  18/60"), "{shown}");
    press(&mut dashboard, "Down");
    let shown = picture(&mut dashboard, 80, 24);
    assert!(shown.contains("Events  19/60"), "{shown}");
}

/// Returns a dashboard with the output of a command as a page.
fn with_page(lines: usize) -> Dashboard {
    let mut dashboard = dashboard(THEME);
    let text: Vec<String> = (1..=lines).map(|n| format!("line {n}.")).collect();
    let done = FinishedCommand {
        command: ChosenCommand::Typed(vec!["status".to_owned()]),
        after: AfterRun::Report,
        success: true,
        output: text.join("\n"),
    };
    dashboard.finish(done, NOW);
    dashboard
}

#[test]
fn ly_15_each_text_stops_at_its_end_and_one_key_leads_back() {
    let mut snapshot = large();
    let chain = (2..=60).map(|n| TaskCard {
        blockers: vec![TaskId(n - 1)],
        ..card(n, "A task", TaskState::Blocked)
    });
    let first = card(1, "A task", TaskState::Pending);
    snapshot.tasks = Arc::new([first].into_iter().chain(chain).collect());
    let zoomed = |panel: Panel| {
        let mut dashboard = dashboard(THEME);
        dashboard.set_snapshot(snapshot.clone());
        dashboard.zoomed = true;
        dashboard.show(panel);
        dashboard
    };
    let mut help = dashboard(THEME);
    press(&mut help, "?");
    let mut graph = zoomed(Panel::Board);
    graph.as_graph = true;
    let mut screen = zoomed(Panel::Screen);
    let member = screen.member.clone().expect("selected");
    let history: Vec<String> = (1..=200).map(|n| format!("line {n}.")).collect();
    picture(&mut screen, 80, 24);
    screen.set_history(&member, &history.join("\n"));
    // The key that goes to the end, and the one that leads back.
    let table = [
        ("help", help, "End", "Up"),
        ("page", with_page(60), "End", "Up"),
        ("graph", graph, "End", "Up"),
        ("screen", screen, "Home", "Down"),
        ("messages", zoomed(Panel::Messages), "Home", "Down"),
        ("events", zoomed(Panel::Events), "Home", "Down"),
    ];
    for (what, mut dashboard, end, back) in table {
        let mut shown = |keys: &str| {
            press(&mut dashboard, keys);
            picture(&mut dashboard, 80, 24)
        };
        let start = shown("");
        let at_end = shown(end);
        assert_ne!(at_end, start, "{what}");
        assert_eq!(shown(end), at_end, "{what} does not go beyond its end");
        assert_ne!(shown(back), at_end, "{what}: {at_end}");
    }
}

#[test]
fn ly_15_page_ends_with_its_last_line_also_if_it_is_long() {
    let mut dashboard = with_page(60);
    press(&mut dashboard, "End");
    let shown = picture(&mut dashboard, 80, 24);
    assert!(shown.contains("line 60.") && shown.contains("line 41."), "{shown}");
    assert!(shown.contains("status  41/60  Esc closes"), "{shown}");
    let mut long = with_page(2);
    let words = format!("{} the end", "word ".repeat(800));
    let Some(OpenDialog::Page(page)) = &mut long.dialog else { panic!("{:?}", long.dialog) };
    page.lines = vec![words];
    press(&mut long, "End");
    assert!(picture(&mut long, 80, 24).contains("the end"), "each row can be read");
}

fn choice(team: &str, problem: Option<&str>) -> TeamChoice {
    TeamChoice {
        root: PathBuf::from("/home/ann/.claude"),
        name: TeamName::new(team).expect("a name"),
        lead: "led",
        is_foreign: false,
        members: 3,
        working: 1,
        requests: 2,
        problem: problem.map(str::to_owned),
    }
}

#[test]
fn team_is_chosen_from_a_list_and_escape_quits() {
    let choosing = || {
        let mut dashboard = Dashboard::choosing_a_team(THEME);
        dashboard.set_teams(vec![choice("docs", None), choice("site", None)]);
        dashboard
    };
    let mut dashboard = choosing();
    let shown = picture(&mut dashboard, 80, 24);
    for words in ["Which team?", "docs", "site", "3 members, 1 working, 2 requests, led"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("Members"), "nothing is known of a team yet: {shown}");
    let open = Effect::OpenTeam {
        root: PathBuf::from("/home/ann/.claude"),
        name: TeamName::new("site").expect("a name"),
    };
    assert_eq!(press(&mut dashboard, "Down Enter"), [open]);
    dashboard.report_problem("no such team", NOW);
    let shown = picture(&mut dashboard, 80, 24);
    assert!(shown.contains("Which team?") && shown.contains("no such team"), "{shown}");
    for keys in ["Escape", "q", "C-c"] {
        assert_eq!(press(&mut choosing(), keys), [Effect::Quit], "{keys}");
    }
    dashboard.set_team("site");
    let shown = picture(&mut dashboard, 80, 24);
    assert!(shown.contains("Members") && !shown.contains("Which team?"), "{shown}");
}

#[test]
fn team_that_cannot_be_read_is_not_opened_but_explained() {
    let mut dashboard = Dashboard::choosing_a_team(THEME);
    dashboard.set_teams(vec![choice("docs", Some("config.json is torn"))]);
    assert_eq!(press(&mut dashboard, "Enter"), []);
    let shown = picture(&mut dashboard, 80, 24);
    assert!(shown.contains("docs cannot be shown: config.json is torn"), "{shown}");
    assert!(shown.contains("Which team?"), "{shown}");
}

/// MSG-17: only the focused panel of messages shows the lead its mail, and each message once.
#[test]
fn msg_17_shown_mail_of_the_lead_is_reported_once() {
    let mut dashboard = dashboard(THEME);
    dashboard.set_snapshot(sample());
    let shown = |dashboard: &mut Dashboard| {
        picture(dashboard, 200, 50);
        let mail = dashboard.take_shown_mail().into_iter();
        mail.map(|envelope| envelope.from).collect::<Vec<_>>()
    };
    assert!(shown(&mut dashboard).is_empty(), "the panel is not in focus");
    dashboard.show(Panel::Messages);
    press(&mut dashboard, "w");
    assert_eq!(shown(&mut dashboard), ["cleo", "ada"], "not the one to ada");
    assert!(shown(&mut dashboard).is_empty(), "once");
    dashboard.set_snapshot(large());
    let first = shown(&mut dashboard).len();
    assert!(first > 0 && first < 60, "{first} of 60 fit");
    let mut all = first;
    for _ in 0..130 {
        press(&mut dashboard, "Up");
        all += shown(&mut dashboard).len();
    }
    assert_eq!(all, 60, "as they are scrolled to");
}

#[test]
fn failed_task_is_to_do_before_blocked_ones_and_not_in_progress() {
    let dashboard = dashboard(THEME);
    let tasks = dashboard.snapshot.as_ref().expect("a snapshot").tasks.clone();
    let column = |column: BoardColumn| {
        let ids = dashboard.columns[column.index()].iter().map(|at| tasks[*at].id.0);
        ids.collect::<Vec<u64>>()
    };
    assert_eq!(column(BoardColumn::ToDo), [6, 7, 4, 5]);
    assert_eq!(column(BoardColumn::Doing), [3]);
}

/// ST-01: the row of a member says what it asks only while the request is open.
#[test]
fn st_01_decided_request_leaves_the_row_of_its_member() {
    let request = r#"{"type":"permission_request","request_id":"perm-1","agent_id":"eve","tool_name":"Bash","input":{"command":"ls"}}"#;
    let plan = r##"{"type":"plan_approval_request","request_id":"plan-1","planContent":"# P"}"##;
    for text in [request, plan] {
        let mut dashboard = Dashboard::new("site", THEME);
        let mut snapshot = sample();
        let told = message("eve", "team-lead", "I found the cause", 60);
        snapshot.messages = Arc::new(vec![told, message("eve", "team-lead", text, 30)]);
        dashboard.set_snapshot(snapshot);
        let words = dashboard.last_words.get("eve").map(String::as_str);
        assert_eq!(words, Some("I found the cause"), "{text}");
    }
}
