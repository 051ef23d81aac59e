//! A task: the wire form that Claude Code reads, and phalanx's own data under `metadata.phalanx`.
//! Rules over several tasks are in `board`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::id::{MemberName, TaskId};
use crate::mail::scope::Scope;
use crate::members::readiness::awaited_member;
use crate::team::followup::TaskReminder;
use crate::time::Timestamp;
use crate::wire::{self, Object};
use crate::{digest, text};

mod fields;
mod keys;
mod quick;
#[cfg(test)]
mod tests;
mod transition;

pub use fields::TaskFields;
pub use transition::{Permit, TaskAction, TransitionRefusal, transition};

/// The state of a task. The wire distinguishes only three; `metadata.phalanx.state` holds the full
/// state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray, strum::VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum TaskState {
    /// Not started.
    Pending,
    /// Not started, and a blocker is open. Never stored, because another program may change the
    /// edges: [`Board::state`](crate::board::Board::state) computes it.
    Blocked,
    InProgress,
    /// In progress, and its command is being ended, because another member takes it from its owner.
    /// Never stored: [`Board::state`](crate::board::Board::state) computes it from
    /// [`Extra::stopping`].
    Stopping,
    /// Submitted for approval.
    InReview,
    Completed,
    Failed,
    Cancelled,
    /// Started, but its owner has been silent for too long.
    Stale,
}

impl TaskState {
    /// The state on the wire. It shows failed tasks as pending, cancelled tasks as completed, and
    /// tasks that are stale or in review as in progress.
    pub fn wire(self) -> &'static str {
        match self {
            TaskState::Pending | TaskState::Blocked | TaskState::Failed => "pending",
            TaskState::InProgress
            | TaskState::Stopping
            | TaskState::InReview
            | TaskState::Stale => "in_progress",
            TaskState::Completed | TaskState::Cancelled => "completed",
        }
    }

    /// The name in tables and in `--json`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns true if a task in this state no longer blocks its dependants.
    pub fn frees_dependants(self) -> bool {
        matches!(self, TaskState::Completed | TaskState::Cancelled)
    }

    /// Returns true if the state only changes on request.
    pub fn is_over(self) -> bool {
        matches!(self, TaskState::Completed | TaskState::Failed | TaskState::Cancelled)
    }

    /// Returns true while the owner works on the task, or should.
    pub fn is_running(self) -> bool {
        matches!(self, TaskState::InProgress | TaskState::Stale)
    }
}

/// The progress that the owner last reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// 0 to 100.
    pub percent: u8,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step: String,
}

/// Summary of an ended task, for a display of the board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSnapshot {
    /// Time of the end.
    pub completed_at: Timestamp,
    /// The first [`PREVIEW`] characters of the result.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result_preview: String,
    pub final_status: TaskState,
    /// As given by the member that ended the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Characters of a result that is shown as one line.
const LINE: usize = 200;
/// Characters of a result in [`TaskSnapshot::result_preview`].
pub const PREVIEW: usize = 100;

/// A command that is being ended before its task is taken from the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopping {
    /// The member that takes the task.
    pub by: String,
    /// Time from which the task is taken even if the command may still run.
    pub until: Timestamp,
    /// Set by the owner once nothing of the command runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// The part of the output of an ended command that announcements and reports repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShowOutput {
    /// The last lines.
    #[default]
    Tail,
    /// All that is kept: the last 50 lines.
    All,
    /// Nothing, unless the command fails.
    None,
}

impl ShowOutput {
    fn is_default(&self) -> bool {
        *self == ShowOutput::default()
    }
}

/// The result of a task's command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOutcome {
    /// `None` if a signal killed the command or it could not start.
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Last lines of output, or why the command could not start.
    #[serde(default)]
    pub tail: String,
    pub elapsed_ms: u64,
}

/// Phalanx's data about a task, stored under `metadata.phalanx`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Extra {
    pub state: Option<TaskState>,
    /// The task's key in the manifest.
    pub key: Option<String>,
    /// The blockers as an imported file names them: a key, or `PLAN/*` for all tasks of a plan.
    /// Only these edges are removed when the file is imported again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Command for a worker: program and arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Time after which it fails, from its claim. Seconds.
    pub timeout_s: Option<u64>,
    /// Required role of the owner; `None` means any.
    pub role: Option<String>,
    /// Patterns of the paths that the task may touch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Tasks with a higher priority are claimed first; `None` counts as 0.
    pub priority: Option<i64>,
    /// A label of the caller's choice, such as `bug`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    pub progress: Option<Progress>,
    /// The result of the work, in the words of the member that completed it.
    pub result: Option<String>,
    /// The commit that holds the work.
    pub commit: Option<String>,
    /// Why the task was sent back, cancelled or failed.
    pub reason: Option<String>,
    pub snapshot: Option<TaskSnapshot>,
    /// The member that approved or rejected the work.
    pub decided_by: Option<String>,
    /// The output of the command that announcements and the team's final report repeat.
    #[serde(skip_serializing_if = "ShowOutput::is_default")]
    pub output: ShowOutput,
    /// The origin of the request for it.
    #[serde(skip_serializing_if = "Scope::is_empty")]
    pub scope: Scope,
    pub created_by: Option<String>,
    pub created_at: Option<Timestamp>,
    pub claimed_at: Option<Timestamp>,
    pub stopping: Option<Stopping>,
    /// Time at which the task became stale.
    pub stalled_at: Option<Timestamp>,
    pub reminder: Option<TaskReminder>,
    pub ended_at: Option<Timestamp>,
    /// The member that completed or failed the task; the owner may have changed since.
    pub ended_by: Option<String>,
    pub outcome: Option<CommandOutcome>,
    /// The assigner; `None` if the owner claimed the task.
    pub assigned_by: Option<String>,
    /// The owner was assigned by another member and has yet to be notified.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub untold: bool,
    /// Number of times that the work was sent back to its owner.
    #[serde(skip_serializing_if = "is_zero")]
    pub rounds: u32,
    /// Number of times that the task was released because its owner left.
    #[serde(skip_serializing_if = "is_zero")]
    pub released: u32,
    /// Id of the latest journal event about the task. `cause` is the one before it.
    pub event: Option<String>,
    pub cause: Option<String>,
    /// Digest of the wire fields as phalanx last wrote them. A mismatch means that another program
    /// changed them (TK-07).
    pub seal: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A task as read from its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: TaskId,
    pub subject: String,
    pub description: String,
    pub active_form: Option<String>,
    pub state: TaskState,
    pub blocks: Vec<TaskId>,
    pub blocked_by: Vec<TaskId>,
    pub owner: Option<String>,
    pub extra: Extra,
    /// Metadata of other programs, without the `phalanx` key.
    pub metadata: Object,
}

impl Task {
    pub fn new(id: TaskId, subject: &str, description: &str) -> Task {
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

    /// Returns the output that announcements and reports repeat: at most the last `lines`, unless
    /// the task says otherwise. Control characters are visible.
    pub fn shown_output(&self, lines: usize) -> Option<String> {
        let extra = &self.extra;
        let tail = text::block(extra.outcome.as_ref()?.tail.trim());
        let shown = match (extra.output, extra.run.is_empty()) {
            // An agent has done it: its output is its answer, unless it has given a result.
            (_, true) => {
                if extra.result.is_some() {
                    String::new()
                } else {
                    tail
                }
            }
            (ShowOutput::All, false) => tail,
            (ShowOutput::None, false) if self.state != TaskState::Failed => String::new(),
            (ShowOutput::Tail | ShowOutput::None, false) => text::last_lines(&tail, lines),
        };
        Some(shown).filter(|shown| !shown.trim().is_empty())
    }

    /// Returns the result as one line, or the last line of the output.
    pub fn result_line(&self) -> Option<String> {
        let output = || self.shown_output(1)?.lines().last().map(str::to_owned);
        let result = self.extra.result.clone().or_else(output)?;
        Some(text::short(&result, LINE))
    }

    /// Reads a task file. `id` comes from the file name and overrides the `id` inside the file.
    pub fn read(id: TaskId, file: &Object) -> Task {
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
    pub fn write(&self, file: &mut Object) {
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
    pub fn to_object(&self) -> Object {
        let mut object = Object::new();
        self.write(&mut object);
        object
    }

    /// Returns a digest of the fields that other programs see and may change.
    pub fn digest(&self) -> String {
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
        digest::hash(&parts.map(str::as_bytes))
    }

    /// Returns whether the wire fields are as phalanx last wrote them; `None` if phalanx never
    /// wrote them.
    pub fn seal_holds(&self) -> Option<bool> {
        self.extra.seal.as_ref().map(|seal| *seal == self.digest())
    }

    /// Sets the id of the next journal event about the task; the previous event becomes its cause.
    pub fn goes_on(&mut self, id: String) {
        self.extra.cause = self.extra.event.replace(id);
    }

    /// Returns the member whose readiness completes the task; `None` for a task to work on.
    pub fn awaited_member(&self) -> Option<&str> {
        awaited_member(self.extra.key.as_deref()?)
    }

    /// Returns true for tasks that another program reserves for itself (`metadata._internal`).
    /// Members do not work on them.
    pub fn is_internal(&self) -> bool {
        wire::flag(&self.metadata, "_internal") == Some(true)
    }

    /// Returns the text for lists: the active form while the task is in progress, else the subject.
    pub fn title(&self) -> &str {
        let active = self.active_form.as_deref().filter(|form| !form.trim().is_empty());
        active.filter(|_| self.state.is_running()).unwrap_or(&self.subject)
    }

    /// Returns one line about an ended task: its summary, else the beginning of its result, else
    /// the reason of its end.
    pub fn ending(&self) -> Option<&str> {
        let snapshot = self.extra.snapshot.as_ref().filter(|_| self.state.is_over())?;
        let preview = Some(snapshot.result_preview.as_str()).filter(|text| !text.is_empty());
        snapshot.summary.as_deref().or(preview).or(self.extra.reason.as_deref())
    }

    /// Returns true if a member of this role may take the task.
    pub fn fits(&self, role: Option<&str>) -> bool {
        let wanted = self.extra.role.as_deref();
        wanted.is_none_or(|wanted| role.is_some_and(|role| role.eq_ignore_ascii_case(wanted)))
    }

    /// Returns true if `name` created the task.
    pub fn is_created_by(&self, name: &MemberName) -> bool {
        self.extra.created_by.as_deref().is_some_and(|by| name.clashes_with(by))
    }

    /// Returns true if `name` owns the task. Names are compared whole, never by prefix (ID-04,
    /// TK-02).
    pub fn is_owned_by(&self, name: &MemberName) -> bool {
        self.owner_name().is_some_and(|owner| name.clashes_with(owner))
    }

    /// Returns the owner; `None` also for a name that no member can have.
    pub fn owner_member(&self) -> Option<MemberName> {
        self.owner_name().and_then(|owner| MemberName::existing(owner).ok())
    }

    /// Returns the owner's name without a `@TEAM` suffix.
    pub fn owner_name(&self) -> Option<&str> {
        self.owner.as_deref().map(|owner| owner.split_once('@').map_or(owner, |(name, _)| name))
    }
}

fn put_changed(file: &mut Object, key: &str, is_changed: bool, value: Value) {
    if is_changed || !file.contains_key(key) {
        wire::put(file, key, value);
    }
}

/// Replaces the keys of [`Extra`]. Other keys, written by a newer release, are preserved.
fn overlay(stored: &mut Object, ours: Object) {
    for key in keys::field_names::<Extra>().iter().filter(|key| !ours.contains_key(**key)) {
        stored.shift_remove(*key);
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
    let stored = ours.filter(|state| !matches!(state, TaskState::Blocked | TaskState::Stopping));
    stored.filter(|state| state.wire() == plain.wire()).unwrap_or(plain)
}

fn edges(file: &Object, key: &str) -> Vec<TaskId> {
    wire::texts(file, key).iter().filter_map(|id| TaskId::parse(id).ok()).collect()
}
