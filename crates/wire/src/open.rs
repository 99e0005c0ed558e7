//! Forward-compatible wire types: open string enums, and unions of a string with a list or an
//! object.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Declares an open string enum: known values plus an `Other` variant for unknown ones.
///
/// The enum is a JSON string on the wire. Every string parses; validators reject unknown values
/// with `is_known`.
///
/// ```
/// sluicegate_wire::open_enum! {
///     /// Reasoning effort.
///     pub enum Effort {
///         /// Low effort.
///         Low = "low",
///         /// High effort.
///         High = "high",
///     }
/// }
///
/// let effort: Effort = serde_json::from_str("\"high\"").unwrap();
/// assert_eq!(effort, Effort::High);
/// assert!(!Effort::from("vast").is_known());
/// assert_eq!(Effort::KNOWN, ["low", "high"]);
/// ```
#[macro_export]
macro_rules! open_enum {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        $vis enum $name {
            $($(#[$doc])* $variant,)+
            /// A value unknown to this version, unchanged.
            Other(::std::string::String),
        }

        impl $name {
            /// All known values, in the order of their variants.
            $vis const KNOWN: &'static [&'static str] = &[$($word),+];

            /// Returns the value as it is written on the wire.
            #[must_use]
            $vis fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }

            /// Returns true if the value is one of [`Self::KNOWN`].
            #[must_use]
            $vis fn is_known(&self) -> bool {
                !matches!(self, Self::Other(_))
            }
        }

        impl ::std::convert::From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, to: S) -> ::std::result::Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> ::std::result::Result<Self, D::Error> {
                $crate::read_word(from)
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({ "type": "string", "enum": Self::KNOWN })
            }
        }
    };
}

/// Deserializes a string into a type that implements `From<&str>`, borrowing from the input where
/// possible.
///
/// # Errors
/// Returns an error if the value is not a string.
pub fn read_word<'de, T: for<'a> From<&'a str>, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    struct Word<T>(PhantomData<T>);

    impl<T: for<'a> From<&'a str>> Visitor<'_> for Word<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
            Ok(T::from(word))
        }
    }

    from.deserialize_str(Word(PhantomData))
}

/// A string or a list of typed parts: the two forms of content that every protocol accepts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TextOr<T> {
    /// Plain text.
    Text(String),
    /// Typed parts, in order.
    List(Vec<T>),
}

impl<T> TextOr<T> {
    /// Returns the parts if the value is a list, and an empty slice for plain text.
    #[must_use]
    pub fn parts(&self) -> &[T] {
        match self {
            Self::Text(_) => &[],
            Self::List(parts) => parts,
        }
    }
}

impl<T> Default for TextOr<T> {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl<T> From<&str> for TextOr<T> {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T> From<String> for TextOr<T> {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T> From<Vec<T>> for TextOr<T> {
    fn from(parts: Vec<T>) -> Self {
        Self::List(parts)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = TextOr<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an array")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<TextOr<T>, E> {
                Ok(TextOr::Text(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<TextOr<T>, E> {
                Ok(TextOr::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<TextOr<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(parts)).map(TextOr::List)
            }
        }

        from.deserialize_any(Either(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for TextOr<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("TextOr{}", T::schema_name()).into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, schemas.subschema_for::<Vec<T>>()] })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// A keyword or an object, such as `"auto"` or `{"type": "function", …}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum WordOr<W, T> {
    /// The keyword.
    Word(W),
    /// The object.
    Object(T),
}

impl<'de, W: for<'a> From<&'a str>, T: Deserialize<'de>> Deserialize<'de> for WordOr<W, T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either<W, T>(PhantomData<(W, T)>);

        impl<'de, W: for<'a> From<&'a str>, T: Deserialize<'de>> Visitor<'de> for Either<W, T> {
            type Value = WordOr<W, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an object")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<WordOr<W, T>, E> {
                Ok(WordOr::Word(W::from(word)))
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<WordOr<W, T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members)).map(WordOr::Object)
            }
        }

        from.deserialize_any(Either(PhantomData))
    }
}

impl<W: JsonSchema, T: JsonSchema> JsonSchema for WordOr<W, T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Or{}", W::schema_name(), T::schema_name()).into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [schemas.subschema_for::<W>(), schemas.subschema_for::<T>()] })
    }

    fn inline_schema() -> bool {
        true
    }
}
