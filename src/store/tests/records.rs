//! Members' records and requests, which are not synced and may be torn by a power cut.

use super::mail::wrapped;
use super::*;
use fixture::sample;
use model::decisions::question::Question;
use model::decisions::request::ShutdownRequest;
use model::id::RequestId;
use model::members::lifecycle::MemberState;
use model::members::placement::ProcessId;
use model::members::record::{MemberRecord, StartRecord};
use model::team::event::{Event, Note};
use sys::env;
use sys::proc::{self, Liveness, Process};

fn record(team: &TeamStore, name: &str) -> Option<MemberRecord> {
    team.member_record(&who(name)).expect("readable")
}

fn request(of: &str) -> ShutdownRequest {
    sample::shutdown(RequestId::shutdown(NOW.0, &who(of)), of, sample::run(0), NOW, NOW)
}

#[test]
fn torn_record_counts_as_missing_and_blocks_no_other() {
    let (_dir, team) = fresh();
    wrapped(&team, "ann", "worker");
    wrapped(&team, "bob", "worker");
    let path = team.layout.member(&who("ann"));
    let whole = raw(&path);
    for torn in ["", &whole[..whole.len() / 2], &"\0".repeat(whole.len())] {
        fs::write_atomic(&path, torn.as_bytes()).expect("written");
        assert_eq!(record(&team, "ann"), None, "{torn:?}");
        let others = team.member_records().expect("the others are read");
        assert_eq!(others.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["bob"]);
        let run = &others[0].incarnation;
        let changed = team.change_record(&who("ann"), run, |_| ()).expect("no run of that name");
        assert_eq!(changed, None);
    }
    let new_run = MemberRecord { name: who("ann"), ..record(&team, "bob").expect("bob's") };
    team.begin_record(&new_run).expect("a new run begins");
    assert_eq!(record(&team, "ann"), Some(new_run));
    let events = team.events().expect("events");
    assert_eq!(events.iter().filter(|e| e.event == EventKind::FileQuarantined).count(), 3);
}

#[test]
fn record_of_another_form_is_journaled_and_hides_no_other() {
    let (_dir, team) = fresh();
    wrapped(&team, "ann", "worker");
    wrapped(&team, "bob", "worker");
    let path = team.layout.member(&who("ann"));
    fs::write_atomic(&path, br#"{"format": 1, "name": ["ann"]}"#).expect("written");
    let records = team.member_records().expect("the others are read");
    assert_eq!(records.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["bob"]);
    let named = team.events().expect("events");
    let named = named.iter().find(|event| event.event == EventKind::FileQuarantined);
    assert_eq!(named.expect("the file is named").detail["path"], json!(path.to_string_lossy()));
    let alone = team.member_record(&who("ann"));
    assert!(matches!(alone, Err(StoreError::Corrupt { .. })), "{alone:?}");
}

#[test]
fn empty_request_does_not_hide_other_requests() {
    let (_dir, team) = fresh();
    for name in ["ann", "bob"] {
        assert!(team.file_request(&request(name)).expect("filed"));
    }
    fs::write_atomic(&team.layout.request(&request("ann").id), b"").expect("written");
    assert_eq!(team.requests().expect("requests"), [request("bob")]);
    let lost = team.request(&request("ann").id);
    assert!(matches!(lost, Err(StoreError::NoSuchRequest { .. })), "{lost:?}");
}

/// CR-20: also if a start was cut, and its record is still there when the next one begins.
#[test]
fn cr_20_run_before_is_valid_again_after_starts_that_fail() {
    on_both_stores(|team| {
        join(team, "ann");
        let of = |nth| {
            let record = sample::record("ann", sample::run(nth), "worker", NOW);
            MemberRecord { host: team.host().cloned(), ..record }
        };
        let over = |record: &mut MemberRecord| record.state = MemberState::Failed;
        let me = Process::current();
        // The second one was cut: no process with this start time is there.
        let starts = [(2, me.start + 1), (3, me.start)];
        let first = MemberRecord { session: Some("s-1".to_owned()), ..of(1) };
        team.begin_record(&first).expect("a record");
        team.change_record(&first.name, &first.incarnation, over).expect("written");
        let before = record(team, "ann").expect("a record");
        for (nth, start) in starts {
            let spawner = Some(ProcessId { pid: me.pid, start });
            team.begin_record(&MemberRecord { spawner, ..of(nth) }).expect("a record");
            let found = record(team, "ann").expect("a record");
            assert_eq!(found.before.as_deref(), Some(&before), "run {nth}");
        }
        team.forget_record(&first.name, &sample::run(2)).expect("not the latest");
        assert!(record(team, "ann").expect("a record").is(&sample::run(3)));
        team.forget_record(&first.name, &sample::run(3)).expect("withdrawn");
        assert_eq!(record(team, "ann"), Some(before));
        team.forget_record(&first.name, &sample::run(1)).expect("withdrawn");
        assert_eq!(record(team, "ann"), None);
    });
}

/// CR-05: pid and start time identify a process within one boot only. Older records do not name the
/// boot.
#[test]
fn cr_05_process_of_an_earlier_boot_is_dead_if_pid_is_reused() {
    let (_dir, team) = fresh();
    wrapped(&team, "ann", "worker");
    let run = record(&team, "ann").expect("a record").incarnation;
    let (me, own) = (Process::current(), env::boot_id());
    assert_ne!(own, "");
    let here = ProcessId { pid: me.pid, start: me.start };
    for (boot, liveness) in [
        (None, Liveness::Alive),
        (Some(own.as_str()), Liveness::Alive),
        (Some("00000000-0000-4000-8000-000000000000"), Liveness::Dead),
    ] {
        let start = StartRecord {
            launcher: here,
            program: here,
            tty: None,
            socket: None,
            cwd: "/".to_owned(),
            at: NOW,
        };
        let set_start = |record: &mut MemberRecord| {
            record.boot_id = boot.map(str::to_owned);
            (record.start, record.spawner) = (Some(start.clone()), Some(here));
        };
        team.change_record(&who("ann"), &run, set_start).expect("written");
        let found = record(&team, "ann").expect("a record");
        let seen = [found.launcher(), found.spawner, found.start.map(|start| start.program)];
        let seen = seen.map(|process| process.map(|it| proc::liveness(it.pid, it.start)));
        assert_eq!(seen, [Some(liveness); 3], "{boot:?}");
        let kept = raw(&team.layout.member(&who("ann")));
        assert!(
            kept.contains(&format!("\"start\": {}", me.start)),
            "the file keeps what was written: {kept}"
        );
    }
}

#[test]
fn pm_14_whoever_sends_a_reply_it_is_recorded_once_before_the_call_returns() {
    on_both_stores(|team| {
        join(team, "ann");
        for round in 0..20 {
            let (asked, reply) = (format!("perm-{round}"), format!("reply-{round}"));
            let question: Question = serde_json::from_value(json!({
                "format": 1, "id": asked, "kind": "permission", "from": "ann", "msg_id": "m", "asked_at": 1,
                "deadline_at": 2, "message": "{}", "event": "e",
                "decision": {"outcome": "allowed", "by": "team-lead", "at": 1, "reply": reply},
            }))
            .expect("a question");
            assert!(team.file_question(&question).expect("filed"));
            let envelope = message("team-lead", "yes", &reply);
            let is_ours = |event: &Event| event.id == reply;
            let note = Note { id: Some(reply.clone()), ..Note::of(EventKind::MessageSent) };
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        team.send_reply(&question.id, &envelope, &note).expect("sent");
                        let events = team.events().expect("the journal");
                        assert_eq!(
                            events.iter().filter(|event| is_ours(event)).count(),
                            1,
                            "{round}"
                        );
                    });
                }
            });
        }
        assert_eq!(team.mailbox(&who("ann")).unread().expect("mail").len(), 20);
    });
}
