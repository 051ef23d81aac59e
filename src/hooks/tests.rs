//! Tests with real hook processes.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use model::team::hook::{HookCommand, HookEvent, Invocation};
use sys::exec::{self, ExecCommand};
use sys::fs;
use sys::proc::{self, Process};

struct HookDir(TempDir);

impl HookDir {
    fn new() -> HookDir {
        let dir = HookDir(tempfile::tempdir().expect("a temporary directory"));
        dir.sh("mkdir app");
        dir
    }

    fn file(&self, path: &str, text: &str) {
        fs::write_atomic(&self.0.path().join(path), text.as_bytes()).expect("written");
    }

    fn sh(&self, line: &str) -> String {
        let args = vec!["-c".into(), line.into()];
        let cwd = Some(self.0.path().to_owned());
        let command = ExecCommand { program: "sh".into(), args, cwd, ..ExecCommand::default() };
        let output = exec::run(&command, Duration::from_secs(60)).expect("it ends");
        assert_eq!(output.code, Some(0), "{line}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn run(&self, run_it: Invocation, timeout_s: u64) -> Ran {
        let hook =
            HookCommand { event: HookEvent::TeammateIdle, matcher: None, run: run_it, timeout_s };
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
        self.run(Invocation::Line(line.to_owned()), 30)
    }
}

#[test]
fn hook_receives_input_environment_and_directory() {
    let place = HookDir::new();
    let ran = place.line("cat; echo \"/$ONLY/$HOME/\"; pwd; echo why >&2; exit 2");
    let expected = format!("{{\"teammate_name\":\"ada\"}}/me//\n{}", place.0.path().display());
    assert_eq!((ran.end, ran.stdout, ran.stderr), (End::Code(2), expected, "why".to_owned()));
    place.file("app/hello", "#!/bin/sh\necho \"$0 $#\"\n");
    place.sh("chmod 755 app/hello");
    // A relative program path is resolved against the hook's directory; its arguments are not
    // expanded.
    let words = ["app/hello", "a b", "$ONLY"].map(str::to_owned).to_vec();
    assert_eq!(place.run(Invocation::Program(words), 30).stdout, "app/hello 2");
}

#[test]
fn hook_output_is_truncated_and_stripped_of_escapes() {
    let place = HookDir::new();
    let ran = place.line("printf '\\033[31mred\\033]0;t\\007\\377' >&2; kill -9 $$");
    assert_eq!((ran.end, ran.stderr.as_str()), (End::Signal(9), "red\u{fffd}"));
    let ran = place.line("head -c 30000000 /dev/zero | tr '\\0' x");
    assert_eq!((ran.end, ran.stdout.chars().count()), (End::Code(0), 10_001));
}

#[test]
fn hook_that_cannot_start_reports_the_reason() {
    let place = HookDir::new();
    let end = |program: &str| place.run(Invocation::Program(vec![program.to_owned()]), 30).end;
    assert_eq!(end("no-such-hook"), End::NotRun("cannot find the program no-such-hook".to_owned()));
    place.file("app/plain", "#!/bin/sh\n");
    let End::NotRun(said) = end("app/plain") else { panic!("it is not executable") };
    assert!(said.starts_with("cannot run app/plain: Permission denied"), "{said}");
}

/// Processes that moved to a session of their own are stopped too, and do not delay the caller.
#[test]
fn timed_out_hook_is_killed_with_its_descendants() {
    let place = HookDir::new();
    let ran = place.run(
        Invocation::Line(
            "trap '' TERM; setsid sh -c 'echo $$ > far; sleep 71' & sleep 72 & sleep 73".to_owned(),
        ),
        1,
    );
    assert_eq!(ran.end, End::TimedOut);
    assert!(ran.elapsed_ms >= 1000, "{ran:?}");
    let far: i32 = place.sh("cat far").trim().parse().expect("a pid");
    if let Some(process) = Process::of(far) {
        assert!(proc::wait_exit(process, Duration::from_secs(60)), "process {far} is still there");
    }
}
