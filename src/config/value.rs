//! Types of values in TOML files.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use model::value::{CheckedValue, KeyedTable};

/// A list of tables, as `[[member]]`.
#[derive(Debug)]
pub struct TableList<T>(pub(crate) Vec<T>);

impl<T> Default for TableList<T> {
    fn default() -> TableList<T> {
        TableList(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TableList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TableList<T>, D::Error> {
        deserializer.deserialize_seq(TableListVisitor(PhantomData))
    }
}

struct TableListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TableListVisitor<T> {
    type Value = TableList<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of tables")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<TableList<T>, A::Error> {
        let tables: Vec<KeyedTable<T>> = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(TableList(tables.into_iter().map(|table| table.0).collect()))
    }
}

impl<T> CheckedValue for TableList<T> {
    type Value = Vec<T>;

    fn into_value(self) -> Vec<T> {
        self.0
    }
}

impl<T: JsonSchema> JsonSchema for TableList<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Vec::<T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<T>::json_schema(generator)
    }
}
