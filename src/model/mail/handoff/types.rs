//! The fields of each type of handoff and an example, for help and for errors.

use std::sync::LazyLock;

use schemars::{Schema, schema_for};
use serde_json::Value;

use super::{Handoff, HandoffType};

/// A field of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffField {
    pub name: String,
    pub is_required: bool,
    /// The values that it takes, as a noun phrase.
    pub expected: String,
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| schema_for!(Handoff));

impl HandoffType {
    fn schema(self) -> &'static Value {
        SCHEMA.pointer(&format!("/$defs/{self:?}")).expect("each type has a body")
    }

    /// Returns the purpose of the type, as a clause.
    pub fn purpose(self) -> String {
        clause(self.schema())
    }

    /// Returns the fields besides `type`, required ones first.
    pub fn fields(self) -> Vec<HandoffField> {
        let schema = self.schema();
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        let fields = schema["properties"].as_object().into_iter().flatten();
        let field = |(name, about): (&String, &Value)| HandoffField {
            name: name.clone(),
            is_required: required.iter().any(|known| known == name),
            expected: clause(about),
        };
        fields.map(field).collect()
    }

    /// Returns a valid body with every field, as compact JSON.
    pub fn example(self) -> &'static str {
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

/// Returns the description of a schema, which is a sentence, as a clause.
fn clause(about: &Value) -> String {
    let sentence = about["description"].as_str().unwrap_or_default().trim_end_matches('.');
    let mut letters = sentence.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).map(|c| if c == '\n' { ' ' } else { c }).collect()
}
