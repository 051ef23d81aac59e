//! Types of values that people write, which check them while they are deserialized. Each is a type
//! rather than a conversion of a field, so that the deserializer reports a fault at the value
//! itself, also inside a list.

mod schema;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::members::placeholder::check_value;
use crate::name::{check_member_name, check_name, check_pattern, check_variable};

/// The start of a message. In a configuration file the key and its section take its place:
/// `` `name` in [team] ``.
pub const FIELD: &str = "the value";

/// A type that checks a value while it is deserialized.
pub trait CheckedValue {
    /// The type in which the checked value is kept.
    type Value;

    fn into_value(self) -> Self::Value;
}

/// Checks a field as `C` and keeps its plain value: `#[serde(with = "As::<C>")]`. The JSON Schema
/// of the field is that of `C`.
pub struct As<C>(PhantomData<C>);

impl<C: CheckedValue> As<C> {
    pub fn deserialize<'de, D>(deserializer: D) -> Result<C::Value, D::Error>
    where
        C: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        C::deserialize(deserializer).map(C::into_value)
    }

    pub fn serialize<S>(value: &C::Value, serializer: S) -> Result<S::Ok, S::Error>
    where
        C::Value: Serialize,
        S: Serializer,
    {
        value.serialize(serializer)
    }
}

impl CheckedValue for String {
    type Value = String;

    fn into_value(self) -> String {
        self
    }
}

impl<C: CheckedValue> CheckedValue for Option<C> {
    type Value = Option<C::Value>;

    fn into_value(self) -> Self::Value {
        self.map(C::into_value)
    }
}

impl<C: CheckedValue> CheckedValue for Vec<C> {
    type Value = Vec<C::Value>;

    fn into_value(self) -> Self::Value {
        self.into_iter().map(C::into_value).collect()
    }
}

impl<K: CheckedValue<Value: Ord>, C: CheckedValue> CheckedValue for BTreeMap<K, C> {
    type Value = BTreeMap<K::Value, C::Value>;

    fn into_value(self) -> Self::Value {
        self.into_iter().map(|(key, value)| (key.into_value(), value.into_value())).collect()
    }
}

/// Defines types that are parsed from a string. A message may begin with [`FIELD`].
#[macro_export]
macro_rules! text_types {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis $name:ident($value:ty) $({ $($rule:tt)* })? = $parse:expr;
    )*) => {$(
        $(#[$attribute])*
        #[derive(Debug)]
        $visibility struct $name($visibility $value);

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let parsed = $crate::value::ParsedText($parse);
                deserializer.deserialize_string(parsed).map($name)
            }
        }

        impl $crate::value::CheckedValue for $name {
            type Value = $value;

            fn into_value(self) -> $value {
                self.0
            }
        }

        $crate::value::inline_schema!(
            $name, { "type": "string" $(, $($rule)*)? }
        );
    )*};
}
pub use text_types;

/// Defines the JSON Schema of a type that is deserialized by hand.
#[macro_export]
macro_rules! inline_schema {
    ($name:ident, $schema:tt) => {
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}
pub use inline_schema;

/// The names that [`check_name`] accepts, for schemas.
pub const NAME_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";

/// The names that [`check_variable`] accepts, for schemas.
pub const VARIABLE_PATTERN: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

/// Deserializes a string with a function.
pub struct ParsedText<T>(pub fn(&str) -> Result<T, String>);

impl<T> Visitor<'_> for ParsedText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

text_types! {
    /// Text without NUL bytes, since it is used in a command line or a path.
    #[derive(Default)]
    pub PlainText(String) = parse_text;
    /// The value of a member's variable, which may contain `{name}` and `{index}`.
    pub MemberText(String) = |text| {
        let text = parse_text(text)?;
        match check_value(&text) {
            Ok(()) => Ok(text),
            Err(problem) => Err(format!("{FIELD} {problem}")),
        }
    };
    /// Plain text that is not blank.
    pub NonBlank(String) { "pattern": r"\S" } = parse_non_blank;
    /// A name that phalanx may create.
    pub Name(String) { "pattern": NAME_PATTERN } = |text| checked(parse_non_blank(text), check_name);
    /// The name of a new member.
    pub NewMemberName(String) { "pattern": NAME_PATTERN } =
        |text| checked(parse_non_blank(text), check_member_name);
    /// The name of an environment variable, as a key.
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    pub VariableName(String) { "pattern": VARIABLE_PATTERN } = |text| {
        check_variable(text).map_err(|problem| format!("{FIELD} {problem}"))?;
        Ok(text.to_owned())
    };
    /// The name of an environment variable, or a prefix followed by `*`.
    pub VariablePattern(String) { "pattern": r"^(\*|[A-Za-z_][A-Za-z0-9_]*\*?)$" } =
        |text| checked(parse_text(text), check_pattern);
}

pub fn parse_text(text: &str) -> Result<String, String> {
    if text.contains('\0') {
        return Err(format!("{FIELD} must not contain a NUL character"));
    }
    Ok(text.to_owned())
}

pub fn parse_non_blank(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err(format!("{FIELD} is empty"));
    }
    parse_text(text)
}

/// Parses one of a list of words.
pub fn known_word(text: &str, known: &'static [&'static str]) -> Result<String, String> {
    let word = parse_non_blank(text)?;
    if known.contains(&text) {
        return Ok(word);
    }
    Err(serde::de::value::Error::unknown_variant(&word, known).to_string())
}

/// Checks a text by a rule whose message continues a sentence that starts with the text.
pub fn checked(
    text: Result<String, String>,
    rule: fn(&str) -> Result<(), String>,
) -> Result<String, String> {
    let text = text?;
    match rule(&text) {
        Ok(()) => Ok(text),
        Err(problem) => Err(format!("{FIELD}: `{}` {problem}", text.escape_debug())),
    }
}

/// One of the fixed words of an enum.
#[derive(Debug)]
pub struct Choice<T>(pub T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Choice<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Choice<T>, D::Error> {
        let parsed = ParsedText(|text| {
            let word = parse_non_blank(text)?;
            let word = StrDeserializer::<serde::de::value::Error>::new(&word);
            T::deserialize(word).map(Choice).map_err(|e| e.to_string())
        });
        deserializer.deserialize_string(parsed)
    }
}

impl<T> CheckedValue for Choice<T> {
    type Value = T;

    fn into_value(self) -> T {
        self.0
    }
}

/// An integer that is not less than `LEAST`.
#[derive(Debug)]
pub struct AtLeast<const LEAST: i64, T = usize>(pub T);

impl<'de, const LEAST: i64, T: TryFrom<i64>> Deserialize<'de> for AtLeast<LEAST, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AtLeast<LEAST, T>, D::Error> {
        let number = i64::deserialize(deserializer)?;
        if number < LEAST {
            return Err(D::Error::custom(format!("{FIELD} must be at least {LEAST}")));
        }
        let too_large = |_| D::Error::custom(format!("{FIELD} is too large"));
        T::try_from(number).map(AtLeast).map_err(too_large)
    }
}

impl<const LEAST: i64, T> CheckedValue for AtLeast<LEAST, T> {
    type Value = T;

    fn into_value(self) -> T {
        self.0
    }
}

/// A sum of dollars, at least 0.
#[derive(Debug)]
pub(crate) struct Dollars(f64);

inline_schema!(Dollars, { "type": "number", "minimum": 0 });

impl CheckedValue for Dollars {
    type Value = f64;

    fn into_value(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Dollars, D::Error> {
        deserializer.deserialize_f64(DollarsVisitor)
    }
}

struct DollarsVisitor;

impl Visitor<'_> for DollarsVisitor {
    type Value = Dollars;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number of dollars")
    }

    fn visit_f64<E: Error>(self, sum: f64) -> Result<Dollars, E> {
        match sum.is_finite() && sum >= 0.0 {
            true => Ok(Dollars(sum)),
            false => Err(E::custom(format!("{FIELD} must be a sum of dollars, at least 0"))),
        }
    }

    fn visit_i64<E: Error>(self, sum: i64) -> Result<Dollars, E> {
        self.visit_f64(sum as f64)
    }

    fn visit_u64<E: Error>(self, sum: u64) -> Result<Dollars, E> {
        self.visit_f64(sum as f64)
    }
}

/// A table without unknown keys. A struct with derived `Deserialize` would also accept a list of
/// its values and, because a newer release may have written it, any further key.
#[derive(Debug, Default)]
pub struct KeyedTable<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for KeyedTable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeyedTable<T>, D::Error> {
        deserializer.deserialize_map(KeyedTableVisitor(PhantomData))
    }
}

struct KeyedTableVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for KeyedTableVisitor<T> {
    type Value = KeyedTable<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<KeyedTable<T>, A::Error> {
        T::deserialize(StrictTable(map)).map(KeyedTable)
    }
}

/// Deserializes a struct whose keys are all known.
struct StrictTable<A>(A);

impl<'de, A: MapAccess<'de>> Deserializer<'de> for StrictTable<A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_map(self.0)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(StrictMap { map: self.0, known })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map identifier ignored_any enum
    }
}

struct StrictMap<A> {
    map: A,
    known: &'static [&'static str],
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for StrictMap<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.map.next_key_seed(KnownKey { seed, known: self.known })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

struct KnownKey<K> {
    seed: K,
    known: &'static [&'static str],
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for KnownKey<K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        let key = String::deserialize(deserializer)?;
        if !self.known.contains(&key.as_str()) {
            return Err(D::Error::unknown_field(&key, self.known));
        }
        self.seed.deserialize(key.into_deserializer())
    }
}

impl<T> CheckedValue for KeyedTable<T> {
    type Value = T;

    fn into_value(self) -> T {
        self.0
    }
}

/// Environment variables with their values.
#[derive(Debug, Default)]
pub struct Variables<C = PlainText>(BTreeMap<VariableName, C>);

impl<C: CheckedValue> CheckedValue for Variables<C> {
    type Value = BTreeMap<String, C::Value>;

    fn into_value(self) -> Self::Value {
        self.0.into_value()
    }
}

impl<'de, C: Deserialize<'de>> Deserialize<'de> for Variables<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Variables<C>, D::Error> {
        deserializer.deserialize_map(VariablesVisitor(PhantomData))
    }
}

struct VariablesVisitor<C>(PhantomData<C>);

impl<'de, C: Deserialize<'de>> Visitor<'de> for VariablesVisitor<C> {
    type Value = Variables<C>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a table of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Variables<C>, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(Variables)
    }
}

/// A command line: program and arguments.
#[derive(Debug)]
pub struct Argv(pub Vec<String>);

impl CheckedValue for Argv {
    type Value = Vec<String>;

    fn into_value(self) -> Vec<String> {
        self.0
    }
}

impl<'de> Deserialize<'de> for Argv {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Argv, D::Error> {
        deserializer.deserialize_seq(ArgvVisitor)
    }
}

struct ArgvVisitor;

impl<'de> Visitor<'de> for ArgvVisitor {
    type Value = Argv;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of strings")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Argv, E> {
        Err(E::custom(format!(
            "{FIELD} must be a list of strings (program and arguments); it is not run by a shell"
        )))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Argv, A::Error> {
        let argv = strings(Vec::deserialize(SeqAccessDeserializer::new(list))?);
        match argv.first() {
            None => Err(A::Error::custom(format!("{FIELD} is empty"))),
            Some(program) if program.trim().is_empty() => {
                Err(A::Error::custom(format!("{FIELD} does not name a program")))
            }
            Some(_) => Ok(Argv(argv)),
        }
    }
}

pub(crate) fn strings(list: Vec<PlainText>) -> Vec<String> {
    list.into_iter().map(|text| text.0).collect()
}
