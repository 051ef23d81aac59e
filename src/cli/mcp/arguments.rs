//! Arguments of tools: their schemas, and JSON objects turned into the arguments of verbs. The
//! types are those of the command line; the types here are for tools without a verb of their own.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::cli::fail::Failure;
use crate::model::wire::Object;

/// A name of the command line's types, and the name that tools use.
pub(super) type Renamed = (&'static str, &'static str);

/// The arguments that hold ids of tasks.
const TASK_IDS: [&str; 6] = ["id", "task", "blocked_by", "unblock", "blocks", "by"];

/// The arguments of a tool.
#[derive(Debug, Clone)]
pub(super) struct ToolSchema {
    pub(super) properties: Object,
    pub(super) required: Vec<String>,
}

impl ToolSchema {
    /// Returns the JSON Schema.
    pub(super) fn to_object(&self) -> Object {
        let mut object = Map::new();
        object.insert("type".to_owned(), json!("object"));
        object.insert("properties".to_owned(), Value::Object(self.properties.clone()));
        if !self.required.is_empty() {
            object.insert("required".to_owned(), json!(self.required));
        }
        object.insert("additionalProperties".to_owned(), json!(false));
        object
    }

    fn names(&self) -> String {
        self.properties.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    }

    /// Adds the arguments of another schema; only its first argument of a name counts.
    pub(super) fn merge(&mut self, other: ToolSchema) {
        for (name, property) in other.properties {
            self.properties.entry(name).or_insert(property);
        }
    }
}

/// Returns the schema of a type. The variants of an enum with the tag `action` become one object
/// with all of their fields, because programs do not accept alternatives at the top.
pub(super) fn schema_of<T: JsonSchema>(renamed: &[Renamed]) -> ToolSchema {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let variants = schema.get("oneOf").and_then(Value::as_array);
    let Some(variants) = variants else { return object_schema(schema.as_value(), renamed) };
    let mut whole = ToolSchema { properties: Map::new(), required: vec!["action".to_owned()] };
    let mut actions = Vec::new();
    for variant in variants {
        actions.extend(variant.pointer("/properties/action/const").cloned());
        whole.merge(object_schema(variant, renamed));
    }
    whole.properties.insert("action".to_owned(), json!({ "type": "string", "enum": actions }));
    whole
}

fn object_schema(schema: &Value, renamed: &[Renamed]) -> ToolSchema {
    let shown = |name: &str| {
        renamed
            .iter()
            .find(|(field, _)| *field == name)
            .map_or(name, |(_, shown)| *shown)
            .to_owned()
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let properties = properties
        .map(|(name, property)| (shown(name), plain_property(property.clone())))
        .collect();
    let required = schema["required"].as_array().into_iter().flatten();
    let required = required.filter_map(Value::as_str).map(shown).collect();
    ToolSchema { properties, required }
}

/// Leaves out what a model does not need: formats, limits of number types, `null` as a second type,
/// and defaults of the command line.
fn plain_property(mut property: Value) -> Value {
    let Some(object) = property.as_object_mut() else { return property };
    for key in ["format", "minimum", "maximum", "default"] {
        object.remove(key);
    }
    if let Some([kind, second]) = object.get("type").and_then(Value::as_array).map(Vec::as_slice)
        && second == "null"
    {
        let kind = kind.clone();
        object.insert("type".to_owned(), kind);
    }
    if let Some(text) = object.get("description").and_then(Value::as_str) {
        let text = match text.split_once(" [default: ") {
            Some((before, default)) if default.contains(['-', '$']) => format!("{before}."),
            _ => text.to_owned(),
        };
        object.insert("description".to_owned(), text.replace('\n', " ").into());
    }
    property
}

/// Turns the arguments of a call into those of a verb.
///
/// # Errors
/// [`Failure`] for an unknown, a missing or a wrong argument, with the arguments that there are.
pub(super) fn parse<T: DeserializeOwned>(
    given: Object,
    schema: &ToolSchema,
    renamed: &[Renamed],
) -> Result<T, Failure> {
    let mut fields = Map::new();
    for (name, value) in given {
        if !schema.properties.contains_key(&name) {
            let problem = format!("there is no argument {name:?}");
            return Err(Failure::usage(problem, &format!("the arguments are {}", schema.names())));
        }
        let field = renamed.iter().find(|(_, shown)| *shown == name).map(|(field, _)| *field);
        let field = field.unwrap_or(&name);
        // Many models give null for what they leave out.
        if !value.is_null() {
            let value = if TASK_IDS.contains(&field) { task_ids(value) } else { value };
            fields.insert(field.to_owned(), value);
        }
    }
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|e| {
        let path = e.path().to_string();
        let mut problem = e.into_inner().to_string();
        for (field, shown) in renamed {
            problem = problem.replace(&format!("`{field}`"), &format!("`{shown}`"));
        }
        let shown = renamed.iter().find(|(field, _)| *field == path).map(|(_, shown)| *shown);
        let problem = match (shown, path.as_str()) {
            (_, ".") => problem,
            (Some(shown), _) => format!("argument `{shown}`: {problem}"),
            (None, path) => format!("argument `{path}`: {problem}"),
        };
        Failure::usage(problem, &format!("the arguments are {}", schema.names()))
    })
}

/// Accepts ids of tasks as numbers, and with the `#` of texts.
fn task_ids(value: Value) -> Value {
    match value {
        Value::Number(number) => number.to_string().into(),
        Value::String(text) => text.strip_prefix('#').unwrap_or(&text).into(),
        Value::Array(ids) => ids.into_iter().map(task_ids).collect(),
        other => other,
    }
}

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct NoInput {}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TeamCreateInput {
    /// Name for the new team; a number is appended if it is taken.
    pub(super) team_name: String,
    /// Purpose of the team.
    pub(super) description: Option<String>,
    /// Role of the lead, such as "researcher".
    pub(super) agent_type: Option<String>,
}

/// The kinds of messages that `SendMessage` sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum SendMessageType {
    Message,
    Broadcast,
    ShutdownRequest,
    ShutdownResponse,
    PlanApprovalResponse,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SendMessageInput {
    /// Kind of message.
    #[serde(rename = "type")]
    #[schemars(schema_with = "crate::cli::json::words::<SendMessageType>")]
    pub(super) kind: SendMessageType,
    /// Name of the member; not for a broadcast or a shutdown_response.
    pub(super) recipient: Option<String>,
    /// The message, or the reason.
    pub(super) content: Option<String>,
    /// Preview of 5 to 10 words.
    pub(super) summary: Option<String>,
    /// The request that a response answers.
    pub(super) request_id: Option<String>,
    /// The answer of a response.
    pub(super) approve: Option<bool>,
}

/// The actions of `TeamMessage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum TeamMessageAction {
    Send,
    Broadcast,
    Read,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TeamMessageInput {
    /// Action.
    #[schemars(schema_with = "crate::cli::json::words::<TeamMessageAction>")]
    pub(super) action: TeamMessageAction,
    /// Recipient, to send.
    pub(super) to: Option<String>,
    /// The message, to send or broadcast.
    pub(super) text: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReadInboxInput {
    /// Seconds to wait for a message if there is none, at most 60.
    #[serde(default)]
    pub(super) wait: f64,
    /// Include messages that were read before.
    #[serde(default)]
    pub(super) all: bool,
}

/// A selection of tasks by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum TaskFilter {
    Active,
    InReview,
    Completed,
    All,
}

/// The argument of lists of tasks beside those of `task list`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TaskFilterInput {
    /// Which tasks to list; by default those that have not ended.
    #[serde(default)]
    #[schemars(schema_with = "crate::cli::json::words::<TaskFilter>")]
    pub(super) filter: Option<TaskFilter>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TaskGetInput {
    /// Id of the task.
    #[schemars(schema_with = "crate::cli::json::task_id")]
    pub(super) id: crate::model::id::TaskId,
    /// Return the whole result, also if it has more than 8000 characters.
    #[serde(default)]
    pub(super) full: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TaskSearchInput {
    /// Words in the subject, the description or the comments.
    pub(super) query: String,
    /// Maximum number of tasks.
    pub(super) limit: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RequestsInput {
    /// Show this request in full.
    pub(super) request_id: Option<String>,
    /// Include requests that were answered.
    #[serde(default)]
    pub(super) all: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SubmitPlanInput {
    /// The plan, as Markdown: what will be done, in which order, and how it is checked.
    pub(super) plan: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct HandoffInput {
    /// Name of the member; it is started if it is not on the team.
    pub(super) name: String,
    /// The work to do.
    pub(super) prompt: String,
    /// Profile of its program, if it is started.
    pub(super) profile: Option<String>,
    /// Role, if it is started.
    pub(super) role: Option<String>,
    /// Model, if it is started.
    pub(super) model: Option<String>,
    /// Host to run on, if it is started.
    pub(super) host: Option<String>,
    /// Working directory, if it is started.
    pub(super) cwd: Option<String>,
    /// Seconds to wait for the result, at most 600; 300 by default.
    pub(super) timeout: Option<f64>,
}
