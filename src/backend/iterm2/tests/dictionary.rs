//! The emulator itself: it knows the terms of iTerm2's dictionary, and refuses the same as iTerm2.
//! Without this, a script with a term that does not exist would pass every other test.

use super::super::script::Script;
use super::harness::Mac;
use crate::BackendError;
use model::members::placement::Layout;

macro_rules! told {
    ($($line:literal)*) => {
        concat!("tell application id \"com.googlecode.iterm2\"\n", $($line, "\n",)* "end tell\n")
    };
}

/// Runs a script; its error number, if it fails.
fn run(mac: &Mac, text: &'static str) -> Result<String, Option<i32>> {
    let script = Script { doing: "run a script of a test", text };
    mac.backend(Layout::Split).osa.run(&script, &[]).map_err(|problem| match problem {
        BackendError::Iterm2 { code, .. } => code,
        other => panic!("{text}: {other}"),
    })
}

/// LY-09: a term that the object does not have cannot be read (-1728) or set (-10006), and a
/// command that it does not respond to is not understood (-1708).
#[test]
fn ly_09_emulator_refuses_what_the_dictionary_lacks() {
    let mac = Mac::new();
    let table = [
        (-1728, told!("get panes of current window")),
        (-1728, told!("get tty of current window")),
        (-1728, told!("get tty of current tab of current window")),
        (-1728, told!("get sessions of current window")),
        (-1728, told!("get tabs of current session of current window")),
        (-1728, told!("get windows of current window")),
        (-1728, told!("get broadcasting of current session of current window")),
        (-10006, told!("set broadcasting of current session of current window to true")),
        (-10006, told!("set transparency of current window to 1")),
        (
            -1708,
            told!("tell current window to split vertically with default profile command \"x\""),
        ),
        (-1708, told!("tell current tab of current window to write text \"x\"")),
        (-1708, told!("tell current tab of current window to get variable named \"user.x\"")),
        (-1708, told!("tell current session of current window to create tab with default profile")),
        // iTerm2 itself: only names that begin with `user.` can be set.
        (3, told!("tell current session of current window to set variable named \"x\" to \"y\"")),
    ];
    for (code, text) in table {
        assert_eq!(run(&mac, text), Err(Some(code)), "{text}");
    }
}

/// LY-09: the dictionary marks these with `access="r"`.
#[test]
fn ly_09_emulator_refuses_to_set_read_only_properties() {
    let mac = Mac::new();
    let table = [
        told!("tell current session of current window to set tty to \"/dev/x\""),
        told!("tell current session of current window to set unique id to \"x\""),
        told!("tell current session of current window to set id to \"x\""),
        told!("tell current session of current window to set text to \"x\""),
        told!("tell current session of current window to set profile name to \"x\""),
        told!("set id of current window to 1"),
        told!("set name of current window to \"x\""),
        told!("set version to \"1\""),
    ];
    for text in table {
        assert_eq!(run(&mac, text), Err(Some(-10006)), "{text}");
    }
    assert_eq!(
        run(&mac, told!("tell current session of current window to set name to \"x\"")),
        Ok(String::new())
    );
    assert_eq!(mac.op("sessions", &[])[0]["name"], serde_json::json!("x"));
}

/// LY-09: what does not compile does nothing, not even the lines before the mistake.
#[test]
fn ly_09_emulator_compiles_a_script_before_it_runs_it() {
    let mac = Mac::new();
    let table = [
        told!("tell current session of current window to split diagonally"),
        told!("tell current session of current window to write text \"x\" return false"),
        told!("tell current session of current window to write text \"x\" newline"),
        told!("tell current session of current window to close quietly now"),
        told!("tell current window to create tab with default profile command"),
        told!("set tab colour of current window to 1"),
        told!("if true then"),
        // iTerm2's terms are unknown outside of `tell`.
        "set xNew to (split vertically with default profile command \"x\")\n",
        told!("set name of current session of current window to \"changed\"" "say hello to me"),
    ];
    for text in table {
        assert_eq!(run(&mac, text), Err(Some(-2741)), "{text}");
    }
    let sessions = mac.op("sessions", &[]);
    assert_eq!(sessions.as_array().map(Vec::len), Some(1), "{sessions}");
    assert_eq!(sessions[0]["name"], serde_json::json!(""));
}

/// LY-09: a session that was closed, and a variable without a value, cannot be used.
#[test]
fn ly_09_emulator_refuses_objects_that_are_gone() {
    let mac = Mac::new();
    mac.open("sleep");
    let gone = told!(
        "set xSes to current session of current window"
        "tell xSes to close"
        "tell xSes to set name to \"x\""
    );
    assert_eq!(run(&mac, gone), Err(Some(-1728)));
    let undefined = told!(
        "tell current session of current window to set xName to (select)"
        "set name of current session of current window to xName"
    );
    assert_eq!(run(&mac, undefined), Err(Some(-2753)));
    let caught = told!(
        "try"
        "\tget panes of current window"
        "on error xWhy number xCode"
        "\treturn xCode"
        "end try"
    );
    assert_eq!(run(&mac, caught), Ok("-1728".to_owned()));
}
