//! The scripts for iTerm2: constant texts that take all data as arguments of `on run argv`
//! (SEC-09). Copies in `fixtures/osascript` make changes visible in a diff.
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

macro_rules! lines {
    ($($line:literal)*) => { concat!($($line, "\n"),*) };
}

macro_rules! head {
    () => {
        lines!["\tif application id \"com.googlecode.iterm2\" is not running then return \"not-running\""]
    };
}

/// Loops over all sessions, as `xSes` in `xTab` in `xWin`.
macro_rules! each_session {
    ($body:expr) => {
        concat!(
            lines![
                "\ttell application id \"com.googlecode.iterm2\""
                "\t\trepeat with xWin in windows"
                "\t\t\trepeat with xTab in tabs of xWin"
                "\t\t\t\trepeat with xSes in sessions of xTab"
            ],
            $body,
            lines!["\t\t\t\tend repeat" "\t\t\tend repeat" "\t\tend repeat" "\tend tell"]
        )
    };
}

/// Runs `$body` for the session of the given id if its terminal and token match. The arguments are
/// id, terminal, token, then `$more`.
macro_rules! own_session {
    ($more:literal, $body:expr) => {
        concat!(
            "on run argv\n\tset {xWanted, xTty, xToken",
            $more,
            "} to argv\n",
            head!(),
            each_session!(concat!(
                lines![
                    "\t\t\t\t\tif (unique id of xSes) is xWanted then"
                    "\t\t\t\t\t\tset xFound to \"\""
                    "\t\t\t\t\t\ttry"
                    "\t\t\t\t\t\t\ttell xSes to set xFound to (variable named \"user.phalanx_token\")"
                    "\t\t\t\t\t\t\tif xFound is not xToken then return \"not-ours\""
                    "\t\t\t\t\t\ton error xWhy number xCode"
                    "\t\t\t\t\t\t\tif xCode is not -2753 and xCode is not -2763 then error xWhy number xCode"
                    "\t\t\t\t\t\t\treturn \"not-ours\""
                    "\t\t\t\t\t\tend try"
                    "\t\t\t\t\t\ttell xSes to set xFound to (get tty)"
                    "\t\t\t\t\t\tif xFound is missing value then set xFound to \"\""
                    "\t\t\t\t\t\tif xFound is not xTty then return \"not-ours\""
                ],
                $body,
                lines!["\t\t\t\t\tend if"]
            )),
            lines!["\treturn \"not-found\"" "end run"]
        )
    };
}

/// Lists all sessions. No arguments. The answer is `running` and iTerm2's version, then one line
/// for each session: id, terminal, rows, window id, token and team, separated by tabs.
pub(super) const SURVEY: Script = Script {
    doing: "list its sessions",
    text: concat!(
        lines!["on run argv"],
        head!(),
        lines![
            "\tset xSep to character id 9"
            "\ttell application id \"com.googlecode.iterm2\" to set xOut to \"running\" & xSep & (version)"
        ],
        each_session!(lines![
            "\t\t\t\t\tset xTty to \"\""
            "\t\t\t\t\ttry"
            "\t\t\t\t\t\ttell xSes to set xTty to (get tty)"
            "\t\t\t\t\t\tif xTty is missing value then set xTty to \"\""
            "\t\t\t\t\ton error"
            "\t\t\t\t\t\tset xTty to \"\""
            "\t\t\t\t\tend try"
            "\t\t\t\t\tset xToken to \"\""
            "\t\t\t\t\ttry"
            "\t\t\t\t\t\ttell xSes to set xToken to (variable named \"user.phalanx_token\")"
            "\t\t\t\t\t\tif xToken is missing value then set xToken to \"\""
            "\t\t\t\t\ton error"
            "\t\t\t\t\t\tset xToken to \"\""
            "\t\t\t\t\tend try"
            "\t\t\t\t\tset xTeam to \"\""
            "\t\t\t\t\ttry"
            "\t\t\t\t\t\ttell xSes to set xTeam to (variable named \"user.phalanx_team\")"
            "\t\t\t\t\t\tif xTeam is missing value then set xTeam to \"\""
            "\t\t\t\t\ton error"
            "\t\t\t\t\t\tset xTeam to \"\""
            "\t\t\t\t\tend try"
            "\t\t\t\t\tset xRow to (unique id of xSes) & xSep & xTty & xSep & (rows of xSes) & xSep & (id of xWin)"
            "\t\t\t\t\tset xOut to xOut & (character id 10) & xRow & xSep & xToken & xSep & xTeam"
        ]),
        lines!["\treturn xOut" "end run"]
    ),
};

/// Opens a session. Arguments: the anchor's id, `right`, `below` or `tab`, the command, token,
/// team, name. The answer is `placed`, id and terminal, separated by tabs; the terminal may be
/// empty at first. A session whose token cannot be set is closed again. A new tab does not keep the
/// keyboard focus. An answer that names the anchor itself must not mark that as ours.
pub(super) const PLACE: Script = Script {
    doing: "open a session for it",
    text: concat!(
        lines!["on run argv" "\tset {xAnchor, xWay, xCommand, xToken, xTeam, xName} to argv"],
        head!(),
        lines!["\tset xSep to character id 9"],
        each_session!(lines![
            "\t\t\t\t\tif (unique id of xSes) is xAnchor then"
            "\t\t\t\t\t\tif xWay is \"right\" then"
            "\t\t\t\t\t\t\ttell xSes to set xNew to (split vertically with default profile command xCommand)"
            "\t\t\t\t\t\telse if xWay is \"below\" then"
            "\t\t\t\t\t\t\ttell xSes to set xNew to (split horizontally with default profile command xCommand)"
            "\t\t\t\t\t\telse"
            "\t\t\t\t\t\t\tset xSeen to current tab of xWin"
            "\t\t\t\t\t\t\ttell xWin to set xMade to (create tab with default profile command xCommand)"
            "\t\t\t\t\t\t\tset xNew to current session of xMade"
            "\t\t\t\t\t\t\ttell xSeen to select"
            "\t\t\t\t\t\tend if"
            "\t\t\t\t\t\tif (unique id of xNew) is xAnchor then error \"iTerm2 returned the session that was split\" number -10000"
            "\t\t\t\t\t\ttry"
            "\t\t\t\t\t\t\ttell xNew"
            "\t\t\t\t\t\t\t\tset variable named \"user.phalanx_token\" to xToken"
            "\t\t\t\t\t\t\t\tset variable named \"user.phalanx_team\" to xTeam"
            "\t\t\t\t\t\t\tend tell"
            "\t\t\t\t\t\ton error xWhy number xCode"
            "\t\t\t\t\t\t\ttell xNew to close"
            "\t\t\t\t\t\t\terror xWhy number xCode"
            "\t\t\t\t\t\tend try"
            "\t\t\t\t\t\ttry"
            "\t\t\t\t\t\t\ttell xNew to set name to xName"
            "\t\t\t\t\t\tend try"
            "\t\t\t\t\t\tset xTty to \"\""
            "\t\t\t\t\t\ttry"
            "\t\t\t\t\t\t\ttell xNew to set xTty to (get tty)"
            "\t\t\t\t\t\t\tif xTty is missing value then set xTty to \"\""
            "\t\t\t\t\t\ton error"
            "\t\t\t\t\t\t\tset xTty to \"\""
            "\t\t\t\t\t\tend try"
            "\t\t\t\t\t\treturn \"placed\" & xSep & (unique id of xNew) & xSep & xTty"
            "\t\t\t\t\tend if"
        ]),
        lines!["\treturn \"not-found\"" "end run"]
    ),
};

pub(super) const CLOSE: Script = Script {
    doing: "close its session",
    text: own_session!("", lines!["\t\t\t\t\t\ttell xSes to close" "\t\t\t\t\t\treturn \"done\""]),
};

/// Returns the screen of a session of ours, from the second line of the answer on.
pub(super) const CONTENTS: Script = Script {
    doing: "show its screen",
    text: own_session!(
        "",
        lines![
            "\t\t\t\t\t\ttell xSes to set xShown to (get contents) as text"
            "\t\t\t\t\t\treturn \"done\" & (character id 10) & xShown"
        ]
    ),
};

/// Selects a session of ours. The window comes last: selecting it changes the order of the windows.
/// The session comes after its tab, which would select another one (iTerm2's #6029).
pub(super) const FOCUS: Script = Script {
    doing: "bring its session to the front",
    text: own_session!(
        "",
        lines![
            "\t\t\t\t\t\ttell xTab to select"
            "\t\t\t\t\t\ttell xSes to select"
            "\t\t\t\t\t\ttell xWin to select"
            "\t\t\t\t\t\tactivate"
            "\t\t\t\t\t\treturn \"done\""
        ]
    ),
};

/// Sets the name of a session of ours. Additional argument: the name.
pub(super) const NAME: Script = Script {
    doing: "name its session",
    text: own_session!(
        ", xName",
        lines!["\t\t\t\t\t\ttell xSes to set name to xName" "\t\t\t\t\t\treturn \"done\""]
    ),
};

/// Writes to the program in a session of ours. Additional argument: the text, with the codes of
/// keys.
pub(super) const WRITE: Script = Script {
    doing: "type into its session",
    text: own_session!(
        ", xText",
        lines!["\t\t\t\t\t\ttell xSes to write text xText newline false" "\t\t\t\t\t\treturn \"done\""]
    ),
};

#[cfg(test)]
mod tests {
    use super::*;

    /// LY-09, SEC-09: the scripts match the golden files, are ASCII (osascript guesses the
    /// encoding), and never type a launcher's command line.
    #[test]
    fn ly_09_sec_09_scripts_match_the_golden_files() {
        let golden = [
            (SURVEY, include_str!("../../../fixtures/osascript/survey.applescript")),
            (PLACE, include_str!("../../../fixtures/osascript/place.applescript")),
            (CLOSE, include_str!("../../../fixtures/osascript/close.applescript")),
            (CONTENTS, include_str!("../../../fixtures/osascript/contents.applescript")),
            (FOCUS, include_str!("../../../fixtures/osascript/focus.applescript")),
            (NAME, include_str!("../../../fixtures/osascript/name.applescript")),
            (WRITE, include_str!("../../../fixtures/osascript/write.applescript")),
        ];
        for (script, golden) in golden {
            assert_eq!(script.text, golden, "{}", script.doing);
            assert!(script.text.is_ascii(), "{}", script.doing);
            assert_eq!(script.text.contains("write"), script == WRITE, "{}", script.doing);
            let asks =
                script.text.find("is not running then return").expect("asks whether iTerm2 runs");
            assert!(
                asks < script.text.find("tell application").expect("tells it"),
                "{}",
                script.doing
            );
        }
    }
}
