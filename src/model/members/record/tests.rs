//! Records as they are stored, and what is read from them.

use super::*;
use crate::members::placement::TmuxPane;
use crate::members::readiness::{Readiness, ReadyCheck};

#[test]
fn record_round_trips_through_json() {
    let process = ProcessId { pid: 7, start: 99 };
    let record = MemberRecord {
        format: FORMAT,
        name: MemberName::new("alice").expect("name"),
        incarnation: Incarnation::parse("00000000-0000-4000-8000-000000000000").expect("uuid"),
        index: Some(2),
        token: "t".to_owned(),
        nonce: String::new(),
        state: MemberState::Idle,
        reason: None,
        state_since: Timestamp(2),
        backend: BackendKind::Tmux,
        request: LaunchRequest {
            profile: "worker".to_owned(),
            reads_mail: Some(true),
            native: Some(false),
            mode: Some(Mode::Plan),
            argv: vec!["x".to_owned()],
            command: vec!["{name}".to_owned()],
            wrap: vec!["direnv".to_owned()],
            env_file: Some(".env".to_owned()),
            ready: Some(ReadyCheck { port: Some("80{index}".to_owned()), ..ReadyCheck::default() }),
            cwd: "/".to_owned(),
            color: "blue".to_owned(),
            env: vec![("A".to_owned(), "b".to_owned())],
            ..LaunchRequest::default()
        },
        spawner: Some(process),
        asked_at: Timestamp(1),
        placement: Some(Placement::Tmux(TmuxPane {
            socket: "/s".to_owned(),
            server: process,
            session_id: "$0".to_owned(),
            session_name: "phalanx-x".to_owned(),
            window_id: "@0".to_owned(),
            window_name: "x".to_owned(),
            pane_id: "%0".to_owned(),
            pane: process,
        })),
        start: Some(StartRecord {
            socket: None,
            launcher: process,
            program: process,
            tty: None,
            cwd: "/".to_owned(),
            at: Timestamp(2),
        }),
        ready_at: None,
        exit: Some(ExitRecord { code: Some(3), at: Timestamp(4), ..ExitRecord::default() }),
        unresponsive: None,
        prompt: None,
        rate_limit: None,
        usage: None,
        reminded: None,
        session: Some("s-1".to_owned()),
        earlier_sessions: vec!["s-0".to_owned()],
        config_dir: Some("/c".to_owned()),
        turn_ended_at: Some(Timestamp(9)),
        readiness: Readiness { passed_at: Some(Timestamp(6)), overdue: Some("late".to_owned()) },
        restart: Some(PlannedRestart { failures: 2, at: Timestamp(10) }),
        gave_up_after: Some(5),
        before: None,
        boot_id: None,
        host: None,
        machine: None,
        is_elsewhere: false,
    };
    let text = serde_json::to_string(&record).expect("json");
    let back: MemberRecord = serde_json::from_str(&text).expect("json");
    assert_eq!(back, record);
    assert!(back.reads_mail());
}

#[test]
fn ending_names_code_or_signal_and_uptime() {
    assert_eq!(ending(Some(7), None, 50), "exited with code 7 after 50 ms");
    assert_eq!(ending(Some(0), None, 12_300), "exited with code 0 after 12s");
    assert_eq!(ending(None, Some(9), 1_500), "was ended by signal 9 after 1.5s");
}

#[test]
fn hangup_in_a_pane_means_the_pane_was_closed() {
    let record = |exit: serde_json::Value, backend: &str| -> MemberRecord {
        let process = serde_json::json!({"pid": 7, "start": 9});
        let placement = serde_json::json!({"tmux": {"socket": "/s", "server": process, "session_id": "$0",
            "session_name": "s", "window_id": "@0", "window_name": "w", "pane_id": "%0", "pane": process}});
        let mut record = serde_json::json!({
            "format": 1, "name": "a", "incarnation": "00000000-0000-4000-8000-000000000000", "token": "t",
            "state": "idle", "state_since": 1, "backend": backend, "asked_at": 1, "exit": exit,
            "wish": {"profile": "worker", "argv": ["x"], "cwd": "/", "color": "blue"},
        });
        if backend == "tmux" {
            record["placement"] = placement;
        }
        serde_json::from_value(record).expect("a record")
    };
    let hung_up = serde_json::json!({"signal": 1, "at": 5});
    let by_code = serde_json::json!({"code": 129, "at": 5});
    assert_eq!(record(hung_up.clone(), "tmux").end_reason(), "pane closed from outside");
    assert_eq!(record(by_code, "tmux").end_reason(), "pane closed from outside");
    assert_eq!(record(hung_up, "pty").end_reason(), "signal 1");
    assert_eq!(record(serde_json::json!(null), "tmux").end_reason(), "its process is gone");
}

#[test]
fn msg_16_older_record_reads_mail_unless_it_is_a_shell() {
    for (profile, said, reads) in [
        ("worker", None, true),
        ("shell", None, false),
        ("shell", Some(true), true),
        ("x", Some(false), false),
    ] {
        let mut request =
            serde_json::json!({"profile": profile, "argv": ["x"], "cwd": "/", "color": "blue"});
        if let Some(said) = said {
            request["reads_mail"] = said.into();
        }
        let record = serde_json::json!({
            "format": 1, "name": "a", "incarnation": "00000000-0000-4000-8000-000000000000", "token": "t",
            "state": "idle", "state_since": 1, "backend": "pty", "wish": request,
            "asked_at": 1,
        });
        let record: MemberRecord = serde_json::from_value(record).expect("a record");
        assert_eq!(record.reads_mail(), reads, "{profile} {said:?}");
    }
}

#[test]
fn host_of_the_same_name_on_another_machine_is_elsewhere() {
    use crate::sample;
    let host = HostName::new("build").expect("a name");
    let run = Incarnation::parse("00000000-0000-4000-8000-000000000000").expect("uuid");
    let record = MemberRecord {
        host: Some(host.clone()),
        machine: Some("one".to_owned()),
        ..sample::record("ann", run, "worker", Timestamp(1))
    };
    let is_elsewhere = |record: &MemberRecord, machine| {
        record.clone().seen_in("", Some(&host), machine).is_elsewhere
    };
    assert!(!is_elsewhere(&record, Some("one")));
    assert!(is_elsewhere(&record, Some("two")));
    assert!(!is_elsewhere(&record, None), "a machine without an id has only its name");
    let older = MemberRecord { machine: None, ..record };
    assert!(!is_elsewhere(&older, Some("two")));
}
