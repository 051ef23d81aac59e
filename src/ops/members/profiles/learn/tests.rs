//! Learns the states of real programs from their recordings, and writes profiles.

use super::super::tests::{OWN, recording, stage, write};
use super::super::*;
use super::*;
use profile::ScreenLabel::{Asks, Idle, Working};
use profile::{Screen, judge};

/// A recording of a real program, on the terminal of fixtures/screens.
fn recorded(program: &str, name: &str) -> Screen {
    let mut screen = Screen::new(40, 120);
    screen.feed(&recording(program, name));
    screen
}

#[test]
fn states_and_composers_of_real_programs_are_learned() {
    type Recordings = &'static [(&'static str, ScreenLabel)];
    // The recordings to learn from, and others that must be recognised too.
    let programs: [(&str, Recordings, Recordings); 4] = [
        (
            "gemini",
            &[
                ("ready", Idle),
                ("finished", Idle),
                ("working", Working),
                ("permission", Asks),
                ("trust", Asks),
            ],
            &[("draft", Idle), ("key_refused", Idle)],
        ),
        (
            "codex",
            &[
                ("ready", Idle),
                ("finished", Idle),
                ("working", Working),
                ("permission", Asks),
                ("trust", Asks),
            ],
            &[("draft", Idle), ("interrupted", Idle), ("after_limit", Idle), ("key_refused", Idle)],
        ),
        (
            "claude",
            &[
                ("ready", Idle),
                ("finished", Idle),
                ("working", Working),
                ("permission", Asks),
                ("trust", Asks),
                ("menu", Asks),
            ],
            &[
                ("draft", Idle),
                ("draft_two_lines", Idle),
                ("bypass", Asks),
                ("api_key", Asks),
                ("limit_menu", Asks),
            ],
        ),
        (
            "aider",
            &[
                ("ready", Idle),
                ("finished", Idle),
                ("answering", Working),
                ("git", Asks),
                ("docs", Asks),
            ],
            &[("draft", Idle), ("interrupted", Idle), ("news", Asks)],
        ),
    ];
    for (program, lessons, others) in programs {
        let screens: Vec<LabelledScreen> = lessons
            .iter()
            .map(|(name, label)| LabelledScreen {
                name: (*name).to_owned(),
                label: *label,
                look: recorded(program, name).look(60_000),
            })
            .collect();
        let command = [program.to_owned()];
        let lesson = Lesson {
            name: "own",
            command: &command,
            screens: &screens,
            typed: "be slow\r",
            quit: &[],
            test: "",
        };
        let learned = profile::learn(&lesson);
        assert_eq!(learned.gaps, [], "{program}");
        let profile = Profile::parse("own", &learned.text).expect("a profile");
        let built_in = profile::builtin(program).expect("built in");
        for (name, label) in lessons.iter().chain(others) {
            let look = recorded(program, name).look(60_000);
            let found = judge(&profile, &look);
            assert_eq!(found.state, label.state(), "{program}/{name} by {}", found.rule);
            if *label != Asks {
                assert_eq!(found.composer, judge(&built_in, &look).composer, "{program}/{name}");
            }
        }
    }
}

/// A recording that `profile learn` writes shows what the program showed.
#[test]
fn a_recording_of_a_screen_draws_the_same_screen() {
    for (program, names) in [
        ("gemini", ["draft", "working", "permission", "ready"]),
        ("claude", ["draft_two_lines", "working", "suggestion", "permission"]),
        ("opencode", ["draft", "working", "permission", "ready"]),
        ("codex", ["draft", "working", "permission", "limited"]),
    ] {
        for name in names {
            let screen = recorded(program, name);
            let mut drawn = Screen::new(40, 120);
            drawn.feed(&screen.recording());
            assert_eq!(drawn.look(7), screen.look(7), "{program}/{name}");
        }
    }
}

#[test]
fn keys_that_end_a_program_are_those_typed_last() {
    let table: [(&[u8], &[&str]); 9] = [
        (b"", &[]),
        (b"\x03\x03", &["\x03", "\x03"]),
        (b"/exit\r", &["/exit\r"]),
        (b"n\x04", &["n", "\x04"]),
        (b"/quiz\x7ft\r", &["/quit\r"]),
        (b"/exit\ry", &["/exit\r", "y"]),
        (b"\x1b[A\r", &[]),
        (b"a\rb\rc\rd\r", &[]),
        (b"\xff", &[]),
    ];
    for (typed, keys) in table {
        assert_eq!(quit_keys(typed), keys, "{typed:?}");
    }
}

fn recorded_session(printed: [&str; 3]) -> RecordedSession {
    let labels = [ScreenLabel::Idle, ScreenLabel::Working, ScreenLabel::Asks];
    let screen = |(label, printed): (ScreenLabel, &str)| {
        let mut screen = Screen::new(20, 60);
        screen.feed(printed.as_bytes());
        let name = format!("{}-1", label.as_str());
        let recording = screen.recording();
        let screen = LabelledScreen { name, label, look: screen.look(0) };
        RecordedScreen { screen, recording, size: (20, 60) }
    };
    let screens = labels.into_iter().zip(printed).map(screen).collect();
    RecordedSession { screens, ..RecordedSession::default() }
}

#[test]
fn an_incomplete_profile_stays_a_draft_and_takes_no_name() {
    let (_dir, ctx) = stage();
    let command = ["./agent".to_owned()];
    let alike = recorded_session(["hi\r\n> ", "hi\r\n> ", "Sure?\r\ny / n"]);
    let saved = save(&ctx, "mine", &command, &alike).expect("saved");
    assert!(!saved.is_complete && saved.file.ends_with("profiles/mine/draft.toml"), "{saved:?}");
    assert_eq!(saved.gaps.len(), 1);
    assert!(matches!(find(&ctx, "mine"), Err(OpsError::NoSuchProfile { .. })));
    let taken = check_unused(&ctx, "mine", false).expect_err("its draft is kept").to_string();
    assert!(taken.ends_with("profiles/mine already exists"), "{taken}");

    let clear = recorded_session(["hi\r\n> ", "esc stops\r\n> ", "Sure?\r\ny / n"]);
    let saved = save(&ctx, "mine", &command, &clear).expect("saved");
    assert!(saved.is_complete && saved.tested.iter().all(|one| one.passed), "{saved:?}");
    let profile = find(&ctx, "mine").expect("a profile");
    let program = ctx.caller.cwd.join("./agent").to_string_lossy().into_owned();
    assert_eq!(profile.program(), Some(program), "a member has another directory");
    let files = fs::list(&ctx.store.profiles().join("mine")).expect("readable");
    assert_eq!(files, ["asks-1.ansi", "expected.toml", "idle-1.ansi", "working-1.ansi"]);
}

#[test]
fn a_learned_profile_replaces_another_one_only_with_force() {
    let (_dir, ctx) = stage();
    write(&ctx, "own.toml", OWN);
    for (name, said) in [
        ("own", "profiles/own.toml already exists"),
        ("codex", "profile `codex` is built in, and yours would take its place"),
        ("../x", "`../x` is not a name"),
    ] {
        let refused = check_unused(&ctx, name, false).expect_err("refused").to_string();
        assert!(refused.contains(said), "{refused}");
    }
    assert!(check_unused(&ctx, "own", true).is_ok() && check_unused(&ctx, "../x", true).is_err());
}
