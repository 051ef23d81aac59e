//! Tests of the protocol as a whole: golden files, texts that are not messages, and permitted
//! senders.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::id::MemberName;
use crate::mail::envelope::Envelope;
use crate::team::Team;
use crate::wire::Object;

/// A golden file: the kind, and the pretty-printed text of a mailbox entry.
macro_rules! golden {
    ($($kind:literal),* $(,)?) => {
        [$(($kind, include_str!(concat!("../../../../fixtures/wire/", $kind, ".json")))),*]
    };
}

const GOLDEN: [(&str, &str); 15] = golden![
    "shutdown_request",
    "shutdown_approved",
    "shutdown_rejected",
    "plan_approval_request",
    "plan_approval_response",
    "permission_request",
    "permission_response",
    "sandbox_permission_request",
    "sandbox_permission_response",
    "idle_notification",
    "task_assignment",
    "task_completed",
    "team_permission_update",
    "mode_set_request",
    "teammate_terminated",
];

/// Removes white space from JSON and keeps the order of keys.
fn compact(text: &str) -> String {
    serde_json::from_str::<Value>(text).expect("a golden file is JSON").to_string()
}

#[test]
fn golden_files_round_trip_with_their_key_order() {
    for (kind, text) in GOLDEN {
        let message = Message::parse(text);
        assert_eq!(message.kind(), kind);
        assert!(
            !matches!(message, Message::Unknown { .. } | Message::Malformed { .. }),
            "{message:?}"
        );
        assert_eq!(message.to_text(), compact(text));
        assert_eq!(Message::parse(&message.to_text()), message);
    }
}

/// The mailbox of a lead and the file of a team, as Claude Code of this version wrote them.
macro_rules! recorded {
    ($version:literal, $team:literal) => {
        (
            include_str!(concat!("../../../../fixtures/wire/", $version, "/team-lead.json")),
            include_str!(concat!("../../../../fixtures/wire/", $version, "/", $team, ".json")),
        )
    };
}

/// MSG-20: each message of a real mailbox is understood and can be written back as it was.
#[test]
fn msg_20_recorded_mailboxes_and_team_files_are_understood() {
    let recorded = [recorded!("2.1.34", "crew"), recorded!("2.1.332", "session")];
    for (mailbox, file) in recorded {
        let entries: Vec<Value> = serde_json::from_str(mailbox).expect("an array");
        let mut kinds = BTreeSet::new();
        for entry in &entries {
            let text = entry["text"].as_str().expect("a text");
            let message = Message::parse(text);
            let is_odd = matches!(message, Message::Unknown { .. } | Message::Malformed { .. });
            // The host of a request is read from a pattern, and never written back.
            let is_same = match &message {
                Message::SandboxPermissionRequest(ask) => ask.host == "docs.example",
                _ => message.to_text() == text,
            };
            assert!(!is_odd && is_same, "{message:?}");
            // 2.1.34 has no ids: they are derived.
            let written = Envelope::read(entry).to_entry();
            let given = entry.as_object().expect("an object");
            assert!(given.iter().all(|(key, value)| written.get(key) == Some(value)), "{entry}");
            kinds.insert(message.kind().to_owned());
        }
        let expected = [
            "idle_notification",
            "message",
            "permission_request",
            "plan_approval_request",
            "sandbox_permission_request",
            "shutdown_approved",
        ];
        assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        let object: Object = serde_json::from_str(file).expect("an object");
        let team = Team::read(&object);
        assert_eq!(team.members.len(), object["members"].as_array().map_or(0, Vec::len));
        assert!(team.member(&MemberName::lead()).is_some() && team.teammates().count() > 0);
    }
    let failed = serde_json::from_str::<Vec<Value>>(recorded[1].0).expect("an array");
    let failed = failed.iter().find_map(|entry| {
        match Message::parse(entry["text"].as_str().unwrap_or_default()) {
            Message::IdleNotification(idle) => idle.failure_reason,
            _ => None,
        }
    });
    assert!(failed.is_some_and(|why| why.starts_with("Please run /login")));
}

#[test]
fn denied_permission_round_trips() {
    let text = include_str!("../../../../fixtures/wire/permission_response_error.json");
    let message = Message::parse(text);
    assert!(matches!(message, Message::PermissionResponse(_)), "{message:?}");
    assert_eq!(message.to_text(), compact(text));
}

#[test]
fn text_of_both_mailbox_forms_is_plain() {
    let entries: Vec<Value> =
        serde_json::from_str(include_str!("../../../../fixtures/wire/message.json"))
            .expect("the mailbox is an array");
    assert_eq!(entries.len(), 2);
    for entry in entries {
        let text = entry["text"].as_str().expect("an entry has a text");
        assert_eq!(Message::parse(text), Message::Text(text.to_owned()));
        assert_eq!(Message::parse(text).kind(), "message");
    }
}

#[test]
fn only_a_single_json_object_is_a_message() {
    let request = r#"{"type":"shutdown_request","requestId":"shutdown-1@a"}"#;
    assert!(matches!(Message::parse(&format!(" \n{request}\t\n")), Message::ShutdownRequest(_)));
    for text in [
        format!("see {request}"),
        format!("{request} ok?"),
        format!("{request}{request}"),
        format!("```json\n{request}\n```"),
        format!("[{request}]"),
        format!("{request:?}"),
        format!("\u{feff}{request}"),
        r#"{"type":7}"#.to_owned(),
        r#"{"kind":"shutdown_request"}"#.to_owned(),
        r#"{"text":{"type":"shutdown_request","requestId":"s"}}"#.to_owned(),
        "{".to_owned(),
        String::new(),
    ] {
        assert_eq!(Message::parse(&text), Message::Text(text.clone()));
        assert_eq!(Message::parse(&text).to_text(), text);
    }
}

#[test]
fn too_long_or_too_deeply_nested_json_is_text() {
    let with_reason = |reason: &str| {
        format!(r#"{{"type":"shutdown_request","requestId":"shutdown-1@a","reason":"{reason}"}}"#)
    };
    let room = MAX_PROTOCOL_BYTES - with_reason("").len();
    assert!(matches!(Message::parse(&with_reason(&"x".repeat(room))), Message::ShutdownRequest(_)));
    assert!(matches!(Message::parse(&with_reason(&"x".repeat(room + 1))), Message::Text(_)));
    let deep = format!(
        r#"{{"type":"idle_notification","result":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert!(matches!(Message::parse(&deep), Message::Text(_)));
}

#[test]
fn serde_json_internal_keys_do_no_harm() {
    // serde_json takes an object with one of these keys for a number or for raw JSON. Node sees an
    // object.
    for inner in [
        r#"{"$serde_json::private::Number":"7"}"#,
        r#"{"$serde_json::private::Number":"x"}"#,
        r#"{"$serde_json::private::RawValue":"[1,"}"#,
    ] {
        let message = Message::parse(&format!(
            r#"{{"type":"shutdown_request","requestId":"s","reason":{inner}}}"#
        ));
        assert!(matches!(message, Message::ShutdownRequest(_) | Message::Text(_)), "{message:?}");
        assert_eq!(Message::parse(&message.to_text()), message);
    }
}

#[test]
fn unknown_kind_is_kept_verbatim() {
    for kind in ["party_invitation", "shutdown_response", "message", ""] {
        let raw = format!(" {{ \"type\": \"{kind}\", \"n\": 1.0 }}\n");
        let message = Message::parse(&raw);
        assert_eq!(message, Message::Unknown { kind: kind.to_owned(), raw: raw.clone() });
        assert_eq!((message.kind(), message.to_text()), (kind, raw));
    }
}

#[test]
fn each_kind_is_malformed_without_its_required_field() {
    let missing = [
        ("shutdown_request", "`requestId` is missing"),
        ("shutdown_approved", "`requestId` is missing"),
        ("shutdown_rejected", "`requestId` is missing"),
        ("plan_approval_request", "`requestId` is missing"),
        ("plan_approval_response", "`requestId` is missing"),
        ("permission_request", "`request_id` is missing"),
        ("permission_response", "`request_id` is missing"),
        ("sandbox_permission_request", "`requestId` is missing"),
        ("sandbox_permission_response", "`requestId` is missing"),
        ("task_assignment", "`taskId` is missing"),
        ("task_completed", "`taskId` is missing"),
        ("team_permission_update", "`permissionUpdate` is missing"),
        ("mode_set_request", "`mode` is missing"),
        ("teammate_terminated", "`message` is missing"),
    ];
    for (kind, expected) in missing {
        let raw = format!(r#"{{"type":"{kind}"}}"#);
        let Message::Malformed { kind: found, problem, raw: kept } = Message::parse(&raw) else {
            panic!("{kind} was taken without its fields")
        };
        assert_eq!((found.as_str(), problem.as_str(), kept), (kind, expected, raw));
    }
}

/// Claude Code names the host of a network request in a pattern.
#[test]
fn host_of_a_request_is_read_by_itself_and_in_a_pattern() {
    let ask = |host: &str| {
        let text = format!(
            r#"{{"type":"sandbox_permission_request","requestId":"r-1","workerId":"ann@demo",
                "workerName":"ann","workerColor":"blue",{host},"createdAt":1795214670250}}"#
        );
        match Message::parse(&text) {
            Message::SandboxPermissionRequest(ask) => Ok(ask.host),
            Message::Malformed { problem, .. } => Err(problem),
            other => panic!("{other:?}"),
        }
    };
    let host = || Ok("example.org".to_owned());
    assert_eq!(ask(r#""host":"example.org""#), host());
    assert_eq!(ask(r#""hostPattern":{"host":"example.org"}"#), host());
    for bad in [r#""host":"""#, r#""host":7"#, r#""hostPattern":{}"#, r#""hostPattern":"x""#] {
        assert!(ask(bad).is_err_and(|problem| problem.contains("`host`")), "{bad}");
    }
}

#[test]
fn senders_are_limited_by_message_kind() {
    use SenderRole::{Lead, Member, System};
    let allowed: [&[SenderRole]; 15] = [
        &[Lead],
        &[Member],
        &[Member],
        &[Member],
        &[Lead],
        &[Member],
        &[Lead],
        &[Member],
        &[Lead],
        &[Member],
        &[Lead, Member],
        &[Member],
        &[Lead],
        &[Lead],
        &[System],
    ];
    for ((kind, text), speakers) in GOLDEN.iter().zip(allowed) {
        let message = Message::parse(text);
        for speaker in [Lead, Member, System] {
            assert_eq!(
                may_send(speaker, &message),
                speakers.contains(&speaker),
                "{speaker:?} {kind}"
            );
        }
    }
    for text in ["hello", r#"{"type":"party_invitation"}"#, r#"{"type":"shutdown_request"}"#] {
        for speaker in [Lead, Member, System] {
            assert!(may_send(speaker, &Message::parse(text)));
        }
    }
}

/// Arbitrary JSON, a few levels deep.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A golden message with some fields replaced by arbitrary JSON.
fn damaged() -> impl Strategy<Value = String> {
    (0..GOLDEN.len(), prop::collection::vec((any::<prop::sample::Index>(), json()), 0..4)).prop_map(
        |(nth, changes)| {
            let mut value: Value =
                serde_json::from_str(GOLDEN[nth].1).expect("a golden file is JSON");
            if let Some(object) = value.as_object_mut() {
                let keys: Vec<String> = object.keys().cloned().collect();
                for (which, other) in changes {
                    object.insert(which.get(&keys).clone(), other);
                }
            }
            value.to_string()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parsing_never_panics_on_text(text in "\\PC*") {
        let message = Message::parse(&text);
        prop_assert_eq!(message.to_text().is_empty(), text.is_empty());
    }

    #[test]
    fn written_messages_are_read_back_unchanged(text in prop_oneof![damaged(), json().prop_map(|v| v.to_string())]) {
        let message = Message::parse(&text);
        prop_assert_eq!(Message::parse(&message.to_text()), message);
    }
}
