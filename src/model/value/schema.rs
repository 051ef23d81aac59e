//! JSON Schemas of the generic types of this module. Each wraps a type, and has its schema.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{Argv, As, AtLeast, Choice, KeyedTable, VARIABLE_PATTERN, Variables, inline_schema};

/// Gives a wrapper the schema of the type that it wraps.
macro_rules! transparent {
    ($($name:ident),*) => {$(
        impl<T: JsonSchema> JsonSchema for $name<T> {
            fn inline_schema() -> bool {
                T::inline_schema()
            }

            fn schema_name() -> Cow<'static, str> {
                T::schema_name()
            }

            fn schema_id() -> Cow<'static, str> {
                T::schema_id()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                T::json_schema(generator)
            }
        }
    )*};
}

transparent!(As, Choice, KeyedTable);

impl<const LEAST: i64, T> JsonSchema for AtLeast<LEAST, T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("AtLeast{LEAST}").into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": LEAST })
    }
}

inline_schema!(Argv, { "type": "array", "items": { "type": "string" }, "minItems": 1 });

impl<C> JsonSchema for Variables<C> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Variables".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "propertyNames": { "pattern": VARIABLE_PATTERN },
            "additionalProperties": { "type": "string" }
        })
    }
}
