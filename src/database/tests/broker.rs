//! The broker and its clients.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use serde_json::value::RawValue;

use super::holds::disconnect;
use super::*;
use crate::protocol::{BrokerMessage, Push, Request, encode, read_message};
use crate::{BrokerCommand, DatabaseError, Interest, MailScope, StoreChange, serve};
use sys::exec::{self, ExecCommand};
use sys::{env, fs, socket};

const HELPER: &str = "tests::broker::serves_until_idle";

#[test]
#[ignore = "helper process of the tests below"]
fn serves_until_idle() {
    let text = |name: &str| env::var(name).expect("set").into_string().expect("UTF-8");
    let socket = PathBuf::from(env::args().pop().expect("the path of the socket"));
    let pid = std::process::id().to_string();
    fs::append_line(&socket.with_extension("pids"), pid.as_bytes()).expect("writable");
    let url = StoreUrl::parse(&text("PHALANX_STORE")).expect("a valid address");
    serve(&socket, &url, Duration::from_millis(text("IDLE_MS").parse().expect("a number")))
        .unwrap();
}

/// The folder of a broker's socket, and how processes start it.
struct BrokerStage {
    dir: tempfile::TempDir,
    url: StoreUrl,
    command: BrokerCommand,
}

impl BrokerStage {
    fn new(stage: &Stage) -> BrokerStage {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let args = ["--exact", "--ignored", "--nocapture", HELPER].map(OsString::from).to_vec();
        let mut vars = env::vars();
        vars.push(("IDLE_MS".into(), "2000".into()));
        let program = env::current_exe().expect("known");
        let command = BrokerCommand { program, args, env: vars };
        BrokerStage { dir, url: stage.database.store_url(), command }
    }

    fn client(&self) -> Database {
        Database::connect(&self.url, self.dir.path(), &self.command)
    }

    fn socket(&self) -> PathBuf {
        self.url.socket_in(self.dir.path())
    }

    /// Runs a broker on a thread.
    fn serve(&self, idle: Duration) -> JoinHandle<Result<(), DatabaseError>> {
        let (path, url) = (self.socket(), self.url.clone());
        let serving = thread::spawn(move || serve(&path, &url, idle));
        until("the broker listens", || socket::connect(&self.socket()).is_ok());
        serving
    }

    /// The pids of all brokers that were started.
    fn pids(&self) -> Vec<String> {
        let lines = fs::read(&self.socket().with_extension("pids"), 1 << 20).unwrap();
        String::from_utf8(lines.unwrap_or_default()).unwrap().lines().map(str::to_owned).collect()
    }
}

fn connections(stage: &Stage) -> usize {
    let sql = "select 1 from pg_stat_activity where datname = current_database() \
               and application_name = 'phalanx' and pid <> pg_backend_pid()";
    // The stage has one of its own.
    stage.database.execute(sql).len() - 1
}

fn kill(pid: &str) {
    let args = ["-9", pid].map(OsString::from).to_vec();
    let cmd = ExecCommand { program: "kill".into(), args, env: None, cwd: None, stdin: Vec::new() };
    exec::run(&cmd, PATIENCE).expect("kill runs");
}

/// Reads the answer to request 7. The time of the server can come first.
fn read_answer(stream: &mut UnixStream) -> Result<Box<RawValue>, DatabaseError> {
    loop {
        match read_message(stream).unwrap() {
            BrokerMessage::Answer { id: 7, result } => return result,
            BrokerMessage::Push(Push::Clock { .. }) => {}
            other => panic!("no answer to the request: {other:?}"),
        }
    }
}

/// A client that speaks the protocol by itself.
fn raw_client(socket: &Path, request: Request) -> (UnixStream, String) {
    let mut stream = socket::connect(socket).expect("the broker listens");
    stream.write_all(&encode(&(7, request)).unwrap()).unwrap();
    let answer = read_answer(&mut stream).unwrap().get().to_owned();
    (stream, answer)
}

#[test]
fn many_processes_start_one_broker_which_ends_when_idle() {
    let Some(stage) = stage() else { return };
    let broker = BrokerStage::new(&stage);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert_eq!(broker.client().teams().unwrap(), [TEAM]));
        }
    });
    assert_eq!(broker.pids().len(), 1);
    until("it ends", || !fs::exists(&broker.socket()));
    until("its connection ends", || connections(&stage) == 0);
    assert_eq!(broker.client().teams().unwrap(), [TEAM], "the next one is started");
    assert_eq!(broker.pids().len(), 2);
}

#[test]
fn two_hundred_clients_share_one_connection() {
    let Some(stage) = stage() else { return };
    let broker = BrokerStage::new(&stage);
    let serving = broker.serve(Duration::from_secs(1));
    thread::scope(|scope| {
        for at in 0..200 {
            let broker = &broker;
            let stage = &stage;
            thread::Builder::new()
                .spawn_scoped(scope, move || {
                    let db = &broker.client();
                    for n in 0..5 {
                        send(db, &format!("{at}-{n}"));
                    }
                    if at == 100 {
                        assert_eq!(connections(stage), 1);
                    }
                })
                .unwrap();
        }
    });
    assert_eq!(stage.db.mail(TEAM, "ann", MailScope::All).unwrap().len(), 1000);
    serving.join().unwrap().unwrap();
    assert!(!fs::exists(&broker.socket()));
}

#[test]
fn garbage_and_half_messages_disturb_no_other_client() {
    let Some(stage) = stage() else { return };
    let broker = BrokerStage::new(&stage);
    let serving = broker.serve(Duration::from_millis(300));
    let db = broker.client();
    let whole = encode(&(1, Request::Release(1))).unwrap();
    let garbage: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\x05hello",
        b"\0\0\0\x02{}",
        b"\0\0",
        &whole[..whole.len() - 3],
    ];
    for bytes in garbage {
        let mut stream = socket::connect(&broker.socket()).unwrap();
        stream.write_all(bytes).unwrap();
        assert_eq!(db.teams().unwrap(), [TEAM]);
        if bytes.starts_with(b"GET") {
            // News of the store may have been sent to it before.
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let end = stream.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
            assert_ne!(end, Err(io::ErrorKind::WouldBlock), "it is disconnected");
        }
    }
    drop(db);
    serving.join().unwrap().unwrap();
}

#[test]
fn holds_of_a_killed_client_are_released() {
    let Some(stage) = stage() else { return };
    let broker = BrokerStage::new(&stage);
    let serving = broker.serve(Duration::from_millis(300));
    let lock = |handle| Request::Lock {
        handle,
        actor: Actor::default(),
        team: TEAM.to_owned(),
        name: "roster".to_owned(),
        deadline_ms: 60_000,
    };
    let (holder, answer) = raw_client(&broker.socket(), lock(1));
    assert_eq!(answer, "true");
    let lease = Request::TakeLease { handle: 1, actor: Actor::default(), team: TEAM.to_owned() };
    let (leader, answer) = raw_client(&broker.socket(), lease);
    assert_eq!(answer, "1");
    // A client that dies while it waits for the lock.
    let mut waiter = socket::connect(&broker.socket()).unwrap();
    waiter.write_all(&encode(&(1, lock(9))).unwrap()).unwrap();
    assert!(stage.db.lock(TEAM, "roster", Duration::from_millis(50)).unwrap().is_none());
    assert!(stage.db.take_lease(TEAM).unwrap().is_none());
    drop(waiter);
    drop(holder);
    drop(leader);
    assert!(stage.db.lock(TEAM, "roster", Duration::from_secs(5)).unwrap().is_some());
    until("the lease is free", || stage.db.take_lease(TEAM).unwrap().is_some());
    serving.join().unwrap().unwrap();
}

#[test]
fn killed_broker_is_replaced_and_its_holds_are_lost() {
    let Some(stage) = stage() else { return };
    let broker = BrokerStage::new(&stage);
    let db = broker.client();
    let lock = db.lock(TEAM, "roster", PATIENCE).unwrap().expect("free");
    let lease = db.take_lease(TEAM).unwrap().expect("free");
    let (sender, changes) = channel();
    let _subscription =
        db.subscribe(TEAM, &Interest::All, move |change| drop(sender.send(change))).unwrap();
    for round in 0..3 {
        kill(broker.pids().last().expect("a broker was started"));
        send(&db, &round.to_string());
        while changes.recv_timeout(PATIENCE).unwrap() != StoreChange::Everything {}
    }
    assert!(lock.is_lost() && lease.is_lost());
    until("the lease is free", || stage.db.take_lease(TEAM).unwrap().is_some());
    stage.db.append_mail(TEAM, "bob", "bob", &[message("m")], &[]).unwrap();
    while changes.recv_timeout(PATIENCE).unwrap() != StoreChange::Mail("bob".to_owned()) {}
    assert_eq!(db.mail(TEAM, "ann", MailScope::All).unwrap().len(), 3);
}

#[test]
fn large_documents_pass_through_the_broker() {
    let Some(stage) = stage() else { return };
    let broker = BrokerStage::new(&stage);
    let serving = broker.serve(Duration::from_millis(300));
    let db = broker.client();
    let body = format!("\"{}\"", "é\\n".repeat(20 << 20 >> 2));
    db.put_document(TEAM, &member_document("ann", &body), None).unwrap().expect("new");
    let stored = db.document(TEAM, DocumentKind::Member, "ann").unwrap().expect("stored");
    assert!(stored.body == body, "byte for byte");
    drop(db);
    serving.join().unwrap().unwrap();
}

#[test]
fn errors_of_the_database_reach_the_clients() {
    let Some(stage) = stage() else { return };
    let broker = BrokerStage::new(&stage);
    let serving = broker.serve(Duration::from_millis(300));
    let db = broker.client();
    let missing = DatabaseError::NoSuchTeam { team: "none".to_owned() };
    assert_eq!(db.document("none", DocumentKind::Config, "").unwrap_err(), missing);
    assert_eq!(db.subscribe("none", &Interest::All, drop).unwrap_err(), missing);
    let arguments = RawValue::from_string("{}".to_owned()).unwrap();
    let request = Request::Call { function: "x('');drop".to_owned(), arguments };
    let mut stream = socket::connect(&broker.socket()).unwrap();
    stream.write_all(&encode(&(7, request)).unwrap()).unwrap();
    let answer = read_answer(&mut stream);
    assert!(answer.is_err(), "{answer:?}");
    drop((db, stream));
    serving.join().unwrap().unwrap();
}

#[test]
fn documents_are_read_from_memory_until_they_change() {
    let Some(stage) = stage() else { return };
    let broker = BrokerStage::new(&stage);
    let serving = broker.serve(Duration::from_millis(300));
    let db = broker.client();
    let read = || db.document(TEAM, DocumentKind::Member, "ann").unwrap().map(|d| d.body);
    // Changes a row without a notification, as no call does.
    let tamper = |body: &str| {
        stage
            .database
            .execute(&format!("update phalanx.document set body = '{body}' where kind = 'member'"));
    };
    let first = db.put_document(TEAM, &member_document("ann", "1"), None).unwrap();
    let mut round = 0;
    until("replies are kept", || {
        round += 1;
        tamper(&format!("unseen {round}"));
        read() != Some(format!("unseen {round}"))
    });

    let second = stage.db.put_document(TEAM, &member_document("ann", "3"), first).unwrap();
    until("the change is seen", || read().as_deref() == Some("3"));
    let third = db.put_document(TEAM, &member_document("ann", "4"), second).unwrap();
    assert_eq!(read().as_deref(), Some("4"), "a client reads its own write at once");

    assert_eq!(read().as_deref(), Some("4"));
    tamper("5");
    assert_eq!(read().as_deref(), Some("4"));
    disconnect(&stage.database);
    until("a lost connection empties the cache", || read().as_deref() == Some("5"));
    stage.db.delete_document(TEAM, DocumentKind::Member, "ann", third.expect("written")).unwrap();
    until("the removal is seen", || read().is_none());
    stage.db.delete_team(TEAM).unwrap();
    let missing = DatabaseError::NoSuchTeam { team: TEAM.to_owned() };
    until("the end of the team is seen", || {
        db.document(TEAM, DocumentKind::Member, "ann").err() == Some(missing.clone())
    });
    drop(db);
    serving.join().unwrap().unwrap();
}

#[test]
fn cached_documents_are_never_older_than_what_a_client_has_seen() {
    let Some(stage) = stage() else { return };
    let broker = BrokerStage::new(&stage);
    let serving = broker.serve(Duration::from_millis(300));
    let readers: Vec<_> = (0..4).map(|_| broker.client()).collect();
    let mut version = stage.db.put_document(TEAM, &member_document("ann", "0"), None).unwrap();
    thread::scope(|scope| {
        for db in &readers {
            scope.spawn(move || {
                let mut last = 0;
                while last < 300 {
                    let now = db.document(TEAM, DocumentKind::Member, "ann").unwrap().unwrap();
                    let now: u64 = now.body.parse().unwrap();
                    assert!(now >= last, "{now} after {last}");
                    last = now;
                }
            });
        }
        for n in 1..=300 {
            let body = n.to_string();
            version = stage.db.put_document(TEAM, &member_document("ann", &body), version).unwrap();
            assert!(version.is_some());
        }
    });
    drop(readers);
    serving.join().unwrap().unwrap();
}
