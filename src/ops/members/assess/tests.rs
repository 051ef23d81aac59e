//! Rosters and screens of real programs, replayed through the decision about their activity.

use std::path::PathBuf;

use serde_json::Value;

use super::*;
use fixture::sample;
use model::members::assessment::assess;
use model::members::lifecycle::MemberState;
use model::members::record::retrying_reason;
use model::members::usage;
use profile::{self, Screen};

const NOW: Timestamp = Timestamp(1_000_000);

fn fixture(path: &str) -> Vec<u8> {
    let file =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("fixtures").join(path);
    fs::read(&file, 1 << 20).expect("readable").expect("a recording")
}

/// The record of a run that its lead believes to be in `state`.
fn record(program: &str, state: MemberState) -> MemberRecord {
    let mut record = sample::record("ann", sample::run(1), program, Timestamp(900_000));
    record.state = state;
    record.request.native = Some(program == "claude");
    record.request.reads_mail = Some(true);
    record
}

fn decide(
    record: &MemberRecord,
    is_active: Option<bool>,
    screen: Option<&ScreenSign>,
    request: Option<&OpenRequest>,
) -> Doing {
    let evidence = Evidence {
        record: Some(record),
        is_dead: false,
        is_led: true,
        is_inside: false,
        is_active,
        rested_at: None,
        mail: Some(UntakenMail { count: 0, since: None }),
        mail_changed_at: None,
        request,
        task: None,
        next_task: None,
        given: None,
        screen,
        now: NOW,
    };
    assess(&evidence).doing
}

/// ST-01: the team files and screens that Claude Code 2.1.34 and 2.1.331 wrote at the start, during
/// a turn, after it, and while they asked for a permission. Whatever the lead has recorded, the
/// program's own word decides, with its screen and without it.
#[test]
fn st_01_real_rosters_of_claude_say_what_it_is_doing() {
    let asked = OpenRequest {
        need: Need::Permission,
        id: "perm-1".to_owned(),
        summary: "Bash: touch made.txt".to_owned(),
        since: Timestamp(990_000),
    };
    let profile = profile::builtin("claude").expect("built in");
    for version in ["2.1.34", "2.1.331"] {
        for (name, request, expected) in [
            ("ready", None, Doing::Idle),
            ("working", None, Doing::Working),
            ("idle", None, Doing::Idle),
            ("asking", Some(&asked), Doing::Waiting(Need::Permission)),
        ] {
            let place = format!("activity/claude-{version}/{name}");
            let file: Value =
                serde_json::from_slice(&fixture(&format!("{place}.json"))).expect("a team file");
            let team = Team::read(file.as_object().expect("an object"));
            let member = MemberName::new("ann").expect("a name");
            let is_active = team.member(&member).expect("ann").is_active;
            let text = String::from_utf8(fixture(&format!("{place}.txt"))).expect("text");
            let sign = screen_sign(&judge(&profile, &Screenshot::of_text(&text)));
            for state in [MemberState::Idle, MemberState::Working] {
                for screen in [None, sign.as_ref()] {
                    let found = decide(&record("claude", state), is_active, screen, request);
                    assert_eq!(found, expected, "{place}, recorded {state:?}, screen {screen:?}");
                }
            }
        }
    }
}

/// Each recorded screen of a built-in profile leads to one state, as the wrapper records it and as
/// a screen that is read for the decision.
#[test]
fn st_01_recorded_screens_say_what_their_programs_are_doing() {
    let mut replayed = 0;
    let recorded = ["claude", "codex", "gemini", "opencode", "aider", "qwen", "copilot", "amp"];
    for program in recorded {
        let verdicts = String::from_utf8(fixture(&format!("screens/{program}/expected.toml")));
        let verdicts: toml::Table = verdicts.expect("text").parse().expect("TOML");
        let profile = profile::builtin(program).expect("built in");
        for (name, verdict) in verdicts.iter().filter(|(_, verdict)| verdict.is_table()) {
            let state = verdict["state"].as_str().expect("a state");
            let size = |key: &str| verdict.get(key).and_then(toml::Value::as_integer);
            let size =
                |key, usual| size(key).map_or(usual, |it| u16::try_from(it).expect("a size"));
            let mut screen = Screen::new(size("rows", 40), size("cols", 120));
            screen.feed(&fixture(&format!("screens/{program}/{name}.ansi")));
            let finding = judge(&profile, &screen.look(60_000));
            let expected = match state {
                "working" => Doing::Working,
                "retrying" => Doing::Retrying,
                "ready" | "idle" | "limited" => Doing::Idle,
                "needs_login" | "failed:login" => Doing::Waiting(Need::Login),
                "dialog:permission" => Doing::Waiting(Need::Permission),
                "dialog:trust" => Doing::Waiting(Need::Trust),
                "dialog:question" => Doing::Waiting(Need::Question),
                "dialog:approval" => Doing::Waiting(Need::Approval),
                "unknown" => continue,
                other if other.starts_with("dialog:") => Doing::Waiting(Need::Dialog),
                _ => Doing::Waiting(Need::Error),
            };
            let mut wrapped = record(program, MemberState::Idle);
            wrapped.request.native = Some(false);
            wrapped.reason = match finding.state {
                ScreenState::Failed { needs_login } => {
                    Some(usage::failed_reason(&finding.evidence, needs_login))
                }
                ScreenState::Retrying => Some(retrying_reason(&finding.evidence)),
                _ => finding.blocked_reason(),
            };
            if matches!(finding.state, ScreenState::Working | ScreenState::Retrying) {
                wrapped.state = MemberState::Working;
            }
            let found = decide(&wrapped, None, None, None);
            assert_eq!(found, expected, "{program}/{name} as recorded by its wrapper");
            let sign = screen_sign(&finding);
            let mut native = record(program, MemberState::Idle);
            native.request.native = Some(true);
            let found = decide(&native, None, sign.as_ref(), None);
            assert_eq!(found, expected, "{program}/{name} as read from its screen");
            replayed += 1;
        }
    }
    assert!(replayed > 50, "{replayed}");
}
