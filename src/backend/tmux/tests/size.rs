//! The size of the team's own session, beside clients of other sizes.

use super::super::Tmux;
use super::harness::{Lab, all_closed, launches, pane, placed, until};
use crate::TmuxHome;
use model::members::placement::Layout;

/// The sizes of the windows of a session, each once.
fn sizes(lab: &Lab, session: &str) -> Vec<String> {
    let format = "#{window_width}x#{window_height}";
    let listed = lab.tmux(&["list-windows", "-t", session, "-F", format]);
    let mut sizes: Vec<String> = listed.lines().map(str::to_owned).collect();
    sizes.sort();
    sizes.dedup();
    sizes
}

#[test]
fn ly_16_detached_team_has_its_own_size_beside_a_small_client() {
    for layout in [Layout::Panes, Layout::Windows, Layout::Split] {
        let lab = Lab::start(None);
        lab.attach_sized("main", 20, 6);
        let tmux = Tmux::new(TmuxHome { layout, ..lab.home("demo") });
        let first = placed(&tmux, &launches(1));
        assert_eq!(lab.field(&pane(&first[0]).pane_id, "#{pane_width}"), "200", "{layout:?}");
        let more = placed(&tmux, &launches(3));
        assert_eq!(sizes(&lab, "=phalanx-demo:"), ["200x50"], "{layout:?}");
        if layout != Layout::Windows {
            assert!(more.iter().all(|place| pane(place).window_id == pane(&first[0]).window_id));
        }
        // More than one window holds.
        placed(&tmux, &launches(20));
        assert_eq!(sizes(&lab, "=phalanx-demo:"), ["200x50"], "{layout:?}");
        assert_eq!(lab.field("=main:", "#{window_width}"), "20");
    }
}

#[test]
fn ly_16_team_returns_to_its_size_when_a_small_client_leaves() {
    type Leave = fn(&Lab);
    let leave: [(&str, Leave); 3] = [
        ("detached", |lab| drop(lab.tmux(&["detach-client", "-s", "=phalanx-demo:"]))),
        ("switched", |lab| {
            let client =
                lab.tmux(&["list-clients", "-t", "=phalanx-demo:", "-F", "#{client_name}"]);
            lab.tmux(&["switch-client", "-c", &client, "-t", "=main:"]);
        }),
        ("killed", |lab| {
            let pid = lab.tmux(&["list-clients", "-t", "=phalanx-demo:", "-F", "#{client_pid}"]);
            super::harness::run("kill", &["-9", &pid]);
        }),
    ];
    let lab = Lab::start(None);
    lab.attach("main");
    let tmux = Tmux::new(lab.home("demo"));
    placed(&tmux, &launches(2));
    for (how, leave) in leave {
        lab.attach_sized("=phalanx-demo:", 30, 8);
        until("the small client decides", || sizes(&lab, "=phalanx-demo:")[0].starts_with("30x"));
        leave(&lab);
        until(how, || sizes(&lab, "=phalanx-demo:") == ["200x50"]);
    }
}

#[test]
fn ly_16_size_that_a_person_has_fixed_is_kept() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    placed(&tmux, &launches(1));
    lab.tmux(&["resize-window", "-t", "=phalanx-demo:", "-x", "120", "-y", "40"]);
    placed(&tmux, &launches(1));
    assert_eq!(sizes(&lab, "=phalanx-demo:"), ["120x40"]);
}

#[test]
fn sd_19_end_of_the_team_ends_its_clients() {
    let lab = Lab::start(None);
    lab.tmux(&["set-option", "-g", "detach-on-destroy", "off"]);
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(2);
    let places = placed(&tmux, &all);
    lab.attach("=phalanx-demo:");
    all_closed(&tmux, &places, &all);
    until("no client is left", || lab.tmux(&["list-clients"]).is_empty());
}
