//! A task: the wire form that Claude Code reads, and phalanx's own data under `metadata.phalanx`.
//! Rules over several tasks are in `board`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest;
use super::id::{MemberName, TaskId};
use super::time::Timestamp;
use super::wire::{self, Object};

mod quick;

/// The state of a task. The wire distinguishes only three; `metadata.phalanx.state` holds the full
/// state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(crate) enum TaskState {
    /// Not started. Blocked tasks are pending too: whether a blocker is open is computed from the
    /// edges, not stored.
    Pending,
    InProgress,
    Completed,
    Failed,
    Cancelled,
}

impl TaskState {
    /// The state on the wire, which shows failed tasks as pending and cancelled tasks as completed.
    pub(crate) fn wire(self) -> &'static str {
        match self {
            TaskState::Pending | TaskState::Failed => "pending",
            TaskState::InProgress => "in_progress",
            TaskState::Completed | TaskState::Cancelled => "completed",
        }
    }

    /// The name in tables and in `--json`.
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns true if a task in this state no longer blocks its dependants.
    pub(crate) fn frees_dependants(self) -> bool {
        matches!(self, TaskState::Completed | TaskState::Cancelled)
    }

    /// Returns true if the state only changes on request.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, TaskState::Completed | TaskState::Failed | TaskState::Cancelled)
    }

    /// Returns true for legal transitions. A release or a retry leads back to pending; completed
    /// and cancelled are final.
    pub(crate) fn may_become(self, next: TaskState) -> bool {
        use TaskState::{Cancelled, Completed, Failed, InProgress, Pending};
        match self {
            Pending => matches!(next, InProgress | Completed | Cancelled),
            InProgress => matches!(next, Pending | Completed | Failed | Cancelled),
            Failed => matches!(next, Pending | Cancelled),
            Completed | Cancelled => false,
        }
    }
}

/// The result of a task's command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandOutcome {
    /// `None` if a signal killed the command or it could not start.
    pub(crate) exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<i32>,
    /// Last lines of output, or why the command could not start.
    #[serde(default)]
    pub(crate) tail: String,
    pub(crate) elapsed_ms: u64,
}

/// Phalanx's data about a task, stored under `metadata.phalanx`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Extra {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<TaskState>,
    /// The task's key in the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// The blockers as an imported file names them: a key, or `PLAN/*` for all tasks of a plan.
    /// Only these edges are removed when the file is imported again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) after: Vec<String>,
    /// Command for a worker: program and arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) run: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,
    /// Required role of the owner; `None` means any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<String>,
    /// Patterns of the paths that the task may touch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<String>,
    /// Tasks with a higher priority are claimed first; `None` counts as 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<i64>,
    /// Include the command's output in the team's final report.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) show_output: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claimed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<Timestamp>,
    /// The member that completed or failed the task; the owner may have changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<CommandOutcome>,
    /// The assigner; `None` if the owner claimed the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) assigned_by: Option<String>,
    /// The owner was assigned by another member and has yet to be notified.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) untold: bool,
    /// Number of times that the task was released because its owner left.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) released: u32,
    /// Id of the latest journal event about the task. `cause` is the one before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    /// Digest of the wire fields as phalanx last wrote them. A mismatch means that another program
    /// changed them (TK-07).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seal: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A task as read from its file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    pub(crate) subject: String,
    pub(crate) description: String,
    pub(crate) active_form: Option<String>,
    pub(crate) state: TaskState,
    pub(crate) blocks: Vec<TaskId>,
    pub(crate) blocked_by: Vec<TaskId>,
    pub(crate) owner: Option<String>,
    pub(crate) extra: Extra,
    /// Metadata of other programs, without the `phalanx` key.
    pub(crate) metadata: Object,
}

impl Task {
    pub(crate) fn new(id: TaskId, subject: &str, description: &str) -> Task {
        Task {
            id,
            subject: subject.to_owned(),
            description: description.to_owned(),
            active_form: None,
            state: TaskState::Pending,
            blocks: Vec::new(),
            blocked_by: Vec::new(),
            owner: None,
            extra: Extra::default(),
            metadata: Object::new(),
        }
    }

    /// Reads a task file. `id` comes from the file name and overrides the `id` inside the file.
    pub(crate) fn read(id: TaskId, file: &Object) -> Task {
        let mut metadata = wire::object(file, "metadata").cloned().unwrap_or_default();
        let stored = metadata.shift_remove("phalanx");
        let extra: Extra = stored.and_then(|v| serde_json::from_value(v).ok()).unwrap_or_default();
        Task {
            id,
            subject: wire::text(file, "subject").unwrap_or_default(),
            description: wire::text(file, "description").unwrap_or_default(),
            active_form: wire::text(file, "activeForm"),
            state: state_of(wire::text(file, "status").as_deref(), extra.state),
            blocks: edges(file, "blocks"),
            blocked_by: edges(file, "blockedBy"),
            owner: wire::text(file, "owner").filter(|o| !o.is_empty()),
            extra,
            metadata,
        }
    }

    /// Writes the task into `file`. New keys are added in the order in which Claude Code writes
    /// them; existing and unknown keys keep their places. A field is only replaced if its parsed
    /// value changed, so unusual forms written by other programs survive.
    pub(crate) fn write(&self, file: &mut Object) {
        let ids =
            |list: &[TaskId]| list.iter().map(|id| Value::from(id.to_string())).collect::<Vec<_>>();
        let there = Task::read(self.id, file);
        put_changed(file, "id", true, self.id.to_string().into());
        put_changed(file, "subject", there.subject != self.subject, self.subject.as_str().into());
        put_changed(
            file,
            "description",
            there.description != self.description,
            self.description.as_str().into(),
        );
        if there.active_form != self.active_form {
            wire::put_or_remove(file, "activeForm", self.active_form.as_deref());
        }
        put_changed(
            file,
            "status",
            there.state.wire() != self.state.wire(),
            self.state.wire().into(),
        );
        put_changed(file, "blocks", there.blocks != self.blocks, ids(&self.blocks).into());
        put_changed(
            file,
            "blockedBy",
            there.blocked_by != self.blocked_by,
            ids(&self.blocked_by).into(),
        );
        if there.owner != self.owner {
            wire::put_or_remove(file, "owner", self.owner.as_deref());
        }
        self.write_metadata(&there.metadata, file);
        self.write_extra(file);
    }

    /// Writes the keys of other programs that differ from `there`, and removes missing ones.
    fn write_metadata(&self, there: &Object, file: &mut Object) {
        let Some(metadata) = file.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        for key in there.keys().filter(|key| !self.metadata.contains_key(*key)) {
            metadata.shift_remove(key);
        }
        for (key, value) in
            self.metadata.iter().filter(|(key, value)| there.get(*key) != Some(*value))
        {
            metadata.insert(key.clone(), value.clone());
        }
    }

    fn write_extra(&self, file: &mut Object) {
        let extra =
            Extra { state: Some(self.state), seal: Some(self.digest()), ..self.extra.clone() };
        let Ok(Value::Object(ours)) = serde_json::to_value(&extra) else { return };
        let metadata = file.entry("metadata").or_insert(Value::Null);
        let mut displaced = Value::Null;
        if !metadata.is_object() {
            displaced = std::mem::replace(metadata, Value::Object(self.metadata.clone()));
        }
        let Some(metadata) = metadata.as_object_mut() else { return };
        match metadata.get_mut("phalanx").and_then(Value::as_object_mut) {
            Some(stored) => overlay(stored, ours),
            None => wire::put(metadata, "phalanx", ours),
        }
        // A `metadata` value that is not an object belongs to another program, so it is kept under
        // another key.
        if !displaced.is_null() {
            wire::put(metadata, "displaced", displaced);
        }
    }

    /// Returns the task in wire form, for `--json`.
    pub(crate) fn to_object(&self) -> Object {
        let mut object = Object::new();
        self.write(&mut object);
        object
    }

    /// Returns a digest of the fields that other programs see and may change.
    pub(crate) fn digest(&self) -> String {
        let ids = |list: &[TaskId]| list.iter().map(|id| format!("{id},")).collect::<String>();
        let (blocks, blocked_by) = (ids(&self.blocks), ids(&self.blocked_by));
        // The mark distinguishes an empty field from a missing one.
        let maybe = |field: Option<&str>| field.map(|f| format!("+{f}")).unwrap_or_default();
        let (active, owner) = (maybe(self.active_form.as_deref()), maybe(self.owner.as_deref()));
        let parts = [
            &self.subject,
            &self.description,
            &active,
            self.state.wire(),
            &blocks,
            &blocked_by,
            &owner,
        ];
        digest::of(&parts.map(str::as_bytes))
    }

    /// Returns whether the wire fields are as phalanx last wrote them; `None` if phalanx never
    /// wrote them.
    pub(crate) fn seal_holds(&self) -> Option<bool> {
        self.extra.seal.as_ref().map(|seal| *seal == self.digest())
    }

    /// Sets the id of the next journal event about the task; the previous event becomes its cause.
    pub(crate) fn goes_on(&mut self, id: String) {
        self.extra.cause = self.extra.event.replace(id);
    }

    /// Returns true for tasks that another program reserves for itself (`metadata._internal`).
    /// Members do not work on them.
    pub(crate) fn is_internal(&self) -> bool {
        wire::flag(&self.metadata, "_internal") == Some(true)
    }

    /// Returns the text for lists: the active form while the task is in progress, else the subject.
    pub(crate) fn title(&self) -> &str {
        let active = self.active_form.as_deref().filter(|form| !form.trim().is_empty());
        active.filter(|_| self.state == TaskState::InProgress).unwrap_or(&self.subject)
    }

    /// Returns true if a member of this role may take the task.
    pub(crate) fn fits(&self, role: Option<&str>) -> bool {
        let wanted = self.extra.role.as_deref();
        wanted.is_none_or(|wanted| role.is_some_and(|role| role.eq_ignore_ascii_case(wanted)))
    }

    /// Returns true if `name` owns the task. Names are compared whole, never by prefix (ID-04,
    /// TK-02).
    pub(crate) fn is_owned_by(&self, name: &MemberName) -> bool {
        self.owner_name().is_some_and(|owner| name.clashes_with(owner))
    }

    /// Returns the owner's name without a `@TEAM` suffix.
    pub(crate) fn owner_name(&self) -> Option<&str> {
        self.owner.as_deref().map(|owner| owner.split_once('@').map_or(owner, |(name, _)| name))
    }
}

/// The known keys of [`Extra`]. Other keys, written by a newer release, are preserved.
const EXTRA_KEYS: [&str; 22] = [
    "after",
    "role",
    "event",
    "cause",
    "state",
    "key",
    "run",
    "cwd",
    "env",
    "files",
    "priority",
    "created_by",
    "created_at",
    "claimed_at",
    "ended_at",
    "ended_by",
    "outcome",
    "released",
    "assigned_by",
    "untold",
    "seal",
    "show_output",
];

fn put_changed(file: &mut Object, key: &str, is_changed: bool, value: Value) {
    if is_changed || !file.contains_key(key) {
        wire::put(file, key, value);
    }
}

fn overlay(stored: &mut Object, ours: Object) {
    for key in EXTRA_KEYS {
        if !ours.contains_key(key) {
            stored.shift_remove(key);
        }
    }
    for (key, value) in ours {
        stored.insert(key, value);
    }
}

/// Combines the wire state with phalanx's. The wire state wins if another program changed it:
/// phalanx's finer state counts only if it maps to the same wire state.
fn state_of(wire_word: Option<&str>, ours: Option<TaskState>) -> TaskState {
    let plain = match wire_word {
        Some("in_progress") => TaskState::InProgress,
        Some("completed") => TaskState::Completed,
        _ => TaskState::Pending,
    };
    ours.filter(|state| state.wire() == plain.wire()).unwrap_or(plain)
}

fn edges(file: &Object, key: &str) -> Vec<TaskId> {
    wire::texts(file, key).iter().filter_map(|id| TaskId::parse(id).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file as text without the seal.
    fn unsealed(mut file: Object) -> String {
        let ours = file
            .get_mut("metadata")
            .and_then(|m| m.get_mut("phalanx"))
            .and_then(Value::as_object_mut);
        assert!(
            ours.and_then(|ours| ours.shift_remove("seal")).is_some(),
            "what we write is sealed"
        );
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
        task.extra.show_output = true;
        let mut file = task.to_object();
        assert!(Task::read(TaskId(1), &file).extra.show_output);
        task.extra.show_output = false;
        task.write(&mut file);
        assert!(!Task::read(TaskId(1), &file).extra.show_output);
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
        let after =
            r#""metadata":{"keep":1.50,"phalanx":{"newer":1,"state":"pending"},"type":"bug"}"#;
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
        assert!(
            text.contains(r#""metadata":{"phalanx":{"state":"pending","newer":[1]}}"#),
            "{text}"
        );
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

    #[test]
    fn completed_tasks_cannot_change_state() {
        use TaskState::{Cancelled, Completed, Failed, InProgress, Pending};
        for next in [Pending, InProgress, Failed, Cancelled] {
            assert!(!Completed.may_become(next));
        }
        assert!(Failed.may_become(Pending));
        assert!(!Pending.may_become(Failed));
    }
}
