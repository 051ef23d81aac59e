//! A task: the wire form that a Claude reader understands, and what only phalanx knows under `metadata.phalanx`
//! (protocol.md, section 6). Rules over several tasks are in `board`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest;
use super::id::{MemberName, TaskId};
use super::time::Timestamp;
use super::wire::{self, Object};

mod quick;

/// What a task is in. The wire has three words only; the rest lives in `metadata.phalanx.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskState {
    /// To do. Whether a blocker is open is computed from the edges, not stored.
    Pending,
    InProgress,
    Completed,
    Failed,
    Cancelled,
}

impl TaskState {
    /// The wire's word (protocol.md, section 6).
    pub(crate) fn wire(self) -> &'static str {
        match self {
            TaskState::Pending | TaskState::Failed => "pending",
            TaskState::InProgress => "in_progress",
            TaskState::Completed | TaskState::Cancelled => "completed",
        }
    }

    /// The word for people and for `--json`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            TaskState::Pending => "pending",
            TaskState::InProgress => "in_progress",
            TaskState::Completed => "completed",
            TaskState::Failed => "failed",
            TaskState::Cancelled => "cancelled",
        }
    }

    /// Whether a task in this state frees those that wait for it.
    pub(crate) fn frees_dependants(self) -> bool {
        matches!(self, TaskState::Completed | TaskState::Cancelled)
    }

    /// Whether nothing more happens to the task by itself.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, TaskState::Completed | TaskState::Failed | TaskState::Cancelled)
    }

    /// The legal transitions: work starts and ends, a release or a retry goes back, what is completed stays so.
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

/// How the command of a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Exit code; none if a signal ended it or it could not start.
    pub(crate) exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<i32>,
    /// The last lines it printed, or why it could not start.
    #[serde(default)]
    pub(crate) tail: String,
    pub(crate) elapsed_ms: u64,
}

/// What lives under `metadata.phalanx`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Extra {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<TaskState>,
    /// The manifest's name for the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// What a worker runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) run: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,
    /// Which role it is for; none: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<String>,
    /// Path patterns that the task will touch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<String>,
    /// Tasks of a higher priority are claimed first; none counts as 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<i64>,
    /// The team's final report repeats what the task printed.
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
    /// Who completed or failed it; the owner may have left since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<Outcome>,
    /// Who gave it to its owner; none if the owner took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) assigned_by: Option<String>,
    /// Its owner was named by somebody else and has not been told yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) untold: bool,
    /// How often the task went back to pending because its owner left.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) released: u32,
    /// The journal's latest event about the task, and the one before it: each names the other as its cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    /// The digest of the wire part as phalanx last wrote it: another one means that somebody else wrote since (TK-07).
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
    /// What others keep under `metadata`, without our own part.
    pub(crate) metadata: Object,
}

impl Task {
    /// A new pending task.
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

    /// Reads a task file's object. `id` is the file's name: it wins over what the file says.
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

    /// Writes the task into its object: keys in the observed order when new, in their place when there, strangers kept.
    /// A field that means what is to be written is left, so that what others put there in a form of their own survives.
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

    /// Writes the keys of others that differ from what is `there`.
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
        // No place is left for what is not an object, but it is not ours to throw away.
        if !displaced.is_null() {
            wire::put(metadata, "displaced", displaced);
        }
    }

    /// The task in wire form, for `--json`.
    pub(crate) fn to_object(&self) -> Object {
        let mut object = Object::new();
        self.write(&mut object);
        object
    }

    /// A digest of what other programs see and may change.
    pub(crate) fn digest(&self) -> String {
        let ids = |list: &[TaskId]| list.iter().map(|id| format!("{id},")).collect::<String>();
        let (blocks, blocked_by) = (ids(&self.blocks), ids(&self.blocked_by));
        // A field that is not there is told from an empty one by its leading mark.
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

    /// Whether the wire part is as phalanx last wrote it; none if phalanx never wrote it.
    pub(crate) fn seal_holds(&self) -> Option<bool> {
        self.extra.seal.as_ref().map(|seal| *seal == self.digest())
    }

    /// Something happened to it that the journal will tell as event `id`; what it told before is the cause.
    pub(crate) fn goes_on(&mut self, id: String) {
        self.extra.cause = self.extra.event.replace(id);
    }

    /// True if another program keeps the task for itself (`metadata._internal`): members do not
    /// work on it.
    pub(crate) fn is_internal(&self) -> bool {
        wire::flag(&self.metadata, "_internal") == Some(true)
    }

    /// The text that lists show: the active form while the task is in progress, else the subject.
    pub(crate) fn title(&self) -> &str {
        let active = self.active_form.as_deref().filter(|form| !form.trim().is_empty());
        active.filter(|_| self.state == TaskState::InProgress).unwrap_or(&self.subject)
    }

    /// Whether a member of this role may take it.
    pub(crate) fn fits(&self, role: Option<&str>) -> bool {
        let wanted = self.extra.role.as_deref();
        wanted.is_none_or(|wanted| role.is_some_and(|role| role.eq_ignore_ascii_case(wanted)))
    }

    /// Whether `name` owns it; names are compared whole, never by prefix (ID-04, TK-02).
    pub(crate) fn is_owned_by(&self, name: &MemberName) -> bool {
        self.owner_name().is_some_and(|owner| name.clashes_with(owner))
    }

    /// Who owns it, without the team that may stand behind the name.
    pub(crate) fn owner_name(&self) -> Option<&str> {
        self.owner.as_deref().map(|owner| owner.split_once('@').map_or(owner, |(name, _)| name))
    }
}

/// The known keys of [`Extra`]; a newer phalanx may have put others beside them.
const EXTRA_KEYS: [&str; 20] = [
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

/// The wire's word wins where a foreign writer changed it; our finer word counts only if it maps to the same wire word.
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

    /// The file as text, without the seal, which the tests below need not know.
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
    fn the_seal_breaks_with_the_wire_part_and_with_nothing_else() {
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
    fn a_claude_task_keeps_its_strangers_and_its_order() {
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
    fn what_is_no_field_of_ours_by_its_type_survives_until_it_is_changed() {
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
    fn metadata_of_others_is_in_the_wire_form_and_ours_stays_ours() {
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
    fn changed_metadata_is_written_and_the_rest_keeps_its_form() {
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
    fn the_wire_has_three_words_and_a_foreign_change_wins() {
        assert_eq!(state_of(Some("pending"), Some(TaskState::Failed)), TaskState::Failed);
        assert_eq!(state_of(Some("completed"), Some(TaskState::Cancelled)), TaskState::Cancelled);
        assert_eq!(state_of(Some("completed"), Some(TaskState::Failed)), TaskState::Completed);
        assert_eq!(state_of(Some("in_progress"), Some(TaskState::Pending)), TaskState::InProgress);
        assert_eq!(state_of(None, None), TaskState::Pending);
    }

    #[test]
    fn extra_fields_of_a_newer_phalanx_survive() {
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
    fn the_title_is_the_active_form_while_the_task_runs() {
        let mut task = Task::new(TaskId(1), "Write docs", "");
        task.state = TaskState::InProgress;
        assert_eq!(task.title(), "Write docs");
        task.active_form = Some("Writing docs".to_owned());
        assert_eq!(task.title(), "Writing docs");
        task.state = TaskState::Completed;
        assert_eq!(task.title(), "Write docs");
    }

    #[test]
    fn only_a_true_internal_mark_makes_a_task_internal() {
        for (metadata, internal) in
            [(r#"{"_internal":true}"#, true), (r#"{"_internal":"true"}"#, false), ("{}", false)]
        {
            let mut task = Task::new(TaskId(1), "s", "d");
            task.metadata = serde_json::from_str(metadata).expect("json");
            assert_eq!(task.is_internal(), internal, "{metadata}");
        }
    }

    #[test]
    fn what_is_over_stays_over() {
        use TaskState::{Cancelled, Completed, Failed, InProgress, Pending};
        for next in [Pending, InProgress, Failed, Cancelled] {
            assert!(!Completed.may_become(next));
        }
        assert!(Failed.may_become(Pending));
        assert!(!Pending.may_become(Failed));
    }
}
