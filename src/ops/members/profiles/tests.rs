//! The built-in profiles against recordings of the real programs, and profiles of users.

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::Caller;
use model::id::MemberName;
use profile::{Composer, Screen, ScreenFinding, Screenshot, judge};
use store::Store;
use sys::fs;

mod failed;
mod quoted;

/// The programs with recordings under `fixtures/screens`.
const RECORDED: [&str; 8] =
    ["claude", "codex", "gemini", "opencode", "aider", "qwen", "copilot", "amp"];

fn folder(program: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .join("fixtures/screens")
        .join(program)
}

pub(super) fn recording(program: &str, name: &str) -> Vec<u8> {
    let file = folder(program).join(format!("{name}.ansi"));
    fs::read(&file, 1 << 20).expect("readable").expect("a recording")
}

fn expected(program: &str) -> toml::Table {
    let bytes = fs::read(&folder(program).join("expected.toml"), 1 << 20)
        .expect("readable")
        .expect("verdicts");
    String::from_utf8(bytes).expect("text").parse().expect("TOML")
}

/// Returns the recordings and their expected verdicts, sorted by name.
fn recordings(program: &str) -> Vec<(String, toml::Table)> {
    let table = |(name, value): (String, toml::Value)| Some((name, value.as_table()?.clone()));
    expected(program).into_iter().filter_map(table).collect()
}

/// Returns the screen of a recording.
fn shown(bytes: &[u8], wanted: &toml::Table) -> Screenshot {
    let size = |key: &str| wanted.get(key).and_then(toml::Value::as_integer);
    let size = |key, usual| size(key).map_or(usual, |size| u16::try_from(size).expect("a size"));
    let mut screen = Screen::new(size("rows", 40), size("cols", 120));
    screen.feed(bytes);
    screen.look(60_000)
}

fn verdict(program: &str, bytes: &[u8], wanted: &toml::Table) -> ScreenFinding {
    judge(&profile::builtin(program).expect("built in"), &shown(bytes, wanted))
}

/// PM-01, PM-02, EN-05, MSG-08, MSG-11: the profiles recognise each first-start dialog, others, a
/// missing login and a draft in the composer on output of the real programs.
#[test]
fn pm_01_pm_02_en_05_every_recording_gets_its_expected_verdict() {
    for program in RECORDED {
        let files = fs::list(&folder(program)).expect("readable");
        let files: Vec<&str> = files.iter().filter_map(|file| file.strip_suffix(".ansi")).collect();
        let verdicts = recordings(program);
        let mut named: Vec<&str> = verdicts.iter().map(|(name, _)| name.as_str()).collect();
        named.sort_unstable();
        assert_eq!(files, named, "each recording of {program} has a verdict");
        for (name, wanted) in &verdicts {
            let found = verdict(program, &recording(program, name), wanted);
            let composer = match found.composer {
                Composer::Empty => "empty".to_owned(),
                Composer::Holds(text) => format!("holds {text}"),
                Composer::Unknown => "unknown".to_owned(),
            };
            let word = |key: &str| {
                wanted.get(key).and_then(toml::Value::as_str).expect("a word").to_owned()
            };
            let until = wanted.get("until").and_then(toml::Value::as_str);
            assert_eq!(found.until.as_deref(), until, "{program}/{name}");
            let got = [found.state.to_string(), found.rule, composer];
            assert_eq!(
                got,
                ["state", "rule", "composer"].map(word),
                "{program}/{name}: {}",
                found.evidence
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    /// Large chunks skip intermediate drawing; the resulting screen must be the same as byte by
    /// byte.
    #[test]
    fn a_recording_fed_in_large_chunks_shows_the_same_screen(
        order in proptest::collection::vec(
            proptest::sample::select(RECORDED.to_vec()).prop_flat_map(|program| {
                let names: Vec<String> = recordings(program).into_iter().map(|(name, _)| name).collect();
                proptest::sample::select(names).prop_map(move |name| recording(program, &name))
            }),
            1..4,
        ),
        at_once in 2_usize..100_000,
    ) {
        let looks = [at_once, 1].map(|size| {
            let mut screen = Screen::new(40, 120);
            order.concat().chunks(size).for_each(|chunk| screen.feed(chunk));
            screen.look(0)
        });
        prop_assert_eq!(&looks[0], &looks[1]);
    }
}

/// PM-02: while a program draws a first-start dialog, or a composer that does not work yet, no
/// prefix of its output counts as ready for input.
#[test]
fn pm_02_no_prefix_of_a_start_counts_as_ready() {
    let mut looked = 0;
    for program in RECORDED {
        for (name, wanted) in recordings(program) {
            let state = wanted.get("state").and_then(toml::Value::as_str).expect("a state");
            let walls =
                ["dialog:theme", "dialog:api-key", "dialog:notes", "dialog:trust", "dialog:bypass"];
            if !walls.contains(&state) && !["needs_login", "unknown"].contains(&state) {
                continue;
            }
            let profile = profile::builtin(program).expect("built in");
            let mut screen = Screen::new(40, 120);
            for chunk in recording(program, &name).chunks(64) {
                screen.feed(chunk);
                let found = judge(&profile, &screen.look(60_000));
                assert!(
                    !found.state.takes_input(),
                    "{program}/{name}: {} by {}",
                    found.state,
                    found.rule
                );
                looked += 1;
            }
        }
    }
    assert!(looked > 100, "{looked}");
}

pub(super) fn stage() -> (tempfile::TempDir, Context) {
    let dir = tempfile::tempdir().expect("a directory");
    let caller =
        Caller { env: Vec::new(), cwd: dir.path().to_owned(), exe: PathBuf::from("/bin/phalanx") };
    let ctx = Context { store: Store::at(dir.path()), speaker: MemberName::lead(), caller };
    (dir, ctx)
}

pub(super) fn write(ctx: &Context, name: &str, text: &str) {
    fs::private_dir(&ctx.store.profiles()).expect("a directory");
    fs::write_atomic(&ctx.store.profiles().join(name), text.as_bytes()).expect("written");
}

pub(super) const OWN: &str = "about = \"mine\"\n[launch]\nargv = [[\"mine\"]]\n";

#[test]
fn a_user_profile_overrides_a_builtin_and_is_reread_each_time() {
    let (_dir, ctx) = stage();
    assert_eq!(list(&ctx).expect("a list").len(), 17);
    assert_eq!(find(&ctx, "codex").expect("built in").about, "Codex CLI of OpenAI");
    write(&ctx, "codex.toml", OWN);
    write(&ctx, "notes.txt", "no profile");
    assert_eq!(find(&ctx, "codex").expect("own").about, "mine");
    write(&ctx, "codex.toml", &OWN.replace("mine", "changed"));
    assert_eq!(find(&ctx, "codex").expect("own").about, "changed");
    assert_eq!(list(&ctx).expect("a list").len(), 17);
}

#[test]
fn an_invalid_profile_reports_its_position_and_hides_no_other() {
    let (_dir, ctx) = stage();
    write(&ctx, "bad.toml", "abuot = 1\n");
    let said = find(&ctx, "bad").expect_err("a fault").to_string();
    assert!(
        said.ends_with("bad.toml:1:1: unknown key `abuot` in the profile; did you mean `about`?"),
        "{said}"
    );
    let listed = list(&ctx).expect("a list");
    assert_eq!(listed.iter().filter(|one| one.profile.is_err()).count(), 1);
    let OpsError::NoSuchProfile { nearest, known, .. } = find(&ctx, "codx").expect_err("none")
    else {
        panic!("another error")
    };
    assert_eq!((nearest.as_deref(), known.len()), (Some("codex"), 18));
    assert!(find(&ctx, "../bad").is_err());
}

#[test]
fn a_trial_reports_screen_states_and_removes_its_directory() {
    let (dir, mut ctx) = stage();
    ctx.caller.env =
        vec![("PATH".into(), "/usr/bin:/bin".into()), ("TMPDIR".into(), dir.path().into())];
    let rules = "[[rule]]\nname = \"hi\"\nstate = \"idle\"\nmatch = ['^hello']\n";
    let text = format!("{}{rules}", OWN.replace("\"mine\"]]", "\"echo\", \"hello\"]]"));
    let trial = Trial {
        profile: Profile::parse("own", &text).expect("a profile"),
        command: Vec::new(),
        length: std::time::Duration::from_secs(60),
        size: (5, 40),
    };
    let mut seen = Vec::new();
    let ended =
        watch(&ctx, &trial, &mut |one| seen.push(one.finding.state.to_string())).expect("a trial");
    assert!(ended);
    assert_eq!(seen.last().map(String::as_str), Some("idle"), "{seen:?}");
    assert_eq!(fs::list(dir.path()).expect("readable"), Vec::<String>::new());
}

#[test]
fn a_directory_of_recordings_is_tested_at_once() {
    for program in RECORDED {
        let profile = profile::builtin(program).expect("built in");
        let tested = test_recordings(&profile, &folder(program)).expect("verdicts");
        let failed: Vec<&TestedRecording> = tested.iter().filter(|one| !one.passed).collect();
        assert_eq!(failed, Vec::<&TestedRecording>::new());
        assert_eq!(tested.len(), recordings(program).len());
    }
    let gemini = profile::builtin("gemini").expect("built in");
    let tested = test_recordings(&gemini, &folder("codex")).expect("verdicts");
    assert!(tested.iter().any(|one| !one.passed && one.tested.finding.rule.is_empty()));
}

#[test]
fn an_invalid_list_of_recordings_is_reported_with_its_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = profile::builtin("gemini").expect("built in");
    let test = || test_recordings(&profile, dir.path()).expect_err("a fault").to_string();
    assert!(test().contains("there is no file"), "{}", test());
    for (text, said) in [
        ("rows = 1", "missing field `cols`"),
        ("rows = 9\ncols = 9\n[\"../x\"]\nstate = \"idle\"", "`../x` is not a name"),
        ("rows = 9\ncols = 9\n[x]\nstate = \"idle\"", "x.ansi"),
    ] {
        fs::write_atomic(&dir.path().join("expected.toml"), text.as_bytes()).expect("written");
        assert!(test().contains(said), "{}", test());
    }
}
