//! What goes wrong, each known way: LY-08, LY-09, LY-10.

use std::time::Duration;

use serde_json::json;

use super::harness::{Mac, launch, place_one, until};
use crate::backend::{Backend, BackendError, Mark};
use crate::model::placement::{ItermSession, Layout, Placement, Verdict};
use crate::sys::fs;
use crate::sys::proc::Process;

fn hint(problem: &BackendError) -> String {
    problem.hint().unwrap_or_default()
}

/// LY-08: the leader's session goes: any of ours will do; none of ours either: an error that says so.
#[test]
fn ly_08_a_lost_anchor_is_replaced() {
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

/// LY-08: it goes between the look and the split, with either of iTerm2's ways to say so.
#[test]
fn ly_08_an_anchor_that_goes_meanwhile() {
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
    // Within a batch what was listed before is stale: it is listed again.
    let launches = ["cem", "dan"].map(|name| launch(name, ":"));
    mac.fail("place", "-1728", 4);
    let before = mac.calls("survey").len();
    let placed = iterm2.place(&launches);
    assert!(placed.iter().any(Result::is_ok), "{placed:?}");
    assert!(mac.calls("survey").len() > before + 1);
}

/// SP-11: "not there" after the split has been made is not a reason to make another one.
#[test]
fn sp_11_a_half_done_split_is_not_repeated() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    mac.fail("place", "half-done", 1);
    let place = place_one(&iterm2, "ada").expect("it is there");
    assert_eq!(iterm2.verify(&place, "token-ada"), Verdict::Owned);
    assert_eq!((mac.others().len(), mac.calls("place").len()), (1, 1));
}

/// LY-09: every code becomes advice, and nothing is left.
#[test]
fn ly_09_every_refusal_becomes_advice() {
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
        matches!(iterm2.verify(&place, "x"), Verdict::Unknown { .. }),
        "no answer proves nothing"
    );
}

/// LY-09: no answer in time, with and without a session made.
#[test]
fn ly_09_no_answer_leaves_nothing_behind() {
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

/// LY-09: the id of another session is not ours, whatever it was given as.
#[test]
fn ly_09_a_wrong_id_is_never_touched() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    mac.fail("place", "wrong-id", 1);
    let place = place_one(&iterm2, "ada").expect("as far as can be seen here");
    assert_eq!(place.pane_id(), mac.leader.session_id);
    assert_eq!(
        iterm2.verify(&place, "token-ada"),
        Verdict::Foreign { difference: "token".to_owned() }
    );
    let problem = iterm2.close(&place, "token-ada").expect_err("it is the leader's");
    assert!(matches!(problem, BackendError::NotOurs { .. }), "{problem:?}");
    iterm2.focus(&place, "token-ada").expect_err("not ours");
    iterm2.screen(&place, "token-ada", 5).expect_err("not ours");
    assert_ne!(mac.session(&place), json!(null));
}

/// LY-10: each member's session gets its close; what stays is reported by its id.
#[test]
fn ly_10_what_stays_is_reported() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    let names = ["ada", "ben", "cem"];
    let places = names.map(|name| place_one(&iterm2, name).expect("placed"));
    let tokens = names.map(|name| format!("token-{name}"));
    let marks: Vec<Mark<'_>> =
        places.iter().zip(&tokens).map(|(placement, token)| Mark { placement, token }).collect();
    mac.fail("close", "ignored", 1);
    let closed = iterm2.close_all(&marks);
    let problem = closed[0].as_ref().expect_err("it stayed");
    assert!(matches!(problem, BackendError::StillThere { .. }), "{problem:?}");
    assert!(problem.to_string().contains(places[0].pane_id()), "{problem}");
    assert!(closed[1].is_ok() && closed[2].is_ok(), "{closed:?}");
    let asked: Vec<String> = mac.calls("close").into_iter().map(|call| call[0].clone()).collect();
    assert_eq!(asked, places.each_ref().map(|place| place.pane_id().to_owned()));
    assert_eq!(mac.others().len(), 1);
    mac.fail("close", "-1728", 1);
    assert!(
        iterm2.close(&places[0], "token-ada").is_err(),
        "it is still there, whatever the words"
    );
    assert_eq!(iterm2.close(&places[0], "token-ada").expect("ours"), Verdict::Owned);
}

/// Protocol, section 8: a session with another program, without our token, or of another backend is not touched.
#[test]
fn a_replaced_session_is_foreign() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    let (ada, ben) =
        (place_one(&iterm2, "ada").expect("placed"), place_one(&iterm2, "ben").expect("placed"));
    mac.op("replace", &[ada.pane_id()]);
    mac.op("forget", &[ben.pane_id()]);
    for (place, token) in [(&ada, "token-ada"), (&ben, "token-ben")] {
        assert!(matches!(iterm2.verify(place, token), Verdict::Foreign { .. }));
        iterm2.close(place, token).expect_err("not ours any more");
        assert!(
            matches!(iterm2.close(place, ""), Err(BackendError::NotOurs { .. })),
            "an empty token"
        );
    }
    let Placement::Iterm2(session) = place_one(&iterm2, "cem").expect("placed") else {
        panic!("not iTerm2")
    };
    let elsewhere = Placement::Iterm2(ItermSession { tty: "/dev/ttys999".to_owned(), ..session });
    assert!(matches!(iterm2.verify(&elsewhere, "token-cem"), Verdict::Foreign { .. }));
    iterm2.close(&elsewhere, "token-cem").expect_err("another terminal");
    assert_eq!(mac.others().len(), 3);
}

/// A profile may keep what has ended on the screen: that is closed, too.
#[test]
fn an_ended_session_that_stays_is_closed() {
    let mac = Mac::new();
    mac.op("keep", &[]);
    let iterm2 = mac.backend(Layout::Split);
    let mut short = launch("ada", ":");
    short.argv = ["/bin/sh", "-c", "exit 0"].map(Into::into).to_vec();
    let place = iterm2.place(&[short]).remove(0).expect("placed");
    let pid =
        mac.session(&place)["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a pid");
    until("its end", || Process::of(pid).is_none());
    assert_eq!(iterm2.verify(&place, "token-ada"), Verdict::Owned);
    assert_eq!(iterm2.close(&place, "token-ada").expect("ours"), Verdict::Owned);
    assert!(mac.others().is_empty());
}

/// iTerm2 was quit: nothing is there, and nothing starts it again.
#[test]
fn an_iterm2_that_was_quit_has_nothing_of_ours() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    let place = place_one(&iterm2, "ada").expect("placed");
    mac.op("stop", &[]);
    assert_eq!(iterm2.verify(&place, "token-ada"), Verdict::Gone);
    assert_eq!(iterm2.close(&place, "token-ada").expect("nothing to do"), Verdict::Gone);
    let problem = place_one(&iterm2, "ben").expect_err("nothing to split");
    assert!(
        problem.to_string().contains("not running") && hint(&problem).contains("start"),
        "{problem:?}"
    );
}

/// A terminal that comes late is waited for.
#[test]
fn a_session_without_a_terminal_yet() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    mac.fail("place", "no-tty", 1);
    let place = place_one(&iterm2, "ada").expect("placed");
    assert_eq!(iterm2.verify(&place, "token-ada"), Verdict::Owned);
}

/// The emulator itself: no test leaves one behind.
#[test]
fn the_emulator_ends_with_its_directory() {
    let mac = Mac::new();
    let leader = mac.op("sessions", &[])[0]["pid"]
        .as_i64()
        .and_then(|pid| i32::try_from(pid).ok())
        .expect("a pid");
    assert!(Process::of(leader).is_some());
    assert!(fs::remove_dir_all(mac.dir.path()).expect("ours"));
    until("the end of its sessions", || Process::of(leader).is_none());
}
