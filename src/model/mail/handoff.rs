//! Typed bodies of handoffs: JSON objects in which members report progress, blockers, reviews and
//! contracts. Fields that a type does not have are allowed, because other tools add their own.

mod types;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::id::TeamName;
use crate::mail::protocol::Message;
use crate::mail::protocol::fields::{object, text};
use crate::name::check_name;
use crate::text;
use crate::time::Timestamp;
use crate::wire::Object;
pub use types::HandoffField;

/// Maximum length of the value that an error repeats, in characters.
const FOUND: usize = 40;

/// A body of a known type. The docs of a body and of its fields are shown to users.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema, strum::EnumDiscriminants)]
#[serde(rename_all = "snake_case")]
#[strum_discriminants(
    name(HandoffType),
    derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray),
    strum(serialize_all = "snake_case")
)]
pub enum Handoff {
    DevProgress(DevProgress),
    DevBlocker(DevBlocker),
    SeniorSpec(SeniorSpec),
    CodeReviewResult(CodeReviewResult),
    CodeReviewChanges(CodeReviewChanges),
    ArchitectureDesign(ArchitectureDesign),
    ApiContract(ApiContract),
    DepartmentResult(DepartmentResult),
    TaskClaim(TaskClaim),
    TaskComplete(TaskComplete),
    AgentHealthEvent(AgentHealthEvent),
}

/// A task is complete, partly done or failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct DevProgress {
    /// The task as PLAN/TASK, a text.
    #[serde(deserialize_with = "text")]
    task: String,
    /// The id of the plan, a text.
    #[serde(deserialize_with = "text")]
    plan_id: String,
    /// `complete`, `partial` or `failed`.
    status: ProgressStatus,
    /// The hash of a commit, a text.
    commit: Option<String>,
    /// A list of texts.
    #[serde(default)]
    concerns: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
enum ProgressStatus {
    Complete,
    Partial,
    Failed,
}

/// A task cannot go on without help.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct DevBlocker {
    /// The task as PLAN/TASK, a text.
    #[serde(deserialize_with = "text")]
    task: String,
    /// The id of the plan, a text.
    #[serde(deserialize_with = "text")]
    plan_id: String,
    /// The obstacle, a text.
    #[serde(deserialize_with = "text")]
    blocker: String,
    /// The condition for going on, a text.
    #[serde(deserialize_with = "text")]
    needs: String,
    /// A list of texts.
    #[serde(default)]
    attempted: Vec<String>,
}

/// The design of a plan was reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct SeniorSpec {
    /// The id of the plan, a text.
    #[serde(deserialize_with = "text")]
    plan_id: String,
    /// A list of texts.
    #[serde(default)]
    concerns: Vec<String>,
}

/// The code of a plan was reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct CodeReviewResult {
    /// The id of the plan, a text.
    #[serde(deserialize_with = "text")]
    plan_id: String,
    /// `approve` or `changes_requested`.
    result: ReviewResult,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ReviewResult {
    Approve,
    ChangesRequested,
}

/// A review requests changes to code.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct CodeReviewChanges {
    /// The id of the plan, a text.
    #[serde(deserialize_with = "text")]
    plan_id: String,
    /// A list of at least one object with `issue`, and optionally `f` (file), `ln` (line) and
    /// `fix`.
    #[serde(deserialize_with = "objects")]
    changes: Vec<RequestedChange>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
struct RequestedChange {
    /// Path of the file.
    f: Option<String>,
    /// Line in the file.
    ln: Option<u64>,
    #[serde(deserialize_with = "text")]
    issue: String,
    fix: Option<String>,
}

/// The architecture is designed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ArchitectureDesign {
    /// The path of the document, a text.
    #[serde(deserialize_with = "text")]
    artifact: String,
}

/// An interface between two departments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ApiContract {
    /// `proposed`, `agreed` or `implemented`.
    status: ContractStatus,
    /// A list of at least one object with `method` and `path`.
    #[serde(deserialize_with = "objects")]
    endpoints: Vec<ContractEndpoint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ContractStatus {
    Proposed,
    Agreed,
    Implemented,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
struct ContractEndpoint {
    #[serde(deserialize_with = "text")]
    method: String,
    #[serde(deserialize_with = "text")]
    path: String,
}

/// A department has completed its work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct DepartmentResult {
    /// The name of the department, a text.
    #[serde(deserialize_with = "text")]
    department: String,
    /// `PASS`, `PARTIAL` or `FAIL`.
    result: DepartmentOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
enum DepartmentOutcome {
    Pass,
    Partial,
    Fail,
}

/// A task of a plan is claimed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct TaskClaim {
    /// The id of the task within its plan, a text.
    #[serde(deserialize_with = "text")]
    task_id: String,
    /// The id of the plan, a text.
    #[serde(deserialize_with = "text")]
    plan_id: String,
    /// A list of texts.
    #[serde(default)]
    files: Vec<String>,
}

/// A task of a plan is complete.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct TaskComplete {
    /// The id of the task within its plan, a text.
    #[serde(deserialize_with = "text")]
    task_id: String,
    /// The id of the plan, a text.
    #[serde(deserialize_with = "text")]
    plan_id: String,
    /// The hash of a commit, a text.
    commit: Option<String>,
    /// A list of texts.
    #[serde(default)]
    files_modified: Vec<String>,
}

/// The state of an agent has changed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct AgentHealthEvent {
    /// The name of the agent, a text.
    #[serde(deserialize_with = "text")]
    agent_id: String,
    /// `start`, `idle`, `stop` or `disappeared`.
    state: AgentState,
    /// The time of the change, a text.
    #[serde(deserialize_with = "text")]
    timestamp: String,
    /// The name of the department, a text.
    dept: Option<String>,
    /// `start`, `idle`, `stop` or `disappeared`.
    prev_state: Option<AgentState>,
    /// True or false.
    timeout_triggered: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
enum AgentState {
    Start,
    Idle,
    Stop,
    Disappeared,
}

/// Reads a list of at least one object. A derived struct alone would also accept a list of its
/// values.
fn objects<'de, D, T>(field: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let items = Vec::<Value>::deserialize(field)?;
    if items.is_empty() {
        return Err(D::Error::custom("is empty"));
    }
    let read = |item| {
        let item = object(item).map_err(D::Error::custom)?;
        serde_json::from_value(Value::Object(item)).map_err(D::Error::custom)
    };
    items.into_iter().map(read).collect()
}

impl HandoffType {
    /// Returns the name in the field `type`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A body that does not have the form of its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` in `{}` {problem}; expected {expected}", .kind.as_str())]
pub struct HandoffFault {
    pub kind: HandoffType,
    /// Path of the field, such as `changes[0].issue`.
    field: String,
    /// `is missing`, or the value that was found.
    problem: String,
    expected: String,
}

impl HandoffFault {
    fn new(
        kind: HandoffType,
        body: &Object,
        e: &serde_path_to_error::Error<serde_json::Error>,
    ) -> HandoffFault {
        let path = e.path().to_string();
        let missing = e.inner().to_string();
        let missing =
            missing.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
        // The path starts with the type.
        let field = match (path.split_once('.'), missing) {
            (Some((_, field)), _) => field.to_owned(),
            (None, missing) => missing.unwrap_or_default().to_owned(),
        };
        let root = field.split(['.', '[']).next().unwrap_or_default();
        let problem = match body.get(root) {
            Some(value) => format!("is {}", text::short(&value.to_string(), FOUND)),
            None => "is missing".to_owned(),
        };
        let known = kind.fields().into_iter().find(|known| known.name == root);
        let expected = known.map_or_else(|| "another value".to_owned(), |known| known.expected);
        HandoffFault { kind, field, problem, expected }
    }
}

impl Handoff {
    /// Reads a body. A field that is null counts as missing.
    ///
    /// # Errors
    /// The first field that is missing or has another form.
    pub fn read(kind: HandoffType, body: &Object) -> Result<Handoff, HandoffFault> {
        let mut given = body.clone();
        given.retain(|_, value| !value.is_null());
        let given = json!({ kind.as_str(): given });
        serde_path_to_error::deserialize(given).map_err(|e| HandoffFault::new(kind, body, &e))
    }

    /// Reads a message as a handoff; `None` if it is not of a known type.
    pub fn of_message(message: &Message) -> Option<Result<Handoff, HandoffFault>> {
        let Message::Unknown { kind, raw } = message else { return None };
        let kind: HandoffType = kind.parse().ok()?;
        let body: Object = serde_json::from_str(raw.trim()).ok()?;
        Some(Handoff::read(kind, &body))
    }

    /// Returns the predicate of a sentence about the sender.
    pub fn sentence(&self) -> String {
        let of_commit = |commit: &Option<String>| {
            commit.as_ref().map(|hash| format!(" ({hash})")).unwrap_or_default()
        };
        match self {
            Handoff::DevProgress(progress) => {
                let status: &str = progress.status.into();
                format!("reports {} {status}{}", progress.task, of_commit(&progress.commit))
            }
            Handoff::DevBlocker(blocked) => {
                format!("is blocked on {}: {}", blocked.task, blocked.blocker)
            }
            Handoff::SeniorSpec(spec) => {
                format!("has reviewed the design of plan {}", spec.plan_id)
            }
            Handoff::CodeReviewResult(review) => match review.result {
                ReviewResult::Approve => format!("approves the code of plan {}", review.plan_id),
                ReviewResult::ChangesRequested => {
                    format!("requests changes to the code of plan {}", review.plan_id)
                }
            },
            Handoff::CodeReviewChanges(review) => match review.changes.len() {
                1 => format!("requests 1 change to the code of plan {}", review.plan_id),
                some => format!("requests {some} changes to the code of plan {}", review.plan_id),
            },
            Handoff::ArchitectureDesign(design) => {
                format!("has designed the architecture: {}", design.artifact)
            }
            Handoff::ApiContract(contract) => {
                let verb = match contract.status {
                    ContractStatus::Proposed => "proposes",
                    ContractStatus::Agreed => "agrees to",
                    ContractStatus::Implemented => "has implemented",
                };
                match contract.endpoints.len() {
                    1 => format!("{verb} an API contract with 1 endpoint"),
                    some => format!("{verb} an API contract with {some} endpoints"),
                }
            }
            Handoff::DepartmentResult(done) => {
                let result: &str = done.result.into();
                format!("reports the result of department {}: {result}", done.department)
            }
            Handoff::TaskClaim(claim) => format!("claims {}/{}", claim.plan_id, claim.task_id),
            Handoff::TaskComplete(done) => {
                let commit = of_commit(&done.commit);
                format!("reports {}/{} complete{commit}", done.plan_id, done.task_id)
            }
            Handoff::AgentHealthEvent(health) => {
                let state: &str = health.state.into();
                format!("reports the state of agent {}: {state}", health.agent_id)
            }
        }
    }

    /// Returns the lines that complete the sentence.
    pub fn details(&self) -> Vec<String> {
        let all = |what: &str, texts: &[String]| {
            texts.iter().map(|text| format!("{what}: {text}")).collect::<Vec<_>>()
        };
        match self {
            Handoff::DevProgress(progress) => {
                let mut lines = plan_line(&progress.task, &progress.plan_id);
                lines.extend(all("concern", &progress.concerns));
                lines
            }
            Handoff::DevBlocker(blocked) => {
                let mut lines = plan_line(&blocked.task, &blocked.plan_id);
                lines.push(format!("needs: {}", blocked.needs));
                lines.extend(all("tried", &blocked.attempted));
                lines
            }
            Handoff::SeniorSpec(spec) => all("concern", &spec.concerns),
            Handoff::CodeReviewChanges(review) => {
                review.changes.iter().map(RequestedChange::line).collect()
            }
            Handoff::ApiContract(contract) => {
                let endpoint = |of: &ContractEndpoint| format!("{} {}", of.method, of.path);
                contract.endpoints.iter().map(endpoint).collect()
            }
            Handoff::TaskClaim(claim) => all("file", &claim.files),
            Handoff::TaskComplete(done) => all("file", &done.files_modified),
            Handoff::AgentHealthEvent(health) => {
                let before: Option<&str> = health.prev_state.map(Into::into);
                let facts = [
                    Some(format!("since {}", health.timestamp)),
                    health.dept.as_ref().map(|dept| format!("department: {dept}")),
                    before.map(|before| format!("before: {before}")),
                    health.timeout_triggered.filter(|by| *by).map(|_| "after a timeout".to_owned()),
                ];
                facts.into_iter().flatten().collect()
            }
            Handoff::CodeReviewResult(_)
            | Handoff::ArchitectureDesign(_)
            | Handoff::DepartmentResult(_) => Vec::new(),
        }
    }
}

/// Names the plan of a task whose own name does not.
fn plan_line(task: &str, plan: &str) -> Vec<String> {
    if task.starts_with(plan) { Vec::new() } else { vec![format!("plan: {plan}")] }
}

impl RequestedChange {
    /// Formats the change as `FILE:LINE: ISSUE; fix: FIX`.
    fn line(&self) -> String {
        let line = self.ln.map(|line| format!(":{line}")).unwrap_or_default();
        let place = self.f.as_ref().map(|file| format!("{file}{line}: ")).unwrap_or_default();
        let fix = self.fix.as_ref().map(|fix| format!("; fix: {fix}")).unwrap_or_default();
        format!("{place}{}{fix}", self.issue)
    }
}

/// A handoff from another team, one line of a handoff file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeamHandoff {
    /// A UUID, which is also the id of the message about it.
    #[serde(deserialize_with = "name")]
    pub id: String,
    pub from_team: TeamName,
    #[serde(rename = "type", deserialize_with = "name")]
    pub kind: String,
    pub at: Timestamp,
    pub body: Object,
}

impl TeamHandoff {
    /// Returns the predicate of a sentence about the other team's lead; `None` if the body is not a
    /// valid one of a known type.
    pub fn sentence(&self) -> Option<String> {
        let kind: HandoffType = self.kind.parse().ok()?;
        Handoff::read(kind, &self.body).ok().map(|handoff| handoff.sentence())
    }
}

/// Reads a name that is safe in a file name and in a command line, because the message about a
/// handoff contains both.
fn name<'de, D: Deserializer<'de>>(field: D) -> Result<String, D::Error> {
    let name = String::deserialize(field)?;
    check_name(&name).map_err(|problem| D::Error::custom(format_args!("{name:?} {problem}")))?;
    Ok(name)
}

#[cfg(test)]
mod tests;
