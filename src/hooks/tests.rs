//! Tests with real hook processes and real settings files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::files::Found;
use super::*;
use crate::model::hook::{Hook, HookEvent, Words};
use crate::sys::clock::{self, Deadline};
use crate::sys::exec::{self, ExecCommand};
use crate::sys::fs;

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a temporary directory"));
        for dir in ["root", "app/.claude", "app/sub/.claude"] {
            place.sh(&format!("mkdir -p {dir}"));
        }
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn file(&self, path: &str, text: &str) {
        fs::write_atomic(&self.at(path), text.as_bytes()).expect("written");
    }

    fn sh(&self, line: &str) -> String {
        let args = vec!["-c".into(), line.into()];
        let cwd = Some(self.0.path().to_owned());
        let command = ExecCommand { program: "sh".into(), args, cwd, ..ExecCommand::default() };
        let output = exec::run(&command, Duration::from_secs(60)).expect("it ends");
        assert_eq!(output.code, Some(0), "{line}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn find(&self, project: &str) -> Found {
        find(&Places {
            own: self.at("root/hooks.toml"),
            user: self.at("root/settings.json"),
            project: Some(self.at(project)),
        })
    }

    fn run(&self, run_it: Words, timeout_s: u64) -> Ran {
        let hook = Hook { event: HookEvent::TeammateIdle, matcher: None, run: run_it, timeout_s };
        let env = [("PATH".into(), "/usr/bin:/bin".into()), ("ONLY".into(), "me".into())];
        run(
            &hook,
            &Call {
                input: &json!({"teammate_name": "ada"}),
                env: &env,
                cwd: self.0.path(),
                owner: "me",
            },
        )
    }

    fn line(&self, line: &str) -> Ran {
        self.run(Words::Line(line.to_owned()), 30)
    }
}

fn idle(line: &str) -> String {
    json!({"hooks": {"TeammateIdle": [{"hooks": [{"type": "command", "command": line}]}]}})
        .to_string()
}

fn lines(found: &Found) -> Vec<String> {
    found.hooks.iter().map(|known| known.hook.run.shown()).collect()
}

#[test]
fn hook_receives_input_environment_and_directory() {
    let place = Place::new();
    let ran = place.line("cat; echo \"/$ONLY/$HOME/\"; pwd; echo why >&2; exit 2");
    let expected = format!("{{\"teammate_name\":\"ada\"}}/me//\n{}", place.0.path().display());
    assert_eq!((ran.end, ran.stdout, ran.stderr), (End::Code(2), expected, "why".to_owned()));
    place.file("app/hello", "#!/bin/sh\necho \"$0 $#\"\n");
    place.sh("chmod 755 app/hello");
    // A relative program path is resolved against the hook's directory; its arguments are not
    // expanded.
    let words = ["app/hello", "a b", "$ONLY"].map(str::to_owned).to_vec();
    assert_eq!(place.run(Words::Program(words), 30).stdout, "app/hello 2");
}

#[test]
fn hook_output_is_truncated_and_stripped_of_escapes() {
    let place = Place::new();
    let ran = place.line("printf '\\033[31mred\\033]0;t\\007\\377' >&2; kill -9 $$");
    assert_eq!((ran.end, ran.stderr.as_str()), (End::Signal(9), "red\u{fffd}"));
    let ran = place.line("head -c 300000000 /dev/zero | tr '\\0' x");
    assert_eq!((ran.end, ran.stdout.chars().count()), (End::Code(0), 10_001));
}

#[test]
fn hook_that_cannot_start_reports_the_reason() {
    let place = Place::new();
    let end = |program: &str| place.run(Words::Program(vec![program.to_owned()]), 30).end;
    assert_eq!(end("no-such-hook"), End::NotRun("cannot find the program no-such-hook".to_owned()));
    place.file("app/plain", "#!/bin/sh\n");
    let End::NotRun(said) = end("app/plain") else { panic!("it is not executable") };
    assert!(said.starts_with("cannot run app/plain: Permission denied"), "{said}");
}

/// Processes that moved to a session of their own are terminated too, and do not delay the caller.
#[test]
fn timed_out_hook_is_killed_with_its_descendants() {
    let place = Place::new();
    let ran = place.run(
        Words::Line(
            "trap '' TERM; setsid sh -c 'echo $$ > far; sleep 71' & sleep 72 & sleep 73".to_owned(),
        ),
        1,
    );
    assert_eq!(ran.end, End::TimedOut);
    assert!(ran.elapsed_ms >= 1000, "{ran:?}");
    let far = place.sh("cat far");
    let gone = Deadline::after(Duration::from_secs(60));
    while fs::exists(&Path::new("/proc").join(far.trim()).join("exe")) {
        assert!(!gone.expired(), "process {far} is still there");
        clock::sleep(Duration::from_millis(5));
    }
}

#[test]
fn hooks_of_all_files_are_merged_without_duplicates() {
    let place = Place::new();
    let own = format!(
        "trusted = [\"{}\"]\n[[hook]]\nevent = \"TeammateIdle\"\nrun = [\"own\"]\n",
        place.at("app").display()
    );
    place.file("root/hooks.toml", &own);
    place.file("root/settings.json", &idle("user"));
    place.file("app/.claude/settings.json", &idle("project"));
    place.file("app/.claude/settings.local.json", &idle("user"));
    let found = place.find("app");
    assert_eq!(
        (lines(&found), found.warnings),
        (["own", "user", "project"].map(str::to_owned).to_vec(), vec![])
    );
    assert_eq!(
        found.hooks.iter().map(|known| known.of_claude).collect::<Vec<_>>(),
        [false, true, true]
    );
    // A subdirectory of a trusted directory is trusted as well.
    place.file("app/sub/.claude/settings.json", &idle("sub"));
    assert_eq!(lines(&place.find("app/sub")), ["own", "user", "sub"]);
    place.file("app/.claude/settings.local.json", r#"{"disableAllHooks": true}"#);
    assert_eq!(lines(&place.find("app")), ["own"], "ours are not Claude's to switch off");
    // If the project is the home directory, its settings file is the user's.
    place.sh("rm app/.claude/settings*; ln -s ../../root/settings.json app/.claude/settings.json");
    assert_eq!(lines(&place.find("app")), ["own", "user"]);
}

/// Starting a lead in an untrusted directory must not run commands from that directory.
#[test]
fn untrusted_project_hooks_are_disabled() {
    let place = Place::new();
    place.file("app/.claude/settings.json", &idle("evil"));
    let app = place.at("app").display().to_string();
    let own = place.at("root/hooks.toml").display().to_string();
    let warning = format!(
        "hooks in {app}/.claude/settings.json are disabled: {app} is not listed under `trusted` in {own}"
    );
    let found = place.find("app");
    assert_eq!((found.hooks, found.warnings), (vec![], vec![warning]));
    // Neither a path prefix that ends inside a name nor trust in a subdirectory counts.
    place.file(
        "root/hooks.toml",
        &format!("trusted = [\"{app}/sub\", \"{}\"]\n", &app[..app.len() - 1]),
    );
    assert_eq!(place.find("app").hooks, vec![]);
    place.file("app/.claude/settings.json", r#"{"hooks": {"PreToolUse": []}}"#);
    assert_eq!(place.find("app"), Found::default(), "nothing of it is meant for phalanx");
}

/// SEC-07: a hooks file that others can write to is ignored; a symbolic link to the user's own file
/// works.
#[test]
fn unreadable_hook_files_become_warnings() {
    let place = Place::new();
    for (text, said) in [
        ("{", "not a JSON object: "),
        ("\u{0}", "not a JSON object: "),
        ("{\"hooks\": {\"TeammateIdle\": 7}}", "`TeammateIdle` is not a list"),
    ] {
        place.file("root/settings.json", text);
        let found = place.find("app");
        assert_eq!(found.hooks, vec![], "{text:?}");
        assert!(found.warnings.iter().any(|warning| warning.contains(said)), "{text:?}: {found:?}");
    }
    place.file("root/settings.json", &idle("user"));
    place.file("root/hooks.toml", "[[hook]]\nevent = \"X\"\nrun = [\"x\"]\n");
    let found = place.find("app");
    assert_eq!(lines(&found), ["user"]);
    assert!(found.warnings[0].contains("hooks.toml:2:9: unknown event `X`"), "{found:?}");
    place.sh("rm root/hooks.toml; mv root/settings.json real; ln -s ../real root/settings.json");
    assert_eq!(
        (lines(&place.find("app")), place.find("app").warnings),
        (vec!["user".to_owned()], vec![])
    );
    place.sh("chmod o+w real");
    assert!(place.find("app").warnings[0].ends_with("are disabled: it is world-writable"));
    place.sh("rm real");
    assert!(place.find("app").warnings[0].ends_with("are disabled: it is a broken symbolic link"));
    place.sh("rm root/settings.json; mkdir root/settings.json");
    assert!(
        place.find("app").warnings[0].contains("are disabled: refused to read"),
        "{:?}",
        place.find("app")
    );
}
