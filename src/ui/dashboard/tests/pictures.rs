//! Pictures of the dashboard in several sizes, with a fixed clock.

use strum::VariantArray;

use super::super::layout::Panel;
use super::{NOW, THEME, dashboard, name, picture, press, sample};
use crate::dashboard::Theme;
use model::board::task::TaskState;
use model::id::TaskId;
use ops::views::screen::ScreenUpdate;
use ops::views::snapshot::{AttentionCause, TeamSnapshot};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 50)];

fn with_screen(theme: Theme) -> super::Dashboard {
    let mut dashboard = dashboard(theme);
    let bytes =
        b"\x1b[32m$\x1b[0m cargo test\r\nrunning 3 tests\r\ntest header ... ok\r\n> ".to_vec();
    let first = dashboard.member.clone().expect("a member");
    dashboard.set_screen(&first, ScreenUpdate::Whole { rows: 24, cols: 80, bytes });
    dashboard
}

#[test]
fn whole_dashboard_in_each_size() {
    for (width, height) in SIZES.into_iter().chain([(50, 20)]) {
        let shown = picture(&mut with_screen(THEME), width, height);
        insta::assert_snapshot!(format!("whole_{width}x{height}"), shown);
    }
}

#[test]
fn each_panel_in_each_size() {
    for (width, height) in SIZES {
        for panel in Panel::VARIANTS {
            let mut dashboard = with_screen(THEME);
            dashboard.show(*panel);
            dashboard.zoomed = true;
            let shown = picture(&mut dashboard, width, height);
            let title: &str = panel.into();
            insta::assert_snapshot!(format!("{}_{width}x{height}", title.to_lowercase()), shown);
        }
    }
}

#[test]
fn dialogs_are_drawn_over_the_panels() {
    let table = [
        ("help", "?"),
        ("message", "m 'hello ada'"),
        ("spawn", "+ 'eva'"),
        ("confirm", "K"),
        ("graph", "v z"),
        ("typing", "i"),
        ("request_page", "n Enter"),
    ];
    for (dialog, keys) in table {
        let mut dashboard = with_screen(THEME);
        press(&mut dashboard, keys);
        insta::assert_snapshot!(format!("dialog_{dialog}"), picture(&mut dashboard, 100, 34));
    }
}

#[test]
fn ascii_theme_draws_only_ascii() {
    let mut dashboard = with_screen(Theme { ascii: true, ..THEME });
    let mut snapshot = sample();
    let mut tasks = (*snapshot.tasks).clone();
    tasks.retain(|task| task.subject.is_ascii());
    snapshot.tasks = std::sync::Arc::new(tasks);
    dashboard.set_snapshot(snapshot);
    for (width, height) in SIZES {
        let shown = picture(&mut dashboard, width, height);
        // Cut text ends with an ellipsis.
        let strange: String = shown.chars().filter(|c| !c.is_ascii() && *c != '…').collect();
        assert_eq!(strange, "", "{shown}");
    }
}

#[test]
fn attention_is_listed_oldest_first() {
    let snapshot = sample();
    let causes: Vec<AttentionCause> =
        snapshot.attention().into_iter().map(|item| item.cause).collect();
    let request = AttentionCause::Request("perm-1795-ben".to_owned());
    let failed = [AttentionCause::Member(name("dan")), AttentionCause::Task(TaskId(7))];
    // The time since which a task is in review is not known.
    let in_review = AttentionCause::Task(TaskId(2));
    assert_eq!(causes, [request, failed[0].clone(), failed[1].clone(), in_review]);
    let quiet = TeamSnapshot { requests: Vec::new(), ..snapshot };
    // A member that waits is listed for itself where its request is not.
    assert_eq!(quiet.attention().len(), 4);
}

#[test]
fn every_size_is_drawn_without_a_panic() {
    let mut dashboard = with_screen(THEME);
    for (width, height) in (1..40).map(|n| (n * 3, n)).chain([(1, 1), (1, 60), (300, 1), (2, 2)]) {
        for panel in Panel::VARIANTS {
            dashboard.show(*panel);
            let shown = picture(&mut dashboard, width, height);
            assert!(shown.lines().count() <= usize::from(height), "{width}x{height}");
        }
        for keys in ["?", "+", ":", "m", "K"] {
            press(&mut dashboard, keys);
            picture(&mut dashboard, width, height);
            press(&mut dashboard, "Escape");
        }
    }
}

#[test]
fn large_team_and_board_are_drawn() {
    let mut snapshot = sample();
    let member = snapshot.status.members[0].clone();
    snapshot.status.members = (0..64)
        .map(|n| {
            let name = name(&format!("member-{n:02}"));
            ops::members::status::MemberStatus { name, ..member.clone() }
        })
        .collect();
    let task = snapshot.tasks[3].clone();
    let tasks = (1..=10_000).map(|id| ops::views::snapshot::TaskCard {
        id: TaskId(id),
        state: if id % 2 == 0 { TaskState::Pending } else { TaskState::Completed },
        ..task.clone()
    });
    snapshot.tasks = std::sync::Arc::new(tasks.collect());
    let mut dashboard = dashboard(THEME);
    dashboard.set_snapshot(snapshot);
    press(&mut dashboard, "End 3 End");
    let shown = picture(&mut dashboard, 120, 40);
    assert!(shown.contains("member-63"), "{shown}");
    assert!(shown.contains("#10000"), "{shown}");
    assert!(shown.contains("✓ 5000/10000"), "{shown}");
}

#[test]
fn ages_are_redrawn_each_second_only_in_their_first_minute() {
    let mut dashboard = dashboard(THEME);
    assert_eq!(dashboard.redraw_after_ms(NOW), Some(1_000), "dan failed 12 s ago");
    assert_eq!(dashboard.redraw_after_ms(NOW.plus_ms(60_000)), Some(60_000));
    dashboard.set_snapshot(TeamSnapshot {
        details: Default::default(),
        tasks: Default::default(),
        requests: Vec::new(),
        status: ops::members::status::Status { members: Vec::new(), ..sample().status },
        ..sample()
    });
    assert_eq!(dashboard.redraw_after_ms(NOW), None);
}

/// PF-15: a board that is still read is not shown as an empty one; every key is harmless meanwhile.
#[test]
fn pf_15_board_that_is_not_read_yet_is_named() {
    let mut dashboard = dashboard(THEME);
    let no_board = || TeamSnapshot { tasks: Default::default(), is_board_read: false, ..sample() };
    dashboard.set_snapshot(no_board());
    dashboard.show(Panel::Board);
    let shown = picture(&mut dashboard, 80, 24);
    assert!(shown.contains("reading the board …") && !shown.contains("no tasks"), "{shown}");
    press(&mut dashboard, "Down Enter Escape End");
    dashboard.set_snapshot(TeamSnapshot { is_board_read: true, ..no_board() });
    let shown = picture(&mut dashboard, 80, 24);
    assert!(shown.contains("no tasks"), "{shown}");
}
