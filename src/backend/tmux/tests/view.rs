//! Labels in borders, and panes that are focused, hidden and shown again.

use super::super::Tmux;
use super::harness::{
    Lab, all_closed, exists, launch, launches, marks, pane, placed, refused, traced, until,
};
use crate::{Backend, BackendError, Label, Mark, TmuxHome};
use model::members::placement::{Layout, Placement, Verdict};

fn label(name: &str, role: Option<&str>, state: &str, color: &str) -> Label {
    let (name, state) = (name.to_owned(), state.to_owned());
    Label { name, role: role.map(str::to_owned), state, color: Some(color.to_owned()) }
}

const LABEL: &str = "#{@phalanx_name}/#{@phalanx_role}/#{@phalanx_state}/#{@phalanx_color}";

#[test]
fn labels_of_a_batch_take_one_process_and_show_in_borders() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(TmuxHome { program: traced(&lab), ..lab.home_in("demo", "%0") });
    let all = launches(4);
    let places = placed(&tmux, &all);
    let before = lab.calls();
    let mut wanted: Vec<(Mark<'_>, Label)> = marks(&places, &all)
        .into_iter()
        .map(|mark| (mark, label("alice", Some("reviewer"), "working", "orange")))
        .collect();
    wanted[1].1 = label("bob", None, "", "no such colour");
    wanted[2].0.token = "another";
    tmux.label(&wanted);
    assert_eq!(lab.calls() - before, 1);
    tmux.label(&[]);
    assert_eq!(lab.calls() - before, 1, "nothing changed, nothing runs");
    let shown = |nth: usize| lab.field(&pane(&places[nth]).pane_id, LABEL);
    assert_eq!(shown(0), "alice/reviewer/working/colour208");
    assert_eq!(shown(1), "bob///");
    assert_eq!(shown(2), "m2/tester//", "not proven ours");
    lab.attach("main");
    lab.tmux(&["select-window", "-t", &pane(&places[0]).window_id]);
    until("the border says it", || lab.shown().contains(" alice (reviewer) working "));
    assert!(lab.shown().contains("38;5;208"), "{}", lab.shown());
    assert!(lab.shown().contains(" bob "), "{}", lab.shown());
}

#[test]
fn sec_02_hostile_labels_execute_nothing() {
    let lab = Lab::start(None);
    let canary = lab.path("canary");
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(1);
    let places = placed(&tmux, &all);
    let shell = format!("#(touch {})", canary.display());
    for hostile in [
        &shell,
        "#{E:@x}",
        "a;",
        "; kill-server",
        "\"",
        "'",
        "$(x)",
        "\u{1b}[31m",
        "-x",
        "\n",
        "#[fg=red]",
        "ü %H",
    ] {
        let hostile = label(hostile, Some(hostile), hostile, hostile);
        tmux.label(&[(Mark { placement: &places[0], token: &all[0].token }, hostile)]);
        let shown = lab.field(&pane(&places[0]).pane_id, LABEL);
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-/".contains(c);
        assert!(shown.chars().all(plain) && shown.len() > 3, "{shown}");
    }
    lab.attach("=phalanx-demo");
    until("it is drawn", || lab.shown().contains("H"));
    assert!(!exists(&canary));
    assert_eq!(tmux.verify(Mark::new(&places[0], &all[0].token)), Verdict::Owned);
}

#[test]
fn ly_07_label_beside_the_lead_changes_only_the_members_border() {
    let lab = Lab::wide();
    lab.tmux(&["set-option", "-w", "-t", "@0", "pane-border-status", "top"]);
    lab.tmux(&["set-option", "-w", "-t", "@0", "pane-border-format", "the user's own"]);
    let options = || {
        lab.tmux(&["show-options", "-w", "-t", "@0"])
            + &lab.tmux(&["show-options", "-p", "-t", "%0"])
    };
    let before = options();
    let tmux = Tmux::new(TmuxHome { layout: Layout::Split, ..lab.home_in("demo", "%0") });
    let all = launches(1);
    let places = placed(&tmux, &all);
    tmux.label(&[(marks(&places, &all)[0], label("alice", None, "idle", "red"))]);
    lab.attach("main");
    until("both are drawn", || {
        lab.shown().contains(" alice idle ") && lab.shown().contains("the user's own")
    });
    assert_eq!(options(), before);
}

#[test]
fn hidden_pane_keeps_its_identity_when_shown_again() {
    let lab = Lab::wide();
    for layout in [Layout::Panes, Layout::Split, Layout::Windows] {
        let tmux = Tmux::new(TmuxHome { layout, ..lab.home_in("demo", "%0") });
        let all = launches(2);
        let places = placed(&tmux, &all);
        let view = || lab.field("=main:", "#{window_id} #{pane_id} #{window_zoomed_flag}");
        let (before, width) = (view(), lab.field("%0", "#{pane_width}"));
        let token = all[1].token.as_str();
        let hidden = tmux.hide(Mark::new(&places[1], token)).expect("hidden");
        assert_eq!(pane(&hidden).window_name, "phalanx-demo-hidden");
        assert_eq!(
            (&pane(&hidden).pane_id, pane(&hidden).pane),
            (&pane(&places[1]).pane_id, pane(&places[1]).pane)
        );
        assert_eq!(
            lab.field(&pane(&hidden).pane_id, "#{window_panes} #{window_id}"),
            format!("1 {}", pane(&hidden).window_id)
        );
        assert_eq!(tmux.hide(Mark::new(&hidden, token)).expect("again"), hidden);
        // A hidden window does not offer room to new panes.
        let more = launches(1);
        let next = placed(&tmux, &more);
        assert_ne!(pane(&next[0]).window_id, pane(&hidden).window_id);
        let shown = tmux.show(Mark::new(&hidden, token)).expect("shown");
        assert_eq!(tmux.show(Mark::new(&shown, token)).expect("again"), shown);
        let together = pane(&shown).window_id == pane(&places[0]).window_id;
        assert_eq!(together, layout != Layout::Windows, "{layout:?}");
        assert_ne!(pane(&shown).window_name, "phalanx-demo-hidden");
        assert_eq!(tmux.verify(Mark::new(&shown, token)), Verdict::Owned);
        assert_eq!((view(), lab.field("%0", "#{pane_width}")), (before, width));
        all_closed(&tmux, &next, &more);
        all_closed(&tmux, &places, &all);
        assert_eq!(lab.panes(), ["%0"]);
    }
}

#[test]
fn ly_04_lead_regains_its_width_while_the_last_member_is_hidden() {
    let lab = Lab::wide();
    let tmux = Tmux::new(TmuxHome { layout: Layout::Split, ..lab.home_in("demo", "%0") });
    let all = launches(1);
    let places = placed(&tmux, &all);
    let width = || lab.field("%0", "#{pane_width}");
    assert_eq!(width(), "100");
    let hidden = tmux.hide(Mark::new(&places[0], &all[0].token)).expect("hidden");
    assert_eq!(width(), "200");
    // `show` works without knowing the layout.
    let elsewhere = Tmux::new(lab.home_in("demo", "%0"));
    let shown = elsewhere.show(Mark::new(&hidden, &all[0].token)).expect("shown");
    assert_eq!((pane(&shown).window_id.as_str(), width().as_str()), ("@0", "100"));
}

#[test]
fn focus_selects_the_pane_on_an_attached_client() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home_in("demo", "%0"));
    let all = launches(2);
    let places = placed(&tmux, &all);
    let focus = |tmux: &Tmux, nth: usize| tmux.focus(Mark::new(&places[nth], &all[nth].token));
    let unwatched = focus(&tmux, 0).expect_err("no terminal shows the session");
    assert!(matches!(unwatched, BackendError::NotShown { .. }), "{unwatched}");
    lab.attach("main");
    let seen =
        || lab.tmux(&["list-clients", "-F", "#{session_name} #{pane_id} #{window_zoomed_flag}"]);
    focus(&tmux, 1).expect("focused");
    assert_eq!(seen(), format!("main {} 0", pane(&places[1]).pane_id));
    lab.tmux(&["resize-pane", "-Z", "-t", &pane(&places[1]).pane_id]);
    focus(&tmux, 0).expect("focused");
    assert_eq!(
        seen(),
        format!("main {} 1", pane(&places[0]).pane_id),
        "a zoomed window stays zoomed"
    );
    // For a pane in another session, the client switches to that session.
    let detached = Tmux::new(lab.home("other"));
    let far = launches(1);
    let place = placed(&detached, &far);
    tmux.focus(Mark::new(&place[0], &far[0].token)).expect("switched");
    assert_eq!(seen(), format!("phalanx-other {} 0", pane(&place[0]).pane_id));
}

/// SD-05, LY-04: panes with the same program in our windows and in others are not touched by any
/// operation, whether it succeeds or is refused.
#[test]
fn sd_05_no_operation_touches_bystanders() {
    let lab = Lab::wide();
    let tmux = Tmux::new(lab.home_in("demo", "%0"));
    let all = launches(2);
    let places = placed(&tmux, &all);
    let ours = pane(&places[0]).window_id.clone();
    for nth in 0..20 {
        let words: &[&str] = match nth {
            0..4 => &["split-window", "-d", "-h", "-t", &ours],
            4..12 => &["split-window", "-d", "-h", "-t", "%0"],
            _ => &["new-window", "-d", "-t", "=main:"],
        };
        lab.tmux(&[words, &["--", "/usr/bin/env", "sleep", "300"]].concat());
        lab.tmux(&["select-layout", "-t", if nth < 4 { &ours } else { "%0" }, "tiled"]);
    }
    let own: Vec<&str> = places.iter().map(|place| pane(place).pane_id.as_str()).collect();
    let format = "#{pane_id} #{pane_pid} #{window_id} #{@phalanx_token}#{@phalanx_state}";
    let others = || {
        let rows = lab.tmux(&["list-panes", "-a", "-F", format]);
        let mut rows: Vec<String> = rows.lines().map(str::to_owned).collect();
        rows.retain(|row| !own.contains(&row.split(' ').next().unwrap_or_default()));
        rows
    };
    let layouts = || {
        let rows = lab.tmux(&["list-windows", "-a", "-F", "#{window_id} #{window_layout}"]);
        rows.lines().filter(|row| !row.starts_with(&ours)).map(str::to_owned).collect::<Vec<_>>()
    };
    let (before, arranged) = (others(), layouts());
    for token in ["another", ""] {
        let mark = Mark::new(&places[0], token);
        assert!(tmux.focus(mark).is_err() && tmux.hide(mark).is_err());
        assert!(tmux.show(mark).is_err());
        tmux.label(&[(mark, label("x", None, "x", "red"))]);
        assert_ne!(refused(&tmux, &places[0], token), Verdict::Owned);
    }
    let hidden: Placement = tmux.hide(Mark::new(&places[0], &all[0].token)).expect("hidden");
    tmux.show(Mark::new(&hidden, &all[0].token)).expect("shown");
    tmux.label(&[(marks(&places, &all)[0], label("alice", None, "idle", "red"))]);
    let next = launch("next");
    let more = placed(&tmux, std::slice::from_ref(&next));
    all_closed(&tmux, &more, &[next]);
    all_closed(&tmux, &places, &all);
    assert_eq!((others(), layouts()), (before, arranged));
}

#[test]
fn pt_06_hide_and_show_work_under_a_hostile_configuration() {
    let lab = Lab::empty();
    lab.boot(Some("nasty.conf"));
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(3);
    let places = placed(&tmux, &all);
    let token = all[2].token.as_str();
    let hidden = tmux.hide(Mark::new(&places[2], token)).expect("hidden");
    assert_eq!(
        lab.field(&pane(&hidden).pane_id, "#{window_name} #{pane_synchronized}"),
        "phalanx-demo-hidden 0"
    );
    let shown = tmux.show(Mark::new(&hidden, token)).expect("shown");
    assert_eq!(pane(&shown).window_id, pane(&places[0]).window_id);
    tmux.label(&[(marks(&places, &all)[0], label("alice", None, "idle", "red"))]);
    assert_eq!(lab.field(&pane(&places[0]).pane_id, LABEL), "alice//idle/red");
    all_closed(&tmux, &places, &all);
    assert!(lab.panes().is_empty());
}
