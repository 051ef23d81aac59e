//! Fallback cascade: a backend that was chosen automatically and fails during a spawn is replaced
//! by the next tier.

use serde_json::{Value, json};

use crate::harness::{Run, SETTLED, Stage, binary, wait_for, which};

/// A profile that runs until it is ended and has a one-shot form.
const ASKER: &str = r#"
about = "answers"
runs = "native"
reads_mail = false
[launch]
argv = [["sh", "-c", "exec sleep 300", "asker", "{prompt}"], ["{mode}"]]
prompt = "argv"
modes = { acceptEdits = ["--edit"] }
once = [["sh", "-c", "test -t 0 || echo no terminal; cat; echo \"asked: $1\"; exit 3", "asker", "{prompt}"]]
[ready]
when = "settled"
settle_ms = 100
"#;

/// Puts a `tmux` first on `PATH` that fails while the shell condition holds; `$n` is the number of
/// the call.
fn failing(stage: &mut Stage, condition: &str) {
    let real = which("tmux", stage.path()).expect("tmux");
    let count = stage.at("count");
    let script = format!(
        "#!/bin/sh\nn=$(($(cat '{0}' 2>/dev/null || echo 0) + 1))\necho $n >'{0}'\n\
         if {condition}; then echo 'no server running' >&2; exit 1; fi\nexec '{1}' \"$@\"\n",
        count.display(),
        real.display()
    );
    stage.shadow("tmux", &script);
}

fn fallbacks(stage: &Stage, team: &str) -> Vec<Value> {
    stage.journal(team).into_iter().filter(|e| e["event"] == "member_fallback").collect()
}

/// Runs phalanx with a failpoint that kills each launcher when it opens its PTY.
fn without_terminals(stage: &Stage, args: &[&str]) -> Run {
    let mut command = stage.command(binary());
    Run::from(
        command
            .env("PHALANX_FAILPOINT", "child.open_pty")
            .args(args)
            .output()
            .expect("phalanx runs"),
    )
}

fn chosen(stage: &Stage, team: &str) -> Value {
    let settings = std::fs::read(stage.root().join("teams").join(team).join("phalanx/team.json"));
    serde_json::from_slice::<Value>(&settings.expect("settings")).expect("json")["chosen"].clone()
}

/// SP-08: whichever tmux call fails first, the member ends up running, and in one place only.
#[test]
fn tmux_sp_08_failing_tmux_falls_back_to_pty() {
    let mut stage = Stage::new();
    failing(&mut stage, "[ -e broken ] && [ \"$n\" -ge \"$(cat broken)\" ]");
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let first = stage.phalanx(&["--json", "spawn", "ada", "--", "sleep", "300"]).expect(0).json();
    assert_eq!(first["backend"], "tmux");
    let mut fell = 0;
    for later in 0..4 {
        let name = format!("bob{later}");
        let calls: u32 = std::fs::read_to_string(stage.at("count"))
            .expect("count")
            .trim()
            .parse()
            .expect("number");
        std::fs::write(stage.at("work/broken"), (calls + 1 + later).to_string()).expect("broken");
        let run = stage.phalanx(&["--json", "spawn", &name, "--", "sleep", "300"]).expect(0);
        let told = format!("tmux → pty for {name}");
        let line = run.stderr.lines().find(|l| l.starts_with("[FALLBACK] ") && l.ends_with(&told));
        let in_pty = run.json()["backend"] == "pty";
        assert_eq!(in_pty, line.is_some(), "{run:?}");
        assert!(in_pty || later > 0, "the very first call failed: {run:?}");
        fell += usize::from(in_pty);
        std::fs::remove_file(stage.at("work/broken")).expect("mended");
        let sleeps = stage.processes().into_iter().filter(|l| l.ends_with("sleep 300 ")).count();
        assert_eq!(sleeps, 2 + later as usize, "each runs once: {:?}", stage.processes());
    }
    let noted = fallbacks(&stage, "alpha");
    assert_eq!(noted.len(), fell);
    assert_eq!(
        (&noted[0]["detail"]["from"], &noted[0]["detail"]["to"]),
        (&json!("tmux"), &json!("pty"))
    );
    assert!(
        noted[0]["detail"]["reason"].as_str().is_some_and(|r| !r.is_empty())
            && noted[0]["cause"].is_string()
    );
    assert_eq!(chosen(&stage, "alpha"), "tmux", "what the team chose stays");
    let later = stage.phalanx(&["--json", "spawn", "eve", "--", "sleep", "300"]).expect(0).json();
    assert_eq!(later["backend"], "tmux");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn tmux_sp_08_explicit_backend_and_failing_program_never_fall_back() {
    let mut stage = Stage::new();
    failing(&mut stage, "[ -e broken ]");
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "bob", "--", "no-such-program"]).expect(1);
    stage.profile("settled", SETTLED);
    stage.phalanx(&["spawn", "bob", "--profile", "settled", "--", "sh", "-c", "exit 7"]).expect(1);
    stage.phalanx(&["spawn", "ada", "--", "sleep", "300"]).expect(0);
    std::fs::write(stage.at("work/broken"), "").expect("broken");
    let run = stage.phalanx(&["spawn", "bob", "--backend", "tmux", "--", "sleep", "300"]).expect(6);
    assert!(!run.stderr.contains("[FALLBACK]"), "{run:?}");
    assert_eq!(fallbacks(&stage, "alpha"), Vec::<Value>::new());
    std::fs::remove_file(stage.at("work/broken")).expect("mended");
    let manifest = stage.file(
        "strict.toml",
        "[team]\nname = \"strict\"\nbackend = \"tmux\"\nfinish = \"manual\"\n[[member]]\nname = \"ada\"\n",
    );
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    std::fs::write(stage.at("work/broken"), "").expect("broken");
    stage.phalanx(&["-t", "strict", "spawn", "bob"]).expect(6);
    assert_eq!(fallbacks(&stage, "strict"), Vec::<Value>::new());
    std::fs::remove_file(stage.at("work/broken")).expect("mended");
    for team in ["alpha", "strict"] {
        stage.phalanx(&["-t", team, "down"]).expect(0);
    }
    stage.assert_clean();
}

#[test]
fn tmux_each_team_falls_back_independently() {
    let mut stage = Stage::new();
    failing(&mut stage, "case \"$*\" in *phalanx-alpha*) true;; *) false;; esac");
    for team in ["alpha", "beta"] {
        stage.phalanx(&["team", "create", team]).expect(0);
        let one = stage.phalanx(&["-t", team, "--json", "spawn", "ada"]).expect(0).json();
        assert_eq!(one["backend"], if team == "alpha" { "pty" } else { "tmux" });
    }
    assert_eq!((fallbacks(&stage, "alpha").len(), fallbacks(&stage, "beta").len()), (1, 0));
    assert_eq!((chosen(&stage, "alpha"), chosen(&stage, "beta")), (json!(null), json!("tmux")));
    for team in ["alpha", "beta"] {
        stage.phalanx(&["-t", team, "down"]).expect(0);
    }
    stage.assert_clean();
}

/// The last tier is one run without a terminal, whose output is mailed to the lead; the member then
/// leaves.
#[test]
fn program_runs_one_shot_when_every_backend_fails() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.profile("asker", ASKER);
    let order = ["--json", "spawn", "bob", "--profile", "asker", "--prompt", "why; $(touch no)"];
    let mode = ["--mode", "acceptEdits"];
    let run = without_terminals(&stage, &[&order[..], &mode].concat()).expect(0);
    let dropped = "the one-shot form of `asker` is not told its mode, `acceptEdits`";
    assert!(run.stderr.contains(dropped), "{run:?}");
    assert_eq!(stage.wait_event("alpha", "warning", "bob")["detail"]["text"], dropped);
    let told = run.stderr.lines().find(|l| l.starts_with("[FALLBACK] "));
    assert!(told.is_some_and(|l| l.ends_with(": pty → one-shot for bob")), "{run:?}");
    let left = stage.wait_event("alpha", "member_left", "bob");
    assert_eq!(left["detail"]["reason"], "exit code 3");
    let mail = stage.phalanx(&["--json", "inbox", "--peek"]).expect(0).json();
    let texts: Vec<&str> = mail
        .as_array()
        .expect("mail")
        .iter()
        .filter(|m| m["from"] == "bob")
        .filter_map(|m| m["text"].as_str())
        .collect();
    assert_eq!(texts.len(), 1, "{mail}");
    assert!(texts[0].contains("exit code 3"), "{texts:?}");
    assert!(texts[0].ends_with("\n\nno terminal\nasked: why; $(touch no)"), "{texts:?}");
    assert_eq!(stage.phalanx(&["--json", "status"]).expect(0).json()["members"], json!([]));
    wait_for("its launcher ends", || stage.processes().is_empty().then_some(()));
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

#[test]
fn sp_08_error_names_every_tier_when_all_fail() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let run = without_terminals(&stage, &["spawn", "bob", "--prompt", "x"]).expect(6);
    assert!(run.stderr.contains("`bob` could not be started in any way: pty: "), "{run:?}");
    assert!(run.stderr.contains("; one-shot: profile `worker` has no one-shot form"), "{run:?}");
    assert_eq!(stage.phalanx(&["--json", "status"]).expect(0).json()["members"], json!([]));
    // An explicit backend does not fall back even one tier.
    let run =
        without_terminals(&stage, &["spawn", "bob", "--backend", "pty", "--prompt", "x"]).expect(6);
    assert!(!run.stderr.contains("one-shot"), "{run:?}");
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}
