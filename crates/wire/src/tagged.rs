//! Enums of objects distinguished by a tag member, preserving unknown kinds.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{Schema, json_schema};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, IntoDeserializer, MapAccess, Visitor,
};
use serde_json::Value;
use serde_json::value::RawValue;

/// Declares an enum of objects distinguished by a tag member, with `Other` for unknown kinds.
///
/// Unlike serde's internally tagged enums it preserves unknown kinds completely, parses in one pass
/// if the tag comes first, supports raw JSON inside variants, and rejects a repeated tag. A known
/// kind with an invalid field is an error and never falls back to `Other`.
///
/// An optional `untagged` clause determines the kind of an object whose tag is absent or `null`. It
/// is either a block that returns the kind, or a list of members, in which the first one present
/// determines the kind. With such a list, an object with none of them has the unknown kind `""`.
///
/// ```
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
/// pub struct Text { pub text: String }
///
/// sluicegate_wire::tagged! {
///     /// One part of a message.
///     #[derive(Clone, Debug, PartialEq)]
///     pub enum Part("type") {
///         /// Text.
///         Text(Text) = "text",
///     }
///     untagged |members| ["text"] { members.has("text").then_some("text") }
/// }
///
/// let read = |text| serde_json::from_str::<Part>(text);
/// assert_eq!(read(r#"{"text":"hi","type":"text"}"#).unwrap(), Part::Text(Text { text: "hi".into() }));
/// assert_eq!(read(r#"{"text":"hi"}"#).unwrap().kind(), "text");
/// assert_eq!(read(r#"{"type":"smell","of":"rain"}"#).unwrap().kind(), "smell");
/// assert!(read(r#"{"type":"text","text":1}"#).is_err());
/// ```
#[macro_export]
macro_rules! tagged {
    (
        $(#[$meta:meta])* $vis:vis enum $name:ident ($tag:literal) {
            $($(#[$doc:meta])* $variant:ident ($inner:ty) = $kind:literal),+ $(,)?
        }
        $(untagged |$members:ident| [$($bare:literal),+] $guess:block)?
        $(untagged { $($marker:literal => $implied:literal),+ $(,)? })?
    ) => {
        $(#[$meta])*
        #[derive(::serde::Serialize)]
        #[serde(tag = $tag)]
        #[non_exhaustive]
        $vis enum $name {
            $($(#[$doc])* #[serde(rename = $kind)] $variant($inner),)+
            /// An object of a kind unknown to this version, with all members including the tag.
            #[serde(untagged)]
            Other($crate::Object),
        }

        impl $name {
            /// All known kinds, in the order of their variants.
            $vis const KNOWN: &'static [&'static str] = &[$($kind),+];

            /// Returns the kind as written on the wire.
            #[must_use]
            $vis fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $kind,)+
                    Self::Other(members) => members.get($tag).and_then(|tag| tag.as_str()).unwrap_or_default(),
                }
            }
        }

        impl $crate::Tagged for $name {
            const TAG: &'static str = $tag;

            fn read<'de, D: ::serde::Deserializer<'de>>(
                kind: &str,
                members: D,
            ) -> ::std::result::Result<Self, D::Error> {
                match kind {
                    $($kind => <$inner as ::serde::Deserialize>::deserialize(members).map(Self::$variant),)+
                    _ => $crate::read_unknown($tag, kind, members).map(Self::Other),
                }
            }

            $(fn untagged($members: &$crate::Entries<'_>) -> ::std::option::Option<&'static str> $guess)?

            $(fn untagged(members: &$crate::Entries<'_>) -> ::std::option::Option<&'static str> {
                let markers = [$(($marker, $implied)),+];
                let implied = markers.into_iter().find(|(marker, _)| members.has(marker));
                ::std::option::Option::Some(implied.map_or("", |(_, kind)| kind))
            })?
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> ::std::result::Result<Self, D::Error> {
                $crate::read_tagged(from)
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(schemas: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                let kinds = vec![$(($kind, schemas.subschema_for::<$inner>())),+];
                $crate::tagged_schema($tag, kinds, &[$($($bare),+)?], &[$($(($marker, $implied)),+)?])
            }
        }
    };
}

/// An enum of objects distinguished by the member [`Tagged::TAG`]; see [`tagged!`].
pub trait Tagged: Sized {
    /// The name of the tag member.
    const TAG: &'static str;

    /// Deserializes an object of kind `kind` from its other members.
    ///
    /// # Errors
    /// Returns an error if the members do not match the kind.
    fn read<'de, D: Deserializer<'de>>(kind: &str, members: D) -> Result<Self, D::Error>;

    /// Returns the kind of an object without a tag, if it can be determined.
    #[must_use]
    fn untagged(_: &Entries<'_>) -> Option<&'static str> {
        None
    }
}

/// The members of an object in order, including duplicates, with unparsed values.
#[derive(Debug, Default)]
pub struct Entries<'de>(Vec<(String, Text<'de>)>);

impl Entries<'_> {
    /// Returns true if a member with that name exists.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    fn remove(&mut self, name: &'static str) -> Result<Option<String>, serde_json::Error> {
        let Some(at) = self.0.iter().position(|(key, _)| key == name) else {
            return Ok(None);
        };
        let (_, Text(value)) = self.0.remove(at);
        if self.has(name) {
            return Err(Error::duplicate_field(name));
        }
        serde_json::from_str(&value)
    }

    fn read<T: Tagged>(mut self) -> Result<T, serde_json::Error> {
        let tag = self.remove(T::TAG)?;
        let kind = tag
            .as_deref()
            .or_else(|| T::untagged(&self))
            .ok_or_else(|| Error::missing_field(T::TAG))?;
        let mut members = Vec::with_capacity(self.0.len());
        for (key, Text(value)) in &self.0 {
            members.push((key.as_str(), serde_json::from_str::<&RawValue>(value)?));
        }
        T::read(kind, MapDeserializer::new(members.into_iter()))
    }
}

/// Deserializes an object whose kind is determined by its tag member.
///
/// # Errors
/// Returns an error if the value is not an object, has no kind, repeats its tag, or does not match
/// its kind.
pub fn read_tagged<'de, T: Tagged, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_map(TaggedVisitor(PhantomData))
}

/// Deserializes an object of an unknown kind and reinserts its tag as the first member.
///
/// # Errors
/// Returns an error if the members are not valid JSON.
#[doc(hidden)]
pub fn read_unknown<'de, D: Deserializer<'de>>(
    tag: &str,
    kind: &str,
    members: D,
) -> Result<crate::Object, D::Error> {
    let mut object = crate::Object::deserialize(members)?;
    object.shift_insert(0, tag.to_owned(), Value::from(kind));
    Ok(object)
}

/// Builds the schema of a tagged enum: one branch per kind, and one for unknown kinds.
#[doc(hidden)]
#[must_use]
pub fn tagged_schema(
    tag: &str,
    kinds: Vec<(&'static str, Schema)>,
    untagged: &[&str],
    markers: &[(&str, &str)],
) -> Schema {
    let known: Vec<_> = kinds.iter().map(|(kind, _)| *kind).collect();
    let other = json_schema!({
        "type": "object",
        "properties": { tag: { "type": "string", "not": { "enum": known } } },
        "required": [tag],
    });
    let mut branches = untagged_schemas(tag, &kinds, markers);
    let branch = |(kind, mut schema): (&'static str, Schema)| {
        schema.insert("type".to_owned(), "object".into());
        schema.insert(
            "properties".to_owned(),
            serde_json::json!({ tag: { "const": kind } }),
        );
        if !untagged.contains(&kind) {
            schema.insert("required".to_owned(), serde_json::json!([tag]));
        }
        schema
    };
    branches.extend(kinds.into_iter().map(branch).chain([other]));
    json_schema!({ "anyOf": branches })
}

/// Builds the branches of objects without a tag: one for each marker member, and one for objects
/// without any marker.
fn untagged_schemas(tag: &str, kinds: &[(&str, Schema)], markers: &[(&str, &str)]) -> Vec<Schema> {
    let without = |markers: &[(&str, &str)]| {
        let mut properties = serde_json::json!({ tag: { "const": null } });
        markers
            .iter()
            .for_each(|(marker, _)| properties[marker] = false.into());
        properties
    };
    let mut branches = Vec::new();
    for (i, (marker, implied)) in markers.iter().enumerate() {
        let mut schema = kinds
            .iter()
            .find(|(kind, _)| kind == implied)
            .map(|(_, schema)| schema.clone())
            .unwrap_or_default();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), without(&markers[..i]));
        schema.insert("required".to_owned(), serde_json::json!([marker]));
        branches.push(schema);
    }
    if !markers.is_empty() {
        branches.push(json_schema!({ "type": "object", "properties": without(markers) }));
    }
    branches
}

struct TaggedVisitor<T>(PhantomData<T>);

impl<'de, T: Tagged> Visitor<'de> for TaggedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut entries = Entries::default();
        match map.next_key::<Key<'de>>()? {
            Some(key) if key.0 == T::TAG => {
                if let Some(kind) = map.next_value::<Option<Key<'de>>>()? {
                    return T::read(
                        &kind.0,
                        MapAccessDeserializer::new(Rest { map, tag: T::TAG }),
                    );
                }
                entries
                    .0
                    .push((T::TAG.to_owned(), Text(Cow::Borrowed("null"))));
            }
            Some(key) => entries.0.push((key.0.into_owned(), map.next_value()?)),
            None => {}
        }
        while let Some(entry) = map.next_entry()? {
            entries.0.push(entry);
        }
        entries.read().map_err(Error::custom)
    }
}

/// The members after the tag; rejects a second tag.
struct Rest<A> {
    map: A,
    tag: &'static str,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        match self.map.next_key::<Key<'de>>()? {
            None => Ok(None),
            Some(key) if key.0 == self.tag => Err(Error::duplicate_field(self.tag)),
            Some(key) => seed.deserialize(key.0.into_deserializer()).map(Some),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// The raw text of a value, borrowed from the input where possible. With nested objects, each level
/// is kept until the enclosing one has been parsed, so copies would add up per level.
#[derive(Debug)]
struct Text<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_newtype_struct(RAW_VALUE, TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text<'de>, A::Error> {
        map.next_key::<IgnoredAny>()?;
        map.next_value::<Key<'de>>().map(|text| Text(text.0))
    }

    /// Reads the text from a `serde_json` that does not know the name [`RAW_VALUE`].
    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Text<'de>, D::Error> {
        Box::<RawValue>::deserialize(from).map(|raw| Text(Cow::Owned(Box::<str>::from(raw).into())))
    }
}

/// The name by which `RawValue` requests raw text from `serde_json`.
///
/// The public types are either `&RawValue`, which fails on a source that cannot lend, or
/// `Box<RawValue>`, which always copies. The name is private to `serde_json`, so it is an
/// optimization only: with a version that has another one, texts are copied.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// A string, borrowed from the input where possible.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Serialize;

    use super::*;
    use crate::{Json, Object};

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    struct Call {
        name: String,
        parameters: Option<Json>,
        #[serde(flatten)]
        extra: Object,
    }

    crate::tagged! {
        /// An enum for the tests.
        #[derive(Clone, Debug, PartialEq)]
        enum Item("type") {
            /// A call.
            Call(Call) = "call",
        }
        untagged |members| ["call"] { members.has("name").then_some("call") }
    }

    crate::tagged! {
        /// An enum for the tests.
        #[derive(Clone, Debug, PartialEq)]
        enum Marked("type") {
            /// A call.
            Call(Call) = "call",
        }
        untagged { "name" => "call" }
    }

    fn read(text: &str) -> Result<Item, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_place_of_the_tag_does_not_matter() {
        let first =
            read(r#"{"type":"call","name":"a","parameters":{"z":1.50,"a":1},"x":[1]}"#).unwrap();
        let last =
            read(r#"{"name":"a","parameters":{"z":1.50,"a":1},"x":[1],"type":"call"}"#).unwrap();
        let none = read(r#"{"name":"a","parameters":{"z":1.50,"a":1},"x":[1]}"#).unwrap();
        let null =
            read(r#"{"type":null,"name":"a","parameters":{"z":1.50,"a":1},"x":[1]}"#).unwrap();
        assert_eq!(first, last);
        assert_eq!(first, none);
        assert_eq!(first, null);
        assert_eq!(read(r#"{"name":"a","type":null}"#), read(r#"{"name":"a"}"#));
        assert_eq!((first.kind(), Item::KNOWN), ("call", ["call"].as_slice()));
        assert_eq!(
            serde_json::to_string(&last).unwrap(),
            r#"{"type":"call","name":"a","parameters":{"z":1.50,"a":1},"x":[1]}"#
        );
    }

    /// Objects are read from borrowed and owned sources alike. A borrowed source is not copied to
    /// find the tag.
    #[test]
    fn every_source_of_json_is_read() {
        let text = r#"{"name":"a","parameters":{"z":1.50,"a":"\n"},"type":"call"}"#;
        let read = read(text).unwrap();
        assert_eq!(
            serde_json::from_slice::<Item>(text.as_bytes()).unwrap(),
            read
        );
        assert_eq!(
            serde_json::from_reader::<_, Item>(text.as_bytes()).unwrap(),
            read
        );
        assert_eq!(
            serde_json::from_value::<Item>(serde_json::from_str(text).unwrap()).unwrap(),
            read
        );
        let Text(borrowed) = serde_json::from_str(r#" {"a": 1} "#).unwrap();
        assert!(
            matches!(borrowed, Cow::Borrowed(r#"{"a": 1}"#)),
            "{borrowed:?}"
        );
    }

    #[test]
    fn texts_are_copied_where_the_private_name_is_unknown() {
        let mut from = serde_json::Deserializer::from_str(r#" {"a": 1} "#);
        let Text(copied) = from
            .deserialize_newtype_struct("another", TextVisitor)
            .unwrap();
        assert!(
            matches!(&copied, Cow::Owned(text) if text == r#"{"a": 1}"#),
            "{copied:?}"
        );
    }

    #[test]
    fn unknown_kinds_are_kept_whole() {
        for text in [
            r#"{"type":"new","b":1,"a":{"c":null}}"#,
            r#"{"b":1,"type":"new"}"#,
        ] {
            let Ok(Item::Other(members)) = read(text) else {
                panic!("{text}")
            };
            assert_eq!(
                Value::Object(members),
                serde_json::from_str::<Value>(text).unwrap()
            );
        }
    }

    #[test]
    fn without_a_tag_the_kind_is_known_by_its_members_or_not_at_all() {
        let read = |text| serde_json::from_str::<Marked>(text);
        assert_eq!(read(r#"{"name":"a"}"#).unwrap().kind(), Marked::KNOWN[0]);
        assert_eq!(read(r#"{"type":null,"b":1}"#).unwrap().kind(), "");
        let shape = crate::Shape::of::<Marked>();
        for (text, expected) in [
            (r#"{"name":"a"}"#, ""),
            (r#"{"b":1}"#, ""),
            (r#"{"type":"new","name":1}"#, ""),
            (
                r#"{"name":1}"#,
                "Invalid type for 'name': expected a string, but got an integer instead.",
            ),
            (r#"{"type":"call"}"#, "Missing required parameter: 'name'."),
            (
                r#"{"type":1,"name":"a"}"#,
                "Invalid type for 'type': expected a string, but got an integer instead.",
            ),
        ] {
            assert_eq!(
                shape
                    .diagnose(&serde_json::from_str(text).unwrap())
                    .to_string(),
                expected,
                "{text}"
            );
            assert_eq!(read(text).is_ok(), expected.is_empty(), "{text}");
        }
    }

    /// A repeated or missing tag is an error.
    #[test]
    fn j04_a_repeated_or_missing_tag_is_an_error() {
        for text in [
            r#"{"type":"call","type":"call","name":"a"}"#,
            r#"{"type":"new","a":1,"type":"new"}"#,
            r#"{"name":"a","type":"call","type":"x"}"#,
            r#"{"type":"call","name":"a","name":"b"}"#,
            r#"{"type":null,"name":"a","type":"call"}"#,
            r#"{"name":"a","name":"b","type":"call"}"#,
        ] {
            assert!(
                read(text).unwrap_err().contains("duplicate field"),
                "{text}"
            );
        }
        assert!(read("{}").unwrap_err().contains("missing field `type`"));
        assert!(read(r#"{"type":1}"#).is_err() && read("[]").is_err() && read("\"call\"").is_err());
    }
}
