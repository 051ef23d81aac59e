//! Tests of both formats, and of real settings files.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use model::team::hook::{HookEvent, Invocation, Matcher};
use sys::exec::{self, ExecCommand};

fn own(text: &str) -> Result<OwnHooks, String> {
    parse_own_hooks(text).map_err(|e| e.to_string())
}

fn matcher(text: &str) -> Option<Matcher> {
    Matcher::parse(text).expect("an expression")
}

struct Project(TempDir);

impl Project {
    fn new() -> Project {
        let place = Project(tempfile::tempdir().expect("a temporary directory"));
        place.sh("mkdir -p root app/.claude app/sub/.claude");
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn file(&self, path: &str, text: &str) {
        fs::write_atomic(&self.at(path), text.as_bytes()).expect("written");
    }

    fn sh(&self, line: &str) {
        let args = vec!["-c".into(), line.into()];
        let cwd = Some(self.0.path().to_owned());
        let command = ExecCommand { program: "sh".into(), args, cwd, ..ExecCommand::default() };
        let output = exec::run(&command, Duration::from_secs(60)).expect("it ends");
        assert_eq!(output.code, Some(0), "{line}");
    }

    fn find(&self, project: &str) -> FoundHooks {
        find_hooks(&HookFiles {
            own: self.at("root/hooks.toml"),
            user: self.at("root/settings.json"),
            project: Some(self.at(project)),
        })
    }
}

fn idle(line: &str) -> String {
    json!({"hooks": {"TeammateIdle": [{"hooks": [{"type": "command", "command": line}]}]}})
        .to_string()
}

fn lines(found: &FoundHooks) -> Vec<String> {
    found.hooks.iter().map(|known| known.hook.run.shown()).collect()
}

#[test]
fn own_format_is_parsed() {
    let text = "trusted = [\"/src/app\"]\n[[hook]]\nevent = \"TaskCompleted\"\nrun = [\"check\", \"a b\"]\n\
        timeout = 5\n[[hook]]\nevent = \"SubagentStop\"\nmatcher = \"dev|qa\"\nrun = [\"bye\"]\n";
    let read = own(text).expect("hooks");
    assert_eq!(read.trusted, ["/src/app"]);
    let program =
        |words: &[&str]| Invocation::Program(words.iter().map(|w| (*w).to_owned()).collect());
    let expected = [
        HookCommand {
            event: HookEvent::TaskCompleted,
            matcher: None,
            run: program(&["check", "a b"]),
            timeout_s: 5,
        },
        HookCommand {
            event: HookEvent::SubagentStop,
            matcher: matcher("dev|qa"),
            run: program(&["bye"]),
            timeout_s: 60,
        },
    ];
    assert_eq!(read.hooks, expected);
    assert_eq!(own("").expect("empty"), OwnHooks::default());
}

#[test]
fn faults_in_own_format_have_positions() {
    for (text, said) in [
        ("[[hook]]\nrun = [\"x\"]\n", "1:1: [[hook]] has no `event`"),
        ("[[hook]]\nevent = \"TeammateIdle\"\n", "1:1: [[hook]] has no `run`"),
        (
            "[[hook]]\nevent = \"TeamateIdle\"\nrun = [\"x\"]\n",
            "2:9: unknown event `TeamateIdle`; known: `SubagentStart`, `SubagentStop`, `TeammateIdle`, \
             `TaskCompleted`; did you mean `TeammateIdle`?",
        ),
        (
            "[[hook]]\nevent = \"SubagentStart\"\nrun = \"x\"\n",
            "3:7: `run` in [[hook]] must be a list of strings (program and arguments); it is not run by a shell",
        ),
        (
            "[[hook]]\nevent = \"TaskCompleted\"\nmatcher = \"dev\"\nrun = [\"x\"]\n",
            "3:11: `matcher` in [[hook]] has no meaning for TaskCompleted: it runs for every one",
        ),
        (
            "[[hook]]\nevent = \"SubagentStop\"\nmatcher = \"(\"\nrun = [\"x\"]\n",
            "3:11: `matcher` in [[hook]] is no regular expression: `(`",
        ),
        (
            "[[hook]]\nevent = \"SubagentStop\"\nrun = [\"x\"]\ntimeout = 0\n",
            "4:11: `timeout` in [[hook]] must be from 1 to 3600, in seconds",
        ),
        (
            "[[hook]]\nevent = \"SubagentStop\"\nrun = [\"x\"]\ncommand = \"y\"\n",
            "4:1: unknown key `command` in [[hook]]; did you mean `run`?",
        ),
        ("trusted = [\"app\"]\n", "1:12: `trusted` in hooks.toml: `app` is not an absolute path"),
        ("[hook]\n", "1:1: `hook` must be a list of tables, [[hook]], not one table"),
    ] {
        assert_eq!(own(text).expect_err(text), said);
    }
}

#[test]
fn claude_format_is_parsed() {
    let text = r#"{"model": "opus", "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "no"}]}],
        "SubagentStart": [{"matcher": "tester|dev", "hooks": [
            {"type": "command", "command": "echo hi", "timeout": 2.5},
            {"type": "command", "command": "echo all"}]}],
        "TaskCompleted": [{"matcher": "ignored(", "hooks": [{"type": "command", "command": "a && b", "timeout": 1e9}]}]
    }}"#;
    let read = parse_claude_hooks(text).expect("settings");
    let line = |event, kinds: &str, line: &str, timeout_s| HookCommand {
        event,
        matcher: matcher(kinds),
        run: Invocation::Line(line.to_owned()),
        timeout_s,
    };
    let expected = [
        line(HookEvent::SubagentStart, "tester|dev", "echo hi", 3),
        line(HookEvent::SubagentStart, "tester|dev", "echo all", 60),
        line(HookEvent::TaskCompleted, "", "a && b", 3600),
    ];
    assert_eq!((read.hooks.as_slice(), read.disabled), (expected.as_slice(), false));
    assert_eq!(read.problems, Vec::<String>::new());
    assert_eq!(parse_claude_hooks("{}").expect("settings"), ClaudeHooks::default());
    assert!(parse_claude_hooks(r#"{"disableAllHooks": true}"#).expect("settings").disabled);
}

/// Invalid parts are reported and skipped; valid parts next to them are read.
#[test]
fn invalid_parts_of_claude_format_are_reported() {
    let of =
        |hooks: &str| parse_claude_hooks(&format!(r#"{{"hooks": {hooks}}}"#)).expect("an object");
    for (hooks, said) in [
        ("7", "`hooks` is not an object"),
        (r#"{"TeammateIdle": {}}"#, "`TeammateIdle` is not a list"),
        (r#"{"TeammateIdle": ["x"]}"#, "an entry of `TeammateIdle` has no list `hooks`"),
        (
            r#"{"SubagentStop": [{"matcher": "(", "hooks": []}]}"#,
            "a `matcher` of `SubagentStop` is no regular expression: `(`",
        ),
        (r#"{"TeammateIdle": [{"hooks": [{}]}]}"#, "a hook of `TeammateIdle` has no `type`"),
        (
            r#"{"TeammateIdle": [{"hooks": [{"type": "prompt", "prompt": "?"}]}]}"#,
            "a hook of `TeammateIdle` is of the type `prompt`, which phalanx does not run",
        ),
        (
            r#"{"TeammateIdle": [{"hooks": [{"type": "command", "command": " "}]}]}"#,
            "a hook of `TeammateIdle` has no `command`",
        ),
        (
            r#"{"TeammateIdle": [{"hooks": [{"type": "command", "command": "x", "timeout": -1}]}]}"#,
            "a hook of `TeammateIdle` has a `timeout` that is no number of seconds",
        ),
    ] {
        let read = of(hooks);
        assert_eq!(
            (read.problems.as_slice(), read.hooks.len()),
            ([said.to_owned()].as_slice(), 0),
            "{hooks}"
        );
    }
    let beside = r#"{"TeammateIdle": [7, {"hooks": [{"type": "command", "command": "x"}]}]}"#;
    assert_eq!((of(beside).hooks.len(), of(beside).problems.len()), (1, 1));
    for text in ["", "[]", "{", "\u{0}", "null", r#"{"hooks": "#] {
        assert!(parse_claude_hooks(text).is_err(), "{text:?}");
    }
}

#[test]
fn hooks_of_all_files_are_merged_without_duplicates() {
    let place = Project::new();
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
    let place = Project::new();
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
    assert_eq!(place.find("app"), FoundHooks::default(), "nothing of it is meant for phalanx");
}

/// SEC-07: a hooks file that others can write to is ignored; a symbolic link to the user's own file
/// works.
#[test]
fn unreadable_hook_files_become_warnings() {
    let place = Project::new();
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

#[test]
fn sec_07_hook_files_that_others_can_change_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::write_atomic(&dir.path().join("file"), b"x").expect("written");
    let file = fs::about(&dir.path().join("file")).expect("readable").expect("there");
    let access = |mode, uid, gid| foreign_access(&About { mode, uid, gid, ..file }, 1000, 1000);
    for (mode, uid, gid) in [(0o600, 1000, 1000), (0o664, 1000, 1000), (0o644, 0, 50)] {
        assert_eq!(access(mode, uid, gid), None, "{mode:o} {uid} {gid}");
    }
    for (mode, uid, gid, problem) in [
        (0o600, 1001, 1000, "it belongs to another user"),
        (0o602, 1000, 1000, "it is world-writable"),
        (0o660, 1000, 50, "it is writable by a group other than yours"),
        (0o664, 0, 0, "it is writable by a group other than yours"),
    ] {
        assert_eq!(access(mode, uid, gid), Some(problem), "{mode:o} {uid} {gid}");
    }
}
