//! Hosts over real ssh: the connection, `host list` and `host check`. See `host_stage` for the
//! hosts.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use testing::TestHost;

use crate::gear;
use crate::harness::{PATIENCE, Run, binary, wait_for};
use crate::host_stage::HostStage;

/// Words that a shell, ssh or tmux could change.
const HOSTILE: [&str; 16] = [
    "it's",
    "$HOME",
    "a;b",
    "`id`",
    "a\nb",
    "#{pane_id}",
    "",
    "~",
    "-n",
    "\\",
    "a\\",
    "'",
    "*",
    "!!",
    "a b ",
    "=ls",
];

fn check(hosts: &HostStage, name: &str) -> Run {
    hosts.stage.phalanx(&["host", "check", name, "--json"])
}

fn problems(report: &Value) -> Vec<String> {
    let all = report["problems"].as_array().expect("problems");
    all.iter().map(|found| found["problem"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn two_hosts_are_installed_checked_and_listed() {
    let Some(hosts) = HostStage::start(&["h1", "h2"]) else { return };
    let listed = hosts.stage.phalanx(&["host", "list", "--json"]).expect(0).json();
    assert_eq!((&listed[0]["name"], &listed[1]["ssh"]), (&"h1".into(), &"h2".into()));
    fs::set_permissions(hosts.at("h1", "work"), fs::Permissions::from_mode(0o755)).expect("chmod");
    let report = check(&hosts, "h1").expect(1).json();
    let dir = hosts.at("h1", "work");
    assert_eq!(
        problems(&report),
        [
            format!("other users can enter the work directory {}: its mode is 755", dir.display()),
            "phalanx is not installed".to_owned()
        ]
    );
    assert_eq!(report["problems"][1]["fix"], "phalanx host check h1 --install");
    for host in ["h1", "h2"] {
        // A missing work directory is created, private.
        fs::remove_dir(hosts.at(host, "work")).expect("empty");
        let report = hosts.install(host).expect(0).json();
        let path = hosts.at(host, "work/bin/phalanx");
        assert_eq!(report["phalanx_path"], path.to_string_lossy().as_ref());
        assert_eq!(report["phalanx"], concat!("phalanx ", env!("CARGO_PKG_VERSION")));
        assert!(report["tmux"].as_str().is_some_and(|tmux| tmux.starts_with("tmux ")));
        assert!(report["clock_offset_ms"].as_i64().is_some_and(|ms| ms.abs() < 5000), "{report}");
        let left = fs::read_dir(hosts.at(host, "work/bin")).expect("dir").count();
        assert_eq!(left, 1, "no temporary file is left");
    }
    let both = hosts.stage.phalanx(&["host", "check", "--json"]).expect(0).json();
    assert_eq!(both.as_array().map(Vec::len), Some(2));
    let shown = hosts.stage.phalanx(&["host", "check", "h1"]).expect(0).stdout;
    assert!(shown.starts_with("h1: ok\n"), "{shown}");
    assert_eq!((hosts.logins("h1"), hosts.logins("h2")), (1, 1), "one connection for all commands");
}

#[test]
fn program_that_does_not_run_on_the_host_is_not_installed() {
    let Some(hosts) = HostStage::start(&["h1"]) else { return };
    let wrong = hosts.stage.file("wrong", "#!/bin/sh\necho something else\n");
    let install = |more: &[&str]| {
        let args = [&["host", "check", "h1", "--install"], more].concat();
        hosts.stage.phalanx(&args)
    };
    let run = install(&["--yes", "--from", &wrong]).expect(1);
    assert!(run.stderr.contains("wrong is not phalanx"), "{run:?}");
    let mut other = fs::read(binary()).expect("the program");
    other.truncate(1 << 16);
    // Another architecture in the header of the executable.
    other[18] = 183;
    let path = hosts.stage.at("work").join("arm");
    fs::write(&path, other).expect("file");
    let run = install(&["--yes", "--from", &path.to_string_lossy()]).expect(1);
    assert!(run.stderr.contains("is for aarch64, and host `h1` is Linux"), "{run:?}");
    let left = fs::read_dir(hosts.at("h1", "work/bin")).expect("dir").count();
    assert_eq!(left, 0, "nothing is left");
    let run = install(&["--from", binary()]).expect(2);
    assert!(run.stderr.contains("confirm it with `--yes`"), "{run:?}");
    let run = install(&["--yes"]).expect(2);
    assert!(run.stderr.contains("cargo build --release --target"), "{run:?}");
}

#[test]
fn each_failure_to_log_in_has_its_own_message() {
    let Some(mut hosts) = HostStage::start(&["h1", "h2"]) else { return };
    let known = hosts.stage.at("hosts/known_hosts");
    let keys = fs::read_to_string(&known).expect("keys");
    let expect = |hosts: &HostStage, problem: &str, fix: &str| {
        let report = check(hosts, "h1").expect(1).json();
        let found = problems(&report);
        assert!(found.len() == 1 && found[0].starts_with(problem), "{report}");
        assert!(report["problems"][0]["fix"].as_str().is_some_and(|f| f.contains(fix)), "{report}");
        assert_eq!(report["reachable"], false);
    };
    // Each host's key under the other one's address.
    let swapped = keys.replace("77.0.1 ", "77.0.x ").replace("77.0.2 ", "77.0.1 ");
    fs::write(&known, swapped.replace("77.0.x ", "77.0.2 ")).expect("keys");
    expect(&hosts, "the identity of host `h1` is not verified: ", "ssh-keygen -R");
    fs::write(&known, keys).expect("keys");
    let authorized = hosts.stage.at("hosts/key.pub");
    let key = fs::read(&authorized).expect("key");
    fs::write(&authorized, "").expect("key");
    expect(&hosts, "host `h1` refuses the login: ", "ssh-copy-id h1");
    fs::write(&authorized, key).expect("key");
    hosts.perform("down h1");
    expect(&hosts, "host `h1` cannot be reached: ", "ssh h1 true");
    hosts.perform("up h1");
    if gear::is_full() {
        hosts.perform("stop h1");
        expect(&hosts, "host `h1` cannot be reached: ", "ssh h1 true");
        hosts.perform("start h1");
    }
    hosts.install("h1").expect(0);
    let run = hosts.stage.phalanx(&["host", "check", "h3"]).expect(3);
    assert!(run.stderr.contains("host `h3` is not configured"), "{run:?}");
}

#[test]
fn wrong_clock_and_missing_programs_are_problems() {
    let Some(hosts) = HostStage::start(&["h1"]) else { return };
    hosts.install("h1").expect(0);
    hosts.shadow("h1", "date", "#!/bin/sh\nexec /bin/date -d '+90 seconds' \"$@\"\n");
    let report = check(&hosts, "h1").expect(1).json();
    assert!(problems(&report)[0].contains("s ahead of this machine's"), "{report}");
    let offset = report["clock_offset_ms"].as_i64().expect("an offset");
    let error = report["clock_error_ms"].as_i64().expect("an error");
    assert!((offset - 90_000).abs() <= error, "{report}");
    // BusyBox prints no milliseconds.
    hosts.shadow("h1", "date", "#!/bin/sh\necho \"$(/bin/date +%s)%3N\"\n");
    let report = check(&hosts, "h1").expect(0).json();
    assert!(report["clock_error_ms"].as_i64().is_some_and(|ms| ms >= 500), "{report}");
    hosts.shadow("h1", "phalanx", "#!/bin/sh\necho phalanx 0.0.1\n");
    fs::remove_file(hosts.at("h1", "work/bin/phalanx")).expect("installed");
    let report = check(&hosts, "h1").expect(1).json();
    assert!(problems(&report)[0].contains("is \"phalanx 0.0.1\", and this program is"), "{report}");
}

#[test]
fn login_shells_and_their_noise_do_not_matter() {
    let Some(hosts) = HostStage::start(&["h1", "h2=sh", "h3=fish", "h4=zsh"]) else { return };
    let noise = "printf 'welcome, no newline'\nprintf 'an error\\n' >&2\n";
    for (host, file) in [("h1", ".bashrc"), ("h3", ".config/fish/config.fish"), ("h4", ".zshenv")] {
        let path = hosts.at(host, "home").join(file);
        fs::create_dir_all(path.parent().expect("below home")).expect("dir");
        fs::write(path, noise).expect("file");
    }
    for host in ["h1", "h2", "h3", "h4"] {
        let report = check(&hosts, host).expect(1).json();
        assert_eq!(problems(&report), ["phalanx is not installed"]);
        connection_test(&hosts, host, "shell");
    }
}

#[test]
fn connection_is_shared_and_reports_a_cut() {
    let Some(mut hosts) = HostStage::start(&["h1"]) else { return };
    connection_test(&hosts, "h1", "shared");
    assert_eq!(hosts.logins("h1"), 1);
    connection_test(&hosts, "h1", "closed");
    assert_eq!(hosts.logins("h1"), 2, "a closed connection is made again");
    hosts.perform("drop h1");
    connection_test(&hosts, "h1", "cut");
    if gear::is_full() {
        hosts.perform("accept h1");
        connection_test(&hosts, "h1", "shared");
        let mut lost = connection_helper(&hosts, "h1", "lost").spawn().expect("a helper");
        // Not the local ssh, whose command line has these words, too.
        let is_command = |line: &String| line.split(' ').nth(1) == Some("sleep");
        wait_for("the command to run", || {
            hosts.stage.processes().iter().any(is_command).then_some(())
        });
        hosts.perform("drop h1");
        assert!(lost.wait().expect("a helper").success());
    }
}

#[test]
fn member_for_a_host_is_never_started_here() {
    let Some(hosts) = HostStage::start(&["h1"]) else { return };
    hosts.stage.phalanx(&["team", "create", "demo"]).expect(0);
    let run = hosts.stage.phalanx(&["spawn", "ada", "--host", "h1", "-t", "demo"]).expect(4);
    assert!(run.stderr.contains("the files of this team are on this machine only"), "{run:?}");
    let run = hosts.stage.phalanx(&["spawn", "ada", "--host", "h11", "-t", "demo"]).expect(3);
    assert!(run.stderr.contains("did you mean `h1`?"), "{run:?}");
    let text = "[team]\nname = \"x\"\n[[member]]\nname = \"a\"\nhost = \"h1\"\n";
    let manifest = hosts.stage.file("x.toml", text);
    hosts.stage.phalanx(&["up", &manifest]).expect(4);
    let manifest = hosts.stage.file("y.toml", &text.replace("h1", "h7"));
    let run = hosts.stage.phalanx(&["up", &manifest]).expect(2);
    assert!(run.stderr.contains("y.toml:5:8: host `h7` of member `a`"), "{run:?}");
    hosts.stage.phalanx(&["team", "delete", "-t", "demo"]).expect(0);
    assert_eq!(hosts.logins("h1"), 0);
    assert_eq!(hosts.stage.panes(), Vec::<String>::new());
}

/// Runs a part of [`helper_uses_a_connection`], whose `ssh` is that of the stage.
fn connection_test(hosts: &HostStage, host: &str, part: &str) {
    let output = connection_helper(hosts, host, part).output().expect("a helper");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{host} {part}: {output:?}");
}

fn connection_helper(hosts: &HostStage, host: &str, part: &str) -> Command {
    let program = std::env::current_exe().expect("this test");
    let mut command = hosts.stage.command(&program.to_string_lossy());
    command
        .args(["--exact", "hosts::helper_uses_a_connection", "--ignored", "--nocapture"])
        .env("HOST", host)
        .env("PART", part)
        .env("CONTROL", hosts.stage.at("control"));
    command
}

#[test]
#[ignore = "helper process of connection_test"]
fn helper_uses_a_connection() {
    let var = |name: &str| std::env::var(name).expect("helpers are run by a test");
    let (host, control) = (var("HOST"), PathBuf::from(var("CONTROL")));
    let open = |env: &[(&str, &str)]| TestHost::open(&host, env, &control);
    match var("PART").as_str() {
        "shell" => {
            words_and_input_arrive_unchanged(&open(&[]).expect("open"));
            variables_are_set(&open(&[("A", "it's $HOME"), ("B", "")]).expect("open"));
            every_status_is_returned(&open(&[]).expect("open"));
            files_are_copied(&open(&[]).expect("open"));
            lines_are_exchanged(&open(&[]).expect("open"));
        }
        "shared" => {
            let first = open(&[]).expect("open");
            let second = open(&[]).expect("open");
            for connection in [first, second] {
                let done = connection.run(&words(&["true"]), &[], PATIENCE).expect("run");
                assert_eq!(done, (Some(0), vec![], vec![]));
            }
        }
        "closed" => {
            let connection = open(&[]).expect("open");
            connection.close();
            connection.run(&words(&["true"]), &[], PATIENCE).expect("run");
        }
        "cut" => {
            let (began, deadline) = (Instant::now(), Duration::from_secs(2));
            // The connection looks alive, so the command is started and gets no answer.
            let connection = open(&[]).expect("open");
            let error = connection.run(&words(&["true"]), &[], deadline).expect_err("a cut");
            assert!(error.contains("did not end within 2000 ms"), "{error}");
            assert!(began.elapsed() < Duration::from_secs(20));
        }
        "lost" => {
            let began = Instant::now();
            let connection = open(&[]).expect("open");
            let error = connection.run(&words(&["sleep", "300"]), &[], PATIENCE).expect_err("cut");
            assert!(error.contains("was lost"), "{error}");
            let time = began.elapsed();
            eprintln!("the cut was noticed after {time:?}");
            assert!(time < Duration::from_secs(40), "{time:?}");
        }
        part => panic!("no such part: {part}"),
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(Into::into).collect()
}

fn words_and_input_arrive_unchanged(connection: &TestHost) {
    let mut argv = words(&["printf", "%s\\0"]);
    argv.extend(words(&HOSTILE));
    argv.push(OsString::from_vec((1..=255).collect()));
    let (code, stdout, stderr) = connection.run(&argv, &[], PATIENCE).expect("run");
    let expected: Vec<u8> = argv[2..].iter().flat_map(|w| [w.as_bytes(), b"\0"].concat()).collect();
    assert_eq!((code, String::from_utf8_lossy(&stderr).as_ref()), (Some(0), ""));
    assert_eq!(stdout, expected, "{}", String::from_utf8_lossy(&stdout));
    let input: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let (_, stdout, _) = connection.run(&words(&["cat"]), &input, PATIENCE).expect("run");
    assert_eq!(stdout, input);
    // The command line for a terminal, without one: the output has nothing in front.
    let argv = connection.interactive_argv(&words(&["echo", "it's $HOME"])).expect("words");
    assert_eq!(argv[0], "ssh");
    assert!(argv.contains(&"-t".into()) && !argv.iter().any(|word| word == "-T"), "{argv:?}");
}

fn variables_are_set(connection: &TestHost) {
    let argv = words(&["sh", "-c", "printf '%s|%s' \"$A\" \"${B-unset}\""]);
    let (_, stdout, _) = connection.run(&argv, &[], PATIENCE).expect("run");
    assert_eq!(String::from_utf8_lossy(&stdout), "it's $HOME|");
}

fn every_status_is_returned(connection: &TestHost) {
    for status in [0, 1, 3, 255] {
        let argv = words(&["sh", "-c", &format!("echo out; echo err >&2; exit {status}")]);
        let (code, stdout, stderr) = connection.run(&argv, &[], PATIENCE).expect("run");
        assert_eq!((code, stdout, stderr), (Some(status), b"out\n".to_vec(), b"err\n".to_vec()));
    }
    let error = connection.run(&words(&["no-such-program"]), &[], PATIENCE).expect_err("missing");
    assert!(error.contains("has no program `no-such-program`"), "{error}");
    let error = connection.run(&["a\0b".into()], &[], PATIENCE).expect_err("NUL");
    assert!(error.contains("NUL"), "{error}");
}

fn files_are_copied(connection: &TestHost) {
    let run = |argv: &[&str]| connection.run(&words(argv), &[], PATIENCE).expect("run");
    let (_, home, _) = run(&["pwd"]);
    let path = format!("{}/a file; it's", String::from_utf8_lossy(&home).trim());
    for bytes in [&b""[..], b"one\0\xff\n", &[7; 200_000]] {
        connection.copy_to(bytes, &path, 0o640).expect("copied");
        assert_eq!(run(&["cat", &path]).1, bytes);
        assert_eq!(run(&["stat", "-c", "%a", &path]).1, b"640\n");
    }
    let error = connection.copy_to(b"x", "/no/such/dir/file", 0o600).expect_err("no directory");
    assert!(error.contains("failed on host"), "{error}");
}

fn lines_are_exchanged(connection: &TestHost) {
    let lines = ["one", "it's two", "{\"three\": 3}"];
    let (answers, slowest, code) = connection.converse(&words(&["cat"]), &lines).expect("lines");
    assert_eq!((answers.as_slice(), code), (lines.map(str::to_owned).as_slice(), 0));
    eprintln!("slowest answer: {slowest:?}");
    let argv = words(&["sh", "-c", "read x; echo \"got $x\"; exit 3"]);
    let (answers, _, code) = connection.converse(&argv, &["x"]).expect("lines");
    assert_eq!((answers, code), (vec!["got x".to_owned()], 3));
    let error = connection.converse(&words(&["no-such-program"]), &[]);
    assert!(error.is_ok_and(|(_, _, code)| code == 127));
}
