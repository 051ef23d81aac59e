//! Tests of parsing profiles, judging screens and the terminal model.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::rule::ScreenState;
use super::snapshot::{ReportedProgress, Screenshot};
use super::*;

const LAUNCH: &str = "about = \"x\"\n[launch]\nargv = [[\"x\"]]\n";

fn with(more: &str) -> Result<Profile, String> {
    Profile::parse("own", &format!("{LAUNCH}{more}")).map_err(|e| e.to_string())
}

fn look(rows: &[&str]) -> Screenshot {
    Screenshot::of_text(&rows.join("\n"))
}

fn state(rules: &str, look: &Screenshot) -> String {
    judge(&with(rules).expect("a profile"), look).state.to_string()
}

#[test]
fn built_in_profiles_parse_and_are_found_by_exact_name() {
    for name in builtin_names() {
        assert_eq!(builtin(name).map(|profile| profile.name).as_deref(), Some(name));
    }
    assert_eq!(builtin("Worker"), None);
}

#[test]
fn pm_01_answers_require_a_dialog_rule_that_captures_the_question() {
    // The questions of which the effect of the keys was verified.
    let known = ["permission", "trust"].map(|name| ScreenState::Dialog(name.to_owned()));
    for profile in builtin_names().filter_map(builtin) {
        for name in profile.answers.keys() {
            let rule = profile.rules.iter().find(|rule| rule.name == *name);
            assert!(rule.is_some_and(|rule| known.contains(&rule.state)), "{}", profile.name);
        }
    }
    let rule = |name: &str, state: &str, pattern: &str| {
        format!("[[rule]]\nname = \"{name}\"\nstate = \"{state}\"\nmatch = ['{pattern}']\n")
    };
    let keys = "[answers.trust]\nallow = \"1\\r\"\ndeny = \"\\u001b\"\n";
    let own =
        with(&(rule("trust", "dialog:trust", "^Trust (?<text>.*)\\?") + keys)).expect("a profile");
    let answer = DialogKeys { allow: "1\r".to_owned(), deny: "\x1b".to_owned() };
    assert_eq!(own.answers.get("trust"), Some(&answer));
    for (rule, keys, said) in [
        (rule("other", "dialog:trust", "(?<text>.)"), keys, "`trust` in [answers] names no rule"),
        (
            rule("trust", "idle", "(?<text>.)"),
            keys,
            "`trust` in [answers] refers to a rule that is not a dialog",
        ),
        (rule("trust", "dialog:trust", "."), keys, "is for a rule without a group `(?<text>…)`"),
        (
            rule("trust", "dialog:trust", "(?<text>.)"),
            "[answers.trust]\nallow = \"y\"\n",
            "has no `deny`",
        ),
        (
            rule("trust", "dialog:trust", "(?<text>.)"),
            "[answers]\ntrust = \"y\"\n",
            "must be a table",
        ),
    ] {
        let fault = with(&(rule + keys)).expect_err("a fault");
        assert!(fault.contains(said), "{fault}");
    }
}

/// An agent can print text that looks like a dialog above the real one.
#[test]
fn sec_04_dialog_text_printed_by_the_agent_is_not_the_question() {
    let question = |command: &str| {
        let head = ["  Would you like to run the following command?", "", "  Reason: please"];
        let options =
            ["› 1. Yes, proceed (y)", "  2. No, and tell Codex what to do differently (esc)"];
        let command = format!("  $ {command}");
        head.into_iter()
            .chain(["", &command, ""])
            .chain(options)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let end = "  Press enter to confirm or esc to cancel".to_owned();
    let codex = builtin("codex").expect("built in");
    let asked = |rows: Vec<String>| {
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let found = judge(&codex, &look(&rows));
        (found.rule, found.asked.map(|asked| asked.text).unwrap_or_default())
    };
    let real = [question("rm -rf x"), vec![end.clone()]].concat();
    assert_eq!(asked(real.clone()), ("command".to_owned(), "rm -rf x".to_owned()));
    for fake in
        [question("ls"), question("ls")[..5].to_vec(), [question("ls"), vec![end.clone()]].concat()]
    {
        assert_eq!(asked([fake, real.clone()].concat()).1, "rm -rf x");
    }
    let composer = ["", "› Ask Codex to do anything", "", "  canned default · /tmp"]
        .map(str::to_owned)
        .to_vec();
    assert_ne!(
        asked([question("ls"), vec![end], composer].concat()).0,
        "command",
        "it is not the last thing there"
    );
}

#[test]
fn last_words_are_the_rows_above_the_composer() {
    let profile = with("[composer]\nline = '^> ?(?<text>.*)$'\n").expect("a profile");
    let seen = look(&["> old", "one", "─────", "│ two │", "", "three", "", "> draft", "hint"]);
    assert_eq!(last_words(&profile, &seen, 2), ["two", "three"]);
    assert_eq!(last_words(&profile, &seen, 9), ["> old", "one", "two", "three"]);
    assert_eq!(last_words(&with("").expect("a profile"), &look(&["one", "", "two"]), 1), ["two"]);
    assert_eq!(last_words(&profile, &look(&[]), 3), [""; 0]);
}

#[test]
fn pm_03_question_is_captured_without_frames_and_line_breaks() {
    let rules = "[[rule]]\nname = \"run\"\nstate = \"dialog:permission\"\n\
                 match = ['^│ Run (?<tool>\\w+)', '│ ╭─+╮ │\\n(?<text>(?:│ │.*\\n)+)│ ╰']\n";
    let profile = with(rules).expect("a profile");
    let found = judge(
        &profile,
        &look(&[
            "│ Run Shell   │",
            "│ ╭───────╮ │",
            "│ │ ls -l │ │",
            "│ │ /tmp  │ │",
            "│ ╰───────╯ │",
        ]),
    );
    let asked = DialogQuestion { tool: Some("Shell".to_owned()), text: "ls -l /tmp".to_owned() };
    assert_eq!((found.rule.as_str(), found.asked), ("run", Some(asked)));
    let plain =
        "[[rule]]\nname = \"ask\"\nstate = \"dialog:permission\"\nmatch = ['may I', '[0-9]+']\n";
    let found = judge(&with(plain).expect("a profile"), &look(&["may I do 7 things"]));
    assert_eq!(found.asked, Some(DialogQuestion { tool: None, text: "may I … 7".to_owned() }));
}

#[test]
fn errors_name_their_position_and_the_nearest_key() {
    let fault = |more: &str| with(more).expect_err("a fault");
    assert_eq!(
        fault("[paste]\nbraketed = true\n"),
        "5:1: unknown key `braketed` in [paste]; did you mean `bracketed`?"
    );
    assert_eq!(
        fault("[keys]\nsubmit = 1\n"),
        "5:10: `submit` in [keys] must be a string, not an integer"
    );
    assert_eq!(
        fault("[paste]\ngap_ms = -1\n"),
        "5:10: `gap_ms` in [paste] must be from 0 to 60000"
    );
    assert_eq!(
        fault("[[rule]]\nname = \"a\"\nstate = \"idle\"\n"),
        "4:1: [[rule]] needs `match`, `title`, `progress` or `quiet_ms`"
    );
    let rule = |more: &str| fault(&format!("[[rule]]\nname = \"a\"\nstate = \"idle\"\n{more}"));
    assert_eq!(
        rule("match = [\"a(\"]\n"),
        "7:10: `match` in [[rule]] is not a valid pattern: unclosed group"
    );
    assert_eq!(
        rule("match = [\"a\"]\narea = \"last 0\"\n"),
        "8:8: no area `last 0`; known: whole, last N, cursor row, title, above composer, composer"
    );
    assert!(
        fault("[[rule]]\nname = \"a\"\nstate = \"dialog\"\nmatch = [\"a\"]\n")
            .starts_with("6:9: no state `dialog`; known: ")
    );
    assert!(
        fault("[composer]\nline = \"^>\"\n").starts_with("5:8: `line` in [composer] needs a group")
    );
    assert_eq!(
        Profile::parse("own", "about = \"x\"\n").map_err(|e| e.to_string()),
        Err("1:1: the profile has no [launch]".to_owned())
    );
}

#[test]
fn template_error_has_the_position_of_its_word() {
    let fault = |text: &str| Profile::parse("own", text).expect_err("a fault").to_string();
    assert!(
        fault("about = \"x\"\n[launch]\nargv = [[\"x\"], [\"--m\", \"{modle}\"]]\n")
            .starts_with("3:24: no value `modle`")
    );
    assert!(
        fault("about = \"x\"\n[launch]\nargv = [[\"x\", \"{prompt}\"]]\n")
            .starts_with("3:8: `argv` in [launch] has `{prompt}`")
    );
    assert!(
        fault("about = \"x\"\n[launch]\nargv = [\"x\"]\n")
            .starts_with("3:9: `argv` in [launch] must be a list of lists")
    );
    assert_eq!(
        fault("about = \"x\"\n[launch]\nargv = \"x\"\n"),
        "3:8: `argv` in [launch] must be a list of lists of strings, not a string"
    );
}

#[test]
fn value_of_wrong_type_is_refused() {
    let fault = |more: &str| {
        let text = format!("{more}\nabout = \"x\"\n[launch]\nargv = [[\"x\"]]\n");
        Profile::parse("own", &text).expect_err("a fault").to_string()
    };
    assert_eq!(
        fault("answers = 5"),
        "1:11: `answers` must be a table of tables, [answers.RULE], not an integer"
    );
    assert_eq!(
        fault("rule = [[\"a\", \"idle\"]]"),
        "1:9: `rule` must be a list of tables, [[rule]], not a list of lists"
    );
    assert_eq!(
        fault("hooks = 5"),
        "1:9: `hooks` in the profile must be a list of strings, not an integer"
    );
}

#[test]
fn patterns_are_bounded_in_length_and_memory() {
    let rule = |pattern: &str| {
        with(&format!("[[rule]]\nname = \"a\"\nstate = \"idle\"\nmatch = ['{pattern}']\n"))
    };
    assert!(rule("(a{1000}){1000}").is_err());
    assert!(rule(&"a".repeat(1001)).is_err());
    assert!(rule(&"a".repeat(1000)).is_ok());
}

#[test]
fn first_matching_rule_decides_and_gives_evidence() {
    let rules = "[[rule]]\nname = \"ask\"\nstate = \"dialog:trust\"\narea = \"last 2\"\nmatch = ['trust\\?', 'yes']\n\
                 [[rule]]\nname = \"any\"\nstate = \"idle\"\nmatch = ['.']\nnot = ['busy']\n";
    let profile = with(rules).expect("a profile");
    let found = judge(&profile, &look(&["old", "do you trust?", "  1. yes", "", ""]));
    assert_eq!(
        (found.state, found.rule.as_str()),
        (ScreenState::Dialog("trust".to_owned()), "ask")
    );
    assert_eq!(found.evidence, "trust? … yes");
    assert_eq!(judge(&profile, &look(&["do you trust?", "yes", "x"])).rule, "any");
    let nothing = judge(&profile, &look(&["busy"]));
    assert_eq!(
        (nothing.state, nothing.evidence.as_str()),
        (ScreenState::Unknown, "no rule matches")
    );
}

#[test]
fn rules_match_title_progress_quiet_time_and_modes() {
    let rule = |asks: &str| format!("[[rule]]\nname = \"a\"\nstate = \"working\"\n{asks}\n");
    let mut seen = look(&["x"]);
    for (asks, change) in [
        (
            "title = '^. Working'",
            (|l: &mut Screenshot| l.title = "* Working".to_owned()) as fn(&mut Screenshot),
        ),
        ("progress = \"busy\"", |l| l.progress = ReportedProgress::Busy),
        ("quiet_ms = 300", |l| l.quiet_ms = 300),
        ("match = ['x']\nalternate = true", |l| l.alternate = true),
        ("match = ['x']\nbracketed_paste = true", |l| l.bracketed_paste = true),
    ] {
        assert_eq!(state(&rule(asks), &seen), "unknown", "{asks}");
        change(&mut seen);
        assert_eq!(state(&rule(asks), &seen), "working", "{asks}");
    }
}

/// A person can type the same text as the placeholder; the cursor is then after it.
#[test]
fn msg_11_placeholder_is_ignored_only_while_the_cursor_is_before_it() {
    let rules = "[composer]\nline = '^> ?(?<text>.*)$'\nplaceholder = '^Ask me$'\nuntil = '^-'\n\
                 [[rule]]\nname = \"a\"\nstate = \"idle\"\nmatch = ['^>']\n";
    let profile = with(rules).expect("a profile");
    let composer = |row: &str, column: u16| {
        judge(&profile, &Screenshot { cursor: (1, column), ..look(&["> old", row, "- -"]) })
            .composer
    };
    assert_eq!(composer("> Ask me", 2), Composer::Empty);
    assert_eq!(composer("> Ask me", 8), Composer::Holds("Ask me".to_owned()));
    assert_eq!(composer("> Ask you", 2), Composer::Holds("Ask you".to_owned()));
    assert_eq!(composer(">", 2), Composer::Empty);
    let rows = ["> one", "  two", "---"];
    assert_eq!(judge(&profile, &look(&rows)).composer, Composer::Holds("one\ntwo".to_owned()));
}

#[test]
fn msg_11_suggestion_is_ignored_only_while_faint_after_the_cursor() {
    let composer = |ghost: bool, typed: &str| {
        let rules = format!(
            "[composer]\nline = '^> ?(?<text>.*)$'\nuntil = '^-'\nghost = {ghost}\n\
             [[rule]]\nname = \"a\"\nstate = \"idle\"\nmatch = ['^>']\n"
        );
        let mut screen = Screen::new(6, 20);
        screen.feed(typed.as_bytes());
        judge(&with(&rules).expect("a profile"), &screen.look(0)).composer
    };
    let holds = |text: &str| Composer::Holds(text.to_owned());
    let suggested = "> \x1b[7mr\x1b[0;2mun the tests\x1b[0m\r\n---\x1b[?25l";
    assert_eq!(composer(true, suggested), Composer::Empty);
    assert_eq!(composer(false, suggested), holds("run the tests"));
    let two_rows = "> \x1b[7mr\x1b[0;2mun\x1b[0m\r\n  \x1b[2mall\x1b[0m\r\n---\x1b[?25l";
    assert_eq!(composer(true, two_rows), Composer::Empty);
    // Without the focus, the program draws no cursor.
    let unfocused = "> \x1b[2mrun the tests\x1b[0m\r\n---\r\nhints\x1b[?25l";
    assert_eq!(composer(true, unfocused), Composer::Empty);
    assert_eq!(composer(true, &unfocused.replace("[2m", "[1m")), holds("run the tests"));
    // A suggestion in grey behind the terminal's own cursor, and text in black, which is typed.
    let grey = "> r\x1b[38;2;108;112;134mun it\x1b[0m\x1b[1;3H";
    assert_eq!(composer(true, grey), Composer::Empty);
    assert_eq!(composer(true, &grey.replace("108;112;134", "0;0;0")), holds("run it"));
    // Typed text with the cursor moved to its start; faint text with the cursor after it; a faint
    // first row only.
    assert_eq!(
        composer(true, "> \x1b[7mr\x1b[0mun the tests\r\n---\x1b[?25l"),
        holds("run the tests")
    );
    assert_eq!(composer(true, "> \x1b[2mrun the tests\x1b[0m"), holds("run the tests"));
    let typed_on = "> \x1b[7mr\x1b[0;2mun\x1b[0m\r\n  all\r\n---\x1b[?25l";
    assert_eq!(composer(true, typed_on), holds("run\nall"));
    assert_eq!(composer(true, "> \x1b[7mx\x1b[0m\r\n---\x1b[?25l"), holds("x"));
}

#[test]
fn msg_11_suggestion_is_found_after_a_wide_character() {
    let rules = "[composer]\nline = '^日> ?(?<text>.*)$'\nghost = true\n\
                 [[rule]]\nname = \"a\"\nstate = \"idle\"\nmatch = ['>']\n";
    let mut screen = Screen::new(6, 20);
    screen.feed("日> \x1b[7mr\x1b[0;2mun\x1b[0m\x1b[?25l".as_bytes());
    let found = judge(&with(rules).expect("a profile"), &screen.look(0));
    assert_eq!(found.composer, Composer::Empty);
}

/// A program hides the cursor only once, at its start. Cursor visibility and text attributes set by
/// skipped output still apply to later output.
#[test]
fn skipped_output_keeps_its_cursor_visibility_and_attributes() {
    let mut screen = Screen::new(6, 20);
    screen.feed(b"\x1b[?25l\x1b[2mold\x1b[H\x1b[2J> \x1b[7mT\x1b[27mry it\x1b[m");
    let look = screen.look(0);
    assert_eq!((look.cursor, look.cursor_shown, look.faint_from[0]), ((0, 2), true, Some(0)));
}

/// aider leaves submitted text above the answer, as it looked in the composer.
#[test]
fn msg_04_submitted_text_above_an_answer_is_not_the_composer() {
    let rules = "[composer]\nline = '^> ?(?<text>.*)$'\nlast = true\n[[rule]]\nname = \"a\"\nstate = \"idle\"\nmatch = ['^>']\n";
    let profile = with(rules).expect("a profile");
    let composer = |rows: &[&str]| judge(&profile, &look(rows)).composer;
    assert_eq!(composer(&["> typed", "", ""]), Composer::Holds("typed".to_owned()));
    assert_eq!(composer(&["> typed", "", "Well"]), Composer::Unknown);
    assert_eq!(composer(&["> typed", "", "Well", ">"]), Composer::Empty);
}

/// A text in the composer was once assumed to be discarded: the terminal had wrapped it before its
/// last character, `>`, with which an empty composer begins.
#[test]
fn msg_03_continuation_of_a_wrapped_line_is_not_a_composer() {
    let rules = "[composer]\nline = '^> ?(?<text>.*)$'\n[[rule]]\nname = \"a\"\nstate = \"idle\"\nmatch = ['^>']\n";
    let profile = with(rules).expect("a profile");
    let composer = |bytes: &[u8]| {
        let mut screen = Screen::new(6, 10);
        screen.feed(bytes);
        judge(&profile, &screen.look(0)).composer
    };
    assert_eq!(composer(b"> two </b>"), Composer::Holds("two </b>".to_owned()));
    assert_eq!(composer(b"> three </b>"), Composer::Holds("three </\nb>".to_owned()));
    assert_eq!(composer(b"> nine </b>"), Composer::Holds("nine </b\n>".to_owned()));
    assert_eq!(composer(b"> nine </b\r\n>"), Composer::Empty, "the program began that row itself");
    assert_eq!(
        composer(b"= a full row\x1b[2;1H> "),
        Composer::Empty,
        "a row above that is no composer"
    );
}

/// A program that hides the cursor of the terminal may draw one of its own.
#[test]
fn msg_11_drawn_cursor_counts_if_the_terminal_cursor_is_hidden() {
    let cursor = |bytes: &[u8]| {
        let mut screen = Screen::new(6, 10);
        screen.feed(bytes);
        screen.look(0).cursor
    };
    assert_eq!(cursor(b"> \x1b[7mT\x1b[27mry\x1b[3;1H\x1b[?25l"), (0, 2));
    assert_eq!(cursor(b"> \x1b[7mT\x1b[27mry\x1b[3;1H"), (2, 0), "it is not hidden");
    assert_eq!(cursor(b"> \x1b[7mTry\x1b[27m\x1b[3;1H\x1b[?25l"), (2, 0), "that is a bar");
    assert_eq!(cursor(b"> Try\x1b[3;1H\x1b[?25l"), (2, 0));
}

#[test]
fn screen_tracks_title_and_progress_and_answers_queries() {
    let mut screen = Screen::new(5, 20);
    let answers = screen.feed_and_answer(
        b"\x1b]0;a title\x07\x1b]9;4;1;50\x07\x1b[?1049h\x1b[?2004hab\x1b[6n\x1b[c",
    );
    let seen = screen.look(7);
    assert_eq!(
        (seen.title.as_str(), seen.progress, seen.quiet_ms),
        ("a title", ReportedProgress::Busy, 7)
    );
    assert!(seen.alternate && seen.bracketed_paste);
    assert_eq!((seen.rows[0].as_str(), seen.cursor), ("ab", (0, 2)));
    assert_eq!(answers, b"\x1b[1;3R\x1b[?62;22c");
    screen.feed(b"\x1b]9;4;0\x07");
    assert_eq!(screen.look(0).progress, ReportedProgress::None);
}

static BUILT_IN: LazyLock<Vec<Profile>> =
    LazyLock::new(|| builtin_names().filter_map(builtin).collect());

/// With one row, vt100 0.16.2 panics on a line that is too long for it.
#[test]
fn screen_created_with_one_row_or_none_accepts_a_long_line() {
    for (rows, cols) in [(0, 0), (1, 1), (1, 80)] {
        let mut screen = Screen::new(rows, cols);
        screen.feed(&[b'x'; 200]);
        assert_eq!(screen.look(0).rows.len(), 2);
    }
}

/// Lines that start at the top of a full screen overwrite its text before they scroll it off.
#[test]
fn screen_overwritten_from_the_top_shows_no_old_text() {
    let text = ["a long line of text\r\n"; 6].concat() + "\x1b[H" + &"short\r\n".repeat(12);
    let (mut whole, mut bytewise) = (Screen::new(6, 20), Screen::new(6, 20));
    whole.feed(text.as_bytes());
    text.bytes().for_each(|byte| bytewise.feed(&[byte]));
    assert_eq!(bytewise.look(0).rows, ["short", "short", "short", "short", "short", ""]);
    assert_eq!(whole.look(0), bytewise.look(0));
}

/// Pieces of program output: lines, drawing, other sequences, and incomplete ones.
const PIECES: [&str; 78] = [
    "a line of text\r\n",
    "a long line of text that is broken in two\r\n",
    "\x1b[1;31mred\x1b[0m\t日本\r\n",
    "\n",
    "\r",
    "text",
    "日",
    "e\u{301}",
    "a row that is full.\x1b[K",
    "\x1b[3;1Ha row that is full.\x1b[K",
    "\x1b[3;1H\x1b[2Krow",
    "\x1b[3Hrow\x1b[K",
    "\x1b[3;1H│ row\x1b[K",
    "\x1b[3;1H│\u{fe0f}\x1b[K",
    "\x1b[4;1H\u{200b}│\x1b[K",
    "\x1b[3;1H────────────────────\x1b[K",
    "\x1b[4;1H────────────────────",
    "\x1b[4;2H\x1b[2K────────────────────",
    "\x1b[3;1H\x1b[2Kéü┌──┐❯ ⏺ row",
    "\x1b[3;2Hrow\x1b[K",
    "\x1b[5;1Hlow\x08\x1b[0K",
    "\x1b[9;9H\x1b[2Klast",
    "\x1b[4;1H日本\x1b[K",
    "\x1b[4;1H\u{301}",
    "\x1b[4;18H日\x1b[1mx",
    "\x1b[2;1Hover the edge of it all\x1b[2K",
    "\x1b[2m",
    "\x1b[0;7m",
    "\x1b[22;27m",
    "\x1b[m",
    "\x1b[?25h",
    "\x08",
    "\x07",
    "\x1bM",
    "\x1b[2;4r",
    "\x1b[r",
    "\x1b[1;5r",
    "\x1b[?6h",
    "\x1b[?6l",
    "\x1b7",
    "\x1b8",
    "\x1bc",
    "\x1b[?1049h",
    "\x1b[?1049l",
    "\x1b[?47h",
    "\x1b[?47l",
    "\x1b[?2004h",
    "\x1b]0;title\x07",
    "\x1b]0;title\r\n",
    "\x1b\\",
    "\x1bPq",
    "\x1b]9;4;1;50\x07",
    "\u{9b}2J",
    "\x1b[",
    "\x1b[1",
    "\x1b[2J",
    "\x1b[2J",
    "\x1b[H\x1b[2J",
    "\x1b[2J\x1b[3J\x1b[H",
    "\x1b[3;7H",
    "\x1b[6;19H",
    "\x1b[H",
    "\x1b[J",
    "\x1b[1J",
    "\x1b[2K",
    "\x1b[?25l",
    "\x1b[?2026h",
    "\x1b[?2026l",
    "\x1b[2A",
    "\x1b[B",
    "\x1b[9C",
    "\x1b[3D",
    "\x1b[G",
    "\x1b[2L",
    "\x1b[M",
    "\x1b[3P",
    "\x1b[2@",
    "\x1b[4X",
];

fn pieces(most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    let piece = prop_oneof![1 => Just(PIECES[0]), 2 => proptest::sample::select(&PIECES[..])];
    proptest::collection::vec(piece, 0..most)
}

/// Returns the screen after `text` in chunks of `at_once` bytes.
fn shown(text: &str, at_once: usize) -> Screenshot {
    let mut screen = Screen::new(6, 20);
    text.as_bytes().chunks(at_once).for_each(|chunk| screen.feed(chunk));
    // An unterminated title includes later lines of text, of which some may have been skipped.
    Screenshot { title: String::new(), ..screen.look(0) }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A large chunk skips output that is hidden at its end; single bytes skip nothing.
    #[test]
    fn large_chunks_give_the_same_screen_as_single_bytes(
        pieces in pieces(150),
        at_once in 2_usize..2000,
    ) {
        prop_assert_eq!(shown(&pieces.concat(), at_once), shown(&pieces.concat(), 1));
    }

    #[test]
    fn every_profile_judges_any_output_with_one_line_of_evidence(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        rows in 0_u16..50,
        cols in 0_u16..130,
    ) {
        let mut screen = Screen::new(rows, cols);
        screen.feed(&bytes);
        let seen = screen.look(60_000);
        for profile in BUILT_IN.iter() {
            prop_assert!(!judge(profile, &seen).evidence.contains('\n'));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    /// Long runs of lines between drawing take the path that skips lines which scroll off.
    #[test]
    fn long_runs_of_lines_give_the_same_screen_as_single_bytes(
        before in pieces(30),
        lines in proptest::collection::vec(proptest::sample::select(&PIECES[..6]), 1500..2000),
        after in pieces(30),
        at_once in 20_000_usize..40_000,
    ) {
        let text = before.concat() + &lines.concat() + &after.concat();
        prop_assert_eq!(shown(&text, at_once), shown(&text, 1));
    }
}

#[test]
fn model_is_found_in_a_command_by_the_flag_of_the_profile() {
    let claude = builtin("claude").expect("claude");
    let model =
        |line: &str| claude.model_in(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(model("claude --model opus -p x").as_deref(), Some("opus"));
    assert_eq!(model("claude --model=opus").as_deref(), Some("opus"));
    for none in ["claude", "claude --model", "claude --models x", "claude -p --modelx"] {
        assert_eq!(model(none), None, "{none}");
    }
    let shell = builtin(SHELL).expect("shell");
    assert_eq!(shell.model_in(&["x".to_owned(), "--model".to_owned(), "y".to_owned()]), None);
}
