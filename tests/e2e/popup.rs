//! `popup` in a real tmux: the terminal and the directory of the popup, and every refusal.

use std::process::Command;

use crate::client::ClientTerminal;
use crate::harness::{Run, Stage, binary, wait_for, which};

/// Starts a shell in a session of the stage's server, in `dir`.
fn start_session(stage: &Stage, session: &str, dir: &str) {
    let size = ["-x", "120", "-y", "30"];
    let new = ["-f", "/dev/null", "new-session", "-d", "-s", session];
    stage.tmux(&[&new[..], &size, &["env", "PS1=$ ", "sh"]].concat()).expect("a session");
    let pane = format!("={session}:");
    stage.tmux(&["send-keys", "-t", &pane, &format!("cd '{dir}'"), "Enter"]).expect("typed");
}

/// Shadows tmux with a script that runs `dashboard` in place of phalanx in a popup.
fn replace_dashboard(stage: &mut Stage, dashboard: &str) {
    let stand_in = stage.at("dashboard");
    stage.script(&stand_in, dashboard);
    let real = which("tmux", stage.path()).expect("tmux");
    let script = format!(
        "#!/bin/sh\n\
         case \" $* \" in *' display-popup '*) ;; *) exec '{0}' \"$@\" ;; esac\n\
         next=\n\
         for word; do\n\
           shift\n\
           if [ \"$next\" = program ]; then word='{1}' next=done; fi\n\
           if [ \"$next$word\" = -- ]; then next=program; fi\n\
           set -- \"$@\" \"$word\"\n\
         done\n\
         exec '{0}' \"$@\"\n",
        real.display(),
        stand_in.display()
    );
    stage.shadow("tmux", &script);
}

/// SEC-02: the directory is not expanded as a format of tmux.
#[test]
fn tmux_sec_02_popup_covers_the_callers_terminal_and_no_other() {
    let mut stage = Stage::new();
    let dashboard = "#!/bin/sh\necho \"shown: $*\"\necho \"in: ${PWD##*/}.\"\nread key\nexit 3\n";
    replace_dashboard(&mut stage, dashboard);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let dir = stage.at("work/a#(touch canary)#{pane_id}#[b");
    std::fs::create_dir(&dir).expect("dir");
    for session in ["desk", "other"] {
        start_session(&stage, session, &dir.to_string_lossy());
    }
    let desk = ClientTerminal::attach(&stage, "desk");
    let other = ClientTerminal::attach(&stage, "other");
    let pane = || stage.tmux(&["capture-pane", "-p", "-t", "=desk:"]).expect("the pane");

    desk.press(&[&format!("{} popup; echo over=$?", binary()), "Enter"]);
    let words = format!("--config-dir {} watch alpha", stage.root().display());
    let shown = wait_for("the popup", || {
        let screen = desk.screen().replace(['\n', '│'], "");
        Some(screen).filter(|screen| screen.contains("in: "))
    });
    assert!(shown.contains(&format!("shown: {words}")), "{shown}");
    assert!(shown.contains("in: a#(touch canary)#{pane_id}#[b."), "{shown}");
    assert!(!pane().contains("shown:"), "it is not in the pane: {}", pane());
    assert!(!other.screen().contains("shown:"), "{}", other.screen());
    assert!(!pane().contains("over=3"), "the command waits: {}", pane());

    desk.press(&["Enter"]);
    wait_for("the end of the popup", || {
        let screen = desk.screen();
        (screen.contains("over=3") && !screen.contains("shown:")).then_some(())
    });

    // The command of a key binding has no pane.
    let bound =
        format!("TMUX_PANE= {} popup -t alpha --config-dir '{}'", binary(), stage.root().display());
    stage.tmux(&["bind-key", "-n", "F5", "run-shell", "-b", &bound]).expect("bound");
    other.press(&["F5"]);
    wait_for("the popup of the key", || other.screen().contains("shown:").then_some(()));
    assert!(!desk.screen().contains("shown:"), "{}", desk.screen());
    other.press(&["Enter"]);
    wait_for("its end", || (!other.screen().contains("shown:")).then_some(()));
    stage.phalanx(&["team", "delete"]).expect(0);
}

#[test]
fn tmux_popup_is_refused_without_a_terminal_that_can_show_it() {
    let mut stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let popup = |stage: &Stage, env: &[(&str, &str)], args: &[&str]| {
        let mut command: Command = stage.command(binary());
        command.arg("popup").args(args).envs(env.iter().copied());
        Run::from(command.output().expect("phalanx runs"))
    };
    let refused = |stage: &Stage, env: &[(&str, &str)], why: &str| {
        let run = popup(stage, env, &["--json"]).expect(4);
        assert_eq!(run.json()["error"]["kind"], "refused");
        assert!(run.stderr.contains(why), "{why}: {run:?}");
        assert!(run.stderr.contains("`phalanx watch alpha`"), "{run:?}");
    };
    refused(&stage, &[], "this is not a pane of tmux");
    start_session(&stage, "desk", "/");
    let server = stage.tmux(&["display-message", "-p", "-t", "=desk:", "#{socket_path},#{pid},0"]);
    let server = server.expect("the server").trim().to_owned();
    let inside = [("TMUX", server.as_str()), ("TMUX_PANE", "%0")];
    refused(&stage, &inside, "no terminal shows %0");
    let gone = stage.at("gone").display().to_string() + ",1,0";
    refused(&stage, &[("TMUX", &gone), ("TMUX_PANE", "%0")], "gone");
    popup(&stage, &inside, &["-t", "gamma"]).expect(3);
    stage.phalanx(&["team", "create", "beta"]).expect(0);
    let run = popup(&stage, &inside, &[]).expect(4);
    assert!(run.stderr.contains("`phalanx watch`"), "several teams: {run:?}");
    stage.phalanx(&["team", "delete", "-t", "beta"]).expect(0);
    stage.shadow("tmux", "#!/bin/sh\necho tmux 3.1c\n");
    refused(&stage, &inside, "tmux 3.2 or later is needed");
    stage.phalanx(&["team", "delete"]).expect(0);
}

#[test]
fn tmux_popup_lists_several_teams_and_shows_the_chosen_one() {
    let stage = Stage::new();
    for team in ["alpha", "beta"] {
        stage.phalanx(&["team", "create", team]).expect(0);
    }
    start_session(&stage, "desk", "/");
    let desk = ClientTerminal::attach(&stage, "desk");
    let shows = |words: &str| {
        wait_for(&format!("{words:?} on the screen"), || {
            desk.screen().contains(words).then_some(())
        });
    };
    desk.press(&[&format!("{} popup; echo over=$?", binary()), "Enter"]);
    shows("Which team? Enter shows it, Esc quits");
    desk.press(&["Down", "Enter"]);
    shows("Members by attention");
    shows("beta  no lead");
    desk.press(&["q"]);
    shows("over=0");
    for team in ["alpha", "beta"] {
        stage.phalanx(&["team", "delete", "-t", team]).expect(0);
    }
}
