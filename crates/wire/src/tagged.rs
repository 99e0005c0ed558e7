//! Objects that say what they are in one member, with a place for the kinds that nobody knows yet.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{Schema, json_schema};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, IntoDeserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Declares an enum of objects told apart by one member, with `Other` for unknown kinds.
///
/// Unlike serde's own internally tagged enums it keeps unknown kinds whole, reads in one pass when the tag
/// comes first, keeps raw JSON inside variants, and refuses a repeated tag. A known kind with a wrong field is
/// an error and never passes as unknown. An optional `untagged` clause says what an object without a tag, or
/// with `null` for it, is: a block that tells the kind, or a list of members by the first of which the kind is
/// known. With such a list, an object with none of them is of the unknown kind `""`.
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
        $(untagged { $($sign:literal => $meant:literal),+ $(,)? })?
    ) => {
        $(#[$meta])*
        #[derive(::serde::Serialize)]
        #[serde(tag = $tag)]
        #[non_exhaustive]
        $vis enum $name {
            $($(#[$doc])* #[serde(rename = $kind)] $variant($inner),)+
            /// A kind that this version does not know, whole: its tag is among its members.
            #[serde(untagged)]
            Other($crate::Object),
        }

        impl $name {
            /// The kinds that are known, in the order of their variants.
            $vis const KNOWN: &'static [&'static str] = &[$($kind),+];

            /// The kind, as it is written on the wire.
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
                let signs = [$(($sign, $meant)),+];
                let meant = signs.into_iter().find(|(sign, _)| members.has(sign));
                ::std::option::Option::Some(meant.map_or("", |(_, kind)| kind))
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
                $crate::tagged_schema($tag, kinds, &[$($($bare),+)?], &[$($(($sign, $meant)),+)?])
            }
        }
    };
}

/// An enum of objects told apart by the member [`Tagged::TAG`]; see [`tagged!`].
pub trait Tagged: Sized {
    /// The name of the member that tells the kind.
    const TAG: &'static str;

    /// Reads an object of the kind `kind` from its other members.
    ///
    /// # Errors
    /// When the members do not fit the kind.
    fn read<'de, D: Deserializer<'de>>(kind: &str, members: D) -> Result<Self, D::Error>;

    /// The kind of an object that does not tell it.
    #[must_use]
    fn untagged(_: &Entries<'_>) -> Option<&'static str> {
        None
    }
}

/// The members of an object in order, repeated ones too, their values still text.
#[derive(Debug, Default)]
pub struct Entries<'de>(Vec<(String, Text<'de>)>);

impl Entries<'_> {
    /// Whether a member of that name is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    fn remove(&mut self, name: &'static str) -> Result<Option<String>, serde_json::Error> {
        let Some(at) = self.0.iter().position(|(key, _)| key == name) else { return Ok(None) };
        let (_, Text(value)) = self.0.remove(at);
        if self.has(name) {
            return Err(Error::duplicate_field(name));
        }
        serde_json::from_str(&value)
    }

    fn read<T: Tagged>(mut self) -> Result<T, serde_json::Error> {
        let told = self.remove(T::TAG)?;
        let kind = told.as_deref().or_else(|| T::untagged(&self)).ok_or_else(|| Error::missing_field(T::TAG))?;
        let mut members = Vec::with_capacity(self.0.len());
        for (key, Text(value)) in &self.0 {
            members.push((key.as_str(), serde_json::from_str::<&RawValue>(value)?));
        }
        T::read(kind, MapDeserializer::new(members.into_iter()))
    }
}

/// Reads an object whose kind is told by one of its members.
///
/// # Errors
/// When the value is no object, tells no kind, repeats its tag, or does not fit its kind.
pub fn read_tagged<'de, T: Tagged, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_map(ByTag(PhantomData))
}

/// Reads an object of an unknown kind, its tag put back in front.
///
/// # Errors
/// When the members are no JSON.
#[doc(hidden)]
pub fn read_unknown<'de, D: Deserializer<'de>>(tag: &str, kind: &str, members: D) -> Result<crate::Object, D::Error> {
    let mut object = crate::Object::deserialize(members)?;
    object.shift_insert(0, tag.to_owned(), Value::from(kind));
    Ok(object)
}

/// The schema of a tagged enum: one branch a kind, and one for the kinds that are not known.
#[doc(hidden)]
#[must_use]
pub fn tagged_schema(
    tag: &str,
    kinds: Vec<(&'static str, Schema)>,
    untagged: &[&str],
    signs: &[(&str, &str)],
) -> Schema {
    let known: Vec<_> = kinds.iter().map(|(kind, _)| *kind).collect();
    let other = json_schema!({
        "type": "object",
        "properties": { tag: { "type": "string", "not": { "enum": known } } },
        "required": [tag],
    });
    let mut branches = unsigned_schemas(tag, &kinds, signs);
    let branch = |(kind, mut schema): (&'static str, Schema)| {
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), serde_json::json!({ tag: { "const": kind } }));
        if !untagged.contains(&kind) {
            schema.insert("required".to_owned(), serde_json::json!([tag]));
        }
        schema
    };
    branches.extend(kinds.into_iter().map(branch).chain([other]));
    json_schema!({ "anyOf": branches })
}

/// The branches of objects without a tag: one for each member by which a kind is known, and one for no kind.
fn unsigned_schemas(tag: &str, kinds: &[(&str, Schema)], signs: &[(&str, &str)]) -> Vec<Schema> {
    let without = |signs: &[(&str, &str)]| {
        let mut properties = serde_json::json!({ tag: { "const": null } });
        signs.iter().for_each(|(sign, _)| properties[sign] = false.into());
        properties
    };
    let mut branches = Vec::new();
    for (i, (sign, meant)) in signs.iter().enumerate() {
        let mut schema =
            kinds.iter().find(|(kind, _)| kind == meant).map(|(_, schema)| schema.clone()).unwrap_or_default();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), without(&signs[..i]));
        schema.insert("required".to_owned(), serde_json::json!([sign]));
        branches.push(schema);
    }
    if !signs.is_empty() {
        branches.push(json_schema!({ "type": "object", "properties": without(signs) }));
    }
    branches
}

struct ByTag<T>(PhantomData<T>);

impl<'de, T: Tagged> Visitor<'de> for ByTag<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut entries = Entries::default();
        match map.next_key::<Key<'de>>()? {
            Some(key) if key.0 == T::TAG => {
                if let Some(kind) = map.next_value::<Option<Key<'de>>>()? {
                    return T::read(&kind.0, MapAccessDeserializer::new(Rest { map, tag: T::TAG }));
                }
                entries.0.push((T::TAG.to_owned(), Text(Cow::Borrowed("null"))));
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

/// The members after the tag: a second tag among them is refused.
struct Rest<A> {
    map: A,
    tag: &'static str,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
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

/// The text of a value, borrowed from the input where that is possible. Objects are within objects, and each is kept
/// until the one around it was read: copies would add up, one for each level.
#[derive(Debug)]
struct Text<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Raw;

        impl<'de> Visitor<'de> for Raw {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text<'de>, A::Error> {
                map.next_key::<IgnoredAny>()?;
                map.next_value::<Key<'de>>().map(|text| Text(text.0))
            }
        }

        from.deserialize_newtype_struct(RAW_VALUE, Raw)
    }
}

/// What `RawValue` asks `serde_json` for its text by. It takes a text that is lent or a copy, as its type says, and not
/// whichever there is.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// A string, borrowed from the input where that is possible.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Borrow;

        impl<'de> Visitor<'de> for Borrow {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }

        from.deserialize_str(Borrow)
    }
}

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
        /// For the tests.
        #[derive(Clone, Debug, PartialEq)]
        enum Item("type") {
            /// A call.
            Call(Call) = "call",
        }
        untagged |members| ["call"] { members.has("name").then_some("call") }
    }

    crate::tagged! {
        /// For the tests.
        #[derive(Clone, Debug, PartialEq)]
        enum Signed("type") {
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
        let first = read(r#"{"type":"call","name":"a","parameters":{"z":1.50,"a":1},"x":[1]}"#).unwrap();
        let last = read(r#"{"name":"a","parameters":{"z":1.50,"a":1},"x":[1],"type":"call"}"#).unwrap();
        let none = read(r#"{"name":"a","parameters":{"z":1.50,"a":1},"x":[1]}"#).unwrap();
        let null = read(r#"{"type":null,"name":"a","parameters":{"z":1.50,"a":1},"x":[1]}"#).unwrap();
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

    /// Whether a source lends its text or not. Where it does, nothing is copied to find the tag.
    #[test]
    fn every_source_of_json_is_read() {
        let text = r#"{"name":"a","parameters":{"z":1.50,"a":"\n"},"type":"call"}"#;
        let read = read(text).unwrap();
        assert_eq!(serde_json::from_slice::<Item>(text.as_bytes()).unwrap(), read);
        assert_eq!(serde_json::from_reader::<_, Item>(text.as_bytes()).unwrap(), read);
        assert_eq!(serde_json::from_value::<Item>(serde_json::from_str(text).unwrap()).unwrap(), read);
        let Text(lent) = serde_json::from_str(r#" {"a": 1} "#).unwrap();
        assert!(matches!(lent, Cow::Borrowed(r#"{"a": 1}"#)), "{lent:?}");
    }

    #[test]
    fn unknown_kinds_are_kept_whole() {
        for text in [r#"{"type":"new","b":1,"a":{"c":null}}"#, r#"{"b":1,"type":"new"}"#] {
            let Ok(Item::Other(members)) = read(text) else { panic!("{text}") };
            assert_eq!(Value::Object(members), serde_json::from_str::<Value>(text).unwrap());
        }
    }

    #[test]
    fn without_a_tag_the_kind_is_known_by_its_members_or_not_at_all() {
        let read = |text| serde_json::from_str::<Signed>(text);
        assert_eq!(read(r#"{"name":"a"}"#).unwrap().kind(), Signed::KNOWN[0]);
        assert_eq!(read(r#"{"type":null,"b":1}"#).unwrap().kind(), "");
        let shape = crate::Shape::of::<Signed>();
        for (text, told) in [
            (r#"{"name":"a"}"#, ""),
            (r#"{"b":1}"#, ""),
            (r#"{"type":"new","name":1}"#, ""),
            (r#"{"name":1}"#, "Invalid type for 'name': expected a string, but got an integer instead."),
            (r#"{"type":"call"}"#, "Missing required parameter: 'name'."),
            (r#"{"type":1,"name":"a"}"#, "Invalid type for 'type': expected a string, but got an integer instead."),
        ] {
            assert_eq!(shape.diagnose(&serde_json::from_str(text).unwrap()).to_string(), told, "{text}");
            assert_eq!(read(text).is_ok(), told.is_empty(), "{text}");
        }
    }

    /// A kind that is told twice is an error.
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
            assert!(read(text).unwrap_err().contains("duplicate field"), "{text}");
        }
        assert!(read("{}").unwrap_err().contains("missing field `type`"));
        assert!(read(r#"{"type":1}"#).is_err() && read("[]").is_err() && read("\"call\"").is_err());
    }
}
