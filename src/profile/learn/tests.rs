//! Derives rules from small screens. `ops::profiles` has the screens of real programs.

use super::super::*;
use super::ScreenLabel::{Asks, Ended, Idle, Working};
use super::*;

fn shown(label: ScreenLabel, name: &str, printed: &str) -> LabelledScreen {
    let mut screen = Screen::new(24, 80);
    screen.feed(printed.replace('\n', "\r\n").as_bytes());
    LabelledScreen { name: name.to_owned(), label, look: screen.look(60_000) }
}

fn lesson<'l>(command: &'l [String], screens: &'l [LabelledScreen], typed: &'l str) -> Lesson<'l> {
    Lesson { name: "own", command, screens, typed, quit: &[], test: "test" }
}

fn learned(screens: &[LabelledScreen], typed: &str) -> (Profile, Vec<String>) {
    let LearnedProfile { text, gaps } = learn(&lesson(&["x".to_owned()], screens, typed));
    let profile = Profile::parse("own", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    (profile, gaps.iter().map(ToString::to_string).collect())
}

#[test]
fn text_of_a_question_is_captured() {
    let screens = [
        shown(Idle, "idle-1", "hello\n> "),
        shown(Working, "working-1", "hello\n* working (3s)\n> "),
        shown(Asks, "asks-1", "hello\nMay I use Shell?\n  $ touch x\n\ny / n"),
    ];
    let (profile, gaps) = learned(&screens, "");
    assert_eq!(gaps, [""; 0]);
    let found = judge(&profile, &screens[2].look);
    assert_eq!(found.asked.expect("a question").text, "May I use Shell? $ touch x y / n");
    let later = shown(Working, "later", "hello\n/ working (1m 12s)\n> ");
    assert_eq!(judge(&profile, &later.look).state, ScreenState::Working);
}

#[test]
fn screens_that_look_alike_are_named() {
    let screens = [
        shown(Idle, "idle-1", "welcome\n> "),
        shown(Working, "working-1", "welcome\n> "),
        shown(Working, "working-2", "esc to interrupt\n> "),
    ];
    let (_, gaps) = learned(&screens, "");
    assert_eq!(gaps, ["working-1 and idle-1 look alike: no line tells them apart"]);
}

#[test]
fn typed_text_on_the_screen_never_identifies_a_state() {
    let idle = shown(Idle, "idle-1", "> ");
    let screens = [idle, shown(Working, "working-1", "be slow\n> ")];
    let (_, gaps) = learned(&screens, "be slow\r");
    assert_eq!(gaps, ["working-1 and idle-1 look alike: no line tells them apart"]);
    assert_eq!(learned(&screens, "").1, [""; 0]);
}

#[test]
fn a_program_without_a_prompt_under_the_cursor_works() {
    let idle = shown(Idle, "idle-1", ">>> ");
    let screens = [idle, shown(Working, "working-1", ">>> sleep(9)\n")];
    let (profile, gaps) = learned(&screens, "sleep(9)\r");
    assert_eq!(gaps, [""; 0]);
    for (label, rule, printed) in [
        (Idle, "idle", ">>> sleep(9)\n>>> "),
        (Idle, "idle", ">>> x"),
        (Working, "no-prompt", ">>> sleep(9)\nsome output\n"),
    ] {
        let found = judge(&profile, &shown(label, "then", printed).look);
        assert_eq!((found.state, found.rule.as_str()), (label.state(), rule), "{printed:?}");
    }
}

#[test]
fn an_ambiguous_input_area_is_a_gap() {
    let working = shown(Working, "working-1", "busy\n");
    for (printed, said) in [
        ("welcome\n", "nothing before the cursor and no line above it"),
        ("welcome\n> \x1b[?25l", "idle-1 shows no cursor"),
        ("> \n> other\x1b[1;3H", "a row below the cursor begins like"),
    ] {
        let (profile, gaps) = learned(&[shown(Idle, "idle-1", printed), working.clone()], "");
        assert!(gaps.iter().any(|gap| gap.contains(said)), "{printed:?}: {gaps:?}");
        assert_eq!(profile.composer, None);
    }
}

#[test]
fn composer_is_read_from_numbered_framed_and_faint_prompts() {
    let working = shown(Working, "working-1", "Busy here\n");
    let table: [(&str, &str, &str, Composer); 4] = [
        ("In [1]: ", "a\nIn [12]: ", "In [345]: x = 1", Composer::Holds("x = 1".to_owned())),
        (
            "│ > Ask me     │\x1b[5G",
            "│ >            │\x1b[5G",
            "│ > hello      │\x1b[10G",
            Composer::Holds("hello".to_owned()),
        ),
        (
            "│ > Ask me     │\x1b[5G",
            "│ >            │\x1b[5G",
            "│ > Ask me     │\x1b[5G",
            Composer::Empty,
        ),
        ("> \x1b[2mtry this\x1b[m\x1b[3G", "> ", "> \x1b[2mtry that\x1b[m\x1b[3G", Composer::Empty),
    ];
    for (one, two, then, composer) in table {
        let screens = [shown(Idle, "idle-1", one), shown(Idle, "idle-2", two), working.clone()];
        let (profile, gaps) = learned(&screens, "");
        assert_eq!(gaps, [""; 0], "{one:?}");
        let found = judge(&profile, &shown(Idle, "then", then).look);
        assert_eq!((found.state, found.composer), (ScreenState::Idle, composer), "{then:?}");
    }
}

#[test]
fn any_command_line_and_any_screen_make_a_valid_profile() {
    let command = ["/a b/agent", "--x={y}", "it's \"q\" \\d", "\u{1b}[0m\n"].map(str::to_owned);
    let hostile = "'''\"\"\" \\ {model} [x] ^$ (?<text>y)";
    let screens = [
        shown(Idle, "idle-1", &format!("{hostile}> ")),
        shown(Working, "working-1", &format!("{hostile} esc\nx")),
        shown(Ended, "ended-1", &format!("gone {hostile}\nx")),
    ];
    let quit = ["\u{3}".to_owned(), "/exit'\r".to_owned()];
    let lesson = Lesson { quit: &quit, ..lesson(&command, &screens, "") };
    let text = learn(&lesson).text;
    let profile = Profile::parse("own", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(fill(&profile.launch.argv, &Values::new()), command);
    assert_eq!(profile.keys.quit, quit);
    for screen in &screens {
        assert_eq!(judge(&profile, &screen.look).state, screen.label.state(), "{text}");
    }
}

#[test]
fn steady_text_ignores_numbers_and_spinners() {
    let text = |printed: &str| steady_text(&shown(Working, "", printed).look);
    assert_eq!(text("| working (9s)"), text("/ working (12s)"));
    assert_ne!(text("| working"), text("| working hard"));
}
