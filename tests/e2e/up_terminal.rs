//! `up` on a terminal: the live frame at three sizes, typed keys, and the terminal modes after
//! every way to end.

use std::process::Command;

use crate::harness::{Stage, binary, wait_for};

/// Three workers, each with a task that runs until the file `go` exists; the output of the last
/// task is shown.
const TEAM: &str = r#"
[team]
name = "trio"
backend = "pty"
[[member]]
name = "ada"
[[member]]
name = "benjamin"
[[member]]
name = "cleo"
[[task]]
key = "a"
subject = "Check the links of all pages, and the headings that they lead to, one after the other"
run = ["sh", "-c", "until [ -e go ]; do sleep 0.05; done"]
[[task]]
key = "b"
subject = "Count the lines"
active_form = "Counting the lines"
run = ["sh", "-c", "until [ -e go ]; do sleep 0.05; done"]
[[task]]
key = "c"
subject = "List the files"
run = ["sh", "-c", "until [ -e go ]; do sleep 0.05; done"]
[[task]]
key = "sum"
subject = "Sum up"
run = ["echo", "all links are right"]
after = ["a", "b", "c"]
show_output = "all"
"#;

/// A shell in a tmux pane, for running `up`.
struct Terminal {
    stage: Stage,
    pane: String,
    tty: String,
}

impl Terminal {
    fn new(columns: u16, rows: u16) -> Terminal {
        let mut stage = Stage::new();
        stage.file("team.toml", TEAM);
        stage.shadow("phalanx", &format!("#!/bin/sh\nulimit -c 0\nexec '{}' \"$@\"\n", binary()));
        let (x, y) = (columns.to_string(), rows.to_string());
        stage
            .tmux(&["-f", "/dev/null", "new-session", "-d", "-s", "mine", "-x", &x, "-y", &y, "sh"])
            .expect("a session");
        stage.tmux(&["set", "-g", "status", "off"]).expect("no status line");
        stage.tmux(&["resize-window", "-t", "mine:", "-x", &x, "-y", &y]).expect("resized");
        let ids = stage
            .tmux(&["display", "-p", "-t", "mine:", "#{pane_id} #{pane_tty}"])
            .expect("the pane");
        let (pane, tty) = ids.trim().split_once(' ').expect("two words");
        let terminal = Terminal { pane: pane.to_owned(), tty: tty.to_owned(), stage };
        wait_for("the prompt", || terminal.screen().contains(['$', '#']).then_some(()));
        terminal
    }

    fn up(&self) {
        self.keys(&["phalanx up team.toml; echo end=$?", "Enter"]);
        wait_for("three members at work", || {
            let screen = self.screen();
            (screen.contains("#1 ") && screen.contains("#2 ") && screen.contains("#3 "))
                .then_some(())
        });
    }

    fn keys(&self, keys: &[&str]) {
        let mut words = vec!["send-keys", "-t", &self.pane];
        words.extend(keys);
        self.stage.tmux(&words).expect("typed");
    }

    fn screen(&self) -> String {
        self.stage.tmux(&["capture-pane", "-p", "-t", &self.pane]).expect("a screen")
    }

    /// The lines on the screen up to the last one that is not empty.
    fn lines(&self) -> Vec<String> {
        self.screen().trim_end().lines().map(str::to_owned).collect()
    }

    /// Waits for two more frames; the first may have been drawn before the last step of the caller.
    fn next_frames(&self) {
        for _ in 0..2 {
            let before = self.bar();
            wait_for(&format!("another frame than {}", self.screen()), || {
                (self.bar() != before).then_some(())
            });
        }
    }

    /// The line with the progress bar and the elapsed time.
    fn bar(&self) -> Option<String> {
        self.lines().into_iter().find(|line| line.contains(" of 4 tasks"))
    }

    fn echoes(&self) -> bool {
        let output = Command::new("stty").args(["-a", "-F", &self.tty]).output().expect("stty");
        let modes = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(modes.contains("echo "), "{modes}");
        !modes.contains("-echo ")
    }

    fn go(&self) {
        std::fs::write(self.stage.at("work/go"), "").expect("go");
    }

    /// Waits until `up` exits, and returns the screen with its scrollback.
    fn ended(&self, code: i32) -> String {
        let end = format!("end={code}");
        wait_for(&end, || self.screen().lines().any(|line| line == end).then_some(()));
        let all = self.stage.tmux(&["capture-pane", "-p", "-J", "-S", "-", "-t", &self.pane]);
        all.expect("a screen")
    }

    fn pid_of_up(&self) -> String {
        let found = self.stage.processes().into_iter().find(|line| line.contains("phalanx up "));
        found.expect("up runs").split(' ').next().expect("a pid").to_owned()
    }

    fn close(self) {
        self.stage.tmux(&["kill-session", "-t", "=mine"]).expect("it is there");
        self.stage.assert_clean();
    }
}

#[test]
fn tmux_up_fits_the_terminal_and_swallows_typed_keys() {
    for (columns, rows, working) in [(80, 24, true), (40, 10, false), (120, 40, true)] {
        let terminal = Terminal::new(columns, rows);
        assert!(terminal.echoes());
        terminal.up();
        let size = format!("{columns}x{rows}");
        // A member claims its task a moment before it reports that it works.
        wait_for("all members to work", || {
            terminal.next_frames();
            let at_work = terminal.lines().iter().filter(|line| line.contains("working")).count();
            (at_work == if working { 3 } else { 0 }).then_some(())
        });
        let before = terminal.lines();
        // The command, one line per member, the bar, and the hint.
        assert_eq!(before.len(), 6, "{size}: {before:?}");
        for (line, name) in before[1..4].iter().zip(["ada ", "benjamin ", "cleo "]) {
            assert!(line.starts_with(name), "{size}: {before:?}");
            assert_eq!(line.contains("working"), working, "{size}: {before:?}");
        }
        assert!(terminal.screen().contains("#2 Counting the lines"), "{size}: {before:?}");
        assert!(before[4].contains("─  0 of 4 tasks  "), "{size}: {before:?}");
        assert!(before[5].starts_with("phalanx attach "), "{size}: {before:?}");
        assert!(!terminal.echoes(), "{size}");
        terminal.keys(&[": ghost", "Enter", "Enter", "Up", "x", "BSpace"]);
        terminal.next_frames();
        let after = terminal.lines();
        assert_eq!((after.len(), &after[0]), (6, &before[0]), "{size}: {after:?}");
        assert!(!terminal.screen().contains("ghost"), "{size}: {after:?}");
        terminal.go();
        let all = terminal.ended(0);
        assert!(!all.contains('─') && !all.contains('━'), "{size}: no frame is left: {all}");
        assert!(
            all.contains("trio  4 completed") && all.contains("\n  all links are right"),
            "{size}: {all}"
        );
        assert!(terminal.echoes(), "{size}");
        terminal.close();
    }
}

/// Rows of an older frame that tmux wrapped and scrolled may remain above the new one.
#[test]
fn tmux_up_fits_the_terminal_after_a_resize() {
    let terminal = Terminal::new(120, 20);
    terminal.up();
    for (columns, rows) in [("40", "20"), ("100", "10"), ("33", "10"), ("80", "24")] {
        terminal
            .stage
            .tmux(&["resize-window", "-t", "mine:", "-x", columns, "-y", rows])
            .expect("resized");
        terminal.next_frames();
        let lines = terminal.lines();
        let frame = &lines[lines.len().saturating_sub(5)..];
        for (line, part) in
            frame.iter().zip(["ada  ", "benjamin  ", "cleo  ", "─  0 of 4 tasks", "phalanx attach"])
        {
            assert!(line.contains(part), "{part} at {columns}x{rows}: {lines:?}");
        }
        let bars = lines.iter().filter(|line| line.contains(" of 4 tasks")).count();
        assert_eq!(bars, 1, "{columns}x{rows}: {lines:?}");
    }
    terminal.go();
    terminal.ended(0);
    terminal.close();
}

#[test]
fn tmux_ctrl_c_and_sigterm_end_up_and_restore_the_terminal() {
    for by_key in [true, false] {
        let terminal = Terminal::new(80, 24);
        terminal.up();
        let stop = || {
            if by_key {
                terminal.keys(&["C-c"]);
                return;
            }
            let sent =
                Command::new("kill").args(["-TERM", &terminal.pid_of_up()]).status().expect("kill");
            assert!(sent.success());
        };
        stop();
        if by_key {
            wait_for("the hint", || {
                terminal.screen().contains("Ctrl-C again ends it by force").then_some(())
            });
            stop();
        }
        let all = terminal.ended(130);
        assert!(!all.contains('─') && !all.contains("^C"), "{all}");
        let last = if by_key { "trio  " } else { "phalanx resume --all -t trio" };
        assert!(all.contains(last), "{all}");
        assert!(terminal.echoes());
        if !by_key {
            terminal.stage.phalanx(&["down", "-t", "trio"]).expect(0);
        }
        terminal.close();
    }
}

#[test]
fn tmux_ctrl_backslash_ends_up_and_restores_the_terminal() {
    let terminal = Terminal::new(80, 24);
    terminal.up();
    terminal.keys(&["C-\\"]);
    // 128 plus the signal number of SIGQUIT.
    let all = terminal.ended(131);
    assert!(!all.contains('─'), "{all}");
    assert!(terminal.echoes());
    // The members keep running without it.
    terminal.stage.phalanx(&["down", "-t", "trio", "--force"]).expect(0);
    terminal.close();
}

#[test]
fn tmux_ctrl_z_restores_the_terminal_until_up_continues() {
    let terminal = Terminal::new(80, 24);
    terminal.up();
    terminal.keys(&["C-z"]);
    wait_for("the shell", || terminal.screen().contains("Stopped").then_some(()));
    assert!(terminal.echoes());
    assert_eq!(terminal.bar(), None);
    terminal.keys(&["fg", "Enter"]);
    wait_for("the frame", || terminal.bar());
    terminal.next_frames();
    assert!(!terminal.echoes());
    let bars = terminal.lines().iter().filter(|line| line.contains(" of 4 tasks")).count();
    assert_eq!(bars, 1, "{}", terminal.screen());
    terminal.go();
    wait_for("the report", || terminal.screen().contains("trio  4 completed").then_some(()));
    wait_for("the echo", || terminal.echoes().then_some(()));
    wait_for("the team to be gone", || {
        terminal.stage.processes().iter().all(|p| !p.contains(" up ")).then_some(())
    });
    terminal.close();
}
