//! Permission settings in Claude Code's settings files that apply to members started by phalanx.

use std::fs;

use crate::harness::{NATIVE, Run, Stage, binary, wait_for};

/// Creates a team with a native member `ada`.
fn team(stage: &Stage) {
    stage.profile("native", NATIVE);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--profile", "native", "--", "sleep", "300"]).expect(0);
}

fn end(stage: &Stage) {
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// Runs each command that would switch a program to `bypassPermissions`.
fn bypasses(stage: &Stage) -> [Run; 3] {
    stage.phalanx(&["--as", "ada", "send", "team-lead", PLAN]).expect(0);
    [
        &["spawn", "bob", "--profile", "worker", "--mode", "bypassPermissions", "--dry-run"][..],
        &["mode", "ada", "bypassPermissions"],
        &["answer", "plan-1", "--approve", "--mode", "bypassPermissions"],
    ]
    .map(|args| stage.phalanx(args))
}

const PLAN: &str = r#"{"type":"plan_approval_request","from":"ada","timestamp":"2026-11-20T22:43:51.440Z",
    "planFilePath":"/w/plan.md","planContent":"do it","requestId":"plan-1"}"#;
const DISABLED: &str = r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#;

#[test]
fn pm_06_settings_file_disables_bypass_permissions_mode() {
    let stage = Stage::without_tmux();
    team(&stage);
    let project = stage.at("work").join(".claude");
    fs::create_dir_all(&project).expect("dir");
    let user = stage.root().join("settings.json");
    for file in [user, project.join("settings.json"), project.join("settings.local.json")] {
        for (text, why) in [(DISABLED, "disableBypassPermissionsMode"), ("{", "cannot be read")] {
            fs::write(&file, text).expect("settings");
            for run in bypasses(&stage) {
                let run = run.expect(4);
                assert!(run.stderr.contains("mode `bypassPermissions` is disabled"), "{run:?}");
                assert!(
                    run.stderr.contains(&*file.to_string_lossy()) && run.stderr.contains(why),
                    "{run:?}"
                );
            }
        }
        fs::remove_file(&file).expect("removed");
    }
    for run in bypasses(&stage) {
        run.expect(0);
    }
    end(&stage);
}

#[test]
fn pm_06_variable_disables_bypass_permissions_mode() {
    let stage = Stage::without_tmux();
    team(&stage);
    for (value, code) in [("false", 4), ("true", 0)] {
        let mut command = stage.command(binary());
        command.env("CLAUDE_CODE_BYPASS_PERMISSIONS_MODE", value).args([
            "mode",
            "ada",
            "bypassPermissions",
        ]);
        Run::from(command.output().expect("phalanx runs")).expect(code);
    }
    end(&stage);
}

#[test]
fn additional_directories_of_trusted_settings_are_passed_on() {
    let stage = Stage::without_tmux();
    stage.profile("wide", WIDE);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let root = stage.root();
    fs::write(
        root.join("settings.json"),
        r#"{"permissions": {"additionalDirectories": ["/opt/one"]}}"#,
    )
    .expect("settings");
    let project = stage.at("work").canonicalize().expect("path");
    fs::create_dir_all(project.join(".claude")).expect("dir");
    let local = r#"{"permissions": {"additionalDirectories": ["../two", "/opt/one"]}}"#;
    fs::write(project.join(".claude/settings.local.json"), local).expect("settings");
    let two = project.join("../two");
    let trusted = format!("trusted = [{:?}]\n", project.to_string_lossy());
    let own = root.join("phalanx/hooks.toml");
    let both = format!("--add-dir /opt/one --add-dir {}\n", two.display());
    for (name, trusts, wanted) in
        [("ann", "", "--add-dir /opt/one\n"), ("bob", trusted.as_str(), both.as_str())]
    {
        fs::write(&own, trusts).expect("hooks.toml");
        stage.phalanx(&["spawn", name, "--profile", "wide"]).expect(0);
        let file = project.join("argv");
        let argv = wait_for("its arguments", || {
            fs::read_to_string(&file).ok().filter(|s| s.ends_with('\n'))
        });
        assert_eq!(argv, wanted);
        fs::remove_file(&file).expect("removed");
    }
    end(&stage);
}

/// A profile that accepts extra directories; its program writes its arguments to a file.
const WIDE: &str = "about = \"takes directories\"\nruns = \"native\"\nreads_mail = false\n[launch]\n\
    argv = [[\"sh\", \"-c\", 'echo \"$@\" >argv; exec sleep 300', \"sh\"], [\"--add-dir\", \"{add_dir}\"]]\n\
    prompt = \"mailbox\"\n[ready]\nwhen = \"running\"\n";
