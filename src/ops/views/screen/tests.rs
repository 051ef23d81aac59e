//! Following a member whose launcher is this process, an older launcher, and a member that has
//! ended.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{Caller, Store};
use backend::pty::{AttachServer, Broadcaster};
use fixture::sample;
use model::id::TeamName;
use model::members::placement::{BackendKind, ProcessId, PtyHold};
use model::members::record::StartRecord;
use model::team::Team;
use model::time::Timestamp;
use sys::child::open_pty;
use sys::fs;
use sys::proc::Process;
use sys::socket::Listener;

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// A team with ada, whose launcher is `launcher`.
struct Stage {
    dir: TempDir,
    ctx: Context,
    team: TeamStore,
    ada: MemberName,
}

impl Stage {
    fn new(launcher: ProcessId, exit: Option<ExitRecord>) -> Stage {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = Store::at(&dir.path().join("root"));
        let name = TeamName::new("demo").expect("name");
        let file = Team::found(&name, "d", "team-lead", "s", "/w", Timestamp(1));
        let settings =
            json!({"format": 1, "backend": "auto", "finish": "manual", "max_members": 8});
        let settings = serde_json::from_value(settings).expect("settings");
        let team = store.create(&name, &file, &settings).expect("team");
        let log = dir.path().join("ada.log").display().to_string();
        let start = StartRecord {
            launcher,
            program: launcher,
            tty: None,
            socket: Some(dir.path().join("sockets/run").display().to_string()),
            cwd: "/".to_owned(),
            at: Timestamp(1),
        };
        let record = MemberRecord {
            backend: BackendKind::Pty,
            placement: Some(Placement::Pty(PtyHold { launcher, log })),
            start: Some(start),
            exit,
            ..sample::record("ada", sample::run(0), "worker", Timestamp(1))
        };
        team.begin_record(&record).expect("record");
        let caller = Caller { env: Vec::new(), cwd: "/".into(), exe: "/no/phalanx".into() };
        let ctx = Context { store, speaker: MemberName::lead(), caller };
        Stage { dir, ctx, team, ada: record.name }
    }

    /// A stage whose launcher is this process.
    fn running() -> Stage {
        let Process { pid, start } = Process::current();
        Stage::new(ProcessId { pid, start }, None)
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("sockets/run")
    }

    fn follow(&self) -> (ScreenFollower, Receiver<ScreenUpdate>) {
        let (sender, updates) = channel();
        let pass_on = move |update| drop(sender.send(update));
        let follower = follow(&self.ctx, &self.team, &self.ada, pass_on).expect("followed");
        (follower, updates)
    }
}

fn next(updates: &Receiver<ScreenUpdate>) -> ScreenUpdate {
    updates.recv_timeout(PATIENCE).expect("another update")
}

/// The size and the text of an update that draws the whole screen.
fn whole(update: ScreenUpdate) -> ((u16, u16), String) {
    let ScreenUpdate::Whole { rows, cols, bytes } = update else { panic!("not whole: {update:?}") };
    let mut terminal = vt100::Parser::new(rows, cols, 0);
    terminal.process(&bytes);
    ((rows, cols), terminal.screen().contents())
}

fn exited(code: i32) -> ExitRecord {
    let code = Some(code);
    ExitRecord { code, at: Timestamp(2), ..ExitRecord::default() }
}

#[test]
fn screen_output_size_and_exit_of_a_pty_member_are_passed_on() {
    let stage = Stage::running();
    let (master, _slave) = open_pty(6, 30).expect("a pty");
    let broadcaster = Arc::new(Broadcaster::new(master, (6, 30)));
    broadcaster.feed(b"hello");
    let _server = AttachServer::open(&[stage.socket()], &broadcaster).expect("writable");
    let (_follower, updates) = stage.follow();
    assert_eq!(whole(next(&updates)), ((6, 30), "hello".to_owned()));
    broadcaster.feed(b" \x1b[1mworld");
    assert_eq!(next(&updates), ScreenUpdate::Output(b" \x1b[1mworld".to_vec()));
    let viewer = Viewer::attach(&stage.socket(), (8, 40)).expect("it listens");
    assert_eq!(whole(next(&updates)), ((8, 40), "hello world".to_owned()));
    viewer.leave();
    assert_eq!(whole(next(&updates)), ((6, 30), "hello world".to_owned()));
    broadcaster.end(ChildExit { code: Some(7), signal: None }, Duration::ZERO);
    assert_eq!(next(&updates), ScreenUpdate::Ended("exit code 7".to_owned()));
    assert!(updates.recv_timeout(PATIENCE).is_err(), "the thread has ended");
}

#[test]
fn dropped_follower_ends_its_thread_without_a_last_update() {
    let stage = Stage::running();
    let (master, _slave) = open_pty(6, 30).expect("a pty");
    let broadcaster = Arc::new(Broadcaster::new(master, (6, 30)));
    let server = AttachServer::open(&[stage.socket()], &broadcaster).expect("writable");
    let (follower, updates) = stage.follow();
    whole(next(&updates));
    drop(follower);
    assert!(updates.recv_timeout(PATIENCE).is_err(), "by the socket");
    drop(server);
    let (follower, updates) = stage.follow();
    whole(next(&updates));
    drop(follower);
    assert!(updates.recv_timeout(PATIENCE).is_err(), "by polling");
}

/// A launcher that closes the connection on an unknown message, and answers a request for lines.
fn serve_as_older_build(listener: &Listener) {
    while let Ok(mut stream) = listener.accept() {
        let mut kind = [0; 1];
        if stream.read_exact(&mut kind).is_ok() && kind == *b"L" {
            let _ = stream.write_all(b"T\0\0\0\x05older");
        }
    }
}

#[test]
fn launcher_of_an_older_build_is_polled() {
    let stage = Stage::running();
    fs::private_dir(&stage.dir.path().join("sockets")).expect("writable");
    let listener = Arc::new(Listener::bind(&stage.socket()).expect("writable"));
    let served = listener.clone();
    let serving = thread::spawn(move || serve_as_older_build(&served));
    let (_follower, updates) = stage.follow();
    assert_eq!(whole(next(&updates)), ((1, 5), "older".to_owned()));
    listener.close();
    serving.join().expect("no panic");
}

#[test]
fn ended_member_shows_the_end_of_its_log_and_its_exit() {
    let stage = Stage::new(ProcessId { pid: 1, start: 1 }, Some(exited(3)));
    fs::write_atomic(&stage.dir.path().join("ada.log"), b"one\r\ntwo\r\n").expect("writable");
    let (_follower, updates) = stage.follow();
    assert_eq!(whole(next(&updates)), ((2, 3), "one\ntwo".to_owned()));
    assert_eq!(next(&updates), ScreenUpdate::Ended("exit code 3".to_owned()));
    assert!(updates.recv_timeout(PATIENCE).is_err(), "the thread has ended");
}

#[test]
fn own_terminal_is_not_followed() {
    let mut stage = Stage::running();
    let own = sample::run(0).as_str().to_owned();
    stage.ctx.caller.env.push(("PHALANX_INCARNATION".into(), own.into()));
    let refused = follow(&stage.ctx, &stage.team, &stage.ada, |_| ()).err().expect("refused");
    assert!(refused.to_string().contains("its own terminal"), "{refused}");
}
