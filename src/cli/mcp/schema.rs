//! The schemas of the arguments of tools, from the types of the command line.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use model::wire::Object;

/// A name of the command line's types, and the name that tools use.
pub(super) type Renamed = (&'static str, &'static str);

/// The argument that selects the action of a tool.
pub(super) const ACTION: &str = "action";

/// The name of an action, and its names for the fields of its verb.
#[derive(Debug, Clone, Copy)]
pub(super) struct ActionNames {
    /// Empty for a tool without actions.
    pub(super) name: &'static str,
    pub(super) renamed: &'static [Renamed],
}

/// The arguments of a tool.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolSchema {
    pub(super) properties: Object,
    pub(super) required: Vec<String>,
}

impl ToolSchema {
    /// Returns the JSON Schema. Other arguments are not excluded: a tool accepts further names for
    /// some, and a client that checks a call would refuse them.
    pub(super) fn to_object(&self) -> Object {
        let mut object = Map::new();
        object.insert("type".to_owned(), json!("object"));
        object.insert("properties".to_owned(), Value::Object(self.properties.clone()));
        if !self.required.is_empty() {
            object.insert("required".to_owned(), json!(self.required));
        }
        object
    }

    /// Adds the arguments of another schema; only its first argument of a name counts.
    pub(super) fn merge(&mut self, other: ToolSchema) {
        for (name, property) in other.properties {
            self.properties.entry(name).or_insert(property);
        }
    }

    /// Removes an argument.
    pub(super) fn without(mut self, name: &str) -> ToolSchema {
        self.properties.shift_remove(name);
        self.required.retain(|required| required != name);
        self
    }

    /// Makes arguments required that the command line can take from elsewhere.
    pub(super) fn requiring(mut self, names: &[&str]) -> ToolSchema {
        self.required.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    /// Leaves out the meanings of arguments, for one that another tool describes.
    pub(super) fn undescribed(mut self) -> ToolSchema {
        for property in self.properties.values_mut().filter_map(Value::as_object_mut) {
            property.shift_remove("description");
        }
        self
    }

    pub(super) fn names(&self) -> String {
        let names: Vec<_> = self.properties.keys().map(|name| format!("`{name}`")).collect();
        if names.is_empty() { "there are none".to_owned() } else { names.join(", ") }
    }

    /// Returns an argument with its meaning.
    pub(super) fn describe(&self, name: &str) -> String {
        let property = self.properties.get(name);
        let meaning = property.and_then(|property| property["description"].as_str());
        let known = |meaning| format!("`{name}`: {meaning}");
        meaning.map_or_else(|| format!("call the tool again with `{name}`"), known)
    }
}

/// Returns the schema of the action's arguments, which are those of a type.
pub(super) fn schema_of<T: JsonSchema>(action: &ActionNames) -> ToolSchema {
    object_schema(root_schema::<T>().as_value(), action.renamed)
}

/// Returns the schema of the action's arguments, which are those of a variant of an enum with the
/// tag `action`.
pub(super) fn variant_of<T: JsonSchema>(action: &ActionNames) -> ToolSchema {
    let schema = root_schema::<T>();
    let mut variants = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let is_own = |variant: &&Value| variant["properties"][ACTION]["const"] == action.name;
    let variant = variants.find(is_own).map(|variant| object_schema(variant, action.renamed));
    variant.unwrap_or_default().without(ACTION)
}

fn root_schema<T: JsonSchema>() -> schemars::Schema {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>()
}

fn object_schema(schema: &Value, renamed: &[Renamed]) -> ToolSchema {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let properties = properties
        .map(|(name, property)| (shown(name, renamed), plain_property(property.clone())))
        .collect();
    let required = schema["required"].as_array().into_iter().flatten();
    let required = required.filter_map(Value::as_str).map(|name| shown(name, renamed)).collect();
    ToolSchema { properties, required }
}

/// Returns the name that tools use for a field.
pub(super) fn shown(field: &str, renamed: &[Renamed]) -> String {
    let found = renamed.iter().find(|(name, _)| *name == field);
    found.map_or(field, |(_, shown)| *shown).to_owned()
}

/// Leaves out what a model does not need: formats, limits of number types, `null` as a second type,
/// and defaults of the command line. OpenAI refuses an object without `properties`.
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
    if object.get("type").is_some_and(|kind| kind == "object") {
        object.entry("properties").or_insert_with(|| json!({}));
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
