//! Each message of the protocol in words.

use std::collections::BTreeSet;

use super::*;
use model::time::Timestamp;

/// A message of each kind.
pub(crate) const PROTOCOL: [&str; 15] = [
    r#"{"type":"shutdown_request","requestId":"shutdown-1@ann","from":"team-lead"}"#,
    r#"{"type":"shutdown_approved","requestId":"shutdown-1@ann","from":"bob"}"#,
    r#"{"type":"shutdown_rejected","requestId":"shutdown-1@ann","from":"bob","reason":"busy"}"#,
    r#"{"type":"plan_approval_request","from":"bob","requestId":"p-1","planContent":"text"}"#,
    r#"{"type":"plan_approval_response","requestId":"p-1","approved":true}"#,
    r#"{"type":"permission_request","request_id":"q-1","tool_name":"Bash","input":{}}"#,
    r#"{"type":"permission_response","request_id":"q-1","subtype":"error","error":"no"}"#,
    r#"{"type":"sandbox_permission_request","requestId":"s-1","host":"example.com"}"#,
    r#"{"type":"sandbox_permission_response","requestId":"s-1","host":"example.com","allow":true}"#,
    r#"{"type":"idle_notification","from":"bob","summary":"done"}"#,
    r#"{"type":"task_assignment","taskId":"3","subject":"Build","description":"all\n of it"}"#,
    r#"{"type":"task_completed","from":"bob","taskId":"3","taskSubject":"Build"}"#,
    r#"{"type":"team_permission_update","permissionUpdate":{"type":"addRules"},"toolName":"Edit"}"#,
    r#"{"type":"mode_set_request","mode":"plan"}"#,
    r#"{"type":"teammate_terminated","message":"bob has shut down."}"#,
];

fn words_of(from: &str, text: &str) -> String {
    for_teammate(Envelope::new(from, text, "m".to_owned(), Timestamp(1))).text
}

#[test]
fn list_of_the_protocol_has_each_kind_once() {
    let messages = PROTOCOL.map(Message::parse);
    let is_read = |message: &Message| {
        !matches!(message, Message::Text(_) | Message::Unknown { .. } | Message::Malformed { .. })
    };
    assert!(messages.iter().all(is_read), "{messages:?}");
    let kinds: BTreeSet<&str> = messages.iter().map(Message::kind).collect();
    assert_eq!(kinds.len(), PROTOCOL.len());
}

#[test]
fn task_that_is_assigned_is_told_in_one_line() {
    let cases = [
        (
            PROTOCOL[10],
            "Task #3 \"Build\" is assigned to you: all of it. `phalanx task get 3` shows the whole \
             task.",
        ),
        (
            r#"{"type":"task_assignment","taskId":"4"}"#,
            "Task #4 is assigned to you. `phalanx task get 4` shows the whole task.",
        ),
    ];
    for (text, words) in cases {
        for from in [LEAD, "bob"] {
            assert_eq!(words_of(from, text), words);
            let envelope = Envelope::new(from, text, "m".to_owned(), Timestamp(1));
            assert_eq!(for_lead(envelope).text, words);
        }
    }
}

#[test]
fn answers_and_notices_are_told_in_words() {
    let cases = [
        (LEAD, PROTOCOL[8], "Your request `s-1` to connect to example.com is allowed."),
        ("bob", PROTOCOL[11], "I completed task #3: Build."),
        ("system", PROTOCOL[14], "bob has shut down."),
    ];
    for (from, text, words) in cases {
        assert_eq!(words_of(from, text), words);
    }
}

#[test]
fn sec_04_answer_of_another_sender_is_told_without_its_content() {
    let kinds = [
        ("bob", PROTOCOL[4], "plan_approval_response"),
        ("Team-Lead", PROTOCOL[6], "permission_response"),
        ("system", PROTOCOL[8], "sandbox_permission_response"),
        ("bob", PROTOCOL[14], "teammate_terminated"),
    ];
    for (from, text, kind) in kinds {
        let words = format!("A `{kind}` that I may not send. It has no effect.");
        assert_eq!(words_of(from, text), words, "{from}");
    }
}

#[test]
fn text_and_unknown_types_are_unchanged() {
    let texts =
        ["as it is\n", r#"{"type":"dev_blocker","task":"a/b"}"#, r#"{"type":"task_assignment"}"#];
    for text in texts {
        assert_eq!(words_of("bob", text), text);
    }
}
