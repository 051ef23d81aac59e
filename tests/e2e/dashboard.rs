//! The dashboard in a real tmux: what a person sees and types, and the terminal after every way to
//! end.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

use nix::fcntl::OFlag;
use rustix::io::ioctl_fionread;

use crate::harness::{Stage, binary, wait_for};

/// A shell in a tmux pane, for running `phalanx watch`.
pub struct Terminal {
    pub stage: Stage,
    pane: String,
    tty: String,
}

impl Terminal {
    /// Creates the team `site` with a worker that asks before it acts, and a ticking program.
    fn new() -> Terminal {
        let stage = Stage::new();
        stage.phalanx(&["team", "create", "site"]).expect(0);
        stage.phalanx(&["spawn", "ada", "--plan", "--backend", "pty"]).expect(0);
        let ticking =
            "i=0; while :; do i=$((i+1)); printf '\\033[31mtick %s\\033[0m\\n' $i; sleep 0.2; done";
        stage.phalanx(&["spawn", "srv", "--backend", "pty", "--", "sh", "-c", ticking]).expect(0);
        stage.phalanx(&["spawn", "cat", "--backend", "pty", "--", "cat"]).expect(0);
        Terminal::open(stage)
    }

    /// Opens a terminal of 120 columns and 40 rows on a stage.
    pub fn open(mut stage: Stage) -> Terminal {
        stage.shadow("phalanx", &format!("#!/bin/sh\nulimit -c 0\nexec '{}' \"$@\"\n", binary()));
        stage
            .tmux(&[
                "-f",
                "/dev/null",
                "new-session",
                "-d",
                "-s",
                "mine",
                "-x",
                "120",
                "-y",
                "40",
                "sh",
            ])
            .expect("a session");
        stage.tmux(&["set", "-g", "status", "off"]).expect("no status line");
        stage.tmux(&["resize-window", "-t", "mine:", "-x", "120", "-y", "40"]).expect("resized");
        let ids = stage
            .tmux(&["display", "-p", "-t", "mine:", "#{pane_id} #{pane_tty}"])
            .expect("the pane");
        let (pane, tty) = ids.trim().split_once(' ').expect("two words");
        let terminal = Terminal { pane: pane.to_owned(), tty: tty.to_owned(), stage };
        wait_for("the prompt", || terminal.screen().contains(['$', '#']).then_some(()));
        terminal
    }

    /// Starts the dashboard and waits for its first frame with the team.
    fn watch(&self) {
        self.keys(&["phalanx watch site; echo end=$?", "Enter"]);
        self.shows("Members by attention");
        self.shows("srv");
    }

    pub fn keys(&self, keys: &[&str]) {
        let mut words = vec!["send-keys", "-t", &self.pane];
        words.extend(keys);
        self.stage.tmux(&words).expect("typed");
        if keys.last() == Some(&"Escape") {
            // Read together with the next key, it would be Alt with that key.
            let tty =
                File::options().read(true).custom_flags(OFlag::O_NOCTTY.bits()).open(&self.tty);
            let tty = tty.expect("the terminal");
            wait_for("Escape to be read", || {
                (ioctl_fionread(&tty).expect("a terminal") == 0).then_some(())
            });
        }
    }

    pub fn screen(&self) -> String {
        self.stage.tmux(&["capture-pane", "-p", "-t", &self.pane]).expect("a screen")
    }

    pub fn shows(&self, text: &str) {
        wait_for(&format!("{text:?} on the screen"), || self.screen().contains(text).then_some(()));
    }

    fn pid(&self) -> Option<String> {
        let processes = self.stage.processes();
        // Not the shell that runs it.
        let is_it = |line: &&String| line.contains("phalanx watch ") && !line.contains("end=");
        let found = processes.iter().find(is_it);
        found.map(|line| line.split(' ').next().expect("a pid").to_owned())
    }

    fn signal(&self, name: &str) {
        let pid = self.pid().expect("the dashboard runs");
        assert!(
            Command::new("kill")
                .args([&format!("-{name}"), &pid])
                .status()
                .expect("kill")
                .success()
        );
    }

    /// Empties the screen of the shell.
    fn clear(&self) {
        self.keys(&["clear", "Enter"]);
        wait_for("an empty screen", || {
            let screen = self.screen();
            (!screen.contains("end=") && screen.trim().chars().count() == 1).then_some(())
        });
    }

    /// Waits until the dashboard has ended, and checks the terminal.
    pub fn ended(&self, code: i32) {
        let end = format!("end={code}");
        wait_for(&end, || self.screen().lines().any(|line| line == end).then_some(()));
        self.is_restored();
    }

    /// Checks that no mode of the dashboard is left, and that the shell's screen is back.
    fn is_restored(&self) {
        let format = "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{bracket_paste_flag}";
        wait_for("the modes to be restored", || {
            let modes = self.stage.tmux(&["display", "-p", "-t", &self.pane, format]);
            // The last one exists since tmux 3.6 and is empty before.
            modes.is_some_and(|modes| modes.trim().trim_end_matches(" 0") == "0 1").then_some(())
        });
        let output = Command::new("stty").args(["-a", "-F", &self.tty]).output().expect("stty");
        let modes = String::from_utf8_lossy(&output.stdout).into_owned();
        for mode in ["echo", "icanon", "isig", "opost"] {
            assert!(modes.split_whitespace().any(|word| word == mode), "{mode}: {modes}");
        }
        assert!(!self.screen().contains("Members by"), "{}", self.screen());
    }

    pub fn close(self) {
        self.stage.phalanx(&["down", "-t", "site", "--force"]).expect(0);
        self.stage.tmux(&["kill-session", "-t", "=mine"]).expect("it is there");
        self.stage.assert_clean();
    }
}

impl Drop for Terminal {
    /// Prints the screen if the test fails.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let screen = self.stage.tmux(&["capture-pane", "-p", "-t", &self.pane]);
            println!("the screen:\n{}", screen.unwrap_or_default());
        }
    }
}

#[test]
fn tmux_preview_follows_the_selected_member_in_colour() {
    let terminal = Terminal::new();
    terminal.watch();
    terminal.keys(&["/", "srv", "Enter"]);
    terminal.shows("tick 3");
    // It goes on without any key.
    let number = || {
        let screen = terminal.screen();
        let ticks = screen.split("tick ").skip(1).filter_map(|rest| {
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
        });
        ticks.max().unwrap_or(0)
    };
    let before = number();
    wait_for("later ticks", || (number() > before + 3).then_some(()));
    let colored =
        terminal.stage.tmux(&["capture-pane", "-p", "-e", "-t", &terminal.pane]).expect("a screen");
    let red = colored.lines().find(|line| line.contains("tick ")).expect("a tick");
    assert!(
        red.contains("\u{1b}[31m") || red.contains(";31m") || red.contains("[38;5;1m"),
        "{red:?}"
    );
    // Scrolling back stops it, Escape goes on. Before, there is nothing above.
    wait_for("more lines than the panel has", || (number() > 50).then_some(()));
    terminal.keys(&["2", "PPage"]);
    terminal.shows("lines below: Esc goes live");
    terminal.keys(&["Escape"]);
    wait_for("the live screen", || (!terminal.screen().contains("lines below")).then_some(()));
    terminal.keys(&["q"]);
    terminal.ended(0);
    terminal.close();
}

#[test]
fn tmux_plan_is_shown_in_full_and_approved_with_one_key() {
    let terminal = Terminal::new();
    terminal.watch();
    let output = terminal.stage.at("output");
    let save = format!("cat >'{}'", output.display());
    terminal.stage.tmux(&["pipe-pane", "-O", "-t", &terminal.pane, &save]).expect("a pipe");
    terminal.stage.phalanx(&["task", "create", "Make the file", "--", "touch", "made"]).expect(0);
    terminal.shows("ada asks: ");
    // The notification and the bell.
    wait_for("the bell", || {
        let sent = std::fs::read(&output).unwrap_or_default();
        let text = String::from_utf8_lossy(&sent).into_owned();
        (text.contains("\u{1b}]9;ada asks: ") && text.contains('\u{7}')).then_some(())
    });
    terminal.keys(&["n"]);
    // The plan itself, in the panel of requests.
    terminal.shows("Run task #1: Make the file");
    terminal.keys(&["Enter"]);
    terminal.shows("y: approve");
    terminal.keys(&["y"]);
    terminal.stage.wait_event("site", "task_completed", "1");
    assert!(terminal.stage.at("work/made").exists());
    terminal.shows("nothing waits for you");
    terminal.shows("✓ 1/1");
    terminal.keys(&["q"]);
    terminal.ended(0);
    terminal.close();
}

#[test]
fn tmux_message_typing_and_attach_from_the_dashboard() {
    let terminal = Terminal::new();
    terminal.watch();
    terminal.keys(&["/", "ada", "Enter", "m", "hello from the dashboard", "Enter"]);
    terminal.shows("stored in the mailbox of ada");
    terminal.keys(&["5"]);
    terminal.shows("hello from the dashboard");
    // A plain command reads no mail; the refusal says what to do instead.
    terminal.keys(&["/", "C-u", "cat", "Enter", "m", "hi", "Enter"]);
    terminal.shows("phalanx type cat TEXT --enter");
    terminal.keys(&["Escape"]);
    // A terminal that reads Escape and a letter at once takes them for Alt with that letter.
    let refusal = "phalanx type cat TEXT";
    wait_for("the refusal to go", || (!terminal.screen().contains(refusal)).then_some(()));
    // Keys go to the member, and its screen shows them.
    terminal.keys(&["i"]);
    terminal.shows("typing, Esc leaves");
    terminal.keys(&["typed by hand", "Enter"]);
    wait_for("the echo of the terminal and of cat", || {
        (terminal.screen().matches("typed by hand").count() >= 2).then_some(())
    });
    terminal.keys(&["Escape"]);
    wait_for("typing to end", || (!terminal.screen().contains("typing, Esc")).then_some(()));
    // Attach leaves the dashboard and comes back to it.
    terminal.keys(&["a"]);
    wait_for("the member alone", || (!terminal.screen().contains("Members by")).then_some(()));
    terminal.shows("typed by hand");
    terminal.keys(&["C-]"]);
    terminal.shows("Members by attention");
    terminal.keys(&["q"]);
    terminal.ended(0);
    let typed = terminal.stage.wait_event("site", "typed", "cat");
    assert_eq!(typed["detail"]["keys"], 14, "{typed}");
    terminal.close();
}

#[test]
fn tmux_pt_09_key_right_after_a_program_on_the_terminal_is_not_lost() {
    let terminal = Terminal::new();
    // The shell has no job control, so that it takes no notice of the stop.
    let run = "sh -c 'PHALANX_STOPPOINT=watch.back phalanx watch site; echo end=$?'";
    terminal.keys(&[run, "Enter"]);
    terminal.shows("srv");
    terminal.keys(&["/", "cat", "Enter"]);
    terminal.shows("type into cat");
    terminal.keys(&["a"]);
    wait_for("the member alone", || (!terminal.screen().contains("Members by")).then_some(()));
    terminal.keys(&["C-]"]);
    let pid = terminal.pid().expect("the dashboard runs");
    wait_for("the stop before the next frame", || {
        let state = Command::new("ps").args(["-o", "stat=", "-p", &pid]).output().expect("ps");
        state.stdout.starts_with(b"T").then_some(())
    });
    terminal.keys(&["q"]);
    terminal.signal("CONT");
    terminal.ended(0);
    terminal.close();
}

#[test]
fn tmux_terminal_is_restored_after_every_signal() {
    let terminal = Terminal::new();
    for signal in ["TERM", "HUP", "INT", "QUIT"] {
        terminal.watch();
        terminal.signal(signal);
        terminal.ended(130);
        terminal.clear();
    }
    terminal.close();
}

#[test]
fn tmux_panic_restores_the_terminal_before_its_message() {
    let terminal = Terminal::new();
    terminal.keys(&["PHALANX_PANICPOINT=watch.frame:2 phalanx watch site; echo end=$?", "Enter"]);
    terminal.ended(70);
    let screen = terminal.screen();
    let message = "error: internal error: a test has requested a panic";
    assert!(screen.lines().any(|line| line.starts_with(message)), "{screen}");
    terminal.close();
}

#[test]
fn tmux_dashboard_is_suspended_and_continued() {
    let terminal = Terminal::new();
    terminal.watch();
    for by_key in [true, false] {
        match by_key {
            true => terminal.keys(&["C-z"]),
            false => terminal.signal("TSTP"),
        }
        wait_for("the shell", || terminal.screen().contains("Stopped").then_some(()));
        terminal.is_restored();
        terminal.keys(&["clear", "Enter", "fg", "Enter"]);
        terminal.shows("Members by attention");
    }
    terminal.keys(&["q"]);
    wait_for("the end", || terminal.pid().is_none().then_some(()));
    terminal.is_restored();
    terminal.close();
}

#[test]
fn tmux_resize_storm_and_smallest_terminal_leave_it_intact() {
    let terminal = Terminal::new();
    terminal.watch();
    let sizes = [("1", "1"), ("200", "50"), ("3", "40"), ("80", "2"), ("59", "12"), ("300", "9")];
    for (columns, rows) in sizes.into_iter().cycle().take(60) {
        terminal
            .stage
            .tmux(&["resize-window", "-t", "mine:", "-x", columns, "-y", rows])
            .expect("resized");
    }
    terminal
        .stage
        .tmux(&["resize-window", "-t", "mine:", "-x", "120", "-y", "40"])
        .expect("resized");
    terminal.shows("Members by attention");
    terminal.shows("Requests");
    // The whole screen is drawn anew: the last line has the keys.
    wait_for("the line at the bottom", || {
        terminal
            .screen()
            .trim_end()
            .lines()
            .last()
            .is_some_and(|l| l.contains("help"))
            .then_some(())
    });
    terminal.keys(&["q"]);
    terminal.ended(0);
    terminal.close();
}

#[test]
fn tmux_team_deleted_underneath_is_reported() {
    let terminal = Terminal::new();
    terminal.watch();
    terminal.stage.phalanx(&["down", "-t", "site", "--force"]).expect(0);
    terminal.shows("team site was deleted");
    terminal.shows("t lists other teams, q quits");
    // The refusal does not depend on the state that was read last.
    terminal.keys(&["Down", "m"]);
    wait_for("the refusal of a message", || {
        (terminal.screen().matches("team site was deleted").count() == 2).then_some(())
    });
    terminal.keys(&["q"]);
    terminal.ended(0);
    terminal.stage.tmux(&["kill-session", "-t", "=mine"]).expect("it is there");
    terminal.stage.assert_clean();
}

#[test]
fn dashboard_without_a_terminal_names_the_alternative() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "site"]).expect(0);
    let run = stage.phalanx(&["watch"]).expect(2);
    assert!(run.stderr.contains("status --watch"), "{}", run.stderr);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn tmux_teammate_may_not_open_the_dashboard() {
    let terminal = Terminal::new();
    terminal.keys(&["phalanx watch site --as ada; echo end=$?", "Enter"]);
    terminal.ended(4);
    assert!(terminal.screen().contains("see all screens and messages"), "{}", terminal.screen());
    terminal.close();
}

#[test]
fn tmux_several_teams_are_listed_and_the_chosen_one_is_shown() {
    let terminal = Terminal::new();
    terminal.stage.phalanx(&["team", "create", "docs"]).expect(0);
    terminal.keys(&["phalanx watch; echo end=$?", "Enter"]);
    terminal.shows("Which team? Enter shows it, Esc quits");
    terminal.shows("3 members");
    let (team, members) = ("docs", "0 members");
    let is_row = |line: &str| line.contains(team) && line.contains(members);
    assert!(terminal.screen().lines().any(is_row), "{}", terminal.screen());
    terminal.keys(&["Down", "Enter"]);
    terminal.shows("Members by attention");
    wait_for("the team site", || terminal.screen().starts_with("site  no lead").then_some(()));
    terminal.shows("srv");
    terminal.keys(&["t"]);
    terminal.shows("Teams of this machine");
    terminal.keys(&["Up", "Enter"]);
    wait_for("the team docs", || terminal.screen().starts_with("docs  no lead").then_some(()));
    terminal.shows("no members: + spawns one");
    terminal.keys(&["q"]);
    terminal.ended(0);
    terminal.clear();
    terminal.keys(&["phalanx watch; echo end=$?", "Enter"]);
    terminal.shows("Which team?");
    terminal.keys(&["Escape"]);
    terminal.ended(0);
    terminal.stage.phalanx(&["team", "delete", "-t", "docs"]).expect(0);
    terminal.close();
}

#[test]
fn tmux_terminal_that_cannot_be_drawn_on_is_refused_with_the_way_out() {
    let terminal = Terminal::new();
    for (command, name) in
        [("TERM=dumb phalanx watch site", "dumb"), ("env -u TERM phalanx watch site", "")]
    {
        terminal.clear();
        terminal.keys(&[&format!("{command}; echo end=$?"), "Enter"]);
        terminal.ended(2);
        let screen = terminal.screen().replace('\n', " ");
        for words in [
            format!("the dashboard cannot be drawn on this terminal: TERM is \"{name}\""),
            "see the team with `phalanx status`".to_owned(),
            "TERM=xterm-256color".to_owned(),
        ] {
            assert!(screen.contains(&words), "{words:?}: {screen}");
        }
    }
    terminal.close();
}

/// Each of these keys selects another screen, which needs an answer of the stopped server to be
/// proven. A dashboard that waits for one of them answers the last key too late (PF-12).
#[test]
fn tmux_pf_12_keys_are_answered_while_the_members_tmux_is_stopped() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "site", "--tmux-socket", "../own.sock"]).expect(0);
    for name in ["ann", "ben", "cem"] {
        let start = ["spawn", name, "--backend", "tmux", "--", "sleep", "600"];
        stage.phalanx(&start).expect(0);
    }
    let socket = stage.at("own.sock");
    let socket = socket.to_str().expect("UTF-8");
    let server = ["-S", socket, "display", "-p", "#{pid}"];
    let server = stage.tmux(&server).expect("the server").trim().to_owned();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &server]).status().expect("kill");
        assert!(sent.success());
    };
    let terminal = Terminal::open(stage);
    terminal.keys(&["phalanx watch site; echo end=$?", "Enter"]);
    terminal.shows("Members by attention");
    signal("-STOP");
    for _ in 0..20 {
        terminal.keys(&["Down"]);
        terminal.keys(&["Up"]);
    }
    terminal.keys(&["?"]);
    terminal.shows("Esc closes");
    terminal.keys(&["Escape"]);
    wait_for("the help to close", || (!terminal.screen().contains("Esc closes")).then_some(()));
    terminal.keys(&["q"]);
    terminal.ended(0);
    signal("-CONT");
    terminal.close();
}
