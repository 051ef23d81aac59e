//! `status --format tmux`: the line for the status line of tmux.

use std::process::Command;

use crate::client::ClientTerminal;
use crate::harness::{Run, Stage, binary, wait_for};

/// Runs `status --format tmux` with further options and variables.
fn line(stage: &Stage, args: &[&str], env: &[(&str, &str)]) -> Run {
    let mut command: Command = stage.command(binary());
    command.args(["status", "--format", "tmux"]).args(args).envs(env.iter().copied());
    Run::from(command.output().expect("phalanx runs"))
}

/// Starts a worker on a task that runs until the file `go` exists.
fn start_work(stage: &Stage) {
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--backend", "pty"]).expect(0);
    let run = ["sh", "-c", "until [ -e go ]; do sleep 0.05; done"];
    stage.phalanx(&[&["task", "create", "Wait", "--"], &run[..]].concat()).expect(0);
    wait_for("ada at work", || {
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        (status["members"][0]["state"] == "working").then_some(())
    });
}

#[test]
fn status_line_shows_what_works_what_waits_and_what_is_done() {
    let stage = Stage::without_tmux();
    start_work(&stage);
    let shown = |args: &[&str], env: &[(&str, &str)]| line(&stage, args, env).expect(0).stdout;
    assert_eq!(shown(&[], &[]), "alpha 1▶ 0/1\n");
    assert_eq!(shown(&["-q"], &[("LANG", "C"), ("LC_CTYPE", "UTF-8")]), "alpha 1▶ 0/1\n");
    assert_eq!(shown(&[], &[("LC_ALL", "C")]), "alpha 1> 0/1\n");
    assert_eq!(shown(&["--color", "always"], &[]), "alpha #[fg=green]1▶#[default] 0/1\n");

    stage.add_native("alpha", &["bob"]);
    stage.phalanx(&["--as", "bob", "ask", "permission", "make deploy"]).expect(0);
    // Without a lead, the request is filed by the next command that reads requests.
    stage.phalanx(&["requests"]).expect(0);
    stage.phalanx(&["task", "create", "Later"]).expect(0);
    assert_eq!(shown(&[], &[]), "alpha 1▶ 1? 0/2\n");
    std::fs::write(stage.at("work/go"), "").expect("go");
    wait_for("the end of the task", || (shown(&[], &[]) == "alpha 1? 1/2\n").then_some(()));

    let ada =
        stage.phalanx(&["--json", "status"]).expect(0).json()["members"][0]["pid"].to_string();
    let killed = Command::new("kill").args(["-9", &ada]).status().expect("kill");
    assert!(killed.success());
    wait_for("the failure", || shown(&[], &[]).contains(" 1! 1/2\n").then_some(()));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn status_line_of_a_missing_team_is_empty() {
    let stage = Stage::without_tmux();
    for args in [&[][..], &["-t", "beta"]] {
        let run = line(&stage, args, &[]).expect(3);
        assert!(run.stdout.is_empty() && run.stderr.contains("error:"), "{run:?}");
    }
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    assert_eq!(line(&stage, &[], &[]).expect(0).stdout, "alpha\n");
    for args in [&["--watch"][..], &["--json"]] {
        let run = line(&stage, args, &[]).expect(2);
        assert!(run.stderr.contains("--format"), "{run:?}");
    }
    stage.phalanx(&["team", "delete"]).expect(0);
}

#[test]
fn tmux_shows_the_status_line_and_its_styles() {
    let stage = Stage::new();
    start_work(&stage);
    let styled = format!("#({} status -t alpha --format tmux --color always)", binary());
    let none = format!("#({} status -t beta --format tmux)", binary());
    let right = format!("<{styled}|{none}>");
    stage.tmux(&["-f", "/dev/null", "new-session", "-d", "-s", "desk", "cat"]).expect("a session");
    for (option, value) in [("status-right", right.as_str()), ("status-interval", "1")] {
        stage.tmux(&["set-option", "-g", option, value]).expect("set");
    }
    let terminal = ClientTerminal::attach(&stage, "desk");
    wait_for("the line", || terminal.screen().contains("<alpha 1▶ 0/1|>").then_some(()));
    let colored = terminal.colored_screen();
    assert!(colored.contains("\u{1b}[32m1▶"), "{colored:?}");
    std::fs::write(stage.at("work/go"), "").expect("go");
    wait_for("the end of the task", || terminal.screen().contains("<alpha 1/1|>").then_some(()));
    stage.phalanx(&["down", "--force"]).expect(0);
}
