//! The fields of each type of handoff and an example, for help and for errors.

use super::HandoffType;

/// A field of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HandoffField {
    pub(crate) name: &'static str,
    pub(crate) is_required: bool,
    /// The values that it takes, as a noun phrase.
    pub(crate) expected: &'static str,
}

const fn required(name: &'static str, expected: &'static str) -> HandoffField {
    HandoffField { name, is_required: true, expected }
}

const fn optional(name: &'static str, expected: &'static str) -> HandoffField {
    HandoffField { name, is_required: false, expected }
}

const PLAN: HandoffField = required("plan_id", "the id of the plan, a text");
const PLAN_TASK: HandoffField = required("task", "the task as PLAN/TASK, a text");
const TASK_ID: HandoffField = required("task_id", "the id of the task within its plan, a text");
const COMMIT: HandoffField = optional("commit", "the hash of a commit, a text");
const CONCERNS: HandoffField = optional("concerns", "a list of texts");

impl HandoffType {
    /// Returns the purpose of the type, as a clause.
    pub(crate) fn purpose(self) -> &'static str {
        match self {
            HandoffType::DevProgress => "a task is complete, partly done or failed",
            HandoffType::DevBlocker => "a task cannot go on without help",
            HandoffType::SeniorSpec => "the design of a plan was reviewed",
            HandoffType::CodeReviewResult => "the code of a plan was reviewed",
            HandoffType::CodeReviewChanges => "a review requests changes to code",
            HandoffType::ArchitectureDesign => "the architecture is designed",
            HandoffType::ApiContract => "an interface between two departments",
            HandoffType::DepartmentResult => "a department has completed its work",
            HandoffType::TaskClaim => "a task of a plan is claimed",
            HandoffType::TaskComplete => "a task of a plan is complete",
            HandoffType::AgentHealthEvent => "the state of an agent has changed",
        }
    }

    /// Returns the fields besides `type`, required ones first.
    pub(crate) fn fields(self) -> &'static [HandoffField] {
        match self {
            HandoffType::DevProgress => {
                const STATUS: HandoffField =
                    required("status", "`complete`, `partial` or `failed`");
                &[PLAN_TASK, PLAN, STATUS, COMMIT, CONCERNS]
            }
            HandoffType::DevBlocker => {
                const BLOCKER: HandoffField = required("blocker", "what is in the way, a text");
                const NEEDS: HandoffField = required("needs", "what has to happen first, a text");
                const ATTEMPTED: HandoffField = optional("attempted", "a list of texts");
                &[PLAN_TASK, PLAN, BLOCKER, NEEDS, ATTEMPTED]
            }
            HandoffType::SeniorSpec => &[PLAN, CONCERNS],
            HandoffType::CodeReviewResult => {
                const RESULT: HandoffField = required("result", "`approve` or `changes_requested`");
                &[PLAN, RESULT]
            }
            HandoffType::CodeReviewChanges => {
                const CHANGES: HandoffField = required(
                    "changes",
                    "a list of at least one object with `issue`, and optionally `f` (file), `ln` (line) and `fix`",
                );
                &[PLAN, CHANGES]
            }
            HandoffType::ArchitectureDesign => {
                const ARTIFACT: HandoffField =
                    required("artifact", "the path of the document, a text");
                &[ARTIFACT]
            }
            HandoffType::ApiContract => {
                const STATUS: HandoffField =
                    required("status", "`proposed`, `agreed` or `implemented`");
                const ENDPOINTS: HandoffField =
                    required("endpoints", "a list of at least one object with `method` and `path`");
                &[STATUS, ENDPOINTS]
            }
            HandoffType::DepartmentResult => {
                const DEPARTMENT: HandoffField =
                    required("department", "the name of the department, a text");
                const RESULT: HandoffField = required("result", "`PASS`, `PARTIAL` or `FAIL`");
                &[DEPARTMENT, RESULT]
            }
            HandoffType::TaskClaim => {
                const FILES: HandoffField = optional("files", "a list of texts");
                &[TASK_ID, PLAN, FILES]
            }
            HandoffType::TaskComplete => {
                const FILES: HandoffField = optional("files_modified", "a list of texts");
                &[TASK_ID, PLAN, COMMIT, FILES]
            }
            HandoffType::AgentHealthEvent => {
                const AGENT: HandoffField = required("agent_id", "the name of the agent, a text");
                const STATE: HandoffField =
                    required("state", "`start`, `idle`, `stop` or `disappeared`");
                const AT: HandoffField = required("timestamp", "the time of the change, a text");
                const DEPT: HandoffField = optional("dept", "the name of the department, a text");
                const BEFORE: HandoffField =
                    optional("prev_state", "`start`, `idle`, `stop` or `disappeared`");
                const TIMEOUT: HandoffField = optional("timeout_triggered", "true or false");
                &[AGENT, STATE, AT, DEPT, BEFORE, TIMEOUT]
            }
        }
    }

    /// Returns a valid body with every field, as compact JSON.
    pub(crate) fn example(self) -> &'static str {
        match self {
            HandoffType::DevProgress => {
                r#"{"type":"dev_progress","task":"01-01/T3","plan_id":"01-01","commit":"abc1234","status":"complete","concerns":[]}"#
            }
            HandoffType::DevBlocker => {
                r#"{"type":"dev_blocker","task":"01-02/T1","plan_id":"01-02","blocker":"Dependency module from plan 01-01 not yet committed","needs":"01-01 to complete first","attempted":["Checked git log for 01-01 commits"]}"#
            }
            HandoffType::SeniorSpec => {
                r#"{"type":"senior_spec","plan_id":"01-01","concerns":["T2 depends on an undecided format"]}"#
            }
            HandoffType::CodeReviewResult => {
                r#"{"type":"code_review_result","plan_id":"01-01","result":"approve"}"#
            }
            HandoffType::CodeReviewChanges => {
                r#"{"type":"code_review_changes","plan_id":"01-01","changes":[{"f":"src/login.rs","ln":42,"issue":"The error is dropped","fix":"Return it"}]}"#
            }
            HandoffType::ArchitectureDesign => {
                r#"{"type":"architecture_design","artifact":"phases/01/architecture.toon"}"#
            }
            HandoffType::ApiContract => {
                r#"{"type":"api_contract","status":"proposed","endpoints":[{"method":"POST","path":"/login"}]}"#
            }
            HandoffType::DepartmentResult => {
                r#"{"type":"department_result","department":"backend","result":"PASS"}"#
            }
            HandoffType::TaskClaim => {
                r#"{"type":"task_claim","task_id":"T3","plan_id":"03-01","files":["src/login.rs"]}"#
            }
            HandoffType::TaskComplete => {
                r#"{"type":"task_complete","task_id":"T3","plan_id":"03-01","commit":"abc1234","files_modified":["src/login.rs"]}"#
            }
            HandoffType::AgentHealthEvent => {
                r#"{"type":"agent_health_event","agent_id":"dev-1","dept":"backend","state":"disappeared","timestamp":"2026-02-17T10:30:00Z","prev_state":"idle","timeout_triggered":true}"#
            }
        }
    }
}
