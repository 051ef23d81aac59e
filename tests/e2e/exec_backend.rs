//! Third-party backends: the worked example for kitty against a fake kitty, and programs that
//! misbehave in many ways. A backend's output never decides whether a member has ended, and never
//! reaches a shell or the terminal unescaped.

use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Run, Stage, wait_for};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/backend-kitty");

/// A stage with a fake kitty that has one focused window, the user's own.
struct Kitty {
    stage: Stage,
    server: Child,
}

impl Kitty {
    fn new() -> Kitty {
        let mut stage = Stage::new();
        let address = format!("unix:{}", stage.at("kitty").display());
        // The wrapper carries the program's environment, because a later lead may run elsewhere.
        let path = format!("PATH='{}':$PATH", stage.at("bin").display());
        let wrapper = format!(
            "#!/bin/sh\n{path} KITTY_LISTEN_ON={address} exec '{FIXTURES}/phalanx-kitty' \"$@\"\n"
        );
        stage.shadow("phalanx-kitty", &wrapper);
        // A version manager's shim for `python3` takes as long to start as everything else
        // together.
        let real =
            stage.command("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let real = String::from_utf8(real.expect("python3 is there").stdout).expect("a path");
        stage.script(
            &stage.at("bin/python3"),
            &format!("#!/bin/sh\nexec '{}' \"$@\"\n", real.trim()),
        );
        stage.script(
            &stage.at("bin/kitten"),
            &format!("#!/bin/sh\nexec '{FIXTURES}/fake-kitten' \"$@\"\n"),
        );
        let server = stage
            .command(&format!("{FIXTURES}/fake-kitten"))
            .args(["serve", &address, "--", "sleep", "300"])
            .stdout(Stdio::null())
            .spawn()
            .expect("the fake kitty starts");
        let kitty = Kitty { stage, server };
        wait_for("the fake kitty", || kitty.kitten(&["ls"]));
        kitty.stage.phalanx(&["team", "create", "alpha"]).expect(0);
        kitty
    }

    /// Adds a backend program `bad`. `cases` are arms of a `case` over the verb; other verbs go to
    /// the example, which arms may call as `phalanx-kitty VERB`.
    fn with_bad(cases: &str) -> Kitty {
        let kitty = Kitty::new();
        kitty.bad(cases);
        kitty
    }

    /// Replaces the `cases` of `bad`.
    fn bad(&self, cases: &str) {
        let script = format!(
            "#!/bin/sh\necho \"$# $1\" >>'{}'\ncase $1 in\n{cases}\n*) exec phalanx-kitty \"$1\" ;;\nesac\n",
            self.stage.at("calls").display()
        );
        self.stage.script(&self.stage.at("bin/bad"), &script);
    }

    /// Runs a remote-control command; `None` if the fake kitty refuses it.
    fn kitten(&self, words: &[&str]) -> Option<String> {
        let mut command = self.stage.command(&format!("{FIXTURES}/fake-kitten"));
        let address = format!("unix:{}", self.stage.at("kitty").display());
        let output = command.args(["@", "--to", &address]).args(words).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn windows(&self) -> Vec<Value> {
        let tree: Value =
            serde_json::from_str(&self.kitten(&["ls"]).expect("kitty")).expect("json");
        tree[0]["tabs"][0]["windows"].as_array().expect("windows").clone()
    }

    fn spawn_bad(&self, name: &str) -> Run {
        self.stage.phalanx(&["spawn", name, "--backend", "exec:bad"])
    }

    fn member_records(&self) -> usize {
        let dir = self.stage.root().join("teams/alpha/phalanx/members");
        std::fs::read_dir(dir)
            .expect("dir")
            .flatten()
            .filter(|e| e.path().extension().is_some())
            .count()
    }

    /// Asserts that the user's window is the only one, unchanged and focused.
    fn assert_untouched(&self) {
        wait_for("only the user's window", || (self.windows().len() == 1).then_some(()));
        let left = self.windows();
        assert_eq!(
            (&left[0]["id"], &left[0]["is_focused"], &left[0]["title"]),
            (&json!(1), &json!(true), &json!("sleep"))
        );
    }

    /// Asserts that a failed spawn left nothing, neither on disk nor running.
    fn assert_nothing_left(&self, case: &str) {
        self.assert_untouched();
        assert_eq!(self.member_records(), 0, "{case}");
        assert_eq!(
            self.stage.phalanx(&["--json", "status"]).expect(0).json()["members"],
            json!([]),
            "{case}"
        );
        let launchers = || self.stage.processes().into_iter().any(|p| p.contains("phalanx exec"));
        wait_for(&format!("no launcher after: {case}"), || (!launchers()).then_some(()));
    }

    /// Ends the fake kitty and asserts that nothing is left.
    fn end(mut self) {
        self.assert_untouched();
        let pid = self.server.id().to_string();
        assert!(Command::new("kill").arg(pid).status().expect("kill").success());
        self.server.wait().expect("wait");
        self.stage.assert_clean();
    }
}

impl Drop for Kitty {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn no_escape(run: &Run) {
    for said in [&run.stdout, &run.stderr] {
        assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{said:?}");
    }
}

/// Every verb of a member's lifecycle, through the example backend.
#[test]
fn exec_backend_ly_05_example_backend_runs_a_full_lifecycle() {
    let kitty = Kitty::new();
    let stage = &kitty.stage;
    let ada = stage
        .phalanx(&["--json", "spawn", "ada", "--backend", "exec:phalanx-kitty"])
        .expect(0)
        .json();
    assert_eq!((&ada["backend"], &ada["tmux_pane_id"]), (&json!("exec"), &json!(null)));
    // A later spawn uses the same program, even with another `PATH`.
    let mut later = stage.command(crate::harness::binary());
    let words = ["spawn", "log", "--", "sh", "-c", "echo hello from log; exec sleep 300"];
    let log = later.env("PATH", "/usr/bin:/bin").args(words).output().expect("phalanx");
    let log = Run::from(log).expect(0);
    assert!(log.stdout.contains("kitty window 3"), "{log:?}");
    let settings =
        std::fs::read_to_string(stage.root().join("teams/alpha/phalanx/team.json")).expect("file");
    let settings: Value = serde_json::from_str(&settings).expect("json");
    assert_eq!(
        settings["backend"],
        json!(format!("exec:{}", stage.at("bin/phalanx-kitty").display()))
    );
    let windows = kitty.windows();
    assert_eq!(windows.len(), 3);
    assert!(windows[1]["user_vars"]["phalanx_token"].as_str().is_some_and(|t| !t.is_empty()));
    // LY-05: the focus stays on the user's window.
    assert_eq!(windows[0]["is_focused"], json!(true));
    // SP-01, SEC-06: the command line is our launcher with the path of a spec, and nothing else.
    let argv = windows[2]["cmdline"].as_array().expect("argv");
    assert!(
        argv.len() == 3 && argv[1] == "exec" && !windows[2].to_string().contains("hello from"),
        "{argv:?}"
    );
    wait_for("its words on the screen", || {
        stage.phalanx(&["peek", "log"]).expect(0).stdout.contains("hello from log").then_some(())
    });
    let got = stage.at("work/got");
    let script = format!("stty raw -echo; printf ready; exec cat >>'{}'", got.display());
    stage.phalanx(&["spawn", "raw", "--", "sh", "-c", &script]).expect(0);
    wait_for("the reader to be ready", || {
        stage.phalanx(&["peek", "raw"]).stdout.contains("ready").then_some(())
    });
    stage.phalanx(&["type", "raw", "a \\n ü;", "--enter"]).expect(0);
    stage.phalanx(&["keys", "raw", "C-c", "Up"]).expect(0);
    let expected = "a \\n ü;\r\u{3}\u{1b}[A";
    wait_for("the input to arrive", || {
        std::fs::read_to_string(&got).is_ok_and(|text| text == expected).then_some(())
    });
    stage.phalanx(&["shutdown", "raw", "--force"]).expect(0);
    stage.phalanx(&["send", "ada", "hi"]).expect(0);
    wait_for("ada has read it", || {
        let inbox = stage.phalanx(&["--json", "inbox", "ada", "--peek"]).expect(0).json();
        inbox.as_array().is_some_and(Vec::is_empty).then_some(())
    });
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(
        (&status["members"][0]["backend"], &status["members"][0]["state"]),
        (&json!("exec"), &json!("idle"))
    );
    let outcome = stage.phalanx(&["--json", "shutdown", "ada"]).expect(0).json();
    assert_eq!(outcome[0]["outcome"], json!("closed"));
    assert_eq!(kitty.windows().len(), 2);
    stage.phalanx(&["down"]).expect(0);
    kitty.end();
}

/// SP-07, SP-08: an explicit choice never falls back, and the error says what is wrong with the
/// program.
#[test]
fn exec_backend_sp_08_unusable_program_is_refused_before_the_spawn() {
    let kitty = Kitty::new();
    let stage = &kitty.stage;
    std::fs::write(stage.at("work/plain"), "#!/bin/sh\n").expect("file");
    for (program, named) in
        [("no-such-program", "`no-such-program` is not on PATH"), ("./plain", "`./plain` is not")]
    {
        let run =
            stage.phalanx(&["spawn", "bob", "--backend", &format!("exec:{program}")]).expect(6);
        assert!(run.stderr.contains(named) && run.stderr.contains("docs/backends.md"), "{run:?}");
    }
    for (case, named) in [
        ("sleep 300 & sleep 300", "did not answer within 15000 ms"),
        ("echo it works", "invalid answer"),
        ("printf 'no \\033[31mroom' >&2; exit 1", "failed with exit code 1: no \u{241b}[31mroom"),
        ("exit 3", "reports that the placement does not exist"),
        ("kill -9 $$", "signal 9"),
        ("echo '{\"version\":2,\"verdicts\":[]}'", "version 2"),
        ("echo '{\"version\":1,\"unsupported\":true}'", "cannot verify"),
        ("echo '{\"version\":1,\"verdicts\":[\"owned\"]}'", "1 verdicts; expected 0"),
        ("head -c 20000000 /dev/zero", "more than 1048576 bytes"),
    ] {
        kitty.bad(&format!("verify) {case} ;;"));
        let run = kitty.spawn_bad("bob").expect(6);
        assert!(run.stderr.contains(named), "{case}: {run:?}");
        no_escape(&run);
        kitty.assert_nothing_left(case);
        let left: Vec<String> =
            stage.processes().into_iter().filter(|p| p.contains("bin/bad")).collect();
        assert_eq!(left, Vec::<String>::new(), "the whole process group was ended: {case}");
    }
    stage.phalanx(&["team", "delete"]).expect(0);
    kitty.end();
}

/// SP-09, SD-03: whatever `place` answers, a launcher that it started does not outlive the failure.
#[test]
fn exec_backend_sp_09_failed_place_leaves_nothing_behind() {
    let kitty = Kitty::new();
    for (case, named) in [
        ("placed; echo done", "invalid answer"),
        ("placed; echo '{\"version\":1,\"places\":[]}'", "0 places; expected 1"),
        ("placed; echo '{\"version\":1,\"places\":[{}]}'", "neither an id nor an error"),
        (
            "placed; echo '{\"version\":1,\"places\":[{\"error\":\"no \\u001b[1mroom\"}]}'",
            "no \u{241b}[1mroom",
        ),
        ("placed; echo out of room >&2; exit 1", "exit code 1: out of room"),
        ("placed; sleep 300", "did not answer within 15000 ms"),
        ("placed; head -c 20000000 /dev/zero", "more than 1048576 bytes"),
        ("placed; printf '{\"version\":1,\"places\":[{\"id\":\"%010000d\"}]}' 0", "10000 bytes"),
        ("placed; echo '{\"version\":1,\"places\":[{\"id\":\"\"}]}'", "0 bytes"),
        ("echo '{\"version\":1,\"unsupported\":true}'", "cannot place"),
    ] {
        kitty.bad(&format!(
            "place) {} ;;",
            case.replace("placed;", "phalanx-kitty place >/dev/null;")
        ));
        let run = kitty.spawn_bad("bob").expect(6);
        assert!(run.stderr.contains(named), "{case}: {run:?}");
        no_escape(&run);
        kitty.assert_nothing_left(case);
    }
    kitty.stage.phalanx(&["team", "delete"]).expect(0);
    kitty.end();
}

/// SD-05, SD-06: a backend that returns the user's window as a placement does not get it closed.
#[test]
fn exec_backend_sd_05_foreign_placement_is_not_closed() {
    let kitty = Kitty::with_bad(
        "place) printf '{\"version\":1,\"places\":[{\"id\":\"unix:%s#1\"}]}' \"${0%/bin/bad}/kitty\" ;;",
    );
    let words = ["spawn", "bob", "--backend", "exec:bad", "--deadline", "1"];
    let run = kitty.stage.phalanx(&words).expect(5);
    assert!(run.stderr.contains("bob"), "{run:?}");
    kitty.assert_nothing_left("the user's window");
    let undone = kitty.stage.wait_event("alpha", "member_start_failed", "bob");
    assert!(undone["detail"]["left"].to_string().contains("foreign"), "{undone}");
    let calls = std::fs::read_to_string(kitty.stage.at("calls")).expect("calls");
    assert!(!calls.contains("close"), "{calls}");
    kitty.stage.phalanx(&["team", "delete"]).expect(0);
    kitty.end();
}

/// Answers `place` from a file that the test writes, and reports every placement as gone. Appends
/// each `verify` request to `asked`.
const HOSTILE: &str = r#"
place) phalanx-kitty place >/dev/null; cat "${0%bad}answer" ;;
verify)
    cat >>"${0%bad}asked"
    case $(tail -n 1 "${0%bad}asked") in
    *'"places":[]'*) echo '{"version":1,"verdicts":[]}' ;;
    *) echo '{"version":1,"verdicts":["gone"]}' ;;
    esac
    echo >>"${0%bad}asked" ;;
"#;

/// SEC-10, SEC-11: ids and messages of a backend are never part of a command line and reach the
/// terminal only escaped. SD-02: the member's processes are ended although the backend reports its
/// placement as gone.
#[test]
fn exec_backend_sec_10_hostile_ids_are_not_executed_or_printed_raw() {
    for id in [
        "-x",
        "a\\nb",
        "\\u001b]0;x\\u0007",
        "$(touch canary);`touch canary`",
        "../../x",
        "\\u202e%s%n",
    ] {
        let kitty = Kitty::with_bad(HOSTILE);
        let stage = &kitty.stage;
        let answer = format!("{{\"version\":1,\"places\":[{{\"id\":\"{id}\"}}]}}");
        std::fs::write(stage.at("bin/answer"), answer).expect("answer");
        let spawned = kitty.spawn_bad("ada").expect(0);
        for run in [
            spawned,
            stage.phalanx(&["status"]).expect(0),
            stage.phalanx(&["peek", "ada"]).expect(6),
            stage.phalanx(&["shutdown", "ada"]).expect(0),
        ] {
            no_escape(&run);
        }
        let calls = std::fs::read_to_string(stage.at("calls")).expect("calls");
        let ours = ["1 verify", "1 place", "1 label"];
        assert!(calls.lines().all(|line| ours.contains(&line)), "one word, ours: {calls}");
        let asked = std::fs::read_to_string(stage.at("bin/asked")).expect("asked");
        let last: Value =
            serde_json::from_str(asked.trim_end().lines().last().expect("a line")).expect("json");
        let sent: Value = serde_json::from_str(&format!("\"{id}\"")).expect("json");
        assert_eq!(last["places"][0]["id"], sent, "it comes back as it was");
        for dir in ["work", "bin", "home"] {
            assert!(!stage.at(dir).join("canary").exists());
        }
        stage.phalanx(&["team", "delete"]).expect(0);
        kitty.end();
    }
}

/// SD-02, CR-02: a backend confirms a close but keeps the placement open, hangs, or is missing. The
/// member's processes are ended, the failure is reported, and the team can be deleted.
#[test]
fn exec_backend_sd_02_failed_close_is_reported_and_the_member_ends() {
    for (case, named) in [
        ("echo '{\"version\":1,\"verdicts\":[\"owned\"]}'", "still there after"),
        ("echo '{\"version\":1,\"verdicts\":[\"unknown\"]}'", "could not determine it"),
        ("sleep 300", "did not answer within 15000 ms"),
        ("exit 127", "exit code 127"),
    ] {
        let kitty = Kitty::with_bad("close) echo '{\"version\":1}' ;;");
        kitty.spawn_bad("ada").expect(0);
        let bad = format!(
            "#!/bin/sh\ncase $1 in verify) {case} ;; *) echo '{{\"version\":1}}' ;; esac\n"
        );
        kitty.stage.script(&kitty.stage.at("bin/bad"), &bad);
        let run = kitty.stage.phalanx(&["--json", "shutdown", "ada"]).expect(1);
        assert!(run.stdout.contains(named), "{case}: {run:?}");
        kitty.assert_untouched();
        kitty.stage.phalanx(&["team", "delete"]).expect(0);
        kitty.end();
    }
}

#[test]
fn exec_backend_unsupported_verbs_are_refused_by_name() {
    let kitty = Kitty::with_bad("screen|input) echo '{\"version\":1,\"unsupported\":true}' ;;");
    kitty.spawn_bad("ada").expect(0);
    let run = kitty.stage.phalanx(&["peek", "ada"]).expect(6);
    assert!(run.stderr.contains("the exec backend cannot screen"), "{run:?}");
    let run = kitty.stage.phalanx(&["type", "ada", "x"]).expect(4);
    assert!(run.stderr.contains("the exec backend cannot type into a member"), "{run:?}");
    kitty.stage.phalanx(&["shutdown", "ada"]).expect(0);
    kitty.stage.phalanx(&["team", "delete"]).expect(0);
    kitty.end();
}

/// The check script for third-party backends passes the example and reports what is wrong with
/// another program.
#[test]
fn exec_backend_check_script_reports_a_broken_backend() {
    let kitty = Kitty::with_bad("close) echo '{\"version\":1}' ;;");
    let check = |program: &str| {
        let mut command = kitty.stage.command(&format!("{FIXTURES}/check"));
        Run::from(command.arg(program).env("CHECK_DEADLINE", "60").output().expect("check"))
    };
    let good = check("phalanx-kitty").expect(0);
    assert!(
        good.stdout.contains("close: nothing is left") && !good.stdout.contains("FAIL"),
        "{good:?}"
    );
    let bad = check("bad").expect(1);
    assert!(bad.stdout.contains("FAIL close: the place goes"), "{bad:?}");
    for window in &kitty.windows()[1..] {
        kitty.kitten(&["close-window", &format!("--match=id:{}", window["id"])]).expect("closed");
    }
    kitty.stage.phalanx(&["team", "delete"]).expect(0);
    kitty.end();
}
