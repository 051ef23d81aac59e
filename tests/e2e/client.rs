//! A terminal that is attached to the tmux server of a stage.

use crate::harness::{Stage, wait_for};

/// A terminal with a tmux client: a pane of a second server, whose screen can be read.
pub struct ClientTerminal<'a> {
    stage: &'a Stage,
    session: &'a str,
}

impl<'a> ClientTerminal<'a> {
    /// Attaches to a session of the stage's server.
    pub fn attach(stage: &'a Stage, session: &'a str) -> ClientTerminal<'a> {
        let terminal = ClientTerminal { stage, session };
        let target = format!("={session}");
        let new = ["new-session", "-d", "-s", session, "-x", "120", "-y", "30"];
        let tmux = ["env", "-u", "TMUX", "tmux", "-u", "-L", "default", "attach", "-t", &target];
        terminal.tmux(&[&new[..], &["--"], &tmux].concat());
        wait_for("the client", || {
            let attached = ["list-clients", "-t", &target, "-F", "#{client_name}"];
            stage.tmux(&attached).filter(|clients| !clients.is_empty())
        });
        terminal
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = self.stage.command("tmux");
        let output = command.args(["-u", "-f", "/dev/null", "-L", "outer"]).args(args).output();
        let output = output.expect("tmux runs");
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub fn press(&self, keys: &[&str]) {
        let target = format!("={}:", self.session);
        self.tmux(&[&["send-keys", "-t", &target], keys].concat());
    }

    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", &format!("={}:", self.session)])
    }

    /// Returns the screen with its escape sequences for colours.
    pub fn colored_screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e", "-t", &format!("={}:", self.session)])
    }
}
