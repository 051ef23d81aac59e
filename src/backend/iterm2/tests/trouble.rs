//! Failure paths: LY-08, LY-09, LY-10.

use std::time::Duration;

use serde_json::json;

use super::harness::{Mac, launch, place_one, until};
use crate::{Backend, BackendError, CloseOutcome, Mark};
use model::members::placement::{ItermSession, Layout, Placement, Verdict};
use sys::fs;
use sys::proc::Process;

fn hint(problem: &BackendError) -> String {
    problem.hint().unwrap_or_default()
}

/// LY-08: after the leader's session has closed, a member's is split; after the members' sessions
/// have closed too, the launch fails with a reason.
#[test]
fn ly_08_lost_anchor_is_replaced() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    let ada = place_one(&iterm2, "ada").expect("placed");
    mac.op("end", &[&mac.leader.session_id]);
    let ben = place_one(&iterm2, "ben").expect("beside ada");
    assert_eq!(mac.calls("place").pop().expect("a call")[0], ada.pane_id());
    for place in [&ada, &ben] {
        mac.op("end", &[place.pane_id()]);
    }
    let problem = place_one(&iterm2, "cem").expect_err("nothing to split");
    assert!(problem.to_string().contains("neither this terminal nor any member"), "{problem}");
    assert!(hint(&problem).contains("outside tmux"), "{problem:?}");
}

/// LY-08: the anchor closes between the survey and the split; iTerm2 reports that with either of
/// two codes.
#[test]
fn ly_08_anchor_that_closes_before_the_split_is_replaced() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    place_one(&iterm2, "ada").expect("placed");
    for code in ["-1728", "-1719"] {
        mac.fail("place", code, 1);
        place_one(&iterm2, &format!("ben{}", &code[1..])).expect("from the next one");
        let calls = mac.calls("place");
        let [.., lost, taken] = &calls[..] else { panic!("two tries: {calls:?}") };
        assert_ne!(lost[0], taken[0], "another anchor");
    }
    // In a batch, the list of sessions becomes stale and is read again.
    let launches = ["cem", "dan"].map(|name| launch(name, ":"));
    mac.fail("place", "-1728", 4);
    let before = mac.calls("survey").len();
    let placed = iterm2.place(&launches);
    assert!(placed.iter().any(Result::is_ok), "{placed:?}");
    assert!(mac.calls("survey").len() > before + 1);
}

/// SP-11: "no such object" after a successful split must not cause a second one.
#[test]
fn sp_11_half_done_split_is_not_repeated() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    mac.fail("place", "half-done", 1);
    let place = place_one(&iterm2, "ada").expect("it is there");
    assert_eq!(iterm2.verify(Mark::new(&place, "token-ada")), Verdict::Owned);
    assert_eq!((mac.others().len(), mac.calls("place").len()), (1, 1));
}

/// LY-09: every error code yields advice, and no session is left.
#[test]
fn ly_09_every_error_yields_advice() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    let table = [
        ("-1708", "update iTerm2"),
        ("-1743", "Automation"),
        ("-600", "start iTerm2"),
        ("-609", "start iTerm2"),
        ("-1712", "dialog"),
        ("-128", "cancelled"),
        ("-10000", "update iTerm2"),
        ("-2741", "install iTerm2"),
        ("garbage", "update iTerm2"),
    ];
    for (mode, advice) in table {
        mac.fail("place", mode, 1);
        let problem = place_one(&iterm2, "ada").expect_err(mode);
        assert!(hint(&problem).contains(advice), "{mode}: {problem:?}");
        assert!(!problem.to_string().contains('\u{1b}'), "{problem}");
        mac.fail("survey", mode, 1);
        let problem = place_one(&iterm2, "ada").expect_err(mode);
        assert!(hint(&problem).contains(advice), "{mode}: {problem:?}");
    }
    assert!(mac.others().is_empty());
    mac.fail("survey", "-1712", 1);
    let place = Placement::Iterm2(mac.leader.clone());
    assert!(
        matches!(iterm2.verify(Mark::new(&place, "x")), Verdict::Unknown { .. }),
        "no answer proves nothing"
    );
}

/// LY-09: the error of a refused permission tells where to grant it.
#[test]
fn ly_09_refused_permission_says_where_to_grant_it() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    let place = place_one(&iterm2, "ada").expect("placed");
    mac.fail("*", "-1743", 1000);
    let mark = Mark { placement: &place, token: "token-ada" };
    let refused = [
        place_one(&iterm2, "ben").expect_err("not allowed"),
        iterm2.focus(mark).expect_err("not allowed"),
        iterm2.screen(mark, 5).expect_err("not allowed"),
    ];
    for problem in refused {
        assert!(problem.to_string().contains("Not authorized"), "{problem}");
        let hint = hint(&problem);
        assert!(hint.contains("System Settings > Privacy & Security > Automation"), "{hint}");
    }
    assert!(matches!(iterm2.verify(mark), Verdict::Unknown { .. }));
    mac.fail("*", "none", 0);
    assert_eq!(iterm2.verify(mark), Verdict::Owned);
}

/// LY-09: a session variable that is not set may have no result at all instead of `missing value`.
#[test]
fn ly_09_unset_variable_without_a_result_gives_no_token() {
    for unset in ["missing value", "no result"] {
        let mac = Mac::new();
        mac.op("unset", &[unset]);
        let iterm2 = mac.backend(Layout::Split);
        let place = place_one(&iterm2, "ada").expect("the leader's session has no token");
        assert_eq!(iterm2.verify(Mark::new(&place, "token-ada")), Verdict::Owned, "{unset}");
        mac.op("forget", &[place.pane_id()]);
        let problem = iterm2.focus(Mark::new(&place, "token-ada")).expect_err("not ours");
        assert!(matches!(problem, BackendError::NotOurs { .. }), "{unset}: {problem:?}");
        assert!(matches!(iterm2.verify(Mark::new(&place, "token-ada")), Verdict::Foreign { .. }));
    }
}

/// LY-09: a split that answers with the session that was split, or with none, as for a session of
/// the tmux integration, marks and closes nothing.
#[test]
fn ly_09_split_without_a_new_session_is_an_error() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    for mode in ["same-session", "no-result"] {
        mac.fail("place", mode, 1);
        let problem = place_one(&iterm2, "ada").expect_err(mode);
        assert!(hint(&problem).contains("update iTerm2"), "{mode}: {problem:?}");
        let leader = mac.session(&Placement::Iterm2(mac.leader.clone()));
        assert_eq!(leader["variables"], json!({}), "{mode}");
    }
    assert_eq!(mac.calls("close"), Vec::<Vec<String>>::new());
}

/// LY-09: a timeout, before and after a session was opened.
#[test]
fn ly_09_timeout_leaves_no_session_behind() {
    let mac = Mac::new();
    let mut iterm2 = mac.backend(Layout::Split);
    iterm2.osa.within = Duration::from_secs(6);
    for mode in ["slow", "late"] {
        mac.fail("place", mode, 1);
        let problem = place_one(&iterm2, "ada").expect_err(mode);
        assert!(problem.to_string().contains("no answer within 6000 ms"), "{problem}");
        assert!(hint(&problem).contains("dialog"), "{problem:?}");
        assert!(mac.others().is_empty(), "{mode}");
    }
    assert_eq!(mac.calls("close").len(), 1, "the one that had been made");
}

/// LY-09: a session is not ours just because iTerm2 returned its id for a new one.
#[test]
fn ly_09_session_returned_by_mistake_is_not_touched() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    mac.fail("place", "wrong-id", 1);
    let place = place_one(&iterm2, "ada").expect("as far as can be seen here");
    assert_eq!(place.pane_id(), mac.leader.session_id);
    assert_eq!(
        iterm2.verify(Mark::new(&place, "token-ada")),
        Verdict::Foreign { difference: "token".to_owned() }
    );
    let refused = iterm2.close(Mark::new(&place, "token-ada"));
    assert!(matches!(refused, CloseOutcome::Foreign { .. }), "it is the leader's: {refused:?}");
    iterm2.focus(Mark::new(&place, "token-ada")).expect_err("not ours");
    iterm2.screen(Mark::new(&place, "token-ada"), 5).expect_err("not ours");
    assert_ne!(mac.session(&place), json!(null));
}

/// LY-10: each member's session is closed; one that stays is reported by its id.
#[test]
fn ly_10_session_that_does_not_close_is_reported() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    let names = ["ada", "ben", "cem"];
    let places = names.map(|name| place_one(&iterm2, name).expect("placed"));
    let tokens = names.map(|name| format!("token-{name}"));
    let marks: Vec<Mark<'_>> =
        places.iter().zip(&tokens).map(|(placement, token)| Mark { placement, token }).collect();
    mac.fail("close", "ignored", 1);
    let closed = iterm2.close_all(&marks, &mut |_| true);
    let CloseOutcome::Failed(problem @ BackendError::StillThere { .. }) = &closed[0] else {
        panic!("it stayed: {closed:?}")
    };
    assert!(problem.to_string().contains(places[0].pane_id()), "{problem}");
    assert!(matches!(closed[1..], [CloseOutcome::Closed, CloseOutcome::Closed]), "{closed:?}");
    let asked: Vec<String> = mac.calls("close").into_iter().map(|call| call[0].clone()).collect();
    assert_eq!(asked, places.each_ref().map(|place| place.pane_id().to_owned()));
    assert_eq!(mac.others().len(), 1);
    mac.fail("close", "-1728", 1);
    assert!(
        matches!(iterm2.close(Mark::new(&places[0], "token-ada")), CloseOutcome::Failed(_)),
        "it is still there, whatever the words"
    );
    assert!(matches!(iterm2.close(Mark::new(&places[0], "token-ada")), CloseOutcome::Closed));
}

/// A session with another program, without our token, or of another backend is not touched.
#[test]
fn replaced_session_is_foreign() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    let (ada, ben) =
        (place_one(&iterm2, "ada").expect("placed"), place_one(&iterm2, "ben").expect("placed"));
    mac.op("replace", &[ada.pane_id()]);
    mac.op("forget", &[ben.pane_id()]);
    for (place, token) in [(&ada, "token-ada"), (&ben, "token-ben")] {
        assert!(matches!(iterm2.verify(Mark::new(place, token)), Verdict::Foreign { .. }));
        assert!(matches!(iterm2.close(Mark::new(place, token)), CloseOutcome::Foreign { .. }));
        assert!(
            matches!(iterm2.close(Mark::new(place, "")), CloseOutcome::Unknown { .. }),
            "an empty token"
        );
    }
    let Placement::Iterm2(session) = place_one(&iterm2, "cem").expect("placed") else {
        panic!("not iTerm2")
    };
    let elsewhere = Placement::Iterm2(ItermSession { tty: "/dev/ttys999".to_owned(), ..session });
    assert!(matches!(iterm2.verify(Mark::new(&elsewhere, "token-cem")), Verdict::Foreign { .. }));
    let refused = iterm2.close(Mark::new(&elsewhere, "token-cem"));
    assert!(matches!(refused, CloseOutcome::Foreign { .. }), "another terminal: {refused:?}");
    assert_eq!(mac.others().len(), 3);
}

/// A profile may keep an ended session on the screen; it is closed as well.
#[test]
fn ended_session_kept_on_screen_is_closed() {
    let mac = Mac::new();
    mac.op("keep", &[]);
    let iterm2 = mac.backend(Layout::Split);
    let mut short = launch("ada", ":");
    short.argv = ["/bin/sh", "-c", "exit 0"].map(Into::into).to_vec();
    let place = iterm2.place(&[short]).remove(0).expect("placed");
    let pid =
        mac.session(&place)["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a pid");
    until("its end", || Process::of(pid).is_none());
    assert_eq!(iterm2.verify(Mark::new(&place, "token-ada")), Verdict::Owned);
    assert!(matches!(iterm2.close(Mark::new(&place, "token-ada")), CloseOutcome::Closed));
    assert!(mac.others().is_empty());
}

/// After iTerm2 quits, all sessions count as gone, and no script starts it again.
#[test]
fn sessions_are_gone_after_iterm2_quits() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    let place = place_one(&iterm2, "ada").expect("placed");
    mac.op("stop", &[]);
    assert_eq!(iterm2.verify(Mark::new(&place, "token-ada")), Verdict::Gone);
    assert!(
        matches!(iterm2.close(Mark::new(&place, "token-ada")), CloseOutcome::Gone),
        "nothing to do"
    );
    let problem = place_one(&iterm2, "ben").expect_err("nothing to split");
    assert!(
        problem.to_string().contains("not running") && hint(&problem).contains("start"),
        "{problem:?}"
    );
}

/// A terminal that appears late is waited for.
#[test]
fn session_waits_for_its_terminal() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    mac.fail("place", "late-tty", 1);
    let place = place_one(&iterm2, "ada").expect("placed");
    assert_eq!(iterm2.verify(Mark::new(&place, "token-ada")), Verdict::Owned);
}

/// LY-09: a session that does not get a terminal is closed when its launch fails.
#[test]
fn ly_09_session_without_a_terminal_is_closed() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    mac.fail("place", "no-tty", 1);
    let problem = place_one(&iterm2, "ada").expect_err("no terminal");
    assert!(problem.to_string().contains("has no terminal"), "{problem}");
    assert!(mac.others().is_empty());
}

/// The emulator itself: no test leaves one running.
#[test]
fn emulator_exits_with_its_directory() {
    let mac = Mac::new();
    let leader = mac.op("sessions", &[])[0]["pid"]
        .as_i64()
        .and_then(|pid| i32::try_from(pid).ok())
        .expect("a pid");
    assert!(Process::of(leader).is_some());
    assert!(fs::remove_dir_all(mac.dir.path()).expect("ours"));
    until("the end of its sessions", || Process::of(leader).is_none());
}
