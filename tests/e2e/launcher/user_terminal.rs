//! A user at a terminal: a shell line on a real PTY whose screen can be read and typed on.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::bench::{Bench, TEAM, until};
use crate::gear;

pub(crate) struct UserTerminal {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    screen: Arc<Mutex<(vt100::Parser, Vec<u8>)>>,
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

impl UserTerminal {
    /// Runs `line` in the directory `work`; `$PHALANX` is the binary, set up for the team of the
    /// bench.
    pub(crate) fn new(bench: &Bench, line: &str) -> UserTerminal {
        let terminal = UserTerminal::unread(bench, line);
        let mut reader = terminal.master.try_clone_reader().expect("descriptors are left");
        let drawn = terminal.screen.clone();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let mut drawn = drawn.lock().expect("no panics in here");
                drawn.0.process(&buffer[..count]);
                drawn.1.extend_from_slice(&buffer[..count]);
            }
        });
        terminal
    }

    /// Like [`UserTerminal::new`], on a terminal that is never read.
    pub(crate) fn unread(bench: &Bench, line: &str) -> UserTerminal {
        let pair = native_pty_system().openpty(size(24, 80)).expect("a terminal");
        let mut command = CommandBuilder::new("/bin/sh");
        command.args(["-c", line]);
        command.cwd(bench.path("work"));
        command.env_clear();
        gear::portable().iter().for_each(|(name, value)| command.env(name, value));
        let vars = [("PATH", "/usr/bin:/bin"), ("TERM", "xterm-256color"), ("PHALANX_TEAM", TEAM)];
        vars.iter().for_each(|(name, value)| command.env(name, value));
        command.env("PHALANX", env!("CARGO_BIN_EXE_phalanx"));
        command.env("PHALANX_CONFIG_DIR", bench.root());
        let child = pair.slave.spawn_command(command).expect("sh is there");
        let keyboard = pair.master.take_writer().expect("taken once");
        let screen = Arc::new(Mutex::new((vt100::Parser::new(24, 80, 0), Vec::new())));
        UserTerminal { child, master: pair.master, keyboard, screen }
    }

    pub(crate) fn screen(&self) -> String {
        self.screen.lock().expect("no panics in the reader").0.screen().contents()
    }

    /// Returns every byte that reached the terminal.
    pub(crate) fn raw(&self) -> Vec<u8> {
        self.screen.lock().expect("no panics in the reader").1.clone()
    }

    pub(crate) fn on_second_screen(&self) -> bool {
        self.screen.lock().expect("no panics in the reader").0.screen().alternate_screen()
    }

    /// Cursor, keypad, paste and mouse modes, as the sequences that set them.
    pub(crate) fn modes(&self) -> Vec<u8> {
        let screen = self.screen.lock().expect("no panics in the reader");
        let screen = screen.0.screen();
        [screen.input_mode_formatted(), vec![u8::from(screen.hide_cursor())]].concat()
    }

    pub(crate) fn shows(&self, part: &str) {
        let begun = std::time::Instant::now();
        until(&format!("{part:?} on the terminal"), || {
            assert!(begun.elapsed().as_secs() < 60, "no {part:?} on:\n{}", self.screen());
            self.screen().contains(part)
        });
    }

    pub(crate) fn types(&mut self, keys: &[u8]) {
        self.keyboard
            .write_all(keys)
            .and_then(|()| self.keyboard.flush())
            .expect("the terminal is open");
    }

    pub(crate) fn resize(&self, rows: u16, cols: u16) {
        self.screen.lock().expect("no panics in the reader").0.screen_mut().set_size(rows, cols);
        self.master.resize(size(rows, cols)).expect("the terminal is open");
    }

    /// Waits until the shell line ends.
    pub(crate) fn ends(&mut self) {
        until("the end of the shell line", || self.child.try_wait().expect("our child").is_some());
    }
}

impl Drop for UserTerminal {
    fn drop(&mut self) {
        if let (Ok(None), Some(pid)) = (self.child.try_wait(), self.child.process_id()) {
            let _ = kill(Pid::from_raw(i32::try_from(pid).expect("a pid")), Signal::SIGHUP);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
