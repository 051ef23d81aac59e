//! Verdicts on panes of a real tmux: only a pane that is proven ours is closed.

use std::path::PathBuf;

use super::super::Tmux;
use super::harness::{
    Lab, closed, exists, launch, launch_of, launches, pane, placed, refused, run, until,
};
use crate::{Backend, CloseOutcome, Label, Mark, TmuxHome};
use model::members::placement::{Placement, ProcessId, PtyHold, TmuxPane, Verdict};
use sys::proc::{Liveness, Process, liveness, wait_exit};

/// Returns a copy of the placement with one part changed.
fn changed(placement: &Placement, change: impl FnOnce(&mut TmuxPane)) -> Placement {
    let mut pane = pane(placement).clone();
    change(&mut pane);
    Placement::Tmux(pane)
}

fn is_unknown(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unknown { .. })
}

fn is_foreign(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Foreign { .. })
}

fn kill_server(place: &Placement) {
    let server = pane(place).server;
    run("/bin/kill", &["-KILL", &server.pid.to_string()]);
    assert!(wait_exit(
        Process { pid: server.pid, start: server.start },
        std::time::Duration::from_secs(60)
    ));
}

#[test]
fn sd_05_bystanders_with_the_same_program_are_not_closed() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(3);
    let places = placed(&tmux, &all);
    let window = pane(&places[0]).window_id.clone();
    for nth in 0..20 {
        // Some of them are in our own window.
        let target = if nth < 4 { window.as_str() } else { "=main:" };
        let words: &[&str] =
            if nth < 10 { &["split-window", "-d", "-h"] } else { &["new-window", "-d"] };
        let tail = ["-t", target, "--", "/usr/bin/env", "sleep", "300"];
        let target_is_index = words[0] == "new-window";
        let tail =
            if target_is_index { [&["-t", "=main:"], &tail[2..]].concat() } else { tail.to_vec() };
        lab.tmux(&[words, &tail].concat());
        let tiled = if target_is_index { "=main:" } else { target };
        lab.tmux(&["select-layout", "-t", tiled, "tiled"]);
    }
    let ours: Vec<&str> = places.iter().map(|place| pane(place).pane_id.as_str()).collect();
    let mut others = lab.panes();
    others.retain(|id| !ours.contains(&id.as_str()));
    assert_eq!(others.len(), 21);
    for (place, launch) in places.iter().zip(&all) {
        closed(&tmux, place, launch);
        assert!(matches!(tmux.close(Mark::new(place, &launch.token)), CloseOutcome::Gone), "again");
    }
    assert_eq!(lab.panes(), others);
}

#[test]
fn sd_06_ids_of_a_restarted_server_are_not_ours() {
    let lab = Lab::empty();
    lab.boot(None);
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(2);
    let places = placed(&tmux, &all);
    kill_server(&places[0]);
    lab.boot(None);
    lab.tmux(&["new-session", "-d", "-s", "phalanx-demo", "--", "env", "sleep", "300"]);
    lab.tmux(&["split-window", "-d", "-t", "=phalanx-demo:", "--", "env", "sleep", "300"]);
    // Even a matching token does not make it ours.
    lab.tmux(&["set-option", "-p", "-t", "%1", "@phalanx_token", &all[1].token]);
    let before = lab.panes();
    assert_eq!(before, ["%0", "%1"]);
    for (place, launch) in places.iter().zip(&all) {
        let mark = Mark::new(place, &launch.token);
        assert_eq!(tmux.verify(mark), Verdict::Gone);
        assert!(matches!(tmux.close(mark), CloseOutcome::Gone), "gone already");
        assert!(tmux.focus(mark).is_err() && tmux.hide(mark).is_err());
        assert!(tmux.show(mark).is_err() && tmux.screen(mark, 5).is_err());
        let label = Label { name: "x".to_owned(), role: None, state: "x".to_owned(), color: None };
        tmux.label(&[(mark, label)]);
    }
    assert_eq!(lab.panes(), before);
    assert_eq!(lab.field("%1", "#{@phalanx_name}#{@phalanx_state}"), "", "not even labelled");
}

#[test]
fn sp_19_server_starts_where_the_last_one_is_exiting() {
    let lab = Lab::empty();
    let tmux = Tmux::new(lab.home("demo"));
    for _ in 0..15 {
        let places = placed(&tmux, &launches(2));
        lab.tmux(&["kill-server"]);
        // The answer of `kill-server` comes before the end of the server.
        let again = placed(&tmux, &launches(1));
        assert_ne!(pane(&places[0]).server, pane(&again[0]).server);
        kill_server(&again[0]);
    }
}

#[test]
fn every_part_of_the_identity_must_match() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(2);
    let places = placed(&tmux, &all);
    let (place, token) = (&places[0], all[0].token.as_str());
    let other = pane(&places[1]).clone();
    assert!(is_foreign(&refused(&tmux, place, &all[1].token)));
    let wrong_pane = changed(place, |pane| pane.pane_id.clone_from(&other.pane_id));
    assert!(is_foreign(&refused(&tmux, &wrong_pane, token)));
    let wrong_pid = changed(place, |pane| pane.pane = other.pane);
    assert!(is_foreign(&refused(&tmux, &wrong_pid, token)));
    let wrong_start = changed(place, |pane| pane.pane.start += 1);
    assert!(is_foreign(&refused(&tmux, &wrong_start, token)));
    let older_server = changed(place, |pane| pane.server.start -= 1);
    assert!(
        matches!(tmux.close(Mark::new(&older_server, token)), CloseOutcome::Gone),
        "its server has ended"
    );
    // A process that runs, but is not the server behind the socket.
    let us = Process::current();
    let other_server =
        changed(place, |pane| pane.server = ProcessId { pid: us.pid, start: us.start });
    assert!(is_unknown(&refused(&tmux, &other_server, token)));
    let other_socket = changed(place, |pane| pane.socket = "/nonexistent/socket".to_owned());
    assert!(is_unknown(&refused(&tmux, &other_socket, token)));
    let never_there = changed(place, |pane| pane.pane_id = "%999".to_owned());
    assert_eq!(tmux.verify(Mark::new(&never_there, token)), Verdict::Gone);
    let no_pane = Placement::Pty(PtyHold { launcher: pane(place).pane, log: String::new() });
    assert!(is_foreign(&refused(&tmux, &no_pane, token)));
    assert_eq!(tmux.verify(Mark::new(place, token)), Verdict::Owned, "and nothing was touched");
}

#[test]
fn sd_07_hostile_ids_are_refused_before_tmux_runs() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(1);
    let places = placed(&tmux, &all);
    let (place, token) = (&places[0], all[0].token.as_str());
    let touched = lab.path("touched");
    let text = format!("#!/bin/sh\ntouch '{}'\n", touched.display());
    let fake = Tmux::new(TmuxHome { program: lab.script("fake", &text), ..lab.home("demo") });
    for id in [
        "",
        " ",
        "%",
        "%-1",
        "last",
        "{last}",
        "phalanx-demo",
        "@0",
        "$0",
        "%0;",
        "%0 ; kill-server",
        "=main:",
    ] {
        let hostile = changed(place, |pane| pane.pane_id = id.to_owned());
        assert!(is_unknown(&refused(&fake, &hostile, token)), "{id:?}");
        assert!(fake.screen(Mark::new(&hostile, token), 5).is_err());
    }
    for token in ["", "a b", "#{pane_id}"] {
        assert!(is_unknown(&refused(&fake, place, token)), "{token:?}");
    }
    let nowhere = changed(place, |pane| pane.socket = String::new());
    assert!(is_unknown(&refused(&fake, &nowhere, token)));
    assert!(!exists(&touched));
    assert_eq!(lab.panes().len(), 2);
}

#[test]
fn cr_11_missing_socket_is_unknown_not_gone() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(1);
    let places = placed(&tmux, &all);
    let (place, token) = (&places[0], all[0].token.as_str());
    let aside = lab.path("aside");
    sys::fs::rename(&lab.socket, &aside).expect("moved");
    assert!(is_unknown(&refused(&tmux, place, token)));
    assert!(tmux.screen(Mark::new(place, token), 5).is_err());
    // A lead whose own tmux cannot be reached does not start another server.
    let inside = Tmux::new(lab.home_in("demo", "%0"));
    assert!(inside.place(&launches(2)).iter().all(Result::is_err));
    assert!(!exists(&lab.socket));
    // Another server on the socket does not prove that the first one has exited.
    lab.boot(None);
    lab.tmux(&["new-session", "-d", "-s", "x", "--", "env", "sleep", "300"]);
    assert!(is_unknown(&refused(&tmux, place, token)));
    lab.tmux(&["kill-server"]);
    until("the second server has gone", || lab.try_tmux(&["list-sessions"]).code != Some(0));
    sys::fs::rename(&aside, &lab.socket).expect("moved back");
    assert_eq!(tmux.verify(Mark::new(place, token)), Verdict::Owned);
    kill_server(place);
    assert_eq!(tmux.verify(Mark::new(place, token)), Verdict::Gone);
}

#[test]
fn ly_02_swapped_moved_renamed_and_zoomed_panes_are_still_ours() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(4);
    let places = placed(&tmux, &all);
    let id = |nth: usize| pane(&places[nth]).pane_id.clone();
    lab.tmux(&["swap-pane", "-d", "-s", &id(0), "-t", "%0"]);
    lab.tmux(&["break-pane", "-d", "-s", &id(1), "-t", "=main:"]);
    lab.tmux(&["join-pane", "-d", "-h", "-s", &id(2), "-t", "=main:"]);
    lab.tmux(&["resize-pane", "-Z", "-t", &id(3)]);
    lab.tmux(&["rename-window", "-t", &id(3), "mine"]);
    lab.tmux(&["rename-session", "-t", "=phalanx-demo", "mine"]);
    lab.tmux(&["select-pane", "-t", &id(3), "-T", "m0"]);
    for (place, launch) in places.iter().zip(&all) {
        assert_eq!(tmux.verify(Mark::new(place, &launch.token)), Verdict::Owned);
    }
    for (place, launch) in places.iter().zip(&all) {
        let process = pane(place).pane;
        closed(&tmux, place, launch);
        until("its process ends", || liveness(process.pid, process.start) == Liveness::Dead);
    }
    assert_eq!(lab.panes(), ["%0"], "the user's own pane, now alone in what was our window");
}

#[test]
fn sd_13_closing_the_last_pane_may_end_the_server() {
    let lab = Lab::empty();
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(2);
    let places = placed(&tmux, &all);
    for (place, launch) in places.iter().zip(&all) {
        closed(&tmux, place, launch);
    }
    until("the server ends: it was started for us alone", || {
        lab.try_tmux(&["list-sessions"]).code != Some(0)
    });
}

#[test]
fn cr_03_dead_pane_that_was_kept_can_be_closed() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(2);
    let places = placed(&tmux, &all);
    let (place, launch) = (&places[0], &all[0]);
    let id = pane(place).pane_id.as_str();
    lab.tmux(&["set-option", "-p", "-t", id, "remain-on-exit", "on"]);
    run("/bin/kill", &["-KILL", &pane(place).pane.pid.to_string()]);
    until("tmux knows", || lab.field(id, "#{pane_dead}") == "1");
    assert_eq!(tmux.verify(Mark::new(place, &launch.token)), Verdict::Owned);
    closed(&tmux, place, launch);
    // A program that a person starts in our pane afterwards is not ours.
    let id = pane(&places[1]).pane_id.as_str();
    lab.tmux(&["respawn-pane", "-k", "-t", id, "--", "/usr/bin/env", "sleep", "300"]);
    assert!(is_foreign(&refused(&tmux, &places[1], &all[1].token)));
    assert!(lab.panes().iter().any(|pane| pane == id));
    let label = Label { name: "another".to_owned(), ..Label::default() };
    tmux.label(&[(Mark { placement: &places[1], token: &all[1].token }, label)]);
    assert_eq!(lab.field(id, "#{@phalanx_name}"), all[1].label.name, "it keeps its label");
}

#[test]
fn sd_09_pane_of_a_dead_launcher_is_ours_until_it_closes() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let ready = lab.path("ready");
    let text = "trap '' HUP; sleep 300 & echo $! > \"$0.new\"; mv \"$0.new\" \"$0\"; wait";
    let launch = launch_of("parent", &["/bin/sh", "-c", text, ready.to_str().expect("utf-8")]);
    let places = placed(&tmux, std::slice::from_ref(&launch));
    until("it has a child", || exists(&ready));
    let child = Process::of(lab.text("ready").trim().parse().expect("a pid")).expect("alive");
    run("/bin/kill", &["-KILL", &pane(&places[0]).pane.pid.to_string()]);
    until("its pane goes", || match tmux.verify(Mark::new(&places[0], &launch.token)) {
        Verdict::Gone => true,
        Verdict::Owned => false,
        other => panic!("{other}"),
    });
    assert_eq!(
        liveness(child.pid, child.start),
        Liveness::Alive,
        "ending those is not the backend's business"
    );
    assert!(sys::proc::signal(child, 9));
}

#[test]
fn server_without_sessions_has_no_panes() {
    let lab = Lab::empty();
    lab.boot(None);
    let tmux = Tmux::new(lab.home("demo"));
    let all = [launch("alice")];
    let places = placed(&tmux, &all);
    lab.tmux(&["kill-session", "-t", "=phalanx-demo"]);
    assert_eq!(tmux.verify(Mark::new(&places[0], &all[0].token)), Verdict::Gone);
    assert!(matches!(tmux.close(Mark::new(&places[0], &all[0].token)), CloseOutcome::Gone), "gone");
    let again = placed(&tmux, &all);
    assert_eq!(tmux.verify(Mark::new(&again[0], &all[0].token)), Verdict::Owned);
    let missing =
        Tmux::new(TmuxHome { program: PathBuf::from("/no/such/tmux"), ..lab.home("demo") });
    assert!(is_unknown(&refused(&missing, &again[0], &all[0].token)));
}
