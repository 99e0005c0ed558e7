//! Members of replies as servers write them: of the expected type, or of none that matters.
//!
//! Servers use the names of members for their own purposes, write null for an empty text, and
//! numbers as fractions. A reader of their replies uses the values that it understands and ignores
//! the rest, without allocating for either.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use super::ReadError;

/// Parses the JSON object of an event or of a reply.
///
/// ```
/// use sluicegate_wire::lenient::{ReadError, Text, parse};
///
/// #[derive(serde::Deserialize)]
/// struct Event<'a> {
///     #[serde(borrow)]
///     id: Text<'a>,
/// }
///
/// assert_eq!(parse::<Event<'_>>(r#"{"id":"a"}"#)?.id.get(), Some("a"));
/// assert!(matches!(parse::<Event<'_>>(r#"["a"]"#), Err(ReadError::Malformed(_))));
/// # Ok::<(), ReadError>(())
/// ```
///
/// # Errors
/// If it is no JSON object, or no `T`.
pub fn parse<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, ReadError> {
    if !data.trim_start().starts_with('{') {
        return Err(ReadError::Malformed("not a JSON object".to_owned()));
    }
    serde_json::from_str(data).map_err(|error| ReadError::json(&error))
}

/// Returns a member of an event or of a reply.
///
/// # Errors
/// If it is absent. The error contains its name.
pub fn required<T>(member: Option<T>, name: &str) -> Result<T, ReadError> {
    member.ok_or_else(|| ReadError::Malformed(format!("no '{name}'")))
}

/// Returns true if the member `error` of an event or of a reply reports an error. Some servers
/// write null or false into it although there is no error.
#[must_use]
#[inline]
pub fn reports_error(error: Option<&RawValue>) -> bool {
    error.is_some_and(|error| !matches!(error.get(), "null" | "false"))
}

/// A text that borrows from its document where it has no escapes. Any other value is `None`.
///
/// ```
/// use sluicegate_wire::lenient::Text;
///
/// assert_eq!(serde_json::from_str::<Text<'_>>(r#""Hello""#).unwrap().get(), Some("Hello"));
/// assert_eq!(serde_json::from_str::<Text<'_>>(r#"{"a":[1]}"#).unwrap().get(), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Option<Cow<'a, str>>);

impl Text<'_> {
    /// Returns the text.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Returns the text, or an empty one.
    #[must_use]
    pub fn or_empty(&self) -> &str {
        self.get().unwrap_or_default()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any(TextVisitor)).map(Self)
    }
}

/// The arguments of a call: a text, or JSON that is kept as it is. Null is an empty text.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct Arguments<'a>(#[serde(borrow)] Option<&'a RawValue>);

impl<'a> Arguments<'a> {
    /// Returns the text of the arguments, or of a piece of them.
    #[must_use]
    pub fn text(self) -> Cow<'a, str> {
        match self.0.map(RawValue::get) {
            None => Cow::default(),
            Some(json) if json.starts_with('"') => {
                let text: Text<'a> = serde_json::from_str(json).unwrap_or_default();
                text.0.unwrap_or_default()
            }
            Some(json) => Cow::Borrowed(json),
        }
    }

    /// Returns true if they are absent or null.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_none()
    }

    /// Returns true if they are JSON other than a text.
    #[must_use]
    pub fn is_json(self) -> bool {
        self.0.is_some_and(|json| !json.get().starts_with('"'))
    }
}

/// A count, which may be written as a fraction. Any other value, and one below zero, is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count(pub Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any(CountVisitor)).map(Self)
    }
}

/// An object that is read as a `T`. Any other value is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Members<T>(pub Option<T>);

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any(MembersVisitor(PhantomData)))
            .map(Self)
    }
}

/// A list of objects that are read as `T`s; others in it are ignored. Any other value is an empty
/// list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any(ListVisitor(PhantomData)))
            .map(|list| Self(list.unwrap_or_default()))
    }
}

/// A visitor of one type of value, which returns `None` for values of other types.
pub(super) trait Wanted<'de>: Sized {
    type Value;

    fn text(self, _: Cow<'de, str>) -> Option<Self::Value> {
        None
    }

    fn number(self, _: f64) -> Option<Self::Value> {
        None
    }

    fn integer(self, _: u64) -> Option<Self::Value> {
        None
    }

    fn object<A: MapAccess<'de>>(self, members: A) -> Result<Option<Self::Value>, A::Error> {
        skip_object(members)
    }

    fn list<A: SeqAccess<'de>>(self, values: A) -> Result<Option<Self::Value>, A::Error> {
        skip_list(values)
    }
}

fn skip_object<'de, T, A: MapAccess<'de>>(mut members: A) -> Result<Option<T>, A::Error> {
    while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(None)
}

fn skip_list<'de, T, A: SeqAccess<'de>>(mut values: A) -> Result<Option<T>, A::Error> {
    while values.next_element::<IgnoredAny>()?.is_some() {}
    Ok(None)
}

struct TextVisitor;

impl<'de> Wanted<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn text(self, text: Cow<'de, str>) -> Option<Cow<'de, str>> {
        Some(text)
    }
}

struct CountVisitor;

impl Wanted<'_> for CountVisitor {
    type Value = u64;

    fn number(self, number: f64) -> Option<u64> {
        // The cast saturates.
        (number >= 0.0).then_some(number as u64)
    }

    fn integer(self, number: u64) -> Option<u64> {
        Some(number)
    }
}

struct MembersVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Wanted<'de> for MembersVisitor<T> {
    type Value = T;

    fn object<A: MapAccess<'de>>(self, members: A) -> Result<Option<T>, A::Error> {
        T::deserialize(serde::de::value::MapAccessDeserializer::new(members)).map(Some)
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Wanted<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn list<A: SeqAccess<'de>>(self, mut values: A) -> Result<Option<Vec<T>>, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element::<Members<T>>()? {
            list.extend(value.0);
        }
        Ok(Some(list))
    }
}

/// A visitor that accepts every value.
pub(super) struct Any<W>(pub(super) W);

impl<'de, W: Wanted<'de>> DeserializeSeed<'de> for Any<W> {
    type Value = Option<W::Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, W: Wanted<'de>> Visitor<'de> for Any<W> {
    type Value = Option<W::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(self.0.text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(self.0.text(Cow::Owned(text)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(self.0.integer(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(u64::try_from(number)
            .ok()
            .and_then(|number| self.0.integer(number)))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(self.0.number(number))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        self.0.object(members)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<Self::Value, A::Error> {
        self.0.list(values)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::from_str;

    use super::*;

    const VALUES: [&str; 9] = [
        "null",
        "true",
        "-1",
        "1.5",
        "7",
        r#""a""#,
        r#""\u0061\n""#,
        r#"[{"a":[1]},null]"#,
        r#"{"a":{"b":1}}"#,
    ];

    #[test]
    fn a_text_is_borrowed_unless_it_has_escapes() {
        let texts = VALUES.map(|value| from_str::<Text<'_>>(value).unwrap().0);
        assert!(matches!(&texts[5], Some(Cow::Borrowed("a"))));
        assert!(matches!(&texts[6], Some(Cow::Owned(text)) if text == "a\n"));
        assert_eq!(texts.iter().flatten().count(), 2);
    }

    #[test]
    fn a_count_may_be_a_fraction() {
        let counts = VALUES.map(|value| from_str::<Count>(value).unwrap().0);
        assert_eq!(
            counts,
            [None, None, None, Some(1), Some(7), None, None, None, None]
        );
    }

    #[test]
    fn objects_are_read_alone_and_in_lists() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        struct Named<'a> {
            #[serde(borrow)]
            a: Text<'a>,
        }
        let text = r#"{"one":{"a":"b"},"many":[{"a":"c"},null,1,["d"]],"none":["a"],"few":null}"#;
        #[derive(serde::Deserialize)]
        struct Document<'a> {
            #[serde(borrow)]
            one: Members<Named<'a>>,
            #[serde(borrow)]
            many: List<Named<'a>>,
            #[serde(borrow)]
            none: Members<Named<'a>>,
            #[serde(borrow)]
            few: List<Named<'a>>,
        }
        let document: Document<'_> = from_str(text).unwrap();
        let named = |text: &'static str| Named {
            a: Text(Some(text.into())),
        };
        assert_eq!(
            (document.one.0, document.many.0),
            (Some(named("b")), vec![named("c")])
        );
        assert_eq!((document.none.0, document.few.0), (None, Vec::new()));
    }

    #[test]
    fn ignored_members_must_be_valid_json() {
        assert!(from_str::<Text<'_>>(r#"{"a":}"#).is_err());
        assert!(from_str::<Count>("[1,]").is_err());
    }
}
