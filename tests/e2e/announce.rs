//! Notifications of pending requests: on the lead's own terminal and in tmux clients that view the
//! team.

use std::io::Read;
use std::sync::{Arc, Mutex};
use std::thread;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use serde_json::json;

use crate::harness::{Stage, binary, wait_for};

/// A program on its own PTY, with everything that it has written there.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    /// Keeps the PTY open.
    _master: Box<dyn MasterPty + Send>,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn new(stage: &Stage, program: &str, words: &[&str], env: &[(&str, &str)]) -> Terminal {
        let size = PtySize { rows: 24, cols: 120, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(program);
        command.args(words);
        command.env_clear();
        for (name, value) in stage.command(program).get_envs() {
            command.env(name, value.expect("set"));
        }
        env.iter().for_each(|(name, value)| command.env(name, value));
        command.cwd(stage.at("work"));
        let child = pair.slave.spawn_command(command).expect("it starts");
        let (shown, mut reader) =
            (Arc::default(), pair.master.try_clone_reader().expect("a reader"));
        let sink: Arc<Mutex<Vec<u8>>> = Arc::clone(&shown);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                sink.lock().expect("no panic").extend_from_slice(&bytes[..count]);
            }
        });
        Terminal { child, _master: pair.master, shown }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().expect("no panic")).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Files a permission request of `ada` whose command holds control characters and tmux formats.
fn request_permission(stage: &Stage, id: &str) {
    let canary = stage.at("canary").display().to_string();
    let hostile = format!("make\u{1b}\\\u{7}\u{1b}]52;c;QUJD\u{7}#(touch {canary}) %H #[fg=red]");
    let question = json!({"type": "permission_request", "request_id": id, "agent_id": "ada", "tool_name": "Bash",
        "input": {"command": hostile}, "permission_suggestions": []});
    stage.phalanx(&["--as", "ada", "send", "team-lead", &question.to_string()]).expect(0);
}

/// PM-03, SEC-10: the terminal gets the bell and one notification in the escape sequence that it
/// supports, free of control characters from the request.
#[test]
fn pm_03_sec_10_request_rings_and_notifies_the_leads_terminal() {
    for (env, begins) in [
        (&[][..], "\u{1b}]9;ada asks for"),
        (&[("VTE_VERSION", "7600")][..], "\u{1b}]777;notify;phalanx;ada asks for"),
    ] {
        let stage = Stage::without_tmux();
        stage.phalanx(&["team", "create", "alpha"]).expect(0);
        stage.phalanx(&["spawn", "ada"]).expect(0);
        let terminal = Terminal::new(&stage, binary(), &["lead"], env);
        wait_for("the lead", || {
            stage.journal("alpha").into_iter().find(|e| e["event"] == "lead_started")
        });
        request_permission(&stage, "perm-1");
        let whole = format!("{begins} a permission: Bash: make");
        wait_for("the notification", || terminal.text().contains(&whole).then_some(()));
        wait_for("the count", || terminal.text().contains("1 request waits").then_some(()));
        let text = terminal.text();
        assert_eq!(text.matches(begins).count(), 1, "{text:?}");
        let rest = &text[text.find(begins).expect("there")..];
        let sequence = &rest[..rest.find('\u{7}').expect("the bell")];
        assert!(
            sequence.ends_with("\u{1b}\\")
                && !sequence[2..sequence.len() - 2].contains(char::is_control)
        );
        assert!(!text.contains("\u{1b}]52"), "{text:?}");
        stage.phalanx(&["answer", "perm-1", "--reject"]).expect(0);
        stage.phalanx(&["down", "--force"]).expect(0);
        wait_for("the lead to end", || stage.processes().is_empty().then_some(()));
    }
}

/// PM-03, SEC-02: clients attached to the team's session see the request in the status line. Focus
/// and panes do not change, other clients see nothing, and the member's text is not expanded as a
/// tmux format.
#[test]
fn tmux_pm_03_sec_02_only_clients_viewing_the_team_are_notified() {
    let stage = Stage::new();
    let manifest = "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"tmux\"\n[[member]]\nname = \"ada\"\n";
    let lead = stage.start(&["up", &stage.file("team.toml", manifest)]);
    stage.wait_event("alpha", "member_ready", "ada");
    stage
        .tmux(&["new-session", "-d", "-s", "other", "sleep 600"])
        .expect("a session of somebody's");
    let watcher = Terminal::new(&stage, "tmux", &["attach", "-t", "=phalanx-alpha"], &[]);
    let other = Terminal::new(&stage, "tmux", &["attach", "-t", "=other"], &[]);
    wait_for("both to look", || {
        (stage.tmux(&["list-clients", "-F", "x"]).unwrap_or_default().lines().count() == 2)
            .then_some(())
    });
    let look = || {
        let format = "#{session_name} #{window_id} #{window_active} #{pane_id} #{pane_active} #{pane_in_mode}";
        stage.tmux(&["list-panes", "-a", "-F", format])
    };
    let before = look();
    request_permission(&stage, "perm-1");
    let words = "phalanx: ada asks for a permission - phalanx requests -t alpha";
    wait_for("the message", || watcher.text().contains(words).then_some(()));
    assert_eq!(look(), before, "nothing moves");
    wait_for("all of it to be said", || {
        stage.journal("alpha").into_iter().find(|e| e["event"] == "request_announced")
    });
    assert!(!other.text().contains("phalanx: ada"), "{}", other.text());
    assert!(!stage.at("canary").exists());
    stage.phalanx(&["down", "--force"]).expect(0);
    drop(lead.end());
    drop((watcher, other));
    stage.tmux(&["kill-session", "-t", "=other"]).expect("it is there");
    stage.assert_clean();
}

/// PM-03: for members without panes, clients that view the lead's pane are notified.
#[test]
fn tmux_pm_03_clients_viewing_the_lead_are_notified() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--backend", "pty"]).expect(0);
    stage
        .tmux(&["new-session", "-d", "-s", "desk", binary(), "lead", "-t", "alpha"])
        .expect("a session");
    wait_for("the lead", || {
        stage.journal("alpha").into_iter().find(|e| e["event"] == "lead_started")
    });
    let watcher = Terminal::new(&stage, "tmux", &["attach", "-t", "=desk"], &[]);
    wait_for("it to look", || {
        (stage.tmux(&["list-clients", "-F", "x"]).unwrap_or_default().lines().count() == 1)
            .then_some(())
    });
    request_permission(&stage, "perm-1");
    let words = "phalanx: ada asks for a permission - phalanx requests -t alpha";
    wait_for("the message", || watcher.text().contains(words).then_some(()));
    stage.phalanx(&["down", "--force"]).expect(0);
    drop(watcher);
    stage.assert_clean();
}
