//! The built-in profiles against recordings of the real programs, and users' own files.

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::model::id::MemberName;
use crate::ops::Caller;
use crate::profile::{Composer, Finding, Screen, judge};
use crate::store::Store;

/// The programs of which there are recordings.
const RECORDED: [&str; 5] = ["claude", "codex", "gemini", "opencode", "aider"];

fn folder(program: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/screens").join(program)
}

fn recording(program: &str, name: &str) -> Vec<u8> {
    let file = folder(program).join(format!("{name}.ansi"));
    fs::read(&file, 1 << 20).expect("readable").expect("a recording")
}

fn expected(program: &str) -> toml::Table {
    let bytes = fs::read(&folder(program).join("expected.toml"), 1 << 20)
        .expect("readable")
        .expect("verdicts");
    String::from_utf8(bytes).expect("text").parse().expect("TOML")
}

/// The recordings and their tables, in the order of their names.
fn recordings(program: &str) -> Vec<(String, toml::Table)> {
    let table = |(name, value): (String, toml::Value)| Some((name, value.as_table()?.clone()));
    expected(program).into_iter().filter_map(table).collect()
}

fn verdict(program: &str, bytes: &[u8]) -> Finding {
    let mut screen = Screen::new(40, 120);
    screen.feed(bytes);
    judge(&profile::builtin(program).expect("built in"), &screen.look(60_000))
}

/// PM-01, PM-02, EN-05, MSG-11: each wall of a first start, each dialog, the missing login and a draft in the composer
/// are recognised on what the real programs drew.
#[test]
fn pm_01_pm_02_en_05_every_recording_of_a_real_program_gets_its_verdict() {
    for program in RECORDED {
        let files = fs::list(&folder(program)).expect("readable");
        let files: Vec<&str> = files.iter().filter_map(|file| file.strip_suffix(".ansi")).collect();
        let verdicts = recordings(program);
        let mut named: Vec<&str> = verdicts.iter().map(|(name, _)| name.as_str()).collect();
        named.sort_unstable();
        assert_eq!(files, named, "each recording of {program} has a verdict");
        for (name, wanted) in &verdicts {
            let found = verdict(program, &recording(program, name));
            let composer = match found.composer {
                Composer::Empty => "empty".to_owned(),
                Composer::Holds(text) => format!("holds {text}"),
                Composer::Unknown => "unknown".to_owned(),
            };
            let word = |key: &str| {
                wanted.get(key).and_then(toml::Value::as_str).expect("a word").to_owned()
            };
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

    /// Of real programs' output, one behind the other, much at once is not drawn; nobody can tell.
    #[test]
    fn a_recording_that_is_fed_much_at_once_shows_the_same(
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

/// PM-02: on the way to a wall, or to a composer that does nothing yet, a program never looks as if it took input, at
/// whatever byte one looks.
#[test]
fn pm_02_a_start_is_never_taken_for_readiness_on_the_way() {
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

fn stage() -> (tempfile::TempDir, Context) {
    let dir = tempfile::tempdir().expect("a directory");
    let caller =
        Caller { env: Vec::new(), cwd: dir.path().to_owned(), exe: PathBuf::from("/bin/phalanx") };
    let ctx = Context { store: Store::at(dir.path()), speaker: MemberName::lead(), caller };
    (dir, ctx)
}

fn write(ctx: &Context, name: &str, text: &str) {
    fs::private_dir(&ctx.store.profiles()).expect("a directory");
    fs::write_atomic(&ctx.store.profiles().join(name), text.as_bytes()).expect("written");
}

const OWN: &str = "about = \"mine\"\n[launch]\nargv = [[\"mine\"]]\n";

#[test]
fn a_users_own_profile_wins_and_is_read_anew_each_time() {
    let (_dir, ctx) = stage();
    assert_eq!(list(&ctx).expect("a list").len(), 7);
    assert_eq!(find(&ctx, "codex").expect("built in").about, "Codex CLI of OpenAI, wrapped");
    write(&ctx, "codex.toml", OWN);
    write(&ctx, "notes.txt", "no profile");
    assert_eq!(find(&ctx, "codex").expect("own").about, "mine");
    write(&ctx, "codex.toml", &OWN.replace("mine", "changed"));
    assert_eq!(find(&ctx, "codex").expect("own").about, "changed");
    assert_eq!(list(&ctx).expect("a list").len(), 7);
}

#[test]
fn a_profile_that_cannot_be_read_says_where_and_stops_nothing_else() {
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
    assert_eq!((nearest.as_deref(), known.len()), (Some("codex"), 8));
    assert!(find(&ctx, "../bad").is_err());
}

#[test]
fn a_trial_shows_what_is_seen_and_leaves_nothing() {
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
