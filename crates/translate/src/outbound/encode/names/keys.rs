//! Names of the arguments of tools that Claude would refuse.
//!
//! "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'", at the top level of the properties
//! of a tool (<https://github.com/decocms/studio/issues/6874>,
//! <https://github.com/anthropics/claude-code/issues/79418>).

use std::collections::HashMap;
use std::fmt::{Formatter, Result as Written};

use engine::{EngineError, Tool};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};
use wire::{Json, Splice};

use super::super::{DroppedField, DroppedFields, schema};

/// The names of a tool's arguments that were replaced, and the schema that has the new ones.
pub(super) struct Replaced {
    /// The originals and the new names.
    names: Vec<(String, String)>,
    /// The schema of the arguments.
    pub(super) schema: Json,
}

impl Replaced {
    /// Returns the replaced names of a tool's arguments, or `None` if Claude accepts all of them.
    /// Words of the schema that speak of arguments by their names are left out with them.
    pub(super) fn of(
        tool: &Tool,
        dropped: &mut DroppedFields,
    ) -> Result<Option<Self>, EngineError> {
        let parameters = tool.parameters.as_ref().map(Json::text);
        if parameters.is_none_or(|text| serde_json::from_str::<FitRoot>(text).is_ok()) {
            return Ok(None);
        }
        let Value::Object(mut members) = schema::of_claude_tool(tool, dropped)?.value() else {
            return Ok(None);
        };
        let properties = members.get_mut("properties").and_then(Value::as_object_mut);
        let Some(properties) = properties else {
            return Ok(None);
        };
        let unfit = properties.keys().filter(|name| !is_fit(name));
        let names: Vec<_> = unfit
            .map(|name| {
                (
                    name.clone(),
                    super::replacement(name, MAX_LENGTH, is_letter),
                )
            })
            .collect();
        if names.is_empty() {
            return Ok(None);
        }
        let new: HashMap<_, _> = names.iter().cloned().collect();
        let renamed = |(name, schema)| (new.get(&name).cloned().unwrap_or(name), schema);
        *properties = std::mem::take(properties)
            .into_iter()
            .map(renamed)
            .collect();
        let required = members.get_mut("required").and_then(Value::as_array_mut);
        for name in required.into_iter().flatten() {
            if let Some(new) = name.as_str().and_then(|name| new.get(name)) {
                *name = new.clone().into();
            }
        }
        drop_words_about_names(&mut members, dropped);
        let schema = Json::from(&Value::Object(members));
        Ok(Some(Self { names, schema }))
    }

    /// Returns the arguments of an earlier call with the new names.
    pub(super) fn applied(&self, arguments: &str) -> Option<String> {
        // Arguments need not be JSON.
        serde_json::from_str::<IgnoredAny>(arguments).ok()?;
        let mut splice = Splice::new(arguments.as_bytes());
        for (original, new) in &self.names {
            splice.rename_in(&[], original, new);
        }
        String::from_utf8(splice.to_vec()).ok()
    }

    /// Returns the originals by the new names.
    pub(super) fn originals(self) -> HashMap<String, String> {
        let swapped = self
            .names
            .into_iter()
            .map(|(original, new)| (new, original));
        swapped.collect()
    }
}

/// Removes the words which state by the names of arguments what is accepted.
fn drop_words_about_names(members: &mut Map<String, Value>, dropped: &mut DroppedFields) {
    let before = members.len();
    members.retain(|word, _| !WORDS_ABOUT_NAMES.contains(&word.as_str()));
    if members.len() < before {
        dropped.add(DroppedField::Schema);
    }
}

/// Restores the names of the arguments of one call, which come in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Restorer {
    /// The originals by the new names.
    originals: HashMap<String, String>,
    /// The number of objects and arrays that are open.
    depth: usize,
    /// True in the object of the arguments where a name follows.
    expects_name: bool,
    /// The name that has begun, with its quotation mark. It is held until it ends.
    name: Option<String>,
    in_string: bool,
    is_escaped: bool,
}

impl Restorer {
    pub(super) fn new(originals: HashMap<String, String>) -> Self {
        Self {
            originals,
            ..Self::default()
        }
    }

    /// Returns a piece of the arguments with the original names. A name whose end is missing, as in
    /// an answer that was cut off, is left out.
    pub(super) fn restore(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for letter in piece.chars() {
            if self.in_string {
                self.string_letter(letter, &mut out);
            } else {
                self.letter(letter, &mut out);
            }
        }
        out
    }

    fn string_letter(&mut self, letter: char, out: &mut String) {
        self.name.as_mut().unwrap_or(out).push(letter);
        if std::mem::take(&mut self.is_escaped) {
            return;
        }
        self.is_escaped = letter == '\\';
        if letter != '"' {
            return;
        }
        self.in_string = false;
        if let Some(name) = self.name.take() {
            let text = serde_json::from_str::<String>(&name).ok();
            let original = text.and_then(|text| self.originals.get(&text));
            match original {
                Some(original) => out.push_str(&Value::from(original.as_str()).to_string()),
                None => out.push_str(&name),
            }
        }
    }

    fn letter(&mut self, letter: char, out: &mut String) {
        match letter {
            '"' => {
                self.in_string = true;
                if std::mem::take(&mut self.expects_name) {
                    self.name = Some(letter.into());
                    return;
                }
            }
            '{' | '[' => {
                self.expects_name = letter == '{' && self.depth == 0;
                self.depth += 1;
            }
            '}' | ']' => self.depth = self.depth.saturating_sub(1),
            // The arguments of a call are an object.
            ',' => self.expects_name = self.depth == 1,
            _ => {}
        }
        out.push(letter);
    }
}

/// A schema whose root has no alternatives, and only names that Claude accepts.
#[derive(serde::Deserialize)]
struct FitRoot {
    #[serde(rename = "properties")]
    _properties: Option<FitNames>,
    #[serde(default, rename = "anyOf", alias = "oneOf", alias = "allOf")]
    _alternatives: Option<Never>,
}

/// An object with names that Claude accepts.
struct FitNames;

impl<'de> Deserialize<'de> for FitNames {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = FitNames;

            fn expecting(&self, to: &mut Formatter<'_>) -> Written {
                to.write_str("an object with names that Claude accepts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<FitNames, A::Error> {
                while members.next_key::<FitName>()?.is_some() {
                    members.next_value::<IgnoredAny>()?;
                }
                Ok(FitNames)
            }
        }

        from.deserialize_map(Names)
    }
}

/// A name that Claude accepts.
struct FitName;

impl<'de> Deserialize<'de> for FitName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = FitName;

            fn expecting(&self, to: &mut Formatter<'_>) -> Written {
                to.write_str("a name that Claude accepts")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<FitName, E> {
                is_fit(name)
                    .then_some(FitName)
                    .ok_or_else(|| E::custom("another name"))
            }
        }

        from.deserialize_str(Name)
    }
}

/// A member that must not be there.
struct Never;

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom("alternatives at the root"))
    }
}

fn is_fit(name: &str) -> bool {
    (1..=MAX_LENGTH).contains(&name.len()) && name.chars().all(is_letter)
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-')
}

/// The greatest length of the name of an argument.
const MAX_LENGTH: usize = 64;
/// The words of a schema that depend on the names of arguments, besides `properties` and `required`.
const WORDS_ABOUT_NAMES: [&str; 13] = [
    "$ref",
    "const",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "if",
    "not",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedProperties",
];

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        /// However the arguments are cut into pieces, they have the tool's own names.
        #[test]
        fn arguments_get_back_their_names(
            members in vec((prop::sample::select(NAMES.to_vec()), strategies::json_value()), 0..4),
            cuts in vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let own: Map<String, Value> = members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect();
            let arguments = Value::Object(own).to_string();
            let replaced = replaced();
            let sent = replaced.applied(&arguments).unwrap();
            let names = serde_json::from_str::<Map<String, Value>>(&sent).unwrap();
            prop_assert!(names.keys().all(|name| is_fit(name)), "{}", sent);
            let mut restorer = Restorer::new(replaced.originals());
            let letters: Vec<char> = sent.chars().collect();
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(letters.len())).collect();
            cuts.extend([0, letters.len()]);
            cuts.sort_unstable();
            let restored: String = cuts
                .windows(2)
                .map(|cut| restorer.restore(&letters[cut[0]..cut[1]].iter().collect::<String>()))
                .collect();
            prop_assert_eq!(restored, arguments);
        }
    }

    /// Also a name of an alternative at the root is one of the object that is sent.
    #[test]
    fn names_of_alternatives_are_replaced() {
        let schema = json!({ "anyOf": [{ "properties": { "$a": {} }, "required": ["$a"] }] });
        let names = |schema: &Value| {
            let replaced = Replaced::of(&tool(schema), &mut DroppedFields::default());
            replaced.unwrap().map(|replaced| replaced.names)
        };
        // The letters at the end are the first of its SHA-256.
        let new = |name: &str| Some(vec![("$a".to_owned(), name.to_owned())]);
        assert_eq!(names(&schema), new("_a_7a0eec4b"));
        assert_eq!(
            names(&json!({ "anyOf": [{ "properties": { "a": {} } }] })),
            None
        );
        assert_eq!(
            names(&json!({ "properties": { "a": { "properties": { "$a": {} } } } })),
            None
        );
        assert_eq!(names(&json!(null)), None);
    }

    /// Words that would still have the old names are left out, and named.
    #[test]
    fn words_about_old_names_are_left_out() {
        let schema = json!({ "properties": { "$a": {} }, "dependentRequired": { "$a": ["b"] } });
        let mut dropped = DroppedFields::default();
        let replaced = Replaced::of(&tool(&schema), &mut dropped).unwrap().unwrap();
        let expected = json!({ "type": "object", "properties": { "_a_7a0eec4b": {} } });
        assert_eq!(replaced.schema.value(), expected);
        assert_eq!(dropped.0, [DroppedField::Schema]);
    }

    fn replaced() -> Replaced {
        let properties: Map<_, _> = NAMES
            .iter()
            .map(|name| ((*name).to_owned(), json!({})))
            .collect();
        let schema = json!({ "properties": properties });
        let replaced = Replaced::of(&tool(&schema), &mut DroppedFields::default());
        replaced.unwrap().unwrap()
    }

    fn tool(schema: &Value) -> Tool {
        Tool {
            name: "f".to_owned(),
            description: None,
            parameters: Some(schema.into()),
            strict: None,
        }
    }

    const NAMES: [&str; 6] = ["$filter", "a b", "a\"b\\", "ok", "\u{e9}", ""];
}
