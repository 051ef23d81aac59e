//! The parsers of foreign files and messages, for fuzzing: each takes arbitrary bytes and must not
//! panic.

use serde_json::Value;

use acp::{Session, SessionReport, SessionStart};
use config::hosts;
use config::manifest::Manifest;
use database::{StoreUrl, parse_messages};
use diff::{DiffView, Patch};
use model::board::task::Task;
use model::id::TaskId;
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::team::Team;
use ops::hosts::parse_line;

/// Parses a mailbox and each text in it as a protocol message. Returns whether the bytes were JSON.
///
/// # Panics
/// If an entry that is written and read again differs.
#[must_use]
pub fn parse_mailbox(bytes: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return false };
    let entries = value.as_array().map_or(std::slice::from_ref(&value), Vec::as_slice);
    for envelope in entries.iter().map(Envelope::read) {
        let again = Envelope::read(&Value::Object(envelope.to_entry()));
        assert_eq!(again, envelope, "an entry that we write reads as what it was");
        let _ = Message::parse(&envelope.text);
    }
    true
}

/// Parses a team file. Returns true if it was an object whose members can all be found by name.
#[must_use]
pub fn parse_team(bytes: &[u8]) -> bool {
    let Ok(Value::Object(file)) = serde_json::from_slice(bytes) else { return false };
    let team = Team::read(&file);
    let _ = team.next_color();
    team.members.iter().all(|member| team.member(&member.name).is_some())
}

/// Parses a task file. Returns whether the bytes were a JSON object.
///
/// # Panics
/// If the task's state or owner differs after it is written and read again.
#[must_use]
pub fn parse_task(bytes: &[u8]) -> bool {
    let Ok(Value::Object(mut file)) = serde_json::from_slice(bytes) else { return false };
    let task = Task::read(TaskId(1), &file);
    task.write(&mut file);
    let again = Task::read(TaskId(1), &file);
    assert_eq!(
        (again.state, again.owner),
        (task.state, task.owner),
        "a task that we write reads as what it was"
    );
    true
}

/// Parses a protocol message. Returns true if it was one of a known kind.
///
/// # Panics
/// If a message that is written and read again differs.
#[must_use]
pub fn parse_protocol(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let message = Message::parse(text);
    assert_eq!(
        Message::parse(&message.to_text()),
        message,
        "a message that we write reads as what it was"
    );
    match message {
        Message::Text(_) | Message::Unknown { .. } | Message::Malformed { .. } => false,
        known => !known.kind().is_empty(),
    }
}

/// Parses a manifest. Returns true if it was valid.
#[must_use]
pub fn parse_manifest(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| match Manifest::parse_with_hosts(text, &[]) {
        Ok(_) => true,
        Err(fault) => fault.to_string().is_empty(),
    })
}

/// Parses a `hosts.toml`. Returns true if it was valid.
#[must_use]
pub fn parse_hosts(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| hosts::parse_hosts(text).is_ok())
}

/// Parses the address of a shared store. Returns true if it was valid.
#[must_use]
pub fn parse_store_url(bytes: &[u8]) -> bool {
    let url = std::str::from_utf8(bytes).ok().and_then(|text| StoreUrl::parse(text).ok());
    url.is_some_and(|url| !url.to_string().is_empty())
}

/// Parses a message between a client and the broker of a shared store, with its length in front.
/// Returns true if it was one.
#[must_use]
pub fn parse_broker_message(bytes: &[u8]) -> bool {
    parse_messages(bytes)
}

/// Parses a line between a lead and `phalanx host serve`. Returns true if it was a message.
#[must_use]
pub fn parse_host_line(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(parse_line)
}

/// Parses the output of an agent over ACP: in the start of a session, and if that is ready, again in
/// a turn. Returns true if the session could report more than faults.
#[must_use]
pub fn parse_agent_output(bytes: &[u8]) -> bool {
    let mut session = Session::new(SessionStart::default());
    let mut reports = session.receive(bytes);
    if session.prompt("turn", "text") {
        reports.extend(session.receive(bytes));
    }
    reports.extend(session.end());
    let is_fault = |report: &SessionReport| {
        matches!(report, SessionReport::Fault(_) | SessionReport::Refused(_))
    };
    !reports.iter().all(is_fault)
}

/// Parses the output of `git diff`, and makes a view of it. Returns true if it was a patch.
#[must_use]
pub fn parse_patch(bytes: &[u8]) -> bool {
    let Ok(patch) = Patch::parse(bytes) else { return false };
    let mut view = DiffView::new("", patch.clone(), false);
    view.set_viewed(&patch.files.iter().map(|file| file.path().to_vec()).collect::<Vec<_>>());
    view.set_annotations(Vec::new());
    view.set_patch("", patch);
    true
}
