//! Locks, leases and subscriptions.

use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::fixture::execute;
use crate::{DatabaseError, Interest, StoreChange, Subscription};

#[test]
fn lock_excludes_other_connections_until_it_is_dropped() {
    let Some(stage) = stage() else { return };
    let other = connect(&stage.database);
    let lock = stage.db.lock(TEAM, "roster", PATIENCE).unwrap().expect("free");
    assert!(other.lock(TEAM, "roster", Duration::from_millis(60)).unwrap().is_none());
    assert!(stage.db.lock(TEAM, "roster", Duration::ZERO).unwrap().is_none());
    assert!(other.lock(TEAM, "other", Duration::ZERO).unwrap().is_some());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock(TEAM, "roster", PATIENCE).unwrap().is_some());
        drop(lock);
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn expired_lock_is_free_and_its_holder_cannot_overwrite() {
    let Some(stage) = stage() else { return };
    let other = connect(&stage.database);
    let lock = stage.db.lock(TEAM, "task-list", PATIENCE).unwrap().expect("free");
    assert!(!lock.is_lost());
    stage.database.execute("update phalanx.lock set until = now() - interval '1 s'");
    let theirs = other.lock(TEAM, "task-list", Duration::ZERO).unwrap().expect("expired");
    drop(lock);
    assert!(
        stage.db.lock(TEAM, "task-list", Duration::ZERO).unwrap().is_none(),
        "the former holder does not release the lock of the next one"
    );
    drop(theirs);
}

#[test]
fn lock_of_the_task_list_waits_for_claims_in_flight() {
    let Some(stage) = stage() else { return };
    let url = stage.database.url();
    stage.db.put_tasks(TEAM, &[new_task(1)], 1).unwrap().expect("new");
    let claim = format!(
        "begin; select phalanx.claim('{{\"team\":\"{TEAM}\",\"scope\":\"command\",\"by\":\"a\",\
         \"at\":1,\"event\":\"e\",\"who\":\"a\",\"role\":null,\"busy_check\":false,\
         \"line\":\"\"}}'); \
         select pg_sleep(0.5); commit"
    );
    let begun = Deadline::after(PATIENCE);
    let claiming = std::thread::spawn(move || execute(&url, &claim));
    until("the claim is in flight", || {
        let sql = "select 1 from pg_stat_activity \
                   where datname = current_database() and wait_event = 'PgSleep'";
        !stage.database.execute(sql).is_empty()
    });
    let lock = stage.db.lock(TEAM, "task-list", PATIENCE).unwrap();
    assert!(lock.is_some() && begun.elapsed() >= Duration::from_millis(450));
    let tasks = stage.db.tasks(TEAM, &crate::TaskScope::All).unwrap().tasks;
    assert!(tasks[0].claim.is_some(), "the claim is visible under the lock");
    claiming.join().unwrap().unwrap();
}

#[test]
fn second_lease_is_refused_and_numbers_grow() {
    let Some(stage) = stage() else { return };
    let other = connect(&stage.database);
    assert!(!stage.db.is_led(TEAM).unwrap());
    let first = stage.db.take_lease(TEAM).unwrap().expect("free");
    assert!(stage.db.is_led(TEAM).unwrap() && other.is_led(TEAM).unwrap());
    assert!(other.take_lease(TEAM).unwrap().is_none());
    assert!(stage.db.take_lease(TEAM).unwrap().is_none(), "also on the same connection");
    let number = first.number();
    drop(first);
    assert!(!other.is_led(TEAM).unwrap());
    let second = other.take_lease(TEAM).unwrap().expect("free");
    assert_eq!(second.number(), number + 1);
    let former = Actor { incarnation: None, fence: Some(number) };
    let write = member_document("ann", "1");
    let refused = stage.db.acting_as(former).put_document(TEAM, &write, None);
    assert_eq!(refused.unwrap_err(), DatabaseError::LeaseLost { team: TEAM.to_owned() });
    let current = Actor { incarnation: None, fence: Some(number + 1) };
    assert!(stage.db.acting_as(current).put_document(TEAM, &write, None).unwrap().is_some());
}

/// A lease that the server shows as free can be taken, also by a client of the same connection that
/// has not finished its release.
#[test]
fn lease_that_is_free_can_be_taken() {
    let Some(stage) = stage() else { return };
    for _ in 0..50 {
        let first = stage.db.take_lease(TEAM).unwrap().expect("free");
        std::thread::scope(|scope| {
            scope.spawn(|| drop(first));
            until("the lease is free", || !stage.db.is_led(TEAM).unwrap());
            assert!(stage.db.take_lease(TEAM).unwrap().is_some());
        });
    }
}

#[test]
fn lease_is_kept_with_its_number_when_the_connection_is_replaced() {
    let Some(stage) = stage() else { return };
    let lease = stage.db.take_lease(TEAM).unwrap().expect("free");
    disconnect(&stage.database);
    until("the lease is held again", || stage.db.is_led(TEAM).unwrap());
    assert!(!lease.is_lost());
    let actor = Actor { incarnation: None, fence: Some(lease.number()) };
    let write = member_document("ann", "1");
    assert!(stage.db.acting_as(actor).put_document(TEAM, &write, None).unwrap().is_some());
    let other = connect(&stage.database);
    assert!(other.take_lease(TEAM).unwrap().is_none());
}

#[test]
fn lease_is_taken_over_once_its_connection_is_gone_and_the_holder_learns_it() {
    let Some(stage) = stage() else { return };
    let lease = stage.db.take_lease(TEAM).unwrap().expect("free");
    // Another process acquires it before this one can connect again.
    let url = stage.database.url();
    let taken = format!(
        "begin;
         update pg_database set datallowconn = false where datname = current_database();
         commit;
         select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and pid <> pg_backend_pid();
         begin;
         do $$ begin
           while phalanx.take_lease('{{\"actor\":{{}},\"team\":\"{TEAM}\"}}')::text = 'null' loop
             perform pg_sleep(0.01);
           end loop;
         end $$;
         update pg_database set datallowconn = true where datname = current_database();
         commit;
         select pg_sleep(1.5)"
    );
    let other = std::thread::spawn(move || execute(&url, &taken));
    until("the loss is known", || lease.is_lost());
    let actor = Actor { incarnation: None, fence: Some(lease.number()) };
    let refused = stage.db.acting_as(actor).append_log(TEAM, crate::LogKind::Journal, &[]);
    assert_eq!(refused.unwrap_err(), DatabaseError::LeaseLost { team: TEAM.to_owned() });
    other.join().unwrap().unwrap();
    drop(lease);
    // The server ends a session some time after its client has gone.
    until("the lease is free again", || stage.db.take_lease(TEAM).unwrap().is_some());
}

/// Subscribes to changes of the team.
fn follow(db: &Database, interest: &Interest) -> (Subscription, Receiver<StoreChange>) {
    let (sender, changes) = channel();
    let send = move |change| drop(sender.send(change));
    (db.subscribe(TEAM, interest, send).unwrap(), changes)
}

fn wait_for(changes: &Receiver<StoreChange>, wanted: &StoreChange) {
    while changes.recv_timeout(PATIENCE).expect("a change") != *wanted {}
}

pub(super) fn disconnect(database: &TestDatabase) {
    database.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity \
         where datname = current_database() and pid <> pg_backend_pid()",
    );
}

#[test]
fn subscription_reports_each_kind_of_change() {
    let Some(stage) = stage() else { return };
    let other = connect(&stage.database);
    let (subscription, changes) = follow(&stage.db, &Interest::All);
    let next = || changes.recv_timeout(PATIENCE).expect("a change");
    other.put_document(TEAM, &member_document("a:b", "1"), None).unwrap();
    let (kind, key) = (DocumentKind::Member, "a:b".to_owned());
    assert_eq!(next(), StoreChange::Document { kind, key });
    other.append_mail(TEAM, "bob", "bob", &[message("m")], &[line("l")]).unwrap();
    assert_eq!([next(), next()], [StoreChange::Mail("bob".to_owned()), StoreChange::Journal]);
    stage.db.put_tasks(TEAM, &[new_task(1)], 1).unwrap();
    assert_eq!(next(), StoreChange::Tasks);
    claim_as(&other, "ann", ClaimScope::Command, None, false);
    assert_eq!([next(), next()], [StoreChange::Claim, StoreChange::Journal]);
    other.create_team("other", &[]).unwrap();
    other.delete_team(TEAM).unwrap();
    assert_eq!(next(), StoreChange::Everything);
    drop(subscription);
}

#[test]
fn subscription_of_a_member_reports_only_what_concerns_it() {
    let Some(stage) = stage() else { return };
    let other = connect(&stage.database);
    let (_of_ann, for_ann) = follow(&stage.db, &Interest::Member("ann".to_owned()));
    let (_of_records, records) = follow(&stage.db, &Interest::Records);
    for name in ["bob", "ann"] {
        other.append_mail(TEAM, name, name, &[message(name)], &[line(name)]).unwrap();
        other.put_document(TEAM, &member_document(name, "1"), None).unwrap();
    }
    other.put_tasks(TEAM, &[new_task(1)], 1).unwrap();
    claim_as(&other, "bob", ClaimScope::Command, None, false);
    other.delete_team(TEAM).unwrap();
    let record =
        |name: &str| StoreChange::Document { kind: DocumentKind::Member, key: name.to_owned() };
    let until_the_end = |changes: Receiver<StoreChange>| {
        let mut seen = vec![changes.recv_timeout(PATIENCE).expect("a change")];
        while *seen.last().expect("one at least") != StoreChange::Everything {
            seen.push(changes.recv_timeout(PATIENCE).expect("a change"));
        }
        seen
    };
    let mail = StoreChange::Mail("ann".to_owned());
    let end = StoreChange::Everything;
    assert_eq!(until_the_end(for_ann), [mail, record("ann"), StoreChange::Tasks, end.clone()]);
    assert_eq!(until_the_end(records), [record("bob"), record("ann"), end]);
}

#[test]
fn subscription_reports_everything_after_a_lost_connection() {
    let Some(stage) = stage() else { return };
    let (_subscription, changes) = follow(&stage.db, &Interest::All);
    disconnect(&stage.database);
    wait_for(&changes, &StoreChange::Everything);
    let other = connect(&stage.database);
    other.append_mail(TEAM, "bob", "bob", &[message("m")], &[]).unwrap();
    wait_for(&changes, &StoreChange::Mail("bob".to_owned()));
}
