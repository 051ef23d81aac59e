//! Types of values in TOML files that keep their positions, and those of the manifest.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::model::rules::Rule;
use crate::model::value::{CheckedValue, KeyedTable, parse_text, text_types};

text_types! {
    /// Comma-separated permission patterns.
    Patterns(Vec<Rule>) = |text| {
        let text = parse_text(text)?;
        Rule::parse_list(&text).map_err(|problem| format!("the pattern {}", problem.escape_debug()))
    };
}

/// A value with its position.
#[derive(Debug)]
pub(crate) struct Positioned<T>(Spanned<T>);

impl<T> Positioned<T> {
    pub(crate) fn span(&self) -> Range<usize> {
        self.0.span()
    }

    pub(crate) fn get_ref(&self) -> &T {
        self.0.get_ref()
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Positioned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Positioned<T>, D::Error> {
        Spanned::deserialize(deserializer).map(Positioned)
    }
}

/// A list of tables with their positions, as `[[member]]`.
#[derive(Debug)]
pub(crate) struct TableList<T>(pub(crate) Vec<Spanned<T>>);

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
        let tables: Vec<Spanned<KeyedTable<T>>> =
            Vec::deserialize(SeqAccessDeserializer::new(list))?;
        let bare = |table: Spanned<KeyedTable<T>>| Spanned::new(table.span(), table.into_inner().0);
        Ok(TableList(tables.into_iter().map(bare).collect()))
    }
}

impl<T> CheckedValue for TableList<T> {
    type Value = Vec<T>;

    fn into_value(self) -> Vec<T> {
        self.0.into_iter().map(Spanned::into_inner).collect()
    }
}

impl<T: JsonSchema> JsonSchema for Positioned<T> {
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
