//! Sequences of keys and what they cause.

use crossterm::event::{Event, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::super::dialog::OpenDialog;
use super::super::layout::Panel;
use super::{NOW, THEME, dashboard, name, picture, press, sample};
use crate::model::id::TaskId;
use crate::ops::snapshot::TeamSnapshot;
use crate::ui::dashboard::{AfterRun, ChosenCommand, Dashboard, Effect, FinishedCommand};

/// Returns the commands among effects, as a person would type them.
fn commands(effects: &[Effect]) -> Vec<String> {
    let text = |effect: &Effect| match effect {
        Effect::Run { command, .. } => Some(command.text()),
        Effect::RunHere(command) => Some(format!("here: {}", command.text())),
        Effect::Page(command) => Some(format!("page: {}", command.text())),
        Effect::Quit => Some("quit".to_owned()),
        Effect::Press { member, keys } => {
            let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
            Some(format!("{member} < {}", keys.join(" ")))
        }
        Effect::ReadHistory(member) => Some(format!("history of {member}")),
        _ => None,
    };
    effects.iter().filter_map(text).collect()
}

#[test]
fn keys_become_commands() {
    let table: &[(&str, &[&str])] = &[
        ("q", &["quit"]),
        ("C-c", &["quit"]),
        // ben is first, because he has waited longest.
        ("m 'hi there' Enter", &["phalanx send ben -- 'hi there'"]),
        ("m --x Enter", &["phalanx send ben -- --x"]),
        ("m Enter", &[]),
        ("m hi Escape", &[]),
        ("b 'all stop' Enter", &["phalanx broadcast -- 'all stop'"]),
        ("K y", &["phalanx shutdown ben"]),
        ("K n", &[]),
        ("R y", &["phalanx restart ben"]),
        ("f", &["phalanx focus ben"]),
        ("h", &["phalanx hide ben"]),
        ("a", &["here: phalanx attach ben"]),
        ("e", &["phalanx explain ben"]),
        ("l", &["page: phalanx logs ben"]),
        ("d", &["phalanx worktree diff ben"]),
        ("D", &["page: phalanx worktree diff ben"]),
        ("o", &["here: '$SHELL'"]),
        // ben has no worktree; ada does.
        ("c", &[]),
        ("/ ada Enter c 'a change' Enter", &["git add --all"]),
        ("/ ada Enter M", &["phalanx worktree merge ada --dry-run"]),
        ("y", &["phalanx answer perm-1795-ben --approve"]),
        ("Y", &["phalanx answer perm-1795-ben --approve --always"]),
        ("r 'not now' Enter", &["phalanx answer perm-1795-ben --reject '--reason=not now'"]),
        ("n Enter y", &["phalanx answer perm-1795-ben --approve"]),
        ("n Enter r no Enter", &["phalanx answer perm-1795-ben --reject '--reason=no'"]),
        ("3 Right Right y", &["phalanx task approve 2"]),
        ("3 Right Right r no Enter", &["phalanx task reject 2 '--reason=no'"]),
        ("N 'Name it' Enter", &["phalanx task create -- 'Name it'"]),
        ("3 p", &["phalanx task get 6"]),
        ("3 A Enter", &["phalanx task assign 6 -- ben"]),
        ("3 u", &[]),
        ("3 Right Down u", &["phalanx retry 7"]),
        (": 'status --all' Enter", &["phalanx status --all"]),
        (": 'logs ada -f' Enter", &["here: phalanx logs ada -f"]),
        (": 'attach ada' Enter", &["here: phalanx attach ada"]),
        (": \"'open\" Enter", &[]),
        ("+ eva Enter", &["phalanx spawn eva"]),
        ("i x C-c Enter Up", &["ben < x", "ben < C-c", "ben < Enter", "ben < Up"]),
        ("i C-] Escape q", &["ben < Escape", "quit"]),
        ("2 Up", &["history of ben"]),
        ("2 PPage", &["history of ben"]),
    ];
    for (keys, expected) in table {
        let mut dashboard = dashboard(THEME);
        picture(&mut dashboard, 120, 40);
        assert_eq!(commands(&press(&mut dashboard, keys)), *expected, "{keys}");
    }
}

#[test]
fn members_are_sorted_by_attention_name_and_age() {
    let mut dashboard = dashboard(THEME);
    let order = |dashboard: &Dashboard| {
        dashboard.members.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(order(&dashboard), "ben dan ada cleo srv");
    press(&mut dashboard, "s");
    assert_eq!(order(&dashboard), "ada ben cleo dan srv");
    press(&mut dashboard, "s");
    assert_eq!(order(&dashboard), "dan ben ada cleo srv");
    press(&mut dashboard, "s");
    assert_eq!(order(&dashboard), "ben dan ada cleo srv");
}

#[test]
fn selected_member_is_followed_and_back_returns() {
    let mut dashboard = dashboard(THEME);
    let follow = |who: &str| Effect::Follow(Some(name(who)));
    assert_eq!(press(&mut dashboard, "Down"), [follow("dan")]);
    assert_eq!(press(&mut dashboard, "j"), [follow("ada")]);
    assert_eq!(press(&mut dashboard, "BSpace"), [follow("dan")]);
    assert_eq!(press(&mut dashboard, "End"), [follow("srv")]);
    assert_eq!(press(&mut dashboard, "Down"), []);
    // The selection survives a new state of the team, even in another order.
    assert_eq!(dashboard.set_snapshot(sample()), []);
    assert_eq!(dashboard.member, Some(name("srv")));
}

#[test]
fn another_run_of_the_selected_member_is_followed() {
    let mut dashboard = dashboard(THEME);
    assert_eq!(dashboard.set_snapshot(sample()), []);
    let mut restarted = sample();
    restarted.details.get_mut(&name("ben")).expect("a member").run = None;
    assert_eq!(dashboard.set_snapshot(restarted), [Effect::Follow(Some(name("ben")))]);
    assert_eq!(dashboard.set_snapshot(sample()), [Effect::Follow(Some(name("ben")))]);
}

#[test]
fn next_visits_what_waits_oldest_first_and_snooze_skips_it() {
    let mut dashboard = dashboard(THEME);
    press(&mut dashboard, "n");
    assert_eq!((dashboard.focus, dashboard.member.clone()), (Panel::Requests, Some(name("ben"))));
    press(&mut dashboard, "n");
    assert_eq!((dashboard.focus, dashboard.member.clone()), (Panel::Members, Some(name("dan"))));
    press(&mut dashboard, "n");
    assert_eq!((dashboard.focus, dashboard.task), (Panel::Board, Some(TaskId(7))));
    press(&mut dashboard, "n");
    assert_eq!((dashboard.focus, dashboard.task), (Panel::Board, Some(TaskId(2))), "in review");
    press(&mut dashboard, "n S");
    assert_eq!(dashboard.waiting().len(), 3);
    let later = TeamSnapshot { read_at: NOW.plus_ms(16 * 60 * 1000), ..sample() };
    dashboard.set_snapshot(later);
    assert_eq!(dashboard.waiting().len(), 4, "snoozed for 15 minutes only");
}

#[test]
fn filter_applies_while_it_is_typed() {
    let mut dashboard = dashboard(THEME);
    press(&mut dashboard, "/ 'rev'");
    assert_eq!(dashboard.members, [name("cleo")]);
    press(&mut dashboard, "Enter");
    assert!(dashboard.dialog.is_none());
    assert_eq!(dashboard.columns.iter().map(Vec::len).sum::<usize>(), 1, "Review the plan");
    press(&mut dashboard, "Escape");
    assert_eq!(dashboard.members.len(), 5);
}

#[test]
fn enter_on_a_task_shows_the_screen_of_its_owner() {
    let mut dashboard = dashboard(THEME);
    let effects = press(&mut dashboard, "3 Right Enter");
    assert_eq!(effects, [Effect::Follow(Some(name("ada")))]);
    assert_eq!(dashboard.focus, Panel::Screen);
    let effects = press(&mut dashboard, "3 Left Enter");
    assert_eq!(commands(&effects), ["phalanx task get 6"], "it has no owner");
}

#[test]
fn team_of_another_program_allows_only_messages_and_tasks() {
    let mut dashboard = dashboard(THEME);
    dashboard.set_snapshot(TeamSnapshot { is_foreign: true, ..sample() });
    for keys in ["K", "R", "i", "+", "y", "M"] {
        assert_eq!(press(&mut dashboard, keys), [], "{keys}");
        assert!(dashboard.dialog.is_none() && !dashboard.typing, "{keys}");
        assert!(dashboard.notice.take().is_some(), "{keys}");
    }
    assert_eq!(commands(&press(&mut dashboard, "m hi Enter")), ["phalanx send ben -- hi"]);
    assert_eq!(commands(&press(&mut dashboard, "N x Enter")), ["phalanx task create -- x"]);
}

#[test]
fn output_of_a_command_is_shown_by_its_length() {
    let run = |output: &str, success: bool, after: AfterRun| {
        let mut dashboard = dashboard(THEME);
        let command = ChosenCommand::verb(["send", "ben", "hi"]);
        let done = FinishedCommand { command, after, success, output: output.to_owned() };
        let effects = dashboard.finish(done, NOW);
        (dashboard, effects)
    };
    let (one, _) = run("sent to ben\n", true, AfterRun::Report);
    assert_eq!(one.notice.map(|notice| notice.words).as_deref(), Some("sent to ben"));
    let (two, _) = run("error: no\nhint: try\n", false, AfterRun::Report);
    assert!(matches!(two.dialog, Some(OpenDialog::Page(_))));
    let then = || Box::new(Effect::Redraw);
    let (_, effects) = run("", true, AfterRun::Then(then()));
    assert_eq!(effects, [Effect::Redraw]);
    let (failed, effects) = run("error: no", false, AfterRun::Then(then()));
    assert!(effects.is_empty() && failed.notice.is_some());
    let question = || AfterRun::Ask { question: "merge?".to_owned(), effect: then() };
    let (mut asked, effects) = run("2 commit(s) would merge", true, question());
    assert!(effects.is_empty() && picture(&mut asked, 80, 24).contains("2 commit(s) would merge"));
    assert_eq!(press(&mut asked, "y"), [Effect::Redraw]);
    let (refused, _) = run("conflicts", false, question());
    assert!(refused.dialog.is_none() && refused.notice.is_some());
}

#[test]
fn dialog_only_in_the_pane_is_not_answered_by_a_key() {
    let mut dashboard = dashboard(THEME);
    let mut snapshot = sample();
    snapshot.requests[0].answered_by = Some("pane");
    dashboard.set_snapshot(snapshot);
    assert_eq!(press(&mut dashboard, "y"), []);
    assert!(dashboard.notice.is_some());
}

fn mouse(dashboard: &mut Dashboard, kind: MouseEventKind, column: u16, row: u16) -> Vec<Effect> {
    let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
    dashboard.handle(&Event::Mouse(event), NOW)
}

#[test]
fn mouse_selects_scrolls_and_drags() {
    let mut dashboard = dashboard(THEME);
    picture(&mut dashboard, 120, 40);
    let down = MouseEventKind::Down(MouseButton::Left);
    // Two rows for each member below the border.
    let effects = mouse(&mut dashboard, down, 5, 8);
    assert_eq!(effects, [Effect::Follow(Some(name("ada")))]);
    mouse(&mut dashboard, MouseEventKind::ScrollUp, 5, 8);
    assert_eq!(dashboard.member, Some(name("ben")));
    mouse(&mut dashboard, down, 26, 2);
    assert_eq!(dashboard.focus, Panel::Board);
    let divider = dashboard.places.divider.expect("two columns");
    mouse(&mut dashboard, down, divider, 12);
    mouse(&mut dashboard, MouseEventKind::Drag(MouseButton::Left), 60, 12);
    mouse(&mut dashboard, MouseEventKind::Up(MouseButton::Left), 60, 12);
    picture(&mut dashboard, 120, 40);
    assert_eq!(dashboard.places.divider, Some(60));
    let board = dashboard.places.of(Panel::Board).expect("shown");
    mouse(&mut dashboard, down, board.x + 4, board.y + 3);
    assert_eq!(dashboard.task, Some(TaskId(4)), "the second task of the first column");
}

#[test]
fn slash_on_the_screen_searches_it_and_up_goes_to_earlier_matches() {
    let mut dashboard = dashboard(THEME);
    picture(&mut dashboard, 80, 24);
    let member = dashboard.member.clone().expect("selected");
    assert_eq!(press(&mut dashboard, "2 / t"), [Effect::ReadHistory(member.clone())]);
    let lines: Vec<String> = (1..=200).map(|n| format!("tick {n}")).collect();
    dashboard.set_history(&member, &lines.join("\n"));
    let title = |dashboard: &mut Dashboard| {
        let shown = picture(dashboard, 120, 40);
        shown.lines().nth(3).expect("the title").to_owned()
    };
    assert!(title(&mut dashboard).contains("match 200/200 of t;"));
    press(&mut dashboard, "'ICK 1'");
    assert!(title(&mut dashboard).contains("match 111/111 of tICK 1;"));
    press(&mut dashboard, "Enter Up k Down");
    assert!(title(&mut dashboard).contains("match 110/111 of tICK 1;"));
    assert!(picture(&mut dashboard, 120, 40).contains("tick 198"));
    // Other keys keep their meaning.
    press(&mut dashboard, "n");
    assert_eq!(dashboard.focus, Panel::Requests);
    press(&mut dashboard, "2 Escape");
    assert!(!dashboard.screen.is_scrolled());
    // Escape and an empty text end the search, and the filter is another prompt.
    for keys in ["2 / x Escape", "2 / x Enter Escape", "2 / Enter", "2 / x BSpace Enter"] {
        press(&mut dashboard, keys);
        assert!(!dashboard.screen.is_scrolled() && dashboard.dialog.is_none(), "{keys}");
    }
    press(&mut dashboard, "1 / ada Enter");
    assert_eq!((dashboard.members.len(), dashboard.screen.query()), (1, None));
}
