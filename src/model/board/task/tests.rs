//! Reading, writing and sealing of tasks.

use super::*;

/// The file as text without the seal.
fn unsealed(mut file: Object) -> String {
    let ours =
        file.get_mut("metadata").and_then(|m| m.get_mut("phalanx")).and_then(Value::as_object_mut);
    assert!(ours.and_then(|ours| ours.shift_remove("seal")).is_some(), "what we write is sealed");
    serde_json::to_string(&file).expect("json")
}

#[test]
fn seal_breaks_only_when_wire_fields_change() {
    let mut task = Task::new(TaskId(1), "s", "d");
    assert_eq!(task.seal_holds(), None);
    let mut file = task.to_object();
    task = Task::read(TaskId(1), &file);
    assert_eq!(task.seal_holds(), Some(true));
    wire::put(&mut file, "owner", "bob");
    assert_eq!(Task::read(TaskId(1), &file).seal_holds(), Some(false));
    file.shift_remove("owner");
    wire::put(&mut file, "zeta", 1);
    assert_eq!(Task::read(TaskId(1), &file).seal_holds(), Some(true));
    let (mut a, mut b) = (Task::new(TaskId(1), "", "x"), Task::new(TaskId(1), "x", ""));
    assert_ne!(a.digest(), b.digest());
    (a.blocks, b.blocks) = (vec![TaskId(1), TaskId(2)], vec![TaskId(12)]);
    b.subject.clone_from(&a.subject);
    b.description.clone_from(&a.description);
    assert_ne!(a.digest(), b.digest());
}

#[test]
fn cleared_field_of_phalanx_leaves_the_file() {
    let mut task = Task::new(TaskId(1), "s", "d");
    task.extra.output = ShowOutput::All;
    let mut file = task.to_object();
    assert_eq!(Task::read(TaskId(1), &file).extra.output, ShowOutput::All);
    task.extra.output = ShowOutput::Tail;
    task.write(&mut file);
    assert_eq!(Task::read(TaskId(1), &file).extra.output, ShowOutput::Tail);
}

#[test]
fn unknown_fields_and_key_order_of_a_claude_task_are_kept() {
    let before = r#"{"id":"3","subject":"s","zeta":{"n":1.50},"description":"d","status":"pending","blocks":["4"],"blockedBy":[],"metadata":{"theirs":true}}"#;
    let mut file: Object = serde_json::from_str(before).expect("json");
    let mut task = Task::read(TaskId(3), &file);
    task.state = TaskState::InProgress;
    task.owner = Some("bob".to_owned());
    task.write(&mut file);
    assert_eq!(
        unsealed(file),
        r#"{"id":"3","subject":"s","zeta":{"n":1.50},"description":"d","status":"in_progress","blocks":["4"],"blockedBy":[],"metadata":{"theirs":true,"phalanx":{"state":"in_progress"}},"owner":"bob"}"#
    );
}

#[test]
fn fields_of_unexpected_type_survive_until_changed() {
    let odd = r#"{"id":"3","subject":{"rich":"s"},"description":7,"activeForm":[1],"status":"waiting","blocks":["4","x"],"blockedBy":"5","owner":{"name":"bob"},"metadata":"note"}"#;
    let mut file: Object = serde_json::from_str(odd).expect("json");
    let mut task = Task::read(TaskId(3), &file);
    task.extra.priority = Some(2);
    task.write(&mut file);
    assert_eq!(
        unsealed(file.clone()),
        odd.replace(
            r#""note""#,
            r#"{"phalanx":{"state":"pending","priority":2},"displaced":"note"}"#
        )
    );
    task = Task::read(TaskId(3), &file);
    assert_eq!(task.seal_holds(), Some(true));
    (task.owner, task.state, task.subject) =
        (Some("ann".to_owned()), TaskState::InProgress, "t".to_owned());
    task.blocks.push(TaskId(6));
    task.write(&mut file);
    let changed = r#"{"id":"3","subject":"t","description":7,"activeForm":[1],"status":"in_progress","blocks":["4","6"],"blockedBy":"5","owner":"ann","#;
    assert!(unsealed(file).starts_with(changed));
}

#[test]
fn foreign_metadata_is_written_beside_phalanx_data() {
    let mut task = Task::new(TaskId(1), "s", "d");
    task.metadata = serde_json::from_str(r#"{"type":"bug","n":[1]}"#).expect("json");
    let file = task.to_object();
    assert_eq!(Task::read(TaskId(1), &file).metadata, task.metadata);
    let text = unsealed(file);
    assert!(
        text.ends_with(r#""metadata":{"type":"bug","n":[1],"phalanx":{"state":"pending"}}}"#),
        "{text}"
    );
}

#[test]
fn changed_metadata_is_written_and_the_rest_is_untouched() {
    let before = r#"{"id":"1","metadata":{"keep":1.50,"drop":1,"phalanx":{"newer":1}}}"#;
    let mut file: Object = serde_json::from_str(before).expect("json");
    let mut task = Task::read(TaskId(1), &file);
    task.metadata.shift_remove("drop");
    task.metadata.insert("type".to_owned(), "bug".into());
    task.write(&mut file);
    let text = unsealed(file);
    let after = r#""metadata":{"keep":1.50,"phalanx":{"newer":1,"state":"pending"},"type":"bug"}"#;
    assert!(text.contains(after), "{text}");
}

#[test]
fn foreign_change_of_wire_state_overrides_stored_state() {
    assert_eq!(state_of(Some("pending"), Some(TaskState::Failed)), TaskState::Failed);
    assert_eq!(state_of(Some("completed"), Some(TaskState::Cancelled)), TaskState::Cancelled);
    assert_eq!(state_of(Some("completed"), Some(TaskState::Failed)), TaskState::Completed);
    assert_eq!(state_of(Some("in_progress"), Some(TaskState::Pending)), TaskState::InProgress);
    assert_eq!(state_of(None, None), TaskState::Pending);
}

#[test]
fn fields_of_a_newer_phalanx_survive() {
    let mut file: Object = serde_json::from_str(
        r#"{"id":"1","metadata":{"phalanx":{"state":"pending","newer":[1],"ended_by":"x"}}}"#,
    )
    .expect("json");
    let mut task = Task::read(TaskId(1), &file);
    task.extra.ended_by = None;
    task.write(&mut file);
    let text = unsealed(file);
    assert!(text.contains(r#""metadata":{"phalanx":{"state":"pending","newer":[1]}}"#), "{text}");
}

#[test]
fn title_is_the_active_form_while_in_progress() {
    let mut task = Task::new(TaskId(1), "Write docs", "");
    task.state = TaskState::InProgress;
    assert_eq!(task.title(), "Write docs");
    task.active_form = Some("Writing docs".to_owned());
    assert_eq!(task.title(), "Writing docs");
    task.state = TaskState::Completed;
    assert_eq!(task.title(), "Write docs");
}

#[test]
fn only_boolean_true_marks_a_task_as_internal() {
    for (metadata, internal) in
        [(r#"{"_internal":true}"#, true), (r#"{"_internal":"true"}"#, false), ("{}", false)]
    {
        let mut task = Task::new(TaskId(1), "s", "d");
        task.metadata = serde_json::from_str(metadata).expect("json");
        assert_eq!(task.is_internal(), internal, "{metadata}");
    }
}
