//! The scripts for iTerm2: constant texts that take all data as arguments of `on run argv`
//! (SEC-09).
//!
//! Four properties of AppleScript shape them. `tell application` would start iTerm2, so each script
//! first checks whether it runs. Within `tell`, iTerm2's own terms take precedence (`tab` is a
//! class there), so every name of ours begins with `x`. The variable of a loop over `windows` is
//! evaluated anew as "item i of windows" at each use, so a script changes their order last. A
//! session variable that is not set is `missing value` or has no result at all, which leaves the
//! script's variable undefined (-2753, -2763); `as text` would turn `missing value` into two words.
//!
//! docs/backends.md lists the source of each term of iTerm2.

/// A script, and the action that it performs, to follow "cannot".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) doing: &'static str,
    pub(super) text: &'static str,
}

/// The answer of every script if iTerm2 does not run.
pub(super) const NOT_RUNNING: &str = "not-running";
/// The answer of a script for one session if there is no such session.
pub(super) const NOT_FOUND: &str = "not-found";
/// The answer of a script for one session if its terminal or token differs.
pub(super) const NOT_OURS: &str = "not-ours";
/// The first line of the answer of a script for one session after it has acted.
pub(super) const DONE: &str = "done";

/// Lists all sessions. No arguments. The answer is `running` and iTerm2's version, then one line
/// for each session: id, terminal, rows, window id, token and team, separated by tabs.
pub(super) const SURVEY: Script =
    Script { doing: "list its sessions", text: include_str!("scripts/survey.applescript") };

/// Opens a session. Arguments: the anchor's id, `right`, `below` or `tab`, the command, token,
/// team, name. The answer is `placed`, id and terminal, separated by tabs; the terminal may be
/// empty at first. A session whose token cannot be set is closed again. A new tab does not keep the
/// keyboard focus. An answer that names the anchor itself must not mark that as ours.
pub(super) const PLACE: Script =
    Script { doing: "open a session for it", text: include_str!("scripts/place.applescript") };

pub(super) const CLOSE: Script =
    Script { doing: "close its session", text: include_str!("scripts/close.applescript") };

/// Returns the screen of a session of ours, from the second line of the answer on.
pub(super) const CONTENTS: Script =
    Script { doing: "show its screen", text: include_str!("scripts/contents.applescript") };

/// Selects a session of ours. The window comes last: selecting it changes the order of the windows.
/// The session comes after its tab, which would select another one (iTerm2's #6029).
pub(super) const FOCUS: Script = Script {
    doing: "bring its session to the front",
    text: include_str!("scripts/focus.applescript"),
};

/// Sets the name of a session of ours. Additional argument: the name.
pub(super) const NAME: Script =
    Script { doing: "name its session", text: include_str!("scripts/name.applescript") };

/// Writes to the program in a session of ours. Additional argument: the text, with the codes of
/// keys.
pub(super) const WRITE: Script =
    Script { doing: "type into its session", text: include_str!("scripts/write.applescript") };

#[cfg(test)]
mod tests {
    use super::*;

    /// LY-09, SEC-09: the scripts are ASCII (osascript guesses the encoding), and never type a
    /// launcher's command line. Those for one session check its token and its terminal first.
    #[test]
    fn ly_09_sec_09_scripts_start_nothing_and_act_only_on_their_session() {
        for script in [SURVEY, PLACE, CLOSE, CONTENTS, FOCUS, NAME, WRITE] {
            let (text, doing) = (script.text, script.doing);
            assert!(text.is_ascii(), "{doing}");
            assert_eq!(text.contains("write"), script == WRITE, "{doing}");
            let asks = text.find("is not running then return").expect("asks whether iTerm2 runs");
            assert!(asks < text.find("tell application").expect("tells it"), "{doing}");
        }
        // The five scripts for one session differ only after the check.
        let check = |script: Script| {
            let (_, rest) = script.text.split_once("repeat with xWin in windows").expect("a loop");
            let (check, action) =
                rest.split_once("if xFound is not xTty then return").expect("a check");
            assert!(check.contains("user.phalanx_token") && action.contains("\"done\""));
            check
        };
        let checks = [CLOSE, CONTENTS, FOCUS, NAME, WRITE].map(check);
        assert!(checks.iter().all(|one| *one == checks[0]), "{checks:?}");
    }
}
