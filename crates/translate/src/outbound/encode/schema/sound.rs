//! Tells, without building a value, whether a JSON Schema is well-formed.

use std::fmt::{Formatter, Result as Written};

use serde::de::{Deserialize, Visitor};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess};

/// Returns true if [`tidied`](super::tidy::tidied) would change nothing in a schema.
pub(super) fn is_sound(text: &str) -> bool {
    let mut from = serde_json::Deserializer::from_str(text);
    Expected::Schema.deserialize(&mut from).is_ok()
}

/// The kind of value in one place of a schema.
#[derive(Clone, Copy)]
enum Expected {
    Schema,
    /// Schemas by their names.
    Schemas,
    /// At least one schema in a list.
    Alternatives,
    /// The names of members.
    Names,
    /// At least one value in a list.
    Values,
    Number,
}

impl<'de> DeserializeSeed<'de> for Expected {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Expected {
    type Value = ();

    fn expecting(&self, to: &mut Formatter<'_>) -> Written {
        to.write_str("a part of a JSON Schema")
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        accept_if(matches!(self, Self::Schema))
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        accept_if(matches!(self, Self::Number))
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        accept_if(matches!(self, Self::Number))
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        accept_if(matches!(self, Self::Number))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut count = 0;
        let is_list = match self {
            Self::Alternatives => {
                while list.next_element_seed(Self::Schema)?.is_some() {
                    count += 1;
                }
                count > 0
            }
            Self::Values => {
                while list.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                count > 0
            }
            Self::Names => {
                while list.next_element::<Text>()?.is_some() {}
                true
            }
            _ => false,
        };
        accept_if(is_list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        match self {
            Self::Schema => schema(members),
            Self::Schemas => {
                while members.next_key::<IgnoredAny>()?.is_some() {
                    members.next_value_seed(Self::Schema)?;
                }
                Ok(())
            }
            _ => accept_if(false),
        }
    }
}

fn schema<'de, A: MapAccess<'de>>(mut members: A) -> Result<(), A::Error> {
    let (mut is_array, mut has_items) = (false, false);
    while let Some(word) = members.next_key::<Word>()? {
        match word {
            Word::Type => is_array = members.next_value::<Type>()?.is_array,
            Word::Items => {
                has_items = true;
                members.next_value_seed(Expected::Schema)?;
            }
            Word::One => members.next_value_seed(Expected::Schema)?,
            Word::Named => members.next_value_seed(Expected::Schemas)?,
            Word::Several => members.next_value_seed(Expected::Alternatives)?,
            Word::Required => members.next_value_seed(Expected::Names)?,
            Word::Enum => members.next_value_seed(Expected::Values)?,
            Word::Bound => members.next_value_seed(Expected::Number)?,
            Word::Example => {
                members.next_value::<IgnoredAny>()?;
            }
            Word::Other => {
                let value = members.next_value::<Option<IgnoredAny>>()?;
                accept_if(value.is_some())?;
            }
        }
    }
    accept_if(has_items || !is_array)
}

fn accept_if<E: serde::de::Error>(is_accepted: bool) -> Result<(), E> {
    if is_accepted {
        return Ok(());
    }
    Err(E::custom("the schema is not well-formed"))
}

/// A word of JSON Schema, by what follows it.
#[derive(serde::Deserialize)]
#[serde(field_identifier)]
enum Word {
    #[serde(rename = "type")]
    Type,
    #[serde(rename = "items")]
    Items,
    #[serde(
        rename = "additionalProperties",
        alias = "contains",
        alias = "else",
        alias = "if",
        alias = "not",
        alias = "propertyNames",
        alias = "then",
        alias = "unevaluatedItems",
        alias = "unevaluatedProperties"
    )]
    One,
    #[serde(
        rename = "properties",
        alias = "$defs",
        alias = "definitions",
        alias = "dependentSchemas",
        alias = "patternProperties"
    )]
    Named,
    #[serde(
        rename = "anyOf",
        alias = "allOf",
        alias = "oneOf",
        alias = "prefixItems"
    )]
    Several,
    #[serde(rename = "required")]
    Required,
    #[serde(rename = "enum")]
    Enum,
    #[serde(rename = "exclusiveMinimum", alias = "exclusiveMaximum")]
    Bound,
    #[serde(rename = "const", alias = "default", alias = "example")]
    Example,
    #[serde(other)]
    Other,
}

/// The known types of a schema.
struct Type {
    is_array: bool,
}

impl<'de> Deserialize<'de> for Type {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Types;

        impl<'de> Visitor<'de> for Types {
            type Value = Type;

            fn expecting(&self, to: &mut Formatter<'_>) -> Written {
                to.write_str("a type")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Type, E> {
                accept_if(super::tidy::TYPES.contains(&name))?;
                Ok(Type {
                    is_array: name == "array",
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Type, A::Error> {
                let (mut is_array, mut count) = (false, 0);
                while let Some(one) = list.next_element::<Type>()? {
                    is_array |= one.is_array;
                    count += 1;
                }
                accept_if(count > 0)?;
                Ok(Type { is_array })
            }
        }

        from.deserialize_any(Types)
    }
}

/// A text whose content does not matter.
struct Text;

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Texts;

        impl Visitor<'_> for Texts {
            type Value = Text;

            fn expecting(&self, to: &mut Formatter<'_>) -> Written {
                to.write_str("a text")
            }

            fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Text, E> {
                Ok(Text)
            }
        }

        from.deserialize_str(Texts)
    }
}
