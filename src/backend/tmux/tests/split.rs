//! Panes beside the lead in its own window: the user's panes keep their size, their options and the
//! focus.

use std::collections::BTreeSet;

use super::super::Tmux;
use super::harness::{Lab, all_closed, launches, pane, placed, traced, until};
use crate::{Backend, Mark, TmuxHome};
use model::members::placement::{Layout, Placement, Verdict};

fn split(lab: &Lab, lead: &str) -> Tmux {
    Tmux::new(TmuxHome { layout: Layout::Split, ..lab.home_in("demo", lead) })
}

/// The window, size and position of a pane.
fn cell(lab: &Lab, id: &str) -> String {
    lab.field(id, "#{window_id} #{pane_width}x#{pane_height}+#{pane_left}+#{pane_top}")
}

fn ids(places: &[Placement]) -> Vec<&str> {
    places.iter().map(|place| pane(place).pane_id.as_str()).collect()
}

#[test]
fn ly_04_members_share_a_column_and_other_panes_keep_their_size() {
    let lab = Lab::wide();
    // The user's panes: one below the lead, one to the right of both.
    lab.tmux(&["split-window", "-d", "-v", "-l", "12", "-t", "%0", "--", "env", "sleep", "300"]);
    lab.tmux(&[
        "split-window",
        "-d",
        "-h",
        "-f",
        "-l",
        "40",
        "-t",
        "%0",
        "--",
        "env",
        "sleep",
        "300",
    ]);
    let user = || (cell(&lab, "%1"), cell(&lab, "%2"));
    let (before, layout) = (user(), lab.field("%0", "#{window_layout}"));
    assert_eq!(cell(&lab, "%0"), "@0 159x37+0+0");
    let tmux = split(&lab, "%0");
    let one = launches(2);
    let first = placed(&tmux, &one);
    assert_eq!((user(), cell(&lab, "%0").as_str()), (before.clone(), "@0 79x37+0+0"));
    let cells: BTreeSet<String> = ids(&first).iter().map(|id| cell(&lab, id)).collect();
    assert_eq!(cells, BTreeSet::from(["@0 79x18+80+0".to_owned(), "@0 79x18+80+19".to_owned()]));
    // A size that the user chose for the lead's pane is kept.
    lab.tmux(&["resize-pane", "-t", "%0", "-x", "100"]);
    let chosen = cell(&lab, "%0");
    let two = launches(3);
    let second = placed(&tmux, &two);
    assert_eq!((user(), cell(&lab, "%0")), (before.clone(), chosen));
    let in_window =
        |places: &[Placement]| places.iter().filter(|place| pane(place).window_id == "@0").count();
    assert_eq!(
        (in_window(&first), in_window(&second)),
        (2, 0),
        "three of ten rows do not fit into 37"
    );
    assert_eq!(lab.field("%0", "#{pane_active} #{window_active}"), "1 1", "LY-05");
    all_closed(&tmux, &second, &two);
    all_closed(&tmux, &first, &one);
    assert_eq!((user(), lab.field("%0", "#{window_layout}")), (before, layout));
}

#[test]
fn ly_03_members_without_room_beside_the_lead_go_to_windows() {
    let lab = Lab::wide();
    let tmux = split(&lab, "%0");
    let all = launches(11);
    let places = placed(&tmux, &all);
    let (beside, elsewhere): (Vec<_>, Vec<_>) =
        places.iter().partition(|place| pane(place).window_id == "@0");
    assert_eq!((beside.len(), elsewhere.len()), (4, 7));
    let size = |id: &str, format| lab.field(id, format).parse::<usize>().expect("a number");
    for place in &beside {
        let id = pane(place).pane_id.as_str();
        assert!(size(id, "#{pane_width}") >= 40 && size(id, "#{pane_height}") >= 10);
        assert_eq!(pane(place).session_name, "main");
    }
    assert_eq!(size("%0", "#{pane_width}"), 100, "the bigger half");
    assert!(elsewhere.iter().all(|place| pane(place).window_name == "phalanx-demo"));
    // A closed pane makes room for the next.
    all_closed(&tmux, &places[1..2], &all[1..2]);
    let next = placed(&tmux, &launches(1));
    assert_eq!(pane(&next[0]).window_id, "@0");
    assert_eq!(size("%0", "#{pane_width}"), 100);
    // Outside tmux, the lead has no pane to split.
    let outside = Tmux::new(TmuxHome { layout: Layout::Split, ..lab.home("other") });
    assert_eq!(pane(&placed(&outside, &launches(1))[0]).session_name, "phalanx-other");
}

#[test]
fn ly_02_panes_that_the_user_moved_are_left_there() {
    let lab = Lab::wide();
    let tmux = split(&lab, "%0");
    let all = launches(3);
    let places = placed(&tmux, &all);
    let moved = pane(&places[0]).pane_id.clone();
    lab.tmux(&["break-pane", "-d", "-s", &moved, "-t", "$0:"]);
    lab.tmux(&["swap-pane", "-d", "-s", &pane(&places[1]).pane_id, "-t", "%0"]);
    lab.tmux(&[
        "split-window",
        "-d",
        "-v",
        "-l",
        "5",
        "-t",
        &pane(&places[2]).pane_id,
        "--",
        "env",
        "sleep",
        "300",
    ]);
    let foreign =
        lab.panes().into_iter().find(|id| id != "%0" && !ids(&places).contains(&id.as_str()));
    let foreign = foreign.expect("the user's");
    let before = (cell(&lab, &foreign), cell(&lab, "%0"), cell(&lab, &moved));
    let more = launches(1);
    let next = placed(&tmux, &more);
    assert_eq!((cell(&lab, &foreign), cell(&lab, "%0"), cell(&lab, &moved)), before);
    for (place, launch) in places.iter().chain(&next).zip(all.iter().chain(&more)) {
        assert_eq!(tmux.verify(Mark::new(place, &launch.token)), Verdict::Owned);
    }
}

#[test]
fn ly_05_zoomed_lead_stays_zoomed() {
    let lab = Lab::wide();
    lab.tmux(&["split-window", "-d", "-t", "%0", "--", "env", "sleep", "300"]);
    lab.tmux(&["resize-pane", "-Z", "-t", "%0"]);
    lab.attach("main");
    let view = || {
        lab.field("%0", "#{window_zoomed_flag} #{pane_active} #{window_active} #{window_layout}")
    };
    let before = view();
    let tmux = split(&lab, "%0");
    let all = launches(2);
    let places = placed(&tmux, &all);
    assert_eq!(view(), before);
    assert!(places.iter().all(|place| pane(place).window_id != "@0"));
    all_closed(&tmux, &places, &all);
    assert_eq!(view(), before);
}

#[test]
fn ly_05_zoomed_lead_stays_zoomed_when_members_close() {
    let lab = Lab::wide();
    let tmux = split(&lab, "%0");
    let all = launches(3);
    let places = placed(&tmux, &all);
    lab.tmux(&["resize-pane", "-Z", "-t", "%0"]);
    lab.attach("main");
    let view = || lab.field("%0", "#{window_zoomed_flag} #{pane_active} #{window_active}");
    assert_eq!(view(), "1 1 1");
    all_closed(&tmux, &places[..2], &all[..2]);
    assert_eq!(view(), "1 1 1");
    // After the last close, the lead is the only pane, so that no zoom remains.
    all_closed(&tmux, &places[2..], &all[2..]);
    assert_eq!(lab.panes(), ["%0"]);
}

#[test]
fn ly_06_lead_is_resized_only_once_by_its_first_members() {
    let lab = Lab::wide();
    let (log, ready) = (lab.path("winch"), lab.path("ready"));
    let text = "trap 'echo w >> \"$0\"' WINCH; echo x > \"$1\"; while :; do sleep 0.01; done";
    let words =
        ["/bin/sh", "-c", text, log.to_str().expect("utf-8"), ready.to_str().expect("utf-8")];
    let lead = lab.tmux(
        &[&["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "main:", "--"], &words[..]]
            .concat(),
    );
    until("the lead is ready", || !lab.text("ready").is_empty());
    let before = lab.text("winch").lines().count();
    let tmux = split(&lab, &lead);
    placed(&tmux, &launches(3));
    until("the lead has a signal", || lab.text("winch").lines().count() > before);
    let width = lab.field(&lead, "#{pane_width}");
    placed(&tmux, &launches(1));
    placed(&tmux, &launches(4));
    assert_eq!(lab.field(&lead, "#{pane_width}"), width);
    assert_eq!(lab.text("winch").lines().count() - before, 1);
}

#[test]
fn ly_07_only_our_panes_get_options_in_the_leads_window() {
    let lab = Lab::wide();
    lab.tmux(&["split-window", "-d", "-t", "%0", "--", "env", "sleep", "300"]);
    let options = || {
        let scopes: [&[&str]; 6] = [
            &["-g"],
            &["-gw"],
            &["-A", "-t", "$0"],
            &["-w", "-A", "-t", "@0"],
            &["-p", "-A", "-t", "%0"],
            &["-p", "-A", "-t", "%1"],
        ];
        scopes.map(|scope| lab.tmux(&[&["show-options"], scope].concat()))
    };
    let before = options();
    let tmux = split(&lab, "%0");
    let all = launches(3);
    let places = placed(&tmux, &all);
    let own = lab.tmux(&["show-options", "-p", "-t", ids(&places)[0]]);
    assert!(own.contains("synchronize-panes off") && own.contains("remain-on-exit off"), "{own}");
    // The lead's window does not pass for the team's, even while a member's pane is active in it.
    lab.tmux(&["select-pane", "-t", ids(&places)[0]]);
    let layout = lab.field("%0", "#{pane_width}x#{pane_height}");
    let panes = Tmux::new(lab.home_in("demo", "%0"));
    let others = launches(1);
    let other = placed(&panes, &others);
    assert_ne!(pane(&other[0]).window_id, "@0");
    assert_eq!(lab.field("%0", "#{pane_width}x#{pane_height}"), layout);
    all_closed(&tmux, &places, &all);
    all_closed(&panes, &other, &others);
    assert_eq!(options(), before);
}

#[test]
fn ly_11_control_mode_client_never_gets_select_layout() {
    let lab = Lab::wide();
    lab.attach_control("main");
    for layout in [Layout::Panes, Layout::Split, Layout::Windows] {
        for _ in 0..2 {
            let program = traced(&lab);
            let tmux = Tmux::new(TmuxHome { layout, program, ..lab.home_in("demo", "%0") });
            let all = launches(9);
            let places = placed(&tmux, &all);
            let later = launches(2);
            let more = placed(&tmux, &later);
            all_closed(&tmux, &places, &all);
            all_closed(&tmux, &more, &later);
            assert_eq!(lab.panes(), ["%0"]);
        }
    }
    assert!(!lab.text("trace").contains("select-layout"));
}

#[test]
fn pt_06_ly_01_split_beside_the_lead_under_a_hostile_configuration() {
    let lab = Lab::empty();
    lab.boot(Some("nasty.conf"));
    let main = [
        "new-session",
        "-d",
        "-s",
        "main",
        "-x",
        "200",
        "-y",
        "50",
        "--",
        "env",
        "sleep",
        "300",
        ";",
    ];
    let keep = ["set-option", "-t", "=main:", "destroy-unattached", "off"];
    lab.tmux(&[&main[..], &keep].concat());
    let lead = lab.panes().remove(0);
    let tmux = split(&lab, &lead);
    let all = launches(5);
    let places = placed(&tmux, &all);
    assert!(places.iter().any(|place| pane(place).window_id == lab.field(&lead, "#{window_id}")));
    for id in ids(&places) {
        assert_eq!(
            lab.field(id, "#{pane_synchronized}"),
            "0",
            "keys for the lead go to no other pane"
        );
    }
    all_closed(&tmux, &places, &all);
    assert_eq!(lab.panes(), [lead]);
}
