//! Lost connections, restarts of the server, and lost replies.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::fixture::TestCluster;
use crate::{Appended, LogKind, MailScope, TaskScope};

#[test]
fn calls_during_a_restart_of_the_server_succeed_after_it() {
    let Some(cluster) = TestCluster::start(&[]) else { return };
    let database = TestDatabase::of(cluster);
    Database::init(&database.store_url()).unwrap();
    let stage = stage_on(database);
    let cluster = stage.database.cluster();
    let is_over = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (db, is_over) = (&stage.db, &is_over);
                scope.spawn(move || {
                    let mut sent = 0;
                    while !is_over.load(Ordering::SeqCst) {
                        send(db, &format!("{writer}-{sent}"));
                        sent += 1;
                    }
                    sent
                })
            })
            .collect();
        for mode in ["fast", "immediate"] {
            cluster.stop(mode);
            clock::sleep(Duration::from_millis(300));
            cluster.start_again();
            until("the server is used", || stage.db.log_end(TEAM, LogKind::Journal).is_ok());
        }
        is_over.store(true, Ordering::SeqCst);
        writers.into_iter().map(|writer| writer.join().unwrap()).sum::<usize>()
    });
    assert_eq!(stage.db.mail(TEAM, "ann", MailScope::All).unwrap().len(), sent);
}

/// Forwards connections to the server, and can cut them before a reply passes.
struct LossyProxy {
    port: u16,
    /// The next bytes from the server are dropped, and the connection with them.
    drops: Arc<AtomicBool>,
}

impl LossyProxy {
    fn start(server: u16) -> LossyProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let drops = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&drops);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let (to, from) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                thread::spawn(move || forward(from, to, None));
                let drops = Arc::clone(&shared);
                thread::spawn(move || forward(server, client, Some(&drops)));
            }
        });
        LossyProxy { port, drops }
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, drops: Option<&AtomicBool>) {
    let mut bytes = [0; 65536];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if drops.is_some_and(|drops| drops.swap(false, Ordering::SeqCst)) {
            break;
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
fn change_whose_reply_is_lost_after_its_commit_is_made_once() {
    let Some(stage) = stage() else { return };
    let url = stage.database.url();
    let (_, after) = url.split_once("127.0.0.1:").expect("loopback");
    let (port, _) = after.split_once('/').expect("a database");
    let proxy = LossyProxy::start(port.parse().expect("a port"));
    let through = url.replace(&format!(":{port}/"), &format!(":{}/", proxy.port));
    let db = Database::direct(&StoreUrl::parse(&through).unwrap());
    db.teams().unwrap();
    let batch: Vec<_> = (1..=20).map(new_task).collect();
    db.put_tasks(TEAM, &batch, 20).unwrap().expect("new");
    let lose_reply = || proxy.drops.store(true, Ordering::SeqCst);
    let used = || assert!(!proxy.drops.load(Ordering::SeqCst), "the reply was dropped");

    for n in 0..10 {
        lose_reply();
        let stored =
            db.append_mail(TEAM, "ann", "ann", &[message(&n.to_string())], &[line(&n.to_string())]);
        assert_eq!(stored.unwrap(), Appended::Stored(vec![n.to_string()]));
        used();
        lose_reply();
        let delivered = db.deliver_mail(TEAM, "ann", &[n.to_string()], n % 2 == 0).unwrap();
        assert_eq!(delivered, [n.to_string()]);
        used();
        lose_reply();
        let ClaimReply::Claimed(task) = claim_as(&db, "ann", ClaimScope::Task(n + 1), None, false)
        else {
            panic!("task {} is free", n + 1);
        };
        used();
        lose_reply();
        let done =
            TaskWrite { expected: Some(task.version), state: "completed", ..new_task(task.id) };
        assert!(db.put_tasks(TEAM, &[done], 0).unwrap().is_some());
        used();
        lose_reply();
        let key = n.to_string();
        let version = db.put_document(TEAM, &member_document(&key, "1"), None).unwrap();
        used();
        lose_reply();
        assert!(
            db.delete_document(TEAM, DocumentKind::Member, &key, version.expect("new")).unwrap()
        );
        used();
        lose_reply();
        assert!(db.create_mailbox(TEAM, &format!("box{n}")).unwrap());
        used();
        lose_reply();
        assert!(db.create_team(&format!("team{n}"), &[]).unwrap());
        used();
        lose_reply();
        assert!(db.delete_team(&format!("team{n}")).unwrap());
        used();
    }
    assert_eq!(stage.db.mail(TEAM, "ann", MailScope::All).unwrap().len(), 5);
    assert_eq!(stage.db.tasks(TEAM, &TaskScope::Open).unwrap().tasks.len(), 10);
    let scope = crate::LogScope::After { seq: 0, limit: 99 };
    // The line of each message, and that of each claim.
    assert_eq!(stage.db.log(TEAM, LogKind::Journal, &scope).unwrap().len(), 20);
}

#[test]
fn cut_connections_cost_no_message_and_duplicate_none() {
    let Some(stage) = stage() else { return };
    let is_over = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        let cutter = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                super::holds::disconnect(&stage.database);
                clock::sleep(Duration::from_millis(20));
            }
        });
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let db = &stage.db;
                scope.spawn(move || {
                    for n in 0..40 {
                        send(db, &format!("{writer}-{n}"));
                    }
                    40
                })
            })
            .collect();
        let sent = writers.into_iter().map(|writer| writer.join().unwrap()).sum::<usize>();
        is_over.store(true, Ordering::SeqCst);
        cutter.join().unwrap();
        sent
    });
    assert_eq!(stage.db.mail(TEAM, "ann", MailScope::All).unwrap().len(), sent);
}
