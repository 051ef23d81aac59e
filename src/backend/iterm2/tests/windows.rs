//! Several windows, sessions that the user moves, the keyboard focus, and broadcast input.

use serde_json::json;

use super::harness::{Mac, place_one, until};
use crate::{Backend, CloseOutcome, Label, Mark};
use model::members::input::{Input, Text};
use model::members::placement::{Layout, Placement, Verdict};

/// LY-02: a session belongs to the team by its id, token and terminal, wherever the user moves it.
#[test]
fn ly_02_moved_session_is_still_ours() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    for to in ["tab", "window"] {
        let place = place_one(&iterm2, "ada").expect("placed");
        let before = mac.session(&place);
        mac.op("move", &[place.pane_id(), to]);
        let after = mac.session(&place);
        assert_ne!([&before["window"], &before["tab"]], [&after["window"], &after["tab"]]);
        assert_eq!(iterm2.verify(Mark::new(&place, "token-ada")), Verdict::Owned, "{to}");
        let label = Label { name: format!("ada in a {to}"), ..Label::default() };
        iterm2.label(&[(Mark { placement: &place, token: "token-ada" }, label)]);
        assert!(mac.session(&place)["name"].as_str().expect("a name").starts_with("ada in a"));
        until("its screen", || {
            iterm2.screen(Mark::new(&place, "token-ada"), 5).expect("ours").contains("hello")
        });
        mac.op("select", &[&mac.leader.session_id]);
        iterm2.focus(Mark::new(&place, "token-ada")).expect("ours");
        assert_eq!(mac.op("selected", &[]), json!(place.pane_id()));
        assert!(
            matches!(iterm2.close(Mark::new(&place, "token-ada")), CloseOutcome::Closed),
            "{to}"
        );
        assert_eq!(mac.session(&place), json!(null));
        assert!(mac.others().is_empty(), "{to}");
    }
}

/// LY-04: the next member comes beside the lead, not into the window that a member was moved to.
#[test]
fn ly_04_member_in_another_window_is_no_anchor() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    let ada = place_one(&iterm2, "ada").expect("placed");
    mac.op("move", &[ada.pane_id(), "window"]);
    let ben = place_one(&iterm2, "ben").expect("placed");
    let leader = Placement::Iterm2(mac.leader.clone());
    assert_eq!(mac.session(&ben)["window"], mac.session(&leader)["window"]);
    assert_ne!(mac.session(&ben)["window"], mac.session(&ada)["window"]);
}

/// LY-05: a new session does not take the keyboard, whichever way it was opened.
#[test]
fn ly_05_new_session_does_not_take_the_keyboard() {
    let mac = Mac::new();
    mac.open("sleep");
    mac.op("select", &[&mac.leader.session_id]);
    for layout in [Layout::Split, Layout::Windows] {
        let iterm2 = mac.backend(layout);
        for name in ["ada", "ben"] {
            place_one(&iterm2, name).expect("placed");
            assert_eq!(mac.op("selected", &[]), json!(mac.leader.session_id), "{layout:?}");
        }
    }
}

/// LY-09: selecting a window changes the order of the windows, through which scripts address
/// sessions. In every window, the session of the member is selected, and no other.
#[test]
fn ly_09_focus_finds_its_session_behind_other_windows() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    let ada = place_one(&iterm2, "ada").expect("placed");
    let tab = mac.backend(Layout::Windows);
    let ben = place_one(&tab, "ben").expect("placed");
    let bystanders = [mac.open("sleep"), mac.open("sleep")];
    for (place, token) in [(&ada, "token-ada"), (&ben, "token-ben"), (&ada, "token-ada")] {
        mac.op("select", &[&bystanders[0].session_id]);
        mac.op("select", &[&bystanders[1].session_id]);
        iterm2.focus(Mark::new(place, token)).expect("ours");
        assert_eq!(mac.op("selected", &[]), json!(place.pane_id()));
    }
    assert!(matches!(iterm2.close(Mark::new(&ada, "token-ada")), CloseOutcome::Closed));
    assert_eq!(mac.others().len(), 3, "ben and the bystanders");
}

/// With broadcast input on, iTerm2 multiplies what a script writes. Only `type` and `keys`
/// write; everything else leaves the sessions that share their input alone.
#[test]
fn broadcast_input_multiplies_only_typed_text() {
    let mac = Mac::new();
    let iterm2 = mac.backend(Layout::Split);
    let shown = |id: &str| mac.op("screen", &[id]).as_str().expect("text").trim().to_owned();
    let ada = place_one(&iterm2, "ada").expect("placed");
    let leader = &mac.leader.session_id;
    let typed = |text: &str| Input::Text(Text::parse(text).expect("printable"));
    iterm2.write_input(Mark::new(&ada, "token-ada"), &typed("alone")).expect("ours");
    until("the echo", || shown(ada.pane_id()).contains("alone"));
    assert_eq!(shown(leader), "");

    mac.op("broadcast", &[leader, ada.pane_id()]);
    let ben = place_one(&iterm2, "ben").expect("placed");
    let mark = Mark { placement: &ada, token: "token-ada" };
    iterm2.label(&[(mark, Label { name: "ada".to_owned(), ..Label::default() })]);
    iterm2.focus(Mark::new(&ada, "token-ada")).expect("ours");
    iterm2.screen(Mark::new(&ada, "token-ada"), 5).expect("ours");
    assert!(matches!(iterm2.close(Mark::new(&ben, "token-ben")), CloseOutcome::Closed));
    iterm2.write_input(Mark::new(&ada, "token-ada"), &typed("shared")).expect("ours");
    until("the echo", || shown(ada.pane_id()).contains("shared"));
    until("the echo", || !shown(leader).is_empty());
    assert_eq!(shown(leader), "shared", "and nothing before it");
}
