//! Adverse environments: the user's configuration, a bare environment, and a tmux that hangs, lies
//! or is missing.

use std::path::{Path, PathBuf};

use super::super::Tmux;
use super::super::probe::probe;
use super::harness::{
    FIXTURES, Lab, all_closed, closed, exists, launch, launches, marks, pane, placed, run, until,
};
use crate::{Backend, BackendError, Label, Mark, TmuxHome};
use model::members::placement::{Layout, Verdict};

#[test]
fn pt_06_detached_team_works_under_a_hostile_configuration() {
    let lab = Lab::empty();
    lab.boot(Some("nasty.conf"));
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(20);
    let places = placed(&tmux, &all);
    for (place, launch) in places.iter().zip(&all) {
        assert_eq!(tmux.verify(Mark::new(place, &launch.token)), Verdict::Owned);
        let id = pane(place).pane_id.as_str();
        assert_eq!(lab.field(id, "#{window_name} #{pane_synchronized}"), "phalanx-demo 0");
    }
    let later = placed(&tmux, &launches(2));
    assert_eq!(pane(&later[0]).session_id, pane(&places[0]).session_id);
    for (place, launch) in places.iter().zip(&all) {
        closed(&tmux, place, launch);
    }
    assert_eq!(lab.panes().len(), 2);
    // A launcher that exits by itself takes its pane along, whatever the global `remain-on-exit`
    // is.
    run("/bin/kill", &["-KILL", &pane(&later[0]).pane.pid.to_string()]);
    until("its pane goes", || lab.panes().len() == 1);
}

#[test]
fn pt_06_ly_01_team_inside_tmux_works_under_a_hostile_configuration() {
    let lab = Lab::empty();
    lab.boot(Some("nasty.conf"));
    let keep = ["set-option", "-t", "=main:", "destroy-unattached", "off"];
    let main = [
        "new-session",
        "-d",
        "-s",
        "main",
        "-x",
        "120",
        "-y",
        "40",
        "--",
        "env",
        "sleep",
        "300",
        ";",
    ];
    lab.tmux(&[&main[..], &keep].concat());
    lab.attach("main");
    let caller = lab.panes().remove(0);
    for layout in [Layout::Panes, Layout::Windows] {
        let tmux = Tmux::new(TmuxHome { layout, ..lab.home_in("demo", &caller) });
        let all = launches(7);
        let places = placed(&tmux, &all);
        assert!(places.iter().all(|place| pane(place).session_name == "main"));
        for (place, launch) in places.iter().zip(&all) {
            closed(&tmux, place, launch);
        }
        assert_eq!(lab.panes(), std::slice::from_ref(&caller));
    }
    assert_eq!(lab.field(&caller, "#{window_index}.#{pane_index}"), "1.1");
}

#[test]
fn pt_04_bare_environment_and_c_locale_work() {
    let lab = Lab::empty();
    let bare = lab.script("bare", "#!/bin/sh\nexec env -i LC_ALL=C PATH=\"$PATH\" tmux \"$@\"\n");
    lab.boot(None);
    lab.tmux(&["new-session", "-d", "-s", "söße x", "-n", "a  b", "--", "env", "sleep", "300"]);
    let tmux = Tmux::new(TmuxHome { program: bare, ..lab.home_in("demo", "%0") });
    let all = launches(3);
    let places = placed(&tmux, &all);
    assert_eq!(pane(&places[0]).session_name, "söße x");
    let more = launches(1);
    let later = placed(&tmux, &more);
    assert_eq!(
        pane(&later[0]).window_id,
        pane(&places[2]).window_id,
        "two fit, so one window has room"
    );
    let hidden = tmux.hide(Mark::new(&later[0], &more[0].token)).expect("hidden");
    assert_eq!(pane(&hidden).session_name, "söße x");
    tmux.show(Mark::new(&hidden, &more[0].token)).expect("shown");
    for (place, launch) in places.iter().chain(&later).zip(all.iter().chain(&more)) {
        closed(&tmux, place, launch);
    }
}

#[test]
fn caller_without_a_live_pane_gets_a_detached_session() {
    let lab = Lab::start(None);
    for inside in ["%99", "", "main"] {
        let tmux = Tmux::new(lab.home_in(&format!("t{}", inside.len()), inside));
        let places = placed(&tmux, &launches(1));
        assert!(pane(&places[0]).session_name.starts_with("phalanx-t"));
    }
}

#[test]
fn pf_05_hanging_tmux_is_a_timeout_error() {
    let lab = Lab::start(None);
    let hangs = lab.script("hangs", "#!/bin/sh\necho call >> \"$0.calls\"\nexec sleep 60\n");
    let well = Tmux::new(lab.home("demo"));
    let known = launch("known");
    let places = placed(&well, std::slice::from_ref(&known));
    let tmux = Tmux::new(TmuxHome { program: hangs.clone(), ..lab.home("demo") });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let results = tmux.place(&launches(2));
            let text = |nth: usize| results[nth].as_ref().expect_err("nothing").to_string();
            assert!(matches!(&results[0], Err(BackendError::Exec(_))), "{results:?}");
            assert!(text(0).contains("5000 ms") && text(1).contains("5000 ms"), "{results:?}");
        });
        scope.spawn(|| match tmux.verify(Mark::new(&places[0], &known.token)) {
            Verdict::Unknown { reason } => assert!(reason.contains("5000 ms"), "{reason}"),
            other => panic!("{other}"),
        });
        scope.spawn(|| {
            let problem = probe(&hangs).expect_err("it hangs");
            assert!(
                problem.contains("3000 ms") && problem.contains("apt install tmux"),
                "{problem}"
            );
        });
    });
    let calls = lab.text("hangs.calls").lines().count();
    assert_eq!(calls, 3, "`place`, `verify` and the probe wait for one call each");
    assert_eq!(well.verify(Mark::new(&places[0], &known.token)), Verdict::Owned);
}

#[test]
fn pf_05_place_waits_for_two_calls_of_a_tmux_that_hangs_midway() {
    let lab = Lab::start(None);
    // Creates the panes, and hangs when they are to be marked.
    let text = "#!/bin/sh\ncase \"$*\" in *@phalanx_token*token-*|*if-shell*) echo call >> \"$0.calls\"; exec sleep 60;; esac\nexec tmux \"$@\"\n";
    let tmux = Tmux::new(TmuxHome { program: lab.script("half", text), ..lab.home("demo") });
    let mut all = launches(6);
    for (nth, launch) in all.iter_mut().enumerate() {
        launch.token = format!("token-{nth}");
    }
    let results = tmux.place(&all);
    assert_eq!(
        lab.text("half.calls").lines().count(),
        2,
        "the batch waits for two calls, not for one per member"
    );
    for result in &results {
        assert!(
            result.as_ref().expect_err("not marked").to_string().contains("5000 ms"),
            "{results:?}"
        );
    }
}

#[test]
fn sp_08_probe_reports_the_problem() {
    let lab = Lab::empty();
    assert_eq!(probe(Path::new("tmux")), Ok(()));
    let wrapper = lab.script("wrapper", "#!/bin/sh\nexec tmux \"$@\"\n");
    assert_eq!(probe(&wrapper), Ok(()));
    for (name, text) in [
        ("missing", None),
        ("old", Some("#!/bin/sh\necho tmux 3.1c\n")),
        ("garbage", Some("#!/bin/sh\nhead -c 100 /dev/zero\n")),
        ("silent", Some("#!/bin/sh\n")),
        ("fails", Some("#!/bin/sh\necho tmux 3.4\nexit 1\n")),
        ("other", Some("#!/bin/sh\necho psmux 9.9\n")),
    ] {
        let path = text.map_or_else(|| lab.path(name), |text| lab.script(name, text));
        let problem = probe(&path).expect_err(name);
        assert!(problem.contains(name) && problem.contains("apt install tmux"), "{problem}");
    }
}

#[test]
fn sp_03_errors_quote_tmux() {
    let lab = Lab::empty();
    // PT-05: longer than the path of a socket may be.
    let deep = lab.path(&"d".repeat(120));
    let tmux = Tmux::new(TmuxHome { socket: Some(deep), ..lab.home("demo") });
    for result in tmux.place(&launches(2)) {
        match result {
            Err(BackendError::Refused { stderr, .. }) => {
                assert!(stderr.contains("too long"), "{stderr}")
            }
            other => panic!("{other:?}"),
        }
    }
    let lies = lab.script("lies", "#!/bin/sh\nexit 0\n");
    let tmux = Tmux::new(TmuxHome { program: lies, ..lab.home("demo") });
    assert!(tmux.place(&launches(2)).iter().all(Result::is_err), "SP-15: rc 0 and no pane");
    let missing =
        Tmux::new(TmuxHome { program: PathBuf::from("/no/such/tmux"), ..lab.home("demo") });
    let results = missing.place(&launches(1));
    assert!(
        results[0].as_ref().is_err_and(|error| error.to_string().contains("/no/such/tmux")),
        "{results:?}"
    );
    assert!(Path::new(FIXTURES).ends_with("fixtures/tmux"));
}

#[test]
fn sp_03_batch_larger_than_one_call_is_placed_completely() {
    let lab = Lab::start(None);
    let long = "x".repeat(3_000);
    let all: Vec<_> = (0..16)
        .map(|nth| {
            super::harness::launch_of(
                &format!("m{nth}"),
                &["/bin/sh", "-c", "exec sleep 300", &long],
            )
        })
        .collect();
    let tmux = Tmux::new(lab.home("demo"));
    let places = placed(&tmux, &all);
    for (place, launch) in places.iter().zip(&all) {
        let words = lab.field(&pane(place).pane_id, "#{@phalanx_name} #{@phalanx_token}");
        assert_eq!(words, format!("{} {}", launch.member, launch.token));
    }
    let huge = launch("huge");
    let huge = crate::PlacementRequest {
        argv: vec!["/bin/echo".into(), "x".repeat(20_000).into()],
        ..huge
    };
    let results = tmux.place(&[launch("before"), huge, launch("behind")]);
    let good: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(good, [true, false, true]);
}

/// SP-02, SP-06: the login shell is never run, and the launcher's path may contain any characters.
#[test]
fn sp_06_login_shell_and_launcher_path_do_not_matter() {
    let lab = Lab::start(None);
    let asked = lab.path("asked");
    let text = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\nexit 1\n", asked.display());
    let launcher = lab.script("it's a \"$launcher\"; ü", "#!/bin/sh\nexec sleep 300\n");
    let launcher = launcher.to_str().expect("utf-8");
    let shells = ["nu", "fish", "tcsh"].map(|name| lab.script(name, &text).display().to_string());
    for shell in shells.into_iter().chain(["/bin/false".to_owned()]) {
        lab.tmux(&["set-option", "-g", "default-shell", &shell]);
        lab.tmux(&["set-option", "-g", "default-command", &shell]);
        let tmux = Tmux::new(lab.home_in("demo", "%0"));
        let all: Vec<_> = (0..16)
            .map(|nth| super::harness::launch_of(&format!("m{nth}"), &[launcher, "it's", "a;"]))
            .collect();
        let places = placed(&tmux, &all);
        assert!(
            tmux.verify_all(&marks(&places, &all)).iter().all(|verdict| *verdict == Verdict::Owned)
        );
        all_closed(&tmux, &places, &all);
    }
    assert!(!exists(&asked), "{}", lab.text("asked"));
}

#[test]
fn pt_07_dead_socket_is_named_in_the_error() {
    let lab = Lab::start(None);
    // A killed server leaves its socket file behind.
    let pid = lab.field("%0", "#{pid}");
    run("/bin/kill", &["-KILL", &pid]);
    until("the server has gone", || lab.try_tmux(&["list-sessions"]).code != Some(0));
    for result in Tmux::new(lab.home_in("demo", "%0")).place(&launches(2)) {
        let text = result.expect_err("no server").to_string();
        assert!(text.contains(lab.socket.to_str().expect("utf-8")), "{text}");
    }
    assert!(lab.panes().is_empty(), "and none is started behind the lead's back");
}

#[test]
fn pf_05_labels_and_close_wait_for_one_call_of_a_hanging_tmux() {
    let lab = Lab::start(None);
    let tmux = Tmux::new(lab.home("demo"));
    let all = launches(6);
    let places = placed(&tmux, &all);
    let text = "#!/bin/sh\ncase \"$*\" in *if-shell*) echo call >> \"$0.calls\"; exec sleep 60;; esac\nexec tmux \"$@\"\n";
    let hangs = Tmux::new(TmuxHome { program: lab.script("hangs", text), ..lab.home("demo") });
    let label = Label { name: "x".to_owned(), role: None, state: "x".to_owned(), color: None };
    let labels: Vec<_> =
        marks(&places, &all).into_iter().map(|mark| (mark, label.clone())).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| hangs.label(&labels));
        scope.spawn(|| {
            let outcomes = hangs.close_all(&marks(&places, &all), &mut |_| true);
            for (outcome, place) in outcomes.into_iter().zip(&places) {
                let text = outcome.into_verdict(place).expect_err("not closed").to_string();
                assert!(text.contains("5000 ms"), "{text}");
            }
        });
    });
    assert_eq!(
        lab.text("hangs.calls").lines().count(),
        2,
        "labels and the batch wait for one call each"
    );
    all_closed(&tmux, &places, &all);
}
