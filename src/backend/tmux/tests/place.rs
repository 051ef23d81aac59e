//! Placing, watching and closing panes: where they land, and what of the user's stays unchanged.

use std::collections::BTreeSet;

use super::super::Tmux;
use super::harness::{
    Lab, all_closed, closed, launch, launch_of, launches, pane, placed, traced, until,
};
use crate::{Backend, BackendError, Mark, TmuxHome};
use model::id::MemberName;
use model::members::placement::{Layout, Placement, TmuxPane, Verdict};
use model::members::spec::Terminal;

#[test]
fn sp_05_panes_go_to_the_callers_session_not_the_newest() {
    let lab = Lab::start(None);
    let caller = lab.field("=main:", "#{pane_id}");
    for name in ["middle", "newest"] {
        lab.tmux(&["new-session", "-d", "-s", name, "--", "env", "sleep", "300"]);
    }
    lab.attach("newest");
    let tmux = Tmux::new(lab.home_in("demo", &caller));
    let all = launches(3);
    let places = placed(&tmux, &all);
    for (place, launch) in places.iter().zip(&all) {
        assert_eq!(
            (pane(place).session_id.as_str(), pane(place).session_name.as_str()),
            ("$0", "main")
        );
        assert_eq!(
            lab.field(&pane(place).pane_id, "#{session_name} #{window_name}"),
            "main phalanx-demo"
        );
        assert_eq!(tmux.verify(Mark::new(place, &launch.token)), Verdict::Owned);
    }
    let own_window = lab.field(&caller, "#{window_id}");
    assert!(
        places.iter().all(|place| pane(place).window_id != own_window),
        "LY-04: the lead keeps its window"
    );
}

#[test]
fn ly_13_members_join_their_team_wherever_the_caller_is() {
    for layout in [Layout::Panes, Layout::Windows, Layout::Split] {
        let lab = Lab::wide();
        lab.tmux(&[
            "new-session",
            "-d",
            "-s",
            "other",
            "-x",
            "200",
            "-y",
            "50",
            "env",
            "sleep",
            "300",
        ]);
        let at = |home: TmuxHome| Tmux::new(TmuxHome { layout, ..home });
        let start = |tmux: &Tmux| placed(tmux, &[launch("ann")]).remove(0);
        let inside = at(lab.home_in("demo", "%0"));
        let first = start(&inside);
        let callers = [lab.home("demo"), lab.home_in("demo", "%1"), lab.home_in("demo", "%0")];
        for home in callers {
            let next = start(&at(home));
            assert_eq!(pane(&next).session_name, "main", "{layout:?}");
            let same_window = pane(&next).window_id == pane(&first).window_id;
            assert_eq!(same_window, layout != Layout::Windows, "{layout:?}");
        }
    }
}

#[test]
fn ly_13_team_without_panes_returns_to_its_last_session() {
    let lab = Lab::wide();
    let team = [launch("ann")];
    let inside = Tmux::new(lab.home_in("demo", "%0"));
    let places = placed(&inside, &team);
    let last = pane(&places[0]).clone();
    all_closed(&inside, &places, &team);
    let of_another_server = TmuxPane { server: last.server.of_another_boot(), ..last.clone() };
    for (last, expected) in [(last, "main"), (of_another_server, "phalanx-demo")] {
        let outside = Tmux::new(TmuxHome { last: Some(last), ..lab.home("demo") });
        let again = placed(&outside, &team);
        assert_eq!(pane(&again[0]).session_name, expected);
        all_closed(&outside, &again, &team);
    }
}

#[test]
fn sp_01_launches_are_argv_and_targets_are_ids() {
    let lab = Lab::start(None);
    let home = TmuxHome { program: traced(&lab), ..lab.home_in("demo", "%0") };
    let tmux = Tmux::new(home);
    let all = launches(5);
    let places = placed(&tmux, &all);
    assert!(tmux.screen(Mark::new(&places[0], &all[0].token), 5).is_ok());
    closed(&tmux, &places[0], &all[0]);
    let trace = lab.text("trace");
    assert!(!trace.contains("send-keys") && !trace.contains("respawn"), "{trace}");
    let words: Vec<&str> = trace.lines().collect();
    let targets: Vec<&str> =
        words.windows(2).filter(|pair| pair[0] == "-t").map(|pair| pair[1]).collect();
    let is_id = |word: &&str| {
        word.trim_end_matches(':')[1..].parse::<u32>().is_ok() && "%@$".contains(&word[..1])
    };
    assert!(targets.len() > 10 && targets.iter().all(is_id), "{targets:?}");
    let starts =
        words.windows(3).filter(|three| three == &["/usr/bin/env", "sleep", "300"]).count();
    assert_eq!(starts, 5);
    assert!(
        words.windows(3).all(|three| three[0] != "CALL" || three[1..] == ["-u", "-S"]),
        "{trace}"
    );
}

#[test]
fn sixteen_panes_are_placed_in_four_processes() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(TmuxHome { program: traced(&lab), ..lab.home("demo") });
    let places = placed(&tmux, &launches(16));
    let windows: BTreeSet<&str> =
        places.iter().map(|place| pane(place).window_id.as_str()).collect();
    assert_eq!((windows.len(), lab.calls()), (1, 4), "survey, window, splits, marks");
}

/// The three processes are survey, placement and marks, whether a session, a window or a split is
/// created.
#[test]
fn one_pane_is_placed_and_labelled_in_three_processes() {
    let lab = Lab::start(None);
    let tmux =
        Tmux::new(TmuxHome { program: traced(&lab), layout: Layout::Windows, ..lab.home("demo") });
    let split = Tmux::new(TmuxHome { program: traced(&lab), ..lab.home("split") });
    for (nth, tmux) in [&tmux, &tmux, &split, &split].into_iter().enumerate() {
        let (before, launch) = (lab.calls(), launch(&format!("m{nth}")));
        let places = placed(tmux, std::slice::from_ref(&launch));
        assert_eq!(lab.calls() - before, 3, "m{nth}");
        let shown = lab.field(
            &pane(&places[0]).pane_id,
            "#{@phalanx_name} #{@phalanx_role} #{remain-on-exit}",
        );
        assert_eq!(shown, format!("m{nth} tester off"));
    }
}

#[test]
fn detached_team_gets_a_session_that_grows() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let first = placed(&tmux, &launches(2));
    let second = placed(&tmux, &launches(3));
    for place in first.iter().chain(&second) {
        let TmuxPaneNames { session, window } = names(place);
        assert_eq!((session, window), ("phalanx-demo", "phalanx-demo"));
        assert_eq!(
            pane(place).window_id,
            pane(&first[0]).window_id,
            "room is used before a window is made"
        );
    }
    assert_eq!(lab.field(&pane(&first[0]).pane_id, "#{window_width}x#{window_height}"), "200x50");
    let sizes = lab.tmux(&[
        "list-panes",
        "-t",
        &pane(&first[0]).window_id,
        "-F",
        "#{pane_width} #{pane_height}",
    ]);
    for size in sizes.lines() {
        let mut size = size.split(' ').map(|n| n.parse::<usize>().expect("number"));
        assert!(size.next() >= Some(40) && size.next() >= Some(10), "{sizes}");
    }
    let third = placed(&tmux, &launches(30));
    let windows: BTreeSet<&str> =
        third.iter().map(|place| pane(place).window_id.as_str()).collect();
    assert_eq!(windows.len(), 3, "eleven more fit into the first");
    assert!(third.iter().all(|place| names(place).session == "phalanx-demo"));
    assert_eq!(lab.field("=main:", "#{window_panes}"), "1");
}

struct TmuxPaneNames<'a> {
    session: &'a str,
    window: &'a str,
}

fn names(place: &Placement) -> TmuxPaneNames<'_> {
    TmuxPaneNames { session: &pane(place).session_name, window: &pane(place).window_name }
}

#[test]
fn sd_07_sessions_with_similar_names_are_not_touched() {
    let lab = Lab::start(None);
    for name in ["phalanx-bill", "phalanx-billing", "phalanx-bill-2"] {
        lab.tmux(&["new-session", "-d", "-s", name, "--", "env", "sleep", "300"]);
    }
    let before = lab.panes();
    let tmux = Tmux::new(lab.home("bill"));
    let all = launches(2);
    let places = placed(&tmux, &all);
    assert_eq!(names(&places[0]).session, "phalanx-bill-3");
    // Another team with the same name has a tag of its own.
    let other = Tmux::new(TmuxHome { tag: "bill-0000".to_owned(), ..lab.home("bill") });
    let others = placed(&other, &launches(1));
    assert_eq!(names(&others[0]).session, "phalanx-bill-4");
    for (place, launch) in places.iter().zip(&all) {
        closed(&tmux, place, launch);
    }
    let mut expected = before;
    expected.push(pane(&others[0]).pane_id.clone());
    expected.sort();
    assert_eq!(lab.panes(), expected);
}

#[test]
fn ly_03_forty_members_overflow_a_small_session_into_windows() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home_in("demo", "%0"));
    let all = launches(40);
    let places = placed(&tmux, &all);
    let ids: BTreeSet<&str> = places.iter().map(|place| pane(place).pane_id.as_str()).collect();
    assert_eq!((ids.len(), lab.panes().len()), (40, 41));
    let sizes =
        lab.tmux(&["list-windows", "-a", "-F", "#{window_panes} #{window_width}x#{window_height}"]);
    assert!(sizes.lines().all(|line| line == "2 80x24" || line == "1 80x24"), "{sizes}");
    let last = places.last().zip(all.last()).expect("forty");
    assert_eq!(tmux.verify(Mark::new(last.0, &last.1.token)), Verdict::Owned);
}

#[test]
fn ly_03_crowded_window_is_tiled_or_replaced_by_a_new_one() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let first = placed(&tmux, &launches(3));
    let window = pane(&first[0]).window_id.clone();
    lab.tmux(&["resize-pane", "-t", &window, "-x", "1"]);
    let second = placed(&tmux, &launches(3));
    assert!(second.iter().all(|place| pane(place).window_id == window));
    lab.tmux(&["set-hook", "-g", "after-select-layout", &format!("resize-pane -t {window} -x 1")]);
    let third = placed(&tmux, &launches(3));
    assert!(third.iter().all(|place| pane(place).window_id != window), "{third:?}");
    assert_eq!(lab.panes().len(), 10);
}

#[test]
fn windows_layout_gives_each_member_a_window() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(TmuxHome { layout: Layout::Windows, ..lab.home("demo") });
    let places = placed(&tmux, &[launch("alice"), launch("bob")]);
    assert_eq!(names(&places[0]).window, "phalanx-demo-alice");
    assert_eq!(names(&places[1]).window, "phalanx-demo-bob");
    let third = placed(&tmux, &[launch("carol")]);
    assert_eq!(names(&third[0]).session, "phalanx-demo");
    assert_eq!(
        lab.tmux(&["list-windows", "-t", "=phalanx-demo", "-F", "#{window_panes}"]),
        "1\n1\n1"
    );
}

#[test]
fn ly_05_focus_zoom_and_window_of_the_user_are_kept() {
    let lab = Lab::start(None);
    lab.tmux(&["split-window", "-t", "=main:", "--", "env", "sleep", "300"]);
    lab.tmux(&["resize-pane", "-Z", "-t", "=main:"]);
    lab.attach("main");
    let view =
        || lab.field("=main:", "#{window_id} #{pane_id} #{window_zoomed_flag} #{window_layout}");
    let before = view();
    let tmux = Tmux::new(lab.home_in("demo", "%0"));
    let all = launches(5);
    let places = placed(&tmux, &all);
    assert_eq!(view(), before);
    for (place, launch) in places.iter().zip(&all) {
        closed(&tmux, place, launch);
        assert_eq!(view(), before);
    }
    assert_eq!(lab.tmux(&["list-windows", "-t", "=main", "-F", "#{window_id}"]), "@0");
}

#[test]
fn ly_05_zoomed_team_window_stays_zoomed() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let places = placed(&tmux, &launches(2));
    let zoomed = pane(&places[1]);
    lab.tmux(&["resize-pane", "-Z", "-t", &zoomed.pane_id]);
    let next = placed(&tmux, &launches(1));
    assert_eq!(lab.field(&zoomed.pane_id, "#{window_zoomed_flag}"), "1");
    assert_ne!(pane(&next[0]).window_id, zoomed.window_id);
}

#[test]
fn ly_06_one_change_of_size_per_batch() {
    let lab = Lab::start(None);
    let (log, ready) = (lab.path("winch"), lab.path("ready"));
    let text = "trap 'echo w >> \"$0\"' WINCH; echo x > \"$1\"; while :; do sleep 0.01; done";
    let argv =
        ["/bin/sh", "-c", text, log.to_str().expect("utf-8"), ready.to_str().expect("utf-8")];
    let tmux = Tmux::new(lab.home("demo"));
    let watcher = placed(&tmux, &[launch_of("watcher", &argv)]);
    until("the watcher is ready", || !lab.text("ready").is_empty());
    let before = lab.text("winch").lines().count();
    let places = placed(&tmux, &launches(8));
    assert_eq!(pane(&places[7]).window_id, pane(&watcher[0]).window_id);
    until("the watcher has a signal", || lab.text("winch").lines().count() > before);
    let marker = placed(&tmux, &launches(1));
    until("the last one is there", || {
        !lab.field(&pane(&marker[0]).pane_id, "#{pane_width}").is_empty()
    });
    let changes = lab.text("winch").lines().count() - before;
    assert!(changes <= 3, "{changes} changes of size in two batches");
}

#[test]
fn ly_07_options_of_the_user_are_kept() {
    let lab = Lab::start(None);
    lab.tmux(&["split-window", "-d", "-t", "=main:", "--", "env", "sleep", "300"]);
    let options = || {
        let scopes: [&[&str]; 8] = [
            &["-s"],
            &["-g"],
            &["-gw"],
            &["-A", "-t", "=main:"],
            &["-w", "-A", "-t", "@0"],
            &["-p", "-A", "-t", "%0"],
            &["-p", "-A", "-t", "%1"],
            &["-gH"],
        ];
        scopes.map(|scope| lab.tmux(&[&["show-options"], scope].concat()))
    };
    let before = options();
    let tmux = Tmux::new(lab.home_in("demo", "%0"));
    let all = launches(4);
    let places = placed(&tmux, &all);
    assert_eq!(options(), before);
    assert_eq!(
        lab.tmux(&[
            "show-options",
            "-w",
            "-v",
            "-t",
            &pane(&places[0]).window_id,
            "remain-on-exit"
        ]),
        "off"
    );
    for (place, launch) in places.iter().zip(&all) {
        closed(&tmux, place, launch);
    }
    assert_eq!(options(), before);
}

#[test]
fn sp_09_sp_10_launcher_that_exits_at_once_leaves_no_pane() {
    let lab = Lab::start(None);
    lab.tmux(&["set-option", "-g", "-w", "remain-on-exit", "on"]);
    let tmux = Tmux::new(lab.home("demo"));
    let all: Vec<_> = (0..6)
        .map(|nth| match nth % 3 {
            0 => launch_of("none", &["/no/such/launcher", "x"]),
            1 => launch("stays"),
            _ => launch_of("ends", &["/usr/bin/env", "false"]),
        })
        .collect();
    let results = tmux.place(&all);
    for (result, launch) in results.iter().zip(&all) {
        match (launch.member.as_str(), result) {
            ("stays", result) => {
                let place = result.as_ref().expect("a place");
                assert_eq!(tmux.verify(Mark::new(place, &launch.token)), Verdict::Owned);
            }
            (_, Err(BackendError::LauncherGone { .. })) => (),
            // The program was still running when it was checked; its pane closes by itself.
            (_, Ok(place)) => until("its pane goes", || {
                tmux.verify(Mark::new(place, &launch.token)) == Verdict::Gone
            }),
            (_, Err(other)) => panic!("{other}"),
        }
    }
    until("only the others are left", || lab.panes().len() == 3);
}

#[test]
fn sp_09_launcher_that_exits_at_once_on_a_new_server_leaves_no_pane() {
    for conf in [None, Some("nasty.conf")] {
        let lab = Lab::empty();
        if conf.is_some() {
            lab.boot(conf);
        }
        let tmux = Tmux::new(lab.home("demo"));
        let ends = launch_of("ends", &["/no/such/launcher", "x"]);
        match &tmux.place(std::slice::from_ref(&ends))[..] {
            [Err(BackendError::LauncherGone { member })] => assert_eq!(member, &ends.member),
            [Ok(place)] => until("its pane goes", || {
                tmux.verify(Mark::new(place, &ends.token)) == Verdict::Gone
            }),
            other => panic!("{other:?}"),
        }
        until("nothing is left", || lab.panes().is_empty());
    }
}

#[test]
fn sp_06_arguments_arrive_unchanged() {
    let lab = Lab::start(None);
    let canary = lab.path("canary");
    let words = [
        "do it;",
        "run-shell",
        &format!("touch {}", canary.display()),
        ";",
        "a\\;",
        ";;",
        "#(x)",
        "%H ~ {",
        "ü\"'$",
        "",
    ];
    let out = lab.path("words");
    let text = "out=$1; shift; printf '%s\\n' \"$@\" > \"$out.new\"; mv \"$out.new\" \"$out\"; exec sleep 300";
    let head = ["/bin/sh", "-c", text, "sh", out.to_str().expect("utf-8")];
    let argv = [&head[..], &words[..]].concat();
    let tmux = Tmux::new(lab.home("demo"));
    placed(&tmux, &[launch("first"), launch_of("second", &argv)]);
    until("the words are written", || !lab.text("words").is_empty());
    assert_eq!(lab.text("words"), words.map(|word| format!("{word}\n")).concat());
    assert!(!super::harness::exists(&canary), "SEC-01");
}

#[test]
fn sec_02_hostile_names_execute_nothing() {
    let lab = Lab::start(None);
    let canary = lab.path("canary");
    let hostile = format!("x#(touch {}) #{{E:@x}};", canary.display());
    let team = TmuxHome { team: hostile.clone(), tag: hostile.clone(), ..lab.home("demo") };
    for home in [team.clone(), TmuxHome { layout: Layout::Windows, ..team }] {
        let tmux = Tmux::new(home);
        let all = [launch("Bob #(id)"), launch("it's;")];
        let places = placed(&tmux, &all);
        lab.attach(&pane(&places[0]).session_id);
        lab.tmux(&["kill-session", "-t", &pane(&places[0]).session_id]);
    }
    assert!(!super::harness::exists(&canary));
    let bad = launch("bob");
    let tmux = Tmux::new(lab.home("demo"));
    for token in ["", "a b", "#{pane_id}", "x;"] {
        let results =
            tmux.place(&[crate::PlacementRequest { token: token.to_owned(), ..bad.clone() }]);
        assert!(matches!(results[..], [Err(BackendError::Refused { .. })]), "{token:?}");
    }
    let short = tmux.place(&[launch_of("bob", &["/bin/true"])]);
    assert!(matches!(short[..], [Err(BackendError::Refused { .. })]));
}

#[test]
fn concurrent_spawners_share_the_session() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let (one, two) = (launches(6), launches(6));
    let places = std::thread::scope(|scope| {
        let other = scope.spawn(|| placed(&tmux, &two));
        let mut places = placed(&tmux, &one);
        places.extend(other.join().expect("placed"));
        places
    });
    let ids: BTreeSet<&str> = places.iter().map(|place| pane(place).pane_id.as_str()).collect();
    assert_eq!(ids.len(), 12);
    assert!(places.iter().all(|place| tmux.verify(Mark::new(place, "other")) != Verdict::Gone));
}

#[test]
fn screen_text_and_watch_command_are_returned() {
    let lab = Lab::start(None);
    let argv = ["/bin/sh", "-c", "printf 'one\\ntwo\\nthree ü\\n\\n'; exec sleep 300"];
    let talker = launch_of("talker", &argv);
    let tmux = Tmux::new(lab.home("demo"));
    let places = placed(&tmux, std::slice::from_ref(&talker));
    let mark = Mark::new(&places[0], &talker.token);
    let screen = |lines| tmux.screen(mark, lines).expect("a screen");
    until("it has spoken", || screen(10).contains("three"));
    assert_eq!((screen(2).as_str(), screen(99).as_str()), ("two\nthree ü", "one\ntwo\nthree ü"));
    let refused = tmux.screen(Mark::new(&places[0], "other"), 5);
    assert!(matches!(refused, Err(BackendError::NotOurs { .. })));
    let socket = lab.socket.display();
    assert_eq!(
        tmux.how_to_watch(&places[0]),
        format!("tmux -S {socket} attach -t '=phalanx-demo'")
    );
    lab.attach("=phalanx-demo");
    let default = Tmux::new(TmuxHome { socket: None, ..lab.home("demo") });
    assert_eq!(default.how_to_watch(&places[0]), "tmux attach -t '=phalanx-demo'");
    let inside = Tmux::new(lab.home_in("near", "%0"));
    assert!(inside.how_to_watch(&places[0]).contains("attach"), "it is in another session");
    let near = placed(&inside, &[launch("near")]);
    let window = &pane(&near[0]).window_id;
    assert_eq!(
        inside.how_to_watch(&near[0]),
        format!("window `phalanx-near` of this tmux session (`tmux select-window -t {window}`)")
    );
    assert!(tmux.how_to_watch(&near[0]).ends_with("attach -t '$0'"));
    assert_eq!(tmux.terminal(&MemberName::lead()), Terminal::Pane);
}
