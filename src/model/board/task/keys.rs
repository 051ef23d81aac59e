//! The keys under which serde reads the fields of a struct.

use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Returns the keys of a struct that derives `Deserialize`; none for another type.
pub(super) fn field_names<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut names: &[&str] = &[];
    // Ends with an error as soon as the names are known.
    let _ = T::deserialize(FieldNames(&mut names));
    names
}

struct FieldNames<'n>(&'n mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("no struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("only the names are wanted"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::super::Extra;

    #[test]
    fn keys_are_those_of_the_file() {
        let keys = super::field_names::<Extra>();
        for key in ["state", "type", "stopping", "seal"] {
            assert!(keys.contains(&key), "{keys:?}");
        }
        assert_eq!(super::field_names::<String>(), &[] as &[&str]);
    }
}
