//! Sequences of keys and what they cause.

use crossterm::event::{Event, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::super::dialog::OpenDialog;
use super::super::layout::Panel;
use super::{NOW, THEME, dashboard, name, permission, picture, press, sample};
use serde_json::json;

use crate::dashboard::{
    AfterRun, ChosenCommand, Dashboard, Effect, FinishedCommand, Keymap, RequestAnswer, TeamAction,
};
use model::decisions::rules::Rule;
use model::id::TaskId;
use model::team::worktree::LandingKind;
use ops::decisions::decide::ApprovalPreview;
use ops::decisions::requests::Shown;
use ops::views::snapshot::TeamSnapshot;

/// Returns the actions among effects.
fn actions(effects: &[Effect]) -> Vec<TeamAction> {
    let action = |effect: &Effect| match effect {
        Effect::Run { command: ChosenCommand::Action(action), .. } => Some(action.clone()),
        _ => None,
    };
    effects.iter().filter_map(action).collect()
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
    assert_eq!(actions(&effects), [TeamAction::ShowTask(TaskId(6))], "it has no owner");
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
    let sent = TeamAction::Send { to: name("ben"), text: "hi".to_owned() };
    assert_eq!(actions(&press(&mut dashboard, "m hi Enter")), [sent]);
    let created = TeamAction::CreateTask { subject: "x".to_owned() };
    assert_eq!(actions(&press(&mut dashboard, "N x Enter")), [created]);
}

#[test]
fn output_of_a_command_is_shown_by_its_length() {
    let run = |output: &str, success: bool, after: AfterRun| {
        let mut dashboard = dashboard(THEME);
        let command = ChosenCommand::Typed(vec!["status".to_owned()]);
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
    let question = || AfterRun::AskToMerge(name("ann"));
    let found = "2 commit(s) would merge\nto merge: phalanx worktree merge ann --head 1a2b\n";
    for (key, kind) in
        [("y", LandingKind::Merge), ("s", LandingKind::Squash), ("r", LandingKind::Rebase)]
    {
        let (mut asked, effects) = run(found, true, question());
        assert!(effects.is_empty());
        let shown = picture(&mut asked, 80, 24);
        assert!(shown.contains("y: merge   s: squash   r: rebase   n, Esc: no"), "{shown}");
        let merge = TeamAction::Merge { member: name("ann"), head: "1a2b".to_owned(), kind };
        let command = ChosenCommand::Action(merge);
        assert_eq!(press(&mut asked, key), [Effect::Run { command, after: AfterRun::Report }]);
    }
    let (nothing, _) = run("0 commit(s) would merge into main\n", true, question());
    assert!(matches!(nothing.dialog, Some(OpenDialog::Page(_))));
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

/// Returns the request of a member to run a command.
fn shell_request(id: &str, from: &str, command: &str) -> Shown {
    let body = json!({"type": "permission_request", "request_id": id, "tool_name": "Bash",
        "description": "why", "input": {"command": command}});
    let preview = ApprovalPreview { always: Ok(Vec::new()), asked_by: None, outside: None };
    Shown {
        body,
        summary: format!("Bash: {command}"),
        preview: Some(preview),
        ..permission(id, from, 1_000)
    }
}

/// A dashboard with these requests, drawn once.
fn asked(requests: Vec<Shown>, width: u16, height: u16) -> Dashboard {
    let mut dashboard = dashboard(THEME);
    dashboard.set_snapshot(TeamSnapshot { requests, ..sample() });
    dashboard.moved_at = None;
    picture(&mut dashboard, width, height);
    dashboard
}

fn answer_of(effects: &[Effect]) -> Option<String> {
    match actions(effects).as_slice() {
        [TeamAction::Answer { request, .. }] => Some(request.to_string()),
        _ => None,
    }
}

#[test]
fn pm_09_request_that_is_not_visible_in_full_is_shown_first() {
    let long = format!("make {}", "x".repeat(90));
    for (command, is_whole) in [("rm -rf build", true), (&long, false), ("ls\nrm x", false)] {
        let mut dashboard = asked(vec![shell_request("perm-1", "ben", command)], 80, 24);
        let first = press(&mut dashboard, "y");
        assert_eq!(answer_of(&first).is_some(), is_whole, "{command}");
        if !is_whole {
            assert!(matches!(&dashboard.dialog, Some(OpenDialog::Page(_))), "{command}");
            assert_eq!(answer_of(&press(&mut dashboard, "y")).as_deref(), Some("perm-1"));
        }
    }
}

/// PM-09: the page of a request closes with it, and does not show as open what is over.
#[test]
fn pm_09_page_of_a_request_closes_with_it() {
    let long = format!("make {}", "x".repeat(90));
    let mut dashboard = asked(vec![shell_request("perm-1", "ben", &long)], 80, 24);
    press(&mut dashboard, "y");
    assert!(matches!(&dashboard.dialog, Some(OpenDialog::Page(_))));
    let other = shell_request("perm-2", "ben", "ls");
    dashboard.set_snapshot(TeamSnapshot { requests: vec![other], ..sample() });
    assert_eq!(dashboard.dialog, None);
    let shown = picture(&mut dashboard, 80, 24);
    assert!(shown.contains("the request is no longer open"), "{shown}");
}

/// PM-12: an approval would leave the questions of a program unanswered.
#[test]
fn pm_12_questions_are_answered_one_by_one() {
    let questions = json!([
        {"question": "Which colour?", "multiSelect": false,
         "options": [{"label": "red", "description": "Make it red"}, {"label": "blue"}]},
        {"question": "Which parts?", "multiSelect": true, "options": [{"label": "one"}, {"label": "two"}]},
    ]);
    let mut request = shell_request("perm-1", "ben", "");
    request.body["input"] = json!({"questions": questions});
    request.summary = "AskUserQuestion: Which colour?".to_owned();
    for (width, height, key) in [(80, 24, "y"), (120, 40, "Y")] {
        let mut dashboard = asked(vec![request.clone()], width, height);
        let footer = picture(&mut dashboard, width, height).lines().last().map(str::to_owned);
        assert!(footer.is_some_and(|line| line.starts_with("y answer ben: AskUserQuestion")));
        assert_eq!(press(&mut dashboard, key), []);
        let first = picture(&mut dashboard, width, height);
        for part in ["ben asks", "Which colour?", "1  red: Make it red", "2  blue"] {
            assert!(first.contains(part), "{part}: {first}");
        }
        assert_eq!(press(&mut dashboard, "Enter"), [], "nothing is no answer");
        press(&mut dashboard, key);
        assert_eq!(press(&mut dashboard, "2 Enter"), []);
        let second = picture(&mut dashboard, width, height);
        assert!(second.contains("Which parts? (several"), "{second}");
        let effects = press(&mut dashboard, "1,2 Enter");
        let done = actions(&effects);
        let [TeamAction::Answer { request, answer, .. }] = done.as_slice() else {
            panic!("{effects:?}")
        };
        let expected = RequestAnswer::Answers(["1=2", "2=1,2"].map(str::to_owned).to_vec());
        assert_eq!((request.as_str(), answer), ("perm-1", &expected));
    }
}

#[test]
fn pm_09_approvals_with_wide_effects_are_confirmed() {
    let rule = "ask Bash(git push:*) of the team".to_owned();
    let outside = "/etc/hosts".to_owned();
    let table = [
        (None, None, "y", false),
        (Some(rule.clone()), None, "y", true),
        (None, Some(outside), "y", true),
        (None, None, "Y", true),
    ];
    for (asked_by, outside, key, is_confirmed) in table {
        let mut request = shell_request("perm-1", "ben", "git push");
        let always = Ok(vec![Rule::parse("Bash(git push)").expect("a rule")]);
        request.preview =
            Some(ApprovalPreview { always, asked_by: asked_by.clone(), outside: outside.clone() });
        let mut dashboard = asked(vec![request], 80, 24);
        let first = press(&mut dashboard, key);
        assert_eq!(first.is_empty(), is_confirmed, "{key} {asked_by:?} {outside:?}");
        if is_confirmed {
            let shown = picture(&mut dashboard, 80, 24);
            let why = asked_by.or(outside).unwrap_or("allow Bash(git push)".to_owned());
            for part in ["ben", "git push", &why] {
                assert!(shown.contains(part), "{part}: {shown}");
            }
            assert_eq!(press(&mut dashboard, "n"), []);
            press(&mut dashboard, key);
            assert_eq!(answer_of(&press(&mut dashboard, "y")).as_deref(), Some("perm-1"));
        }
    }
}

#[test]
fn pm_09_request_that_took_the_place_of_another_is_not_answered_at_once() {
    let requests =
        vec![shell_request("perm-1", "ben", "ls"), shell_request("perm-2", "ben", "rm x")];
    let mut dashboard = asked(requests.clone(), 80, 24);
    let footer = picture(&mut dashboard, 80, 24).lines().last().map(str::to_owned);
    assert!(footer.is_some_and(|line| line.starts_with("y approve ben (1 of 2): ls")));
    let later = TeamSnapshot { requests: requests[1..].to_vec(), ..sample() };
    dashboard.set_snapshot(later);
    picture(&mut dashboard, 80, 24);
    assert_eq!(press(&mut dashboard, "y"), [], "the first was answered elsewhere just now");
    dashboard.notice = None;
    press(&mut dashboard, "Down Up");
    assert_eq!(answer_of(&press(&mut dashboard, "y")).as_deref(), Some("perm-2"));
    assert_eq!(press(&mut dashboard, "y"), [], "it is being answered");
}

#[test]
fn answer_stays_on_the_screen_while_keys_are_pressed() {
    let mut dashboard = asked(vec![shell_request("perm-1", "ben", "ls")], 80, 24);
    let effects = press(&mut dashboard, "y");
    let [Effect::Run { command, after }] = effects.as_slice() else { panic!("{effects:?}") };
    let done = FinishedCommand {
        command: command.clone(),
        after: after.clone(),
        success: true,
        output: "ben: allowed".to_owned(),
    };
    dashboard.finish(done, NOW);
    press(&mut dashboard, "Down Up z");
    let shown = |dashboard: &mut Dashboard, later: u64| {
        dashboard.expire_notices(NOW.plus_ms(later));
        picture(dashboard, 80, 24).contains("y approved ben: ls")
    };
    assert!(shown(&mut dashboard, 30_000));
    assert!(!shown(&mut dashboard, 60_000));
}

#[test]
fn keys_after_the_end_of_a_member_being_typed_to_are_no_commands() {
    let mut dashboard = dashboard(THEME);
    press(&mut dashboard, "i");
    let mut snapshot = sample();
    snapshot.status.members.retain(|member| member.name != name("ben"));
    dashboard.set_snapshot(snapshot);
    assert_eq!(press(&mut dashboard, "Y K M"), []);
    assert!(matches!(&dashboard.dialog, Some(OpenDialog::Page(_))), "{:?}", dashboard.dialog);
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
    let board = dashboard.places.place_of(Panel::Board).expect("shown");
    mouse(&mut dashboard, down, board.x + 4, board.y + 3);
    assert_eq!(dashboard.task, Some(TaskId(7)), "the second task of the first column");
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
    assert!(title(&mut dashboard).contains("match 200/200 of t:"));
    press(&mut dashboard, "'ICK 1'");
    assert!(title(&mut dashboard).contains("match 111/111 of tICK 1:"));
    press(&mut dashboard, "Enter Up k Down");
    assert!(title(&mut dashboard).contains("match 110/111 of tICK 1:"));
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

/// Returns a dashboard whose texts name `<command>` as the key of each command. The default keys
/// work, too.
fn with_other_keys() -> Dashboard {
    let mut keymap = Keymap::default();
    for default in Keymap::defaults() {
        let defaults = default.keys.iter().map(|key| (*key).to_owned());
        let keys = [format!("<{}>", default.command)].into_iter().chain(defaults);
        keymap.bind(&default.command, keys.collect());
    }
    let mut dashboard = Dashboard::new("site", THEME).with_keymap(keymap);
    let mut snapshot = sample();
    snapshot.requests.push(Shown { answered_by: Some("pane"), ..permission("p", "cleo", 9) });
    dashboard.set_snapshot(snapshot);
    dashboard
}

#[test]
fn ly_14_texts_name_the_keys_in_use() {
    let table = [
        ("", "<show-members> Members  <show-screen> Screen  <show-board> Board"),
        ("", "more: <next-attention>"),
        ("/ none", "no member matches: Esc ends the filter"),
        ("/ none Enter", "no member matches: <leave> ends the filter"),
        ("/ none Enter", "no task matches: <leave> ends the filter"),
        ("/ none Enter", "no request matches: <leave> ends the filter"),
        ("5 / none Enter", "no message matches: <leave> ends the filter"),
        ("6 / none Enter", "no event matches: <leave> ends the filter"),
        ("2 / none", "no match for none: Esc goes live"),
        ("2 / none Enter", "no match for none: <leave> goes live"),
        ("4", "more lines: <open>"),
        ("4 Enter", "ben asks: permission  <approve>: approve  <reject>: reject"),
        ("6 m", "no member is selected in the events: <show-members> shows them"),
        ("x", "no task is selected here: <show-board> shows the board"),
        ("v x", "no task is selected in the graph: <graph> shows the columns"),
        ("Down m", "dan has ended: <restart> resumes it"),
        ("4 Down y", "cleo can be answered only on its screen: <type> types there"),
    ];
    for (keys, expected) in table {
        let mut dashboard = with_other_keys();
        picture(&mut dashboard, 160, 34);
        press(&mut dashboard, keys);
        let shown = picture(&mut dashboard, 160, 34);
        assert!(shown.contains(expected), "{keys:?}: {expected:?} is missing:\n{shown}");
    }
    let mut dashboard = with_other_keys();
    dashboard.set_team_gone();
    let expected = "team site was deleted: <teams> lists other teams, <quit> quits";
    assert!(picture(&mut dashboard, 160, 34).contains(expected));
}

#[test]
fn deleted_team_is_shown_but_takes_no_commands() {
    let mut quits = dashboard(THEME);
    quits.set_team_gone();
    let shown = picture(&mut quits, 160, 34);
    for offer in ["i type", "m message", "K shut down", "+ spawn", "N new task"] {
        assert!(!shown.contains(offer), "{offer}:\n{shown}");
    }
    for keys in ["m", "b", "+", "K", "N", "Q", "y", "p"] {
        let mut dashboard = dashboard(THEME);
        dashboard.set_team_gone();
        assert_eq!(press(&mut dashboard, keys), [], "{keys}");
        let shown = picture(&mut dashboard, 160, 34);
        let told = shown.matches("team site was deleted").count();
        assert_eq!((told, shown.contains("ada")), (2, true), "{keys}:\n{shown}");
    }
    assert_eq!(press(&mut quits, "q"), [Effect::Quit]);
}

#[test]
fn answer_names_the_key_that_was_pressed() {
    let mut dashboard = with_other_keys();
    dashboard.set_snapshot(TeamSnapshot {
        requests: vec![shell_request("perm-1", "ben", "ls")],
        ..sample()
    });
    dashboard.moved_at = None;
    picture(&mut dashboard, 80, 24);
    let actions = actions(&press(&mut dashboard, "r no Enter"));
    assert!(matches!(&*actions, [TeamAction::Answer { key, .. }] if key == "r"), "{actions:?}");
}
