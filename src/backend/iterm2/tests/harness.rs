//! Emulated iTerm2 for the tests of this folder: the program in `fixtures/osascript`, with one
//! window for the leader. Its sessions are real programs on real terminals; it exits when its
//! directory is removed.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::{Iterm2, ItermHome};
use crate::{Backend, BackendError, Label, PlacementRequest};
use model::id::MemberName;
use model::members::placement::{ItermSession, Layout, Placement};
use sys::clock::{self, Deadline};
use sys::{exec, fs};

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Mac {
    pub(super) dir: TempDir,
    pub(super) leader: ItermSession,
}

impl Mac {
    pub(super) fn new() -> Mac {
        let dir = tempfile::tempdir().expect("a directory for the state");
        let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/osascript/osascript");
        std::os::unix::fs::symlink(fixture, dir.path().join("osascript")).expect("a link");
        let leader = ItermSession { session_id: String::new(), tty: String::new() };
        let mut mac = Mac { dir, leader };
        let program = mac.path("osascript").into();
        let start = exec::ExecCommand {
            program,
            args: vec!["--emulate".into()],
            ..exec::ExecCommand::default()
        };
        let output = exec::run(&start, PATIENCE).expect("python3 is there");
        assert_eq!(output.code, Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        mac.leader = mac.open("sleep");
        mac
    }

    /// Opens a window that runs this program for 600 seconds.
    pub(super) fn open(&self, program: &str) -> ItermSession {
        let made = self.op("open", &[program, "600"]);
        let text = |key: &str| made[key].as_str().expect("text").to_owned();
        ItermSession { session_id: text("id"), tty: text("tty") }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Sends a command to the emulator; see its `control`.
    pub(super) fn op(&self, op: &str, args: &[&str]) -> Value {
        let mut stream = UnixStream::connect(self.path("s")).expect("the emulator runs");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        writeln!(stream, "{}", json!({ "op": op, "args": args })).expect("it listens");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("an answer");
        let answer: Value = serde_json::from_str(&line).expect("json");
        answer.get("value").cloned().unwrap_or_else(|| panic!("{op} {args:?}: {answer}"))
    }

    /// Makes the next `times` calls of `verb` fail in the way `mode`.
    pub(super) fn fail(&self, verb: &str, mode: &str, times: u32) {
        self.op("fail", &[&json!({ verb: [mode, times] }).to_string()]);
    }

    /// The backend of the team `demo`, whose lead runs in the leader's session.
    pub(super) fn backend(&self, layout: Layout) -> Iterm2 {
        self.backend_at(Some(&self.leader), layout)
    }

    pub(super) fn backend_at(&self, stands_in: Option<&ItermSession>, layout: Layout) -> Iterm2 {
        let mut iterm2 = Iterm2::new(ItermHome {
            program: self.path("osascript"),
            tty: stands_in.map(|session| session.tty.clone()),
            hint: stands_in.map(|session| format!("w0t0p0:{}", session.session_id)),
            tag: "demo/1/uuid".to_owned(),
            layout,
        });
        // Starting Python takes time on a busy machine.
        iterm2.osa.within = PATIENCE;
        iterm2
    }

    pub(super) fn others(&self) -> Vec<Value> {
        let all = self.op("sessions", &[]);
        let others = all.as_array().expect("a list").iter();
        others.filter(|session| session["id"] != json!(self.leader.session_id)).cloned().collect()
    }

    pub(super) fn session(&self, placement: &Placement) -> Value {
        let all = self.op("sessions", &[]);
        let found =
            all.as_array().expect("a list").iter().find(|s| s["id"] == json!(placement.pane_id()));
        found.cloned().unwrap_or(Value::Null)
    }

    pub(super) fn calls(&self, verb: &str) -> Vec<Vec<String>> {
        let log = fs::read(&self.path("log"), 1 << 24).expect("readable").unwrap_or_default();
        let text = String::from_utf8(log).expect("text");
        let calls = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("json"));
        let of_verb = calls.filter(|call| call["verb"] == json!(verb));
        of_verb.map(|call| serde_json::from_value(call["args"].clone()).expect("words")).collect()
    }
}

/// A launcher with a token of its own, which runs `script` and then sleeps.
pub(super) fn launch(member: &str, script: &str) -> PlacementRequest {
    let script = format!("{script}; exec sleep 600");
    let argv = ["/bin/sh", "-c", &script].map(OsString::from).to_vec();
    let label = Label { name: member.to_owned(), ..Label::default() };
    PlacementRequest {
        member: MemberName::new(member).expect("a name"),
        token: format!("token-{member}"),
        argv,
        label,
    }
}

pub(super) fn place_one(iterm2: &Iterm2, member: &str) -> Result<Placement, BackendError> {
    iterm2.place(&[launch(member, "echo hello")]).remove(0)
}

pub(super) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Deadline::after(PATIENCE);
    while !condition() {
        assert!(!deadline.expired(), "timed out waiting for: {what}");
        clock::sleep(Duration::from_millis(10));
    }
}
