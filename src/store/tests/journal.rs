//! The journal: following it while it is written, renamed, truncated or replaced.

use serde_json::json;

use super::{NOW, command, fresh, on_both_stores, who};
use crate::team::journal::FULL;
use crate::{ClaimKind, TeamStore};
use model::team::event::{Event, EventKind, Note};
use sys::fs;

fn record(team: &TeamStore, text: &str) -> Event {
    team.record(Note::of(EventKind::Warning).with("text", text)).expect("recorded")
}

fn texts(events: Vec<Event>) -> Vec<String> {
    let text = |event: &Event| event.detail["text"].as_str().expect("a text").to_owned();
    events.iter().map(text).collect()
}

/// Appends a line that is not an event, so that the next event fills the journal.
fn fill(team: &TeamStore) {
    let full = usize::try_from(FULL).expect("64 bits");
    fs::append_line(&team.journal_file(), &vec![b'x'; full]).expect("writable");
}

#[test]
fn reader_returns_each_event_once() {
    let (_dir, team) = fresh();
    let (mut journal, mut end) = (team.journal(), team.journal_end().expect("readable"));
    let first = record(&team, "line\nbreak");
    let events = journal.read().expect("events");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].detail["text"], json!("line\nbreak"));
    team.record(Note::of(EventKind::LeadStarted).because(&first.id)).expect("record");
    let kinds = |events: Vec<Event>| events.iter().map(|e| e.event).collect::<Vec<_>>();
    assert_eq!(kinds(journal.read().expect("events")), [EventKind::LeadStarted]);
    assert_eq!(kinds(end.read().expect("events")), [EventKind::Warning, EventKind::LeadStarted]);
    let mut late = team.journal_end().expect("readable");
    assert_eq!(late.read().expect("events"), []);
    assert_eq!(journal.read().expect("events"), []);
}

#[test]
fn incomplete_line_is_returned_once_it_is_complete() {
    let (_dir, team) = fresh();
    let event = record(&team, "whole");
    let line = serde_json::to_vec(&event).expect("json");
    let mut journal = team.journal();
    let torn = [line.as_slice(), b"\n", &line[..20]].concat();
    fs::write_atomic(&team.journal_file(), &torn).expect("writable");
    assert_eq!(journal.read().expect("events"), std::slice::from_ref(&event));
    assert_eq!(team.torn_lines().expect("readable"), 1);
    fs::append_line(&team.journal_file(), &line[20..]).expect("writable");
    assert_eq!(journal.read().expect("events"), [event]);
    assert_eq!(team.torn_lines().expect("readable"), 0);
}

#[test]
fn readers_read_on_after_the_journal_was_renamed() {
    let (_dir, team) = fresh();
    record(&team, "a");
    let mut journal = team.journal();
    assert_eq!(texts(journal.read().expect("events")), ["a"]);
    fill(&team);
    record(&team, "b");
    record(&team, "c");
    let older = team.layout.older_journal();
    assert!(fs::len(&older).expect("readable").is_some_and(|len| len > FULL));
    assert!(fs::len(&team.journal_file()).expect("readable").is_some_and(|len| len < 1000));
    assert_eq!(texts(journal.clone().read().expect("events")), ["b", "c"]);
    assert_eq!(texts(team.events().expect("events")), ["a", "b", "c"]);
    assert_eq!(team.torn_lines().expect("readable"), 1);
    // A process that had the journal open appends after it was renamed.
    let late = serde_json::to_vec(&record(&team, "d")).expect("json");
    assert_eq!(texts(journal.read().expect("events")), ["b", "c", "d"]);
    fs::append_line(&older, &late).expect("writable");
    assert_eq!(texts(journal.read().expect("events")), ["d"]);
}

#[test]
fn only_the_oldest_file_is_lost_when_the_journal_is_renamed_twice() {
    let (_dir, team) = fresh();
    record(&team, "a");
    let mut journal = team.journal();
    let mut end = team.journal_end().expect("readable");
    for text in ["b", "c"] {
        fill(&team);
        record(&team, text);
        record(&team, "after");
    }
    assert_eq!(texts(journal.read().expect("events")), ["after", "c", "after"]);
    assert_eq!(texts(end.read().expect("events")), ["after", "c", "after"]);
}

#[test]
fn truncated_or_replaced_journal_is_read_from_its_start() {
    let (_dir, team) = fresh();
    record(&team, "a");
    record(&team, "b");
    let mut journal = team.journal();
    journal.read().expect("events");
    drop(fs::LogFile::fresh(&team.journal_file(), u64::MAX).expect("truncated"));
    record(&team, "c");
    assert_eq!(texts(journal.read().expect("events")), ["c"]);
    fs::remove_file(&team.journal_file()).expect("removed");
    assert_eq!(journal.read().expect("no journal is no error"), []);
    record(&team, "d");
    assert_eq!(texts(journal.read().expect("events")), ["d"]);
}

#[test]
fn recent_events_are_found_across_a_rename() {
    let (_dir, team) = fresh();
    let old = record(&team, "old");
    fill(&team);
    record(&team, "b");
    record(&team, "c");
    assert_eq!(texts(team.events_since(old.at).expect("events")), ["old", "b", "c"]);
}

#[test]
fn claim_is_journaled_once_with_the_subject_and_its_cause() {
    on_both_stores(|team| {
        let subject = "odd: \u{0}\"\\\n\u{1F980}";
        let created = team.create_tasks(&[command(subject)], "lead", NOW).expect("tasks");
        let ann = who("ann");
        let claimed = team.claim_next(&ann, None, ClaimKind::Command, NOW).expect("a board");
        let claimed = claimed.expect("a free task");
        team.record_claim(&claimed, &ann).expect("recorded");
        let events = team.task_events(claimed.id).expect("events");
        let [event] = &events[..] else { panic!("{events:?}") };
        let expected = Note::of_task(EventKind::TaskClaimed, &claimed).member(&ann);
        assert_eq!((event.event, Some(&event.id)), (expected.event, expected.id.as_ref()));
        assert_eq!([&event.cause, &event.cause], [&expected.cause, &created[0].extra.event]);
        assert_eq!((&event.member, event.task), (&expected.member, expected.task));
        assert_eq!((&event.detail, &event.team), (&expected.detail, team.name()));
    });
}
