//! JSON objects turned into the arguments of verbs, with errors that name the arguments of the
//! tool.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::schema::{ACTION, ActionNames, Renamed, ToolSchema, shown};
use crate::fail::Failure;
use model::name::nearest;
use model::wire::Object;

/// The arguments that hold ids of tasks.
const TASK_IDS: [&str; 6] = ["id", "task", "blocked_by", "unblock", "blocks", "by"];

/// The arguments of one call, under the names of the verb's type.
pub(super) struct ToolArguments {
    action: ActionNames,
    schema: ToolSchema,
    fields: Object,
}

impl ToolArguments {
    /// Reads the arguments of an action: translates other spellings of names, and refuses unknown
    /// and missing arguments.
    ///
    /// # Errors
    /// A usage [`Failure`] that names the argument.
    pub(super) fn read(
        action: ActionNames,
        schema: ToolSchema,
        given: Object,
    ) -> Result<ToolArguments, Failure> {
        let mut fields = Map::new();
        for (name, value) in given {
            let Some(name) = known_name(&name, &schema, action.renamed) else {
                let meant = nearest(&name, schema.properties.keys().map(String::as_str));
                let meant =
                    meant.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
                let problem = format!("there is no argument {name:?}");
                let hint = format!("{meant}the arguments are {}", schema.names());
                return Err(Failure::usage(problem, &hint));
            };
            let value = converted(value, &schema.properties[&name]).map_err(|kind| {
                let problem = format!("argument `{name}`: it must be of type {kind}");
                Failure::usage(problem, &schema.describe(&name))
            })?;
            let field = action.renamed.iter().find(|(_, shown)| *shown == name);
            let field = field.map_or(name.as_str(), |(field, _)| *field);
            let value = if TASK_IDS.contains(&field) { task_ids(value) } else { value };
            fields.insert(field.to_owned(), value);
        }
        let arguments = ToolArguments { action, schema, fields };
        arguments.must_be_complete()?;
        Ok(arguments)
    }

    /// Returns the name of the action.
    pub(super) fn action(&self) -> &'static str {
        self.action.name
    }

    fn must_be_complete(&self) -> Result<(), Failure> {
        let is_given = |name: &String| {
            self.fields.keys().any(|field| shown(field, self.action.renamed) == *name)
        };
        let missing: Vec<&String> =
            self.schema.required.iter().filter(|name| !is_given(name)).collect();
        let Some(first) = missing.first() else { return Ok(()) };
        let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        let problem = format!("{} {verb} missing", names.join(" and "));
        Err(Failure::usage(problem, &self.schema.describe(first)))
    }

    /// Takes some of the arguments out.
    pub(super) fn split(&mut self, names: &[&str]) -> ToolArguments {
        let (action, schema) = (self.action, self.schema.clone());
        let taken = names.iter().filter_map(|name| self.fields.remove_entry(*name));
        ToolArguments { action, schema, fields: taken.collect() }
    }

    /// Takes one argument out; null if it is not given.
    pub(super) fn take(&mut self, name: &str) -> Value {
        self.fields.shift_remove(name).unwrap_or_default()
    }

    /// Returns true if an argument has this word as its value.
    pub(super) fn is(&self, name: &str, word: &str) -> bool {
        self.fields.get(name).and_then(Value::as_str) == Some(word)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Sets an argument that the caller does not give.
    pub(super) fn with(mut self, name: &str, value: Value) -> ToolArguments {
        self.fields.insert(name.to_owned(), value);
        self
    }

    /// Turns the arguments into a variant of an enum with the tag `action`.
    pub(super) fn variant<T: DeserializeOwned>(self) -> Result<T, Failure> {
        let action = self.action.name.into();
        self.with(ACTION, action).parse()
    }

    /// Turns the arguments into those of a verb.
    ///
    /// # Errors
    /// A usage [`Failure`] that names the wrong argument.
    pub(super) fn parse<T: DeserializeOwned>(self) -> Result<T, Failure> {
        let renamed = self.action.renamed;
        serde_path_to_error::deserialize(Value::Object(self.fields)).map_err(|e| {
            let path = e.path().to_string();
            let mut problem = e.into_inner().to_string();
            for (field, shown) in renamed {
                problem = problem.replace(&format!("`{field}`"), &format!("`{shown}`"));
            }
            if path == "." {
                return Failure::usage(problem, "correct it, and call the tool again");
            }
            let name = shown(path.split(['.', '[']).next().unwrap_or_default(), renamed);
            Failure::usage(format!("argument `{name}`: {problem}"), &self.schema.describe(&name))
        })
    }
}

/// Returns the argument that a name means: `taskId` is also `task_id`, and what the command line
/// calls it.
fn known_name(given: &str, schema: &ToolSchema, renamed: &[Renamed]) -> Option<String> {
    if schema.properties.contains_key(given) {
        return Some(given.to_owned());
    }
    let folded = folded(given);
    if let Some(name) = schema.properties.keys().find(|name| self::folded(name) == folded) {
        return Some(name.clone());
    }
    let of_field = renamed.iter().find(|(field, shown)| {
        self::folded(field) == folded && schema.properties.contains_key(*shown)
    });
    of_field.map(|(_, shown)| (*shown).to_owned())
}

fn folded(name: &str) -> String {
    name.chars().filter(|c| !"_-".contains(*c)).map(|c| c.to_ascii_lowercase()).collect()
}

/// Converts a value to the type of its argument: a single value to a list, a number to a text, and
/// a text to what it spells. The verb decides about a boolean for a text.
///
/// # Errors
/// The type, if the value is of another one.
fn converted(value: Value, property: &Value) -> Result<Value, String> {
    let kinds: Vec<&str> = match &property["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(value),
    };
    let is = |value: &Value, kind: &str| match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    if kinds.iter().any(|kind| is(&value, kind)) {
        return Ok(value);
    }
    let [kind] = kinds.as_slice() else { return Err(kinds.join(" or ")) };
    let spelled = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match (value, spelled) {
        (_, Some(spelled)) if is(&spelled, kind) => Ok(spelled),
        (value @ (Value::String(_) | Value::Number(_)), _) if *kind == "array" => {
            Ok(json!([value]))
        }
        (Value::Number(number), _) if *kind == "string" => Ok(number.to_string().into()),
        (value @ Value::Bool(_), _) if *kind == "string" => Ok(value),
        _ => Err((*kind).to_owned()),
    }
}

/// Accepts ids of tasks as numbers.
fn task_ids(value: Value) -> Value {
    match value {
        Value::Number(number) => number.to_string().into(),
        Value::Array(ids) => ids.into_iter().map(task_ids).collect(),
        other => other,
    }
}
