//! Files of other programs, and the manifests that they become.

use std::path::Path;

use super::{ProcessHome, manifest, parse};
use crate::manifest::Manifest;
use model::members::launch::Demand;

fn home() -> ProcessHome<'static> {
    ProcessHome(Some(Path::new("/home/ann")))
}

/// The manifest of a file, which must be a valid one.
fn made(file: &str, text: &str) -> (String, Manifest) {
    let list = parse(Path::new(file), text, home()).unwrap_or_else(|e| panic!("{file}: {e}"));
    let text = manifest(&list, file, "demo", "phalanx up team.toml");
    let read = Manifest::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    (text, read)
}

/// Each member with its command line.
fn commands(read: &Manifest) -> Vec<(&str, Vec<&str>)> {
    let members = read.members.iter().map(|member| &member.launch);
    members
        .map(|launch| (launch.name.as_str(), launch.command.iter().map(String::as_str).collect()))
        .collect()
}

#[test]
fn procfile_becomes_members() {
    let text = "# dev\nweb: bin/rails server -p $PORT\nworker: bundle exec sidekiq --c=1\njs: yarn build --watch\n";
    let (text, read) = made("Procfile.dev", text);
    let expected = [
        ("web", vec!["sh", "-c", "bin/rails server -p $PORT"]),
        ("worker", vec!["bundle", "exec", "sidekiq", "--c=1"]),
        ("js", vec!["yarn", "build", "--watch"]),
    ];
    assert_eq!(commands(&read), expected);
    assert_eq!(read.members[0].launch.env, [("PORT".to_owned(), "5000".to_owned())]);
    assert!(text.contains("# foreman reads"), "{text}");
}

#[test]
fn mprocs_becomes_members() {
    let text = "proc_list_width: 20\nprocs:\n  vim: [\"vim\", \"a b\"]\n  api:\n    shell: cargo run | tee log\n    \
                cwd: \"<CONFIG_DIR>/api\"\n    env: {PORT: 80, GONE: null}\n    autorestart: true\n    stop: SIGINT\n  \
                docs:\n    cmd: [mdbook, serve]\n    autostart: false\n";
    let (text, read) = made("mprocs.yaml", text);
    let expected = [("vim", vec!["vim", "a b"]), ("api", vec!["sh", "-c", "cargo run | tee log"])];
    assert_eq!(commands(&read), expected);
    let api = &read.members[1];
    assert_eq!(api.launch.cwd.as_deref(), Some("./api"));
    assert_eq!(api.launch.env, [("PORT".to_owned(), "80".to_owned())]);
    assert_eq!(api.restart, Some(Demand::Always));
    for note in [
        "# `proc_list_width: 20` has no counterpart",
        "# `stop: SIGINT` has no counterpart",
        "# the variable GONE has no value; left out",
        "# name = \"docs\"",
        "# run = [\"mdbook\", \"serve\"]",
    ] {
        assert!(text.contains(note), "{note}\n{text}");
    }
}

#[test]
fn process_compose_becomes_members() {
    let text = "version: \"0.5\"\nenvironment: [\"LANG=C\"]\nprocesses:\n  db:\n    command: postgres -D data\n    \
                working_dir: ~/db\n    readiness_probe: {exec: {command: pg_isready}}\n  web.server:\n    \
                command: \"serve --dir {name}\"\n    replicas: 2\n    depends_on:\n      db: {condition: process_healthy}\n    \
                availability: {restart: on_failure, max_restarts: 3}\n    environment: [\"A={x}\"]\n";
    let (text, read) = made("process-compose.yaml", text);
    let names: Vec<&str> = read.members.iter().map(|member| member.launch.name.as_str()).collect();
    assert_eq!(names, ["db", "web-server-1", "web-server-2"]);
    assert_eq!(read.members[0].launch.cwd.as_deref(), Some("/home/ann/db"));
    assert_eq!(read.members[1].launch.command, ["sh", "-c", "serve --dir {{name}"]);
    let env =
        [("A", "{{x}"), ("LANG", "C")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(read.members[2].launch.env, env);
    assert!(text.contains("`max_restarts: 3` has no counterpart"), "{text}");
    let check = read.members[0].launch.ready.clone().expect("a check");
    assert_eq!(check.run, ["pg_isready"]);
    assert_eq!(read.members[2].launch.after, ["member:db"]);
    assert_eq!(read.members[2].restart, Some(Demand::Standing));
}

#[test]
fn checks_and_dependencies_of_process_compose_are_kept() {
    let text = "processes:\n  api:\n    command: api\n    availability: {restart: always}\n    readiness_probe:\n      \
                http_get: {host: localhost, port: 80, path: /up}\n      period_seconds: 2\n  seed:\n    command: seed\n  \
                off: {command: x, disabled: true, depends_on: [seed]}\n  web:\n    command: web\n    ready_log_line: \"on {port}\"\n    replicas: 2\n  \
                end:\n    command: e\n    depends_on:\n      api: {condition: process_healthy}\n      web: {}\n      \
                seed: {condition: process_completed_successfully}\n      off: {condition: process_started}\n";
    let (text, read) = made("process-compose.yaml", text);
    let check = |nth: usize| read.members[nth].launch.ready.clone().expect("a check");
    assert_eq!(check(0).run, ["curl", "-fsS", "-o", "/dev/null", "http://localhost:80/up"]);
    assert_eq!(read.members[0].restart, Some(Demand::Always));
    assert_eq!(check(2).line.as_deref(), Some("on {port}"));
    let end = read.members.last().expect("members");
    assert_eq!(end.launch.after, ["member:api", "member:web-1", "member:web-2"]);
    for note in [
        "`period_seconds: 2` has no counterpart",
        "`depends_on: seed: process_completed_successfully` has no counterpart",
        "it depends on `off`, which is not started",
    ] {
        assert!(text.contains(note), "{note}\n{text}");
    }
}

#[test]
fn sessions_of_tmux_become_members() {
    let tmuxinator = "name: site\nroot: ~/site\npre_window: source env.sh\nwindows:\n  - editor:\n      \
                      layout: tiled\n      panes:\n        - vim\n        - logs: [cd log, tail -f x.log]\n        -\n  \
                      - server: rails s\n  - rest: [make, make test]\n";
    let (text, read) = made("site.yml", tmuxinator);
    let before = "source env.sh";
    let all = |rest: &str| format!("{before}\n{rest}");
    let lines: Vec<(&str, String)> = read
        .members
        .iter()
        .map(|member| (member.launch.name.as_str(), member.launch.command[2].clone()))
        .collect();
    let expected = [
        ("editor-1", all("vim")),
        ("editor-2", all("cd log\ntail -f x.log")),
        ("server", all("rails s")),
        ("rest", all("make\nmake test")),
    ];
    assert_eq!(lines, expected);
    assert!(
        read.members.iter().all(|member| member.launch.cwd.as_deref() == Some("/home/ann/site"))
    );
    assert!(text.contains("the pane `editor-3` has no command"), "{text}");

    let old = "project_name: site\nproject_root: /srv\ntabs:\n  - shell: A=1 make\n";
    let (_, read) = made("old.yml", old);
    assert_eq!(commands(&read), [("shell", vec!["sh", "-c", "A=1 make"])]);
    assert_eq!(read.members[0].launch.cwd.as_deref(), Some("/srv"));

    let tmuxp = "session_name: dev\nenvironment: {A: b}\nwindows:\n  - window_name: main\n    layout: tiled\n    \
                 start_directory: src\n    panes:\n      - shell_command: [{cmd: htop, enter: false}]\n        \
                 focus: true\n      - blank\n  - panes: [ls -l]\n";
    let (text, read) = made("dev.yaml", tmuxp);
    assert_eq!(commands(&read), [("main-1", vec!["htop"]), ("window-2", vec!["ls", "-l"])]);
    assert_eq!(read.members[0].launch.cwd.as_deref(), Some("src"));
    assert!(text.contains("`enter: false` has no counterpart"), "{text}");
}

#[test]
fn files_of_no_known_form_are_refused_with_what_is_expected() {
    let refused =
        |file: &str, text: &str| parse(Path::new(file), text, home()).expect_err("refused");
    for (file, text, expected) in [
        ("Procfile", "web bin/run\n", "line 1: expected is NAME: COMMAND"),
        ("Procfile", "# nothing\n", "it has no processes"),
        ("x.yaml", "a: 1\n", "none of `procs`, `processes` and `windows`"),
        ("x.yaml", "[", "expected is a Procfile"),
        ("x.yaml", "procs: 3\n", "the file: "),
        ("x.yaml", "procs: {a: {cwd: b}}\n", "`a` has neither `cmd` nor `shell`"),
    ] {
        let problem = refused(file, text);
        assert!(problem.contains(expected), "{problem}");
    }
}
